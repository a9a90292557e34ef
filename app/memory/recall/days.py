"""Recall by day: the conversations of the days that a question asks about, as in "What did we discuss yesterday?".

Such a question names nothing to search for, so nothing is ranked. The conversations are quoted as
those that a message mentions by title, each with its summary and its first turns in these days.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

from app.domain.ids import ConversationId, PassageId, part_id
from app.domain.passages import Passage, PassageKind, SearchQuery
from app.domain.recall import RetrievedConversation, Verdict
from app.index.query import within_days
from app.index.ranking import Ranked
from app.language.date_phrases import Days
from app.memory.recall.ranking import PreparedQuery
from app.memory.recall.retrieved import SURE, named_conversation, retrieved_exchanges
from app.memory.search.scope import SearchScope
from app.storage.engine.store import Store
from app.storage.tables.passages.queries import Passages
from app.storage.tables.passages.recall_reads import RecallReads

_MOST = 8  # conversations
_TURNS = 8  # of all of them together, and at least one of each
_CONSIDERED = 400  # turns, the newest
_CUT_AT_BEGINNING = 0.0  # relevance at which a text is one unit


class DayRecall:
    """Lists what was said on some days. Thread-safe; every call blocks."""

    def __init__(self, store: Store) -> None:
        self._passages = Passages(store)
        self._reads = RecallReads(store)

    def ranked(self, days: Days, scope: SearchScope, limit: int) -> list[Ranked]:
        """Return turns of these days as a ranking: the first ones of each conversation, newest first."""
        chosen = self._chosen(days, scope, (), limit)
        turns = islice(chain.from_iterable(chosen.values()), limit)
        return [replace(SURE, part_id=part_id(each.id, 0)) for each in turns]

    def conversations(
        self,
        days: Days,
        scope: SearchScope,
        verdicts: Mapping[PassageId, Verdict],
        quoted: Collection[PassageId],
    ) -> tuple[RetrievedConversation, ...]:
        """Return the conversations of these days, newest first, without what the request quotes."""
        chosen = self._chosen(days, scope, quoted, _TURNS)
        talks, summaries = self._reads.talks(chosen), self._summaries(chosen, scope)
        asked = PreparedQuery(SearchQuery(), None)
        found = []
        for conversation_id, first in chosen.items():
            plain = {each.id: SURE.with_relevance(_CUT_AT_BEGINNING) for each in first}
            made = retrieved_exchanges(self._passages, asked, plain, verdicts)
            turns = [
                replace(each, match=replace(each.match, relevance=1.0)) for each in made.values()
            ]
            if (talk := talks.get(conversation_id)) is None or not turns:
                continue
            summary = summaries.get(conversation_id)
            found.append(named_conversation(asked, conversation_id, talk, turns, summary))
        return tuple(found)

    def _chosen(
        self, days: Days, scope: SearchScope, quoted: Collection[PassageId], most: int
    ) -> Mapping[ConversationId, Sequence[Passage]]:
        """Return the first turns of each conversation of these days, the newest conversation first.

        About `most` turns in all, and at least one of each.
        """
        unquoted = (each for each in self._turns(days, scope) if each not in quoted)
        newest = list(islice(unquoted, _CONSIDERED))
        heads = self._reads.heads(newest)
        of_each: dict[ConversationId, list[Passage]] = {}
        for each in newest:
            if (head := heads.get(each)) is not None and head.conversation_id is not None:
                of_each.setdefault(head.conversation_id, []).insert(0, head)
        few = dict(islice(of_each.items(), _MOST))
        return {each: turns[: max(1, most // len(few))] for each, turns in few.items()}

    def _turns(self, days: Days, scope: SearchScope) -> Iterator[PassageId]:
        """Yield the turns of a scope in these local days, newest first."""
        newest = self._passages.newest(within_days(SearchQuery(), days), [PassageKind.TURN])
        for each in newest:
            if each not in scope.left_out and (scope.allowed is None or each in scope.allowed):
                yield each

    def _summaries(
        self, wanted: Collection[ConversationId], scope: SearchScope
    ) -> Mapping[ConversationId, Passage]:
        own = self._reads.heads(map(int, self._passages.of_conversations(wanted)))
        return {
            each.conversation_id: each
            for each in own.values()
            if each.kind is PassageKind.CONVERSATION_SUMMARY
            and each.conversation_id is not None
            and each.id not in scope.left_out
        }
