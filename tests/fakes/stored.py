"""Builders for stores with conversations, and the rows of all tables to compare."""

import atexit
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import duckdb

from app.domain.changes import (
    Change,
    ConversationPut,
    ExchangePut,
    MessagesAdded,
    PassagesPut,
    ReplyGrew,
)
from app.domain.conversations import (
    OWN_SOURCE,
    Conversation,
    Exchange,
    ExchangeStatus,
    Message,
    Role,
    Text,
    TitleOrigin,
)
from app.domain.ids import MessageId, new_uid
from app.domain.records.facts import BY_PATTERNS, Fact, FactCategory
from app.domain.turns import turn_passage
from app.storage.engine import migrations
from app.storage.engine.connection import Connection
from app.storage.engine.store import Store
from app.storage.safety.recovery import open_store
from app.storage.tables.facts import fact_changes
from app.system.paths import DataPaths

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class ConversationRecord:
    """A conversation with all that belongs to it, and the changes that write it."""

    conversation: Conversation
    messages: tuple[Message, ...]
    exchanges: tuple[Exchange, ...]
    changes: tuple[Change, ...]


@contextmanager
def opened(root: Path) -> Iterator[Store]:
    """Open a data directory for a block and close it in order."""
    store = open_store(made(root))
    try:
        yield store
    finally:
        store.close()


def made(root: Path) -> DataPaths:
    """Return a data directory with an empty database: a copy of one, which is quicker to open."""
    paths = DataPaths(root)
    if not root.exists():
        shutil.copytree(_blank(), root)
    paths.make()
    return paths


