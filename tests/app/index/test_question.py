"""Questions: what they ask for, request words that are removed, small talk and non-answers."""

import time
from datetime import date

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.index.message_traits import is_non_answer, is_small_talk
from app.index.named_questions import asks_about_user, days_asked_about, days_searched_for
from app.index.question import parse_question, strip_request
from tests.fakes.language import CASES
from tests.fakes.values import TEXTS


@pytest.mark.parametrize(("text", "core"), CASES["answer_format"])
def test_sentences_about_the_format_of_the_answer_are_removed(text: str, core: str) -> None:
    assert parse_question(text).core == core


@pytest.mark.parametrize(("text", "gone", "kept"), CASES["about_the_conversation"])
def test_words_about_the_conversation_are_removed(text: str, gone: str, kept: str) -> None:
    core = parse_question(text).core
    assert gone not in core
    assert kept in core


@pytest.mark.parametrize(("text", "days"), CASES["days_asked"])
def test_a_question_about_the_conversations_of_some_days_names_them(text: str, days: str) -> None:
    found = days_asked_about(text, date(2026, 11, 26))
    assert found is not None
    assert " ".join(each.isoformat() for each in found) == days


@pytest.mark.parametrize(("query", "is_for_days"), CASES["days_searched"])
def test_a_search_is_for_days_only_if_it_names_nothing_else(query: str, is_for_days: bool) -> None:
    assert (days_searched_for(query, date(2026, 11, 26)) is not None) is is_for_days


def test_a_long_message_asks_for_nothing_by_name() -> None:
    assert days_asked_about("we " * 200 + "discussed what yesterday?", date(2026, 11, 26)) is None
    assert not asks_about_user("we " * 200 + "what do you know about me?")


def test_a_follow_up_asks_about_other_days() -> None:
    today, week = date(2026, 11, 26), (date(2026, 11, 16), date(2026, 11, 22))
    before = "What did we talk about yesterday?"
    assert days_asked_about("And last week?", today, before) == week
    assert days_asked_about("And last week?", today, "How was the weather yesterday?") is None
    assert days_asked_about("And the bike?", today, before) is None
    assert days_asked_about("Where did we leave off?", today, "Which bolt fits?") is None


@pytest.mark.parametrize("text", CASES["no_days_asked"])
def test_other_questions_ask_about_no_days(text: str) -> None:
    assert days_asked_about(text, date(2026, 11, 26)) is None


@pytest.mark.parametrize(
    ("kind", "expected"), [("about_the_user", True), ("not_about_the_user", False)]
)
def test_questions_for_all_known_about_the_user_are_recognized(kind: str, expected: bool) -> None:
    assert [text for text in CASES[kind] if asks_about_user(text) is not expected] == []


def test_questions_for_a_time_are_recognized() -> None:
    wanting = (
        "When did it rain?", "How long is it", "what year was that", "On which day", "how recently",
    )  # fmt: skip
    others = ("Where did it rain?", "whenever", "how longing", "somewhat dated")
    assert [text for text in wanting if not parse_question(text).wants_time] == []
    assert [text for text in others if parse_question(text).wants_time] == []


@pytest.mark.parametrize(
    ("text", "states"),
    [("My knee hurts again after the long run.", True), ("昨天晚上我又没有睡好觉，今天很累。", True),
     ("What did the doctor say about my knee", False),
     ("Tell me what the doctor said about my knee", False), ("我昨天晚上为什么没有睡好觉？", False),
     ("knee pain long run", False)],
)  # fmt: skip
def test_a_sentence_that_asks_nothing_states_something(text: str, states: bool) -> None:
    assert parse_question(text).states is states


@pytest.mark.parametrize(
    ("text", "is_keywords"),
    [("bulk rise", True), ("睡眠 噪音", True), ("kneading?", False),
     ("find the recipe for bread", False), ("My knee hurts again after the long run.", False)],
)  # fmt: skip
def test_a_few_words_that_ask_nothing_are_keywords(text: str, is_keywords: bool) -> None:
    assert parse_question(text).is_keywords is is_keywords
    assert not parse_question(text, is_message=True).is_keywords


def test_names_are_known_in_parts_and_whole() -> None:
    names = parse_question("What did Ana Lee give to Maria's cat and O’Brien?").names
    assert {"ana", "lee", "ana lee", "maria", "o’brien"} <= names
    assert "maria's" not in names
    assert {"雷明轩", "轩买"} <= parse_question("雷明轩买了什么？").names


@pytest.mark.parametrize(("text", "wanted"), CASES["requests"])
def test_a_request_is_removed_and_its_subject_stays(text: str, wanted: str) -> None:
    assert strip_request(text) == wanted


PIECES = ("please ", "our chat ", "Answer ", "search ", "for ", "me ", "x ", "教えて", *" .!?\nA'’")


@given(TEXTS | st.lists(st.sampled_from(PIECES)).map("".join))
@example("?")
@example("..")
@example("search for ?")
def test_something_is_always_left_unless_the_text_is_blank(text: str) -> None:
    for left in (parse_question(text).core, strip_request(text)):
        assert bool(left.strip()) is bool(text.strip())
        assert len(left) <= len(text)


@pytest.mark.parametrize(
    "piece", ["a", "A ", "A'", "please ", "what ", "a comprehensive ", "?", " "]
)
def test_a_long_question_is_parsed_in_linear_time(piece: str) -> None:
    started = time.thread_time()
    parse_question(piece * 2_000)
    assert time.thread_time() - started < 0.5


# -- small talk and non-answers
def test_small_talk_of_any_language_is_recognized() -> None:
    assert [text for text in CASES["small_talk"] if not is_small_talk(text, {}, 0)] == []
    assert [text for text in CASES["no_small_talk"] if is_small_talk(text, {}, 0)] == []


@pytest.mark.parametrize(
    ("text", "counts", "messages", "expected"),
    [("dude totally", (400, 90), 4000, True), ("dude totally", (400, 3), 4000, False),
     ("dude totally?", (400, 90), 4000, False), ("dude totally", (4, 2), 40, False)],
)  # fmt: skip
def test_a_few_frequent_words_are_small_talk(
    text: str, counts: tuple[int, int], messages: int, expected: bool
) -> None:
    frequencies = dict(zip(("dude", "total"), counts, strict=True))
    assert is_small_talk(text, frequencies, messages) is expected


@pytest.mark.parametrize(("user", "reply", "expected"), CASES["non_answers"])
def test_non_answers_state_nothing(user: str, reply: str, expected: bool) -> None:
    assert is_non_answer(user, reply) is expected


def test_the_words_of_the_question_count_as_a_question() -> None:
    assert is_non_answer("dog what is it called", "I don't know.", "what is it called, my dog")
