"""The embeddings endpoint: vectors that depend on nothing but the text, so that a test knows them."""

import base64
import hashlib
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.fakes.loopback_script import Vectors

EMBEDDINGS = "embeddings"
TOKENS_OF_A_TEXT = 8


def vector_of(text: str, dimension: int = 8) -> npt.NDArray[np.float32]:
    seed = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    drawn = np.random.default_rng(list(seed)).standard_normal(dimension)
    unit: npt.NDArray[np.float32] = (drawn / np.linalg.norm(drawn)).astype(np.float32)
    return unit


def embeddings_body(asked: dict[str, Any], step: Vectors) -> bytes:
    """Return the answer to a request, vectors three times the unit length and base64 if asked for."""
    texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
    as_base64 = asked.get("encoding_format") == "base64"
    entries = [
        {"object": "embedding", "index": index, "embedding": _spelled(row, as_base64=as_base64)}
        for index, row in enumerate(3 * vector_of(text, step.dimension) for text in texts)
    ]
    answer: dict[str, Any] = {"object": "list", "model": asked["model"]}
    answer["data"] = step.change(entries) if step.change else entries
    if step.tokens is not None:
        tokens = len(texts) * TOKENS_OF_A_TEXT if step.tokens < 0 else step.tokens
        answer["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}
    return json.dumps(answer).encode()


def _spelled(row: npt.NDArray[np.float32], *, as_base64: bool) -> str | list[float]:
    if as_base64:
        return base64.b64encode(row.astype("<f4").tobytes()).decode()
    return [float(number) for number in row]
