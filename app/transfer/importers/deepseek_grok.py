"""The importers of DeepSeek's and Grok's exports."""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from app.domain.conversations import Role
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.archive import NamedStream
from app.transfer.importers.parsing.blocks import (
    counts_of,
    error_part,
    file_part,
    text_block,
    thinking_block,
    unknown_part,
)
from app.transfer.importers.parsing.building import Imported
from app.transfer.importers.parsing.formats import Format, NotKept, Part, Thread, documents
from app.transfer.importers.parsing.json_events import (
    ConversationEnd,
    MessageEntry,
    Truncated,
    iter_events,
)
from app.transfer.importers.parsing.values import (
    an_object,
    identity,
    link_list,
    objects,
    strings,
    text_of,
)

DEEPSEEK, GROK = "deepseek", "grok"


def read_deepseek(file: NamedStream) -> Imported:
    """Yield the conversations of DeepSeek's `conversations.json`: trees of fragments."""
    thread, number = Thread(DEEPSEEK), 0
    for event in iter_events(file.stream):
        if isinstance(event, MessageEntry):
            if event.flaw:
                thread.left_out.append((event.key, event.flaw))
            else:
                _add_fragments(thread, event.key, an_object(event.value))
        elif isinstance(event, ConversationEnd):
            number += 1
            header = an_object(event.header)
            thread.where = f"{file.name}, conversation {number}"
            times = header.get("inserted_at"), header.get("updated_at")
            made = thread.finished(header.get("id"), header.get("title"), *times)
            yield Skipped(thread.where, event.flaw) if event.flaw else made
            thread = Thread(DEEPSEEK)
        elif isinstance(event, Truncated):
            yield Skipped(file.name, f"the file is truncated after {event.at_byte:,} bytes")


def _add_fragments(thread: Thread, key: str, node: dict[str, Any]) -> None:
    name, parent = identity(node.get("id")) or key, identity(node.get("parent")) or None
    message = an_object(node.get("message"))
    fragments = objects(message.get("fragments"))
    kinds = {text_of(each.get("type")) for each in fragments}
    role = Role.USER if "REQUEST" in kinds else Role.ASSISTANT
    blocks: list[Part] = []
    for fragment in fragments:
        kind = text_of(fragment.get("type"))
        if kind == "THINK":
            blocks += thinking_block(fragment.get("content"))
        elif kind in ("REQUEST", "RESPONSE"):
            blocks += text_block(fragment.get("content"))
        else:
            blocks.append(unknown_part(kind))
    for file in objects(message.get("files")):
        text = text_of(file.get("content"))
        blocks.append(file_part(file.get("file_name"), "", text=text))
    thread.add(name, parent, role, blocks, message.get("inserted_at"), message.get("model"))


def _grok(value: Any, where: str) -> Iterator[ImportedConversation | Skipped]:
    """Yield the conversations of Grok's `prod-grok-backend.json`."""
    export = an_object(value)
    if counts := counts_of(export, "projects", "tasks", "media_posts"):
        yield Skipped(where, f"it has {counts} that are not imported")
    for number, record in enumerate(objects(export.get("conversations")), 1):
        about = an_object(record.get("conversation"))
        thread = Thread(GROK, f"{where}, conversation {number}")
        last: str | None = None
        for each in objects(record.get("responses")):
            response = an_object(each.get("response"))
            name = identity(response.get("_id")) or thread.generated_id()
            parent = identity(response.get("parent_response_id")) or last
            role = Role.USER if text_of(response.get("sender")) == "human" else Role.ASSISTANT
            at, model = response.get("create_time"), response.get("model")
            last = thread.add(name, parent, role, _grok_blocks(response), at, model)
        given = map(about.get, ("id", "title", "create_time", "modify_time"))
        yield thread.finished(*given, leaf=last, pinned=about.get("starred") is True)


def _grok_blocks(response: dict[str, Any]) -> Iterator[Part]:
    for trace in [response, *objects(response.get("agent_thinking_traces"))]:
        yield from thinking_block(trace.get("thinking_trace"))
    yield from text_block(response.get("message"))
    cited = objects(response.get("cited_web_search_results"))
    yield from text_block(link_list((each.get("title"), each.get("url")) for each in cited))
    for each in strings(response.get("generated_image_urls")):
        yield file_part(PurePath(each).name, "image")
    yield from (file_part(each, "") for each in strings(response.get("file_attachments")))
    yield from error_part(response.get("error"))
    if counts := counts_of(response, "steps", "web_search_results", "xpost_ids"):
        yield NotKept(f"it has {counts} that are not imported")


DEEPSEEK_FORMAT = Format(
    DEEPSEEK, "DeepSeek", read_deepseek, members=("mapping fragments inserted_at",)
)
GROK_FORMAT = Format(GROK, "Grok", documents(_grok), members=("conversation responses sender",))
