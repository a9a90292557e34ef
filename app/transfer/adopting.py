"""A foreign conversation becomes ours: ids, turns, passages, tags, summaries, origins."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime

from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationPut,
    ExchangePut,
    MessagesAdded,
    OriginsAdded,
    PassagesPut,
    TagsChanged,
)
from app.domain.conversations import Conversation, Exchange, Message, TitleOrigin
from app.domain.events import Changed
from app.domain.ids import ConversationId, MessageId, derived_uid
from app.domain.passages import PassageKind
from app.domain.text import one_line
from app.domain.transfer import ImportedConversation, ImportedMessage
from app.domain.turn_text import turn_passage
from app.domain.turns import calculate_exchanges
from app.storage.exchanges import Exchanges
from app.storage.passages import Passages
from app.storage.store import Store
from app.storage.times import now
from app.transfer.carrying import summary_changes
from app.transfer.present import OWN_SOURCE, Present, find_present, key_of, message_key

_TITLE_LIMIT_CHARS = 60
_UNTITLED = "Untitled conversation"


@dataclass(frozen=True, slots=True)
class Adopted:
    """What became of one conversation."""

    is_new: bool
    new_turns: int
    new_messages: int
    duplicates: int


class Written:
    """A batch on its way into the store."""

    def __init__(self) -> None:
        self._keys: set[tuple[str, str]] = set()
        self._made: list[tuple[Adopted, Future[Changed] | None]] = []

    def add(
        self, found: ImportedConversation, adopted: Adopted, saved: "Future[Changed] | None"
    ) -> None:
        """Note what is being saved of a conversation; None when nothing is."""
        self._keys.add(key_of(found))
        self._made.append((adopted, saved))

    def shares_with(self, batch: Iterable[ImportedConversation]) -> bool:
        """Return whether a conversation of `batch` is among these."""
        return any(key_of(found) in self._keys for found in batch)

    def results(self) -> Iterator[Adopted]:
        """Yield what became of each conversation once it is durable; raises StorageError."""
        for adopted, saved in self._made:
            if saved is not None:
                saved.result()
            yield adopted


class Adoption:
    """Stores imported conversations, a batch at a time. Blocking."""

    def __init__(
        self, store: Store, give_way: Callable[[], None] = lambda: None, *, dry_run: bool = False
    ) -> None:
        """`give_way` is called after some milliseconds of work; it may rest."""
        self._store = store
        self._give_way = give_way
        self._dry_run = dry_run
        self._exchanges = Exchanges(store)
        self._passages = Passages(store)

    def adopt(self, batch: Sequence[ImportedConversation]) -> Written:
        """Begin to store what is new of `batch`, in which no conversation stands twice.

        What the batch before had of them must have been stored. Raises StorageError.
        """
        known = find_present(self._store, batch)
        written = Written()
        for found in batch:
            self._give_way()
            here = known.get(key_of(found))
            changes, adopted = self._new(found) if here is None else self._grown(found, here)
            saved = self._store.commit(*changes) if changes and not self._dry_run else None
            written.add(found, adopted, saved)
        return written

    # -- a conversation not seen before

    def _new(self, found: ImportedConversation) -> tuple[list[Change], Adopted]:
        times = [each.created_at for each in found.messages if each.created_at is not None]
        begun = found.created_at or min(times, default=now())
        conversation_id = self._store.ids.conversation()
        messages = self._messages(found, found.messages, conversation_id, {}, begun)
        ids = {
            each.source_id: message.id
            for each, message in zip(found.messages, messages, strict=True)
        }
        leaf = ids.get(found.visible_leaf or "") or messages[-1].id
        conversation = Conversation(
            id=conversation_id,
            uid=found.uid or derived_uid(f"{found.source}/{found.source_id}", _ms(begun)),
            title=found.title or _title_from(messages),
            title_origin=found.title_origin if found.title else TitleOrigin.FIRST_WORDS,
            source=found.first_source or found.source,
            created_at=begun,
            updated_at=found.updated_at or max(times, default=begun),
            visible_leaf_id=leaf,
            pinned=found.pinned,
            archived=found.archived,
            private=found.private,
            model=found.model if found.source == OWN_SOURCE else None,
            recalls=found.recalls,
        )
        exchanges = calculate_exchanges(messages, self._store.ids.exchange)
        changes: list[Change] = [
            ConversationPut(conversation),
            MessagesAdded(tuple(messages)),
            *map(ExchangePut, exchanges),
            OriginsAdded(found.source, "conversation", ((found.source_id, conversation_id),)),
            OriginsAdded(found.source, "message", _origins(found, ids, found.messages)),
        ]
        if found.tags:
            changes.append(TagsChanged(conversation_id, found.tags))
        if not found.private:
            changes.append(self._passages_of(exchanges, messages))
            changes += summary_changes(
                found.summaries, conversation, exchanges, ids, self._store.ids.passage
            )
        return changes, Adopted(True, len(exchanges), len(messages), 0)

    # -- one that was imported before

    def _grown(self, found: ImportedConversation, known: Present) -> tuple[list[Change], Adopted]:
        fresh = [each for each in found.messages if each.source_id not in known.message_ids]
        duplicates = len(found.messages) - len(fresh)
        changes = _retold(found, known)
        if not fresh:
            return changes, Adopted(False, 0, 0, duplicates)
        conversation = known.conversation
        here = conversation.id
        present = self._exchanges.messages_in(here)
        added = self._messages(found, fresh, here, known.message_ids, conversation.created_at)
        ids = dict(known.message_ids)
        ids |= {each.source_id: message.id for each, message in zip(fresh, added, strict=True)}
        before = {exchange.id: exchange for exchange in self._exchanges.of(here)}
        everything = [*present, *added]
        exchanges = calculate_exchanges(
            everything, self._store.ids.exchange, tuple(before.values())
        )
        changed = [each for each in exchanges if before.get(each.id) != each]
        changes += [
            MessagesAdded(tuple(added)),
            *map(ExchangePut, changed),
            ConversationEdited(
                here,
                visible_leaf_id=_leaf(found, known, ids) or added[-1].id,
                updated_at=found.updated_at or added[-1].created_at,
            ),
            OriginsAdded(found.source, "message", _origins(found, ids, fresh)),
        ]
        if not conversation.private:
            changes.append(self._passages_of(changed, everything, grown=True))
        new_turns = sum(each.id not in before for each in exchanges)
        return changes, Adopted(False, new_turns, len(added), duplicates)

    # -- both

    def _messages(
        self,
        found: ImportedConversation,
        wanted: Sequence[ImportedMessage],
        conversation_id: ConversationId,
        ids: Mapping[str, MessageId],
        begun: datetime,
    ) -> list[Message]:
        """Return `wanted` as messages of ours; one without a date has its predecessor's."""
        places = dict(ids)
        messages: list[Message] = []
        at = begun
        for each, message_id in zip(wanted, self._store.ids.messages(len(wanted)), strict=True):
            self._give_way()
            at = each.created_at or at
            places[each.source_id] = message_id
            messages.append(
                Message(
                    id=message_id,
                    uid=_uid(found, each, at),
                    conversation_id=conversation_id,
                    parent_id=places.get(each.parent) if each.parent is not None else None,
                    role=each.role,
                    blocks=each.blocks,
                    created_at=at,
                    model=each.model,
                    raw=each.raw,
                )
            )
        return messages

    def _passages_of(
        self, exchanges: Iterable[Exchange], messages: Iterable[Message], *, grown: bool = False
    ) -> PassagesPut:
        by_id = {message.id: message for message in messages}
        made = []
        replaced: list[int] = []
        for exchange in exchanges:
            if grown:
                replaced += self._passages.of_source(PassageKind.TURN, exchange.id)
            self._give_way()
            own = [by_id[each] for each in exchange.message_ids]
            passage = turn_passage(self._store.ids.passage(), exchange, own)
            if passage is not None:
                made.append(passage)
        return PassagesPut(tuple(made), tuple(replaced))


