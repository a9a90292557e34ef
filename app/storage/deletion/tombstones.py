"""Tombstones: ids deleted in this run, so that late changes cannot bring them back.

A worker that summarizes a conversation, a running reply or an edit of a fact may submit changes after
the deletion; they are dropped before they reach the journal.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from app.domain import codec
from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationPut,
    ExtractionDone,
    FactPut,
    MemoryPut,
    MessagesAdded,
    PassagesPut,
    PromptStored,
    ReplyGrew,
    SettingPut,
    SummaryPut,
    TagsChanged,
    ToolSummaryPut,
)
from app.domain.conversations import Message, Role, TitleOrigin
from app.domain.deletions import (
    ConversationForgotten,
    FactForgotten,
    MemoryForgotten,
    MessagesForgotten,
    ValueForgotten,
)
from app.domain.recall import PlanPartKind, PromptPiece, StoredPrompt
from app.domain.turns import is_recall_reply
from app.storage.deletion.deletion_set import (
    DeletionSet,
    TextFingerprints,
    conversation_deletion_set,
    fact_deletion_set,
    message_deletion_set,
    united,
    with_stamps,
)
from app.storage.deletion.redaction import (
    QuoteContext,
    call_arguments,
    redact_answer,
    redact_message,
)
from app.storage.deletion.values import without_value
from app.storage.engine.connection import Connection
from app.storage.tables.settings import PROBES, probes_without
from app.storage.work.summary_work import present_stamp

_COMPACTION = "context"  # the kind of `SummaryPut` that `app.chat.compactor` writes
_COMPACTED_WITHIN_S = 600.0
_DERIVED = (SummaryPut, FactPut, ToolSummaryPut, TagsChanged, ConversationEdited)
_KNOWN = re.compile(r"- (?:fact|memory) (\d+) ")  # as `app.memory.context.text` begins it


class Tombstones:
    """The deletions of this run. The writer thread owns it."""

    def __init__(self) -> None:
        self._conversations: set[int] = set()
        self._exchanges: set[int] = set()
        # Deleted by id: a fact of a deleted conversation may remain because of another one.
        self._known: set[int] = set()
        # Of conversations of which only messages were deleted.
        self._messages: set[int] = set()
        self._deleted_within_at: dict[int, float] = {}
        self._stale: set[tuple[str, int, str]] = set()
        # Of conversations, of messages, and of facts: whether it has conversations, and is within some.
        self._deleted: dict[tuple[bool, bool], DeletionSet] = {}
        self._values: set[str] = set()

    def add(self, deleted: Iterable[DeletionSet]) -> None:
        """Remember deletions for as long as the program runs: ids are never reused."""
        for each in deleted:
            self._conversations |= each.conversations
            self._messages |= each.messages
            self._stale |= each.stale
            self._deleted_within_at |= dict.fromkeys(each.within, time.monotonic())
            if each.conversations:
                self._exchanges |= each.exchanges
            elif not each.within:
                self._known |= each.passages
            kind = bool(each.conversations), bool(each.within)
            earlier = self._deleted.get(kind)
            self._deleted[kind] = united(earlier, each) if earlier else each

    def release_texts(self) -> None:
        """Free what recognizes quotes by their text, up to 50 MB for each kind; the ids stay."""
        self._values.clear()
        for kind, each in self._deleted.items():
            self._deleted[kind] = replace(each, text=TextFingerprints(()))

    def add_values(self, changes: Iterable[Change]) -> None:
        """Remember forgotten values: nothing that workers derived before may bring them back."""
        self._values |= {each.value for each in changes if isinstance(each, ValueForgotten)}

    def deletions(self, cursor: Connection, changes: Iterable[Change]) -> list[DeletionSet]:
        """Return what changes will delete, read while it is still there."""
        every = tuple(changes)
        found: list[DeletionSet] = []
        if messages := [each for each in every if isinstance(each, MessagesForgotten)]:
            wanted = chain.from_iterable(each.message_ids for each in messages)
            own = {each.conversation_id for each in messages}
            found.append(with_stamps(cursor, message_deletion_set(cursor, own, tuple(wanted))))
        if ids := [
            each.conversation_id for each in every if isinstance(each, ConversationForgotten)
        ]:
            found.append(conversation_deletion_set(cursor, ids))
        if facts := [each.fact_id for each in every if isinstance(each, FactForgotten)]:
            found.append(fact_deletion_set(cursor, "fact", facts))
        if memories := [each.memory_id for each in every if isinstance(each, MemoryForgotten)]:
            found.append(fact_deletion_set(cursor, "memory", memories))
        return found

    def without(self, changes: tuple[Change, ...], read: Callable[..., Any]) -> tuple[Change, ...]:
        """Return `changes` without what would bring deleted data back. `read` is that of the store."""
        if not (self._deleted or self._values):
            return changes
        kept = (self._kept(change) for change in changes if not self._has_value(change))
        left = tuple(change for change in kept if change is not None)
        return self._without_stale(left, read) if self._messages else left

    def _without_stale(
        self, changes: tuple[Change, ...], read: Callable[..., Any]
    ) -> tuple[Change, ...]:
        """Return `changes` without what was derived from messages before they were deleted.

        What has the present stamp of its source is not stale: the messages were imported again. The work
        is found again. A compaction, which has no stamp, is left out for some minutes; a later turn
        prepares it.
        """
        stale = {
            key[:2]
            for each in changes
            if (key := _derived(each)) in self._stale and read(present_stamp, *key[:2]) != key[2]
        }
        gone: set[int] = set()
        left: list[Change] = []
        for change in changes:
            match change:
                case SummaryPut(kind=kind, conversation_id=own) if kind == _COMPACTION:
                    deleted_at = self._deleted_within_at.get(own, float("-inf"))
                    is_stale = time.monotonic() - deleted_at < _COMPACTED_WITHIN_S
                case SummaryPut() | ExtractionDone():
                    is_stale = _derived(change)[:2] in stale
                case FactPut(fact=fact):
                    is_stale = ("exchange", fact.exchange_id) in stale
                    is_stale = is_stale or fact.message_id in self._messages
                    gone |= {fact.id} if is_stale else set()
                case ToolSummaryPut(message_id=each):
                    is_stale = each in self._messages
                    gone |= {change.id} if is_stale else set()
                case (
                    TagsChanged(automatic=True)
                    | ConversationEdited(title_origin=TitleOrigin.SUMMARISER)
                ):
                    is_stale = ("conversation", change.conversation_id) in stale
                case _:
                    is_stale = False
            if not is_stale:
                left.append(change)
        return tuple(_without_passages(each, stale, gone) for each in left)

    def _has_value(self, change: Change) -> bool:
        if not (self._values and isinstance(change, _DERIVED)):
            return False
        text = codec.dumps((change,))
        return any(without_value(text, each) != text for each in self._values)

    def _kept(self, change: Change) -> Change | None:
        match change:
            case MessagesAdded(messages=messages):
                stay = [m for m in messages if m.conversation_id not in self._conversations]
                return MessagesAdded(tuple(self._redacted(stay))) if stay else None
            case PassagesPut(passages=passages):
                left = (p for p in passages if p.conversation_id not in self._conversations)
                return replace(change, passages=tuple(p for p in left if p.id not in self._known))
            case FactPut(fact=known) | MemoryPut(memory=known):
                is_deleted = known.conversation_id in self._conversations or known.id in self._known
                return None if is_deleted else change
            case PromptStored(prompt=prompt) if prompt.conversation_id not in self._conversations:
                return PromptStored(self._without_quotes(prompt))
            case ReplyGrew(exchange_id=exchange_id):
                if exchange_id in self._exchanges:
                    return None
                text = change.text
                for each in (
                    self._deleted.values() if is_recall_reply(Role.ASSISTANT, change.model) else ()
                ):
                    text = redact_answer(text, QuoteContext(each, True, each.within))
                return replace(change, text=text)
            case SettingPut(key=key, value_json=str(value)) if key == PROBES:
                return SettingPut(key, probes_without(value, self._exchanges))
            case ConversationForgotten():
                return change
            case _:
                return None if _conversation_of(change) in self._conversations else change

    def _redacted(self, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield messages of a reply without quotes of deleted text by tools or Recall."""
        calls: dict[str, str] = {}
        for message in messages:
            calls |= call_arguments(message.blocks)
            for each in self._deleted.values():
                message = redact_message(message, calls, QuoteContext(each, True, each.within))  # noqa: PLW2901
            yield message

    def _without_quotes(self, prompt: StoredPrompt) -> StoredPrompt:
        """Return a prompt without quotes of deleted text."""
        parts = (
            replace(
                part,
                pieces=tuple(
                    piece
                    for piece in part.pieces
                    if piece.conversation_id not in self._conversations
                    and not self._is_known(piece)
                    and not self._quotes_messages(piece)
                    and not (
                        part.kind is PlanPartKind.PROFILE
                        and any(each.text.matches(piece.text) for each in self._deleted.values())
                    )
                ),
            )
            for part in prompt.parts
        )
        items = (each for each in prompt.items if each.conversation_id not in self._conversations)
        return replace(prompt, parts=tuple(parts), items=tuple(items))

    def _quotes_messages(self, piece: PromptPiece) -> bool:
        """Return whether a prompt quotes deleted messages of a conversation that stays."""
        return any(
            piece.conversation_id in each.within
            and any(map(each.text.matches, piece.text.split("\n")))
            for each in self._deleted.values()
        )

    def _is_known(self, piece: PromptPiece) -> bool:
        """Return whether a prompt quotes a deleted fact or memory, named by its id."""
        known = _KNOWN.match(piece.text)
        return known is not None and any(
            int(known[1]) in each.passages for each in self._deleted.values()
        )


def _derived(change: Change) -> tuple[str, int, str]:
    """Return the kind, the source and the stamp of what a change derives; ("", 0, "") for nothing."""
    match change:
        case SummaryPut(kind=kind, source_id=each, source_hash=stamp):
            return kind, each, stamp
        case ExtractionDone(exchange_id=each, source_hash=stamp):
            return "exchange", each, stamp
    return "", 0, ""


def _without_passages(change: Change, stale: set[tuple[str, int]], gone: set[int]) -> Change:
    """Return a change without the passages of stale summaries, facts and tool summaries."""
    if not isinstance(change, PassagesPut):
        return change
    passages = (
        each
        for each in change.passages
        if each.id not in gone and (each.kind.removesuffix("_summary"), each.source_id) not in stale
    )
    return replace(change, passages=tuple(passages))


def _conversation_of(change: Change) -> int | None:
    """Return the conversation that a change belongs to, if any."""
    if isinstance(change, ConversationPut):
        return change.conversation.id
    owner = getattr(change, "exchange", None) or getattr(change, "prompt", None)
    owner = owner or getattr(change, "write", None) or change
    found: int | None = getattr(owner, "conversation_id", None)
    return found
