"""What an export of the whole library contains besides conversations' messages, without local ids.

Records refer to each other by uid, "" for none. Times are UTC. `app.domain.codec` decodes these classes
from JSON; `app.transfer.json_format` documents it.
"""

from dataclasses import dataclass
from datetime import datetime

from app.domain.changes import CoreMemoryPut
from app.domain.chat import StoredProvider
from app.domain.conversations import ExchangeStatus, Problem, Usage
from app.domain.projects import Project
from app.domain.routines import Routine


@dataclass(frozen=True, slots=True)
class PortableExtraction:
    """That a turn was read for facts, by which model; `facts` is how many it found."""

    model: str
    facts: int
    made_at: datetime


@dataclass(frozen=True, slots=True)
class PortableTurn:
    """The record of a turn. `messages` are uids in path order, `parent` is a turn's."""

    uid: str
    messages: tuple[str, ...]
    status: ExchangeStatus
    started_at: datetime
    parent: str = ""
    segment_number: int = 0
    completed_at: datetime | None = None
    model: str | None = None
    usage: Usage | None = None
    problem: Problem | None = None
    extraction: PortableExtraction | None = None


@dataclass(frozen=True, slots=True)
class PortableOrigin:
    """Where a conversation was imported from: the ids there of itself and of messages by uid."""

    source: str
    source_id: str
    messages: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PortableMemory:
    """A saved text with the conversation and the turn in which a model saved it."""

    uid: str
    text: str
    saved_at: datetime
    conversation: str = ""
    turn: str = ""


@dataclass(frozen=True, slots=True)
class PortableSpend:
    """A paid request; `cost_usd` None is an unknown price."""

    at: datetime
    purpose: str
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float | None = None
    is_estimated: bool = False
    turn: str = ""


@dataclass(frozen=True, slots=True)
class PortableTopic:
    """What the user decided about a topic. `number` and `merged_into` refer to each other in one export.

    `conversations` are uids; `name` is "" for the automatic one.
    """

    number: int
    name: str
    conversations: tuple[str, ...]
    is_hidden: bool = False
    merged_into: int | None = None


@dataclass(frozen=True, slots=True)
class PortableLibrary:
    """What belongs to the library as a whole. `settings` are (key, JSON value), chosen by the user."""

    core_memory: tuple[CoreMemoryPut, ...] = ()
    memories: tuple[PortableMemory, ...] = ()
    spend: tuple[PortableSpend, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    providers: tuple[StoredProvider, ...] = ()
    projects: tuple[Project, ...] = ()
    routines: tuple[Routine, ...] = ()
    topics: tuple[PortableTopic, ...] = ()
