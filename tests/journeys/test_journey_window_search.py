"""Finding again: as one types, into archived conversations and other branches, back, and within."""

import logging
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QLabel

from app.bootstrap import Services
from app.domain.changes import Change, ConversationPut, ExchangePut, MessagesAdded, PassagesPut
from app.domain.conversations import Message, Role, Text
from app.domain.ids import new_uid
from app.domain.passages import SearchAnswer, SearchResult
from app.domain.turn_text import turn_passage
from app.storage.settings import Settings
from app.storage.store import Store
from tests.fakes.exports import Shape, write_chatgpt_export
from tests.fakes.stored import opened, tell
from tests.fakes.user import User
from ui.controllers.importing import SAMPLE
from ui.widgets.transcript.message_text import MessageText


async def with_sample(user: User) -> None:
    """Start with the sample archive, every turn of it findable."""
    await user.start()
    await user.bring(SAMPLE)
    await user.until_so(lambda services: services.search.search("deposit").results)
    await user.until_so(is_covered)
    await user.until(lambda: bool(user.titles()))


def is_covered(services: Services) -> bool:
    """Return whether search knows every passage."""
    overview = services.overview.read()
    return overview.searchable_share == 1 and sum(overview.passages.values()) >= 56


async def landed(user: User, words: str) -> int:
    """Wait until a highlighted turn with these words stands in the middle; return its index."""

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
    is_centred = abs((top + bottom) / 2 - view.height() / 2) <= 2
    is_at_an_end = bar.value() in (bar.minimum(), bar.maximum())
    assert is_centred or is_at_an_end or turn.height() > view.height() >= top >= 0
    return found[0]


async def test_words_typed_become_results_and_enter_lands_on_the_turn(user: User) -> None:
    await with_sample(user)
    user.press("Ctrl+K")
    user.type("knee inj")
    await user.until(lambda: "Running again after a knee injury" in user.results())
    user.type("ury")
    user.press("Return")  # before the results of the last letters are there

    await landed(user, "knee")
    assert user.window.chat.title.text() == "Running again after a knee injury"

    before = user.results()
    user.press("Alt+Left")
    assert user.window.sidebar.result_list.hasFocus()
    assert user.results() == before
    user.press("Ctrl+K")
    user.press("Esc")
    await user.until(user.window.sidebar.conversation_list.isVisible)
    user.press("Alt+Left")
    assert user.window.sidebar.result_list.isVisible()
    assert user.window.sidebar.box.text() == "knee injury"
    assert user.results() == before


async def test_an_archived_conversation_is_found_when_it_is_asked_for(user: User) -> None:
    await with_sample(user)
    user.press("Ctrl+K")
    user.type("is:archived")
    await user.until(lambda: len(user.results()) >= 1)
    (title, *_) = user.results()
    assert title not in user.titles()

    user.click_row(user.window.sidebar.result_list, title)

    await user.until(lambda: user.window.chat.title.text() == title)
    await landed(user, "")


async def test_a_turn_on_another_branch_is_shown_on_its_branch(user: User) -> None:
    await with_sample(user)
    other = await user.ask(words_on_a_hidden_branch)

    user.press("Ctrl+K")
    user.type(f'"{other}"')
    await user.until(lambda: "Two job offers" in user.results())
    user.click_row(user.window.sidebar.result_list, "Two job offers")

    turn = await landed(user, "")
    assert "1/2" in user.turn_text(turn)


def words_on_a_hidden_branch(services: Services) -> str:
    """Return some words that only the branch of "Two job offers" that is not shown says."""
    listed = services.conversations.listed()
    view = services.library.open(next(c.id for c in listed if c.title == "Two job offers"))
    shown = {exchange.id for exchange in view.path}
    hidden = [each for row in view.siblings for each in row if each not in shown]
    exchange = services.exchanges.get(hidden[0])
    answer = services.exchanges.messages_of(exchange)[-1].text
    return " ".join(answer.split()[:5])


def results(user: User) -> list[SearchResult]:
    """Return the results on screen, best first."""
    model = user.window.sidebar.results
    values = (model.value_at(model.index(row)) for row in range(model.rowCount()))
    return [each for each in values if isinstance(each, SearchResult)]


async def test_meaning_joins_in_where_no_word_is_shared(user: User) -> None:
    await with_sample(user)
    await user.until_so(lambda services: services.meaning.embedded().share == 1)  # type: ignore[union-attr]
    user.press("Ctrl+K")
    user.type("apartment owner withheld money")
    await user.until(lambda: any(each.cosine is not None for each in results(user)))
    assert "Landlord keeps part of the deposit" in user.results()


