"""From pieces to conversations: the part that every importer of this family shares.

An importer says how one message is read and what the other members of a conversation mean
(`Builder`); here conversations begin and end, broken ones are named, and the rest goes on.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from app.domain.text import one_line
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.importers.pieces import Begun, Cut, Ended, Entry, Stray, pieces
from app.transfer.importers.scanner import Readable
from app.transfer.importers.tree import Grown, Node, grown, newest_leaf
from app.transfer.importers.values import an_object

CONVERSATION_MAX_CHARS = 512 << 20
"""A conversation's JSON text may be this long; 100,000 long messages are a fifth of it."""

Imported = Iterator[ImportedConversation | Skipped]


class Builder(ABC):
    """One conversation being read, message by message.

    Attributes:
        nodes: The tree so far, hidden places included.
        left_out: Id and reason of what could not be read.
        read_chars: How much JSON text was seen so far.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.left_out: list[tuple[str, str]] = []
        self.read_chars = 0

    def take(self, entry: Entry) -> None:
        """Add a message; one that cannot be read is noted, and its place kept if it is known."""
        if entry.flaw:
            self.broken(entry)
            return
        name = self.add(entry.key, entry.value)
        if entry.replaced:
            self.left_out.append((name, "bytes in it that are not UTF-8 were replaced by \ufffd"))

    def place(self, name: str, node: Node) -> None:
        """Put a node into the tree; a second one of the same id is noted and left out."""
        if name in self.nodes:
            self.left_out.append((name, "there is another message of the same id"))
        else:
            self.nodes[name] = node

    def made_up_name(self) -> str:
        """Return an id for a message without one, by its place: the same at every import."""
        return f"at-{len(self.nodes)}"

    def grown(self, fallback: datetime | None, *, keep_order: bool = False) -> Grown:
        """Return the sound tree of what was read."""
        return grown(self.nodes, fallback, keep_order=keep_order)

    def skipped(self, title: str) -> tuple[Skipped, ...]:
        """Return what was left out, named."""
        where = f"'{title}'" if title else "a conversation without a title"
        return tuple(Skipped(f"{where}, message {name}", why) for name, why in self.left_out)

    @abstractmethod
    def add(self, key: str, value: Any) -> str:
        """Read one message into the tree or `left_out`; return its id."""

    @abstractmethod
    def broken(self, entry: Entry) -> None:
        """Note a message whose JSON cannot be parsed."""

    def loose(self, _header: dict[str, Any]) -> ImportedConversation | None:
        """Return what belongs to no conversation; `header` is of the object around them all."""
        return None

    @abstractmethod
    def finish(self, header: dict[str, Any]) -> ImportedConversation | Skipped:
        """Return the conversation; `header` holds its members but the messages."""


def conversations(
    stream: Readable, where: str, member: str, builder: Callable[[], Builder]
) -> Imported:
    """Yield the conversations of a stream whose messages stand under `member`, in its order."""
    number, building = 0, builder()
    for piece in pieces(stream):
        if isinstance(piece, Entry):
            building.read_chars += piece.chars
            if building.read_chars <= CONVERSATION_MAX_CHARS:
                building.take(piece)
        elif isinstance(piece, Ended):
            if piece.member or not _is_wrapper(piece):
                number += 1
                yield _finished(piece, member, building, f"{where}, conversation {number}")
            elif (loose := building.loose(an_object(piece.header))) is not None:
                yield loose
            building = builder()
        elif isinstance(piece, Stray):
            number += 1
            yield Skipped(f"{where}, conversation {number}", "it is a list, not a conversation")
        elif isinstance(piece, Cut):
            yield _cut(piece, where, number)
        else:
            assert isinstance(piece, Begun)


def visible_leaf(tree: Grown, named: str) -> str | None:
    """Return the message that `named` stands for, else the newest leaf."""
    return tree.standing_for.get(named) or newest_leaf(tree.messages)


def _finished(
    piece: Ended, member: str, building: Builder, where: str
) -> ImportedConversation | Skipped:
    if piece.flaw:
        return Skipped(where, piece.flaw)
    if piece.member != member:
        return Skipped(
            where, "it holds no messages" if not piece.member else "it is of another kind"
        )
    if building.read_chars > CONVERSATION_MAX_CHARS:
        return Skipped(where, f"it is larger than {CONVERSATION_MAX_CHARS >> 20} MB")
    made = building.finish(an_object(piece.header))
    return Skipped(where, made.why) if isinstance(made, Skipped) and not made.where else made


def _is_wrapper(piece: Ended) -> bool:
    """Whether this is the object around `conversations`, or the first line of our JSONL."""
    header = an_object(piece.header)
    return "conversations" in header or "format" in header


def _cut(piece: Cut, where: str, number: int) -> Skipped:
    what = (
        f"conversation {number + 1} and all that followed" if piece.in_conversation else "the end"
    )
    return Skipped(
        one_line(where, 300),
        f"the file is cut off after {piece.at_byte:,} bytes; {what} is missing",
    )
