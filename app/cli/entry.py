"""The command `commonplace`: without a command the window, else a command, here or in the window."""

import logging
import os
import runpy
import signal
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from app.cli.arguments import HelpAsked, WrongUsage, parse
from app.cli.terminal import Terminal, hold_standard_streams, own_terminal
from app.domain.errors import AlreadyOpen, InvalidInput, KnownError
from app.system.ending import wait_for_threads_at_exit
from app.system.memory import give_back_freed_memory
from app.system.paths import DataPaths

if TYPE_CHECKING:
    from app.bootstrap import Services

_log = logging.getLogger(__name__)
DONE, KNOWN_ERROR, WRONG_USAGE, BY_SIGNAL = 0, 1, 2, 128
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_PATIENCE_S = 3.0
_LOOK_AGAIN_S = 0.05
_ERROR_CHARS, _ERROR_END_CHARS = 900, 300


class _BrokenOff(KeyboardInterrupt):
    """A signal came. CPython dies of a bare KeyboardInterrupt that left an `exec`, even if caught."""


def main(argv: list[str] | None = None) -> int:
    """Run the program's command line; return the exit code (spec section 9).

    A signal ends it in order, with 128 and the signal's number: a command that listens may finish
    what it does, any other is broken off, and so is every command by a second signal.
    """
    words = sys.argv[1:] if argv is None else argv
    hold_standard_streams()
    give_back_freed_memory()
    wait_for_threads_at_exit()
    with _Signals() as signals:
        terminal = own_terminal(signals.came)
        try:
            code = _told(lambda: _command(words, terminal, signals), terminal)
        except KeyboardInterrupt:
            pass
        except BrokenPipeError:
            return KNOWN_ERROR  # nobody reads on: nothing to say
        return code if signals.number is None else BY_SIGNAL + signals.number


def execute(services: "Services", argv: list[str], terminal: Terminal) -> int:
    """Run a command for a caller at the other end of the socket; return its exit code."""

    def run() -> int:
        given = parse(argv)
        if given.command in (None, "restore"):
            terminal.err("That cannot be done beside an open window or `work`. End it first.")
            return KNOWN_ERROR
        return _dispatch(services, given, _fitted(terminal, given))

    return _told(run, terminal)


def _told(run: Callable[[], int], terminal: Terminal) -> int:
    """Return the exit code of `run`; what it raises is told in a line."""
    try:
        return _helped(run, terminal)
    except WrongUsage as error:
        terminal.err(_in_a_line(str(error)))
        return WRONG_USAGE
    except KnownError as error:
        terminal.err(_in_a_line(str(error)))
        return KNOWN_ERROR
    except ConnectionError:
        raise  # nobody reads on
    except Exception as error:  # noqa: BLE001 - the edge of the program
        _log.exception("the command failed")
        words = f"The program failed: {type(error).__name__}: {error}. The log tells more."
        terminal.err(_in_a_line(words))
        return KNOWN_ERROR


def _in_a_line(words: str) -> str:
    """Return an error in a line; of one that quotes very much, its beginning and what to do next."""
    folded = " ".join(words.splitlines())
    if len(folded) <= _ERROR_CHARS + _ERROR_END_CHARS:
        return folded
    return f"{folded[:_ERROR_CHARS]}… {folded[-_ERROR_END_CHARS:]}"


def _helped(run: Callable[[], int], terminal: Terminal) -> int:
    try:
        return run()
    except HelpAsked as asked:
        terminal.out(asked.text)
        return DONE


def _command(words: list[str], terminal: Terminal, signals: "_Signals") -> int:
    given = parse(words)
    if given.command is None:
        return _open_window(words, terminal)
    paths = _paths(given)
    terminal = _fitted(terminal, given)
    if given.command == "restore":
        from app.cli.commands.upkeep import restore

        return restore(paths, given, terminal)
    services = _opened(paths, signals, lambda: _ask_window(paths, words, given, terminal))
    if isinstance(services, int):
        return services
    try:
        for notice in services.store.notices:
            terminal.err(notice)
        if given.command == "work":
            with _answering(services, terminal) as terminal:
                return _dispatch(services, given, terminal)
        return _dispatch(services, given, terminal)
    finally:
        with signals.held_back():
            services.close()


