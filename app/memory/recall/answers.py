"""Answers: the sentences of found passages that answer, for tools and for Recall."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.domain.conversations import Role
from app.domain.passages import PassageKind
from app.domain.recall import QuoteUnit
from app.domain.results import FoundAnswer, SearchResult
from app.domain.text import is_question
from app.domain.translation import quoted, tr
from app.domain.turns import NAMELESS
from app.memory.recall.quotation import CUT, excerpt, of_file, safe_title
from app.memory.recall.ranking import PreparedQuery, prepare
from app.memory.recall.retrieved import corrected_statements, quotable
from app.memory.search.service import SearchService
from app.storage.engine.store import Store
from app.storage.tables.passages.queries import Passages

_QUESTION_CHARS = 120
_ANSWER_CHARS = 400
_HINT_CHARS = 160
_BESIDE_QUESTION = 0.6  # share of the worth of what a user says beside a question
_BY_WORDS = 0.6  # share of the worth by words beside the cosine
_COMPARED_OF_EACH, _COMPARED = 24, 72  # sentences whose meaning is compared with the question's
_WORDS = re.compile(r"\w{2}")
_FENCE = re.compile(r"\s*(?:`{3}|~{3})")
_WORTH_ADDING = 0.5  # share of the best sentence's worth
_SHORT_CHARS = 160  # a shorter quotation takes the sentences that follow


Similarities = Callable[[Sequence[str]], Sequence[float]]


@dataclass(frozen=True, slots=True)
class _SideText:
    """A text of a passage in units: whether a user sent it in a turn, and the name of its file."""

    is_user: bool
    units: Sequence[QuoteUnit]
    file: str = ""

    @property
    def asks(self) -> bool:
        return self.is_user and any(is_question(each.text) for each in self.units)

    @property
    def answers(self) -> bool:
        return any(each.worth > 0 for each in self.units)

    @property
    def share(self) -> float:
        """The share of its units' worth that counts; text beside a user's question counts less."""
        return _BESIDE_QUESTION if self.asks else 1.0

    def may_answer(self, unit: QuoteUnit) -> bool:
        """Return whether a unit may answer: no question of the user's, and more than markup."""
        if self.is_user and is_question(unit.text):
            return False
        return bool(_WORDS.search(unit.text)) and not _FENCE.match(unit.text)

    def weighed(self, cosines: Mapping[str, float], *, in_prose: bool) -> "_SideText":
        """Return it with cosines added to the worth of its units; `in_prose`: only of sentences."""
        return replace(
            self,
            units=[
                replace(each, worth=self._weight(each, cosines, in_prose=in_prose))
                for each in self.units
            ],
        )

    def _weight(self, unit: QuoteUnit, cosines: Mapping[str, float], *, in_prose: bool) -> float:
        if not self.may_answer(unit) or (self.asks and unit.needs):
            return 0.0
        if in_prose and (unit.needs or unit.text.rstrip("*_ ").endswith((":", "："))):
            return 0.0
        return self.share * (_BY_WORDS * unit.worth + max(0.0, cosines.get(unit.text, 0.0)))


class AnswerFinder:
    """Finds what may answer a sentence, best first; nothing that recall would not even hint at."""

    def __init__(self, store: Store, search: SearchService) -> None:
        self._passages = Passages(store)
        self._search = search

    def find(
        self,
        sentence: str,
        limit: int,
        kinds: Collection[PassageKind],
        project: str | None = None,
        topics: tuple[str, ...] = (),
    ) -> Sequence[FoundAnswer]:
        """Return the results with the sentences that answer. Blocking; raises as `search`.

        Only what may be recalled in a project is found, by its uid; None: outside all bounded ones.
        """
        boundary = self._search.boundaries.of(project)
        found = self._search.by_sentence(sentence, limit, kinds, boundary, topics)
        useful = [each for each in found if each.is_hint or not each.is_weak]
        prepared = prepare(self._search, sentence)
        answers = []
        for result, texts in _read(self._passages, useful, prepared):
            sides: dict[bool, list[str]] = {True: [], False: []}
            for each in texts:
                limit_chars = _QUESTION_CHARS if each.is_user else _ANSWER_CHARS
                if not each.file or each.answers or not sides[each.is_user]:
                    best = of_file(each.file, _best(each.units, limit_chars))
                    sides[each.is_user].append(best)
            question, reply = ("\n".join(filter(None, sides[side])) for side in (True, False))
            if question or reply:
                answers.append(FoundAnswer(result, question, reply))
        return answers


