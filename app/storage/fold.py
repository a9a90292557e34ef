"""Records folded to rows: what is written later under the same key wins.

So a thousand imported exchanges become one statement a table, and a row changed twice is written
once. Writing the rows is `app.storage.apply`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
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
    SpendFreed,
    SpendHeld,
    SummaryPut,
    TagsChanged,
)
from app.domain.conversations import TitleOrigin
from app.storage.learned import FOLDERS as LEARNED_FOLDERS
from app.storage.learned import Learned
from app.storage.rows import Row, conversation_row, exchange_row, message_row, passage_row
from app.storage.times import to_db

_NO_CONVERSATION = 0  # the draft of a conversation not yet begun
_TITLE_RANKS = {origin: rank for rank, origin in enumerate(TitleOrigin)}


@dataclass(slots=True)
class Fold:
    """Rows by table and key; None deletes.

    Attributes:
        titled: Where in the journal conversations last got a title: their passages, which are found
            by it too, are new to an index since then.
        gone: Passages that leave the index, with the journal's position.
        learned: Facts, memories, prompts and what else is no conversation's own row.
        forgotten: Conversations to erase after everything else, likewise.
        running_message: The highest id of a message still being written.
    """

    conversations: dict[int, Row] = field(default_factory=dict)
    edits: dict[int, ConversationEdited] = field(default_factory=dict)
    titled: dict[int, int] = field(default_factory=dict)
    messages: dict[int, Row] = field(default_factory=dict)
    exchanges: dict[int, Row] = field(default_factory=dict)
    members: dict[int, list[Row]] = field(default_factory=dict)
    passages: dict[int, Row] = field(default_factory=dict)
    gone: dict[int, Row] = field(default_factory=dict)
    tags: dict[tuple[int, str], Row | None] = field(default_factory=dict)
    origins: dict[tuple[str, str, str], Row] = field(default_factory=dict)
    settings: dict[str, Row | None] = field(default_factory=dict)
    providers: dict[str, Row | None] = field(default_factory=dict)
    summaries: dict[tuple[str, int, Any], Row] = field(default_factory=dict)
    latest_summaries: dict[tuple[str, int], Any] = field(default_factory=dict)
    drafts: dict[int, Row] = field(default_factory=dict)
    spend: list[Row] = field(default_factory=list)
    held: dict[str, Row | None] = field(default_factory=dict)
    learned: Learned = field(default_factory=Learned)
    forgotten: dict[int, int] = field(default_factory=dict)
    running_message: int = 0
    position: int = 0


def folded(records: Iterable[tuple[int, tuple[Change, ...]]]) -> Fold:
    """Return the rows that records, (position, changes) in order, come to."""
    fold = Fold()
    for position, changes in records:
        for place, change in enumerate(changes):
            if (fold_learned := LEARNED_FOLDERS.get(type(change))) is not None:
                fold_learned(fold.learned, change, position)
            else:
                _FOLDERS[type(change)](fold, change, position, place)
        fold.position = position
    return fold


def _conversation(fold: Fold, change: ConversationPut, _position: int, _place: int) -> None:
    fold.conversations[change.conversation.id] = conversation_row(change.conversation)
    fold.edits.pop(change.conversation.id, None)


def _edited(fold: Fold, change: ConversationEdited, position: int, _place: int) -> None:
    if change.title is not None:
        fold.titled[change.conversation_id] = position
    earlier = fold.edits.get(change.conversation_id)
    fold.edits[change.conversation_id] = change if earlier is None else _merged(earlier, change)


def _merged(earlier: ConversationEdited, later: ConversationEdited) -> ConversationEdited:
    """Return the one edit that does what two in a row do."""
    given = {
        each.name: value
        for each in fields(later)
        if (value := getattr(later, each.name)) is not None and each.name != "restored"
    }
    outranked = later.title is None or _rank(earlier) > _rank(later)
    titled = earlier if earlier.title is not None and outranked else later
    given |= {"title": titled.title, "title_origin": titled.title_origin}
    if earlier.updated_at is not None and later.updated_at is not None:
        given["updated_at"] = max(earlier.updated_at, later.updated_at)
    if later.deleted_at is not None or later.restored:
        given |= {"deleted_at": later.deleted_at, "restored": later.restored}
    return replace(earlier, **given)


def _rank(edit: ConversationEdited) -> int:
    return _TITLE_RANKS[edit.title_origin or TitleOrigin.USER]


def _messages(fold: Fold, change: MessagesAdded, _position: int, _place: int) -> None:
    for message in change.messages:
        fold.messages.setdefault(message.id, message_row(message))


def _exchange(fold: Fold, change: ExchangePut, position: int, _place: int) -> None:
    exchange = change.exchange
    fold.exchanges[exchange.id] = exchange_row(exchange, position)
    fold.members[exchange.id] = [
        (exchange.id, place, message_id) for place, message_id in enumerate(exchange.message_ids)
    ]


def _passages(fold: Fold, change: PassagesPut, position: int, _place: int) -> None:
    for passage in change.passages:
        fold.passages[passage.id] = passage_row(passage, position)
        fold.gone.pop(passage.id, None)
    for gone in change.replaced:
        fold.passages.pop(gone, None)
        fold.gone[gone] = (gone, position)


def _tags(fold: Fold, change: TagsChanged, _position: int, _place: int) -> None:
    for name in change.removed:
        fold.tags[change.conversation_id, name] = None
    for name in change.added:
        fold.tags[change.conversation_id, name] = (change.conversation_id, name, change.automatic)


def _origins(fold: Fold, change: OriginsAdded, _position: int, _place: int) -> None:
    for source_id, local_id in change.pairs:
        key = (change.source, change.kind, source_id)
        fold.origins[key] = (*key, local_id)


def _setting(fold: Fold, change: SettingPut, _position: int, _place: int) -> None:
    value = change.value_json
    fold.settings[change.key] = None if value is None else (change.key, value)


def _provider(fold: Fold, change: ProviderPut, _position: int, _place: int) -> None:
    row = (
        change.name, change.kind, change.base_url, change.key_env, change.allow_plain_http,
    )  # fmt: skip
    fold.providers[change.name] = None if change.removed else row


def _summary(fold: Fold, change: SummaryPut, _position: int, _place: int) -> None:
    made_at = to_db(change.made_at)
    source = (change.kind, change.source_id)
    fold.summaries[*source, made_at] = (
        *source, made_at, change.conversation_id, change.text, change.model, change.source_hash,
    )  # fmt: skip
    fold.latest_summaries[source] = made_at


def _draft(fold: Fold, change: DraftPut, _position: int, _place: int) -> None:
    key = change.conversation_id or _NO_CONVERSATION
    fold.drafts[key] = (key, change.text, to_db(change.at))


def _spend(fold: Fold, change: SpendAdded, position: int, place: int) -> None:
    fold.spend.append(
        (
            position, place, to_db(change.at), change.purpose, change.model, change.input_tokens,
            change.output_tokens, change.cached_tokens, change.cost_usd, change.is_estimated,
            change.exchange_id,
        )
    )  # fmt: skip
    if change.held:
        fold.held[change.held] = None


def _held(fold: Fold, change: SpendHeld, position: int, _place: int) -> None:
    fold.held[change.uid] = (
        change.uid, position, to_db(change.at), change.purpose, change.model, change.input_tokens,
        change.output_tokens, change.cost_usd,
    )  # fmt: skip


def _freed(fold: Fold, change: SpendFreed, _position: int, _place: int) -> None:
    fold.held[change.uid] = None


def _reply(fold: Fold, change: ReplyGrew, _position: int, _place: int) -> None:
    """Keep the text in the journal alone, for `app.storage.interrupted`; the id is used up."""
    fold.running_message = max(fold.running_message, change.message_id)


def _forgotten(fold: Fold, change: ConversationForgotten, position: int, _place: int) -> None:
    fold.forgotten[change.conversation_id] = position


_FOLDERS: dict[type, Callable[[Fold, Any, int, int], None]] = {
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
    SpendHeld: _held,
    SpendFreed: _freed,
    SpendAdded: _spend,
    ReplyGrew: _reply,
    ConversationForgotten: _forgotten,
}
