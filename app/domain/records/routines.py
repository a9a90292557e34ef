"""Routines: prompts that run on a schedule, and the record of each due time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from app.domain.ids import ConversationId, ExchangeId
from app.domain.records.named import named_problem

MAX_PROMPT_CHARS = 20_000
MAX_CAP_USD = 10_000.0
FAILURES_NOTICED = 3  # in a row


class RunOutcome(StrEnum):
    """The end of a run."""

    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Routine:
    """A prompt that runs on a schedule, in a conversation of its own.

    Attributes:
        uid: Its identity in every library.
        cron: When it is due, in five fields of cron and local time.
        enabled_at: The time from which due times count, UTC; None while it is off.
        model: PROVIDER:MODEL; None for the preset's, else the default.
        preset: The uid of a preset; None for the default.
        project: The uid of the project that its conversation lies in; None for none.
        cap_usd: The most that its runs may cost in a calendar month; None for no limit of its own.
        is_private: Whether its answers stay out of search and memory.
        agreed_to: The model and the server that the user agreed to, "" for none; see `app.chat.routines`.
    """

    uid: str
    name: str
    prompt: str
    cron: str
    created_at: datetime
    enabled_at: datetime | None = None
    model: str | None = None
    preset: str | None = None
    project: str | None = None
    cap_usd: float | None = None
    is_private: bool = False
    agreed_to: str = ""


@dataclass(frozen=True, slots=True)
class RoutineRun:
    """The record of a due time, or of a run that the user started. Times are UTC.

    Attributes:
        due_at: When it was due; with the routine its identity.
        started_at: None if it was skipped.
        finished_at: None while it runs, and after the program ended meanwhile.
        outcome: None until it has finished.
        why: Why it failed or was skipped, in English: what happened, and on a second line what to do.
        missed: The number of due times that a skipped one stands for.
        conversation_id: None if it never ran, or the conversation was forgotten.
        is_manual: Whether the user started it.
    """

    routine_uid: str
    due_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    outcome: RunOutcome | None = None
    why: str = ""
    missed: int = 1
    conversation_id: ConversationId | None = None
    exchange_id: ExchangeId | None = None
    is_manual: bool = False

    @property
    def ended_at(self) -> datetime:
        """When it finished; of others when it started, or was due."""
        return self.finished_at or self.started_at or self.due_at


def routine_problem(routine: Routine) -> str:
    """Return why a routine cannot be stored as a phrase that follows "it", "" if it can."""
    if problem := named_problem(routine):
        return problem
    if not routine.prompt.strip() or len(routine.prompt) > MAX_PROMPT_CHARS:
        return f"needs a prompt of 1 to {MAX_PROMPT_CHARS:,} characters"
    if routine.cap_usd is not None and not 0 < routine.cap_usd <= MAX_CAP_USD:
        return f"needs a limit above $0 and up to ${MAX_CAP_USD:,.0f}"
    return ""


def failures_in_a_row(newest_first: Sequence[RoutineRun]) -> int:
    """Return how many of the last runs failed; skipped and unfinished ones do not count."""
    count = 0
    for run in newest_first:
        if run.outcome is RunOutcome.FAILED:
            count += 1
        elif run.outcome in (RunOutcome.COMPLETED, RunOutcome.INTERRUPTED):
            break
    return count
