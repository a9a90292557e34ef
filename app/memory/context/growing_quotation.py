"""Growing quotations: turns and summaries quoted by their best unit, then by more.

The best units of all quotations come first, whatever they belong to; what is left of the budget
completes the most relevant ones, since an answer often has none of the question's words.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.domain.recall import (
    PromptPiece,
    QuoteUnit,
    RetrievedConversation,
    RetrievedDocument,
    RetrievedExchange,
)
from app.language.sentences import content_terms
from app.memory.context import text as recalled_text
from app.memory.context.text import size_of
from app.memory.context.token_budget import TokenBudget
from app.memory.facts import may_be_same

_LEAST_WORTH = 0.1  # of a further unit, times the relevance of its turn
_COMPLETED = 0.9  # of the best relevance
_SHORT_BYTES = 600  # of what is left of a turn: to cut it saves little
_LARGE_BYTES = 800  # of a turn with its first unit: a line of code brings its fence
_NEARLY = 0.5  # of the best worth
_TRIED = 6  # units
_SAID_SHARE = 0.6  # of the words of a statement are in one unit that says the same


@dataclass(slots=True)
class GrowingQuotation:
    """A turn or a summary with the units that are quoted so far, by the number of their text.

    The texts that are `files` are not completed: each sentence of them is quoted for its worth. It is
    newer than the turns with the links `older`.
    """

    relevance: float
    texts: tuple[tuple[QuoteUnit, ...], ...]
    draw: Callable[[Mapping[int, set[int]], frozenset[str]], PromptPiece]
    chosen: dict[int, set[int]] = field(default_factory=dict)
    heading: str = ""
    place: int = 0
    files: frozenset[int] = frozenset()
    older: frozenset[str] = frozenset()

    def piece(self) -> PromptPiece:
        return self.render(self.chosen)

    def render(self, chosen: Mapping[int, set[int]]) -> PromptPiece:
        return self.draw(chosen, self.older)

    def mark_newer(self, budget: TokenBudget, older: frozenset[str]) -> None:
        """Mark it as newer than some turns, if there is room."""
        marked = self.older | older
        if budget.change(self.heading, self.place, self.draw(self.chosen, marked)):
            self.older = marked

    @property
    def is_complete(self) -> bool:
        """Whether nothing of it is left out."""
        return next(self.places(), None) is None

    def places(self) -> Iterator[tuple[float, int, int]]:
        """Yield the worth, text and place of the units that are not chosen."""
        for text, units in enumerate(self.texts):
            for place, unit in enumerate(units):
                if place not in self.chosen.get(text, ()):
                    yield unit.worth, text, place

    def with_unit(self, text: int, place: int) -> dict[int, set[int]]:
        return self.chosen | {text: {*self.chosen.get(text, ()), place}}

    def put(self, budget: TokenBudget, heading: str, *before: PromptPiece) -> bool:
        """Add its first unit to the block, after other pieces; return whether there was room."""
        chosen = self._first()
        placed = budget.put(heading, *before, self.render(chosen))
        if placed is not None:
            self.heading, self.place, self.chosen = heading, placed, chosen
        return placed is not None

    def _first(self) -> dict[int, set[int]]:
        """Return the best unit, or a nearly as good one if that is much shorter."""
        ranked = sorted(self.places(), key=lambda each: (-each[0], each[1], each[2]))
        least = _NEARLY * ranked[0][0] if ranked else 0.0
        good = [self.with_unit(*at) for worth, *at in ranked[:_TRIED] if worth >= least]
        small = (each for each in good if size_of(self.render(each).text) <= _LARGE_BYTES)
        return next(small, good[0] if good else {})

    def extend(self, budget: TokenBudget, text: int, place: int) -> bool:
        """Quote one more unit if there is room; return whether there was."""
        chosen = self.with_unit(text, place)
        if not budget.change(self.heading, self.place, self.render(chosen)):
            return False
        self.chosen = chosen
        return True

    def say(self, budget: TokenBudget, statement: str) -> bool:
        """Quote the unit that says the same as a statement; return whether it exists and fits."""
        words = set(content_terms(statement))
        for text, units in enumerate(self.texts):
            for place, unit in enumerate(units):
                shared = words.intersection(content_terms(unit.text))
                is_said = len(shared) >= _SAID_SHARE * len(words)
                if words and is_said and may_be_same(statement, unit.text):
                    return place in self.chosen.get(text, ()) or self.extend(budget, text, place)
        return False


def quotation_of_summary(found: RetrievedConversation) -> GrowingQuotation:
    def draw(chosen: Mapping[int, set[int]], _: object) -> PromptPiece:
        return recalled_text.conversation_piece(found, chosen.get(0, ()))

    return GrowingQuotation(found.match.relevance, (found.summary,), draw)


def quotation_of_turn(found: RetrievedExchange, title: str | None) -> GrowingQuotation:
    """Return the quotation of a turn, with a `title` if it stands alone."""

    def draw(chosen: Mapping[int, set[int]], older: frozenset[str]) -> PromptPiece:
        return recalled_text.exchange_piece(found, chosen, title, older)

    files = frozenset(number for number, each in enumerate(found.texts) if each.file)
    texts = tuple(each.units for each in found.texts)
    return GrowingQuotation(found.match.relevance, texts, draw, files=files)


def quotation_of_document(found: RetrievedDocument) -> GrowingQuotation:
    def draw(chosen: Mapping[int, set[int]], _: object) -> PromptPiece:
        return recalled_text.document_piece(found, chosen.get(0, ()))

    return GrowingQuotation(found.match.relevance, (found.units,), draw)


def extend_quotations(quoted: Sequence[GrowingQuotation], budget: TokenBudget) -> None:
    """Quote further units, best first; then the rest of relevant and of short turns."""
    waiting = [
        (quotation.relevance * worth, -number, -text, -place)
        for number, quotation in enumerate(quoted)
        for worth, text, place in quotation.places()
        if quotation.relevance * worth > _LEAST_WORTH
    ]
    for _, number, text, place in sorted(waiting, reverse=True):
        quoted[-number].extend(budget, -text, -place)
    best = max((each.relevance for each in quoted), default=0.0)
    for each in sorted(quoted, key=lambda one: -one.relevance):
        left = (place for place in each.places() if place[1] not in each.files)
        replies_first = sorted((text == 0, text, place) for _, text, place in left)
        rest_bytes = sum(size_of(each.texts[text][place].text) for _, text, place in replies_first)
        if each.chosen and (each.relevance >= _COMPLETED * best or rest_bytes <= _SHORT_BYTES):
            for _, text, place in replies_first:
                if not each.extend(budget, text, place):
                    break
