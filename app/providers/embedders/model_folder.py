"""Folders with an ONNX embedding model: their metadata and checksums. Nothing is loaded here.

There are two kinds. This program's own has `embedder.json`: the space, the SHA-256 of each file, and
what is special to the model: prefixes of questions and passages, the cosine of equal statements.
Any other is read as sentence-transformers exports it: `model.onnx` (or `onnx/model.onnx`, or a
quantized one beside it), `tokenizer.json`, `config.json`, and where present
`sentence_bert_config.json` (longest text) and `1_Pooling/config.json`.
"""

import hashlib
import json
import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from app.domain.errors import EmbedderUnavailable
from app.domain.passages import Space

CARD = "embedder.json"
_PROJECTION = "token_projection.npy"
_MODELS = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
_FINGERPRINT_BYTES = 1 << 20
_LONGEST_TEXT_TOKENS = 8192
_DEFAULT_TEXT_TOKENS = 512
# Of 1,576 facts extracted from the LoCoMo chats, the pairs at 0.90 or more that differ in no number,
# name or negation say the same; below, some differ ("applied to", "is researching").
_SAME_COSINE = 0.90


class Pooling(StrEnum):
    """How the vectors of tokens become the vector of a text."""

    IN_GRAPH = "in_graph"
    MEAN = "mean"
    FIRST = "first"


@dataclass(frozen=True, slots=True)
class Prefixes:
    """What a model was trained to see before a question and before a text to be found; "" for nothing."""

    query: str = ""
    passage: str = ""


@dataclass(frozen=True, slots=True)
class EmbedderFolder:
    """An embedding model on disk. `sha256` maps file names to their hash in hex.

    A `latin_only` model knows no other script.

    Statements whose vectors have a cosine of `same_cosine` say the same, if they differ in no number
    or name. `unrelated_tokens` is the mean cosine of a question's tokens with the nearest ones of an unrelated message.
    """

    path: Path
    model: Path
    tokenizer: Path
    space: Space
    pooling: Pooling
    sha256: dict[str, str] = field(default_factory=dict)
    prefixes: Prefixes = Prefixes()
    same_cosine: float = _SAME_COSINE
    latin_only: bool = False
    unrelated_tokens: float = 0.0

    @property
    def token_projection(self) -> Path | None:
        """The matrix that reduces token vectors for token matching; None without one."""
        return self.path / _PROJECTION if _PROJECTION in self.sha256 else None

    @property
    def token_model(self) -> str:
        """The identity of the token vectors, "" if the model has none to store."""
        return self.sha256.get(_PROJECTION, "")[:8]

    def verify(self) -> None:
        """Raise `EmbedderUnavailable` if a file is missing or its SHA-256 differs (25 ms)."""
        for name, expected in self.sha256.items():
            try:
                with (self.path / name).open("rb") as file:
                    actual = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise _unusable(self.path, f"{name} cannot be read ({error.strerror})") from error
            if actual != expected:
                raise _unusable(self.path, f"{name} is damaged (SHA-256 {actual[:12]}…)")


def read_folder(path: Path) -> EmbedderFolder:
    """Return the model in `path`; raise `EmbedderUnavailable` that names what is missing or wrong."""
    if (path / CARD).is_file():
        return _read_ours(path)
    tokenizer = path / "tokenizer.json"
    model = next((path / name for name in _MODELS if (path / name).is_file()), None)
    if model is None:
        raise _unusable(path, "there is no model.onnx in it")
    if not tokenizer.is_file():
        raise _unusable(path, "there is no tokenizer.json in it")
    config = _read_json(path, "config.json")
    dimension = config.get("hidden_size", config.get("dim"))
    if not isinstance(dimension, int) or dimension < 1:
        raise _unusable(path, "its config.json names no hidden_size")
    space = Space(_space_name(path, model), dimension, _longest_text(path, config))
    return EmbedderFolder(path, model, tokenizer, space, _pooling(path))


def _read_ours(path: Path) -> EmbedderFolder:
    card = _read_json(path, CARD)
    try:
        space = Space(**card["space"])
        files: dict[str, str] = dict(card["sha256"])
        prefixes = Prefixes(**card.get("prefixes", {}))
        same = float(card.get("same_cosine", _SAME_COSINE))
        unrelated = float(card.get("unrelated_tokens", 0.0))
    except (KeyError, TypeError, ValueError) as error:
        raise _unusable(path, f"its {CARD} is damaged") from error
    model, tokenizer = path / "model.onnx", path / "tokenizer.json"
    latin_only = card.get("latin_only", False) is True
    return EmbedderFolder(
        path,
        model,
        tokenizer,
        space,
        Pooling.IN_GRAPH,
        files,
        prefixes,
        same,
        latin_only,
        unrelated,
    )


def _space_name(path: Path, model: Path) -> str:
    """The folder's name and 8 digits of the model's hash: two models never share a space."""
    with model.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        digest = hashlib.sha256(str(size).encode() + file.read(_FINGERPRINT_BYTES))
        file.seek(max(0, size - _FINGERPRINT_BYTES))
        digest.update(file.read())
    name = re.sub(r"[^a-z0-9]+", "_", path.name.lower()).strip("_") or "onnx"
    return f"{name[:40]}_{digest.hexdigest()[:8]}"


def _longest_text(path: Path, config: dict[str, Any]) -> int:
    limit = config.get("max_position_embeddings")
    if (path / "sentence_bert_config.json").is_file():
        limit = _read_json(path, "sentence_bert_config.json").get("max_seq_length", limit)
    longest = limit if isinstance(limit, int) and limit > 0 else _DEFAULT_TEXT_TOKENS
    return min(longest, _LONGEST_TEXT_TOKENS)


def _pooling(path: Path) -> Pooling:
    if not (path / "1_Pooling" / "config.json").is_file():
        return Pooling.MEAN
    first_token = _read_json(path, "1_Pooling/config.json").get("pooling_mode_cls_token")
    return Pooling.FIRST if first_token else Pooling.MEAN


def _read_json(path: Path, name: str) -> dict[str, Any]:
    try:
        content = json.loads((path / name).read_text(encoding="utf-8"))
    except OSError as error:
        raise _unusable(path, f"{name} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise _unusable(path, f"{name} is not JSON") from error
    if not isinstance(content, dict):
        raise _unusable(path, f"{name} is not a JSON object")
    return content


def _unusable(path: Path, why: str) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        f"“{path}” holds no usable embedding model: {why}",
        "Install the program again, or choose a folder with model.onnx, tokenizer.json and "
        "config.json.",
    )
