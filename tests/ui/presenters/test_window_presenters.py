"""Presenters around the open conversation, each alone with fakes of what it uses."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from PySide6.QtCore import QDir, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QInputDialog, QLineEdit, QMainWindow, QMenu, QMessageBox
from pytestqt.qtbot import QtBot

from app.chat.models import ModelCard
from app.chat.planner import NewConversation
from app.check import CheckReport
from app.domain.change_set import ChangeSet
from app.domain.chat import ModelRef
from app.domain.errors import InvalidInput, NotFound, StorageError
from app.domain.ids import ConversationId
from app.domain.records.projects import Project
from app.domain.transfer import ExportReport
from app.domain.translation import format_size
from app.privacy import ConnectionRow, ConnectionState
from app.storage.safety.backup import Backup
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import (
    AT,
    TALK,
    FakeBanner,
    FakeSettings,
    Parts,
    Recorder,
    conversation,
    press,
    view_of,
)
from ui.presenters.conversation.choices import ModelPickerPresenter
from ui.presenters.conversation.list_commands import ConversationCommands
from ui.presenters.conversation.navigation import LinkPresenter
from ui.presenters.conversation.sidebar_list import ConversationListPresenter
from ui.presenters.maintenance import MaintenancePresenter
from ui.presenters.memory.forgetting import PrivacyPresenter
from ui.views.actions import add_actions
from ui.views.dialogs.help_dialogs import AboutDialog, BackupsDialog, PrivacyDialog
from ui.views.sidebar import FOLDERS, Sidebar
from ui.widgets.model_rows import ModelGroup

OTHER = ConversationId(8)


# -- commands about a conversation
class Commands:
    """The presenter with a conversation open, and the actions of a window."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.window = parts, QMainWindow()
        self.library, self.shown = Recorder(), Recorder()
        self.stored = Recorder(tags_of=lambda ids: {ids[0]: ("old", "kept")})
        self.removal, self.exports = (
            Recorder(forget=("Two backups remain.",)),
            Recorder(write=ExportReport(3)),
        )
        self.actions = add_actions(self.window)
        self.presenter = parts.make(
            ConversationCommands, library=self.library, conversations=self.stored,
            removal=self.removal, export=self.exports.write, conversation=self.shown,
            actions=self.actions,
        )  # fmt: skip

    def enabled(self) -> set[str]:
        names = ("rename", "pin", "archive", "tag", "delete", "restore", "forget", "export")
        return {name for name in names if self.actions[name].isEnabled()}


commands = fixture_of(Commands)


@pytest.mark.parametrize(
    ("action", "more", "calls", "undone"),
    [
        ("pin", {}, [("pin", TALK, True)], None),
        ("pin", {"pinned": True}, [("pin", TALK, False)], None),
        ("archive", {}, [("archive", [TALK], True)], ("archive", [TALK], False)),
        ("archive", {"archived": True}, [("archive", [TALK], False)], ("archive", [TALK], True)),
        ("delete", {}, [], ("restore", TALK)),
        ("restore", {"deleted_at": AT}, [("restore", TALK)], None),
    ],
)
def test_a_command_changes_the_open_conversation_and_some_can_be_undone(
    commands: Commands, action: str, more: Any, calls: list[Any], undone: tuple[Any, ...] | None
) -> None:
    commands.actions[action].trigger()  # nothing is open
    commands.presenter.show_opened(conversation(**more))
    commands.actions[action].trigger()
    assert commands.library.calls == calls
    act = commands.parts.banner.act
    assert (act is None) == (undone is None)
    if act is not None:
        act()
        assert commands.library.calls[-1] == undone
    if action == "delete":
        assert commands.removal.calls == [("delete", TALK)]
    opened = [("begin_new",)] * (action == "delete") + [("open", TALK)] * (
        "restore" in (action, *(undone or ()))
    )
    assert commands.shown.calls == opened


def test_a_menu_command_is_about_its_conversation_and_shows_failures(commands: Commands) -> None:
    commands.presenter.rename("Nothing is open")
    commands.presenter.show_opened(conversation())
    menu = dict(commands.presenter.menu_of([conversation(OTHER, pinned=True, archived=True)]))
    menu["Unpin"]()
    menu["Delete"]()
    assert commands.shown.calls == []  # what is open stays
    assert "Unarchive" in menu
    commands.library.error = StorageError("The disk is full")
    commands.presenter.rename("New")
    assert commands.library.calls == [("pin", OTHER, False)]
    assert len(commands.parts.bridge.failures) == 1


