"""Fits the weights of the ranking to evaluation sets and writes resources/ranking.json.

    python packaging/models/fit_ranking.py --data FILE [--data FILE] [--report FILE] [--library FOLDER]

Runs in the project's environment with scipy 1.17 added. Every set becomes a library of its own,
through the product's own code; `--library` keeps them for the next run. A set in other scripts than
the built-in embedder knows becomes a second one with the multilingual embedder. Each question is
asked within its conversation, and its candidates are one choice of a softmax: the loss is the mean
negative log of the share that falls on any evidence and of that on each. The evidence of a question
about a chat with an assistant is the whole turn: its question or its reply may match. Searches by
keywords and fragments of what both sides said are drawn from the messages of each set: few of the
questions are about what the assistant said. Sets have equal weight. The sign of each weight is
given, so that no set can teach that a better match is worse.

There are four profiles, each with meaning and by words alone: questions about talk between people,
those about chats with an assistant (by the share of candidates with a speaker's name), statements,
and keywords. A profile is also fitted, with little weight, to fragments and to the questions of the
other kinds; keywords teach nothing of questions.

The file contains its cross-validation: conversations left out (in five folds), each whole set left
out, and sets of `--report`, which no fit has seen.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import numpy as np
import numpy.typing as npt
from asked_questions import Numbers, ranking_inputs
from scipy.optimize import minimize

from app.bootstrap import Services
from app.index.id_set import IdSet
from app.index.ranking import FEATURES, features, talk_share
from app.index.relevance import RankingInput
from app.memory.search.embedders import MULTILINGUAL
from tests.bench.evaluation import (
    Evaluation,
    Question,
    StoredEvaluation,
    Talk,
    library_of,
    read_evaluation,
    scores,
    with_fragments,
    with_keywords,
)
from tests.bench.shared.measuring import options

TARGET = Path(__file__).resolve().parents[2] / "resources" / "ranking.json"
VERSION = 1
FOLDS = 5
KEYWORD_SEARCHES = 300  # of each set
FRAGMENTS = 100  # of each side of each set
KEYWORDS = "keywords"
KINDS = ("talk", "chat", "statement", KEYWORDS)
OTHER_KIND = 0.1  # weight of fragments and of the questions of other kinds
PENALTY = 0.004  # of the sum of the squared weights
NOT_NEGATIVE, NOT_POSITIVE = (0.0, None), (None, 0.0)
SIGNS = dict.fromkeys(FEATURES, NOT_NEGATIVE) | {
    "asking": NOT_POSITIVE,
    "cosine": (0.1, None),  # drawn searches never need it, but some embedders have no token vectors
}
OF_CHATS = ("own_side", "preference", "turn_words")  # only they have two sides
FIGURES = ("any@1", "any@10", "frac@10")


@dataclass(frozen=True)
class Example:
    """A question with its n candidates, newest first.

    `kind` is one of KINDS; `table` is (n, features); `units` are the candidates' turns where both
    sides of a turn answer together, else their messages; `evidence` are the units that answer.
    `asked` names the questions of a set: its own, keywords or fragments; `share` is their weight.
    """

    of_set: str
    asked: str
    conversation: str
    by_meaning: bool
    kind: str
    table: Numbers
    units: npt.NDArray[np.int64]
    evidence: frozenset[int]
    share: float

    @property
    def groups(self) -> npt.NDArray[np.int64]:
        """The number of each candidate's unit of evidence, -1 for none."""
        wanted = np.array(sorted(self.evidence), np.int64)
        at = np.searchsorted(wanted, self.units)
        is_wanted = np.isin(self.units, wanted)
        return np.where(is_wanted, at, -1)


