"""Which messages of a path are sent: the newest that fit, tools kept together.

The whole context plan grows from here; recall adds its parts around this window.
"""

from collections.abc import Sequence

from app.domain.conversations import Message, Role, ToolCall, ToolResult
from app.domain.turn_text import estimate_tokens

_STEP_SHARE = 0.25


def window_of(
    messages: Sequence[Message], budget_tokens: int, min_messages: int
) -> tuple[Message, ...]:
    """Return the end of `messages` (oldest first) that fits `budget_tokens`, estimated.

    At least `min_messages` stay, whatever they weigh, and the first one sent is a user message
    where there is one. When something must go, a quarter of the budget more goes with it, so that
    the start moves rarely and the provider's prompt cache keeps its prefix.
    """
    weights = [weight_tokens(message) for message in messages]
    total = sum(weights)
    if total <= budget_tokens:
        return tuple(messages)
    target = budget_tokens * (1 - _STEP_SHARE)
    start = 0
    while start < len(messages) - min_messages and total > target:
        total -= weights[start]
        start += 1
    return tuple(messages[_start_of_turn(messages, start) :])


def weight_tokens(message: Message) -> int:
    """Return an estimate of what a message costs in the prompt."""
    words = message.text
    for block in message.blocks:
        if isinstance(block, ToolCall):
            words += block.name + block.arguments
        elif isinstance(block, ToolResult):
            words += block.text
    return estimate_tokens(words) + 4


def _start_of_turn(messages: Sequence[Message], start: int) -> int:
    """Return the nearest place at or before `start` where a user speaks."""
    for index in range(start, -1, -1):
        if messages[index].role is Role.USER and messages[index].opens_turn:
            return index
    return start
