"""What is sent for a user message: made once, before the first request; tool rounds append to it.

The exchange loop asks for it through `Prepare`. What is known is looked up by `looking_up`, what
goes in is decided by `app.memory.context_plan`; here both become a request, and its record.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from app.chat.looking_up import Looked, LookUps, Question
from app.chat.plans import Plan
from app.domain.chat import ChatRequest, ModelRef, ToolSchema
from app.domain.conversations import Message, Role, Text
from app.domain.ids import ExchangeId, MessageId
from app.domain.recalls import KeptPrompt, Piece, PlanPart, PlanPartKind, is_recall_on
from app.domain.retrieved import RecallOptions, Retrieved
from app.memory.context_plan import Budgets, ContextPlan, History, Limits, plan_context
from app.memory.recall_choice import RecallSettings
from app.providers.recall import RECALL
from app.storage.settings import Settings, SettingValues
from app.storage.times import now

_log = logging.getLogger(__name__)
_CONTEXT_TOKENS_ASSUMED = 32_000
_REPLY_SHARE = 0.25
_MOST_SHARE = 0.95  # of what a model reads, by estimates that may be wrong by a little
_CONTINUE = "Continue exactly where your last message broke off, without repeating any of it."


@dataclass(frozen=True, slots=True)
class Prepared:
    """The first request for a user message. Later ones are the same with more messages after it.

    `kept` is its record; None for Recall, which is sent nothing but the question.
    """

    request: ChatRequest
    kept: KeptPrompt | None = None


# Called once per user message, in a worker thread, so it may block. The plan's path has its long
# tool results cut already and ends with what is asked; the tools are those the model may call,
# none for Recall, and belong into the request.
Prepare = Callable[[Plan, tuple[ToolSchema, ...]], Prepared]


class ContextPrepare:
    """A `Prepare` that sends what the context plan says. Thread-safe."""

    def __init__(
        self,
        settings: Settings,
        context_tokens: Callable[[ModelRef], int | None],
        look_up: LookUps,
        await_end: Callable[[ExchangeId], None] = lambda _: None,
    ) -> None:
        """Tell `await_end` of each exchange that is sent more than a question."""
        self._await_end = await_end
        self._settings = settings
        self._context_tokens = context_tokens
        self._look_up = look_up

    def __call__(self, plan: Plan, tools: tuple[ToolSchema, ...]) -> Prepared:
        """Return what is sent; blocking, since things are looked up, for about half a second."""
        ref = ModelRef.parse(plan.exchange.model or "")
        if ref.provider == RECALL:
            return Prepared(ChatRequest(ref.model, asked_path(plan), tools=tools))
        limits = limits_of(self._context_tokens(ref))
        preparing = Preparing(self._settings, plan, tools, limits)
        looked = self._look_up(plan, preparing.question)
        try:
            made = preparing.planned(looked)
        except Exception as error:  # noqa: BLE001 - what was found must never keep a message back
            _log.exception("what was found could not be planned")
            looked = Looked(looked.core_memory, notice=f"Recall failed: {type(error).__name__}")
            made = preparing.planned(looked)
        request = ChatRequest(
            ref.model, made.messages, made.system, tools,
            recalled=made.recalled, asked_at=made.asked_at,
        )  # fmt: skip
        self._await_end(plan.exchange.id)
        return Prepared(request, preparing.kept(made, looked.notice))


def limits_of(context_tokens: int | None) -> Limits:
    """Return what of a model's context a prompt may take; None is a model that does not say."""
    if context_tokens is None:
        return Limits(int(_CONTEXT_TOKENS_ASSUMED * (1 - _REPLY_SHARE)))
    return Limits(int(context_tokens * (1 - _REPLY_SHARE)), int(context_tokens * _MOST_SHARE))


def recall_settings(settings: SettingValues) -> RecallSettings:
    """Return the settings that choose what is recalled, as they are now."""
    return RecallSettings(
        rag_enabled=settings.flag("rag_enabled"),
        rag_conversation_limit=settings.number("rag_conversation_limit"),
        rag_exchange_limit_per_conversation=settings.number("rag_exchange_limit_per_conversation"),
        rag_min_similarity=settings.share("rag_min_similarity"),
        rag_fact_limit=settings.number("rag_fact_limit"),
        rag_history_limit=settings.number("rag_history_limit"),
        rag_max_tokens=settings.number("rag_max_tokens"),
        auto_rag_enabled=settings.flag("auto_rag_enabled"),
        auto_rag_top_k=settings.number("auto_rag_top_k"),
        auto_rag_max_tokens=settings.number("auto_rag_max_tokens"),
        auto_rag_relevance_threshold=settings.share("auto_rag_relevance_threshold"),
    )


