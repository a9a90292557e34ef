"""Fits the projection of the built-in model's token vectors to 32 dimensions, for token matching.

    python packaging/models/token_projection.py

in a virtual environment with numpy, onnxruntime and tokenizers, after `export_minilm.py`; writes
`token_projection.npy` beside the model and its SHA-256 into `embedder.json`.

The projection is the first 32 right singular vectors of the token vectors (PCA without centering),
without special tokens, of Python's own manual (`pydoc_data.topics`) and of
`resources/calibration/talk.txt`: both are at hand wherever this runs.
"""

import hashlib
import io
import json
import pydoc_data.topics
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime
from tokenizers import Tokenizer

DIMENSIONS = 32
RESOURCES = Path(__file__).resolve().parents[2] / "resources"
TARGET = RESOURCES / "models" / "all-MiniLM-L6-v2"
NAME = "token_projection.npy"
MAX_TOKENS = 256


def main() -> None:
    """Fit, and write the projection."""
    projection, share = fit(texts())
    print(f"{DIMENSIONS} dimensions keep {share:.3f} of the squared length")
    with io.BytesIO() as file:
        np.save(file, projection)
        content = file.getvalue()
    (TARGET / NAME).write_bytes(content)
    card = json.loads((TARGET / "embedder.json").read_text(encoding="utf-8"))
    card["sha256"][NAME] = hashlib.sha256(content).hexdigest()
    (TARGET / "embedder.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def texts() -> list[str]:
    """Return paragraphs of the manual and the lines of the calibration text."""
    topics = "\n\n".join(topic for _, topic in sorted(pydoc_data.topics.topics.items()))
    talk = (RESOURCES / "calibration" / "talk.txt").read_text(encoding="utf-8")
    found = [" ".join(part.split()) for part in topics.split("\n\n")]
    found += [line.removeprefix("? ") for line in talk.splitlines() if not line.startswith("#")]
    return [one for one in dict.fromkeys(found) if len(one) > 20]


def fit(sample: list[str]) -> tuple[npt.NDArray[np.float32], float]:
    """Return the projection, float32 (dimension, 32), and the share of squared length it keeps."""
    tokenizer = Tokenizer.from_file(str(TARGET / "tokenizer.json"))
    model = onnxruntime.InferenceSession(
        str(TARGET / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    products: npt.NDArray[np.float64] | None = None
    for text in sample:
        ids = np.array([tokenizer.encode(text).ids[:MAX_TOKENS]], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        vectors = np.asarray(model.run(["token_embeddings"], feed)[0])[0, 1:-1].astype(np.float64)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        product = vectors.T @ vectors
        products = product if products is None else products + product
    assert products is not None
    lengths, directions = np.linalg.eigh(products)
    first = directions[:, : -DIMENSIONS - 1 : -1]
    largest = first[np.abs(first).argmax(axis=0), np.arange(DIMENSIONS)]
    share = float(lengths[-DIMENSIONS:].sum() / lengths.sum())
    return np.ascontiguousarray(first * np.sign(largest), np.float32), share


if __name__ == "__main__":
    main()
