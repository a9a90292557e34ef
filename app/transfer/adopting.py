"""A foreign conversation becomes ours: ids, turns, passages, tags, summaries, origins."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    SummaryPut,
    TagsChanged,
)
from app.domain.conversations import Conversation, Exchange, Message, TitleOrigin
from app.domain.events import Changed
from app.domain.ids import ConversationId, MessageId, new_uid
from app.domain.passages import PassageKind
from app.domain.text import one_line
from app.domain.transfer import ImportedConversation, ImportedMessage
from app.domain.turn_text import turn_passage
from app.domain.turns import calculate_exchanges
from app.storage.conversations import Conversations
from app.storage.exchanges import Exchanges
from app.storage.passages import Passages
from app.storage.store import Store
from app.storage.times import now

_TITLE_LIMIT_CHARS = 60
_UNTITLED = "Untitled conversation"
OWN_SOURCE = "commonplace"


@dataclass(frozen=True, slots=True)
class Adopted:
    """What became of one conversation."""

    is_new: bool
    new_turns: int
    new_messages: int
    duplicates: int


class Adoption:
    """Stores imported conversations, a batch at a time. Blocking."""

    def __init__(self, store: Store, *, dry_run: bool = False) -> None:
        self._store = store
        self._dry_run = dry_run
        self._conversations = Conversations(store)
        self._exchanges = Exchanges(store)
        self._passages = Passages(store)

    def adopt(self, batch: Sequence[ImportedConversation]) -> Iterator[Adopted]:
        """Store what is new of `batch` (no conversation twice in it); yield what became of each.

        All of them are durable when the first is yielded. Raises StorageError.
        """
        known = self._known(batch)
        written: list[tuple[Adopted, Future[Changed] | None]] = []
        for found in batch:
            here = known.get(_key(found))
            changes, adopted = self._new(found) if here is None else self._grown(found, here)
            saved = self._store.commit(*changes) if changes and not self._dry_run else None
            written.append((adopted, saved))
        for _, saved in written:
            if saved is not None:
                saved.result()
        yield from (adopted for adopted, _ in written)

    def _known(
        self, batch: Sequence[ImportedConversation]
    ) -> Mapping[tuple[str, str], ConversationId]:
        """Return which of the conversations are here already, by source and source id."""
        known: dict[tuple[str, str], ConversationId] = {}
        for source in {found.source for found in batch}:
            ids = [found.source_id for found in batch if found.source == source]
            of_source = self._conversations.imported_ids(source, "conversation", ids)
            known |= {(source, each): ConversationId(here) for each, here in of_source.items()}
            if source == OWN_SOURCE:
                by_uid = self._conversations.ids_by_uid(ids)
                known |= {(source, uid): here for uid, here in by_uid.items()}
        return known

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
            uid=found.uid or new_uid(_ms(begun)),
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
        )
        exchanges = calculate_exchanges(messages, self._store.ids.exchange)
        changes: list[Change] = [
            ConversationPut(conversation),
            MessagesAdded(tuple(messages)),
            *map(ExchangePut, exchanges),
            OriginsAdded(found.source, "conversation", ((found.source_id, conversation_id),)),
            OriginsAdded(found.source, "message", _origins(found, ids)),
        ]
        if not found.private:
            changes.append(self._passages_of(exchanges, messages))
        if found.tags:
            changes.append(TagsChanged(conversation_id, found.tags))
        changes += _summaries(found, conversation, exchanges, ids)
        return changes, Adopted(True, len(exchanges), len(messages), 0)

    # -- one that was imported before

    def _grown(
        self, found: ImportedConversation, here: ConversationId
    ) -> tuple[list[Change], Adopted]:
        ids = self._message_ids(found, here)
        fresh = [each for each in found.messages if each.source_id not in ids]
        duplicates = len(found.messages) - len(fresh)
        if not fresh:
            return [], Adopted(False, 0, 0, duplicates)
        present = self._exchanges.messages_in(here)
        conversation = self._conversations.get(here)
        added = self._messages(found, fresh, here, ids, conversation.created_at)
        ids |= {each.source_id: message.id for each, message in zip(fresh, added, strict=True)}
        known = self._exchanges.of(here)
        everything = [*present, *added]
        exchanges = calculate_exchanges(everything, self._store.ids.exchange, known)
        before = {exchange.id: exchange for exchange in known}
        changed = [each for each in exchanges if before.get(each.id) != each]
        changes: list[Change] = [
            MessagesAdded(tuple(added)),
            *map(ExchangePut, changed),
            ConversationEdited(
                here,
                visible_leaf_id=ids.get(found.visible_leaf or "") or added[-1].id,
                updated_at=found.updated_at or added[-1].created_at,
            ),
            OriginsAdded(found.source, "message", _origins(found, ids, fresh)),
        ]
        if not conversation.private:
            changes.append(self._passages_of(changed, everything, grown=True))
        new_turns = sum(each.id not in before for each in exchanges)
        return changes, Adopted(False, new_turns, len(added), duplicates)

    def _message_ids(
        self, found: ImportedConversation, here: ConversationId
    ) -> dict[str, MessageId]:
        """Return our ids of the messages that are here already, by the source's ids."""
        keys = {_message_key(found, each.source_id): each.source_id for each in found.messages}
        known = self._conversations.imported_ids(found.source, "message", keys)
        ids = {keys[key]: MessageId(local) for key, local in known.items()}
        if found.source == OWN_SOURCE:
            ids |= {each.uid: each.id for each in self._exchanges.messages_in(here)}
        return ids

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
            at = each.created_at or at
            places[each.source_id] = message_id
            messages.append(
                Message(
                    id=message_id,
                    uid=each.source_id if found.source == OWN_SOURCE else new_uid(_ms(at)),
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
            own = [by_id[each] for each in exchange.message_ids]
            passage = turn_passage(self._store.ids.passage(), exchange, own)
            if passage is not None:
                made.append(passage)
        return PassagesPut(tuple(made), tuple(replaced))


def _key(found: ImportedConversation) -> tuple[str, str]:
    return found.source, found.source_id


def _message_key(found: ImportedConversation, message_source_id: str) -> str:
    """Return what names a message of a source for ever: not every source's ids are unique alone."""
    return f"{found.source_id}/{message_source_id}"


def _origins(
    found: ImportedConversation,
    ids: Mapping[str, MessageId],
    messages: Sequence[ImportedMessage] | None = None,
) -> tuple[tuple[str, int], ...]:
    wanted = found.messages if messages is None else messages
    return tuple((_message_key(found, each.source_id), ids[each.source_id]) for each in wanted)


def _summaries(
    found: ImportedConversation,
    conversation: Conversation,
    exchanges: Sequence[Exchange],
    ids: Mapping[str, MessageId],
) -> list[SummaryPut]:
    """Return the summaries that came along, of exchanges whose messages all came too."""
    by_end = {exchange.message_ids[-1]: exchange for exchange in exchanges}
    puts = []
    for carried in found.summaries:
        if carried.last_message is None:
            kind, source_id, stamp = "conversation", int(conversation.id), "carried"
        elif exchange := by_end.get(ids.get(carried.last_message, MessageId(0))):
            kind, source_id = "exchange", int(exchange.id)
            stamp = f"{len(exchange.message_ids)}:{max(exchange.message_ids)}"
        else:
            continue
        puts.append(
            SummaryPut(
                kind, source_id, conversation.id, carried.text, carried.model, stamp,
                carried.made_at,
            )
        )  # fmt: skip
    return puts


def _title_from(messages: Sequence[Message]) -> str:
    words = next((message.text for message in messages if message.opens_turn), "")
    return one_line(words, _TITLE_LIMIT_CHARS) or _UNTITLED


def _ms(moment: datetime) -> int:
    return max(0, int(moment.timestamp() * 1000))
