"""Search over everything that was said: a question in, results ready to be shown.

What ranks is `app.index`; where passages stand is `app.storage.passages`; questions find their place
in a space through `meaning`. Here they meet, with the filters, the places to jump to and the snippets.
"""

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from app.domain.errors import IndexUnavailable
from app.domain.events import Changed
from app.domain.ids import ConversationId, PartId, part_id, passage_of
from app.domain.passages import (
    PassageKind,
    SearchAnswer,
    SearchQuery,
    SearchResult,
)
from app.index.calibration import Background
from app.index.evidence import judged
from app.index.id_set import IdSet
from app.index.query import parse_query, sentence_query
from app.index.question import Question, read_question
from app.index.ranking import Cosines, Ranked, neighbourhood, rank
from app.index.text_index import TantivyTextIndex
from app.index.text_ranking import Survey
from app.memory.index_sync import IndexSync
from app.memory.meaning import Look, Meaning
from app.memory.results import Results
from app.memory.side_results import (
    SIDE_KINDS,
    by_words_and_meaning,
    most_of_a_kind,
    with_sides,
)
from app.storage.passages import Passages
from app.storage.settings import Settings
from app.storage.store import Store

CANDIDATES = 120  # of each list: by words, by the words around, by meaning

_SIDE_CANDIDATES = 60  # of a kind of which a few are shown
_NO_ANSWER = 0.25  # at most is the relevance of a turn that only asks
_BEHIND_BEST = 0.5  # and at most this share of the best answer's
_ALL = 1_000_000


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to look: passages allowed (None: all) but those left out; `candidates` of each list.

    `kind` says that all allowed are of one kind, where that is known: it is faster then.
    """

    allowed: IdSet | None
    left_out: IdSet
    candidates: int = CANDIDATES
    kind: PassageKind | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """Passages that do not rank among turns.

    `unasked` are all that a plain search leaves out, `apart` those that rank with turns under no
    filter: summaries of exchanges, what is `unanswered`, and `sides`, which rank by kind and hold no
    hidden ones.
    """

    unasked: IdSet
    hidden: IdSet
    apart: IdSet
    unanswered: IdSet
    sides: Mapping[PassageKind, IdSet]


@dataclass(frozen=True, slots=True)
class Considered:
    """What ranks, before it is ranked; `cosines` and `background` None where words alone do.

    `passages` is about how many could have been found.
    """

    question: Question
    survey: Survey
    cosines: Cosines | None
    background: Background | None
    passages: int


def ranking_of(found: Considered, prior: float = 0.0) -> list[Ranked]:
    """Return the parts best first, with the relevance that search shows and recall is decided by.

    `prior` are log odds of it.
    """
    ranked = rank(found.question, found.survey, found.cosines)
    return judged(ranked, found.survey, found.cosines, found.background, found.passages, prior)


@dataclass(frozen=True, slots=True)
class Inspection:
    """All that decides a search: the parts ranked, best first, and why.

    `considered` may hold more parts than are ranked; None when nothing ranks, because filters alone
    list what there is by date. `problem` says why meaning takes no part, if it should.
    """

    query: SearchQuery
    ranked: tuple[Ranked, ...]
    considered: Considered | None
    problem: str = ""


class SearchService:
    """Answers searches. Thread-safe; every call blocks."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        index: TantivyTextIndex,
        sync: IndexSync,
        meaning: Meaning | None = None,
    ) -> None:
        """Search in `index`, kept by `sync`; without `meaning` by words alone."""
        self._passages = Passages(store)
        self._results = Results(self._passages, settings)
        self._index = index
        self._sync = sync
        self._meaning = meaning
        self._standing: Standing | None = None
        self._lock = threading.Lock()
        store.subscribe(self._on_changed)

    def search(
        self,
        text: str,
        limit: int = 20,
        kinds: Collection[PassageKind] | None = None,
        *,
        by_meaning: bool = True,
        among: Collection[int] | None = None,
    ) -> SearchAnswer:
        """Return what the search box's language finds, best first.

        Without `by_meaning` words alone rank, which takes no embedding; `among` are the passages that
        may be found, None for all. Exchanges' summaries are
        found only when `kinds` asks for them: the turns they are made of rank better. Facts,
        memories, tool summaries and manual pages rank apart, each kind by itself, and take a quarter
        of the places at most from turns, unless `kinds` asks for them. So do turns that nobody
        answered, by their words, behind all that may be an answer. Raises InvalidInput for a
        query or limit that cannot be taken, IndexUnavailable.
        """
        started = time.perf_counter()
        query = parse_query(text, limit)
        look: Look | None = None
        if query.is_list:
            results = self._results.of(query, self._listed(query, kinds, among))
        else:
            look = self.look(query) if by_meaning else None
            results = self._found(query, look, kinds, among)
        took_ms = (time.perf_counter() - started) * 1000
        problem = self._meaning.problem if self._meaning and by_meaning else ""
        return SearchAnswer(
            text, tuple(results), took_ms, self._sync.covered_share, look is not None, problem
        )

    def by_sentence(
        self, sentence: str, limit: int, kinds: Collection[PassageKind]
    ) -> tuple[SearchResult, ...]:
        """Return what a sentence finds among passages of some kinds, best first.

        It is taken as plain words, whatever it holds; archived conversations are left out. Raises
        like `search`.
        """
        query = sentence_query(sentence, limit)
        return tuple(self._found(query, self.look(query), kinds))

    def parts_ranked(
        self,
        text: str,
        conversation_ids: Collection[ConversationId] = (),
        *,
        by_meaning: bool = True,
    ) -> list[PartId]:
        """Return the parts that a question finds in some conversations (none: in all), best first.

        For measuring the ranking: nothing is grouped, cut or shown. Raises like `search`.
        """
        query = sentence_query(text)
        own = IdSet(self._passages.of_conversations(conversation_ids))
        look = self.look(query) if by_meaning else None
        scope = Scope(own if conversation_ids else None, self.standing().unasked)
        ranked = self._ranked(query, look, scope)
        return [each.part_id for each in ranked]

    def inspect(self, text: str, parts: Collection[PartId] = ()) -> Inspection:
        """Return what decides the search for `text`, for explaining it. Raises like `search`.

        If none of `parts` ranks, because no list names them or a filter leaves them out, they are
        looked at all the same.
        """
        query = parse_query(text)
        scope = self._scope(query, None)
        if query.is_list:
            whole = replace(query, limit=_ALL)
            return Inspection(query, tuple(self._listed(whole, None)), None)
        look = self.look(query)
        found = self.considered(query, look, scope)
        ranked = ranking_of(found)
        if parts and not any(each.part_id in parts for each in ranked):
            found = self.considered(query, look, scope, parts)
        return Inspection(
            query, tuple(ranked), found, self._meaning.problem if self._meaning else ""
        )

    def _found(
        self,
        query: SearchQuery,
        look: Look | None,
        kinds: Collection[PassageKind] | None,
        among: Collection[int] | None = None,
    ) -> list[SearchResult]:
        """Return what words find, best first; without `kinds`, turns with the rest beside them."""
        scope = self._scope(query, kinds)
        if among is not None:
            chosen = IdSet(among)
            allowed = chosen if scope.allowed is None else scope.allowed & chosen
            scope = replace(scope, allowed=allowed)
        ranked = self._ranked(query, look, scope)
        if kinds is not None and set(kinds) <= set(SIDE_KINDS):
            ranked = by_words_and_meaning(ranked)
        ranked = ranked if look is not None else _with_words(ranked)
        sides = self._sides(query, look, scope.allowed) if kinds is None else []
        if kinds is None or PassageKind.TURN in kinds:
            most = max((_BEHIND_BEST * each.relevance for each in ranked[:1]), default=1.0)
            sides.append(self._unanswered(query, scope.allowed, min(most, _NO_ANSWER)))
        most = most_of_a_kind(query.limit, len({passage_of(each.part_id) for each in ranked}))
        rankings = [(ranked, query.limit), *((side, most) for side in sides)]
        results, *beside = self._results.of_each(query, rankings)
        return with_sides(results, beside, query.limit)

    def _sides(
        self, query: SearchQuery, look: Look | None, allowed: IdSet | None
    ) -> list[list[Ranked]]:
        """Return what is found of each kind that ranks apart; there may be more of it than of turns."""
        ranked = []
        for kind, side in self.standing().sides.items():
            kept = side if allowed is None else side & allowed
            if len(kept):
                scope = Scope(kept, IdSet(), _SIDE_CANDIDATES, kind)
                ranked.append(by_words_and_meaning(self._ranked(query, look, scope)))
        return ranked

    def _unanswered(self, query: SearchQuery, allowed: IdSet | None, most: float) -> list[Ranked]:
        """Return the turns that only ask, at most so relevant.

        The same question asked before holds all of its words, and answers none of them.
        """
        standing = self.standing()
        asked = standing.unanswered
        kept = asked.without(standing.hidden) if allowed is None else asked & allowed
        if not len(kept):
            return []
        ranked = _with_words(self._ranked(query, None, Scope(kept, IdSet(), _SIDE_CANDIDATES)))
        return [each.judged(min(each.relevance, most)) for each in ranked]

    def look(self, query: SearchQuery) -> Look | None:
        """Return the query's place in the answering space, None where words alone can find."""
        if self._meaning is None or not query.words:
            return None
        return self._meaning.look(read_question(query.words).asked)

    def _ranked(self, query: SearchQuery, look: Look | None, scope: Scope) -> list[Ranked]:
        """Return the best parts, best first: the candidates of each list, ranked by everything."""
        return ranking_of(self.considered(query, look, scope))

    def considered(
        self,
        query: SearchQuery,
        look: Look | None,
        scope: Scope,
        parts: Collection[PartId] = (),
    ) -> Considered:
        """Return what is known of the candidates of each list, and of `parts`.

        For whoever ranks in a scope of their own. Raises IndexUnavailable.
        """
        question = read_question(query.words)
        asked = replace(query, words=question.asked) if question.asked else query
        try:
            found = self._index.candidates(
                asked, scope.candidates, scope.allowed, scope.left_out, scope.kind
            )
            found = found.union(parts)
            if look is None:
                survey = self._index.survey(asked, found)
                return Considered(question, survey, None, None, self.size(scope))
            near = look.index.search(look.vector, scope.candidates, scope.allowed, scope.left_out)
            survey = self._index.survey(asked, found.union(hit.part_id for hit in near))
        except IndexUnavailable:
            self._sync.wake()  # it may be for it to build the index anew
            raise
        cosines = look.index.cosines(look.vector, neighbourhood(survey))
        return Considered(question, survey, cosines, look.background, self.size(scope))

    def size(self, scope: Scope) -> int:
        """Return about how many passages a scope has."""
        if scope.allowed is not None:
            return len(scope.allowed)
        return max(1, self._index.passage_count - len(scope.left_out))

    def _scope(self, query: SearchQuery, kinds: Collection[PassageKind] | None) -> Scope:
        if kinds is None and not _has_filters(query):
            return Scope(None, self.standing().unasked)
        allowed = IdSet(self._passages.allowed(query, kinds))
        standing = self.standing()
        return Scope(allowed, standing.unanswered if kinds else standing.apart)

    def _listed(
        self,
        query: SearchQuery,
        kinds: Collection[PassageKind] | None,
        among: Collection[int] | None = None,
    ) -> list[Ranked]:
        """Return the newest passages that the filters leave, when there is nothing to rank by."""
        left_out = self._index.holding(query)
        newest = self._passages.newest(query, kinds or (PassageKind.TURN,))
        kept = [
            each for each in newest if each not in left_out and (among is None or each in among)
        ][: query.limit]
        return [Ranked(part_id(each, 0), 0.0, 1.0, None, 1.0) for each in kept]

    def standing(self) -> Standing:
        """Return what is left out unasked, and what ranks apart; kept until something changes."""
        with self._lock:
            if self._standing is None:
                hidden = IdSet(self._passages.hidden())
                unanswered = IdSet(self._passages.unanswered())
                apart = unanswered | IdSet(self._passages.of_kind(PassageKind.EXCHANGE_SUMMARY))
                sides = {}
                for kind in SIDE_KINDS:
                    side = IdSet(self._passages.of_kind(kind))
                    sides[kind] = side.without(hidden)
                    apart |= side
                self._standing = Standing(hidden | apart, hidden, apart, unanswered, sides)
            return self._standing

    def _on_changed(self, changed: Changed) -> None:
        if changed.conversations or changed.passages:
            with self._lock:
                self._standing = None


def _with_words(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Return the parts of passages that hold any word of the query.

    By words alone, what merely stands beside them is no find.
    """
    holding = {passage_of(each.part_id) for each in ranked if each.coverage > 0}
    return [each for each in ranked if passage_of(each.part_id) in holding]


def _has_filters(query: SearchQuery) -> bool:
    return bool(
        query.titles
        or query.tags
        or query.models
        or query.after
        or query.before
        or query.archived
        or query.pinned
    )
