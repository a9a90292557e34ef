"""Search: while typing, in archived conversations and other branches, and within a conversation."""

import logging
import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint

from app.bootstrap import Services
from app.domain.results import SearchResult
from app.storage.tables.settings import Settings
from tests.fakes.libraries import SAMPLE, embedded_sample
from tests.fakes.stored import add_conversation, opened
from tests.fakes.user import User, is_searched_by_meaning


async def with_sample(user: User) -> None:
    """Start with the sample archive, every turn of it findable."""
    shutil.copytree(embedded_sample(), user.data_dir)
    await user.start()
    await covered(user)


async def covered(user: User) -> None:
    """Wait until every turn of the sample archive is findable and on screen."""
    await user.until_so(lambda services: services.search.search("deposit").results)
    await user.until_so(is_covered)
    await user.until(lambda: bool(user.titles()))


def is_covered(services: Services) -> bool:
    """Return whether search knows every passage."""
    overview = services.overview.read()
    return overview.searchable_share == 1 and sum(overview.passages.values()) >= 56


async def landed(user: User, words: str) -> int:
    """Wait until a highlighted turn with these words is in the middle; return its index."""

    def look() -> bool:
        first, last = user.transcript.visible_items
        for index in range(first, last + 1):
            turn = user.transcript.turn_widget(index)
            is_there = turn is not None and turn.is_highlighted and turn.content is not None
            if is_there and words in user.turn_text(index):
                found.append(index)
        return bool(found) and user.transcript.is_settled

    found: list[int] = []
    await user.until(look, f"a highlighted turn with {words!r}")
    turn, view = user.turn(found[0]), user.transcript.viewport()
    top = turn.mapTo(view, QPoint(0, 0)).y()
    bottom = top + turn.height()
    bar = user.transcript.verticalScrollBar()
    is_centered = abs((top + bottom) / 2 - view.height() / 2) <= 2
    is_at_an_end = bar.value() in (bar.minimum(), bar.maximum())
    assert is_centered or is_at_an_end or turn.height() > view.height() >= top >= 0
    return found[0]


async def test_typing_finds_a_turn_and_the_results_come_back(user: User) -> None:
    await with_sample(user)
    sidebar, title = user.window.sidebar, user.window.chat.title
    best = "Running again after a knee injury"
    user.press("Ctrl+K")
    user.type("knee inj")
    await user.until(lambda: user.results()[:1] == [best])
    user.type("ury")
    user.press("Return")  # before the results of the last letters are there
    await landed(user, "knee")
    assert title.text() == best

    user.press("Alt+Left")
    assert sidebar.result_list.hasFocus()
    assert user.results()[0] == best
    await user.until(lambda: title.text() == "", "what was open before the search")
    user.press("Alt+Right")
    await user.until(lambda: title.text() == best)
    user.press("Alt+Left")
    await user.until(lambda: title.text() == "")
    user.press("Ctrl+K")
    user.press("Esc")
    await user.until(sidebar.conversation_list.isVisible)
    user.press("Alt+Left")
    assert sidebar.result_list.isVisible()
    assert sidebar.box.text() == "knee injury"
    assert user.results()[0] == best

    # A link to a turn is copied and opened again.
    user.press("Alt+Right")
    await user.until(lambda: title.text() == best)
    await user.until(lambda: user.action("copy_link").isEnabled())
    user.press("Ctrl+Shift+L")
    await user.sees("commonplace://")
    link = user.window.chat.banner.text.split()[0]
    user.press("Ctrl+N")
    user.press("Ctrl+L")
    await user.sees("A link to a turn, or ID:TURN:")
    user.type(link)
    user.press("Return")
    await user.in_front()
    await user.until(lambda: title.text() == best)
    await landed(user, "")


async def test_archived_conversations_other_branches_and_meaning_are_searched(user: User) -> None:
    await with_sample(user)
    sidebar = user.window.sidebar
    user.press("Ctrl+K")
    user.type("is:archived")
    await user.until(lambda: len(user.results()) >= 1)
    (title, *_) = user.results()
    assert title not in user.titles()
    user.click_row(sidebar.result_list, title)
    await user.until(lambda: user.window.chat.title.text() == title)
    await landed(user, "")

    other = await user.ask(words_on_a_hidden_branch)
    sidebar.search.show_query(f'"{other}"')
    await user.until(lambda: "Two job offers" in user.results())
    user.click_row(sidebar.result_list, "Two job offers")
    await user.until(lambda: user.window.chat.title.text() == "Two job offers")
    assert "1/2" in user.turn_text(await landed(user, ""))

    await user.until_so(is_searched_by_meaning)
    sidebar.search.show_query("apartment owner withheld money")
    await user.until(lambda: "Landlord keeps part of the deposit" in user.results())
    assert any(each.cosine is not None for each in results(user))


