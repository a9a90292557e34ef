"""Storing of imported conversations: new ones, updates, metadata and summaries."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain.changes import ConversationEdited, TagsChanged
from app.domain.conversations import OWN_SOURCE, Exchange, ExchangeStatus, Role, Text, TitleOrigin
from app.domain.deletions import ConversationForgotten
from app.domain.ids import ConversationId, ExchangeId
from app.domain.passages import PassageKind
from app.domain.transfer import ImportedConversation, ImportedMessage, PortableSummary
from app.domain.turns import calculate_exchanges
from app.domain.workers import WorkerName
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges, shown_path
from app.storage.tables.passages.queries import Passages
from app.storage.tables.settings import Settings
from app.storage.tables.summaries import Summaries
from app.transfer.importer import ConversationImporter, ImportCounts
from app.workers.board import WorkerBoard
from app.workers.jobs import JobParts
from tests.fakes.stored import add_conversation, tables

AT = datetime(2025, 5, 1, 12, 0, tzinfo=UTC)


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


def imported(
    store: Store, *found: ImportedConversation, dry_run: bool = False
) -> list[ImportCounts]:
    return [each.wait() for each in ConversationImporter(store, dry_run=dry_run).store(found)]


def path_of(store: Store, conversation_id: int = 1) -> list[list[str]]:
    """Return the texts of the shown path, turn by turn."""
    shown = shown_path(
        Conversations(store).get(conversation_id), Exchanges(store).of(conversation_id)
    )
    return [[each.text for each in Exchanges(store).messages_of(turn)] for turn in shown]


# -- new
def test_a_new_conversation_is_stored_once(store: Store) -> None:
    first, *rest = row("u0", "a0", "u1", "a1")
    found = conversation(first, *(replace(each, created_at=None) for each in rest), tags=("art",))
    assert imported(store, found) == [ImportCounts(1, 2, 4)]
    assert path_of(store) == [["u0 says it", "a0 says it"], ["u1 says it", "a1 says it"]]
    assert {each.created_at for each in Exchanges(store).messages_in(1)} == {AT}
    assert Passages(store).count_by_kind() == {PassageKind.TURN: 2}
    assert Conversations(store).imported_ids("chatgpt", "message", ["talk/u0"]) == {"talk/u0": 1}
    before = tables(store)
    assert imported(store, found) == [ImportCounts(duplicates=4)]
    other = replace(found, source_id="other")
    assert imported(store, other, dry_run=True) == [ImportCounts(1, 2, 4)]
    assert tables(store) == before
    orphan = said("a9", "missing", Role.ASSISTANT)
    others = (replace(found, source="claude"), conversation(orphan, source_id="orphan"))
    assert [each.conversations for each in imported(store, *others)] == [1, 1]
    assert Exchanges(store).messages_in(4)[0].parent_id is None


def test_a_private_one_leaves_no_passage_and_no_summary(store: Store) -> None:
    carried = PortableSummary("Told in secret", "extractive", AT + timedelta(days=1))
    imported(store, conversation(*row("u0", "a0"), private=True, summaries=(carried,)))
    assert Passages(store).count_by_kind() == {}
    assert Summaries(store).latest("conversation", [1]) == {}


# -- grown
def test_a_conversation_grows_by_replies_and_branches(store: Store) -> None:
    messages = row("u0", "a0", "u1", "a1")
    imported(store, conversation(*messages[:1]))
    (turn,) = Exchanges(store).of(1)
    assert turn.status is ExchangeStatus.INTERRUPTED
    imported(store, conversation(*messages[:2]))
    (answered,) = Exchanges(store).of(1)
    assert (answered.id, answered.status) == (turn.id, ExchangeStatus.COMPLETED)
    (passage,) = Passages(store).texts(Passages(store).of_source(PassageKind.TURN, turn.id))
    assert [part.text for part in passage.parts][1:] == ["a0 says it"]
    assert Passages(store).count_by_kind() == {PassageKind.TURN: 1}
    again = said("b0", "u0", Role.ASSISTANT, at=9)
    (counts,) = imported(store, conversation(*messages, again))
    assert (counts.turns, counts.messages) == (2, 3)
    assert path_of(store) == [["u0 says it", "b0 says it"]]
    assert len(Exchanges(store).of(1)) == 3
    here = add_conversation(store, "continued here")  # a leaf that no import knows stays visible
    own = replace(here.messages[0], conversation_id=ConversationId(1))
    store.save(ConversationEdited(ConversationId(1), visible_leaf_id=own.id))
    imported(store, conversation(*messages, again, said("u2", "a1", Role.USER)))
    assert Conversations(store).get(1).visible_leaf_id == own.id


def test_instructions_are_not_added_above_messages_stored_without_them(store: Store) -> None:
    first, *rest = row("u0", "a0", "u1", "a1")
    imported(store, conversation(first, *rest[:1]))
    told = said("told", None, Role.SYSTEM)
    below = replace(first, parent="told")
    before = tables(store)
    assert imported(store, conversation(told, below, *rest[:1])) == [ImportCounts(duplicates=2)]
    assert tables(store) == before
    other = said("other", "told", Role.USER)
    grown = conversation(told, below, *rest, other)
    assert imported(store, grown) == [ImportCounts(0, 2, 3, 2)]
    assert {each.turn_number for each in Exchanges(store).of(ConversationId(1))} == {0, 1}
    assert "told says it" not in {each.text for each in Exchanges(store).messages_in(1)}
    assert imported(store, replace(grown, source_id="new")) == [ImportCounts(1, 3, 6)]


def test_a_later_title_is_taken_unless_the_user_gave_one(store: Store) -> None:
    untitled = conversation(*row("u0", "a0"), title="")
    imported(store, untitled)
    first = Conversations(store).get(1)
    assert (first.title, first.title_origin) == ("u0 says it", TitleOrigin.FIRST_WORDS)
    imported(store, replace(untitled, title="Named since"))
    assert Conversations(store).get(1).title == "Named since"
    later = conversation(*row("u0", "a0", "u1"), title="Renamed there")
    imported(store, later)
    assert Conversations(store).get(1).title == "Renamed there"
    imported(store, replace(untitled, title="Named since"))  # an older export
    assert Conversations(store).get(1).title == "Renamed there"
    mine = ConversationEdited(ConversationId(1), title="Mine", title_origin=TitleOrigin.USER)
    store.save(mine)
    imported(store, replace(later, title="Named again"))
    assert Conversations(store).get(1).title == "Mine"


@pytest.mark.parametrize(
    ("source", "tags"), [("claude", ("mine",)), (OWN_SOURCE, ("art", "blue", "mine"))]
)
def test_another_program_gives_tags_once_so_that_removed_ones_stay_away(
    store: Store, source: str, tags: tuple[str, ...]
) -> None:
    found = replace(conversation(*row("u0", "a0")), source=source, tags=("art",))
    imported(store, found)
    store.save(TagsChanged(ConversationId(1), ("mine",), ("art",)))
    grown = conversation(*row("u0", "a0", "u1"))
    imported(store, replace(found, messages=grown.messages, tags=("art", "blue")))
    assert Conversations(store).tags_of([1]) == {1: tags}


@pytest.mark.parametrize("deleted", ["forgotten", "missing row"])
def test_a_deleted_conversation_is_imported_again_when_wanted(store: Store, deleted: str) -> None:
    found = conversation(*row("u0", "a0"))
    imported(store, found)
    if deleted == "forgotten":
        store.save(ConversationForgotten(ConversationId(1)))
        assert imported(store, found) == [ImportCounts(forgotten=1)]
    else:
        store.write_derived(lambda c: c.execute("DELETE FROM conversation")).result()
    importer = ConversationImporter(store, restore_forgotten=True)
    assert [each.wait() for each in importer.store([found])] == [ImportCounts(1, 1, 2)]
    assert path_of(store, 2) == [["u0 says it", "a0 says it"]]


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[ImportedMessage], int]:
    """Return a tree of messages, parents first, and how many of them come first."""
    messages: list[ImportedMessage] = []
    for number in range(draw(st.integers(1, 14))):
        above = draw(st.sampled_from([None, *(each.source_id for each in messages)]))
        role = draw(st.sampled_from((Role.USER, Role.ASSISTANT)))
        messages.append(said(f"m{number}", above, role, at=number))
    return messages, draw(st.integers(1, len(messages)))


@settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(trees())
def test_growing_is_like_being_whole(store: Store, tree: tuple[list[ImportedMessage], int]) -> None:
    messages, first = tree
    name = f"talk-{store.ids.conversation()}"
    imported(store, conversation(*messages[:first], source_id=name))
    imported(store, conversation(*messages, source_id=name))
    here = Conversations(store).imported_ids("chatgpt", "conversation", [name])[name]
    kept = Exchanges(store).messages_in(here)
    numbers = count(1)
    expected = calculate_exchanges(kept, lambda: ExchangeId(next(numbers)))
    assert _shape(Exchanges(store).of(here)) == _shape(expected)
    turns = [
        Passages(store).of_source(PassageKind.TURN, each.id) for each in Exchanges(store).of(here)
    ]
    assert all(len(each) == 1 for each in turns)


def _shape(exchanges: Sequence[Exchange]) -> set[tuple[object, ...]]:
    """Return exchanges with the parents' messages instead of ids."""
    above: dict[object, object] = {None: None}
    above |= {each.id: each.message_ids for each in exchanges}
    return {
        (each.message_ids, each.turn_number, each.status, above[each.parent_id])
        for each in exchanges
    }


