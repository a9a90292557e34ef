"""Growth of imported messages: what a followed program added to a message after it was stored.

Programs log a reply in pieces, or rewrite it as it grows, and their files are read in between. Stored
messages do not change: what was added becomes a message that continues the stored one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from app.domain.attachments import files_of
from app.domain.conversations import Block, File, Message, Role, Text, Thinking
from app.domain.ids import MessageId
from app.domain.records.sources import SourceName
from app.domain.transfer import ImportedConversation, ImportedMessage

_SOURCES = frozenset(SourceName)


def may_grow(
    found: ImportedConversation, known: Mapping[str, MessageId]
) -> dict[MessageId, ImportedMessage]:
    """Return the known messages that may have grown, by local id: those of the last known turn."""
    if found.source not in _SOURCES:
        return {}
    users = [
        place
        for place, each in enumerate(found.messages)
        if each.role is Role.USER and each.source_id in known
    ]
    last_turn = found.messages[users[-1] if users else 0 :]
    stored = ((known.get(each.source_id), each) for each in last_turn)
    return {message_id: each for message_id, each in stored if message_id is not None}


def has_grown(
    found: ImportedConversation, known: Mapping[str, MessageId], stored: Mapping[MessageId, Message]
) -> bool:
    """Return whether any of the messages that may have grown has, or was continued before."""
    return any(
        rest_of(stored[message_id].blocks, now.blocks)
        for message_id, now in may_grow(found, known).items()
        if message_id in stored and stored[message_id].blocks
    )


class Addition(NamedTuple):
    """What an import adds to a known conversation.

    Attributes:
        messages: The messages to add, parents first.
        known: The local ids of known messages, of one that was continued that of its last part.
        ends: The added messages that continue known ones, by what they continue.
    """

    messages: list[ImportedMessage]
    known: dict[str, MessageId]
    ends: dict[str, str]


def addition_to(
    found: ImportedConversation, known: Mapping[str, MessageId], here: Iterable[Message]
) -> Addition:
    """Return what to add; `here` are all stored messages, none if nothing can have grown."""
    stored = {each.id: each for each in here}
    imported = set(known.values())
    unknown = (each for each in stored.values() if each.id not in imported)
    parts = {each.parent_id: each for each in unknown if each.role is not Role.USER}
    ends: dict[str, str] = {}  # of a message that has grown, what was added
    last_ids = dict(known)
    added: list[ImportedMessage] = []
    for message_id, now in may_grow(found, known).items():
        if message_id not in stored:
            continue
        last, rest = _stored_part(stored[message_id], parts, now.blocks)
        last_ids[now.source_id] = last.id
        if rest:
            name = f"{now.source_id}+{len(now.blocks) - len(rest)}"
            added.append(replace(now, source_id=name, parent=now.source_id, blocks=rest))
            ends[now.source_id] = name
    added += (
        replace(each, parent=ends.get(each.parent or "", each.parent))
        for each in _unknown(found, known, stored)
    )
    return Addition(added, last_ids, ends)


def _unknown(
    found: ImportedConversation, known: Mapping[str, MessageId], stored: Mapping[MessageId, Message]
) -> Iterator[ImportedMessage]:
    """Yield the messages that are not known, below those that are as these were stored.

    Earlier versions stored a reply of Gemini CLI below the tools that it calls, and none that says nothing.
    Instructions above messages that were stored without them are left out.
    """
    above = {each.parent for each in found.messages if each.source_id in known}
    for each in found.messages:
        parent = each.parent or ""
        reply = parent.removesuffix("/results")
        if each.source_id in known or f"{each.source_id}/results" in known:
            continue
        if each.role is Role.SYSTEM and each.parent is None and each.source_id in above:
            continue
        last = stored.get(known[reply]) if reply != parent and reply in known else None
        is_below = last is not None and parent in known and last.parent_id == known[parent]
        yield replace(each, parent=reply) if is_below else each


def with_new_files(
    found: ImportedConversation, known: Mapping[str, MessageId], here: Iterable[Message]
) -> ImportedConversation:
    """Return a conversation in which only files that were not read before have keys.

    `here` are all stored messages; a file of theirs may have been forgotten since.
    """
    added, _, ends = addition_to(found, known, here)
    blocks = {each.source_id: each.blocks for each in added}

    def kept(message: ImportedMessage) -> ImportedMessage:
        if message.source_id not in known:
            return message
        count = len(files_of(blocks.get(ends.get(message.source_id, ""), ())))
        old = len(message.file_keys) - count
        return replace(message, file_keys=("",) * old + message.file_keys[old:])

    return replace(found, messages=tuple(map(kept, found.messages)))


def without_files(message: ImportedMessage) -> ImportedMessage:
    return replace(message, file_keys=())


def rest_of(stored: Sequence[Block], now: Sequence[Block]) -> tuple[Block, ...] | None:
    """Return what `now` has after the stored blocks; None if it does not begin with them."""
    left = list(now)
    for block in stored:
        first = left[0] if left else None
        if block == first or (isinstance(block, File) and type(first) is type(block)):
            left.pop(0)
        elif (
            isinstance(block, Text | Thinking)
            and isinstance(first, Text | Thinking)
            and type(block) is type(first)
            and first.text.startswith(block.text)
        ):
            left[0] = replace(first, text=first.text[len(block.text) :])
        else:
            return None
    return tuple(left)


def _stored_part(
    last: Message, parts: Mapping[MessageId | None, Message], blocks: Sequence[Block]
) -> tuple[Message, tuple[Block, ...]]:
    """Return the last stored part of a message that may have grown, and its blocks after that.

    `parts` are the messages that no import knows, by what they follow. Nothing is added behind a
    part that was changed here, as by forgetting it.
    """
    rest = rest_of(last.blocks, blocks) if last.blocks else None
    while rest and (part := parts.get(last.id)) is not None and part.role is last.role:
        last, rest = part, rest_of(part.blocks, rest) if part.blocks else None
    return last, rest or ()
