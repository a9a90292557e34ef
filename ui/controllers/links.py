"""Links: asked about before one leaves the program, refused in plain words, or a turn of our own."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QMessageBox

from app.domain.links import Link
from ui.rendering.links import LinkGate, LinkQuestion
from ui.views.main_window import MainWindow


class LinkController(QObject):
    """Gives the gate its dialogs.

    `open_turn(link)` shows a place of our own.
    """

    def __init__(self, window: MainWindow, open_turn: Callable[[Link], None]) -> None:
        super().__init__(window)
        self._window = window
        self.gate = LinkGate(self._ask, _open_url, open_turn, self._refuse)

    def follow(self, target: str, label: str = "") -> None:
        """Follow a link that stood behind the words `label`."""
        self.gate.follow(target, label)

    def _ask(self, question: LinkQuestion, answer: Callable[[bool], None]) -> None:
        box = QMessageBox(self._window)
        box.setWindowTitle("Open a link")
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setText(f"Open this address outside Commonplace?\n\n{question.address}")
        box.setInformativeText(
            "\n".join((*question.warnings, f"You are asked once for {question.site}."))
        )
        opens = box.addButton("Open", QMessageBox.ButtonRole.AcceptRole)
        box.addButton(QMessageBox.StandardButton.Cancel)
        box.finished.connect(lambda: answer(box.clickedButton() is opens))
        box.finished.connect(box.deleteLater)
        box.open()

    def _refuse(self, question: LinkQuestion) -> None:
        self._window.chat.banner.tell(
            f"{question.reason} It points to {question.address}", brief=False
        )


def _open_url(address: str) -> None:
    QDesktopServices.openUrl(QUrl(address))
