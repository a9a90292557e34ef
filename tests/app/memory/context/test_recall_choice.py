"""Choices for one message: memory off, passages left out, conversations mentioned."""

from dataclasses import replace

import pytest

from app.domain.conversations import RecallChoice
from app.domain.errors import MemoryOff
from app.domain.ids import ConversationId, MessageId, PassageId
from app.domain.recall import (
    PlanPart,
    PlanPartKind,
    RecallLayer,
    RecallSettings,
    RetrievalResult,
    SegmentContext,
    Verdict,
)
from app.memory.context.items import NOT_THIS_TIME
from app.memory.context.plan import ContextPlan, PromptInput, plan_context, recalled_block
from app.memory.recall.mentions import Mentions
from app.storage.engine.store import Store
from tests.fakes.found import fact, said_in, talk, turn
from tests.fakes.searchable import CAT, RecallLibrary
from tests.fakes.stored import ConversationRecord, add_conversation

HERE = ConversationId(1)
OWN = PlanPart(PlanPartKind.QUESTION, 10, False, message_ids=(MessageId(990),))


def planned(found: RetrievalResult, *left_out: int, ceiling: int = 24_000) -> ContextPlan:
    prompt = PromptInput(
        HERE, "tea?", (), (), (), OWN, left_out=frozenset(map(PassageId, left_out))
    )
    return plan_context(prompt, RecallSettings(rag_hint_similarity=1.0), found, ceiling)


def outcome(plan: ContextPlan) -> dict[int, str]:
    return {int(each.passage_id): each.dropped_by for each in plan.items}


# -- left out
def test_what_is_left_out_takes_its_place_and_nothing_is_quoted_instead() -> None:
    found = RetrievalResult(
        facts=tuple(fact(each, f"fact number {each}") for each in range(1, 5)),
        history=(turn(600, "green"), turn(601, "black"), turn(602, "white")),
    )
    before, after = outcome(planned(found)), outcome(planned(found, 2, 1600))
    assert {each for each, why in before.items() if not why} == {1, 2, 3, 1600, 1601}
    assert {each for each, why in after.items() if not why} == {1, 3, 1601}
    assert {each for each, why in after.items() if why == NOT_THIS_TIME} == {2, 1600}
    assert "green" not in recalled_block(planned(found, 2, 1600).parts)


def test_a_conversation_whose_only_turn_is_left_out_is_not_headed() -> None:
    found = RetrievalResult(conversations=(talk(60, turn(600, "green")),))
    by_summary = planned(found)
    assert recalled_block(by_summary.parts)
    left_out = {int(each.passage_id) for each in by_summary.items}
    assert recalled_block(planned(found, *left_out).parts) == ""


# -- mentioned
def test_a_mention_is_quoted_first_whatever_its_relevance_and_only_once() -> None:
    mentioned = talk(60, turn(600, "green", relevance=0.1), relevance=0.1)
    found = RetrievalResult(
        mentioned=(mentioned,),
        conversations=(mentioned,),
        history=(turn(600, "green"), turn(700, "black", conversation_id=70)),
    )
    plan = planned(found)
    assert [each.layer for each in plan.items if each.injected] == [
        RecallLayer.MENTION, RecallLayer.MENTION, RecallLayer.HISTORY
    ]  # fmt: skip
    block = recalled_block(plan.parts)
    assert 0 < block.index("the message asks for") < block.index("green") < block.index("black")
    assert block.count("commonplace://60/3") == 1


def test_a_mention_keeps_to_the_budget() -> None:
    long = talk(60, *(turn(each, "green tea. " * 400) for each in (600, 601, 602)))
    plan = planned(RetrievalResult(mentioned=(long,)), ceiling=4_000)
    assert 0 < next(each for each in plan.parts if each.kind is PlanPartKind.RELATED).tokens <= 600


def mentioned(
    library: RecallLibrary, question: str, *records: ConversationRecord
) -> RetrievalResult:
    ids = tuple(each.conversation.id for each in records)
    library.sync.catch_up()
    return library.recall_service.retrieve(
        question, None, SegmentContext(mentioned=ids), RecallSettings()
    )


