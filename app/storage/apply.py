"""A change becomes rows: the same code for a live write and for a replay of the journal.

Records are folded first, so that a thousand imported exchanges become one statement a table, and
so that a row changed twice is written once. Applying a record again changes nothing.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationForgotten,
    ConversationPut,
    DraftPut,
    ExchangePut,
    MessagesAdded,
    OriginsAdded,
    PassagesPut,
    ProviderPut,
    ReplyGrew,
    SettingPut,
    SpendAdded,
    SummaryPut,
    TagsChanged,
)
from app.domain.conversations import TitleOrigin
from app.storage.database import Connection
from app.storage.rows import (
    CONVERSATION_COLUMNS,
    EXCHANGE_COLUMNS,
    MESSAGE_COLUMNS,
    PASSAGE_COLUMNS,
    Row,
    conversation_row,
    exchange_row,
    insert_rows,
    message_row,
    passage_row,
)
from app.storage.times import to_db

_REPLACE = "INSERT OR REPLACE"
_IGNORE = "INSERT OR IGNORE"
_NO_CONVERSATION = 0  # the draft of a conversation not yet begun


@dataclass(slots=True)
class _Fold:
    """Rows by table and key; what is written later under the same key wins."""

    conversations: dict[int, Row] = field(default_factory=dict)
    edits: list[ConversationEdited] = field(default_factory=list)
    messages: dict[int, Row] = field(default_factory=dict)
    exchanges: dict[int, Row] = field(default_factory=dict)
    members: dict[int, list[Row]] = field(default_factory=dict)
    passages: dict[int, Row] = field(default_factory=dict)
    gone: dict[int, Row] = field(default_factory=dict)
    tags: dict[tuple[int, str], Row | None] = field(default_factory=dict)
    origins: dict[tuple[str, str, str], Row] = field(default_factory=dict)
    settings: dict[str, str | None] = field(default_factory=dict)
    providers: dict[str, Row | None] = field(default_factory=dict)
    summaries: dict[tuple[str, int], list[Row]] = field(default_factory=dict)
    drafts: dict[int, Row] = field(default_factory=dict)
    spend: list[Row] = field(default_factory=list)
    forgotten: list[tuple[int, int]] = field(default_factory=list)


def apply_records(
    connection: Connection, records: Iterable[tuple[int, tuple[Change, ...]]]
) -> None:
    """Write records, (position, changes) in order, inside the caller's transaction."""
    fold = _Fold()
    last = 0
    for position, changes in records:
        for place, change in enumerate(changes):
            _FOLDERS[type(change)](fold, change, position, place)
        last = position
    _write(connection, fold)
    _advance(connection, fold, last)


def _conversation(fold: _Fold, change: ConversationPut, _position: int, _place: int) -> None:
    fold.conversations[change.conversation.id] = conversation_row(change.conversation)


def _edited(fold: _Fold, change: ConversationEdited, _position: int, _place: int) -> None:
    fold.edits.append(change)


def _messages(fold: _Fold, change: MessagesAdded, _position: int, _place: int) -> None:
    for message in change.messages:
        fold.messages[message.id] = message_row(message)


def _exchange(fold: _Fold, change: ExchangePut, position: int, _place: int) -> None:
    exchange = change.exchange
    fold.exchanges[exchange.id] = exchange_row(exchange, position)
    fold.members[exchange.id] = [
        (exchange.id, place, message_id) for place, message_id in enumerate(exchange.message_ids)
    ]


def _passages(fold: _Fold, change: PassagesPut, position: int, _place: int) -> None:
    for passage in change.passages:
        fold.passages[passage.id] = passage_row(passage, position)
    for gone in change.replaced:
        fold.passages.pop(gone, None)
        fold.gone[gone] = (gone, position)


def _tags(fold: _Fold, change: TagsChanged, _position: int, _place: int) -> None:
    for name in change.removed:
        fold.tags[change.conversation_id, name] = None
    for name in change.added:
        fold.tags[change.conversation_id, name] = (change.conversation_id, name, change.automatic)


def _origins(fold: _Fold, change: OriginsAdded, _position: int, _place: int) -> None:
    for source_id, local_id in change.pairs:
        key = (change.source, change.kind, source_id)
        fold.origins[key] = (*key, local_id)


