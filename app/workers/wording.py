"""What a worker's numbers are in words: the same on its card, in a command's answer, in a terminal.

Also how shares, sizes, spans and money are said wherever the program says them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.passages import PassageKind
from app.domain.workers import FailedItem, Ledger, WorkerName, WorkerState, WorkerStatus
from app.storage.spending import Spent


@dataclass(frozen=True, slots=True)
class Called:
    """What a worker is called: `title` on its card, `label` in a sentence."""

    title: str
    label: str


CALLED: Mapping[WorkerName, Called] = {
    WorkerName.CONVERSATION_SUMMARIZER: Called(
        "Conversation summaries", "the conversation summariser"
    ),
    WorkerName.EXCHANGE_SUMMARIZER: Called("Exchange summaries", "the exchange summariser"),
    WorkerName.EMBEDDING_PIPELINE: Called("Embeddings", "the embedding pipeline"),
    WorkerName.KNOWLEDGE_EXTRACTOR: Called("Facts", "the knowledge extractor"),
    WorkerName.MAN_INDEXER: Called("Manual pages", "the man-page indexer"),
    WorkerName.TOOL_SUMMARIZER: Called("Tool call summaries", "the tool-call summariser"),
}
KIND_TITLES: Mapping[PassageKind, str] = {
    PassageKind.TURN: "Turns",
    PassageKind.EXCHANGE_SUMMARY: "Exchange summaries",
    PassageKind.CONVERSATION_SUMMARY: "Conversation summaries",
    PassageKind.FACT: "Facts",
    PassageKind.MEMORY: "Memories",
    PassageKind.TOOL_SUMMARY: "Tool summaries",
    PassageKind.MAN_PAGE: "Manual pages",
    PassageKind.DOCUMENT: "Documents",
}

ESTIMATED = "interrupted, estimated"  # what a request may have cost that was cut off


@dataclass(frozen=True, slots=True)
class WorkerWords:
    """A status in words, a line each; "" where there is nothing to say.

    `blocked` is what it waits for, `error` what went wrong last, with what to do about it.
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
        """All of it below the title, as plain text."""
        lines = (self.counts, self.session, self.spent, self.retries, self.current)
        return tuple(each for each in (*lines, self.blocked, self.error) if each)


def worker_words(status: WorkerStatus) -> WorkerWords:
    """Return a worker's status in words; numbers are said as they are."""
    error = "" if status.last_error == status.blocked_by else status.last_error
    return WorkerWords(
        title=CALLED[status.name].title,
        state=_state_words(status),
        counts=_count_words(status),
        session=_session_words(status),
        spent=_ledger_words(status),
        retries=_retry_words(status),
        current=f"Now: {status.current_item}" if status.current_item else "",
        blocked=f"Waits: {status.blocked_by}" if status.blocked_by else "",
        error=f"Last error: {error}" if error else "",
    )


def failed_item_words(item: FailedItem) -> tuple[str, str, str]:
    """Return what a failed item is, when it is tried again after how many tries, and its error."""
    what = ", ".join(each for each in (item.title, item.detail) if each)
    when = "set aside" if item.next_at is None else f"next try {_clock_words(item.next_at)}"
    tries = counted(item.tries, "try") if item.tries == 1 else f"{item.tries:,} tries"
    return what or f"item {item.item_id}", f"{tries}, {when}", item.error


def wait_words(labels: Sequence[str], why: str) -> str:
    """Return who waits for the same thing, in one sentence."""
    *others, last = labels
    who = f"{', '.join(others)} and {last}" if others else last
    return f"{who[:1].upper()}{who[1:]} {'wait' if others else 'waits'}: {why}"


def activity_words(statuses: Sequence[WorkerStatus]) -> str:
    """Return what all workers together are doing, in a few words."""
    working = [each for each in statuses if each.state is WorkerState.RUNNING]
    if working:
        left = sum(max(0, each.total - each.done - each.set_aside) for each in working)
        return f"Workers: {left:,} left" if left else "Workers: at work"
    if any(each.state is WorkerState.BLOCKED for each in statuses):
        return "Workers wait"
    return "Workers idle" if any(each.enabled for each in statuses) else "Workers off"


def redo_words(space: str, vectors: int, passages: int, tokens: int, takes: str) -> str:
    """Return what embedding again deletes, redoes and costs; `takes` is `estimate_words`'."""
    return (
        f"This deletes the {vectors:,} vectors of {space} and embeds {counted(passages, 'passage')} "
        f"again: about {tokens:,} tokens, {takes}. Meanwhile search finds by words what has no "
        "vector yet. Nothing that was said is lost."
    )


def estimate_words(minutes: float, cost_usd: float | None) -> str:
    """Return time and money; None is a price that is unknown."""
    cost = "at a price that is unknown"
    if cost_usd is not None:
        cost = f"for about ${max(cost_usd, 0.01):.2f}" if cost_usd else "at no cost"
    if minutes < 1.5:
        return f"a minute or less, {cost}"
    time = f"{minutes:,.0f} minutes" if minutes < 120 else f"{minutes / 60:,.0f} hours"
    return f"about {time}, {cost}"


