"""The program `commonplace`: it opens the window, or runs a command here or in a running window."""

import logging
import os
import runpy
import signal
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from itertools import tee
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from app.cli.arguments import HelpRequested, UsageError, parse
from app.cli.terminal import KEY_PROMPT, Terminal, own_terminal, reserve_standard_streams
from app.domain.errors import AlreadyOpen, DatabaseDamaged, InvalidInput, KnownError
from app.domain.translation import in_english
from app.system.paths import DataPaths
from app.system.process import display_problem, limit_malloc_retention, wait_for_threads_at_exit

if TYPE_CHECKING:
    from app.bootstrap import Services

_log = logging.getLogger(__name__)
DONE, KNOWN_ERROR, WRONG_USAGE, BY_SIGNAL = 0, 1, 2, 128
# These hold the library for long: they execute other commands meanwhile, and maintain it.
_LONG = frozenset(("ask", "check", "export", "forget", "import", "rebuild", "routine", "work"))
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_OPEN_TIMEOUT_S = 3.0
_RETRY_S = 0.05
_ERROR_CHARS, _ERROR_END_CHARS = 900, 300


class _NothingWritten(DatabaseDamaged):
    """The database is damaged, and the command has written nothing."""


class _Interrupted(KeyboardInterrupt):
    """A signal arrived. CPython ends on a bare KeyboardInterrupt that left an `exec`, even if caught."""


def main(argv: list[str] | None = None) -> int:
    """Run the program's command line; return the exit code (spec section 9).

    A signal ends it with 128 plus the signal's number: a command that polls `cancelled` ends by
    itself, any other is interrupted, and a second signal interrupts every command.
    """
    words = sys.argv[1:] if argv is None else argv
    reserve_standard_streams()
    limit_malloc_retention()
    wait_for_threads_at_exit()
    with _Signals() as signals:
        terminal = own_terminal(signals.arrived)
        try:
            code = _exit_code(lambda: _command(words, terminal, signals), terminal)
        except KeyboardInterrupt:
            pass
        except BrokenPipeError:
            return KNOWN_ERROR  # nobody reads the output
        return code if signals.number is None else BY_SIGNAL + signals.number


def execute(services: "Services", argv: list[str], terminal: Terminal) -> int:
    """Run a command for a caller of the socket; return its exit code."""

    def run() -> int:
        given = parse(argv)
        if given.command in (None, "restore", "quick") or (
            given.command == "mcp" and given.action is None
        ):
            terminal.err("This is not possible while the library is open. Close the program first.")
            return KNOWN_ERROR
        return _dispatch(services, given, _with_format(terminal, given))

    with in_english():  # other programs may read it
        return _exit_code(run, terminal)


def _exit_code(run: Callable[[], int], terminal: Terminal) -> int:
    """Return the exit code of `run`; an error is printed in one line."""
    try:
        return run()
    except HelpRequested as request:
        terminal.out(request.text)
        return DONE
    except UsageError as error:
        terminal.err(_one_line(str(error)))
        return WRONG_USAGE
    except KnownError as error:
        terminal.err(_one_line(str(error)))
        return KNOWN_ERROR
    except ConnectionError:
        raise  # the caller disconnected
    except Exception as error:  # noqa: BLE001 - the edge of the program
        _log.exception("the command failed")
        text = f"Commonplace failed: {type(error).__name__}: {error}. The log has the details."
        terminal.err(_one_line(text))
        return KNOWN_ERROR


def _one_line(text: str) -> str:
    """Return an error in one line; the middle of a very long one is left out."""
    folded = " ".join(text.splitlines())
    if len(folded) <= _ERROR_CHARS + _ERROR_END_CHARS:
        return folded
    return f"{folded[:_ERROR_CHARS]}… {folded[-_ERROR_END_CHARS:]}"


def _relay_to_owner(paths: DataPaths) -> int:
    """Copy bytes between the standard streams and the program that has the library open."""
    from app.cli.remote import connection_to  # none of the commands, which import the whole program
    from app.mcp.relay import relay, start_owner

    return relay(lambda: connection_to(paths), lambda: start_owner(str(paths.root)))


def _command(words: list[str], terminal: Terminal, signals: "_Signals") -> int:
    given = parse(words)
    if given.command is None:
        return _open_window(words, terminal)
    paths = _paths(given)
    terminal = _with_format(terminal, given)
    if given.command == "restore":
        from app.cli.commands.maintenance import restore

        return restore(paths, given, terminal)
    if given.command == "quick":
        return _show_quick_find(paths)
    if given.command == "mcp" and given.action is None:
        if not given.serve:
            return _relay_to_owner(paths)
        from app.cli.commands import mcp

        return mcp.serve(paths, signals.arrived)
    first, second = _for_two_runs(terminal)
    try:
        return _run(paths, words, given, first, signals)
    except _NothingWritten:  # opening repairs it, so that nobody has to start the command again
        return _run(paths, words, given, second, signals)


def _for_two_runs(terminal: Terminal) -> Sequence[Terminal]:
    """Return the terminals of two runs of a command: the second reads again what the first has read."""
    ask_secret = cache(terminal.ask_secret)
    inputs = tee(iter(terminal.read_input, None))
    return [
        replace(terminal, read_input=partial(next, each), ask_secret=ask_secret) for each in inputs
    ]


