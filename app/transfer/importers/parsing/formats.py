"""Import formats: what tells one from another, and how its files are read as lines, JSON or a database."""

import hashlib
import io
import json
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from app.domain.conversations import Block, File, Role, Text
from app.domain.records.sources import SUBAGENT_TAG
from app.domain.transfer import ImportedConversation, ImportedMessage, PortableOrigin, Skipped
from app.transfer.archive import NamedStream
from app.transfer.importers.parsing.building import ConversationTree, Imported
from app.transfer.importers.parsing.values import (
    MESSAGE_MAX_CHARS,
    UnreadableValue,
    an_object,
    identity,
    moment,
    parsed,
    text_of,
    title,
)

DOCUMENT_MAX_BYTES = 256 << 20
"""The limit of a JSON file that is read as a whole; its values take up to ten times as much memory."""

DATABASE_MAX_BYTES = 8 << 30
"""The limit of a database inside an archive, which is copied to a temporary file."""

ROLES: Mapping[str, Role] = {
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "tool": Role.TOOL,
}
"""The authors of messages as most programs name them."""

HEAD_BYTES = 128 << 10
"""How much of a file tells its format."""

_BUSY_TIMEOUT_S = 5.0
_COPIED_BYTES = 1 << 20
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file with conversations.

    `source` is what conversations of it have as their source, `title` the program's name. A JSON file has
    this format when its head contains all `members` of one alternative, a database when it has all
    `tables`; both are names with spaces between them.
    """

    source: str
    title: str
    read: Callable[[NamedStream], Imported]
    members: tuple[str, ...] = ()
    tables: str = ""

    def has_members(self, head: bytes) -> bool:
        """Return whether the head of a JSON file has the members of this format."""
        return any(has_members(head, words.split()) for words in self.members)

    def has_tables(self, names: frozenset[str]) -> bool:
        """Return whether a database with these tables has this format."""
        return bool(self.tables) and names.issuperset(self.tables.split())


@dataclass(frozen=True, slots=True)
class KeyedFile:
    """A file that is found by its name or id in the export; `key` may also be a `data:` URL."""

    file: File
    key: str


@dataclass(frozen=True, slots=True)
class NotKept:
    """A part of a message that has no place here; `why` is named in the report."""

    why: str


Part = Block | KeyedFile | NotKept
"""What a reader finds in a message."""


class Thread(ConversationTree):
    """A conversation that is read from a file of which everything is known at once.

    Attributes:
        where: What names it in reports.
        last: The id of the message that was appended last.
    """

    def __init__(self, source: str, where: str = "") -> None:
        super().__init__()
        self.where = where
        self.last: str | None = None
        self._source = source

    def append(
        self,
        name: str,
        role: object,
        blocks: Iterable[Part],
        at: object = None,
        model: object = None,
    ) -> None:
        """Add a message below the last one, as `add` does; one with the id of another is left out."""
        is_new = name not in self.nodes
        Thread.add(self, name, self.last, role, blocks, at, model)
        self.last = name if is_new else self.last

    def add(
        self,
        name: str,
        parent: str | None,
        role: object,
        blocks: Iterable[Part],
        at: object = None,
        model: object = None,
    ) -> str:
        """Add a message and return its id; without blocks it is a hidden node.

        `role`, `at` and `model` are as the export has them. Only replies keep their `model`. Parts that
        are not kept are named in `left_out`, and so is a message without a known role.
        """
        by = ROLES.get(role) if isinstance(role, str) else None
        parts = list(blocks) if by else [NotKept("it has no known role")]
        kept = self.known_blocks(name, parts)
        wrote = text_of(model) or None if by is Role.ASSISTANT else None
        shown = None
        if by and kept:
            shown = ImportedMessage(
                name, parent, by, kept, moment(at), wrote, file_keys=keys_of(parts)
            )
        self.add_node(name, parent, shown)
        return name

    def json(self, name: str, text: object) -> Any:
        """Return the value of JSON text that a message has; invalid text is named in `left_out`."""
        value = json_of(text)
        if value is None and text:
            self.left_out.append((name, "a part of it is not valid JSON"))
        return value

    def known_blocks(self, name: str, parts: Iterable[Part]) -> tuple[Block, ...]:
        """Return the blocks of a message; parts that are not kept are named in `left_out`."""
        kept: list[Block] = []
        for part in parts:
            if isinstance(part, NotKept):
                self.left_out.append((name, part.why))
            else:
                kept.append(part.file if isinstance(part, KeyedFile) else part)
        return tuple(kept)

    def finished(
        self,
        source_id: object,
        heading: object,
        created_at: object = None,
        updated_at: object = None,
        *,
        leaf: object = None,
        started_by: object = None,
        other_ids: Iterable[str] = (),
        tags: tuple[str, ...] = (),
        **more: Any,
    ) -> ImportedConversation | Skipped:
        """Return the conversation, or the report that it has no messages; like `conversation`.

        Its id, title and times are given as the export has them; `leaf` is `last` by default. `started_by` is
        the id of the conversation whose agent started it, "" if that is not known, None for the user.
        """
        tags += () if started_by is None else (SUBAGENT_TAG,)
        made = self.conversation(
            self._source, identity(source_id), title(heading), leaf or self.last,
            moment(created_at), moment(updated_at), tags=tags, **more,
        )  # fmt: skip
        if isinstance(made, Skipped):
            return made if made.where else Skipped(self.where, made.why)
        origins = [PortableOrigin(self._source, each) for each in dict.fromkeys(other_ids)]
        if parent := identity(started_by):
            origins.append(PortableOrigin(self._source, made.source_id, parent=parent))
        return replace(made, origins=tuple(origins)) if origins else made


def text_name(text: str) -> str:
    """Return an id for a text that has none: the same on every import."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def remembered(
    thread: Thread, name: str, program: str, texts: Iterable[str], statements: Iterable[str]
) -> ImportedConversation | Skipped:
    """Return what a program remembers of its user as a conversation; `statements` are offered as facts."""
    for text in dict.fromkeys(filter(None, map(str.strip, texts))):
        thread.append(text_name(text), Role.ASSISTANT, [Text(text)])
    return thread.finished(
        name, f"What {program} remembers", is_list=True, statements=tuple(dict.fromkeys(statements))
    )


