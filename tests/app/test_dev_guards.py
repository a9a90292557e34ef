"""The fixtures every test gets do what they promise."""

import asyncio
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import httpx2
import keyring
import pytest
from platformdirs import user_data_path

from tests.fakes import leftovers
from tests.fakes.network import NetworkForbidden, NetworkGuard

ROOT = Path(__file__).resolve().parents[2]


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
    [
        (_connect, "192.0.2.1"),
        (lambda: socket.getaddrinfo("api.example", 443), "api.example"),
        (_send_datagram, "192.0.2.1"),
        (lambda: httpx2.get("http://192.0.2.1/"), "192.0.2.1"),
        (lambda: asyncio.run(_over_asyncio()), "192.0.2.1"),
    ],
    ids=["socket", "name", "datagram", "http", "asyncio"],
)
def test_another_machine_cannot_be_reached(
    network: NetworkGuard, reach: Callable[[], object], host: str
) -> None:
    with pytest.raises(NetworkForbidden, match=re.escape(host)):
        reach()
    assert network.refused == [host]
    network.refused.clear()


def test_loopback_and_local_sockets_are_open(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket() as client:
        client.connect(tcp.getsockname())
        assert client.getpeername() == tcp.getsockname()
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(str(tmp_path / "s"))
        server.listen()
        client.connect(str(tmp_path / "s"))
        assert client.getpeername() == str(tmp_path / "s")


def test_a_thread_left_running_is_named() -> None:
    before, stop = leftovers.snapshot(), threading.Event()
    thread = threading.Thread(target=stop.wait, name="forgotten")
    thread.start()
    try:
        assert leftovers.since(before, grace_s=0.05) == ["thread forgotten"]
    finally:
        stop.set()
        thread.join()
    assert leftovers.since(before) == []


def test_a_task_left_pending_is_named() -> None:
    before = leftovers.snapshot()
    loop = asyncio.new_event_loop()
    task = loop.create_task(asyncio.Event().wait(), name="forgotten")
    loop.run_until_complete(asyncio.sleep(0))
    (left,) = leftovers.since(before)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    loop.close()
    assert left.startswith("task forgotten")
    assert leftovers.since(before) == []


def test_home_is_empty_and_the_keyring_keeps_nothing(clean_home: Path) -> None:
    assert Path.home() == clean_home
    assert user_data_path("commonplace").is_relative_to(clean_home)
    assert list(clean_home.iterdir()) == []
    keyring.set_password("commonplace", "openai", "sk-test")
    assert keyring.get_password("commonplace", "openai") is None


def test_keys_and_addresses_of_the_developer_are_gone(tmp_path: Path) -> None:
    inner = tmp_path / "test_inner.py"
    inner.write_text(
        "import os\ndef test_clean():\n    assert 'unwanted' not in os.environ.values()\n"
    )
    names = ("OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "OTHER_API_KEY", "COMMONPLACE_DATA_DIR",
             "https_proxy", "HTTPS_PROXY")  # fmt: skip
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider",
         "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), str(inner)],
        cwd=ROOT, env=os.environ | dict.fromkeys(names, "unwanted"), capture_output=True, text=True,
    )  # fmt: skip
    assert "1 passed" in result.stdout, result.stdout + result.stderr
