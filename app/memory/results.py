"""Results: the parts that rank best, each turn once, with what a screen shows of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from app.domain.conversations import Role
from app.domain.ids import MessageId, PassageId, passage_of
from app.domain.passages import Part, PassageKind, PassageText, SearchQuery, SearchResult
from app.domain.text import one_line
from app.index.ranking import Ranked
from app.index.snippets import SNIPPET_CHARS, Snippet, matching_snippet, snippet
from app.storage.passage_texts import PassagePlace
from app.storage.passages import Passages
from app.storage.settings import Settings

_CLEARLY = 0.5  # so much more of the question: at .15 every tenth landing was worse
_QUESTION_LIMIT_CHARS = 200
_TELLING_CHARS = 40  # "Thank you, I have noted that." is shorter
_ABOUT_EXCHANGES = (PassageKind.TURN, PassageKind.EXCHANGE_SUMMARY)


class Results:
    """Makes results of rankings. Thread-safe; blocking."""

    def __init__(
        self, passages: Passages, settings: Settings, *, quotes_answers: bool = False
    ) -> None:
        """Cut snippets that show why; with `quotes_answers` never a question that is shown anyway."""
        self._passages = passages
        self._settings = settings
        self._quotes_answers = quotes_answers

    def of(self, query: SearchQuery, ranked: Sequence[Ranked]) -> list[SearchResult]:
        """Return the first results of a ranking: each turn once, at its best message."""
        return self.of_each(query, [(ranked, query.limit)])[0]

    def of_each(
        self, query: SearchQuery, rankings: Sequence[tuple[Sequence[Ranked], int]]
    ) -> list[list[SearchResult]]:
        """Return the first results of several rankings, of each at most so many; read at once."""
        floor = self._settings.share("rag_min_similarity")
        lists = [_List(_by_passage(ranked), limit) for ranked, limit in rankings]
        while any(steps := [each.step() for each in lists]):
            wanted = (passage_of(each.part_id) for each in chain(*steps))
            passages = self._passages.shown(wanted)
            for each, step in zip(lists, steps, strict=True):
                each.take(
                    _Found(r, *passages[p])
                    for r in step
                    if (p := passage_of(r.part_id)) in passages
                )
        return [
            [
                _result(found, floor, found.snippet(query, self._quotes_answers))
                for found in each.found
            ]
            for each in lists
        ]


@dataclass(frozen=True, slots=True)
class _Found:
    """A ranked part with all that a result says of it."""

    ranked: Ranked
    place: PassagePlace
    text: PassageText

    @property
    def part(self) -> Part | None:
        """The part that was found; None where a list names the turn as a whole."""
        return next((each for each in self.text.parts if each.id == self.ranked.part_id), None)

    @property
    def question(self) -> str:
        """What the user began the turn with."""
        asked = (each.text for each in self.text.parts if each.role is Role.USER and each.text)
        return next(asked, "")

    @property
    def message_id(self) -> MessageId | None:
        """The message that was found, or that the turn begins with."""
        return (self.part and self.part.message_id) or self.place.first_message_id

    @property
    def key(self) -> object:
        """What is shown once: a turn and its summary are one place to jump to."""
        place = self.place
        return place.exchange_id if place.kind in _ABOUT_EXCHANGES else (place.kind, place.id)

    @property
    def aliases(self) -> tuple[object, ...]:
        """What else it stands for: a message of several branches, a manual page of several names."""
        kind = self.place.kind
        if kind is PassageKind.MAN_PAGE:
            return (*(("page", part.text) for part in self.text.parts[-1:]),)
        if kind not in _ABOUT_EXCHANGES or self.message_id is None or self.part is None:
            return ()
        return (("message", self.message_id),)

    def snippet(self, query: SearchQuery, quotes_answers: bool) -> Snippet:
        """Return the cut that shows why it was found.

        A question that the result shows anyway is no news: then the rest of the turn is cut, if it
        has the words or `quotes_answers` and says more than "Noted". So is the rest of a manual page, whose title ends with its
        first part.
        """
        if self.place.kind is PassageKind.MAN_PAGE and self.text.parts:
            return snippet(self.text.parts[-1].shown, query)
        best = self.part
        rest = [each for each in self.text.parts if each is not best]
        order = rest if best is None else [*rest, best] if _is_shown(best) else [best, *rest]
        told = sum(len(each.text) for each in rest if each.role is not Role.USER)
        if quotes_answers and best is not None and _is_shown(best) and told >= _TELLING_CHARS:
            order = rest
        for part in order:
            if (cut := matching_snippet(part.shown, query)) is not None and cut.marks:
                return cut
        answers = [each for each in order if each.role is not Role.USER] or order
        return snippet(answers[0].shown, query) if answers else Snippet("")


class _List:
    """One ranking on its way to results: what waits, and what was found, each place once."""

    def __init__(self, waiting: Iterator[Ranked], limit: int) -> None:
        self._waiting = waiting
        self._limit = limit
        self._shown: set[object] = set()
        self.found: list[_Found] = []

    def step(self) -> list[Ranked]:
        """Return what to look at next: as many as are missing."""
        return list(islice(self._waiting, self._limit - len(self.found)))

    def take(self, found: Iterable[_Found]) -> None:
        """Keep what is not shown yet."""
        for each in found:
            if each.key not in self._shown and not self._shown.intersection(each.aliases):
                self._shown.update((each.key, *each.aliases))
                self.found.append(each)


def _by_passage(ranked: Sequence[Ranked]) -> Iterator[Ranked]:
    """Yield the passages of a ranking, best first, each by the part to show: that which says the words.

    The neighbour of what was asked for may rank before it; jumping there would show nothing.
    """
    best: dict[PassageId, Ranked] = {}
    fullest: dict[PassageId, Ranked] = {}
    for each in ranked:
        passage = passage_of(each.part_id)
        best.setdefault(passage, each)
        if each.coverage > fullest.setdefault(passage, each).coverage + _CLEARLY:
            fullest[passage] = each
    for passage, each in best.items():
        full = fullest[passage]
        yield replace(each, part_id=full.part_id, coverage=full.coverage)


def _is_shown(part: Part) -> bool:
    return part.role is Role.USER and len(part.text) <= SNIPPET_CHARS


def _result(found: _Found, floor: float, cut: Snippet) -> SearchResult:
    place, ranked = found.place, found.ranked
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
        user_question=one_line(found.question, _QUESTION_LIMIT_CHARS),
        snippet=cut.text,
        marks=cut.marks,
        created_at=place.created_at,
        model=place.model,
        is_shown=place.is_shown,
    )
