"""Search over everything that was said: a query in, results ready to be shown.

What ranks is `app.index`; where passages stand is `app.storage.passages`. Here they meet, with the
filters, the places to jump to and the snippets.
"""

import threading
import time
from collections.abc import Collection, Sequence

from app.domain.errors import IndexUnavailable, InvalidInput
from app.domain.events import Changed
from app.domain.ids import ConversationId, PassageId
from app.domain.passages import (
    PassageKind,
    PassageText,
    SearchAnswer,
    SearchQuery,
    SearchResult,
    TextHit,
)
from app.domain.ports import TextIndex
from app.domain.text import one_line
from app.index.query import parse_query, sentence_query
from app.index.snippets import snippet
from app.memory.index_sync import IndexSync
from app.storage.passages import PassagePlace, Passages
from app.storage.store import Store

_QUESTION_LIMIT_CHARS = 200
_QUESTION_MAX_CHARS = 500
_SPARE = 10
_ABOUT_EXCHANGES = (PassageKind.TURN, PassageKind.EXCHANGE_SUMMARY)


class SearchService:
    """Answers searches. Thread-safe; every call blocks."""

    def __init__(self, store: Store, index: TextIndex, sync: IndexSync) -> None:
        self._passages = Passages(store)
        self._index = index
        self._sync = sync
        self._hidden: frozenset[PassageId] | None = None
        self._lock = threading.Lock()
        store.subscribe(self._on_changed)

    def search(
        self, text: str, limit: int = 20, kinds: Collection[PassageKind] | None = None
    ) -> SearchAnswer:
        """Return what the search box's language finds, best first.

        Raises InvalidInput for a query or limit that cannot be taken, IndexUnavailable.
        """
        started = time.perf_counter()
        query = parse_query(text, limit)
        hits = self._listed(query, kinds) if query.is_list else self._ranked(query, kinds)
        results = self._results(query, hits)[:limit]
        took_ms = (time.perf_counter() - started) * 1000
        return SearchAnswer(text, tuple(results), took_ms, self._sync.covered_share)

    def passages_for_recall(
        self, question: str, conversation_id: ConversationId, limit: int
    ) -> Sequence[SearchResult]:
        """Return the best turns for a question asked in a conversation, that one left out.

        The question is taken as plain words, whatever it holds.
        """
        try:
            query = sentence_query(question.strip()[:_QUESTION_MAX_CHARS], limit)
        except InvalidInput:
            return ()  # nothing in it to look for, such as a single sign
        left_out = self._left_out() | self._passages.of_conversation(conversation_id)
        hits = self._hits(query, excluded=left_out)
        return self._results(query, hits)[:limit]

    def _ranked(
        self, query: SearchQuery, kinds: Collection[PassageKind] | None
    ) -> Sequence[TextHit]:
        if kinds is None and not _has_filters(query):
            return self._hits(query, excluded=self._left_out())
        return self._hits(query, allowed=frozenset(self._passages.allowed(query, kinds)))

    def _listed(
        self, query: SearchQuery, kinds: Collection[PassageKind] | None
    ) -> Sequence[TextHit]:
        """Return the newest passages that the filters leave, when there is nothing to rank by."""
        if query.excluded:
            return self._hits(query, allowed=frozenset(self._passages.allowed(query, kinds)))
        newest = self._passages.allowed(query, kinds or (PassageKind.TURN,))
        return [TextHit(each, 0.0, 1.0) for each in newest[: query.limit]]

    def _hits(
        self,
        query: SearchQuery,
        allowed: Collection[PassageId] | None = None,
        excluded: Collection[PassageId] = (),
    ) -> Sequence[TextHit]:
        """Return enough hits for a full list: a turn and its summary will become one result."""
        try:
            return self._index.search(query, query.limit * 2 + _SPARE, allowed, excluded)
        except IndexUnavailable:
            self._sync.wake()  # it may be for it to build the index anew
            raise

    def _results(self, query: SearchQuery, hits: Sequence[TextHit]) -> list[SearchResult]:
        ids = [hit.passage_id for hit in hits]
        places = self._passages.places(ids)
        questions = self._passages.questions(
            place.exchange_id for place in places.values() if place.exchange_id is not None
        )
        texts = {text.id: text for text in self._passages.texts(ids)}
        results: list[SearchResult] = []
        shown: set[object] = set()
        for hit in hits:
            place, text = places.get(hit.passage_id), texts.get(hit.passage_id)
            if place is None or text is None:
                continue
            # A turn and its summary are one place to jump to: the better of the two stands for it.
            key = place.exchange_id if place.kind in _ABOUT_EXCHANGES else (place.kind, place.id)
            if key not in shown:
                shown.add(key)
                question = questions.get(place.exchange_id or 0, "")
                results.append(_result(query, hit, place, text, question))
        return results

    def _left_out(self) -> frozenset[PassageId]:
        with self._lock:
            if self._hidden is None:
                self._hidden = self._passages.hidden()
            return self._hidden

    def _on_changed(self, changed: Changed) -> None:
        if changed.conversations or changed.passages:
            with self._lock:
                self._hidden = None


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


def _result(
    query: SearchQuery, hit: TextHit, place: PassagePlace, text: PassageText, question: str
) -> SearchResult:
    cut = snippet(text, query)
    return SearchResult(
        kind=place.kind,
        passage_id=place.id,
        source=place.source,
        conversation_id=place.conversation_id,
        conversation_title=place.conversation_title,
        archived=place.archived,
        turn_number=place.turn_number,
        exchange_id=place.exchange_id,
        message_id=place.first_message_id,
        relevance=hit.coverage,
        cosine=None,
        user_question=one_line(question, _QUESTION_LIMIT_CHARS),
        snippet=cut.text,
        marks=cut.marks,
        created_at=place.created_at,
        model=place.model,
    )
