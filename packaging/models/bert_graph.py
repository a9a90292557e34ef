"""A BERT sentence encoder as an ONNX graph: embeddings, layers, mean pooling, unit length.

What lives here is the graph alone; where weights come from and what is checked about the result
is in the `export_*.py`. The graph uses onnxruntime's fused operators (domain com.microsoft), so no
optimiser has to recognise them again at every start.

Inputs: `input_ids` and `attention_mask`, int64, (batch, tokens). Outputs: `sentence_embedding`,
float32, (batch, dim), rows of unit length, and `token_embeddings`, float32, (batch, tokens, dim).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

FUSED = "com.microsoft"
OPSET = 21
FUSED_OPSET = 1
# 7 bits, not 8: x86 without VNNI adds pairs of products in 16 bits, which 8 bits overflow
# (cosine to the original .985 instead of .996 where that happens).
STEPS = 63
BLOCK = 32  # weights that share a scale where they are stored in 4 bits
OUTLIER = 3.0  # times the median peak of a layer's input; 1 gave .9932, 2 .9955, none .9914
Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """A BERT's shape, as its config.json gives it."""

    layers: int
    heads: int
    dim: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Blocks:
    """A matrix in 4 bits: codes from -8 to 7, int8, (rows, blocks, BLOCK), and a scale for each block.

    `scales` are float16, (rows, blocks, 1).
    """

    codes: Array
    scales: Array

    def rows(self, count: int) -> "Blocks":
        """The first rows."""
        return Blocks(self.codes[:count], self.scales[:count])

    @property
    def matrix(self) -> Array:
        """The same in float32, (rows, columns)."""
        scaled: Array = self.codes * self.scales.astype(np.float32)
        return scaled.reshape(len(scaled), -1)

    @property
    def packed(self) -> Array:
        """The codes, two in a byte, the first in its low half; uint8, (rows, columns / 2)."""
        codes = self.codes.astype(np.uint8).reshape(len(self.codes), -1) & 15
        pairs: Array = codes[:, ::2] | codes[:, 1::2] << 4
        return pairs


@dataclass(slots=True)
class _Graph:
    """Nodes and weights in the making."""

    weights: Mapping[str, Array]
    shape: Shape
    peaks: Mapping[str, Array] | None
    blocks: Mapping[str, Blocks]
    nodes: list[NodeProto] = field(default_factory=list)
    initializers: dict[str, TensorProto] = field(default_factory=dict)

    def constant(self, name: str, value: Array) -> str:
        self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def weight(self, name: str) -> str:
        return self.constant(name, self.weights[name].astype(np.float32))

    def add(
        self, kind: str, inputs: list[str], output: str, *, domain: str = "", **attrs: object
    ) -> str:
        self.nodes.append(
            helper.make_node(
                kind, inputs, [output], name=f"{output}.{kind}", domain=domain, **attrs
            )
        )
        return output


def build(
    weights: Mapping[str, Array],
    shape: Shape,
    peaks: Mapping[str, Array] | None = None,
    blocks: Mapping[str, Blocks] | None = None,
) -> ModelProto:
    """Return the encoder; in float32, or quantised to int8 when `peaks` is given.

    `weights` are named as in the original safetensors file. `peaks` gives, for the input of each
    linear layer (by the layer's name), the largest magnitude seen in each column. Those in `blocks`
    are stored in 4 bits; the matrices of layers become int8 once, when the graph is loaded.
    """
    graph = _Graph(weights, shape, peaks, blocks or {})
    hidden = _embeddings(graph)
    graph.add("Cast", ["attention_mask"], "mask", to=TensorProto.INT32)
    for layer in range(shape.layers):
        hidden = _layer(graph, hidden, layer)
    graph.add("Identity", [hidden], "token_embeddings")
    _pool(graph, hidden)
    made = helper.make_graph(
        graph.nodes,
        "sentence_encoder",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask")
        ],
        [
            helper.make_tensor_value_info(
                "sentence_embedding", TensorProto.FLOAT, ["batch", shape.dim]
            ),
            helper.make_tensor_value_info(
                "token_embeddings", TensorProto.FLOAT, ["batch", "tokens", shape.dim]
            ),
        ],
        initializer=list(graph.initializers.values()),
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(FUSED, FUSED_OPSET)]
    return helper.make_model(made, opset_imports=opsets, ir_version=10, producer_name="commonplace")