@contextmanager
def _answering(services: "Services", terminal: Terminal) -> Iterator[Terminal]:
    """Answer other commands meanwhile; give a terminal that is cancelled when a window starts."""
    from app.cli.remote import CommandServer

    window_came = threading.Event()

    def give_way() -> bool:
        if not window_came.is_set():
            window_came.set()
            terminal.err("A window was opened: its workers go on.")
        return False

    server = CommandServer(
        services.store.paths, lambda argv, caller: execute(services, argv, caller), give_way
    )
    try:
        yield replace(terminal, cancelled=lambda: window_came.is_set() or terminal.cancelled())
    finally:
        server.close()


def _paths(given: Namespace) -> DataPaths:
    folder = getattr(given, "data_dir", None)
    try:
        if folder == "":
            raise InvalidInput("--data-dir '' names no folder", "Name one, or leave it out.")
        return DataPaths.choose(folder)
    except (RuntimeError, OSError) as error:
        why = str(error).removesuffix(".")
        raise InvalidInput(
            f"The data directory cannot be found: {why}", "Name one with --data-dir."
        ) from error


def _fitted(terminal: Terminal, given: Namespace) -> Terminal:
    return replace(terminal, as_json=getattr(given, "json", False))


def _opened(
    paths: DataPaths, signals: "_Signals", ask_window: Callable[[], int]
) -> "Services | int":
    """Return the opened data directory, or the exit code of the window that has it open.

    Another command may have it for a moment, and a window that starts does not answer yet.
    """
    from app.cli.remote import NobodyAnswers

    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return _built(paths, signals)
        except AlreadyOpen:
            with suppress(NobodyAnswers):
                return ask_window()
            if time.monotonic() > until:
                raise
        time.sleep(_LOOK_AGAIN_S)


def _ask_window(paths: DataPaths, words: list[str], given: Namespace, terminal: Terminal) -> int:
    from app.cli.remote import ask_window

    reads_input = (given.command == "ask" and given.text == "-") or (
        given.command == "memory" and given.words == ["-"]
    )
    return ask_window(paths, words, terminal, reads_input)


def _built(paths: DataPaths, signals: "_Signals") -> "Services":
    from app.bootstrap import Role, build

    services = None
    try:
        with signals.held_back():
            services = build(paths, Role.COMMAND_LINE)
    except KeyboardInterrupt:
        if services is not None:
            services.close()
        raise
    return services


def _dispatch(services: "Services", given: Namespace, terminal: Terminal) -> int:
    from app.cli.commands import COMMANDS

    return COMMANDS[given.command](services, given, terminal)


def _open_window(words: list[str], terminal: Terminal) -> int:
    """Start the window in this process, by name: this layer knows nothing of it."""
    if sys.platform == "linux" and not any(os.environ.get(each) for each in _SCREENS):
        raise KnownError(  # Qt would abort the process
            "There is no screen to open the window on",
            "Set DISPLAY, or use the commands: see 'commonplace --help'.",
        )
    sys.argv = ["commonplace", *words]
    try:
        runpy.run_module("ui.main", run_name="__main__", alter_sys=True)
    except ImportError as error:
        terminal.err(
            f"The window cannot be opened: {error}. The commands work without it, see "
            "'commonplace --help'."
        )
        return KNOWN_ERROR
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    return DONE


class _Signals:
    """Ctrl-C and its like, while a command runs.

    Attributes:
        number: The signal that came, if one did.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._is_asked = False
        self._before: dict[int, Any] = {}

    def came(self) -> bool:
        """Whether one came. Who asks this is trusted to end by itself after the first."""
        self._is_asked = True
        return self.number is not None

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Let the first signal wait for the end of the block: what opens or closes is let do so."""
        was_asked, before = self._is_asked, self.number
        self._is_asked = True
        try:
            yield
        finally:
            self._is_asked = was_asked
        if self.number != before:
            raise _BrokenOff

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)):
                if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup asks
                    self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, _frame: FrameType | None) -> None:
        is_first, self.number = self.number is None, number
        if not (is_first and self._is_asked):
            raise _BrokenOff
