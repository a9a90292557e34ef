"""Which messages of a path are sent: the newest that fit, tools kept together.

The whole context plan grows from here; recall adds its parts around this window.
"""

from collections.abc import Sequence
from itertools import chain

from app.domain.conversations import Attachment, Message, ToolCall, ToolResult
from app.domain.turn_text import estimate_tokens

_STEP_SHARE = 0.25


def window_of(
    messages: Sequence[Message], budget_tokens: int, min_messages: int
) -> tuple[Message, ...]:
    """Return the end of `messages` (oldest first) that fits `budget_tokens`, estimated.

    At least `min_messages` stay, whatever they weigh, and the first one sent is a user message
    where there is one, so that a tool's result never stands without its call. What goes, goes in
    steps of a quarter of the budget, counted from the beginning: so the start moves rarely, and
    the provider's prompt cache keeps its prefix.
    """
    weights = [weight_tokens(message) for message in messages]
    excess = sum(weights) - budget_tokens
    if excess <= 0:
        return tuple(messages)
    step = max(1, int(budget_tokens * _STEP_SHARE))
    goes = -(-excess // step) * step
    last_start = max(0, len(messages) - max(1, min_messages))
    start = gone = 0
    while start < last_start and gone < goes:
        gone += weights[start]
        start += 1
    return tuple(messages[_start_of_turn(messages, start, last_start) :])


def weight_tokens(message: Message) -> int:
    """Return an estimate of what a message costs in the prompt."""
    words = message.text
    for block in message.blocks:
        match block:
            case ToolCall(name=name, arguments=arguments):
                words += name + arguments
            case ToolResult(text=text):
                words += text
            case Attachment(name=name, text=text):
                words += name + text
            case _:
                pass
    return estimate_tokens(words) + 4


def _start_of_turn(messages: Sequence[Message], start: int, last_start: int) -> int:
    """Return the nearest place where a user speaks: from `start` to `last_start`, else before."""
    for index in chain(range(start, last_start + 1), range(start - 1, -1, -1)):
        if index < len(messages) and messages[index].opens_turn:
            return index
    return start
