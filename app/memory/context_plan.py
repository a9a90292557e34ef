"""Context plan: the parts of a prompt, each within its token budget. Pure: nothing is read or written.

The order of the parts is that of section 4 of the specification. `recall_selection` chooses the recalled
items, `recalled_text` formats them, `context_window` chooses the messages. `app.chat` makes the request.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.domain.chat import ToolSchema
from app.domain.conversations import Message
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.quoting import (
    CORE_MEMORY,
    RECALLED,
    SUMMARY,
    blockquote,
    sanitize,
    wrap_in_tag,
)
from app.domain.recall import (
    PlanPart,
    PlanPartKind,
    PromptPiece,
    RecalledItem,
    RecallSettings,
    RetrievalResult,
)
from app.memory import recalled_text
from app.memory.context_window import WindowLimits, message_tokens, window_start
from app.memory.recall_selection import (
    BYTES_PER_TOKEN,
    Selection,
    SelectionContext,
    select_recalled,
    tokens_of,
)
from app.memory.recalled_text import cut_at_sentence

# Summarized messages are left out while the rest fits; a model with room for twice all gets all.
_ALL_AGAIN_SHARE = 0.5
_RECALL_SHARE = 0.5  # of what the question leaves, for a model with a small context
_QUOTED = (PlanPartKind.FACTS, PlanPartKind.RELATED, PlanPartKind.EARLIER)
_FETCH_TOOL = "fetch_conversation_details"


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """The context of a model: `usable_tokens` without the share reserved for the reply.

    `most_tokens` is what the server accepts at most; None if unknown.
    """

    usable_tokens: int
    most_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class CoveringSummary:
    """A summary of the beginning of the segment; `until` is the last message it covers, if known."""

    text: str
    until: MessageId | None = None


@dataclass(frozen=True, slots=True)
class PromptInput:
    """The question and everything that may be sent with it.

    `messages` are the segment's, oldest first; the one at `question_index` is the question, and what
    follows belongs to the same turn. `window_before` is the first message of the previous prompt's window,
    None if that does not apply.
    """

    conversation_id: ConversationId
    messages: tuple[Message, ...]
    question_index: int
    system_prompt: str = ""
    core_memory: str = ""
    summary: CoveringSummary | None = None
    tools: tuple[ToolSchema, ...] = ()
    window_before: MessageId | None = None
    turn_numbers: Mapping[ExchangeId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """A prompt: its parts in the order of the specification, without empty ones.

    `messages` are sent as they are, the one at `question_index` with `recalled` inside. `system` and
    `recalled` are wrapped in their tags. `items` are all that was found.
    """

    parts: tuple[PlanPart, ...]
    items: tuple[RecalledItem, ...]
    system: str
    recalled: str
    messages: tuple[Message, ...]
    question_index: int

    @property
    def tokens(self) -> int:
        """The estimated tokens of all parts."""
        return sum(part.tokens for part in self.parts)


def plan_context(
    prompt: PromptInput, settings: RecallSettings, found: RetrievalResult, limits: ModelLimits
) -> ContextPlan:
    """Return the plan. Equal arguments give equal plans.

    The window gets what other parts leave of their budgets. The question is always sent, and the last
    messages of the segment (`context_sliding_window`) while the model accepts them at all.
    """
    planner = _Planner(prompt, settings, found, limits)
    room = max(
        0,
        limits.usable_tokens - planner.fixed_tokens - sum(planner.weights[prompt.question_index :]),
    )
    # The most it can take; selected again below, when the messages of the window are known.
    related = planner.select(
        len(prompt.messages), min(settings.rag_max_tokens, int(room * _RECALL_SHARE)), 0
    ).tokens()
    start, summary = planner.window_start(related), None
    if start == 0:
        return planner.plan(0, None, planner.select(0, related, 0))
    summary = _summary_part(prompt, settings)
    around = related + (0 if summary is None else summary.tokens)
    earlier = min(settings.auto_rag_max_tokens, int(max(0, room - around) * _RECALL_SHARE))
    start = planner.window_start(around + earlier)
    selection = planner.select(start, related, earlier)
    if not selection.tokens(PlanPartKind.EARLIER):
        start = planner.window_start(around)
        selection = planner.select(start, related, 0)
    return planner.plan(start, summary if start > 0 else None, selection)


def system_text(parts: Iterable[PlanPart]) -> str:
    """Return the parts before the window as they are sent, in their tags."""
    by_kind = {part.kind: part.text for part in parts}
    texts = (
        by_kind.get(PlanPartKind.SYSTEM_PROMPT, "").strip(),
        wrap_in_tag(CORE_MEMORY, by_kind.get(PlanPartKind.CORE_MEMORY, "")),
        wrap_in_tag(SUMMARY, by_kind.get(PlanPartKind.SUMMARY, "")),
    )
    return "\n\n".join(text for text in texts if text)


def recalled_block(parts: Iterable[PlanPart]) -> str:
    """Return what is quoted inside the user's message as it is sent, in its tag."""
    by_kind = {part.kind: part.text for part in parts}
    return wrap_in_tag(RECALLED, "".join(by_kind.get(kind, "") for kind in _QUOTED))


