"""Background workers as the user sees them. The machine itself is `app.workers.machine`."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class WorkerName(StrEnum):
    """The workers by the names that commands and JSON use."""

    CONVERSATION_SUMMARIZER = "conversation_summarizer"
    EXCHANGE_SUMMARIZER = "exchange_summarizer"
    EMBEDDING_PIPELINE = "embedding_pipeline"
    KNOWLEDGE_EXTRACTOR = "knowledge_extractor"
    MAN_INDEXER = "man_indexer"
    TOOL_SUMMARIZER = "tool_summarizer"


class WorkerState(StrEnum):
    """stopped -> running <-> idle -> stopped; blocked while it waits for the user or the world."""

    STOPPED = "stopped"
    RUNNING = "running"
    IDLE = "idle"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Ledger:
    """What was used: requests' tokens and their price. `cost_usd` is None if any price is unknown.

    `estimated_usd` is the part of it that interrupted requests may have cost at most.
    """

    tokens: int = 0
    cost_usd: float | None = 0.0
    estimated_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """A worker at one moment.

    `done` and `total` count items over all history, `completed`, `failed` and `skipped` this
    session; `waiting_retry` and `set_aside` are the items that failed and will be tried again, or
    not before someone asks for it. `rate_per_minute` and `remaining_s` are None until enough items have passed.
    `next_attempt_at` is UTC, for a retry or the next poll; `next_retry_at`, of the first item that
    waits for its retry. Both are None where there is none.
    """

    name: WorkerName
    enabled: bool
    state: WorkerState
    current_item: str = ""
    done: int = 0
    total: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0
    waiting_retry: int = 0
    session: Ledger = Ledger()
    all_time: Ledger = Ledger()
    rate_per_minute: float | None = None
    remaining_s: float | None = None
    last_error: str = ""
    blocked_by: str = ""
    next_attempt_at: datetime | None = None
    set_aside: int = 0
    next_retry_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class FailedItem:
    """One item of a retry queue: failed `tries` times, tried again at `next_at` (UTC).

    None is not before someone asks for it: it was set aside. `title` says where it is from, `detail` what it is there, "" where
    that says it all; `error` quotes nobody.
    """

    item_id: int
    title: str
    detail: str
    tries: int
    next_at: datetime | None
    error: str
