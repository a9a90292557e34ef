"""Access of other programs to memory: consent for each program's name, and the log of what each read."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from app.domain.errors import KnownError
from app.domain.text import clean, one_line
from app.storage.engine.stamps import now
from app.storage.tables.settings import Settings
from app.system.paths import DataPaths

_CLIENTS = "mcp_clients"
_NAME_CHARS = 80
_LOG = "mcp.jsonl"
_LOG_MAX_BYTES = 4 << 20


class Access(StrEnum):
    """What the user decided about a program; ASK until then."""

    ASK = "ask"
    ALLOWED = "allowed"
    DENIED = "denied"


class AccessRefused(KnownError):
    """A program may not read memory, or not yet."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One call of a tool: when (UTC), by which program, and what it got: links to turns."""

    at: datetime
    client: str
    tool: str
    links: tuple[str, ...]


class McpAccess:
    """Decisions and log. Thread-safe; blocking but for `decisions`."""

    def __init__(self, paths: DataPaths, settings: Settings) -> None:
        self._settings = settings
        self._path = paths.logs / _LOG
        self._lock = threading.Lock()

    def decisions(self) -> Mapping[str, Access]:
        """Return what was decided, by program names in the order in which they first asked."""
        stored = json.loads(self._settings.text(_CLIENTS))
        return {name: Access(value) for name, value in stored.items()}

    def decide(self, client: str, access: Access) -> None:
        """Allow or deny a program, or let it ask again. Raises StorageError."""
        with self._lock:
            decided = {**self.decisions(), client_name(client): access}
            self._settings.set(_CLIENTS, json.dumps(decided))

    def check(self, client: str) -> None:
        """Raise AccessRefused unless a program is allowed to read; a new one is noted as asking."""
        name = client_name(client)
        access = self.decisions().get(name)
        if access is Access.ALLOWED:
            return
        if access is Access.DENIED:
            raise AccessRefused(
                f"'{name}' is not allowed to read the user's memory", "The user decided so."
            )
        if access is None:
            self.decide(name, Access.ASK)
        raise AccessRefused(
            f"The user has not yet allowed '{name}' to read memory",
            f"Ask the user to allow it in Commonplace, or to run: commonplace mcp allow '{name}'. "
            "Then call the tool again.",
        )

    def note(self, client: str, tool: str, links: Sequence[str]) -> None:
        """Add a call to the log, which keeps links only, no texts; failing to is harmless."""
        line = {
            "at": now().isoformat(),
            "client": client_name(client),
            "tool": tool,
            "links": links,
        }
        with self._lock, suppress(OSError):
            if self._path.exists() and self._path.stat().st_size > _LOG_MAX_BYTES:
                self._path.replace(self._path.with_suffix(".old.jsonl"))
            with self._path.open("a", encoding="utf-8") as log:
                log.write(json.dumps(line, ensure_ascii=False) + "\n")

    def readings(self, limit: int) -> Sequence[Reading]:
        """Return the last calls, newest first."""
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except OSError:
            return ()
        return tuple(_parsed(lines[: -limit - 1 : -1]))


def client_name(text: str) -> str:
    """Return the name of a program as it is shown and stored; programs choose their names."""
    return one_line(clean(text), _NAME_CHARS) or "unnamed program"


def _parsed(lines: Sequence[str]) -> Iterator[Reading]:
    for line in lines:
        with suppress(ValueError, KeyError, TypeError):
            value = json.loads(line)
            at = datetime.fromisoformat(value["at"])
            yield Reading(at, value["client"], value["tool"], tuple(value["links"]))


def as_plain(reading: Reading) -> Mapping[str, object]:
    return {**asdict(reading), "at": reading.at.isoformat(), "links": list(reading.links)}
