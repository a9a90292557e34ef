"""The dialog of one project: name, instructions, color, folder and recall rule."""

from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QRadioButton, QVBoxLayout, QWidget

from app.domain.presets import MAX_NAME_CHARS
from app.domain.projects import Project, RecallRule
from app.domain.translation import tr
from ui.widgets.controls import (
    button,
    column_in,
    combo_box,
    form_of,
    line_edit,
    row_of,
    saving_buttons,
    text_edit,
)
from ui.widgets.dialog import Dialog, ask_for_folder
from ui.widgets.plain_label import PlainLabel
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
        """The project as the fields show it."""
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
