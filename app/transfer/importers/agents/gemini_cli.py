"""The Gemini CLI importer: chat logs, in which a later record replaces one with the same id.

A rewind and a compressed history take messages out of the chat that the program continues with. Here a
rewind begins a branch, and what was compressed stays: a log that is read again has no less than before.
"""

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from app.domain.conversations import Role, Text
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.archive import NamedStream
from app.transfer.importers.parsing.blocks import (
    blocks_of,
    call_block,
    error_part,
    file_part,
    project_tag,
    result_block,
    thinking_block,
    unknown_part,
)
from app.transfer.importers.parsing.building import Imported
from app.transfer.importers.parsing.formats import Format, Part, Thread, document, lines
from app.transfer.importers.parsing.values import (
    UnreadableValue,
    an_object,
    identity,
    moment,
    objects,
    text_of,
)

SOURCE = "gemini_cli"
_NOT_SAID = (
    "<session_context>",
    "<hook_context>",
    "<state_snapshot>",
    "Got it. Thanks for the additional context!",
)
"""How messages begin that the program writes itself."""

_NOTES = ("info", "warning")
"""The types of messages that only say what the program does."""

_FOLDER_HASH_CHARS = 64


def read_gemini_cli(file: NamedStream) -> Imported:
    """Yield the conversation of a chat log, one record a line, or of an older one, one JSON object."""
    chat = _Chat()
    if b'"messages"' in file.stream.peek(4096) and not file.name.endswith(".jsonl"):
        try:
            chat.apply(an_object(document(file)))
        except UnreadableValue as error:
            yield Skipped(file.name, str(error))
            return
    else:
        for number, record, flaw in lines(file.stream):
            if flaw:
                yield Skipped(f"{file.name}, line {number}", flaw)
            else:
                chat.apply(record)
    yield chat.conversation(file)


class _Chat:
    """The records of a chat: for each message the newest one and the message before it."""

    def __init__(self) -> None:
        self._header: dict[str, Any] = {}
        self._records: dict[str, dict[str, Any]] = {}
        self._parents: dict[str, str | None] = {}
        self._path: list[str] = []  # the messages that the program continues
        self._known_as: dict[str, str] = {}

    def apply(self, record: dict[str, Any]) -> None:
        if "$rewindTo" in record:
            target = self._name(record["$rewindTo"])
            at = self._path.index(target) if target in self._path else 0
            del self._path[at:]
        elif "$set" in record:
            changed = an_object(record["$set"])
            self._header |= {key: value for key, value in changed.items() if key != "messages"}
            if "messages" in changed:
                self._replace_history(objects(changed["messages"]))
        elif "sessionId" in record and "id" not in record:
            self._header |= record
            for each in objects(record.get("messages")):
                self._add(each)
        else:
            self._add(record)

    def _name(self, given: object) -> str:
        name = identity(given)
        return self._known_as.get(name, name)

    def _add(self, record: dict[str, Any]) -> None:
        name = self._name(record.get("id")) or f"at-{len(self._records)}"
        if name not in self._records:
            self._parents[name] = self._path[-1] if self._path else None
            self._path.append(name)
        self._records[name] = record

    def _replace_history(self, history: list[dict[str, Any]]) -> None:
        """Read a history that was compressed or shortened; in it, old messages often have new ids.

        From its end they are found again in their order, so that equal words are not confused. A program
        that sets a history without ids has just appended all of it, and repeats what was there.
        """
        names = [self._name(each.get("id")) for each in history]
        is_appended, given = names == self._path[-len(names) :], set(names)
        places: dict[tuple[str, str], list[int]] = {}
        for place, name in enumerate(self._path):
            if name not in given:
                places.setdefault(_said(self._records[name]), []).append(place)
        end, old, new = len(self._path), dict[str, str](), list[dict[str, Any]]()
        for name, record in zip(reversed(names), reversed(history), strict=True):
            said = _said(record)
            if not said[1] or (name in self._records and not is_appended):
                continue
            found = places.get(said, [])
            while found and found[-1] >= end:
                found.pop()
            if found:
                end = found.pop()
                old[name] = self._path[end]
            elif name in self._records:
                is_appended = False
            else:
                new.append(record)
        self._known_as |= old
        self._path = [name for name in self._path if name not in old]
        self._records = {key: each for key, each in self._records.items() if key not in old}
        for record in reversed(new):
            self._add(record)

    def conversation(self, file: NamedStream) -> ImportedConversation | Skipped:
        thread, ends = Thread(SOURCE, file.name), dict[str | None, str | None]()
        for name, record in self._records.items():
            parent = self._parents[name]
            thread.last = ends.get(self._known_as.get(parent or "", parent))
            _append(thread, name, record)
            ends[name] = thread.last
        *_, beside, parent, _ = ("", "", *PurePath(file.path or file.name).parts)
        parent = parent if beside == "chats" else ""  # in a folder of its parent's name
        return thread.finished(
            self._header.get("sessionId"),
            self._header.get("summary"),
            self._header.get("startTime"),
            self._header.get("lastUpdated"),
            leaf=ends.get(self._path[-1]) if self._path else None,
            started_by=parent if text_of(self._header.get("kind")) == "subagent" else None,
            tags=project_tag(_folder(self._header, file)),
        )


