"""Imported conversations become ours: new, grown in any way, merged, with all that they carry."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain.changes import ConversationEdited, ConversationForgotten, TagsChanged
from app.domain.conversations import Exchange, ExchangeStatus, Role, Text, TitleOrigin
from app.domain.ids import ConversationId, ExchangeId
from app.domain.passages import PassageKind
from app.domain.transfer import CarriedSummary, ImportedConversation, ImportedMessage
from app.domain.turns import calculate_exchanges
from app.domain.workers import WorkerName
from app.storage.conversations import Conversations
from app.storage.exchanges import Exchanges, shown_path
from app.storage.passages import Passages
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.summaries import Summaries
from app.transfer.adopting import Adopted, Adoption
from app.workers.board import WorkerBoard
from tests.fakes.stored import opened, tables, told

AT = datetime(2025, 5, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with opened(data_dir) as open_store:
        yield open_store


def said(name: str, parent: str | None, role: Role, text: str = "", at: int = 0) -> ImportedMessage:
    moment = AT + timedelta(minutes=at)
    return ImportedMessage(name, parent, role, (Text(text or f"{name} says it"),), moment)


def row(*names: str) -> tuple[ImportedMessage, ...]:
    """Return question and answer in turn, one below the other."""
    return tuple(
        said(name, names[place - 1] if place else None, (Role.USER, Role.ASSISTANT)[place % 2],
             at=place)
        for place, name in enumerate(names)
    )  # fmt: skip


def conversation(
    *messages: ImportedMessage, source: str = "chatgpt", **more: object
) -> ImportedConversation:
    whole = ImportedConversation(source, "talk", "A talk", messages, messages[-1].source_id)
    return replace(whole, **more)  # type: ignore[arg-type]


def adopt(store: Store, *found: ImportedConversation, dry_run: bool = False) -> list[Adopted]:
    return list(Adoption(store, dry_run=dry_run).adopt(found).results())


def path_of(store: Store, conversation_id: int = 1) -> list[list[str]]:
    """Return the texts of the shown path, turn by turn."""
    shown = shown_path(
        Conversations(store).get(conversation_id), Exchanges(store).of(conversation_id)
    )
    return [[each.text for each in Exchanges(store).messages_of(turn)] for turn in shown]


# -- new


def test_a_new_conversation_has_turns_passages_and_origins(store: Store) -> None:
    (adopted,) = adopt(store, conversation(*row("u0", "a0", "u1", "a1")))
    assert adopted == Adopted(is_new=True, new_turns=2, new_messages=4, duplicates=0)
    assert path_of(store) == [["u0 says it", "a0 says it"], ["u1 says it", "a1 says it"]]
    assert Passages(store).count_by_kind() == {PassageKind.TURN: 2}
    assert Conversations(store).imported_ids("chatgpt", "message", ["talk/u0"]) == {"talk/u0": 1}


def test_a_message_without_a_date_has_its_predecessors(store: Store) -> None:
    first, second = row("u0", "a0")
    adopt(store, conversation(first, replace(second, created_at=None)))
    assert [each.created_at for each in Exchanges(store).messages_in(1)] == [AT, AT]


def test_a_parent_that_did_not_come_makes_a_root(store: Store) -> None:
    adopt(store, conversation(said("a9", "gone", Role.ASSISTANT)))
    (message,) = Exchanges(store).messages_in(1)
    assert message.parent_id is None


def test_a_private_one_leaves_no_passage_and_no_summary(store: Store) -> None:
    carried = CarriedSummary("Told in secret", "extractive", AT + timedelta(days=1))
    adopt(store, conversation(*row("u0", "a0"), private=True, summaries=(carried,)))
    assert Passages(store).count_by_kind() == {}
    assert Summaries(store).latest("conversation", [1]) == {}


def test_a_dry_run_counts_the_same_and_writes_nothing(store: Store) -> None:
    before = tables(store)
    (adopted,) = adopt(store, conversation(*row("u0", "a0")), dry_run=True)
    assert adopted.new_messages == 2
    assert tables(store) == before


def test_what_is_being_written_is_known_by_its_key(store: Store) -> None:
    found = conversation(*row("u0", "a0"))
    written = Adoption(store).adopt([found])
    assert written.shares_with([found])
    assert not written.shares_with([replace(found, source_id="another")])
    assert not written.shares_with([replace(found, source="claude")])
    list(written.results())


# -- grown


def test_the_same_again_writes_nothing(store: Store) -> None:
    found = conversation(*row("u0", "a0"), tags=("art",))
    adopt(store, found)
    before = tables(store)
    (adopted,) = adopt(store, found)
    assert adopted == Adopted(is_new=False, new_turns=0, new_messages=0, duplicates=2)
    assert tables(store) == before


def test_a_grown_one_shows_its_new_end_and_keeps_the_ids_of_turns(store: Store) -> None:
    adopt(store, conversation(*row("u0", "a0")))
    (turn,) = Exchanges(store).of(1)
    adopt(store, conversation(*row("u0", "a0", "u1", "a1")))
    assert Exchanges(store).of(1)[0].id == turn.id
    assert len(path_of(store)) == 2


def test_a_question_that_was_answered_since_is_the_same_turn_with_one_passage(store: Store) -> None:
    adopt(store, conversation(*row("u0")))
    (turn,) = Exchanges(store).of(1)
    assert turn.status is ExchangeStatus.INTERRUPTED
    adopt(store, conversation(*row("u0", "a0")))
    (answered,) = Exchanges(store).of(1)
    assert (answered.id, answered.status) == (turn.id, ExchangeStatus.COMPLETED)
    (passage,) = Passages(store).texts(Passages(store).of_source(PassageKind.TURN, turn.id))
    assert [part.text for part in passage.parts][1:] == ["a0 says it"]
    assert Passages(store).count_by_kind() == {PassageKind.TURN: 1}


def test_a_branch_that_grew_is_a_sibling_and_is_shown(store: Store) -> None:
    messages = row("u0", "a0", "u1", "a1")
    adopt(store, conversation(*messages))
    again = said("b0", "u0", Role.ASSISTANT, at=9)
    (adopted,) = adopt(store, conversation(*messages, again))
    assert (adopted.new_turns, adopted.new_messages) == (1, 1)
    assert path_of(store) == [["u0 says it", "b0 says it"]]
    assert len(Exchanges(store).of(1)) == 3


def test_where_the_talk_went_on_here_it_stays_shown(store: Store) -> None:
    adopt(store, conversation(*row("u0", "a0")))
    here = told(store, "said here")
    own = replace(here.messages[0], conversation_id=ConversationId(1))
    store.save(ConversationEdited(ConversationId(1), visible_leaf_id=own.id))
    adopt(store, conversation(*row("u0", "a0", "u1", "a1")))
    assert Conversations(store).get(1).visible_leaf_id == own.id


def test_a_title_that_came_later_is_taken_unless_the_user_gave_one(store: Store) -> None:
    untitled = conversation(*row("u0", "a0"), title="")
    adopt(store, untitled)
    assert Conversations(store).get(1).title_origin is TitleOrigin.FIRST_WORDS
    adopt(store, replace(untitled, title="Named since"))
    assert Conversations(store).get(1).title == "Named since"
    mine = ConversationEdited(ConversationId(1), title="Mine", title_origin=TitleOrigin.USER)
    store.save(mine)
    adopt(store, replace(untitled, title="Named again"))
    assert Conversations(store).get(1).title == "Mine"


def test_tags_are_added_and_none_is_taken_away(store: Store) -> None:
    adopt(store, conversation(*row("u0", "a0"), tags=("art",)))
    store.save(TagsChanged(ConversationId(1), ("mine",)))
    adopt(store, conversation(*row("u0", "a0"), tags=("art", "blue")))
    assert Conversations(store).tags_of([1]) == {1: ("art", "blue", "mine")}


def test_a_forgotten_one_is_new_when_it_comes_again(store: Store) -> None:
    found = conversation(*row("u0", "a0"))
    adopt(store, found)
    store.save(ConversationForgotten(ConversationId(1)))
    (adopted,) = adopt(store, found)
    assert adopted.is_new
    assert path_of(store, 2) == [["u0 says it", "a0 says it"]]


def test_an_origin_that_points_nowhere_is_no_hindrance(store: Store) -> None:
    found = conversation(*row("u0", "a0"))
    adopt(store, found)
    store.write_derived(lambda c: c.execute("DELETE FROM conversation")).result()
    (adopted,) = adopt(store, found)
    assert adopted.is_new


def test_the_same_ids_of_two_sources_are_two_conversations(store: Store) -> None:
    found = conversation(*row("u0", "a0"))
    assert [each.is_new for each in adopt(store, found, replace(found, source="claude"))] == [
        True,
        True,
    ]


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[ImportedMessage], int]:
    """Return a tree of messages, parents first, and how many of them come first."""
    size = draw(st.integers(1, 14))
    messages: list[ImportedMessage] = []
    for number in range(size):
        above = draw(st.none() | st.integers(0, number - 1)) if number else None
        role = draw(st.sampled_from((Role.USER, Role.ASSISTANT)))
        parent = None if above is None else messages[above].source_id
        messages.append(said(f"m{number}", parent, role, at=number))
    return messages, draw(st.integers(1, size))


@settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(trees())
def test_growing_comes_to_the_same_as_coming_whole(
    store: Store, tree: tuple[list[ImportedMessage], int]
) -> None:
    messages, first = tree
    name = f"talk-{store.ids.conversation()}"
    adopt(store, conversation(*messages[:first], source_id=name))
    adopt(store, conversation(*messages, source_id=name))
    here = Conversations(store).imported_ids("chatgpt", "conversation", [name])[name]
    kept = Exchanges(store).messages_in(here)
    numbers = count(1)
    expected = calculate_exchanges(kept, lambda: ExchangeId(next(numbers)))
    assert _shape(Exchanges(store).of(here)) == _shape(expected)
    turns = [Passages(store).of_source(PassageKind.TURN, each.id) for each in _of(store, here)]
    assert all(len(each) == 1 for each in turns)


def _of(store: Store, conversation_id: int) -> Sequence[Exchange]:
    return Exchanges(store).of(conversation_id)


def _shape(exchanges: Sequence[Exchange]) -> set[tuple[object, ...]]:
    """Return what exchanges are but for their ids."""
    messages = {each.id: each.message_ids for each in exchanges}
    return {
        (
            each.message_ids,
            each.turn_number,
            each.status,
            each.parent_id and messages[each.parent_id],
        )
        for each in exchanges
    }


# -- summaries


def summarised(
    text: str = "They spoke of colours.", days: float = 1, of: str | None = None
) -> CarriedSummary:
    return CarriedSummary(text, "extractive", AT + timedelta(days=days), of)


def waiting(store: Store) -> list[int]:
    """Return how many exchanges and conversations still lack a current summary."""
    board = WorkerBoard(store, Settings(store))
    summarisers = (WorkerName.EXCHANGE_SUMMARIZER, WorkerName.CONVERSATION_SUMMARIZER)
    return [each.total - each.done for each in board.refresh() if each.name in summarisers]


def test_a_summary_that_came_along_is_current_and_found(store: Store) -> None:
    carried = (summarised(), summarised("Blue was named.", of="a0"))
    adopt(store, conversation(*row("u0", "a0"), summaries=carried))
    assert waiting(store) == [0, 0]
    assert Summaries(store).latest("conversation", [1])[1].text == "They spoke of colours."
    assert Passages(store).count_by_kind() == {
        PassageKind.CONVERSATION_SUMMARY: 1,
        PassageKind.EXCHANGE_SUMMARY: 1,
        PassageKind.TURN: 1,
    }
    texts = {each.kind: each.parts[0].text for each in Passages(store).texts(range(1, 9))}
    assert texts[PassageKind.EXCHANGE_SUMMARY] == "Blue was named."
    assert texts[PassageKind.CONVERSATION_SUMMARY] == "They spoke of colours."


def test_a_summary_older_than_its_source_is_due_again(store: Store) -> None:
    carried = (summarised(days=-1), summarised("Blue was named.", days=-1, of="a0"))
    adopt(store, conversation(*row("u0", "a0"), summaries=carried))
    assert waiting(store) == [1, 1]
    assert Summaries(store).latest("conversation", [1])[1].text == "They spoke of colours."


def test_a_conversation_that_grew_since_needs_a_new_summary(store: Store) -> None:
    adopt(store, conversation(*row("u0", "a0"), summaries=(summarised(),)))
    assert waiting(store) == [1, 0]
    adopt(store, conversation(*row("u0", "a0", "u1", "a1")))
    assert waiting(store) == [2, 1]


def test_a_summary_is_replaced_with_its_passage(store: Store) -> None:
    adopt(store, conversation(*row("u0", "a0"), summaries=(summarised(days=-1),)))
    WorkerBoard(store, Settings(store)).run_until_idle()
    assert Passages(store).count_by_kind()[PassageKind.CONVERSATION_SUMMARY] == 1
    assert Summaries(store).latest("conversation", [1])[1].text != "They spoke of colours."


def test_the_newest_of_several_summaries_is_shown_and_found(store: Store) -> None:
    carried = (summarised("Newer", 2), summarised("Older", 1))
    adopt(store, conversation(*row("u0", "a0"), summaries=carried))
    assert Summaries(store).latest("conversation", [1])[1].text == "Newer"
    assert Passages(store).count_by_kind()[PassageKind.CONVERSATION_SUMMARY] == 1


def test_a_summary_of_a_turn_that_did_not_come_is_left_out(store: Store) -> None:
    adopt(store, conversation(*row("u0", "a0"), summaries=(summarised(of="nowhere"),)))
    assert Summaries(store).latest("exchange", [1]) == {}
