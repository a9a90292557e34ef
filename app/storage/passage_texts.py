"""Passages as indexes take them and as results show them: their words, and where they stand.

Each table is read by ids alone. Joined, DuckDB would hash tables whole: 100 MB of 260,000 messages.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from app.domain.conversations import Block, Role
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId, part_id
from app.domain.passages import Part, PassageKind, PassageText
from app.domain.turn_text import turn_parts
from app.storage.database import Connection
from app.storage.exchanges import not_shown
from app.storage.passage_words import Words, words_of
from app.storage.rows import blocks_of
from app.storage.times import from_db

_NEAR_PARTS = 4  # of the turn before and after: more than a context of 150 words takes


@dataclass(frozen=True, slots=True)
class PassagePlace:
    """Where a passage stands, for a result: its conversation and, of a turn, its exchange.

    Of a manual page, `conversation_title` is its own title and `source` what it is called: grep.1.
    `first_message_id` is the message that began the turn; `turn_number` its place on its path,
    `is_shown` whether that is the one its conversation shows.
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


def texts_of(cursor: Connection, ids: list[int]) -> list[PassageText]:
    """Return the words of the passages that exist among `ids`, with those beside them, by id."""
    read = _read(cursor, ids, with_neighbours=True)
    return [read.text(head) for head in read.heads]


def shown_of(
    cursor: Connection, ids: list[int]
) -> dict[PassageId, tuple[PassagePlace, PassageText]]:
    """Return what a result shows of the passages that exist among `ids`; nothing beside them."""
    read = _read(cursor, ids, with_neighbours=False)
    wanted = [head.exchange_id for head in read.heads if head.exchange_id is not None]
    rows = cursor.execute(
        "SELECT id, turn_number, model FROM exchange WHERE id IN (SELECT unnest(?))", [wanted]
    ).fetchall()
    exchanges = {row[0]: (row[1], row[2]) for row in rows}
    beside = not_shown(cursor, wanted) if wanted else ()
    places = (
        replace(
            read.place(head, *exchanges.get(head.exchange_id, (None, None))),
            is_shown=head.exchange_id not in beside,
        )
        for head in read.heads
    )
    return {
        place.id: (place, read.text(head)) for place, head in zip(places, read.heads, strict=True)
    }


@dataclass(frozen=True, slots=True)
class _Head:
    """A row of `passage`."""

    id: PassageId
    kind: PassageKind
    source_id: int
    conversation_id: ConversationId | None
    exchange_id: ExchangeId | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class _Talk:
    """What a result shows of a conversation."""

    title: str = ""
    source: str = ""
    archived: bool = False
    model: str | None = None


_NO_TALK = _Talk()
_NO_WORDS = Words(())


@dataclass(frozen=True, slots=True)
class _Around:
    """Which exchanges stand next to others on their paths, and their passages."""

    before: dict[int | None, int] = field(default_factory=dict)
    after: dict[int | None, int] = field(default_factory=dict)
    passages: dict[int, PassageId] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Read:
    """Passages by id, and what belongs to them: by conversation, by source, by exchange."""

    heads: Sequence[_Head]
    talks: Mapping[int | None, _Talk]
    words: Mapping[tuple[PassageKind, int], Words]
    parts: Mapping[int | None, tuple[Part, ...]]
    first_messages: Mapping[int | None, MessageId]
    around: _Around

    def text(self, head: _Head) -> PassageText:
        """Return the words of a passage."""
        words, near, own = self._words(head), self.around, head.exchange_id
        title = self._talk(head).title if words.title is None else words.title
        text = PassageText(head.id, head.kind, head.conversation_id, title, (), head.created_at)
        if head.kind is PassageKind.TURN:
            return replace(
                text,
                parts=self.parts.get(own, ()),
                before=self.parts.get(near.before.get(own), ())[-_NEAR_PARTS:],
                after=self.parts.get(near.after.get(own), ())[:_NEAR_PARTS],
            )
        parts = (
            Part(part_id(head.id, number), Role.ASSISTANT, each, message_id=words.message_id)
            for number, each in enumerate(words.texts)
        )
        return replace(text, parts=tuple(parts))

    def place(self, head: _Head, turn_number: int | None, model: str | None) -> PassagePlace:
        """Return where a passage stands; the rest is its exchange's."""
        talk, words = self._talk(head), self._words(head)
        return PassagePlace(
            id=head.id,
            kind=head.kind,
            conversation_id=head.conversation_id,
            conversation_title=talk.title if words.title is None else words.title,
            source=talk.source if words.source is None else words.source,
            archived=talk.archived,
            exchange_id=head.exchange_id,
            turn_number=turn_number,
            first_message_id=self.first_messages.get(head.exchange_id),
            model=talk.model if model is None else model,
            created_at=head.created_at,
        )

    def _talk(self, head: _Head) -> _Talk:
        return self.talks.get(head.conversation_id, _NO_TALK)

    def _words(self, head: _Head) -> Words:
        return self.words.get((head.kind, head.source_id), _NO_WORDS)


