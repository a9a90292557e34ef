"""Explanation of a search: rank, feature scores and obstacles of a turn.

Uses the ranking that the search itself uses (`SearchService.inspect`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.domain.conversations import Conversation, Exchange, ExchangeStatus
from app.domain.diagnostics import Explanation, FeatureScore, Obstacle, ObstacleCause, QueryWord
from app.domain.ids import ExchangeId, PartId, PassageId, passage_id_of
from app.domain.passages import PassageKind, SearchQuery
from app.domain.text import one_line
from app.domain.translation import format_percent, tr
from app.index.query import single_filters
from app.index.ranking import FEATURES, Ranked, features, weights
from app.index.relevance import RankingInput, ranked_with_relevance
from app.index.text_index import TantivyTextIndex
from app.memory.search.coverage import why_no_vector
from app.memory.search.scope import CANDIDATES
from app.memory.search.service import SearchInspection, SearchService
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.passages.queries import Passages
from app.storage.tables.passages.recall_reads import covered_turns
from app.storage.tables.settings import Settings

LIMIT = 20  # results of the search box
_QUESTION_CHARS = 200
FEATURE_LABELS = {
    "words": "Words of the question in the message or a fact from it",
    "context_words": "Words of the question in and around the message",
    "coverage": "Share of the question's words in the message or a fact from it",
    "cosine": "Similarity in meaning of the message or a fact from it",
    "context_cosine": "Similarity in meaning of the messages around it",
    "tokens": "Similarity in meaning, word by word",
    "turn_words": "Words of the question in the other message of the turn",
    "answers_words": "It replies to a message with these words",
    "answers_cosine": "It replies to a message of similar meaning",
    "speaker_named": "Its speaker is named in the question",
    "time_told": "It mentions a time, and the question asks for one",
    "dated": "Its date is near one in the question",
    "asking": "It asks a question",
    "own_side": "The user wrote it to an assistant",
    "preference": "It states a preference or an instruction",
}
_LEAST = 0.005  # points that are shown


class Explainer:
    """Explains searches. Thread-safe; every call blocks for about as long as two searches."""

    def __init__(
        self, store: Store, settings: Settings, index: TantivyTextIndex, search: SearchService
    ) -> None:
        self._store = store
        self._settings = settings
        self._index = index
        self._search = search
        self._passages = Passages(store)
        self._exchanges = Exchanges(store)
        self._conversations = Conversations(store)

    def explain(
        self, question: str, exchange_id: ExchangeId, limit: int = LIMIT, project: str | None = None
    ) -> Explanation:
        """Return how `question`, in the search language, finds a turn.

        `limit` is the number of results shown, `project` the uid of the project that the question
        is asked in; its boundary concerns recall, not the user's own search. Raises NotFound for a
        deleted turn, InvalidInput for an invalid question, IndexUnavailable.
        """
        exchange = self._exchanges.get(exchange_id)
        passage = self._passage_of(exchange_id)
        texts = list(self._passages.texts([passage])) if passage is not None else []
        parts = tuple(part.id for text in texts for part in text.parts)
        seen = self._search.inspect(question, parts)
        conversation = self._conversations.get(exchange.conversation_id)  # not older than `seen`
        best = _best_of(seen, parts)
        rank, twin_rank, count = self._place(seen.ranked, passage)
        case = _ExplainedTurn(
            question, exchange, conversation, passage, parts, seen, best, rank, twin_rank, limit
        )
        messages = self._passages.messages_of([best.part_id] if best else [])
        asked = self._passages.questions([exchange_id]).get(exchange_id, "")
        scored = best if seen.ranking_input else None
        return Explanation(
            question=question,
            exchange_id=exchange_id,
            conversation_id=conversation.id,
            conversation_title=conversation.title,
            turn_number=exchange.turn_number,
            user_question=one_line(asked, _QUESTION_CHARS),
            rank=rank,
            ranked_count=count,
            message_id=messages.get(best.part_id) if best else None,
            score=scored.score if scored else None,
            relevance=scored.relevance if scored else None,
            cosine=best.cosine if best else None,
            coverage=scored.coverage if scored else None,
            floor=self._settings.real("rag_min_similarity"),
            points=_points(seen, best),
            words=self._words(seen, best),
            obstacles=(*self._obstacles(case), *self._boundary_obstacles(conversation, project)),
            by_meaning=case.is_by_meaning,
            notice=seen.problem,
        )

    def rank(self, question: str, exchange_id: ExchangeId) -> int | None:
        """Return the rank of a turn among all results, from 1; None when it is not found.

        Raises as `explain`.
        """
        self._exchanges.get(exchange_id)
        return self._place(self._search.inspect(question).ranked, self._passage_of(exchange_id))[0]

    def _passage_of(self, exchange_id: ExchangeId) -> PassageId | None:
        return next(iter(self._passages.of_source(PassageKind.TURN, exchange_id)), None)

    def _place(
        self, ranked: Sequence[Ranked], passage: PassageId | None
    ) -> tuple[int | None, int | None, int]:
        """Return three numbers: a passage's rank, that of a branch with its message, all results.

        Each turn is one result, and so are two branches that share the message found.
        """
        messages = self._passages.messages_of(each.part_id for each in ranked)
        shown: dict[object, int] = {}
        rank: int | None = None
        twin_rank: int | None = None
        count = 0
        for each in ranked:
            own = passage_id_of(each.part_id)
            alias = ("message", messages.get(each.part_id, -each.part_id))
            if own in shown:
                continue
            if alias in shown:
                if own == passage and rank is None and twin_rank is None:
                    twin_rank = shown[alias]
                continue
            count += 1
            shown[own] = shown[alias] = count
            if own == passage:
                rank, twin_rank = count, None
        return rank, twin_rank, count

    def _words(self, seen: SearchInspection, best: Ranked | None) -> tuple[QueryWord, ...]:
        """Return the content words of the query as typed, and whether the message contains them.

        Or a fact from it, as in the ranking.
        """
        query, ranked = seen.query, seen.ranking_input
        if not query.words:
            return ()
        has_facts = ranked is not None and not ranked.question.is_keywords
        weighty = self._index.document_frequencies(query).keys()
        words = []
        for word in dict.fromkeys(query.words.split()):
            alone = SearchQuery(words=word)
            if weighty & self._index.document_frequencies(alone).keys():
                found = self._index.candidate_table(
                    alone, [best.part_id] if best else [], with_facts=has_facts
                )
                words.append(QueryWord(word, bool(found.coverage.any())))
        return tuple(words)

    def _obstacles(self, case: "_ExplainedTurn") -> list[Obstacle]:
        """Return what keeps a turn from being shown, the most decisive first."""
        found = list(_conversation_obstacles(case))
        if case.passage is None:
            return found or [UNFINISHED]
        found += self._filter_obstacles(case, case.passage)
        found += self._word_obstacles(case, case.passage)
        if is_unanswered := case.passage in self._search.pools().unanswered:
            found.append(UNANSWERED)
        found += _rank_obstacles(case, is_left_out=bool(found))
        lacks_vector = case.is_by_meaning and case.best is not None and case.best.cosine is None
        if lacks_vector and not is_unanswered:
            turns = self._store.read(covered_turns, [case.exchange.id], None)
            why = next((why_no_vector(turn, self._settings) for turn in turns), "")
            words = tr("It is found by its words only. {reason}").format(
                reason=why or tr("The search model has not read it yet.")
            )
            found.append(Obstacle(ObstacleCause.NO_VECTOR, words))
        floor = self._settings.real("rag_min_similarity")
        if case.seen.ranking_input and case.best is not None and case.best.relevance < floor:
            found.append(
                Obstacle(
                    ObstacleCause.WEAK,
                    tr(
                        "Its relevance of {relevance} is below {floor}: a search shows it as a weak match, and recall {outcome}."
                    ).format(
                        relevance=format_percent(case.best.relevance),
                        floor=format_percent(floor),
                        outcome=self._weak_outcome(case.best),
                    ),
                    tr("The settings are rag_min_similarity and rag_hint_similarity."),
                )
            )
        return found

    def _boundary_obstacles(
        self, conversation: Conversation, project: str | None
    ) -> Iterator[Obstacle]:
        """Yield why recall in a project does not reach the conversation, if it does not."""
        boundary = self._search.boundaries.of(project)
        if boundary.allows(conversation.project):
            return
        own = self._search.boundaries.of(conversation.project).project
        asking = boundary.project
        if own is not None and own.is_bounded:
            words = tr(
                'It belongs to the other project "{name}", which keeps its memory to itself: search shows it, and only conversations of that project recall it.'
            ).format(name=own.name)
        else:
            words = tr(
                'It is outside the project "{name}", whose conversations recall nothing from elsewhere.'
            ).format(name=asking.name if asking is not None else "")
        yield Obstacle(
            ObstacleCause.OTHER_PROJECT,
            words,
            tr("Move the conversation, or change the recall rule of the project."),
        )

    def _weak_outcome(self, best: Ranked) -> str:
        if best.relevance >= self._settings.real("rag_hint_similarity"):
            return tr("gives it in one line, unless a turn of its conversation answers")
        return tr("leaves it out")

    def _filter_obstacles(self, case: "_ExplainedTurn", passage: PassageId) -> Iterator[Obstacle]:
        """Yield the filters of the query that exclude it, each tried alone."""
        hidden = case.conversation.private or case.conversation.deleted_at is not None
        for name, own in single_filters(case.question):
            alone = replace(own, archived=case.conversation.archived)
            if not hidden and passage not in self._passages.allowed(alone, None):
                yield Obstacle(
                    ObstacleCause.FILTER, tr("The filter {name} excludes it.").format(name=name)
                )

    def _word_obstacles(self, case: "_ExplainedTurn", passage: PassageId) -> Iterator[Obstacle]:
        query, parts = case.seen.query, case.parts
        if not len(self._index.candidate_table(SearchQuery(words=query.words), parts).parts):
            yield Obstacle(
                ObstacleCause.NOT_INDEXED,
                tr("It is not in the text index yet."),
                tr("It will be within a second, or when the index is rebuilt."),
            )
            return
        if query.excluded and passage in self._index.excluded_passages(query):
            words = ", ".join(f"'-{each}'" for each in query.excluded)
            yield Obstacle(
                ObstacleCause.EXCLUDED_WORD,
                tr("It contains words that {words} excludes.").format(words=words),
            )
        for phrase in query.phrases:
            if not len(self._index.candidate_table(SearchQuery(phrase, (phrase,)), parts).parts):
                yield Obstacle(
                    ObstacleCause.PHRASE,
                    tr('None of its messages contains the phrase "{phrase}".').format(
                        phrase=phrase
                    ),
                )


@dataclass(frozen=True, slots=True)
class _ExplainedTurn:
    """A turn and a question, with everything known about them."""

    question: str
    exchange: Exchange
    conversation: Conversation
    passage: PassageId | None
    parts: tuple[PartId, ...]
    seen: SearchInspection
    best: Ranked | None
    rank: int | None
    twin_rank: int | None
    limit: int

    @property
    def is_by_meaning(self) -> bool:
        """Whether vectors were used."""
        return self.seen.ranking_input is not None and self.seen.ranking_input.nearness is not None


UNFINISHED = Obstacle(
    ObstacleCause.UNFINISHED,
    "The turn has no reply yet, so it is not indexed.",
    "It will be indexed when the reply is complete.",
)
UNANSWERED = Obstacle(
    ObstacleCause.UNFINISHED,
    "It is only a question: Recall answered it, or the reply failed. Search finds it by its words, "
    "after turns with answers, and recall leaves it out.",
    "Ask again with a language model.",
)


def _conversation_obstacles(case: _ExplainedTurn) -> Iterator[Obstacle]:
    conversation, asks_archived = case.conversation, case.seen.query.archived
    if conversation.private:
        yield Obstacle(
            ObstacleCause.PRIVATE,
            tr("Its conversation is private: it is never indexed or recalled."),
        )
    if conversation.deleted_at is not None:
        yield Obstacle(
            ObstacleCause.TRASH,
            tr("Its conversation is in the trash."),
            tr("Restore the conversation to find it."),
        )
    if conversation.archived and not asks_archived:
        yield Obstacle(
            ObstacleCause.ARCHIVED,
            tr("Its conversation is archived."),
            tr("Add is:archived to the question."),
        )
    if asks_archived and not conversation.archived:
        yield Obstacle(ObstacleCause.FILTER, tr("The filter is:archived excludes it."))
    if case.passage is not None and case.exchange.status is ExchangeStatus.RUNNING:
        yield UNFINISHED


def _rank_obstacles(case: _ExplainedTurn, *, is_left_out: bool) -> Iterator[Obstacle]:
    if case.twin_rank is not None:
        yield Obstacle(
            ObstacleCause.OTHER_BRANCH,
            tr(
                "Another branch with the same message is shown instead, as number {twin_rank}."
            ).format(twin_rank=case.twin_rank),
        )
    elif case.rank is not None and case.rank > case.limit:
        yield Obstacle(
            ObstacleCause.LIMIT,
            tr("It is number {rank}, and the first {limit} results are shown.").format(
                rank=case.rank, limit=case.limit
            ),
            tr("A more precise question or a filter moves it up."),
        )
    elif case.rank is None and case.best is not None and not is_left_out:
        by = tr("by its words, by the words around it or by its meaning")
        if not case.is_by_meaning:
            by = tr("by its words or by the words around it")
        yield Obstacle(
            ObstacleCause.NOT_A_CANDIDATE,
            tr("It is not among the best {count} {by}.").format(count=CANDIDATES, by=by),
        )


def _best_of(seen: SearchInspection, parts: Sequence[PartId]) -> Ranked | None:
    """Return the best message of a turn: as ranked, else as it would rank among the candidates."""
    candidates = ranked_with_relevance(seen.ranking_input) if seen.ranking_input else []
    return next((each for each in (*seen.ranked, *candidates) if each.part_id in parts), None)


def _points(seen: SearchInspection, best: Ranked | None) -> tuple[FeatureScore, ...]:
    """Return the points of each feature for a message and for the first result."""
    if seen.ranking_input is None or best is None:
        return ()
    own = _points_by_feature(seen.ranking_input, best.part_id)
    first = _points_by_feature(seen.ranking_input, seen.ranked[0].part_id) if seen.ranked else None
    points = [
        FeatureScore(
            name,
            FEATURE_LABELS[name],
            own.get(name, 0.0),
            None if first is None else first.get(name, 0.0),
        )
        for name in FEATURES
    ]
    counting = [each for each in points if abs(each.points) + abs(each.best_points or 0) >= _LEAST]
    return tuple(sorted(counting, key=lambda each: -abs(each.points)))


def _points_by_feature(found: RankingInput, part: PartId) -> dict[str, float]:
    rows = [int(each) for each in found.table.parts]
    if part not in rows:
        return {}
    own = weights(found.question, found.table, by_meaning=found.nearness is not None)
    points = features(found.question, found.table, found.nearness)[rows.index(part)] * own
    return dict(zip(FEATURES, map(float, points), strict=True))
