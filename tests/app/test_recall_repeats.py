"""A question that was asked before does not crowd out the turn that answers it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.ids import ConversationId
from app.domain.retrieved import RecallOptions, Segment
from app.memory.recall import RecallService
from tests.app.test_recall_service import FLOOR, Past
from tests.app.test_search_service import Library
from tests.fakes.stored import opened, told

QUESTION = "What is the name of the beekeeper who rents our orchard?"
STATES = (
    "We rent the orchard to a beekeeper from May on, her name is Ottoline.",
    "Good to hear. Agree on who mows the grass around the hives.",
)
ASKED_BEFORE = (
    (QUESTION, "I don't know the name of the beekeeper who rents your orchard."),
    ("what is the name of the beekeeper who rents our orchard", "Sorry, I have no information on that."),
    ("Who is the beekeeper renting the orchard?", "I can't find this. Who do you mean?"),
    ("What's the name of our orchard's beekeeper?", "You have not told me so far. What is it?"),
    ("Do you remember the name of the beekeeper in our orchard?", "Which orchard is it about?"),
    (QUESTION, "I do not have any record of the name of a beekeeper."),
)  # fmt: skip


@pytest.fixture
def past(data_dir: Path) -> Iterator[Past]:
    with opened(data_dir) as store:
        library = Library(store)
        yield Past(library)
        library.sync.stop()


def injected(
    past: Past, question: str = QUESTION, service: RecallService | None = None
) -> list[str]:
    """Return what the user said in the turns that would be injected, best first, each once."""
    past.library.sync.catch_up()
    found = (service or past.service).retrieve(question, None, Segment(), RecallOptions())
    turns = [turn for talk in found.conversations for turn in talk.exchanges] + [*found.history]
    return list(dict.fromkeys(each.user for each in turns if each.match.relevance >= FLOOR))


def test_turns_that_only_ask_give_way_to_the_turn_that_tells(past: Past) -> None:
    for each in ASKED_BEFORE:
        told(past.store, each, title="Bees")
    told(past.store, STATES, title="Sunday")
    assert injected(past)[0] == STATES[0]
    assert not {each[0] for each in ASKED_BEFORE} & set(injected(past))
    assert injected(past, service=past.by_words)[0] == STATES[0]
    quoted = past.service.quotable(QUESTION, ConversationId(0), 6)
    assert [each.user_question for each in quoted if not each.is_weak] == [STATES[0]]


def test_a_question_that_was_never_answered_brings_nothing(past: Past) -> None:
    for each in ASKED_BEFORE:
        told(past.store, each, title="Bees")
    assert injected(past) == []


def test_a_short_answer_is_an_answer(past: Past) -> None:
    for answer in ("Ottoline.", "It's Ottoline", "I'm not sure, but I found Ottoline Brandt."):
        told(past.store, (QUESTION, answer), title=answer)
    assert set(injected(past)) == {QUESTION}
    found = past.service.quotable(QUESTION, ConversationId(0), 6)
    assert len([each for each in found if not each.is_weak]) == 3


def test_of_turns_that_say_nearly_the_same_one_comes_back(past: Past) -> None:
    for ending in ("", " Yes.", "!", " Well."):
        told(past.store, (QUESTION, f"Her name is Ottoline, from the mill by the river.{ending}"))
    told(past.store, STATES, title="Sunday")
    past.library.sync.catch_up()
    found = past.service.retrieve(QUESTION, None, Segment(), RecallOptions())
    assert sum(each.user == QUESTION for each in found.history) == 1
    assert STATES[0] in injected(past)


def test_earlier_in_the_conversation_a_repeated_question_gives_way_too(past: Past) -> None:
    talk = told(past.store, STATES, *ASKED_BEFORE)
    past.library.sync.catch_up()
    segment = Segment(frozenset(each.id for each in talk.exchanges))
    options = RecallOptions(earlier_limit=1)
    found = past.service.retrieve(QUESTION, talk.conversation.id, segment, options)
    assert {each.exchange_id for each in found.earlier} == {talk.exchanges[0].id}
