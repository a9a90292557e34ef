"""OpenAI: the Responses wire at OpenAI's own servers, with Chat Completions as a fallback elsewhere.

Gateways to OpenAI often have no Responses endpoint. OPENAI_BASE_URL usually names a server that is
merely compatible, which speaks Chat Completions only.
"""

import re
from collections.abc import Sequence

from app.providers.http.base_url import BaseUrl
from app.providers.http.connection import OPENAI_SDK
from app.providers.model_options import openai_options
from app.providers.vendor import Vendor
from app.providers.wire.chat_completions import ChatCompletionsWire
from app.providers.wire.reader import Wire
from app.providers.wire.responses import ResponsesWire


def _wires(base_url: BaseUrl) -> Sequence[type[Wire]]:
    return [ResponsesWire] if SPEC.owns(base_url) else [ResponsesWire, ChatCompletionsWire]


SPEC = Vendor(
    kind="openai",
    title="OpenAI",
    position=1,
    sdk=OPENAI_SDK,
    wires=_wires,
    options=openai_options,
    base_url="https://api.openai.com/v1",
    domain="openai.com",
    key_env="OPENAI_API_KEY",
    url_env="OPENAI_BASE_URL",
    kind_elsewhere="compatible",
    price_key="openai",
    embedding_models=("text-embedding-3-small", "text-embedding-3-large"),
    unlisted_models=re.compile(
        r"tts|whisper|dall-e|image|sora|moderation|realtime|transcri|audio|babbage|davinci|rerank"
    ),
)
