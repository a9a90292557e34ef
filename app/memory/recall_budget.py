"""Recall budget: which share of the tokens for recall what was found is worth.

The less likely it is that something answers, the fewer tokens are used: most are lost where nothing
does. The form is fitted by `packaging/models/fit_budget.py` and stored in `resources/budget.json`,
with its cross-validation; packaging/decisions/0032-recall-threshold.md.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from app.domain.recall import RetrievalResult
from app.index.relevance import HIGHEST_RELEVANCE

_FITTED_FILE = Path(__file__).resolve().parents[2] / "resources" / "budget.json"


def budget_share(found: RetrievalResult) -> float:
    """Return the share (0-1) of the budget for what was found; 1 for what is asked for by name."""
    fitted = _fitted()
    return share_of(best_relevance(found), fitted["exponent"], fitted["least"])


def share_of(relevance: float, exponent: float, least: float) -> float:
    """Return the share (0-1) of the budget for this best relevance."""
    return float(min(1.0, max(least, (relevance / HIGHEST_RELEVANCE) ** exponent)))


def best_relevance(found: RetrievalResult) -> float:
    """Return the best relevance (0-1) found, 0 for nothing; 1 for what is asked for by name."""
    if found.mentioned or found.asked_facts:
        return 1.0
    turns = [*found.history, *(each for one in found.conversations for each in one.exchanges)]
    matches = [each.match for each in turns]
    matches += [each.match for each in found.conversations]
    matches += [each.match for each in found.facts]
    return max((each.relevance for each in matches), default=0.0)


@cache
def _fitted() -> Mapping[str, float]:
    found: Mapping[str, float] = json.loads(_FITTED_FILE.read_text(encoding="utf-8"))
    return found
