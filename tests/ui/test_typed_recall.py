"""Recall while typing: the text in the composer is searched for after a pause."""

from collections.abc import Callable
from types import SimpleNamespace

from PySide6.QtWidgets import QPlainTextEdit, QWidget
from pytestqt.qtbot import QtBot

from ui.presenters.typed_recall import TypedRecallPresenter


class Loader(QWidget):
    """A bridge that reads at once."""

    def load(self, _: str, read: Callable[[], object], *__: object) -> None:
        read()


def test_the_text_is_searched_for_after_a_pause_in_typing(qtbot: QtBot) -> None:
    box, bridge = QPlainTextEdit(), Loader()
    qtbot.addWidget(box)
    qtbot.addWidget(bridge)
    asked: list[tuple[str, int]] = []
    changed: list[Callable[[], bool]] = []

    def prepare(text: str, where: int, is_cancelled: Callable[[], bool]) -> None:
        asked.append((text, where))
        changed.append(is_cancelled)

    composer = SimpleNamespace(box=box, text="Which tea do I drink?")
    typed = SimpleNamespace(prepare=prepare)
    presenter = TypedRecallPresenter(bridge, typed, composer, SimpleNamespace(conversation_id=7))  # type: ignore[arg-type]
    for _ in range(3):
        box.insertPlainText("tea ")
    assert presenter.is_waiting
    qtbot.waitUntil(lambda: not presenter.is_waiting)
    assert asked == [("Which tea do I drink?", 7)]
    composer.text = " "
    box.clear()
    assert not changed[0](), "sending takes the text out and uses the search"
    qtbot.waitUntil(lambda: not presenter.is_waiting)
    assert len(asked) == 1
    composer.text = "Which coffee?"
    box.insertPlainText("coffee")
    assert changed[0]()
    qtbot.waitUntil(lambda: not presenter.is_waiting)
    assert not changed[1]()
