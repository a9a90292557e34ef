"""Recall search: ranks the passages of a scope for a question, and applies votes and age.

Uses words and meaning, words alone or meaning alone, whichever is available. Turns that only ask
the question again are removed: such a turn contains every word of the question and has the nearest
vector; a few of them would displace the turn with the answer, and make an answer seem likely where
there is none.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice

from app.domain.conversations import Role
from app.domain.errors import IndexUnavailable, InvalidInput, KnownError
from app.domain.ids import PassageId, part_number, passage_id_of
from app.domain.passages import PassageKind, PassageText, SearchQuery
from app.domain.recall import Verdict
from app.domain.text import question_share
from app.domain.translation import format_percent, tr_noop
from app.index.id_set import IdSet
from app.index.message_traits import is_non_answer, is_small_talk
from app.index.query import MAX_CHARS, sentence_query
from app.index.ranking import Ranked
from app.index.relevance import answer_log_odds, sigmoid
from app.language.analyzer import is_one_character_word, surface_words_of
from app.language.sentences import content_terms, ends_with_question_mark
from app.memory.search.query_vectors import QueryVector
from app.memory.search.scope import CANDIDATES, SearchScope
from app.memory.search.service import SearchService, with_any_word
from app.storage.tables.passages.queries import Passages

_MESSAGES_A_PASSAGE = 2
_END_CHARS = 200  # of a long message: the question is at its beginning or end
_VOTES = {Verdict.UP: 2.5, Verdict.DOWN: -2.5}  # log odds
_LEAST = 1e-6
_RECENT_CHARS = 200
_FULL_WORDS = 3.0  # that a question needs to stand alone, rare ones
_LEAST_LEAN = 0.2
_DOUBT = 2.0  # log odds lost by what only the context finds, per unit of the log of the lean
Words = frozenset[str]

_IN_STEP = 0.995  # of the passages: a turn that was just added need not be indexed


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A question to search for; `vector` is None if only words can be searched.

    `weights` are the idf of the words of the query. `in_context` is the same question with what it
    may refer to, and `lean` (0-1) how much it depends on that.
    """

    query: SearchQuery
    vector: QueryVector | None
    weights: Mapping[str, float] = field(default_factory=dict)
    in_context: "PreparedQuery | None" = None
    lean: float = 0.0

    @property
    def quoting(self) -> tuple[SearchQuery, Mapping[str, float]]:
        """The query and the weights of its words that choose the sentences to quote."""
        if self.in_context is None:
            return self.query, self.weights
        return self.in_context.query, {
            word: self.weights.get(word, self.lean * weight)
            for word, weight in self.in_context.weights.items()
        }


def prepare(
    search: SearchService, question: str, recent: Sequence[str] = (), *, by_meaning: bool = True
) -> PreparedQuery | None:
    """Return what to search for; None when the question names nothing to recall. Blocking.

    With the user's `recent` messages of its conversation a question is also searched together with them.
    """
    alone = _prepared(search, question, by_meaning=by_meaning)
    context = None
    if recent:
        context = _prepared(search, _with_recent(question, recent), by_meaning=by_meaning)
    if context is None:
        return alone
    if alone is None:  # only function words: "And when was that?", but also "Why?" and "Thanks."
        return context if _asks_in_full(question) else None
    lean = 1 - min(1.0, sum(alone.weights.values()) / _own_weight(search))
    return replace(alone, in_context=context, lean=lean)


def _asks_in_full(question: str) -> bool:
    """Return whether a message asks in some words; two characters without spaces are one.

    What it states beside the question does not count: "Done. What next?" names nothing.
    """
    words = surface_words_of(question)
    count = sum(0.5 if is_one_character_word(word) else 1.0 for word in words)
    asked = count * (question_share(question) or 1.0)
    return asked >= _FULL_WORDS and ends_with_question_mark(question)


