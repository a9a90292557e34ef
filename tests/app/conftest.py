"""Fixtures of tests without a window: a store, a loopback server, command lines on a library."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from app.bootstrap import RunMode, Services, build
from app.chat.tools.toolbox import Tool
from app.storage.engine.store import Store
from app.system import key_file
from tests.fakes.chats import Chat, MakeChat, open_chat
from tests.fakes.command_line import CommandLine, Console, herbs
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_client import WIRES
from tests.fakes.searchable import RecallLibrary
from tests.fakes.stored import made, opened


@pytest.fixture(autouse=True)
def quick_passphrases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derive keys from passphrases in a millisecond instead of half a second."""
    monkeypatch.setitem(key_file._SCRYPT, "n", 2**10)


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with opened(data_dir) as empty:
        yield empty


@pytest.fixture
def library(store: Store) -> Iterator[RecallLibrary]:
    """Conversations about a cat and ten other subjects, and recall from them."""
    made = RecallLibrary(store)
    yield made
    made.sync.stop()


@pytest.fixture
def services(data_dir: Path) -> Iterator[Services]:
    """The services of an empty library, without a window."""
    with closing(build(made(data_dir), RunMode.COMMAND_LINE)) as built:
        yield built


@pytest.fixture
def chat_with(store: Store) -> Iterator[MakeChat]:
    """Yield a function that opens a chat with a model that plays scripts."""
    with ExitStack() as stack:

        def make(*scripts: list[object], tools: list[Tool] = [], prepare: Any = None) -> Chat:  # noqa: B006
            return stack.enter_context(open_chat(store, scripts, tools, prepare))

        yield make


@pytest.fixture
def server() -> Iterator[Loopback]:
    """A server on this machine that speaks each vendor's protocol."""
    with Loopback() as running:
        yield running


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    """Each of the three wires."""
    return str(request.param)


@pytest.fixture(scope="module")
def cli_library() -> Path:
    """The library that `cli` copies; a module may have another."""
    return herbs()


@pytest.fixture
def cli(cli_library: Path, data_dir: Path) -> Iterator[Console]:
    shutil.copytree(cli_library, data_dir)
    with closing(Console(data_dir)) as console:
        yield console


@pytest.fixture
def program(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """A command line on an empty library, opened for each command."""
    made(data_dir)
    return CommandLine(data_dir, capsys)


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A command line on a library that the module's tests must leave as it is."""
    root = tmp_path_factory.mktemp("unchanged") / "data"
    shutil.copytree(herbs(), root)
    with closing(Console(root)) as console:
        yield console
