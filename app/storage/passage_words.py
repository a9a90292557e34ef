"""The words of passages that are no turns, by kind; a turn's are its messages' (`passage_texts`)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from app.domain.ids import MessageId
from app.domain.passages import PassageKind
from app.storage import man_pages
from app.storage.database import Connection
from app.storage.seen_facts import FACTS_IN_WORDS


@dataclass(frozen=True, slots=True)
class Words:
    """What a passage says.

    `texts` are those of its parts, in order. `title` and `source` are its own; None for those of its
    conversation. `message_id` is the message it was taken from; None for a whole turn or none.
    """

    texts: tuple[str, ...]
    title: str | None = None
    source: str | None = None
    message_id: MessageId | None = None


Reader = Callable[[Connection, list[int]], Mapping[int, Words]]


def words_of(
    cursor: Connection, sources: Iterable[tuple[PassageKind, int]]
) -> dict[tuple[PassageKind, int], Words]:
    """Return words by (kind, id of the record); turns and records that are gone are absent."""
    wanted: dict[PassageKind, list[int]] = {}
    for kind, source_id in sources:
        wanted.setdefault(kind, []).append(source_id)
    return {
        (kind, source_id): words
        for kind, ids in wanted.items()
        if kind in _READERS
        for source_id, words in _READERS[kind](cursor, ids).items()
    }


def _summaries(kind: str, cursor: Connection, ids: list[int]) -> Mapping[int, Words]:
    rows = cursor.execute(
        "SELECT source_id, text FROM summary "
        "WHERE latest AND kind = ? AND source_id IN (SELECT unnest(?))",
        [kind, ids],
    ).fetchall()
    return {source_id: Words((text,)) for source_id, text in rows}


def _pages(cursor: Connection, ids: list[int]) -> Mapping[int, Words]:
    pages = man_pages.words_of(cursor, ids)
    return {each: Words(texts, title, source) for each, (title, source, texts) in pages.items()}


def _learned(table: str, message: str, cursor: Connection, ids: list[int]) -> Mapping[int, Words]:
    rows = cursor.execute(
        f"SELECT id, text, {message} FROM {table} WHERE id IN (SELECT unnest(?))", [ids]
    ).fetchall()
    return {each: Words((text,), message_id=message_id) for each, text, message_id in rows}


_READERS: Mapping[PassageKind, Reader] = {
    PassageKind.EXCHANGE_SUMMARY: partial(_summaries, "exchange"),
    PassageKind.CONVERSATION_SUMMARY: partial(_summaries, "conversation"),
    PassageKind.FACT: partial(_learned, FACTS_IN_WORDS, "message_id"),
    PassageKind.MEMORY: partial(_learned, "memory", "NULL"),
    PassageKind.TOOL_SUMMARY: partial(_learned, "tool_summary", "message_id"),
    PassageKind.MAN_PAGE: _pages,
}