def main() -> None:
    """Read, fit, cross-validate, write."""
    given = options(__doc__, required=["data"], data=[Path], report=[Path], library=Path)
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.library or Path(scratch)
        tuned = [each for file in given.data for each in examples(folder, read_evaluation(file))]
        rest = [
            each for file in given.report or () for each in examples(folder, read_evaluation(file))
        ]
    written = {
        "version": VERSION,
        "fitted": f"{datetime.now(UTC):%Y-%m-%d}",
        "sets": sorted({each.of_set for each in tuned}),
        "profiles": profiles(tuned),
        "cross_validation": {
            "conversations left out": left_out(tuned, conversation_folds),
            "set left out": left_out(tuned, set_folds),
            "not fitted": figures(rest, profiles(tuned)),
        },
    }
    TARGET.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(written["cross_validation"], indent=1))


def examples(folder: Path, evaluation: Evaluation) -> list[Example]:
    """Return the examples of a set, those by meaning and those by words alone."""
    found = _examples(folder / evaluation.name, evaluation, None)
    if any(each.by_meaning for each in found if each.asked == evaluation.name):
        return found
    other = _examples(folder / f"{evaluation.name}-{MULTILINGUAL}", evaluation, MULTILINGUAL)
    return found + [each for each in other if each.by_meaning]


def _examples(folder: Path, evaluation: Evaluation, embedder: str | None) -> list[Example]:
    with library_of(folder, evaluation, embedder) as (services, stored):
        drawn = (
            with_keywords(evaluation, KEYWORD_SEARCHES, Random(7)),
            with_fragments(evaluation, FRAGMENTS, Random(7)),
        )
        return [
            example
            for each in (evaluation, *drawn)
            for talk, question in each.asked
            if question.evidence
            for example in _asked(services, (evaluation.name, each.name), talk, question, stored)
        ]


def _asked(
    services: Services,
    names: tuple[str, str],
    talk: Talk,
    question: Question,
    places: StoredEvaluation,
) -> Iterable[Example]:
    stored = places.talks[talk.id]
    own = IdSet(services.passages.of_conversations(stored.conversation_ids))
    for found in ranking_inputs(services, question, own):
        order = np.argsort(-found.table.parts)
        messages = services.passages.messages_of(found.table.parts.tolist())
        kind = _kind(found)
        if (kind == KEYWORDS) is not question.is_keywords:
            continue  # drawn words that make a request
        unit_of = {int(key): int(unit) for key, unit in places.exchange_of.items()}
        if kind != "chat":
            unit_of = {each: each for each in unit_of}
        parts = found.table.parts[order].tolist()
        yield Example(
            *names,
            talk.id,
            by_meaning=found.nearness is not None,
            kind=kind,
            table=features(found.question, found.table, found.nearness)[order],
            units=np.array([unit_of.get(messages.get(part, 0), 0) for part in parts], np.int64),
            evidence=frozenset(unit_of[each] for each in stored.evidence(question)),
            share=OTHER_KIND if question.is_fragment else 1.0,
        )


def _kind(found: RankingInput) -> str:
    if found.question.states or found.question.is_keywords:
        return "statement" if found.question.states else KEYWORDS
    return "talk" if talk_share(found.table) > 0.5 else "chat"


# -- fitting


def profiles(given: Sequence[Example]) -> dict[str, dict[str, float]]:
    """Return the weights of each profile."""
    return {
        f"{kind}_{'meaning' if by_meaning else 'words'}": dict(
            zip(FEATURES, np.round(_fitted(given, kind, by_meaning), 4).tolist(), strict=True)
        )
        for kind in KINDS
        for by_meaning in (True, False)
    }


