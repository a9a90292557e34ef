"""`work`, `status`, `check`, `backup`, `restore`, `rebuild`."""

import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from app.bootstrap import Services, locked
from app.cli.commands.redoing import redo_facts, redo_summaries
from app.cli.terminal import NotAgreed, Terminal
from app.domain.errors import IndexUnavailable, NotFound
from app.domain.local_days import month_start
from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from app.memory.overview import Overview
from app.storage.backup import copy_backup
from app.storage.restore import restore_backup
from app.storage.spending import Spent, by_month
from app.storage.times import now
from app.system.logs import start_log
from app.system.paths import DataPaths
from app.workers.background_choice import ASKING
from app.workers.wording import (
    ESTIMATED,
    estimate_words,
    most_words,
    redo_words,
    spent_words,
    worker_words,
)

_LOOK_EVERY_S = 5.0
_NAP_S = 0.1
_YEAR = timedelta(days=365)


def bring_in_step(services: Services, terminal: Terminal) -> None:
    """Let search find everything there is; say so when it cannot."""
    try:
        services.index_sync.catch_up(terminal.cancelled)
    except IndexUnavailable as error:
        terminal.err(f"Search does not find all of it yet: {error}")


def work(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Run workers here until nothing is left, or until the user ends it.

    It fails, with a line for each that waits, when those that ask models wait and did nothing.
    """
    names = [WorkerName(name) for name in given.only] if given.only else None
    watch = _Watch(services.workers.statuses())
    end_watch = services.workers.subscribe(watch.take)
    try:
        while True:
            services.workers.run_until_idle(names, is_cancelled=terminal.cancelled)
            bring_in_step(services, terminal)
            if given.until_idle or terminal.cancelled():
                break
            _wait(_LOOK_EVERY_S, terminal)
    finally:
        end_watch()
    statuses = services.workers.refresh()
    if terminal.as_json:
        terminal.document({"workers": _workers(statuses)})
    else:
        for status in statuses:
            terminal.line(_words(status))
    stuck = watch.stuck(statuses) if given.until_idle else {}
    for name, why in stuck.items():
        terminal.err(f"{name.value} waits: {why}")
    return 1 if stuck else 0


class _Watch:
    """What workers said while they ran here: their last status tells only that they have stopped."""

    def __init__(self, before: Sequence[WorkerStatus]) -> None:
        self._before = {each.name: each.completed for each in before}
        self._latest = {each.name: each for each in before}

    def take(self, status: WorkerStatus) -> None:
        """Keep what a worker says; called on its thread."""
        if status.state is not WorkerState.STOPPED:
            self._latest[status.name] = status

    def stuck(self, statuses: Sequence[WorkerStatus]) -> Mapping[WorkerName, str]:
        """Return why workers wait; none if one that may ask a model has got something done."""
        waiting = {
            name: each.blocked_by
            for name, each in self._latest.items()
            if each.state is WorkerState.BLOCKED
        }
        concerned = {*ASKING, *waiting}
        is_done = any(
            each.completed > self._before[each.name] for each in statuses if each.name in concerned
        )
        return {} if is_done else waiting


def status(services: Services, _given: Namespace, terminal: Terminal) -> int:
    """Say what the dashboard shows."""
    services.index_sync.catch_up_a_little(terminal.cancelled)
    overview = services.overview.read()
    embedded = overview.embedded
    statuses = services.workers.refresh()
    if terminal.as_json:
        terminal.document(
            {
                "workers": _workers(statuses),
                "passages": {kind.value: count for kind, count in overview.passages.items()},
                "searchable_percent": round(overview.searchable_share * 100, 1),
                "embedded_percent": round(embedded.share * 100, 1) if embedded else None,
                "embedding_space": embedded.space if embedded else None,
                "database_bytes": overview.database_bytes,
                "conversations": overview.conversations,
                "spend": _spend(services, overview),
            }
        )
    else:
        _print(overview, statuses, terminal)
    for warning in services.workers.warnings():
        terminal.err(warning)
    return 0


def check_(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Verify every reference, count and index."""
    report = services.check(repair=given.repair)
    bring_in_step(services, terminal)
    if terminal.as_json:
        terminal.document(asdict(report) | {"ok": not report.problems})
    elif report.problems:
        for problem in report.problems:
            terminal.line(problem)
    else:
        terminal.line("Everything is in order.")
    return 1 if report.problems else 0


def backup(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Make a verified backup; copy it to a place of the user's."""
    made = services.back_up()
    where = made.path
    if given.out is not None:
        where = terminal.path(given.out)
        where = where / made.path.name if where.is_dir() else where
        copy_backup(made, where)
    if terminal.as_json:
        terminal.document({"backup": str(where), "made_at": made.made_at.isoformat()})
    else:
        terminal.line(str(where))
    return 0


def restore(paths: DataPaths, given: Namespace, terminal: Terminal) -> int:
    """Put a backup in the database's place; what was there is kept aside. No window may be open."""
    chosen = terminal.path(given.file)
    if not chosen.is_file():
        raise NotFound(f"There is no file '{chosen}'", "Name a backup to restore.")
    with locked(paths):
        start_log(paths)
        aside = restore_backup(paths, chosen)
    if terminal.as_json:
        terminal.document({"restored": str(chosen), "replaced": str(aside) if aside else None})
    elif aside is not None:
        terminal.err(f"The backup was restored; the database it replaced is kept in {aside}")
    return 0


def rebuild(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Make the text index, the vectors of the embedder in force, summaries or facts anew."""
    if given.what == "summaries":
        return redo_summaries(services, given, terminal)
    if given.what == "facts":
        return redo_facts(services, given, terminal)
    if given.what == "embeddings":
        return _rebuild_embeddings(services, given, terminal)
    services.index_sync.rebuild(terminal.cancelled)
    if terminal.as_json:
        terminal.document({"rebuilt": "index"})
    return 0


def _rebuild_embeddings(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Delete and make again, once that was agreed to in sight of what it costs."""
    pipeline = services.workers.embedding
    if pipeline is None:
        raise NotFound("There is no embedder", "Choose one: config set embedder builtin.")
    redo = pipeline.redo()
    estimate = services.embedders.estimate(redo.passages, redo.tokens)
    takes = estimate_words(estimate.minutes, estimate.cost_usd)
    terminal.err(redo_words(redo.space, redo.vectors, redo.passages, redo.tokens, takes))
    if not given.yes and not terminal.says_yes():
        raise NotAgreed("Nothing was deleted: nobody agreed to it", "Add --yes to agree.")
    pipeline.start_over()
    name = WorkerName.EMBEDDING_PIPELINE
    (status,) = services.workers.run_until_idle([name], is_cancelled=terminal.cancelled)
    is_whole = status.done == status.total
    if terminal.as_json:
        terminal.document(
            {
                "rebuilt": "embeddings",
                "space": redo.space,
                "deleted": redo.vectors,
                "embedded": status.done,
                "total": status.total,
            }
        )
    else:
        terminal.line(f"{status.done:,} of {status.total:,} passages are embedded.")
    if not is_whole:
        terminal.err(status.last_error or "The rest is embedded by 'commonplace work'.")
    return 0 if is_whole else 1


def _wait(seconds: float, terminal: Terminal) -> None:
    """Wait, unless the user ends it before."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not terminal.cancelled():
        time.sleep(_NAP_S)


def _print(overview: Overview, statuses: Sequence[WorkerStatus], terminal: Terminal) -> None:
    for each in statuses:
        terminal.line(_words(each))
    for kind, count in overview.passages.items():
        terminal.line(f"{kind.value}: {count:,}")
    terminal.line(f"searchable: {overview.searchable_share:.0%}")
    if overview.embedded is not None:
        terminal.line(f"embedded in {overview.embedded.space}: {overview.embedded.share:.0%}")
    terminal.line(f"conversations: {overview.conversations:,}")
    terminal.line(f"database: {overview.database_bytes:,} bytes")
    today, month = spent_words(overview.spent_today), spent_words(overview.spent_month)
    terminal.line(f"spent: {today} today, {month} this month")
    if most_usd := overview.spent_month.estimated_usd:
        today = most_words(overview.spent_today.estimated_usd)
        terminal.line(f"of it {ESTIMATED}: {today} today, {most_words(most_usd)} this month")


def _spend(services: Services, overview: Overview) -> dict[str, Any]:
    """Sums are None where a price in them is unknown; the known part and the rows are beside them."""
    at = now()
    begins = month_start(at)
    rows = services.spending.by_day(month_start(at - _YEAR))
    return {
        "today_usd": overview.spent_today.cost_usd,
        "month_usd": overview.spent_month.cost_usd,
        "today_known_usd": overview.spent_today.known_usd,
        "month_known_usd": overview.spent_month.known_usd,
        "today_estimated_usd": overview.spent_today.estimated_usd,
        "month_estimated_usd": overview.spent_month.estimated_usd,
        "this_month": [
            {"day": row.day.isoformat(), **_spent_row(row.purpose, row.model, row.spent)}
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
        "requests": spent.requests,
        "tokens": spent.tokens,
        "known_usd": spent.known_usd,
        "unknown_requests": spent.unknown,
        "interrupted_requests": spent.interrupted,
        "estimated_usd": spent.estimated_usd,
    }


def _workers(statuses: Sequence[WorkerStatus]) -> dict[str, Any]:
    return {each.name.value: _worker(each) for each in statuses}


def _worker(status: WorkerStatus) -> dict[str, Any]:
    plain = asdict(status)
    for key in ("next_attempt_at", "next_retry_at"):
        plain[key] = plain[key].isoformat() if plain[key] else None
    return plain


def _words(status: WorkerStatus) -> str:
    """Return what a worker's card says, below the name that commands use."""
    words = worker_words(status)
    counts = f", {words.counts}" if words.counts else ""
    lines = "".join(f"\n  {each}" for each in words.lines if each != words.counts)
    state = status.state.value if status.enabled else "off"
    if state == WorkerState.STOPPED and status.done >= status.total:
        state = "done"
    return f"{status.name.value}: {state}{counts}{lines}"
