"""Conversation building, shared by all importers: from JSON events to conversations with a sound tree.

An importer subclasses `Builder` to read a message and the other members of a conversation. This module
delimits conversations, reports damaged ones and repairs trees: no cycles, no gaps, parents first.
"""

import hashlib
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

from app.domain.text import one_line
from app.domain.transfer import ImportedConversation, ImportedMessage, Skipped
from app.transfer.importers.parsing.json_events import (
    ConversationEnd,
    ConversationStart,
    MessageEntry,
    Truncated,
    iter_events,
)
from app.transfer.importers.parsing.scanner import Readable
from app.transfer.importers.parsing.values import an_object, identity

CONVERSATION_MAX_CHARS = 512 << 20
"""The limit of a conversation's JSON text; 100,000 long messages are a fifth of it."""

Imported = Iterator[ImportedConversation | Skipped]
_LISTED = 3  # messages of a conversation that lack the same; more are counted


@dataclass(frozen=True, slots=True)
class Node:
    """A node of an imported tree; `message` is None when it is hidden or unreadable."""

    parent: str | None
    message: ImportedMessage | None


@dataclass(frozen=True, slots=True)
class MessageTree:
    """The visible messages in order, and for every node the id of its visible message.

    That of a hidden node is its nearest visible ancestor, or None above the first message.
    """

    messages: tuple[ImportedMessage, ...]
    visible_ids: Mapping[str, str | None]

    def leaf(self, named: str) -> str | None:
        """Return the id of the visible message of node `named`, else of the newest leaf."""
        return self.visible_ids.get(named) or newest_leaf(self.messages)


class ConversationTree:
    """A conversation while it is read.

    `DEFAULT_TITLES`, in lower case, are what the exporter calls a conversation that has no title.

    Attributes:
        nodes: The tree so far, including hidden nodes.
        left_out: Ids of messages that could not be read, with the reasons.
    """

    DEFAULT_TITLES: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.left_out: list[tuple[str, str]] = []

    def add_node(self, name: str, parent: str | None, message: ImportedMessage | None) -> None:
        """Add a node to the tree; a second one with the same id is left out."""
        if name in self.nodes:
            self.left_out.append((name, "there is another message with the same id"))
        else:
            self.nodes[name] = Node(parent, message)

    def leave_open(self, name: str | None) -> None:
        """Mark a message as one that its program may still be writing."""
        node = self.nodes.get(name or "")
        if name is not None and node is not None and node.message is not None:
            self.nodes[name] = Node(node.parent, replace(node.message, is_open=True))

    def generated_id(self) -> str:
        """Return an id for a message without one, from its position: the same on every import."""
        return f"at-{len(self.nodes)}"

    def conversation(
        self,
        source: str,
        source_id: str,
        title: str,
        leaf: object,
        created_at: datetime | None,
        updated_at: datetime | None,
        *,
        keep_order: bool = False,
        may_be_empty: bool = False,
        **more: Any,
    ) -> ImportedConversation | Skipped:
        """Return the conversation with its repaired tree, or the report that it has no messages.

        `leaf` is the id of the last node of the visible path, as the export has it; `more` are other
        fields of `ImportedConversation`. A title that the exporter gives by itself is none.
        """
        title = "" if title.casefold() in self.DEFAULT_TITLES else title
        tree = build_tree(self.nodes, created_at or updated_at, keep_order=keep_order)
        if not tree.messages and (self.left_out or not may_be_empty):
            why = "nothing in it can be read" if self.left_out else "it is empty"
            return Skipped(f"'{title}'" if title else "", why)
        where = f"'{title}'" if title else "a conversation without a title"
        return ImportedConversation(
            source,
            source_id or derived_id(title, tree.messages),
            title,
            tree.messages,
            tree.leaf(identity(leaf)),
            created_at,
            updated_at,
            skipped=tuple(self._skipped(where)),
            **more,
        )

    def _skipped(self, where: str) -> Iterator[Skipped]:
        """Yield what is left out, once where many messages lack the same."""
        counts = Counter(why for _, why in self.left_out)
        first = {why: name for name, why in reversed(self.left_out)}
        for name, why in self.left_out:
            if counts[why] <= _LISTED:
                yield Skipped(f"{where}, message {name}", why)
            elif name == first[why]:
                yield Skipped(f"{where}, {counts[why]:,} messages, the first of them {name}", why)


class Builder(ConversationTree, ABC):
    """A conversation that is read message by message.

    `MEMBER` is the member with the messages; `ID_KEY` and `PARENT_KEY` are members of a message.

    Attributes:
        read_chars: The number of characters of JSON so far.
    """

    MEMBER: ClassVar[str]
    ID_KEY: ClassVar[str] = ""
    PARENT_KEY: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()
        self.read_chars = 0

    def take(self, entry: MessageEntry) -> None:
        """Add a message; of one that cannot be parsed, the node is kept if its id is known."""
        if entry.flaw:
            self.add_damaged(entry)
            return
        name = self.add(entry.key, entry.value)
        if entry.replaced:
            self.left_out.append((name, "invalid UTF-8 in it was replaced by \ufffd"))

    def add_damaged(self, entry: MessageEntry) -> None:
        """Record a message whose JSON cannot be parsed."""
        name = self.first_value(self.ID_KEY, entry.text) or self.generated_id()
        self.left_out.append((name, entry.flaw))
        self.add_node(name, self.first_value(self.PARENT_KEY, entry.text) or None, None)

    @staticmethod
    def first_value(key: str, text: str) -> str:
        """Return the first text under `key` in damaged JSON, as an id; "" for none."""
        found = re.search(rf'"{key}"\s*:\s*"([^"\\]{{1,200}})"', text)
        return identity(found[1]) if found else ""

    @abstractmethod
    def add(self, key: str, value: Any) -> str:
        """Read a message into the tree or `left_out`; return its id."""

    def loose(self, _header: dict[str, Any]) -> ImportedConversation | None:
        """Return data outside of conversations; `header` is that of the enclosing object."""
        return None

    @abstractmethod
    def finish(self, header: dict[str, Any]) -> ImportedConversation | Skipped:
        """Return the conversation; `header` contains its members without the messages."""


