"""Message costs: what a message that is being typed would cost to send, before it is sent.

The prompt is planned as for a message, without recall, whose budget is small; the answer is not
included. Prompt caching is not known in advance, so a conversation that goes on may cost less.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from app.chat.context_fetcher import ContextFetcher
from app.chat.planner import NewConversation, unsaved_planner
from app.chat.presets import Presets
from app.chat.request_builder import RequestBuilder
from app.domain.chat import ModelRef, UsageReported
from app.domain.conversations import Block, Message, Role, Text
from app.domain.ids import ConversationId, MessageId
from app.domain.records.presets import Preset
from app.memory.context.plan import message_tokens
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.settings import Settings

SHOWN_FROM_USD = 0.01
_PLACEHOLDER = (Text("."),)
_PRICED_TOKENS = 1_000_000


@dataclass(frozen=True, slots=True)
class _PromptKey:
    """What the prompt before the message depends on."""

    conversation_id: ConversationId | None
    leaf: MessageId | None
    model: ModelRef
    preset: Preset
    project: str | None


class MessageCosts:
    """Estimates costs. Thread-safe; blocking: planning a long conversation takes a second.

    `price_of` returns (USD, the price as text), None for an unknown price.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        builder: RequestBuilder,
        fetcher: ContextFetcher,
        presets: Presets,
        price_of: Callable[[ModelRef, UsageReported], tuple[float | None, str]],
    ) -> None:
        self._builder = builder
        self._fetcher = fetcher
        self._presets = presets
        self._settings = settings
        self._price_of = price_of
        self._conversations = Conversations(store)
        self._planner = unsaved_planner(store, settings)
        self._known: tuple[_PromptKey, int] | None = None

    def cost_usd(
        self,
        blocks: tuple[Block, ...],
        conversation_id: ConversationId | None,
        new: NewConversation = NewConversation(),  # noqa: B008 - a value that cannot change
    ) -> float | None:
        """Return the cost of sending `blocks` in a conversation, or (None) in a new one.

        Returns None when the price is unknown or nothing. Raises NotFound, StorageError.
        """
        leaf, model, preset, project = None, new.model, new.preset, new.project
        if conversation_id is not None:
            conversation = self._conversations.get(conversation_id)
            leaf, model = conversation.visible_leaf_id, conversation.model
            preset, project = conversation.preset, conversation.project
        resolved = self._presets.resolve(preset)
        resolved = replace(resolved, system_prompt=self._presets.instructions(resolved))
        ref = ModelRef.parse(model or resolved.model or self._settings.text("default_model"))
        if not self._input_usd(ref, _PRICED_TOKENS):
            return None
        place = _PromptKey(conversation_id, leaf, ref, resolved, project)
        if self._known is None or self._known[0] != place:
            self._known = (place, self._planned_tokens(place))
        return self._input_usd(ref, self._known[1] + _tokens_of(blocks))

    def _planned_tokens(self, place: _PromptKey) -> int:
        new = NewConversation(str(place.model), preset=place.preset.uid, project=place.project)
        draft = self._builder.draft(self._planner.send(place.conversation_id, _PLACEHOLDER, new))
        context = draft.context(self._fetcher.fetch(draft.plan, lambda _: None))
        return context.tokens - _tokens_of(_PLACEHOLDER)

    def _input_usd(self, ref: ModelRef, tokens: int) -> float | None:
        return self._price_of(ref, UsageReported(tokens, 0))[0]


def _tokens_of(blocks: tuple[Block, ...]) -> int:
    ids = MessageId(0), "", ConversationId(0), None
    return message_tokens(Message(*ids, Role.USER, blocks, now()))
