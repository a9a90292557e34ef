"""The request builder: it makes the first request for a message and the record of its prompt.

Context comes from `context_fetcher`; what goes into the prompt is decided by
`app.memory.context_plan`. Tool rounds append to the request.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from app.chat.context_fetcher import ContextFetcher, FetchedContext, RecallQuery
from app.chat.planner import ExchangePlan
from app.chat.presets import Presets
from app.chat.tools.results import truncate_results
from app.chat.tools.toolbox import Toolbox
from app.domain.chat import NO_IMAGES, ChatRequest, ModelRef, ToolSchema
from app.domain.conversations import Message, Role, Text
from app.domain.ids import ExchangeId, MessageId
from app.domain.presets import Preset
from app.domain.recall import (
    PlanPart,
    PlanPartKind,
    PromptPiece,
    RecallSettings,
    RecentTurn,
    RetrievalResult,
    SegmentContext,
    StoredPrompt,
    is_recall_on,
)
from app.memory.context_plan import ContextPlan, ModelLimits, PromptInput, plan_context
from app.providers.vendors.recall import RECALL
from app.storage.engine.times import now
from app.storage.tables.settings import Settings, SettingValues

_log = logging.getLogger(__name__)
_ASSUMED_CONTEXT_TOKENS = 32_000
_REPLY_SHARE = 0.25
_RECENT_TURNS = 3  # that a follow-up may refer to
_MAX_SHARE = 0.95  # of a model's context, since token estimates are slightly wrong
_CONTINUE = "Continue exactly where your last message broke off, without repeating any of it."

LoadImages = Callable[[ModelRef, Sequence[Message]], Mapping[str, bytes]]
"""Returns `ChatRequest.images` for a model and messages; may block."""


class RequestBuilder:
    """Builds requests from the context plan. Thread-safe."""

    def __init__(
        self,
        settings: Settings,
        context_tokens: Callable[[ModelRef], int | None],
        fetcher: ContextFetcher,
        toolbox: Toolbox,
        presets: Presets,
        on_prepared: Callable[[ExchangeId], None] = lambda _: None,
        images: LoadImages = lambda _ref, _messages: NO_IMAGES,
    ) -> None:
        """Call `on_prepared` with each exchange whose prompt has a record."""
        self._images = images
        self._settings = settings
        self._context_tokens = context_tokens
        self._fetcher = fetcher
        self._toolbox = toolbox
        self._presets = presets
        self._on_prepared = on_prepared

    def __call__(self, plan: ExchangePlan) -> tuple[ChatRequest, StoredPrompt | None]:
        """Return the request of a plan and the record of its prompt. Blocking, about 0.5 s at most.

        Recall receives only the question, so there is no record.
        """
        ref = ModelRef.parse(plan.exchange.model or "")
        if ref.provider == RECALL:
            return ChatRequest(ref.model, _request_path(plan)), None
        draft = self.draft(plan)
        fetched = self._fetcher.fetch(plan, draft.query)
        try:
            context = draft.context(fetched)
        except Exception as error:  # noqa: BLE001 - recall must never prevent sending
            _log.exception("the context could not be planned")
            notice = f"Recall failed: {type(error).__name__}"
            fetched = FetchedContext(fetched.core_memory, notice=notice)
            context = draft.context(fetched)
        request = ChatRequest(
            ref.model, context.messages, context.system, draft.tools,
            recalled=context.recalled, question_index=context.question_index,
            temperature=draft.preset.temperature,
            reasoning_effort=draft.preset.reasoning_effort,
            max_output_tokens=draft.preset.max_output_tokens,
            images=self._images(ref, context.messages),
        )  # fmt: skip
        self._on_prepared(plan.exchange.id)
        return request, draft.record(context, fetched.notice)

    def draft(self, plan: ExchangePlan) -> "PromptDraft":
        """Return the prompt of a plan with the current settings, before anything is fetched."""
        max_chars = self._settings.number("tool_output_max_chars")
        known = self._context_tokens(ModelRef.parse(plan.exchange.model or ""))
        size = _ASSUMED_CONTEXT_TOKENS if known is None else known
        most = None if known is None else int(known * _MAX_SHARE)
        preset = self._presets.of(plan.conversation)
        return PromptDraft(
            replace(plan, path=truncate_results(plan.path, max_chars)),
            self._toolbox.offered_in(plan.conversation, preset.tools),
            ModelLimits(int(size * (1 - _REPLY_SHARE)), most),
            self._settings,
            replace(preset, system_prompt=self._presets.instructions(preset)),
        )


class PromptDraft:
    """A prompt in preparation, with the settings at its creation.

    Attributes:
        plan: The exchange plan, its tool results truncated.
        limits: The tokens that the prompt may use.
        preset: The conversation's preset, with its instructions.
    """

    def __init__(
        self,
        plan: ExchangePlan,
        tools: tuple[ToolSchema, ...],
        limits: ModelLimits,
        settings: SettingValues,
        preset: Preset,
    ) -> None:
        self.plan = plan
        self.tools = tools
        self.limits = limits
        self.preset = preset
        self._path = _request_path(plan)
        self._recall = RecallSettings.read(settings.get)
        self._result_chars = settings.number("tool_output_max_chars")

    def with_settings(self, settings: SettingValues) -> "PromptDraft":
        """Return the same draft with other settings."""
        return PromptDraft(self.plan, self.tools, self.limits, settings, self.preset)

    def query(self, fetched: FetchedContext) -> RecallQuery | None:
        """Return what to recall; None for nothing."""
        if not is_recall_on(self.plan.conversation):
            return None
        alone = self.context(replace(fetched, found=RetrievalResult()))
        is_cut = len(alone.messages) < len(self._path)
        settings = replace(self._recall, auto_rag_enabled=self._recall.auto_rag_enabled and is_cut)
        text = alone.messages[alone.question_index].text
        if not text.strip() or not (settings.rag_enabled or settings.auto_rag_enabled):
            return None
        held = frozenset(each.id for each in alone.messages)
        return RecallQuery(text, settings, segment_context(self.plan, held))

    def context(self, fetched: FetchedContext) -> ContextPlan:
        """Return the context plan for what was fetched."""
        # The window is not kept when the model reads more than the previous one.
        keeps_window = fetched.limit_before >= self.limits.usable_tokens
        prompt = PromptInput(
            self.plan.conversation.id,
            self._path,
            _question_index(self.plan.path),
            self.preset.system_prompt,
            fetched.core_memory,
            fetched.summary,
            self.tools,
            fetched.window_before if keeps_window else None,
            fetched.turn_numbers,
        )
        return plan_context(prompt, self._recall, fetched.found, self.limits)

    def record(self, context: ContextPlan, notice: str) -> StoredPrompt:
        """Return the record of the prompt."""
        parts = context.parts
        if len(self._path) > len(self.plan.path):
            stored = frozenset(message.id for message in self.plan.path)
            parts = tuple(_with_continue(part, stored) for part in parts)
        exchange = self.plan.exchange
        return StoredPrompt(
            exchange.id, exchange.conversation_id, now(), exchange.model or "",
            self.limits.usable_tokens, self._result_chars, parts, context.items, notice,
        )  # fmt: skip


def segment_context(plan: ExchangePlan, held: frozenset[MessageId] = frozenset()) -> SegmentContext:
    """Return the segment before the question of a plan; `held` messages are sent anyway."""
    before = plan.path[: _question_index(plan.path)]
    return SegmentContext(
        frozenset(each.id for each in plan.segment[:-1]), held, recent=_recent_turns(before)
    )


def _recent_turns(messages: tuple[Message, ...]) -> tuple[RecentTurn, ...]:
    """Return the last turns of some messages, newest last."""
    starts = [place for place, each in enumerate(messages) if each.opens_turn][-_RECENT_TURNS:]
    ends = [*starts[1:], len(messages)]
    return tuple(
        RecentTurn(
            messages[start].text,
            "\n\n".join(
                each.text
                for each in messages[start:end]
                if each.role is Role.ASSISTANT and each.text
            ),
        )
        for start, end in zip(starts, ends, strict=False)
    )


def _request_path(plan: ExchangePlan) -> tuple[Message, ...]:
    """Return the plan's path; a reply that is continued is followed by the request to continue."""
    last = plan.path[-1]
    if not plan.continues or last.role is not Role.ASSISTANT:
        return plan.path
    blocks = (Text(_CONTINUE),)
    request = Message(last.id, last.uid, last.conversation_id, last.id, Role.USER, blocks, now())
    return (*plan.path, request)


def _with_continue(part: PlanPart, stored: Iterable[MessageId]) -> PlanPart:
    """Return a question part whose request to continue is text, since no message holds it."""
    if part.kind is not PlanPartKind.QUESTION:
        return part
    known = tuple(dict.fromkeys(each for each in part.message_ids if each in stored))
    return replace(part, message_ids=known, pieces=(PromptPiece(_CONTINUE),))


def _question_index(path: tuple[Message, ...]) -> int:
    """Return the index of the last message that opens a turn."""
    opening = [index for index, message in enumerate(path) if message.opens_turn]
    return opening[-1] if opening else len(path) - 1
