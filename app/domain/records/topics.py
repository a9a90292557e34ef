"""Topics: groups of conversations about one subject, and what the user decided about them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NewType

from app.domain.ids import ConversationId

TopicId = NewType("TopicId", int)

NAME_LIMIT_CHARS = 80


@dataclass(frozen=True, slots=True)
class TopicChoice:
    """What the user decided about a topic; the last decision replaces the one before.

    Attributes:
        name: "" for the automatic name.
        merged_into: The topic that contains its conversations, never itself a merged one; None for none.
        conversations: Its conversations at that time. They identify it when assignments are lost.
    """

    id: TopicId
    name: str = ""
    is_hidden: bool = False
    merged_into: TopicId | None = None
    conversations: tuple[ConversationId, ...] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it is listed.

    Attributes:
        name: The user's, else the automatic one, else the title of its last conversation.
        conversations: Their number, with those of the topics below it; archived, private and deleted ones
            do not count.
        first_at: The beginning of the first of them, UTC.
        last_at: The last change of any of them, UTC.
        parent_id: The wider topic that it belongs to; None for none.
        decision: What was last decided in them; "" if nothing is known.
    """

    id: TopicId
    name: str
    conversations: int
    first_at: datetime
    last_at: datetime
    parent_id: TopicId | None = None
    is_named: bool = False
    has_merged: bool = False
    is_hidden: bool = False
    decision: str = ""
    decided_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TopicConversation:
    """A conversation of a topic; times are UTC, `project` is a uid."""

    id: ConversationId
    title: str
    created_at: datetime
    updated_at: datetime
    project: str | None = None


@dataclass(frozen=True, slots=True)
class Trail:
    """The other conversations about the topic of a conversation: earlier and later ones, oldest first.

    Where some are kept from its project, the topic has no automatic name, which may quote them, and no decision.
    """

    topic: Topic
    earlier: Sequence[TopicConversation]
    later: Sequence[TopicConversation] = ()

    @property
    def name(self) -> str:
        """The topic's name, else the title of the newest of them."""
        return self.topic.name or self.related[0].title

    @property
    def related(self) -> Sequence[TopicConversation]:
        """All of them, newest first."""
        return (*self.earlier, *self.later)[::-1]
