"""The dialogs of projects: the fields of one, and those that are proposed."""

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QButtonGroup, QRadioButton, QVBoxLayout, QWidget

from app.chat.projects import ProjectProposal
from app.domain.records.named import MAX_NAME_CHARS
from app.domain.records.projects import Project, RecallRule
from app.domain.translation import tr, trn
from ui.widgets.controls import (
    button,
    closing_buttons,
    column_in,
    combo_box,
    filled,
    form_of,
    line_edit,
    refill,
    row_of,
    saving_buttons,
    scroll_area,
    text_edit,
)
from ui.widgets.dialog import Dialog, ask_for_folder
from ui.widgets.on_screen import stops_in, tab_through
from ui.widgets.plain_label import PlainLabel, plain_label
from ui.widgets.project_labels import COLORS, RULES, project_icon

_SIZE_PX = (560, 560)
_NOTE_INDENT_PX = 26


class ProjectDialog(Dialog):
    """The fields of a project; it stays open until it is saved or cancelled.

    Signals:
        save_requested: The `Project` as the fields show it.
        removal_requested: Remove the project, which exists.
    """

    save_requested = Signal(object)
    removal_requested = Signal()

    def __init__(self, project: Project, parent: QWidget | None = None) -> None:
        title = tr("Project") if project.uid else tr("New project")
        super().__init__(title, _SIZE_PX, parent, tone="error")
        self._project = project
        self.name = line_edit(self, tr("Such as Garden"), text=project.name, name=tr("Name"))
        self.name.setMaxLength(MAX_NAME_CHARS)
        self.instructions = text_edit(self, tr("Instructions"))
        self.instructions.setPlainText(project.instructions)
        self.instructions.setPlaceholderText(
            tr("What its conversations add to the instructions of their preset")
        )
        self.color = combo_box(self, tr("Color"), min_chars=12)
        for color, name in ({project.color: project.color} | COLORS).items():
            self.color.addItem(project_icon(color), name, color)
        self.color.setCurrentIndex(self.color.findData(project.color))
        self.folder = line_edit(
            self, tr("None"), text=project.folder or "", name=tr("Folder"), clearable=True
        )
        self._choose = button(
            self, tr("Choose\u2026"), self._choose_folder, name=tr("Choose a folder")
        )
        self._rules = QButtonGroup(self)
        self.rules: dict[RecallRule, QRadioButton] = {}
        self.status.hide()
        self._lay_out(bool(project.uid))
        self.name.textChanged.connect(self._on_name_changed)
        self._on_name_changed()

    @property
    def project(self) -> Project:
        return replace(
            self._project,
            name=self.name.text(),
            instructions=self.instructions.toPlainText(),
            color=self.color.currentData(),
            folder=self.folder.text() or None,
            recall=next(rule for rule, choice in self.rules.items() if choice.isChecked()),
        )

    def _lay_out(self, is_removable: bool) -> None:
        """Lay the fields out in their order of creation, which is that of Tab."""
        form = form_of(
            self, (tr("Name"), self.name), (tr("Instructions"), self.instructions),
            (tr("Color"), self.color), (tr("Folder"), row_of((self.folder, 1), self._choose)),
            (tr("Recall"), self._rule_choices()),
        )  # fmt: skip
        self.remove = button(self, tr("Remove\u2026"), self.removal_requested, kind="danger")
        self.remove.setVisible(is_removable)
        buttons, self.save = saving_buttons(self, lambda: self.save_requested.emit(self.project))
        column_in(self, form, self.status, row_of(self.remove, None, buttons))

    def _rule_choices(self) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(2)
        for rule, (name, meaning) in RULES.items():
            choice = self.rules[rule] = QRadioButton(name, self)
            choice.setAccessibleDescription(meaning)
            choice.setChecked(rule is self._project.recall)
            self._rules.addButton(choice)
            note = PlainLabel(meaning, self, tone="small", wordWrap=True)
            note.setContentsMargins(_NOTE_INDENT_PX, 0, 0, 4)
            column.addWidget(choice)
            column.addWidget(note)
        return column

    def _choose_folder(self) -> None:
        title = tr("Folder of the project")
        ask_for_folder(self, title, self.folder.setText, self.folder.text())

    def _on_name_changed(self) -> None:
        self.save.setEnabled(bool(self.name.text().strip()))
        self.status.hide()


class ProposalsDialog(Dialog):
    """Lists proposals; nothing is moved until one is accepted.

    Signals:
        accept_requested, dismiss_requested: A `ProjectProposal`.
    """

    accept_requested = Signal(object)
    dismiss_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Proposed projects"), (620, 440), parent, tone="error")
        about = tr(
            "Conversations without a project that belong together. Nothing is moved until you accept "
            "a proposal; one that you dismiss does not return."
        )
        self.status.hide()
        self._body = QWidget(self)
        self._rows = QVBoxLayout(self._body)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setSpacing(14)
        area = scroll_area(self, self._body)
        self._place = area.verticalScrollBar()
        self._buttons = closing_buttons(self)[0]
        column_in(self, plain_label(self, "small", about), self.status, (area, 1), self._buttons)

    def show_proposals(self, proposals: Sequence[ProjectProposal]) -> None:
        none = tr(
            "There are no proposals. Folders that coding agents worked in, and topics with several "
            "conversations, are proposed here."
        )
        place = self._place.value()
        self._body.setFocus()  # else the focus, and the list with it, goes to the last row
        refill(self._rows, map(self._row, proposals), none)
        self._rows.addStretch(1)
        tab_through([*stops_in(self._body), *stops_in(self._buttons)])
        QTimer.singleShot(0, self._place, lambda: self._place.setValue(place))

    def _row(self, proposal: ProjectProposal) -> QWidget:
        row = QWidget(self._body)
        count = trn("{count} conversation", "{count} conversations", len(proposal.conversations))
        origin = tr("from a topic") if proposal.is_topic else tr("from a folder of coding agents")
        text = QVBoxLayout()
        filled(
            text,
            plain_label(row, "strong", proposal.name),
            plain_label(row, "", f"{count}, {origin}"),
            plain_label(row, "small", " \u00b7 ".join(proposal.titles)),
            spacing=2,
        )
        accept = button(
            row,
            tr("Make a project") if proposal.project is None else tr("Move there"),
            lambda: self.accept_requested.emit(proposal),
            name=tr("Make a project of {name}").format(name=proposal.name)
            if proposal.project is None
            else tr("Move to the project {name}").format(name=proposal.name),
        )
        dismiss = button(
            row,
            tr("Discard"),
            lambda: self.dismiss_requested.emit(proposal),
            kind="quiet",
            name=tr("Discard {name}").format(name=proposal.name),
        )
        line = row_of(text, accept, 8, dismiss)
        line.setStretch(0, 1)
        line.setContentsMargins(0, 0, 0, 0)
        row.setLayout(line)
        return row
