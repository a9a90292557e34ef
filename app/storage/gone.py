"""What was forgotten in this run: nothing that is still on its way may bring it back.

A worker that summarises a conversation, or a reply under way, may hand in its changes after the
conversation was forgotten; they are dropped before they reach the journal.
"""

from collections.abc import Iterable
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
    SummaryPut,
    TagsChanged,
    ToolSummaryPut,
)
from app.domain.recalls import KeptPrompt


class Gone:
    """Ids of conversations and exchanges that were forgotten. The writer thread owns it."""

    def __init__(self) -> None:
        self._conversations: set[int] = set()
        self._exchanges: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._conversations)

    def add(self, conversations: Iterable[int], exchanges: Iterable[int]) -> None:
        """Remember what was forgotten, for as long as the program runs: ids are never reused."""
        self._conversations.update(conversations)
        self._exchanges.update(exchanges)

    def without(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        """Return `changes` without what would bring something back."""
        kept = (self._kept(change) for change in changes)
        return tuple(change for change in kept if change is not None)

    def _kept(self, change: Change) -> Change | None:
        match change:
            case MessagesAdded(messages=messages):
                left = tuple(m for m in messages if m.conversation_id not in self._conversations)
                return MessagesAdded(left) if left else None
            case PassagesPut(passages=passages):
                stay = tuple(p for p in passages if p.conversation_id not in self._conversations)
                return replace(change, passages=stay)
            case PromptKept(prompt=prompt) if prompt.conversation_id not in self._conversations:
                return PromptKept(self._without_quotes(prompt))
            case ReplyGrew(exchange_id=exchange_id):
                return None if exchange_id in self._exchanges else change
            case _:
                return None if _conversation_of(change) in self._conversations else change

    def _without_quotes(self, prompt: KeptPrompt) -> KeptPrompt:
        """Return a prompt without what it quotes of conversations that were forgotten."""
        parts = (
            replace(
                part,
                pieces=tuple(
                    piece
                    for piece in part.pieces
                    if piece.conversation_id not in self._conversations
                ),
            )
            for part in prompt.parts
        )
        items = (each for each in prompt.items if each.conversation_id not in self._conversations)
        return replace(prompt, parts=tuple(parts), items=tuple(items))


def _conversation_of(change: Change) -> int | None:
    match change:
        case FactPut(fact=fact):
            return fact.conversation_id
        case MemoryPut(memory=memory):
            return memory.conversation_id
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
