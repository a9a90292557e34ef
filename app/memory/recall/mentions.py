"""Mentions: past conversations that a message names as `@TITLE`, and what is quoted of them."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.ids import ConversationId, PassageId, passage_id_of
from app.domain.passages import Passage, PassageKind
from app.domain.recall import RetrievedConversation, Verdict
from app.index.id_set import IdSet
from app.index.ranking import Ranked
from app.memory.recall.ranking import PreparedQuery, ranked_in
from app.memory.recall.retrieved import SURE, named_conversation, retrieved_exchanges
from app.memory.search.scope import Boundary, SearchScope
from app.memory.search.service import SearchService
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.passages.queries import Passages
from app.storage.tables.passages.recall_reads import RecallReads

_TURNS = 3  # that are quoted of a conversation
_READABLE = 0.2  # relevance at which a turn is divided into sentences
_AT = re.compile(r"(?<!\w)@(?=\S)")
_MOST = 5  # mentions in a message


@dataclass(frozen=True, slots=True)
class Mentionable:
    """A conversation that can be mentioned."""

    id: ConversationId
    title: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention in a text, from `start` up to `end`, in characters."""

    start: int
    end: int
    conversation_id: ConversationId


class Mentions:
    """Finds conversations by title, neither private ones nor those in the trash. Blocking."""

    def __init__(self, store: Store) -> None:
        self._conversations = Conversations(store)
        self._chosen: dict[str, ConversationId] = {}

    def choose(self, title: str, conversation_id: ConversationId) -> None:
        """Take a title for this conversation, also where others have the same one."""
        self._chosen = self._chosen | {title.casefold(): conversation_id}

    def matching(
        self, typed: str, limit: int, without: ConversationId | None = None
    ) -> Sequence[Mentionable]:
        """Return other conversations whose title contains each word of `typed`, best first.

        Titles that begin with it come first, then the newest.
        """
        words, start = typed.casefold().split(), typed.casefold().strip()
        found = [
            each
            for each in self._all()
            if each.id != without and all(word in each.title.casefold() for word in words)
        ]
        found.sort(key=lambda each: (each.title.casefold().startswith(start), each.updated_at))
        return found[::-1][:limit]

    def in_text(self, text: str) -> Sequence[Mention]:
        """Return the mentions in a text, in order: the longest title after each @.

        Of equal titles it is the one that was chosen, else the newest.
        """
        places = [match.start() for match in _AT.finditer(text)]
        if not places:
            return ()
        known = self._all()
        by_title = {each.title.casefold(): each.id for each in reversed(known)}
        ids = {each.id for each in known}
        by_title |= {title: each for title, each in self._chosen.items() if each in ids}
        titles = sorted(by_title, key=len, reverse=True)
        return [*_named(text, places, titles, by_title)][:_MOST]

    def _all(self) -> Sequence[Mentionable]:
        """Return all that can be mentioned, newest first."""
        return [
            Mentionable(each, title.strip(), updated_at)
            for each, title, updated_at in self._conversations.titles()
            if title.strip()
        ]


def _named(
    text: str, places: Sequence[int], titles: Sequence[str], by_title: Mapping[str, ConversationId]
) -> Iterator[Mention]:
    folded = text.casefold()
    if len(folded) != len(text):  # some letters fold into two
        folded = text.lower() if len(text.lower()) == len(text) else text
    for start in places:
        for title in titles:
            end = start + 1 + len(title)
            after = folded[end : end + 1]
            if folded.startswith(title, start + 1) and not (
                after.isalnum() and title[-1].isalnum()
            ):
                yield Mention(start, end, by_title[title])
                break


class MentionReader:
    """Reads what answers a question in the conversations that its message mentions. Blocking."""

    def __init__(self, store: Store, search: SearchService) -> None:
        self._passages = Passages(store)
        self._conversations = Conversations(store)
        self._reads = RecallReads(store)
        self._search = search

    def read(
        self,
        prepared: PreparedQuery,
        wanted: Sequence[ConversationId],
        verdicts: Mapping[PassageId, Verdict],
        quoted: Collection[PassageId],
        boundary: Boundary,
    ) -> tuple[RetrievedConversation, ...]:
        """Return conversations with summary and best turns, in order, without `quoted` ones.

        Those that are not `readable` are left out.
        """
        readable = self.readable(wanted, boundary)
        talks = self._reads.talks(readable)
        found = []
        for each in readable:
            talk = talks[each]
            heads = self._heads(each, verdicts, quoted)
            summary = next(
                (h for h in heads.values() if h.kind is PassageKind.CONVERSATION_SUMMARY), None
            )
            ranked = self._ranked(prepared, heads)
            made = retrieved_exchanges(self._passages, prepared, ranked, verdicts)
            if not made and summary is None:
                continue
            turns = [made[each] for each in ranked if each in made]
            found.append(named_conversation(prepared, each, talk, turns, summary))
        return tuple(found)

    def readable(
        self, wanted: Sequence[ConversationId], boundary: Boundary
    ) -> list[ConversationId]:
        """Return the conversations that may be quoted: in the boundary, not private or deleted."""
        records = self._conversations.by_ids(wanted)
        return [
            each
            for each in wanted
            if (record := records.get(each))
            and not record.private
            and record.deleted_at is None
            and boundary.allows(record.project)
        ]

    def _heads(
        self,
        conversation_id: ConversationId,
        verdicts: Mapping[PassageId, Verdict],
        quoted: Collection[PassageId],
    ) -> dict[PassageId, Passage]:
        own = self._reads.heads(map(int, self._passages.of_conversations([conversation_id])))
        return {
            each: head
            for each, head in own.items()
            if verdicts.get(each) is not Verdict.NEVER and each not in quoted
        }

    def _ranked(
        self, prepared: PreparedQuery, heads: Mapping[PassageId, Passage]
    ) -> dict[PassageId, Ranked]:
        """Return the best turns by passage, best first; the newest if none ranks."""
        turns = [each for each, head in heads.items() if head.kind is PassageKind.TURN]
        ranked: dict[PassageId, Ranked] = {}
        for each in ranked_in(self._search, prepared, SearchScope(IdSet(turns), IdSet())):
            readable = each.with_relevance(max(each.relevance, _READABLE))
            ranked.setdefault(passage_id_of(each.part_id), readable)
            if len(ranked) == _TURNS:
                break
        newest = sorted(turns, key=lambda each: heads[each].created_at, reverse=True)
        return ranked or dict.fromkeys(newest[:_TURNS], SURE.with_relevance(_READABLE))
