"""Compaction: the past turns that a request keeps once a conversation is too long. Pure.

At 85 % of the ceiling the results of old tools become one line each, then the oldest turns are left
out, until half of it is free. In between nothing is removed: each request begins with the one
before.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.attachments import image_tokens
from app.domain.chat import UNKNOWN_WINDOW_TOKENS
from app.domain.conversations import Attachment, Image, Message, ToolCall, ToolResult
from app.domain.turn_text import estimate_tokens

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
    """Return the tokens of the turns that remain."""
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
