"""Refusals of recalled items: why something that was found does not go into a prompt. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind
from app.domain.recall import (
    MatchScore,
    RecalledItem,
    RecallSettings,
    RetrievalResult,
    RetrievedConversation,
    Verdict,
)

SAME_CONVERSATION = "it is in this conversation"
NEVER = "you asked never to use it again"
NOT_THIS_TIME = "you left it out of this message"
QUOTED = "it is already quoted"
IN_PROMPT = "it is already in the prompt"
LEFT_OUT = "its conversation was left out"
SUMMARY_ALONE = "none of its turns is relevant enough"
_FINAL = (SAME_CONVERSATION, NEVER, NOT_THIS_TIME, QUOTED, IN_PROMPT)


@dataclass(frozen=True, slots=True)
class SelectionContext:
    """The conversation of the question; what the prompt contains anyway is not quoted again.

    `turn_numbers` are those of facts' exchanges, as far as known; `can_fetch` when the model has
    the tool that fetches more; `lines` are the texts of what earlier turns recall, which are not
    given again; `left_out` passages are counted and not quoted.
    """

    conversation_id: ConversationId
    question: str
    held: frozenset[MessageId]
    turn_numbers: Mapping[ExchangeId, int] = field(default_factory=dict)
    can_fetch: bool = False
    lines: frozenset[str] = frozenset()
    left_out: frozenset[PassageId] = frozenset()


class Refusals:
    """Reasons against items, "" for none."""

    def __init__(
        self, settings: RecallSettings, context: SelectionContext, found: RetrievalResult
    ) -> None:
        self._settings = settings
        self._context = context
        self._left_out = {  # as a whole
            each.conversation_id
            for each in (*found.mentioned, *found.conversations)
            if is_by_summary(each) and each.match.passage_id in context.left_out
        }

    def refused(
        self,
        match: MatchScore,
        conversation_id: ConversationId | None = None,
        key: str = "rag_min_similarity",
    ) -> str:
        """Return why something is not wanted, or that its relevance is below a setting."""
        if not self._settings.rag_enabled:
            return "rag_enabled is off"
        return self.unwanted(match, conversation_id) or self.below(match, key)

    def unwanted(self, match: MatchScore, conversation_id: ConversationId | None = None) -> str:
        """Return why something is not wanted whatever its relevance."""
        if match.verdict is Verdict.NEVER:
            return NEVER
        if match.passage_id in self._context.left_out or conversation_id in self._left_out:
            return NOT_THIS_TIME
        return SAME_CONVERSATION if conversation_id == self._context.conversation_id else ""

    def may_hint(self, item: RecalledItem) -> bool:
        """Return whether only a limit excludes an item that is relevant enough for a hint."""
        return (
            not item.injected
            and self._settings.rag_enabled
            and item.relevance >= self._settings.rag_hint_similarity
            and item.conversation_id != self._context.conversation_id
            and item.message_id not in self._context.held
            and item.dropped_by not in _FINAL
        )

    def below(self, match: MatchScore, key: str) -> str:
        """Return that the relevance is below the threshold of a setting."""
        threshold: float = getattr(self._settings, key)
        return "" if match.relevance >= threshold else f"{key} is {threshold:g}"

    def over(self, taken: int, key: str) -> str:
        """Return that the limit of a setting is reached."""
        limit: int = getattr(self._settings, key)
        return "" if taken < limit else f"{key} is {limit}"

    def no_room(self, key: str = "rag_max_tokens") -> str:
        """Return that the budget of a setting is used up."""
        return f"{key} is {getattr(self._settings, key)}"


def is_by_summary(found: RetrievedConversation) -> bool:
    """Return whether a conversation was found by its summary, not by a turn."""
    return found.match.kind is PassageKind.CONVERSATION_SUMMARY
