"""Recalled items of a prompt: everything that was found, whether selected, and why not."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.passages import PassageKind
from app.domain.recall import MatchScore, PromptPiece, RecalledItem, RecallLayer
from app.memory.growing_quotation import GrowingQuotation
from app.memory.recalled_text import size_of
from app.memory.token_budget import tokens_of

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


def _hint_order(entry: ItemEntry) -> tuple[bool, float]:
    item = entry.item
    return item.kind is PassageKind.CONVERSATION_SUMMARY, -item.relevance


def _normalized(text: str) -> str:
    return " ".join(text.casefold().split())
