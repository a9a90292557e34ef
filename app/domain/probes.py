"""Probe questions: what should be found, asked again after a change to see whether it still is."""

from dataclasses import dataclass
from datetime import datetime

from app.domain.ids import ConversationId, ExchangeId


@dataclass(frozen=True, slots=True)
class Probe:
    """A question and the turn it should find.

    `rank` is the turn's place (from 1) among all results when the question was last asked, `before`
    that of the time before; None where it was not found. `ran_at` and `before_at` (UTC) are those
    times, None if there were none. `problem` says why the question could not be asked, "" if it
    could.
    """

    question: str
    exchange_id: ExchangeId
    rank: int | None = None
    ran_at: datetime | None = None
    before: int | None = None
    before_at: datetime | None = None
    problem: str = ""

    @property
    def fell_by(self) -> int:
        """How many places the turn lost since the time before, negative when it won some.

        A turn that is no longer found lost more than any other.
        """
        if self.ran_at is None or self.before_at is None:
            return 0
        return (self.rank or _NOWHERE) - (self.before or _NOWHERE)


@dataclass(frozen=True, slots=True)
class ProbePlace:
    """A probe with its turn as people know it; `conversation_id` None when the turn is gone."""

    probe: Probe
    conversation_id: ConversationId | None
    conversation_title: str
    turn_number: int | None


_NOWHERE = 1_000_000
