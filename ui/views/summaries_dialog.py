"""The summaries of a conversation and its turns: read, edit, compare with earlier ones, bring back."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from app.memory.summaries import SummaryOf
from app.storage.summaries import Summary
from ui.models.facts import version_words
from ui.theme import Theme
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import PlainLabel
from ui.widgets.versions import ShownVersion, VersionsView

_TEXT_PX = 120


@dataclass(frozen=True, slots=True)
class SummaryPlace:
    """What a summary is of, and what that is called."""

    of: SummaryOf
    source_id: int
    called: str


class SummariesDialog(QDialog):
    """Shows one summary at a time.

    Signals:
        place_chosen: The `SummaryPlace` to show. save_requested: A place and the user's words.
        restore_requested: A place and the `made_at` of a version.
    """

    place_chosen = Signal(object)
    save_requested = Signal(object, str)
    restore_requested = Signal(object, object)

    def __init__(self, title: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Summaries")
        resize_on_screen(self, 640, 520)
        self._places: Sequence[SummaryPlace] = ()
        self._newest = ""
        heading = PlainLabel(title, self, wordWrap=True)
        heading.setProperty("tone", "heading")
        self.choice = QComboBox(self)
        self.choice.setAccessibleName("What is summarised")
        self.choice.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.choice.activated.connect(self._on_choice_activated)
        self.text = QPlainTextEdit(self)
        self.text.setAccessibleName("Summary")
        self.text.setTabChangesFocus(True)
        self.text.setFixedHeight(_TEXT_PX)
        self.text.textChanged.connect(self._on_text_changed)
        self._words = PlainLabel(self, wordWrap=True)
        self._words.setProperty("tone", "muted")
        self._versions = VersionsView(theme, self)
        self._versions.restore_requested.connect(self._on_restore_requested)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        self._save = buttons.addButton("Save", QDialogButtonBox.ButtonRole.ActionRole)
        self._save.setProperty("kind", "primary")
        for button in buttons.buttons():
            button.setAutoDefault(False)  # type: ignore[attr-defined]
        self._save.clicked.connect(self._on_save_clicked)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 12)
        column.setSpacing(10)
        for part in (heading, self.choice, self.text, self._words):
            column.addWidget(part)
        column.addWidget(self._versions, 1)
        column.addStretch(0)
        column.addWidget(buttons)
        self._save.setEnabled(False)

    @property
    def place(self) -> SummaryPlace | None:
        """What is shown."""
        number = self.choice.currentIndex()
        return self._places[number] if 0 <= number < len(self._places) else None

    def show_places(self, places: Sequence[SummaryPlace]) -> None:
        """Offer what has, or could have, a summary; the first one is chosen."""
        self._places = tuple(places)
        self.choice.clear()
        self.choice.addItems([place.called for place in places])
        self._on_choice_activated()

    def show_versions(self, versions: Sequence[Summary]) -> None:
        """Show the summaries of the chosen place, the newest first."""
        self._newest = versions[0].text if versions else ""
        self.text.setPlainText(self._newest)
        self._words.setText(
            version_words(versions[0].made_at, versions[0].model)
            + ". A summary of your own stays until what it is of changes."
            if versions
            else "There is no summary yet. You can write one yourself."
        )
        self._versions.show_versions(
            [
                ShownVersion(each.made_at, version_words(each.made_at, each.model), each.text)
                for each in versions
            ]
        )
        self._on_text_changed()

    def show_error(self, title: str, hint: str) -> None:
        """Tell what cannot be done."""
        self._words.setText(f"{title}. {hint}".strip())

    def _on_choice_activated(self, _number: int = 0) -> None:
        if self.place is not None:
            self.place_chosen.emit(self.place)

    def _on_text_changed(self) -> None:
        words = self.text.toPlainText().strip()
        self._save.setEnabled(bool(words) and words != self._newest.strip())

    def _on_save_clicked(self) -> None:
        if self.place is not None:
            self.save_requested.emit(self.place, self.text.toPlainText())

    def _on_restore_requested(self, made_at: object) -> None:
        if self.place is not None:
            self.restore_requested.emit(self.place, made_at)