def _run(
    paths: DataPaths, words: list[str], given: Namespace, terminal: Terminal, signals: "_Signals"
) -> int:
    """Run a command on the opened library; raise _NothingWritten for damage that it met before it wrote anything."""
    services = _open(
        paths,
        signals,
        lambda: _ask_window(paths, words, given, terminal),
        waits=given.command == "work",
    )
    if isinstance(services, int):
        return services
    position = services.store.journal.last_position
    try:
        for notice in services.store.notices:
            terminal.err(notice)
        if given.command not in _LONG:
            return _dispatch(services, given, terminal)
        services.maintenance.notify = lambda error: terminal.err(_one_line(str(error)))
        services.maintenance.inform = terminal.err
        services.maintenance.start()
        with _serving(services, terminal, works=given.command == "work") as serving:
            code = _dispatch(services, given, serving)
        services.maintenance.stop()
        services.maintenance.finish_command()
    except DatabaseDamaged as error:
        if services.store.journal.last_position == position:
            raise _NothingWritten(error.title, error.hint) from error
        raise
    else:
        return code
    finally:
        with signals.deferred():
            services.close()


def _show_quick_find(paths: DataPaths) -> int:
    from app.cli.remote import show_quick_find

    if not show_quick_find(paths):
        raise KnownError(
            "No window is open", "Start 'commonplace'; a key of your desktop can run this command."
        )
    return DONE


@contextmanager
def _serving(services: "Services", terminal: Terminal, *, works: bool) -> Iterator[Terminal]:
    """Execute other commands meanwhile, and wait for them in the end; yield the command's terminal.

    That of a command that `works` is cancelled when a window starts, and so are its callers.
    """
    from app.cli.remote import CommandServer

    window_started = threading.Event()

    def on_window_started() -> bool:
        if works and not window_started.is_set():
            window_started.set()
            terminal.err("A window was opened: its workers continue.")
        return False

    def execute_for(argv: list[str], caller: Terminal) -> int:
        if not works and parse(argv).command == "work":
            raise ConnectionError("this program ends soon; `work` opens the library itself then")
        return execute(services, argv, caller)

    server = CommandServer(services.store.paths, execute_for, on_window_started, services.serve_mcp)
    try:
        yield replace(terminal, cancelled=lambda: window_started.is_set() or terminal.cancelled())
        server.stop_accepting()
        if not works:
            server.wait(terminal.cancelled)
    finally:
        server.close()


def _paths(given: Namespace) -> DataPaths:
    folder = getattr(given, "data_dir", None)
    try:
        if folder == "":
            raise InvalidInput(
                "--data-dir '' is not a folder", "Name a folder, or leave the option out."
            )
        return DataPaths.choose(folder)
    except (RuntimeError, OSError) as error:
        why = str(error).removesuffix(".")
        raise InvalidInput(
            f"The data directory cannot be found: {why}", "Name one with --data-dir."
        ) from error


def _with_format(terminal: Terminal, given: Namespace) -> Terminal:
    return replace(terminal, as_json=getattr(given, "json", False))


def _open(
    paths: DataPaths, signals: "_Signals", ask_window: Callable[[], int], *, waits: bool
) -> "Services | int":
    """Open the data directory; or return the exit code of the command, run by who holds it.

    Retries for a while: another command may hold it briefly, and a starting window does not listen
    yet. A command that `waits` does so until no other command holds it.
    """
    from app.cli.remote import NoServer, ServerClosed

    until = time.monotonic() + _OPEN_TIMEOUT_S
    while True:
        try:
            return _build(paths, signals)
        except AlreadyOpen:
            with suppress(NoServer):
                try:
                    return ask_window()
                except ServerClosed:
                    if not waits:
                        raise
                    until = time.monotonic() + _OPEN_TIMEOUT_S
            if time.monotonic() > until:
                raise
        time.sleep(_RETRY_S)


def _ask_window(paths: DataPaths, words: list[str], given: Namespace, terminal: Terminal) -> int:
    from app.cli.remote import forward_command

    reads_key = given.command == "provider" and given.action == "key"
    texts = [getattr(given, "text", ""), getattr(given, "prompt", "")]
    if given.command in ("memory", "profile"):
        texts += given.words
    if reads_key:
        typed = terminal.read_secret(KEY_PROMPT)
        terminal = replace(terminal, read_input=lambda: typed)
    return forward_command(paths, words, terminal, "-" in texts or reads_key)


def _build(paths: DataPaths, signals: "_Signals") -> "Services":
    from app.bootstrap import RunMode, build

    services = None
    try:
        with signals.deferred():
            services = build(paths, RunMode.COMMAND_LINE)
    except KeyboardInterrupt:
        if services is not None:
            services.close()
        raise
    return services


def _dispatch(services: "Services", given: Namespace, terminal: Terminal) -> int:
    from app.cli.commands import COMMANDS

    return COMMANDS[given.command](services, given, terminal) or DONE


def _open_window(words: list[str], terminal: Terminal) -> int:
    """Start the window in this process, by name: this layer does not depend on it."""
    problem = display_problem(os.environ)
    if problem:  # Qt would abort the process
        raise KnownError(
            f"The window cannot open: {problem}",
            "Start it in a desktop session, or use the commands: see 'commonplace --help'.",
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
    """SIGINT, SIGTERM and SIGHUP while a command runs.

    Attributes:
        number: The signal that arrived; None before.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._is_polled = False
        self._before: dict[int, Any] = {}

    def arrived(self) -> bool:
        """Return whether a signal arrived; a caller that polls this ends by itself."""
        self._is_polled = True
        return self.number is not None

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Defer the first signal to the end of the block, so that opening and closing complete."""
        was_polled, before = self._is_polled, self.number
        self._is_polled = True
        try:
            yield
        finally:
            self._is_polled = was_polled
        if self.number != before:
            raise _Interrupted

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)):
                if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores it
                    self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        is_first, self.number = self.number is None, number
        if not (is_first and self._is_polled):
            raise _Interrupted
