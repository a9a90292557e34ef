"""Search results from rankings.

Facts, memories, summaries, manual pages and documents are merged among turns. They are ranked apart, kind by kind:
ranked together with turns, they mostly hurt.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import chain, islice

from app.domain.conversations import Role
from app.domain.ids import MessageId, PassageId, passage_id_of
from app.domain.passages import DOCUMENT_KINDS, PassageKind, PassagePart, PassageText, SearchQuery
from app.domain.results import SearchResult
from app.domain.text import one_line
from app.index.ranking import Ranked
from app.index.snippets import SNIPPET_CHARS, Snippet, marks_in, matching_snippet, snippet
from app.storage.tables.passages.queries import Passages
from app.storage.tables.passages.texts import PassagePlace
from app.storage.tables.settings import Settings

_COVERAGE_MARGIN = 0.5  # of the question more; at .15 every tenth target was worse
_QUESTION_LIMIT_CHARS = 200
_ABOUT_EXCHANGES = (PassageKind.TURN, PassageKind.EXCHANGE_SUMMARY)


class ResultBuilder:
    """Makes results from rankings. Thread-safe; blocking."""

    def __init__(self, passages: Passages, settings: Settings) -> None:
        self._passages = passages
        self._settings = settings

    def of_each(
        self, query: SearchQuery, rankings: Sequence[tuple[Sequence[Ranked], int]]
    ) -> list[list[SearchResult]]:
        """Return the first results of several rankings, each with its limit; read at once.

        Each turn is shown once, at its best message.
        """
        floors = (
            self._settings.real("rag_hint_similarity"), self._settings.real("rag_min_similarity")
        )  # fmt: skip
        lists = [_ResultCollector(_by_passage(ranked), limit) for ranked, limit in rankings]
        while any(steps := [each.step() for each in lists]):
            wanted = (passage_id_of(each.part_id) for each in chain(*steps))
            passages = self._passages.shown(wanted)
            for each, step in zip(lists, steps, strict=True):
                each.take(
                    _FoundResult(r, *passages[p])
                    for r in step
                    if (p := passage_id_of(r.part_id)) in passages
                )
        return [[_result(found, *floors, query) for found in each.found] for each in lists]


@dataclass(frozen=True, slots=True)
class _FoundResult:
    """A ranked part with its place and text."""

    ranked: Ranked
    place: PassagePlace
    text: PassageText

    @property
    def part(self) -> PassagePart | None:
        """The part that was found; None when the turn is listed as a whole."""
        return next((each for each in self.text.parts if each.id == self.ranked.part_id), None)

    @property
    def question(self) -> str:
        """The user's first message of the turn, without the text of files."""
        asked = (each for each in self.text.parts if each.role is Role.USER and each.text)
        for part in asked:
            own = [text for file, text in part.by_source if not file]
            return "\n\n".join(own) or ", ".join(file for file, _ in part.by_source)
        return ""

    @property
    def message_id(self) -> MessageId | None:
        """The message that was found, else the first of the turn."""
        return (self.part and self.part.message_id) or self.place.first_message_id

    @property
    def key(self) -> object:
        """What is shown once: a turn and its summary have the same target."""
        place = self.place
        return place.exchange_id if place.kind in _ABOUT_EXCHANGES else (place.kind, place.id)

    @property
    def aliases(self) -> tuple[object, ...]:
        """Other keys of the same target.

        A message in several branches, a turn in a fork or imported twice, a manual page with
        several names, a document with copies.
        """
        kind = self.place.kind
        if kind in DOCUMENT_KINDS:
            return (*(("page", part.text) for part in self.text.parts[-1:]),)
        if kind not in _ABOUT_EXCHANGES or self.message_id is None or self.part is None:
            return ()
        said = tuple(each.text for each in self.text.parts)
        return ("message", self.message_id), ("copy", self.place.created_at, said)

    def snippet(self, query: SearchQuery) -> Snippet:
        """Return the excerpt that shows why it was found.

        The question is shown anyway, so the rest of the turn is preferred if it contains the words.
        Of a manual page the last part is used; its title ends with the first.
        """
        if self.place.kind in DOCUMENT_KINDS and self.text.parts:
            return snippet(self.text.parts[-1].text, query)
        best = self.part
        rest = [each for each in self.text.said if each is not best]
        order = rest
        if best is not None:
            is_short = not best.pieces and len(best.text) <= SNIPPET_CHARS
            is_shown = best.role is Role.USER and is_short
            order = [*rest, best] if is_shown or best.role is Role.SYSTEM else [best, *rest]
        for part in order:
            if cut := max(_cuts(part, query), key=lambda each: len(each.marks), default=None):
                return cut
        answers = [each for each in order if each.role is not Role.USER] or order
        if not answers:
            return Snippet("")
        file, text = _texts(answers[0])[0]
        return _of_file(file, snippet(text, query))


def _texts(part: PassagePart) -> Sequence[tuple[str, str]]:
    """Return the texts of a part, files first, with their names."""
    return part.pieces[::-1] or (("", part.shown),)


def _cuts(part: PassagePart, query: SearchQuery) -> Iterator[Snippet]:
    """Yield the excerpts of a part's texts that have words of a query."""
    for file, text in _texts(part):
        if (cut := matching_snippet(text, query)) is not None and cut.marks:
            yield _of_file(file, cut)


def _of_file(name: str, cut: Snippet) -> Snippet:
    """Return the excerpt of a file after its name, as what somebody says stands after theirs."""
    if not name:
        return cut
    head = f"{name}: "
    return Snippet(head + cut.text, tuple((a + len(head), b + len(head)) for a, b in cut.marks))


