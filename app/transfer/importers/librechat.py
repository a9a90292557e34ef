"""The LibreChat importer: exported conversations, flat or as trees, and dumps of its two collections."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from app.domain.conversations import Role
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.importers.parsing.blocks import (
    blocks_of,
    call_block,
    error_part,
    file_part,
    rating_part,
    result_block,
    text_block,
    unknown_part,
)
from app.transfer.importers.parsing.formats import Format, Part, Thread, documents
from app.transfer.importers.parsing.values import an_object, identity, link_list, objects, text_of

SOURCE = "librechat"
_ROOT = "00000000-0000-0000-0000-000000000000"
_INSTRUCTIONS = ("promptPrefix", "system", "instructions", "additional_instructions")


def _read(value: Any, where: str) -> Iterable[ImportedConversation | Skipped]:
    records = value if isinstance(value, list) else [value]
    if records and all("messageId" in an_object(each) for each in records):
        records = list(_grouped(objects(records)))
    for number, record in enumerate(objects(records), 1):
        yield _conversation(record, f"{where}, conversation {number}")


def _grouped(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a conversation for each id in a dump of the collection of messages."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for message in messages:
        groups.setdefault(identity(message.get("conversationId")), []).append(message)
    for name, group in groups.items():
        yield {"conversationId": name, "messages": group}


def _conversation(record: dict[str, Any], where: str) -> ImportedConversation | Skipped:
    thread = Thread(SOURCE, where)
    if "messagesTree" in record:
        pairs = list(_flat(objects(record.get("messagesTree"))))
    else:
        pairs = [(each, None) for each in objects(record.get("messages"))]
    last = root = None
    options = an_object(record.get("options"))
    if prompt := [part for each in _INSTRUCTIONS for part in text_block(options.get(each))]:
        root = thread.add("promptPrefix", None, Role.SYSTEM, prompt)
    for message, above in pairs:
        name = identity(message.get("messageId")) or thread.generated_id()
        parent = identity(message.get("parentMessageId")) or above
        parent = root if parent in (_ROOT, None) else parent
        role = Role.USER if message.get("isCreatedByUser") is True else Role.ASSISTANT
        at = message.get("createdAt")
        if message.get("error") is True:
            thread.add(name, parent, role, error_part(message.get("text") or True), at)
            continue
        blocks = [*_blocks(message), *rating_part(message.get("feedback"))]
        thread.add(name, parent, role, blocks, at, message.get("model"))
        last = name
    given = map(record.get, ("conversationId", "title", "createdAt", "updatedAt"))
    return thread.finished(*given, leaf=last, archived=record.get("isArchived") is True)


def _flat(messages: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Yield the messages of a tree with the ids of their parents, parents first."""
    waiting: list[tuple[dict[str, Any], str | None]] = [(each, None) for each in messages[::-1]]
    while waiting:
        message, above = waiting.pop()
        yield message, above
        name = identity(message.get("messageId"))
        waiting += [(each, name) for each in reversed(objects(message.get("children")))]


def _blocks(message: dict[str, Any]) -> list[Part]:
    found: list[Part] = []
    content = message.get("content")
    for part in [] if isinstance(content, str) else objects(content):
        kind = text_of(part.get("type"))
        value = part.get(kind, part.get("text"))
        if kind == "tool_call":
            call = an_object(value)
            made = an_object(call.get("function")) or call  # of an assistant of OpenAI
            given, name = made.get("arguments") or made.get("args", ""), made.get("name")
            found.append(call_block(call.get("id"), name, given))
            if made.get("output"):
                found.append(result_block(call.get("id"), name, made["output"]))
        elif kind == "image_file":
            found.append(file_part(an_object(value).get("filename"), "image"))
        elif kind != "agent_update":
            text = value.get("value") if isinstance(value, dict) else value
            found += blocks_of([part | {"type": _KINDS.get(kind, kind), "text": text}])
    found = found or text_block(message.get("text") or content)
    for each in objects(message.get("files")) + objects(message.get("attachments")):
        kind = text_of(each.get("type"))
        if each.get("filename") or kind not in each:
            found.append(file_part(each.get("filename"), kind, "", text_of(each.get("text"))))
            continue
        lists = (few for few in an_object(each[kind]).values() if isinstance(few, list))
        pages = map(an_object, chain.from_iterable(lists))
        links = text_block(link_list((page.get("title"), page.get("link")) for page in pages))
        found += links or [unknown_part(kind)]
    return found


_KINDS = {"think": "reasoning"}


FORMAT = Format(
    SOURCE,
    "LibreChat",
    documents(_read),
    members=("conversationId messagesTree", "conversationId messageId isCreatedByUser"),
)
