"""Deletions: the change records that delete what earlier ones wrote; `app.storage.deletion` applies them."""

from dataclasses import dataclass, field
from datetime import datetime

from app.domain.changes import Change
from app.domain.ids import ConversationId, MessageId, PassageId


class Deletion(Change):
    """A change that deletes what earlier ones wrote."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class FactForgotten(Deletion):
    """The deletion of a fact with all its versions; a text of that hash is not extracted again."""

    fact_id: PassageId
    text_hash: str


@dataclass(frozen=True, slots=True)
class MemoryForgotten(Deletion):
    """The deletion of a saved text with its passage."""

    memory_id: PassageId


@dataclass(frozen=True, slots=True)
class DocumentsForgotten(Deletion):
    """The removal of documents with their text and passages; they may be added again later."""

    document_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CoreMemoryForgotten(Deletion):
    """The deletion of earlier versions of the core memory, by their times."""

    made_at: tuple[datetime, ...]


@dataclass(frozen=True, slots=True)
class ConversationForgotten(Deletion):
    """The deletion of a conversation and everything derived from it; see `app.storage.deletion`.

    Its uid is kept, so that an import does not bring it back unasked.
    """

    conversation_id: ConversationId


@dataclass(frozen=True, slots=True)
class MessagesForgotten(Deletion):
    """The deletion of the content of messages and of everything derived from it.

    The messages keep their places, so that links, branches and origins stay valid, unless it `removes`
    them. `title` replaces a title that was made from the conversation's text. Journals of earlier versions
    have the message whose branch is `shown` afterwards, if the one shown so far is removed.
    """

    conversation_id: ConversationId
    message_ids: tuple[MessageId, ...]
    title: str
    removes: bool = False
    shown: MessageId | None = None


@dataclass(frozen=True, slots=True)
class ValueForgotten(Deletion):
    """The removal of a text from wherever it is stored; see `app.storage.deletion.values`."""

    value: str = field(repr=False)
