"""Export of conversations to a file, with one conversation in memory at a time."""

import os
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TextIO

from app.domain.conversations import Conversation
from app.domain.errors import InvalidInput, StorageError
from app.domain.ids import new_uid
from app.domain.transfer import ExportReport, PortableSummary
from app.storage.engine.ids import now
from app.storage.engine.store import Store
from app.storage.safety.attachments import hashes_in, names_of
from app.storage.tables.conversations import Conversations, ListFilter
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.portable_reads import portable_origins
from app.storage.tables.summaries import Summaries, Summary
from app.system.paths import refuse_data_directory
from app.transfer.derived import portable_presets, portable_profile
from app.transfer.facts import portable_facts
from app.transfer.files_beside import write_files_beside
from app.transfer.json_format import Exported, ExportHead, write_json
from app.transfer.library import portable_library
from app.transfer.markdown import write_markdown
from app.transfer.turns import portable_turns


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