def _append(thread: Thread, name: str, record: dict[str, Any]) -> None:
    at, model = moment(record.get("timestamp")), text_of(record.get("model")) or None
    kind = text_of(record.get("type"))
    if kind == "user":
        said = _parts(record.get("content"))
        if shown := record.get("displayContent"):
            files = (each for each in said if not isinstance(each, Text))
            said = [*_parts(shown), *files]
        elif _said(record)[1].startswith(_NOT_SAID):
            said = []
        thread.append(name, Role.USER, said, at)
    elif kind == "gemini":
        said = [] if _said(record)[1].startswith(_NOT_SAID) else _parts(record.get("content"))
        thread.append(name, Role.ASSISTANT, [*_thoughts(record), *said], at, model)
        if calls := objects(record.get("toolCalls")):  # added when they have run
            made = [call_block(e.get("id"), e.get("name"), e.get("args")) for e in calls]
            thread.append(f"{name}/calls", Role.ASSISTANT, made, at, model)
            results = [result_block(e.get("id"), e.get("name"), _result(e)) for e in calls]
            thread.append(f"{name}/results", Role.TOOL, results, at)
    elif kind == "error":
        thread.append(name, Role.ASSISTANT, error_part(_said(record)[1] or True), at)
    elif kind not in _NOTES:
        thread.append(name, Role.ASSISTANT, [unknown_part(kind)], at)


def _said(record: dict[str, Any]) -> tuple[str, str]:
    """Return who said what in a message, without thoughts and tools."""
    parts = [each for each in _listed(record.get("content")) if each.get("thought") is not True]
    return text_of(record.get("type")), "".join(text_of(each.get("text")) for each in parts).strip()


def _listed(content: object) -> list[dict[str, Any]]:
    """Return the parts of a content, which is a text, a part or a list of both."""
    given = content if isinstance(content, list) else [content]
    return objects([{"text": each} if isinstance(each, str) else each for each in given])


def _parts(content: object) -> list[Part]:
    """Return the blocks of a content; what it has of tools is in `toolCalls`, too."""
    found: list[Part] = []
    for part in _listed(content):
        file = an_object(part.get("inlineData") or part.get("fileData"))
        if file:
            kind, data = text_of(file.get("mimeType")), file.get("data")
            url = f"data:{kind};base64,{data}" if isinstance(data, str) else ""
            found.append(file_part(file.get("displayName") or file.get("fileUri"), kind, url))
        elif part.get("thought") is True:
            found += thinking_block(part.get("text"))
        else:
            found += blocks_of([{"text": part.get("text")}])
    return found


def _folder(header: dict[str, Any], file: NamedStream) -> object:
    """Return the folder of a project, else the name that the program derives from it."""
    folders = header.get("directories")
    if isinstance(folders, list) and folders:
        return folders[0]
    *above, _ = PurePath(file.path or file.name).parts
    if "chats" not in above[1:]:
        return ""
    at = above.index("chats")
    name = file.path and file.path.parents[len(above) - at] / ".project_root"
    if name and name.is_file():
        return name.read_text("utf-8", "replace").strip()
    return above[at - 1] if len(above[at - 1]) < _FOLDER_HASH_CHARS else ""


def _result(call: dict[str, Any]) -> object:
    """Return what a tool returned: the API wraps it twice, and lists it with what else it sent."""
    responses = [
        an_object(each.get("functionResponse")).get("response")
        for each in _listed(call.get("result"))
    ]
    return [each for each in responses if each] or call.get("result")


def _thoughts(record: dict[str, Any]) -> Iterable[Part]:
    for each in objects(record.get("thoughts")):
        parts = filter(None, (text_of(each.get("subject")), text_of(each.get("description"))))
        yield from thinking_block(": ".join(parts))


FORMAT = Format(SOURCE, "Gemini CLI", read_gemini_cli, members=("sessionId projectHash",))
