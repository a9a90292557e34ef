"""Export of conversations to a file, with one conversation in memory at a time; the Markdown format."""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TextIO

from app.domain.conversations import (
    FORGOTTEN,
    Attachment,
    Block,
    Conversation,
    Forgotten,
    Image,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.errors import InvalidInput, StorageError
from app.domain.ids import new_uid
from app.domain.text import one_line
from app.domain.transfer import ExportReport, PortableSummary
from app.language.secrets import masked
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.safety.attachments import hashes_in, names_of
from app.storage.tables.conversations import Conversations, ListFilter
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.portable_reads import portable_origins
from app.storage.tables.summaries import Summaries, Summary
from app.system.paths import refuse_data_directory
from app.transfer.facts import portable_facts
from app.transfer.files_beside import write_files_beside
from app.transfer.json_format import Exported, ExportHead, write_json
from app.transfer.library import portable_library
from app.transfer.other_records import portable_presets, portable_profile
from app.transfer.turns import portable_turns

_SPEAKERS = {
    Role.USER: "You",
    Role.ASSISTANT: "Assistant",
    Role.TOOL: "Tool",
    Role.SYSTEM: "System",
}


def write_markdown(out: TextIO, exported: Exported) -> None:
    """Write the visible path of one conversation with reasoning and tools collapsed. Times are UTC.

    Keys and passwords are hidden; the JSON formats have them.
    """
    row = exported.conversation
    out.write(f"# {one_line(masked(row.title), 300) or 'Untitled'}\n\n")
    started_at = row.created_at.astimezone(UTC)
    details = [f"Started {started_at:%Y-%m-%d %H:%M} UTC"]
    details += [f"from {row.source}"] if row.source != "commonplace" else []
    details += [f"tags: {', '.join(exported.tags)}"] if exported.tags else []
    out.write(f"*{'; '.join(details)}*\n")
    own = [each.text for each in exported.summaries if each.last_message is None]
    if own:
        out.write(f"\n> {one_line(masked(own[-1]), 2000)}\n")
    for message in visible_path(exported):
        _write_message(out, message)


def visible_path(exported: Exported) -> list[Message]:
    """Return the messages from the root to the visible leaf, else to the last message."""
    by_id = {message.id: message for message in exported.messages}
    last = exported.messages[-1] if exported.messages else None
    leaf = exported.conversation.visible_leaf_id
    step = last if leaf is None else by_id.get(leaf, last)
    path: list[Message] = []
    while step is not None and len(path) < len(by_id):
        path.append(step)
        step = by_id.get(step.parent_id) if step.parent_id is not None else None
    return path[::-1]


def _write_message(out: TextIO, message: Message) -> None:
    at = message.created_at.astimezone(UTC)
    model = f", {message.model}" if message.model else ""
    out.write(f"\n## {_SPEAKERS[message.role]} ({at:%Y-%m-%d %H:%M}{model})\n")
    for block in message.blocks:
        if text := _block(block):
            out.write(f"\n{masked(text)}\n")


def _block(block: Block) -> str:
    match block:
        case Text(text=text):
            return text.strip("\n")
        case Thinking(text=text):
            return _collapsed("Reasoning", text)
        case ToolCall(name=name, arguments=arguments):
            return _collapsed(f"Call of {name}", _fenced(arguments, "json"))
        case ToolResult(name=name, text=text, is_error=is_error):
            return _collapsed(f"{'Error' if is_error else 'Result'} of {name}", _fenced(text, ""))
        case Image(name=name):
            return f"*Image: {one_line(name, 200)}*"
        case Attachment(name=name, text=text):
            title = f"*File: {one_line(name, 200)}*"
            return f"{title}\n\n{_fenced(text, '')}" if text else title
        case Forgotten():
            return f"*{FORGOTTEN}*"
    raise AssertionError(block)


def _collapsed(title: str, text: str) -> str:
    summary = one_line(title, 200).replace("&", "&amp;").replace("<", "&lt;")
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def _fenced(text: str, language: str) -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


class ExportFormat(StrEnum):
    """The formats by the extension of their files."""

    MARKDOWN = "md"
    JSON = "json"
    JSONL = "jsonl"


def export(
    store: Store,
    path: Path,
    chosen: ExportFormat,
    ids: Sequence[int] = (),
    *,
    replaces: bool = False,
) -> ExportReport:
    """Write some conversations by id, or all that are not in the trash, to `path`.

    Attached files are copied into a folder beside it, `NAME.attachments`, except for Markdown.
    The file is complete or not written at all, except for a device or a pipe. Blocking; raises
    NotFound, StorageError, and InvalidInput for a path inside the data directory, and for an existing
    file unless it `replaces` that.
    """
    try:
        path = path.resolve()  # write to the target of a link
        refuse_data_directory(store.paths.root, path)
        if path.exists() and not path.is_file():
            with path.open("w", encoding="utf-8", newline="\n") as out:
                return ExportReport(write_export(store, out, chosen, ids))
        if path.exists() and not replaces:
            raise InvalidInput(
                f"The file '{path}' exists already",
                "Choose another name; --force on the command line replaces it.",
            )
        missing: tuple[str, ...] = ()
        unfinished = path.with_name(f".{new_uid()}.unfinished")
        try:
            with unfinished.open("w", encoding="utf-8", newline="\n") as out:
                count = write_export(store, out, chosen, ids)
                out.flush()
                os.fsync(out.fileno())
            if chosen is not ExportFormat.MARKDOWN:
                exported = [each.id for each in _chosen(store, ids)]
                missing = write_files_beside(store.paths, path, store.read(hashes_in, exported))
            unfinished.replace(path)
        finally:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"'{path}' cannot be written: {error.strerror or error}", "Choose another folder."
        ) from error
    return ExportReport(count, store.read(names_of, missing) if missing else ())


