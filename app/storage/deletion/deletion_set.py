"""Deletion sets: the ids and text fingerprints of what is deleted, to find quotes of it elsewhere.

Most quotes are found by ids. A quote without ids (part of a long result, a library imported from
another machine) is found by runs of text that it shares with what is deleted.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from app.domain.conversations import ToolResult
from app.domain.turns import RECALL_MODEL, is_recall_reply
from app.storage.engine.connection import Connection
from app.storage.tables.exchanges import messages_in
from app.storage.work.queue import EXCHANGE_STAMPS
from app.storage.work.summary_work import CONVERSATION_STAMPS

_WINDOW_BYTES = 16
_STRIDE_BYTES = 8  # so a run of 23 bytes is always found
_MAX_WINDOWS = 500_000  # some 50 MB; longer texts have windows further apart
_ALL = 1 << 20
_SEPARATORS = re.compile(r"[\W_]+")
_OWN = "conversation_id IN (SELECT unnest($1))"
_MESSAGES = (
    f"SELECT text FROM message WHERE {_OWN} AND role IN ('user', 'assistant') "
    "AND NOT (role = 'assistant' AND model IS NOT DISTINCT FROM $2)"
)
_DERIVED = ("fact_version", "memory", "tool_summary")
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

    def __init__(self, texts: Iterable[str], whole: Iterable[str] = ()) -> None:
        lines = [each for text in texts for line in text.split("\n") if (each := _normalized(line))]
        short = [*filter(None, map(_normalized, whole))]
        self._whole = b"\n".join(short)
        self._lines = frozenset(map(hash, (*short, *lines)))
        stride = max(_STRIDE_BYTES, sum(map(len, lines)) // _MAX_WINDOWS)
        self._share = _ALL  # of the windows is kept
        self._windows = frozenset(
            line[start : start + _WINDOW_BYTES]
            for line in lines
            for start in range(0, len(line) - _WINDOW_BYTES + 1, stride)
        )

    def __or__(self, other: "TextFingerprints") -> "TextFingerprints":
        """Return what recognizes both.

        Of more runs than are kept of one, the same share of all stays, chosen by their hashes. Whole lines are
        always recognized; of 4 texts of 4 MB each half of the parts of 40 characters and those of 200, of 10
        texts a quarter and seven of eight.
        """
        both = TextFingerprints(())
        both._whole = b"\n".join((self._whole, other._whole))
        both._lines = self._lines | other._lines
        share = min(self._share, other._share)
        one = self._windows if self._share == share else _share_of(self._windows, share)
        two = other._windows if other._share == share else _share_of(other._windows, share)
        windows = one | two
        while len(windows) > _MAX_WINDOWS:
            share = share * _MAX_WINDOWS * 7 // (len(windows) * 8)  # with room for the next ones
            windows = _share_of(windows, share)
        both._share, both._windows = share, windows
        return both

    def matches(self, text: str) -> bool:
        """Return whether a line of text quotes the texts."""
        characters = _normalized(text)
        if hash(characters) in self._lines:
            return True
        if len(characters) >= _WINDOW_BYTES and characters in self._whole:
            return True
        return any(
            characters[start : start + _WINDOW_BYTES] in self._windows
            for start in range(len(characters) - _WINDOW_BYTES + 1)
        )


@dataclass(frozen=True, slots=True)
class DeletionSet:
    """What is deleted, by ids and by its text.

    Attributes:
        conversations: Deleted as a whole.
        exchanges: Of those, and those of which every message is deleted.
        passages: Facts and memories, by the ids of their passages.
        within: The conversations of which only `messages` are deleted.
        stale: The (kind, source, stamp) of what was derived from those before.
        since: The first message of all: what quotes them is later.
    """

    conversations: frozenset[int]
    exchanges: frozenset[int]
    passages: frozenset[int]
    text: TextFingerprints
    within: frozenset[int] = frozenset()
    messages: frozenset[int] = frozenset()
    stale: frozenset[tuple[str, int, str]] = frozenset()
    since: int = 0


def united(one: DeletionSet, other: DeletionSet) -> DeletionSet:
    """Return the deletion set of both, whose texts take no more memory than those of one."""
    return DeletionSet(
        one.conversations | other.conversations,
        one.exchanges | other.exchanges,
        one.passages | other.passages,
        one.text | other.text,
        one.within | other.within,
        one.messages | other.messages,
    )


def conversation_deletion_set(cursor: Connection, conversation_ids: Sequence[int]) -> DeletionSet:
    """Return the deletion set of conversations, read while their rows exist."""
    ids = list(conversation_ids)
    own = partial(cursor.column_in, column="id", ids=ids, key="conversation_id")
    texts = (text for each in _TEXTS for text in cursor.column(each, [ids, RECALL_MODEL]))
    return DeletionSet(
        frozenset(ids),
        frozenset(own("exchange")),
        frozenset(own("fact") | own("memory")),
        TextFingerprints(texts),
        since=min(own("message"), default=0),
    )


def fact_deletion_set(cursor: Connection, table: str, passage_ids: Collection[int]) -> DeletionSet:
    """Return the deletion set of facts or memories with all versions of their text.

    `table` is "fact" or "memory"; read while their rows exist.
    """
    statement = f"SELECT text FROM {table} WHERE id IN (SELECT unnest($1))"
    if table == "fact":
        statement += " UNION SELECT text FROM fact_version WHERE fact_id IN (SELECT unnest($1))"
    texts = cursor.column(statement, [list(passage_ids)])
    return DeletionSet(
        frozenset(), frozenset(), frozenset(passage_ids), TextFingerprints((), whole=texts)
    )


def message_deletion_set(
    cursor: Connection, conversation_ids: Collection[int], message_ids: Collection[int]
) -> DeletionSet:
    """Return the deletion set of messages of conversations and of what their turns led to."""
    own, ids = list(conversation_ids), list(message_ids)
    texts = []
    for message in messages_in(cursor, ids).values():
        if not is_recall_reply(message.role, message.model):  # which quotes
            texts.append(message.text)
        texts += [each.text for each in message.blocks if isinstance(each, ToolResult)]
    turns = exchanges_of(cursor, ids)
    of_turns = partial(cursor.column_in, ids=turns, key="exchange_id")
    whole = [text for table in _DERIVED for text in of_turns(table, "text")]
    whole += cursor.column(
        "SELECT text FROM summary WHERE (kind = 'exchange' AND source_id IN (SELECT unnest($1))) "
        "OR (kind <> 'exchange' AND conversation_id IN (SELECT unnest($2)))",
        [turns, own],
    )
    left = cursor.select_in("exchange_message", "exchange_id, message_id", turns, "exchange_id",
        "AND message_id NOT IN (SELECT message_id FROM forgotten_message)",
    )  # fmt: skip
    forgotten = frozenset(ids)
    kept = {turn for turn, message in left if message not in forgotten}
    return DeletionSet(
        frozenset(),
        frozenset(turns) - kept,
        frozenset(of_turns("fact", "id") | of_turns("memory", "id")),
        TextFingerprints(texts, whole),
        frozenset(own),
        forgotten,
        since=min(forgotten, default=0),
    )


def with_stamps(cursor: Connection, deleted: DeletionSet) -> DeletionSet:
    """Return the deletion set of messages with `stale`."""
    stamps: list[tuple[str, int, str]] = []
    for kind, table, ids in (
        ("exchange", EXCHANGE_STAMPS, exchanges_of(cursor, deleted.messages)),
        ("conversation", CONVERSATION_STAMPS, deleted.within),
    ):
        stamps += cursor.select_in(table, f"'{kind}', {kind}_id, stamp", ids, f"{kind}_id")
    return replace(deleted, stale=frozenset(stamps))


def exchanges_of(cursor: Connection, message_ids: Collection[int]) -> list[int]:
    return sorted(cursor.column_in("exchange_message", "exchange_id", message_ids, "message_id"))


def _share_of(windows: Iterable[bytes], share: int) -> frozenset[bytes]:
    return frozenset(each for each in windows if hash(each) % _ALL < share)


def _normalized(text: str) -> bytes:
    """Return only letters and digits: quotes may differ from the original in the rest."""
    return _SEPARATORS.sub("", text.casefold()).encode("utf-8", "replace")