def _with_recent(question: str, recent: Sequence[str]) -> str:
    """Return a question after the user's last messages, until these name enough.

    Replies are left out: they are long, and what they say again would count more than what is
    asked.
    """
    texts: list[str] = []
    for message in reversed(recent):
        texts.insert(0, _essence(message)[:_RECENT_CHARS])
        if len(content_terms(" ".join(texts))) >= _FULL_WORDS:
            break
    return " ".join([*texts, question])


def _own_weight(search: SearchService) -> float:
    """Return the weight of a question that needs no context: that of a few unique words."""
    try:
        return _FULL_WORDS * math.log(_MESSAGES_A_PASSAGE * search.index.passage_count + 2)
    except KnownError:
        return 1.0


def _prepared(search: SearchService, question: str, *, by_meaning: bool) -> PreparedQuery | None:
    try:
        query = replace(sentence_query(_essence(question)), is_message=True)
    except InvalidInput:
        return None
    try:
        frequencies = search.index.document_frequencies(query)
        messages = _MESSAGES_A_PASSAGE * search.index.passage_count
    except KnownError:
        frequencies, messages = {}, 0
    if is_small_talk(question, frequencies, messages):
        return None
    rarity = {word: (messages + 1) / (count + 0.5) for word, count in frequencies.items()}
    weights = {word: max(0.0, math.log(each)) for word, each in rarity.items()}
    return PreparedQuery(query, search.query_vector(query) if by_meaning else None, weights)


def problems(search: SearchService, prepared: PreparedQuery) -> Iterable[str]:
    """Yield descriptions of what limits the search."""
    if (share := search.sync.covered_share) < _IN_STEP:
        searched = format_percent(share)
        yield tr_noop(f"The text index is being built. Recall searched {searched} of it.")
    problem = search.vector_search.problem if search.vector_search else ""
    if prepared.vector is None and problem:
        yield tr_noop(f"Recall used words only. {problem}")


def ranked_in(
    search: SearchService, prepared: PreparedQuery, scope: SearchScope, prior: float = 0.0
) -> list[Ranked]:
    """Return the parts of a scope, best first; `prior` is added to the log odds of their relevance.

    Blocking. Raises IndexUnavailable if neither words nor meaning can be searched.
    """
    ranked = _ranked_alone(search, prepared, scope, prior)
    if (context := prepared.in_context) is None or prepared.lean < _LEAST_LEAN:
        return ranked
    doubt = _DOUBT * math.log(prepared.lean)
    best = {
        each.part_id: each.with_relevance(shifted(each.relevance, doubt))
        for each in _ranked_alone(search, context, scope, prior)
    }
    for each in ranked:
        other = best.get(each.part_id)
        if other is None or other.relevance <= each.relevance:
            best[each.part_id] = each
    return sorted(best.values(), key=lambda each: -each.relevance)


def _ranked_alone(
    search: SearchService, prepared: PreparedQuery, scope: SearchScope, prior: float
) -> list[Ranked]:
    try:
        ranked = search.ranked(prepared.query, prepared.vector, scope, prior)
    except IndexUnavailable:
        if prepared.vector is None:
            raise
        return _by_meaning_alone(prepared.vector, scope, prior)
    return ranked if prepared.vector is not None else with_any_word(ranked)


def best_by_passage(ranked: Iterable[Ranked], limit: int) -> list[Ranked]:
    """Return the best part of each of the first passages of a ranking."""
    best: dict[PassageId, Ranked] = {}
    for each in ranked:
        if len(best) == limit:
            break
        best.setdefault(passage_id_of(each.part_id), each)
    return list(best.values())


