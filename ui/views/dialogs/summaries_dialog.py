"""The summaries dialog: read, edit, compare and restore one summary at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialog, QWidget

from app.domain.errors import KnownError
from app.domain.translation import tr
from app.memory.summaries import SummaryTarget
from app.storage.tables.summaries import Summary
from ui.models.facts import version_label
from ui.theme import Theme
from ui.widgets.controls import closing_buttons, column_in, combo_box, text_edit
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import plain_label
from ui.widgets.versions import ShownVersion, VersionsView

_TEXT_PX = 120


@dataclass(frozen=True, slots=True)
class SummarySource:
    """What a summary is of, and its label."""

    of: SummaryTarget
    source_id: int
    label: str


class SummariesDialog(QDialog):
    """Shows the summary of the chosen source.

    Attributes:
        is_closed: Set by whoever closes it for good.

    Signals:
        source_chosen: The `SummarySource` to show. save_requested: A source and the user's text.
        restore_requested: A source and the `made_at` of a version. leave_requested: What to call
            once the edit is saved or discarded.
    """

    source_chosen = Signal(object)
    save_requested = Signal(object, str)
    restore_requested = Signal(object, object)
    leave_requested = Signal(object)

    def __init__(self, title: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Summaries"))
        resize_on_screen(self, 640, 520)
        self.is_closed = False
        self._sources: Sequence[SummarySource] = ()
        self._shown = 0
        self._newest = ""
        heading = plain_label(self, "heading", title, selectable=False)
        self.choice = combo_box(
            self, tr("What is summarized"), min_chars=1, on_activated=self._on_choice_activated
        )
        self.text = text_edit(self, tr("Summary"), _TEXT_PX)
        self.text.textChanged.connect(self._on_text_changed)
        self._status = plain_label(self, "muted", selectable=False)
        self._versions = VersionsView(theme, self)
        self._versions.restore_requested.connect(
            lambda made_at: self.restore_requested.emit(self.source, made_at)
        )
        buttons, (self._save,) = closing_buttons(self, tr("Save"))
        self._save.setProperty("kind", "primary")
        self._save.clicked.connect(
            lambda: self.save_requested.emit(self.source, self.text.toPlainText())
        )
        parts = (heading, self.choice, self.text, self._status, (self._versions, 1))
        column = column_in(self, *parts)
        column.addStretch(0)
        column.addWidget(buttons)
        self._save.setEnabled(False)

    @property
    def source(self) -> SummarySource | None:
        """What is shown."""
        return self._sources[self._shown] if self._shown < len(self._sources) else None

    @property
    def is_edited(self) -> bool:
        """Whether the text is not the newest summary."""
        return self.text.toPlainText().strip() != self._newest.strip()

    def undo(self) -> None:
        """Show the newest summary."""
        self.text.setPlainText(self._newest)

    def show_sources(self, sources: Sequence[SummarySource]) -> None:
        """Offer what can have a summary, and choose the first."""
        self._sources = tuple(sources)
        self.choice.clear()
        self.choice.addItems([each.label for each in sources])
        self._choose(0)

    def show_versions(self, versions: Sequence[Summary]) -> None:
        """Show the summaries of the source, newest first."""
        self._newest = versions[0].text if versions else ""
        self.undo()
        self._status.setText(
            version_label(versions[0].made_at, versions[0].model)
            + tr(". A summary of your own stays until what it summarizes changes.")
            if versions
            else tr("There is no summary yet. You can write one yourself.")
        )
        self._versions.show_versions(
            [
                ShownVersion(each.made_at, version_label(each.made_at, each.model), each.text)
                for each in versions
            ]
        )
        self._on_text_changed()

    def show_error(self, error: KnownError) -> None:
        """Show why a request failed."""
        self._status.setText(error.display_text)

    def _choose(self, number: int) -> None:
        self._shown = number
        self.choice.setCurrentIndex(number)
        if self.source is not None:
            self.source_chosen.emit(self.source)

    def _on_choice_activated(self, number: int) -> None:
        if number != self._shown and self.is_edited:
            self.choice.setCurrentIndex(self._shown)
            self.leave_requested.emit(lambda: self._choose(number))
        else:
            self._choose(number)

    def _on_text_changed(self) -> None:
        self._save.setEnabled(self.is_edited and bool(self.text.toPlainText().strip()))

    # Qt overrides

    def reject(self) -> None:
        """Close, also on Escape, once an edit is saved or discarded."""
        if self.is_edited:
            self.leave_requested.emit(super().reject)
        else:
            super().reject()
