"""The Jan importer: `threads/ID/messages.jsonl`, with the title in `thread.json` beside it."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from app.domain.conversations import Role
from app.domain.transfer import Skipped
from app.transfer.archive import NamedStream
from app.transfer.importers.parsing.blocks import (
    blocks_of,
    call_block,
    error_part,
    result_parts,
    text_block,
)
from app.transfer.importers.parsing.building import Imported
from app.transfer.importers.parsing.formats import Format, Part, Thread, lines
from app.transfer.importers.parsing.values import an_object, identity, objects, text_of

SOURCE = "jan"


def read_jan(file: NamedStream) -> Imported:
    """Yield the conversation of a `messages.jsonl`."""
    header = _header(file.path)
    helper = next(iter(objects(header.get("assistants"))), {})
    model = text_of(an_object(header.get("model") or helper.get("model")).get("id")) or None
    thread, name = Thread(SOURCE, file.name), identity(header.get("id"))
    for number, message, flaw in lines(file.stream):
        if flaw:
            yield Skipped(f"{file.name}, line {number}", flaw)
            continue
        name = name or identity(message.get("thread_id"))
        own = identity(message.get("id")) or thread.generated_id()
        at = message.get("created_at") or message.get("created")
        if not thread.nodes:
            thread.append("system", Role.SYSTEM, text_block(helper.get("instructions")), at)
        thread.append(own, message.get("role"), _blocks(message), at, model)
    yield thread.finished(name, header.get("title"), header.get("created"), header.get("updated"))


def _header(path: Path | None) -> dict[str, Any]:
    if path is not None:
        with suppress(OSError, ValueError, RecursionError):
            return an_object(json.loads(path.with_name("thread.json").read_bytes()))
    return {}


def _blocks(message: dict[str, Any]) -> Iterator[Part]:
    yield from error_part(message.get("error_code"))
    for part in objects(message.get("content")):
        value = an_object(part.get("text"))
        yield from blocks_of([part | {"text": value["value"]} if "value" in value else part])
    for each in objects(an_object(message.get("metadata")).get("tool_calls")):
        tool = an_object(each.get("tool"))
        called = an_object(tool.get("function")) or tool
        yield call_block(tool.get("id"), called.get("name"), called.get("arguments", ""))
        if each.get("response") is not None:
            yield from result_parts(tool.get("id"), called.get("name"), each["response"])


FORMAT = Format(SOURCE, "Jan", read_jan, members=("thread_id role content created_at",))
THREAD_FORMAT = Format(
    SOURCE, "Jan", lambda _file: iter(()), members=("assistants title created updated",)
)
