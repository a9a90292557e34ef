"""What an importer hands over: conversations in the source's own ids, not yet ours."""

from dataclasses import dataclass
from datetime import datetime

from app.domain.conversations import Block, RawReply, Role, TitleOrigin


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
    a date. Only our own export carries `uid`, `title_origin` and `first_source`, where it once came
    from itself.
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
