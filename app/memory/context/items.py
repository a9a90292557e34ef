"""Recalled items of a prompt: everything that was found, whether selected, and why not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind
from app.domain.recall import (
    MatchScore,
    PromptPiece,
    RecalledItem,
    RecallLayer,
    RecallSettings,
    RetrievalResult,
    RetrievedConversation,
    Verdict,
)
from app.memory.context.growing_quotation import GrowingQuotation
from app.memory.context.text import size_of
from app.memory.context.token_budget import tokens_of

Source = tuple[ConversationId | None, ExchangeId | None, MessageId | None]
_ORDER = (
    RecallLayer.MENTION, RecallLayer.FACT, RecallLayer.CONVERSATION, RecallLayer.HISTORY,
    RecallLayer.HINT, RecallLayer.DOCUMENT, RecallLayer.EARLIER,
)  # fmt: skip


@dataclass(slots=True)
class ItemEntry:
    """An item with its quotation in the block, and the line that may stand there instead."""

    item: RecalledItem
    quotation: GrowingQuotation | None = None
    hint: PromptPiece | None = None


class ItemList:
    """The items of one prompt, in the order in which they were examined."""

    def __init__(self) -> None:
        self._entries: list[ItemEntry] = []
        self._texts: set[str] = set()

    def add(
        self,
        layer: RecallLayer,
        match: MatchScore,
        source: Source,
        content: PromptPiece | GrowingQuotation,
        why_not: str,
        text: str | None = None,
        hint: PromptPiece | None = None,
    ) -> ItemEntry:
        """Add an item, left out for the reason `why_not` unless that is "".

        The `text` of a selected one is remembered for `is_repeated`.
        """
        if not why_not and text is not None:
            self._texts.add(_normalized(text))
        quotation = content if isinstance(content, GrowingQuotation) else None
        piece = content.piece() if isinstance(content, GrowingQuotation) else content
        item = RecalledItem(
            layer, match.kind, match.passage_id, *source, match.relevance, match.cosine,
            match.coverage, tokens_of(size_of(piece.text)), not why_not, why_not,
        )  # fmt: skip
        self._entries.append(ItemEntry(item, quotation, hint))
        return self._entries[-1]

    def is_repeated(self, text: str) -> bool:
        """Return whether a selected item has the same text."""
        return _normalized(text) in self._texts

    def hints(self, may_hint: Callable[[RecalledItem], bool]) -> list[ItemEntry]:
        """Return the entries that may become hints, the most relevant first, summaries last."""
        waiting = [each for each in self._entries if each.hint and may_hint(each.item)]
        return sorted(waiting, key=_hint_order)

    def update_sizes(self) -> None:
        """Set the tokens of items whose quotations have grown."""
        for each in self._entries:
            if each.quotation is not None and each.item.injected and each.quotation.chosen:
                size = size_of(each.quotation.piece().text)
                each.item = replace(each.item, tokens=tokens_of(size))

    def in_order(self) -> tuple[RecalledItem, ...]:
        """Return all items in the order of the prompt; one that became a hint only as that."""
        items = sorted((each.item for each in self._entries), key=_order)
        hints = (item for item in items if item.layer is RecallLayer.HINT)
        hinted = {(item.passage_id, item.exchange_id): item for item in hints}
        return tuple(
            item for item in items if hinted.get((item.passage_id, item.exchange_id), item) is item
        )


def prompt_position(layer: RecallLayer) -> int:
    """Return the position of a layer in the prompt; turns stand with their conversations."""
    return _ORDER.index(RecallLayer.CONVERSATION if layer is RecallLayer.EXCHANGE else layer)


def _order(item: RecalledItem) -> tuple[int, float]:
    """Return the sort key of the prompt; within a layer only hints are sorted."""
    relevance = item.relevance if item.layer is RecallLayer.HINT else 0.0
    return prompt_position(item.layer), -relevance


def _hint_order(entry: ItemEntry) -> tuple[bool, float, bool]:
    """Return the sort key of hints; what replaced a statement comes before the turn that it is as relevant as."""
    item = entry.item
    is_turn = item.kind is PassageKind.TURN
    return item.kind is PassageKind.CONVERSATION_SUMMARY, -item.relevance, is_turn


def _normalized(text: str) -> str:
    return " ".join(text.casefold().split())


SAME_CONVERSATION = "it is in this conversation"
NEVER = "you asked never to use it again"
NOT_THIS_TIME = "you left it out of this message"
QUOTED = "it is already quoted"
IN_PROMPT = "it is already in the prompt"
LEFT_OUT = "its conversation was left out"
SUMMARY_ALONE = "none of its turns is relevant enough"
_FINAL = (SAME_CONVERSATION, NEVER, NOT_THIS_TIME, QUOTED, IN_PROMPT)


@dataclass(frozen=True, slots=True)
class SelectionContext:
    """The conversation of the question; what the prompt contains anyway is not quoted again.

    `turn_numbers` are those of facts' exchanges, as far as known; `can_fetch` when the model has
    the tool that fetches more; `lines` are the texts of what earlier turns recall, which are not
    given again; `left_out` passages are counted and not quoted.
    """

    conversation_id: ConversationId
    question: str
    held: frozenset[MessageId]
    turn_numbers: Mapping[ExchangeId, int] = field(default_factory=dict)
    can_fetch: bool = False
    lines: frozenset[str] = frozenset()
    left_out: frozenset[PassageId] = frozenset()


class Refusals:
    """Reasons against items, "" for none."""

    def __init__(
        self, settings: RecallSettings, context: SelectionContext, found: RetrievalResult
    ) -> None:
        self._settings = settings
        self._context = context
        self._left_out = {  # as a whole
            each.conversation_id
            for each in (*found.mentioned, *found.conversations)
            if is_by_summary(each) and each.match.passage_id in context.left_out
        }

    def refused(
        self,
        match: MatchScore,
        conversation_id: ConversationId | None = None,
        key: str = "rag_min_similarity",
    ) -> str:
        """Return why something is not wanted, or that its relevance is below a setting."""
        if not self._settings.rag_enabled:
            return "rag_enabled is off"
        return self.unwanted(match, conversation_id) or self.below(match, key)

    def unwanted(self, match: MatchScore, conversation_id: ConversationId | None = None) -> str:
        """Return why something is not wanted whatever its relevance."""
        if match.verdict is Verdict.NEVER:
            return NEVER
        if match.passage_id in self._context.left_out or conversation_id in self._left_out:
            return NOT_THIS_TIME
        return SAME_CONVERSATION if conversation_id == self._context.conversation_id else ""

    def may_hint(self, item: RecalledItem) -> bool:
        """Return whether only a limit excludes an item that is relevant enough for a hint."""
        return (
            not item.injected
            and self._settings.rag_enabled
            and item.relevance >= self._settings.rag_hint_similarity
            and item.conversation_id != self._context.conversation_id
            and item.message_id not in self._context.held
            and item.dropped_by not in _FINAL
        )

    def below(self, match: MatchScore, key: str) -> str:
        """Return that the relevance is below the threshold of a setting."""
        threshold: float = getattr(self._settings, key)
        return "" if match.relevance >= threshold else f"{key} is {threshold:g}"

    def over(self, taken: int, key: str) -> str:
        """Return that the limit of a setting is reached."""
        limit: int = getattr(self._settings, key)
        return "" if taken < limit else f"{key} is {limit}"

    def no_room(self, key: str = "rag_max_tokens") -> str:
        """Return that the budget of a setting is used up."""
        return f"{key} is {getattr(self._settings, key)}"


def is_by_summary(found: RetrievedConversation) -> bool:
    """Return whether a conversation was found by its summary, not by a turn."""
    return found.match.kind is PassageKind.CONVERSATION_SUMMARY
