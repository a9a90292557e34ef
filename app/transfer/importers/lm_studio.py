"""The LM Studio importer: one conversation in each `*.conversation.json`, replies in several versions."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import PurePath
from typing import Any

from app.domain.conversations import Role, Text, Thinking
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.importers.parsing.blocks import (
    blocks_of,
    call_block,
    counts_of,
    file_part,
    result_block,
    text_block,
    unknown_part,
)
from app.transfer.importers.parsing.formats import Format, Part, Thread, documents
from app.transfer.importers.parsing.values import (
    an_object,
    count,
    identity,
    moment,
    objects,
    text_of,
)

SOURCE = "lm_studio"
_STATES = ("debugInfoBlock", "toolStatus")


def _read(value: Any, where: str) -> Iterable[ImportedConversation | Skipped]:
    record = an_object(value)
    model = an_object(record.get("lastUsedModel")).get("identifier")
    created_at = moment(record.get("createdAt"))
    thread = Thread(SOURCE, where)
    prompt = text_block(record.get("systemPrompt"))
    above = thread.add("system", None, Role.SYSTEM, prompt, created_at) if prompt else None
    for number, message in enumerate(objects(record.get("messages"))):
        versions = objects(message.get("versions"))
        shown = min(count(message.get("currentlySelected")) or 0, max(0, len(versions) - 1))
        below = above
        for index, version in enumerate(versions):
            name = f"{number}-{index}"
            at = _time(version) or created_at
            by = an_object(version.get("senderInfo")).get("senderName") or model
            thread.add(name, above, version.get("role"), _blocks(version), at, by)
            if index == shown:
                below = name
        above = below
    if notes := counts_of(record, "notes"):
        thread.left_out.append(("of the user", f"it has {notes} that are not imported"))
    ended = record.get("assistantLastMessagedAt") or record.get("userLastMessagedAt")
    own = identity(record.get("createdAt")) or PurePath(where).name.split(".")[0]
    pinned = record.get("pinned") is True
    yield thread.finished(own, record.get("name"), created_at, ended, leaf=above, pinned=pinned)


def _time(version: dict[str, Any]) -> datetime | None:
    """Return the time that the id of a reply's first step begins with."""
    for step in objects(version.get("steps")):
        if found := moment(text_of(step.get("stepIdentifier")).partition("-")[0]):
            return found
    return None


def _blocks(version: dict[str, Any]) -> Iterator[Part]:
    yield from _content(version.get("content"))
    for step in objects(version.get("steps")):
        status = an_object(an_object(step.get("statusState")).get("status"))
        if failure := text_of(status.get("error")):
            yield result_block(step.get("callId"), "", failure, is_error=True)
        if (kind := text_of(step.get("type"))) != "contentBlock":
            yield from [] if kind in _STATES else [unknown_part(kind)]
            continue
        is_thinking = text_of(an_object(step.get("style")).get("type")) == "thinking"
        for block in _content(step.get("content")):
            yield Thinking(block.text) if is_thinking and isinstance(block, Text) else block


def _content(content: object) -> Iterator[Part]:
    if isinstance(content, str):
        yield from text_block(content)
        return
    for part in objects(content):
        kind = text_of(part.get("type"))
        if kind == "file":
            yield file_part(part.get("fileIdentifier"), part.get("fileType"))
        elif kind == "toolCallRequest":
            yield call_block(part.get("callId"), part.get("name"), part.get("parameters"))
        elif kind == "toolCallResult":
            yield result_block(
                part.get("toolCallId", part.get("callId")), part.get("name"), part.get("content")
            )
        elif part.get("isStructural") is not True:
            yield from blocks_of([part])


FORMAT = Format(
    SOURCE,
    "LM Studio",
    documents(_read),
    members=("versions currentlySelected", "pinned createdAt tokenCount messages"),
)
