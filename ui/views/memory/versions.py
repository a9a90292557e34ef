"""Earlier versions of a text: compare them with the newest one, and restore one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

from PySide6.QtCore import QEvent, Signal
from PySide6.QtWidgets import QTextBrowser, QWidget

from app.domain.text import DiffKind, word_diff
from app.domain.translation import tr, trn
from ui.models.facts import version_label
from ui.theme import Theme, current_theme
from ui.widgets.controls import button, column_in, combo_box, row_of
from ui.widgets.plain_label import PlainLabel

_DIFF_PX = 96


@dataclass(frozen=True, slots=True)
class ShownVersion:
    """A version, identified by `made_at`."""

    made_at: datetime
    author: str
    text: str

    @property
    def label(self) -> str:
        """Its time and author."""
        return version_label(self.made_at, self.author)


class VersionsView(QWidget):
    """Compares an earlier version with the newest.

    Signals:
        restore_requested: The `made_at` of the version to restore.
    """

    restore_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._versions: tuple[ShownVersion, ...] = ()
        self._note = PlainLabel(self, tone="muted", wordWrap=True)
        self._choice = combo_box(self, tr("Earlier versions"))
        self._choice.currentIndexChanged.connect(self._on_choice_changed)
        self._restore = button(self, tr("Restore this version"), self._on_restore_clicked)
        self._diff = QTextBrowser(self)
        self._diff.setAccessibleName(tr("Differences from the newest version"))
        self._diff.setMinimumHeight(_DIFF_PX)
        self._diff.setOpenLinks(False)
        parts = (self._note, row_of((self._choice, 1), self._restore), (self._diff, 1))
        column_in(self, *parts, margins=(0, 0, 0, 0), spacing=8).addStretch(0)
        self.show_versions(())

    def show_versions(self, versions: Sequence[ShownVersion]) -> None:
        """Show versions, newest first; the selection stays if the newest is unchanged."""
        chosen = self._chosen() if self._versions[:1] == tuple(versions[:1]) else None
        self._versions = tuple(versions)
        earlier = self._versions[1:]
        self._choice.blockSignals(True)
        self._choice.clear()
        for number, version in enumerate(earlier):
            self._choice.addItem(version.label)
            if chosen is not None and version.made_at == chosen.made_at:
                self._choice.setCurrentIndex(number)
        self._choice.blockSignals(False)
        count = len(earlier)
        self._note.setText(
            trn("{count} earlier version.", "{count} earlier versions.", count)
            + " "
            + tr("Text removed since then is struck through; text added is underlined.")
            if earlier
            else tr("There are no earlier versions.")
        )
        for part in (self._choice, self._restore, self._diff):
            part.setVisible(bool(earlier))
        self._on_choice_changed()

    def _chosen(self) -> ShownVersion | None:
        number = self._choice.currentIndex() + 1
        return self._versions[number] if 0 < number < len(self._versions) else None

    def _on_choice_changed(self) -> None:
        chosen = self._chosen()
        newest = self._versions[0].text if self._versions else ""
        self._restore.setEnabled(chosen is not None)
        self._diff.setHtml(
            "" if chosen is None else diff_html(chosen.text, newest, current_theme())
        )

    def _on_restore_clicked(self) -> None:
        if (chosen := self._chosen()) is not None:
            self.restore_requested.emit(chosen.made_at)

    # Qt overrides

    def changeEvent(self, event: QEvent) -> None:
        """Show it in another theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._on_choice_changed()


def diff_html(before: str, after: str, theme: Theme) -> str:
    """Return the difference between two texts as HTML, with both texts escaped."""
    colors = theme.colors
    looks = {
        DiffKind.KEPT: f"color: {colors.text};",
        DiffKind.REMOVED: f"color: {colors.error}; background: {colors.error_soft}; text-decoration: line-through;",
        DiffKind.ADDED: f"color: {colors.success}; background: {colors.accent_soft}; text-decoration: underline;",
    }
    spans = (
        f'<span style="{looks[each.change]}">{escape(each.text)}</span>'
        for each in word_diff(before, after)
    )
    return f'<p style="white-space: pre-wrap;">{"".join(spans)}</p>'
