"""A conversation as Markdown, for reading elsewhere: the shown path, nothing that is not words."""

import re
from collections.abc import Sequence
from datetime import UTC
from typing import TextIO

from app.domain.conversations import (
    Attachment,
    Block,
    Image,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.text import one_line
from app.transfer.own_format import Exported

_SPEAKERS = {
    Role.USER: "You",
    Role.ASSISTANT: "Assistant",
    Role.TOOL: "Tool",
    Role.SYSTEM: "System",
}


def write_markdown(out: TextIO, exported: Exported) -> None:
    """Write the visible path of one conversation; reasoning and tools are folded. Times are UTC."""
    row = exported.conversation
    out.write(f"# {one_line(row.title, 300) or 'Untitled'}\n\n")
    begun = row.created_at.astimezone(UTC)
    facts = [f"Begun {begun:%Y-%m-%d %H:%M} UTC"]
    facts += [f"from {row.source}"] if row.source != "commonplace" else []
    facts += [f"tags: {', '.join(exported.tags)}"] if exported.tags else []
    out.write(f"*{'; '.join(facts)}*\n")
    own = [each.text for each in exported.summaries if each.last_message is None]
    if own:
        out.write(f"\n> {one_line(own[-1], 2000)}\n")
    for message in shown_path(exported):
        _write_message(out, message)


def shown_path(exported: Exported) -> list[Message]:
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
        if told := _block(block):
            out.write(f"\n{told}\n")


def _block(block: Block) -> str:
    match block:
        case Text(text=text):
            return text.strip("\n")
        case Thinking(text=text):
            return _folded("Reasoning", text)
        case ToolCall(name=name, arguments=arguments):
            return _folded(f"Call of {name}", _fenced(arguments, "json"))
        case ToolResult(name=name, text=text, is_error=is_error):
            return _folded(f"{'Error' if is_error else 'Result'} of {name}", _fenced(text, ""))
        case Image(name=name):
            return f"*Picture: {one_line(name, 200)}*"
        case Attachment(name=name, text=text):
            told = f"*File: {one_line(name, 200)}*"
            return f"{told}\n\n{_fenced(text, '')}" if text else told
    raise AssertionError(block)


def _folded(title: str, text: str) -> str:
    summary = one_line(title, 200).replace("&", "&amp;").replace("<", "&lt;")
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def _fenced(text: str, language: str) -> str:
    longest = max((len(run) for run in _runs(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _runs(text: str) -> Sequence[str]:
    return re.findall("`+", text)
