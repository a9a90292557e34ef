"""Context plan: the parts of a prompt, each within its token budget. Pure.

`selection` chooses the recalled items and `text` formats them. `app.chat` makes the request.

Compaction says which past turns a request keeps once a conversation is too long: at 85 % of the ceiling the results
of old tools become one line each, then the oldest turns are left out, until half of it is free. In between nothing
is removed: each request begins with the one before.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from app.domain.attachments import image_tokens
from app.domain.chat import UNKNOWN_WINDOW_TOKENS, ToolSchema
from app.domain.conversations import Attachment, Image, Message, ToolCall, ToolResult
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.recall import (
    PlanPart,
    PlanPartKind,
    PromptPiece,
    RecalledItem,
    RecallSettings,
    RetrievalResult,
)
from app.domain.records.profile import ProfileLine, within_tokens
from app.domain.text import (
    CORE_MEMORY,
    PROFILE,
    RECALLED,
    SUMMARY,
    blockquote,
    sanitize,
    wrap_in_tag,
)
from app.domain.turns import estimate_tokens
from app.memory.context import text as recalled_text
from app.memory.context.items import SelectionContext
from app.memory.context.selection import select_recalled
from app.memory.context.text import cut_at_sentence, cut_lines
from app.memory.context.token_budget import BYTES_PER_TOKEN, RecallRoom, tokens_of

# Shares of a small ceiling.
_RELATED_SHARE, _EARLIER_SHARE, _DOCUMENT_SHARE, _COMPACTION_SHARE = 0.15, 0.1, 0.1, 0.15
_TAGGED = (PlanPartKind.PROFILE, PlanPartKind.CORE_MEMORY, PlanPartKind.COMPACTION)
_QUOTED = (
    PlanPartKind.FACTS, PlanPartKind.RELATED, PlanPartKind.DOCUMENTS, PlanPartKind.EARLIER
)  # fmt: skip


def recall_room(settings: RecallSettings, ceiling_tokens: int, left_tokens: int) -> RecallRoom:
    """Return the room below a ceiling, of which so many tokens are left."""
    rooms: list[int] = []
    for limit_tokens, share in (
        (settings.rag_max_tokens, _RELATED_SHARE),
        (settings.auto_rag_max_tokens, _EARLIER_SHARE),
        (settings.rag_document_max_tokens, _DOCUMENT_SHARE),
    ):
        rest = left_tokens - sum(rooms)
        rooms.append(max(0, min(limit_tokens, int(ceiling_tokens * share), rest)))
    return RecallRoom(*rooms)


def compaction_tokens(most_tokens: int, ceiling_tokens: int) -> int:
    """Return the most tokens of a compaction below a ceiling."""
    return min(most_tokens, int(ceiling_tokens * _COMPACTION_SHARE))


@dataclass(frozen=True, slots=True)
class PromptInput:
    """What is known of a prompt before anything is recalled for it.

    `fixed` are the parts of `fixed_parts`; `past` those before the question, `question` is its
    part. `held` are the past messages, `lines` the texts of what past turns recall; `left_out` are
    passages that the user does not want to be quoted this time.
    """

    conversation_id: ConversationId
    question: str
    fixed: tuple[PlanPart, ...]
    past: tuple[PlanPart, ...]
    block: tuple[PlanPart, ...]
    own: PlanPart
    can_fetch: bool = False
    turn_numbers: Mapping[ExchangeId, int] = field(default_factory=dict)
    lines: frozenset[str] = frozenset()
    left_out: frozenset[PassageId] = frozenset()

    @property
    def held(self) -> frozenset[MessageId]:
        return frozenset(each for part in self.past for each in part.message_ids)

    @property
    def tokens(self) -> int:
        """The estimated tokens of everything but what is recalled."""
        return sum(part.tokens for part in (*self.fixed, *self.past, *self.block, self.own))


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """A prompt: its non-empty parts in the order in which they are sent, and what was found."""

    parts: tuple[PlanPart, ...]
    items: tuple[RecalledItem, ...]

    @property
    def tokens(self) -> int:
        """The estimated tokens of all parts."""
        return sum(part.tokens for part in self.parts)


def plan_context(
    prompt: PromptInput, settings: RecallSettings, found: RetrievalResult, ceiling_tokens: int
) -> ContextPlan:
    """Return the plan. Equal arguments give equal plans."""
    held = prompt.held.union(prompt.own.message_ids)
    context = SelectionContext(
        prompt.conversation_id, prompt.question, held, prompt.turn_numbers,
        prompt.can_fetch, prompt.lines, prompt.left_out,
    )  # fmt: skip
    room = recall_room(settings, ceiling_tokens, ceiling_tokens - prompt.tokens)
    chosen = select_recalled(found, settings, context, room)
    parts = [*prompt.fixed, *prompt.past, *prompt.block, *chosen.parts, prompt.own]
    order = list(PlanPartKind)
    return ContextPlan(tuple(sorted(parts, key=lambda part: order.index(part.kind))), chosen.items)


def system_text(parts: Iterable[PlanPart]) -> str:
    """Return the system prompt, profile and core memory as they are sent, in their tags."""
    by_kind = {part.kind: part.text for part in parts}
    texts = (
        by_kind.get(PlanPartKind.SYSTEM_PROMPT, "").strip(),
        wrap_in_tag(PROFILE, by_kind.get(PlanPartKind.PROFILE, "")),
        wrap_in_tag(CORE_MEMORY, by_kind.get(PlanPartKind.CORE_MEMORY, "")),
    )
    return "\n\n".join(text for text in texts if text)


def compaction_block(part: PlanPart) -> str:
    """Return what stands for earlier turns as it is sent, in its tag; "" when it was forgotten."""
    is_whole = all(piece.text for piece in part.pieces)
    return wrap_in_tag(SUMMARY, part.text) if is_whole else ""


def recalled_block(parts: Iterable[PlanPart]) -> str:
    """Return what is quoted inside the user's message as it is sent, in its tag."""
    by_kind = {part.kind: part.text for part in parts}
    return wrap_in_tag(RECALLED, "".join(by_kind.get(kind, "") for kind in _QUOTED))


