"""Fits the relevance to evaluation sets and writes resources/relevance.json.

    python packaging/models/fit_relevance.py --data FILE [--data FILE] [--report FILE] [--library FOLDER]

Runs in the project's environment with scipy 1.18 added, after `fit_ranking.py`: relevance depends on the ranking.

Each set is stored as two libraries that hold half of its conversations; each is asked all questions, so those of the
other half have no answer in it. Sets whose speakers have names are stored once more with all speakers renamed to
the same two: in a real library a name tells little. Small libraries of 1 to 5 conversations are drawn as well. Sets in
other scripts than the built-in embedder knows are asked with the multilingual one too.

There are profiles of signals with and without token matches and by words alone. Their weights are those of a logistic
regression of whether there is an answer; libraries of a kind, and questions with and without an answer, count equally,
and the signs are given. The constant is then lowered until at most FALSE_SHARE of the questions without an answer pass
THRESHOLD in libraries of every kind; not for keywords, which bring nothing into a prompt. How fast relevance falls below
the best hit is fitted to whether hits are evidence.

The file contains, for each kind of library, the share of questions that pass, also by weights fitted without its set.
"""

import json
import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.stats import rankdata

from app.bootstrap import RunMode, Services, build
from app.domain.errors import InvalidInput
from app.domain.ids import MessageId, PassageId, passage_id_of
from app.index.query import MAX_CHARS, sentence_query
from app.index.ranking import Ranked, rank
from app.index.relevance import MAX_LOG_ODDS, PROFILES, fall_factor, lacks, profile_of, signals
from app.memory.embedders import MULTILINGUAL
from app.memory.search import RankingInput
from app.memory.search_scope import SearchScope
from app.system.paths import DataPaths
from tests.bench.evaluation import (
    Evaluation,
    Question,
    Talk,
    few_of,
    fill,
    has_words,
    read_evaluation,
    renamed,
    stored_before,
    with_keywords,
)
from tests.bench.shared.measuring import options

Numbers = npt.NDArray[np.float64]

TARGET = Path(__file__).resolve().parents[2] / "resources" / "relevance.json"
VERSION = 1
THRESHOLD = 0.7  # the default of the setting `rag_min_similarity`
FALSE_SHARE = 0.09  # a bit less than the goal, .10: other data differs
ASKED_KINDS = {"question": "question_tokens", "keywords": "keywords_meaning"}  # usual profiles
DRAWN = {1: 6, 2: 3, 5: 2}  # conversations of a small library: libraries
MOST_ASKED = 400  # questions of a set, in a library of half of it
ASKED = 25  # questions of either kind in a small library
TURNS = 8  # that a prompt quotes at most, by the default settings
KEPT = 0.9  # a miss costs more than a superfluous turn
FALLS = np.arange(0.1, 1.5, 0.025)
LEAST_AREA = 0.8  # under the curve
PENALTY = 1e-4  # of the sum of the squared weights
SIGNS = {"always": (None, None), "length": (None, 0.0)}  # of the other signals: not negative


@dataclass(frozen=True)
class Asked:
    """A question asked in a library.

    `kind` names the set and the kind of library; `has_answer` tells whether it has evidence there. `gaps` are the
    distances of the best hits, one for each passage, from the best score, `lacks` what each lacks of the words that
    the best contains; `right` whether each is evidence.
    `asked` is one of ASKED_KINDS.
    """

    of_set: str
    kind: str
    asked: str
    signals: Mapping[str, float]
    has_answer: bool
    gaps: Numbers
    lacks: Numbers
    right: Numbers


def main() -> None:
    """Read, fit, measure, write."""
    given = options(__doc__, required=["data"], data=[Path], report=[Path], library=Path)
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.library or Path(scratch)
        fitted_to = [each for file in given.data for each in asked_of(folder, file)]
        rest = [each for file in given.report or () for each in asked_of(folder, file)]
    profiles = {name: fitted(fitted_to, name) for name in PROFILES}
    falls = {
        asked: fall(_of_kind(fitted_to, asked), profiles[ASKED_KINDS[asked]])
        for asked in ASKED_KINDS
    }
    sets = sorted({each.of_set for each in fitted_to})
    written = {
        "version": VERSION,
        "fitted": f"{datetime.now(UTC):%Y-%m-%d}",
        "sets": sets,
        "profiles": {name: dict(zip(PROFILES[name], own.round(4).tolist(), strict=True)) for name, own in profiles.items()},
        "fall": {asked: round(each, 3) for asked, each in falls.items()},
        "quoted": {
            kind: quoted_shares(own, profiles[ASKED_KINDS[asked]], each_fall)
            for asked, each_fall in falls.items()
            for kind, own in _answerable(_of_kind([*fitted_to, *rest], asked)).items()
        },
        "measured": {
            name: {
                "fitted": passing(fitted_to, name, own),
                "set left out": {
                    kind: found
                    for left in sets
                    for kind, found in passing(
                        _of(fitted_to, left),
                        name,
                        fitted([each for each in fitted_to if each.of_set != left], name),
                    ).items()
                },
                "not fitted": passing(rest, name, own),
            }
            for name, own in profiles.items()
        },
    }  # fmt: skip
    TARGET.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(written, indent=1))


