"""Token budget of the recalled block: pieces under their headings, as far as there is room.

The share of the tokens for recall that what was found is worth: the less likely it is that something answers,
the fewer tokens are used, since most are lost where nothing does. The form is fitted by
`packaging/models/fit_budget.py` and stored in `resources/budget.json`, with its cross-validation;
packaging/decisions/0032-recall-threshold.md.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from app.domain.ids import PassageId
from app.domain.recall import (
    PlanPart,
    PlanPartKind,
    PromptPiece,
    RecalledItem,
    RecallLayer,
    RetrievalResult,
)
from app.index.relevance import HIGHEST_RELEVANCE
from app.memory.context import text as recalled_text
from app.memory.context.text import size_of

BYTES_PER_TOKEN = 4
_QUOTING = {
    PlanPartKind.FACTS: (RecallLayer.FACT,),
    PlanPartKind.RELATED: (
        RecallLayer.MENTION,
        RecallLayer.CONVERSATION,
        RecallLayer.EXCHANGE,
        RecallLayer.HISTORY,
    ),
    PlanPartKind.DOCUMENTS: (RecallLayer.DOCUMENT,),
    PlanPartKind.EARLIER: (RecallLayer.EARLIER,),
}
_HEADINGS = {
    PlanPartKind.FACTS: (recalled_text.FACTS,),
    PlanPartKind.RELATED: (
        recalled_text.MENTIONED,
        recalled_text.RELATED,
        recalled_text.HISTORY,
        recalled_text.HINTS,
    ),
    PlanPartKind.DOCUMENTS: (recalled_text.DOCUMENTS,),
    PlanPartKind.EARLIER: (recalled_text.EARLIER,),
}


@dataclass(frozen=True, slots=True)
class RecallRoom:
    """The tokens for recall from other conversations, this one, and documents."""

    related_tokens: int
    earlier_tokens: int
    document_tokens: int


def tokens_of(size_bytes: int) -> int:
    """Return the estimated tokens of so many bytes, rounded up."""
    return -(-size_bytes // BYTES_PER_TOKEN)


class TokenBudget:
    """Pieces under headings within a token budget; the first piece pays for its heading."""

    def __init__(self, budget_tokens: int, introduction: str = "") -> None:
        self._left_bytes = budget_tokens * BYTES_PER_TOKEN
        self._introduction = introduction
        self._pieces: dict[str, list[PromptPiece]] = {}

    def introduce(self, introduction: str) -> None:
        """Begin with another introduction if there are no pieces yet."""
        if not self._pieces:
            self._introduction = introduction

    def left_bytes(self, heading: str) -> int:
        """Return the room for text under a heading."""
        return self._left_bytes - self._opening_bytes(heading)

    def put(self, heading: str, *pieces: PromptPiece) -> int | None:
        """Add pieces if all fit; return the place of the last one, None otherwise."""
        cost = self._opening_bytes(heading) + sum(size_of(piece.text) for piece in pieces)
        if cost > self._left_bytes:
            return None
        self._left_bytes -= cost
        under = self._pieces.setdefault(heading, [])
        under.extend(pieces)
        return len(under) - 1

    def change(self, heading: str, place: int, piece: PromptPiece) -> bool:
        """Replace a piece if there is room; return whether there was."""
        more = size_of(piece.text) - size_of(self._pieces[heading][place].text)
        if more > self._left_bytes:
            return False
        self._left_bytes -= more
        self._pieces[heading][place] = piece
        return True

    def parts(
        self, items: Sequence[RecalledItem], cut: Collection[PassageId] = ()
    ) -> tuple[PlanPart, ...]:
        """Return the non-empty parts, in order, with the passages that `items` quote in full.

        Those in `cut` are quoted in part: another question may need the rest.
        """
        quoted = [each for each in items if each.injected and each.passage_id not in cut]
        parts: list[PlanPart] = []
        for kind, headings in _HEADINGS.items():
            under = [heading for heading in headings if heading in self._pieces]
            if under:
                parts.append(self._part(kind, under, quoted, is_first=not parts))
        return tuple(parts)

    def _part(
        self,
        kind: PlanPartKind,
        headings: Sequence[str],
        quoted: Sequence[RecalledItem],
        *,
        is_first: bool,
    ) -> PlanPart:
        pieces = [PromptPiece(self._introduction)] if is_first and self._introduction else []
        for heading in headings:
            pieces += [PromptPiece(heading), *self._pieces[heading]]
        size = sum(size_of(piece.text) for piece in pieces)
        if is_first and self._introduction:
            size += recalled_text.RECALLED_MARK_BYTES
        sources = tuple(
            dict.fromkeys(each.passage_id for each in quoted if each.layer in _QUOTING[kind])
        )
        return PlanPart(kind, tokens_of(size), False, tuple(pieces), sources=sources)

    def _opening_bytes(self, heading: str) -> int:
        if heading in self._pieces:
            return 0
        opening = "" if self._pieces else self._introduction
        return size_of(opening + heading) + (recalled_text.RECALLED_MARK_BYTES if opening else 0)


_FITTED_FILE = Path(__file__).resolve().parents[3] / "resources" / "budget.json"


def budget_share(found: RetrievalResult) -> float:
    """Return the share (0-1) of the budget for what was found; 1 for what is asked for by name."""
    fitted = _fitted()
    return share_of(best_relevance(found), fitted["exponent"], fitted["least"])


def share_of(relevance: float, exponent: float, least: float) -> float:
    """Return the share (0-1) of the budget for this best relevance."""
    return float(min(1.0, max(least, (relevance / HIGHEST_RELEVANCE) ** exponent)))


def best_relevance(found: RetrievalResult) -> float:
    """Return the best relevance (0-1) found, 0 for nothing; 1 for what is asked for by name."""
    if found.mentioned or found.asked_facts:
        return 1.0
    matches = [each.match for each in found.turns]
    matches += [each.match for each in found.conversations]
    matches += [each.match for each in found.facts]
    return max((each.relevance for each in matches), default=0.0)


@cache
def _fitted() -> Mapping[str, float]:
    found: Mapping[str, float] = json.loads(_FITTED_FILE.read_text(encoding="utf-8"))
    return found
