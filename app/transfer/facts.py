"""Facts in exports and imports: with uids instead of local ids, and merged with the facts that exist.

A fact is identified by its uid in every library. Where both libraries have it, all versions are kept and
the newest is current. Deleted facts are not imported again, nor current facts with an existing text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from app.domain.changes import Change, FactPut
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId, derived_uid
from app.domain.records.facts import BY_IMPORT, Fact, FactCategory, FactVersion
from app.domain.text import content_hash
from app.domain.transfer import ImportedConversation, PortableFact, PortableFactVersion
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.facts import Facts, fact_changes
from app.storage.tables.forgotten import forgotten_uids
from app.transfer.existing import created_at_of, names_of, uid_of

_BATCH_FACTS = 200
_CACHED_CONVERSATIONS = 16


def portable_facts(store: Store, conversation_id: int | None) -> tuple[PortableFact, ...]:
    """Return the facts of a conversation, or those that the user wrote (None), by id. Blocking."""
    facts = Facts(store)
    found = facts.of_conversation(conversation_id)
    if not found:
        return ()
    versions = facts.versions_of([fact.id for fact in found])
    uids = _SourceUids(store, [version for own in versions.values() for version in own])
    superseding = (each.superseded_by for each in found)
    successors: Mapping[int | None, str] = {
        fact_id: known.fact.uid
        for fact_id, known in facts.by_ids(filter(None, superseding)).items()
    }
    return tuple(
        PortableFact(
            uid=fact.uid,
            version=uids.portable(versions[fact.id][0]),
            subject=fact.subject,
            valid_until=fact.valid_until,
            superseded_by=successors.get(fact.superseded_by, ""),
            pinned=fact.pinned,
            earlier=tuple(uids.portable(each) for each in reversed(versions[fact.id][1:])),
        )
        for fact in found
        if fact.id in versions
    )


def new_statements(
    store: Store, found: ImportedConversation, *, restore_forgotten: bool
) -> tuple[PortableFact, ...]:
    """Return the statements of a conversation about the user as facts that are not known here. Blocking.

    One that was forgotten has none unless it is restored.
    """
    if not found.statements:
        return ()
    if not restore_forgotten and forgotten_uids(store, names_of(found)):
        return ()
    source = uid_of(found, created_at_of(found))
    texts = {derived_uid(f"{source} {text}", 0): text for text in found.statements}
    facts, at = Facts(store), now()
    known = {*facts.by_uid(texts), *forgotten_uids(store, texts)}
    current = dict(facts.holding(texts.values()))
    return tuple(
        PortableFact(uid, PortableFactVersion(text, FactCategory.OTHER, BY_IMPORT, at, at, source))
        for uid, text in texts.items()
        if uid not in known and text not in current
    )


class _SourceUids:
    """The uids of the conversations and messages that versions of facts come from."""

    def __init__(self, store: Store, versions: Sequence[FactVersion]) -> None:
        exchanges = Exchanges(store)
        without_message = [v.exchange_id for v in versions if v.exchange_id and not v.message_id]
        self._first_messages = {
            exchange_id: exchange.message_ids[0]
            for exchange_id, exchange in exchanges.by_ids(without_message).items()
            if exchange.message_ids
        }
        messages = [v.message_id for v in versions if v.message_id]
        self._messages = exchanges.messages([*messages, *self._first_messages.values()])
        conversations = {v.conversation_id for v in versions if v.conversation_id}
        self._conversations = Conversations(store).by_ids(conversations)

    def portable(self, version: FactVersion) -> PortableFactVersion:
        message_id = version.message_id
        if message_id is None and version.exchange_id is not None:
            message_id = self._first_messages.get(version.exchange_id)
        message = None if message_id is None else self._messages.get(message_id)
        conversation = None
        if version.conversation_id is not None:
            conversation = self._conversations.get(version.conversation_id)
        return PortableFactVersion(
            text=version.text,
            category=version.category,
            model=version.model,
            said_at=version.said_at,
            made_at=version.made_at,
            conversation=conversation.uid if conversation is not None else "",
            message=message.uid if message is not None else "",
        )


class FactImporter:
    """Stores imported facts after their conversations. Blocking."""

    def __init__(self, store: Store, *, restore_forgotten: bool = False) -> None:
        self._store = store
        self._restore_forgotten = restore_forgotten
        self._facts = Facts(store)
        self._sources = _Sources(store)

    def store(self, imported: Iterable[PortableFact]) -> None:
        """Store new facts and versions, some hundred in a commit; raise StorageError.

        A fact whose conversation does not exist or is private is left out.
        """
        facts = {fact.uid: fact for fact in imported}
        if not self._restore_forgotten:
            for uid in forgotten_uids(self._store, facts):
                del facts[uid]
        ids = {uid: fact.id for uid, fact in self._facts.by_uid(facts).items()}
        for batch in _batches(list(facts.values())):
            self._store_batch(batch, ids)
        self._link(facts.values(), ids)

    def _store_batch(self, batch: Sequence[PortableFact], ids: dict[str, PassageId]) -> None:
        existing = self._facts.by_uid(fact.uid for fact in batch)
        versions = self._facts.versions_of(fact.id for fact in existing.values())
        current = dict(self._facts.holding(fact.version.text for fact in batch))
        deleted = self._facts.refused(content_hash(fact.version.text) for fact in batch)
        changes: list[Change] = []
        for fact in batch:
            known = existing.get(fact.uid)
            text = fact.version.text
            if known is not None:
                changes += self._merged(fact, known, versions.get(known.id, ()))
            elif text in current and fact.valid_until is None:
                ids[fact.uid] = current[text]
            elif content_hash(text) not in deleted and (made := self._new(fact)) is not None:
                ids[fact.uid] = current[text] = made.id
                changes += [*self._earlier(made, fact.earlier, ()), *fact_changes(made)]
        if changes:
            self._store.save(*changes)

    def _new(self, fact: PortableFact) -> Fact | None:
        fields = self._version_fields(fact.version)
        if fields is None:
            return None
        return Fact(
            id=self._store.ids.passage(),
            uid=fact.uid,
            subject=fact.subject,
            valid_until=fact.valid_until,
            pinned=fact.pinned,
            **fields,
        )

    def _merged(
        self, fact: PortableFact, known: Fact, versions: Sequence[FactVersion]
    ) -> list[Change]:
        merged, others = known, list(fact.earlier)
        if fact.version.made_at > known.made_at:
            merged = self._with_version(known, fact.version) or known
            merged = replace(merged, valid_until=fact.valid_until, pinned=fact.pinned)
        else:
            others.append(fact.version)
            if fact.version.made_at == known.made_at:  # the same version: only these may differ
                valid_until = known.valid_until or fact.valid_until
                merged = replace(known, pinned=known.pinned or fact.pinned, valid_until=valid_until)
        earlier = self._earlier(known, others, {version.made_at for version in versions})
        return [*earlier, *fact_changes(merged)] if merged != known or earlier else []

    def _earlier(
        self, fact: Fact, versions: Iterable[PortableFactVersion], known: Iterable[datetime]
    ) -> list[Change]:
        """Return the changes that store unknown versions; the current one must follow them."""
        times = set(known)
        facts = (self._with_version(fact, each) for each in versions if each.made_at not in times)
        return [FactPut(each) for each in facts if each is not None]

    def _with_version(self, fact: Fact, version: PortableFactVersion) -> Fact | None:
        fields = self._version_fields(version)
        return None if fields is None else replace(fact, **fields)

    def _version_fields(self, version: PortableFactVersion) -> dict[str, Any] | None:
        """Return the fields of a fact that a version sets; None when its source is not available."""
        source = self._sources.of(version)
        if source is None:
            return None
        names = ("text", "category", "model", "said_at", "made_at")
        return {name: getattr(version, name) for name in names} | dict(
            zip(("conversation_id", "exchange_id", "message_id"), source, strict=True)
        )

    def _link(self, imported: Iterable[PortableFact], ids: Mapping[str, PassageId]) -> None:
        """Store which facts superseded which, after all of them are stored."""
        superseded = [fact for fact in imported if fact.superseded_by in ids]
        for batch in _batches(superseded):
            existing = self._facts.by_uid(fact.uid for fact in batch)
            puts = [
                FactPut(replace(known, superseded_by=ids[fact.superseded_by]))
                for fact in batch
                if (known := existing.get(fact.uid)) is not None
                and known.valid_until is not None
                and known.superseded_by is None
                and ids[fact.superseded_by] != known.id
            ]
            if puts:
                self._store.save(*puts)


# The local ids of the source of a version.
_Source = tuple[ConversationId | None, ExchangeId | None, MessageId | None]


class _Sources:
    """Finds the local ids of the sources of versions, with a cache of conversations."""

    def __init__(self, store: Store) -> None:
        self._conversations = Conversations(store)
        self._exchanges = Exchanges(store)
        self._cache: dict[str, dict[str, _Source] | None] = {}

    def of(self, version: PortableFactVersion) -> _Source | None:
        """Return the source of a version; None if its conversation does not exist or is private."""
        uid = version.conversation
        if not uid:
            return None, None, None
        if uid not in self._cache:
            if len(self._cache) >= _CACHED_CONVERSATIONS:
                self._cache.clear()
            self._cache[uid] = self._load(uid)
        sources = self._cache[uid]
        return None if sources is None else sources.get(version.message, sources[""])

    def _load(self, uid: str) -> dict[str, _Source] | None:
        """Return sources by message uid, and that of the conversation under ""."""
        ids = self._conversations.ids_by_uid([uid])
        conversation = next(iter(self._conversations.by_ids(ids.values()).values()), None)
        if conversation is None or conversation.private:
            return None
        exchange_ids = {
            message_id: exchange.id
            for exchange in self._exchanges.of(conversation.id)
            for message_id in exchange.message_ids
        }
        sources: dict[str, _Source] = {
            message_uid: (conversation.id, exchange_ids.get(message_id), message_id)
            for message_uid, message_id in self._exchanges.ids_by_uid([conversation.id])[
                conversation.id
            ].items()
        }
        return sources | {"": (conversation.id, None, None)}


def _batches(facts: Sequence[PortableFact]) -> Iterator[Sequence[PortableFact]]:
    for start in range(0, len(facts), _BATCH_FACTS):
        yield facts[start : start + _BATCH_FACTS]
