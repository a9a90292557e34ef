"""Topics in exports and imports: what the user decided, with the conversations that a topic had.

Topics are found again from these conversations; automatic names and assignments are not exported.
"""

from collections.abc import Sequence

from app.domain.changes import TopicChosen
from app.domain.portable import PortableTopic
from app.domain.text import one_line
from app.domain.topics import NAME_LIMIT_CHARS, TopicChoice, TopicId
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.topics import TopicRows


def portable_topics(store: Store) -> tuple[PortableTopic, ...]:
    """Return the topics about which the user decided, with their visible conversations. Blocking."""
    rows = TopicRows(store)
    choices, members = rows.choices(), rows.members()
    own = [each for each in members if each.topic_id in choices]
    known = Conversations(store).by_ids(each.conversation_id for each in own)
    return tuple(
        PortableTopic(
            choice.id,
            choice.name,
            tuple(known[each.conversation_id].uid for each in own if each.topic_id == choice.id),
            choice.is_hidden,
            choice.merged_into,
        )
        for choice in sorted(choices.values(), key=lambda each: each.id)
    )


def import_topics(store: Store, imported: Sequence[PortableTopic]) -> None:
    """Store decisions about topics, after their conversations, if there are none here. Blocking."""
    if imported:
        store.on_writer(lambda: _import(store, imported)).result()


def _import(store: Store, imported: Sequence[PortableTopic]) -> None:
    rows = TopicRows(store)
    if rows.choices():
        return
    uids = {uid for each in imported for uid in each.conversations}
    ids = Conversations(store).ids_by_uid(uids)
    free = max((each.id for each in rows.stored()), default=0) + 1
    numbers = {each.number: TopicId(free + at) for at, each in enumerate(imported)}
    whole = {each.number for each in imported if each.merged_into is None}
    store.commit_now(
        *(
            TopicChosen(
                TopicChoice(
                    numbers[each.number],
                    one_line(each.name, NAME_LIMIT_CHARS),
                    each.is_hidden,
                    numbers[each.merged_into] if each.merged_into in whole else None,
                    tuple(ids[uid] for uid in each.conversations if uid in ids),
                )
            )
            for each in imported
        )
    )