def _embeddings(graph: _Graph) -> str:
    """Word, position and type embeddings, summed and normalised."""
    words = _word_rows(graph)
    zero, one = (graph.constant(f"index.{n}", np.array([n], np.int64)) for n in (0, 1))
    graph.add("Shape", ["input_ids"], "tokens", start=1, end=2)
    graph.add("Slice", [_position_rows(graph), zero, "tokens", zero, one], "positions")
    graph.add("Add", [words, "positions"], "embeddings.sum")
    return graph.add(
        "LayerNormalization",
        ["embeddings.sum", *_norm(graph, "embeddings.LayerNorm")],
        "embeddings.out",
        epsilon=graph.shape.epsilon,
    )


def _word_rows(graph: _Graph) -> str:
    """Rows of the word table; when quantised, 4-bit blocks, or int8 with a scale for each row."""
    name = "embeddings.word_embeddings.weight"
    if name in graph.blocks:
        return _block_rows(graph, graph.blocks[name])
    table = graph.weights[name]
    if graph.peaks is None:
        return graph.add(
            "Gather", [graph.constant("words", table), "input_ids"], "words.rows", axis=0
        )
    scale = np.abs(table.astype(np.float32)).max(axis=1, keepdims=True) / 127
    scale[scale == 0] = 1
    whole = np.rint(table / scale).astype(np.int8)
    graph.add("Gather", [graph.constant("words", whole), "input_ids"], "words.int8", axis=0)
    graph.add("Cast", ["words.int8"], "words.cast", to=TensorProto.FLOAT)
    scales = graph.constant("words.scale", scale.astype(np.float32))
    graph.add("Gather", [scales, "input_ids"], "words.scales", axis=0)
    return graph.add("Mul", ["words.cast", "words.scales"], "words.rows")


def _block_rows(graph: _Graph, table: Blocks) -> str:
    """Rows of a word table of 4-bit blocks."""
    codes = graph.constant("words", table.packed ^ 0x88)  # from 0 to 15, where 8 means zero
    scales = graph.constant("words.scale", table.scales[:, :, 0])
    graph.add(
        "GatherBlockQuantized",
        [codes, "input_ids", scales],
        "words.half",
        domain=FUSED,
        bits=4,
        block_size=BLOCK,
        gather_axis=0,
        quantize_axis=1,
    )
    return graph.add("Cast", ["words.half"], "words.rows", to=TensorProto.FLOAT)


def _position_rows(graph: _Graph) -> str:
    """Positions with the embedding of sentence type 0 added: there is only one sentence."""
    positions = graph.weights["embeddings.position_embeddings.weight"].astype(np.float32)
    types = graph.weights["embeddings.token_type_embeddings.weight"].astype(np.float32)
    return graph.constant("positions.weight", positions + types[0])


def _norm(graph: _Graph, name: str) -> list[str]:
    return [graph.weight(f"{name}.weight"), graph.weight(f"{name}.bias")]


def _layer(graph: _Graph, hidden: str, number: int) -> str:
    """One transformer layer: attention and a feed-forward net, a residual around each."""
    name = f"encoder.layer.{number}"
    sides = [
        _linear(graph, hidden, f"{name}.attention.self.{side}")
        for side in ("query", "key", "value")
    ]
    attended = graph.add(
        "MultiHeadAttention",
        [*sides, "", "mask"],
        f"{name}.attended",
        domain=FUSED,
        num_heads=graph.shape.heads,
    )
    mixed = _linear(graph, attended, f"{name}.attention.output.dense")
    middle = _residual(graph, mixed, hidden, f"{name}.attention.output.LayerNorm")
    wide = _linear(graph, middle, f"{name}.intermediate.dense", bias=False)
    bias = graph.weight(f"{name}.intermediate.dense.bias")
    graph.add("BiasGelu", [wide, bias], f"{name}.gelu", domain=FUSED)
    narrow = _linear(graph, f"{name}.gelu", f"{name}.output.dense")
    return _residual(graph, narrow, middle, f"{name}.output.LayerNorm")


def _residual(graph: _Graph, new: str, old: str, norm: str) -> str:
    return graph.add(
        "SkipLayerNormalization",
        [new, old, *_norm(graph, norm)],
        f"{norm}.out",
        domain=FUSED,
        epsilon=graph.shape.epsilon,
    )


