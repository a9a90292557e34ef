"""One question before a deed, in so many words."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: the window's title, the question, what it means, and the buttons.

    `yes` agrees, `no` is the default; `also` is for something to be done first, "" for nothing.
    """

    title: str
    question: str
    words: str
    yes: str
    no: str = "Cancel"
    also: str = ""


def ask(
    parent: QWidget,
    asked: Question,
    deed: Callable[[], object],
    otherwise: Callable[[], object] = lambda: None,
    first: Callable[[], object] = lambda: None,
) -> None:
    """Call `deed` once the user has agreed, `first` for `also`, else `otherwise`; returns at once."""
    box = QMessageBox(parent)
    box.setIcon(QMessageBox.Icon.Question)
    box.setWindowTitle(asked.title)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(asked.question)
    box.setInformativeText(asked.words)
    agrees = box.addButton(asked.yes, QMessageBox.ButtonRole.AcceptRole)
    also = box.addButton(asked.also, QMessageBox.ButtonRole.ActionRole) if asked.also else None
    box.setDefaultButton(box.addButton(asked.no, QMessageBox.ButtonRole.RejectRole))

    def done() -> None:
        if box.clickedButton() is agrees:
            deed()
        elif also is not None and box.clickedButton() is also:
            first()
        else:
            otherwise()

    box.finished.connect(done)
    box.finished.connect(box.deleteLater)
    box.open()


def ask_to_forget(parent: QWidget, named: str, words: str, forget: Callable[[], object]) -> None:
    """Call `forget` once the user wants what is `named`, in quotes, erased for ever; return at once.

    `words` tell what goes and what stays.
    """
    box = QMessageBox(parent)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(f"Forget {named} for ever?")
    box.setInformativeText(words)
    yes = box.addButton("Forget", QMessageBox.ButtonRole.DestructiveRole)
    box.addButton(QMessageBox.StandardButton.Cancel)
    box.finished.connect(lambda: forget() if box.clickedButton() is yes else None)
    box.finished.connect(box.deleteLater)
    box.open()
