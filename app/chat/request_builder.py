"""Request builder: the first request for a message, and the record of its prompt.

A request is the system part, the history as it was sent before (`history`), and the new turn: its
block with the date and what `context_fetcher` recalled, then the user's words.
`app.memory.context.plan` sets the budgets. Tool rounds append to the request.
Images are the files that a model gets, within what servers accept.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from app.chat.context_fetcher import ContextFetcher, FetchedContext, RecallQuery
from app.chat.history import Ceiling, History, HistoryReader
from app.chat.planner import ExchangePlan
from app.chat.presets import Presets
from app.chat.projects import Projects
from app.chat.sent_turns import BLOCK_KINDS, as_sent, opening_of, with_compaction, with_note
from app.chat.tools.conversations import FETCH
from app.chat.tools.toolbox import Toolbox
from app.domain.attachments import files_of
from app.domain.chat import NO_IMAGES, ChatRequest, ModelRef, ToolSchema
from app.domain.conversations import Conversation, Image, Message, Role
from app.domain.errors import KnownError
from app.domain.ids import MessageId
from app.domain.recall import (
    PlanPart,
    PlanPartKind,
    PromptPiece,
    RecallSettings,
    RetrievalResult,
    SegmentContext,
    StoredPrompt,
    is_recall_on,
)
from app.domain.records.presets import Preset
from app.domain.records.profile import ProfileLine
from app.domain.translation import local_moment, tr_noop
from app.memory.context.plan import (
    ContextPlan,
    PromptInput,
    compaction_tokens,
    fixed_parts,
    message_tokens,
    part_of,
    plan_context,
    prompt_ceiling,
    system_text,
)
from app.providers.vendors.recall import RECALL
from app.storage.engine.stamps import now
from app.storage.safety.attachments import AttachmentFiles
from app.storage.tables.settings import Settings, SettingValues

_MAX_BYTES = 20 << 20  # 27 MB in base64; Anthropic accepts requests of 32 MB
_MAX_IMAGES = 100  # Anthropic's limit for models with a context of 200,000 tokens

SeesImages = Callable[[ModelRef], bool | None]
"""Whether a model reads images; None if unknown, so that it is tried."""


class AttachedImages:
    """Loads the images of messages. Thread-safe; blocking."""

    def __init__(self, files: AttachmentFiles, sees_images: SeesImages) -> None:
        self._files = files
        self._sees_images = sees_images

    def __call__(self, ref: ModelRef, messages: Sequence[Message]) -> Mapping[str, bytes]:
        """Return `ChatRequest.images`: none for a model without vision, the newest if too many.

        When one more would be too many, the oldest are left out until half of what fits is free, so
        that the requests after it begin with the same images again. A file that is missing is left
        out, so that its name is sent.
        """
        if self._sees_images(ref) is False:
            return {}
        kept: dict[str, int] = {}
        for content_hash in _in_order(messages):
            if content_hash in kept or (size_bytes := self._size_bytes(content_hash)) is None:
                continue
            is_full = len(kept) == _MAX_IMAGES or sum(kept.values()) + size_bytes > _MAX_BYTES
            while kept and is_full and not _is_half_free(kept, size_bytes):
                del kept[next(iter(kept))]
            kept[content_hash] = size_bytes
        return {each: data for each in kept if (data := self._read(each)) is not None}

    def _size_bytes(self, content_hash: str) -> int | None:
        try:
            return self._files.path(content_hash).stat().st_size
        except OSError:
            data = self._read(content_hash)  # from a backup
            return None if data is None else len(data)

    def _read(self, content_hash: str) -> bytes | None:
        try:
            return self._files.read(content_hash)
        except KnownError as error:
            _log.warning("an image is sent as its name: %s", error)
            return None


def _is_half_free(kept: Mapping[str, int], more_bytes: int) -> bool:
    return len(kept) <= _MAX_IMAGES // 2 and sum(kept.values()) + more_bytes <= _MAX_BYTES // 2


def _in_order(messages: Sequence[Message]) -> list[str]:
    return [
        content_hash
        for message in messages
        if message.role is Role.USER
        for file in files_of(message.blocks)
        if isinstance(file, Image) and (content_hash := file.sent_hash or file.content_hash)
    ]


_log = logging.getLogger(__name__)
_RECENT_TURNS = 3  # that a follow-up may refer to
# Of a smaller one they would take a third, and small models call none
_LEAST_WINDOW_FOR_TOOLS = 4_000
_CONTINUE = "Continue exactly where your last message broke off, without repeating any of it."

LoadImages = Callable[[ModelRef, Sequence[Message]], Mapping[str, bytes]]
"""Returns `ChatRequest.images` for a model and messages; may block."""


@dataclass(frozen=True, slots=True)
class RequestBuilder:
    """Builds requests from the context plan. Thread-safe.

    `on_prepared` is called with each prompt that has a record; `profile` returns the lines for a project,
    it may block.
    """

    settings: Settings
    context_tokens: Callable[[ModelRef], int | None]
    history: HistoryReader
    fetcher: ContextFetcher
    toolbox: Toolbox
    presets: Presets
    projects: Projects
    on_prepared: Callable[[StoredPrompt], None] = lambda _: None
    images: LoadImages = lambda _ref, _messages: NO_IMAGES
    profile: Callable[[str | None], Sequence[ProfileLine]] = lambda _: ()

    def __call__(self, plan: ExchangePlan) -> tuple[ChatRequest, StoredPrompt | None]:
        """Return the request of a plan and the record of its prompt. Blocking, about 0.5 s at most.

        Recall receives the question after the last turns, and has no prompt to record.
        """
        ref = ModelRef.parse(plan.exchange.model or "")
        if ref.provider == RECALL:
            recent = self.history.recent_messages(plan, _RECENT_TURNS)
            return ChatRequest(
                ref.model, (*recent, *plan.messages), history_count=len(recent), choice=plan.choice
            ), None
        draft = self.draft(plan)
        fetched = self.fetcher.fetch(plan, draft.query)
        try:
            context = draft.context(fetched)
        except Exception as error:  # noqa: BLE001 - recall must never prevent sending
            _log.exception("the context could not be planned")
            notice = tr_noop(f"Recall failed: {type(error).__name__}")
            fetched = FetchedContext(fetched.core_memory, notice=notice)
            context = draft.context(fetched)
        prompt = draft.record(context, fetched.notice)
        self.on_prepared(prompt)
        request = draft.request(prompt)
        return replace(request, images=self.images(ref, request.messages)), prompt

    def draft(self, plan: ExchangePlan) -> "PromptDraft":
        """Return the prompt of a plan with the current settings, before anything is fetched."""
        if not plan.choice.is_on:  # as if memory were off in its conversation
            plan = replace(plan, conversation=replace(plan.conversation, recalls=False))
        settings = self.settings
        window = self.context_tokens(ModelRef.parse(plan.exchange.model or ""))
        tokens = prompt_ceiling(settings.number("prompt_max_tokens"), window)
        most = compaction_tokens(settings.number("compaction_max_tokens"), tokens)
        preset = self.presets.of(plan.conversation)
        has_memory = is_recall_on(plan.conversation)
        profile = self.profile(plan.conversation.project) if has_memory else ()
        is_small = window is not None and window < _LEAST_WINDOW_FOR_TOOLS
        tools = self.toolbox.offered_in(
            plan.conversation,
            () if is_small else preset.tools,
            is_unattended=plan.unattended is not None,
        )
        draft = PromptDraft(
            plan,
            tools,
            Ceiling(tokens, most),
            replace(preset, system_prompt=self._instructions(plan.conversation, preset)),
            profile,
            settings,
            History(runs=self.history.own_runs(plan.exchange)),
        )
        around = draft.around_tokens(self.fetcher.core_memory)
        history = self.history.read(plan, draft.history.runs, around, draft.ceiling)
        core_memory = self.history.core_memory(history.before)
        return replace(draft, history=history, core_memory=core_memory)

    def _instructions(self, conversation: Conversation, preset: Preset) -> str:
        """Return the instructions of the preset, then those of the project."""
        project = self.projects.of(conversation)
        own = project.instructions if project is not None else ""
        return "\n\n".join(filter(None, (self.presets.instructions(preset), own)))


@dataclass(eq=False)
class PromptDraft:
    """A prompt in preparation, with the settings at its creation; `replace` tries others.

    `history` is what precedes the question; `core_memory` that of the prompt before, None for the current one.
    """

    plan: ExchangePlan
    tools: tuple[ToolSchema, ...]
    ceiling: Ceiling
    preset: Preset
    profile: Sequence[ProfileLine]
    settings: SettingValues
    history: History
    core_memory: str | None = None

    def __post_init__(self) -> None:
        self._recall = RecallSettings.read(self.settings.get)
        self._result_chars = self.settings.number("tool_output_max_chars")
        self._opening = opening_of(self.plan.messages, self.plan.exchange.message_ids)
        self._run = self._earlier_run()

    def around_tokens(self, core_memory: str) -> int:
        """Return the tokens of everything but past turns and recalled items."""
        return self._input(FetchedContext(core_memory)).tokens

    def query(self, fetched: FetchedContext) -> RecallQuery | None:
        """Return what to recall; None for nothing, as when the turn has its block already."""
        is_sent_again = self._run is not None
        is_unattended = self.plan.unattended is not None
        if is_sent_again or is_unattended or not is_recall_on(self.plan.conversation):
            return None
        is_earlier_recalled = self._recall.auto_rag_enabled and self.history.is_cut
        settings = replace(self._recall, auto_rag_enabled=is_earlier_recalled)
        prompt = self._input(fetched)
        if not prompt.question.strip() or not (settings.rag_enabled or settings.auto_rag_enabled):
            return None
        return RecallQuery(prompt.question, settings, self.segment_context(prompt.held))

    def segment_context(self, held: frozenset[MessageId] = frozenset()) -> SegmentContext:
        """Return the segment before the question; `held` messages are sent anyway."""
        return SegmentContext(
            frozenset(each.id for each in self.plan.segment[:-1]),
            held,
            self.history.quoted,
            tuple(_asked(turn.stored) for turn in self.history.turns[-_RECENT_TURNS:]),
            self.plan.choice.mentioned,
            self.plan.conversation.project,
        )

    def context(self, fetched: FetchedContext) -> ContextPlan:
        found = fetched.found if self._run is None else RetrievalResult()
        context = plan_context(self._input(fetched), self._recall, found, self.ceiling.tokens)
        return context if self._run is None else replace(context, items=self._run.items)

    def record(self, context: ContextPlan, notice: str) -> StoredPrompt:
        exchange = self.plan.exchange
        prompt = StoredPrompt(
            exchange.id, exchange.conversation_id, now(), exchange.model or "",
            self.ceiling.tokens, self._result_chars, context.parts, context.items, notice,
        )  # fmt: skip
        last = self.plan.messages[-1]
        if self.plan.continues and last.role is Role.ASSISTANT:
            return with_note(prompt, last.id, _CONTINUE)
        return prompt

    def request(self, prompt: StoredPrompt) -> ChatRequest:
        history, preset = self.history, self.preset
        own = as_sent(self.plan.messages, (*history.runs, prompt), history.rejected)
        messages = with_compaction((*history.messages, *own), history.compaction)
        added = len(messages) - len(history.messages) - len(own)
        return ChatRequest(
            ModelRef.parse(prompt.model).model, tuple(messages), system_text(prompt.parts),
            self.tools, preset.temperature, preset.reasoning_effort,
            preset.max_output_tokens, history_count=len(history.messages) + added,
        )  # fmt: skip

    def _input(self, fetched: FetchedContext) -> PromptInput:
        """Return the prompt without what is recalled for it."""
        core_memory = fetched.core_memory if self.core_memory is None else self.core_memory
        tools, messages = self.tools, self.plan.messages
        own = PlanPart(
            PlanPartKind.QUESTION,
            sum(map(message_tokens, messages)),
            cacheable=False,
            message_ids=tuple(each.id for each in messages),
        )
        run = self._run
        date = part_of(PlanPartKind.DATE, PromptPiece(f"[Sent on {local_moment(now())}]"))
        return PromptInput(
            self.plan.conversation.id,
            next((each.text for each in messages if each.id == self._opening), ""),
            fixed_parts(self.preset.system_prompt, core_memory, tools, self._recall, self.profile),
            self.history.parts,
            (date,) if run is None else tuple(p for p in run.parts if p.kind in BLOCK_KINDS),
            own,
            any(tool.name == FETCH for tool in tools),
            fetched.turn_numbers,
            self.history.lines,
            self.plan.choice.left_out,
        )

    def _earlier_run(self) -> StoredPrompt | None:
        """Return the run that the question has been sent in already; its block is repeated."""
        for run in reversed(self.history.runs):
            if self._opening in run.part(PlanPartKind.QUESTION).message_ids:
                return run
        return None


def _asked(messages: tuple[Message, ...]) -> str:
    return "\n\n".join(each.text for each in messages if each.role is Role.USER and each.text)
