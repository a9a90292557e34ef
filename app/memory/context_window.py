"""Context window: the newest messages of a path that fit, with tool calls and results kept together."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from app.domain.attachments import image_tokens
from app.domain.conversations import Attachment, Image, Message, Role, ToolCall, ToolResult
from app.domain.turn_text import estimate_tokens

_STEP_SHARE = 0.25
_FRAME_TOKENS = 4  # of a message, for its role


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """The room for messages.

    At least `min_messages` are sent even beyond `budget_tokens`, but nothing except the question beyond
    `most_tokens` (None: unknown). `begins_at` is where the previous window began: the start stays there while
    everything after it fits.
    """

    budget_tokens: int
    min_messages: int
    most_tokens: int | None = None
    begins_at: int = 0


def window_start(
    messages: Sequence[Message], weights: Sequence[int], question_index: int, room: WindowLimits
) -> int:
    """Return the index at which the window begins; the question at `question_index` is always in it.

    `messages` are oldest first, `weights` their tokens (`message_tokens`). The window begins at a user's
    message if possible, and never between a tool call and its result. What no longer fits is removed in steps
    of a quarter of the budget, counted from the beginning, until a quarter is free: the start moves rarely,
    so the provider's prompt cache keeps its prefix.
    """
    after = [0, *accumulate(reversed(weights))][::-1]  # after[i]: tokens of messages[i:]
    last_start = max(0, min(question_index, len(messages) - max(1, room.min_messages)))
    start = min(room.begins_at, last_start)
    if after[start] > room.budget_tokens:
        step = max(1, int(room.budget_tokens * _STEP_SHARE))
        goes = -(-(after[0] - room.budget_tokens + step) // step) * step
        while start < last_start and after[0] - after[start] < goes:
            start += 1
    start = _start_of_turn(messages, start, last_start)
    if room.most_tokens is not None and after[start] > room.most_tokens:
        fits = [each for each in range(start, question_index) if after[each] <= room.most_tokens]
        start = _first_whole(messages, fits, question_index)
    return start


def message_tokens(message: Message) -> int:
    """Return the estimated tokens of a message in the prompt."""
    words, tokens = message.text, _FRAME_TOKENS
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


def _start_of_turn(messages: Sequence[Message], start: int, last_start: int) -> int:
    """Return the nearest index of a user's message: from `start` to `last_start`, else before."""
    for index in chain(range(start, last_start + 1), range(start - 1, -1, -1)):
        if index < len(messages) and messages[index].opens_turn:
            return index
    while last_start >= start > 0 and start < len(messages) and _is_result(messages[start]):
        start -= 1
    return start


def _first_whole(messages: Sequence[Message], places: Sequence[int], otherwise: int) -> int:
    """Return the first index of a user's message, else the first that is not a tool result."""
    for index in places:
        if messages[index].opens_turn:
            return index
    return next((each for each in places if not _is_result(messages[each])), otherwise)


def _is_result(message: Message) -> bool:
    return message.role is Role.TOOL or any(
        isinstance(block, ToolResult) for block in message.blocks
    )