def test_tags_are_edited_as_a_list(commands: Commands) -> None:
    commands.presenter.show_opened(conversation())
    commands.actions["tag"].trigger()
    dialog = commands.parts.dialog(QInputDialog)
    assert dialog.textValue() == "old, kept"
    assert dialog.width() >= 300
    dialog.setTextValue(" new, kept,, ")
    dialog.accept()
    assert commands.library.calls == [("tag", [TALK], ["new"], ["old"])]


@pytest.mark.parametrize("remains", [(), ("Two backups remain.",)])
def test_conversations_are_forgotten_on_yes(commands: Commands, remains: tuple[str, ...]) -> None:
    commands.removal.results["forget"] = remains
    commands.presenter.show_opened(conversation())
    commands.actions["forget"].trigger()
    press("Cancel", commands.parts.banner)
    assert commands.removal.calls == []
    commands.actions["forget"].trigger()
    press("Forget", commands.parts.banner)
    assert commands.removal.calls == [("forget", [TALK])]
    assert commands.shown.calls == [("begin_new",)]
    (said,) = commands.parts.banner.messages
    assert said == "Two backups remain." or not remains


@pytest.mark.parametrize(
    ("action", "name", "given"),
    [("export", "talk", "talk.md"), ("export", "talk.txt", "talk.txt"), ("all", "all", "all.md")],
)
def test_an_export_gets_the_ending_of_its_format(
    commands: Commands, tmp_path: Path, action: str, name: str, given: str
) -> None:
    commands.presenter.show_opened(conversation(title="Tea / cake?"))
    if action == "all":
        commands.presenter.ask_for_export()
    else:
        commands.actions["export"].trigger()
    dialog = commands.parts.dialog(QFileDialog)
    proposed = Path(dialog.selectedFiles()[0]).stem
    assert proposed == ("commonplace" if action == "all" else "Tea cake")
    assert dialog.directory() != QDir.current(), "which says nothing to a user"
    dialog.setDirectory(str(tmp_path))
    dialog.selectFile(name)
    dialog.accept()
    assert commands.exports.calls == [
        ("write", tmp_path / given, "md", () if action == "all" else [TALK])
    ]
    assert "3 conversations." in commands.parts.banner.messages[0]
    dialog.reject()


# -- the list of conversations
def test_the_list_follows_folder_and_data(parts: Parts, commands: Commands, qtbot: QtBot) -> None:
    sidebar, welcome = Sidebar(), Recorder()
    stored = Recorder(listed=[conversation(), conversation(OTHER)], tag_counts=(("work", 2),))
    opened: list[int] = []
    presenter = parts.make(
        ConversationListPresenter, conversations=stored, has_any=lambda: False,
        projects=lambda: ((Project("g", "Garden"), 2),),
        commands=commands.presenter, sidebar=sidebar, welcome=welcome,
        open_conversation=opened.append,
    )  # fmt: skip
    presenter.show_opened(conversation())
    parts.bridge.start("conversations", presenter.load())
    assert sidebar.projects.item(1).text() == "Garden (2)"
    sidebar.projects.choose("g")
    assert (stored.calls[-1][1].project, stored.calls[-1][1].archived) == ("g", None)
    sidebar.projects.choose("")
    assert sidebar.conversations.row_of(OTHER).isValid()
    chosen = sidebar.conversations.value_at(sidebar.conversation_list.currentIndex())
    assert chosen == conversation()  # a list that is loaded later selects it, too
    assert welcome.calls[-1] == ("greet", False)
    sidebar.conversation_chosen.emit(conversation(OTHER))
    assert opened == [OTHER]

    stored.results["listed"] = []
    sidebar.folder_chosen.emit(FOLDERS[2])
    which = stored.calls[-1][1]
    assert (which.trash, which.archived) == (True, False)
    sidebar.folders.activated.emit(sidebar.folders.findText("#work (2)"))
    assert stored.calls[-1][1].tag == "work"
    asked: list[bool] = []
    sidebar.project_requested.connect(lambda: asked.append(True))
    sidebar.folders.activated.emit(sidebar.folders.count() - 1)
    assert (asked, sidebar.folders.currentText()) == ([True], "#work (2)")
    sidebar.folder_chosen.emit(FOLDERS[2])
    assert welcome.calls[-1] == ("greet", True)
    assert FOLDERS[2].empty_text in sidebar._message.text()

    stored.results["listed"] = [conversation()]
    parts.bridge.changed.emit(ChangeSet(messages_in=frozenset({TALK})))
    qtbot.waitUntil(lambda: sidebar.conversations.row_of(TALK).isValid())
    stored.results["listed"] = [conversation(OTHER)]
    parts.bridge.day_began.emit()  # "Today" is "Yesterday" now
    qtbot.waitUntil(lambda: sidebar.conversations.row_of(OTHER).isValid())
    sidebar.conversation_list.setCurrentIndex(sidebar.conversations.row_of(OTHER))
    presenter.refresh()  # the open conversation is in another folder: the chosen row stays
    chosen = sidebar.conversations.value_at(sidebar.conversation_list.currentIndex())
    assert chosen == conversation(OTHER)
    stored.error = StorageError("The disk is full")
    presenter.refresh()
    assert len(parts.bridge.failures) == 1
    parts.bridge.failures.clear()

    sidebar.menu_requested.emit(conversation(OTHER), QPoint())
    (menu,) = sidebar.findChildren(QMenu)
    menu.actions()[1].trigger()
    menu.close()
    assert commands.library.calls == [("pin", OTHER, True)]
    sidebar.deletion_requested.emit()
    assert commands.removal.calls == [("delete", OTHER)]
    sidebar.edit_title(conversation(OTHER))
    (editor,) = sidebar.conversation_list.findChildren(QLineEdit)
    editor.setText(" A new name ")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    renamed = ("rename", OTHER, "A new name")
    qtbot.waitUntil(lambda: commands.library.calls[-1] == renamed)


