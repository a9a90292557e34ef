"""What a question finds in a part of the past: ranked, judged, and weighed by what the user thinks of it.

Whatever there is to look with is used: words and meaning, words alone, meaning alone. What is made of
the finds is `app.memory.recall`'s business.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.errors import IndexUnavailable, InvalidInput, KnownError
from app.domain.ids import PassageId, passage_of
from app.domain.passages import SearchQuery
from app.domain.recalls import Verdict
from app.index.calibration import sigmoid
from app.index.evidence import log_odds, typical_share
from app.index.query import MAX_CHARS, sentence_query
from app.index.ranking import Ranked
from app.index.small_talk import is_small_talk
from app.index.text_index import TantivyTextIndex
from app.memory.index_sync import IndexSync
from app.memory.meaning import Look, Meaning
from app.memory.search import CANDIDATES, Scope, SearchService, ranking_of

_MESSAGES_A_PASSAGE = 2
_END_CHARS = 200  # of a long message: what is asked stands at its beginning or its end
_VOTES = {Verdict.UP: 1.0, Verdict.DOWN: -1.5}  # log odds
_LEAST = 1e-6
_IN_STEP = 0.995  # of the passages: a turn that was just said is no news


@dataclass(frozen=True, slots=True)
class Asking:
    """A question to be looked for; `look` is None where words alone can find."""

    query: SearchQuery
    look: Look | None


class Finder:
    """Finds in scopes. Thread-safe; every call blocks."""

    def __init__(
        self, search: SearchService, index: TantivyTextIndex, sync: IndexSync, meaning: Meaning
    ) -> None:
        self._search = search
        self._index = index
        self._sync = sync
        self._meaning = meaning

    def asking(self, question: str) -> Asking | None:
        """Return what is to be looked for; None where the question names nothing to recall."""
        try:
            query = sentence_query(_essence(question))
        except InvalidInput:
            return None
        if is_small_talk(question, *self._frequencies(query)):
            return None
        return Asking(query, self._search.look(query))

    def problems(self, asking: Asking) -> Iterable[str]:
        """Yield in words what kept a part from being found."""
        if (share := self._sync.covered_share) < _IN_STEP:
            yield f"The text index is being built; recall searched {share:.0%} of it."
        if asking.look is None and (problem := self._meaning.problem):
            yield f"Recall went by words alone. {problem}"

    def ranked(self, asking: Asking, scope: Scope, prior: float = 0.0) -> list[Ranked]:
        """Return the parts found, best first; `prior` are log odds of their relevance.

        Raises IndexUnavailable if nothing can be looked at.
        """
        if not self._search.size(scope):
            return []
        try:
            found = self._search.considered(asking.query, asking.look, scope)
        except IndexUnavailable:
            if asking.look is None:
                raise
            return _by_meaning_alone(asking.look, scope)
        ranked = ranking_of(found, prior)
        return ranked if found.cosines is not None else _with_words(ranked)

    def _frequencies(self, query: SearchQuery) -> tuple[Mapping[str, int], int]:
        try:
            frequencies = self._index.document_frequencies(query)
            return frequencies, _MESSAGES_A_PASSAGE * self._index.passage_count
        except KnownError:
            return {}, 0


def by_passage(ranked: Iterable[Ranked], limit: int) -> list[Ranked]:
    """Return the best part of each of the first passages of a ranking."""
    best: dict[PassageId, Ranked] = {}
    for each in ranked:
        if len(best) == limit:
            break
        best.setdefault(passage_of(each.part_id), each)
    return list(best.values())


def weighed(
    ranked: Sequence[Ranked],
    verdicts: Mapping[PassageId, Verdict],
    said_at: Mapping[PassageId, datetime],
    half_life_days: float,
    now: datetime,
) -> list[Ranked]:
    """Return a ranking after votes and age have counted, best first; of equals as before.

    After `half_life_days` (0: never) a relevance counts half.
    """

    def after(each: Ranked) -> Ranked:
        passage = passage_of(each.part_id)
        found = each.relevance
        if vote := _VOTES.get(verdicts[passage], 0.0) if passage in verdicts else 0.0:
            kept = min(max(found, _LEAST), 1 - _LEAST)
            found = sigmoid(math.log(kept / (1 - kept)) + vote)
        if half_life_days > 0 and passage in said_at:
            days = max(0.0, (now - said_at[passage]).total_seconds() / 86_400)
            found *= 0.5 ** (days / half_life_days)
        return each.judged(found)

    return sorted(map(after, ranked), key=lambda each: -each.relevance)


def _essence(question: str) -> str:
    """Return what of a message is looked for: all, or the beginning and end of a long one."""
    folded = " ".join(question.split())
    if len(folded) <= MAX_CHARS:
        return folded
    begin, end = folded[: MAX_CHARS - _END_CHARS - 1], folded[-_END_CHARS:]
    return f"{begin.rpartition(' ')[0] or begin} {end.partition(' ')[2] or end}"


def _by_meaning_alone(look: Look, scope: Scope) -> list[Ranked]:
    hits = look.index.search(look.vector, CANDIDATES, scope.allowed, scope.left_out)
    cosines = [hit.cosine for hit in hits]
    odds = log_odds(cosines, typical_share(), look.background, look.index.passage_count)
    deviation = max(look.background.deviation, _LEAST)
    return [
        Ranked(
            hit.part_id, hit.cosine, sigmoid(odds - (cosines[0] - hit.cosine) / deviation),
            hit.cosine, 0.0,
        )
        for hit in hits
    ]  # fmt: skip


def _with_words(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Return the parts of passages that hold any word: beside them alone is no find."""
    holding = {passage_of(each.part_id) for each in ranked if each.coverage > 0}
    return [each for each in ranked if passage_of(each.part_id) in holding]
