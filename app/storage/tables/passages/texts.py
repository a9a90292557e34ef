"""The text of passages for indexes and results, and where they are from.

Each table is read by ids alone: in a join DuckDB would hash whole tables, 100 MB for 260,000 messages.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from operator import itemgetter

from app.domain.conversations import ExchangeStatus, Role
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId, part_id
from app.domain.passages import Passage, PassageKind, PassagePart, PassageText
from app.domain.turns import turn_parts
from app.storage.engine.aggregate import columns_of, reader
from app.storage.engine.connection import Connection, Row, grouped
from app.storage.tables.documents import chunk_texts
from app.storage.tables.exchanges import blocks_of, not_shown
from app.storage.tables.fact_visibility import FACT_TEXTS

_MESSAGE = "id, role, model, text, blocks"
_NO_EXCHANGE = (None, None, None, False)
_NEAR_PARTS = 4  # of the turn before and after: more than a context of 150 words takes


@dataclass(frozen=True, slots=True)
class PassagePlace:
    """Where a passage is from, for a result: its conversation and, for a turn, its exchange.

    For a manual page or a document, `conversation_title` is its own title and `source` its name: grep.1,
    a path.
    `first_message_id` is the message that began the turn; `turn_number` its place on its path,
    `is_shown` whether that is the one its conversation shows. `parent_id` is the exchange it follows.
    """

    id: PassageId
    kind: PassageKind
    conversation_id: ConversationId | None
    conversation_title: str
    source: str
    archived: bool
    exchange_id: ExchangeId | None
    turn_number: int | None
    first_message_id: MessageId | None
    model: str | None
    created_at: datetime
    is_shown: bool = True
    parent_id: ExchangeId | None = None
    is_completed: bool = False


def texts_of(cursor: Connection, ids: list[int]) -> "PassageTexts":
    """Return the texts of the passages that exist among `ids`, with their neighbors', by id."""
    return _read(cursor, ids, with_neighbors=True)


def shown_of(
    cursor: Connection, ids: list[int]
) -> dict[PassageId, tuple[PassagePlace, PassageText]]:
    """Return what a result shows of the passages that exist among `ids`, without neighbors."""
    read = _read(cursor, ids, with_neighbors=False)
    heads, parts = read.heads(), read.parts()
    wanted = [head.exchange_id for head in heads if head.exchange_id is not None]
    columns = "id, turn_number, model, parent_id, status"
    exchanges = {
        each: (number, model, parent, status == ExchangeStatus.COMPLETED)
        for each, number, model, parent, status in cursor.select_in("exchange", columns, wanted)
    }
    beside = not_shown(cursor, wanted) if wanted else set()
    shown = {}
    first: dict[int | None, MessageId] = {
        exchange: message for exchange, place, message in read.links if place == 0
    }
    for head in heads:
        number, model, parent, is_completed = exchanges.get(head.exchange_id, _NO_EXCHANGE)
        is_shown = head.exchange_id not in beside
        place = read.place(head, number, model, first.get(head.exchange_id), is_shown=is_shown)
        place = replace(place, parent_id=parent, is_completed=is_completed)
        shown[head.id] = (place, read.text(head, parts))
    return shown


def questions_of(cursor: Connection, exchange_ids: Iterable[int | None]) -> dict[int, str]:
    """Return, by exchange, the text of the user's first message that has any."""
    rest = "AND m.role = 'user' AND m.text <> '' GROUP BY l.exchange_id"
    table = "exchange_message l JOIN message m ON m.id = l.message_id"
    columns = "l.exchange_id, arg_min(m.text, l.place)"
    return dict(cursor.select_in(table, columns, exchange_ids, "l.exchange_id", rest))


@dataclass(frozen=True, slots=True)
class PassageContent:
    """The content of a passage that is not a turn.

    `texts` are those of its parts, in order. `title` and `source` are its own; None for those of its
    conversation. `message_id` is the message it was taken from, None for none; `headings` are those
    above it in its document.
    """

    texts: tuple[str, ...]
    title: str | None = None
    source: str | None = None
    message_id: MessageId | None = None
    headings: str = ""


Reader = Callable[[Connection, list[int]], Mapping[int, PassageContent]]


