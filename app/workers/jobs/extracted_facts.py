"""Extracted facts: what an exchange says, found by patterns or a model, before it is compared with what is known."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt

from app.domain.ids import MessageId, PassageId
from app.domain.records.facts import FactCategory
from app.storage.work.extraction_work import ExchangeToRead


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A statement and the message it is from. `subject` and `value` as in `Statement`.

    A model says what it means for a known fact, `known`: a statement replaces it, one without text
    ends it. `since` and `until` are the dates it gives, UTC. Patterns leave these None; what they find
    may replace the fact of the text that it `corrects`.
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
    corrects: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """A statement, the facts that mean the same, and its vector, where meaning could be compared.

    Vectors of the same meaning have a cosine of `same_cosine`.
    """

    stated: ExtractedFact
    same: tuple[PassageId, ...] = ()
    vector: npt.NDArray[np.float32] | None = None
    same_cosine: float = 1.0


@dataclass(frozen=True, slots=True)
class ReadExchange:
    """An exchange that was read, what it says, and who found that."""

    exchange: ExchangeToRead
    facts: tuple[Compared, ...]
    model: str
