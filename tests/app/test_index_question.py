"""What a question asks for: what is left of it, whether it wants a time, whom it names."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.index.question import read_question
from tests.fakes.values import TEXTS


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("What did Ana paint? Answer in one word.", "What did Ana paint?"),
        ("Which car? Please respond briefly. Use bullet points.", "Which car?"),
        ("What about the roof? Keep it short!", "What about the roof?"),
        ("In one sentence, what is it", "In one sentence, what is it"),
        ("Where is the hose", "Where is the hose"),
        ("Wie heißt die Katze? Antworte kurz.", "Wie heißt die Katze? Antworte kurz."),
    ],
)
def test_sentences_that_only_say_how_to_answer_are_dropped(text: str, asked: str) -> None:
    assert read_question(text).asked == asked


@pytest.mark.parametrize(
    ("text", "gone", "kept"),
    [
        ("Can you remind me of the rye recipe", "remind", "rye recipe"),
        ("What did we discuss about the leaking roof", "discuss", "leaking roof"),
        ("Give me a summary of the budget plans", "summary", "budget plans"),
        ("In our previous conversation, which lens was it?", "conversation", "which lens"),
        ("Walk me through the order in which I planted trees", "order", "I planted trees"),
        ("Which stairs did we measure across my sessions", "sessions", "Which stairs"),
        ("how my plans have developed over time", "developed", "plans"),
        ("List different aspects of roofing in order", "aspects", "roofing"),
    ],
)
def test_words_about_the_talk_are_dropped(text: str, gone: str, kept: str) -> None:
    asked = read_question(text).asked
    assert gone not in asked
    assert kept in asked


@pytest.mark.parametrize(
    "text", ["Answer briefly.", "Summarize", "Can you please?", "mentioned", "please help me"]
)
def test_a_question_of_nothing_else_is_taken_as_it_is(text: str) -> None:
    assert read_question(text).asked == text


ODDS = ("please ", "our chat ", "Answer ", *" .!?\nA'’")


@given(TEXTS | st.lists(st.sampled_from(ODDS)).map("".join))
@example("?")
@example("..")
def test_something_is_always_asked_unless_the_text_is_blank(text: str) -> None:
    question = read_question(text)
    assert bool(question.asked.strip()) is bool(text.strip())
    assert len(question.asked) <= len(text)


@pytest.mark.parametrize(
    "text",
    ["When did it rain?", "How long is it", "what year was that", "On which day", "how recently"],
)
def test_a_question_for_a_time_is_known(text: str) -> None:
    assert read_question(text).wants_time


@pytest.mark.parametrize(
    "text", ["Where did it rain?", "whenever", "how longing", "somewhat dated"]
)
def test_other_questions_want_no_time(text: str) -> None:
    assert not read_question(text).wants_time


def test_order_and_developments_that_are_asked_about_are_kept() -> None:
    for text in ("what is needed in order to sell", "which film did she have developed"):
        assert read_question(text).asked == text


@pytest.mark.parametrize(
    "text",
    [
        "Give me a summary of the plans",
        "In what order did it rain?",
        "an overview",
        "List them in order",
    ],
)
def test_a_question_that_looks_back_is_known(text: str) -> None:
    assert read_question(text).looks_back


@pytest.mark.parametrize(
    "text", ["What is needed in order to sell?", "Which film?", "out of order"]
)
def test_other_questions_do_not_look_back(text: str) -> None:
    assert not read_question(text).looks_back


@pytest.mark.parametrize(
    "text",
    [
        "What would you suggest?",
        "I'm looking for shoes",
        "Should I sell",
        "any recommendations",
        "How do I sew",
    ],
)
def test_a_question_for_advice_is_known(text: str) -> None:
    assert read_question(text).wants_advice


@pytest.mark.parametrize("text", ["What did Ana suggested", "She looks", "How did I sew", "tipsy"])
def test_other_questions_want_no_advice(text: str) -> None:
    assert not read_question(text).wants_advice


def test_whom_it_names_is_known_in_parts_and_whole() -> None:
    names = read_question("What did Ana Lee give to Maria's cat and O’Brien?").names
    assert {"ana", "lee", "ana lee", "maria", "o’brien"} <= names
    assert "cat" not in names
    assert "maria's" not in names


@pytest.mark.parametrize(
    "piece", ["a", "A ", "A'", "please ", "what ", "a comprehensive ", "?", " "]
)
def test_a_long_question_is_read_at_once(piece: str) -> None:
    started = time.thread_time()
    read_question(piece * 2_000)
    assert time.thread_time() - started < 0.5
