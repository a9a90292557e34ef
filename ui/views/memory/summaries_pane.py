"""Summaries of a conversation and of its turns: read, edit, compare and restore one at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.domain.errors import KnownError
from app.domain.translation import tr
from app.memory.summaries import SummaryTarget
from app.storage.tables.summaries import Summary
from ui.models.facts import version_label
from ui.views.memory.versions import ShownVersion, VersionsView
from ui.widgets.controls import button, column_in, combo_box, row_of, text_edit
from ui.widgets.on_screen import ReportsShown
from ui.widgets.plain_label import plain_label

_TEXT_PX = 120


@dataclass(frozen=True, slots=True)
class SummarizedText:
    """What a summary is of, and its label."""

    of: SummaryTarget
    source_id: int
    label: str


class SummariesPane(ReportsShown, QWidget):
    """Shows the summary of the chosen source.

    Signals:
        source_chosen: The `SummarizedText` to show. save_requested: A source and the user's text.
        restore_requested: A source and the `made_at` of a version. leave_requested: What to call
            once the edit is saved or discarded.
    """

    source_chosen = Signal(object)
    save_requested = Signal(object, str)
    restore_requested = Signal(object, object)
    leave_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sources: tuple[SummarizedText, ...] = ()
        self._shown = 0
        self._newest = ""
        self._title = plain_label(self, "heading", selectable=False)
        self.choice = combo_box(
            self, tr("What is summarized"), min_chars=1, on_activated=self._on_choice_activated
        )
        self.text = text_edit(self, tr("Summary"), _TEXT_PX)
        self.text.textChanged.connect(self._on_text_changed)
        self.status = plain_label(self, "muted", selectable=False)
        self._versions = VersionsView(self)
        self._versions.restore_requested.connect(
            lambda made_at: self.restore_requested.emit(self.source, made_at)
        )
        self._undo = button(
            self, tr("Undo"), self._on_undo_clicked, tip=tr("Show the saved version")
        )
        self.save = button(self, tr("Save"), kind="primary")
        self.save.clicked.connect(
            lambda: self.save_requested.emit(self.source, self.text.toPlainText())
        )
        self.setFocusProxy(self.text)
        column_in(
            self, self._title, self.choice, (self.text, 2), self.status,
            row_of(None, self._undo, self.save), (self._versions, 1),
            margins=(12, 12, 12, 12), spacing=8,
        ).addStretch(0)  # fmt: skip
        self.show_nothing("")

    @property
    def source(self) -> SummarizedText | None:
        return self._sources[self._shown] if self._shown < len(self._sources) else None

    @property
    def is_edited(self) -> bool:
        """Whether the text is not the newest summary."""
        return self.text.toPlainText().strip() != self._newest.strip()

    def undo(self) -> None:
        """Show the newest summary."""
        if self.text.toPlainText() != self._newest:
            self.text.setPlainText(self._newest)

    def show_sources(self, title: str, sources: Sequence[SummarizedText]) -> None:
        """Offer what of a conversation can have a summary; the choice stays where it can."""
        shown = self.source
        self._title.setText(title)
        self._sources = tuple(sources)
        self._set_visible(is_visible=True)
        self.choice.clear()
        self.choice.addItems([each.label for each in sources])
        same = (each for each, source in enumerate(sources) if source == shown)
        self._choose(next(same, 0))

    def show_nothing(self, why: str) -> None:
        """Say why there is nothing to summarize."""
        self._sources, self._newest = (), ""
        self.undo()
        self.status.setText(why)
        self._set_visible(is_visible=False)

    def show_versions(self, versions: Sequence[Summary], *, replaces_edit: bool = False) -> None:
        """Show the summaries of the source, newest first; an edit stays, unless `replaces_edit`."""
        keeps_edit = self.is_edited and not replaces_edit
        self._newest = versions[0].text if versions else ""
        self.text.setReadOnly(False)
        if not keeps_edit:
            self.undo()
        self.status.setText(
            version_label(versions[0].made_at, versions[0].model)
            + tr(". A summary of your own stays until what it summarizes changes.")
            if versions
            else tr("There is no summary yet. You can write one yourself.")
        )
        self._versions.show_versions(
            [ShownVersion(each.made_at, each.model, each.text) for each in versions]
        )
        self._on_text_changed()

    def show_error(self, error: KnownError) -> None:
        """Show why a request failed."""
        self.status.setText(error.display_text)

    def _set_visible(self, *, is_visible: bool) -> None:
        for part in (self._title, self.choice, self.text, self._undo, self.save, self._versions):
            part.setVisible(is_visible)

    def _choose(self, number: int) -> None:
        self._shown = number
        self.choice.setCurrentIndex(number)
        self.text.setReadOnly(True)  # until its own text is there
        self.source_chosen.emit(self.source)

    def _on_choice_activated(self, number: int) -> None:
        if number != self._shown and self.is_edited:
            self.choice.setCurrentIndex(self._shown)
            self.leave_requested.emit(lambda: self._choose(number))
        else:
            self._choose(number)

    def _on_undo_clicked(self) -> None:
        self.undo()
        self.shown.emit()

    def _on_text_changed(self) -> None:
        self._undo.setEnabled(self.is_edited)
        self.save.setEnabled(self.is_edited and bool(self.text.toPlainText().strip()))
