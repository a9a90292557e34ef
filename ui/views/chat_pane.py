"""The middle of the window: title and model, the transcript or the welcome, the composer."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from ui.views.welcome import Welcome
from ui.widgets.banner import Banner
from ui.widgets.composer import Composer
from ui.widgets.find_bar import FindBar

_OTHER = "Other\u2026"


class ChatPane(QWidget):
    """Header, transcript and composer. The transcript is given by whoever composes the window.

    Signals:
        renamed: The new title. model_chosen: PROVIDER:MODEL. models_requested: The list of
            models is wanted, because the chooser is about to open. other_model_requested: A
            model that is not in the list is wanted.
    """

    renamed = Signal(str)
    model_chosen = Signal(str)
    models_requested = Signal()
    other_model_requested = Signal()

    def __init__(self, transcript: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.banner = Banner(self)
        self.title = QLineEdit(self)
        self.title.setProperty("plain", True)
        self.title.setAccessibleName("Title of the conversation")
        self.title.setPlaceholderText("New conversation")
        self.title.editingFinished.connect(self._on_title_edited)
        self.private = QLabel("Private", self)
        self.private.setToolTip("Never indexed, summarised or recalled")
        self.private.setProperty("tone", "warning")
        self.private.hide()
        self.model = _ModelChooser(self)
        self.model.setAccessibleName("Model")
        self.model.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.model.opening.connect(self.models_requested)
        self.model.activated.connect(self._on_model_activated)
        self.transcript = transcript
        self.welcome = Welcome(self)
        self.message = QLabel(self)
        self.message.setWordWrap(True)
        self.message.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.message.setMargin(48)
        self._stack = QStackedWidget(self)
        for page in (self.message, self.welcome, transcript):
            self._stack.addWidget(page)
        self.find_bar = FindBar(self)
        self.composer = Composer(self)
        self.status = QLabel(self)
        self.status.setProperty("tone", "small")
        self.status.hide()
        self._lay_out()

    def show_transcript(self) -> None:
        """Show the conversation."""
        self._stack.setCurrentWidget(self.transcript)

    def show_welcome(self) -> None:
        """Show what a new user can do."""
        self._stack.setCurrentWidget(self.welcome)

    def show_message(self, words: str) -> None:
        """Show words in place of everything, such as why the program cannot go on."""
        self.message.setText(words)
        self._stack.setCurrentWidget(self.message)

    def show_title(self, title: str, *, private: bool, editable: bool) -> None:
        """Show a conversation's title, unless it is being edited."""
        self.private.setVisible(private)
        self.title.setReadOnly(not editable)
        if not (self.title.hasFocus() and self.title.isModified()):
            self.title.setText(title)
            self.title.setCursorPosition(0)
            self.title.setModified(False)

    def show_models(self, models: Sequence[tuple[str, str]], chosen: str) -> None:
        """Fill the chooser with (PROVIDER:MODEL, words); the chosen one is always among them."""
        rows = list(models)
        if all(model != chosen for model, _ in rows):
            rows.insert(0, (chosen, chosen))
        self.model.blockSignals(True)
        self.model.clear()
        for model, words in rows:
            self.model.addItem(words, model)
        self.model.insertSeparator(self.model.count())
        self.model.addItem(_OTHER, None)
        self.model.setCurrentIndex(self.model.findData(chosen))
        self.model.blockSignals(False)

    def show_status(self, words: str) -> None:
        """Show a line above the composer, such as a retry under way; "" hides it."""
        self.status.setText(words)
        self.status.setVisible(bool(words))

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setContentsMargins(16, 10, 16, 6)
        head.addWidget(self.title, 1)
        head.addWidget(self.private)
        head.addWidget(self.model)
        foot = QVBoxLayout()
        foot.setContentsMargins(16, 4, 16, 12)
        foot.addWidget(self.status)
        foot.addWidget(self.composer)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.banner)
        column.addLayout(head)
        column.addWidget(self.find_bar)
        column.addWidget(self._stack, 1)
        column.addLayout(foot)

    def _on_title_edited(self) -> None:
        if self.title.isModified():
            self.title.setModified(False)
            self.renamed.emit(self.title.text())

    def _on_model_activated(self, number: int) -> None:
        model = self.model.itemData(number)
        if model is None:
            self.other_model_requested.emit()
        else:
            self.model_chosen.emit(str(model))


class _ModelChooser(QComboBox):
    """A combo box that says when it is about to open.

    Signals:
        opening: Before the list is shown.
    """

    opening = Signal()

    # Qt overrides

    def showPopup(self) -> None:
        self.opening.emit()
        super().showPopup()
