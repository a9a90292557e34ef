"""JSON cut into conversations and their messages, with no more than one message in memory.

Exports are arrays of objects of which one member holds the messages: `mapping` (ChatGPT),
`chat_messages` (Claude), `messages` (ours). Where a message begins and ends is found by brackets
and strings alone (`scanner`), so a message that is no valid JSON or UTF-8, holds NaN, or a number
of a thousand digits costs that message and not the file. A parser of the whole stream stops at the
first of these: ijson was measured too, a quarter faster (70 MB/s against 54), and not taken.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from app.transfer.importers.scanner import Readable, Scanner
from app.transfer.importers.values import Unreadable, decoded, parsed

ENTRY_MEMBERS = frozenset(("mapping", "chat_messages", "messages"))
"""Members that hold the messages of a conversation, as an object or an array."""

_LIST_MEMBER = "conversations"


@dataclass(frozen=True, slots=True)
class Begun:
    """The messages of a conversation begin; `member` is one of `ENTRY_MEMBERS`."""

    member: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One message, of about `chars` characters of JSON; `key` is empty in an array.

    `flaw` says why it cannot be parsed, if so; `text` is then its JSON, as far as there is room.
    `replaced` tells that bytes in it were not UTF-8.
    """

    key: str
    value: Any
    chars: int = field(compare=False)
    flaw: str = ""
    text: str = ""
    replaced: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """A conversation ends: its other members, the messages left out; `flaw` as in `Entry`.

    `member` is where the messages stood, empty when there was no such member.
    """

    header: Any
    member: str
    flaw: str = ""


@dataclass(frozen=True, slots=True)
class Stray:
    """Something stands where a conversation should: an array in the array."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The stream ended after `at_byte` bytes, inside a conversation or in the list of them."""

    at_byte: int
    in_conversation: bool


Piece = Begun | Entry | Ended | Stray | Cut


def pieces(stream: Readable) -> Iterator[Piece]:
    """Yield what the stream holds, in its order: Begun, Entry..., Ended for each conversation.

    A conversation may stand alone, several may follow each other (as in JSONL), or stand in an
    array, or in an array under `conversations`. A truncated stream ends with `Cut`.
    """
    for piece in _outermost(Scanner(stream)):
        yield piece
        if isinstance(piece, Cut):
            return


def _outermost(scanner: Scanner) -> Iterator[Piece]:
    while bracket := scanner.next_bracket():
        if bracket == "[":
            yield from _list(scanner)
        elif bracket == "{":
            yield from _object(scanner, is_outermost=True)


def _list(scanner: Scanner) -> Iterator[Piece]:
    while bracket := scanner.next_bracket():
        if bracket == "{":
            yield from _object(scanner, is_outermost=False)
        elif bracket == "[":
            scanner.skip()
            yield Stray()
        else:
            return
    yield Cut(scanner.at_byte, in_conversation=False)


def _object(scanner: Scanner, *, is_outermost: bool) -> Iterator[Piece]:
    """Yield the pieces of a conversation whose opening bracket has just been passed."""
    scanner.keep(1)
    header: list[str | None] = []
    gap_start, member = 1, ""
    while bracket := scanner.next_bracket():
        if bracket in "}]":
            header.append(scanner.kept())
            yield _ended(header, member)
            return
        key = scanner.key(gap_start)
        if key in ENTRY_MEMBERS and not member:
            member = key
            header += [scanner.kept(), "]" if bracket == "[" else "}"]
            yield Begun(member)
            yield from _entries(scanner)
            scanner.keep(0)
        elif key == _LIST_MEMBER and is_outermost and bracket == "[":
            header += [scanner.kept(), "]"]
            yield from _list(scanner)
            scanner.keep(0)
        else:
            scanner.skip()
        gap_start = scanner.kept_chars
    yield Cut(scanner.at_byte, in_conversation=True)


def _ended(header: list[str | None], member: str) -> Ended:
    try:
        return Ended(parsed(_joined(header)), member)
    except Unreadable as error:
        return Ended(None, member, str(error))


def _joined(parts: list[str | None]) -> str | None:
    known = [part for part in parts if part is not None]
    return "".join(known) if len(known) == len(parts) else None


def _entries(scanner: Scanner) -> Iterator[Entry]:
    while True:
        while (quick := scanner.quick_value(decoded)) is not None:
            key, value, chars, replaced = quick
            yield Entry(key, value, chars, replaced=replaced)
        scanner.keep(0)
        if scanner.next_bracket() not in ("{", "["):
            return
        key = scanner.key(0)
        scanner.keep(1)
        scanner.skip()
        if scanner.is_exhausted:
            return
        yield _entry(key, scanner)


def _entry(key: str, scanner: Scanner) -> Entry:
    text, chars = scanner.kept(), scanner.kept_chars
    replaced = scanner.has_replaced(text)
    try:
        return Entry(key, parsed(text), chars, replaced=replaced)
    except Unreadable as error:
        return Entry(key, None, chars, str(error), text or "", replaced)