def words_on_a_hidden_branch(services: Services) -> str:
    """Return some words of "Two job offers" that only its hidden branch contains."""
    listed = services.conversations.listed()
    view = services.library.open(next(c.id for c in listed if c.title == "Two job offers"))
    shown = {exchange.id for exchange in view.path}
    hidden = [each for row in view.siblings for each in row if each not in shown]
    exchange = services.exchanges.get(hidden[0])
    return " ".join(services.exchanges.messages_of(exchange)[-1].text.split()[:5])


def results(user: User) -> list[SearchResult]:
    """Return the results on screen, best first."""
    model = user.window.sidebar.results
    values = (model.value_at(model.index(row)) for row in range(model.rowCount()))
    return [each for each in values if isinstance(each, SearchResult)]


STRANGE = {
    "k": "is too short", "?": "is too short", "x" * 501: "The query is 501 characters long.",
    "x" * 1_000_000: "characters long.", "title: x": "“title:” has no value.",
    "is:purple": "is:archived or is:pinned", "xyzzyplugh title:nowhere": "Nothing found.",
    "deposit tag: ": "“tag:” has no value.",
    "is:<b>purple</b>": "Search has no filter “is:<b>purple</b>”.", "the of and": None,
    "\U0001f600\U0001f600\U0001f600": None, '"deposit': "Landlord keeps part of the deposit",
    "\u201cdeposit": "Landlord keeps part of the deposit", "de\x00posit \x01": None,
    "\ud800 deposit": "Landlord keeps part of the deposit", "--": None, "-deposit": None,
    "( deposit ) AND OR ~2 ^ * [a TO": "Landlord keeps part of the deposit",
}  # fmt: skip


async def test_any_query_has_an_answer_and_a_line_says_what_is_not_searched(
    user: User, data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(data_dir) as store:
        Settings(store).set("embedding_pipeline_enabled", False)
    await user.start()
    await user.bring(SAMPLE)
    await covered(user)
    user.press("Ctrl+K")
    sidebar = user.window.sidebar
    caplog.clear()
    for typed, expected in STRANGE.items():
        sidebar.search.clear()
        await user.until(sidebar.conversation_list.isVisible)
        sidebar.search.show_query(typed)
        await user.until(lambda: not sidebar.conversation_list.isVisible(), repr(typed[:20]))
        if expected is not None:
            await user.sees(expected)
    sidebar.search.show_query("   ")
    await user.until(sidebar.conversation_list.isVisible)
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]

    await user.ask(lambda services: services.index_sync.rebuild())
    sidebar.search.show_query("deposit")
    await user.sees("Search by words only: search by meaning is off (0% read).")
    assert "Landlord keeps part of the deposit" in user.results()
    await user.until_so(is_covered)
    await user.ask(lambda services: setattr(services.index_sync, "covered_share", 0.87))
    sidebar.search.show_query("deposits")
    await user.sees("87% of your history is searchable so far.")
    await user.ask(lambda services: setattr(services.index_sync, "covered_share", 1.0))
    await user.sees_no_more("87%")


async def test_a_result_opens_at_its_message_and_find_reaches_all_of_a_long_conversation(
    user: User, data_dir: Path
) -> None:
    paragraphs = "\n\n".join(f"Paragraph {number} about lorries." for number in range(80))
    turns = [(paragraphs, "People walk over the zebra crossing."), ("A needle?", "Yes, a needle.")]
    with opened(data_dir) as store:
        turns += [(f"Question {at}?", "Well. " * 30) for at in range(250)]
        add_conversation(store, *turns, title="Traffic")
    await user.start()
    await user.until_so(lambda services: services.search.search("zebra crossing").results)
    user.press("Ctrl+N")
    user.press("Ctrl+K")
    user.type("zebra crossing")
    user.press("Return")

    def is_on_screen() -> bool:
        view, turn = user.transcript.viewport(), user.transcript.turn_widget(0)
        if turn is None or not user.transcript.is_settled or len(turn.texts()) < 2:
            return False
        answer = turn.texts()[-1]
        return 0 <= answer.mapTo(view, QPoint(0, 0)).y() <= view.height() - answer.height()

    await user.until(is_on_screen, "the message on screen")
    assert user.turn(0).height() > user.transcript.viewport().height()

    assert user.transcript.items_laid_out < 60
    user.press("Ctrl+F")
    user.type("needle")
    count = user.window.chat.find_bar.count
    await user.until(lambda: count.text() == "1 of 2")
    await user.until(lambda: "needle" in shown_text(user))
    user.press("Return")
    assert count.text() == "2 of 2"
    user.press("Shift+Return")
    assert count.text() == "1 of 2"
    user.press("Esc")
    assert not user.window.chat.find_bar.isVisible()


def shown_text(user: User) -> str:
    first, last = user.transcript.visible_items
    return "\n".join(user.turn_text(each) for each in range(first, last + 1))
