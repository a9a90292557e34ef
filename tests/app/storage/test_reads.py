"""Queries: lists, paths, index work, limits."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from app.domain.changes import (
    ConversationEdited,
    DraftPut,
    ExchangePut,
    OriginsAdded,
    PassagesPut,
    SummaryPut,
    TagsChanged,
)
from app.domain.conversations import Draft, Exchange, ExchangeStatus, Role
from app.domain.errors import NotFound
from app.domain.ids import part_id
from app.domain.passages import Passage, PassageKind, SearchQuery
from app.storage.engine.store import Store
from app.storage.tables.attempts import Attempts
from app.storage.tables.conversations import Conversations, ListFilter
from app.storage.tables.exchanges import Exchanges, path_to, shown_path
from app.storage.tables.passages import queries as tables_of_passages
from app.storage.tables.passages.queries import Passages
from app.storage.work.summary_work import CONVERSATION_SUMMARIES, EXCHANGE_SUMMARIES, SummaryWork
from tests.fakes.stored import AT, add_conversation


def names(store: Store, **which: Any) -> list[str]:
    return [each.title for each in Conversations(store).listed(ListFilter(**which))]


def test_lists_are_pinned_first_then_latest_without_archived_ones(store: Store) -> None:
    ids = {
        title: add_conversation(
            store, "x", title=title, at=AT + timedelta(days=day)
        ).conversation.id
        for day, title in enumerate(["Old", "New", "Pinned", "Archived", "Trashed"])
    }
    store.save(
        ConversationEdited(ids["Pinned"], pinned=True),
        ConversationEdited(ids["Archived"], archived=True),
        ConversationEdited(ids["Trashed"], deleted_at=AT),
        TagsChanged(ids["Old"], ("Work", "été")),
        TagsChanged(ids["New"], ("other",)),
    )
    assert names(store) == ["Pinned", "New", "Old"]
    assert names(store, archived=True) == ["Archived"]
    assert names(store, archived=None) == ["Pinned", "Archived", "New", "Old"]
    assert names(store, trash=True) == ["Trashed"]
    assert names(store, tag="WORK") == ["Old"]
    assert Conversations(store).tags_of(list(ids.values())) == {
        ids["Old"]: ("Work", "été"), ids["New"]: ("other",),
    }  # fmt: skip


def test_drafts_and_origins_are_found_by_their_keys(store: Store) -> None:
    conversations = Conversations(store)
    with pytest.raises(NotFound, match="no conversation 7"):
        conversations.get(7)
    with pytest.raises(NotFound, match="no exchange 7"):
        Exchanges(store).get(7)
    assert not conversations.by_ids([7])
    assert not Exchanges(store).by_ids([7])
    assert Exchanges(store).messages([]) == {}
    assert conversations.draft(None) == Draft()
    whole = add_conversation(store, "x")
    conversation, message = whole.conversation.id, whole.messages[0].id
    store.save(
        DraftPut(conversation, "mine", AT), DraftPut(None, "a beginning", AT),
        OriginsAdded("claude", "conversation", (("c1", conversation),)),
        OriginsAdded("claude", "message", (("m1", message),)),
    )  # fmt: skip
    assert conversations.draft(conversation) == Draft("mine")
    assert conversations.draft(None) == Draft("a beginning")
    assert conversations.imported_ids("claude", "message", ["m1", "m2"]) == {"m1": message}
    assert conversations.imported_ids("chatgpt", "message", ["m1"]) == {}


def test_the_shown_path_follows_the_leaf_through_the_branches(store: Store) -> None:
    whole = add_conversation(store, "one", "two", "three")
    first, second, third = whole.exchanges
    sibling = replace(
        second, id=store.ids.exchange(), message_ids=(second.message_ids[0],), segment_number=3,
        status=ExchangeStatus.FAILED,
    )  # fmt: skip
    store.save(ExchangePut(sibling))
    assert Exchanges(store).get(sibling.id) == sibling
    assert Exchanges(store).messages_of(second) == whole.messages[2:4]
    exchanges = Exchanges(store).of(whole.conversation.id)
    assert len(exchanges) == 4
    for leaf, path in (
        (third.message_ids[-1], (first, second, third)),
        (second.message_ids[0], (first, sibling)),
        (first.message_ids[0], (first,)),
        (None, ()),
    ):
        assert shown_path(replace(whole.conversation, visible_leaf_id=leaf), exchanges) == path
    circle = (replace(first, parent_id=second.id), second)
    assert len(path_to(second, circle)) <= 3, "a path with a cycle ends"


def test_work_for_an_index_never_divides_a_write(store: Store) -> None:
    for size in (3, 1, 4):
        whole = add_conversation(store, *("x" * (n + 1) for n in range(size)))
    passages, position, taken = Passages(store), 0, []
    for _ in range(10):
        work = passages.work_since(position, 2)
        taken.append(len(work.added))
        position = work.position
        if work.is_last:
            break
    assert sum(taken) == 8
    assert position == 3
    assert passages.work_since(position, 2).added == ()
    exchange = whole.exchanges[3]
    store.save(PassagesPut((turn_passage_of(store, exchange),), replaced=(8,)))
    work = passages.work_since(position, 10)
    assert (work.added, work.removed, work.position, work.is_last) == ((9,), (8,), 4, True)
    assert passages.of_source(PassageKind.TURN, exchange.id) == (9,)


def turn_passage_of(store: Store, exchange: Exchange) -> Passage:
    own = (exchange.id, exchange.conversation_id, exchange.id)
    return Passage(store.ids.passage(), PassageKind.TURN, *own, "h", AT, 1)


def test_a_passage_has_the_text_of_its_source(store: Store) -> None:
    whole = add_conversation(store, "How?", title="A talk about how")
    (text,) = Passages(store).texts([1, 99])
    assert (text.title, text.conversation_id) == ("A talk about how", whole.conversation.id)
    assert [(part.id, part.role, part.text) for part in text.parts] == [
        (part_id(1, 0), Role.USER, "How?"),
        (part_id(1, 1), Role.ASSISTANT, "An answer to How?"),
    ]
    assert [part.message_id for part in text.parts] == [each.id for each in whole.messages]
    assert (text.before, text.after) == ((), ())


def test_a_turn_s_text_includes_its_neighbors_on_the_path(store: Store) -> None:
    whole = add_conversation(store, "one", "two", "three")
    first, second, third = Passages(store).texts([3, 1, 2])
    assert [first.id, second.id, third.id] == [1, 2, 3]
    assert (first.before, third.after) == ((), ())
    assert (second.before, second.after) == (first.parts, third.parts)
    ((_, alone),) = Passages(store).shown([2]).values()
    assert (alone.parts, alone.before, alone.after) == (second.parts, (), ())
    store.save(ExchangePut(replace(whole.exchanges[1], segment_number=1)))
    first, second = Passages(store).texts([1, 2])
    assert (first.after, second.before) == ((), ()), "a turn of another segment is no neighbor"


def test_of_two_answers_the_newer_is_what_comes_next(store: Store) -> None:
    sibling = replace(add_conversation(store, "one", "two").exchanges[1], id=store.ids.exchange())
    store.save(ExchangePut(sibling), PassagesPut((turn_passage_of(store, sibling),)))
    first, older, newer = Passages(store).texts([1, 2, 3])
    assert first.after == newer.parts
    assert older.before == newer.before == first.parts
    assert Passages(store).with_turns_before([3]) == [1, 3]


def test_newest_passages_are_read_in_pages(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_of_passages, "_FIRST_PAGE", 2)
    for number in range(11):
        add_conversation(store, "said", at=AT + timedelta(hours=number * 7 % 11))
    found = [*Passages(store).newest(SearchQuery(), [PassageKind.TURN])]
    assert found == sorted(range(1, 12), key=lambda each: -((each - 1) * 7 % 11))


def test_hidden_passages_are_archived_deleted_or_private(store: Store) -> None:
    shown, archived, trashed, private = (
        add_conversation(store, word) for word in ("a", "b", "c", "d")
    )
    store.save(
        ConversationEdited(archived.conversation.id, archived=True),
        ConversationEdited(trashed.conversation.id, deleted_at=AT),
        ConversationEdited(private.conversation.id, private=True),
    )
    passages = Passages(store)
    assert sorted(passages.hidden()) == [2, 3, 4]
    assert sorted(passages.allowed(SearchQuery(), None)) == [1]
    assert sorted(passages.allowed(SearchQuery(archived=True), None)) == [2]
    assert [*passages.newest(SearchQuery(archived=True), [PassageKind.TURN])] == [2]
    assert sorted(passages.of_conversations([shown.conversation.id])) == [1]
    both = [shown.conversation.id, private.conversation.id]
    assert sorted(passages.of_conversations(both)) == [1, 4]
    assert len(passages.of_kind(PassageKind.FACT)) == 0


def test_a_limit_holds_although_a_table_beside_it_is_empty(store: Store) -> None:
    """DuckDB 2.0.0 loses a LIMIT over some joins with an empty table; see WORKAROUND."""
    for number in range(7):
        add_conversation(store, "one", "two", title=f"T{number}")
    work = SummaryWork(store)
    assert len(work.missing(EXCHANGE_SUMMARIES, 5, 1, None, AT)) == 5
    assert len(work.missing(CONVERSATION_SUMMARIES, 3, 1, None, AT)) == 3
    Attempts(store, "exchange_summarizer").failed(1, 1, None, "why")
    store.save(
        SummaryPut("exchange", 2, add_conversation(store, "x").conversation.id, "s", "m", "h", AT)
    )
    assert len(work.missing(EXCHANGE_SUMMARIES, 5, 1, None, AT)) == 5
    assert len(Passages(store).work_since(0, 4).added) >= 4


def test_failures_are_counted_settled_and_cleared(store: Store) -> None:
    attempts, others = Attempts(store, "one"), Attempts(store, "other")
    attempts.failed(1, 1, AT, "timeout")
    attempts.failed(1, 2, AT, "timeout")
    attempts.failed(2, 6, None, "poison")
    others.failed(1, 1, AT, "x")
    assert attempts.tries() == {1: 2, 2: 6}
    attempts.settle([1])
    assert attempts.tries() == {2: 6}
    attempts.clear_failures()
    assert attempts.tries() == {}
    assert others.tries() == {1: 1}
