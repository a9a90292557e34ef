"""What was forgotten in this run: nothing that is still on its way may bring it back.

A worker that summarises a conversation, a reply under way, or an edit of a fact may hand in its changes
after that was forgotten; they are dropped before they reach the journal.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationPut,
    DraftPut,
    ExchangePut,
    ExtractionDone,
    FactPut,
    MemoryPut,
    MessagesAdded,
    PassagesPut,
    PromptKept,
    ReplyGrew,
    SettingPut,
    SummaryPut,
    TagsChanged,
    ToolSummaryPut,
)
from app.domain.conversations import Message, Role
from app.domain.facts import Fact, Memory
from app.domain.recalls import KeptPrompt, Piece
from app.domain.turn_text import is_quoting
from app.storage.leaving import Leaving
from app.storage.mentions import PROBES, probes_without
from app.storage.quotes import Host, answer_without
from app.storage.unquote import calls_of, message_without

_KNOWN = re.compile(r"- (?:fact|memory) (\d+) · ")  # as `app.memory.recalled_text` begins it


class Gone:
    """What was forgotten in this run. The writer thread owns it."""

    def __init__(self) -> None:
        self._conversations: set[int] = set()
        self._exchanges: set[int] = set()
        # Forgotten by itself: a fact of a conversation may stay for another's sake.
        self._learned: set[int] = set()
        self._leaving: list[Leaving] = []

    def __bool__(self) -> bool:
        return bool(self._leaving)

    def add(self, leaving: Iterable[Leaving]) -> None:
        """Remember what was forgotten, for as long as the program runs: ids are never reused."""
        for each in leaving:
            self._conversations |= each.conversations
            self._exchanges |= each.exchanges
            self._learned |= each.passages if not each.conversations else set()
            self._leaving.append(each)

    def without(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        """Return `changes` without what would bring something back."""
        kept = (self._kept(change) for change in changes)
        return tuple(change for change in kept if change is not None)

    def _kept(self, change: Change) -> Change | None:
        match change:
            case MessagesAdded(messages=messages):
                stay = [m for m in messages if m.conversation_id not in self._conversations]
                return MessagesAdded(tuple(self._unquoted(stay))) if stay else None
            case PassagesPut(passages=passages):
                left = (p for p in passages if p.conversation_id not in self._conversations)
                return replace(change, passages=tuple(p for p in left if p.id not in self._learned))
            case FactPut() | MemoryPut():
                return self._kept_learned(change)
            case PromptKept(prompt=prompt) if prompt.conversation_id not in self._conversations:
                return PromptKept(self._without_quotes(prompt))
            case ReplyGrew(exchange_id=exchange_id):
                return None if exchange_id in self._exchanges else self._unquoted_part(change)
            case SettingPut(key=key, value_json=str(value)) if key == PROBES:
                return SettingPut(key, probes_without(value, self._exchanges))
            case _:
                return None if _conversation_of(change) in self._conversations else change

    def _kept_learned(self, change: FactPut | MemoryPut) -> Change | None:
        known: Fact | Memory = change.fact if isinstance(change, FactPut) else change.memory
        is_gone = known.conversation_id in self._conversations or known.id in self._learned
        return None if is_gone else change

    def _unquoted(self, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield messages of a reply without what its tools, or Recall, quote of what was forgotten."""
        calls: dict[str, str] = {}
        for message in messages:
            calls |= calls_of(message.blocks)
            for each in self._leaving:
                message = message_without(message, calls, Host(each, knows_ids=True))  # noqa: PLW2901
            yield message

    def _unquoted_part(self, part: ReplyGrew) -> ReplyGrew:
        text = part.text
        for each in self._leaving if is_quoting(Role.ASSISTANT, part.model) else ():
            text = answer_without(text, Host(each, knows_ids=True))
        return replace(part, text=text)

    def _without_quotes(self, prompt: KeptPrompt) -> KeptPrompt:
        """Return a prompt without what it quotes of what was forgotten."""
        parts = (
            replace(
                part,
                pieces=tuple(
                    piece
                    for piece in part.pieces
                    if piece.conversation_id not in self._conversations
                    and not self._is_learned(piece)
                ),
            )
            for part in prompt.parts
        )
        items = (each for each in prompt.items if each.conversation_id not in self._conversations)
        return replace(prompt, parts=tuple(parts), items=tuple(items))

    def _is_learned(self, piece: Piece) -> bool:
        """Return whether a prompt quotes a fact or saved text that was forgotten, named by its id."""
        known = _KNOWN.match(piece.text)
        return known is not None and any(int(known[1]) in each.passages for each in self._leaving)


def _conversation_of(change: Change) -> int | None:
    match change:
        case PromptKept(prompt=prompt):
            return prompt.conversation_id
        case ConversationPut(conversation=conversation):
            return conversation.id
        case ExchangePut(exchange=exchange):
            return exchange.conversation_id
        case (
            ConversationEdited(conversation_id=concerned)
            | TagsChanged(conversation_id=concerned)
            | SummaryPut(conversation_id=concerned)
            | DraftPut(conversation_id=concerned)
            | ExtractionDone(conversation_id=concerned)
            | ToolSummaryPut(conversation_id=concerned)
        ):
            return concerned
        case _:
            return None
