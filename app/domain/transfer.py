"""What an importer hands over: conversations in the source's own ids, not yet ours."""

from dataclasses import dataclass
from datetime import datetime

from app.domain.conversations import Block, RawReply, Role, TitleOrigin
from app.domain.facts import FactCategory


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """A message of a foreign tree; `parent` is None for a root. `created_at` is UTC or None."""

    source_id: str
    parent: str | None
    role: Role
    blocks: tuple[Block, ...]
    created_at: datetime | None = None
    model: str | None = None
    raw: RawReply | None = None


@dataclass(frozen=True, slots=True)
class CarriedSummary:
    """A summary on its way between two books, with its conversation.

    `last_message` is the source id of the last message of the exchange it summarises; None for
    the conversation's own. `made_at` is UTC.
    """

    text: str
    model: str
    made_at: datetime
    last_message: str | None = None


@dataclass(frozen=True, slots=True)
class CarriedWording:
    """A wording of a fact on its way between two books. `conversation` and `message` are uids.

    They name its source, "" where the user wrote it. Times are UTC; `made_at` names the version.
    """

    text: str
    category: FactCategory
    model: str
    said_at: datetime
    made_at: datetime
    conversation: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class CarriedFact:
    """A fact on its way between two books, known on both by its uid.

    `superseded_by` is a uid, "" for none; `earlier` are the wordings it had, oldest first.
    """

    uid: str
    wording: CarriedWording
    subject: str = ""
    valid_until: datetime | None = None
    superseded_by: str = ""
    pinned: bool = False
    earlier: tuple[CarriedWording, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that could not be taken: where it stood, and why, in words for the user."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class ImportedConversation:
    """A foreign conversation. Every message stands after its parent.

    `source` is the importer's name ("chatgpt", "claude", "commonplace", ...); `visible_leaf` is
    the source id of the last message shown. `skipped` names messages that could not be read.
    An empty `title` means there was none. `summary` is one the source made, `summaries` those with
    a date. Only our own export carries `uid`, `title_origin`, `first_source`, where it once came
    from itself, `facts` and whether memory `recalls` in it; facts of the user's own come with no
    messages.
    """

    source: str
    source_id: str
    title: str
    messages: tuple[ImportedMessage, ...]
    visible_leaf: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    archived: bool = False
    pinned: bool = False
    private: bool = False
    model: str | None = None
    tags: tuple[str, ...] = ()
    summary: str = ""
    uid: str = ""
    skipped: tuple[Skipped, ...] = ()
    summaries: tuple[CarriedSummary, ...] = ()
    title_origin: TitleOrigin = TitleOrigin.IMPORT
    first_source: str = ""
    facts: tuple[CarriedFact, ...] = ()
    recalls: bool = True


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """How far an import is. `bytes_total` is 0 while it is unknown."""

    conversations: int
    messages: int
    bytes_read: int
    bytes_total: int


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did. `duplicates` counts messages that were here already.

    `refused` counts the paths that are no export or broken as a whole; `skipped` names them too.
    """

    conversations: int = 0
    turns: int = 0
    messages: int = 0
    duplicates: int = 0
    skipped: tuple[Skipped, ...] = ()
    cancelled: bool = False
    refused: int = 0
