"""Parts of an export besides messages: summaries, topics, presets and the profile, as an import stores them.

Summaries are stored with passages, and current unless their source changed afterwards. Topics are what the user
decided, with the conversations that a topic had: they are found again from these; automatic names and assignments
are not exported. Presets are added under a free name, never in the place of an existing one: the instructions in a
file are another person's text, so no imported conversation uses them until the user chooses so. The lines of a
profile become a proposal for the user, beside what is in force, with the uids of its facts.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from app.domain.changes import Change, PresetPut, ProfileReviewPut, TopicChosen
from app.domain.conversations import Conversation, Exchange
from app.domain.ids import ConversationId, MessageId, PassageId, derived_uid
from app.domain.passages import PassageKind
from app.domain.records.facts import BY_IMPORT
from app.domain.records.named import free_name
from app.domain.records.presets import BUILT_IN_PRESET, Preset
from app.domain.records.profile import (
    FactSource,
    Profile,
    ProfileLine,
    ProfileReview,
    lines_without,
    supported_lines,
)
from app.domain.records.summaries import SummarySource, SummaryText, summary_changes
from app.domain.records.topics import NAME_LIMIT_CHARS, TopicChoice, TopicId
from app.domain.text import one_line
from app.domain.transfer import PortableProfileLine, PortableSummary, PortableTopic
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.facts import Facts
from app.storage.tables.profile import ProfileRows
from app.storage.tables.projects import stored_presets
from app.storage.tables.settings import stored_text
from app.storage.tables.summaries import Summaries
from app.storage.tables.topics import TopicRows
from app.storage.work.summary_work import conversation_stamp, exchange_stamp


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


def newer_summaries(
    stored: Summaries,
    summaries: Iterable[PortableSummary],
    conversation_id: ConversationId,
    exchanges: Sequence[Exchange],
    ids: Mapping[str, MessageId],
) -> list[PortableSummary]:
    """Return the summaries that are later than the latest stored ones; `ids` as below. Blocking."""
    of_whole = stored.latest("conversation", [conversation_id])
    of_turns = stored.latest("exchange", [each.id for each in exchanges])
    latest: dict[object, datetime] = {}
    if conversation_id in of_whole:
        latest[None] = of_whole[conversation_id].made_at
    for each in exchanges:
        if each.id in of_turns:
            latest[each.message_ids[-1]] = of_turns[each.id].made_at
    return [
        each
        for each in summaries
        if (before := latest.get(each.last_message and ids.get(each.last_message))) is None
        or each.made_at > before
    ]


def imported_summary_changes(
    summaries: Iterable[PortableSummary],
    conversation: Conversation,
    exchanges: Sequence[Exchange],
    ids: Mapping[str, MessageId],
    new_id: Callable[[], PassageId],
    earlier: Callable[[PassageKind, int], Iterable[int]] = lambda _kind, _source: (),
) -> list[Change]:
    """Return the changes that store the summaries of a conversation, the newest as passages.

    `ids` are local message ids by the source's ids. A summary that was made before its source was
    complete is due for regeneration; a summary of an exchange that was not imported is left out.
    `earlier` returns the passages that those of a source replace.
    """
    by_last_message = {each.message_ids[-1]: each for each in exchanges}
    puts: list[Change] = []
    passages: dict[int | None, Change] = {}
    for summary in sorted(summaries, key=lambda each: each.made_at):
        exchange = None
        if summary.last_message is not None:
            exchange = by_last_message.get(ids.get(summary.last_message, MessageId(0)))
            if exchange is None:
                continue
        stamp = exchange_stamp(exchange) if exchange else conversation_stamp(exchanges)
        ends = [each.completed_at for each in ([exchange] if exchange else exchanges)]
        is_current = all(end is None or summary.made_at >= end for end in ends)
        source = SummarySource(
            conversation.id,
            exchange.id if exchange else None,
            exchange.started_at if exchange else conversation.updated_at,
        )
        text = SummaryText(summary.text, summary.model, stamp if is_current else "")
        replaced = tuple(earlier(source.passage_kind, source.id))
        put, passages[source.exchange_id] = summary_changes(
            source, text, summary.made_at, new_id(), replaced
        )
        puts.append(put)
    return [*puts, *passages.values()]


def portable_presets(store: Store) -> tuple[Preset, ...]:
    """Return the presets to export: all but the built-in one as it was. Blocking."""
    stored = {preset.uid: preset for preset in stored_presets(store)}
    built_in = stored.pop(BUILT_IN_PRESET.uid, BUILT_IN_PRESET)
    built_in = replace(built_in, system_prompt=stored_text(store, "system_prompt"))
    return (*((built_in,) if built_in != BUILT_IN_PRESET else ()), *stored.values())


def known_uids(store: Store) -> frozenset[str]:
    """Return the uids of all presets here. Blocking."""
    return frozenset(preset.uid for preset in (BUILT_IN_PRESET, *stored_presets(store)))


def import_presets(store: Store, imported: Iterable[Preset], *, dry_run: bool = False) -> int:
    """Store presets whose uid is not known; return their number. Blocking.

    A changed built-in one becomes another preset. A `dry_run` only counts.
    """
    existing = portable_presets(store)
    uids = {preset.uid for preset in existing}
    names = [BUILT_IN_PRESET.name, *(preset.name for preset in existing)]
    new: list[Preset] = []
    for preset in imported:
        own = preset
        if preset.is_built_in:
            if preset in existing:
                continue
            own = replace(preset, uid=derived_uid(json.dumps(asdict(preset), sort_keys=True), 0))
        if own.uid not in uids:
            own = replace(own, name=free_name(own.name, names))
            new.append(own)
            uids.add(own.uid)
            names.append(own.name)
    if new and not dry_run:
        store.save(*map(PresetPut, new))
    return len(new)


_NONE = PassageId(0)


def portable_profile(store: Store) -> tuple[PortableProfileLine, ...]:
    """Return the lines in force. Blocking."""
    current = ProfileRows(store).current()
    lines = () if current is None else current.lines
    known = Facts(store).by_ids(source.fact_id for line in lines for source in line.sources)
    return tuple(
        PortableProfileLine(
            line.text,
            tuple(
                (known[each.fact_id].fact.uid, each.made_at)
                for each in line.sources
                if each.fact_id in known
            ),
        )
        for line in lines
    )


def propose_profile(store: Store, imported: Sequence[PortableProfileLine]) -> None:
    """Propose the lines of an import, after its facts were stored. Blocking.

    Left out are those in force, those that the user rejected, and those whose facts are not here.
    """
    if imported:
        store.on_writer(lambda: _propose(store, imported)).result()


def _propose(store: Store, imported: Sequence[PortableProfileLine]) -> None:
    rows = ProfileRows(store)
    current, review, rejected = rows.current(), rows.review(), rows.rejected()
    accepted = () if current is None else current.lines
    waiting = review.proposal if review is not None else None
    before = accepted if waiting is None else waiting.lines
    facts = Facts(store).by_uid(uid for line in imported for uid, _ in line.sources)
    ids = {uid: fact.id for uid, fact in facts.items()}
    lines = [
        ProfileLine(
            line.text, tuple(FactSource(ids.get(uid, _NONE), at) for uid, at in line.sources)
        )
        for line in imported
    ]
    found = supported_lines(lines, rows.source_texts(lines))
    new = [line for line in lines_without(found, before) if line.key not in rejected]
    if new:
        at = now()
        base = review or ProfileReview(at - timedelta(days=1), "import")
        proposal = Profile((*before, *new), BY_IMPORT, at)
        store.commit_now(ProfileReviewPut(replace(base, proposal=proposal)))
