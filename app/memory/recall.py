"""Recall: facts, conversations, turns and earlier messages that answer a question.

More is returned than a prompt takes, also what is not relevant, so that the plan can say why it was left out;
`context_plan` decides what is sent.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain, islice
from types import MappingProxyType
from typing import TypeVar

from app.domain.conversations import ANY_RECALL, RecallChoice
from app.domain.errors import Cancelled, KnownError, MemoryOff
from app.domain.facts import FactCategory
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId, passage_id_of
from app.domain.passages import PassageKind
from app.domain.recall import (
    RecallSettings,
    RecentTurn,
    RetrievalResult,
    RetrievedConversation,
    RetrievedExchange,
    RetrievedFact,
    RetrievedMessage,
    SegmentContext,
    Verdict,
    is_recall_on,
)
from app.domain.results import FoundAnswer
from app.index.id_set import IdSet
from app.index.ranking import Ranked
from app.index.relevance import MIN_DEVIATION
from app.memory.answers import quoted_answers
from app.memory.boundaries import Boundary
from app.memory.mentions import MentionReader
from app.memory.recall_search import (
    PreparedQuery,
    best_by_passage,
    prepare,
    problems,
    ranked_in,
    repeated_turns,
    shifted,
    with_feedback_and_age,
)
from app.memory.results import ResultBuilder
from app.memory.retrieved import match_score, quotable, retrieved_exchanges, retrieved_messages
from app.memory.search import SearchScope, SearchService
from app.memory.vector_search import QueryVector
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.facts import Facts, KnownFact
from app.storage.tables.memories import ArchivalMemories
from app.storage.tables.passages import Passages
from app.storage.tables.prompts import Feedback
from app.storage.tables.recall_reads import PassageHeader, RecallReads
from app.storage.tables.settings import Settings

_log = logging.getLogger(__name__)

_CONSIDERED = 120  # passages; later ones never reached a prompt
SPARE = 2  # results of each kind beyond the limit
_FACTS_CONSIDERED = 20  # facts beyond the limit: votes and age may move them up
_SUMMARIES = 20  # that are considered
_FACT_LOG_ODDS = -1.0  # log odds: a short fact matches the words of a question too easily
_FACT_STANDS_OUT = 2.6  # deviations of the background, beyond which a fact's cosine adds to that
_FACT_SLOPE, _FACT_MOST_LOG_ODDS = 3.0, 5.0  # log odds for a deviation, and in all
_FACT_KINDS = (PassageKind.FACT, PassageKind.MEMORY)
_TOO_LONG = "Recall was stopped because it took too long."
_FAILED = "A part of recall failed. See the log for details."
_MEMORY_OFF = "Memory is off in this conversation, so nothing is recalled"
_OFF_ONCE = "Memory was off for this message, so nothing is recalled"
_SEND_AGAIN = "Send it again with memory on."
_SWITCH_ON = "Turn on 'Use memory here' in the Conversation menu (Ctrl+Shift+U)."
_WARM_UP_QUESTION = "Which questions about work, home and travel were answered last year?"


class RecallService:
    """Retrieves for questions. Thread-safe; every call blocks; `retrieve` never raises."""

    def __init__(self, store: Store, settings: Settings, search: SearchService) -> None:
        self._passages = Passages(store)
        self._conversations = Conversations(store)
        self._reads = RecallReads(store)
        self._facts = Facts(store)
        self._memories = ArchivalMemories(store)
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

        Excluded are that conversation, private, deleted and archived conversations, non-answers, what the
        user marked never to use again, and what the recall rules of projects exclude. Small talk finds nothing. A part that fails or is cancelled
        (`is_cancelled` is called between the parts) is empty, and `notice` says so. Without `by_meaning` only
        words are searched, which takes tens of milliseconds.
        """
        started = time.perf_counter()
        retrieval = _Retrieval(conversation_id, segment, settings, is_cancelled, by_meaning)
        retrieval.attempt(lambda: self._retrieve(question, retrieval))
        found = retrieval.found
        took_ms = (time.perf_counter() - started) * 1000
        return replace(found, took_ms=took_ms, notice=" ".join(dict.fromkeys(retrieval.notices)))

    def warm_up(self) -> None:
        """Run a query without an audience, so that the user's first one is fast.

        The first query loads and compiles what takes 0.1 s, and a multiple on a busy machine: more than a
        message waits for recall.
        """
        self.retrieve(_WARM_UP_QUESTION, None, SegmentContext(), RecallSettings())

    def wait_for_meaning(self, timeout_s: float) -> bool:
        """Wait until meaning can be searched, or it is known that it cannot; return whether that is so."""
        vectors = self._search.vector_search
        return vectors is None or vectors.wait_until_settled(timeout_s)

    def answers(
        self,
        question: str,
        recent: Sequence[RecentTurn],
        conversation_id: ConversationId,
        limit: int,
        choice: RecallChoice = ANY_RECALL,
    ) -> Sequence[FoundAnswer] | None:
        """Return the best results for a question after the `recent` turns of a conversation, for the Recall model.

        At most `limit` turns, and half as many facts and saved texts, by the rules of `retrieve`; `is_weak`
        marks those that no prompt would get. If the message mentions conversations, only their turns are
        searched. None for a question that names nothing to look up. Raises MemoryOff where memory is off, and
        KnownError.
        """
        conversation = self._conversations.by_ids([conversation_id]).get(conversation_id)
        if not is_recall_on(conversation):
            raise MemoryOff(_MEMORY_OFF, _SWITCH_ON)
        if not choice.is_on:
            raise MemoryOff(_OFF_ONCE, _SEND_AGAIN)
        prepared = prepare(self._search, question, recent)
        if prepared is None:
            return None
        verdicts = self._feedback.verdicts()
        refused = _refused(verdicts) | IdSet(choice.left_out)
        boundary = self._search.boundaries.of(conversation.project if conversation else None)
        if choice.mentioned:
            readable = self._mentions.readable(choice.mentioned, boundary)
            own = IdSet(self._passages.of_conversations(readable))
            scope = SearchScope(own.without(refused | self._search.pools().separate), IdSet())
            known: list[Ranked] = []
        else:
            scope = self._other_conversations(conversation_id, refused, boundary)
            known = self._ranked_facts(prepared, refused, limit, boundary)
        ranked = self._without_repeats(prepared, scope)
        facts = self._facts.by_ids(passage_id_of(each.part_id) for each in known)
        now = datetime.now(UTC)
        said = with_feedback_and_age(ranked, verdicts, {}, 0.0, now), limit
        kept = with_feedback_and_age(known, _with_pins(verdicts, facts), {}, 0.0, now), limit // 2
        results = chain(*self._results.of_each(prepared.query, [kept, said]))
        best_first = sorted(results, key=lambda each: -each.relevance)
        return list(
            quoted_answers(self._passages, best_first, prepared, self._similarities(question))
        )

    def _similarities(self, question: str) -> Callable[[Sequence[str]], Sequence[float]]:
        vectors = self._search.vector_search
        return lambda texts: vectors.similarities(question, texts) if vectors else ()

    def _retrieve(self, question: str, retrieval: "_Retrieval") -> None:
        settings = retrieval.settings
        prepared = prepare(
            self._search, question, retrieval.segment.recent, by_meaning=retrieval.by_meaning
        )
        if prepared is None:
            return
        if retrieval.by_meaning:
            retrieval.notices += problems(self._search, prepared)
        retrieval.verdicts = self._feedback.verdicts()  # without the votes nothing may be recalled
        if settings.rag_enabled:
            if retrieval.segment.mentioned:
                retrieval.attempt(lambda: self._mentioned(prepared, retrieval))
            retrieval.attempt(lambda: self._related(prepared, retrieval))
            retrieval.attempt(lambda: self._facts_and_memories(prepared, retrieval))
        if settings.auto_rag_enabled and retrieval.segment.exchange_ids:
            retrieval.attempt(lambda: self._earlier(prepared, retrieval))

    def _mentioned(self, prepared: PreparedQuery, retrieval: "_Retrieval") -> None:
        segment, here = retrieval.segment, retrieval.conversation_id
        wanted = [each for each in segment.mentioned if each != here]
        found = self._mentions.read(
            prepared, wanted, retrieval.verdicts, segment.quoted, self._boundary(retrieval)
        )
        retrieval.found = replace(retrieval.found, mentioned=found)

    def _related(self, prepared: PreparedQuery, retrieval: "_Retrieval") -> None:
        settings, verdicts = retrieval.settings, retrieval.verdicts
        scope = self._other_conversations(
            retrieval.conversation_id, _refused(verdicts), self._boundary(retrieval)
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
        history = turns[: _with_spare(settings.rag_history_limit, taken)]
        wanted = {head.id: each for group in (*of_each.values(), history) for each, head in group}
        made = retrieved_exchanges(self._passages, prepared, wanted, verdicts)
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
                    exchanges=_retrieved(of_each[conversation_id], made),
                )
                for conversation_id, first in best_finds.items()
                if (talk := conversations.get(conversation_id))
            ),
            history=_retrieved(history, made),
            titles={each: head.title for each, head in conversations.items()},
        )

    def _ranked_turns_and_summaries(
        self, prepared: PreparedQuery, scope: SearchScope
    ) -> list[Ranked]:
        """Return the best part of each turn and summary.

        They rank apart: a summary says what its turns say, so that neither would stand out beside the other.
        """
        summaries = self._search.pools().summaries
        of_turns = replace(scope, left_out=scope.left_out | summaries)
        ranked = best_by_passage(self._without_repeats(prepared, of_turns), _CONSIDERED)
        kept = summaries.without(scope.left_out)
        kept = kept if scope.allowed is None else kept & scope.allowed
        if len(kept):
            kind = PassageKind.CONVERSATION_SUMMARY
            own = SearchScope(kept, IdSet(), _SUMMARIES, kind, scope.preferred)
            found = ranked_in(self._search, prepared, own, _FACT_LOG_ODDS)
            ranked += best_by_passage(found, _SUMMARIES)
        return ranked

    def _facts_and_memories(self, prepared: PreparedQuery, retrieval: "_Retrieval") -> None:
        """Retrieve facts and saved texts, which share one limit.

        A fact that has ended has no passage, but it may end at this moment.
        """
        limit = retrieval.settings.rag_fact_limit
        if not limit:
            return
        refused, boundary = _refused(retrieval.verdicts), self._boundary(retrieval)
        ranked = retrieval.unquoted(self._ranked_facts(prepared, refused, limit, boundary))
        heads = self._reads.heads(passage_id_of(each.part_id) for each in ranked)
        known = self._facts.by_ids(passage_id_of(each.part_id) for each in ranked)
        has_saved = any(head.kind is PassageKind.MEMORY for head in heads.values())
        saved = {each.id: each for each in self._memories.listed()} if has_saved else {}
        best = retrieval.with_feedback(ranked, heads, known)[: limit + SPARE]
        found = []
        for each in best:
            passage = passage_id_of(each.part_id)
            if passage not in heads:
                continue
            fact = known[passage].fact if passage in known else None
            if fact is not None and fact.valid_until is None:
                content = (fact.text, fact.category, fact.said_at)
                source = (fact.conversation_id, fact.exchange_id, fact.message_id)
            elif (memory := saved.get(passage)) is not None:
                content = (memory.text, FactCategory.OTHER, memory.saved_at)
                source = (memory.conversation_id, memory.exchange_id, None)
            else:
                continue
            match = match_score(each, heads[passage], retrieval.verdicts)
            found.append(RetrievedFact(match, *content, *source))
        retrieval.found = replace(retrieval.found, facts=tuple(found))

    def _ranked_facts(
        self, prepared: PreparedQuery, refused: IdSet, limit: int, boundary: Boundary
    ) -> list[Ranked]:
        """Return facts and saved texts, each kind best first, with more than `limit` of each."""
        sides = self._search.pools().sides
        ranked: list[Ranked] = []
        for kind in _FACT_KINDS:
            scope = SearchScope(sides[kind].without(refused), IdSet(), kind=kind).inside(boundary)
            if len(scope.allowed or ()):
                found_here = _weighed_as_facts(
                    ranked_in(self._search, prepared, scope, _FACT_LOG_ODDS), prepared.vector
                )
                ranked += best_by_passage(found_here, limit + _FACTS_CONSIDERED)
        return ranked

    def _earlier(self, prepared: PreparedQuery, retrieval: "_Retrieval") -> None:
        """Retrieve messages of the segment; all rank, but those in the prompt are left out."""
        own = IdSet(self._reads.turns_of(retrieval.segment.exchange_ids))
        left_out = _refused(retrieval.verdicts) | self._search.pools().unanswered
        scope = SearchScope(own.without(left_out), IdSet())
        alone = replace(prepared, in_context=None)  # the last turns would find themselves
        ranked = retrieval.unquoted(self._without_repeats(alone, scope))
        kept = retrieval.with_feedback(ranked[:_CONSIDERED], {})
        found: list[RetrievedMessage] = []
        wanted = retrieval.settings.auto_rag_top_k + SPARE
        for each in retrieved_messages(self._passages, kept, retrieval.verdicts):
            if each.message_id not in retrieval.segment.held and len(found) < wanted:
                found.append(each)
        retrieval.found = replace(retrieval.found, earlier=tuple(found))

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
        """Return the scope of other conversations inside a boundary, without hidden and refused passages."""
        left_out = self._search.pools().excluded | refused
        if conversation_id is not None:
            left_out |= IdSet(self._passages.of_conversations([conversation_id]))
        return SearchScope(None, left_out).inside(boundary)

    def _boundary(self, retrieval: "_Retrieval") -> Boundary:
        return self._search.boundaries.of(retrieval.segment.project)


