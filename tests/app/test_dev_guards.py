"""The fixtures every test gets do what they promise."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import keyring
import pytest
from platformdirs import user_data_path

from tests.fakes import leftovers
from tests.fakes.network import NetworkForbidden, NetworkGuard

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_another_machine_cannot_be_reached(network: NetworkGuard) -> None:
    with socket.socket() as plain, pytest.raises(NetworkForbidden, match=r"192\.0\.2\.1"):
        plain.connect(("192.0.2.1", 80))
    assert network.refused == ["192.0.2.1"]
    network.refused.clear()


def test_names_are_not_resolved(network: NetworkGuard) -> None:
    with pytest.raises(NetworkForbidden, match=r"api\.example"):
        socket.getaddrinfo("api.example", 443)
    network.refused.clear()


def test_no_datagram_leaves(network: NetworkGuard) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as plain, pytest.raises(NetworkForbidden):
        plain.sendto(b"?", ("192.0.2.1", 53))
    network.refused.clear()


def test_an_http_client_is_refused_too(network: NetworkGuard) -> None:
    with httpx2.Client() as client, pytest.raises(NetworkForbidden):
        client.get("http://192.0.2.1/")
    network.refused.clear()


def test_asyncio_is_refused_too(network: NetworkGuard) -> None:
    async def connect() -> None:
        await asyncio.open_connection("192.0.2.1", 80)

    with pytest.raises(NetworkForbidden):
        asyncio.run(connect())
    network.refused.clear()


def test_loopback_is_open(listener: socket.socket) -> None:
    with socket.create_connection(listener.getsockname()) as client:
        assert client.getpeername() == listener.getsockname()


def test_a_local_socket_is_open(tmp_path: Path) -> None:
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


def test_a_thread_about_to_end_is_waited_for() -> None:
    before = leftovers.snapshot()
    timer = threading.Timer(0.05, lambda: None)
    timer.start()
    assert leftovers.since(before) == []
    assert not timer.is_alive()


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


def test_home_is_empty_and_nobodys(clean_home: Path) -> None:
    assert Path.home() == clean_home
    assert user_data_path("commonplace").is_relative_to(clean_home)
    assert list(clean_home.iterdir()) == []


def test_the_keyring_keeps_nothing() -> None:
    keyring.set_password("commonplace", "openai", "sk-test")
    assert keyring.get_password("commonplace", "openai") is None


def test_keys_and_addresses_of_the_developer_are_gone(tmp_path: Path) -> None:
    inner = tmp_path / "test_inner.py"
    inner.write_text(
        "import os\n"
        "def test_clean():\n"
        "    names = ('OPENAI_API_KEY', 'ANTHROPIC_BASE_URL', 'COMMONPLACE_DATA_DIR',\n"
        "             'OTHER_API_KEY', 'https_proxy', 'HTTPS_PROXY')\n"
        "    assert not [name for name in names if name in os.environ]\n"
    )
    theirs = {"OPENAI_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://x", "OTHER_API_KEY": "k",
              "COMMONPLACE_DATA_DIR": "/x", "https_proxy": "http://x", "HTTPS_PROXY": "http://x"}  # fmt: skip
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider",
         "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), str(inner)],
        cwd=ROOT, env=os.environ | theirs, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 passed" in result.stdout