class _ResultCollector:
    """A ranking being turned into results: the parts left, and what was found, each once."""

    def __init__(self, waiting: Iterator[Ranked], limit: int) -> None:
        self._waiting = waiting
        self._limit = limit
        self._shown: set[object] = set()
        self.found: list[_FoundResult] = []

    def step(self) -> list[Ranked]:
        """Return the next parts to read: as many as are missing."""
        return list(islice(self._waiting, self._limit - len(self.found)))

    def take(self, found: Iterable[_FoundResult]) -> None:
        """Add what is not shown yet."""
        for each in found:
            if each.key not in self._shown and not self._shown.intersection(each.aliases):
                self._shown.update((each.key, *each.aliases))
                self.found.append(each)


def _by_passage(ranked: Sequence[Ranked]) -> Iterator[Ranked]:
    """Yield the passages of a ranking, best first, each by the part with the words.

    A neighbor of the matching part may rank before it; opening it would show nothing.
    """
    best: dict[PassageId, Ranked] = {}
    fullest: dict[PassageId, Ranked] = {}
    for each in ranked:
        passage = passage_id_of(each.part_id)
        best.setdefault(passage, each)
        if each.coverage > fullest.setdefault(passage, each).coverage + _COVERAGE_MARGIN:
            fullest[passage] = each
    for passage, each in best.items():
        full = fullest[passage]
        yield replace(each, part_id=full.part_id, coverage=full.coverage)


def _result(
    found: _FoundResult, hint_floor: float, floor: float, query: SearchQuery
) -> SearchResult:
    place, ranked, cut = found.place, found.ranked, found.snippet(query)
    question = one_line(found.question, _QUESTION_LIMIT_CHARS)
    return SearchResult(
        kind=place.kind,
        passage_id=place.id,
        source=place.source,
        conversation_id=place.conversation_id,
        conversation_title=place.conversation_title,
        archived=place.archived,
        turn_number=place.turn_number,
        exchange_id=place.exchange_id,
        message_id=found.message_id,
        relevance=ranked.relevance,
        is_weak=ranked.relevance < floor,
        cosine=ranked.cosine,
        user_question=question,
        snippet=cut.text,
        marks=cut.marks,
        created_at=place.created_at,
        model=place.model,
        is_shown=place.is_shown,
        is_hint=hint_floor <= ranked.relevance < floor,
        question_marks=marks_in(question, query).spans,
        title_marks=marks_in(place.conversation_title, query).spans,
    )


SIDE_KINDS = (
    PassageKind.FACT,
    PassageKind.MEMORY,
    PassageKind.TOOL_SUMMARY,
    PassageKind.MAN_PAGE,
    PassageKind.DOCUMENT,
)

_RANK_OFFSET = 10  # of reciprocal rank fusion: lower means that first places count more


def fused_with_cosine(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Return parts best first, by reciprocal rank fusion of ranking and cosines of passages.

    The ranking was fitted to conversations, where the words of a question recur; manual pages and
    facts use other words. Formula: Cormack, Clarke and Büttcher, SIGIR 2009.
    """
    places: dict[PassageId, int] = {}
    cosines: dict[PassageId, float] = {}
    for each in ranked:
        passage = passage_id_of(each.part_id)
        places.setdefault(passage, len(places))
        if each.cosine is not None:
            cosines[passage] = max(cosines.get(passage, -1.0), each.cosine)
    nearest = sorted(cosines, key=lambda passage: -cosines[passage])
    near = {passage: place for place, passage in enumerate(nearest)}
    scores = {
        passage: _points(place) + (_points(near[passage]) if passage in near else 0.0)
        for passage, place in places.items()
    }
    return sorted(ranked, key=lambda each: -scores[passage_id_of(each.part_id)])


def side_limit(limit: int, turns: int) -> int:
    """Return how many of `limit` results may be of one such kind, when `turns` turns were found.

    A quarter at any time, half where room is left.
    """
    return max(1, limit // 4, min(limit // 2, limit - turns))


def merge_side_results(
    results: Sequence[SearchResult], sides: Sequence[Sequence[SearchResult]], limit: int
) -> list[SearchResult]:
    """Return all results, best first, at most `limit`; each list keeps its own order.

    The side results take at most half of the places, more where room is left; weak ones never
    displace a result that is not weak.
    """
    merged = list(results)
    taken = _taken(results, sides, limit)
    for _ in range(len(results) + sum(map(len, taken)) - limit):
        weak = [place for place, each in enumerate(merged) if each.is_weak]
        merged.pop(weak[-1] if weak else -1)
    for side in taken:
        merged = list(merge(merged, side, key=lambda each: -each.relevance))
    return merged


def _taken(
    results: Sequence[SearchResult], sides: Sequence[Sequence[SearchResult]], limit: int
) -> list[list[SearchResult]]:
    """Return what is shown of each side list: all first ones, then the second; weak ones last."""
    room = max(1, limit // 2, limit - len(results))
    by_place = sorted(
        (each.is_weak, place, number)
        for number, side in enumerate(sides)
        for place, each in enumerate(side)
    )
    strong = [each for each in by_place if not each[0]][:room]
    weak_room = limit - len(strong) - sum(not each.is_weak for each in results)
    weak = [each for each in by_place if each[0]][: max(0, min(room - len(strong), weak_room))]
    kept = {(number, place) for _, place, number in chain(strong, weak)}
    return [
        [each for place, each in enumerate(side) if (number, place) in kept]
        for number, side in enumerate(sides)
    ]


def _points(place: int) -> float:
    return 1 / (_RANK_OFFSET + place)
