"""How manual pages stand among search results: a few of the best, never in the way of one's own."""

from collections.abc import Sequence

from app.domain.ids import PassageId, passage_of
from app.domain.passages import SearchResult
from app.index.ranking import Ranked

_RANK_OFFSET = 10  # how little the first places of one list outdo the next


def by_words_and_meaning(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Return parts of pages, best first, a page by its place in two lists: as ranked, and by cosine.

    The ranking was fitted to talk, where the words of a question come back; a manual page says the
    same in its own. The sum of reciprocal ranks is from Cormack, Clarke and Büttcher, SIGIR 2009.
    """
    places: dict[PassageId, int] = {}
    cosines: dict[PassageId, float] = {}
    for each in ranked:
        page = passage_of(each.part_id)
        places.setdefault(page, len(places))
        if each.cosine is not None:
            cosines[page] = max(cosines.get(page, -1.0), each.cosine)
    nearest = sorted(cosines, key=lambda page: -cosines[page])
    near = {page: place for place, page in enumerate(nearest)}
    scores = {
        page: _points(place) + (_points(near[page]) if page in near else 0.0)
        for page, place in places.items()
    }
    return sorted(ranked, key=lambda each: -scores[passage_of(each.part_id)])


def most_pages(limit: int, said: int) -> int:
    """Return how many of `limit` results may be manual pages, when `said` others were found.

    A quarter may be at any time, half of them where room is left.
    """
    return max(1, limit // 4, min(limit // 2, limit - said))


def with_pages(
    results: Sequence[SearchResult], pages: Sequence[SearchResult], limit: int
) -> list[SearchResult]:
    """Return both, best first, at most `limit`; each keeps its own order.

    A weak page never takes the place of a result that is not weak.
    """
    strong = sum(not each.is_weak for each in (*results, *pages))
    weak_room = max(0, limit - strong)
    waiting: list[SearchResult] = []
    for page in pages:
        if not page.is_weak:
            waiting.append(page)
        elif weak_room:
            waiting.append(page)
            weak_room -= 1
    merged: list[SearchResult] = []
    for result in _without_the_last(results, len(results) + len(waiting) - limit):
        while waiting and waiting[0].relevance > result.relevance:
            merged.append(waiting.pop(0))
        merged.append(result)
    return merged + waiting


def _points(place: int) -> float:
    return 1 / (_RANK_OFFSET + place)


def _without_the_last(results: Sequence[SearchResult], count: int) -> list[SearchResult]:
    """Return results without so many of the last, the weak ones first."""
    kept = list(results)
    for _ in range(count):
        weak = [place for place, each in enumerate(kept) if each.is_weak]
        kept.pop(weak[-1] if weak else -1)
    return kept
