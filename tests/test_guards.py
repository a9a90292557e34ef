"""The fixtures every test gets do what they promise."""

import asyncio
import re
import socket
from collections.abc import Callable

import httpx2
import pytest

from tests.fakes.network import NetworkForbidden, NetworkGuard


async def _over_asyncio() -> None:
    await asyncio.open_connection("192.0.2.1", 80)


def _send_datagram() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as plain:
        plain.sendto(b"?", ("192.0.2.1", 53))


def _connect() -> None:
    with socket.socket() as plain:
        plain.connect(("192.0.2.1", 80))


@pytest.mark.parametrize(
    ("reach", "host"),
    [(_connect, "192.0.2.1"), (lambda: socket.getaddrinfo("api.example", 443), "api.example"),
     (_send_datagram, "192.0.2.1"), (lambda: httpx2.get("http://192.0.2.1/"), "192.0.2.1"),
     (lambda: asyncio.run(_over_asyncio()), "192.0.2.1")],
    ids=["socket", "name", "datagram", "http", "asyncio"],
)  # fmt: skip
def test_no_machine_but_this(network: NetworkGuard, reach: Callable[[], object], host: str) -> None:
    with pytest.raises(NetworkForbidden, match=re.escape(host)):
        reach()
    assert network.refused == [host]
    network.refused.clear()
