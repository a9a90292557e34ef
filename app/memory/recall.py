"""Recall: what of the past answers a question that nobody told where to look.

Finds facts, other conversations with their best exchanges, single turns of all history, and messages
earlier in the same segment. What of it goes into a prompt is `context_plan`'s decision: more comes
back than will be taken, the irrelevant too, so that it can be said why something was left out.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from types import MappingProxyType

from app.domain.errors import Cancelled, KnownError, MemoryOff
from app.domain.facts import FactCategory, Memory
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId, passage_of
from app.domain.passages import PassageKind, SearchQuery, SearchResult
from app.domain.recalls import Verdict, is_recall_on
from app.domain.retrieved import (
    FoundConversation,
    FoundExchange,
    FoundFact,
    FoundMessage,
    RecallOptions,
    Retrieved,
    Segment,
)
from app.domain.text import one_line
from app.index.id_set import IdSet
from app.index.ranking import Ranked
from app.memory.finding import Asking, Finder, by_passage, weighed
from app.memory.found_turns import FoundTurns, match_of
from app.memory.repeats import Repeats
from app.memory.results import Results
from app.memory.search import Scope, SearchService
from app.storage.conversations import Conversations
from app.storage.facts import Facts, KnownFact
from app.storage.feedback import Feedback
from app.storage.memories import ArchivalMemories
from app.storage.passages import Passages
from app.storage.recall_reads import Head, RecallReads, TalkHead
from app.storage.settings import Settings
from app.storage.store import Store

_log = logging.getLogger(__name__)

_CONSIDERED = 120  # passages: those after them never came into a prompt
SPARE = 2  # more than will be taken, of each
_FACTS_CONSIDERED = 20  # beyond those wanted: votes and age may bring them forward
_OF_FACTS = -1.0  # log odds: a fact is all words that questions are made of, and fits too soon
_KNOWN = (PassageKind.FACT, PassageKind.MEMORY)
_SUMMARY_CHARS = 400  # two or three sentences; imported ones may be longer than all the budget
_TOO_LONG = "Recall was cut short, because it took too long."
_FAILED = "A part of recall failed; the log says more."
_MEMORY_OFF = "Memory is switched off for this conversation, so nothing of the past is quoted"
_SWITCH_ON = "Switch it on by 'Use memory here' in the menu Conversation (Ctrl+Shift+U)."
_NOBODYS_QUESTION = "Which questions about work, home and travel were answered last year?"

IsCancelled = Callable[[], bool]


def _never() -> bool:
    return False


class RecallService:
    """Answers what is to be recalled. Thread-safe; every call blocks; never raises."""

    def __init__(
        self, store: Store, settings: Settings, search: SearchService, finder: Finder
    ) -> None:
        self._passages = Passages(store)
        self._conversations = Conversations(store)
        self._reads = RecallReads(store)
        self._facts = Facts(store)
        self._memories = ArchivalMemories(store)
        self._feedback = Feedback(store)
        self._results = Results(self._passages, settings, quotes_answers=True)
        self._turns = FoundTurns(self._passages)
        self._repeats = Repeats(self._passages)
        self._search = search
        self._finder = finder

    def retrieve(
        self,
        question: str,
        conversation_id: ConversationId | None,
        segment: Segment,
        options: RecallOptions,
        is_cancelled: IsCancelled = _never,
    ) -> Retrieved:
        """Return what was found for a question asked in a conversation (None: a new one).

        Neither that conversation, nor what is private, in the trash or archived, nor what nobody
        answered, nor what the user asked never to use again comes back. A question that names nothing finds nothing. What
        fails leaves its part empty and says so in `notice`, and so does `is_cancelled`, asked
        between the parts.
        """
        started = time.perf_counter()
        retrieval = _Retrieval(conversation_id, segment, options, is_cancelled)
        retrieval.attempt(lambda: self._retrieve(question, retrieval))
        found = retrieval.found
        took_ms = (time.perf_counter() - started) * 1000
        return replace(found, took_ms=took_ms, notice=" ".join(dict.fromkeys(retrieval.notices)))

    def warm_up(self) -> None:
        """Ask a question for nobody, so that the first of the user's is as fast as the tenth.

        What is read, loaded and compiled at the first look-up takes 0.1 s, and a multiple on a busy
        machine: more than a message waits for recall.
        """
        self.retrieve(_NOBODYS_QUESTION, None, Segment(), RecallOptions())

    def quotable(
        self, question: str, conversation_id: ConversationId, limit: int
    ) -> Sequence[SearchResult]:
        """Return what answers a question asked in a conversation best, for the Recall model.

        At most `limit` turns, and half as many facts and saved texts together, by the same rules as
        `retrieve`; `is_weak` marks those that no prompt would be given. Raises MemoryOff where
        memory is not used, and KnownError, for whoever asks is told.
        """
        asked_in = self._conversations.by_ids([conversation_id]).get(conversation_id)
        if not is_recall_on(asked_in):
            raise MemoryOff(_MEMORY_OFF, _SWITCH_ON)
        asking = self._finder.asking(question)
        if asking is None:
            return ()
        verdicts = self._feedback.verdicts()
        scope = self._past(conversation_id, verdicts, with_archived=False)
        ranked = self._telling(asking, scope)
        known = self._known_ranked(asking, _refused(verdicts), limit)
        facts = self._facts.by_ids(passage_of(each.part_id) for each in known)
        now = datetime.now(UTC)
        said = weighed(ranked, verdicts, {}, 0.0, now), limit
        kept = weighed(known, _with_pins(verdicts, facts), {}, 0.0, now), limit // 2
        results = chain(*self._results.of_each(asking.query, [kept, said]))
        return sorted(results, key=lambda each: -each.relevance)

    # -- the parts

    def _retrieve(self, question: str, retrieval: "_Retrieval") -> None:
        options = retrieval.options
        asking = self._finder.asking(question)
        if asking is None:
            return
        retrieval.notices += self._finder.problems(asking)
        retrieval.verdicts = self._feedback.verdicts()  # without them nothing may be recalled
        if options.is_related_wanted:
            retrieval.attempt(lambda: self._related(asking, retrieval))
            retrieval.attempt(lambda: self._known(asking, retrieval))
        if options.is_earlier_wanted and retrieval.segment.exchange_ids:
            retrieval.attempt(lambda: self._earlier(asking, retrieval))

    def _related(self, asking: Asking, retrieval: "_Retrieval") -> None:
        options, verdicts = retrieval.options, retrieval.verdicts
        scope = self._past(retrieval.conversation_id, verdicts, with_archived=options.with_archived)
        ranked = by_passage(self._telling(asking, scope), _CONSIDERED)
        heads = self._reads.heads(passage_of(each.part_id) for each in ranked)
        best = [
            (each, head)
            for each in retrieval.weighed(ranked, heads)
            if (head := heads.get(passage_of(each.part_id))) and head.conversation_id is not None
        ]
        turns = list(_different(each for each in best if each[1].kind is PassageKind.TURN))
        firsts = _firsts(best, options.conversation_limit + SPARE)
        of_each = {talk: _some(turns, options.exchange_limit + SPARE, talk) for talk in firsts}
        taken = options.conversation_limit * options.exchange_limit
        history = _some(
            turns, options.history_limit + taken + SPARE if options.history_limit else 0
        )
        wanted = {
            head.id: (each, head) for group in (*of_each.values(), history) for each, head in group
        }
        made = self._turns.exchanges(asking.query, list(wanted.values()), verdicts)
        talks = self._reads.talks({*firsts, *(each.conversation_id for each in made.values())})
        retrieval.found = replace(
            retrieval.found,
            conversations=tuple(
                _conversation(first, talk, talks[talk], _made(of_each[talk], made), verdicts)
                for talk, first in firsts.items()
                if talk in talks
            ),
            history=_made(history, made),
            titles={each: head.title for each, head in talks.items()},
        )

    def _known(self, asking: Asking, retrieval: "_Retrieval") -> None:
        """Find facts and saved texts, which compete for the same places.

        A fact that holds no more has no passage, but may lose it at this moment.
        """
        limit = retrieval.options.fact_limit
        if not limit:
            return
        ranked = self._known_ranked(asking, retrieval.refused, limit)
        heads = self._reads.heads(passage_of(each.part_id) for each in ranked)
        known = self._facts.by_ids(passage_of(each.part_id) for each in ranked)
        saved = self._saved(heads)
        best = retrieval.weighed(ranked, heads, known)[: limit + SPARE]
        found = []
        for each in best:
            passage = passage_of(each.part_id)
            if passage in known and passage in heads and known[passage].fact.valid_until is None:
                fact = known[passage].fact
                found.append(
                    FoundFact(
                        match_of(each, heads[passage], retrieval.verdicts), fact.text,
                        fact.category, fact.said_at, fact.conversation_id, fact.exchange_id,
                        fact.message_id,
                    )
                )  # fmt: skip
            elif passage in saved and passage in heads:
                memory = saved[passage]
                found.append(
                    FoundFact(
                        match_of(each, heads[passage], retrieval.verdicts), memory.text,
                        FactCategory.OTHER, memory.saved_at, memory.conversation_id,
                        memory.exchange_id, None,
                    )
                )  # fmt: skip
        retrieval.found = replace(retrieval.found, facts=tuple(found))

    def _known_ranked(self, asking: Asking, refused: IdSet, limit: int) -> list[Ranked]:
        """Return facts and saved texts, each kind best first, with more than the `limit` of either."""
        sides = self._search.standing().sides
        ranked: list[Ranked] = []
        for kind in _KNOWN:
            scope = Scope(sides[kind].without(refused), IdSet(), kind=kind)
            if len(scope.allowed or ()):
                found_here = self._finder.ranked(asking, scope, _OF_FACTS)
                ranked += by_passage(found_here, limit + _FACTS_CONSIDERED)
        return ranked

    def _saved(self, heads: Mapping[PassageId, Head]) -> Mapping[PassageId, Memory]:
        """Return the saved texts among passages."""
        if not any(head.kind is PassageKind.MEMORY for head in heads.values()):
            return {}
        return {each.id: each for each in self._memories.listed() if each.id in heads}

    def _earlier(self, asking: Asking, retrieval: "_Retrieval") -> None:
        """Find messages of the segment; all are considered, those that the prompt holds left out."""
        own = IdSet(self._reads.turns_of(retrieval.segment.exchange_ids))
        left_out = retrieval.refused | self._search.standing().unanswered
        scope = Scope(own.without(left_out), IdSet())
        ranked = self._telling(asking, scope)
        kept = retrieval.weighed(ranked[:_CONSIDERED], {})
        found: list[FoundMessage] = []
        wanted = retrieval.options.earlier_limit + SPARE
        for each in self._turns.messages(kept, retrieval.verdicts):
            if each.message_id not in retrieval.segment.held and len(found) < wanted:
                found.append(each)
        retrieval.found = replace(retrieval.found, earlier=tuple(found))

    def _telling(self, asking: Asking, scope: Scope) -> list[Ranked]:
        """Return a ranking without turns that only ask what is asked, or say the same again."""
        ranked = self._finder.ranked(asking, scope)
        superfluous = self._repeats.among(ranked, asking.query.words)
        if not len(superfluous):
            return ranked
        return self._finder.ranked(asking, replace(scope, left_out=scope.left_out | superfluous))

    def _past(
        self,
        conversation_id: ConversationId | None,
        verdicts: Mapping[PassageId, Verdict],
        *,
        with_archived: bool,
    ) -> Scope:
        """Return all that was said elsewhere, but for what is hidden or refused."""
        standing = self._search.standing()
        left_out = standing.unasked
        if with_archived:
            archived = IdSet(self._passages.allowed(SearchQuery(archived=True), None))
            left_out = left_out.without(archived) | standing.apart
        if conversation_id is not None:
            left_out |= IdSet(self._passages.of_conversations([conversation_id]))
        return Scope(None, left_out | _refused(verdicts))


@dataclass(slots=True)
class _Retrieval:
    """One retrieval under way."""

    conversation_id: ConversationId | None
    segment: Segment
    options: RecallOptions
    is_cancelled: IsCancelled
    verdicts: Mapping[PassageId, Verdict] = field(default_factory=dict)
    found: Retrieved = field(default_factory=Retrieved)
    notices: list[str] = field(default_factory=list)

    @property
    def refused(self) -> IdSet:
        """What is never to be used again."""
        return _refused(self.verdicts)

    def attempt(self, step: Callable[[], None]) -> None:
        """Do a step; what goes wrong becomes a notice."""
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

    def weighed(
        self,
        ranked: Sequence[Ranked],
        heads: Mapping[PassageId, Head],
        facts: Mapping[PassageId, KnownFact] = MappingProxyType({}),
    ) -> list[Ranked]:
        """Return a ranking after votes and age."""
        said_at = {each: head.created_at for each, head in heads.items()}
        verdicts = _with_pins(self.verdicts, facts)
        return weighed(ranked, verdicts, said_at, self.options.half_life_days, datetime.now(UTC))


def _refused(verdicts: Mapping[PassageId, Verdict]) -> IdSet:
    return IdSet({each for each, verdict in verdicts.items() if verdict is Verdict.NEVER})


def _with_pins(
    verdicts: Mapping[PassageId, Verdict], facts: Mapping[PassageId, KnownFact]
) -> Mapping[PassageId, Verdict]:
    """Return the votes; a fact's pin counts as one where none was given."""
    pinned = (each for each, known in facts.items() if known.fact.pinned)
    return dict.fromkeys(pinned, Verdict.UP) | dict(verdicts)