class _Planner:
    """One plan: the parts that do not change, and the choices that depend on where the window begins."""

    def __init__(
        self,
        prompt: PromptInput,
        settings: RecallSettings,
        found: RetrievalResult,
        limits: ModelLimits,
    ) -> None:
        self._prompt = prompt
        self._settings = settings
        self._found = found
        self._limits = limits
        self._fixed = _fixed_parts(prompt, settings)
        self.fixed_tokens = sum(part.tokens for part in self._fixed)
        self.weights = [message_tokens(message) for message in prompt.messages]

    def select(self, window_start: int, related_tokens: int, earlier_tokens: int) -> Selection:
        """Select recalled items for a window that begins at an index."""
        prompt = self._prompt
        context = SelectionContext(
            prompt.conversation_id,
            prompt.messages[prompt.question_index].text,
            frozenset(message.id for message in prompt.messages[window_start:]),
            prompt.turn_numbers,
            can_fetch=any(tool.name == _FETCH_TOOL for tool in prompt.tools),
        )
        return select_recalled(self._found, self._settings, context, related_tokens, earlier_tokens)

    def window_start(self, recalled_tokens: int) -> int:
        """Return the index at which the window begins beside so many recalled tokens."""
        prompt, limits = self._prompt, self._limits
        around = self.fixed_tokens + recalled_tokens
        budget = max(0, limits.usable_tokens - around)
        most = None if limits.most_tokens is None else max(0, limits.most_tokens - around)
        begins_at = 0
        if sum(self.weights) > budget * _ALL_AGAIN_SHARE:
            ids = [message.id for message in prompt.messages]
            before = prompt.window_before
            until = None if prompt.summary is None else prompt.summary.until
            covered = ids.index(until) + 1 if until in ids else 0
            begins_at = max(covered, ids.index(before) if before in ids else 0)
        room = WindowLimits(budget, self._settings.context_sliding_window, most, begins_at)
        return window_start(prompt.messages, self.weights, prompt.question_index, room)

    def plan(self, start: int, summary: PlanPart | None, selection: Selection) -> ContextPlan:
        """Return the plan with its parts in order, for a window that begins at `start`."""
        prompt, question = self._prompt, self._prompt.question_index
        parts = [*self._fixed, *selection.parts, *([] if summary is None else [summary])]
        for kind, begin, end in (
            (PlanPartKind.WINDOW, start, question),
            (PlanPartKind.QUESTION, question, len(self.weights)),
        ):
            if ids := tuple(message.id for message in prompt.messages[begin:end]):
                is_cacheable = kind is PlanPartKind.WINDOW
                tokens = sum(self.weights[begin:end])
                parts.append(PlanPart(kind, tokens, is_cacheable, message_ids=ids))
        parts.sort(key=lambda part: list(PlanPartKind).index(part.kind))
        return ContextPlan(
            parts=tuple(parts),
            items=selection.items,
            system=system_text(parts),
            recalled=recalled_block(parts),
            messages=prompt.messages[start:],
            question_index=question - start,
        )


def _fixed_parts(prompt: PromptInput, settings: RecallSettings) -> list[PlanPart]:
    """Return the parts that depend neither on the question nor on the window."""
    parts = []
    if prompt.system_prompt.strip():
        text = sanitize(prompt.system_prompt)
        parts.append(_part(PlanPartKind.SYSTEM_PROMPT, PromptPiece(text)))
    intro = PromptPiece(recalled_text.CORE_MEMORY_INTRO)
    if words := _within(sanitize(prompt.core_memory), intro, settings.core_memory_max_tokens):
        parts.append(_part(PlanPartKind.CORE_MEMORY, intro, PromptPiece(words)))
    if prompt.tools:
        rows = ([each.name, each.description, each.parameters_json] for each in prompt.tools)
        text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        parts.append(_part(PlanPartKind.TOOLS, PromptPiece(text)))
    return parts


def _summary_part(prompt: PromptInput, settings: RecallSettings) -> PlanPart | None:
    if prompt.summary is None:
        return None
    intro = PromptPiece(recalled_text.SUMMARY_INTRO)
    words = _within(blockquote(prompt.summary.text), intro, settings.summary_max_tokens)
    if not words:
        return None
    return _part(PlanPartKind.SUMMARY, intro, PromptPiece(words, prompt.conversation_id))


def _within(text: str, intro: PromptPiece, most_tokens: int) -> str:
    """Return what fits of a text; "" when nothing does."""
    if not text.strip():
        return ""
    room = most_tokens * BYTES_PER_TOKEN - len(intro.text.encode()) - recalled_text.MARK_BYTES
    return cut_at_sentence(text, room) if room > 0 else ""


def _part(kind: PlanPartKind, *pieces: PromptPiece) -> PlanPart:
    size = sum(len(piece.text.encode()) for piece in pieces)
    marks = 0 if kind in (PlanPartKind.SYSTEM_PROMPT, PlanPartKind.TOOLS) else 1
    return PlanPart(kind, tokens_of(size + marks * recalled_text.MARK_BYTES), True, pieces)
