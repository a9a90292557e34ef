"""What is about to be forgotten, so that quotes of it are known elsewhere: ids, and prints of words.

Ids tell most quotes. Where a quote names none (part of a long result, a library that came from
another machine) its words tell, by runs of them that stand in what leaves.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.domain.turn_text import QUOTING_MODEL
from app.storage.database import Connection

_WINDOW_BYTES = 16
_STRIDE_BYTES = 8  # so a run of 23 bytes is always found, whatever stands beside it
_MOST_WINDOWS = 500_000  # some 50 MB; of longer texts, longer runs are needed
_APART = re.compile(r"[\W_]+")
_OWN = "conversation_id IN (SELECT unnest($1))"
_SAID = (
    f"SELECT text FROM message WHERE {_OWN} AND role IN ('user', 'assistant') "
    "AND NOT (role = 'assistant' AND model IS NOT DISTINCT FROM $2)"
)
_WORDS = (
    _SAID,
    "SELECT title FROM conversation WHERE id IN (SELECT unnest($1)) AND $2 <> ''",
    *(
        f"SELECT text FROM {table} WHERE {_OWN} AND $2 <> ''"
        for table in ("summary", "fact", "fact_version", "memory", "tool_summary", "draft")
    ),
)


class Said(Protocol):
    """Words that leave."""

    def stand_in(self, text: str) -> bool:
        """Return whether a line of text quotes them."""
        ...


class Prints:
    """Texts as a set of short runs, enough to tell whether another text shares words with them."""

    def __init__(self, texts: Iterable[str]) -> None:
        bare = [
            each for each in (_bare(line) for text in texts for line in text.split("\n")) if each
        ]
        stride = max(_STRIDE_BYTES, sum(map(len, bare)) // _MOST_WINDOWS)
        self._lines = frozenset(bare)
        self._windows = frozenset(
            line[start : start + _WINDOW_BYTES]
            for line in bare
            for start in range(0, len(line) - _WINDOW_BYTES + 1, stride)
        )

    def stand_in(self, text: str) -> bool:
        """Return whether `text` is a line of the texts, or shares a run of words with them."""
        bare = _bare(text)
        return bare in self._lines or any(
            bare[start : start + _WINDOW_BYTES] in self._windows
            for start in range(len(bare) - _WINDOW_BYTES + 1)
        )


class Wordings:
    """A few short texts: only what is one of them, or a good part of one, quotes it."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._lines = frozenset(_bare(text) for text in texts) - {b""}

    def stand_in(self, text: str) -> bool:
        """Return whether `text` is one of the texts or a part of one."""
        bare = _bare(text)
        return bare in self._lines or (
            len(bare) >= _WINDOW_BYTES and any(bare in line for line in self._lines)
        )


@dataclass(frozen=True, slots=True)
class Leaving:
    """Conversations with their exchanges, and facts and memories by their passages' ids."""

    conversations: frozenset[int]
    exchanges: frozenset[int]
    passages: frozenset[int]
    words: Said


def conversations_leaving(cursor: Connection, conversation_ids: Sequence[int]) -> Leaving:
    """Return conversations that leave, read while their rows are still there."""
    ids = list(conversation_ids)
    exchanges = cursor.execute(f"SELECT id FROM exchange WHERE {_OWN}", [ids]).fetchall()
    learned = cursor.execute(
        f"SELECT id FROM fact WHERE {_OWN} UNION ALL SELECT id FROM memory WHERE {_OWN}", [ids]
    ).fetchall()
    texts = (
        text
        for statement in _WORDS
        for (text,) in cursor.execute(statement, [ids, QUOTING_MODEL]).fetchall()
    )
    return Leaving(
        frozenset(ids),
        frozenset(each for (each,) in exchanges),
        frozenset(each for (each,) in learned),
        Prints(texts),
    )


def learned_leaving(
    cursor: Connection, table: str, passage_ids: Collection[int], unsaid: Iterable[str] = ()
) -> Leaving:
    """Return facts or memories that leave, with every wording they had, also those `unsaid` in rows.

    `table` is "fact" or "memory"; read while their rows are still there.
    """
    statement = f"SELECT text FROM {table} WHERE id IN (SELECT unnest($1))"
    if table == "fact":
        statement += " UNION SELECT text FROM fact_version WHERE fact_id IN (SELECT unnest($1))"
    rows = cursor.execute(statement, [list(passage_ids)]).fetchall()
    texts = [*(text for (text,) in rows), *unsaid]
    return Leaving(frozenset(), frozenset(), frozenset(passage_ids), Wordings(texts))


def _bare(text: str) -> bytes:
    """Return letters and digits alone: quotes differ from what they quote in the rest."""
    return _APART.sub("", text.casefold()).encode("utf-8", "replace")