def conversations(stream: Readable, where: str, builder: Callable[[], Builder]) -> Imported:
    """Yield the conversations of a stream in order; `where` names it in reports."""
    number, building = 0, builder()
    for event in iter_events(stream):
        if isinstance(event, MessageEntry):
            building.read_chars += event.chars
            if building.read_chars <= CONVERSATION_MAX_CHARS:
                building.take(event)
        elif isinstance(event, ConversationEnd):
            if event.member or event.flaw or not _is_wrapper(event):
                number += 1
                yield _finished(event, building, f"{where}, conversation {number}")
            elif (loose := building.loose(an_object(event.header))) is not None:
                yield loose
            building = builder()
        elif isinstance(event, Truncated):
            yield _truncated(event, where, number)
        else:
            assert isinstance(event, ConversationStart)


def _finished(
    event: ConversationEnd, building: Builder, where: str
) -> ImportedConversation | Skipped:
    if event.flaw:
        return Skipped(where, event.flaw)
    if event.member != building.MEMBER:
        header = an_object(event.header)
        named = one_line(str(header.get("title") or header.get("name") or ""), 100)
        return Skipped(
            f"'{named}'" if named else where,
            "it has another format" if event.member else "it contains no messages",
        )
    if building.read_chars > CONVERSATION_MAX_CHARS:
        return Skipped(where, f"it is larger than {CONVERSATION_MAX_CHARS >> 20} MB")
    made = building.finish(an_object(event.header))
    return Skipped(where, made.why) if isinstance(made, Skipped) and not made.where else made


def _is_wrapper(event: ConversationEnd) -> bool:
    """Return whether this is the object around `conversations`, or the first line of our JSONL."""
    header = an_object(event.header)
    return "conversations" in header or "format" in header


def _truncated(event: Truncated, where: str, number: int) -> Skipped:
    missing = (
        f"conversation {number + 1} and everything after it" if event.in_conversation else "its end"
    )
    return Skipped(
        one_line(where, 300),
        f"the file is truncated after {event.at_byte:,} bytes; {missing} is missing",
    )


def build_tree(
    nodes: Mapping[str, Node], fallback: datetime | None, *, keep_order: bool = False
) -> MessageTree:
    """Return the visible messages, each linked to its nearest visible ancestor, parents first.

    Messages are sorted by age as far as parents allow, or with `keep_order` not at all. A parent that
    does not exist or that closes a cycle is ignored. A message without a date has that of its parent,
    else `fallback`.
    """
    visible_ids: dict[str, str | None] = {}
    messages: list[ImportedMessage] = []
    dates: dict[str | None, datetime | None] = {None: fallback}
    for name in _parents_first(nodes):
        node = nodes[name]
        parent = visible_ids.get(node.parent) if node.parent is not None else None
        if node.message is None:
            visible_ids[name] = parent
            continue
        created_at = node.message.created_at or dates[parent]
        visible_ids[name], dates[name] = name, created_at
        changed = parent != node.message.parent or created_at is not node.message.created_at
        messages.append(
            replace(node.message, parent=parent, created_at=created_at) if changed else node.message
        )
    return MessageTree(tuple(messages) if keep_order else _oldest_first(messages), visible_ids)


def derived_id(title: str, messages: Sequence[ImportedMessage]) -> str:
    """Return an id for a conversation without one, from how it begins: the same on every import."""
    first = messages[0] if messages else None
    begins = (title, first.created_at, first.blocks) if first else (title,)
    return f"of-{hashlib.sha256(repr(begins).encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def newest_leaf(messages: Iterable[ImportedMessage]) -> str | None:
    """Return the id of the newest message without children, the last of several."""
    listed = list(messages)
    parents = {message.parent for message in listed}
    leaves = [message for message in listed if message.source_id not in parents]
    return max(reversed(leaves), key=_age).source_id if leaves else None


def _parents_first(nodes: Mapping[str, Node]) -> list[str]:
    order: dict[str, None] = {}
    for start in nodes:
        chain: dict[str, None] = {}
        name: str | None = start
        while name is not None and name in nodes and name not in order and name not in chain:
            chain[name] = None
            name = nodes[name].parent
        order |= dict.fromkeys(reversed(chain))
    return list(order)


def _oldest_first(parents_first: list[ImportedMessage]) -> tuple[ImportedMessage, ...]:
    not_before: dict[str | None, float] = {None: float("-inf")}
    for message in parents_first:
        not_before[message.source_id] = max(_age(message), not_before[message.parent])
    return tuple(sorted(parents_first, key=lambda message: not_before[message.source_id]))


def _age(message: ImportedMessage) -> float:
    return message.created_at.timestamp() if message.created_at else float("-inf")
