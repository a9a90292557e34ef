"""The routes by which each kind of local server reports a model's window, and its refusals.

Shapes as the servers answer them: vLLM 0.11, llama-server b6800, LM Studio 0.3.30, Ollama 0.12.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fakes.loopback import Route, Seen
from tests.fakes.loopback_script import Http, Step, json_reply

MODEL = "test-model"
_REFUSALS = Path(__file__).parents[1] / "data" / "context_refusals.json"


def _models(**fields: Any) -> Step:
    entry = {"id": MODEL, "object": "model", "created": 1, **fields}
    return json_reply({"object": "list", "data": [entry]})


def vllm(tokens: int) -> Mapping[str, Route]:
    """Return the routes of vLLM."""
    return {"/v1/models": _models(owned_by="vllm", root=MODEL, parent=None, max_model_len=tokens)}


def llama_server(tokens: int) -> Mapping[str, Route]:
    """Return the routes of llama-server; its list names what the model was trained for."""
    settings = {"id": 0, "n_ctx": tokens, "speculative": False}
    return {
        "/v1/models": _models(
            owned_by="llamacpp", meta={"n_vocab": 262_144, "n_ctx_train": 131_072}
        ),
        "/props": json_reply({"default_generation_settings": settings, "total_slots": 1}),
    }


def lm_studio(loaded: int | None, most: int = 131_072) -> Mapping[str, Route]:
    """Return the routes of LM Studio, with the model loaded or not."""
    entry = {"id": MODEL, "object": "model", "type": "llm", "max_context_length": most}
    state = {"state": "not-loaded"}
    if loaded is not None:
        state = {"state": "loaded", "loaded_context_length": loaded}  # type: ignore[dict-item]
    listing = {"object": "list", "data": [entry | state]}
    return {
        "/v1/models": _models(owned_by="organization_owner"),
        "/api/v0/models": json_reply(listing),
    }


def ollama(num_ctx: int | None = None, loaded: int | None = None) -> Mapping[str, Route]:
    """Return the routes of Ollama, with `num_ctx` in the model file and the model loaded or not."""
    parameters = 'stop                           "<|im_end|>"'
    if num_ctx is not None:
        parameters += f"\nnum_ctx                        {num_ctx}"
    info = {"general.architecture": "llama", "llama.context_length": 131_072}

    def show(seen: Seen) -> Step:
        if seen.body != {"model": MODEL}:
            return Http(404, b'{"error":"model not found"}')
        return json_reply({"parameters": parameters, "model_info": info})

    running = [{"name": MODEL, "model": MODEL, "context_length": loaded}] if loaded else []
    return {
        "/v1/models": _models(owned_by="library"),
        "/api/show": show,
        "/api/ps": json_reply({"models": running}),
    }


def custom(tokens: int) -> Mapping[str, Route]:
    """Return the routes of a gateway such as OpenRouter or LiteLLM."""
    return {"/v1/models": _models(context_length=tokens)}


# What servers say of a request of 9,000 tokens, or of an unknown number, beyond 4,096: each with the
# tokens of the prompt, None where it does not say.
REFUSALS: Mapping[str, tuple[Step, int | None]] = {
    each["name"]: (json_reply(each["body"], each["status"]), each["prompt_tokens"])
    for each in json.loads(_REFUSALS.read_text(encoding="utf-8"))
}
# Refusals that do not name the window.
VAGUE_REFUSALS: Mapping[str, Step] = {
    "Ollama": json_reply({"error": {"message": "prompt too long; exceeded max context length by 17 tokens",
                                    "type": "invalid_request_error"}}, 400),
    "OpenAI": json_reply({"error": {"message": "Your input exceeds the context window of this model. "
                                    "Please adjust your input and try again.",
                                    "type": "invalid_request_error",
                                    "code": "context_length_exceeded"}}, 400),
}  # fmt: skip
