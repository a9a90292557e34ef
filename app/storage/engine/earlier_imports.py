"""The step of the schema that takes over the history of imports, which was a setting with spans of ids."""

import json
from typing import Any

from app.storage.engine.connection import Connection


def add_import_items(connection: Connection) -> None:
    """Take over what earlier imports did, which was kept as the [first, last] of ids."""
    connection.execute(
        """CREATE TABLE import_item (position BIGINT, place INTEGER, number BIGINT NOT NULL,
           conversation_id BIGINT NOT NULL, is_new BOOLEAN NOT NULL, first_message BIGINT,
           last_message BIGINT, edits VARCHAR NOT NULL, PRIMARY KEY (position, place))"""
    )
    items: list[tuple[object, ...]] = []
    for number, spans, messages, leaves in _earlier_imports(connection):
        shown = [leaf for first, last in leaves for leaf in range(first, last + 1)]
        for found, ids, more in (
            (_NEW_CONVERSATIONS, spans, []),
            (_ADDED_MESSAGES, messages, [shown]),
        ):
            if ids:
                values = [*(list(each) for each in zip(*ids, strict=True)), *more]
                items += [(number, *row) for row in connection.rows(found, values)]
    if items:
        columns = zip(*((0, place, *each) for place, each in enumerate(items)), strict=True)
        connection.execute(
            f"INSERT INTO import_item SELECT {', '.join(['unnest(?)'] * 8)}",
            [list(column) for column in columns],
        )


def _earlier_imports(connection: Connection) -> list[tuple[Any, ...]]:
    """Return number and spans of ids; none where the setting was damaged."""
    kept = connection.row("SELECT value FROM appconfig WHERE key = 'import_history'")
    try:
        return [
            (each["number"], each["spans"], each.get("messages", ()), each.get("leaves", ()))
            for each in (json.loads(json.loads(str(kept[0]))) if kept else ())
        ]
    except (ValueError, TypeError, KeyError):
        return []


_NEW_CONVERSATIONS = """
    SELECT c.id, true, NULL, NULL, '{}' FROM conversation c
    JOIN (SELECT unnest($1) AS first, unnest($2) AS last) s ON c.id BETWEEN s.first AND s.last
"""
_ADDED_MESSAGES = """
    SELECT c.id, false, m.first, m.last, CASE WHEN leaf IS NULL THEN '{}' ELSE
        '{"visible_leaf_id": [' || leaf || ', ' || c.visible_leaf_id || ']}' END
    FROM (SELECT conversation_id, min(id) AS first, max(id) AS last FROM message
          JOIN (SELECT unnest($1) AS first, unnest($2) AS last) s ON id BETWEEN s.first AND s.last
          GROUP BY conversation_id, s.first) m
    JOIN conversation c ON c.id = m.conversation_id
    LEFT JOIN (SELECT conversation_id, max(id) AS leaf FROM message
               WHERE id IN (SELECT unnest($3)) GROUP BY ALL) l
    ON l.conversation_id = c.id AND c.visible_leaf_id BETWEEN m.first AND m.last
"""