def _read(cursor: Connection, ids: list[int], *, with_neighbours: bool) -> _Read:
    rows = cursor.execute(
        "SELECT id, kind, source_id, conversation_id, exchange_id, created_at FROM passage "
        "WHERE id IN (SELECT unnest(?))",
        [ids],
    ).fetchall()
    rows.sort()  # the database would take half a millisecond
    heads = [
        _Head(row[0], PassageKind(row[1]), row[2], row[3], row[4], from_db(row[5])) for row in rows
    ]
    exchanges = {head.exchange_id for head in heads if head.exchange_id is not None}
    turns = {
        head.exchange_id: head.id
        for head in heads
        if head.kind is PassageKind.TURN and head.exchange_id is not None
    }
    around = _neighbours(cursor, list(turns)) if with_neighbours and turns else _Around()
    links = _links(cursor, exchanges | around.passages.keys())
    return _Read(
        heads,
        _talks(cursor, {head.conversation_id for head in heads}),
        words_of(cursor, ((head.kind, head.source_id) for head in heads)),
        _parts(cursor, turns | around.passages, links),
        {link.exchange_id: link.message_id for link in links if link.place == 0},
        around,
    )


def _talks(cursor: Connection, ids: Iterable[int | None]) -> dict[int | None, _Talk]:
    rows = cursor.execute(
        "SELECT id, title, source, archived, model FROM conversation "
        "WHERE id IN (SELECT unnest(?))",
        [[each for each in ids if each is not None]],
    ).fetchall()
    return {row[0]: _Talk(*row[1:]) for row in rows}


def _neighbours(cursor: Connection, exchange_ids: list[int]) -> _Around:
    """Return the exchange before each, and the newest that follows it, within its segment."""
    around = _Around()
    rows = cursor.execute(
        "SELECT e.id, e.parent_id, pp.id FROM exchange e "
        "JOIN exchange q ON q.id = e.parent_id AND q.segment_number = e.segment_number "
        "JOIN passage pp ON pp.exchange_id = q.id AND pp.kind = 'turn' "
        "WHERE e.id IN (SELECT unnest(?))",
        [exchange_ids],
    ).fetchall()
    for each, parent, passage in rows:
        around.before[each] = parent
        around.passages[parent] = passage
    rows = cursor.execute(
        "SELECT q.id, max(e.id), arg_max(p.id, e.id) FROM exchange e "
        "JOIN exchange q ON q.id = e.parent_id AND q.segment_number = e.segment_number "
        "JOIN passage p ON p.exchange_id = e.id AND p.kind = 'turn' "
        "WHERE q.id IN (SELECT unnest(?)) GROUP BY q.id",
        [exchange_ids],
    ).fetchall()
    for each, child, passage in rows:
        around.after[each] = child
        around.passages[child] = passage
    return around


@dataclass(frozen=True, slots=True)
class _Link:
    """A row of `exchange_message`."""

    exchange_id: int
    place: int
    message_id: MessageId


def _links(cursor: Connection, exchange_ids: Collection[int]) -> list[_Link]:
    """Return the messages of exchanges, in path order."""
    if not exchange_ids:
        return []
    rows = cursor.execute(
        "SELECT exchange_id, place, message_id FROM exchange_message "
        "WHERE exchange_id IN (SELECT unnest(?))",
        [list(exchange_ids)],
    ).fetchall()
    return [_Link(*row) for row in sorted(rows)]


def _parts(
    cursor: Connection, turns: Mapping[int, PassageId], links: Sequence[_Link]
) -> dict[int | None, tuple[Part, ...]]:
    """Return the parts of turns by exchange; `turns` are their passages."""
    wanted = {link.message_id for link in links if link.exchange_id in turns}
    if not wanted:
        return {}
    rows = cursor.execute(
        "SELECT id, role, model, text, blocks FROM message WHERE id IN (SELECT unnest(?))",
        [list(wanted)],
    ).fetchall()
    said = {row[0]: (Role(row[1]), row[2], blocks_of(row[3], row[4])) for row in rows}
    grouped: dict[int, list[tuple[MessageId, int, Role, str | None, Sequence[Block]]]] = {}
    for link in links:
        if link.exchange_id in turns and (message := said.get(link.message_id)) is not None:
            own = (link.message_id, link.place, *message)
            grouped.setdefault(link.exchange_id, []).append(own)
    return {each: turn_parts(turns[each], messages) for each, messages in grouped.items()}
