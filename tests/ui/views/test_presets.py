"""Presets in the window: the page of the settings, and the choice for a conversation."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QStandardItemModel, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from app.chat.library import Library
from app.chat.planner import NewConversation
from app.chat.presets import Presets
from app.domain.change_set import ChangeSet
from app.domain.errors import StorageError
from app.domain.records.presets import BUILT_IN_PRESET, DEFAULT_PRESET, Effort, ModelOptions, Preset
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import Parts, Recorder, press, view_of
from tests.fakes.stored import add_conversation, opened
from ui.presenters.conversation.choices import PresetPickerPresenter
from ui.presenters.settings.presets import PresetsPresenter
from ui.views.settings.presets_page import PresetsPage
from ui.widgets.choice_box import ChoiceBox

TERSE = Preset(
    "", "Terse", "Be terse.", "openai:small", 0.35, Effort.HIGH, 500, ("first",)
)  # fmt: skip
TOOLS = {"first": "Does the first.", "second": "Does the second."}
SMALL = ModelOptions(has_temperature=False, efforts=(Effort.LOW, Effort.HIGH))


class Desk(Parts):
    """Stored presets, one of them called Terse; `tell` announces a change as the store does."""

    def __init__(self, qtbot: QtBot, store: Store) -> None:
        super().__init__(qtbot)
        self.presets = Presets(store, Settings(store))
        self.terse = self.presets.save(TERSE)

    def tell(self) -> None:
        self.bridge.changed.emit(ChangeSet(presets=frozenset({"x"})))

    def names(self) -> list[str]:
        return [preset.name for preset in self.presets.listed()]


class Page:
    """The page of the settings with its presenter."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.view = desk, PresetsPage()
        self.models = Recorder(options=SMALL, check_name=lambda name: name)
        self.presenter = desk.make(
            PresetsPresenter, presets=desk.presets, models=self.models, tools=lambda: TOOLS,
            list_models=self.listed, page=self.view,
        )  # fmt: skip
        self.form = self.view.form
        self.presenter.show()
        self.view.show()

    async def listed(self) -> Any:
        return ("openai:small", "openai:big"), ()

    def select(self, name: str) -> None:
        (item,) = self.view.list.findItems(name, Qt.MatchFlag.MatchStartsWith)
        self.view.list.setCurrentItem(item)

    def save(self) -> None:
        """End the pause after which a change is saved, and announce the change."""
        self.form.flush()
        self.desk.tell()

    def type_model(self, name: str) -> None:
        line = self.form.model.lineEdit()
        assert line is not None
        line.setText(name)
        QTest.keyClick(line, Qt.Key.Key_Return)

    def click(self, button: QAbstractButton) -> None:
        button.click()
        self.desk.tell()

    @property
    def stored(self) -> Preset:
        return self.desk.presets.get(self.view.selected)


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with opened(data_dir) as made:
        yield made


@pytest.fixture
def desk(qtbot: QtBot, store: Store) -> Iterator[Desk]:
    made = Desk(qtbot, store)
    yield made
    assert made.bridge.failures == []


page = fixture_of(Page, "desk")


def test_the_fields_show_a_preset_and_save_each_change(page: Page) -> None:
    page.select("Terse")
    form = page.form
    shown = (
        form.name.text(), form.prompt.toPlainText(), form.model.currentText(),
        form.temperature.value(), form.effort.currentData(), form.max_output.value(),
    )  # fmt: skip
    assert shown == ("Terse", "Be terse.", "openai:small", 0.35, Effort.HIGH, 500)
    assert [box.isChecked() for box in form.tools.values()] == [True, False]
    QTest.keyClicks(form.name, "r")
    form.prompt.setPlainText("Be terser.")
    form.temperature.setValue(form.temperature.minimum())
    form.effort.setCurrentIndex(form.effort.findData(Effort.LOW))
    form.effort.activated.emit(form.effort.currentIndex())
    form.max_output.setValue(0)
    form.tools["second"].click()
    page.save()
    assert page.stored == Preset(
        page.desk.terse.uid, "Terser", "Be terser.", "openai:small", None, Effort.LOW, None,
        ("first", "second"),
    )  # fmt: skip
    form.all_tools.click()
    page.type_model("")
    page.save()
    assert (page.stored.tools, page.stored.model) == (None, None)
    assert [box.isEnabled() for box in form.tools.values()] == [False, False]
    page.select("Commonplace")
    assert form.prompt.toPlainText() == ""
    assert form.name.isReadOnly()


