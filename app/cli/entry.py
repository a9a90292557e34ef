"""The command `commonplace`: without a command the window, else a command, here or in the window."""

import signal
import sys
import threading
from argparse import Namespace
from types import FrameType
from typing import TYPE_CHECKING

from app.cli.arguments import HelpAsked, WrongUsage, parse
from app.cli.terminal import Terminal, own_terminal
from app.domain.errors import AlreadyOpen, KnownError
from app.system.paths import DataPaths

if TYPE_CHECKING:
    from app.bootstrap import Services

DONE, KNOWN_ERROR, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130


def main(argv: list[str] | None = None) -> int:
    """Run the program's command line; return the exit code (spec section 9)."""
    words = sys.argv[1:] if argv is None else argv
    stop = threading.Event()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    signal.signal(signal.SIGINT, interrupt)
    terminal = own_terminal("--json" in words, stop.is_set)
    try:
        given = parse(words)
    except HelpAsked as asked:
        terminal.out(asked.text)
        return DONE
    except WrongUsage as error:
        terminal.err(str(error))
        return WRONG_USAGE
    if given.command is None:
        return _open_window(words)
    try:
        return _run(given, words, terminal)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return KNOWN_ERROR


def execute(services: "Services", argv: list[str], terminal: Terminal) -> int:
    """Run a command for a caller at the other end of the socket; return its exit code."""
    try:
        return _dispatch(services, parse(argv), terminal)
    except HelpAsked as asked:
        terminal.out(asked.text)
        return DONE
    except WrongUsage as error:
        terminal.err(str(error))
        return WRONG_USAGE


def _run(given: Namespace, words: list[str], terminal: Terminal) -> int:
    from app.bootstrap import Role, build
    from app.cli.remote import ask_window

    paths = DataPaths.choose(getattr(given, "data_dir", None))
    try:
        if given.command == "restore":
            from app.cli.commands.upkeep import restore

            return restore(paths, given, terminal)
        services = build(paths, Role.COMMAND_LINE)
    except AlreadyOpen as error:
        needs_input = getattr(given, "text", None) == "-"
        try:
            return ask_window(paths, words, terminal, needs_input)
        except OSError:
            terminal.err(str(error))
            return KNOWN_ERROR
    except KnownError as error:
        terminal.err(str(error))
        return KNOWN_ERROR
    try:
        for notice in services.store.notices:
            terminal.err(notice)
        return _dispatch(services, given, terminal)
    finally:
        services.close()


def _dispatch(services: "Services", given: Namespace, terminal: Terminal) -> int:
    from app.cli.commands import COMMANDS

    try:
        return COMMANDS[given.command](services, given, terminal)
    except WrongUsage as error:
        terminal.err(str(error))
        return WRONG_USAGE
    except KnownError as error:
        terminal.err(str(error))
        return KNOWN_ERROR


def _open_window(words: list[str]) -> int:
    """Start the window in this process, by name: this layer knows nothing of it."""
    import runpy

    sys.argv = ["commonplace", *words]
    try:
        runpy.run_module("ui.main", run_name="__main__", alter_sys=True)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else DONE
    return DONE
