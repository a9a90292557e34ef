"""The memory page, the preview's list and the window of memory, without the program behind them."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QListView, QScrollArea, QSlider, QSpinBox
from pytestqt.qtbot import QtBot

from app.chat.recall_preview import BudgetUse, Preview
from app.domain.errors import InvalidInput
from app.domain.ids import ConversationId, ExchangeId, PassageId
from app.domain.passages import PassageKind
from app.domain.recall import RecalledItem, RecalledItemDetails, RecallLayer
from app.domain.records.facts import Memory
from app.domain.settings_schema import SETTINGS
from app.storage.tables.memories import CoreMemoryText, KnownMemory
from ui.models.conversations import ListRole
from ui.models.facts import MemoryListModel, saved_source_text
from ui.models.preview import PreviewListModel
from ui.views.memory.versions import StandingTextPane
from ui.views.settings.memory_page import MemoryPage
from ui.widgets.setting_editor import SettingEditor

AT = datetime(2026, 3, 18, 15, 0, tzinfo=UTC)


def place(
    number: int, layer: RecallLayer, dropped_by: str = "", text: str = ""
) -> RecalledItemDetails:
    kind = PassageKind.FACT if layer is RecallLayer.FACT else PassageKind.TURN
    item = RecalledItem(
        layer, kind, PassageId(number), ConversationId(3), ExchangeId(number), None, 0.8, 0.5, 0.6,
        40, injected=not dropped_by, dropped_by=dropped_by,
    )  # fmt: skip
    return RecalledItemDetails(
        item, "Bolts", 2, text or f"What of {number}?", ExchangeId(number), AT
    )


PLACES = (
    place(1, RecallLayer.FACT, text="It is an M8."), place(2, RecallLayer.CONVERSATION),
    place(3, RecallLayer.EXCHANGE),
    place(4, RecallLayer.HISTORY, dropped_by="rag_min_similarity is 0.9"),
)  # fmt: skip
SPENT = (
    BudgetUse("rag_max_tokens", 120, 1200), BudgetUse("auto_rag_max_tokens", 0, 400),
    BudgetUse("core_memory_max_tokens", 20, 500), BudgetUse("profile_max_tokens", 30, 500),
    BudgetUse("compaction_max_tokens", 0, 500),
)  # fmt: skip
PREVIEW = Preview(PLACES, SPENT, 4, 900, 24_000, 30.0)


def rows(model: PreviewListModel, role: int = Qt.ItemDataRole.DisplayRole) -> list[object]:
    return [model.index(number, 0).data(role) for number in range(model.rowCount())]


@pytest.fixture
def page() -> MemoryPage:
    made = MemoryPage()
    made.resize(900, 600)
    made.show()
    return made


def editor_of(page: MemoryPage, key: str) -> SettingEditor:
    return next(each for each in page.editors if each.setting.key == key)


def test_what_was_found_stands_in_groups_with_what_becomes_of_it(qtmodeltester: object) -> None:
    model = PreviewListModel()
    model.show_preview(PREVIEW)
    assert rows(model) == [
        "Facts and saved memories \N{MIDDLE DOT} 1 of 1", "It is an M8.",
        "Related conversations \N{MIDDLE DOT} 2 of 2", "Bolts", "What of 3?",
        "Single turns of all history \N{MIDDLE DOT} 0 of 1", "Bolts: What of 4?",
    ]  # fmt: skip
    assert rows(model, ListRole.SUBTITLE)[-1] == "Left out: \u201cMinimum relevance\u201d is 90%"
    qtmodeltester.check(model)  # type: ignore[attr-defined]


def test_what_changed_says_so_in_words() -> None:
    gone, new = PLACES[3], PLACES[0]
    changed = frozenset(
        (each.item.layer, each.item.passage_id, each.item.message_id) for each in (gone, new)
    )
    model = PreviewListModel()
    model.show_preview(replace(PREVIEW, changed=changed))
    said = rows(model, ListRole.SUBTITLE)
    assert said[1] == "Newly in: 40 tokens"
    assert said[3] == "Brought in: 40 tokens"
    assert said[-1] == "Newly left out: \u201cMinimum relevance\u201d is 90%"


def test_every_key_of_recall_has_an_editor_on_the_page(page: MemoryPage) -> None:
    keys = {each.setting.key for each in page.editors}
    wanted = {key for key in SETTINGS if key.startswith(("rag_", "auto_rag_"))}
    assert keys == wanted | {"core_memory_max_tokens", "profile_enabled", "profile_max_tokens"}


def test_the_button_for_the_default_takes_no_room_from_its_control(page: MemoryPage) -> None:
    editor = editor_of(page, "rag_min_similarity")
    widths = []
    for is_default in (True, False):
        editor.show_value(0.5, is_default=is_default, ruled_by=None)
        QApplication.processEvents()
        widths.append(editor.control.width())
    assert widths[0] == widths[1]


def test_a_slider_is_tried_when_moved_and_saved_at_its_end(page: MemoryPage, qtbot: QtBot) -> None:
    editor = editor_of(page, "rag_min_similarity")
    slider = editor.control
    assert isinstance(slider, QSlider)
    saved: list[object] = []
    tried: list[object] = []
    editor.edited.connect(lambda _key, value: saved.append(value))
    page.tried.connect(lambda _key, value: tried.append(value))
    slider.setSliderDown(True)
    slider.setValue(30)
    slider.setValue(40)
    assert tried == [0.3, 0.4]
    qtbot.waitUntil(lambda: not editor._pause.isActive())
    assert saved == []

    slider.setSliderDown(False)

    qtbot.waitUntil(lambda: saved == [0.4])


def test_a_number_is_tried_at_once_and_saved_after_a_pause(page: MemoryPage, qtbot: QtBot) -> None:
    editor = editor_of(page, "rag_max_tokens")
    assert isinstance(editor.control, QSpinBox)
    editor.show_value(1200, is_default=True, ruled_by=None)
    tried: list[object] = []
    page.tried.connect(lambda _key, value: tried.append(value))
    with qtbot.waitSignal(editor.edited) as saved:
        editor.control.stepUp()
        assert tried == [1250]
    assert saved.args == ["rag_max_tokens", 1250]


@pytest.mark.parametrize("cure", ["typed", "stored elsewhere"])
def test_an_error_goes_when_its_cause_has_gone(cure: str) -> None:
    editor = SettingEditor(SETTINGS["spend_cap_daily_usd"])
    assert isinstance(editor.control, QLineEdit)
    editor.show()
    QTest.keyClicks(editor.control, "nonsense")
    QTest.keyClick(editor.control, Qt.Key.Key_Return)
    assert editor.error.isVisible()
    if cure == "typed":
        editor.control.clear()
        QTest.keyClicks(editor.control, "5")
        QTest.keyClick(editor.control, Qt.Key.Key_Return)
    else:
        editor.show_value(None, is_default=True, ruled_by=None)
    assert not editor.error.isVisible()


def test_the_wheel_scrolls_the_page_and_changes_nothing(page: MemoryPage) -> None:
    box = editor_of(page, "rag_fact_limit").control
    assert isinstance(box, QSpinBox)
    box.clearFocus()
    before = box.value()
    middle = QPointF(box.rect().center())
    wheel = QWheelEvent(
        middle, QPointF(box.mapToGlobal(box.rect().center())), QPoint(), QPoint(0, 120),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase,
        False,
    )  # fmt: skip
    QApplication.sendEvent(box, wheel)
    assert box.value() == before


def test_typing_asks_once_it_has_paused_and_a_click_opens(page: MemoryPage, qtbot: QtBot) -> None:
    pane = page.preview
    with qtbot.waitSignal(pane.asked) as asked:
        pane.box.setEditText("Which bo")
        pane.box.setEditText("Which bolt?")
    assert asked.args == ["Which bolt?"]
    pane.show_preview(PREVIEW)
    pane.show_recent(["Which bolt?", "Which nut?"])
    assert pane.question == "Which bolt?"
    with qtbot.waitSignal(pane.open_requested) as opened:
        click(pane.list, 1)
    assert opened.args == [PLACES[0]]


def click(view: QListView, row: int) -> None:
    at = view.visualRect(view.model().index(row, 0)).center()
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)


def test_core_memory_counts_its_tokens_and_keeps_what_is_being_edited(qtbot: QtBot) -> None:
    pane = StandingTextPane("Core memory")
    old = CoreMemoryText("Lives in Graz.", "user", AT)
    pane.show_versions([old], 500)
    pane.text.setPlainText("Lives in Graz, with cats.")
    new = CoreMemoryText("Lives in Wien.", "openai:gpt", AT.replace(hour=16))
    pane.show_error(InvalidInput("It was refused", "Shorten it."))
    pane.show_versions([new, old], 500)
    assert not pane._problem.isHidden(), "a change from elsewhere hides why an edit was refused"
    assert pane.text.toPlainText() == "Lives in Graz, with cats."
    assert "Not saved yet" in pane._state.text()
    with qtbot.waitSignal(pane.save_requested) as saved:
        pane._save.click()
    assert saved.args == ["Lives in Graz, with cats."]
    pane.show_versions([new, old], 2, replaces_edit=True)
    assert pane._problem.isHidden()
    assert pane.text.toPlainText() == "Lives in Wien."
    assert "of 2 tokens, too many" in pane._tokens.text()
    assert "openai:gpt" in pane._state.text()
    with qtbot.waitSignal(pane.restore_requested) as restored:
        pane.versions._restore.click()
    assert restored.args == [AT]


def test_saved_texts_are_rows_with_their_source(qtmodeltester: object) -> None:
    own = KnownMemory(Memory(PassageId(1), "a", "Likes\ntea.", AT))
    said = replace(
        own, memory=replace(own.memory, id=PassageId(2), conversation_id=ConversationId(3)),
        conversation_title="Tea",
    )  # fmt: skip
    model = MemoryListModel()
    model.show_rows([own, said])
    assert model.index(0).data() == "Likes tea."
    below = [model.index(number).data(ListRole.SUBTITLE) for number in range(2)]
    after_day = [words.partition(" \N{MIDDLE DOT} ")[2] for words in below]
    assert after_day == ["yours", "written by a model \N{MIDDLE DOT} Tea"]
    assert saved_source_text(own).startswith("You saved it")
    assert saved_source_text(said).startswith("A model wrote and saved it")
    qtmodeltester.check(model)  # type: ignore[attr-defined]


def test_a_narrow_page_cuts_no_setting(page: MemoryPage) -> None:
    page.resize(720, 500)
    page.show()
    QApplication.processEvents()
    page.resize(700, 500)
    QApplication.processEvents()
    area = page.findChildren(QScrollArea)[0]
    content = area.widget()
    assert content.minimumSizeHint().width() <= content.width() <= area.viewport().width()
    page.editors[0].setMinimumWidth(420)  # as in German
    for width in range(600, 760, 20):
        page.resize(width, 500)
        QApplication.processEvents()
        side = area.parentWidget()
        assert area.width() <= side.width()