def test_a_change_is_saved_after_a_pause_or_when_the_page_is_left(page: Page) -> None:
    page.select("Terse")
    page.form.prompt.setPlainText("After a pause.")
    page.desk.qtbot.waitUntil(lambda: page.stored.system_prompt == "After a pause.")
    page.form.prompt.setPlainText("By another choice.")
    page.select("Commonplace")
    page.select("Terse")
    assert page.stored.system_prompt == "By another choice."
    page.form.prompt.setPlainText("By closing.")
    page.view.hide()
    assert page.stored.system_prompt == "By closing."


def test_what_is_being_typed_stays_when_presets_change(page: Page) -> None:
    page.select("Terse")
    page.form.prompt.setPlainText("Half a sen")
    page.desk.presets.save(Preset("", "Another"))
    page.desk.tell()
    assert page.form.prompt.toPlainText() == "Half a sen"
    assert page.view.list.count() == 3
    assert page.view.selected == page.desk.terse.uid


def test_what_a_model_lacks_is_disabled_and_named(page: Page) -> None:
    form = page.form
    assert form.temperature.isEnabled()
    page.select("Terse")
    assert (form.temperature.isEnabled(), form.effort.isEnabled()) == (False, True)
    assert "temperature" in form.note.text()
    rows = form.effort.model()
    assert isinstance(rows, QStandardItemModel)
    enabled = [form.effort.itemData(n) for n in range(1, 8) if rows.item(n).isEnabled()]
    assert enabled == [Effort.LOW, Effort.HIGH]
    page.models.results["options"] = ModelOptions(efforts=())
    page.type_model("openai:big")
    page.save()
    assert (form.temperature.isEnabled(), form.effort.isEnabled()) == (True, False)
    assert page.stored.reasoning_effort is Effort.HIGH, "a disabled option is kept"
    page.select("Commonplace")
    assert form.effort.isEnabled()


def test_the_models_are_listed_when_the_list_opens(page: Page) -> None:
    page.form.model.showPopup()
    page.form.model.hidePopup()
    assert [page.form.model.itemText(n) for n in range(2)] == ["openai:small", "openai:big"]
    page.select("Terse")
    page.form.model.chosen.emit("openai:big")
    page.form.model.setEditText("openai:big")
    page.save()
    assert page.stored.model == "openai:big"


def test_a_refused_change_is_shown_and_the_text_stays(page: Page) -> None:
    page.select("Terse")
    page.form.name.selectAll()
    QTest.keyClicks(page.form.name, "commonplace")
    page.form.flush()
    assert page.form.error.isVisible()
    assert page.form.name.text() == "commonplace"
    assert page.desk.names() == ["Commonplace", "Terse"]
    page.form.name.setText("")
    QTest.keyClicks(page.form.name, "Brief")
    page.save()
    assert (page.form.error.isVisible(), page.stored.name) == (False, "Brief")


def test_presets_are_added_copied_and_made_the_default(page: Page) -> None:
    page.click(page.view.add)
    assert page.stored.name == page.form.name.selectedText() == "New preset"
    page.select("Terse")
    page.click(page.view.copy)
    assert page.stored.name == "Terse (2)"
    page.click(page.view.make_default)
    assert page.desk.presets.default().name == "Terse (2)"
    assert not page.view.make_default.isEnabled()
    assert page.view.list.currentItem().text() == "Terse (2) (default)"


