"""A title that is too long ends in an ellipsis while it is only read."""

from pytestqt.qtbot import QtBot

from ui.widgets.elided_edit import ElidedEdit


def test_a_title_that_is_cut_is_whole_in_its_tip(qtbot: QtBot) -> None:
    edit = ElidedEdit()
    qtbot.addWidget(edit)
    edit.setText("What to cook for eight, one vegan, one without gluten")
    edit.resize(90, 30)
    edit.show()
    qtbot.waitUntil(lambda: edit.toolTip() == edit.text())
    short = edit.grab().toImage()
    edit.resize(900, 30)
    qtbot.waitUntil(lambda: not edit.toolTip())
    assert edit.grab().toImage().copy(0, 0, 90, 30) != short, "the ellipsis"


def test_what_is_selected_stays_so_when_the_same_text_is_shown_again(qtbot: QtBot) -> None:
    edit = ElidedEdit()
    qtbot.addWidget(edit)
    edit.show_text("Bees")
    edit.selectAll()
    edit.show_text("Bees")
    assert edit.selectedText() == "Bees"
