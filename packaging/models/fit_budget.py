"""Fits the share of the recall budget to evaluation sets and writes resources/budget.json.

    python packaging/models/fit_budget.py --data FILE [--data FILE] [--report FILE] [--library FOLDER] [--questions N]

Runs in the project's environment, after `fit_relevance.py`: the share depends on the relevance of
the best of what was found.

Each set is stored as two libraries that hold half of its conversations each, with their summaries
and facts; each is asked the same questions, so that those of the other half have no answer in it.
What every budget of BUDGETS would bring is measured for each question, through the product's own
selection. Of all rules (an exponent, and a least share, which always leaves room for one line)
whose mean cost for questions without an answer is at most MOST_TOKENS in every set, the one that
brings most is taken: the mean of the gold answer's words in the prompt and of the questions whose
evidence is in it; sets count equally.

Sets whose speakers have names count once more with all speakers renamed to the same two; those
given with `--report` are measured only.

Prints and stores the figures of the rule, and of the rules fitted without the conversation, and
without the set, that they are measured on.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from asked_questions import Numbers, with_renamed

from app.domain.ids import ConversationId
from app.domain.recall import RecallSettings
from app.memory.context.items import SelectionContext
from app.memory.context.selection import select_within
from app.memory.context.token_budget import RecallRoom, best_relevance, share_of
from tests.bench.evaluation import Evaluation, read_evaluation
from tests.bench.recall import evidence_of, injected, library, retrieved
from tests.bench.shared.measuring import options

TARGET = Path(__file__).resolve().parents[2] / "resources" / "budget.json"
# Without an answer; 100 costs sets that no fit has seen a tenth of their evidence
MOST_TOKENS = 115
BUDGETS = (85, 97, 110, 125, 160, 250, 500, 800, 1200)
RULES = [
    (float(exponent), least / 100) for exponent in np.arange(0, 8.1, 0.25) for least in range(8, 21)
]
WHOLE = RULES.index((0.0, 0.08))  # the whole budget, whatever was found


@dataclass(frozen=True)
class Asked:
    """A question asked in a library: what each rule of RULES costs in tokens, and brings (0-1) if it has an answer."""

    of_set: str
    of_talk: str
    has_answer: bool
    tokens: Numbers
    words: Numbers
    in_prompt: Numbers

    @property
    def value(self) -> Numbers:
        """The mean of the answer's words and the evidence in the prompt."""
        return (self.words + self.in_prompt) / 2


def main() -> None:
    """Read, fit, measure, write."""
    given = options(
        __doc__, required=["data"], data=[Path], report=[Path], library=Path, questions=200
    )
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.library or Path(scratch)

        def asked_in(files: Sequence[Path]) -> list[Asked]:
            sets = [each for file in files for each in with_renamed(read_evaluation(file))]
            return [each for whole in sets for each in asked_of(folder, whole, given.questions)]

        asked, rest = asked_in(given.data), asked_in(given.report)
    rule = fitted(asked)
    written = {
        "exponent": RULES[rule][0],
        "least": RULES[rule][1],
        "fitted": f"{datetime.now(UTC):%Y-%m-%d}",
        "measured": {
            "fitted": figures(asked, lambda _: rule),
            "conversation left out": left_out(asked, lambda each: each.of_talk),
            "set left out": left_out(asked, lambda each: each.of_set),
            "not fitted": figures(rest, lambda _: rule),
            "whole budget": figures([*asked, *rest], lambda _: WHOLE),
        },
    }
    TARGET.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(written, indent=1))


def asked_of(folder: Path, whole: Evaluation, count: int) -> Iterator[Asked]:
    """Yield evenly chosen questions of a set, asked in the libraries of its halves."""
    settings = RecallSettings()
    every = max(1, len(whole.asked) // count)
    for half in (0, 1):
        own = replace(whole, talks=whole.talks[half::2])
        place = folder / f"{whole.name}-meaning-{half}"
        with library(place, [own], words_only=False) as (services, (places,)):
            for talk, question in whole.asked[::every]:
                found = retrieved(services, question.text)
                evidence = evidence_of(places, talk, question)
                context = SelectionContext(
                    ConversationId(0), question.text, frozenset(), can_fetch=True
                )
                brought = [
                    injected(
                        select_within(found, settings, context, RecallRoom(budget, 0, 0)),
                        question,
                        evidence,
                    )
                    for budget in BUDGETS
                ]
                is_own = talk.id in places.talks
                if is_own and not (evidence and brought[0].answer_words is not None):
                    continue  # nothing to find
                best = best_relevance(found)
                budgets = [settings.rag_max_tokens * share_of(best, *rule) for rule in RULES]
                by_rule = [
                    np.interp(budgets, (0, *BUDGETS), (0.0, *values))
                    for values in (
                        [each.tokens for each in brought],
                        [each.answer_words or 0.0 for each in brought],
                        [float(each.in_prompt) for each in brought],
                    )
                ]
                yield Asked(whole.name, f"{whole.name} {talk.id}", bool(evidence), *by_rule)


def fitted(asked: Sequence[Asked]) -> int:
    """Return the number of the rule that brings most for at most MOST_TOKENS; the cheapest if all cost more."""
    sets = sorted({each.of_set for each in asked})
    costs = np.max([_mean(asked, name, False, lambda each: each.tokens) for name in sets], axis=0)
    values = np.mean([_mean(asked, name, True, lambda each: each.value) for name in sets], axis=0)
    if (costs > MOST_TOKENS).all():
        return int(costs.argmin())
    return int(np.where(costs <= MOST_TOKENS, values, -1.0).argmax())


def _mean(
    asked: Sequence[Asked], of_set: str, has_answer: bool, of: Callable[[Asked], Numbers]
) -> Numbers:
    own = [of(each) for each in asked if (each.of_set, each.has_answer) == (of_set, has_answer)]
    return np.asarray(np.mean(own, axis=0) if own else np.zeros(len(RULES)))


def left_out(asked: Sequence[Asked], key: Callable[[Asked], str]) -> dict[str, dict[str, float]]:
    """Return the figures with each question's rule fitted without those of the same key."""
    rules = {
        own: fitted([each for each in asked if key(each) != own]) for own in set(map(key, asked))
    }
    return figures(asked, lambda each: rules[key(each)])


def figures(asked: Sequence[Asked], rule_of: Callable[[Asked], int]) -> dict[str, dict[str, float]]:
    """Return for each set the means of what the rules cost and bring."""
    found = {}
    for name in sorted({each.of_set for each in asked}):
        own = [(each, rule_of(each)) for each in asked if each.of_set == name]
        answered = [(each, rule) for each, rule in own if each.has_answer]
        others = [(each, rule) for each, rule in own if not each.has_answer]
        found[name] = {
            "exponent": round(float(np.mean([RULES[rule][0] for _, rule in own])), 2),
            "least": round(float(np.mean([RULES[rule][1] for _, rule in own])), 3),
            "answer_words": round(float(np.mean([a.words[r] for a, r in answered])), 3),
            "evidence_or_hint": round(float(np.mean([a.in_prompt[r] for a, r in answered])), 3),
            "tokens": round(float(np.mean([a.tokens[r] for a, r in answered]))),
            "tokens_without_answer": round(float(np.mean([a.tokens[r] for a, r in others])), 1),
        }
    return found


if __name__ == "__main__":
    main()