def test_a_title_in_the_trash_is_not_edited(qtbot: QtBot, qtlog: Any) -> None:
    sidebar = Sidebar()
    qtbot.addWidget(sidebar)
    trashed = replace(conversation(), deleted_at=AT)
    sidebar.show_conversations([trashed], "")
    sidebar.edit_title(trashed)
    assert [each.message for each in qtlog.records] == []


# -- private conversations
class Privacy:
    def __init__(self, parts: Parts) -> None:
        self.parts, self.forgotten, self.left = parts, list[list[int]](), list[int]()
        self.presenter = parts.make(
            PrivacyPresenter, forget=lambda ids: self.forgotten.append(list(ids))
        )

    def leave(self) -> None:
        self.presenter.ask_before_leaving(lambda: self.left.append(1))


privacy = fixture_of(Privacy)


def private(**more: Any) -> Any:
    """Return a private conversation begun in this session, of which `AT` is before the start."""

    return replace(conversation(private=True, **more), created_at=AT + timedelta(days=36_500))


@pytest.mark.parametrize(
    ("answer", "left", "forgotten"),
    [("Keep", [1], []), ("Discard", [1], [[TALK]]), ("Cancel", [], [])],
)
def test_leaving_a_private_conversation_is_asked_about(
    privacy: Privacy, answer: str, left: list[int], forgotten: list[list[int]]
) -> None:
    privacy.parts.open.open_path(SimpleNamespace(conversation=private(), path=()))
    privacy.leave()
    assert privacy.left == []
    press(answer, privacy.parts.banner)
    assert (privacy.left, privacy.forgotten) == (left, forgotten)


def test_only_a_private_conversation_can_be_discarded_when_it_is_left(privacy: Privacy) -> None:
    privacy.parts.open.left.emit(conversation())
    assert privacy.parts.banner.messages == []
    for _ in range(2):  # it is said once
        privacy.parts.open.left.emit(private())
    assert len(privacy.parts.banner.messages) == 1
    assert privacy.parts.banner.act is not None
    privacy.parts.banner.act()
    assert privacy.forgotten == [[TALK]]
    for opened in (None, view_of(1), view_of(1, private=True)):  # the last is of another session
        privacy.parts.open.view = opened
        privacy.leave()
    assert privacy.left == [1, 1, 1]


# -- links and pages
class Links:
    def __init__(self, parts: Parts) -> None:
        self.parts, self.turns = parts, list[tuple[Any, ...]]()
        self.library = Recorder(open=lambda _: view_of(1, 2))
        self.presenter = parts.make(
            LinkPresenter, library=self.library, open_document=parts.go("document"),
            open_turn=lambda *given: self.turns.append(given),
        )  # fmt: skip


links = fixture_of(Links)