def _of(given: Sequence[Asked], of_set: str) -> list[Asked]:
    return [each for each in given if each.of_set == of_set]


def _of_kind(given: Sequence[Asked], asked: str) -> list[Asked]:
    return [each for each in given if each.asked == asked]


# -- questions asked in libraries


def asked_of(folder: Path, file: Path) -> Iterator[Asked]:
    """Yield the questions of a set, asked in libraries of every kind."""
    plain = read_evaluation(file)
    of_kind = {"halves": plain}
    if _names_speakers(plain, renamed(plain)):
        of_kind["renamed"] = renamed(plain)
    for kind, whole in of_kind.items():
        found = list(_halves(folder, whole, plain.name, kind, None))
        yield from found
        if not any("nearest" in each.signals for each in found):
            other = _halves(folder, whole, plain.name, f"{kind}, {MULTILINGUAL}", MULTILINGUAL)
            yield from (each for each in other if "nearest" in each.signals)
    drawing = random.Random(7)
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


def _names_speakers(plain: Evaluation, other: Evaluation) -> bool:
    """Return whether most questions name a speaker: only they differ in `other`, which is renamed."""
    changed = [
        one.text != two.text for (_, one), (_, two) in zip(plain.asked, other.asked, strict=True)
    ]
    return sum(changed) > len(changed) / 2


def _asked_in(
    folder: Path,
    evaluation: Evaluation,
    asked: Iterable[tuple[Talk, Question]],
    of_set: str,
    kind: str,
    embedder: str | None = None,
) -> Iterator[Asked]:
    folder.mkdir(parents=True, exist_ok=True)
    with closing(build(DataPaths(folder), RunMode.COMMAND_LINE)) as services:
        for key in ("embedder", "embedder_before") if embedder else ():
            services.settings.set(key, embedder)
        stored = stored_before(services.store, evaluation) or fill(services, [evaluation])[0][0]
        services.index_sync.catch_up()
        for talk, question in asked:
            own = stored.talks.get(talk.id)
            evidence = own.evidence(question) if own else frozenset()
            if own and not evidence:
                continue
            right = {stored.exchange_of[each] for each in evidence}
            for found in _inputs(services, question):
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


def _inputs(services: Services, question: Question) -> Iterator[RankingInput]:
    """Yield what is ranked for a question, by meaning and by words alone; nothing without candidates."""
    search = services.search
    try:
        query = sentence_query(question.text[:MAX_CHARS])
    except InvalidInput:
        return
    query = replace(query, is_message=not question.is_keywords)
    vector = search.query_vector(query)
    for each in (vector, None) if vector is not None else (None,):
        found = search.ranking_input(query, each, SearchScope(None, search.pools().excluded))
        if len(found.table.parts):
            yield found


# -- fitting


def fitted(given: Sequence[Asked], profile: str) -> Numbers:
    """Return the weights of a profile's signals; zeros without questions of either kind.

    A set teaches nothing if in one of its kinds of libraries they cannot tell whether there is an answer: a question of
    such a set looks the same with and without one.
    """
    used = _used(given, profile)
    weights = _fitted(used, profile)
    areas = {kind: each["area"] for kind, each in passing(used, profile, weights).items()}
    blind = {each.of_set for each in used if areas[each.kind] < LEAST_AREA}
    used = [each for each in used if each.of_set not in blind]
    weights = _fitted(used, profile)
    if profile.startswith("keywords"):  # they bring nothing into a prompt
        return weights
    table, has_answer, _ = _table(used, profile)
    odds, kinds = table @ weights, np.array([each.kind for each in used])
    allowed = [
        np.quantile(odds[(kinds == kind) & (has_answer == 0)], 1 - FALSE_SHARE)
        for kind in set(kinds.tolist())
    ]
    weights[0] -= max([0.0, *(each - np.log(THRESHOLD / (1 - THRESHOLD)) for each in allowed)])
    return weights


def _fitted(used: Sequence[Asked], profile: str) -> Numbers:
    if not used:
        return np.zeros(len(PROFILES[profile]))
    table, has_answer, share = _table(used, profile)
    bounds = [SIGNS.get(each, (0.0, None)) for each in PROFILES[profile]]
    return _logistic(table, has_answer, share, bounds)


def fall(given: Sequence[Asked], weights: Numbers) -> float:
    """Return the log odds that a hit loses per unit of score below the best, in a library that is not small.

    A question needs one piece of evidence; who searches by keywords wants all messages with them.
    """
    kinds = _answerable(given).values()
    kept_of = "kept" if given[0].asked == "question" else "all kept"

    def kept(each_fall: float) -> float:
        shares = [quoted_shares(own, weights, each_fall) for own in kinds]
        return float(np.mean([each[kept_of] for each in shares]))

    return float(max((each for each in FALLS if kept(each) >= KEPT), default=FALLS[0]))


