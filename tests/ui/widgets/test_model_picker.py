"""The model picker and its list: search, keyboard, favorites, and its place on the screen."""

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import delete

from app.chat.models import ModelCard
from app.domain.chat import ModelRef
from ui.views.settings.provider_form import ProviderModels
from ui.widgets.composer.model_picker import ModelPicker, list_place
from ui.widgets.controls import column_in
from ui.widgets.model_list import ModelList
from ui.widgets.model_rows import ModelGroup, ModelRow, model_name, model_row, window_text

GROUPS = (
    ModelGroup("Recent", (ModelRow("a:one", "one"),)),
    ModelGroup("A", (ModelRow("a:one", "one"), ModelRow("a:two", "two"))),
    ModelGroup("B", (ModelRow("b:two", "two"),)), ModelGroup("C", note="No answer"),
)  # fmt: skip
SCREEN = QRect(0, 0, 900, 600)


@pytest.fixture
def models() -> ModelList:
    made = ModelList(one_click=True)
    made.show_groups(GROUPS)
    return made


def shown(models: ModelList) -> list[str]:
    items = [models.tree.topLevelItem(row) for row in range(models.tree.topLevelItemCount())]
    return [each.text(0) for each in items if each is not None and not each.isHidden()]


def test_search_keeps_the_models_with_all_words_and_their_headings(models: ModelList) -> None:
    assert shown(models) == ["Recent", "one", "A", "one", "two", "B", "two", "C", "No answer"]
    models.search.setText("TWO b")
    assert (shown(models), models.model) == (["B", "two"], "b:two")
    models.search.setText("nothing like it")
    assert (shown(models), models.model, models.none.isHidden()) == ([], "", False)
    models.search.clear()
    assert (models.model, models.none.isHidden()) == ("a:one", True)


def test_the_keyboard_moves_chooses_and_marks(models: ModelList) -> None:
    chosen, marked = list[str](), list[str]()
    models.chosen.connect(chosen.append)
    models.marked.connect(marked.append)
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Return):
        QTest.keyClick(models.search, key)
    assert chosen == ["a:two"]
    QTest.keyClick(models.search, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
    assert marked == ["a:two"]
    QTest.keyClicks(models.search, "nothing like it")
    QTest.keyClick(models.search, Qt.Key.Key_Return)
    assert chosen == ["a:two"]
    models.search.clear()
    QTest.keyClicks(models.search, "z:typed")
    QTest.keyClick(models.search, Qt.Key.Key_Return)
    assert chosen[-1] == "z:typed"


def test_a_refreshed_list_keeps_the_selection(models: ModelList) -> None:
    models.show_groups(GROUPS, "b:two")
    models.show_groups((ModelGroup("New", (ModelRow("n:n", "n"),)), *GROUPS))
    assert models.model == "b:two"


def test_a_click_on_the_star_marks_instead_of_choosing(models: ModelList) -> None:
    chosen, marked = list[str](), list[str]()
    models.chosen.connect(chosen.append)
    models.marked.connect(marked.append)
    item = models.tree.topLevelItem(1)
    for column in (3, 0):
        models.tree.itemClicked.emit(item, column)
    assert (marked, chosen) == (["a:one"], ["a:one"])


@pytest.mark.parametrize(
    "button",
    [QRect(700, 30, 180, 28), QRect(5, 30, 60, 28), QRect(700, 560, 180, 28),
     QRect(300, 290, 90, 28)],
)  # fmt: skip
def test_the_list_opens_inside_the_screen_beside_its_button(button: QRect) -> None:
    place = list_place(button, SCREEN)
    assert SCREEN.contains(place)
    assert not place.intersects(button)
    assert place.height() > 250


def test_an_open_list_grows_to_show_its_rows_and_never_shrinks() -> None:
    picker = ModelPicker()
    picker.show()
    picker.show_groups(GROUPS[:1])
    picker.open()
    few = picker.list.height()
    picker.show_groups([ModelGroup("All", tuple(ModelRow(f"a:{n}", str(n)) for n in range(12)))])
    many = picker.list.height()
    assert few < picker.list.fitting_height() <= many
    picker.show_groups(GROUPS[:1])
    assert picker.list.height() == many


def test_a_provider_of_one_model_has_a_short_list_and_a_button_of_its_text(qtbot: QtBot) -> None:
    page = QWidget()
    page.resize(900, 700)
    shown = ProviderModels(page)
    column_in(page, shown, None)
    shown.show_models((ModelRow("a:one", "one"),), "")
    page.show()
    qtbot.waitExposed(page)
    assert shown.list.height() == shown.list.fitting_height() < 200
    assert shown.use.width() < 400


def test_a_name_that_is_not_listed_is_offered_and_gone_with_the_next_list(qtbot: QtBot) -> None:
    page = QWidget()
    page.resize(900, 700)
    shown = ProviderModels(page)
    column_in(page, shown, None)
    shown.list.provider = "a"
    shown.show_models((), "")
    page.show()
    qtbot.waitExposed(page)
    assert not shown.use.isEnabled()
    shown.list.search.setText("own")
    search = shown.list.search
    qtbot.waitUntil(lambda: search.height() >= search.sizeHint().height())
    with qtbot.waitSignal(shown.default_chosen) as chosen:
        shown.use.click()
    assert chosen.args == ["a:own"]
    shown.show_models((ModelRow("a:one", "one"),), "")
    assert (shown.list.search.text(), shown.list.model) == ("", "a:one")


def test_the_button_is_never_wider_than_its_place() -> None:
    picker = ModelPicker()
    picker.show_model("p:" + "a-model-with-a-very-long-name/" * 5)
    assert picker.sizeHint().width() < 400
    picker.resize(picker.minimumSizeHint())
    picker.show()
    assert 0 < picker.fontMetrics().horizontalAdvance(picker.text()) < picker.width() <= 150


def test_models_are_described_in_short() -> None:
    assert [window_text(each) for each in (None, 2_048, 131_072, 200_000, 1_047_576)] == [
        "", "2k", "128k", "200k", "1M",
    ]  # fmt: skip
    card = ModelCard(ModelRef("p", "m"), "Emm", 8_192, (2.5, 10.0))
    assert (model_row(card).price, model_row(card).window) == ("$2.50 / $10", "8k")
    assert "Emm" in model_row(card).tip
    names = [model_name(each) for each in ("recall:", "p:a/b", "p:/x/y.gguf", "p:C:\\x\\y.gguf")]
    assert names == ["Recall (built in)", "a/b", "y.gguf", "y.gguf"]


def test_what_had_the_focus_may_be_gone_when_the_list_closes(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    picker, before = ModelPicker(window), QLineEdit(window)
    column_in(window, picker, before)
    picker.show_model("a:one")
    window.show()
    before.setFocus()
    picker.open()
    delete(before)
    picker.list.window().close()
    assert not picker.is_open


def test_a_closed_list_gives_the_focus_back_to_where_it_was(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    box, picker = QLineEdit(window), ModelPicker(window)
    column_in(window, box, picker)
    assert not picker.isVisibleTo(window), "it shows no model yet"
    picker.show_model("a:one")
    picker.show_groups(GROUPS)
    window.show()
    for before in (box, picker):
        before.setFocus()
        picker.open()
        assert picker.is_open
        picker.list.window().hide()
        assert window.focusWidget() is before