def quoted_answers(
    passages: Passages,
    found: Sequence[SearchResult],
    prepared: PreparedQuery,
    similarities: Similarities,
) -> Iterator[FoundAnswer]:
    """Yield results with the few sentences that answer best, whoever said them. Blocking.

    `similarities` gives the cosines of sentences with the question, or none.
    """
    read = list(_read(passages, found, prepared))
    compared: dict[str, None] = {}
    for _, said in read:
        units = [
            (unit, each.share) for each in said for unit in each.units if each.may_answer(unit)
        ]
        best = sorted(units, key=lambda each: -each[0].worth * each[1])[:_COMPARED_OF_EACH]
        compared |= dict.fromkeys(unit.text for unit, _ in best)
    asked = list(compared)[:_COMPARED]
    cosines = dict(zip(asked, similarities(asked), strict=False))
    for result, said in read:
        texts = [each.weighed(cosines, in_prose=result.is_weak) for each in said]
        limit_chars = _HINT_CHARS if result.is_weak else _ANSWER_CHARS
        sides: dict[bool, list[str]] = {True: [], False: []}
        for number, places in sorted(_chosen(texts, limit_chars).items()):
            said_there = texts[number]
            text = excerpt(said_there.units, places).strip(f"{CUT} \n")
            sides[said_there.is_user].append(_of_file_shown(said_there.file, text))
        yield FoundAnswer(result, "\n\n".join(sides[True]), "\n\n".join(sides[False]))


def _of_file_shown(name: str, text: str) -> str:
    """Return a quotation of a file as that of the file, in the language of the window."""
    form = tr("Attached file") if name == NAMELESS else tr("File {name}")
    return f"{form.format(name=quoted(safe_title(name)))}:\n{text}" if name else text


def _read(
    passages: Passages, found: Sequence[SearchResult], prepared: PreparedQuery | None
) -> Iterator[tuple[SearchResult, list[_SideText]]]:
    """Yield the results that still exist, and were not corrected, with their texts."""
    shown = passages.shown(each.passage_id for each in found)
    left_out = corrected_statements(shown, prepared)
    for each in found:
        if each.passage_id not in shown or each.passage_id in left_out:
            continue
        _, text = shown[each.passage_id]
        parts = [part for part in text.said if part.text or part.shown]
        is_turn = each.kind is PassageKind.TURN
        pieces = [
            (is_turn and part.role is Role.USER, file, piece)
            for part in parts
            for file, piece in part.by_source
        ]
        texts = [piece for *_, piece in pieces]
        if prepared is None:
            units: list[tuple[QuoteUnit, ...]] = [(QuoteUnit(text, 0),) for text in texts]
        else:
            units = quotable(prepared, texts, each.relevance)
        yield (
            each,
            [
                _SideText(is_user, own, file)
                for (is_user, file, _), own in zip(pieces, units, strict=True)
            ],
        )


def _chosen(texts: Sequence[_SideText], limit_chars: int) -> dict[int, set[int]]:
    """Return the places of the units to quote, by the number of their text.

    What a user says beside a question is left out when the reply answers, and a statement gets the
    best sentence of its reply.
    """
    ranked = sorted(
        (
            (-unit.worth, number, place)
            for number, said in enumerate(texts)
            for place, unit in enumerate(said.units)
            if unit.worth > 0
        )
    )
    if not ranked:
        return {0: {0}} if texts and texts[0].units else {}
    chosen = _best_places(texts, ranked, limit_chars)
    replied = any(not texts[number].is_user for number in chosen)
    if replied and not texts[ranked[0][1]].asks:
        return {n: places for n, places in chosen.items() if not texts[n].asks}
    best_reply = next(((n, at) for _, n, at in ranked if not texts[n].is_user), None)
    if replied or best_reply is None:
        return chosen
    more = {**chosen, best_reply[0]: {best_reply[1]}}
    return more if _chars(texts, more) <= limit_chars else chosen


def _best_places(
    texts: Sequence[_SideText], ranked: Sequence[tuple[float, int, int]], limit_chars: int
) -> dict[int, set[int]]:
    """Return the best unit and all worth half of it; after a short one the text goes on."""
    best, number, place = ranked[0]
    chosen = {number: {place}}
    for worth, n, at in ranked[1:]:
        more = {**chosen, n: {*chosen.get(n, ()), at}}
        if worth > _WORTH_ADDING * best or _chars(texts, more) > limit_chars:
            break
        chosen = more
    for at in range(place + 1, len(texts[number].units)):
        more = {**chosen, number: {*chosen[number], at}}
        if not texts[number].may_answer(texts[number].units[at]):
            continue
        if _chars(texts, chosen) >= _SHORT_CHARS or _chars(texts, more) > limit_chars:
            break
        chosen = more
    return chosen


def _chars(texts: Sequence[_SideText], chosen: dict[int, set[int]]) -> int:
    return sum(len(excerpt(texts[number].units, places)) for number, places in chosen.items())


def _best(units: Sequence[QuoteUnit], limit_chars: int) -> str:
    """Return the units worth most that fit, in reading order; the best one at least, cut."""
    by_worth = sorted(range(len(units)), key=lambda place: (-units[place].worth, place))
    chosen: list[int] = []
    for place in by_worth:
        if chosen and len(excerpt(units, [*chosen, place])) > limit_chars:
            break
        chosen.append(place)
    return excerpt(units, chosen)[: 2 * limit_chars] if chosen else ""