def test_turns_of_a_mentioned_conversation_that_answer_are_found(library: RecallLibrary) -> None:
    filler = [(f"What about place {each}?", f"It is number {each}.") for each in range(6)]
    walk = add_conversation(
        library.store, *filler, ("Where do we sleep?", "In the old mill."), title="A walk"
    )
    (found,) = mentioned(library, "Where do we sleep on @A walk?", walk).mentioned
    assert (found.conversation_id, found.title) == (walk.conversation.id, "A walk")
    assert "In the old mill." in said_in(found.exchanges[0], is_user=False)
    assert len(found.exchanges) <= 3
    # A question that has nothing of it gets what was said last.
    (found,) = mentioned(library, "Xylophones?", walk).mentioned
    assert found.exchanges


def test_private_deleted_and_refused_parts_are_never_mentioned(library: RecallLibrary) -> None:
    private = add_conversation(library.store, "mine alone", private=True)
    cat = library.about_cat
    (found,) = mentioned(library, "Who is the vet?", private, cat).mentioned
    assert found.conversation_id == cat.conversation.id
    (turn,) = found.exchanges
    assert said_in(turn, is_user=True) == CAT
    library.feedback.give(turn.match.passage_id, Verdict.NEVER)
    assert not any(each.exchanges for each in mentioned(library, "Who is the vet?", cat).mentioned)


# -- the built-in model, which recalls by itself
def answered(library: RecallLibrary, choice: RecallChoice) -> list[tuple[str, int]]:
    library.sync.catch_up()
    found = library.recall_service.answers(
        "Which vet looks after Minka?", (), ConversationId(999), 6, choice
    )
    return [(each.result.conversation_title, each.result.passage_id) for each in found or ()]


def test_recall_keeps_to_the_choice_for_a_message(library: RecallLibrary) -> None:
    other = add_conversation(library.store, ("Which vet is near?", "Doctor Bell."), title="Vets")
    both = answered(library, RecallChoice())
    assert {title for title, _ in both} >= {"Minka", "Vets"}
    out = frozenset(PassageId(each) for title, each in both if title == "Minka")
    assert "Minka" not in {title for title, _ in answered(library, RecallChoice(left_out=out))}
    only = answered(library, RecallChoice(mentioned=(other.conversation.id,)))
    assert {title for title, _ in only} == {"Vets"}
    with pytest.raises(MemoryOff):
        answered(library, RecallChoice(is_on=False))


# -- titles in a text
@pytest.fixture
def mentions(store: Store) -> Mentions:
    for title in ("Tea", "Tea in Kyoto", "\u8336\u306e\u6e6f", "Old list"):
        add_conversation(store, ("hello", "hello"), title=title)
    add_conversation(store, ("secret", "secret"), title="Tea secrets", private=True)
    return Mentions(store)


def test_the_longest_title_is_mentioned(mentions: Mentions) -> None:
    for text, *expected in (
        ("What of @Tea in Kyoto?", "@Tea in Kyoto"), ("me@tea.example and @teapot",), ("@ Tea",),
        ("@tea, and @TEA IN KYOTO", "@tea", "@TEA IN KYOTO"), ("@Tea secrets", "@Tea"),
        ("\u300c@\u8336\u306e\u6e6f\u300d\u306e\u7d9a\u304d", "@\u8336\u306e\u6e6f"),
    ):  # fmt: skip
        assert [text[each.start : each.end] for each in mentions.in_text(text)] == expected, text


def test_of_equal_titles_the_chosen_one_is_mentioned(mentions: Mentions, store: Store) -> None:
    first, second = (add_conversation(store, ("a", "b"), title="Twins") for _ in range(2))
    ids = {each.conversation.id for each in (first, second)}
    for each in ids:
        mentions.choose("Twins", each)
        (found,) = mentions.in_text("@Twins")
        assert found.conversation_id == each


def test_titles_that_begin_with_what_is_typed_come_first(mentions: Mentions) -> None:
    assert next(each.title for each in mentions.matching("tea", 5)).startswith("Tea")
    assert {each.title for each in mentions.matching("tea", 5)} == {"Tea", "Tea in Kyoto"}
    assert [each.title for each in mentions.matching("kyo tea", 5)] == ["Tea in Kyoto"]
    assert len(mentions.matching("", 2)) == 2


def test_two_choices_for_messages_that_become_one_are_kept() -> None:
    one = RecallChoice(left_out=frozenset({PassageId(1)}), mentioned=(HERE,))
    two = replace(one, is_on=False, left_out=frozenset({PassageId(2)}))
    assert one.and_also(two) == RecallChoice(False, frozenset({1, 2}), (HERE,))  # type: ignore[arg-type]
