"""The JSON export format: conversations as JSON or JSONL, for any program and for our own importer.

The document, version 1. Times are ISO 8601 in UTC; absent members have the default in parentheses::

    {"format": "commonplace", "version": 1, "exported_at": TIME,
     "facts": [FACT that the user wrote, ...],
     "presets": [PRESET that is not as ours, ...],
     "library": {"core_memory": [{"text", "author", "made_at"}, oldest first],
                 "memories": [{"uid", "text", "saved_at", "conversation": UUID ("") , "turn": UUID ("")}],
                 "spend": [{"at", "purpose", "model", "input_tokens", "output_tokens", "cached_tokens",
                            "cost_usd": NUMBER or null, "is_estimated": false, "turn": UUID ("")}],
                 "settings": [[KEY, JSON text of the value]],
                 "providers": [{"name", "kind", "base_url", "key_env", "allow_plain_http"}],
                 "projects": [{"uid", "name", "instructions", "color", "folder": TEXT or null,
                               "recall": only|first|all}],
                 "routines": [{"uid", "name", "prompt", "cron", "created_at", "model", "preset", "project",
                               "cap_usd", "is_private", switched off: "enabled_at": null, "agreed_to": ""}],
                 "topics": [{"number", "name", "conversations": [UUID], "is_hidden": false,
                             "merged_into": number of another or null}]},
     "profile": [{"text": TEXT, "facts": [{"uid": UUID of a FACT, "made_at": TIME of its VERSION}]}],
     "conversations": [
      {"uid": UUID, "title": TEXT, "title_origin": first_words|summariser|import|user ("user"),
       "source": "commonplace" or the program it was imported from ("commonplace"),
       "created_at": TIME, "updated_at": TIME, "visible_leaf": UID or null,
       "pinned": false, "archived": false, "private": false, "model": PROVIDER:MODEL or null,
       "recalls": true, "preset": uid of a PRESET or null, "project": uid of a project or null,
       "tags": [TEXT], "summaries": [{"text", "model", "made_at", "last_message": UID or null}],
       "facts": [FACT last extracted from this conversation, ...],
       "origins": [{"source": TEXT, "source_id": TEXT, "messages": [[UID, the source's id], ...]}],
       "turns": [{"uid": UUID, "messages": [UID in path order], "parent": uid of a turn (""),
                  "segment_number": 0, "status": running|completed|interrupted|failed,
                  "started_at": TIME, "completed_at": TIME or null, "model": TEXT or null,
                  "usage": {fields of `Usage`} or null, "problem": {"kind", "title", "hint"} or null}],
       "messages": [
        {"uid": UUID, "parent": UID or null, "role": user|assistant|tool|system, "created_at": TIME,
         "model": TEXT or null, "raw": {"wire", "model", "items_json"} or null,
         "blocks": [{"type": text|thinking|tool_call|tool_result|image|attachment|forgotten, ...}]}]}]}

    FACT: {"uid": UUID, VERSION, "subject": TEXT (""), "valid_until": TIME or null,
           "superseded_by": UUID or null, "pinned": false, "earlier": [{VERSION}, oldest first]}
    VERSION: "text": TEXT, "category": one of `FactCategory` ("other"),
             "model": patterns|user|PROVIDER:MODEL, "said_at": TIME, "made_at": TIME,
             "conversation": UUID or null, "message": UID or null

    PRESET: {"uid": TEXT, "name": TEXT, "system_prompt": TEXT (""), "model": PROVIDER:MODEL or null,
             "temperature": NUMBER or null, "reasoning_effort": one of `Effort` or null,
             "max_output_tokens": NUMBER or null, "tools": [NAME, ...] or null (all)}

The other members of a block are the fields of its class in `app.domain.conversations`. Messages are those
of all branches, parents first; the file of an image or attachment is `NAME.attachments/CONTENT_HASH` beside the
document `NAME`, as is that of `sent_hash`. Without `turns` they are calculated. A summary with `last_message` is of the
exchange that ends there, else of the conversation; the newest is last. In JSONL the first line is the
document without `conversations`, each further line one conversation. `app.transfer.importers.commonplace`
reads the format; `resources/formats/commonplace.schema.json` is its JSON Schema.
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
from app.domain.portable import PortableLibrary, PortableOrigin, PortableTurn
from app.domain.presets import Preset
from app.domain.transfer import (
    PortableFact,
    PortableFactVersion,
    PortableProfileLine,
    PortableSummary,
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


def write_json(
    out: TextIO,
    exported: Iterable[Exported],
    exported_at: datetime,
    own_facts: Sequence[PortableFact] = (),
    presets: Sequence[Preset] = (),
    profile: Sequence[PortableProfileLine] = (),
    library: PortableLibrary | None = None,
) -> int:
    """Write one JSON document, a message at a time; return the number of conversations.

    `own_facts` are the facts that belong to no conversation.
    """
    head = json.dumps(_head(exported_at, own_facts, presets, profile, library), ensure_ascii=False)
    out.write(f'{head[:-1]}, "conversations": [')
    count = 0
    for each in exported:
        out.write(",\n" if count else "\n")
        _write_conversation(out, each, new_line="\n ")
        count += 1
    out.write("\n]}\n")
    return count


def write_jsonl(
    out: TextIO,
    exported: Iterable[Exported],
    exported_at: datetime,
    own_facts: Sequence[PortableFact] = (),
    presets: Sequence[Preset] = (),
    profile: Sequence[PortableProfileLine] = (),
    library: PortableLibrary | None = None,
) -> int:
    """Write a header line and a line for each conversation; return the number of conversations."""
    out.write(
        json.dumps(_head(exported_at, own_facts, presets, profile, library), ensure_ascii=False)
        + "\n"
    )
    count = 0
    for each in exported:
        _write_conversation(out, each, new_line="")
        out.write("\n")
        count += 1
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
    nested = {"usage": Usage, "problem": Problem}
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


def _head(
    exported_at: datetime,
    own_facts: Sequence[PortableFact],
    presets: Sequence[Preset],
    profile: Sequence[PortableProfileLine],
    library: PortableLibrary | None,
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": _json_value(exported_at),
        "facts": [_fact(fact) for fact in own_facts],
        "presets": [asdict(preset) for preset in presets],
        "profile": [
            {
                "text": line.text,
                "facts": [{"uid": uid, "made_at": _json_value(at)} for uid, at in line.sources],
            }
            for line in profile
        ],
        **({} if library is None else {"library": to_plain(library)}),
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
    """Return fields of a dataclass as members of a JSON object."""
    return {name: _json_value(getattr(value, name)) for name in names}


def _json_value(value: object) -> object:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
