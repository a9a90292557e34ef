"""Facts on their way between two books: out of one, and into one that may know them already.

On both a fact is known by its uid. Where both have it, every wording is kept and the one made last
is the one it has. What was forgotten here is not taken, nor what holds here in the same words.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.domain.changes import Change, FactPut
from app.domain.conversations import Conversation
from app.domain.facts import Fact, FactVersion
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.transfer import CarriedFact, CarriedWording
from app.domain.turn_text import content_hash
from app.storage.conversations import Conversations
from app.storage.exchanges import Exchanges
from app.storage.facts import Facts, fact_changes
from app.storage.store import Store

_AT_ONCE = 200
_CONVERSATIONS_KNOWN = 16


def carried_out(store: Store, conversation_id: int | None) -> tuple[CarriedFact, ...]:
    """Return the facts of a conversation, or those the user wrote (None), by id. Blocking."""
    facts = Facts(store)
    found = facts.of_conversation(conversation_id)
    if not found:
        return ()
    versions = facts.versions_of([fact.id for fact in found])
    named = _Names(store, [each for own in versions.values() for each in own])
    ended_by = facts.by_ids(each.superseded_by for each in found if each.superseded_by)
    successors: Mapping[int | None, str] = {
        each: known.fact.uid for each, known in ended_by.items()
    }
    return tuple(
        CarriedFact(
            uid=fact.uid,
            wording=named.wording(versions[fact.id][0]),
            subject=fact.subject,
            valid_until=fact.valid_until,
            superseded_by=successors.get(fact.superseded_by, ""),
            pinned=fact.pinned,
            earlier=tuple(named.wording(each) for each in reversed(versions[fact.id][1:])),
        )
        for fact in found
        if fact.id in versions
    )


class _Names:
    """The uids of what versions of facts were learned from."""

    def __init__(self, store: Store, versions: Sequence[FactVersion]) -> None:
        exchanges = Exchanges(store)
        asked = [v.exchange_id for v in versions if v.exchange_id and not v.message_id]
        self._first = {
            each: exchange.message_ids[0]
            for each, exchange in exchanges.by_ids(asked).items()
            if exchange.message_ids
        }
        messages = [v.message_id for v in versions if v.message_id]
        self._messages = exchanges.messages([*messages, *self._first.values()])
        talks = {v.conversation_id for v in versions if v.conversation_id}
        self._conversations = Conversations(store).by_ids(talks)

    def wording(self, version: FactVersion) -> CarriedWording:
        """Return a version with the uids of its source."""
        message_id = version.message_id
        if message_id is None and version.exchange_id is not None:
            message_id = self._first.get(version.exchange_id)
        message = None if message_id is None else self._messages.get(message_id)
        talk = None
        if version.conversation_id is not None:
            talk = self._conversations.get(version.conversation_id)
        return CarriedWording(
            text=version.text,
            category=version.category,
            model=version.model,
            said_at=version.said_at,
            made_at=version.made_at,
            conversation=talk.uid if talk is not None else "",
            message=message.uid if message is not None else "",
        )


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a wording was said, in our ids."""

    conversation_id: ConversationId | None = None
    exchange_id: ExchangeId | None = None
    message_id: MessageId | None = None


