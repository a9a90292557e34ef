"""A BERT sentence encoder in plain numpy, slow and obvious: what the ONNX graph is checked by."""

from collections.abc import Mapping, Sequence
from math import erf

import numpy as np
import numpy.typing as npt
from bert_graph import Array, Shape


def numpy_bert(
    weights: Mapping[str, Array], shape: Shape, ids: Sequence[int]
) -> npt.NDArray[np.float32]:
    """The unit vector of one text by the textbook (Devlin et al. 2019), to check the graph by."""

    def w(name: str) -> Array:
        return weights[name].astype(np.float64)

    def linear(x: Array, name: str) -> Array:
        product: Array = x @ w(f"{name}.weight").T + w(f"{name}.bias")
        return product

    def norm(x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(-1, keepdims=True) + shape.epsilon)
        scaled: Array = centred / spread * w(f"{name}.weight") + w(f"{name}.bias")
        return scaled

    def heads(x: Array) -> Array:
        split: Array = x.reshape(len(ids), shape.heads, -1).swapaxes(0, 1)
        return split

    tables = "embeddings.{}_embeddings.weight"
    x = w(tables.format("word"))[list(ids)] + w(tables.format("position"))[: len(ids)]
    x = norm(x + w(tables.format("token_type"))[0], "embeddings.LayerNorm")
    for number in range(shape.layers):
        at = f"encoder.layer.{number}"
        query, key, value = (
            heads(linear(x, f"{at}.attention.self.{side}")) for side in ("query", "key", "value")
        )
        weight = np.exp(query @ key.swapaxes(1, 2) / np.sqrt(query.shape[-1]))
        mixed = (weight / weight.sum(-1, keepdims=True) @ value).swapaxes(0, 1)
        mixed = linear(mixed.reshape(len(ids), -1), f"{at}.attention.output.dense")
        x = norm(x + mixed, f"{at}.attention.output.LayerNorm")
        wide = linear(x, f"{at}.intermediate.dense")
        wide = wide * (1 + np.vectorize(erf)(wide / np.sqrt(2))) / 2
        x = norm(x + linear(wide, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    mean = x.mean(0)
    unit: npt.NDArray[np.float32] = (mean / np.linalg.norm(mean)).astype(np.float32)
    return unit