def with_feedback_and_age(
    ranked: Sequence[Ranked],
    verdicts: Mapping[PassageId, Verdict],
    said_at: Mapping[PassageId, datetime],
    half_life_days: float,
    now: datetime,
) -> list[Ranked]:
    """Return a ranking with votes and age applied, best first; equals keep their order.

    After `half_life_days` (0: never) a relevance counts half.
    """

    def after(each: Ranked) -> Ranked:
        passage = passage_id_of(each.part_id)
        found = each.relevance
        if vote := _VOTES.get(verdicts[passage], 0.0) if passage in verdicts else 0.0:
            found = shifted(found, vote)
        if half_life_days > 0 and passage in said_at:
            days = max(0.0, (now - said_at[passage]).total_seconds() / 86_400)
            found *= 0.5 ** (days / half_life_days)
        return each.with_relevance(found)

    return sorted(map(after, ranked), key=lambda each: -each.relevance)


def shifted(relevance: float, log_odds: float) -> float:
    """Return a relevance with its log odds shifted."""
    kept = min(max(relevance, _LEAST), 1 - _LEAST)
    return sigmoid(math.log(kept / (1 - kept)) + log_odds)


def _essence(question: str) -> str:
    """Return the text to search for: all of a message, or beginning and end of a long one."""
    folded = " ".join(question.split())
    if len(folded) <= MAX_CHARS:
        return folded
    begin, end = folded[: MAX_CHARS - _END_CHARS - 1], folded[-_END_CHARS:]
    return f"{begin.rpartition(' ')[0] or begin} {end.partition(' ')[2] or end}"


def _by_meaning_alone(vector: QueryVector, scope: SearchScope, prior: float) -> list[Ranked]:
    hits = vector.index.search(vector.vector, CANDIDATES, scope.allowed, scope.left_out)
    cosines = [hit.cosine for hit in hits]
    odds = prior + answer_log_odds(cosines, vector.background, vector.index.passage_count)
    deviation = max(vector.background.deviation, _LEAST)
    return [
        Ranked(
            hit.part_id, hit.cosine, sigmoid(odds - (cosines[0] - hit.cosine) / deviation),
            hit.cosine, 0.0,
        )
        for hit in hits
    ]  # fmt: skip


_NEAR = 0.65  # cosine of a repeated question
_ALL_WORDS = 0.99
_MOST_WORDS = 0.6  # coverage, where only words are available
_MOST = 30  # passages that are examined
_ALIKE = 0.8  # share of common words among all words of two texts
_COMPARED_CHARS = 4_000


def repeated_turns(passages: Passages, ranked: Iterable[Ranked], question: str) -> IdSet:
    """Return the turns to leave out: non-answers, and all but the best of near duplicates.

    Only turns whose first message may be the same question are read. Blocking.
    """
    firsts = (passage_id_of(each.part_id) for each in ranked if _may_repeat(each))
    near = list(islice(dict.fromkeys(firsts), _MOST))
    shown = passages.shown(near) if near else {}
    kept: list[tuple[Words, Words]] = []
    left_out: set[PassageId] = set()
    for text in (shown[each][1] for each in near if each in shown):
        if text.kind is not PassageKind.TURN:
            continue
        asked, answered = _said(text, is_user=True), _said(text, is_user=False)
        sides = _words(asked), _words(answered)
        if is_non_answer(asked, answered, question) or any(
            _alike(sides[0], other[0]) and _alike(sides[1], other[1]) for other in kept
        ):
            left_out.add(text.id)
        else:
            kept.append(sides)
    return IdSet(left_out)


def _may_repeat(each: Ranked) -> bool:
    """Return whether a part is the first message of a turn, near enough to be the same question."""
    if part_number(each.part_id) != 0:
        return False
    if each.cosine is None:
        return each.coverage >= _MOST_WORDS
    return each.cosine >= _NEAR or each.coverage >= _ALL_WORDS


def _said(text: PassageText, *, is_user: bool) -> str:
    """Return the text of one side of a turn, with tool results."""
    return "\n".join(each.shown for each in text.said if (each.role is Role.USER) is is_user)


def _words(text: str) -> Words:
    return frozenset(surface_words_of(text[:_COMPARED_CHARS].casefold()))


def _alike(one: Words, other: Words) -> bool:
    return len(one & other) >= _ALIKE * len(one | other)
