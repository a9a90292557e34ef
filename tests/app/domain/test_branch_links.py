"""Links to turns on branches that are not shown: they name the exchange."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.domain.errors import InvalidInput
from app.domain.links import find_links, link_to, parse_commonplace_link, parse_link, parse_place
from app.domain.recall import RecallSettings, SegmentContext
from app.memory.context.text import exchange_piece, fact_piece
from app.storage.tables.exchanges import Exchanges
from tests.fakes import found
from tests.fakes.searchable import Library, RecallLibrary
from tests.fakes.stored import add_conversation, opened


@pytest.fixture
def library(data_dir: Path) -> Iterator[Library]:
    with opened(data_dir) as store:
        made = Library(store)
        yield made
        made.sync.stop()


def test_exchanges_that_are_not_on_the_shown_path(library: Library) -> None:
    plain, branched = (
        add_conversation(library.store, "one", "two"),
        add_conversation(library.store, "three", "four"),
    )
    again = library.answer_again(branched, "another answer")
    exchanges = Exchanges(library.store)
    every = [each.id for each in (*plain.exchanges, *branched.exchanges, again)]
    assert exchanges.not_shown(every) == {again.id}
    library.edit(branched, visible_leaf_id=again.message_ids[-1])
    assert exchanges.not_shown(every) == {branched.exchanges[-1].id}
    assert exchanges.not_shown([]) == set()


def test_search_and_recall_mark_results_that_are_not_shown(library: Library) -> None:
    library = RecallLibrary(library.store)
    again = library.answer_again(library.about_cat, "Doctor Quillfeather, every Thursday.")
    results = library.search("Quillfeather")
    assert [(each.exchange_id, each.is_shown) for each in results] == [(again.id, False)]
    recalled = library.recall_by_words.retrieve(
        "Doctor Quillfeather Thursday", None, SegmentContext(), RecallSettings()
    )
    turns = [each for talk in recalled.conversations for each in talk.exchanges]
    shown = {each.exchange_id: each.is_shown for each in (*turns, *recalled.history)}
    assert shown[again.id] is False


def test_links_are_made_and_parsed() -> None:
    turn, fact = found.turn(600), found.fact(1, "Tea.")
    assert "commonplace://60/3\n" in exchange_piece(turn, {}).text
    assert (
        "commonplace://60/3?exchange=600\n"
        in exchange_piece(replace(turn, is_shown=False), {}).text
    )
    assert "commonplace://50/4?exchange=500\n" in fact_piece(replace(fact, is_shown=False), 4).text
    link = link_to(34, 0, found.turn(73).exchange_id, is_shown=False)
    assert link == "commonplace://34/0?exchange=73"
    assert parse_commonplace_link(link) == parse_link(link) == (34, 0, 73)
    assert list(find_links(f"[there]({link}), {link_to(34, 0)}.")) == [(34, 0, 73), (34, 0, None)]
    assert parse_link("34:0") == (34, 0, None)
    with pytest.raises(InvalidInput, match="not shown"):
        parse_place(link)