def passage_contents(
    cursor: Connection, sources: Iterable[tuple[PassageKind, int]]
) -> dict[tuple[PassageKind, int], PassageContent]:
    """Return contents by (kind, record id); turns and deleted records are absent."""
    wanted: dict[PassageKind, list[int]] = {}
    for kind, source_id in sources:
        wanted.setdefault(kind, []).append(source_id)
    return {
        (kind, source_id): content
        for kind, ids in wanted.items()
        if kind in _READERS
        for source_id, content in _READERS[kind](cursor, ids).items()
    }


def _summaries(kind: str, cursor: Connection, ids: list[int]) -> Mapping[int, PassageContent]:
    latest = f"AND latest AND kind = '{kind}'"
    rows = cursor.select_in("summary", "source_id, text", ids, "source_id", latest)
    return {source_id: PassageContent((text,)) for source_id, text in rows}


def _pages(cursor: Connection, ids: list[int]) -> Mapping[int, PassageContent]:
    """Return manual pages; the one-line description is a part: most questions are close to it alone."""
    return {
        each: PassageContent(tuple(filter(None, (summary, text))), title, name)
        for each, (title, name, summary, text, _) in chunk_texts(cursor, ids).items()
    }


def _documents(cursor: Connection, ids: list[int]) -> Mapping[int, PassageContent]:
    """Return chunks of files, with their headings and page in the title."""
    contents = {}
    for each, (title, name, heading, text, page) in chunk_texts(cursor, ids).items():
        place = "" if page is None else f", p. {page}"
        whole = f"{title}{place}" + (f" \N{EN DASH} {heading}" if heading else "")
        contents[each] = PassageContent((text,), whole, name, headings=heading)
    return contents


def _learned(
    table: str, message: str, cursor: Connection, ids: list[int]
) -> Mapping[int, PassageContent]:
    rows = cursor.select_in(table, f"id, text, {message}", ids)
    return {each: PassageContent((text,), message_id=message_id) for each, text, message_id in rows}


_READERS: Mapping[PassageKind, Reader] = {
    PassageKind.EXCHANGE_SUMMARY: partial(_summaries, "exchange"),
    PassageKind.CONVERSATION_SUMMARY: partial(_summaries, "conversation"),
    PassageKind.FACT: partial(_learned, FACT_TEXTS, "message_id"),
    PassageKind.MEMORY: partial(_learned, "memory", "NULL"),
    PassageKind.TOOL_SUMMARY: partial(_learned, "tool_summary", "message_id"),
    PassageKind.MAN_PAGE: _pages,
    PassageKind.DOCUMENT: _documents,
}


@dataclass(frozen=True, slots=True)
class _Header:
    """What a result shows of a conversation."""

    title: str = ""
    source: str = ""
    archived: bool = False
    model: str | None = None


_NO_HEADER = _Header()
_NO_CONTENT = PassageContent(())
_Link = tuple[int, int, MessageId]
"""A row of `exchange_message`: exchange, place, message."""
Parts = Mapping[int | None, tuple[PassagePart, ...]]


