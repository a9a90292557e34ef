"""Forgetting: deleting conversations, turns and messages with everything that was derived from them.

The rows are deleted at once, so that nothing finds or shows the text. Its bytes are removed from the files at a
quiet time (`app.storage.deletion.erasure`).
"""

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime

from app.domain.changes import Change
from app.domain.conversations import ToolCall, ToolResult
from app.domain.deletions import ConversationForgotten, MessagesForgotten, ValueForgotten
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import ConversationId, MessageId
from app.domain.translation import tr, trn
from app.language.titles import first_words
from app.storage.deletion.deletion_set import exchanges_of
from app.storage.deletion.messages import removable
from app.storage.deletion.values import value_counts
from app.storage.engine.stamps import to_db
from app.storage.engine.store import Store
from app.storage.safety.attachments import count_as_unused, hashes_to_forget, remove_unreferenced
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges

_VALUE_CHARS = (4, 10_000)  # a private key has 3,000
_UNTITLED = "New conversation"


def forget(store: Store, conversation_ids: Iterable[ConversationId]) -> tuple[str, ...]:
    """Erase conversations and all that was derived from them; return what remains elsewhere.

    Blocking. Indexes drop what `Passages.work_since` reports as removed. Raises StorageError; then those that are
    left can be forgotten again.
    """
    for part in Conversations(store).in_parts(conversation_ids):
        files = store.read(hashes_to_forget, part)
        _save_deletions(store, files, *map(ConversationForgotten, part))
    return remains(store)


def forget_turn(store: Store, exchange_id: int) -> tuple[str, ...]:
    """Erase the content of a turn with every other answer to its question, and what came from it.

    Returns what remains elsewhere, as sentences for the user. Blocking like `forget`. Raises NotFound,
    InvalidInput while a reply is being written in the conversation, StorageError.
    """
    turn = Exchanges(store).get(exchange_id)
    every = Exchanges(store).of(turn.conversation_id)
    shared = [each for each in every if not {*each.message_ids}.isdisjoint(turn.message_ids)]
    ids = {message for each in shared for message in each.message_ids}
    others = [each for each in every if each.parent_id == turn.parent_id and each not in shared]
    left = _forget_messages(store, {turn.conversation_id: ids})
    if not others:
        return left
    others_remain = trn(
        "The conversation still has {count} other version of this turn.",
        "The conversation still has {count} other versions of this turn.",
        len(others),
    )
    return (others_remain, *left)


def forget_messages(store: Store, message_ids: Iterable[int]) -> tuple[str, ...]:
    """Erase the content of messages, the results of their tool calls, and what came from their turns.

    Of each conversation all or none. As `forget_turn`.
    """
    stored = Exchanges(store)
    ids = [MessageId(each) for each in dict.fromkeys(message_ids)]
    messages = stored.messages(ids)
    if missing := [each for each in ids if each not in messages]:
        raise NotFound(
            f"There is no message {missing[0]}", "'show ID --json' shows the message IDs."
        )
    chosen: dict[ConversationId, set[MessageId]] = {}
    calls = set[tuple[ConversationId, str]]()
    for message in messages.values():
        chosen.setdefault(message.conversation_id, set()).add(message.id)
        found = (block.call_id for block in message.blocks if isinstance(block, ToolCall))
        calls |= {(message.conversation_id, each) for each in found}
    turns = store.read(exchanges_of, [*messages]) if calls else ()
    around = store.column_in("exchange_message", "message_id", turns, "exchange_id")
    for message in stored.messages(around).values():
        if any(
            isinstance(block, ToolResult) and (message.conversation_id, block.call_id) in calls
            for block in message.blocks
        ):
            chosen[message.conversation_id].add(message.id)
    return _forget_messages(store, chosen)


def remove_added(
    store: Store, message_ids: AbstractSet[int], *others: Change
) -> Collection[MessageId]:
    """Remove messages that an import added, with what came from their turns, and save other changes.

    Those that other messages follow stay. Returns what was removed. As `forget_messages`, in one transaction.
    """
    own = store.column_in("message", "conversation_id", message_ids)
    every = Exchanges(store).messages_in_each(list(own))
    removed = {each: removable(messages, message_ids) for each, messages in every.items()}
    chosen = {ConversationId(own): ids for own, ids in removed.items() if ids}
    refuse_while_running(store, chosen)
    _save_message_deletions(store, chosen, *others, removes=True)
    return {each for ids in chosen.values() for each in ids}


