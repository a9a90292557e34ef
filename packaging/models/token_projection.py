"""Fits the projections of the built-in models' token vectors to 32 dimensions, for token matching.

    python packaging/models/token_projection.py [MODEL ...]

in a virtual environment with numpy, onnxruntime and tokenizers, after `export_minilm.py` and
`export_e5.py`; writes `token_projection.npy` beside each model and its SHA-256 into
`embedder.json`.

The projection is the first 32 right singular vectors of the token vectors (PCA without centering),
without special tokens, of texts that are at hand wherever this runs: Python's own manual
(`pydoc_data.topics`), `resources/calibration/talk.txt`, and the sentences of many languages in
`tests/data/language.toml`. `unrelated_tokens` in `embedder.json` is the mean cosine of a question's
tokens with the nearest ones of a message on another topic of `talk.txt`.
"""

import hashlib
import io
import json
import pydoc_data.topics
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime
from tokenizers import Tokenizer

DIMENSIONS = 32
ROOT = Path(__file__).resolve().parents[2]
RESOURCES, SENTENCES = ROOT / "resources", ROOT / "tests" / "data" / "language.toml"
MODELS = RESOURCES / "models"
NAMES = ("all-MiniLM-L6-v2", "multilingual-e5-small")
FILE = "token_projection.npy"
MAX_TOKENS = 256


def main(names: Sequence[str] = NAMES) -> None:
    """Fit, and write the projections of models."""
    for folder in (MODELS / name for name in names):
        card = json.loads((folder / "embedder.json").read_text(encoding="utf-8"))
        samples = [english()] if "latin_only" in card else [english(), many_languages()]
        projection, share = fit(folder, samples)
        print(f"{folder.name}: {DIMENSIONS} dimensions keep {share:.3f} of the squared length")
        with io.BytesIO() as file:
            np.save(file, projection)
            content = file.getvalue()
        (folder / FILE).write_bytes(content)
        card["unrelated_tokens"] = round(unrelated(folder, projection), 4)
        card["sha256"][FILE] = hashlib.sha256(content).hexdigest()
        (folder / "embedder.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def english() -> list[str]:
    """Return paragraphs of the manual and the lines of the calibration text."""
    topics = "\n\n".join(topic for _, topic in sorted(pydoc_data.topics.topics.items()))
    talk = (RESOURCES / "calibration" / "talk.txt").read_text(encoding="utf-8")
    found = [" ".join(part.split()) for part in topics.split("\n\n")]
    found += [line.removeprefix("? ") for line in talk.splitlines() if not line.startswith("#")]
    return [one for one in dict.fromkeys(found) if len(one) > 20]


def many_languages() -> list[str]:
    """Return the texts of the tests of languages."""
    found = _strings(tomllib.loads(SENTENCES.read_text(encoding="utf-8")))
    return [one for one in dict.fromkeys(found) if len(one) > 7]


def _strings(values: object) -> Iterator[str]:
    if isinstance(values, str):
        yield values
    elif isinstance(values, Mapping | list):
        for each in values.values() if isinstance(values, Mapping) else values:
            yield from _strings(each)


def fit(folder: Path, samples: Sequence[Sequence[str]]) -> tuple[npt.NDArray[np.float32], float]:
    """Return the projection, float32 (dimension, 32), and the share of squared length it keeps.

    Samples count equally, however many tokens they have.
    """
    vectors_of = token_vectors(folder)
    products = np.zeros(1)
    for sample in samples:
        tokens, product = 0, np.zeros(1)
        for text in sample:
            vectors = vectors_of(text)
            product = product + vectors.T @ vectors
            tokens += len(vectors)
        products = products + product / tokens
    lengths, directions = np.linalg.eigh(products)
    first = directions[:, : -DIMENSIONS - 1 : -1]
    largest = first[np.abs(first).argmax(axis=0), np.arange(DIMENSIONS)]
    share = float(lengths[-DIMENSIONS:].sum() / lengths.sum())
    return np.ascontiguousarray(first * np.sign(largest), np.float32), share


def token_vectors(folder: Path) -> Callable[[str], npt.NDArray[np.float64]]:
    """Return a function that gives the vectors of a text's tokens, (n, dimension), rows of unit length."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    model = onnxruntime.InferenceSession(
        str(folder / "model.onnx"), providers=["CPUExecutionProvider"]
    )

    def vectors_of(text: str) -> npt.NDArray[np.float64]:
        ids = np.array([tokenizer.encode(text).ids[:MAX_TOKENS]], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        return _unit(
            np.asarray(model.run(["token_embeddings"], feed)[0])[0, 1:-1].astype(np.float64)
        )

    return vectors_of


def unrelated(folder: Path, projection: npt.NDArray[np.float32]) -> float:
    """Return the mean cosine of a question's projected tokens with the nearest ones of a message on another topic."""
    card = json.loads((folder / "embedder.json").read_text(encoding="utf-8"))
    prefixes, vectors_of = card.get("prefixes", {}), token_vectors(folder)
    tokens: dict[str, list[tuple[int, npt.NDArray[np.float64]]]] = {"query": [], "passage": []}
    topic = 0
    for line in (RESOURCES / "calibration" / "talk.txt").read_text(encoding="utf-8").splitlines():
        topic += line.startswith("# ")
        if line and not line.startswith("# "):
            kind = "query" if line.startswith("? ") else "passage"
            prefix = prefixes.get(kind, "")
            first = len(vectors_of(prefix)) if prefix else 0
            vectors = vectors_of(prefix + line.removeprefix("? "))[first:]
            tokens[kind].append((topic, _unit(vectors @ projection)))
    return float(
        np.mean(
            [
                (asked @ said.T).max(axis=1).mean()
                for of_asked, asked in tokens["query"]
                for of_said, said in tokens["passage"]
                if of_asked != of_said
            ]
        )
    )


def _unit(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return found


if __name__ == "__main__":
    main(sys.argv[1:] or NAMES)
