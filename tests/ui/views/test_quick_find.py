"""The quick search: results while typing, keys, opening and copying."""

from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from app.domain.links import Link
from app.domain.results import SearchResponse
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import Parts, Recorder
from tests.ui.presenters.test_search_views import result
from ui.presenters.tray import QuickFindPresenter
from ui.views.quick_find import QuickFind


class Shown:
    """The palette over a search that finds two turns."""

    def __init__(self, parts: Parts) -> None:
        self.qtbot, self.view, self.opened = parts.qtbot, QuickFind(), list[Link]()
        self.window = Recorder()
        found = tuple(replace(result(each), turn_number=1) for each in (3, 4))
        self.search = Recorder(search=SearchResponse("tea", found, 1.0, 1.0, True))
        self.presenter = parts.make(
            QuickFindPresenter, search=self.search, open_link=self.opened.append,
            raise_window=self.window.bring_to_front, view=self.view,
        )  # fmt: skip
        self.presenter.show()

    def type(self, text: str) -> None:
        QTest.keyClicks(self.view.field, text)
        self.qtbot.waitUntil(lambda: self.view.list.count() == 2)


shown = fixture_of(Shown)


def test_the_arrow_keys_and_enter_open_a_turn(shown: Shown) -> None:
    shown.type("tea")
    QTest.keyClick(shown.view, Qt.Key.Key_Down)
    QTest.keyClick(shown.view, Qt.Key.Key_Return)
    assert shown.opened == [Link(4, 1)]  # type: ignore[arg-type]
    assert ("bring_to_front",) in shown.window.calls
    assert shown.view.isHidden()


def test_copy_takes_the_text_with_its_link(shown: Shown) -> None:
    shown.type("tea")
    QTest.keyClick(shown.view.field, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text().endswith("commonplace://3/1")
    assert not shown.opened


def test_copy_takes_what_is_selected_in_the_field(shown: Shown) -> None:
    shown.type("tea")
    shown.view.field.selectAll()
    QTest.keyClick(shown.view.field, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "tea"


def test_one_letter_is_not_searched(shown: Shown) -> None:
    QTest.keyClicks(shown.view.field, "t")
    shown.qtbot.waitUntil(lambda: not shown.presenter._refresh.isActive())
    assert not shown.search.calls
