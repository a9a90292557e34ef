"""Import and export values: conversations, summaries and facts with the ids of their source.

What an export of the whole library contains besides the messages is here too, without local ids: records refer to
each other by uid, "" for none. Times are UTC. `app.domain.codec` decodes these classes from JSON;
`app.transfer.json_format` documents it.
"""

from dataclasses import dataclass
from datetime import datetime

from app.domain.changes import CoreMemoryPut
from app.domain.chat import StoredProvider
from app.domain.conversations import (
    Block,
    ExchangeStatus,
    Problem,
    RawReply,
    Role,
    TitleOrigin,
    Usage,
)
from app.domain.ids import ConversationId
from app.domain.records.facts import FactCategory
from app.domain.records.presets import Preset
from app.domain.records.projects import Project
from app.domain.records.routines import Routine


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
    """Where a conversation was imported from: the ids there of itself and of messages by uid.

    A conversation may have several ids there. `parent` is that of the one whose agent started it.
    """

    source: str
    source_id: str
    messages: tuple[tuple[str, str], ...] = ()
    parent: str = ""


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


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """A message of an imported tree; `parent` is None for a root. `created_at` is UTC or None.

    `file_keys` are the names or ids of its files in the export, in the order of their blocks; without
    them a file is looked for by its content hash, else by its name. `is_open` while its program may
    still be writing it.
    """

    source_id: str
    parent: str | None
    role: Role
    blocks: tuple[Block, ...]
    created_at: datetime | None = None
    model: str | None = None
    raw: RawReply | None = None
    file_keys: tuple[str, ...] = ()
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class PortableSummary:
    """A summary without local ids, transferred with its conversation.

    `last_message` is the source id of the last message of the summarized exchange; None for a summary
    of the conversation. `made_at` is UTC.
    """

    text: str
    model: str
    made_at: datetime
    last_message: str | None = None


@dataclass(frozen=True, slots=True)
class PortableFactVersion:
    """A version of a fact without local ids.

    `conversation` and `message` are the uids of its source, "" when the user wrote it. Times are UTC;
    `made_at` identifies the version.
    """

    text: str
    category: FactCategory
    model: str
    said_at: datetime
    made_at: datetime
    conversation: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class PortableFact:
    """A fact without local ids; libraries identify it by its uid.

    `superseded_by` is a uid, "" for none; `earlier` are its earlier versions, oldest first.
    """

    uid: str
    version: PortableFactVersion
    subject: str = ""
    valid_until: datetime | None = None
    superseded_by: str = ""
    pinned: bool = False
    earlier: tuple[PortableFactVersion, ...] = ()


@dataclass(frozen=True, slots=True)
class PortableProfileLine:
    """A line of the profile; its sources are versions of facts: their uids and times (UTC)."""

    text: str
    sources: tuple[tuple[str, datetime], ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that could not be imported: its location and the reason, as text for the user."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class ImportedConversation:
    """An imported conversation; every message is after its parent.

    `source` is the importer's name ("chatgpt", "claude", "commonplace"); `visible_leaf` is the source
    id of the last visible message. `skipped` lists messages that could not be read. An empty `title`
    means none. `statements` are what its program remembers of the user, offered as facts. One that `is_undated` has the time of its file, of which uids are not derived.
    The messages of one that `is_list` do not answer each other: new ones follow the last one here. `origins` are
    other ids of the conversation, and what started it. Only exports of Commonplace contain `uid`, `title_origin`,
    `first_source` (the source of an earlier import), `facts`, `recalls`, `preset` (a uid, "" for the default),
    `project` (a uid, "" for none) and `turns`; `library`, `presets`, `profile` and facts that the user wrote come
    in a conversation without messages.
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
    statements: tuple[str, ...] = ()
    uid: str = ""
    is_undated: bool = False
    is_list: bool = False
    skipped: tuple[Skipped, ...] = ()
    summaries: tuple[PortableSummary, ...] = ()
    title_origin: TitleOrigin = TitleOrigin.IMPORT
    first_source: str = ""
    facts: tuple[PortableFact, ...] = ()
    recalls: bool = True
    preset: str = ""
    project: str = ""
    origins: tuple[PortableOrigin, ...] = ()
    turns: tuple[PortableTurn, ...] = ()
    library: PortableLibrary | None = None
    presets: tuple[Preset, ...] = ()
    profile: tuple[PortableProfileLine, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """The progress of an import. `bytes_total` is 0 while it is unknown."""

    conversations: int
    messages: int
    bytes_read: int
    bytes_total: int


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The result of an export. `missing_files` names the attached files that it does not contain."""

    conversations: int
    missing_files: tuple[str, ...] = ()

    @property
    def remark(self) -> str:
        """What the user should know; "" for nothing."""
        if not self.missing_files:
            return ""
        return f"Missing or altered, so not included: {', '.join(self.missing_files)}."


@dataclass(frozen=True, slots=True)
class AddedConversation:
    """A conversation that an import added, or would add: with its first title and date (UTC)."""

    id: ConversationId
    title: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import. `duplicates` counts messages that were stored already or read twice.

    `refused` counts paths that are not an export or are damaged as a whole; `skipped` lists them too. `presets`
    counts new ones, which no imported conversation uses. `forgotten` counts conversations that were
    forgotten here and so left out. `left_out` names what is taken only from an export of one's own. `new` are
    the conversations that are counted, `in_trash` counts known ones that stay in the trash, `restored` those of
    an import that was undone, which are taken out of it. `offered` counts statements about the user that are
    taken as facts if that is asked for. `number` is that of the import history, 0 where
    nothing was added.
    """

    conversations: int = 0
    turns: int = 0
    messages: int = 0
    duplicates: int = 0
    skipped: tuple[Skipped, ...] = ()
    cancelled: bool = False
    refused: int = 0
    presets: int = 0
    forgotten: int = 0
    left_out: tuple[str, ...] = ()
    new: tuple[AddedConversation, ...] = ()
    in_trash: int = 0
    restored: int = 0
    offered: int = 0
    number: int = 0
