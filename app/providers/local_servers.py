"""Model servers running on this machine: looked for when asked, offered, never used unasked."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass

from app.domain.chat import ModelCard
from app.providers.base_url import check_base_url
from app.providers.lenient import list_at, text_at
from app.providers.limits import SizeLimits, TimeLimits
from app.providers.model_list import is_model_list, model_cards
from app.providers.refusals import Refusal

USUAL_PORTS = (
    ("ollama", 11434),
    ("lm-studio", 1234),
    ("llama.cpp", 8080),
    ("vllm", 8000),
    ("jan", 1337),
)
_OWNERS = {"vllm": "vllm", "llamacpp": "llama.cpp", "library": "ollama"}
_SIZES = SizeLimits(reply_bytes=1 << 20)


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that answered: a name to offer it by, its base URL and its models."""

    name: str
    base_url: str
    models: tuple[ModelCard, ...]


async def find_local_servers(
    ports: Iterable[tuple[str, int]] = USUAL_PORTS, limit_s: float = 1.0
) -> tuple[LocalServer, ...]:
    """Return the servers on this machine's usual ports that list models; sends no key.

    All ports are asked at once, 127.0.0.1 only; what does not answer in time or with a list of
    models is passed over.
    """
    times = TimeLimits(connect_s=limit_s, first_byte_s=limit_s, idle_s=limit_s)
    found = await asyncio.gather(*(_ask(name, port, times) for name, port in ports))
    return tuple(server for server in found if server is not None)


async def _ask(name: str, port: int, times: TimeLimits) -> LocalServer | None:
    base_url = check_base_url(f"http://127.0.0.1:{port}/v1")
    from app.providers import http

    client = await asyncio.to_thread(http.guarded_client, base_url, times=times, sizes=_SIZES)
    try:
        async with client:
            response = await client.get(f"{base_url.text}/models")
            listing = json.loads(response.content) if response.status_code == 200 else None
    except (*http.HTTP_ERRORS, Refusal, ValueError, RecursionError):
        return None  # nobody there, or somebody else
    if not is_model_list(listing):
        return None
    owners = {text_at(entry, "owned_by") for entry in list_at(listing, "data")}
    named = next((_OWNERS[owner] for owner in sorted(owners) if owner in _OWNERS), name)
    return LocalServer(named, base_url.text, model_cards(named, listing))
