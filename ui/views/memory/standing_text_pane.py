"""A text of every prompt: to be edited, with the share of its budget used, and its versions."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.domain.errors import KnownError
from app.domain.profile import Profile
from app.domain.translation import format_number, tr
from app.domain.turn_text import estimate_tokens
from app.storage.tables.memories import CoreMemoryText
from ui.models.setting_labels import with_setting_labels
from ui.views.memory.versions import ShownVersion, VersionsView
from ui.widgets.controls import button, column_in, progress_bar, row_of, text_edit
from ui.widgets.plain_label import plain_label

_UNSAVED = tr("Not saved yet. Prompts still contain the version saved last.")


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