@dataclass(frozen=True, slots=True)
class _Around:
    """The exchanges before and after others on their paths, and their passages."""

    before: dict[int | None, int] = field(default_factory=dict)
    after: dict[int | None, int] = field(default_factory=dict)
    passages: dict[int, PassageId] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PassageTexts:
    """The texts of passages by id; rows until they are iterated, which another process may do.

    `turns` are the passages of exchanges, `messages` rows of `_MESSAGE`.
    """

    rows: Sequence[Row]
    headers: Mapping[int | None, _Header]
    contents: Mapping[tuple[PassageKind, int], PassageContent]
    turns: Mapping[int, PassageId]
    links: Sequence[_Link]
    messages: Sequence[Row]
    around: _Around

    def __iter__(self) -> Iterator[PassageText]:
        parts = self.parts()
        return (self.text(head, parts) for head in self.heads())

    def heads(self) -> list[Passage]:
        return list(map(reader(Passage), self.rows))

    def parts(self) -> Parts:
        """Return the parts of turns by exchange."""
        turns = self.turns
        messages = {
            row[0]: (Role(row[1]), row[2], blocks_of(row[3], row[4])) for row in self.messages
        }
        known = (each for each in self.links if each[0] in turns and each[2] in messages)
        return {
            each: turn_parts(turns[each], [(m, place, *messages[m]) for _, place, m in own])
            for each, own in grouped(known, itemgetter(0)).items()
        }

    def text(self, head: Passage, of_turns: Parts) -> PassageText:
        content, near, own = self._content(head), self.around, head.exchange_id
        parts = of_turns.get(own, ())
        if head.kind is not PassageKind.TURN:
            part = partial(PassagePart, calls=content.headings, message_id=content.message_id)
            parts = tuple(
                part(part_id(head.id, number), Role.ASSISTANT, each)
                for number, each in enumerate(content.texts)
            )
            own = None
        return PassageText(
            head.id, head.kind, head.conversation_id, self._title(head, content), parts,
            head.created_at, before=of_turns.get(near.before.get(own), ())[-_NEAR_PARTS:],
            after=of_turns.get(near.after.get(own), ())[:_NEAR_PARTS],
        )  # fmt: skip

    def place(
        self, head: Passage, turn_number: int | None, model: str | None,
        first_message: MessageId | None, *, is_shown: bool,
    ) -> PassagePlace:  # fmt: skip
        """Return where a passage is from; the other arguments are its exchange's."""
        header = self.headers.get(head.conversation_id, _NO_HEADER)
        content = self._content(head)
        return PassagePlace(
            head.id, head.kind, head.conversation_id,
            self._title(head, content),
            header.source if content.source is None else content.source,
            header.archived, head.exchange_id, turn_number,
            first_message,
            header.model if model is None else model, head.created_at, is_shown,
        )  # fmt: skip

    def _title(self, head: Passage, content: PassageContent) -> str:
        if content.title is not None:
            return content.title
        return self.headers.get(head.conversation_id, _NO_HEADER).title

    def _content(self, head: Passage) -> PassageContent:
        return self.contents.get((head.kind, head.source_id), _NO_CONTENT)


def _read(cursor: Connection, ids: list[int], *, with_neighbors: bool) -> PassageTexts:
    # In order of ids; the database would take half a millisecond.
    rows = sorted(cursor.select_in("passage", columns_of(Passage), ids))
    heads = list(map(reader(Passage), rows))
    conversations = {head.conversation_id for head in heads} - {None}
    exchanges = {head.exchange_id for head in heads if head.exchange_id is not None}
    turns: dict[int, PassageId] = {
        head.exchange_id: head.id
        for head in heads
        if head.kind is PassageKind.TURN and head.exchange_id is not None
    }
    around = _neighbors(cursor, list(turns)) if with_neighbors and turns else _Around()
    wanted, columns = exchanges | around.passages.keys(), "exchange_id, place, message_id"
    links = (  # in path order
        sorted(cursor.select_in("exchange_message", columns, wanted, "exchange_id"))
        if wanted
        else []
    )
    columns = f"id, {columns_of(_Header)}"
    turns |= around.passages
    messages = {message for exchange, _, message in links if exchange in turns}
    return PassageTexts(
        rows,
        {
            row[0]: _Header(*row[1:])
            for row in cursor.select_in("conversation", columns, conversations)
        },
        passage_contents(cursor, ((head.kind, head.source_id) for head in heads)),
        turns,
        links,
        cursor.select_in("message", _MESSAGE, messages) if messages else (),
        around,
    )


def _neighbors(cursor: Connection, exchange_ids: list[int]) -> _Around:
    """Return the exchange before each, and the newest that follows it, within its segment."""
    around = _Around()
    rows = cursor.rows(
        "SELECT e.id, e.parent_id, pp.id FROM exchange e "
        "JOIN exchange q ON q.id = e.parent_id AND q.segment_number = e.segment_number "
        "JOIN passage pp ON pp.exchange_id = q.id AND pp.kind = 'turn' "
        "WHERE e.id IN (SELECT unnest(?))",
        [exchange_ids],
    )
    for each, parent, passage in rows:
        around.before[each] = parent
        around.passages[parent] = passage
    rows = cursor.rows(
        "SELECT q.id, max(e.id), arg_max(p.id, e.id) FROM exchange e "
        "JOIN exchange q ON q.id = e.parent_id AND q.segment_number = e.segment_number "
        "JOIN passage p ON p.exchange_id = e.id AND p.kind = 'turn' "
        "WHERE q.id IN (SELECT unnest(?)) GROUP BY q.id",
        [exchange_ids],
    )
    for each, child, passage in rows:
        around.after[each] = child
        around.passages[child] = passage
    return around
