"""A turn on a branch that is not shown is linked by its exchange, and such a link leads to it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.chat.places import parse_link, parse_place
from app.domain.errors import InvalidInput
from app.domain.links import link_of, link_to, links_in
from app.domain.retrieved import RecallOptions, Segment
from app.memory.recalled_text import of_exchange, of_fact
from app.storage.exchanges import Exchanges
from tests.app.test_recall_service import Past
from tests.app.test_search_service import Library
from tests.fakes import found
from tests.fakes.stored import opened, told


@pytest.fixture
def library(data_dir: Path) -> Iterator[Library]:
    with opened(data_dir) as store:
        made = Library(store)
        yield made
        made.sync.stop()


def test_what_the_shown_path_does_not_hold_is_found_in_conversations_with_branches(
    library: Library,
) -> None:
    plain, whole = told(library.store, "one", "two"), told(library.store, "three", "four")
    again = library.answer_again(whole, "another answer")
    exchanges = Exchanges(library.store)
    every = [each.id for each in (*plain.exchanges, *whole.exchanges, again)]
    assert exchanges.not_shown(every) == {again.id}
    library.edit(whole, visible_leaf_id=again.message_ids[-1])
    assert exchanges.not_shown(every) == {whole.exchanges[-1].id}
    assert exchanges.not_shown([]) == set()


def test_what_was_found_on_a_branch_says_so(library: Library) -> None:
    past = Past(library)
    again = library.answer_again(past.talk, "Doctor Quillfeather, every Thursday.")
    results = library.search("Quillfeather")
    assert [(each.exchange_id, each.is_shown) for each in results] == [(again.id, False)]
    recalled = past.by_words.retrieve(
        "Doctor Quillfeather Thursday", None, Segment(), RecallOptions()
    )
    turns = [each for talk in recalled.conversations for each in talk.exchanges]
    shown = {each.exchange_id: each.is_shown for each in (*turns, *recalled.history)}
    assert shown[again.id] is False


def test_the_prompt_names_the_exchange_of_a_turn_that_is_not_shown() -> None:
    turn, fact = found.turn(600), found.fact(1, "Tea.")
    assert "commonplace://60/3\n" in of_exchange(turn).text
    assert "commonplace://60/3?exchange=600\n" in of_exchange(replace(turn, is_shown=False)).text
    assert "commonplace://50/4?exchange=500\n" in of_fact(replace(fact, is_shown=False), 4).text


def test_a_link_is_read_as_it_is_made() -> None:
    beside = link_to(34, 0, found.turn(73).exchange_id, is_shown=False)
    assert beside == "commonplace://34/0?exchange=73"
    assert link_of(beside) == parse_link(beside) == (34, 0, 73)
    assert list(links_in(f"[there]({beside}), {link_to(34, 0)}.")) == [(34, 0, 73), (34, 0, None)]
    assert parse_link("34:0") == (34, 0, None)
    with pytest.raises(InvalidInput, match="not shown"):
        parse_place(beside)
