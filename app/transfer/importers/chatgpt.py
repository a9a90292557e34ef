"""The ChatGPT importer: `conversations.json` with message trees under `mapping`, visible up from `current_node`."""

import re
from dataclasses import replace
from typing import Any

from app.domain.conversations import SAMPLE_SOURCE, Block, Role, ToolCall, ToolResult
from app.domain.transfer import ImportedConversation, ImportedMessage, Skipped
from app.transfer.importers.chatgpt_content import content_of
from app.transfer.importers.parsing.building import Builder, Imported, conversations
from app.transfer.importers.parsing.json_events import MessageEntry
from app.transfer.importers.parsing.scanner import Readable
from app.transfer.importers.parsing.values import (
    UnreadableValue,
    an_object,
    identity,
    moment,
    text_of,
    title,
)

SOURCE = "chatgpt"
_GIZMO = re.compile(r"g-(p-)?([0-9A-Za-z]{1,8})")
_PARENT = re.compile(r'"parent"\s*:\s*"([^"\\]{1,200})"')


def read_chatgpt(stream: Readable, where: str) -> Imported:
    """Yield the conversations of a `conversations*.json`; `where` names it in reports."""
    return conversations(stream, where, _ChatGptConversation)


class _ChatGptConversation(Builder):
    MEMBER = "mapping"
    DEFAULT_TITLES = frozenset(
        ("new chat", "neuer chat", "nouveau chat", "nuevo chat", "nuova chat", "novo chat", "nieuwe chat",
         "nowy czat", "новый чат", "新聊天", "新对话", "新對話", "新しいチャット", "새 채팅"),
    )  # fmt: skip

    def add(self, key: str, value: Any) -> str:
        node = an_object(value)
        name = identity(key) or identity(node.get("id")) or self.generated_id()
        parent = identity(node.get("parent")) or None
        message = node.get("message")
        shown = None
        try:
            if message is not None:
                shown = self._shown(name, parent, message)
        except UnreadableValue as error:
            self.left_out.append((name, str(error)))
        self.add_node(name, parent, shown)
        return name

    def add_damaged(self, entry: MessageEntry) -> None:
        name = identity(entry.key) or "without an id"
        self.left_out.append((name, entry.flaw))
        if entry.key:
            found = _PARENT.findall(entry.text)
            self.add_node(name, identity(found[-1]) if found else None, None)

    def finish(self, header: dict[str, Any]) -> ImportedConversation | Skipped:
        model = text_of(header.get("default_model_slug"))
        found = self.conversation(
            SOURCE,
            identity(header.get("id")) or identity(header.get("conversation_id")),
            title(header.get("title")),
            header.get("current_node"),
            moment(header.get("create_time")),
            moment(header.get("update_time")),
            archived=header.get("is_archived") is True,
            pinned=header.get("is_starred") is True
            or moment(header.get("pinned_time")) is not None,
            private=header.get("is_do_not_remember") is True,
            model=None if model in ("", "auto") else model,
            first_source=SAMPLE_SOURCE if header.get("source") == SAMPLE_SOURCE else "",
            tags=_made_for(header.get("gizmo_id")),
        )
        if isinstance(found, Skipped):
            return found
        messages = (
            replace(each, model=found.model)
            if each.role is Role.ASSISTANT and not each.model
            else each
            for each in found.messages
        )
        return replace(found, messages=_with_call_ids(tuple(messages)))

    def _shown(self, name: str, parent: str | None, message: object) -> ImportedMessage | None:
        if not isinstance(message, dict):
            raise UnreadableValue("it is not a message")
        content = content_of(message)
        if content is None:
            return None
        self.left_out += [(name, why) for why in content.left_out]
        if not content.blocks:
            return None
        model = text_of(an_object(message.get("metadata")).get("model_slug")) or None
        return ImportedMessage(
            source_id=name,
            parent=parent,
            role=content.role,
            blocks=content.blocks,
            created_at=moment(message.get("create_time")),
            model=model if content.role is Role.ASSISTANT else None,
            file_keys=content.file_keys,
        )


def _made_for(gizmo: object) -> tuple[str, ...]:
    """Return a project or a GPT as a tag with the beginning of its id: its name is not exported."""
    found = _GIZMO.match(text_of(gizmo))
    return (f"{'Project' if found[1] else 'GPT'} {found[2]}",) if found else ()


def _with_call_ids(messages: tuple[ImportedMessage, ...]) -> tuple[ImportedMessage, ...]:
    """Return the messages; each tool result has the id of the nearest call above it, else its own."""
    calls: dict[str | None, str] = {None: ""}
    linked = []
    for message in messages:
        own = [block.call_id for block in message.blocks if isinstance(block, ToolCall)]
        call_id = own[-1] if own else "" if message.role is Role.USER else calls[message.parent]
        calls[message.source_id] = call_id
        if message.role is Role.TOOL:
            blocks = (_linked(each, call_id or message.source_id) for each in message.blocks)
            linked.append(replace(message, blocks=tuple(blocks)))
        else:
            linked.append(message)
    return tuple(linked)


def _linked(block: Block, call_id: str) -> Block:
    return replace(block, call_id=call_id) if isinstance(block, ToolResult) else block
