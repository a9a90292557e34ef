"""What goes into a prompt, part by part, each within its budget. Pure: nothing is read or written.

The order of the parts is section 4 of the specification; what of the past is quoted is chosen by
`recall_choice`, how it reads is `recalled_text`, which messages are sent whole is `window`. The
parts become a request in `app.chat.preparing`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from app.domain.chat import ToolSchema
from app.domain.conversations import Message
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.recalls import Piece, PlanPart, PlanPartKind, RecalledItem
from app.domain.retrieved import Retrieved
from app.memory import recalled_text
from app.memory.recall_choice import (
    BYTES_PER_TOKEN,
    FETCH_TOOL,
    AskedIn,
    Choosing,
    RecallSettings,
    Shelf,
    introduction,
    tokens_of,
)
from app.memory.recalled_text import cut_at_sentence, enclosed, noted, quoted
from app.memory.window import WindowRoom, weight_tokens, window_start

# What is summarised stays out while the rest fits; a model that reads much more gets all of it.
_ALL_AGAIN_SHARE = 0.5
_RECALL_SHARE = 0.5  # of what is left beside the question, where the model reads little
_QUOTED = (PlanPartKind.FACTS, PlanPartKind.RELATED, PlanPartKind.EARLIER)
_NOTHING_HELD: frozenset[MessageId] = frozenset()


@dataclass(frozen=True, slots=True)
class Limits:
    """What a model reads: `usable_tokens` with the reply's share taken off.

    `most_tokens` is beyond which the server would refuse; None where that is not known.
    """

    usable_tokens: int
    most_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Budgets:
    """Settings of parts that are not recalled: tokens, and messages for the last."""

    core_memory_max_tokens: int = 500
    summary_max_tokens: int = 500
    context_sliding_window: int = 20


@dataclass(frozen=True, slots=True)
class Covered:
    """A summary of the beginning of the segment; `until` is the last message it covers, if known."""

    text: str
    until: MessageId | None = None


@dataclass(frozen=True, slots=True)
class History:
    """What is asked, and what there is to send with it.

    `messages` are the segment's, oldest first; the one at `asked_at` is the question, what follows
    it belongs to the same turn. `window_before` is the first message that the prompt before this
    one held, None where that says nothing.
    """

    conversation_id: ConversationId
    messages: tuple[Message, ...]
    asked_at: int
    system_prompt: str = ""
    core_memory: str = ""
    summary: Covered | None = None
    tools: tuple[ToolSchema, ...] = ()
    window_before: MessageId | None = None
    turn_numbers: Mapping[ExchangeId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """A prompt: its parts in the order of the specification, absent where they are empty.

    `messages` are sent as they are, the one at `asked_at` with `recalled` inside. `system` and
    `recalled` are as they go out, in their marks. `items` is everything that was found.
    """

    parts: tuple[PlanPart, ...]
    items: tuple[RecalledItem, ...]
    system: str
    recalled: str
    messages: tuple[Message, ...]
    asked_at: int

    @property
    def tokens(self) -> int:
        """About how many tokens all of it takes."""
        return sum(part.tokens for part in self.parts)


def plan_context(
    history: History,
    settings: RecallSettings,
    budgets: Budgets,
    found: Retrieved,
    limits: Limits,
) -> ContextPlan:
    """Return what is sent. The same arguments give the same plan.

    What a part does not use of its budget goes to the window. The question is always sent, and the
    last messages of the segment (`context_sliding_window`) while the model takes them at all.
    """
    fixed = _fixed_parts(history, budgets)
    choose = _Choice(history, settings, found)
    taken = sum(part.tokens for part in fixed)
    weights = [weight_tokens(message) for message in history.messages]
    room = max(0, limits.usable_tokens - taken - sum(weights[history.asked_at :]))
    most = min(settings.rag_max_tokens, int(room * _RECALL_SHARE))
    # What it takes at most; it is chosen again once the window is known, for what that holds.
    related = choose(_NOTHING_HELD, most, 0).tokens
    window = _Window(history, weights, budgets, limits, taken)
    start, summary = window.start(related), None
    if start > 0:
        summary = _summary_part(history, budgets)
        around = related + (0 if summary is None else summary.tokens)
        earlier = min(settings.auto_rag_max_tokens, int(max(0, room - around) * _RECALL_SHARE))
        start = window.start(around + earlier)
        chosen = choose(_ids(history.messages[start:]), related, earlier)
        if not chosen.earlier_tokens:
            start = window.start(around)
            chosen = choose(_ids(history.messages[start:]), related, 0)
        summary = summary if start > 0 else None
    else:
        chosen = choose(_ids(history.messages), related, 0)
    return _arranged(history, weights, (fixed, summary, chosen), start)


def covered_start(messages: Sequence[Message], summary: Covered | None) -> int:
    """Return the place after the last message that a summary covers; 0 where it covers none."""
    until = None if summary is None else summary.until
    return next((place + 1 for place, each in enumerate(messages) if each.id == until), 0)


def sent_system(parts: Iterable[PlanPart]) -> str:
    """Return the parts before the window as they go out, in their marks."""
    by_kind = {part.kind: part.text for part in parts}
    texts = (
        by_kind.get(PlanPartKind.SYSTEM_PROMPT, "").strip(),
        enclosed(recalled_text.CORE_MEMORY, by_kind.get(PlanPartKind.CORE_MEMORY, "")),
        enclosed(recalled_text.SUMMARY, by_kind.get(PlanPartKind.SUMMARY, "")),
    )
    return "\n\n".join(text for text in texts if text)


def sent_recalled(parts: Iterable[PlanPart]) -> str:
    """Return what is quoted inside the user's message as it goes out, in its marks."""
    by_kind = {part.kind: part.text for part in parts}
    return enclosed(recalled_text.RECALLED, "".join(by_kind.get(kind, "") for kind in _QUOTED))


