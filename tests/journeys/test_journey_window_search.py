"""Finding again: as one types, into archived conversations and other branches, back, and within."""

from pathlib import Path

from PySide6.QtCore import QPoint

from app.bootstrap import Services
from tests.fakes.exports import Shape, write_chatgpt_export
from tests.fakes.user import User
from ui.controllers.importing import SAMPLE


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


async def test_a_query_that_cannot_be_taken_is_explained(user: User) -> None:
    await with_sample(user)
    user.press("Ctrl+K")
    user.type("is:purple")
    await user.sees("is:archived or is:pinned")
    user.press("Ctrl+A")
    user.type("xyzzyplugh")
    await user.sees("Nothing was found.")
    user.press("Esc")
    await user.until(user.window.sidebar.conversation_list.isVisible)


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