@pytest.mark.parametrize(
    ("text", "turn"),
    [("commonplace://7/1", (TALK, 2, None)), ("7:1", (TALK, 2, None)),
     ("commonplace://7/9", (TALK, None, None)), ("commonplace://7", (TALK, None, None)),
     ("commonplace://7/1?exchange=5", (TALK, 5, None))],
)  # fmt: skip
def test_an_entered_link_opens_its_turn(links: Links, text: str, turn: tuple[Any, ...]) -> None:
    links.presenter.ask_for_link()
    dialog = links.parts.dialog(QInputDialog)
    dialog.setTextValue(text)
    dialog.accept()
    assert links.turns == [turn]


def test_a_wrong_link_and_a_deleted_conversation_are_errors(links: Links) -> None:
    links.presenter.ask_for_link()
    links.parts.dialog(QInputDialog).textValueSelected.emit("nonsense")
    links.parts.dialog(QInputDialog).reject()
    links.library.error = NotFound("It was deleted")
    links.presenter.follow("commonplace://7/1")
    assert [type(each) for each in links.parts.banner.errors] == [InvalidInput]
    assert [type(each) for each in links.parts.bridge.failures] == [NotFound]


def test_an_external_link_is_opened_after_a_yes_and_a_hidden_one_refused(
    links: Links, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    for answer, expected in (("Cancel", []), ("Open", ["https://example.org/"])):
        links.presenter.follow("https://example.org/", "an example")
        press(answer, links.parts.banner)
        assert opened == expected
    links.presenter.follow("https://example.org/")  # the site was allowed
    assert len(opened) == 2
    links.presenter.follow("file:///etc/passwd")
    assert "file:///etc/passwd" in links.parts.banner.messages[0]


# -- maintenance
def test_a_backup_is_restored_once_agreed_to(parts: Parts, tmp_path: Path, qtbot: QtBot) -> None:
    backups = [
        Backup(tmp_path / name, datetime(2026, 3, day, tzinfo=UTC), day, "x", 2_000_000)
        for name, day in (("new", 2), ("old", 1))
    ]
    restored: list[Path] = []
    presenter = parts.make(
        MaintenancePresenter, back_up=print, check=print, folder=tmp_path, connections=list,
        backups=lambda: backups, restore=restored.append,
    )  # fmt: skip
    presenter.choose_backup()
    dialog = parts.dialog(BackupsDialog)
    assert dialog.table.current is backups[0]
    older = dialog.table.topLevelItem(1)
    assert older is not None
    assert older.text(1) == format_size(2_000_000)
    dialog.table.setCurrentItem(older)
    for place in (dialog.table, dialog.restore):  # Enter does not answer the question it opens
        QTest.keyClick(place, Qt.Key.Key_Return)
        qtbot.waitUntil(lambda: any(each.isVisible() for each in dialog.findChildren(QMessageBox)))
        press("Cancel", dialog)
    assert restored == []
    dialog.restore.click()
    press("Restore", dialog)
    assert restored == [tmp_path / "old"]
    dialog.show_backups(())
    assert not dialog.restore.isEnabled()


def test_backup_check_and_repair_report_what_they_did(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = CheckReport({"a": 2, "b": 1}, ("One is wrong.",), repairable=1)
    repairs: list[bool] = []

    def check(
        *,
        repair: bool = False,
        is_cancelled: Callable[[], bool],
        progress: Callable[[int, int], object],
    ) -> CheckReport:
        assert not is_cancelled()
        progress(1, 2)
        assert "50%" in parts.banner.messages[-1]
        assert parts.banner.act is not None
        parts.banner.act()
        assert is_cancelled()
        repairs.append(repair)
        return CheckReport({"a": 3}, (), ("One was wrong.",)) if repair else report

    backup = Recorder(make=SimpleNamespace(made_at=datetime(2026, 5, 4, tzinfo=UTC)))
    row = ConnectionRow(
        "tool_server", "Tool server: x", "x --y", "Now", "Words", ConnectionState.ON, True
    )
    presenter = parts.make(
        MaintenancePresenter, back_up=backup.make, check=check, folder=tmp_path,
        connections=lambda: (row,), backups=list, restore=print,
    )  # fmt: skip
    presenter.back_up()
    assert "4 May 2026" in parts.banner.messages[0]
    presenter.check()
    box = parts.dialog(QMessageBox)
    assert (box.detailedText(), "3." in box.informativeText()) == ("One is wrong.", True)
    press("Repair", parts.banner)
    repaired = parts.dialog(QMessageBox)
    assert repaired.detailedText() == "One was wrong."
    assert [each.text() for each in repaired.buttons() if "Repair" in each.text()] == []
    repaired.reject()
    assert repairs == [False, True]
    backup.error = StorageError("The disk is full")
    presenter.back_up()
    assert len(parts.bridge.failures) == 1
    parts.bridge.failures.clear()

    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    presenter.open_folder()
    assert opened == [str(tmp_path)]
    presenter.show_about()
    about = parts.dialog(AboutDialog)
    names = [about.table.topLevelItem(row) for row in range(about.table.topLevelItemCount())]
    by_name = {item.text(0): item for item in names if item is not None}
    assert {"PySide6_Essentials", "duckdb", "lucide", "all-MiniLM-L6-v2"} <= set(by_name)
    assert [name for name, item in by_name.items() if not item.text(2)] == []
    about.table.setCurrentItem(by_name["lucide"])
    assert "ISC License" in about.license.toPlainText()
    about.reject()
    presenter.show_privacy()
    privacy = parts.dialog(PrivacyDialog)
    (item,) = [privacy.table.topLevelItem(n) for n in range(privacy.table.topLevelItemCount())]
    assert (item.text(0), item.text(2)) == (row.title, row.address)
    assert all(each in privacy.detail.toPlainText() for each in (row.when, row.what))
    privacy.reject()


def test_the_progress_of_a_check_replaces_no_other_message(parts: Parts, tmp_path: Path) -> None:
    def check(*, progress: Callable[[int, int], object], **_: object) -> CheckReport:
        progress(1, 4)
        parts.banner.show_message("A reply failed", brief=False)
        progress(2, 4)
        progress(4, 4)
        return CheckReport({}, ())

    presenter = parts.make(
        MaintenancePresenter, back_up=print, check=check, folder=tmp_path, connections=list,
        backups=list, restore=print,
    )  # fmt: skip
    presenter.check()
    parts.dialog(QMessageBox).reject()
    assert (len(parts.banner.messages), parts.banner.messages[-1]) == (3, "A reply failed")


# -- the model picker
class PickerView(FakeBanner):
    def __init__(self) -> None:
        super().__init__()
        self.banner, self.chosen = self, ""
        self.model = FakePicker()

    def show_model(self, model: str) -> None:
        self.chosen = model


class FakePicker(QObject):
    opening, chosen, favorite_toggled = Signal(), Signal(str), Signal(str)

    def show_groups(self, groups: Sequence[ModelGroup]) -> None:
        self.groups = {
            each.heading: [row.model for row in each.rows] or each.note for each in groups
        }


class FakePresetPicker(QObject):
    changed = Signal()
    model: str | None = None


class Picker:
    """The presenter with two providers with a key, the second of which cannot list its models."""

    def __init__(self, parts: Parts) -> None:
        self.bridge, self.open, self.view = parts.bridge, parts.open, PickerView()
        states = [SimpleNamespace(config=SimpleNamespace(name=each)) for each in "abc"]
        self.models = Recorder(
            providers=lambda: states, has_key=lambda name: name != "c", check_name=lambda name: name
        )
        self.settings = FakeSettings({"default_model": "a:default"})
        self.stored = self.settings.values
        self.library, self.presets = Recorder(), FakePresetPicker()
        self.presenter = parts.make(
            ModelPickerPresenter, models=self.models, settings=self.settings, library=self.library,
            exchanges=SimpleNamespace(call=self.listed), view=self.view, presets=self.presets,
        )  # fmt: skip

    @property
    def groups(self) -> dict[str, list[str] | str]:
        return self.view.model.groups

    def listed(self, call: Callable[[], object]) -> "Future[Any]":
        future: Future[Any] = Future()
        name = cast("Any", call).args[0]
        if name == "b":
            future.set_exception(StorageError("No answer"))
        else:
            future.set_result((ModelCard(ModelRef(name, "x"), "x"),))
        return future


picker = fixture_of(Picker)


def test_the_picker_groups_the_models_of_providers_with_a_key(picker: Picker) -> None:
    picker.open.open_path(None)
    picker.view.model.opening.emit()
    assert picker.groups == {
        "Recent": ["a:default"], "Built in": ["recall:"], "a": ["a:x"], "b": "No answer",
    }  # fmt: skip
    picker.view.model.favorite_toggled.emit("a:x")
    assert next(iter(picker.groups.items())) == ("Favorites", ["a:x"])
    picker.view.model.favorite_toggled.emit("a:x")
    assert "Favorites" not in picker.groups


def test_the_model_that_answers_here_is_listed_before_others_are_known(picker: Picker) -> None:
    picker.stored["recent_models"] = '["a:used"]'
    picker.open.open_path(view_of(1, model="b:here"))
    picker.bridge.hold()
    picker.view.model.opening.emit()
    assert picker.groups["Recent"] == ["b:here", "a:used"]
    picker.bridge.release()
    picker.view.model.favorite_toggled.emit("b:here")
    assert (picker.groups["Favorites"], picker.groups["Recent"]) == (["b:here"], ["a:used"])


def test_a_known_list_does_not_change_while_it_is_open(picker: Picker) -> None:
    picker.open.open_path(None)
    picker.view.model.opening.emit()
    picker.bridge.hold()
    shown = picker.groups
    picker.view.model.opening.emit()
    before = picker.groups
    assert before == shown
    picker.bridge.release()
    assert picker.groups is before
    picker.bridge.changed.emit(ChangeSet(providers=frozenset({"a"})))
    picker.bridge.hold()
    picker.view.model.opening.emit()
    assert picker.groups["a"] == "Loading\u2026"
    picker.bridge.release()


def test_a_choice_is_kept_for_new_conversations_and_listed_as_recent(picker: Picker) -> None:
    picker.open.open_path(None)
    assert picker.open.new.model is None
    picker.view.model.chosen.emit("a:x")
    assert (picker.view.chosen, picker.stored["default_model"]) == ("a:x", "a:x")
    assert picker.open.new.model == "a:x"
    picker.view.model.chosen.emit("recall:")
    picker.view.model.opening.emit()
    assert picker.groups["Recent"] == ["a:x"], "the built-in model has its own heading below"
    picker.view.model.chosen.emit("a:y")
    picker.view.model.opening.emit()
    assert picker.groups["Recent"] == ["a:y", "a:x"]
    picker.models.error = InvalidInput("There is no provider z")
    picker.view.model.chosen.emit("z:z")
    assert (picker.view.chosen, len(picker.view.errors)) == ("a:y", 1)
    assert picker.library.calls == []


def test_the_model_of_a_stored_conversation_follows_it(picker: Picker) -> None:
    picker.open.open_path(view_of(1, model="a:x"))
    assert picker.view.chosen == "a:x"
    picker.view.model.chosen.emit("b:y")
    assert picker.library.calls == [("choose_model", TALK, "b:y")]
    picker.open.update(model="b:y")
    assert (picker.view.chosen, picker.presenter.chosen) == ("b:y", "b:y")
    picker.models.error = NotFound("There is no provider z")
    picker.view.chosen = "z:z"
    picker.view.model.chosen.emit("z:z")
    assert picker.view.chosen == "b:y"
    picker.open.open_path(None)
    assert picker.view.chosen == "b:y", "the last choice"


def test_a_new_default_answers_here_unless_recall_was_chosen_here(picker: Picker) -> None:
    for own, before, after in ((None, "recall:", "a:x"), ("recall:", "recall:", "recall:")):
        picker.stored["default_model"] = "recall:"
        picker.open.open_path(view_of(1, model=own))
        assert picker.view.chosen == before
        picker.stored["default_model"] = "a:x"
        picker.bridge.changed.emit(ChangeSet(settings=frozenset({"default_model"})))
        assert (picker.view.chosen, picker.library.calls) == (after, [])


def test_the_model_of_a_preset_replaces_the_default_until_another_is_chosen(picker: Picker) -> None:
    picker.open.open_path(None)
    picker.view.model.chosen.emit("a:x")
    picker.presets.model = "b:small"
    picker.presets.changed.emit()
    assert picker.view.chosen == "a:x"
    picker.open.new = NewConversation(preset="small")
    picker.presets.changed.emit()
    assert picker.view.chosen == "b:small"
    picker.view.model.chosen.emit("a:default")
    assert picker.open.new.model == "a:default"
    picker.open.open_path(view_of(1))
    assert picker.view.chosen == "b:small"
    picker.open.open_path(None)
    picker.view.model.chosen.emit("a:x")
    assert picker.open.new.model == "a:x", "a choice beside the preset's model"


def test_a_choice_made_before_another_conversation_was_opened_does_not_leak(picker: Picker) -> None:
    picker.presets.model = "a:preset"
    picker.open.open_path(view_of(1, model="a:x"))
    picker.bridge.hold()
    picker.view.model.chosen.emit("b:y")
    picker.open.open_path(None)
    picker.bridge.release()
    assert picker.presenter.chosen == "a:preset"