def test_a_new_preset_is_selected_although_a_change_is_announced_meanwhile(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, bridge = page.desk.presets.save, page.desk.bridge

    def save_and_hold(preset: Preset) -> Preset:
        bridge.hold()
        return save(preset)

    monkeypatch.setattr(page.desk.presets, "save", save_and_hold)
    page.click(page.view.add)
    bridge.release()
    assert page.stored.name == page.form.name.selectedText() == "New preset"
    page.select("Terse")
    page.desk.tell()
    assert page.stored.name == "Terse"


def test_a_preset_is_removed_after_a_question_that_cancel_answers(page: Page) -> None:
    page.select("Terse")
    page.view.remove.click()
    (box,) = page.view.findChildren(QMessageBox)
    assert box.defaultButton().text() == "Cancel"
    press("Cancel", page.view)
    assert page.desk.names() == ["Commonplace", "Terse"]
    page.view.remove.click()
    press("Remove", page.view)
    page.desk.tell()
    assert page.desk.names() == ["Commonplace"]
    assert page.view.selected == DEFAULT_PRESET


def test_the_built_in_preset_is_restored(page: Page) -> None:
    page.form.prompt.setPlainText("Be kind.")
    page.save()
    page.view.remove.click()
    press("Restore", page.view)
    page.desk.tell()
    assert page.desk.presets.get(DEFAULT_PRESET) == BUILT_IN_PRESET
    assert page.form.prompt.toPlainText() == ""


def test_every_control_of_the_page_has_a_name(page: Page) -> None:
    for widget in page.view.findChildren(QWidget):
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisible():
            parent = widget.parentWidget()
            is_named = widget.accessibleName() or getattr(widget, "text", str)()
            assert is_named or (parent is not None and parent.accessibleName()), widget


# -- the choice for a conversation
class Picker:
    """The choice with its presenter."""

    def __init__(self, desk: Desk, store: Store) -> None:
        self.desk, self.box, self.library = desk, ChoiceBox("Preset"), Recorder()
        self.presenter = desk.make(
            PresetPickerPresenter, presets=desk.presets, library=self.library, box=self.box
        )
        self.heard: list[str] = []
        for name in ("changed", "page_requested"):
            getattr(self.presenter, name).connect(lambda name=name: self.heard.append(name))
        desk.open.open_path(None)

    def rows(self) -> list[str]:
        return [text for n in range(self.box.count()) if (text := self.box.itemText(n))]

    def pick(self, text: str) -> None:
        number = self.box.findText(text)
        self.box.setCurrentIndex(number)
        self.box.activated.emit(number)


picker = fixture_of(Picker, "desk", "store")


def test_a_preset_is_chosen_for_a_conversation_that_begins(picker: Picker) -> None:
    assert picker.rows()[:2] == ["Commonplace", "Terse"]
    assert (picker.box.currentText(), picker.desk.open.new.preset) == ("Commonplace", None)
    picker.desk.open.new = NewConversation("a:chosen before")
    picker.pick("Terse")
    assert picker.desk.open.new == NewConversation(preset=picker.desk.terse.uid)
    assert picker.presenter.model == "openai:small"
    picker.pick(picker.rows()[2])  # use it for new conversations
    assert picker.desk.presets.default().name == "Terse"
    picker.desk.tell()
    picker.desk.open.open_path(None)
    assert picker.desk.open.new == NewConversation()
    assert picker.box.currentText() == "Terse"
    picker.pick(picker.rows()[-1])
    assert picker.heard[-1] == "page_requested"
    assert picker.box.currentText() == "Terse"


def test_keys_and_wheel_choose_nothing_unseen(picker: Picker) -> None:
    box = picker.box
    box.show()
    box.setFocus()
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Up):
        QTest.keyClick(box, key)
        assert box.view().isVisible()
        box.hidePopup()
    at, none = QPointF(5, 5), QPoint()
    wheel = QWheelEvent(
        at, at, none, QPoint(0, -120), Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(box, wheel)
    assert not wheel.isAccepted()
    assert (box.currentText(), picker.desk.open.new) == ("Commonplace", NewConversation())


def test_the_preset_of_a_stored_conversation_follows_it(picker: Picker) -> None:
    terse = picker.desk.terse
    picker.desk.open.open_path(view_of(1, preset="removed long ago"))
    assert picker.box.currentText() == "Commonplace"
    picker.pick("Terse")
    assert picker.library.calls == [("choose_preset", 7, terse)]
    picker.desk.open.update(preset=terse.uid)
    assert picker.box.currentText() == "Terse"
    picker.library.error = StorageError("Full", "Free some space.")
    picker.pick("Commonplace")
    assert picker.box.currentText() == "Terse"
    assert len(picker.desk.banner.errors) == 1
    picker.desk.presets.remove(terse.uid)
    picker.desk.tell()
    assert picker.box.currentText() == "Commonplace"


def test_the_choice_is_stored(desk: Desk, store: Store) -> None:
    here = add_conversation(store, "Hello").conversation
    picker = desk.make(
        PresetPickerPresenter, presets=desk.presets, library=Library(store),
        box=ChoiceBox("Preset"),
    )  # fmt: skip
    desk.open.open_path(SimpleNamespace(conversation=here, path=()))
    picker.choose(desk.terse.uid)
    assert desk.presets.of(Library(store).open(here.id).conversation) == desk.terse