def _fitted(given: Sequence[Example], kind: str, by_meaning: bool) -> Numbers:
    groups = {
        id(each): each.groups
        for each in given
        if each.by_meaning is by_meaning and (kind == KEYWORDS or each.kind != KEYWORDS)
    }
    used = [each for each in given if id(each) in groups and (groups[id(each)] >= 0).any()]
    if not used:
        return np.zeros(len(FEATURES))
    sizes = Counter(each.asked for each in used)
    share = np.array(
        [each.share * (1 if each.kind == kind else OTHER_KIND) / sizes[each.asked] for each in used]
    )
    share /= share.sum()
    table = np.concatenate([each.table for each in used])
    counts = np.array([len(each.table) for each in used])
    starts, row = np.cumsum(counts) - counts, np.repeat(np.arange(len(used)), counts)
    own = np.concatenate([groups[id(each)] for each in used])
    (wanted,) = np.nonzero(own >= 0)
    units, unit = np.unique(row[wanted] * (own.max() + 1) + own[wanted], return_inverse=True)
    asked = units // (own.max() + 1)  # the question of each unit
    unit_share = share[asked] / np.bincount(asked, minlength=len(used))[asked]

    def loss(weights: Numbers) -> tuple[float, Numbers]:
        score = table @ weights
        power = np.exp(score - np.maximum.reduceat(score, starts)[row])
        chance = power / np.add.reduceat(power, starts)[row]
        any_chance = np.bincount(row[wanted], chance[wanted], len(used)) + 1e-12
        unit_chance = np.bincount(unit, chance[wanted], len(units)) + 1e-12
        value = -(share @ np.log(any_chance) + unit_share @ np.log(unit_chance)) / 2
        slope = chance * share[row]
        slope[wanted] -= chance[wanted] * (share / any_chance)[row[wanted]] / 2
        slope[wanted] -= chance[wanted] * (unit_share / unit_chance)[unit] / 2
        return value + PENALTY * weights @ weights, table.T @ slope + 2 * PENALTY * weights

    unused = {*(OF_CHATS if kind == "talk" else ()), *(() if by_meaning else ("cosine",))}
    bounds = [(0.0, 0.0) if each in unused else SIGNS[each] for each in FEATURES]
    found: Numbers = minimize(
        loss, np.zeros(len(FEATURES)), jac=True, method="L-BFGS-B", bounds=bounds
    ).x
    return found


# -- cross-validation


def conversation_folds(given: Sequence[Example]) -> list[frozenset[tuple[str, str]]]:
    """Return groups of conversations: each fold has a part of every set that has several."""
    folds: list[set[tuple[str, str]]] = [set() for _ in range(FOLDS)]
    for name in sorted({each.of_set for each in given}):
        own = sorted({each.conversation for each in given if each.of_set == name})
        for number, conversation in enumerate(own):
            folds[number % FOLDS].add((name, conversation))
    return [frozenset(fold) for fold in folds if fold]


def set_folds(given: Sequence[Example]) -> list[frozenset[tuple[str, str]]]:
    """Return the conversations of each set."""
    return [
        frozenset((each.of_set, each.conversation) for each in given if each.of_set == name)
        for name in sorted({each.of_set for each in given})
    ]


def left_out(
    given: Sequence[Example],
    folds: Callable[[Sequence[Example]], Iterable[Collection[tuple[str, str]]]],
) -> dict[str, dict[str, float]]:
    """Return the figures of each set, every question by weights that did not see its fold."""
    ranked: list[tuple[Example, dict[str, float]]] = []
    for fold in folds(given):
        own = profiles([each for each in given if (each.of_set, each.conversation) not in fold])
        tested = [each for each in given if (each.of_set, each.conversation) in fold]
        ranked += [(each, _scored(each, own)) for each in tested]
    return _means(ranked)


def figures(
    given: Sequence[Example], own: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """Return the figures of each set under given weights."""
    return _means([(each, _scored(each, own)) for each in given])


def _scored(example: Example, own: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    weights = own[f"{example.kind}_{'meaning' if example.by_meaning else 'words'}"]
    score = example.table @ np.array([weights[feature] for feature in FEATURES])
    ranking = example.units[np.argsort(-score, kind="stable")]
    return scores(list(dict.fromkeys(ranking.tolist())), example.evidence)


def _means(ranked: Sequence[tuple[Example, dict[str, float]]]) -> dict[str, dict[str, float]]:
    groups: dict[str, list[dict[str, float]]] = {}
    for each, found in ranked:
        name = f"{each.asked}, {'meaning' if each.by_meaning else 'words alone'}"
        groups.setdefault(name, []).append(found)
    return {
        name: {key: round(sum(each[key] for each in found) / len(found), 3) for key in FIGURES}
        | {"questions": len(found)}
        for name, found in sorted(groups.items())
    }


if __name__ == "__main__":
    main()
