"""Background workers: their names and specifications, states, statuses and failed items.

`WORKERS` is the table of all workers; settings, screens and commands are drawn from it. What a
worker does is in the module of its name in `app.workers.jobs`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class WorkerName(StrEnum):
    """Worker names in commands and JSON."""

    CONVERSATION_SUMMARIZER = "conversation_summarizer"
    EXCHANGE_SUMMARIZER = "exchange_summarizer"
    EMBEDDING_PIPELINE = "embedding_pipeline"
    KNOWLEDGE_EXTRACTOR = "knowledge_extractor"
    MAN_INDEXER = "man_indexer"
    TOOL_SUMMARIZER = "tool_summarizer"
    PROFILE_WRITER = "profile_writer"
    SOURCE_READER = "source_reader"
    ROUTINE_RUNNER = "routine_runner"
    TOPIC_FINDER = "topic_finder"
    DOCUMENT_INDEXER = "document_indexer"


class ItemKind(StrEnum):
    """What a worker works on, one by one."""

    EXCHANGE = "turn"
    CONVERSATION = "conversation"
    PASSAGE = "passage"
    TOOL_CALL = "tool call"
    MANUAL_PAGE = "manual page"
    PROFILE = "profile"
    SESSION_FILE = "session file"
    ROUTINE = "routine"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """The specification of one worker.

    `title` stands on its card, `label` in a sentence. `setting` and `setting_help` are the label
    and the help of `enabled_key`, the setting that switches it on. One with `off_at_start` is
    switched off whenever the program starts. `waiting` follows a count of items: "turns
    without a summary". `skips_open` means that it leaves out the open conversation until it is quiet.
    `follows` is a worker after which it looks for work, once that one is idle.
    """

    title: str
    label: str
    items: ItemKind
    waiting: str
    enabled_key: str
    setting: str
    setting_help: str
    is_on_by_default: bool = True
    off_at_start: bool = False
    skips_open: bool = False
    follows: WorkerName | None = None

    @property
    def waiting_one(self) -> str:
        """The text for one waiting item, with `{count}` for the number."""
        return f"{{count}} {self.items} {self.waiting}"

    @property
    def waiting_many(self) -> str:
        """The text for several waiting items."""
        return f"{{count}} {self.items}s {self.waiting}"


WORKERS: Mapping[WorkerName, WorkerSpec] = {
    WorkerName.CONVERSATION_SUMMARIZER: WorkerSpec(
        "Conversation summaries",
        "the conversation summarizer",
        ItemKind.CONVERSATION,
        "without a summary",
        "summarizer_conversation_enabled",
        "Summarize conversations",
        "Write two or three sentences, a title and tags for each conversation.",
        skips_open=True,
    ),
    WorkerName.EXCHANGE_SUMMARIZER: WorkerSpec(
        "Turn summaries",
        "the turn summarizer",
        ItemKind.EXCHANGE,
        "without a summary",
        "summarizer_exchange_enabled",
        "Summarize turns",
        "Write one or two sentences for each turn.",
        skips_open=True,
    ),
    WorkerName.EMBEDDING_PIPELINE: WorkerSpec(
        "Search by meaning",
        "search by meaning",
        ItemKind.PASSAGE,
        "not read by the search model",
        "embedding_pipeline_enabled",
        "Read for search by meaning",
        "Have the search model read all turns, summaries and facts.",
    ),
    WorkerName.KNOWLEDGE_EXTRACTOR: WorkerSpec(
        "Facts",
        "the knowledge extractor",
        ItemKind.EXCHANGE,
        "not read for facts",
        "knowledge_extractor_enabled",
        "Extract facts",
        "Collect facts about you and your work from conversations.",
        skips_open=True,
    ),
    WorkerName.TOOL_SUMMARIZER: WorkerSpec(
        "Tool call summaries",
        "the tool-call summarizer",
        ItemKind.TOOL_CALL,
        "without a summary",
        "tool_summarizer_enabled",
        "Summarize tool calls",
        "Write a searchable line for each tool call.",
        is_on_by_default=False,
        skips_open=True,
    ),
    WorkerName.PROFILE_WRITER: WorkerSpec(
        "Profile",
        "the profile writer",
        ItemKind.PROFILE,
        "to be renewed",
        "profile_writer_enabled",
        "Propose a profile",
        "Propose changes to your profile when facts changed, at most once a day. None takes effect "
        "until you accept it.",
        follows=WorkerName.KNOWLEDGE_EXTRACTOR,
    ),
    WorkerName.TOPIC_FINDER: WorkerSpec(
        "Topics",
        "the topic finder",
        ItemKind.CONVERSATION,
        "without a topic",
        "topic_finder_enabled",
        "Find topics",
        "Group your conversations by subject, on this computer, and name the groups.",
        follows=WorkerName.EMBEDDING_PIPELINE,
    ),
    WorkerName.SOURCE_READER: WorkerSpec(
        "Followed sources",
        "the source reader",
        ItemKind.SESSION_FILE,
        "not read",
        "source_reader_enabled",
        "Follow other programs",
        "Import the sessions of the programs that you chose to follow, as they are written.",
    ),
    WorkerName.ROUTINE_RUNNER: WorkerSpec(
        "Routines",
        "the routine runner",
        ItemKind.ROUTINE,
        "due",
        "routine_runner_enabled",
        "Run routines",
        "Run your routines when they are due. None runs before you make one.",
    ),
    WorkerName.DOCUMENT_INDEXER: WorkerSpec(
        "Documents",
        "the document indexer",
        ItemKind.DOCUMENT,
        "not read",
        "document_indexer_enabled",
        "Read documents",
        "Make the files and folders that you added searchable, and follow their changes.",
    ),
    WorkerName.MAN_INDEXER: WorkerSpec(
        "Manual pages",
        "the manual-page indexer",
        ItemKind.MANUAL_PAGE,
        "not indexed",
        "index_man_enabled",
        "Index manual pages",
        "Make the system's manual pages searchable. Turned off again at every start.",
        is_on_by_default=False,
        off_at_start=True,
    ),
}


class WorkerState(StrEnum):
    """stopped -> running <-> idle -> stopped; blocked while it waits for the user or a service."""

    STOPPED = "stopped"
    RUNNING = "running"
    IDLE = "idle"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class UsageTotals:
    """Tokens used by requests, and their price. `cost_usd` is None if any price is unknown.

    `estimated_usd` is the part that interrupted requests may have cost at most.
    """

    tokens: int = 0
    cost_usd: float | None = 0.0
    estimated_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """A snapshot of a worker's progress.

    `done` and `total` count items over all history, `completed`, `failed` and `skipped` this
    session. `waiting_retry` items failed and will be retried; `abandoned` items failed too often and
    are retried on request only. `in_part` documents were not read to their end. `rate_per_minute` and `remaining_s` are None until enough items are
    done. `next_attempt_at` (UTC) is the next retry or poll, `next_retry_at` the first retry of an
    item; None if there is none.
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
    session: UsageTotals = UsageTotals()
    all_time: UsageTotals = UsageTotals()
    rate_per_minute: float | None = None
    remaining_s: float | None = None
    last_error: str = ""
    blocked_by: str = ""
    next_attempt_at: datetime | None = None
    abandoned: int = 0
    next_retry_at: datetime | None = None
    in_part: int = 0


@dataclass(frozen=True, slots=True)
class FailedItem:
    """One item of a retry queue: failed `tries` times, retried at `next_at` (UTC).

    `next_at` is None if it was set aside, for retries on request. `title` is its conversation or
    page, `detail` what it is there ("" if that is clear). `error` quotes no conversation.
    """

    item_id: int
    title: str
    detail: str
    tries: int
    next_at: datetime | None
    error: str