def keys_of(parts: Iterable[Part]) -> tuple[str, ...]:
    """Return the keys of the files among parts of a message, in order; "" for one without a key."""
    return tuple(getattr(each, "key", "") for each in parts if isinstance(each, KeyedFile | File))


def has_members(head: bytes, names: Iterable[str]) -> bool:
    """Return whether a JSON text has a member of each name, in any object."""
    return all(
        f'"{name}"'.encode() in head  # a tenth of the pattern's time
        and any(head[at.start() - 1 : at.start()] != b"\\" for at in _member(name).finditer(head))
        for name in names
    )


@cache
def _member(name: str) -> re.Pattern[bytes]:
    return re.compile(rb'"%s"\s*:' % re.escape(name.encode()))


# Python decodes the message of SQLite, which may quote a damaged file.
DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError)


def is_database(head: bytes) -> bool:
    """Return whether a file with these first bytes is an SQLite database."""
    return head.startswith(_SQLITE)


def document(file: NamedStream) -> Any:
    """Return the value of a JSON file. Raises UnreadableValue when it is too large or invalid."""
    data = file.stream.read(DOCUMENT_MAX_BYTES + 1)
    if len(data) > DOCUMENT_MAX_BYTES:
        raise UnreadableValue(f"it is larger than {DOCUMENT_MAX_BYTES >> 20} MB")
    return parsed(data.decode("utf-8-sig", "replace"))


