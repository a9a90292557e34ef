"""Courtesies and confirmations ask for nothing; a word that names something does."""

import pytest

from app.index.small_talk import is_small_talk


@pytest.mark.parametrize(
    "text",
    [
        "ok", "OK!", "Thanks a lot!!", "yes please", "Hello there", "sounds good, go ahead", "...",
        "Hi, how are you doing today?", "Vielen Dank, das ist gut", "oui, merci", "muchas gracias", "tak, dziękuję", "さようなら",
        "да, хорошо", "谢谢！", "好的。", "はい", "네", "شكرا", "👍", "", "  \n",
    ],
)  # fmt: skip
def test_courtesies_of_any_language_ask_for_nothing(text: str) -> None:
    assert is_small_talk(text, {}, 0)


@pytest.mark.parametrize(
    "text",
    [
        "ok, and the basil?", "thanks, now the vet's address", "Minka", "Was kostet die Fähre?",
        "猫はどこですか", "Где кошка?", "yes, use Flask", "What am I doing today?", "no, the red one",
        "ok " * 20 + "thanks",
    ],
)  # fmt: skip
def test_what_names_something_is_a_question(text: str) -> None:
    assert not is_small_talk(text, {}, 0)


def test_a_few_words_that_every_other_message_has_name_nothing() -> None:
    assert is_small_talk("dude totally", {"dude": 400, "total": 90}, 4000)
    assert not is_small_talk("dude totally", {"dude": 400, "total": 3}, 4000)
    assert not is_small_talk("dude totally?", {"dude": 400, "total": 90}, 4000)
    assert not is_small_talk("dude totally", {"dude": 4, "total": 2}, 40)
