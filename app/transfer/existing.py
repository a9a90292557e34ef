"""Lookup of imported conversations that already exist, by their origin, and for our own exports by uid."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.domain.changes import Change, ConversationEdited, OriginsAdded, TagsChanged
from app.domain.conversations import OWN_SOURCE, Conversation, Message, Role, Text, TitleOrigin
from app.domain.ids import ConversationId, MessageId, derived_uid, milliseconds
from app.domain.transfer import ImportedConversation, ImportedMessage, PortableOrigin
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.forgotten import source_key

ConversationKey = tuple[str, str]
OriginKey = tuple[str, str, str]  # the source, the kind of the record, and the source's id of it


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


def created_at_of(found: ImportedConversation) -> datetime:
    """Return when a conversation began, the present if its export has no times."""
    times = [each.created_at for each in found.messages if each.created_at is not None]
    return found.created_at or min(times, default=now())


def uid_of(found: ImportedConversation, created_at: datetime) -> str:
    """Return the uid of a new conversation: the same in all libraries that import the same export."""
    return found.uid or derived_uid(
        source_key(found.source, found.source_id), _uid_ms(found, created_at)
    )


def names_of(found: ImportedConversation) -> tuple[str, str]:
    """Return what is kept of a conversation that was forgotten."""
    return uid_of(found, created_at_of(found)), source_key(found.source, found.source_id)


def message_uid(found: ImportedConversation, message: ImportedMessage, at: datetime) -> str:
    """Return a message's uid: the same in all libraries that import the same export."""
    if found.source == OWN_SOURCE:
        return message.source_id
    return derived_uid(
        f"{found.source}/{message_key(found, message.source_id)}", _uid_ms(found, at)
    )


def _uid_ms(found: ImportedConversation, at: datetime) -> int:
    return 0 if found.is_undated else milliseconds(at)


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
    else:  # an earlier import, of which only the uids came here with an export of ours
        derived = {uid_of(each, created_at_of(each)): each.source_id for each in batch}
        known = conversations.ids_by_uid(derived)
        ids = {derived[uid]: own for uid, own in known.items()} | ids
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
    known = Exchanges(store).ids_by_uid([ids[found.source_id] for found in batch])
    for key, local in Conversations(store).imported_ids(source, "message", keys).items():
        conversation, message = keys[key]
        message_ids[conversation][message] = MessageId(local)
    for found in batch:
        own = message_ids[found.source_id]
        if source == OWN_SOURCE:
            own |= known[ids[found.source_id]]
        elif len(own) < len(found.messages):
            _add_by_uid(found, known[ids[found.source_id]], own)
    return message_ids


def _add_by_uid(
    found: ImportedConversation, known: Mapping[str, MessageId], own: dict[str, MessageId]
) -> None:
    """Add the messages whose origin is not known here, but whose uid is."""
    at = created_at_of(found)
    for message in found.messages:
        at = message.created_at or at
        local = known.get(message_uid(found, message, at))
        if local is not None:
            own.setdefault(message.source_id, local)


def in_a_row(
    store: Store, found: ImportedConversation, known: ExistingConversation
) -> tuple[ImportedConversation, ExistingConversation]:
    """Return both so that what is new in a list follows the last visible message, also one of the user's here."""
    leaf = known.conversation.visible_leaf_id
    if leaf is None:
        return found, known
    key = Conversations(store).source_id_of(found.source, leaf) or f"here/{leaf}"
    name = last = key.removeprefix(message_key(found, ""))
    messages = []
    for each in found.messages:
        if each.source_id in known.message_ids:
            messages.append(each)
        else:
            messages.append(replace(each, parent=last))
            last = each.source_id
    return replace(found, messages=tuple(messages), visible_leaf=last), replace(
        known, message_ids={**known.message_ids, name: leaf}
    )


def metadata_updates(
    found: ImportedConversation, known: ExistingConversation, noted: Collection[str] | None
) -> list[Change]:
    """Return the changes of the conversation itself: its title, additional tags, and own flags.

    A title of a higher origin is taken, and a later one from the same program. Of another program's tags, those
    that earlier imports `noted` are here or were removed; None if that is not known. One that was given here, too,
    counts as added, so that it is noted.
    """
    conversation, changes = known.conversation, list[Change]()
    times = [each.created_at for each in found.messages if each.created_at is not None]
    changed_at = found.updated_at or max(times, default=None)
    is_newer = changed_at is not None and changed_at >= conversation.updated_at
    origins = list(TitleOrigin)
    rises = origins.index(found.title_origin) - origins.index(conversation.title_origin)
    is_renamed = not rises and is_newer and found.title_origin is TitleOrigin.IMPORT
    if found.title and (rises > 0 or (is_renamed and found.title != conversation.title)):
        changes.append(
            ConversationEdited(conversation.id, title=found.title, title_origin=found.title_origin)
        )
    seen = found.tags if noted is None else noted
    if found.source == OWN_SOURCE:
        seen = known.tags
    if added := tuple(tag for tag in found.tags if tag not in seen):
        changes.append(TagsChanged(conversation.id, added))
    if found.source == OWN_SOURCE and is_newer:
        flags = {
            name: getattr(found, name)
            for name in ("pinned", "archived")
            if getattr(found, name) != getattr(conversation, name)
        }
        if flags:
            changes.append(ConversationEdited(conversation.id, **flags))
    return changes


