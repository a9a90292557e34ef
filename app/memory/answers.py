"""What a search finds, as the sentences that answer: for models that look something up."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from app.domain.conversations import Role
from app.domain.passages import PassageKind
from app.domain.recall import QuoteUnit
from app.domain.results import SearchResult
from app.memory.quotation import excerpt
from app.memory.recall_search import PreparedQuery, prepare
from app.memory.retrieved import quotable
from app.memory.search import SearchService
from app.storage.engine.store import Store
from app.storage.tables.passages import Passages

_QUESTION_CHARS = 120
_ANSWER_CHARS = 400


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """A result with what was said: of a turn both sides, of another passage its text as `reply`."""

    result: SearchResult
    question: str
    reply: str


class AnswerFinder:
    """Finds what may answer a sentence, best first; nothing that recall would not even hint at."""

    def __init__(self, store: Store, search: SearchService) -> None:
        self._passages = Passages(store)
        self._search = search

    def find(
        self, sentence: str, limit: int, kinds: Collection[PassageKind]
    ) -> Sequence[FoundAnswer]:
        """Return the results with the sentences that answer. Blocking; raises as `search`."""
        found = self._search.by_sentence(sentence, limit, kinds)
        useful = [each for each in found if each.is_hint or not each.is_weak]
        prepared = prepare(self._search, sentence)
        return [] if not useful else self._quoted(useful, prepared)

    def _quoted(
        self, found: Sequence[SearchResult], prepared: PreparedQuery | None
    ) -> Sequence[FoundAnswer]:
        shown = self._passages.shown(each.passage_id for each in found)
        answers = []
        for each in found:
            if each.passage_id not in shown:
                continue
            _, text = shown[each.passage_id]
            parts = [part for part in text.parts if part.text or part.shown]
            texts = [part.text or part.shown for part in parts]
            if prepared is None:
                units: list[tuple[QuoteUnit, ...]] = [(QuoteUnit(text, 0),) for text in texts]
            else:
                units = quotable(prepared, texts, each.relevance)
            sides: dict[bool, list[str]] = {True: [], False: []}
            for part, own in zip(parts, units, strict=True):
                is_question = each.kind is PassageKind.TURN and part.role is Role.USER
                limit = _QUESTION_CHARS if is_question else _ANSWER_CHARS
                sides[is_question].append(_best(own, limit))
            question, reply = ("\n".join(filter(None, sides[side])) for side in (True, False))
            if question or reply:
                answers.append(FoundAnswer(each, question, reply))
        return answers


def _best(units: Sequence[QuoteUnit], limit_chars: int) -> str:
    """Return the units worth most that fit, in reading order; the best one at least, cut."""
    by_worth = sorted(range(len(units)), key=lambda place: (-units[place].worth, place))
    chosen: list[int] = []
    for place in by_worth:
        if chosen and len(excerpt(units, [*chosen, place])) > limit_chars:
            break
        chosen.append(place)
    return excerpt(units, chosen)[: 2 * limit_chars] if chosen else ""
