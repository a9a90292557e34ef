"""`work` and `status`: run the background workers, and print the state of the program."""

import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from app.cli.commands.maintenance import catch_up_a_little, catch_up_index
from app.cli.terminal import Terminal, members
from app.domain.translation import format_at_most, format_percent, month_start
from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from app.index.text_sync import TextIndexSync
from app.memory.search.coverage import Overview, OverviewService
from app.memory.search.embedders import EmbedderSuggestions
from app.storage.engine.stamps import now
from app.storage.tables.spending import Spending, Spent, by_month
from app.workers.board import WorkerBoard
from app.workers.model_choice import MODEL_WORKERS
from app.workers.status_text import ESTIMATED, format_spent, worker_text

_LOOK_EVERY_S = 5.0
_NAP_S = 0.1
_YEAR = timedelta(days=365)


def work(board: WorkerBoard, sync: TextIndexSync, given: Namespace, terminal: Terminal) -> int:
    """Run workers here until nothing is left, or until the user cancels.

    It fails, with a line for each blocked worker, when workers that use models are blocked and did
    nothing.
    """
    names = [WorkerName(name) for name in given.only] if given.only else None
    watch = _Watch(board.statuses())
    end_watch = board.subscribe(watch.take)
    sync.start()  # else all workers come before it
    try:
        while True:
            board.run_until_idle(names, is_cancelled=terminal.cancelled)
            catch_up_index(sync, terminal)
            if given.until_idle or terminal.cancelled():
                break
            _wait(_LOOK_EVERY_S, terminal)
    finally:
        end_watch()
    statuses = board.refresh()
    terminal.show({"workers": _workers(statuses)}, *map(_words, statuses))
    stuck = watch.stuck(statuses) if given.until_idle else {}
    for name, why in stuck.items():
        terminal.err(f"{name.value} waits: {why}")
    return 1 if stuck else 0


class _Watch:
    """The statuses of workers while they run: the last one says only that they stopped."""

    def __init__(self, before: Sequence[WorkerStatus]) -> None:
        self._before = {each.name: each.completed for each in before}
        self._latest = {each.name: each for each in before}

    def take(self, status: WorkerStatus) -> None:
        """Store a status; called on the worker's thread."""
        if status.state is not WorkerState.STOPPED:
            self._latest[status.name] = status

    def stuck(self, statuses: Sequence[WorkerStatus]) -> Mapping[WorkerName, str]:
        """Return why workers are blocked; none if one that uses a model has completed something."""
        waiting = {
            name: each.blocked_by
            for name, each in self._latest.items()
            if each.state is WorkerState.BLOCKED
        }
        concerned = {*MODEL_WORKERS, *waiting}
        is_done = any(
            each.completed > self._before[each.name] for each in statuses if each.name in concerned
        )
        return {} if is_done else waiting


def status(
    board: WorkerBoard,
    overviews: OverviewService,
    spending: Spending,
    sync: TextIndexSync,
    suggestions: EmbedderSuggestions,
    terminal: Terminal,
) -> None:
    """Print what the dashboard shows, and which embedder would suit the library better."""
    catch_up_a_little(sync, terminal)
    overview = overviews.read()
    embedded = overview.embedded
    statuses = board.refresh()
    document = {
        "workers": _workers(statuses),
        "passages": {kind.value: count for kind, count in overview.passages.items()},
        "searchable_percent": round(overview.searchable_share * 100, 1),
        "embedded_percent": round(embedded.share * 100, 1) if embedded else None,
        "embedding_space": embedded.space if embedded else None,
        **members(overview, "database_bytes", "conversations", "deletions_owed"),
        "spend": _spend(spending, overview),
    }
    terminal.show(document, *_lines(overview, statuses))
    for warning in board.warnings():
        terminal.err(warning)
    if (suggested := suggestions.read()) is not None:
        terminal.err(
            f"{suggested.reason} Switch: commonplace config set embedder {suggested.choice}"
        )


def _wait(seconds: float, terminal: Terminal) -> None:
    """Wait, or until the user cancels."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not terminal.cancelled():
        time.sleep(_NAP_S)


def _lines(overview: Overview, statuses: Sequence[WorkerStatus]) -> Iterator[str]:
    yield from map(_words, statuses)
    for kind, count in overview.passages.items():
        yield f"{kind.value}: {count:,}"
    yield f"searchable: {format_percent(overview.searchable_share)}"
    if overview.embedded is not None:
        yield f"embedded in {overview.embedded.space}: {overview.embedded.share:.0%}"
    yield f"conversations: {overview.conversations:,}"
    yield f"database: {overview.database_bytes:,} bytes"
    if overview.deletions_owed:
        yield (
            f"deletions whose bytes are still in files: {overview.deletions_owed:,}; removed at a quiet time "
            "while the window is open or 'commonplace work' runs, and by a command once a day"
        )
    today, month = format_spent(overview.spent_today), format_spent(overview.spent_month)
    yield f"spent: {today} today, {month} this month"
    if most_usd := overview.spent_month.estimated_usd:
        today = format_at_most(overview.spent_today.estimated_usd)
        yield f"of it {ESTIMATED}: {today} today, {format_at_most(most_usd)} this month"


def _spend(spending: Spending, overview: Overview) -> dict[str, Any]:
    """Return spend; a sum with an unknown price is None, next to its known part."""
    at = now()
    begins = month_start(at)
    rows = spending.by_day(month_start(at - _YEAR))
    return {
        "today_usd": overview.spent_today.cost_usd,
        "month_usd": overview.spent_month.cost_usd,
        "today_known_usd": overview.spent_today.known_usd,
        "month_known_usd": overview.spent_month.known_usd,
        "today_estimated_usd": overview.spent_today.estimated_usd,
        "month_estimated_usd": overview.spent_month.estimated_usd,
        "this_month": [
            {"day": row.day, **_spent_row(row.purpose, row.model, row.spent)}
            for row in rows
            if row.day >= begins.date()
        ],
        "by_month": [
            {"month": f"{month:%Y-%m}", **_spent_row(purpose, model, spent)}
            for (month, purpose, model), spent in by_month(rows).items()
        ],
    }


def _spent_row(purpose: str, model: str, spent: Spent) -> dict[str, Any]:
    return {
        "purpose": purpose,
        "model": model,
        **members(spent, "requests", "tokens", "known_usd", "estimated_usd"),
        "unknown_requests": spent.unknown,
        "interrupted_requests": spent.interrupted,
    }


def _workers(statuses: Sequence[WorkerStatus]) -> dict[str, Any]:
    documents = {each.name.value: asdict(each) for each in statuses}
    for document in documents.values():
        document["set_aside"] = document.pop("abandoned")  # the documented name of the field
    return documents


def _words(status: WorkerStatus) -> str:
    """Return a worker's status below its name in commands."""
    words = worker_text(status)
    counts = f", {words.counts}" if words.counts else ""
    lines = "".join(f"\n  {each}" for each in words.lines if each != words.counts)
    state = status.state.value if status.enabled else "off"
    if state == WorkerState.STOPPED and status.done >= status.total:
        state = "done"
    return f"{status.name.value}: {state}{counts}{lines}"
