"""The Claude Code importer: session logs, one JSON record a line, in `projects/FOLDER/SESSION.jsonl`.

A conversation is known by its first record and not by file or session: a resumed or forked session is
another file that begins with the same records, and continues the conversation here as a branch.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from app.domain.conversations import Role, Text, ToolCall, ToolResult
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.archive import NamedStream
from app.transfer.importers.parsing.blocks import (
    blocks_of,
    merged,
    project_tag,
    text_block,
    without_automatic,
)
from app.transfer.importers.parsing.building import Imported, Node
from app.transfer.importers.parsing.formats import Format, Part, Thread, keys_of, lines, text_name
from app.transfer.importers.parsing.values import an_object, identity, moment, text_of, title

SOURCE = "claude_code"
_NOT_TYPED = (
    "This session is being continued",
    "[Request interrupted",
    "<task-notification>",
    "<local-command-",
    "Stop hook feedback:",
    "<bash-stdout>",
    "<bash-stderr>",
    "<teammate-message",
)
_ENVELOPES = re.compile(
    r"\A\s*<(system-reminder|ide_opened_file|ide_selection)>.*?</\1>\s*", re.DOTALL
)
_COMMAND = re.compile(
    r"<command-name>(?P<name>[^<]*)</command-name>.*?(?:<command-args>(?P<arguments>.*?)</command-args>|\Z)",
    re.DOTALL,
)
_SHELL = re.compile(r"\A\s*<bash-input>(.*?)</bash-input>\s*\Z", re.DOTALL)
_OWN_MODEL = "<synthetic>"  # of messages that the program writes itself
_RENAME = re.compile(r"/rename\s+(\S.*)")
_BY_PROGRAM = ("sdk", "sdk-cli", "sdk-py", "sdk-ts")


def read_claude_code(file: NamedStream) -> Imported:
    """Yield the conversation of a session log, and those of the subagents in it."""
    log = _SessionLog()
    for number, record, flaw in lines(file.stream):
        if flaw:
            log.flaws.append(Skipped(f"{file.name}, line {number}", flaw))
        else:
            log.add(record)
    yield from log.conversations(file.name)
    yield from log.flaws


class _SessionLog:
    """The records of a file, divided into the session's conversation and its subagents'.

    Attributes:
        flaws: Lines that could not be read.
    """

    def __init__(self) -> None:
        self.flaws: list[Skipped] = []
        self._threads: dict[str, _Records] = {}
        self._thread_of: dict[str, str] = {}
        self._titles: dict[str, str] = {}
        self._summaries: dict[str, str] = {}  # by the last message; many are of other sessions

    def add(self, record: dict[str, Any]) -> None:
        kind = text_of(record.get("type"))
        for key, member in (("custom-title", "customTitle"), ("ai-title", "aiTitle")):
            if kind == key:
                self._titles[kind] = title(record.get(member))
        if kind == "summary":
            self._summaries[identity(record.get("leafUuid"))] = title(record.get("summary"))
        if kind == "system" and (named := _RENAME.search(text_of(record.get("content")))):
            self._titles["/rename"] = title(named[1])
        name = identity(record.get("uuid"))
        if not name and kind == "attachment":
            said = json.dumps([record.get("timestamp"), record.get("attachment")])
            name = text_name(said)
        if not name:
            return
        parent = identity(record.get("parentUuid")) or None
        key = ""
        if record.get("isSidechain") is True:
            key = identity(record.get("agentId")) or self._thread_of.get(parent or "") or name
        self._thread_of[name] = key
        self._threads.setdefault(key, _Records()).add(name, parent, kind, record)

    def conversations(self, where: str) -> Imported:
        """Yield what was read, the session first."""
        own = [
            text for leaf, text in self._summaries.items() if leaf in self._thread_of or not leaf
        ]
        self._titles["summary"] = own[-1] if own else ""
        for key, records in sorted(self._threads.items()):
            found = records.finish(where, {} if key else self._titles, is_subagent=bool(key))
            yield without_automatic(found, where, by_program=records.by_program)


class _Records(Thread):
    """The records of one conversation.

    Attributes:
        by_program: Whether a program asked, not a person.
    """

    def __init__(self) -> None:
        super().__init__(SOURCE)
        self.by_program = False
        self._first = ""
        self._last: str | None = None
        self._replies: dict[str, str] = {}
        self._begun_by: dict[str, str] = {}  # the first pieces of replies by their others
        self._callers: dict[str, str] = {}  # replies by their tool calls
        self._results: dict[str, str] = {}  # the last result of each of them
        self._continued_by: dict[
            str | None, str
        ] = {}  # what is between a record and those that name it
        self._folder: object = None
        self._sessions: dict[str, None] = {}
        self._open: str | None = None

    def add(  # type: ignore[override]
        self, name: str, parent: str | None, kind: str, record: Mapping[str, Any]
    ) -> None:
        if name in self.nodes:
            return  # a session that was resumed in its own file
        self._first = self._first or name
        if parent not in self.nodes:
            parent = self._last  # a chain that passes through records which are not logged
        if not record.get("uuid"):  # it is at the end, after the results of the reply before it
            parent = self._results.get(self._begun_by.get(self._last or "", ""), parent)
        parent = self._end_of(parent)
        if not record.get("uuid"):
            self._continued_by[parent] = name
        self._last = name
        self._sessions[identity(record.get("sessionId"))] = None
        self._folder = record.get("cwd") or self._folder
        self.by_program |= text_of(record.get("promptSource")) in _BY_PROGRAM
        self.by_program |= text_of(record.get("entrypoint")) in _BY_PROGRAM
        message = an_object(record.get("message"))
        at = moment(record.get("timestamp"))
        if kind == "assistant":
            self._reply(name, parent, message, at)
            is_open = message.get("stop_reason", "") is None
            own = self._replies.get(identity(message.get("id")), name)
            self._open = own if is_open else None
        elif kind == "user":
            self._open = None
            role, blocks = _user_blocks(record, message)
            if role is Role.TOOL:
                parent = self._after_results(name, parent, blocks)
            super().add(name, parent, role, blocks, at)
        elif kind == "attachment":
            queued = an_object(record.get("attachment"))
            is_prompt = text_of(queued.get("type")) == "queued_command"
            blocks = blocks_of(queued.get("prompt")) if is_prompt else []
            super().add(name, parent, Role.USER, _typed_blocks(blocks), at)
        else:
            self.add_node(name, parent, None)

    def finish(
        self, where: str, titles: Mapping[str, str], *, is_subagent: bool
    ) -> ImportedConversation | Skipped:
        named = ("custom-title", "/rename", "ai-title", "summary")
        shown = next(filter(None, (titles.get(each) for each in named)), "")
        self.where = where
        self.leave_open(self._open)
        sessions = list(filter(None, self._sessions))
        return self.finished(
            self._first,
            shown,
            leaf=self._last,
            started_by=(sessions or [""])[-1] if is_subagent else None,
            other_ids=() if is_subagent else sessions,
            tags=project_tag(self._folder),
        )

    def _after_results(self, name: str, parent: str | None, blocks: list[Part]) -> str | None:
        """Return what a tool result follows: the results of other calls of the same reply, if any."""
        calls = (each.call_id for each in blocks if isinstance(each, ToolResult))
        caller = next((self._callers[each] for each in calls if each in self._callers), None)
        if caller is None:
            return parent
        before, self._results[caller] = self._results.get(caller), name
        if before is None:
            return parent
        before = self._end_of(before)
        self._continued_by[before] = name
        return before

    def _end_of(self, name: str | None) -> str | None:
        while name in self._continued_by:
            name = self._continued_by[name]
        return name

    def _reply(
        self, name: str, parent: str | None, message: dict[str, Any], at: datetime | None
    ) -> None:
        """Add a piece of a reply; all pieces with the same message id are one message."""
        blocks = blocks_of(message.get("content"))
        model = text_of(message.get("model")) or None
        if model == _OWN_MODEL:
            self.left_out.append((name, "it is a message of the program, such as an error"))
            blocks = []
        reply = identity(message.get("id"))
        for each in blocks:
            if isinstance(each, ToolCall):
                self._callers[each.call_id] = self._replies.get(reply, name)
        begun = self.nodes.get(self._replies.get(reply, ""))
        if reply and begun is not None and begun.message is not None:
            whole = merged(begun.message.blocks, self.known_blocks(name, blocks))
            keys = begun.message.file_keys + keys_of(blocks)
            self.nodes[self._replies[reply]] = Node(
                begun.parent, replace(begun.message, blocks=whole, file_keys=keys)
            )
            self.add_node(name, parent, None)
            self._begun_by[name] = self._replies[reply]
            return
        if blocks and reply:
            self._replies[reply] = name
        super().add(name, parent, Role.ASSISTANT, blocks, at, model)


def _user_blocks(record: Mapping[str, Any], message: dict[str, Any]) -> tuple[Role, list[Part]]:
    blocks = blocks_of(message.get("content"))
    kinds = {type(block) for block in blocks}
    if ToolResult in kinds and Text not in kinds:
        return Role.TOOL, blocks
    if record.get("isCompactSummary") is True:
        return Role.SYSTEM, blocks
    if record.get("isMeta") is True:
        return Role.USER, []
    return Role.USER, _typed_blocks(each for each in blocks if not isinstance(each, ToolResult))


def _typed_blocks(blocks: Iterable[Part]) -> list[Part]:
    return [
        kept
        for block in blocks
        for kept in (text_block(_typed(block.text)) if isinstance(block, Text) else [block])
    ]


def _typed(text: str) -> str:
    """Return what the user typed of a message; "" when the program wrote all of it."""
    while found := _ENVELOPES.match(text):
        text = text[found.end() :]
    if text.lstrip().startswith(_NOT_TYPED):
        return ""
    if shell := _SHELL.match(text):
        return f"! {shell[1].strip()}"
    if text.lstrip().startswith("<command-") and (command := _COMMAND.search(text)):
        name = command["name"].strip()
        slash = "" if name.startswith("/") else "/"
        return f"{slash}{name} {(command['arguments'] or '').strip()}".strip()
    return text


FORMAT = Format(
    SOURCE,
    "Claude Code",
    read_claude_code,
    members=("parentUuid sessionId isSidechain", "parentUuid sessionId message"),
)
