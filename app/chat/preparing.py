"""What is sent for a user message: made once, before the first request; tool rounds append to it.

The exchange loop asks for it through `Prepare`. Here is the plain way, a window of the path and
nothing recalled; what memory adds to it is the context plan's business.
"""

from collections.abc import Callable
from dataclasses import dataclass

from app.chat.plans import Plan
from app.domain.chat import ChatRequest, ModelRef, ToolSchema
from app.domain.conversations import Message, Role, Text
from app.memory.window import window_of
from app.storage.settings import Settings
from app.storage.times import now

_CONTEXT_TOKENS_ASSUMED = 32_000
_REPLY_SHARE = 0.25
_CONTINUE = "Continue exactly where your last message broke off, without repeating any of it."


@dataclass(frozen=True, slots=True)
class Prepared:
    """The first request for a user message. Later ones are the same with more messages after it."""

    request: ChatRequest


# Called once per user message, in a worker thread, so it may block. The plan's path has its long
# tool results cut already and ends with what is asked; the tools are those the model may call,
# none for Recall, and belong into the request.
Prepare = Callable[[Plan, tuple[ToolSchema, ...]], Prepared]


class WindowOnly:
    """A `Prepare` that sends the end of the path that fits, and the system prompt."""

    def __init__(
        self, settings: Settings, context_tokens: Callable[[ModelRef], int | None]
    ) -> None:
        self._settings = settings
        self._context_tokens = context_tokens

    def __call__(self, plan: Plan, tools: tuple[ToolSchema, ...]) -> Prepared:
        """Return what is sent; blocking, since a model's size is looked up."""
        ref = ModelRef.parse(plan.exchange.model or "")
        context = self._context_tokens(ref) or _CONTEXT_TOKENS_ASSUMED
        sent = window_of(
            asked_path(plan),
            int(context * (1 - _REPLY_SHARE)),
            self._settings.number("context_sliding_window"),
        )
        system = self._settings.text("system_prompt")
        return Prepared(ChatRequest(ref.model, sent, system, tools))


def asked_path(plan: Plan) -> tuple[Message, ...]:
    """Return the plan's path, with the request to go on after a reply that broke off."""
    last = plan.path[-1]
    if not plan.continues or last.role is not Role.ASSISTANT:
        return plan.path
    words = (Text(_CONTINUE),)
    asking = Message(last.id, last.uid, last.conversation_id, last.id, Role.USER, words, now())
    return (*plan.path, asking)
