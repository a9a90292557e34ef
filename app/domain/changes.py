"""Change records: every change by the user, a model or an import, as the journal stores and replays it.

A change contains all ids and times, so that applying it again to an older image gives the same rows.
`app.storage.apply` applies changes, `app.domain.codec` encodes them. A new kind of change needs a class
here and a function there. Old journals must stay readable: fields are only added, with a default, and a
renamed class keeps its `SERIALIZED_NAME`. Those that delete are in `deletions`; `change_set` says what a write touched.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from app.domain.conversations import Conversation, Exchange, File, Message, TitleOrigin
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import Passage
from app.domain.recall import StoredPrompt, Verdict
from app.domain.records.facts import Fact, Memory, MemoryWrite
from app.domain.records.presets import Preset
from app.domain.records.profile import Profile, ProfileReview
from app.domain.records.projects import Project
from app.domain.records.routines import Routine, RoutineRun
from app.domain.records.topics import TopicChoice


class Change:
    """A change record."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ConversationPut(Change):
    """A new conversation; later edits are `ConversationEdited`."""

    conversation: Conversation


@dataclass(frozen=True, slots=True)
class ConversationEdited(Change):
    """New values for some fields of a conversation; None leaves a field unchanged.

    `model` and `preset` "" select the default, `project` "" none; `restored` moves it out of the trash; `recalls` is whether
    memory contributes to its answers. A title is only replaced by one of the same or a higher `TitleOrigin`.
    """

    conversation_id: ConversationId
    title: str | None = None
    title_origin: TitleOrigin | None = None
    visible_leaf_id: MessageId | None = None
    updated_at: datetime | None = None
    pinned: bool | None = None
    archived: bool | None = None
    private: bool | None = None
    model: str | None = None
    deleted_at: datetime | None = None
    restored: bool = False
    recalls: bool | None = None
    preset: str | None = None
    project: str | None = None


