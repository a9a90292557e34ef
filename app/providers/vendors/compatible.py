"""OpenAI-compatible servers: Ollama, LM Studio, llama.cpp, vLLM and gateways, by base URL."""

from app.providers.http.connection import OPENAI_SDK
from app.providers.vendor import Vendor
from app.providers.wire.chat_completions import ChatCompletionsWire

SPEC = Vendor(
    kind="compatible",
    title="OpenAI-compatible server",
    position=3,
    sdk=OPENAI_SDK,
    wires=lambda _: [ChatCompletionsWire],
)
