"""A text with versions: edited with the share of its budget used, compared with earlier versions, restored."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

from PySide6.QtCore import QEvent, Signal
from PySide6.QtWidgets import QTextBrowser, QWidget

from app.domain.errors import KnownError
from app.domain.records.profile import Profile
from app.domain.text import DiffKind, word_diff
from app.domain.translation import format_number, tr, trn
from app.domain.turns import estimate_tokens
from app.storage.tables.memories import CoreMemoryText
from ui.models.facts import version_label
from ui.models.labels import with_setting_labels
from ui.theme import Theme, current_theme
from ui.widgets.controls import button, column_in, combo_box, progress_bar, row_of, text_edit
from ui.widgets.plain_label import PlainLabel, plain_label

_DIFF_PX = 96
_UNSAVED = tr("Not saved yet. Prompts still contain the version saved last.")


@dataclass(frozen=True, slots=True)
class ShownVersion:
    """A version, identified by `made_at`."""

    made_at: datetime
    author: str
    text: str

    @property
    def label(self) -> str:
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
        self._diff = QTextBrowser(self, openLinks=False)
        self._diff.setAccessibleName(tr("Differences from the newest version"))
        self._diff.setMinimumHeight(_DIFF_PX)
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


class StandingTextPane(QWidget):
    """Shows the text and requests changes to it.

    Signals:
        save_requested: The text. restore_requested: The `made_at` of a version.
    """

    save_requested = Signal(str)
    restore_requested = Signal(object)

    def __init__(self, name: str, help_text: str = "", parent: QWidget | None = None) -> None:
        """`name` is what the text is called: "Core memory"."""
        super().__init__(parent)
        self._help = help_text
        self._saved = ""
        self._last_change = ""
        self._max_tokens = 0
        self.text = text_edit(self, name)
        self.text.setPlaceholderText(tr("{name} is empty.").format(name=name))
        self._bar = progress_bar(self, tr("{name}: budget used").format(name=name))
        self._tokens, self._state, self._problem = (
            plain_label(self, tone, selectable=False) for tone in ("small", "small", "error")
        )
        self._problem.hide()
        self._save = button(self, tr("Save"), kind="primary")
        self._undo = button(self, tr("Undo"), self.undo, tip=tr("Show the saved version"))
        self.versions = VersionsView(self)
        self._lay_out()
        self.text.textChanged.connect(self._on_text_changed)
        self._save.clicked.connect(lambda: self.save_requested.emit(self.text.toPlainText()))
        self.versions.restore_requested.connect(self.restore_requested)

    @property
    def is_edited(self) -> bool:
        """Whether the text differs from the saved version."""
        return self.text.toPlainText() != self._saved

    def undo(self) -> None:
        """Show the saved version."""
        self.text.setPlainText(self._saved)

    def show_versions(
        self,
        versions: Sequence[Profile | CoreMemoryText],
        max_tokens: int,
        *,
        replaces_edit: bool = False,
    ) -> None:
        """Show the newest of the versions; an edit stays, unless `replaces_edit`."""
        keeps_edit = self.is_edited and not replaces_edit
        self._saved, self._max_tokens = versions[0].text if versions else "", max_tokens
        if not keeps_edit:
            self._problem.hide()
            self.text.setPlainText(self._saved)
        shown = [
            ShownVersion(each.made_at, each.author or "", each.text)
            for each in versions
            if each.made_at is not None
        ]
        self._last_change = (
            tr("Last changed on {label}.").format(label=shown[0].label) if shown else ""
        )
        self.versions.setVisible(bool(shown))
        self.versions.show_versions(shown)
        self._on_text_changed()

    def show_error(self, error: KnownError) -> None:
        """Show why it was not saved."""
        self._problem.setText(with_setting_labels(error.display_text))
        self._problem.show()

    def _lay_out(self) -> None:
        help_text = plain_label(self, "muted", self._help, selectable=False)
        help_text.setVisible(bool(self._help))
        actions = row_of((self._state, 1), self._undo, self._save)
        column_in(
            self, help_text, (self.text, 2), self._tokens, self._bar, self._problem, actions, 8,
            (self.versions, 1), margins=(0, 0, 0, 0), spacing=8,
        )  # fmt: skip

    def _on_text_changed(self) -> None:
        text = self.text.toPlainText().strip()
        tokens = estimate_tokens(text) if text else 0
        over = tr(", too many") if tokens > self._max_tokens else ""
        self._tokens.setText(
            tr("About {tokens} of {max_tokens} tokens{over}").format(
                tokens=format_number(tokens), max_tokens=format_number(self._max_tokens), over=over
            )
        )
        self._bar.setRange(0, max(1, self._max_tokens))
        self._bar.setValue(min(tokens, self._max_tokens))
        self._save.setEnabled(self.is_edited)
        self._undo.setEnabled(self.is_edited)
        self._state.setText(_UNSAVED if self.is_edited else self._last_change)