def write_export(store: Store, out: TextIO, chosen: ExportFormat, ids: Sequence[int] = ()) -> int:
    """Write to an open text file, as `export` does; return the number of conversations."""
    conversations = _chosen(store, ids)
    found = (store.read(partial(_exported, store, each)) for each in conversations)
    if chosen is not ExportFormat.MARKDOWN:
        own_facts = () if ids else portable_facts(store, None)
        profile = () if ids else portable_profile(store)
        library = None if ids else store.read(lambda _: portable_library(store))
        presets = portable_presets(store)
        if ids:
            used = {each.preset for each in conversations}
            presets = tuple(each for each in presets if each.uid in used)
        head = ExportHead(now(), own_facts, presets, profile, library)
        return write_json(out, found, head, as_lines=chosen is ExportFormat.JSONL)
    count = 0
    for count, each in enumerate(found, 1):
        if count > 1:
            out.write("\n\n---\n\n")
        write_markdown(out, each)
    return count


def _chosen(store: Store, ids: Sequence[int]) -> Sequence[Conversation]:
    """Return the conversations to export, oldest first; raise NotFound."""
    conversations = Conversations(store)
    if ids:
        return [conversations.get(each) for each in sorted(ids)]
    return sorted(conversations.listed(ListFilter(archived=None)), key=lambda each: each.id)


def _exported(store: Store, conversation: Conversation, _cursor: object) -> Exported:
    """Return a conversation with everything to export; inside `Store.read` all queries see one state."""
    turns = Exchanges(store).of(conversation.id)
    messages = Exchanges(store).messages_in(conversation.id)
    tags = Conversations(store).tags_of([conversation.id]).get(conversation.id, ())
    summaries = Summaries(store)
    of_turns = summaries.versions_of("exchange", [turn.id for turn in turns])
    uids = {message.id: message.uid for message in messages}
    exported = [
        _portable(each, uids[turn.message_ids[-1]])
        for turn in turns
        if turn.message_ids
        for each in reversed(of_turns.get(turn.id, ()))
    ]
    of_whole = summaries.versions("conversation", conversation.id)
    exported += [_portable(each, None) for each in reversed(of_whole)]
    facts = () if conversation.private else portable_facts(store, conversation.id)
    return Exported(
        conversation, messages, tags, tuple(exported), facts,
        portable_origins(store, conversation.id, uids),
        portable_turns(store, turns, uids),
    )  # fmt: skip


def _portable(summary: Summary, last_message: str | None) -> PortableSummary:
    return PortableSummary(summary.text, summary.model, summary.made_at, last_message)
