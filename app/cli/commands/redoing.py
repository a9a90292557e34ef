"""`rebuild summaries` and `rebuild facts`: made again by who does background work now."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

from app.bootstrap import Services
from app.cli.terminal import NotAgreed, Terminal
from app.domain.workers import WorkerName
from app.workers.redoing import EXTRACTORS, SUMMARISERS, FactRedo, SummaryRedo


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is rebuilt, by which workers, and how it is said that it was, or is still to be done."""

    name: str
    workers: Sequence[WorkerName]
    done: str
    left: str


_SUMMARIES = _Kind(
    "summaries", SUMMARISERS, "summaries were made again", "summaries are still to be made"
)
_FACTS = _Kind(
    "facts", EXTRACTORS, "exchanges were read for facts again", "exchanges are still to be read"
)


def redo_summaries(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Make again what others summarised, once that was agreed to in sight of what it costs."""
    return _redo(_SUMMARIES, services.redo, services, given, terminal)


def redo_facts(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Learn again what others learned, once that was agreed to in sight of what it costs."""
    return _redo(_FACTS, services.fact_redo, services, given, terminal)


def _redo(
    kind: _Kind,
    redo: SummaryRedo | FactRedo,
    services: Services,
    given: Namespace,
    terminal: Terminal,
) -> int:
    plan = redo.plan()
    terminal.err(plan.words)
    if plan.count and not given.yes and not terminal.says_yes():
        raise NotAgreed("Nothing was changed: nobody agreed to it", "Add --yes to agree.")
    left = 0
    if plan.count:
        redo.begin()
        ran = services.workers.run_until_idle(kind.workers, is_cancelled=terminal.cancelled)
        left = sum(each.total - each.done for each in ran)
    if terminal.as_json:
        terminal.document({"rebuilt": kind.name, "asked_for": plan.count, "waiting": left})
    elif plan.count and not left:
        terminal.line(f"{plan.count:,} {kind.done}.")
    if left:
        terminal.err(f"{left:,} {kind.left}: 'commonplace work' goes on with them.")
    return 1 if left else 0