def fixed_parts(
    system_prompt: str,
    core_memory: str,
    tools: tuple[ToolSchema, ...],
    settings: RecallSettings,
    profile: Sequence[ProfileLine] = (),
) -> tuple[PlanPart, ...]:
    """Return the parts that depend neither on the question nor on past turns."""
    parts = []
    if system_prompt.strip():
        parts.append(part_of(PlanPartKind.SYSTEM_PROMPT, PromptPiece(sanitize(system_prompt))))
    lines = within_tokens(profile, settings.profile_max_tokens) if settings.profile_enabled else ()
    if lines:
        # Pieces of their own, so that one can be forgotten.
        pieces = (PromptPiece(line.in_prompt) for line in lines)
        intro = PromptPiece(recalled_text.PROFILE_INTRO)
        parts.append(part_of(PlanPartKind.PROFILE, intro, *pieces))
    intro = PromptPiece(recalled_text.CORE_MEMORY_INTRO)
    if words := _within(sanitize(core_memory), intro, settings.core_memory_max_tokens):
        parts.append(part_of(PlanPartKind.CORE_MEMORY, intro, PromptPiece(words)))
    if tools:
        rows = ([each.name, each.description, each.parameters_json] for each in tools)
        text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        parts.append(part_of(PlanPartKind.TOOLS, PromptPiece(text)))
    return tuple(parts)


def compaction_part(
    text: str, conversation_id: ConversationId, most_tokens: int, *, is_notes: bool = False
) -> PlanPart | None:
    """Return the part that stands for earlier turns; None without a text.

    Only of notes that a model wrote it says that what they name as wanted always still holds.
    """
    intro = PromptPiece(recalled_text.NOTES_INTRO if is_notes else recalled_text.SUMMARY_INTRO)
    words = cut_lines(text, compaction_bytes(most_tokens, text))
    if not words:
        return None
    return part_of(PlanPartKind.COMPACTION, intro, PromptPiece(blockquote(words), conversation_id))


