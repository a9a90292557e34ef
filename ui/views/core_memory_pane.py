"""Core memory: its text to edit, how much of its budget it takes, who wrote it, earlier versions."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.domain.turn_text import estimate_tokens
from app.storage.core_memory import CoreMemoryText
from ui.models.facts import version_words
from ui.models.setting_words import labelled
from ui.theme import Theme
from ui.widgets.plain_label import plain_label
from ui.widgets.versions import ShownVersion, VersionsView

_HELP = (
    "This goes into every prompt of every model you talk to. Keep it short: who you are, how you "
    "want to be answered. A model may add to it with a tool, only what you said yourself."
)
_UNSAVED = "Changed, not saved yet: prompts still begin with what was saved last."


class CoreMemoryPane(QWidget):
    """Shows the text; what the user does with it are wishes.

    Signals:
        save_requested: The text. restore_requested: The `made_at` of a version.
    """

    save_requested = Signal(str)
    restore_requested = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kept = ""
        self._last_change = ""
        self._most = 0
        self.text = QPlainTextEdit(self)
        self.text.setAccessibleName("Core memory")
        self.text.setPlaceholderText("Nothing is kept yet.")
        self.text.setTabChangesFocus(True)
        self._bar = QProgressBar(self)
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName("Budget of core memory used")
        self._tokens, self._state, self._problem = (
            plain_label(self, tone, selectable=False) for tone in ("small", "small", "error")
        )
        self._problem.hide()
        self._save, self._undo = QPushButton("Save", self), QPushButton("Undo", self)
        self._save.setProperty("kind", "primary")
        self._undo.setToolTip("Back to what is saved")
        for button in (self._save, self._undo):
            button.setAutoDefault(False)
        self.versions = VersionsView(theme, self)
        self._lay_out()
        self.text.textChanged.connect(self._on_text_changed)
        self._save.clicked.connect(lambda: self.save_requested.emit(self.text.toPlainText()))
        self._undo.clicked.connect(self.undo)
        self.versions.restore_requested.connect(self.restore_requested)

    @property
    def is_edited(self) -> bool:
        """Whether the text is not what is saved."""
        return self.text.toPlainText() != self._kept

    def undo(self) -> None:
        """Go back to what is saved."""
        self.text.setPlainText(self._kept)

    def show_versions(
        self, versions: Sequence[CoreMemoryText], most_tokens: int, *, anew: bool = False
    ) -> None:
        """Show the newest of the versions; a text being edited stays, unless `anew`."""
        stays = self.is_edited and not anew
        newest = versions[0] if versions else CoreMemoryText()
        self._kept, self._most = newest.text, most_tokens
        self._problem.hide()
        if not stays:
            self.text.setPlainText(newest.text)
        shown = [
            ShownVersion(each.made_at, version_words(each.made_at, each.author or ""), each.text)
            for each in versions
            if each.made_at is not None
        ]
        self._last_change = f"Last changed on {shown[0].called}." if shown else ""
        self.versions.setVisible(bool(shown))
        self.versions.show_versions(shown)
        self._on_text_changed()

    def show_error(self, title: str, hint: str) -> None:
        """Tell why it was not saved."""
        self._problem.setText(labelled(f"{title}. {hint}".strip()))
        self._problem.show()

    def set_theme(self, theme: Theme) -> None:
        """Draw in another theme."""
        self.versions.set_theme(theme)

    def _lay_out(self) -> None:
        words = plain_label(self, "muted", selectable=False)
        words.setText(_HELP)
        deeds = QHBoxLayout()
        deeds.addWidget(self._state, 1)
        deeds.addWidget(self._undo)
        deeds.addWidget(self._save)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 16)
        column.setSpacing(8)
        column.addWidget(words)
        column.addWidget(self.text, 2)
        column.addWidget(self._tokens)
        column.addWidget(self._bar)
        column.addWidget(self._problem)
        column.addLayout(deeds)
        column.addSpacing(8)
        column.addWidget(self.versions, 1)

    def _on_text_changed(self) -> None:
        text = self.text.toPlainText().strip()
        tokens = estimate_tokens(text) if text else 0
        over = ": more than fits" if tokens > self._most else ""
        self._tokens.setText(f"About {tokens:,} of {self._most:,} tokens{over}")
        self._bar.setRange(0, max(1, self._most))
        self._bar.setValue(min(tokens, self._most))
        self._save.setEnabled(self.is_edited)
        self._undo.setEnabled(self.is_edited)
        self._state.setText(_UNSAVED if self.is_edited else self._last_change)
