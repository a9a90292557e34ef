"""What of an import is here already, found by where it came from, and for our own by uid."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from app.domain.conversations import Conversation
from app.domain.ids import ConversationId, MessageId
from app.domain.transfer import ImportedConversation
from app.storage.conversations import Conversations
from app.storage.exchanges import Exchanges
from app.storage.store import Store

OWN_SOURCE = "commonplace"

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Present:
    """A conversation that is here already. `message_ids` are ours by the source's ids."""

    conversation: Conversation
    message_ids: Mapping[str, MessageId]
    tags: Collection[str]


def key_of(found: ImportedConversation) -> Key:
    """Return what names a conversation for ever: its source, and its id there."""
    return found.source, found.source_id


def message_key(found: ImportedConversation, source_id: str) -> str:
    """Return what names a message of a source for ever: not every source's ids are unique alone."""
    return f"{found.source_id}/{source_id}"


def find_present(store: Store, batch: Sequence[ImportedConversation]) -> Mapping[Key, Present]:
    """Return which of the conversations are here already, with a few queries for all. Blocking."""
    return store.read(partial(_present, store, batch))


def _present(
    store: Store, batch: Sequence[ImportedConversation], _cursor: object
) -> Mapping[Key, Present]:
    present: dict[Key, Present] = {}
    for source in {found.source for found in batch}:
        present |= _of_source(store, source, [each for each in batch if each.source == source])
    return present


def _of_source(
    store: Store, source: str, batch: Sequence[ImportedConversation]
) -> Mapping[Key, Present]:
    conversations = Conversations(store)
    names = [found.source_id for found in batch]
    here = dict(conversations.imported_ids(source, "conversation", names))
    if source == OWN_SOURCE:
        here |= conversations.ids_by_uid(names)
    rows = conversations.by_ids(here.values())
    tags = conversations.tags_of(list(rows))
    found_here = [found for found in batch if here.get(found.source_id) in rows]
    if not found_here:
        return {}
    messages = _message_ids(store, source, found_here, here)
    return {
        key_of(found): Present(
            rows[ConversationId(here[found.source_id])],
            messages[found.source_id],
            tags.get(here[found.source_id], ()),
        )
        for found in found_here
    }


def _message_ids(
    store: Store, source: str, batch: Sequence[ImportedConversation], here: Mapping[str, int]
) -> Mapping[str, Mapping[str, MessageId]]:
    """Return our ids of messages, by the source's ids of conversation and message."""
    keys = {
        message_key(found, each.source_id): (found.source_id, each.source_id)
        for found in batch
        for each in found.messages
    }
    ids: dict[str, dict[str, MessageId]] = {found.source_id: {} for found in batch}
    imported = Conversations(store).imported_ids(source, "message", keys)
    for key, local in imported.items():
        name, message = keys[key]
        ids[name][message] = MessageId(local)
    if source == OWN_SOURCE:
        for name in ids:
            ids[name] |= Exchanges(store).ids_by_uid(here[name])
    return ids