def _origins(
    found: ImportedConversation,
    ids: Mapping[str, MessageId],
    messages: Sequence[ImportedMessage],
) -> tuple[tuple[str, int], ...]:
    return tuple((message_key(found, each.source_id), ids[each.source_id]) for each in messages)


def _retold(found: ImportedConversation, known: Present) -> list[Change]:
    """Return what an export says anew of a conversation itself: a title it lacked, more tags."""
    here, changes = known.conversation, list[Change]()
    origins = list(TitleOrigin)
    if found.title and origins.index(found.title_origin) > origins.index(here.title_origin):
        changes.append(
            ConversationEdited(here.id, title=found.title, title_origin=found.title_origin)
        )
    if added := tuple(tag for tag in found.tags if tag not in known.tags):
        changes.append(TagsChanged(here.id, added))
    return changes


def _leaf(
    found: ImportedConversation, known: Present, ids: Mapping[str, MessageId]
) -> MessageId | None:
    """Return the message to be shown last: where the talk went on here since, it stays there."""
    shown = known.conversation.visible_leaf_id
    if shown is not None and all(ids[each.source_id] != shown for each in found.messages):
        return shown
    return ids.get(found.visible_leaf or "")


def _title_from(messages: Sequence[Message]) -> str:
    words = next((message.text for message in messages if message.opens_turn), "")
    return one_line(words, _TITLE_LIMIT_CHARS) or _UNTITLED


def _uid(found: ImportedConversation, message: ImportedMessage, at: datetime) -> str:
    """Return a message's uid: two machines that import the same export agree on it."""
    if found.source == OWN_SOURCE:
        return message.source_id
    return derived_uid(f"{found.source}/{message_key(found, message.source_id)}", _ms(at))


def _ms(moment: datetime) -> int:
    return max(0, int(moment.timestamp() * 1000))