def _setting(fold: _Fold, change: SettingPut, _position: int, _place: int) -> None:
    fold.settings[change.key] = change.value_json


def _provider(fold: _Fold, change: ProviderPut, _position: int, _place: int) -> None:
    row = (change.name, change.kind, change.base_url, change.key_env)
    fold.providers[change.name] = None if change.removed else row


def _summary(fold: _Fold, change: SummaryPut, _position: int, _place: int) -> None:
    row = (
        change.kind, change.source_id, to_db(change.made_at), change.conversation_id, change.text,
        change.model, change.source_hash, True,
    )  # fmt: skip
    fold.summaries.setdefault((change.kind, change.source_id), []).append(row)


def _draft(fold: _Fold, change: DraftPut, _position: int, _place: int) -> None:
    key = change.conversation_id or _NO_CONVERSATION
    fold.drafts[key] = (key, change.text, to_db(change.at))


def _spend(fold: _Fold, change: SpendAdded, position: int, place: int) -> None:
    fold.spend.append(
        (
            position, place, to_db(change.at), change.purpose, change.model, change.input_tokens,
            change.output_tokens, change.cached_tokens, change.cost_usd, change.exchange_id,
        )
    )  # fmt: skip


def _reply(fold: _Fold, change: ReplyGrew, position: int, place: int) -> None:
    """Kept by the journal alone; `app.storage.recovery` puts it together after a kill."""


def _forgotten(fold: _Fold, change: ConversationForgotten, position: int, _place: int) -> None:
    fold.forgotten.append((change.conversation_id, position))


_FOLDERS: dict[type, Callable[[_Fold, Any, int, int], None]] = {
    ConversationPut: _conversation,
    ConversationEdited: _edited,
    MessagesAdded: _messages,
    ExchangePut: _exchange,
    PassagesPut: _passages,
    TagsChanged: _tags,
    OriginsAdded: _origins,
    SettingPut: _setting,
    ProviderPut: _provider,
    SummaryPut: _summary,
    DraftPut: _draft,
    SpendAdded: _spend,
    ReplyGrew: _reply,
    ConversationForgotten: _forgotten,
}


def _write(connection: Connection, fold: _Fold) -> None:
    def put(table: str, columns: str, rows: Iterable[Row], how: str = _REPLACE) -> None:
        insert_rows(connection, table, columns, rows, how)

    put("conversation", CONVERSATION_COLUMNS, fold.conversations.values())
    for edit in fold.edits:
        _edit(connection, edit)
    put("message", MESSAGE_COLUMNS, fold.messages.values(), _IGNORE)
    put("exchange", f"{EXCHANGE_COLUMNS}, position", fold.exchanges.values())
    members = [row for rows in fold.members.values() for row in rows]
    put("exchange_message", "exchange_id, place, message_id", members)
    put("passage", f"{PASSAGE_COLUMNS}, position", fold.passages.values())
    _drop_passages(connection, fold)
    kept_tags = [row for row in fold.tags.values() if row is not None]
    for (conversation_id, name), row in fold.tags.items():
        if row is None:
            connection.execute(
                "DELETE FROM tag WHERE conversation_id = ? AND name = ?", [conversation_id, name]
            )
    put("tag", "conversation_id, name, automatic", kept_tags)
    put("origin", "source, kind, source_id, local_id", fold.origins.values())
    _write_named(connection, "appconfig", "key, value", "key", {
        key: None if value is None else (key, value) for key, value in fold.settings.items()
    })  # fmt: skip
    _write_named(connection, "provider", "name, kind, base_url, key_env", "name", fold.providers)
    _write_summaries(connection, fold)
    put("draft", "conversation_id, text, saved_at", fold.drafts.values())
    put("spend", _SPEND_COLUMNS, fold.spend)
    for conversation_id, position in fold.forgotten:
        _erase(connection, conversation_id, position)


