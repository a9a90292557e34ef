"""Questions: what they ask for, request words that are removed, small talk and non-answers."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.index.question import parse_question, strip_request
from app.index.small_talk import is_non_answer, is_small_talk
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


WANTS = {
    "wants_time": (
        ("When did it rain?", "How long is it", "what year was that", "On which day", "how recently"),
        ("Where did it rain?", "whenever", "how longing", "somewhat dated"),
    ),
    "wants_advice": (
        ("What would you suggest?", "I'm looking for shoes", "Should I sell", "any recommendations",
         "How do I sew"),
        ("What did Ana suggested", "She looks", "How did I sew", "tipsy"),
    ),
    "looks_back": (
        ("Give me a summary of the plans", "In what order did it rain?", "an overview",
         "List them in order"),
        ("What is needed in order to sell?", "Which film?", "out of order"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WANTS)
def test_questions_for_a_time_advice_or_an_overview_are_recognized(name: str) -> None:
    wanting, others = WANTS[name]
    assert [text for text in wanting if not getattr(parse_question(text), name)] == []
    assert [text for text in others if getattr(parse_question(text), name)] == []


def test_names_are_known_in_parts_and_whole() -> None:
    names = parse_question("What did Ana Lee give to Maria's cat and O’Brien?").names
    assert {"ana", "lee", "ana lee", "maria", "o’brien"} <= names
    assert not {"cat", "maria's"} & names


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


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("ok", "OK!", "Thanks a lot!!", "yes please", "Hello there", "sounds good, go ahead",
          "...", "Hi, how are you doing today?", "Vielen Dank, das ist gut", "oui, merci",
          "muchas gracias", "tak, dziękuję", "さようなら", "да, хорошо", "谢谢！", "好的。", "はい",
          "네", "شكرا", "👍", "", "  \n"), True),
        (("ok, and the basil?", "thanks, now the vet's address", "Minka", "Was kostet die Fähre?",
          "猫はどこですか", "Где кошка?", "yes, use Flask", "What am I doing today?",
          "no, the red one", "ok " * 20 + "thanks"), False),
    ],
    ids=["small talk", "questions"],
)  # fmt: skip
def test_small_talk_of_any_language_is_recognized(texts: tuple[str, ...], expected: bool) -> None:
    assert [text for text in texts if is_small_talk(text, {}, 0) is not expected] == []


@pytest.mark.parametrize(
    ("text", "counts", "messages", "expected"),
    [
        ("dude totally", (400, 90), 4000, True),
        ("dude totally", (400, 3), 4000, False),
        ("dude totally?", (400, 90), 4000, False),
        ("dude totally", (4, 2), 40, False),
    ],
)
def test_a_few_frequent_words_are_small_talk(
    text: str, counts: tuple[int, int], messages: int, expected: bool
) -> None:
    frequencies = dict(zip(("dude", "total"), counts, strict=True))
    assert is_small_talk(text, frequencies, messages) is expected


ASKED = "What is my dog called?"


@pytest.mark.parametrize(
    ("user", "reply", "expected"),
    [
        (ASKED, "", True),
        (ASKED, "I don't know your dog's name. If you tell me, I can help.", True),
        (ASKED, "I'm sorry, I couldn't find any information about your dog in our conversations.", True),
        (ASKED, "Which dog do you mean?", True),
        (ASKED, "Das weiß ich leider nicht.", True),
        (ASKED, "Je ne sais pas comment il s'appelle.", True),
        (ASKED, "No lo sé.", True),
        (ASKED, "Я не знаю.", True),
        (ASKED, "分かりません。", True),
        (ASKED, "Rex.", False),
        (ASKED, "It is called Rex.", False),
        (ASKED, "I don't know for certain, but you once wrote of Rex.", False),
        (ASKED, "I have no record of a dog; your cat was born in 2019.", False),
        (ASKED, "I don't know. " + "Dogs have names of many kinds, as people wish. " * 10, False),
        ("My dog is called Rex.", "I did not know that.", False),
        ("My dog is Rex, a beagle. Do you know what he eats?", "I don't know.", False),
    ],
)  # fmt: skip
def test_non_answers_state_nothing(user: str, reply: str, expected: bool) -> None:
    assert is_non_answer(user, reply) is expected


def test_a_message_with_the_words_of_the_question_counts_as_a_question() -> None:
    assert is_non_answer("dog what is it called", "I don't know.", "what is it called, my dog")