def percent_words(share: float) -> str:
    """Return a share (0-1) in percent: 100 % is all of it, 0 % none."""
    percent = round(share * 100)
    if 0 < share < 1:
        percent = max(1, min(percent, 99))
    return f"{percent} %"


def duration_words(seconds: float) -> str:
    """Return a span as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def size_words(size_bytes: int) -> str:
    """Return a size as people say it."""
    if size_bytes < 1 << 20:
        return f"{size_bytes / 1024:.0f} KB"
    return (
        f"{size_bytes / (1 << 20):,.1f} MB"
        if size_bytes < 1 << 30
        else (f"{size_bytes / (1 << 30):,.2f} GB")
    )


def money_words(usd: float | None) -> str:
    """Return an amount; None is an amount that includes an unknown price."""
    return "unknown" if usd is None else f"${usd:.2f}"


def spent_words(spent: Spent) -> str:
    """Return what was spent: the known part, and that there is an unknown one."""
    if not spent.unknown:
        return money_words(spent.known_usd)
    return f"{money_words(spent.known_usd)} + unknown" if spent.known_usd else "unknown"


def most_words(usd: float) -> str:
    """Return the most that interrupted requests may have cost: an amount above nothing is never $0.00."""
    return f"${usd:.2f}" if usd >= _CENT_USD or not usd else "under $0.01"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: 1 turn, 2 turns."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _state_words(status: WorkerStatus) -> str:
    if not status.enabled:
        return "stopping" if status.state is WorkerState.RUNNING else "off"
    words = {
        WorkerState.STOPPED: "starting",
        WorkerState.RUNNING: "working",
        WorkerState.IDLE: "idle",
        WorkerState.BLOCKED: "waiting",
    }[status.state]
    if status.state is WorkerState.BLOCKED and status.next_attempt_at is not None:
        words += f", looks again at {_clock_words(status.next_attempt_at)}"
    return words


def _count_words(status: WorkerStatus) -> str:
    if status.current_item and not status.total:
        return ""  # what there is to do is only just being found out
    parts = [f"{status.done:,} of {status.total:,}"]
    if status.rate_per_minute:
        parts.append(f"{status.rate_per_minute:,.0f} a minute")
    if status.remaining_s is not None:
        parts.append(f"{duration_words(status.remaining_s)} left")
    if wait := _wait_words(status):
        parts.append(wait)
    return _DOT.join(parts)


def _wait_words(status: WorkerStatus) -> str:
    """Return why a worker that is off, or has nothing to do, has not done all there is."""
    left = status.total - status.done - status.set_aside - status.waiting_retry
    if left <= 0:
        return ""
    waits = f"{left:,} {'waits' if left == 1 else 'wait'}"
    if not status.enabled:
        return "" if status.state is WorkerState.RUNNING else waits
    if status.state is not WorkerState.IDLE or status.name not in _LEAVE_ALONE:
        return ""
    if status.name is WorkerName.CONVERSATION_SUMMARIZER:
        return f"{waits}: open in the window"
    return f"{waits}: the conversation is open"


def _session_words(status: WorkerStatus) -> str:
    return (
        f"This session: {status.completed:,} done{_DOT}{status.failed:,} failed{_DOT}"
        f"{status.skipped:,} skipped"
    )


def _retry_words(status: WorkerStatus) -> str:
    parts = []
    if status.waiting_retry:
        wait = "waits" if status.waiting_retry == 1 else "wait"
        words = f"{status.waiting_retry:,} {wait} for another try"
        if status.next_retry_at is not None:
            words += f", the next at {_clock_words(status.next_retry_at)}"
        parts.append(words)
    if status.set_aside:
        parts.append(f"{status.set_aside:,} set aside")
    return _DOT.join(parts)


def _ledger_words(status: WorkerStatus) -> str:
    if not status.all_time.tokens:
        return "No tokens used, nothing spent"
    now, ever = _spend_words(status.session), _spend_words(status.all_time)
    return f"Spent this session: {now}{_DOT}in all: {ever}"


def _spend_words(ledger: Ledger) -> str:
    cost = ledger.cost_usd
    money = "cost unknown" if cost is None else f"${cost:.2f}"
    words = f"{ledger.tokens:,} tokens, {money}"
    if most_usd := ledger.estimated_usd:
        words += f" ({most_words(most_usd)} of it {ESTIMATED})"
    return words


def _clock_words(at: datetime) -> str:
    return f"{at.astimezone():%H:%M:%S}"


_LEAVE_ALONE = frozenset(
    (
        WorkerName.CONVERSATION_SUMMARIZER,
        WorkerName.EXCHANGE_SUMMARIZER,
        WorkerName.KNOWLEDGE_EXTRACTOR,
        WorkerName.TOOL_SUMMARIZER,
    )
)  # what is open in the window, until it is left or quiet
_CENT_USD = 0.01
_DOT = " \N{MIDDLE DOT} "