def _edit(connection: Connection, edit: ConversationEdited) -> None:
    origin = edit.title_origin or TitleOrigin.USER
    outranked = list(TitleOrigin)[: list(TitleOrigin).index(origin) + 1]
    origins = ", ".join(f"'{each}'" for each in outranked)
    takes_title = f"$2::VARCHAR IS NOT NULL AND title_origin IN ({origins})"
    connection.execute(
        f"""UPDATE conversation SET
            title = CASE WHEN {takes_title} THEN $2 ELSE title END,
            title_origin = CASE WHEN {takes_title} THEN $3 ELSE title_origin END,
            visible_leaf_id = coalesce($4, visible_leaf_id),
            updated_at = greatest(updated_at, coalesce($5, updated_at)),
            pinned = coalesce($6, pinned), archived = coalesce($7, archived),
            private = coalesce($8, private),
            model = nullif(coalesce($9, model, ''), ''),
            deleted_at = CASE WHEN $11 THEN NULL ELSE coalesce($10, deleted_at) END
            WHERE id = $1""",
        [
            edit.conversation_id, edit.title, origin.value, edit.visible_leaf_id,
            to_db(edit.updated_at), edit.pinned, edit.archived, edit.private, edit.model,
            to_db(edit.deleted_at), edit.restored,
        ],
    )  # fmt: skip


_SPEND_COLUMNS = (
    "position, place, spent_at, purpose, model, input_tokens, output_tokens, cached_tokens, cost_usd, "
    "exchange_id"
)


def _drop_passages(connection: Connection, fold: _Fold) -> None:
    if fold.gone:
        connection.execute("DELETE FROM passage WHERE id IN (SELECT unnest(?))", [list(fold.gone)])
        insert_rows(connection, "passage_gone", "id, position", fold.gone.values(), _REPLACE)


def _write_named(
    connection: Connection, table: str, columns: str, key: str, rows: dict[str, Row | None]
) -> None:
    insert_rows(connection, table, columns, [row for row in rows.values() if row], _REPLACE)
    if removed := [name for name, row in rows.items() if row is None]:
        connection.execute(
            f"DELETE FROM {table} WHERE {key} IN (SELECT unnest(?))",
            [removed],
        )


def _write_summaries(connection: Connection, fold: _Fold) -> None:
    """Keep every version, mark the newest of each source as the latest."""
    rows: list[Row] = []
    for versions in fold.summaries.values():
        rows += [(*row[:-1], False) for row in versions[:-1]] + versions[-1:]
    if not rows:
        return
    kinds, sources = [list(part) for part in zip(*fold.summaries, strict=True)]
    connection.execute(
        "UPDATE summary SET latest = false WHERE latest AND (kind, source_id) IN "
        "(SELECT (unnest($1), unnest($2)))",
        [kinds, sources],
    )
    columns = "kind, source_id, made_at, conversation_id, text, model, source_hash, latest"
    insert_rows(connection, "summary", columns, rows, _REPLACE)


def _erase(connection: Connection, conversation_id: int, position: int) -> None:
    """Delete every row of a conversation; the bytes are the business of `app.storage.forget`."""
    own = [conversation_id]
    exchanges = "SELECT id FROM exchange WHERE conversation_id = ?"
    connection.execute(f"DELETE FROM exchange_message WHERE exchange_id IN ({exchanges})", own)
    connection.execute(
        f"UPDATE spend SET exchange_id = NULL WHERE exchange_id IN ({exchanges})", own
    )
    connection.execute(
        "INSERT OR REPLACE INTO passage_gone SELECT id, ? FROM passage WHERE conversation_id = ?",
        [position, conversation_id],
    )
    connection.execute(
        "DELETE FROM origin WHERE kind = 'message' AND local_id IN "
        "(SELECT id FROM message WHERE conversation_id = ?)",
        own,
    )
    connection.execute("DELETE FROM origin WHERE kind = 'conversation' AND local_id = ?", own)
    for table in ("passage", "exchange", "message", "tag", "summary", "draft"):
        connection.execute(f"DELETE FROM {table} WHERE conversation_id = ?", own)
    connection.execute("DELETE FROM conversation WHERE id = ?", own)


def _advance(connection: Connection, fold: _Fold, position: int) -> None:
    highest = [
        max(rows, default=0)
        for rows in (fold.conversations, fold.exchanges, fold.messages, fold.passages)
    ]
    connection.execute(
        "UPDATE state SET position = greatest(position, ?), conversation = greatest(conversation, ?),"
        " exchange = greatest(exchange, ?), message = greatest(message, ?),"
        " passage = greatest(passage, ?)",
        [position, *highest],
    )
