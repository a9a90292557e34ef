"""The JSON export format: conversations as JSON or JSONL, for any program and for our own importer.

`resources/formats/commonplace.schema.json` describes the document, version 1, with the default of every member
that may be absent. `app.transfer.importers.commonplace` reads the format.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, TextIO

from app.domain import codec
from app.domain.conversations import (
    Attachment,
    Block,
    Conversation,
    Forgotten,
    Image,
    Message,
    Problem,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from app.domain.records.presets import Preset
from app.domain.transfer import (
    PortableExtraction,
    PortableFact,
    PortableFactVersion,
    PortableLibrary,
    PortableOrigin,
    PortableProfileLine,
    PortableSummary,
    PortableTurn,
)

FORMAT = "commonplace"
VERSION = 1

_TYPES: dict[str, type[Block]] = {
    "text": Text,
    "thinking": Thinking,
    "tool_call": ToolCall,
    "tool_result": ToolResult,
    "image": Image,
    "attachment": Attachment,
    "forgotten": Forgotten,
}
_NAMES = {cls: name for name, cls in _TYPES.items()}


@dataclass(frozen=True, slots=True)
class Exported:
    """A conversation with everything that is exported of it.

    `messages` are those of all branches, parents first; in `summaries`, `last_message` is a uid.
    """

    conversation: Conversation
    messages: Sequence[Message]
    tags: Sequence[str] = ()
    summaries: Sequence[PortableSummary] = ()
    facts: Sequence[PortableFact] = ()
    origins: Sequence[PortableOrigin] = ()
    turns: Sequence[PortableTurn] = ()


@dataclass(frozen=True, slots=True)
class ExportHead:
    """What an export contains besides conversations; `own_facts` are those that belong to none."""

    exported_at: datetime
    own_facts: Sequence[PortableFact] = ()
    presets: Sequence[Preset] = ()
    profile: Sequence[PortableProfileLine] = ()
    library: PortableLibrary | None = None


def write_json(
    out: TextIO, exported: Iterable[Exported], head: ExportHead, *, as_lines: bool = False
) -> int:
    """Write a JSON document, a message at a time; return the number of conversations.

    `as_lines` writes JSONL: a line for the head and one for each conversation.
    """
    start = json.dumps(_head(head), ensure_ascii=False)
    out.write(f"{start}\n" if as_lines else f'{start[:-1]}, "conversations": [\n')
    count = 0
    for count, each in enumerate(exported, 1):
        if count > 1 and not as_lines:
            out.write(",\n")
        _write_conversation(out, each, new_line="" if as_lines else "\n ")
        if as_lines:
            out.write("\n")
    if not as_lines:
        out.write("\n]}\n")
    return count


def block_to_plain(block: Block) -> dict[str, Any]:
    """Return a block as an object with its type; fields that equal their default are omitted."""
    plain: dict[str, Any] = {"type": _NAMES[type(block)]}
    for each in fields(block):
        value = getattr(block, each.name)
        if each.default is MISSING or value != each.default:
            plain[each.name] = value
    return plain


def block_from_plain(plain: dict[str, Any]) -> Block:
    """Return the block of an object; raise ValueError with a reason for the user."""
    name = plain.get("type")
    cls = _TYPES.get(name) if isinstance(name, str) else None
    if cls is None:
        raise ValueError(f"it contains a block of the unknown kind '{str(name)[:60]}'")
    try:
        found: Block = codec.from_json_value(cls, plain)
    except (ValueError, TypeError) as error:
        raise ValueError(f"its block of the kind '{name}' is damaged: {error}") from error
    return found


def to_plain(value: object) -> Any:
    """Return a portable value as JSON values; fields that equal their default are omitted."""
    return _without_tags(json.loads(codec.dumps(value)))


def turn_from_plain(plain: dict[str, Any]) -> PortableTurn:
    """Return the record of a turn; raise ValueError when it cannot be read."""
    nested = {"usage": Usage, "problem": Problem, "extraction": PortableExtraction}
    rest = {name: value for name, value in plain.items() if name not in nested}
    turn: PortableTurn = codec.from_json_value(PortableTurn, rest)
    found = {
        name: codec.from_json_value(cls, plain[name])
        for name, cls in nested.items()
        if isinstance(plain.get(name), dict)
    }
    return replace(turn, **found)


def _without_tags(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_tags(each) for each in value]
    if isinstance(value, dict):
        return {name: _without_tags(each) for name, each in value.items() if name != "_"}
    return value


def _head(head: ExportHead) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": _json_value(head.exported_at),
        "facts": [_fact(fact) for fact in head.own_facts],
        "presets": [asdict(preset) for preset in head.presets],
        "profile": [
            {
                "text": line.text,
                "facts": [{"uid": uid, "made_at": _json_value(at)} for uid, at in line.sources],
            }
            for line in head.profile
        ],
        **({} if head.library is None else {"library": to_plain(head.library)}),
    }


def _write_conversation(out: TextIO, exported: Exported, new_line: str) -> None:
    uids = {message.id: message.uid for message in exported.messages}
    head = json.dumps(_conversation(exported, uids), ensure_ascii=False)
    out.write(f'{head[:-1]}, "messages": [')
    for number, message in enumerate(exported.messages):
        out.write("," + new_line if number else new_line)
        parent = None if message.parent_id is None else uids.get(message.parent_id)
        out.write(json.dumps(_message(message, parent), ensure_ascii=False))
    out.write("]}")


def _conversation(exported: Exported, uids: dict[Any, str]) -> dict[str, Any]:
    row = exported.conversation
    summaries = [
        _members(each, "text", "model", "made_at", "last_message") for each in exported.summaries
    ]
    return {
        **_members(row, "uid", "title", "title_origin", "source", "created_at", "updated_at"),
        "visible_leaf": uids.get(row.visible_leaf_id),
        **_members(row, "pinned", "archived", "private", "model", "recalls", "preset", "project"),
        "tags": list(exported.tags),
        "summaries": summaries,
        "facts": [_fact(fact) for fact in exported.facts],
        "origins": to_plain(tuple(exported.origins)),
        "turns": to_plain(tuple(exported.turns)),
    }


def _fact(fact: PortableFact) -> dict[str, Any]:
    return {
        "uid": fact.uid,
        **_version(fact.version),
        **_members(fact, "subject", "valid_until"),
        "superseded_by": fact.superseded_by or None,
        "pinned": fact.pinned,
        "earlier": [_version(each) for each in fact.earlier],
    }


def _version(version: PortableFactVersion) -> dict[str, Any]:
    return {
        **_members(version, "text", "category", "model", "said_at", "made_at"),
        "conversation": version.conversation or None,
        "message": version.message or None,
    }


def _message(message: Message, parent: str | None) -> dict[str, Any]:
    raw = message.raw
    return {
        "uid": message.uid,
        "parent": parent,
        **_members(message, "role", "created_at", "model"),
        "raw": None if raw is None else _members(raw, "wire", "model", "items_json"),
        "blocks": [block_to_plain(block) for block in message.blocks],
    }


def _members(value: object, *names: str) -> dict[str, Any]:
    return {name: _json_value(getattr(value, name)) for name in names}


def _json_value(value: object) -> object:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
