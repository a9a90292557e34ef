"""Projects in the window: the dialog, the chip, the list in the sidebar, and moves that can be undone."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, Qt
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QApplication, QInputDialog, QLineEdit, QMenu, QWidget
from pytestqt.qtbot import QtBot

from app.chat.projects import Projects
from app.domain.records.projects import Project, RecallRule
from app.storage.tables.conversations import Conversations, ListFilter
from tests.fakes.screens import Parts, press, view_of
from tests.fakes.stored import add_conversation, opened
from ui.models.conversations import ConversationListModel
from ui.presenters.projects import ProjectsPresenter
from ui.views.dialogs.project_dialog import ProjectDialog
from ui.views.project_list import ProjectList
from ui.widgets.composer.project_chip import ProjectChip
from ui.widgets.controls import column_in
from ui.widgets.on_screen import stops_in


class Screen:
    """The presenter on a stored library with the project Garden and two conversations outside it."""

    def __init__(self, parts: Parts, projects: Projects, stored: Conversations) -> None:
        self.parts, self.projects, self.stored = parts, projects, stored
        self.garden = projects.save(Project("", "Garden"))
        self.list, self.chip = ProjectList(parts.banner), ProjectChip(parts.banner)
        self.presenter = parts.make(
            ProjectsPresenter, projects=projects, list=self.list, chip=self.chip
        )
        self.show_list()

    def show_list(self) -> None:
        self.list.show_projects(self.projects.counted())

    def project_of(self, *ids: int) -> list[str | None]:
        return [self.stored.get(each).project for each in ids]

    def dialog(self) -> ProjectDialog:
        return self.parts.dialog(ProjectDialog)

    def choose_in_menu(self, text: str) -> None:
        self.chip.click()
        self.parts.choose(text, self.chip)


@pytest.fixture
def screen(parts: Parts, tmp_path: Path) -> Iterator[Screen]:
    with opened(tmp_path / "data") as store:
        for text in ("Roses", "Paint"):
            add_conversation(store, text)
        yield Screen(parts, Projects(store), Conversations(store))


@pytest.fixture
def ids(screen: Screen) -> list[int]:
    return [each.id for each in screen.stored.listed()]


def test_conversations_move_to_a_known_a_new_and_no_project(screen: Screen, ids: list[int]) -> None:
    def choose(name: str) -> None:
        screen.presenter.ask(ids)  # type: ignore[arg-type]
        dialog = screen.parts.dialog(QInputDialog)
        dialog.setTextValue(name)
        dialog.accept()

    choose("garden")
    listed = screen.stored.listed(ListFilter(project=screen.garden.uid))
    assert {each.id for each in listed} == {*ids}
    choose("House")
    assert [(each.name, count) for each, count in screen.projects.counted()] == [
        ("Garden", 0),
        ("House", 2),
    ]
    choose("No project")
    assert screen.project_of(*ids) == [None, None]


def test_a_move_is_undone_to_the_projects_that_there_were(screen: Screen, ids: list[int]) -> None:
    house = screen.projects.save(Project("", "House"))
    screen.projects.move(ids[:1], house.uid)  # type: ignore[arg-type]
    screen.list.dropped.emit(ids, screen.garden.uid)
    assert screen.project_of(*ids) == [screen.garden.uid] * 2
    assert screen.parts.banner.act is not None
    screen.parts.banner.act()
    assert screen.project_of(*ids) == [house.uid, None]


def test_what_stays_in_its_project_is_not_counted_as_moved(screen: Screen, ids: list[int]) -> None:
    screen.list.dropped.emit(ids, None)
    assert screen.parts.banner.messages == []
    screen.presenter.move(ids[:1], screen.garden.uid)  # type: ignore[arg-type]
    screen.presenter.move(ids, screen.garden.uid)  # type: ignore[arg-type]
    assert [each.count("1 conversation.") for each in screen.parts.banner.messages] == [1, 1]


def test_a_project_is_made_and_edited_in_a_dialog(screen: Screen) -> None:
    screen.presenter.add()
    dialog = screen.dialog()
    assert not dialog.save.isEnabled()
    dialog.name.setText("garden")
    dialog.save.click()
    assert not dialog.status.isHidden(), "the name is taken"
    dialog.name.setText("House")
    dialog.instructions.setPlainText("Be brief.")
    dialog.color.setCurrentIndex(dialog.color.findData("#3a7bd5"))
    dialog.folder.setText("/home/me/house")
    dialog.rules[RecallRule.ONLY].setChecked(True)
    dialog.save.click()
    house = screen.projects.named("House")
    assert house == Project(
        house.uid, "House", "Be brief.", "#3a7bd5", "/home/me/house", RecallRule.ONLY
    )
    screen.presenter._load()
    screen.presenter.edit(house.uid)
    again = screen.dialog()
    assert again.project == house
    again.remove.click()
    press("Remove", again)
    assert screen.projects.listed() == (screen.garden,)


def test_a_dialog_that_is_closed_while_its_project_is_saved_stays_closed(screen: Screen) -> None:
    screen.presenter.add()
    dialog = screen.dialog()
    dialog.name.setText("House")
    screen.parts.bridge.hold()
    dialog.save.click()
    dialog.reject()
    QApplication.sendPostedEvents(dialog, QEvent.Type.DeferredDelete)
    screen.parts.bridge.release()
    assert screen.projects.named("House")
    assert "House" in screen.parts.banner.messages[-1]


def test_the_list_is_as_high_as_its_rows_in_any_size_of_text(screen: Screen) -> None:
    rows = screen.list
    rows.window().setStyleSheet("QListWidget { font-size: 40px; }")
    assert rows.height() >= rows.count() * rows.sizeHintForRow(0)


def test_tab_goes_down_the_dialog_of_a_project(screen: Screen) -> None:
    screen.presenter.edit(screen.garden.uid)
    dialog = screen.dialog()
    stops = stops_in(dialog)
    choose = next(each for each in stops if each.accessibleName() == "Choose a folder")
    order = [dialog.folder, choose, *dialog.rules.values(), dialog.remove, dialog.save]
    assert sorted(order, key=stops.index) == order


def test_a_color_that_is_not_offered_stays(screen: Screen) -> None:
    own = screen.projects.save(replace(screen.garden, color="#123456"))
    screen.presenter._load()
    screen.list.edit_requested.emit(own.uid)
    screen.dialog().save.click()
    assert screen.projects.listed() == (own,)


def test_the_chip_names_the_boundary_and_changes_it(screen: Screen, ids: list[int]) -> None:
    (here, _) = ids
    screen.projects.move([here], screen.garden.uid)  # type: ignore[list-item]
    screen.parts.open.open_path(view_of(1, id=here, project=screen.garden.uid))
    assert screen.chip.text() == "Garden"
    screen.choose_in_menu("Only this project")
    assert screen.projects.listed()[0].recall is RecallRule.ONLY
    screen.presenter._load()
    assert screen.chip.text() == "Only Garden"
    screen.choose_in_menu("No project")
    assert screen.project_of(here) == [None]


def test_a_new_conversation_begins_in_the_project_that_is_listed(screen: Screen) -> None:
    assert not screen.chip.isHidden(), "there is a project to choose"
    screen.list.choose(screen.garden.uid)
    assert screen.parts.open.new.project == screen.garden.uid
    screen.choose_in_menu("No project")
    assert screen.parts.open.new.project is None
    screen.parts.open.begin_new()
    assert screen.parts.open.new.project == screen.garden.uid
    screen.projects.remove(screen.garden.uid)
    screen.show_list()
    assert screen.parts.open.listed_project is None
    assert screen.list.isHidden()


def test_selected_conversations_are_dropped_on_a_row(screen: Screen, ids: list[int]) -> None:
    model = ConversationListModel()
    model.show_conversations(screen.stored.listed(), screen.stored.listed()[0].updated_at)
    data = model.mimeData([model.row_of(each) for each in ids])
    got: list[tuple[list[int], str]] = []
    screen.list.dropped.disconnect()
    screen.list.dropped.connect(lambda *given: got.append(given))

    def drop(data: QMimeData, row: int) -> bool:
        at = QPointF(screen.list.visualItemRect(screen.list.item(row)).center())
        none = Qt.KeyboardModifier.NoModifier
        event = QDropEvent(at, Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, none)
        event.ignore()
        screen.list.dropEvent(event)
        return event.isAccepted()

    screen.list.resize(200, 200)
    assert drop(data, 1)
    assert drop(data, 0)
    assert not drop(QMimeData(), 1)
    assert got == [(ids, screen.garden.uid), (ids, "")]


def test_the_only_project_is_removed_while_its_row_has_focus(screen: Screen, qtbot: QtBot) -> None:
    window = QWidget()
    column_in(window, screen.list, QLineEdit(window))
    window.show()
    window.activateWindow()
    screen.list.choose(screen.garden.uid)
    screen.list.setFocus()
    qtbot.waitUntil(screen.list.hasFocus)
    screen.list.show_projects(())
    assert (screen.list.uid, screen.list.isHidden()) == ("", True)


def test_the_menu_of_a_project_begins_a_conversation_in_it(screen: Screen) -> None:
    screen.list.menu_requested.emit(screen.garden.uid, QPoint(0, 0))
    (menu,) = screen.list.findChildren(QMenu)
    menu.actions()[0].trigger()
    assert screen.parts.open.new.project == screen.garden.uid
    menu.close()
