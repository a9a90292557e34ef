"""Deletion sets: the ids and text fingerprints of what is deleted, to find quotes of it elsewhere.

Most quotes are found by ids. A quote without ids (part of a long result, a library imported from
another machine) is found by runs of text that it shares with what is deleted.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from app.domain.turn_text import RECALL_MODEL
from app.storage.engine.database import Connection

_WINDOW_BYTES = 16
_STRIDE_BYTES = 8  # so a run of 23 bytes is always found
_MAX_WINDOWS = 500_000  # some 50 MB; longer texts have windows further apart
_SEPARATORS = re.compile(r"[\W_]+")
_OWN = "conversation_id IN (SELECT unnest($1))"
_MESSAGES = (
    f"SELECT text FROM message WHERE {_OWN} AND role IN ('user', 'assistant') "
    "AND NOT (role = 'assistant' AND model IS NOT DISTINCT FROM $2)"
)
_TEXTS = (
    _MESSAGES,
    "SELECT title FROM conversation WHERE id IN (SELECT unnest($1)) AND $2 <> ''",
    *(
        f"SELECT text FROM {table} WHERE {_OWN} AND $2 <> ''"
        for table in ("summary", "fact", "fact_version", "memory", "tool_summary", "draft")
    ),
)


class TextFingerprints:
    """Texts as lines and short runs of characters, to recognize quotes of them.

    Of `whole` texts, which are few and short, only one of them, or a long part of one, counts as a quote;
    of others any run.
    """

    def __init__(self, texts: Iterable[str], *, whole: bool = False) -> None:
        characters = [
            each
            for text in texts
            for line in ([text] if whole else text.split("\n"))
            if (each := _normalized(line))
        ]
        self._whole = whole
        self._lines = frozenset(characters)
        stride = max(_STRIDE_BYTES, sum(map(len, characters)) // _MAX_WINDOWS)
        self._windows = frozenset(
            line[start : start + _WINDOW_BYTES]
            for line in (() if whole else characters)
            for start in range(0, len(line) - _WINDOW_BYTES + 1, stride)
        )

    def matches(self, text: str) -> bool:
        """Return whether a line of text quotes the texts."""
        characters = _normalized(text)
        if characters in self._lines:
            return True
        if self._whole:
            return len(characters) >= _WINDOW_BYTES and any(
                characters in line for line in self._lines
            )
        return any(
            characters[start : start + _WINDOW_BYTES] in self._windows
            for start in range(len(characters) - _WINDOW_BYTES + 1)
        )


@dataclass(frozen=True, slots=True)
class DeletionSet:
    """Conversations with their exchanges, facts and memories by their passage ids, and their text."""

    conversations: frozenset[int]
    exchanges: frozenset[int]
    passages: frozenset[int]
    text: TextFingerprints


def conversation_deletion_set(cursor: Connection, conversation_ids: Sequence[int]) -> DeletionSet:
    """Return the deletion set of conversations, read while their rows exist."""
    ids = list(conversation_ids)
    exchanges = cursor.execute(f"SELECT id FROM exchange WHERE {_OWN}", [ids]).fetchall()
    known = cursor.execute(
        f"SELECT id FROM fact WHERE {_OWN} UNION ALL SELECT id FROM memory WHERE {_OWN}", [ids]
    ).fetchall()
    texts = (
        text
        for statement in _TEXTS
        for (text,) in cursor.execute(statement, [ids, RECALL_MODEL]).fetchall()
    )
    return DeletionSet(
        frozenset(ids),
        frozenset(each for (each,) in exchanges),
        frozenset(each for (each,) in known),
        TextFingerprints(texts),
    )


def fact_deletion_set(
    cursor: Connection, table: str, passage_ids: Collection[int], unwritten: Iterable[str] = ()
) -> DeletionSet:
    """Return the deletion set of facts or memories with all versions of their text.

    `table` is "fact" or "memory"; read while their rows exist. `unwritten` are texts without rows.
    """
    statement = f"SELECT text FROM {table} WHERE id IN (SELECT unnest($1))"
    if table == "fact":
        statement += " UNION SELECT text FROM fact_version WHERE fact_id IN (SELECT unnest($1))"
    rows = cursor.execute(statement, [list(passage_ids)]).fetchall()
    texts = [*(text for (text,) in rows), *unwritten]
    return DeletionSet(
        frozenset(), frozenset(), frozenset(passage_ids), TextFingerprints(texts, whole=True)
    )


def _normalized(text: str) -> bytes:
    """Return only letters and digits: quotes may differ from the original in the rest."""
    return _SEPARATORS.sub("", text.casefold()).encode("utf-8", "replace")
