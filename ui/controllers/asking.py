"""One question before a deed: in so many words, with Cancel as the default."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: the window's title, the question, what it means, and the button that agrees."""

    title: str
    question: str
    words: str
    yes: str
    no: str = "Cancel"


def ask(
    parent: QWidget,
    asked: Question,
    deed: Callable[[], object],
    otherwise: Callable[[], object] = lambda: None,
) -> None:
    """Call `deed` once the user has agreed, else `otherwise`; returns at once."""
    box = QMessageBox(parent)
    box.setIcon(QMessageBox.Icon.Question)
    box.setWindowTitle(asked.title)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(asked.question)
    box.setInformativeText(asked.words)
    agrees = box.addButton(asked.yes, QMessageBox.ButtonRole.AcceptRole)
    box.setDefaultButton(box.addButton(asked.no, QMessageBox.ButtonRole.RejectRole))

    def done() -> None:
        if box.clickedButton() is agrees:
            deed()
        else:
            otherwise()

    box.finished.connect(done)
    box.finished.connect(box.deleteLater)
    box.open()