class FactAdoption:
    """Stores facts that came with an import, once their conversations are stored. Blocking."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._facts = Facts(store)
        self._sources = _Sources(store)

    def adopt(self, carried: Iterable[CarriedFact]) -> None:
        """Store what is new of facts, a few hundred in a commit; raise StorageError.

        One whose conversation is not here, or is private, is left out.
        """
        wanted = {fact.uid: fact for fact in carried}
        ids = {uid: fact.id for uid, fact in self._facts.by_uid(wanted).items()}
        for batch in _batches(list(wanted.values())):
            self._adopt(batch, ids)
        self._link(wanted.values(), ids)

    def _adopt(self, batch: Sequence[CarriedFact], ids: dict[str, PassageId]) -> None:
        """Store a batch; `ids` learns our ids of its facts, of those that hold here too."""
        here = self._facts.by_uid(fact.uid for fact in batch)
        versions = self._facts.versions_of(fact.id for fact in here.values())
        held = dict(self._facts.holding(fact.wording.text for fact in batch))
        refused = self._facts.refused(content_hash(fact.wording.text) for fact in batch)
        changes: list[Change] = []
        for fact in batch:
            known = here.get(fact.uid)
            text = fact.wording.text
            if known is not None:
                changes += self._merged(fact, known, versions.get(known.id, ()))
            elif text in held and fact.valid_until is None:
                ids[fact.uid] = held[text]
            elif content_hash(text) not in refused:
                puts = self._new(fact)
                changes += puts
                if isinstance(put := next(iter(puts), None), FactPut):
                    ids[fact.uid] = held[text] = put.fact.id
        if changes:
            self._store.save(*changes)

    def _new(self, fact: CarriedFact) -> list[Change]:
        source = self._sources.of(fact.wording)
        if source is None:
            return []
        whole = Fact(
            id=self._store.ids.passage(),
            uid=fact.uid,
            text=fact.wording.text,
            category=fact.wording.category,
            subject=fact.subject,
            conversation_id=source.conversation_id,
            exchange_id=source.exchange_id,
            message_id=source.message_id,
            said_at=fact.wording.said_at,
            model=fact.wording.model,
            made_at=fact.wording.made_at,
            valid_until=fact.valid_until,
            pinned=fact.pinned,
        )
        return [*self._earlier(whole, fact.earlier, ()), *fact_changes(whole)]

    def _merged(
        self, fact: CarriedFact, known: Fact, versions: Sequence[FactVersion]
    ) -> list[Change]:
        present = {version.made_at for version in versions}
        winner, wordings = known, list(fact.earlier)
        if fact.wording.made_at > known.made_at:
            winner = self._worded(known, fact.wording) or known
            winner = replace(winner, valid_until=fact.valid_until, pinned=fact.pinned)
        else:
            wordings.append(fact.wording)
            if fact.wording.made_at == known.made_at:  # only what names no version may differ
                ends = known.valid_until or fact.valid_until
                winner = replace(known, pinned=known.pinned or fact.pinned, valid_until=ends)
        earlier = self._earlier(known, wordings, present)
        if winner == known and not earlier:
            return []
        return [*earlier, *fact_changes(winner)]

    def _earlier(
        self, fact: Fact, wordings: Iterable[CarriedWording], present: Iterable[datetime]
    ) -> list[Change]:
        """Return what stores wordings that are not there yet; the newest must follow."""
        known = set(present)
        told = (self._worded(fact, each) for each in wordings if each.made_at not in known)
        return [FactPut(each) for each in told if each is not None]

    def _worded(self, fact: Fact, wording: CarriedWording) -> Fact | None:
        source = self._sources.of(wording)
        if source is None:
            return None
        return replace(
            fact,
            text=wording.text,
            category=wording.category,
            model=wording.model,
            said_at=wording.said_at,
            made_at=wording.made_at,
            conversation_id=source.conversation_id,
            exchange_id=source.exchange_id,
            message_id=source.message_id,
        )

    def _link(self, carried: Iterable[CarriedFact], ids: Mapping[str, PassageId]) -> None:
        """Say what superseded what, now that all of them are here."""
        ended = [fact for fact in carried if fact.superseded_by in ids]
        for batch in _batches(ended):
            here = self._facts.by_uid(fact.uid for fact in batch)
            puts = [
                FactPut(replace(known, superseded_by=ids[fact.superseded_by]))
                for fact in batch
                if (known := here.get(fact.uid)) is not None
                and known.valid_until is not None
                and known.superseded_by is None
                and ids[fact.superseded_by] != known.id
            ]
            if puts:
                self._store.save(*puts)


class _Sources:
    """Looks up where wordings were said, conversation after conversation."""

    def __init__(self, store: Store) -> None:
        self._conversations = Conversations(store)
        self._exchanges = Exchanges(store)
        self._known: dict[str, dict[str, _Source] | None] = {}

    def of(self, wording: CarriedWording) -> _Source | None:
        """Return where a wording was said; None if its conversation is not here or is private."""
        if not wording.conversation:
            return _Source()
        if wording.conversation not in self._known:
            if len(self._known) >= _CONVERSATIONS_KNOWN:
                self._known.clear()
            self._known[wording.conversation] = self._messages(wording.conversation)
        messages = self._known[wording.conversation]
        return None if messages is None else messages.get(wording.message, messages[""])

    def _messages(self, uid: str) -> dict[str, _Source] | None:
        """Return places by the messages' uids, and the conversation's own under ""."""
        talk = self._conversation(uid)
        if talk is None or talk.private:
            return None
        ids = self._exchanges.ids_by_uid(talk.id)
        exchange_of = {
            message: exchange.id
            for exchange in self._exchanges.of(talk.id)
            for message in exchange.message_ids
        }
        places = {
            each: _Source(talk.id, exchange_of.get(local), local) for each, local in ids.items()
        }
        return places | {"": _Source(talk.id)}

    def _conversation(self, uid: str) -> Conversation | None:
        here = self._conversations.ids_by_uid([uid])
        return next(iter(self._conversations.by_ids(here.values()).values()), None)


def _batches(facts: Sequence[CarriedFact]) -> Iterator[Sequence[CarriedFact]]:
    for start in range(0, len(facts), _AT_ONCE):
        yield facts[start : start + _AT_ONCE]
