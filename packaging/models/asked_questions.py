"""Questions asked in libraries of several kinds, for `fit_relevance`.

Each evaluation set is stored as two libraries with half of its conversations each. Both are asked
all questions, so those of the other half have no answer. Sets whose speakers have names are stored
once more with all speakers renamed to the same two: in a real library a name tells little. Small
libraries of 1 to 5 conversations are drawn as well. If a set has questions without evidence, each
of its people gets a library, with the embedder for their language, and is asked all of theirs and as
many of the others'. Sets in scripts that the built-in embedder does not know are asked with the
multilingual one too.
"""

import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.bootstrap import Services
from app.domain.errors import InvalidInput
from app.domain.ids import MessageId, PassageId, passage_id_of
from app.index.id_set import IdSet
from app.index.query import MAX_CHARS, sentence_query
from app.index.ranking import Ranked, rank
from app.index.relevance import RankingInput, lacks, signals
from app.language.languages import is_english
from app.memory.search.embedders import MULTILINGUAL
from app.memory.search.scope import SearchScope
from tests.bench.evaluation import (
    Evaluation,
    Question,
    Talk,
    few_of,
    has_words,
    library_of,
    read_evaluation,
    renamed,
    with_keywords,
)

Numbers = npt.NDArray[np.float64]

ASKED_KINDS = {"question": "question_tokens", "keywords": "keywords_meaning"}  # usual profiles
DRAWN = {1: 6, 2: 3, 5: 2}  # conversations of a small library: libraries
MOST_ASKED = 400  # questions of a set, in a library of half of it
ASKED = 25  # questions of either kind in a small library
LARGE = 1_000  # messages; in a smaller set few have the same words
TURNS = 8  # that a prompt quotes at most, by the default settings


@dataclass(frozen=True)
class Asked:
    """A question asked in a library.

    `kind` names the set and the kind of library; `has_answer` tells whether it has evidence there.
    `gaps` are the distances of the best hits, one for each passage, from the best score, `lacks`
    what each lacks of the words that the best contains; `right` whether each is evidence. `asked`
    is one of ASKED_KINDS.
    """

    of_set: str
    kind: str
    asked: str
    signals: Mapping[str, float]
    has_answer: bool
    gaps: Numbers
    lacks: Numbers
    right: Numbers


def asked_of(folder: Path, file: Path) -> Iterator[Asked]:
    """Yield the questions of a set, asked in libraries of every kind.

    A small set tells nothing of words alone, nor of keywords.
    """
    plain = read_evaluation(file)
    messages = sum(len(session.turns) for talk in plain.talks for session in talk.sessions)
    for each in _asked_of(folder, plain):
        if messages >= LARGE or (each.asked == "question" and "nearest" in each.signals):
            yield each


def _asked_of(folder: Path, plain: Evaluation) -> Iterator[Asked]:
    for kind, whole in zip(("halves", "renamed"), with_renamed(plain), strict=False):
        found = list(_halves(folder, whole, plain.name, kind, None))
        yield from found
        if not any("nearest" in each.signals for each in found):
            other = _halves(folder, whole, plain.name, f"{kind}, {MULTILINGUAL}", MULTILINGUAL)
            yield from (each for each in other if "nearest" in each.signals)
    drawing = random.Random(7)
    if not all(question.evidence for _, question in plain.asked):
        for talk in plain.talks:
            others = [pair for pair in plain.asked if pair[0] is not talk and pair[1].evidence]
            drawn = [(talk, question) for question in talk.questions]
            drawn += drawing.sample(others, min(len(others), len(drawn)))
            own = replace(plain, talks=(talk,))
            first = " ".join(session.turns[0].text for session in talk.sessions)
            embedder = MULTILINGUAL if is_english(first) is False else None
            place = folder / f"{plain.name}-{talk.id}"
            yield from _asked_in(place, own, drawn, plain.name, "each", embedder)
    for count, libraries in DRAWN.items():
        for _ in range(libraries):
            few = few_of(plain, count, drawing)
            known = {talk.id for talk in few.talks}
            others = [pair for pair in plain.asked if pair[0].id not in known]
            drawn = [
                pair
                for pairs in (few.asked, others)
                for pair in drawing.sample(pairs, min(len(pairs), ASKED))
            ]
            drawn += _searches(plain, few, ASKED)
            with tempfile.TemporaryDirectory() as scratch:
                yield from _asked_in(Path(scratch), few, drawn, plain.name, "few")