def _answerable(given: Sequence[Asked]) -> dict[str, list[Asked]]:
    found: dict[str, list[Asked]] = {}
    for each in given:
        if each.has_answer and profile_of(each.signals, each.asked) == ASKED_KINDS[each.asked]:
            found.setdefault(each.kind, []).append(each)
    return found


def quoted_shares(own: Sequence[Asked], weights: Numbers, each_fall: float) -> dict[str, float]:
    """Return the shares of questions that quote evidence, and of those that could; the turns and their evidence."""
    threshold = np.log(THRESHOLD / (1 - THRESHOLD))
    profile = PROFILES[ASKED_KINDS[own[0].asked]]
    table = np.array([[each.signals[name] for name in profile] for each in own])
    loss = weights[profile.index("holds")] if "holds" in profile else 0.0
    tops = np.minimum(table @ weights, MAX_LOG_ODDS)
    right = [
        each.right[
            each.gaps * each_fall * fall_factor(each.signals, each.asked) + each.lacks * loss
            <= top - threshold
        ]
        for each, top in zip(own, tops, strict=True)
    ]
    could = [each.right for each, top in zip(own, tops, strict=True) if top > threshold]
    found, turns = sum(each.any() for each in right), sum(map(len, right))
    return {
        "evidence": round(found / len(own), 3),
        "kept": round(float(found / max(1, sum(each.any() for each in could))), 3),
        "all kept": round(float(sum(map(np.sum, right)) / max(1, sum(map(np.sum, could)))), 3),
        "turns": round(turns / len(own), 2),
        "of them evidence": round(float(sum(each.sum() for each in right) / max(1, turns)), 3),
    }


def passing(given: Sequence[Asked], profile: str, weights: Numbers) -> dict[str, dict[str, float]]:
    """Return for each kind of library the area under the curve and the shares of questions above THRESHOLD."""
    used = _used(given, profile)
    found = {}
    for kind in sorted({each.kind for each in used}):
        own = [each for each in used if each.kind == kind]
        table, has_answer, _ = _table(own, profile)
        odds, answered = table @ weights, has_answer > 0
        passed = odds > np.log(THRESHOLD / (1 - THRESHOLD))
        with_answer, without = int(answered.sum()), int((~answered).sum())
        found[kind] = {"questions": with_answer, "without": without} | {
            name: round(float(share), 3)
            for name, share, count in (
                ("passing", passed[answered].sum() / max(1, with_answer), with_answer),
                ("passing without", passed[~answered].sum() / max(1, without), without),
                ("area", _area(odds, answered), with_answer * without),
            )
            if count
        }
    return found


def _used(given: Sequence[Asked], profile: str) -> list[Asked]:
    """Return the questions with a profile's signals, of kinds that have questions with and without an answer.

    To words alone belong only those without more.
    """
    asked, by_words = profile.partition("_")[0], profile.endswith("_words")
    seen = {(each.kind, each.has_answer) for each in given if each.asked == asked}
    given = [each for each in given if {(each.kind, True), (each.kind, False)} <= seen]
    return [
        each
        for each in given
        if set(PROFILES[profile]) <= each.signals.keys()
        and not (by_words and "nearest" in each.signals)
    ]


def _table(used: Sequence[Asked], profile: str) -> tuple[Numbers, Numbers, Numbers]:
    """Return the signals (n, s), whether there is an answer (n,), and what each question counts (n,)."""
    table = np.array([[each.signals[name] for name in PROFILES[profile]] for each in used])
    groups = [(each.kind, each.has_answer) for each in used]
    share = np.array([1 / groups.count(group) for group in groups])
    return table, np.array([float(each.has_answer) for each in used]), share


def _logistic(
    table: Numbers,
    wanted: Numbers,
    share: Numbers,
    bounds: Sequence[tuple[float | None, float | None]],
) -> Numbers:
    share = share / share.sum()

    def loss(weights: Numbers) -> tuple[float, Numbers]:
        odds = table @ weights
        chance = 1 / (1 + np.exp(-odds))
        value = (share * (np.logaddexp(0, odds) - wanted * odds)).sum()
        gradient = table.T @ (share * (chance - wanted))
        return value + PENALTY * weights @ weights, gradient + 2 * PENALTY * weights

    found: Numbers = minimize(
        loss, np.zeros(table.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds
    ).x
    return found


def _area(odds: Numbers, answered: npt.NDArray[np.bool_]) -> float:
    """Return the area under the curve: the chance that a question with an answer has higher odds than one without."""
    count, others = int(answered.sum()), int((~answered).sum())
    above = rankdata(odds)[answered].sum() - count * (count + 1) / 2
    return float(above / max(1, count * others))


if __name__ == "__main__":
    main()
