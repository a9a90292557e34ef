"""Anthropic: the Messages wire. It has no embedding models."""

from app.providers.http.connection import ANTHROPIC_SDK
from app.providers.model_options import anthropic_options
from app.providers.vendor import Vendor
from app.providers.wire.anthropic_messages import MessagesWire

SPEC = Vendor(
    kind="anthropic",
    title="Anthropic",
    position=2,
    sdk=ANTHROPIC_SDK,
    wires=lambda _: [MessagesWire],
    options=anthropic_options,
    models_path="/v1/models?limit=1000",
    base_url="https://api.anthropic.com",
    domain="anthropic.com",
    key_env="ANTHROPIC_API_KEY",
    url_env="ANTHROPIC_BASE_URL",
    price_key="anthropic",
    has_embeddings=False,
)