def richer(
    found: ImportedConversation, known: ExistingConversation, asked: Collection[str]
) -> ImportedConversation | None:
    """Return `found` as the user has `known`, if that is from a record without times of the same conversation.

    Programs log in two places, and a log without times has no results of tools either. None if anything
    was `asked` in the known one that `found` does not have.
    """
    before = known.conversation
    if found.is_undated or known.message_ids or before.deleted_at is not None:
        return None
    undated_uid = uid_of(replace(found, is_undated=True), before.created_at)
    if before.uid != undated_uid or not questions_in(found.messages).issuperset(asked):
        return None
    if before.title_origin is not TitleOrigin.FIRST_WORDS:
        found = replace(found, title=before.title, title_origin=before.title_origin)
    return replace(
        found, pinned=before.pinned, archived=before.archived, private=before.private,
        tags=tuple(dict.fromkeys((*found.tags, *known.tags))), recalls=before.recalls,
        preset=before.preset or "", project=before.project or "",
    )  # fmt: skip


def questions_in(messages: Iterable[Message | ImportedMessage]) -> set[str]:
    users = (each for each in messages if each.role is Role.USER)
    return {block.text for each in users for block in each.blocks if isinstance(block, Text)}


def visible_leaf(
    found: ImportedConversation,
    known: ExistingConversation,
    ids: Mapping[str, MessageId],
    own: Collection[MessageId],
) -> MessageId | None:
    """Return the last visible message; it stays where it is not one of the import's `own`."""
    leaf = known.conversation.visible_leaf_id
    if leaf is not None and leaf not in own:
        return leaf
    return ids.get(found.visible_leaf or "")


def message_origins(
    found: ImportedConversation, ids: Mapping[str, MessageId], messages: Sequence[ImportedMessage]
) -> OriginsAdded:
    """Return the origins of messages; `ids` are local ids by the source's."""
    pairs = ((message_key(found, each.source_id), ids[each.source_id]) for each in messages)
    return OriginsAdded(found.source, "message", tuple(pairs))


class OtherOrigins:
    """The origins of conversations beside their own; each belongs to the first that has it."""

    def __init__(self, store: Store) -> None:
        self._conversations = Conversations(store)
        self._owners: dict[OriginKey, int] = {}  # of all batches: the last may not be stored yet

    def read(self, batch: Sequence[ImportedConversation]) -> None:
        """Read whose those of a batch are; its own ones belong to none of the others."""
        wanted: dict[tuple[str, str], list[str]] = {}
        for found in batch:
            self._owners.setdefault((found.source, "conversation", found.source_id), 0)
            for origin in found.origins:
                for each in _origins(origin, ConversationId(0), {}):
                    wanted.setdefault((each.source, each.kind), []).append(each.pairs[0][0])
        for (source, kind), keys in wanted.items():
            stored = self._conversations.imported_ids(source, kind, keys)
            self._owners |= {(source, kind, key): owner for key, owner in stored.items()}

    def of(
        self, found: ImportedConversation, own: ConversationId, ids: Mapping[str, MessageId]
    ) -> list[OriginsAdded]:
        """Return those that a conversation gets; `ids` are of its messages, by the source's."""
        added: list[OriginsAdded] = []
        for origin in found.origins:
            owner = self._owners.get((origin.source, "conversation", origin.source_id), own)
            if owner == own or (origin.source, origin.source_id) == key_of(found):
                added += [
                    each
                    for each in _origins(origin, own, ids)
                    if each.kind == "message"
                    or (each.source, each.kind, each.pairs[0][0]) not in self._owners
                ]
                self._owners |= {(each.source, each.kind, each.pairs[0][0]): own for each in added}
        return added


def _origins(
    origin: PortableOrigin, conversation_id: ConversationId, ids: Mapping[str, MessageId]
) -> Iterable[OriginsAdded]:
    """Yield another id of a conversation, what started it, and what another library knew of its messages."""
    pairs = tuple((key, ids[uid]) for uid, key in origin.messages if uid in ids)
    yield OriginsAdded(origin.source, "conversation", ((origin.source_id, conversation_id),))
    if origin.parent:
        link = f"{origin.parent}/{origin.source_id}"
        yield OriginsAdded(origin.source, "subagent", ((link, conversation_id),))
    if pairs:
        yield OriginsAdded(origin.source, "message", pairs)