# -- summaries
def summarised(
    text: str = "They spoke of colours.", days: float = 1, of: str | None = None
) -> PortableSummary:
    return PortableSummary(text, "extractive", AT + timedelta(days=days), of)


def waiting(store: Store) -> list[int]:
    """Return how many exchanges and conversations have no current summary."""
    board = WorkerBoard(JobParts(store, Settings(store)))
    count = {each.name: each.total - each.done for each in board.refresh()}
    return [count[WorkerName.EXCHANGE_SUMMARIZER], count[WorkerName.CONVERSATION_SUMMARIZER]]


@pytest.mark.parametrize(
    ("summaries", "due", "latest"),
    [((summarised(),), [1, 0], "They spoke of colours."),
     ((summarised(), summarised("Blue was named.", of="a0")), [0, 0], "They spoke of colours."),
     ((summarised(days=-1), summarised("Blue.", -1, of="a0")), [1, 1], "They spoke of colours."),
     ((summarised("Newer", 2), summarised("Older", 1)), [1, 0], "Newer"),
     ((summarised(of="nowhere"),), [1, 1], None)],
)  # fmt: skip
def test_imported_summaries_are_current_unless_their_source_is_newer(
    store: Store, summaries: tuple[PortableSummary, ...], due: list[int], latest: str | None
) -> None:
    imported(store, conversation(*row("u0", "a0"), summaries=summaries))
    assert waiting(store) == due
    found = Summaries(store).latest("conversation", [1])
    assert [each.text for each in found.values()] == ([] if latest is None else [latest])
    assert Passages(store).count_by_kind().get(PassageKind.CONVERSATION_SUMMARY, 0) == len(found)
    texts = {each.kind: each.parts[0].text for each in Passages(store).texts(range(1, 9))}
    assert texts.get(PassageKind.CONVERSATION_SUMMARY) == latest
    ofs = [each for each in summaries if each.last_message == "a0"]
    assert texts.get(PassageKind.EXCHANGE_SUMMARY) == (ofs[0].text if ofs else None)
    imported(store, conversation(*row("u0", "a0", "u1", "a1")))
    assert waiting(store) == [due[0] + 1, 1]
    WorkerBoard(JobParts(store, Settings(store))).run_until_idle()
    assert Passages(store).count_by_kind()[PassageKind.CONVERSATION_SUMMARY] == 1
    assert Summaries(store).latest("conversation", [1])[1].text != latest
