"""Asking why a turn was not recalled, and keeping the question to ask it again."""

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication, QMenu, QTreeWidget

from app.bootstrap import Services
from tests.fakes.user import User
from ui.controllers.importing import SAMPLE
from ui.views.why_dialog import WhyDialog
from ui.widgets.transcript.anchor import Centred

TITLE = "Landlord keeps part of the deposit"


async def with_sample(user: User) -> None:
    """Start with the sample archive, every turn of it findable."""
    await user.start()
    await user.bring(SAMPLE)
    await user.until_so(is_covered)
    await user.until(lambda: bool(user.titles()))


def is_covered(services: Services) -> bool:
    """Return whether search knows every passage."""
    overview = services.overview.read()
    return overview.searchable_share == 1 and sum(overview.passages.values()) >= 56


def is_archived(services: Services) -> bool:
    """Return whether the conversation is out of sight."""
    return all(each.title != TITLE for each in services.conversations.listed())


async def open_first(user: User, words: str) -> None:
    """Search for words and open the first result."""
    user.press("Ctrl+K")
    user.press("Ctrl+A")
    user.type(words)
    user.press("Return")
    await user.until(lambda: user.window.chat.title.text() == TITLE)
    await user.until(lambda: isinstance(user.transcript.anchor, Centred))
    await user.until(lambda: user.transcript.is_settled)


def rows(user: User, name: str) -> list[list[str]]:
    """Return the rows of a table on screen."""
    table = user.find(QTreeWidget, name)
    items = [table.topLevelItem(number) for number in range(table.topLevelItemCount())]
    return [[each.text(at) for at in range(table.columnCount())] for each in items if each]


async def test_a_turn_says_why_it_was_not_recalled(user: User) -> None:
    await with_sample(user)
    assert not user.action("why").isEnabled()
    await open_first(user, "deposit parquet")
    user.press("Ctrl+Shift+Y")
    await user.sees("It is the first of", "Relevance", "It says: deposit, parquet")
    assert "Share of the question's words that it holds" in [
        row[0] for row in rows(user, "What each feature adds")
    ]

    user.press("Ctrl+A")
    user.type("deposit -parquet")
    user.press("Return")
    await user.sees("It is not found.", "It holds what '-parquet' excludes.")
    user.press("Ctrl+A")
    user.type("x")
    user.press("Return")
    await user.sees("The query 'x' is too short", "Type 2 to 500 characters.")
    await user.dismiss()

    user.press("Ctrl+Shift+A")  # archived
    await user.until_so(is_archived)
    user.press("Ctrl+Shift+Y")
    await user.sees("Its conversation is archived.", "Add is:archived to the question.")
    await user.dismiss()


async def test_a_result_is_asked_why_it_stands_there(user: User) -> None:
    await with_sample(user)
    user.press("Ctrl+K")
    user.type("deposit parquet")
    await user.until(lambda: TITLE in user.results())
    view = user.window.sidebar.result_list
    index = view.model().index(1, 0)
    view.customContextMenuRequested.emit(view.visualRect(index).center() + QPoint(0, 2))
    (menu,) = (each for each in QApplication.topLevelWidgets() if is_open_menu(each))
    assert isinstance(menu, QMenu)
    why = next(each for each in menu.actions() if each.text().startswith("Why"))
    copy = next(each for each in menu.actions() if each.text().startswith("Copy"))
    copy.trigger()
    await user.sees("commonplace://")
    why.trigger()
    menu.close()
    await user.sees("It is the first of")
    assert user.window.findChildren(WhyDialog)
    await user.dismiss()


def is_open_menu(widget: object) -> bool:
    return isinstance(widget, QMenu) and widget.isVisible()


async def test_probe_questions_show_what_a_change_has_moved(user: User) -> None:
    await with_sample(user)
    user.action("probes").trigger()
    await user.sees("No probe questions are kept yet.")
    await user.dismiss()
    await open_first(user, "deposit parquet")
    user.press("Ctrl+Shift+Y")
    await user.sees("It is the first of")
    user.click("Keep as a probe question")
    await user.sees("Kept.")
    await user.dismiss()

    user.press("Ctrl+Shift+A")
    await user.until_so(is_archived)
    user.press("Ctrl+N")
    user.action("probes").trigger()
    await user.sees("1 of 1 found first")
    assert rows(user, "Probe questions") == [["deposit parquet", f"{TITLE}, turn 0", "1", "–"]]
    user.click("Ask all again")
    await user.sees("0 rose and 1 fell")
    assert rows(user, "Probe questions")[0][2:] == ["not found ↓", "1"]

    table = user.find(QTreeWidget, "Probe questions")
    table.setCurrentIndex(table.model().index(0, 0))
    user.click("Open the turn")
    await user.in_front()
    await user.until(lambda: user.window.chat.title.text() == TITLE)

    await user.restart()
    user.action("probes").trigger()
    await user.sees("0 rose and 1 fell")
    table = user.find(QTreeWidget, "Probe questions")
    table.setCurrentIndex(table.model().index(0, 0))
    user.click("Remove")
    await user.sees("No probe questions are kept yet.")
    await user.dismiss()
