"""ChatGPT's `conversations.json`: trees under `mapping`, shown up from `current_node`."""

import hashlib
import re
from dataclasses import replace
from typing import Any

from app.domain.conversations import Block, Role, ToolCall, ToolResult
from app.domain.transfer import ImportedConversation, ImportedMessage, Skipped
from app.transfer.importers.building import Builder, Imported, conversations, visible_leaf
from app.transfer.importers.chatgpt_content import content_of
from app.transfer.importers.pieces import Entry
from app.transfer.importers.scanner import Readable
from app.transfer.importers.tree import Node
from app.transfer.importers.values import Unreadable, an_object, identity, moment, title, words

SOURCE = "chatgpt"
_PARENT = re.compile(r'"parent"\s*:\s*"([^"\\]{1,200})"')


def read_chatgpt(stream: Readable, where: str) -> Imported:
    """Yield the conversations of one `conversations*.json`; `where` names it in what is skipped."""
    return conversations(stream, where, "mapping", _Conversation)


class _Conversation(Builder):
    def add(self, key: str, value: Any) -> str:
        node = an_object(value)
        name = identity(key) or identity(node.get("id")) or self.made_up_name()
        parent = identity(node.get("parent")) or None
        message = node.get("message")
        shown = None
        try:
            if message is not None:
                shown = self._shown(name, parent, message)
        except Unreadable as error:
            self.left_out.append((name, str(error)))
        self.place(name, Node(parent, shown))
        return name

    def broken(self, entry: Entry) -> None:
        name = identity(entry.key) or "without an id"
        self.left_out.append((name, entry.flaw))
        if entry.key:
            found = _PARENT.findall(entry.text)
            self.place(name, Node(identity(found[-1]) if found else None, None))

    def finish(self, header: dict[str, Any]) -> ImportedConversation | Skipped:
        name = title(header.get("title"))
        created_at = moment(header.get("create_time"))
        updated_at = moment(header.get("update_time"))
        tree = self.grown(created_at or updated_at)
        if not tree.messages:
            why = "nothing in it can be read" if self.left_out else "it is empty"
            return Skipped(f"'{name}'" if name else "", why)
        return ImportedConversation(
            source=SOURCE,
            source_id=identity(header.get("id"))
            or identity(header.get("conversation_id"))
            or self._made_up_id(),
            title=name,
            messages=_with_calls_named(tree.messages),
            visible_leaf=visible_leaf(tree, identity(header.get("current_node"))),
            created_at=created_at,
            updated_at=updated_at,
            archived=header.get("is_archived") is True,
            pinned=header.get("is_starred") is True
            or moment(header.get("pinned_time")) is not None,
            private=header.get("is_do_not_remember") is True,
            model=words(header.get("default_model_slug")) or None,
            skipped=self.skipped(name),
        )

    def _shown(self, name: str, parent: str | None, message: object) -> ImportedMessage | None:
        if not isinstance(message, dict):
            raise Unreadable("it is not a message")
        content = content_of(message)
        if content is None:
            return None
        self.left_out += [(name, why) for why in content.left_out]
        if not content.blocks:
            return None
        model = words(an_object(message.get("metadata")).get("model_slug")) or None
        return ImportedMessage(
            source_id=name,
            parent=parent,
            role=content.role,
            blocks=content.blocks,
            created_at=moment(message.get("create_time")),
            model=model if content.role is Role.ASSISTANT else None,
        )

    def _made_up_id(self) -> str:
        """Return an id for a conversation without one, the same at every import."""
        first = min(self.nodes)
        return f"of-{hashlib.sha256(first.encode()).hexdigest()[:32]}"


def _with_calls_named(messages: tuple[ImportedMessage, ...]) -> tuple[ImportedMessage, ...]:
    """Return the messages with each tool result naming the nearest call above it, else itself."""
    calls: dict[str | None, str] = {None: ""}
    named = []
    for message in messages:
        made = [block.call_id for block in message.blocks if isinstance(block, ToolCall)]
        calls[message.source_id] = (
            made[-1] if made else "" if message.role is Role.USER else calls[message.parent]
        )
        named.append(_answered(message, calls[message.source_id] or message.source_id))
    return tuple(named)


def _answered(message: ImportedMessage, call_id: str) -> ImportedMessage:
    if message.role is not Role.TOOL:
        return message
    return replace(message, blocks=tuple(_answering(call_id, each) for each in message.blocks))


def _answering(call_id: str, block: Block) -> Block:
    return replace(block, call_id=call_id) if isinstance(block, ToolResult) else block
