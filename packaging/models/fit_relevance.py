"""Fits the relevance to evaluation sets and writes resources/relevance.json.

    python packaging/models/fit_relevance.py --data FILE [--data FILE] [--report FILE] [--library FOLDER]

Runs in the project's environment with scipy 1.18 added, after `fit_ranking.py`: relevance depends on the ranking.

Each set is stored as two libraries that hold half of its conversations; each is asked all questions, so those of the
other half have no answer in it. Sets whose speakers have names are stored once more with all speakers renamed to
the same two: in a real library a name tells little. Small libraries of 1 to 20 conversations are drawn as well. Sets in other scripts than the built-in embedder knows are
asked with the multilingual one too.

The weights of the signals are those of a logistic regression of whether there is an answer; libraries of a kind, and
questions with and without an answer, count equally, and the signs are given. The constant is then lowered until at
most FALSE_SHARE of the questions without an answer pass THRESHOLD in libraries of every kind. How fast relevance falls
below the best hit is fitted to whether hits are evidence.

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
from app.index.relevance import PROFILES, signals
from app.memory.embedders import MULTILINGUAL
from app.memory.search import RankingInput, SearchScope
from app.system.paths import DataPaths
from tests.bench.evaluation import (
    Evaluation,
    Question,
    Talk,
    few_of,
    fill,
    read_evaluation,
    renamed,
    stored_before,
)
from tests.bench.shared.measuring import options

Numbers = npt.NDArray[np.float64]

TARGET = Path(__file__).resolve().parents[2] / "resources" / "relevance.json"
VERSION = 1
THRESHOLD = 0.7  # the default of the setting `rag_min_similarity`
FALSE_SHARE = 0.09  # a bit less than the goal, .10: other data differs
DRAWN = {1: 10, 2: 6, 5: 4, 10: 2, 20: 1}  # conversations of a small library: libraries
ASKED = 25  # questions of either kind in a small library
HITS = 20  # of a question, that the fall is fitted to
LEAST_AREA = 0.8  # under the curve
PENALTY = 1e-4  # of the sum of the squared weights
SIGNS = {"always": (None, None), "length": (None, 0.0)}  # of the other signals: not negative


@dataclass(frozen=True)
class Asked:
    """A question asked in a library.

    `kind` names the set and the kind of library; `has_answer` tells whether it has evidence there. `gaps` are the
    distances of the best hits, one for each passage, from the best score; `right` whether each is evidence.
    """

    of_set: str
    kind: str
    signals: Mapping[str, float]
    has_answer: bool
    gaps: Numbers
    right: Numbers


def main() -> None:
    """Read, fit, measure, write."""
    given = options(__doc__, required=["data"], data=[Path], report=[Path], library=Path)
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.library or Path(scratch)
        fitted_to = [each for file in given.data for each in asked_of(folder, file)]
        rest = [each for file in given.report or () for each in asked_of(folder, file)]
    profiles = {name: fitted(fitted_to, name) for name in PROFILES}
    sets = sorted({each.of_set for each in fitted_to})
    written = {
        "version": VERSION,
        "fitted": f"{datetime.now(UTC):%Y-%m-%d}",
        "sets": sets,
        "profiles": {name: dict(zip(PROFILES[name], own.round(4).tolist(), strict=True)) for name, own in profiles.items()},
        "fall": round(fall(fitted_to), 3),
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
        if not any("best" in each.signals for each in found):
            other = _halves(folder, whole, plain.name, f"{kind}, {MULTILINGUAL}", MULTILINGUAL)
            yield from (each for each in other if "best" in each.signals)
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
            with tempfile.TemporaryDirectory() as scratch:
                yield from _asked_in(Path(scratch), few, drawn, plain.name, "few")


def _halves(
    folder: Path, whole: Evaluation, of_set: str, kind: str, embedder: str | None
) -> Iterator[Asked]:
    for half in (0, 1):
        own = replace(whole, talks=whole.talks[half::2])
        place = folder / f"{of_set}-{kind}-{half}"
        yield from _asked_in(place, own, whole.asked, of_set, kind, embedder)


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
                hits = list(best.values())[:HITS]
                messages = services.passages.messages_of([each.part_id for each in hits])
                exchanges = [
                    stored.exchange_of.get(messages.get(each.part_id, MessageId(0)))
                    for each in hits
                ]
                yield Asked(
                    of_set, kind=f"{of_set}, {kind}", has_answer=bool(evidence),
                    signals=signals(ranked, found.table, found.background, found.passages),
                    gaps=np.array([hits[0].score - each.score for each in hits]),
                    right=np.array([float(each in right) for each in exchanges]),
                )  # fmt: skip


def _inputs(services: Services, question: Question) -> Iterator[RankingInput]:
    """Yield what is ranked for a question, by meaning and by words alone; nothing without candidates."""
    search = services.search
    try:
        query = sentence_query(question.text[:MAX_CHARS])
    except InvalidInput:
        return
    vector = search.query_vector(query)
    for each in (vector, None) if vector is not None else (None,):
        found = search.ranking_input(query, each, SearchScope(None, search.pools().excluded))
        if len(found.table.parts):
            yield found


# -- fitting


def fitted(given: Sequence[Asked], profile: str) -> Numbers:
    """Return the weights of a profile's signals; zeros without questions of either kind.

    Libraries of a kind in which they cannot tell whether there is an answer teach nothing.
    """
    used = _used(given, profile)
    weights = _fitted(used, profile)
    told = {
        kind
        for kind, found in passing(used, profile, weights).items()
        if found["area"] >= LEAST_AREA
    }
    weights = _fitted(kept := [each for each in used if each.kind in told], profile)
    odds = np.array([[each.signals[name] for name in PROFILES[profile]] for each in kept]) @ weights
    without = np.array([not each.has_answer for each in kept])
    allowed = [
        np.quantile(odds[without & np.array([each.kind == kind for each in kept])], 1 - FALSE_SHARE)
        for kind in told
    ]
    weights[0] -= max([0.0, *(each - np.log(THRESHOLD / (1 - THRESHOLD)) for each in allowed)])
    return weights


def _fitted(used: Sequence[Asked], profile: str) -> Numbers:
    if not used:
        return np.zeros(len(PROFILES[profile]))
    table, has_answer, share = _table(used, profile)
    bounds = [SIGNS.get(each, (0.0, None)) for each in PROFILES[profile]]
    return _logistic(table, has_answer, share, bounds)


def fall(given: Sequence[Asked]) -> float:
    """Return the log odds of being evidence that a hit loses per unit of score below the best."""
    used = [each for each in given if each.has_answer and "best" in each.signals]
    kinds = [each.kind for each in used]
    table = np.concatenate(
        [np.stack([np.ones(len(each.gaps)), -each.gaps], axis=1) for each in used]
    )
    share = np.concatenate(
        [np.full(len(each.gaps), 1 / len(each.gaps) / kinds.count(each.kind)) for each in used]
    )
    right = np.concatenate([each.right for each in used])
    return float(_logistic(table, right, share, [(None, None), (0.0, None)])[1])


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
    wanted = set(PROFILES[profile])
    by_meaning = "best" in wanted
    seen = {(each.kind, each.has_answer) for each in given}
    given = [each for each in given if {(each.kind, True), (each.kind, False)} <= seen]
    return [
        each
        for each in given
        if each.signals.keys() >= wanted and ("best" in each.signals) is by_meaning
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