async def test_an_older_answer_never_takes_the_place_of_a_newer_one(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_sample(user)
    services = user.running.services
    assert services is not None
    begun, goes_on = threading.Event(), threading.Event()
    search, given = services.search.search, list[tuple[str, bool]]()

    def slow(text: str, limit: int = 20, *, by_meaning: bool = True) -> SearchAnswer:
        if by_meaning and text == "deposit":
            begun.set()
            assert goes_on.wait(20)
        answer = search(text, limit, by_meaning=by_meaning)
        given.append((text, by_meaning))
        return answer

    monkeypatch.setattr(services.search, "search", slow)
    user.press("Ctrl+K")
    user.type("deposit")
    await user.until(begun.is_set)
    await user.until(lambda: "Landlord keeps part of the deposit" in user.results())
    user.press("Return")  # what is late is not waited for
    await user.until(lambda: "deposit" in user.window.chat.title.text())
    user.press("Ctrl+K")
    user.press("Ctrl+A")
    user.type("knee")
    await user.until(lambda: user.results()[0] == "Running again after a knee injury")
    goes_on.set()
    await user.until(lambda: given[-1:] == [("knee", True)])
    assert ("deposit", True) in given
    assert user.results()[0] == "Running again after a knee injury"


async def test_a_result_lands_on_the_very_message_of_a_long_turn(
    user: User, data_dir: Path
) -> None:
    with opened(data_dir) as store:
        tell_of_zebras(store)
    await user.start()
    await user.until_so(lambda services: services.search.search("zebra crossing").results)
    user.press("Ctrl+N")
    user.press("Ctrl+K")
    user.type("zebra crossing")
    user.press("Return")

    def is_on_screen() -> bool:
        view = user.transcript.viewport()
        turns = map(user.transcript.turn_widget, range(user.transcript.turn_count))
        texts = [text for turn in turns if turn is not None for text in turn.texts()]
        last = next((each for each in texts if "zebra crossing" in words_of(each)), None)
        top = last.mapTo(view, QPoint(0, 0)).y() if last is not None else -1
        return last is not None and 0 <= top <= view.height() - last.height()

    await user.until(is_on_screen, "the message on screen")


def words_of(text: MessageText) -> str:
    return str(text.composer.document.toPlainText())


def tell_of_zebras(store: Store) -> None:
    """Write a turn of three messages, the first answer longer than a screen."""
    whole = tell(store, "How does traffic work", title="Traffic")
    asked, answered = whole.messages
    long = "\n\n".join(f"Paragraph {number} about lorries and lanes." for number in range(80))
    first = replace(answered, blocks=(Text(long),))
    last = Message(
        store.ids.message(), new_uid(), asked.conversation_id, first.id, Role.ASSISTANT,
        (Text("People walk over the zebra crossing."),), answered.created_at, "openai:m",
    )  # fmt: skip
    messages = (asked, first, last)
    exchange = replace(whole.exchanges[0], message_ids=tuple(each.id for each in messages))
    passage = turn_passage(store.ids.passage(), exchange, messages)
    assert passage is not None
    changes: list[Change] = [
        ConversationPut(replace(whole.conversation, visible_leaf_id=last.id)),
        MessagesAdded(messages),
        ExchangePut(exchange),
        PassagesPut((passage,)),
    ]
    store.save(*changes)


STRANGE = {
    "k": "is too short",
    "?": "is too short",
    "x" * 501: "The query is 501 characters long.",
    "x" * 1_000_000: "characters long.",
    "title:": "'title:' has no value.",
    "deposit tag: ": "'tag:' has no value.",
    "is:<b>purple</b>": "Search knows no 'is:<b>purple</b>'.",
    "the of and": None,
    "\U0001f600\U0001f600\U0001f600": None,
    '"deposit': "Landlord keeps part of the deposit",
    "\u201cdeposit": "Landlord keeps part of the deposit",
    "de\x00posit \x01": None,
    "\ud800 deposit": "Landlord keeps part of the deposit",
    "--": None,
    "-deposit": None,
    "( deposit ) AND OR ~2 ^ * [a TO": "Landlord keeps part of the deposit",
}


async def test_strange_queries_get_an_answer_and_leave_no_trace_in_the_log(
    user: User, caplog: pytest.LogCaptureFixture
) -> None:
    await with_sample(user)
    user.press("Ctrl+K")
    box, sidebar = user.window.sidebar.box, user.window.sidebar
    caplog.clear()
    for typed, expected in STRANGE.items():
        box.clear()
        await user.until(sidebar.conversation_list.isVisible)
        box.setText(typed)
        await user.until(lambda: not sidebar.conversation_list.isVisible(), repr(typed[:20]))
        if expected is not None:
            await user.sees(expected)
    box.setText("   ")
    await user.until(sidebar.conversation_list.isVisible)
    loud = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert not loud


async def test_a_query_that_cannot_be_taken_is_explained(user: User) -> None:
    await with_sample(user)
    user.press("Ctrl+K")
    user.type("is:purple")
    await user.sees("is:archived or is:pinned")
    user.press("Ctrl+A")
    user.type("xyzzyplugh title:nowhere")
    await user.sees("Nothing was found.")
    user.press("Esc")
    await user.until(user.window.sidebar.conversation_list.isVisible)


async def test_a_query_in_the_middle_of_a_rebuild_says_how_much_it_knows(user: User) -> None:
    await with_sample(user)
    await user.ask(lambda services: services.index_sync.rebuild())
    user.press("Ctrl+K")
    user.type("deposit")
    await user.until(lambda: "Landlord keeps part of the deposit" in user.results())
    await user.until_so(is_covered)

    await user.ask(lambda services: setattr(services.index_sync, "covered_share", 0.87))
    user.type("s")
    await user.sees("Searching 87% of your history so far.")
    await user.ask(lambda services: setattr(services.index_sync, "covered_share", 1.0))
    await user.until(
        lambda: not any("87%" in each.text() for each in labels(user) if each.isVisible())
    )


async def test_without_the_pipeline_the_window_says_that_only_words_count(
    user: User, data_dir: Path
) -> None:
    with opened(data_dir) as store:
        Settings(store).set("embedding_pipeline_enabled", False)
    await with_sample(user)
    user.press("Ctrl+K")
    user.type("deposit")
    await user.sees("By words only: the embedding pipeline is off (0% is embedded).")
    assert "Landlord keeps part of the deposit" in user.results()


def labels(user: User) -> list[QLabel]:
    return user.window.sidebar.findChildren(QLabel)


async def test_words_are_found_in_all_of_a_long_conversation(user: User, tmp_path: Path) -> None:
    archive = tmp_path / "conversations.json"
    write_chatgpt_export(archive, Shape(conversations=1, turns=300, words=30))
    await user.start()
    await user.bring(archive)
    await user.until(lambda: len(user.titles()) == 1)
    (title,) = user.titles()
    user.click_row(user.window.sidebar.conversation_list, title)
    await user.until(lambda: user.transcript.turn_count >= 250)
    await user.until(lambda: user.transcript.is_settled)
    assert user.transcript.items_laid_out < 60
    needle = await user.ask(a_word_said_early)

    user.press("Ctrl+F")
    user.type(needle)
    await user.until(lambda: " of " in user.window.chat.find_bar.count.text())
    count = user.window.chat.find_bar.count.text()
    assert count.startswith("1 of ")

    await user.until(lambda: needle in shown_text(user))
    user.press("Return")
    assert user.window.chat.find_bar.count.text() != count
    user.press("Shift+Return")
    assert user.window.chat.find_bar.count.text() == count
    user.press("Esc")
    assert not user.window.chat.find_bar.isVisible()


def a_word_said_early(services: Services) -> str:
    """Return a longish word of the first turn, as it is written there."""
    view = services.library.open(1)
    words = services.exchanges.messages_of(view.path[0])[0].text.split()
    return max((word.strip(".,?") for word in words), key=len)


def shown_text(user: User) -> str:
    first, last = user.transcript.visible_items
    return "\n".join(user.turn_text(each) for each in range(first, last + 1))


async def test_a_link_to_a_turn_is_copied_and_opened_again(user: User) -> None:
    await with_sample(user)
    user.click_row(user.window.sidebar.conversation_list, "Sourdough that spreads")
    await user.until(lambda: user.window.chat.title.text().startswith("Sourdough"))
    await user.until(lambda: user.action("copy_link").isEnabled())
    user.press("Ctrl+Shift+L")
    await user.sees("commonplace://")
    link = user.window.chat.banner.words.split()[0]

    user.press("Ctrl+N")
    user.press("Ctrl+L")
    await user.sees("A link to a turn, or ID:TURN:")
    user.type(link)
    user.press("Return")

    await user.in_front()
    await user.until(lambda: user.window.chat.title.text().startswith("Sourdough"))
    await landed(user, "")
