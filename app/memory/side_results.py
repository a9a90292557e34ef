"""How what was not said in turns stands among search results: a few of the best, never in the way.

Facts, memories, summaries of tool results and manual pages are ranked apart, kind by kind: mixed
with turns such keys mostly hurt.
"""

from collections.abc import Sequence
from itertools import chain

from app.domain.ids import PassageId, passage_of
from app.domain.passages import PassageKind, SearchResult
from app.index.ranking import Ranked

SIDE_KINDS = (
    PassageKind.FACT,
    PassageKind.MEMORY,
    PassageKind.TOOL_SUMMARY,
    PassageKind.MAN_PAGE,
)

_RANK_OFFSET = 10  # how little the first places of one list outdo the next


def by_words_and_meaning(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Return parts, best first, a passage by its place in two lists: as ranked, and by cosine.

    The ranking was fitted to talk, where the words of a question come back; a manual page says the
    same in its own, and a fact in few. The sum of reciprocal ranks is from Cormack, Clarke and Büttcher, SIGIR 2009.
    """
    places: dict[PassageId, int] = {}
    cosines: dict[PassageId, float] = {}
    for each in ranked:
        passage = passage_of(each.part_id)
        places.setdefault(passage, len(places))
        if each.cosine is not None:
            cosines[passage] = max(cosines.get(passage, -1.0), each.cosine)
    nearest = sorted(cosines, key=lambda passage: -cosines[passage])
    near = {passage: place for place, passage in enumerate(nearest)}
    scores = {
        passage: _points(place) + (_points(near[passage]) if passage in near else 0.0)
        for passage, place in places.items()
    }
    return sorted(ranked, key=lambda each: -scores[passage_of(each.part_id)])


def most_of_a_kind(limit: int, said: int) -> int:
    """Return how many of `limit` results may be of one such kind, when `said` turns were found.

    A quarter may be at any time, half of them where room is left.
    """
    return max(1, limit // 4, min(limit // 2, limit - said))


def with_sides(
    results: Sequence[SearchResult], sides: Sequence[Sequence[SearchResult]], limit: int
) -> list[SearchResult]:
    """Return all, best first, at most `limit`; the results and each side keep their own order.

    The sides take half of the places together, more where room is left; those that are weak never
    the place of a result that is not.
    """
    merged = list(results)
    taken = _taken(results, sides, limit)
    _drop_last(merged, len(results) + sum(map(len, taken)) - limit)
    for side in taken:
        merged = _merged(merged, side)
    return merged


def _taken(
    results: Sequence[SearchResult], sides: Sequence[Sequence[SearchResult]], limit: int
) -> list[list[SearchResult]]:
    """Return what is shown of each side: of all the first, then of all the second, weak ones last."""
    room = max(1, limit // 2, limit - len(results))
    by_place = sorted(
        (each.is_weak, place, number)
        for number, side in enumerate(sides)
        for place, each in enumerate(side)
    )
    strong = [each for each in by_place if not each[0]][:room]
    weak_room = limit - len(strong) - sum(not each.is_weak for each in results)
    weak = [each for each in by_place if each[0]][: max(0, min(room - len(strong), weak_room))]
    kept = {(number, place) for _, place, number in chain(strong, weak)}
    return [
        [each for place, each in enumerate(side) if (number, place) in kept]
        for number, side in enumerate(sides)
    ]


def _merged(results: Sequence[SearchResult], side: Sequence[SearchResult]) -> list[SearchResult]:
    waiting, merged = list(side), []
    for result in results:
        while waiting and waiting[0].relevance > result.relevance:
            merged.append(waiting.pop(0))
        merged.append(result)
    return merged + waiting


def _drop_last(results: list[SearchResult], count: int) -> None:
    """Drop so many of the last, the weak ones first."""
    for _ in range(count):
        weak = [place for place, each in enumerate(results) if each.is_weak]
        results.pop(weak[-1] if weak else -1)


def _points(place: int) -> float:
    return 1 / (_RANK_OFFSET + place)