def documents(
    read: Callable[[Any, str], Iterable[ImportedConversation | Skipped]],
) -> Callable[[NamedStream], Imported]:
    """Return a reader of files that are one JSON value; `read` gets the value and the file's name."""

    def read_file(file: NamedStream) -> Imported:
        try:
            yield from read(document(file), file.name)
        except UnreadableValue as error:
            yield Skipped(file.name, str(error))

    return read_file


def lines(stream: io.BufferedIOBase) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Yield the number, counted from 1, of each line, its JSON object and why it is none.

    An invalid last line is left out: another program may be writing it.
    """
    flaw: tuple[int, dict[str, Any], str] | None = None
    for number, line in enumerate(iter(partial(stream.readline, MESSAGE_MAX_CHARS + 1), b""), 1):
        if flaw is not None:
            yield flaw
            flaw = None
        if not line.strip():
            continue
        try:
            value = parsed(line.decode("utf-8", "replace").lstrip("\ufeff"))
        except UnreadableValue as error:
            flaw = number, {}, str(error)
            continue
        yield number, an_object(value), "" if isinstance(value, dict) else "it is no object"


@contextmanager
def database(file: NamedStream) -> Iterator[sqlite3.Connection]:
    """Open a database for reading only; its rows have names. Raises sqlite3.Error and OSError.

    One that another program has open is read as it is now. One in an archive is copied first.
    """
    if file.path is not None:
        with open_database(file.path) as connection:
            yield connection
        return
    with tempfile.TemporaryDirectory(prefix="commonplace-") as folder:
        copy = Path(folder, "database")
        with copy.open("wb") as out:
            while piece := file.stream.read(_COPIED_BYTES):
                out.write(piece)
                if out.tell() > DATABASE_MAX_BYTES:
                    raise UnreadableValue(f"it is larger than {DATABASE_MAX_BYTES >> 30} GB")
        with open_database(copy) as connection:
            yield connection


def databases(
    read: Callable[[sqlite3.Connection, str], Iterable[ImportedConversation | Skipped]],
) -> Callable[[NamedStream], Imported]:
    """Return a reader of SQLite files; `read` gets the open database and the file's name."""

    def read_file(file: NamedStream) -> Imported:
        try:
            with database(file) as connection:
                yield from read(connection, file.name)
        except (*DATABASE_ERRORS, UnreadableValue) as error:
            yield Skipped(file.name, f"the database cannot be read: {error}")

    return read_file


def tables(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the names of the tables of a database. Raises sqlite3.Error."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    return frozenset(str(row["name"]) for row in rows)


def tables_of(file: NamedStream) -> frozenset[str]:
    """Return the names of the tables of a database file, none when they cannot be read.

    Of a file in an archive only the names that stand in its first pages are known.
    """
    if file.path is None:
        found = re.findall(rb"CREATE TABLE [\"'`\[]?(\w+)", file.stream.peek(HEAD_BYTES))
        return frozenset(name.decode() for name in found)
    try:
        with open_database(file.path) as connection:
            return tables(connection)
    except DATABASE_ERRORS:
        return frozenset()


def columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """Return the names of the columns of a table. Raises sqlite3.Error."""
    rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return frozenset(str(row["name"]) for row in rows)


def json_of(value: object) -> Any:
    """Return the value of JSON text in a column or a member; anything else as it is, None if invalid."""
    if not isinstance(value, str | bytes):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


class Row(dict[str, Any]):
    """A row of a database by column; `row[name]` raises sqlite3.Error for a column it does not have."""

    def __missing__(self, name: str) -> Any:
        raise sqlite3.OperationalError(f"there is no column '{name}'")


def _named_row(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> Row:
    return Row(zip((each[0] for each in cursor.description), values, strict=True))


@contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database file for reading only; its rows have names. Raises sqlite3.Error."""
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_S)) as connection:
        connection.row_factory = _named_row
        connection.execute("PRAGMA trusted_schema = OFF")
        yield connection


def database_file(connection: sqlite3.Connection) -> Path:
    """Return the file of a database; that of one in an archive is a copy."""
    return Path(connection.execute("PRAGMA database_list").fetchone()["file"])
