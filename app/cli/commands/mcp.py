"""`mcp` and `brief`: memory for other programs, and for people, outside of a conversation."""

import threading
import time
from argparse import Namespace
from collections.abc import Callable
from typing import TextIO

from app.chat.projects import Projects
from app.cli.arguments import wrong_arguments
from app.cli.commands.maintenance import catch_up_a_little
from app.cli.terminal import Terminal
from app.domain.errors import AlreadyOpen
from app.domain.translation import local_moment
from app.index.text_sync import TextIndexSync
from app.mcp.access import Access, McpAccess, as_plain
from app.memory.recall.brief import Briefs
from app.system.paths import DataPaths

_LOG_LINES = 50
_IDLE_S = 600.0
_POLL_S = 0.2


def serve(paths: DataPaths, cancelled: Callable[[], bool]) -> int:
    """Hold the library open for other programs until a window is opened or none is left for 10 minutes."""
    from app.bootstrap import RunMode, build
    from app.cli.entry import execute
    from app.cli.remote import CommandServer

    try:
        services = build(paths, RunMode.COMMAND_LINE)
    except AlreadyOpen:
        return 0  # another program serves it
    connected = _Connected(services.serve_mcp)
    window_started = threading.Event()

    def yield_to_window() -> bool:
        window_started.set()
        return False

    try:
        services.start()
        server = CommandServer(
            paths,
            lambda argv, caller: execute(services, argv, caller),
            yield_to_window,
            connected.serve,
        )
        try:
            while not (window_started.is_set() or cancelled() or connected.idle_s() > _IDLE_S):
                window_started.wait(_POLL_S)
        finally:
            server.close()
    finally:
        services.close()
    return 0


class _Connected:
    """Counts the programs that are connected."""

    def __init__(self, serve_mcp: Callable[[TextIO, TextIO], None]) -> None:
        self._serve = serve_mcp
        self._lock = threading.Lock()
        self._count = 0
        self._since = time.monotonic()

    def serve(self, reader: TextIO, writer: TextIO) -> None:
        with self._lock:
            self._count += 1
        try:
            self._serve(reader, writer)
        finally:
            with self._lock:
                self._count -= 1
                self._since = time.monotonic()

    def idle_s(self) -> float:
        """Return for how long no program was connected, in seconds."""
        with self._lock:
            return 0.0 if self._count else time.monotonic() - self._since


def programs(access: McpAccess, given: Namespace, terminal: Terminal) -> None:
    """List the programs that asked, and what they read; allow or deny one."""
    if given.action in ("list", "log"):
        if given.name is not None:
            raise wrong_arguments(given, "nothing more")
        return _list(access, terminal) if given.action == "list" else _log(access, terminal)
    if given.name is None:
        raise wrong_arguments(given, "NAME")
    decided = Access.ALLOWED if given.action == "allow" else Access.DENIED
    access.decide(given.name, decided)
    return terminal.show({"program": given.name, "access": decided.value})


def brief(
    briefs: Briefs, projects: Projects, sync: TextIndexSync, given: Namespace, terminal: Terminal
) -> None:
    """Print what memory holds on a question."""
    project = None if given.project is None else projects.named(given.project).uid
    question = terminal.read_input() if given.question == "-" else given.question
    catch_up_a_little(sync, terminal)
    text = briefs.write(question.strip(), given.tokens, project)
    if terminal.as_json:
        terminal.document({"question": question.strip(), "max_tokens": given.tokens, "text": text})
    else:
        terminal.out(text)


def _list(access: McpAccess, terminal: Terminal) -> None:
    decided = access.decisions()
    terminal.show(
        {"programs": [{"program": name, "access": each.value} for name, each in decided.items()]},
        *(f"{each.value:<8} {name}" for name, each in decided.items()),
    )


def _log(access: McpAccess, terminal: Terminal) -> None:
    readings = access.readings(_LOG_LINES)
    terminal.show(
        {"readings": [as_plain(each) for each in readings]},
        *(
            f"{local_moment(each.at)}  {each.client}  {each.tool}  {' '.join(each.links[:5])}".rstrip()
            for each in readings
        ),
    )