_Find = tuple[Ranked, Head]


def _different(found: Iterable[_Find]) -> Iterable[_Find]:
    """Yield turns but those that say the very same as one before, as a fork's or a second import's."""
    seen: set[str] = set()
    for each, head in found:
        if head.content_hash not in seen:
            seen.add(head.content_hash)
            yield each, head


def _firsts(found: Iterable[_Find], limit: int) -> dict[ConversationId, _Find]:
    """Return the best find of each of the first conversations, in order."""
    firsts: dict[ConversationId, _Find] = {}
    for each, head in found:
        if head.conversation_id is not None and head.conversation_id not in firsts:
            if len(firsts) == limit:
                break
            firsts[head.conversation_id] = (each, head)
    return firsts


def _some(turns: Sequence[_Find], limit: int, talk: ConversationId | None = None) -> list[_Find]:
    own = [each for each in turns if talk is None or each[1].conversation_id == talk]
    return own[:limit]


def _made(
    found: Iterable[_Find], made: Mapping[PassageId, FoundExchange]
) -> tuple[FoundExchange, ...]:
    """Return the turns that could be read; of branches that share the message found, the best."""
    kept: dict[MessageId | ExchangeId, FoundExchange] = {}
    for _, head in found:
        if (each := made.get(head.id)) is not None:
            kept.setdefault(each.message_id or each.exchange_id, each)
    return tuple(kept.values())


def _conversation(
    first: _Find,
    talk: ConversationId,
    head: TalkHead,
    exchanges: tuple[FoundExchange, ...],
    verdicts: Mapping[PassageId, Verdict],
) -> FoundConversation:
    return FoundConversation(
        match=match_of(*first, verdicts),
        conversation_id=talk,
        title=head.title,
        started_at=head.started_at,
        summary=one_line(head.summary, _SUMMARY_CHARS),
        exchange_count=head.exchange_count,
        exchanges=exchanges,
    )
