"""The words of a request are left out of what is looked for; what it is about stays."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.index.requests import without_request
from tests.app.test_recall_service import FLOOR, Past
from tests.app.test_search_service import Library
from tests.fakes.stored import opened, told
from tests.fakes.values import TEXTS


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("search for the sourdough please", "the sourdough"),
        ("Please look up the sourdough for me", "the sourdough"),
        ("could you find the sourdough again", "the sourdough"),
        ("I'd like to know about the e-bike.", "the e-bike."),
        ("remind me what Anna said about the boiler", "what Anna about the boiler"),
        ("such mir bitte die Fähre raus", "die Fähre"),
        ("Erzähl mir, was Anna über den Kessel gesagt hat", "was Anna über den Kessel hat"),
        ("cherche-moi la recette du levain, s'il te plaît", "la recette du levain"),
        ("Búscame lo de la caldera por favor", "lo de la caldera"),
        ("erinnere mich an den Kessel", "den Kessel"),
        ("montre-moi ce qu'on a dit sur la chaudière", "la chaudière"),
        ("dimmi della caldaia, per favore", "caldaia"),
        ("Найди, пожалуйста, рецепт закваски", "рецепт закваски"),
        ("请帮我找一下酸面团", "酸面团"),
        ("サワードウについて教えてください", "サワードウ"),
        ("보일러 찾아줘", "보일러"),
    ],
)
def test_what_asks_for_something_goes_and_the_matter_stays(text: str, wanted: str) -> None:
    assert without_request(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "search engines compared", "find command in bash", "show business", "List comprehension",
        "How do I search in vim?", "What did the search for the cat cost?",
        "please", "search for me please", "tell me", "remind me again", "show it to me", "zeig mir",
        "教えてください", "", "   ",
    ],
)  # fmt: skip
def test_what_is_no_request_or_names_nothing_else_is_taken_as_it_is(text: str) -> None:
    assert without_request(text) == text


@given(
    TEXTS
    | st.lists(st.sampled_from(["please ", "search ", "for ", "me ", "x ", "?", "教えて"])).map(
        "".join
    )
)
@example("search for ?")
def test_some_word_stays_whenever_there_was_one(text: str) -> None:
    bare = without_request(text)
    assert len(bare) <= len(text)
    assert bool(bare.strip()) is bool(text.strip())


REQUESTS = (
    "search for the sourdough please", "tell me about the sourdough", "find the sourdough",
    "could you look up what I asked about the sourdough", "remind me of the sourdough",
)  # fmt: skip


def test_a_request_recalls_as_much_as_the_question(data_dir: Path) -> None:
    with opened(data_dir) as store:
        library = Library(store)
        past = Past(library)
        told(store, "We looked for the keys and searched the whole house, please tell me a joke")
        for request in ("what about the sourdough?", *REQUESTS):
            assert past.titles(request)[:1] == ["kitchen"], request
        assert past.titles("search for the spaceship please") == []
        assert past.recall("show me the lighthouse").history[0].match.relevance >= FLOOR
        library.sync.stop()