def compaction_bytes(most_tokens: int, *texts: str) -> int:
    """Return the bytes that a compaction has for texts, each on lines of its own."""
    lines = sum(text.strip().count("\n") + 1 for text in texts)
    marks = recalled_text.MARK_BYTES + 2 * lines + 1  # of the quotation
    return most_tokens * BYTES_PER_TOKEN - len(recalled_text.NOTES_INTRO.encode()) - marks


def _within(text: str, intro: PromptPiece, most_tokens: int) -> str:
    """Return what fits of a text; "" when nothing does."""
    if not text.strip():
        return ""
    room = most_tokens * BYTES_PER_TOKEN - len(intro.text.encode()) - recalled_text.MARK_BYTES
    return cut_at_sentence(text, room) if room > 0 else ""


def part_of(kind: PlanPartKind, *pieces: PromptPiece) -> PlanPart:
    """Return a part of texts, with its tokens in its tag."""
    size = sum(len(piece.text.encode()) for piece in pieces)
    marks = 1 if kind in _TAGGED else 0
    is_cacheable = kind is not PlanPartKind.DATE
    return PlanPart(kind, tokens_of(size + marks * recalled_text.MARK_BYTES), is_cacheable, pieces)


PREPARED_SHARE, FULL_SHARE, LEFT_SHARE = 0.7, 0.85, 0.5
WINDOW_SHARE = 0.75  # of a model's window; the rest is for its reply and for wrong estimates
_MESSAGE_TOKENS = 4  # that a wire adds to each message
_ESCAPED = re.compile(r"\\u[0-9a-f]{4}")  # in stored JSON a character, of up to three bytes


@dataclass(frozen=True, slots=True)
class KeptTurns:
    """What remains of past turns: the first `dropped` are gone, the first `shortened` are short.

    Both count from the same first turn.
    """

    dropped: int = 0
    shortened: int = 0


def prompt_ceiling(most_tokens: int, window_tokens: int | None) -> int:
    """Return the tokens of a whole prompt: at most three quarters of the model's window."""
    window = UNKNOWN_WINDOW_TOKENS if window_tokens is None else window_tokens
    return min(most_tokens, int(window * WINDOW_SHARE))


def compacted(
    sizes: Sequence[tuple[int, int]],
    kept: KeptTurns,
    around_tokens: int,
    goal_tokens: float,
    ceiling_tokens: int,
) -> KeptTurns:
    """Return what remains of turns so that they and the tokens around them meet a goal.

    `sizes` are the tokens of each turn, whole and with short results, oldest first. The newest turn
    stays below the ceiling, and stays whole while the goal can be met without.
    """
    last = max(0, len(sizes) - 1)
    kept = KeptTurns(kept.dropped, max(kept.shortened, last))
    while kept.dropped < last and around_tokens + kept_tokens(sizes, kept) > goal_tokens:
        kept = KeptTurns(kept.dropped + 1, kept.shortened)
    if sizes and around_tokens + kept_tokens(sizes, kept) > goal_tokens:
        kept = KeptTurns(kept.dropped, len(sizes))
    if around_tokens + kept_tokens(sizes, kept) > ceiling_tokens:
        kept = KeptTurns(len(sizes), len(sizes))
    return kept


def kept_tokens(sizes: Sequence[tuple[int, int]], kept: KeptTurns) -> int:
    return sum(
        size[place < kept.shortened] for place, size in enumerate(sizes) if place >= kept.dropped
    )


def message_tokens(message: Message) -> int:
    """Return the estimated tokens of a message in the prompt: of its raw form if it has one."""
    if message.raw is not None:
        return estimate_tokens(_ESCAPED.sub("...", message.raw.items_json)) + _MESSAGE_TOKENS
    words, tokens = message.text, _MESSAGE_TOKENS
    for block in message.blocks:
        match block:
            case ToolCall(name=name, arguments=arguments):
                words += name + arguments
            case ToolResult(text=text):
                words += text
            case Attachment(name=name, text=text):
                words += name + text
            case Image(content_hash=str()):
                tokens += image_tokens(block)
            case _:
                pass
    return estimate_tokens(words) + tokens
