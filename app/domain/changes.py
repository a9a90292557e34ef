"""Every change by user, model or import, as a value: what the journal keeps and replays.

A change carries all it needs (ids and times are already allocated), so that applying it again to
an older image gives the same rows. Applying is `app.storage.apply`; JSON is `app.domain.codec`.
A new kind of change gets a class here and a function there; fields are only ever added, with a
default, because old journals must stay readable.
"""

from dataclasses import dataclass
from datetime import datetime

from app.domain.conversations import Conversation, Exchange, Message, TitleOrigin
from app.domain.facts import Fact, Memory
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import Passage
from app.domain.recalls import KeptPrompt, Verdict


@dataclass(frozen=True, slots=True)
class ConversationPut:
    """A new conversation. What changes later is `ConversationEdited`."""

    conversation: Conversation


@dataclass(frozen=True, slots=True)
class ConversationEdited:
    """Some fields of a conversation; None leaves one as it is, so that two writers never collide.

    `model` "" means the default model again; `restored` takes it out of the trash; `recalls` says
    whether memory contributes to its answers. A title is
    taken only where its origin outranks or equals the present one's (see `TitleOrigin`).
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


@dataclass(frozen=True, slots=True)
class MessagesAdded:
    """New messages, parents first."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class ExchangePut:
    """An exchange's record as it now is."""

    exchange: Exchange


@dataclass(frozen=True, slots=True)
class PassagesPut:
    """New passages; `replaced` are ids that leave the index in the same breath."""

    passages: tuple[Passage, ...] = ()
    replaced: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TagsChanged:
    """Tags of a conversation; `automatic` ones were made while summarising."""

    conversation_id: ConversationId
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    automatic: bool = False


@dataclass(frozen=True, slots=True)
class OriginsAdded:
    """Where imported things come from: pairs of the source's id and ours.

    `kind` is "conversation" or "message"; together with `source` and the id it is unique.
    """

    source: str
    kind: str
    pairs: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class SettingPut:
    """A key of `appconfig`; `value_json` None removes it, so that the default applies again."""

    key: str
    value_json: str | None


@dataclass(frozen=True, slots=True)
class ProviderPut:
    """A provider of the user's; never its key. `kind` is openai, anthropic or compatible."""

    name: str
    kind: str
    base_url: str | None = None
    key_env: str | None = None
    removed: bool = False
    allow_plain_http: bool = False


@dataclass(frozen=True, slots=True)
class SummaryPut:
    """A summary of an exchange or a conversation, newest wins, older ones are kept.

    `kind` is "exchange" or "conversation"; `source_hash` tells what text it was made from, so that
    a changed source is found by query. `model` is "extractive" without a language model.
    """

    kind: str
    source_id: int
    conversation_id: ConversationId
    text: str
    model: str
    source_hash: str
    made_at: datetime


@dataclass(frozen=True, slots=True)
class DraftPut:
    """Unsent words; conversation None is the composer of a conversation not yet begun."""

    conversation_id: ConversationId | None
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class SpendHeld:
    """A request that is about to be sent, with the most it may take and cost; None is unknown.

    `SpendAdded` with its uid, or `SpendFreed`, ends it. One that a start finds was cut off by the end
    of a program: it may have been paid for, so it becomes spend.
    """

    uid: str
    at: datetime
    purpose: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class SpendFreed:
    """A request that was held and cost nothing: nothing was sent, or the server refused it."""

    uid: str


@dataclass(frozen=True, slots=True)
class SpendAdded:
    """One paid request. `purpose` is "chat" or a worker's name; cost None is an unknown price.

    `held` is the uid of the `SpendHeld` that it ends, "" without one. `is_estimated` when the request
    was interrupted, so that what it cost is not known but only bounded.
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


@dataclass(frozen=True, slots=True)
class ReplyGrew:
    """More of a reply that is still running; kept by the journal alone.

    `kind` is "text" or "thinking"; `message_id` is the assistant message being written. At start,
    what a killed program left is put together from these and stored as interrupted.
    """

    exchange_id: ExchangeId
    message_id: MessageId
    kind: str
    text: str
    at: datetime
    model: str = ""


@dataclass(frozen=True, slots=True)
class FactPut:
    """A fact as it now is; its wording is kept as a version by `Fact.made_at`.

    Its passage comes in the same commit, and leaves with `valid_until`.
    """

    fact: Fact


@dataclass(frozen=True, slots=True)
class FactForgotten:
    """A fact and all its versions leave; a text of that hash is not learned again."""

    fact_id: PassageId
    text_hash: str


@dataclass(frozen=True, slots=True)
class ExtractionDone:
    """An exchange was read for facts; `source_hash` tells which text of it."""

    exchange_id: ExchangeId
    conversation_id: ConversationId
    source_hash: str
    model: str
    facts: int
    made_at: datetime


@dataclass(frozen=True, slots=True)
class MemoryPut:
    """A text saved on purpose; its passage comes in the same commit."""

    memory: Memory


@dataclass(frozen=True, slots=True)
class MemoryForgotten:
    """A saved text leaves, with its passage."""

    memory_id: PassageId


@dataclass(frozen=True, slots=True)
class CoreMemoryPut:
    """The text that goes into every prompt; newest wins, older ones are kept.

    `author` is "user" or PROVIDER:MODEL.
    """

    text: str
    author: str
    made_at: datetime


@dataclass(frozen=True, slots=True)
class ToolSummaryPut:
    """One line about a tool call; `call_number` counts the calls of that message from 0.

    `id` is its passage's.
    """

    id: PassageId
    conversation_id: ConversationId
    exchange_id: ExchangeId
    message_id: MessageId
    call_number: int
    text: str
    model: str
    made_at: datetime


@dataclass(frozen=True, slots=True)
class PromptKept:
    """What an answer was asked with, for ever."""

    prompt: KeptPrompt


@dataclass(frozen=True, slots=True)
class FeedbackPut:
    """What the user thinks of a recalled passage; None takes it back."""

    passage_id: PassageId
    verdict: Verdict | None
    at: datetime


@dataclass(frozen=True, slots=True)
class ConversationForgotten:
    """A conversation and all that came from it leaves; `app.storage.forget` sees to the bytes."""

    conversation_id: ConversationId


Change = (
    ConversationPut
    | ConversationEdited
    | MessagesAdded
    | ExchangePut
    | PassagesPut
    | TagsChanged
    | OriginsAdded
    | SettingPut
    | ProviderPut
    | SummaryPut
    | DraftPut
    | SpendHeld
    | SpendFreed
    | SpendAdded
    | ReplyGrew
    | FactPut
    | FactForgotten
    | ExtractionDone
    | MemoryPut
    | MemoryForgotten
    | CoreMemoryPut
    | ToolSummaryPut
    | PromptKept
    | FeedbackPut
    | ConversationForgotten
)
