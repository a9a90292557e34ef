"""The Claude importer: `conversations.json` with messages under `chat_messages`, a list or, since 2026, a tree."""

import json
from collections import Counter
from datetime import datetime
from typing import Any

from app.domain.conversations import (
    Attachment,
    Block,
    Image,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.transfer import ImportedConversation, ImportedMessage, PortableSummary, Skipped
from app.transfer.importers.parsing.blocks import project_tag
from app.transfer.importers.parsing.building import Builder, Imported, conversations
from app.transfer.importers.parsing.scanner import Readable
from app.transfer.importers.parsing.values import (
    an_object,
    count,
    identity,
    link_list,
    media_type,
    moment,
    objects,
    text_of,
    title,
)

SOURCE = "claude"
_ROOT = "00000000-0000-4000-8000-000000000000"
_ROLES = {"human": Role.USER, "assistant": Role.ASSISTANT}
_TEXTS = {"text": "text", "voice_note": "text", "thinking": "thinking"}  # where they are
_SILENT_BLOCKS = frozenset(("token_budget", "redacted_thinking", "flag"))


def read_claude(stream: Readable, where: str) -> Imported:
    """Yield the conversations of a `conversations.json`; `where` names it in reports."""
    return conversations(stream, where, _ClaudeConversation)


class _ClaudeConversation(Builder):
    MEMBER, ID_KEY, PARENT_KEY = "chat_messages", "uuid", "parent_message_uuid"
    DEFAULT_TITLES = frozenset({"untitled", "new chat", "new conversation"})

    def __init__(self) -> None:
        super().__init__()
        self._previous: str | None = None

    def add(self, key: str, value: Any) -> str:  # noqa: ARG002 - only objects have keys
        message = an_object(value)
        name = identity(message.get("uuid")) or self.generated_id()
        role = _ROLES.get(text_of(message.get("sender")))
        if role is None:
            sender = text_of(message.get("sender"))[:40]
            self.left_out.append(
                (name, f"its sender is '{sender}'" if sender else "it has no sender")
            )
        blocks = tuple(self._blocks(name, message)) if role else ()
        parent = identity(message.get("parent_message_uuid"))
        shown = None
        if role is not None and blocks:
            shown = ImportedMessage(name, parent, role, blocks, moment(message.get("created_at")))
        self.add_node(name, parent, shown)
        return name

    def add_node(self, name: str, parent: str | None, message: ImportedMessage | None) -> None:
        """Add a node; a parent that is not named is the message before, the root's constant is none."""
        super().add_node(name, None if parent == _ROOT else parent or self._previous, message)
        self._previous = name

    def finish(self, header: dict[str, Any]) -> ImportedConversation | Skipped:
        created_at, updated_at = moment(header.get("created_at")), moment(header.get("updated_at"))
        return self.conversation(
            SOURCE,
            identity(header.get("uuid")),
            title(header.get("name")),
            header.get("current_leaf_message_uuid"),
            created_at,
            updated_at,
            archived=header.get("is_archived") is True,
            pinned=header.get("is_starred") is True,
            model=text_of(header.get("model")) or None,
            tags=project_tag(an_object(header.get("project")).get("name")),
            summaries=_summaries(text_of(header.get("summary")), updated_at or created_at),
        )

    def _blocks(self, name: str, message: dict[str, Any]) -> list[Block]:
        content = message.get("content")
        text = text_of(message.get("text"))
        if isinstance(content, str):
            content, text = [], text or text_of(content)
        found = [block for each in objects(content) for block in self._block(name, each)]
        if not found and text.strip():
            found.append(Text(text))
        return found + _files(objects(message.get("attachments")), objects(message.get("files")))

    def _block(self, name: str, block: dict[str, Any]) -> list[Block]:
        kind = text_of(block.get("type"))
        if kind in _TEXTS and not isinstance(block.get(_TEXTS[kind]), str | None):
            self.left_out.append(
                (name, f"its content of the kind '{kind[:60]}' has an unknown shape")
            )
        if kind in ("text", "voice_note"):
            text = text_of(block.get("text")) + _sources(block)
            return [Text(text)] if text.strip() else []
        if kind == "thinking":
            summaries = (text_of(each.get("summary")) for each in objects(block.get("summaries")))
            text = "\n\n".join(filter(None, (text_of(block.get(kind)), *summaries)))
            return [Thinking(text)] if text.strip() else []
        if kind == "tool_use":
            arguments = json.dumps(block.get("input"), ensure_ascii=False)
            return [
                ToolCall(identity(block.get("id")), text_of(block.get("name")), text_of(arguments))
            ]
        if kind == "tool_result":
            parts = _result_parts(block)
            pictures = [each for each in parts if each.get("type") == "image"]
            unread = (each for each in parts if each not in pictures and not _text(each))
            self.left_out += ((name, _unknown(each)) for each in unread if "text" not in each)
            return [_tool_result(block), *map(_image, pictures)]
        if kind == "image":
            return [_image(block)]
        if kind not in _SILENT_BLOCKS:
            self.left_out.append((name, _unknown(block)))
        return []


def _unknown(block: dict[str, Any]) -> str:
    return f"it contains a block of the unknown kind '{text_of(block.get('type'))[:60]}'"


def _summaries(text: str, made_at: datetime | None) -> tuple[PortableSummary, ...]:
    return (PortableSummary(text, SOURCE, made_at),) if text.strip() and made_at else ()


def _result_parts(block: dict[str, Any]) -> list[dict[str, Any]]:
    content = block.get("content")
    return [{"text": content}] if isinstance(content, str) else objects(content)


def _tool_result(block: dict[str, Any]) -> ToolResult:
    text = "\n\n".join(filter(None, map(_text, _result_parts(block))))
    shown = _display_text(an_object(block.get("display_content"))).splitlines()
    more = "\n".join(line for line in shown if line not in text)
    return ToolResult(
        identity(block.get("tool_use_id")),
        text_of(block.get("name")),
        "\n\n".join(filter(None, (text, more))),
        is_error=block.get("is_error") is True,
    )


def _display_text(shown: dict[str, Any]) -> str:
    """Return the text of what Claude's page showed instead of a result."""
    texts = [_text(each) for each in objects(shown.get("content"))]
    return "\n\n".join(filter(None, (_text(shown), *texts)))


def _sources(block: dict[str, Any]) -> str:
    """Return the sources that a text cites, as a list of links."""
    cited = [(each, an_object(each.get("details"))) for each in objects(block.get("citations"))]
    links = link_list(
        (each.get("title") or details.get("title"), details.get("url") or each.get("url"))
        for each, details in cited
    )
    return f"\n\n{links}" if links else ""


def _text(part: dict[str, Any]) -> str:
    """Return the text of one part of a tool result: a page's title, address and text, or a file."""
    members = ("title", "url", "name", "file_path", "text")
    return "\n".join(filter(None, (text_of(part.get(each)) for each in members)))


def _files(attachments: list[dict[str, Any]], files: list[dict[str, Any]]) -> list[Block]:
    """Return attachments and files; one that is in both lists is returned once."""
    attached = Counter(filter(None, (text_of(each.get("file_name")) for each in attachments)))
    listed = []
    for file in files:
        name = text_of(file.get("file_name"))
        if attached[name]:
            attached[name] -= 1
        else:
            listed.append(file)
    found: dict[tuple[str, ...], Block] = {}
    for file in attachments + listed:
        name = text_of(file.get("file_name"))
        text = text_of(file.get("extracted_content"))
        given = text_of(file.get("file_type"))[:100]
        kind = media_type(name) or (given if "/" in given else media_type(f"any.{given}"))
        key = name, text, text_of(file.get("file_uuid"))
        if file.get("file_kind") == "image" or kind.startswith("image/"):
            found[key] = Image(name, kind or "image/*")
        elif name or text:
            found[key] = Attachment(
                name or "Pasted text", kind or "text/plain", count(file.get("file_size")), text
            )
    return list(found.values())


def _image(block: dict[str, Any]) -> Image:
    source = an_object(block.get("source")) or an_object(block.get("file"))
    name = text_of(source.get("file_name")) or text_of(block.get("file_name")) or "image"
    return Image(name, text_of(source.get("media_type"))[:100] or media_type(name) or "image/*")
