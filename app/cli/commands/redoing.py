"""`rebuild summaries` and `rebuild facts`: made again by who does background work now."""

from argparse import Namespace

from app.bootstrap import Services
from app.cli.terminal import NotAgreed, Terminal
from app.workers.redoing import EXTRACTORS, SUMMARISERS


def redo_summaries(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Make again what others summarised, once that was agreed to in sight of what it costs."""
    plan = services.redo.plan()
    terminal.err(plan.words)
    if plan.count and not given.yes and not terminal.says_yes():
        raise NotAgreed("Nothing was changed: nobody agreed to it", "Add --yes to agree.")
    left = 0
    if plan.count:
        services.redo.begin()
        ran = services.workers.run_until_idle(SUMMARISERS, is_cancelled=terminal.cancelled)
        left = sum(each.total - each.done for each in ran)
    if terminal.as_json:
        terminal.document({"rebuilt": "summaries", "asked_for": plan.count, "waiting": left})
    elif plan.count and not left:
        terminal.line(f"{plan.count:,} summaries were made again.")
    if left:
        terminal.err(
            f"{left:,} summaries are still to be made: 'commonplace work' goes on with them."
        )
    return 1 if left else 0


def redo_facts(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Learn again what others learned, once that was agreed to in sight of what it costs."""
    plan = services.fact_redo.plan()
    terminal.err(plan.words)
    if plan.count and not given.yes and not terminal.says_yes():
        raise NotAgreed("Nothing was changed: nobody agreed to it", "Add --yes to agree.")
    left = 0
    if plan.count:
        services.fact_redo.begin()
        ran = services.workers.run_until_idle(EXTRACTORS, is_cancelled=terminal.cancelled)
        left = sum(each.total - each.done for each in ran)
    if terminal.as_json:
        terminal.document({"rebuilt": "facts", "asked_for": plan.count, "waiting": left})
    elif plan.count and not left:
        terminal.line(f"{plan.count:,} exchanges were read for facts again.")
    if left:
        terminal.err(
            f"{left:,} exchanges are still to be read: 'commonplace work' goes on with them."
        )
    return 1 if left else 0
