"""Recall: facts, conversations, turns and earlier messages that answer a question.

More is returned than a prompt takes, also what is not relevant, so that the plan can say why it was
left out; `app.memory.context` decides what is sent.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, islice

from app.domain.conversations import ANY_RECALL, RecallChoice
from app.domain.errors import MemoryOff
from app.domain.ids import ConversationId, PartId, PassageId, passage_id_of
from app.domain.passages import Passage, PassageKind, SearchQuery
from app.domain.recall import (
    RecallSettings,
    RetrievalResult,
    RetrievedConversation,
    RetrievedExchange,
    SegmentContext,
    Verdict,
    is_recall_on,
)
from app.domain.results import FoundAnswer, SearchResult
from app.index.id_set import IdSet
from app.index.ranking import Ranked
from app.memory.recall.answers import quoted_answers
from app.memory.recall.facts import STATEMENT_LOG_ODDS, FactRecall
from app.memory.recall.mentions import MentionReader
from app.memory.recall.named import DocumentRecall, NamedRecall
from app.memory.recall.ranking import (
    PreparedQuery,
    best_by_passage,
    prepare,
    problems,
    ranked_in,
    repeated_turns,
    with_feedback_and_age,
)
from app.memory.recall.retrieved import (
    SPARE,
    Retrieval,
    match_score,
    ordered_exchanges,
    quotable,
    refused,
    retrieved_exchanges,
    retrieved_messages,
    with_corrections,
    with_pins,
    with_spare,
)
from app.memory.search.results import ResultBuilder
from app.memory.search.scope import Boundary, SearchScope
from app.memory.search.service import SearchService
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.passages.queries import Passages
from app.storage.tables.passages.recall_reads import RecallReads
from app.storage.tables.prompts import Feedback
from app.storage.tables.settings import Settings

_CONSIDERED = 120  # passages; later ones never reached a prompt
_SUMMARIES = 20  # that are considered
_MEMORY_OFF = "Memory is off in this conversation, so nothing is recalled"
_OFF_ONCE = "Memory was off for this message, so nothing is recalled"
_SEND_AGAIN = "Send it again with memory on."
_SWITCH_ON = "Turn on 'Use memory here' in the Conversation menu."
_WARM_UP_QUESTION = "Which questions about work, home and travel were answered last year?"

_Find = tuple[Ranked, Passage]


class RecallService:
    """Retrieves for questions. Thread-safe; every call blocks; `retrieve` never raises."""

    def __init__(self, store: Store, settings: Settings, search: SearchService) -> None:
        self._passages = Passages(store)
        self._conversations = Conversations(store)
        self._reads = RecallReads(store)
        self._fact_recall = FactRecall(store, search)
        self._document_recall = DocumentRecall(store, search)
        self._named_recall = NamedRecall(store, self._fact_recall)
        self._feedback = Feedback(store)
        self._results = ResultBuilder(self._passages, settings)
        self._search = search
        self._mentions = MentionReader(store, search)

    def retrieve(
        self,
        question: str,
        conversation_id: ConversationId | None,
        segment: SegmentContext,
        settings: RecallSettings,
        is_cancelled: Callable[[], bool] = lambda: False,
        by_meaning: bool = True,
    ) -> RetrievalResult:
        """Return what was found for a question in a conversation (None: a new one).

        Excluded are that conversation, private, deleted and archived conversations, non-answers,
        what the user marked never to use again, and what the recall rules of projects exclude.
        Small talk finds nothing; a question that names only days finds their conversations, and one for
        what is known about the user all facts. A part that fails or is cancelled (`is_cancelled` is called
        between the parts) is empty, and `notice` says so. Without `by_meaning` only words are
        searched, which takes tens of milliseconds.
        """
        started = time.perf_counter()
        retrieval = Retrieval(conversation_id, segment, settings, is_cancelled, by_meaning)
        retrieval.attempt(lambda: self._retrieve(question, retrieval))
        found, retrieval.found = retrieval.found, RetrievalResult()
        retrieval.attempt(lambda: self._keep_inside(found, retrieval), is_last=True)
        found = retrieval.found
        took_ms = (time.perf_counter() - started) * 1000
        return replace(found, took_ms=took_ms, notice="\n".join(dict.fromkeys(retrieval.notices)))

    def warm_up(self) -> None:
        """Run a query and drop its result, so that the user's first one is fast.

        The first query loads and compiles what takes 0.1 s, and a multiple on a busy machine: more
        than a message waits for recall.
        """
        self.retrieve(_WARM_UP_QUESTION, None, SegmentContext(), RecallSettings())

    def wait_for_meaning(self, timeout_s: float) -> bool:
        """Wait until search by meaning works or is known to fail; return whether that is so."""
        vectors = self._search.vector_search
        return vectors is None or vectors.wait_until_settled(timeout_s)

    def answers(
        self,
        question: str,
        recent: Sequence[str],
        conversation_id: ConversationId,
        limit: int,
        choice: RecallChoice = ANY_RECALL,
    ) -> Sequence[FoundAnswer] | None:
        """Return the best answers after the user's `recent` messages in a conversation, for Recall.

        At most `limit` turns, half as many facts and saved texts, and as many passages of
        documents, by the rules of `retrieve`; `is_weak` marks those that no prompt would get. If
        the message mentions conversations, only their turns are searched; if it asks about days,
        turns of these are listed, and all facts if it asks for what is known about the user. None
        for a question that names nothing to look up. Raises MemoryOff where memory is off, and
        KnownError.
        """
        conversation = self._conversations.by_ids([conversation_id]).get(conversation_id)
        if not is_recall_on(conversation):
            raise MemoryOff(_MEMORY_OFF, _SWITCH_ON)
        if not choice.is_on:
            raise MemoryOff(_OFF_ONCE, _SEND_AGAIN)
        verdicts = self._feedback.verdicts()
        excluded = refused(verdicts) | IdSet(choice.left_out)
        boundary = self._search.boundaries.of(conversation.project if conversation else None)
        scope = self._other_conversations(conversation_id, excluded, boundary)
        if not choice.mentioned:
            named = self._named_recall.ranked(question, recent, scope, excluded, boundary, limit)
            if listed := self._listed(named):
                return self._still_within(boundary, listed, excluded)
        prepared = prepare(self._search, question, recent)
        if prepared is None:
            return None
        known: Sequence[Ranked] = ()
        filed: Sequence[Ranked] = ()
        if choice.mentioned:
            readable = self._mentions.readable(choice.mentioned, boundary)
            own = IdSet(self._passages.of_conversations(readable))
            pools = self._search.pools()
            scope = SearchScope(own.without(excluded | pools.separate), IdSet())
            excluded |= pools.sides[PassageKind.FACT]  # newer ones may be from other conversations
        ranked = self._without_repeats(prepared, scope)
        if not choice.mentioned:
            known = self._fact_recall.ranked(prepared, excluded, limit, boundary)
            filed = self._document_recall.ranked(prepared, excluded, boundary)
        best_first = self._best_first(prepared, (known, ranked, filed), verdicts, limit)
        similarities = self._similarities(question)
        quoted = [*quoted_answers(self._passages, best_first, prepared, similarities)]
        return self._still_within(boundary, quoted, excluded)

    def _listed(self, ranked: Sequence[Ranked]) -> Sequence[FoundAnswer]:
        """Return passages as they are, by their beginning."""
        (found,) = self._results.of_each(SearchQuery(), [(ranked, len(ranked))])
        return [
            FoundAnswer(each, each.user_question, each.snippet.removeprefix(each.user_question))
            for each in found
        ]

    def _best_first(
        self,
        prepared: PreparedQuery,
        found: tuple[Sequence[Ranked], Sequence[Ranked], Sequence[Ranked]],
        verdicts: Mapping[PassageId, Verdict],
        limit: int,
    ) -> list[SearchResult]:
        """Return results of statements, turns and documents together: half as many beside the turns."""
        statements, turns, documents = found
        now, half = datetime.now(UTC), limit // 2
        pinned = with_pins(verdicts, self._fact_recall.known(statements))
        rankings = (
            (with_feedback_and_age(statements, pinned, {}, 0.0, now), half),
            (with_feedback_and_age(turns, verdicts, {}, 0.0, now), limit),
            (with_feedback_and_age(documents, verdicts, {}, 0.0, now), half),
        )
        results = chain(*self._results.of_each(prepared.query, rankings))
        return sorted(results, key=lambda each: -each.relevance)

    def _still_within(
        self, boundary: Boundary, quoted: Sequence[FoundAnswer], excluded: IdSet
    ) -> Sequence[FoundAnswer]:
        """Return the answers still inside the boundary, with facts that replaced what they state."""
        found = (each.result.conversation_id for each in quoted)
        inside = self._search.boundaries.still_within(boundary.uid, found)
        now_within = self._search.boundaries.of(boundary.uid)
        kept = [
            each
            for each in quoted
            if each.result.conversation_id in inside
            and (
                each.result.kind is not PassageKind.DOCUMENT
                or now_within.holds(each.result.passage_id)
            )
        ]
        return self._fact_recall.with_newer(kept, excluded, now_within, self._listed)

    def _similarities(self, question: str) -> Callable[[Sequence[str]], Sequence[float]]:
        vectors = self._search.vector_search
        return lambda texts: vectors.similarities(question, texts) if vectors else ()

    def _retrieve(self, question: str, retrieval: Retrieval) -> None:
        settings = retrieval.settings
        segment = retrieval.segment
        is_named = self._named_recall.is_asked(question, segment.recent)
        if is_named and settings.rag_enabled and not segment.mentioned:
            retrieval.attempt(lambda: self._asked_for(question, retrieval))
            if retrieval.found.mentioned:
                return
        prepared = prepare(
            self._search, question, retrieval.segment.recent, by_meaning=retrieval.by_meaning
        )
        if prepared is None:
            return
        if retrieval.by_meaning:
            retrieval.notices += problems(self._search, prepared)
        retrieval.verdicts = self._feedback.verdicts()  # without the votes nothing may be recalled
        if settings.rag_enabled:
            if segment.mentioned:
                retrieval.attempt(lambda: self._mentioned(prepared, retrieval))
            retrieval.attempt(lambda: self._related(prepared, retrieval))
            retrieval.attempt(lambda: self._statements(prepared, retrieval))
            retrieval.attempt(lambda: self._documents(prepared, retrieval))
        if settings.auto_rag_enabled and segment.exchange_ids:
            retrieval.attempt(lambda: self._earlier(prepared, retrieval))

    def _asked_for(self, question: str, retrieval: Retrieval) -> None:
        boundary = self._boundary(retrieval)
        scope = self._other_conversations(retrieval.conversation_id, IdSet(), boundary)
        self._named_recall.retrieve(question, retrieval, scope, boundary)

    def _keep_inside(self, found: RetrievalResult, retrieval: Retrieval) -> None:
        """Keep what is still inside the boundary: a conversation may have been moved."""
        kept = self._search.boundaries.still_within(
            retrieval.segment.project, found.quoted_conversations
        )
        retrieval.found = found.of_conversations(kept)

    def _mentioned(self, prepared: PreparedQuery, retrieval: Retrieval) -> None:
        segment, here = retrieval.segment, retrieval.conversation_id
        wanted = [each for each in segment.mentioned if each != here]
        found = self._mentions.read(
            prepared, wanted, retrieval.verdicts, segment.quoted, self._boundary(retrieval)
        )
        retrieval.found = replace(retrieval.found, mentioned=found)

    def _related(self, prepared: PreparedQuery, retrieval: Retrieval) -> None:
        settings, verdicts = retrieval.settings, retrieval.verdicts
        scope = self._other_conversations(
            retrieval.conversation_id, refused(verdicts), self._boundary(retrieval)
        )
        ranked = retrieval.unquoted(self._ranked_turns_and_summaries(prepared, scope))
        heads = self._reads.heads(passage_id_of(each.part_id) for each in ranked)
        best = [
            (each, head)
            for each in retrieval.with_feedback(ranked, heads)
            if (head := heads.get(passage_id_of(each.part_id))) and head.conversation_id is not None
        ]
        unique: dict[str, _Find] = {}  # without forks and second imports
        best_finds: dict[ConversationId, _Find] = {}
        for find in best:
            if find[1].kind is PassageKind.TURN:
                unique.setdefault(find[1].content_hash, find)
            if find[1].conversation_id is not None:
                best_finds.setdefault(find[1].conversation_id, find)
        turns, exchanges = list(unique.values()), settings.rag_exchange_limit_per_conversation
        best_finds = dict(islice(best_finds.items(), settings.rag_conversation_limit + SPARE))
        of_each = {
            talk: [each for each in turns if each[1].conversation_id == talk][: exchanges + SPARE]
            for talk in best_finds
        }
        taken = settings.rag_conversation_limit * exchanges
        history = turns[: with_spare(settings.rag_history_limit, taken)]
        made, corrections = self._made(prepared, retrieval, [*chain(*of_each.values(), history)])
        conversations = self._reads.talks(
            {*best_finds, *(each.conversation_id for each in made.values())}
        )
        retrieval.found = replace(
            retrieval.found,
            conversations=tuple(
                RetrievedConversation(
                    match=match_score(*first, verdicts),
                    conversation_id=conversation_id,
                    title=talk.title,
                    started_at=talk.started_at,
                    summary=quotable(prepared, [talk.summary], 1.0)[0] if talk.summary else (),
                    exchange_count=talk.exchange_count,
                    exchanges=ordered_exchanges(of_each[conversation_id], made, corrections),
                )
                for conversation_id, first in best_finds.items()
                if (talk := conversations.get(conversation_id))
            ),
            history=ordered_exchanges(history, made, corrections),
            titles={each: head.title for each, head in conversations.items()},
        )

    def _made(
        self, prepared: PreparedQuery, retrieval: Retrieval, finds: Sequence[_Find]
    ) -> tuple[Mapping[PassageId, RetrievedExchange], Mapping[PassageId, PartId]]:
        """Return turns and what corrects them, by passage, and the part that corrects each."""
        wanted = {head.id: each for each, head in finds}
        corrections = retrieval.corrections(self._passages, wanted)
        ranked = with_corrections([*wanted.values()], corrections)
        shown = {passage_id_of(each.part_id): each for each in reversed(ranked)}
        return retrieved_exchanges(self._passages, prepared, shown, retrieval.verdicts), corrections

    def _ranked_turns_and_summaries(
        self, prepared: PreparedQuery, scope: SearchScope
    ) -> list[Ranked]:
        """Return the best part of each turn and summary.

        They rank apart: a summary says what its turns say, so that neither would stand out beside
        the other.
        """
        summaries = self._search.pools().summaries
        of_turns = replace(scope, left_out=scope.left_out | summaries)
        ranked = best_by_passage(self._without_repeats(prepared, of_turns), _CONSIDERED)
        kept = summaries.without(scope.left_out)
        kept = kept if scope.allowed is None else kept & scope.allowed
        if len(kept):
            kind = PassageKind.CONVERSATION_SUMMARY
            own = SearchScope(kept, IdSet(), _SUMMARIES, kind, scope.preferred)
            found = ranked_in(self._search, prepared, own, STATEMENT_LOG_ODDS)
            ranked += best_by_passage(found, _SUMMARIES)
        return ranked

    def _statements(self, prepared: PreparedQuery, retrieval: Retrieval) -> None:
        found = self._fact_recall.retrieve(prepared, retrieval, self._boundary(retrieval))
        retrieval.found = replace(retrieval.found, facts=found)

    def _documents(self, prepared: PreparedQuery, retrieval: Retrieval) -> None:
        found = self._document_recall.retrieve(prepared, retrieval, self._boundary(retrieval))
        retrieval.found = replace(retrieval.found, documents=found)

    def _earlier(self, prepared: PreparedQuery, retrieval: Retrieval) -> None:
        """Retrieve messages of the segment; all rank, but those in the prompt are left out."""
        own = IdSet(self._reads.turns_of(retrieval.segment.exchange_ids))
        left_out = refused(retrieval.verdicts) | self._search.pools().unanswered
        scope = SearchScope(own.without(left_out), IdSet())
        alone = replace(prepared, in_context=None)  # the last turns would find themselves
        ranked = retrieval.unquoted(self._without_repeats(alone, scope))
        kept = retrieval.with_feedback(ranked[:_CONSIDERED], {})
        wanted = retrieval.settings.auto_rag_top_k + SPARE
        first = {passage_id_of(each.part_id) for each in kept[:wanted]}
        kept = with_corrections(kept, retrieval.corrections(self._passages, first))
        messages = retrieved_messages(self._passages, alone, kept, retrieval.verdicts)
        found = [each for each in messages if each.message_id not in retrieval.segment.held]
        retrieval.found = replace(retrieval.found, earlier=tuple(found[:wanted]))

    def _without_repeats(self, prepared: PreparedQuery, scope: SearchScope) -> list[Ranked]:
        """Return a ranking without non-answers to the same question and near duplicates."""
        ranked = ranked_in(self._search, prepared, scope)
        repeats = repeated_turns(self._passages, ranked, prepared.query.words)
        if not len(repeats):
            return ranked
        left_out = scope.left_out | repeats
        return ranked_in(self._search, prepared, replace(scope, left_out=left_out))

    def _other_conversations(
        self, conversation_id: ConversationId | None, refused: IdSet, boundary: Boundary
    ) -> SearchScope:
        """Return the scope of other conversations, without hidden and refused passages."""
        left_out = self._search.pools().excluded | refused
        if conversation_id is not None:
            left_out |= IdSet(self._passages.of_conversations([conversation_id]))
        return SearchScope(None, left_out).inside(boundary)

    def _boundary(self, retrieval: Retrieval) -> Boundary:
        return self._search.boundaries.of(retrieval.segment.project)
