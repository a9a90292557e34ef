"""Lookup of imported conversations that already exist, by their origin, and for our own exports by uid."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from app.domain.conversations import OWN_SOURCE, Conversation
from app.domain.ids import ConversationId, MessageId
from app.domain.transfer import ImportedConversation
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges

ConversationKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ExistingConversation:
    """A conversation that was imported before. `message_ids` are local ids by the source's ids."""

    conversation: Conversation
    message_ids: Mapping[str, MessageId]
    tags: Collection[str]


def key_of(found: ImportedConversation) -> ConversationKey:
    """Return the permanent key of a conversation: its source and its id there."""
    return found.source, found.source_id


def message_key(found: ImportedConversation, source_id: str) -> str:
    """Return the permanent key of a message; ids of some sources are unique in a conversation only."""
    return f"{found.source_id}/{source_id}"


def find_existing(
    store: Store, batch: Sequence[ImportedConversation]
) -> Mapping[ConversationKey, ExistingConversation]:
    """Return which of the conversations exist, with a few queries for all. Blocking."""

    def read(_cursor: object) -> Mapping[ConversationKey, ExistingConversation]:
        existing: dict[ConversationKey, ExistingConversation] = {}
        for source in {found.source for found in batch}:
            same_source = [each for each in batch if each.source == source]
            existing |= _existing_of_source(store, source, same_source)
        return existing

    return store.read(read)


def _existing_of_source(
    store: Store, source: str, batch: Sequence[ImportedConversation]
) -> Mapping[ConversationKey, ExistingConversation]:
    conversations = Conversations(store)
    source_ids = [found.source_id for found in batch]
    ids = dict(conversations.imported_ids(source, "conversation", source_ids))
    if source == OWN_SOURCE:
        ids |= conversations.ids_by_uid(source_ids)
    rows = conversations.by_ids(ids.values())
    tags = conversations.tags_of(list(rows))
    existing = [found for found in batch if ids.get(found.source_id) in rows]
    messages = _message_ids(store, source, existing, ids) if existing else {}
    return {
        key_of(found): ExistingConversation(
            rows[ConversationId(ids[found.source_id])],
            messages[found.source_id],
            tags.get(ids[found.source_id], ()),
        )
        for found in existing
    }


def _message_ids(
    store: Store, source: str, batch: Sequence[ImportedConversation], ids: Mapping[str, int]
) -> Mapping[str, Mapping[str, MessageId]]:
    """Return local message ids, by the source's ids of conversation and message."""
    keys = {
        message_key(found, each.source_id): (found.source_id, each.source_id)
        for found in batch
        for each in found.messages
    }
    message_ids: dict[str, dict[str, MessageId]] = {found.source_id: {} for found in batch}
    for key, local in Conversations(store).imported_ids(source, "message", keys).items():
        conversation, message = keys[key]
        message_ids[conversation][message] = MessageId(local)
    if source == OWN_SOURCE:
        for conversation in message_ids:
            message_ids[conversation] |= Exchanges(store).ids_by_uid(ids[conversation])
    return message_ids
