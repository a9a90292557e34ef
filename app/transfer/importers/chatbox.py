"""The Chatbox importer: its exported data, a table of keys and values."""

from collections.abc import Iterable, Iterator
from typing import Any

from app.domain.text import one_line
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.importers.parsing.blocks import (
    call_block,
    error_part,
    file_part,
    result_block,
    text_block,
    thinking_block,
    unknown_part,
)
from app.transfer.importers.parsing.formats import Format, NotKept, Part, Thread, documents, json_of
from app.transfer.importers.parsing.values import (
    an_object,
    identity,
    link_list,
    objects,
    text_of,
    title,
)

SOURCE = "chatbox"
_PREFIX = "session:"


def _read(exported: Any, where: str) -> Iterable[ImportedConversation | Skipped]:
    data = an_object(exported)
    listed = objects(json_of(data.get("chat-sessions-list")))
    starred = {identity(each.get("id")) for each in listed if each.get("starred") is True}
    stored = {key: value for key, value in data.items() if key.startswith(_PREFIX)}
    for old in objects(json_of(data.get("chat-sessions"))):
        stored.setdefault(f"{_PREFIX}{identity(old.get('id'))}", old)
    copilots = {identity(each.get("id")): each for each in objects(json_of(data.get("myCopilots")))}
    unused = dict(copilots)
    for key, value in stored.items():
        session = an_object(json_of(value))
        name = identity(session.get("id")) or identity(key.removeprefix(_PREFIX))
        copilot = identity(session.get("copilotId"))
        unused.pop(copilot, None)
        prompt = text_of(copilots.get(copilot, {}).get("prompt"))
        yield from _threads(session, name, prompt, f"{where}, {key}", is_starred=name in starred)
    for each in unused.values():
        yield Skipped(
            where,
            f"the copilot '{title(each.get('name'))}' has no conversations and is not imported",
        )


def _threads(
    session: dict[str, Any], name: str, prompt: str, where: str, *, is_starred: bool
) -> Iterator[ImportedConversation | Skipped]:
    """Yield the newest thread of a session and the older ones, each as a conversation."""
    forks = an_object(session.get("messageForksHash"))
    heading, named = title(session.get("name")), title(session.get("threadName"))
    if heading and (not session.get("threads") or named.casefold() == heading.casefold()):
        named = ""
    shown = ": ".join(filter(None, (heading, named)))
    pinned = is_starred or session.get("starred") is True
    for each in [session, *objects(session.get("threads"))]:
        messages = _prompted(objects(each.get("messages")), prompt)
        if each is not session:
            name, pinned = identity(each.get("id")), False
            shown = title(each.get("name")) or heading
        if messages or each is session:
            thread = Thread(SOURCE, where)
            last = _add(thread, messages, forks)
            began = messages[0].get("timestamp") if messages else None
            yield thread.finished(name, shown, began, leaf=last, pinned=pinned)


def _prompted(messages: list[dict[str, Any]], prompt: str) -> list[dict[str, Any]]:
    """Return messages with the prompt of their copilot, unless they have one themselves."""
    if not messages or not prompt or any(each.get("role") == "system" for each in messages):
        return messages
    told = {"id": "copilot", "role": "system", "content": prompt}
    return [told | {"timestamp": messages[0].get("timestamp")}, *messages]


def _add(thread: Thread, messages: list[dict[str, Any]], forks: dict[str, Any]) -> str | None:
    """Add messages, and the lists that were replaced below each; return the last one."""
    waiting: list[tuple[list[dict[str, Any]], str | None]] = [(messages, None)]
    end = None
    while waiting:
        branch, parent = waiting.pop(0)
        for message in branch:
            name = identity(message.get("id")) or thread.generated_id()
            if name in thread.nodes:
                parent = name
                continue
            at, model = message.get("timestamp"), message.get("model")
            thread.add(name, parent, message.get("role"), _blocks(message), at, model)
            parent = name
            others = objects(an_object(forks.get(name)).get("lists"))
            waiting += ((objects(other.get("messages")), name) for other in others)
        if branch is messages:
            end = parent
    return end


def _blocks(message: dict[str, Any]) -> list[Part]:
    found: list[Part] = thinking_block(message.get("reasoningContent"))
    parts = objects(message.get("contentParts"))
    for part in parts or [{"type": "text", "text": message.get("content")}]:
        kind = text_of(part.get("type"))
        if kind == "text":
            found += text_block(part.get("text"))
        elif kind == "reasoning":
            found += thinking_block(part.get("text"))
        elif kind == "image":
            found += [
                file_part(part.get("storageKey"), "image"),
                *text_block(part.get("ocrResult")),
            ]
        elif kind == "tool-call":
            call, tool = part.get("toolCallId"), part.get("toolName")
            found.append(call_block(call, tool, part.get("args", "")))
            if part.get("result") is not None:
                failed = part.get("state") == "error"
                found.append(result_block(call, tool, part["result"], is_error=failed))
        elif kind == "info":
            said = one_line(text_of(part.get("text")), 200)
            found.append(NotKept(f"it has a note of the program: {said}"))
        else:
            found.append(unknown_part(kind))
    pictures = objects(message.get("pictures"))
    found += (file_part(each.get("storageKey"), "image", each.get("url")) for each in pictures)
    found += (file_part(each.get("name"), "") for each in objects(message.get("files")))
    links = ((each.get("title"), each.get("url")) for each in objects(message.get("links")))
    return [*found, *text_block(link_list(links)), *error_part(message.get("error"))]


FORMAT = Format(
    SOURCE,
    "Chatbox",
    documents(_read),
    members=("chat-sessions-list", "chat-sessions", "__exported_items"),
)