def recall_options(settings: SettingValues) -> RecallOptions:
    """Return how much is looked for, as the settings are now."""
    return RecallOptions(
        conversation_limit=settings.number("rag_conversation_limit"),
        exchange_limit=settings.number("rag_exchange_limit_per_conversation"),
        history_limit=settings.number("rag_history_limit"),
        fact_limit=settings.number("rag_fact_limit"),
        earlier_limit=settings.number("auto_rag_top_k"),
        half_life_days=settings.real("rag_recency_half_life_days"),
        is_related_wanted=settings.flag("rag_enabled"),
        is_earlier_wanted=settings.flag("auto_rag_enabled"),
    )


def asked_path(plan: Plan) -> tuple[Message, ...]:
    """Return the plan's path, with the request to go on after a reply that broke off."""
    last = plan.path[-1]
    if not plan.continues or last.role is not Role.ASSISTANT:
        return plan.path
    words = (Text(_CONTINUE),)
    asking = Message(last.id, last.uid, last.conversation_id, last.id, Role.USER, words, now())
    return (*plan.path, asking)


class Preparing:
    """One message being prepared, with the settings as they were when it began."""

    def __init__(
        self, settings: SettingValues, plan: Plan, tools: tuple[ToolSchema, ...], limits: Limits
    ) -> None:
        self._plan = plan
        self._tools = tools
        self._limits = limits
        self._path = asked_path(plan)
        self._recall = recall_settings(settings)
        self._options = recall_options(settings)
        self._system_prompt = settings.text("system_prompt")
        self._result_chars = settings.number("tool_output_max_chars")
        self._budgets = Budgets(
            settings.number("core_memory_max_tokens"),
            settings.number("summary_max_tokens"),
            settings.number("context_sliding_window"),
        )

    def question(self, looked: Looked) -> Question | None:
        """Return what is to be recalled; None for nothing."""
        if not is_recall_on(self._plan.conversation):
            return None
        alone = self.planned(replace(looked, found=Retrieved()))
        is_longer = len(alone.messages) < len(self._path)
        options = replace(
            self._options, is_earlier_wanted=self._options.is_earlier_wanted and is_longer
        )
        text = alone.messages[alone.asked_at].text
        if not text.strip() or not (options.is_related_wanted or options.is_earlier_wanted):
            return None
        return Question(text, options, frozenset(each.id for each in alone.messages))

    def planned(self, looked: Looked) -> ContextPlan:
        """Return the plan for what is known."""
        # A model that reads more than the one before is sent more.
        is_same = looked.limit_before >= self._limits.usable_tokens
        history = History(
            self._plan.conversation.id,
            self._path,
            _asked_at(self._plan.path),
            self._system_prompt,
            looked.core_memory,
            looked.summary,
            self._tools,
            looked.window_before if is_same else None,
            looked.turn_numbers,
        )
        return plan_context(history, self._recall, self._budgets, looked.found, self._limits)

    def kept(self, made: ContextPlan, notice: str) -> KeptPrompt:
        """Return the record of a prompt."""
        stored = frozenset(message.id for message in self._plan.path)
        is_asked_on = len(self._path) > len(self._plan.path)
        parts = made.parts
        if is_asked_on:
            parts = tuple(_with_request_to_go_on(part, stored) for part in parts)
        return KeptPrompt(
            self._plan.exchange.id, self._plan.conversation.id, now(),
            self._plan.exchange.model or "", self._limits.usable_tokens, self._result_chars,
            parts, made.items, notice,
        )  # fmt: skip


def _with_request_to_go_on(part: PlanPart, stored: Iterable[MessageId]) -> PlanPart:
    """Return the question as it is kept: the request to go on is words of ours, no message."""
    if part.kind is not PlanPartKind.QUESTION:
        return part
    known = tuple(dict.fromkeys(each for each in part.message_ids if each in stored))
    return replace(part, message_ids=known, pieces=(Piece(_CONTINUE),))


def _asked_at(path: tuple[Message, ...]) -> int:
    """Return the place of the last message in which a user says something."""
    opening = [place for place, message in enumerate(path) if message.opens_turn]
    return opening[-1] if opening else len(path) - 1