@dataclass(slots=True)
class _Retrieval:
    """The state of one retrieval."""

    conversation_id: ConversationId | None
    segment: SegmentContext
    settings: RecallSettings
    is_cancelled: Callable[[], bool]
    by_meaning: bool = True
    verdicts: Mapping[PassageId, Verdict] = field(default_factory=dict)
    found: RetrievalResult = field(default_factory=RetrievalResult)
    notices: list[str] = field(default_factory=list)

    def attempt(self, step: Callable[[], None]) -> None:
        """Run a step; an error becomes a notice."""
        try:
            if self.is_cancelled():
                self.notices.append(_TOO_LONG)
                return
            step()
        except Cancelled:
            self.notices.append(_TOO_LONG)
        except KnownError as error:
            self.notices.append(f"Recall found less: {error}")
        except Exception:  # noqa: BLE001 - the chat goes on without what was not found
            _log.exception("recall failed")
            self.notices.append(_FAILED)

    def unquoted(self, ranked: Sequence[Ranked]) -> list[Ranked]:
        """Return a ranking without what the request already quotes, which still ranked with the rest."""
        quoted = self.segment.quoted
        return [each for each in ranked if passage_id_of(each.part_id) not in quoted]

    def with_feedback(
        self,
        ranked: Sequence[Ranked],
        heads: Mapping[PassageId, PassageHeader],
        facts: Mapping[PassageId, KnownFact] = MappingProxyType({}),
    ) -> list[Ranked]:
        """Return a ranking with votes and age applied."""
        said_at = {each: head.created_at for each, head in heads.items()}
        verdicts = _with_pins(self.verdicts, facts)
        return with_feedback_and_age(
            ranked, verdicts, said_at, self.settings.rag_recency_half_life_days, datetime.now(UTC)
        )


