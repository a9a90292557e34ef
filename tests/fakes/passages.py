"""Words of passages as the indexes take them, without a database behind them, and what is found of them."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import NamedTuple

from app.domain.conversations import Role
from app.domain.ids import ConversationId, PartId, PassageId, part_id, passage_id_of
from app.domain.passages import PassageKind, PassagePart, PassageText, Space
from app.index.query import parse_query
from app.index.text_index import TantivyTextIndex
from app.storage.engine.store import Store
from app.storage.tables.passages.spaces import table_of


class Hit(NamedTuple):
    """A part found by its own words."""

    part_id: PartId
    score: float
    coverage: float


def hits(
    index: TantivyTextIndex,
    text: str,
    limit: int = 50,
    allowed: Collection[PassageId] | None = None,
    excluded: Collection[PassageId] = (),
) -> list[Hit]:
    """Return the parts that hold words of a query, best first, the newer of equals first."""
    query = parse_query(text)
    table = index.candidate_table(query, index.candidates(query, limit, allowed, excluded))
    rows = zip(table.parts.tolist(), table.words.tolist(), table.coverage.tolist(), strict=True)
    found = [Hit(PartId(part), score, share) for part, score, share in rows if score]
    return sorted(found, key=lambda hit: (-hit.score, -hit.part_id))[:limit]


def found_passages(index: TantivyTextIndex, text: str, limit: int = 50) -> list[int]:
    """Return the passages of `hits`, each once, best first."""
    return list(dict.fromkeys(passage_id_of(hit.part_id) for hit in hits(index, text, limit)))


def said(
    passage: int, number: int, text: str, role: Role = Role.USER, results: str = ""
) -> PassagePart:
    """Return a message: the words of one side, and what its tools answered."""
    return PassagePart(part_id(passage, number), role, text, results=results)


def turn(
    number: int,
    user: str = "",
    assistant: str = "",
    *,
    tools: str = "",
    title: str = "",
    month: int = 5,
    before: tuple[PassagePart, ...] = (),
    after: tuple[PassagePart, ...] = (),
) -> PassageText:
    """Return the turn's words: a part for the user (0), one for the assistant (1) if it has any."""
    parts = [said(number, 0, user)]
    if assistant or tools:
        parts.append(said(number, 1, assistant, Role.ASSISTANT, tools))
    return _turn(number, tuple(parts), title, month, before, after)


def talk(number: int, *texts: str) -> PassageText:
    """Return a turn of several messages, user and assistant taking turns."""
    roles = (Role.USER, Role.ASSISTANT)
    parts = tuple(said(number, at, text, roles[at % 2]) for at, text in enumerate(texts))
    return _turn(number, parts)


def _turn(
    number: int,
    parts: tuple[PassagePart, ...],
    title: str = "",
    month: int = 5,
    before: tuple[PassagePart, ...] = (),
    after: tuple[PassagePart, ...] = (),
) -> PassageText:
    return PassageText(
        PassageId(number), PassageKind.TURN, ConversationId(1), title, parts,
        datetime(2024, month, 6, tzinfo=UTC), before, after,
    )  # fmt: skip


def spans_of(store: Store, space: Space) -> list[tuple[int, int]]:
    """Return the places of the stored chunks of a space in their parts, in order."""
    return store.rows(
        f'SELECT start, "end" FROM {table_of(space.name)} ORDER BY passage_id, chunk_number'
    )
