"""Recall of documents; they rank apart: a folder may have more passages than all chats."""

from collections.abc import Sequence

from app.domain.ids import passage_id_of
from app.domain.passages import PassageKind
from app.domain.recall import RetrievedDocument
from app.index.id_set import IdSet
from app.index.ranking import Ranked
from app.memory.boundaries import Boundary
from app.memory.recall_search import PreparedQuery, best_by_passage, ranked_in
from app.memory.retrieval import Retrieval, refused
from app.memory.retrieved import match_score, quotable
from app.memory.search import SearchService
from app.memory.search_scope import SearchScope
from app.storage.engine.store import Store
from app.storage.tables.passages import Passages
from app.storage.tables.recall_reads import RecallReads

_MOST = 6  # passages: more than their budget takes
_CONSIDERED = 2 * _MOST
_KIND = PassageKind.DOCUMENT


class DocumentRecall:
    """Retrieves passages of documents. Thread-safe; every call blocks."""

    def __init__(self, store: Store, search: SearchService) -> None:
        self._search = search
        self._passages = Passages(store)
        self._reads = RecallReads(store)

    def ranked(
        self, prepared: PreparedQuery, excluded: IdSet, boundary: Boundary
    ) -> Sequence[Ranked]:
        """Return the parts of passages inside a boundary that are not excluded, best first."""
        kept = self._search.pools().sides[_KIND].without(excluded)
        scope = SearchScope(kept, IdSet(), kind=_KIND).inside(boundary)
        return ranked_in(self._search, prepared, scope) if len(scope.allowed or ()) else ()

    def retrieve(
        self, prepared: PreparedQuery, retrieval: Retrieval, boundary: Boundary
    ) -> tuple[RetrievedDocument, ...]:
        """Return the passages inside a boundary, best first, of copies only one."""
        if not retrieval.settings.rag_document_max_tokens:
            return ()
        ranked = self.ranked(prepared, refused(retrieval.verdicts), boundary)
        ranked = best_by_passage(retrieval.unquoted(ranked), _CONSIDERED)
        heads = self._reads.heads(passage_id_of(each.part_id) for each in ranked)
        unique: dict[str, Ranked] = {}
        for each in retrieval.with_feedback(ranked, heads):
            if (head := heads.get(passage_id_of(each.part_id))) is not None:
                unique.setdefault(head.content_hash, each)
        best = list(unique.values())[:_MOST]
        shown = self._passages.shown(passage_id_of(each.part_id) for each in best)
        found = []
        for each in best:
            if (whole := shown.get(passage_id_of(each.part_id))) is None:
                continue
            place, text = whole
            said = "\n".join(part.text for part in text.parts)
            (units,) = quotable(prepared, [said], each.relevance)
            score = match_score(each, place, retrieval.verdicts)
            found.append(
                RetrievedDocument(score, place.conversation_title, place.created_at, units)
            )
        return tuple(found)
