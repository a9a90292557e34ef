"""The Gemini CLI importer: chat logs, in which a later record replaces one with the same id."""

from collections.abc import Iterable
from typing import Any

from app.domain.conversations import Role
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.archive import NamedStream
from app.transfer.importers.agent_logs import (
    SUBAGENT_TAG,
    blocks_of,
    call_block,
    project_tag,
    result_block,
    thinking_block,
)
from app.transfer.importers.building import Imported
from app.transfer.importers.formats import Format, Part, Thread, document, lines
from app.transfer.importers.values import (
    UnreadableValue,
    an_object,
    identity,
    moment,
    objects,
    text_of,
)

SOURCE = "gemini_cli"


def read_gemini_cli(file: NamedStream) -> Imported:
    """Yield the conversation of a chat log, one record a line, or of an older one, one JSON object."""
    header: dict[str, Any] = {}
    messages: dict[str, dict[str, Any]] = {}
    if b'"messages"' in file.stream.peek(4096) and not file.name.endswith(".jsonl"):
        try:
            header = an_object(document(file))
        except UnreadableValue as error:
            yield Skipped(file.name, str(error))
            return
        _replace_all(messages, header.get("messages"))
    else:
        for number, record, flaw in lines(file.stream):
            if flaw:
                yield Skipped(f"{file.name}, line {number}", flaw)
            else:
                _apply(record, header, messages)
    yield _conversation(header, messages, file.name)


def _apply(
    record: dict[str, Any], header: dict[str, Any], messages: dict[str, dict[str, Any]]
) -> None:
    if "$rewindTo" in record:
        names = list(messages)
        target = identity(record["$rewindTo"])
        for name in names[names.index(target) :] if target in messages else ():
            del messages[name]
    elif "$set" in record:
        changed = an_object(record["$set"])
        header.update({key: value for key, value in changed.items() if key != "messages"})
        if "messages" in changed:
            messages.clear()
            _replace_all(messages, changed["messages"])
    elif "sessionId" in record:
        header.update(record)
        _replace_all(messages, record.get("messages"))
    else:
        _replace_all(messages, [record])


def _replace_all(messages: dict[str, dict[str, Any]], records: object) -> None:
    for record in objects(records):
        messages[identity(record.get("id")) or f"at-{len(messages)}"] = record


def _conversation(
    header: dict[str, Any], messages: dict[str, dict[str, Any]], where: str
) -> ImportedConversation | Skipped:
    thread, name, kind = Thread(SOURCE, where), "", ""
    for name, record in messages.items():
        at, model = moment(record.get("timestamp")), text_of(record.get("model")) or None
        kind = text_of(record.get("type"))
        if kind == "user":
            shown = record.get("displayContent") or record.get("content")
            thread.append(name, Role.USER, blocks_of(shown), at)
        elif kind == "gemini":
            calls = objects(record.get("toolCalls"))
            blocks, answer = [*_thoughts(record)], blocks_of(record.get("content"))
            if calls:
                blocks += [call_block(e.get("id"), e.get("name"), e.get("args")) for e in calls]
                thread.append(f"{name}/calls", Role.ASSISTANT, blocks, at, model)
                results = [result_block(e.get("id"), e.get("name"), _result(e)) for e in calls]
                thread.append(f"{name}/results", Role.TOOL, results, at)
                blocks = []
            thread.append(name, Role.ASSISTANT, [*blocks, *answer], at, model)
    if kind == "gemini":  # tools that it calls are added when they have run
        for each in (f"{name}/calls", f"{name}/results", name):
            thread.leave_open(each)
    folders = header.get("directories")
    tags = project_tag(folders[0] if isinstance(folders, list) and folders else "")
    tags += (SUBAGENT_TAG,) if text_of(header.get("kind")) == "subagent" else ()
    return thread.finished(
        header.get("sessionId"),
        header.get("summary"),
        header.get("startTime"),
        header.get("lastUpdated"),
        tags=tags,
    )


def _result(call: dict[str, Any]) -> object:
    """Return what a tool returned: the API wraps it twice, and lists it with what else it sent."""
    responses = [
        an_object(each.get("functionResponse")).get("response")
        for each in objects(call.get("result"))
    ]
    return [each for each in responses if each] or call.get("result")


def _thoughts(record: dict[str, Any]) -> Iterable[Part]:
    for each in objects(record.get("thoughts")):
        parts = filter(None, (text_of(each.get("subject")), text_of(each.get("description"))))
        yield from thinking_block(": ".join(parts))


FORMAT = Format(SOURCE, "Gemini CLI", read_gemini_cli, members=("sessionId projectHash",))