def _refused(verdicts: Mapping[PassageId, Verdict]) -> IdSet:
    return IdSet({each for each, verdict in verdicts.items() if verdict is Verdict.NEVER})


def _weighed_as_facts(ranked: Sequence[Ranked], vector: QueryVector | None) -> list[Ranked]:
    """Return short statements best first, with more relevance the farther their meaning stands out.

    Relevance is fitted to messages, whose sentences beside the one that answers draw their vectors away from
    the question; a fact is nothing but that sentence.
    """
    if vector is None:
        return list(ranked)
    mean, deviation = vector.background.mean, max(vector.background.deviation, MIN_DEVIATION)
    weighed = []
    for each in ranked:
        out = 0.0 if each.cosine is None else (each.cosine - mean) / deviation - _FACT_STANDS_OUT
        gain = min(_FACT_MOST_LOG_ODDS, _FACT_SLOPE * max(0.0, out))
        weighed.append(each.with_relevance(shifted(each.relevance, gain)))
    return sorted(weighed, key=lambda each: -each.relevance)


def _with_pins(
    verdicts: Mapping[PassageId, Verdict], facts: Mapping[PassageId, KnownFact]
) -> Mapping[PassageId, Verdict]:
    """Return the votes; a pinned fact without a vote counts as voted up."""
    pinned = (each for each, known in facts.items() if known.fact.pinned)
    return dict.fromkeys(pinned, Verdict.UP) | dict(verdicts)