def tools_text(tools: Iterable[ToolSchema]) -> str:
    """Return tools as a prompt keeps them: a line of JSON for each."""
    return "\n".join(
        json.dumps([tool.name, tool.description, tool.parameters_json], ensure_ascii=False)
        for tool in tools
    )


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Parts 4 to 6 with all that was found."""

    parts: tuple[PlanPart, ...]
    items: tuple[RecalledItem, ...]

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)

    @property
    def earlier_tokens(self) -> int:
        return sum(part.tokens for part in self.parts if part.kind is PlanPartKind.EARLIER)


@dataclass(frozen=True, slots=True)
class _Choice:
    """Chooses what is quoted, as often as the window moves."""

    history: History
    settings: RecallSettings
    found: Retrieved

    def __call__(
        self, held: frozenset[MessageId], related_tokens: int, earlier_tokens: int
    ) -> _Chosen:
        history = self.history
        question = history.messages[history.asked_at].text
        can_fetch = any(tool.name == FETCH_TOOL for tool in history.tools)
        asked_in = AskedIn(
            history.conversation_id, question, held, history.turn_numbers, can_fetch=can_fetch
        )
        choosing = Choosing(self.settings, asked_in)
        said_first = introduction(can_fetch=can_fetch)
        shelf = Shelf(related_tokens, said_first)
        choosing.related(self.found, shelf)
        parts = shelf.parts(choosing.items)
        shelf = Shelf(earlier_tokens, "" if parts else said_first)
        choosing.earlier(self.found.earlier, shelf)
        return _Chosen((*parts, *shelf.parts(choosing.items)), tuple(choosing.items))


@dataclass(frozen=True, slots=True)
class _Window:
    """Where the window begins, by what the parts around it take."""

    history: History
    weights: Sequence[int]
    budgets: Budgets
    limits: Limits
    taken_tokens: int

    def start(self, recalled_tokens: int) -> int:
        history, limits = self.history, self.limits
        around = self.taken_tokens + recalled_tokens
        budget = max(0, limits.usable_tokens - around)
        most = None if limits.most_tokens is None else max(0, limits.most_tokens - around)
        places = {message.id: place for place, message in enumerate(history.messages)}
        begins_at = max(
            covered_start(history.messages, history.summary),
            places.get(history.window_before, 0) if history.window_before is not None else 0,
        )
        if sum(self.weights) <= budget * _ALL_AGAIN_SHARE:
            begins_at = 0
        room = WindowRoom(budget, self.budgets.context_sliding_window, most, begins_at)
        return window_start(history.messages, self.weights, history.asked_at, room)


def _fixed_parts(history: History, budgets: Budgets) -> list[PlanPart]:
    """Return the parts that neither question nor window change."""
    parts = []
    if history.system_prompt.strip():
        text = noted(history.system_prompt)
        parts.append(_part(PlanPartKind.SYSTEM_PROMPT, Piece(text)))
    intro = Piece(recalled_text.CORE_MEMORY_INTRO)
    if words := _within(noted(history.core_memory), intro, budgets.core_memory_max_tokens):
        parts.append(_part(PlanPartKind.CORE_MEMORY, intro, Piece(words)))
    if history.tools:
        parts.append(_part(PlanPartKind.TOOLS, Piece(tools_text(history.tools))))
    return parts


def _summary_part(history: History, budgets: Budgets) -> PlanPart | None:
    if history.summary is None:
        return None
    intro = Piece(recalled_text.SUMMARY_INTRO)
    words = _within(quoted(history.summary.text), intro, budgets.summary_max_tokens)
    if not words:
        return None
    return _part(PlanPartKind.SUMMARY, intro, Piece(words, history.conversation_id))


def _within(text: str, intro: Piece, most_tokens: int) -> str:
    """Return what of a text a budget holds; "" where that is nothing."""
    if not text.strip():
        return ""
    room = most_tokens * BYTES_PER_TOKEN - len(intro.text.encode()) - recalled_text.MARK_BYTES
    return cut_at_sentence(text, room) if room > 0 else ""


def _arranged(
    history: History,
    weights: Sequence[int],
    around: tuple[Sequence[PlanPart], PlanPart | None, _Chosen],
    start: int,
) -> ContextPlan:
    fixed, summary, chosen = around
    parts = [*fixed, *chosen.parts, *([] if summary is None else [summary])]
    asked_at = history.asked_at
    for kind, begin, end in (
        (PlanPartKind.WINDOW, start, asked_at),
        (PlanPartKind.QUESTION, asked_at, len(weights)),
    ):
        if ids := tuple(message.id for message in history.messages[begin:end]):
            is_stable = kind is PlanPartKind.WINDOW
            parts.append(PlanPart(kind, sum(weights[begin:end]), is_stable, message_ids=ids))
    order = list(PlanPartKind)
    parts.sort(key=lambda part: order.index(part.kind))
    return ContextPlan(
        parts=tuple(parts),
        items=chosen.items,
        system=sent_system(parts),
        recalled=sent_recalled(parts),
        messages=history.messages[start:],
        asked_at=asked_at - start,
    )


def _part(kind: PlanPartKind, *pieces: Piece) -> PlanPart:
    size = sum(len(piece.text.encode()) for piece in pieces)
    marks = 0 if kind in (PlanPartKind.SYSTEM_PROMPT, PlanPartKind.TOOLS) else 1
    return PlanPart(kind, tokens_of(size + marks * recalled_text.MARK_BYTES), True, pieces)


def _ids(messages: Iterable[Message]) -> frozenset[MessageId]:
    return frozenset(message.id for message in messages)
