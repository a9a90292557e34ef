"""Writing conversations to a file: from the store through our formats, one conversation in memory."""

import os
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TextIO

from app.domain.conversations import Conversation
from app.domain.errors import StorageError
from app.domain.ids import new_uid
from app.domain.transfer import CarriedSummary
from app.storage.conversations import Conversations, ListFilter
from app.storage.exchanges import Exchanges
from app.storage.store import Store
from app.storage.summaries import Summaries, Summary
from app.storage.times import now
from app.system.paths import refuse_own
from app.transfer.carrying_facts import carried_out
from app.transfer.markdown import write_markdown
from app.transfer.own_format import Exported, write_json, write_jsonl


class ExportFormat(StrEnum):
    """The formats by the ending of their files."""

    MARKDOWN = "md"
    JSON = "json"
    JSONL = "jsonl"


def export(
    store: Store, path: Path, chosen: ExportFormat, conversation_id: int | None = None
) -> int:
    """Write one conversation, or all but those in the trash, to `path`; return how many.

    The file appears whole or not at all; only a device or a pipe is written as it goes. Blocking;
    raises NotFound, StorageError, and InvalidInput for a place in the data directory.
    """
    try:
        path = path.resolve()  # what a link points to is written, not the link
        refuse_own(store.paths.root, path)
        if path.exists() and not path.is_file():
            with path.open("w", encoding="utf-8", newline="\n") as out:
                return write_export(store, out, chosen, conversation_id)
        unfinished = path.with_name(f".{new_uid()}.unfinished")
        try:
            with unfinished.open("w", encoding="utf-8", newline="\n") as out:
                count = write_export(store, out, chosen, conversation_id)
                out.flush()
                os.fsync(out.fileno())
            unfinished.replace(path)
        finally:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"'{path}' cannot be written: {error.strerror or error}", "Choose another place."
        ) from error
    return count


def write_export(
    store: Store, out: TextIO, chosen: ExportFormat, conversation_id: int | None = None
) -> int:
    """Like `export`, to an open text file."""
    found = (store.read(partial(_whole, store, each)) for each in _chosen(store, conversation_id))
    if chosen is not ExportFormat.MARKDOWN:
        own_facts = carried_out(store, None) if conversation_id is None else ()
        write = write_json if chosen is ExportFormat.JSON else write_jsonl
        return write(out, found, now(), own_facts)
    count = 0
    for count, each in enumerate(found, 1):
        if count > 1:
            out.write("\n\n---\n\n")
        write_markdown(out, each)
    return count


def _chosen(store: Store, conversation_id: int | None) -> Sequence[Conversation]:
    """Return what is to be exported, oldest conversation first; raise NotFound."""
    conversations = Conversations(store)
    if conversation_id is not None:
        return [conversations.get(conversation_id)]
    return sorted(conversations.listed(ListFilter(archived=None)), key=lambda each: each.id)


def _whole(store: Store, conversation: Conversation, _cursor: object) -> Exported:
    """Return a conversation with all that is exported of it; queries inside `Store.read` agree."""
    turns = Exchanges(store).of(conversation.id)
    messages = Exchanges(store).messages_in(conversation.id)
    tags = Conversations(store).tags_of([conversation.id]).get(conversation.id, ())
    summaries = Summaries(store)
    of_turns = summaries.versions_of("exchange", [turn.id for turn in turns])
    uids = {message.id: message.uid for message in messages}
    carried = [
        _carried(each, uids[turn.message_ids[-1]])
        for turn in turns
        if turn.message_ids
        for each in reversed(of_turns.get(turn.id, ()))
    ]
    of_whole = summaries.versions("conversation", conversation.id)
    carried += [_carried(each, None) for each in reversed(of_whole)]
    facts = () if conversation.private else carried_out(store, conversation.id)
    return Exported(conversation, messages, tags, tuple(carried), facts)


def _carried(summary: Summary, last_message: str | None) -> CarriedSummary:
    return CarriedSummary(summary.text, summary.model, summary.made_at, last_message)