@dataclass(frozen=True, slots=True)
class MessagesAdded(Change):
    """New messages, parents first."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class ExchangePut(Change):
    """The current record of an exchange."""

    exchange: Exchange


@dataclass(frozen=True, slots=True)
class PassagesPut(Change):
    """New passages; `replaced` are ids that are removed from the index in the same commit."""

    passages: tuple[Passage, ...] = ()
    replaced: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TagsChanged(Change):
    """Tags added to or removed from a conversation; `automatic` ones come from a summarizer."""

    conversation_id: ConversationId
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    automatic: bool = False


@dataclass(frozen=True, slots=True)
class OriginsAdded(Change):
    """Origins of imported records: pairs of the source's id and the local id.

    `kind` is "conversation", "message" or "subagent", whose id there follows that of the conversation which
    started it, after a slash; `source`, `kind` and the source's id are unique together.
    """

    source: str
    kind: str
    pairs: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class ImportNoted(Change):
    """What the import `number` did to a conversation.

    `is_new`: added it or took it out of the trash; else added its messages from `first_message` to `last_message`
    and changed fields, which are in `edits` by name, before and after (JSON).
    """

    number: int
    conversation_id: ConversationId
    is_new: bool = False
    first_message: MessageId | None = None
    last_message: MessageId | None = None
    edits: str = "{}"


@dataclass(frozen=True, slots=True)
class SettingPut(Change):
    """The value of a setting; `value_json` None restores the default."""

    key: str
    value_json: str | None


@dataclass(frozen=True, slots=True)
class ProviderPut(Change):
    """A provider that the user configured, without its key. `kind` is openai, anthropic or compatible."""

    name: str
    kind: str
    base_url: str | None = None
    key_env: str | None = None
    removed: bool = False
    allow_plain_http: bool = False


@dataclass(frozen=True, slots=True)
class PresetPut(Change):
    """The current state of a preset; `BUILT_IN_PRESET` has its instructions in a setting."""

    preset: Preset


@dataclass(frozen=True, slots=True)
class PresetRemoved(Change):
    """The removal of a preset; its conversations have the default preset from then on."""

    uid: str


@dataclass(frozen=True, slots=True)
class ProjectPut(Change):
    """The current state of a project."""

    project: Project


@dataclass(frozen=True, slots=True)
class ProjectRemoved(Change):
    """The removal of a project; its conversations have none from then on."""

    uid: str


@dataclass(frozen=True, slots=True)
class RoutinePut(Change):
    """The current state of a routine."""

    routine: Routine


@dataclass(frozen=True, slots=True)
class RoutineRemoved(Change):
    """The removal of a routine with the records of its runs; their conversation stays."""

    uid: str


@dataclass(frozen=True, slots=True)
class RoutineRunPut(Change):
    """The current record of a run or of a due time that was skipped."""

    run: RoutineRun


@dataclass(frozen=True, slots=True)
class SummaryPut(Change):
    """A summary of an exchange or a conversation; the newest is current, older versions are kept.

    `kind` is "exchange" or "conversation"; `source_hash` identifies the summarized text, so that a
    query finds outdated summaries. `model` is "extractive" when no language model was used.
    """

    kind: str
    source_id: int
    conversation_id: ConversationId
    text: str
    model: str
    source_hash: str
    made_at: datetime
    uid: str = ""


@dataclass(frozen=True, slots=True)
class DraftPut(Change):
    """Unsent text and files of the composer; conversation None is one that has not begun."""

    conversation_id: ConversationId | None
    text: str
    at: datetime
    files: tuple[File, ...] = ()


@dataclass(frozen=True, slots=True)
class SpendReserved(Change):
    """A spend reservation: a request about to be sent, with its maximum tokens and cost (None: unknown).

    `SpendAdded` with its uid, or `SpendReleased`, ends it. A reservation that is found at startup was
    interrupted by the end of the process; it may have been charged, so it becomes spending.
    """

    SERIALIZED_NAME: ClassVar[str] = "SpendHeld"

    uid: str
    at: datetime
    purpose: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class SpendReleased(Change):
    """A reservation that cost nothing: the request was not sent, or the server refused it."""

    SERIALIZED_NAME: ClassVar[str] = "SpendFreed"

    uid: str


@dataclass(frozen=True, slots=True)
class SpendAdded(Change):
    """One paid request. `purpose` is "chat" or a worker's name; cost None is an unknown price.

    `held` is the uid of the `SpendReserved` that it ends, "" for none. `is_estimated` when the request
    was interrupted, so that only the maximum of its cost is known.
    """

    at: datetime
    purpose: str
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float | None
    exchange_id: ExchangeId | None = None
    held: str = ""
    is_estimated: bool = False


TEXT_WAS_THINKING = "text_was_thinking"


@dataclass(frozen=True, slots=True)
class ReplyGrew(Change):
    """The next part of a running reply; stored in the journal only.

    `kind` is "text", "thinking" or `TEXT_WAS_THINKING`: the text before it is thinking; `message_id` is the assistant message being written. After a crash,
    startup joins these parts and stores the reply as interrupted.
    """

    exchange_id: ExchangeId
    message_id: MessageId
    kind: str
    text: str
    at: datetime
    model: str = ""


@dataclass(frozen=True, slots=True)
class FactPut(Change):
    """The current state of a fact; its text is stored as a version, identified by `Fact.made_at`.

    Its passage is added in the same commit, and removed when `valid_until` is set.
    """

    fact: Fact


@dataclass(frozen=True, slots=True)
class ExtractionDone(Change):
    """A completed fact extraction from an exchange; `source_hash` identifies the text that was read."""

    exchange_id: ExchangeId
    conversation_id: ConversationId
    source_hash: str
    model: str
    facts: int
    made_at: datetime


@dataclass(frozen=True, slots=True)
class MemoryPut(Change):
    """A text that the user or a model saved; its passage is added in the same commit."""

    memory: Memory


@dataclass(frozen=True, slots=True)
class CoreMemoryPut(Change):
    """The text that is part of every prompt; the newest is current, older versions are kept.

    `author` is "user" or PROVIDER:MODEL.
    """

    text: str
    author: str
    made_at: datetime


@dataclass(frozen=True, slots=True)
class MemoryWritePut(Change):
    """What a model wrote to memory, or its new state."""

    write: MemoryWrite


@dataclass(frozen=True, slots=True)
class ProfilePut(Change):
    """A profile that the user accepted or wrote; the newest is current, older versions are kept."""

    profile: Profile


@dataclass(frozen=True, slots=True)
class ProfileReviewPut(Change):
    """The last review of the facts for the profile, in the place of the one before."""

    review: ProfileReview


@dataclass(frozen=True, slots=True)
class ProfileLinesRejected(Change):
    """Texts, by their keys, that are not proposed for the profile again."""

    text_hashes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolSummaryPut(Change):
    """A one-line summary of a tool call, the message's `call_number`th from 0; `id` is its passage's."""

    id: PassageId
    conversation_id: ConversationId
    exchange_id: ExchangeId
    message_id: MessageId
    call_number: int
    text: str
    model: str
    made_at: datetime


@dataclass(frozen=True, slots=True)
class PromptStored(Change):
    """The prompt of an answer, kept permanently."""

    SERIALIZED_NAME: ClassVar[str] = "PromptKept"

    prompt: StoredPrompt


@dataclass(frozen=True, slots=True)
class FeedbackPut(Change):
    """The user's verdict on a recalled passage; None withdraws it."""

    passage_id: PassageId
    verdict: Verdict | None
    at: datetime


@dataclass(frozen=True, slots=True)
class UidsRestored(Change):
    """Uids of forgotten records that the user imports again; see `app.storage.tables.forgotten`."""

    uids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicChosen(Change):
    """What the user decided about a topic, in the place of an earlier decision."""

    choice: TopicChoice