def _linear(graph: _Graph, source: str, name: str, *, bias: bool = True) -> str:
    """`source` times the weights called `name`, plus their bias, at the chosen precision."""
    matrix = graph.weights[f"{name}.weight"].astype(np.float32).T
    bias_name = graph.weight(f"{name}.bias") if bias else ""
    if graph.peaks is not None:
        return _quantised(graph, source, name, matrix, bias_name)
    out = graph.add("MatMul", [source, graph.constant(name, matrix)], f"{name}.product")
    return graph.add("Add", [out, bias_name], f"{name}.out") if bias else out


def _quantised(graph: _Graph, source: str, name: str, matrix: Array, bias_name: str) -> str:
    """The same in int8: weights with a scale for each column, inputs scaled as one, as they come.

    A few columns of the input reach far beyond the others and would leave those few of the 256
    steps; they are divided down first, and the weights' rows multiplied up (after SmoothQuant,
    Xiao et al. 2023, for outliers alone). Layers that share an input share the division.
    """
    assert graph.peaks is not None
    peaks = graph.peaks[name]
    divisor = np.maximum(1, peaks / (OUTLIER * np.median(peaks))).astype(np.float32)
    even = f"{source}.even"
    if even not in graph.initializers:
        graph.constant(even, 1 / divisor)
        graph.add("Mul", [source, even], f"{even}.out")
    matrix = matrix * divisor[:, None]
    scale = np.abs(matrix).max(axis=0) / STEPS
    if stored := graph.blocks.get(f"{name}.weight"):
        whole = _from_blocks(graph, name, stored, divisor, scale)
    else:
        whole = graph.constant(f"{name}.int8", np.rint(matrix / scale).astype(np.int8))
    scales = graph.constant(f"{name}.scale", scale.astype(np.float32))
    return graph.add(
        "DynamicQuantizeMatMul",
        [f"{even}.out", whole, scales, "", bias_name],
        f"{name}.out",
        domain=FUSED,
    )


def _from_blocks(graph: _Graph, name: str, stored: Blocks, divisor: Array, scale: Array) -> str:
    """The int8 matrix, computed from its 4-bit blocks: onnxruntime folds this while it loads."""
    rows, count, _ = stored.codes.shape
    codes = helper.make_tensor(
        f"{name}.int4", TensorProto.INT4, stored.codes.shape, stored.packed.tobytes(), raw=True
    )
    graph.initializers[codes.name] = codes
    scales = graph.constant(f"{name}.blocks", stored.scales)
    even = graph.constant(f"{name}.even", divisor.reshape(1, count, BLOCK))
    steps = graph.constant(f"{name}.steps", scale.astype(np.float32))
    shape = graph.constant(f"{name}.shape", np.array([rows, -1], np.int64))
    graph.add("Cast", [codes.name], f"{name}.codes", to=TensorProto.FLOAT)
    graph.add("Cast", [scales], f"{name}.scales", to=TensorProto.FLOAT)
    graph.add("Mul", [f"{name}.codes", f"{name}.scales"], f"{name}.blocks.out")
    graph.add("Mul", [f"{name}.blocks.out", even], f"{name}.even.out")
    graph.add(
        "QuantizeLinear",
        [f"{name}.even.out", steps],
        f"{name}.whole",
        axis=0,
        output_dtype=TensorProto.INT8,
    )
    graph.add("Reshape", [f"{name}.whole", shape], f"{name}.rows")
    return graph.add("Transpose", [f"{name}.rows"], f"{name}.int8", perm=[1, 0])


def _pool(graph: _Graph, hidden: str) -> str:
    """The mean over the tokens that the mask leaves, at unit length."""
    last = graph.constant("axis.last", np.array([2], np.int64))
    along = graph.constant("axis.tokens", np.array([1], np.int64))
    graph.add("Cast", ["attention_mask"], "mask.float", to=TensorProto.FLOAT)
    graph.add("Unsqueeze", ["mask.float", last], "mask.column")
    graph.add("Mul", [hidden, "mask.column"], "kept")
    graph.add("ReduceSum", ["kept", along], "summed", keepdims=0)
    return graph.add("LpNormalization", ["summed"], "sentence_embedding", axis=1, p=2)
