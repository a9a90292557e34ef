"""Worker statuses as text: the same on a card, in the answer to a command and in a terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.formatting import format_at_most, format_count, format_duration, format_usd
from app.domain.translation import trn
from app.domain.workers import (
    WORKERS,
    FailedItem,
    UsageTotals,
    WorkerName,
    WorkerState,
    WorkerStatus,
)
from app.storage.tables.spending import Spent

ESTIMATED = "interrupted, estimated"  # spending on requests that were cut off
_DOT = " \N{MIDDLE DOT} "
_STATES = {
    WorkerState.STOPPED: "starting",
    WorkerState.RUNNING: "working",
    WorkerState.IDLE: "idle",
    WorkerState.BLOCKED: "waiting",
}


@dataclass(frozen=True, slots=True)
class WorkerText:
    """A status as text, one line each; "" if there is nothing to show.

    `blocked` is what the worker waits for, `error` the last error and what to do about it.
    """

    title: str
    state: str
    counts: str
    session: str
    spent: str
    retries: str
    current: str
    blocked: str
    error: str

    @property
    def lines(self) -> tuple[str, ...]:
        """Everything below the title and the state."""
        lines = (self.counts, self.session, self.spent, self.retries, self.current)
        return tuple(each for each in (*lines, self.blocked, self.error) if each)


def worker_text(status: WorkerStatus) -> WorkerText:
    """Return a worker's status as text."""
    error = "" if status.last_error == status.blocked_by else status.last_error
    return WorkerText(
        title=WORKERS[status.name].title,
        state=_state(status),
        counts=_counts(status),
        session=(
            f"This session: {status.completed:,} done{_DOT}{status.failed:,} failed{_DOT}"
            f"{status.skipped:,} skipped"
        ),
        spent=_spending(status),
        retries=_retries(status),
        current=f"Now: {status.current_item}" if status.current_item else "",
        blocked=f"Waiting: {status.blocked_by}" if status.blocked_by else "",
        error=f"Last error: {error}" if error else "",
    )


def failed_item_text(item: FailedItem) -> tuple[str, str, str]:
    """Return what a failed item is, its tries with the next one, and its error."""
    what = ", ".join(each for each in (item.title, item.detail) if each)
    when = "set aside" if item.next_at is None else f"next try at {_clock(item.next_at)}"
    tries = format_count(item.tries, "try", "tries")
    return what or f"item {item.item_id}", f"{tries}, {when}", item.error


def waiting_text(name: WorkerName, count: int) -> str:
    """Return "27 exchanges without a summary"."""
    spec = WORKERS[name]
    return trn(spec.waiting_one, spec.waiting_many, count)


def blocked_text(names: Sequence[WorkerName], reason: str) -> str:
    """Return a sentence on workers that all wait for the same reason."""
    *others, last = (WORKERS[name].label for name in names)
    who = f"{', '.join(others)} and {last}" if others else last
    return f"{who[:1].upper()}{who[1:]} {'are' if others else 'is'} waiting: {reason}"


def activity_text(statuses: Sequence[WorkerStatus]) -> str:
    """Return the activity of all workers together, for the status bar."""
    working = [each for each in statuses if each.state is WorkerState.RUNNING]
    if working:
        left = sum(max(0, each.total - each.done - each.abandoned) for each in working)
        return f"Workers: {left:,} left" if left else "Workers: working"
    if any(each.state is WorkerState.BLOCKED for each in statuses):
        return "Workers waiting"
    return "Workers idle" if any(each.enabled for each in statuses) else "Workers off"


def format_spent(spent: Spent) -> str:
    """Return what was spent: the known part, and whether there is an unknown one."""
    if not spent.unknown:
        return format_usd(spent.known_usd)
    return f"{format_usd(spent.known_usd)} + unknown" if spent.known_usd else "unknown"


def _state(status: WorkerStatus) -> str:
    if not status.enabled:
        return "stopping" if status.state is WorkerState.RUNNING else "off"
    text = _STATES[status.state]
    if status.state is WorkerState.BLOCKED and status.next_attempt_at is not None:
        text += f", next try at {_clock(status.next_attempt_at)}"
    return text


def _counts(status: WorkerStatus) -> str:
    if status.current_item and not status.total:
        return ""  # the items have not been counted yet
    parts = [f"{status.done:,} of {status.total:,}"]
    if status.rate_per_minute:
        parts.append(f"{status.rate_per_minute:,.0f} a minute")
    if status.remaining_s is not None:
        parts.append(f"{format_duration(status.remaining_s)} left")
    if waiting := _waiting(status):
        parts.append(waiting)
    return _DOT.join(parts)


def _waiting(status: WorkerStatus) -> str:
    """Return why a worker that is off, or idle, has not done everything."""
    left = status.total - status.done - status.abandoned - status.waiting_retry
    if left <= 0 or (not status.enabled and status.state is WorkerState.RUNNING):
        return ""
    if not status.enabled:
        return f"{left:,} waiting"
    if status.state is WorkerState.IDLE and WORKERS[status.name].skips_open:
        return f"{left:,} waiting: the conversation is open"
    return ""


def _retries(status: WorkerStatus) -> str:
    parts = []
    if status.waiting_retry:
        text = f"{status.waiting_retry:,} waiting for another try"
        if status.next_retry_at is not None:
            text += f", the next at {_clock(status.next_retry_at)}"
        parts.append(text)
    if status.abandoned:
        parts.append(f"{status.abandoned:,} set aside")
    return _DOT.join(parts)


def _spending(status: WorkerStatus) -> str:
    if not status.all_time.tokens:
        return "No tokens used, nothing spent"
    return f"Spent this session: {_ledger(status.session)}{_DOT}in all: {_ledger(status.all_time)}"


def _ledger(ledger: UsageTotals) -> str:
    cost = "cost unknown" if ledger.cost_usd is None else format_usd(ledger.cost_usd)
    text = f"{ledger.tokens:,} tokens, {cost}"
    if ledger.estimated_usd:
        text += f" ({format_at_most(ledger.estimated_usd)} of it {ESTIMATED})"
    return text


def _clock(at: datetime) -> str:
    return f"{at.astimezone():%H:%M:%S}"
