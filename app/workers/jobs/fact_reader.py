"""Facts that exchanges state, found by patterns."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.errors import Cancelled
from app.domain.facts import FactCategory
from app.domain.ids import MessageId, PassageId
from app.language.statements.extraction import extract_statements
from app.storage.work.extraction_work import ExchangeToRead
from app.workers.job import IsCancelled


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A statement and the message it is from. `subject` and `value` as in `Statement`.

    A model says what it means for a known fact, `known`: a statement replaces it, one without text
    ends it. `since` and `until` are the dates it gives, UTC. Patterns leave these None.
    """

    text: str
    category: FactCategory
    subject: str
    value: str
    message_id: MessageId
    said_at: datetime
    known: PassageId | None = None
    since: datetime | None = None
    until: datetime | None = None


def read_by_patterns(
    exchanges: Sequence[ExchangeToRead], is_cancelled: IsCancelled
) -> Sequence[tuple[ExtractedFact, ...]]:
    """Return the facts that the user's messages state, exchange by exchange. Raises `Cancelled`."""
    found = []
    for exchange in exchanges:
        if is_cancelled():
            raise Cancelled("The worker was stopped")
        facts = []
        for message in exchange.messages:
            if message.by_user:
                # What was said before its own opening, the last one like it.
                openings = exchange.openings
                own = [at for at, each in enumerate(openings) if message.text.startswith(each)]
                before = openings[: own[-1]] if own else openings
                facts += [
                    ExtractedFact(
                        one.text, one.category, one.subject, one.value, message.id, message.said_at
                    )
                    for one in extract_statements(message.text, before)
                ]
        found.append(tuple(facts))
    return found
