"""Our own export: conversations as JSON or JSONL that any program can read, and ours reads back.

The document, version 1. Times are ISO 8601 in UTC; absent members have the default named here::

    {"format": "commonplace", "version": 1, "exported_at": TIME,
     "facts": [FACT, those the user wrote],
     "conversations": [
      {"uid": UUID, "title": TEXT, "title_origin": first_words|summariser|import|user ("user"),
       "source": "commonplace" or where it was imported from ("commonplace"),
       "created_at": TIME, "updated_at": TIME, "visible_leaf": UID or null,
       "pinned": false, "archived": false, "private": false, "model": PROVIDER:MODEL or null,
       "recalls": true,
       "tags": [TEXT], "summaries": [{"text", "model", "made_at", "last_message": UID or null}],
       "facts": [FACT, those learned from it last],
       "messages": [
        {"uid": UUID, "parent": UID or null, "role": user|assistant|tool|system, "created_at": TIME,
         "model": TEXT or null, "raw": {"wire", "model", "items_json"} or null,
         "blocks": [{"type": text|thinking|tool_call|tool_result|image|attachment, ...}]}]}]}

    FACT: {"uid": UUID, WORDING, "subject": TEXT (""), "valid_until": TIME or null,
           "superseded_by": UUID or null, "pinned": false, "earlier": [{WORDING}, oldest first]}
    WORDING: "text": TEXT, "category": one of `FactCategory` ("other"),
             "model": patterns|user|PROVIDER:MODEL, "said_at": TIME, "made_at": TIME,
             "conversation": UUID or null, "message": UID or null

A block's other members are the fields of its class in `app.domain.conversations`. Messages are all
branches, parents first; turns are calculated from them. A summary with `last_message` is that of
the exchange which ends there, else the conversation's; the newest stands last. A fact is said in its `message`. JSONL is the same: the first line without
`conversations`, then one conversation a line. Reading is `app.transfer.importers.commonplace`.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import UTC, datetime
from typing import Any, TextIO

from app.domain import codec
from app.domain.conversations import (
    Attachment,
    Block,
    Conversation,
    Image,
    Message,
    RawReply,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.transfer import CarriedFact, CarriedSummary, CarriedWording

FORMAT = "commonplace"
VERSION = 1

_TYPES: dict[str, type[Block]] = {
    "text": Text,
    "thinking": Thinking,
    "tool_call": ToolCall,
    "tool_result": ToolResult,
    "image": Image,
    "attachment": Attachment,
}
_NAMES = {cls: name for name, cls in _TYPES.items()}


@dataclass(frozen=True, slots=True)
class Exported:
    """A conversation with all that is exported of it.

    `messages` are of every branch, parents first; in `summaries`, `last_message` is a uid.
    """

    conversation: Conversation
    messages: Sequence[Message]
    tags: Sequence[str] = ()
    summaries: Sequence[CarriedSummary] = ()
    facts: Sequence[CarriedFact] = ()


def write_json(
    out: TextIO,
    exported: Iterable[Exported],
    exported_at: datetime,
    own_facts: Sequence[CarriedFact] = (),
) -> int:
    """Write one JSON document, a message at a time; return the number of conversations.

    `own_facts` are those of no conversation.
    """
    head = json.dumps(_head(exported_at, own_facts), ensure_ascii=False)
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
    own_facts: Sequence[CarriedFact] = (),
) -> int:
    """Write a line that says what this is, then one line a conversation; return how many."""
    out.write(json.dumps(_head(exported_at, own_facts), ensure_ascii=False) + "\n")
    count = 0
    for each in exported:
        _write_conversation(out, each, new_line="")
        out.write("\n")
        count += 1
    return count


def block_to_plain(block: Block) -> dict[str, Any]:
    """Return a block as an object with its type's name; members at their default are left out."""
    plain: dict[str, Any] = {"type": _NAMES[type(block)]}
    for each in fields(block):
        value = getattr(block, each.name)
        if each.default is MISSING or value != each.default:
            plain[each.name] = value
    return plain


def block_from_plain(plain: dict[str, Any]) -> Block:
    """Return the block an object means; raise ValueError, in words for the user, if none."""
    name = plain.get("type")
    cls = _TYPES.get(name) if isinstance(name, str) else None
    if cls is None:
        raise ValueError(f"a block of the kind '{str(name)[:60]}' in it is not known")
    try:
        found: Block = codec.from_plain(cls, plain)
    except (ValueError, TypeError) as error:
        raise ValueError(f"a block of the kind '{name}' in it is damaged: {error}") from error
    return found


def _head(exported_at: datetime, own_facts: Sequence[CarriedFact]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": _time(exported_at),
        "facts": [_fact(fact) for fact in own_facts],
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
    return {
        "uid": row.uid,
        "title": row.title,
        "title_origin": row.title_origin.value,
        "source": row.source,
        "created_at": _time(row.created_at),
        "updated_at": _time(row.updated_at),
        "visible_leaf": uids.get(row.visible_leaf_id),
        "pinned": row.pinned,
        "archived": row.archived,
        "private": row.private,
        "model": row.model,
        "recalls": row.recalls,
        "tags": list(exported.tags),
        "summaries": [
            {
                "text": summary.text,
                "model": summary.model,
                "made_at": _time(summary.made_at),
                "last_message": summary.last_message,
            }
            for summary in exported.summaries
        ],
        "facts": [_fact(fact) for fact in exported.facts],
    }


def _fact(fact: CarriedFact) -> dict[str, Any]:
    return {
        "uid": fact.uid,
        **_wording(fact.wording),
        "subject": fact.subject,
        "valid_until": None if fact.valid_until is None else _time(fact.valid_until),
        "superseded_by": fact.superseded_by or None,
        "pinned": fact.pinned,
        "earlier": [_wording(each) for each in fact.earlier],
    }


def _wording(wording: CarriedWording) -> dict[str, Any]:
    return {
        "text": wording.text,
        "category": wording.category.value,
        "model": wording.model,
        "said_at": _time(wording.said_at),
        "made_at": _time(wording.made_at),
        "conversation": wording.conversation or None,
        "message": wording.message or None,
    }


def _message(message: Message, parent: str | None) -> dict[str, Any]:
    return {
        "uid": message.uid,
        "parent": parent,
        "role": message.role.value,
        "created_at": _time(message.created_at),
        "model": message.model,
        "raw": _raw(message.raw),
        "blocks": [block_to_plain(block) for block in message.blocks],
    }


def _raw(raw: RawReply | None) -> dict[str, str] | None:
    if raw is None:
        return None
    return {"wire": raw.wire, "model": raw.model, "items_json": raw.items_json}


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()
