"""The first minutes in the window: exports that are offered, questions after an import, the tour."""

from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path

import pytest
from PySide6.QtCore import QLocale, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFrame, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.domain.change_set import ChangeSet
from app.domain.chat import ListedModel, ModelRef
from app.domain.ids import ConversationId
from app.domain.transfer import AddedConversation, ImportReport
from app.providers.vendors.local_servers import LocalServer
from app.transfer.found_exports import FoundExport
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import FakeSettings, Parts, Recorder
from ui.presenters.first_steps import TourPresenter, TourStop, WelcomePresenter
from ui.presenters.imports import SAMPLE, ImportPresenter
from ui.views.welcome import TourCard, Welcome
from ui.widgets.banner import Banner

AT = datetime(2026, 3, 12, tzinfo=UTC)
FOUND = (
    FoundExport(Path("/d/a.zip"), "ChatGPT", AT, 54_000_000),
    FoundExport(Path("/d/b.zip"), "Claude", AT, 1_000),
)


def test_exports_are_looked_for_by_a_newcomer_and_imported_on_request(parts: Parts) -> None:
    welcome, find, imported = Welcome(), Recorder(__call__=FOUND), list[list[Path]]()
    presenter = parts.make(
        WelcomePresenter, find_exports=find, welcome=welcome, import_files=imported.append,
        settings=FakeSettings(),
    )  # fmt: skip
    presenter.look_for_exports()
    assert find.calls == [], "the page is not shown"
    welcome.show()
    welcome.greet(is_newcomer=False)
    presenter.look_for_exports()
    assert find.calls == [], "somebody who has conversations is not asked"
    welcome.greet(is_newcomer=True)
    presenter.look_for_exports()
    assert imported == []
    for code, words in (("de_DE", "ChatGPT und Claude"), ("en_US", "ChatGPT and Claude")):
        QLocale.setDefault(QLocale(code))
        presenter.look_for_exports()
        assert words in welcome.found.text()
    assert "a.zip" in welcome.found.toolTip()
    welcome.found.click()
    assert imported == [[Path("/d/a.zip"), Path("/d/b.zip")]]
    welcome.greet(is_newcomer=False)
    assert welcome.found.isHidden()


def test_a_local_server_is_offered_by_the_welcome_page_until_a_choice(parts: Parts) -> None:
    welcome, settings, opened = Welcome(), FakeSettings(), list[str]()
    listed = (ListedModel(ModelRef("ollama", "m"), "m"),)
    found: Future[tuple[LocalServer, ...]] = Future()
    found.set_result((LocalServer("ollama", "http://127.0.0.1:11434/v1", listed),))
    presenter = parts.make(
        WelcomePresenter, models=Recorder(), network=Recorder(call=found), settings=settings,
        welcome=welcome, connect=opened.append,
    )  # fmt: skip
    presenter.look_for_servers()
    assert welcome.server.isHidden(), "nobody asks while the page is not shown"
    welcome.show()
    presenter.look_for_servers()
    assert "Ollama" in welcome.server.text()
    assert not welcome.model.isHidden()
    welcome.server.click()
    assert opened == ["ollama"]
    settings.values["default_model"] = "ollama:m"
    parts.bridge.changed.emit(ChangeSet(settings=frozenset(("default_model",))))
    assert welcome.server.isHidden()
    assert welcome.model.isHidden(), "there is nothing to set up"


@pytest.mark.parametrize("turns", [0, 3])
def test_an_import_with_news_offers_questions(parts: Parts, turns: int) -> None:
    banner, asked = Banner(), list[str]()
    new = [AddedConversation(ConversationId(each), "Tea", AT) for each in range(turns)]
    report = ImportReport(turns=turns, messages=turns, new=tuple(new), number=1)
    presenter = parts.make(
        ImportPresenter, import_files=lambda *_, **__: report,
        background=Recorder(plan=None), messages=banner, ask_for_consent=lambda: None,
        history=Recorder(), questions=lambda _: ["What was decided about \u201cTea & cake\u201d?"],
    )  # fmt: skip
    closed: list[bool] = []
    presenter.question_chosen.connect(asked.append)
    presenter.sample_closed.connect(lambda: closed.append(True))
    presenter.start([SAMPLE])
    buttons = [
        each for each in presenter.dialog.findChildren(QPushButton) if "Tea && cake" in each.text()
    ]
    assert len(buttons) == bool(turns)
    for each in buttons:
        QApplication.processEvents()
        assert presenter.dialog.focusWidget() is each, "not the button that undoes the import"
        each.click()
        assert asked == ["What was decided about \u201cTea & cake\u201d?"]
    if presenter.dialog is not None:
        presenter.dialog.reject()
    assert closed == [True] * (not turns), "no tour hides the question and its answer"


class Tour:
    """A tour of two stops in a window."""

    def __init__(self, parts: Parts) -> None:
        self.window = QWidget()
        self.window.resize(900, 600)
        self.first, self.second = QLineEdit(self.window), QLineEdit(self.window)
        self.first.setGeometry(10, 10, 200, 30)
        self.second.setGeometry(650, 500, 200, 30)
        self.window.show()
        self.left: list[bool] = []
        self.settings = Recorder(flag=False)
        stops = [TourStop("One", "First.", lambda: self.first)]
        stops.append(TourStop("Two", "Second.", lambda: self.second))
        self.presenter = parts.make(
            TourPresenter, settings=self.settings, window=self.window, stops=stops,
            leave=lambda: self.left.append(True),
        )  # fmt: skip

    @property
    def cards(self) -> list[TourCard]:
        return [each for each in self.window.findChildren(TourCard) if each.isVisible()]


tour = fixture_of(Tour)


def test_the_tour_stands_beside_its_stops_inside_the_window(tour: Tour) -> None:
    tour.presenter.start()
    (card,) = tour.cards
    for part in (tour.first, tour.second):
        assert tour.window.rect().contains(card.geometry())
        assert not card.geometry().intersects(part.geometry())
        card.next.click()
    assert (tour.cards, tour.left) == ([], [True])
    assert ("set", "tour_done", True) in tour.settings.calls


def test_the_tour_is_skipped_by_esc_and_never_returns(tour: Tour) -> None:
    tour.presenter.start()
    (card,) = tour.cards
    QTest.keyClick(card.next, Qt.Key.Key_Escape)
    assert (tour.cards, tour.left) == ([], [True])
    tour.settings.results["flag"] = True
    tour.presenter.start()
    assert tour.cards == []


def test_enter_presses_the_button_of_the_tour_that_has_the_focus(tour: Tour, qtbot: QtBot) -> None:
    tour.presenter.start()
    (card,) = tour.cards
    QTest.keyClick(card.next, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: card.next.text() == "Done")


def test_the_frame_of_the_tour_follows_a_part_that_is_moved(tour: Tour, qtbot: QtBot) -> None:
    pane = QWidget(tour.window)
    pane.setGeometry(0, 0, 400, 100)
    pane.show()
    tour.first.setParent(pane)
    tour.first.show()
    tour.presenter.start()
    (frame,) = (
        each for each in tour.window.findChildren(QFrame) if each.property("panel") == "frame"
    )
    pane.move(300, 200)
    qtbot.waitUntil(lambda: frame.geometry().contains(QRect(310, 210, 200, 30)))
