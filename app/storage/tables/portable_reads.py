"""Reads for exports: records with the uids of what they refer to. Blocking."""

from collections.abc import Mapping

from app.domain.conversations import OWN_SOURCE
from app.domain.ids import MessageId
from app.domain.transfer import PortableMemory, PortableOrigin, PortableSpend
from app.storage.engine.aggregate import reader
from app.storage.engine.store import Store

_VISIBLE = "(SELECT id, uid FROM conversation WHERE deleted_at IS NULL)"
_SPENT = "spent_at, purpose, model, input_tokens, output_tokens, cached_tokens, cost_usd, estimated"


def portable_memories(store: Store) -> tuple[PortableMemory, ...]:
    """Return the saved texts but those of conversations in the trash, by id."""
    rows = store.rows(
        "SELECT m.uid, m.text, m.saved_at, coalesce(c.uid, ''), coalesce(e.uid, '') FROM memory m "
        f"LEFT JOIN {_VISIBLE} c ON c.id = m.conversation_id LEFT JOIN exchange e "
        "ON e.id = m.exchange_id WHERE m.conversation_id IS NULL OR c.id IS NOT NULL ORDER BY m.id"
    )
    return tuple(map(reader(PortableMemory), rows))


def portable_spend(store: Store) -> tuple[PortableSpend, ...]:
    """Return all paid requests, oldest first."""
    columns = ", ".join(f"s.{each}" for each in _SPENT.split(", "))
    rows = store.rows(
        f"SELECT {columns}, coalesce(e.uid, '') FROM spend s LEFT JOIN exchange e "
        f"ON e.id = s.exchange_id AND e.conversation_id IN (SELECT id FROM {_VISIBLE}) "
        "ORDER BY s.spent_at, s.position, s.place"
    )
    return tuple(map(reader(PortableSpend), rows))


def portable_settings(store: Store) -> tuple[tuple[str, str], ...]:
    """Return the keys and the JSON values of all stored settings, by key."""
    rows = store.rows("SELECT key, value FROM appconfig ORDER BY key")
    return tuple((key, value) for key, value in rows)


def portable_origins(
    store: Store, conversation_id: int, uids: Mapping[MessageId, str]
) -> tuple[PortableOrigin, ...]:
    """Return where other programs had a conversation; `uids` are those of its messages."""
    rows = store.rows(
        "SELECT o.source, o.source_id, "
        "coalesce(max(left(s.source_id, -length('/' || o.source_id))), '') "
        "FROM origin o LEFT JOIN origin s ON s.kind = 'subagent' AND s.source = o.source "
        "AND s.local_id = o.local_id AND ends_with(s.source_id, '/' || o.source_id) "
        "WHERE o.kind = 'conversation' AND o.local_id = ? AND o.source <> ? GROUP BY ALL ORDER BY ALL",
        [conversation_id, OWN_SOURCE],
    )
    if not rows:
        return ()
    messages = store.rows(
        "SELECT source, source_id, local_id FROM origin WHERE kind = 'message' AND source <> ? "
        "AND local_id IN (SELECT unnest(?)) ORDER BY local_id, source_id",
        [OWN_SOURCE, list(uids)],
    )
    return tuple(
        PortableOrigin(
            source,
            source_id,
            tuple(
                (uids[local_id], key)
                for of, key, local_id in messages
                if of == source and key.startswith(f"{source_id}/")
            ),
            parent,
        )
        for source, source_id, parent in rows
    )
