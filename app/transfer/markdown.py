"""The Markdown export format: the visible path of a conversation, for reading."""

import re
from datetime import UTC
from typing import TextIO

from app.domain.conversations import (
    FORGOTTEN,
    Attachment,
    Block,
    Forgotten,
    Image,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.text import one_line
from app.language.secrets import masked
from app.transfer.json_format import Exported

_SPEAKERS = {
    Role.USER: "You",
    Role.ASSISTANT: "Assistant",
    Role.TOOL: "Tool",
    Role.SYSTEM: "System",
}


def write_markdown(out: TextIO, exported: Exported) -> None:
    """Write the visible path of one conversation with reasoning and tools collapsed. Times are UTC.

    Keys and passwords are hidden; the JSON formats have them.
    """
    row = exported.conversation
    out.write(f"# {one_line(masked(row.title), 300) or 'Untitled'}\n\n")
    started_at = row.created_at.astimezone(UTC)
    details = [f"Started {started_at:%Y-%m-%d %H:%M} UTC"]
    details += [f"from {row.source}"] if row.source != "commonplace" else []
    details += [f"tags: {', '.join(exported.tags)}"] if exported.tags else []
    out.write(f"*{'; '.join(details)}*\n")
    own = [each.text for each in exported.summaries if each.last_message is None]
    if own:
        out.write(f"\n> {one_line(masked(own[-1]), 2000)}\n")
    for message in visible_path(exported):
        _write_message(out, message)


def visible_path(exported: Exported) -> list[Message]:
    """Return the messages from the root to the visible leaf, else to the last message."""
    by_id = {message.id: message for message in exported.messages}
    last = exported.messages[-1] if exported.messages else None
    leaf = exported.conversation.visible_leaf_id
    step = last if leaf is None else by_id.get(leaf, last)
    path: list[Message] = []
    while step is not None and len(path) < len(by_id):
        path.append(step)
        step = by_id.get(step.parent_id) if step.parent_id is not None else None
    return path[::-1]


def _write_message(out: TextIO, message: Message) -> None:
    at = message.created_at.astimezone(UTC)
    model = f", {message.model}" if message.model else ""
    out.write(f"\n## {_SPEAKERS[message.role]} ({at:%Y-%m-%d %H:%M}{model})\n")
    for block in message.blocks:
        if text := _block(block):
            out.write(f"\n{masked(text)}\n")


def _block(block: Block) -> str:
    match block:
        case Text(text=text):
            return text.strip("\n")
        case Thinking(text=text):
            return _collapsed("Reasoning", text)
        case ToolCall(name=name, arguments=arguments):
            return _collapsed(f"Call of {name}", _fenced(arguments, "json"))
        case ToolResult(name=name, text=text, is_error=is_error):
            return _collapsed(f"{'Error' if is_error else 'Result'} of {name}", _fenced(text, ""))
        case Image(name=name):
            return f"*Image: {one_line(name, 200)}*"
        case Attachment(name=name, text=text):
            title = f"*File: {one_line(name, 200)}*"
            return f"{title}\n\n{_fenced(text, '')}" if text else title
        case Forgotten():
            return f"*{FORGOTTEN}*"
    raise AssertionError(block)


def _collapsed(title: str, text: str) -> str:
    summary = one_line(title, 200).replace("&", "&amp;").replace("<", "&lt;")
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def _fenced(text: str, language: str) -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