@cache
def _blank() -> Path:
    root = Path(tempfile.mkdtemp(prefix="commonplace-blank-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    paths = DataPaths(root)
    paths.make()
    open_store(paths).close()
    return root


def killed(store: Store, target: Path) -> Path:
    """Return a copy of the data directory as a kill at this moment would leave it."""
    store.on_writer(lambda: shutil.copytree(store.paths.root, target)).result()
    return target


@contextmanager
def busy_writer(store: Store) -> Iterator[None]:
    """Hold the writer for a block, so that commits gather behind it."""
    go_on = threading.Event()
    holding = store.on_writer(lambda: go_on.wait(20))
    try:
        yield
    finally:
        go_on.set()
        holding.result()


def new_conversation(
    store: Store,
    *texts: str | tuple[str, str],
    title: str = "A talk",
    private: bool = False,
    at: datetime = AT,
    source: str = OWN_SOURCE,
) -> ConversationRecord:
    """Return a conversation of one turn for each of `texts`, not yet written.

    A text is what the user says, or that and what is answered.
    """
    conversation_id = store.ids.conversation()
    messages: list[Message] = []
    exchanges: list[Exchange] = []
    changes: list[Change] = []
    for number, each in enumerate(texts):
        text, answer = (each, f"An answer to {each}") if isinstance(each, str) else each
        asked = Message(
            store.ids.message(), new_uid(), conversation_id, messages[-1].id if messages else None,
            Role.USER, (Text(text),), at + timedelta(minutes=number),
        )  # fmt: skip
        answered = Message(
            store.ids.message(), new_uid(), conversation_id, asked.id, Role.ASSISTANT,
            (Text(answer),), at + timedelta(minutes=number, seconds=5), "openai:m",
        )  # fmt: skip
        exchange = Exchange(
            store.ids.exchange(), conversation_id, exchanges[-1].id if exchanges else None,
            number, 0, ExchangeStatus.COMPLETED, (asked.id, answered.id), asked.created_at,
            answered.created_at, "openai:m", uid=new_uid(),
        )  # fmt: skip
        messages += [asked, answered]
        exchanges.append(exchange)
        changes.append(ExchangePut(exchange))
        if not private:
            passage = turn_passage(store.ids.passage(), exchange, (asked, answered))
            assert passage is not None
            changes.append(PassagesPut((passage,)))
    conversation = Conversation(
        conversation_id, new_uid(), title, TitleOrigin.FIRST_WORDS, source, at, at,
        messages[-1].id if messages else None, private=private,
    )  # fmt: skip
    head: list[Change] = [ConversationPut(conversation)]
    if messages:
        head.append(MessagesAdded(tuple(messages)))
    return ConversationRecord(conversation, tuple(messages), tuple(exchanges), (*head, *changes))


def add_conversation(
    store: Store, *texts: str | tuple[str, str], **more: object
) -> ConversationRecord:
    """Like `new_conversation`, and write it."""
    whole = new_conversation(store, *texts, **more)  # type: ignore[arg-type]
    store.save(*whole.changes)
    return whole


def add_all(store: Store, records: Iterable[ConversationRecord]) -> None:
    """Write new conversations together, which takes a tenth of the time of one after the other."""
    store.save(*(change for each in records for change in each.changes))


def add_running(store: Store, text: str, *, private: bool = False) -> ConversationRecord:
    """Write a conversation whose only exchange is still running."""
    whole = new_conversation(store, text, private=private)
    question = whole.messages[0]
    running = replace(
        whole.exchanges[0], status=ExchangeStatus.RUNNING, message_ids=(question.id,),
        completed_at=None,
    )  # fmt: skip
    shown = replace(whole.conversation, visible_leaf_id=question.id)
    changes = (ConversationPut(shown), MessagesAdded((question,)), ExchangePut(running))
    store.save(*changes)
    return ConversationRecord(shown, (question,), (running,), changes)


def journal_reply(
    store: Store, exchange: Exchange, message_id: MessageId, *texts: str, kind: str = "text"
) -> None:
    """Journal more of a running reply, one record for each text."""
    for text in texts:
        store.journal_only(ReplyGrew(exchange.id, message_id, kind, text, AT, "openai:m")).result()


def tables(store: Store, *without: str) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of every table in order of their values.

    `without` names tables, and columns as "exchange.position", that are left out.
    """
    return store.read(lambda cursor: rows_of(cursor, without))


def rows_of(cursor: Connection, without: Sequence[str] = ()) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of every table of a connection."""
    names = cursor.column(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
    )
    rows: dict[str, list[tuple[object, ...]]] = {
        name: [] for name in sorted(names) if name not in without
    }
    # Most tables are empty: they are found in one statement, which is ten times as fast.
    any_row = (f"(SELECT '{name}' FROM \"{name}\" LIMIT 1)" for name in rows)
    for name in cursor.column(" UNION ALL ".join(any_row)):
        columns = [each.partition(".")[2] for each in without if each.startswith(f"{name}.")]
        excluded = f"EXCLUDE ({', '.join(columns)})" if columns else ""
        rows[name] = cursor.rows(f'SELECT * {excluded} FROM "{name}" ORDER BY ALL')
    return rows


def execute(store: Store, *statements: str) -> None:
    """Change the tables behind the journal's back."""
    for statement in statements:
        store.write_derived(lambda c, run=statement: c.execute(run) and None).result()  # type: ignore[misc]


def make_earlier(path: Path, version: int) -> set[str]:
    """Take a closed database back to an earlier schema; return the tables that are dropped."""
    columns = "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal"
    with Connection(duckdb.connect()) as fresh:
        for step in migrations.STEPS[:version]:
            step(fresh)
        known = set(fresh.execute(columns).fetchall())
    kept = {table for table, *_ in known}
    with Connection(duckdb.connect(str(path))) as file:
        present = set(file.execute(columns).fetchall())
        later = present - known
        dropped = {table for table, *_ in later if table not in kept}
        for table in dropped:
            file.execute(f"DROP TABLE {table}")
        for table, column, type_name in known - present:
            file.execute(f"CREATE TABLE IF NOT EXISTS {table} ({column} {type_name})")
            file.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {column} {type_name}")
        for table, column, _ in later:
            if table in kept:
                file.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        file.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", [str(version)])
    return dropped


def sibling(
    store: Store, turn: Exchange, shared: Sequence[Message], text: str, answer: str = ""
) -> Exchange:
    """Store another version of a turn: another answer to `shared`, or another question too.

    The text is that of both unless the answer is given.
    """
    messages: list[Message] = []
    parents = store.rows("SELECT parent_id FROM message WHERE id = ?", [turn.message_ids[0]])
    parent = shared[-1].id if shared else parents[0][0]
    for role in (Role.ASSISTANT,) if shared else (Role.USER, Role.ASSISTANT):
        said = (Text(answer or text if role is Role.ASSISTANT else text),)
        message = Message(
            store.ids.message(), new_uid(), turn.conversation_id, parent, role, said, AT
        )
        messages.append(message)
        parent = message.id
    ids = tuple(each.id for each in (*shared, *messages))
    other = replace(turn, id=store.ids.exchange(), message_ids=ids, uid=new_uid())
    passage = turn_passage(store.ids.passage(), other, (*shared, *messages))
    assert passage is not None
    store.save(MessagesAdded(tuple(messages)), ExchangePut(other), PassagesPut((passage,)))
    return other


def titles(store: Store) -> set[str]:
    rows = store.read(lambda cursor: cursor.execute("SELECT title FROM conversation").fetchall())
    return {title for (title,) in rows}


def learned(
    store: Store, source: ConversationRecord, text: str, days: int = 0, **more: object
) -> Fact:
    """Store a fact of the first message of a conversation, as the extractor does."""
    exchange, at = source.exchanges[0], AT + timedelta(days=days)
    fact = Fact(
        store.ids.passage(), new_uid(), text, FactCategory.PREFERENCE, "", source.conversation.id,
        exchange.id, exchange.message_ids[0], at, BY_PATTERNS, at,
    )  # fmt: skip
    fact = replace(fact, **more)  # type: ignore[arg-type]
    store.save(*fact_changes(fact))
    return fact
