"""Fits the relevance to evaluation sets and writes resources/relevance.json.

    python packaging/models/fit_relevance.py --data FILE [--data FILE] [--report FILE] [--library FOLDER]

Runs in the project's environment with scipy 1.17 added, after `fit_ranking.py`: relevance depends
on the ranking.

`asked_questions` asks the questions of each set in libraries of several kinds, with and without an
answer.

There are profiles of signals with and without token matches and by words alone. Their weights are
those of a logistic regression of whether there is an answer; libraries of a kind, and questions
with and without an answer, count equally, and the signs are given. The constant is then lowered
until at most FALSE_SHARE of the questions without an answer pass THRESHOLD in libraries of every
kind; not for keywords, which bring nothing into a prompt. How fast relevance falls below the best
hit is fitted to whether hits are evidence.

The file contains, for each kind of library, the share of questions that pass, also by weights
fitted without its set.
"""

import json
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
from asked_questions import ASKED_KINDS, Asked, Numbers, asked_of
from scipy.optimize import minimize
from scipy.stats import rankdata

from app.index.relevance import MAX_LOG_ODDS, PROFILES, fall_factor, profile_of
from tests.bench.shared.measuring import options

TARGET = Path(__file__).resolve().parents[2] / "resources" / "relevance.json"
VERSION = 1
THRESHOLD = 0.7  # the default of the setting `rag_min_similarity`
FALSE_SHARE = 0.09  # a bit less than the goal, .10: other data differs
KEPT = 0.9  # a miss costs more than a superfluous turn
FALLS = np.arange(0.1, 1.5, 0.025)
LEAST_AREA = 0.8  # under the curve
PENALTY = 1e-4  # of the sum of the squared weights
SIGNS = {"always": (None, None), "length": (None, 0.0)}  # of the other signals: not negative


def main() -> None:
    """Read, fit, measure, write."""
    given = options(__doc__, required=["data"], data=[Path], report=[Path], library=Path)
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.library or Path(scratch)
        fitted_to = [each for file in given.data for each in asked_of(folder, file)]
        rest = [each for file in given.report or () for each in asked_of(folder, file)]
    profiles = {name: fitted(fitted_to, name) for name in PROFILES}
    falls = {
        asked: fall(_of_kind(fitted_to, asked), profiles[profile])
        for asked, profile in ASKED_KINDS.items()
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
                        [each for each in fitted_to if each.of_set == left],
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


def _of_kind(given: Sequence[Asked], asked: str) -> list[Asked]:
    return [each for each in given if each.asked == asked]


def fitted(given: Sequence[Asked], profile: str) -> Numbers:
    """Return the weights of a profile's signals; zeros without questions of either kind.

    A set teaches nothing if in one of its kinds of libraries they cannot tell whether there is an
    answer: a question of such a set looks the same with and without one.
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
    """Return the weights of a logistic regression; zeros without questions."""
    if not used:
        return np.zeros(len(PROFILES[profile]))
    table, wanted, share = _table(used, profile)
    share = share / share.sum()

    def loss(weights: Numbers) -> tuple[float, Numbers]:
        odds = table @ weights
        chance = 1 / (1 + np.exp(-odds))
        value = (share * (np.logaddexp(0, odds) - wanted * odds)).sum()
        gradient = table.T @ (share * (chance - wanted))
        return value + PENALTY * weights @ weights, gradient + 2 * PENALTY * weights

    bounds = [SIGNS.get(each, (0.0, None)) for each in PROFILES[profile]]
    start = np.zeros(table.shape[1])
    found: Numbers = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return found


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


def _area(odds: Numbers, answered: npt.NDArray[np.bool_]) -> float:
    """Return the area under the curve: the chance that a question with an answer has higher odds than one without."""
    count, others = int(answered.sum()), int((~answered).sum())
    above = rankdata(odds)[answered].sum() - count * (count + 1) / 2
    return float(above / max(1, count * others))


if __name__ == "__main__":
    main()