def refuse_while_running(store: Store, conversation_ids: Iterable[int]) -> None:
    """Raise InvalidInput if a reply is being written in one of some conversations."""
    rest = "AND status = 'running'"
    if store.select_in("exchange", "1", conversation_ids, "conversation_id", rest):
        raise InvalidInput(
            "A reply is being written in this conversation", "Stop it or wait for it, then forget."
        )


def _forget_messages(
    store: Store, chosen: Mapping[ConversationId, Collection[MessageId]]
) -> tuple[str, ...]:
    refuse_while_running(store, chosen)
    for part in Conversations(store).in_parts(chosen):
        _save_message_deletions(store, {each: chosen[each] for each in part})
    copies, *damaged = remains_of_files(store)
    rest = tr(
        "Summaries, facts and saved texts of its turn were removed too, and quotes by tools and Recall. What "
        "you or a model wrote in other turns, core memory, and forks of the conversation were not changed."
    )
    return (copies, rest, *damaged)


def _save_message_deletions(
    store: Store,
    chosen: Mapping[ConversationId, Collection[MessageId]],
    *others: Change,
    removes: bool = False,
) -> None:
    forgotten: list[MessagesForgotten] = []
    for conversation_id, here in Exchanges(store).messages_in_each(list(chosen)).items():
        own = chosen[ConversationId(conversation_id)]
        left = (each.text for each in here if each.opens_turn and each.id not in own)
        title = first_words(left) or _UNTITLED
        change = MessagesForgotten(
            ConversationId(conversation_id), tuple(sorted(own)), title, removes
        )
        forgotten.append(change)
    every = [each for own in chosen.values() for each in own]
    files = store.column_in("message_file", "content_hash", every, "message_id")
    _save_deletions(store, files, *others, *forgotten)


def _save_deletions(store: Store, files: Collection[str], *changes: Change) -> None:
    count_as_unused(store.paths, files)
    if changes:
        store.save(*changes)
    if files:
        remove_unreferenced(store, files)


def forget_value(store: Store, value: str) -> tuple[str, ...]:
    """Remove a text from wherever it is stored; return what remains elsewhere.

    Blocking like `forget`. Raises InvalidInput for a text that is too short or too long, and while a reply is
    being written; NotFound if nothing contains it; StorageError.
    """
    if not _VALUE_CHARS[0] <= len(value.strip()) <= _VALUE_CHARS[1]:
        raise InvalidInput(
            f"The value has {len(value.strip()):,} characters", "Give from 4 to 10,000 characters."
        )
    if store.row("SELECT 1 FROM exchange WHERE status = 'running'") is not None:
        raise InvalidInput("A reply is being written", "Stop it or wait for it, then forget.")
    places = value_places(store, value)
    if not places:
        raise NotFound("Nothing contains this value", "Capital letters and spaces count.")
    store.save(ValueForgotten(value.strip()))
    left = [tr("The content of attached files was not searched.")]
    if "document" in places:
        left.append(
            tr(
                "Documents with it were removed from the library and are not followed any more; their files "
                "were not changed."
            )
        )
    return (*left, *remains_of_files(store))


def value_places(store: Store, value: str) -> Mapping[str, int]:
    """Return how many records contain a text, by kind (the names of tables). Blocking."""
    counts = dict(store.read(value_counts, value.strip()))
    counts.pop("erasure", None)
    return counts


def purge_trash(store: Store, before: datetime) -> None:
    """Forget the conversations that were moved to the trash before a time."""
    old = "SELECT id FROM conversation WHERE deleted_at < ? ORDER BY id"
    forget(store, store.column(old, [to_db(before)]))


def is_trash_due(store: Store, before: datetime) -> bool:
    """Return whether the trash has conversations that were moved there before a time."""
    query = "SELECT count(*) FROM conversation WHERE deleted_at < ?"
    return store.column(query, [to_db(before)]) != [0]


def remains(store: Store) -> tuple[str, ...]:
    """Return where the text of a forgotten conversation may remain, as sentences for the user."""
    copies, *damaged = remains_of_files(store)
    rest = tr(
        "Quotes of it by tools and Recall in other conversations were removed too. What you or a model "
        "wrote there, core memory, and forks of the conversation were not changed."
    )
    return (copies, rest, *damaged)


def remains_of_files(store: Store) -> tuple[str, ...]:
    """Return which files may still contain forgotten text, as sentences for the user."""
    sentences = [tr("Exports and backups that you copied elsewhere were not changed.")]
    damaged = store.paths.damaged
    if damaged.exists() and any(damaged.iterdir()):
        sentences.append(
            tr(
                "The folder “{damaged}” contains damaged files, which may include the text; delete it when you are sure "
                "that nothing is missing."
            ).format(damaged=damaged)
        )
    return tuple(sentences)
