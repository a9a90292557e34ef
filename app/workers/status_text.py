"""Worker statuses as text: the same on a card, in the answer to a command and in a terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.translation import format_at_most, format_duration, format_number, money, tr, trn
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
STATE_TEXTS = {
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
    error = "" if status.last_error == status.blocked_by else status.last_error
    return WorkerText(
        title=tr(WORKERS[status.name].title),
        state=_state(status),
        counts=_counts(status),
        session=_session(status),
        spent=_spending(status),
        retries=_retries(status),
        current=tr("Now: {current_item}").format(current_item=status.current_item)
        if status.current_item
        else "",
        blocked=tr("Waiting: {blocked_by}").format(blocked_by=status.blocked_by)
        if status.blocked_by
        else "",
        error=tr("Last error: {error}").format(error=error) if error else "",
    )


def failed_item_text(item: FailedItem) -> tuple[str, str, str]:
    """Return what a failed item is, its tries with the next one, and its error."""
    what = ", ".join(each for each in (item.title, item.detail) if each)
    when = (
        tr("set aside")
        if item.next_at is None
        else tr("next try at {clock}").format(clock=_clock(item.next_at))
    )
    tries = trn("{count} try", "{count} tries", item.tries)
    return what or tr("item {item_id}").format(item_id=item.item_id), f"{tries}, {when}", item.error


def waiting_text(name: WorkerName, count: int) -> str:
    """Return "27 exchanges without a summary"."""
    spec = WORKERS[name]
    return trn(spec.waiting_one, spec.waiting_many, count)


def blocked_text(names: Sequence[WorkerName], reason: str) -> str:
    """Return a sentence on workers that all wait for the same reason."""
    *others, last = (tr(WORKERS[name].label) for name in names)
    who = tr("{join} and {last}").format(join=", ".join(others), last=last) if others else last
    text = tr("{who} are waiting: {reason}") if others else tr("{who} is waiting: {reason}")
    text = text.format(who=who, reason=reason)
    return f"{text[:1].upper()}{text[1:]}"


def activity_text(statuses: Sequence[WorkerStatus]) -> str:
    """Return the activity of all workers together, for the status bar."""
    working = [each for each in statuses if each.state is WorkerState.RUNNING]
    if working:
        left = sum(max(0, each.total - each.done - each.abandoned) for each in working)
        return (
            tr("Background: {left} left").format(left=format_number(left))
            if left
            else tr("Background: working")
        )
    if any(each.state is WorkerState.BLOCKED for each in statuses):
        return tr("Background waiting")
    return tr("Background idle") if any(each.enabled for each in statuses) else tr("Background off")


def format_spent(spent: Spent) -> str:
    """Return what was spent: the known part, and whether there is an unknown one."""
    if not spent.unknown:
        return format_at_most(spent.known_usd)
    return (
        tr("{known_usd} + unknown").format(known_usd=format_at_most(spent.known_usd))
        if spent.known_usd
        else tr("unknown")
    )


def _state(status: WorkerStatus) -> str:
    if not status.enabled:
        return tr("stopping") if status.state is WorkerState.RUNNING else tr("off")
    text = tr(STATE_TEXTS[status.state])
    if status.state is WorkerState.BLOCKED and status.next_attempt_at is not None:
        text += tr(", next try at {clock}").format(clock=_clock(status.next_attempt_at))
    return text


def _counts(status: WorkerStatus) -> str:
    if not status.total:
        return ""  # there are none, or they have not been counted yet
    parts = [
        tr("{done} of {total}").format(
            done=format_number(status.done), total=format_number(status.total)
        )
    ]
    if status.in_part:
        parts.append(tr("{count} read in part").format(count=format_number(status.in_part)))
    if status.rate_per_minute:
        parts.append(
            tr("{rate_per_minute} a minute").format(
                rate_per_minute=format_number(status.rate_per_minute, 0)
            )
        )
    if status.remaining_s is not None:
        parts.append(
            tr("{remaining_s} left").format(remaining_s=format_duration(status.remaining_s))
        )
    if waiting := _waiting(status):
        parts.append(waiting)
    return _DOT.join(parts)


def _session(status: WorkerStatus) -> str:
    counts = (
        (status.completed, tr("{count} done")),
        (status.failed, tr("{count} failed")),
        (status.skipped, tr("{count} skipped")),
    )
    parts = [text.format(count=format_number(count)) for count, text in counts if count]
    return tr("This session: {parts}").format(parts=_DOT.join(parts)) if parts else ""


def _waiting(status: WorkerStatus) -> str:
    """Return why a worker that is off, or idle, has not done everything."""
    left = status.total - status.done - status.abandoned - status.waiting_retry
    if left <= 0 or (not status.enabled and status.state is WorkerState.RUNNING):
        return ""
    if not status.enabled:
        return tr("{left} waiting").format(left=format_number(left))
    if status.state is WorkerState.IDLE and WORKERS[status.name].skips_open:
        return tr("{left} waiting: the conversation is open or is being read").format(
            left=format_number(left)
        )
    return ""


def _retries(status: WorkerStatus) -> str:
    parts = []
    if status.waiting_retry:
        text = tr("{waiting_retry} waiting for another try").format(
            waiting_retry=format_number(status.waiting_retry)
        )
        if status.next_retry_at is not None:
            text += tr(", the next at {clock}").format(clock=_clock(status.next_retry_at))
        parts.append(text)
    if status.abandoned:
        parts.append(tr("{abandoned} set aside").format(abandoned=format_number(status.abandoned)))
    return _DOT.join(parts)


def _spending(status: WorkerStatus) -> str:
    if not status.all_time.tokens:
        return ""
    return tr("Spent this session: {session} · in all: {in_all}").format(
        session=_ledger(status.session), in_all=_ledger(status.all_time)
    )


def _ledger(ledger: UsageTotals) -> str:
    estimated = tr(ESTIMATED)
    cost = tr("cost unknown") if ledger.cost_usd is None else money(ledger.cost_usd)
    text = tr("{tokens} tokens, {cost}").format(tokens=format_number(ledger.tokens), cost=cost)
    if ledger.estimated_usd:
        text += tr(" ({amount} of it {estimated})").format(
            amount=format_at_most(ledger.estimated_usd), estimated=estimated
        )
    return text


def _clock(at: datetime) -> str:
    return f"{at.astimezone():%H:%M:%S}"
