"""The profile: what is proposed for it, as a difference to decide on, and its text to edit."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from html import escape

from PySide6.QtCore import QEvent, QUrl, Signal, SignalInstance
from PySide6.QtWidgets import QCheckBox, QFrame, QTextBrowser, QWidget

from app.domain.records.facts import BY_IMPORT
from app.domain.records.profile import Profile, ProfileDiff, ProfileLine
from app.domain.translation import format_moment, tr, trn
from app.language.extractive import MODEL
from app.memory.profile import ProfileState
from ui.theme import Theme, current_theme
from ui.views.memory.versions import StandingTextPane
from ui.widgets.controls import button, column_in, row_of
from ui.widgets.plain_label import plain_label

_HELP = tr(
    "Who you are and what you always want, a line for each. Changes are proposed from your facts, at "
    "most once a day; none takes effect until you accept it."
)
_DIFF_PX = 110
_FACT = "fact"


class ProfilePane(QWidget):
    """Shows the profile and its proposal, and requests decisions; `editor` has signals of its own.

    Attributes:
        decides: The time of the proposal that the edited text was made from.

    Signals:
        switched: Whether the profile is to be used.
        accept_requested, reject_requested: The `made_at` of the proposal.
        save_requested: The text, and the `made_at` of the proposal that it was made from, or None.
        fact_requested: The id of a fact that a proposed line comes from.
    """

    switched = Signal(bool)
    accept_requested = Signal(object)
    reject_requested = Signal(object)
    save_requested = Signal(str, object)
    fact_requested = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state: ProfileState | None = None
        self.decides: datetime | None = None
        self.switch = QCheckBox(tr("Use the profile in conversations"), self)
        self.switch.clicked.connect(self.switched)
        self.setFocusProxy(self.switch)
        self._proposal = QFrame(self)
        self._proposal.setProperty("panel", "card")
        self._proposal.setAccessibleName(tr("Proposed changes"))
        self._title = plain_label(self._proposal, "heading", selectable=False)
        self.diff = QTextBrowser(self._proposal, openLinks=False)
        self.diff.setAccessibleName(tr("Proposed changes of the profile"))
        self.diff.setMinimumHeight(_DIFF_PX)
        self.diff.anchorClicked.connect(self._on_anchor_clicked)
        self.accept = button(
            self._proposal,
            tr("Accept"),
            partial(self._emit_decision, self.accept_requested),
            kind="primary",
        )
        self.edit = button(
            self._proposal,
            tr("Edit"),
            self._on_edit_clicked,
            tip=tr("Change the proposed text before it is saved"),
        )
        tip = tr("Drop this proposal; its lines are not proposed again")
        self.reject = button(
            self._proposal,
            tr("Reject"),
            partial(self._emit_decision, self.reject_requested),
            tip=tip,
        )
        self.editor = StandingTextPane(tr("The profile"), parent=self)
        self.editor.text.textChanged.connect(self._on_text_changed)
        self.editor.save_requested.connect(
            lambda text: self.save_requested.emit(text, self.decides)
        )
        self._lay_out()
        self._proposal.hide()

    def show_profile(
        self, state: ProfileState, versions: Sequence[Profile], *, replaces_edit: bool = False
    ) -> None:
        """Show the profile and its proposal; an edit stays, unless `replaces_edit`."""
        self._state = state
        self.switch.setChecked(state.is_on)
        proposal = state.proposal
        self._proposal.setVisible(proposal is not None)
        if proposal is not None:
            count = len(state.diff.added) + len(state.diff.removed)
            made = f"{format_moment(proposal.made_at)}, {_source_text(proposal.author)}"
            self._title.setText(
                f"{trn('{count} proposed change', '{count} proposed changes', count)} ({made})"
            )
            self._show_diff()
        self.editor.show_versions(versions, state.max_tokens, replaces_edit=replaces_edit)
        if proposal is not None:
            self.editor.versions.hide()  # there is room for one difference

    def _lay_out(self) -> None:
        buttons = row_of(self.accept, self.edit, self.reject, None)
        column_in(
            self._proposal,
            self._title,
            (self.diff, 1),
            buttons,
            margins=(12, 10, 12, 10),
            spacing=8,
        )
        help_text = plain_label(self, "muted", _HELP, selectable=False)
        column_in(
            self, self.switch, help_text, (self._proposal, 3), (self.editor, 2),
            margins=(12, 12, 12, 12), spacing=8,
        )  # fmt: skip

    def _show_diff(self) -> None:
        if self._state is not None:
            self.diff.setHtml(diff_html(self._state.diff, current_theme()))

    def _on_anchor_clicked(self, url: QUrl) -> None:
        if url.scheme() == _FACT and url.path().isdecimal():
            self.fact_requested.emit(int(url.path()))

    def _on_edit_clicked(self) -> None:
        if self._state is not None and (proposal := self._state.proposal) is not None:
            self.decides = proposal.made_at
            self.editor.text.setPlainText(proposal.text)
            self.editor.text.setFocus()

    def _emit_decision(self, requested: SignalInstance, *_: object) -> None:
        if self._state is not None and self._state.proposal is not None:
            requested.emit(self._state.proposal.made_at)

    def _on_text_changed(self) -> None:
        if not self.editor.is_edited:
            self.decides = None
        for each in (self.accept, self.edit, self.reject):  # an edited proposal is saved or undone
            each.setEnabled(self.decides is None)

    # Qt overrides

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._show_diff()


def _source_text(author: str) -> str:
    if author == BY_IMPORT:
        return tr("from an import")
    return tr("from your facts") if author == MODEL else tr("by {author}").format(author=author)


def diff_html(diff: ProfileDiff, theme: Theme) -> str:
    """Return removed and added lines as HTML; added ones link to their facts. Texts are escaped."""
    colors = theme.colors
    removed = (
        f"color: {colors.error}; background: {colors.error_soft}; text-decoration: line-through;"
    )
    added = f"color: {colors.success}; background: {colors.accent_soft};"
    rows = [
        *(_row("\N{MINUS SIGN}", line, removed) for line in diff.removed),
        *(_row("+", line, added, _links(line, colors.accent)) for line in diff.added),
    ]
    return "".join(rows)


def _row(sign: str, line: ProfileLine, style: str, more: str = "") -> str:
    return f'<p style="margin: 2px 0;">{sign} <span style="{style}">{escape(line.text)}</span>{more}</p>'


def _links(line: ProfileLine, color: str) -> str:
    numbers = ", ".join(
        f'<a style="color: {color};" href="{_FACT}:{each.fact_id}">{each.fact_id}</a>'
        for each in line.sources
    )
    name = tr("Fact {number}") if len(line.sources) == 1 else tr("Facts {number}")
    return f" &nbsp;<small>{name.format(number=numbers)}</small>" if numbers else ""