def _halves(
    folder: Path, whole: Evaluation, of_set: str, kind: str, embedder: str | None
) -> Iterator[Asked]:
    for half in (0, 1):
        own = replace(whole, talks=whole.talks[half::2])
        place = folder / f"{of_set}-{kind}-{half}"
        every = -(-len(whole.asked) // MOST_ASKED)
        asked = whole.asked[::every] + _searches(whole, own, MOST_ASKED // 2)
        yield from _asked_in(place, own, asked, of_set, kind, embedder)


def _searches(whole: Evaluation, own: Evaluation, count: int) -> list[tuple[Talk, Question]]:
    """Return keyword searches: `count` with an answer in the part `own` of a set, and as many without."""
    known = {talk.id for talk in own.talks}
    without = [
        (talk, question)
        for talk, question in with_keywords(whole, 4 * count, random.Random(7)).asked
        if talk.id not in known and not has_words(own.talks, question.text)
    ]
    return with_keywords(own, count, random.Random(7)).asked + without[:count]


def _asked_in(
    folder: Path,
    evaluation: Evaluation,
    asked: Iterable[tuple[Talk, Question]],
    of_set: str,
    kind: str,
    embedder: str | None = None,
) -> Iterator[Asked]:
    with library_of(folder, evaluation, embedder) as (services, stored):
        for talk, question in asked:
            own = stored.talks.get(talk.id)
            evidence = own.evidence(question) if own else frozenset()
            if own and question.evidence and not evidence:
                continue
            right = {stored.exchange_of[each] for each in evidence}
            for found in ranking_inputs(services, question):
                if not len(found.table.parts):
                    continue
                ranked = rank(found.question, found.table, found.nearness)
                best: dict[PassageId, Ranked] = {}
                for each in ranked:
                    best.setdefault(passage_id_of(each.part_id), each)
                hits = list(best.values())[:TURNS]
                messages = services.passages.messages_of([each.part_id for each in hits])
                exchanges = [
                    stored.exchange_of.get(messages.get(each.part_id, MessageId(0)))
                    for each in hits
                ]
                yield Asked(
                    of_set, f"{of_set}, {kind}{', keywords' * question.is_keywords}",
                    list(ASKED_KINDS)[question.is_keywords], has_answer=bool(evidence),
                    signals=signals(ranked, found.table, found.background, found.passages),
                    gaps=np.array([hits[0].score - each.score for each in hits]),
                    lacks=np.array([lacks(hits[0], each) for each in hits]),
                    right=np.array([float(each in right) for each in exchanges]),
                )  # fmt: skip


def with_renamed(plain: Evaluation) -> list[Evaluation]:
    """Return a set, and the set with renamed speakers if most of its questions name one."""
    other = renamed(plain)
    pairs = zip(plain.asked, other.asked, strict=True)
    changed = sum(one.text != two.text for (_, one), (_, two) in pairs)
    return [plain, other] if 2 * changed > len(plain.asked) else [plain]


def ranking_inputs(
    services: Services, question: Question, own: IdSet | None = None
) -> Iterator[RankingInput]:
    """Yield what is ranked for a question among the parts `own`, by meaning and by words alone."""
    search = services.search
    try:
        query = sentence_query(question.text[:MAX_CHARS])
    except InvalidInput:
        return
    query = replace(query, is_message=not question.is_keywords)
    scope = SearchScope(own, search.pools().excluded)
    vector = search.query_vector(query)
    for each in (vector, None) if vector is not None else (None,):
        yield search.ranking_input(query, each, scope)
