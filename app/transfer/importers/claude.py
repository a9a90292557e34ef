"""Claude's `conversations.json`: messages under `chat_messages`, in a row or, since 2026, a tree."""

import json
import re
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
from app.domain.transfer import (
    CarriedSummary,
    ImportedConversation,
    ImportedMessage,
    Skipped,
)
from app.transfer.importers.building import Builder, Imported, conversations, visible_leaf
from app.transfer.importers.pieces import Entry
from app.transfer.importers.scanner import Readable
from app.transfer.importers.tree import Node
from app.transfer.importers.values import (
    an_object,
    count,
    identity,
    media_type,
    moment,
    objects,
    title,
    words,
)

SOURCE = "claude"
_ROOT = "00000000-0000-4000-8000-000000000000"
_ROLES = {"human": Role.USER, "assistant": Role.ASSISTANT}
_SILENT_BLOCKS = frozenset(("token_budget", "redacted_thinking", "flag"))
_ID = re.compile(r'"uuid"\s*:\s*"([^"\\]{1,200})"')
_PARENT = re.compile(r'"parent_message_uuid"\s*:\s*"([^"\\]{1,200})"')


def read_claude(stream: Readable, where: str) -> Imported:
    """Yield the conversations of one `conversations.json`; `where` names it in what is skipped."""
    return conversations(stream, where, "chat_messages", _Conversation)


class _Conversation(Builder):
    def __init__(self) -> None:
        super().__init__()
        self._previous: str | None = None

    def add(self, key: str, value: Any) -> str:  # noqa: ARG002 - only objects have keys
        message = an_object(value)
        name = identity(message.get("uuid")) or self.made_up_name()
        role = _ROLES.get(words(message.get("sender")))
        if role is None:
            sender = words(message.get("sender"))[:40]
            self.left_out.append(
                (name, f"its sender is '{sender}'" if sender else "it has no sender")
            )
        blocks = tuple(self._blocks(name, message)) if role else ()
        parent = self._parent(identity(message.get("parent_message_uuid")))
        self._place(name, parent, role, blocks, message)
        return name

    def broken(self, entry: Entry) -> None:
        found, above = _ID.search(entry.text), _PARENT.search(entry.text)
        name = identity(found[1]) if found else self.made_up_name()
        self.left_out.append((name, entry.flaw))
        self._place(name, self._parent(identity(above[1]) if above else ""), None, (), {})

    def finish(self, header: dict[str, Any]) -> ImportedConversation | Skipped:
        name = title(header.get("name"))
        created_at, updated_at = moment(header.get("created_at")), moment(header.get("updated_at"))
        tree = self.grown(created_at or updated_at)
        if not tree.messages:
            why = "nothing in it can be read" if self.left_out else "it is empty"
            return Skipped(f"'{name}'" if name else "", why)
        return ImportedConversation(
            source=SOURCE,
            source_id=identity(header.get("uuid")) or f"of-{min(self.nodes)}",
            title=name,
            messages=tree.messages,
            visible_leaf=visible_leaf(tree, identity(header.get("current_leaf_message_uuid"))),
            created_at=created_at,
            updated_at=updated_at,
            archived=header.get("is_archived") is True,
            pinned=header.get("is_starred") is True,
            model=words(header.get("model")) or None,
            summary=words(header.get("summary")),
            skipped=self.skipped(name),
            summaries=_summaries(words(header.get("summary")), updated_at or created_at),
        )

    def _parent(self, named: str) -> str | None:
        """Return the parent: as named, none for the root's constant, else the message before."""
        if named:
            return None if named == _ROOT else named
        return self._previous

    def _place(
        self,
        name: str,
        parent: str | None,
        role: Role | None,
        blocks: tuple[Block, ...],
        message: dict[str, Any],
    ) -> None:
        shown = None
        if role is not None and blocks:
            created_at = moment(message.get("created_at"))
            shown = ImportedMessage(name, parent, role, blocks, created_at)
        self.place(name, Node(parent, shown))
        self._previous = name

    def _blocks(self, name: str, message: dict[str, Any]) -> list[Block]:
        content = objects(message.get("content"))
        found = [block for each in content for block in self._block(name, each)]
        text = words(message.get("text"))
        if not found and text.strip():
            found.append(Text(text))
        files = [*objects(message.get("attachments")), *objects(message.get("files"))]
        return found + _files(files)

    def _block(self, name: str, block: dict[str, Any]) -> list[Block]:
        kind = words(block.get("type"))
        if kind == "text":
            text = words(block.get("text"))
            return [Text(text)] if text.strip() else []
        if kind == "thinking":
            text = words(block.get("thinking"))
            return [Thinking(text)] if text.strip() else []
        if kind == "tool_use":
            arguments = json.dumps(block.get("input"), ensure_ascii=False)
            return [ToolCall(identity(block.get("id")), words(block.get("name")), words(arguments))]
        if kind == "tool_result":
            return [_tool_result(block)]
        if kind == "image":
            return [_picture(block)]
        if kind not in _SILENT_BLOCKS:
            self.left_out.append((name, f"a block of the kind '{kind[:60]}' in it is not known"))
        return []


def _summaries(text: str, made_at: datetime | None) -> tuple[CarriedSummary, ...]:
    return (CarriedSummary(text, SOURCE, made_at),) if text.strip() and made_at else ()


def _tool_result(block: dict[str, Any]) -> ToolResult:
    content = block.get("content")
    told = (
        [words(content)] if isinstance(content, str) else [_told(each) for each in objects(content)]
    )
    return ToolResult(
        identity(block.get("tool_use_id")),
        words(block.get("name")),
        "\n\n".join(filter(None, told)),
        is_error=block.get("is_error") is True,
    )


def _told(part: dict[str, Any]) -> str:
    """Return the words of one part of a tool's result: a page's title, address and text."""
    return "\n".join(filter(None, (words(part.get(each)) for each in ("title", "url", "text"))))


def _files(files: list[dict[str, Any]]) -> list[Block]:
    """Return attachments and files; one that is listed in both ways is taken once."""
    found: dict[str, Block] = {}
    for number, file in enumerate(files):
        name = words(file.get("file_name"))
        text = words(file.get("extracted_content"))
        given = words(file.get("file_type"))[:100]
        kind = media_type(name) or (given if "/" in given else media_type(f"any.{given}"))
        key = name or f"#{number}"
        if key in found:
            continue
        if file.get("file_kind") == "image" or kind.startswith("image/"):
            found[key] = Image(name, kind or "image/*")
        elif name or text:
            found[key] = Attachment(
                name or "Pasted text", kind or "text/plain", count(file.get("file_size")), text
            )
    return list(found.values())


def _picture(block: dict[str, Any]) -> Image:
    source = an_object(block.get("source")) or an_object(block.get("file"))
    name = words(source.get("file_name")) or words(block.get("file_name")) or "picture"
    return Image(name, words(source.get("media_type"))[:100] or media_type(name) or "image/*")
