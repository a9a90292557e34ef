"""Conversion of imported conversations to local ones: ids, turns, passages, tags, summaries, origins."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import datetime
from itertools import chain
from operator import add
from typing import NamedTuple

from app.domain.change_set import ChangeSet
from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationPut,
    ExchangePut,
    MessagesAdded,
    OriginsAdded,
    PassagesPut,
    TagsChanged,
    UidsRestored,
)
from app.domain.conversations import OWN_SOURCE, Conversation, Exchange, Message, TitleOrigin
from app.domain.ids import ConversationId, MessageId
from app.domain.passages import PassageKind
from app.domain.transfer import AddedConversation, ImportedConversation, ImportedMessage
from app.domain.turns import calculate_exchanges, turn_passage
from app.language.titles import first_words
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.forgotten import forgotten_uids
from app.storage.tables.passages.queries import Passages
from app.storage.tables.summaries import Summaries
from app.transfer.existing import (
    ConversationKey,
    ExistingConversation,
    OtherOrigins,
    created_at_of,
    find_existing,
    in_a_row,
    key_of,
    message_origins,
    message_uid,
    metadata_updates,
    names_of,
    questions_in,
    richer,
    uid_of,
    visible_leaf,
)
from app.transfer.growth import addition_to, has_grown, may_grow
from app.transfer.import_history import ImportHistory, notes_of
from app.transfer.other_records import imported_summary_changes, known_uids, newer_summaries
from app.transfer.turns import imported_exchanges, imported_extractions, with_records


class ImportCounts(NamedTuple):
    """Counts of new conversations, turns and messages, and of messages that already existed.

    `forgotten` counts conversations that were forgotten here and so left out, `in_trash` known ones that
    are in the trash and stay there, `restored` those that are taken out of it.
    """

    conversations: int = 0
    turns: int = 0
    messages: int = 0
    duplicates: int = 0
    forgotten: int = 0
    in_trash: int = 0
    restored: int = 0

    def plus(self, other: "ImportCounts") -> "ImportCounts":
        return ImportCounts(*map(add, self, other))


class PendingImport(NamedTuple):
    """A conversation that is being stored; `saved` is None when nothing of it is new."""

    key: ConversationKey
    counts: ImportCounts
    saved: "Future[ChangeSet] | None"
    new: AddedConversation | None = None

    def wait(self) -> ImportCounts:
        """Return the counts once the conversation is durable; raise StorageError."""
        if self.saved is not None:
            self.saved.result()
        return self.counts


class ConversationImporter:
    """Stores imported conversations in batches; they keep presets that are known here. Blocking.

    `history` notes an import of files with these `names`; without it what is imported cannot be undone, nothing
    that was undone returns, and no tags are added.

    Attributes:
        number: That of the import, 0 while it has changed nothing.
    """

    def __init__(
        self,
        store: Store,
        *,
        dry_run: bool = False,
        restore_forgotten: bool = False,
        own: bool = False,
        history: ImportHistory | None = None,
        names: Sequence[str] = (),
    ) -> None:
        self.number = 0
        self._history = history
        self._names = names
        self._store = store
        self._undone = frozenset(history.undone() if history is not None else ())
        self._own = own
        self._restore_forgotten = restore_forgotten
        self._dry_run = dry_run
        self._conversations = Conversations(store)
        self._exchanges = Exchanges(store)
        self._passages = Passages(store)
        self._seen: dict[ConversationKey, set[str]] = {}  # uids and questions, by a dry run
        self._summaries = Summaries(store)
        self._presets = known_uids(store)  # before the import brings others
        self._origins = OtherOrigins(store)

    def store(self, batch: Sequence[ImportedConversation]) -> list[PendingImport]:
        """Begin to store what is new in `batch`, which contains no conversation twice.

        Conversations that the previous batch contained too must be stored before. Raises StorageError.
        """
        existing = find_existing(self._store, batch)
        names = {key_of(found): names_of(found) for found in batch if key_of(found) not in existing}
        forgotten = forgotten_uids(self._store, chain.from_iterable(names.values()))
        self._read_growing(batch, existing)
        self._origins.read(batch)
        pending = []
        for found in batch:
            self._store.throttle()
            known = existing.get(key_of(found))
            before, tags = (None, ()) if known is None else (known.conversation, known.tags)
            poorer = None
            if known is not None and (instead := self._richer(found, known)):
                found, poorer, known = instead, known.conversation.id, None  # noqa: PLW2901
            gone = forgotten.intersection(names.get(key_of(found), ()))
            if gone and not self._restore_forgotten:
                pending.append(PendingImport(key_of(found), ImportCounts(forgotten=1), None))
                continue
            changes, counts = self._new(found) if known is None else self._update(found, known)
            if poorer is not None:
                changes.append(ConversationEdited(poorer, deleted_at=now()))
                counts = ImportCounts(duplicates=counts.messages)
            if self._dry_run:
                counts = self._not_seen_before(found, changes, counts)
            if gone:
                changes.append(UidsRestored(tuple(sorted(gone))))
            is_undone = False
            if known is not None and known.conversation.deleted_at is not None:
                is_undone = known.conversation.id in self._undone
                counts = counts._replace(in_trash=not is_undone, restored=is_undone)
                if is_undone:
                    changes.append(ConversationEdited(known.conversation.id, restored=True))
            changes += self._notes(changes, before, tags, is_restored=is_undone)
            saved = self._store.commit(*changes) if changes and not self._dry_run else None
            new = None
            is_new = counts.conversations or (poorer is not None and not self._dry_run)
            if is_new and isinstance(put := changes[0], ConversationPut):
                made = put.conversation
                new = AddedConversation(made.id, made.title, made.created_at)
            pending.append(PendingImport(key_of(found), counts, saved, new))
        return pending

    def _notes(
        self, changes: Sequence[Change], before: Conversation | None, tags: Collection[str],
        *, is_restored: bool,
    ) -> list[Change]:  # fmt: skip
        """Return the notes of what changes do, so that it can be undone."""
        if self._history is None or self._dry_run:
            return []
        notes = notes_of(changes, before, tags, is_restored=is_restored)
        if notes and not self.number:
            self.number = self._history.begin(self._names)
        return [replace(each, number=self.number) for each in notes]

    def _read_growing(
        self,
        batch: Sequence[ImportedConversation],
        existing: Mapping[ConversationKey, ExistingConversation],
    ) -> None:
        """Read what is stored of the conversations that get messages: one by one takes four times as long."""
        pairs = [
            (found, known) for found in batch if (known := existing.get(key_of(found))) is not None
        ]
        here = [known.conversation.id for _, known in pairs]
        self._noted_tags = self._history.tags(here) if self._history is not None else {}
        last = self._exchanges.messages(
            chain.from_iterable(may_grow(found, known.message_ids) for found, known in pairs)
        )
        growing = [
            known.conversation.id
            for found, known in pairs
            if any(each.source_id not in known.message_ids for each in found.messages)
            or has_grown(found, known.message_ids, last)
        ]
        self._exchanges_here = self._exchanges.of_each(growing)
        self._messages_here = self._exchanges.messages_in_each(growing)
        exchanges = [each.id for some in self._exchanges_here.values() for each in some]
        self._passages_here = self._passages.of_sources(PassageKind.TURN, exchanges)

    def _richer(
        self, found: ImportedConversation, known: ExistingConversation
    ) -> ImportedConversation | None:
        """Return `found` as `richer` does, unless the known one was continued here."""
        said = self._messages_here.get(known.conversation.id, ())
        instead = richer(found, known, questions_in(said)) if said else None
        is_own = instead and not self._conversations.are_imported([each.id for each in said])
        return None if is_own else instead

    def _not_seen_before(
        self, found: ImportedConversation, changes: Sequence[Change], counts: ImportCounts
    ) -> ImportCounts:
        """Return the counts of a dry run without what the same run has counted already."""
        seen = self._seen.setdefault(key_of(found), set())
        is_known = bool(seen)
        added = _added(changes)
        new = {message.id for message in added if message.uid not in seen}
        questions = questions_in(added)
        if len(new) == len(added) and not seen.isdisjoint(questions):
            new = set()  # as `_update` does
        seen.update((message.uid for message in added), questions)
        if not is_known:
            return counts
        put = (each.exchange for each in changes if isinstance(each, ExchangePut))
        turns = sum(not new.isdisjoint(each.message_ids) for each in put)
        return ImportCounts(0, turns, len(new), counts.duplicates + len(added) - len(new))

    def _new(self, found: ImportedConversation) -> tuple[list[Change], ImportCounts]:
        created_at = created_at_of(found)
        times = [each.created_at for each in found.messages if each.created_at is not None]
        conversation_id = self._store.ids.conversation()
        messages = self._messages(found, found.messages, conversation_id, {}, created_at)
        pairs = zip(found.messages, messages, strict=True)
        ids = {each.source_id: message.id for each, message in pairs}
        questions = (message.text for message in messages if message.opens_turn)
        conversation = Conversation(
            id=conversation_id,
            uid=uid_of(found, created_at),
            title=found.title or first_words(questions) or "Untitled conversation",
            title_origin=found.title_origin if found.title else TitleOrigin.FIRST_WORDS,
            source=found.first_source or found.source,
            created_at=created_at,
            updated_at=found.updated_at or max(times, default=created_at),
            visible_leaf_id=ids.get(found.visible_leaf or "") or messages[-1].id,
            pinned=found.pinned,
            archived=found.archived,
            private=found.private,
            model=found.model if found.source == OWN_SOURCE else None,
            recalls=found.recalls,
            project=found.project or None,
            preset=(found.preset or None) if self._own or found.preset in self._presets else None,
        )
        new_id = self._store.ids.exchange
        exchanges = imported_exchanges(found.turns, messages, ids, new_id) or calculate_exchanges(
            messages, new_id
        )
        changes: list[Change] = [
            ConversationPut(conversation),
            MessagesAdded(tuple(messages)),
            *map(ExchangePut, exchanges),
            OriginsAdded(found.source, "conversation", ((found.source_id, conversation_id),)),
            message_origins(found, ids, found.messages),
            *self._origins.of(found, conversation_id, ids),
        ]
        if found.tags:
            changes.append(TagsChanged(conversation_id, found.tags))
        if not found.private:
            changes.append(self._turn_passages(exchanges, messages))
            changes += imported_summary_changes(
                found.summaries, conversation, exchanges, ids, self._store.ids.passage
            )
            changes += imported_extractions(found.turns, exchanges)
        return changes, ImportCounts(1, len(exchanges), len(messages))

    def _update(
        self, found: ImportedConversation, known: ExistingConversation
    ) -> tuple[list[Change], ImportCounts]:
        if found.is_list:
            found, known = in_a_row(self._store, found, known)
        here = known.conversation.id
        duplicates = sum(each.source_id in known.message_ids for each in found.messages)
        new, known_ids, ends = addition_to(
            found, known.message_ids, self._messages_here.get(here, ())
        )
        if not known.message_ids and questions_in(found.messages) & questions_in(
            self._messages_here.get(here, ())
        ):
            new, duplicates = [], len(found.messages)  # another record of it, with other ids
        changes = metadata_updates(found, known, self._noted_tags.get(here))
        if not new:
            if not known.conversation.private:
                exchanges = self._exchanges.of(here) if found.summaries else ()
                changes += self._newer_summaries(found, known, exchanges, known.message_ids)
            others = self._origins.of(found, here, known.message_ids)
            if any(each.kind != "message" for each in others):
                changes += others
            return changes, ImportCounts(duplicates=duplicates)
        added = self._messages(found, new, here, known_ids, known.conversation.created_at)
        ids = {**known_ids, **{e.source_id: m.id for e, m in zip(new, added, strict=True)}}
        ids |= {continued: ids[added_id] for continued, added_id in ends.items()}
        own = {*known.message_ids.values(), *known_ids.values()}
        before = {exchange.id: exchange for exchange in self._exchanges_here.get(here, ())}
        messages = [*self._messages_here.get(here, ()), *added]
        exchanges = calculate_exchanges(messages, self._store.ids.exchange, tuple(before.values()))
        exchanges = tuple(with_records(exchanges, found.turns, ids, before))
        changed = [each for each in exchanges if before.get(each.id) != each]
        changes += [
            MessagesAdded(tuple(added)),
            *map(ExchangePut, changed),
            ConversationEdited(
                here,
                visible_leaf_id=visible_leaf(found, known, ids, own) or added[-1].id,
                updated_at=found.updated_at or added[-1].created_at,
            ),
            message_origins(found, ids, new),
            *self._origins.of(found, here, ids),
        ]
        turns = [each for each in exchanges if each.id not in before]
        if not known.conversation.private:
            replaced = [one for each in changed for one in self._passages_here.get(each.id, ())]
            changes.append(self._turn_passages(changed, messages, replaced))
            changes += self._newer_summaries(found, known, exchanges, ids)
            changes += imported_extractions(found.turns, turns)
        return changes, ImportCounts(0, len(turns), len(added), duplicates)

    def _newer_summaries(
        self,
        found: ImportedConversation,
        known: ExistingConversation,
        exchanges: Sequence[Exchange],
        ids: Mapping[str, MessageId],
    ) -> list[Change]:
        if not found.summaries:
            return []
        here = known.conversation
        newer = newer_summaries(self._summaries, found.summaries, here.id, exchanges, ids)
        return imported_summary_changes(
            newer, here, exchanges, ids, self._store.ids.passage, self._passages.of_source
        )

    def _messages(
        self,
        found: ImportedConversation,
        wanted: Sequence[ImportedMessage],
        conversation_id: ConversationId,
        known_ids: Mapping[str, MessageId],
        created_at: datetime,
    ) -> list[Message]:
        """Return `wanted` with local ids; a message without a date has that of the one before it."""
        ids = dict(known_ids)
        messages: list[Message] = []
        at = created_at
        for each, message_id in zip(wanted, self._store.ids.messages(len(wanted)), strict=True):
            self._store.throttle()
            at = each.created_at or at
            ids[each.source_id] = message_id
            messages.append(
                Message(
                    id=message_id,
                    uid=message_uid(found, each, at),
                    conversation_id=conversation_id,
                    parent_id=ids.get(each.parent) if each.parent is not None else None,
                    role=each.role,
                    blocks=each.blocks,
                    created_at=at,
                    model=each.model,
                    raw=each.raw,
                )
            )
        return messages

    def _turn_passages(
        self,
        exchanges: Iterable[Exchange],
        messages: Iterable[Message],
        replaced: Iterable[int] = (),
    ) -> PassagesPut:
        by_id = {message.id: message for message in messages}
        passages = []
        for exchange in exchanges:
            self._store.throttle()
            own = [by_id[each] for each in exchange.message_ids]
            if (passage := turn_passage(self._store.ids.passage(), exchange, own)) is not None:
                passages.append(passage)
        return PassagesPut(tuple(passages), tuple(replaced))


def _added(changes: Iterable[Change]) -> list[Message]:
    return [m for each in changes if isinstance(each, MessagesAdded) for m in each.messages]
