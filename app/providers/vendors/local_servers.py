"""Model servers on this computer: they are looked for on their usual ports."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass

from app.domain.chat import ListedModel
from app.providers.http.base_url import check_base_url
from app.providers.http.endpoint import Endpoint, SizeLimits, TimeLimits
from app.providers.http.error_translation import RejectedReply
from app.providers.http.json_fields import list_at, text_at
from app.providers.vendors.model_list import is_model_list, listed_models

USUAL_PORTS = (
    ("ollama", 11434),
    ("lm-studio", 1234),
    ("llama.cpp", 8080),
    ("vllm", 8000),
    ("jan", 1337),
)
_OWNERS = {"vllm": "vllm", "llamacpp": "llama.cpp", "library": "ollama"}
_SEARCH_TIMES = TimeLimits(connect_s=1.0, first_byte_s=1.0, idle_s=1.0)
_SEARCH_SIZES = SizeLimits(reply_bytes=1 << 20)


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that answered: a suggested name, its base URL and its models."""

    name: str
    base_url: str
    models: tuple[ListedModel, ...]


async def find_local_servers(
    ports: Iterable[tuple[str, int]] = USUAL_PORTS,
) -> tuple[LocalServer, ...]:
    """Return the servers on this machine's usual ports that list models; sends no key.

    All ports of 127.0.0.1 are queried at once; a server that does not answer in time or with a list
    of models is skipped.
    """
    servers = await asyncio.gather(*(_query(name, port) for name, port in ports))
    return tuple(server for server in servers if server is not None)


async def _query(name: str, port: int) -> LocalServer | None:
    base_url = check_base_url(f"http://127.0.0.1:{port}/v1")
    from app.providers.http import client as http

    endpoint = Endpoint(name, base_url, lambda: None, times=_SEARCH_TIMES, sizes=_SEARCH_SIZES)
    client = await asyncio.to_thread(http.GuardedClient, endpoint)
    try:
        async with client:
            response = await client.get(f"{base_url.text}/models")
            listing = json.loads(response.content) if response.status_code == 200 else None
    except (*http.HTTP_ERRORS, RejectedReply, ValueError, RecursionError):
        return None  # no server, or another kind of server
    if not is_model_list(listing):
        return None
    owners = {text_at(entry, "owned_by") for entry in list_at(listing, "data")}
    name = next((_OWNERS[owner] for owner in sorted(owners) if owner in _OWNERS), name)
    return LocalServer(name, base_url.text, listed_models(name, listing))
