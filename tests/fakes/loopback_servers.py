"""The routes by which each kind of local server reports a model's window, and its refusals.

Shapes as the servers answer them: vLLM 0.11, llama-server b6800, LM Studio 0.3.30, Ollama 0.12.
"""

from collections.abc import Mapping
from typing import Any

from tests.fakes.loopback import Route, Seen
from tests.fakes.loopback_script import Http, Step, json_reply

MODEL = "test-model"


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


# What servers say of a request of 9,000 tokens, or of an unknown number, beyond 4,096.
REFUSALS: Mapping[str, Step] = {
    name: json_reply(body, status)
    for name, status, body in (
        (
            "vLLM",
            400,
            {"error": {"message": "This model's maximum context length is 4096 tokens. However, you "
             "requested 9000 tokens (8000 in the messages, 1000 in the completion). Please reduce the "
             "length of the messages or completion.", "type": "BadRequestError", "code": 400}},
        ),
        (
            "vLLM, newer",
            400,
            {"error": {"message": "This model's maximum context length is 4096 tokens. However, you "
             "requested 5000 output tokens and your prompt contains at least 4000 input tokens, for a "
             "total of at least 9000 tokens. Please reduce the length of the input prompt or the number "
             "of requested output tokens.", "type": "BadRequestError", "code": 400}},
        ),
        (
            "vLLM, output",
            400,
            {"error": {"message": "'max_tokens' or 'max_completion_tokens' is too large: 9000. This "
             "model's maximum context length is 4096 tokens and your request has 200 input tokens "
             "(9000 > 4096 - 200).", "type": "BadRequestError", "code": 400}},
        ),
        (
            "llama-server",
            400,
            {"error": {"code": 400, "message": "request (9000 tokens) exceeds the available context "
             "size (4096 tokens), try increasing it", "type": "exceed_context_size_error",
             "n_prompt_tokens": 9000, "n_ctx": 4096}},
        ),
        (
            "llama-server, older",
            400,
            {"error": {"code": 400, "message": "the request exceeds the available context size, try "
             "increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 9000,
             "n_ctx": 4096}},
        ),
        (
            "LM Studio",
            400,
            {"error": "Trying to keep the first 9000 tokens when context the overflows. However, the "
             "model is loaded with context length of only 4096 tokens, which is not enough. Try to "
             "load the model with a larger context length, or provide a shorter input"},
        ),
        (
            "OpenAI",
            400,
            {"error": {"message": "This model's maximum context length is 4096 tokens. However, your "
             "messages resulted in 9000 tokens. Please reduce the length of the messages.",
             "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}},
        ),
        (
            "Anthropic",
            400,
            {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too "
             "long: 9000 tokens > 4096 maximum"}},
        ),
        (
            "Anthropic, output",
            400,
            {"type": "error", "error": {"type": "invalid_request_error", "message": "input length and "
             "`max_tokens` exceed context limit: 3900 + 1000 > 4096, decrease input length or "
             "`max_tokens` and try again"}},
        ),
        (
            "OpenRouter",
            400,
            {"error": {"message": "This endpoint's maximum context length is 4096 tokens. However, you "
             "requested about 9000 tokens (8000 of text input, 1000 in the output). Please reduce the "
             "length of either one.", "code": 400}},
        ),
        (
            "Mistral",
            400,
            {"object": "error", "message": "Prompt contains 9000 tokens and 0 draft tokens, too large "
             "for model with 4096 maximum context length", "type": "invalid_request_prompt",
             "code": "3051"},
        ),
        (
            "Gemini",
            400,
            [{"error": {"code": 400, "message": "The input token count (9000) exceeds the maximum "
              "number of tokens allowed (4096).", "status": "INVALID_ARGUMENT"}}],
        ),
        (
            "xAI",
            400,
            {"code": "Client specified an invalid argument", "error": "This model's maximum prompt "
             "length is 4096 but the request contains 9000 tokens."},
        ),
        (
            "TGI",
            422,
            {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. "
             "Given: 3500 `inputs` tokens and 1000 `max_new_tokens`", "error_type": "validation"},
        ),
        (
            "Moonshot",
            400,
            {"error": {"message": "Invalid request: Your request exceeded model token limit: 4096",
             "type": "invalid_request_error"}},
        ),
    )
}  # fmt: skip
# The prompt in them, where it is not the whole request.
REFUSED_PROMPTS: Mapping[str, int | None] = {
    "vLLM": 8_000,
    "vLLM, newer": 4_000,
    "vLLM, output": 200,
    "Anthropic, output": 3_900,
    "OpenRouter": 8_000,
    "TGI": 3_500,
    "Moonshot": None,
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
