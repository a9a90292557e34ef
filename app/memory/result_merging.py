"""Result merging: facts, memories, summaries, manual pages and documents among turns.

They are ranked apart, kind by kind: ranked together with turns, they mostly hurt.
"""

from collections.abc import Sequence
from heapq import merge
from itertools import chain

from app.domain.ids import PassageId, passage_id_of
from app.domain.passages import PassageKind
from app.domain.results import SearchResult
from app.index.ranking import Ranked

SIDE_KINDS = (
    PassageKind.FACT,
    PassageKind.MEMORY,
    PassageKind.TOOL_SUMMARY,
    PassageKind.MAN_PAGE,
    PassageKind.DOCUMENT,
)

_RANK_OFFSET = 10  # of reciprocal rank fusion: lower means that first places count more


def fused_with_cosine(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Return parts best first, by reciprocal rank fusion of ranking and cosines of passages.

    The ranking was fitted to conversations, where the words of a question recur; manual pages and
    facts use other words. Formula: Cormack, Clarke and Büttcher, SIGIR 2009.
    """
    places: dict[PassageId, int] = {}
    cosines: dict[PassageId, float] = {}
    for each in ranked:
        passage = passage_id_of(each.part_id)
        places.setdefault(passage, len(places))
        if each.cosine is not None:
            cosines[passage] = max(cosines.get(passage, -1.0), each.cosine)
    nearest = sorted(cosines, key=lambda passage: -cosines[passage])
    near = {passage: place for place, passage in enumerate(nearest)}
    scores = {
        passage: _points(place) + (_points(near[passage]) if passage in near else 0.0)
        for passage, place in places.items()
    }
    return sorted(ranked, key=lambda each: -scores[passage_id_of(each.part_id)])


def side_limit(limit: int, turns: int) -> int:
    """Return how many of `limit` results may be of one such kind, when `turns` turns were found.

    A quarter at any time, half where room is left.
    """
    return max(1, limit // 4, min(limit // 2, limit - turns))


def merge_side_results(
    results: Sequence[SearchResult], sides: Sequence[Sequence[SearchResult]], limit: int
) -> list[SearchResult]:
    """Return all results, best first, at most `limit`; each list keeps its own order.

    The side results take at most half of the places, more where room is left; weak ones never
    displace a result that is not weak.
    """
    merged = list(results)
    taken = _taken(results, sides, limit)
    for _ in range(len(results) + sum(map(len, taken)) - limit):
        weak = [place for place, each in enumerate(merged) if each.is_weak]
        merged.pop(weak[-1] if weak else -1)
    for side in taken:
        merged = list(merge(merged, side, key=lambda each: -each.relevance))
    return merged


def _taken(
    results: Sequence[SearchResult], sides: Sequence[Sequence[SearchResult]], limit: int
) -> list[list[SearchResult]]:
    """Return what is shown of each side list: all first ones, then the second; weak ones last."""
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


def _points(place: int) -> float:
    return 1 / (_RANK_OFFSET + place)
