"""Which turns only ask: a question that was met by another one, or by not knowing."""

import pytest

from app.index.not_knowing import tells_nothing


@pytest.mark.parametrize(
    ("answered", "nothing"),
    [
        ("", True),
        ("I don't know your dog's name. If you tell me, I can help.", True),
        ("I'm sorry, I couldn't find any information about your dog in our conversations.", True),
        ("Which dog do you mean?", True),
        ("Das weiß ich leider nicht.", True),
        ("Je ne sais pas comment il s'appelle.", True),
        ("No lo sé.", True),
        ("Я не знаю.", True),
        ("分かりません。", True),
        ("Rex.", False),
        ("It is called Rex.", False),
        ("I don't know for certain, but you once wrote of Rex.", False),
        ("I have no record of a dog; your cat was born in 2019.", False),
        ("I don't know. " + "Dogs have names of many kinds, as people wish. " * 10, False),
    ],
)
def test_an_answer_that_says_it_does_not_know_tells_nothing(answered: str, nothing: bool) -> None:
    assert tells_nothing("What is my dog called?", answered) is nothing


def test_a_turn_in_which_the_user_tells_something_tells() -> None:
    assert not tells_nothing("My dog is called Rex.", "I did not know that.")
    assert not tells_nothing("My dog is Rex, a beagle. Do you know what he eats?", "I don't know.")
    assert tells_nothing("dog what is it called", "I don't know.", "what is it called, my dog")