_T = TypeVar("_T", RetrievedFact, RetrievedConversation, RetrievedExchange, RetrievedMessage)
_Find = tuple[Ranked, PassageHeader]


def _retrieved(
    found: Iterable[_Find], made: Mapping[PassageId, RetrievedExchange]
) -> tuple[RetrievedExchange, ...]:
    """Return the turns that exist; of branches that share the message found, the best."""
    kept: dict[MessageId | ExchangeId, RetrievedExchange] = {}
    for _, head in found:
        if (each := made.get(head.id)) is not None:
            kept.setdefault(each.message_id or each.exchange_id, each)
    return tuple(kept.values())


def narrowed(
    found: RetrievalResult, settings: RecallSettings, segment: SegmentContext
) -> RetrievalResult:
    """Return what these settings find in a segment, out of what `settings.widest()` found.

    So the limits can be tried without another search. Of a conversation with branches that share a
    question, a spare turn may be another one than `retrieve` returns.
    """
    found = _without_quoted(found, segment.quoted)
    if not settings.rag_enabled:
        found = replace(found, facts=(), conversations=(), history=())
    if not settings.auto_rag_enabled:
        found = replace(found, earlier=())
    exchanges = settings.rag_exchange_limit_per_conversation
    taken = settings.rag_conversation_limit * exchanges
    earlier = [each for each in found.earlier if each.message_id not in segment.held]
    return replace(
        found,
        facts=found.facts[: _with_spare(settings.rag_fact_limit)],
        conversations=tuple(
            replace(each, exchanges=each.exchanges[: exchanges + SPARE])
            for each in found.conversations[: settings.rag_conversation_limit + SPARE]
        ),
        history=found.history[: _with_spare(settings.rag_history_limit, taken)],
        earlier=tuple(earlier[: settings.auto_rag_top_k + SPARE]),
    )


def _without_quoted(found: RetrievalResult, quoted: frozenset[PassageId]) -> RetrievalResult:
    def kept(items: Iterable[_T]) -> tuple[_T, ...]:
        return tuple(each for each in items if each.match.passage_id not in quoted)

    return replace(
        found,
        facts=kept(found.facts),
        conversations=tuple(
            replace(each, exchanges=kept(each.exchanges)) for each in kept(found.conversations)
        ),
        history=kept(found.history),
        earlier=kept(found.earlier),
    )


def _with_spare(limit: int, more: int = 0) -> int:
    return limit + more + SPARE if limit else 0
