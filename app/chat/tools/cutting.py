"""Long tool results as a prompt holds them: cut, with their size and how to ask for the rest."""

import json
from collections.abc import Sequence
from dataclasses import replace

from app.domain.conversations import Block, Message, Role, ToolCall, ToolResult


def with_cut_results(messages: Sequence[Message], most_chars: int) -> tuple[Message, ...]:
    """Return the messages with no tool result longer than `most_chars`, the note of it aside."""
    offsets: dict[str, int | None] = {}
    cut = []
    for message in messages:
        offsets |= {
            block.call_id: _offset_of(block)
            for block in message.blocks
            if isinstance(block, ToolCall)
        }
        blocks = message.blocks
        if message.role is Role.TOOL:
            blocks = tuple(_cut(block, most_chars, offsets) for block in blocks)
        cut.append(message if blocks == message.blocks else replace(message, blocks=blocks))
    return tuple(cut)


def _cut(block: Block, most_chars: int, offsets: dict[str, int | None]) -> Block:
    if not isinstance(block, ToolResult) or len(block.text) <= most_chars:
        return block
    offset = offsets.get(block.call_id)
    hint = "Ask for less at once."
    if offset is not None:
        hint = f"For the next part call it again, the same but with offset={offset + most_chars}."
    size = len(block.text)
    note = f"[Cut: {most_chars:,} of {size:,} characters are shown. {hint}]"
    return replace(block, text=f"{block.text[:most_chars]}\n{note}")


def _offset_of(call: ToolCall) -> int | None:
    """Return the offset a call asked for: 0 without one, None for arguments that are no object."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return None
    if not isinstance(arguments, dict):
        return None
    offset = arguments.get("offset")
    return offset if type(offset) is int and offset >= 0 else 0
