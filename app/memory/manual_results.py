"""How manual pages stand among search results: a few of the best, never in the way of one's own."""

from collections.abc import Sequence

from app.domain.passages import SearchResult

_SHARE = 4


def most_pages(limit: int) -> int:
    """Return how many of `limit` results may be manual pages."""
    return max(1, limit // _SHARE)


def with_pages(
    results: Sequence[SearchResult], pages: Sequence[SearchResult], limit: int
) -> list[SearchResult]:
    """Return both, best first, at most `limit`; each keeps its own order.

    A weak page takes nobody's place: it comes only where room is left.
    """
    strong = [page for page in pages if not page.is_weak]
    room = max(0, limit - len(results) - len(strong))
    kept = {page.passage_id for page in [*strong, *[each for each in pages if each.is_weak][:room]]}
    waiting = [page for page in pages if page.passage_id in kept]
    merged: list[SearchResult] = []
    for result in results[: limit - len(waiting)]:
        while waiting and waiting[0].relevance > result.relevance:
            merged.append(waiting.pop(0))
        merged.append(result)
    return merged + waiting
