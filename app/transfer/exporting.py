"""Writing conversations to a file: from the store through our formats, one conversation in memory."""

import os
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TextIO

from app.domain.errors import StorageError
from app.domain.ids import MessageId
from app.domain.transfer import CarriedSummary
from app.storage.conversations import Conversations, ListFilter
from app.storage.exchanges import Exchanges
from app.storage.store import Store
from app.storage.summaries import Summaries
from app.storage.times import now
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

    The file appears whole or not at all. Blocking; raises NotFound, StorageError.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with unfinished.open("w", encoding="utf-8", newline="\n") as out:
            count = write_export(store, out, chosen, conversation_id)
            out.flush()
            os.fsync(out.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise StorageError(
            f"'{path}' cannot be written: {error.strerror}", "Choose another place."
        ) from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return count


def write_export(
    store: Store, out: TextIO, chosen: ExportFormat, conversation_id: int | None = None
) -> int:
    """Like `export`, to an open text file."""
    found = _exported(store, conversation_id)
    if chosen is ExportFormat.JSON:
        return write_json(out, found, now())
    if chosen is ExportFormat.JSONL:
        return write_jsonl(out, found, now())
    count = 0
    for count, each in enumerate(found, 1):
        if count > 1:
            out.write("\n\n---\n\n")
        write_markdown(out, each)
    return count


def _exported(store: Store, conversation_id: int | None) -> Iterator[Exported]:
    """Yield what is exported, oldest conversation first."""
    conversations, exchanges, summaries = Conversations(store), Exchanges(store), Summaries(store)
    chosen = (
        [conversations.get(conversation_id)]
        if conversation_id is not None
        else sorted(conversations.listed(ListFilter(archived=None)), key=lambda each: each.id)
    )
    tags = conversations.tags_of([each.id for each in chosen])
    for conversation in chosen:
        turns = exchanges.of(conversation.id)
        messages = exchanges.messages_in(conversation.id)
        uids: dict[MessageId, str] = {message.id: message.uid for message in messages}
        of_turns = summaries.latest("exchange", [turn.id for turn in turns])
        carried = [
            CarriedSummary(
                text=of_turns[turn.id].text,
                model=of_turns[turn.id].model,
                made_at=of_turns[turn.id].made_at,
                last_message=uids[turn.message_ids[-1]],
            )
            for turn in turns
            if turn.id in of_turns
        ]
        whole = summaries.latest("conversation", [conversation.id]).get(conversation.id)
        if whole is not None:
            carried.append(
                CarriedSummary(text=whole.text, model=whole.model, made_at=whole.made_at)
            )
        yield Exported(conversation, messages, tags.get(conversation.id, ()), tuple(carried))
