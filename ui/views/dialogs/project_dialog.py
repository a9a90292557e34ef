"""The dialog of one project: name, instructions, color, folder and recall rule."""

from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from app.domain.errors import KnownError
from app.domain.presets import MAX_NAME_CHARS
from app.domain.projects import Project, RecallRule
from app.domain.translation import tr
from ui.widgets.controls import button, column_in, combo_box, line_edit, row_of, text_edit
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import PlainLabel, plain_label
from ui.widgets.project_labels import COLORS, RULES, project_icon

_SIZE = (560, 560)
_NOTE_INDENT_PX = 26


class ProjectDialog(QDialog):
    """The fields of a project; it stays open until it is saved or cancelled.

    Signals:
        save_requested: The `Project` as the fields show it.
        removal_requested: Remove the project, which exists.
    """

    save_requested = Signal(object)
    removal_requested = Signal()

    def __init__(self, project: Project, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._project = project
        self.setWindowTitle(tr("Project") if project.uid else tr("New project"))
        resize_on_screen(self, *_SIZE)
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
        self._rules = QButtonGroup(self)
        self.rules: dict[RecallRule, QRadioButton] = {}
        self.error = plain_label(self, "error")
        self.error.hide()
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, self)
        self.save = buttons.addButton(tr("Save"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.save.setProperty("kind", "primary")
        buttons.accepted.connect(self._on_accepted)
        buttons.rejected.connect(self.reject)
        self.remove = button(self, tr("Remove\u2026"), self.removal_requested, kind="danger")
        self.remove.setVisible(bool(project.uid))
        self.name.textChanged.connect(self._on_name_changed)
        self._lay_out(buttons)
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

    def show_error(self, error: KnownError) -> None:
        """Show why the project was not saved."""
        self.error.setText(error.display_text)
        self.error.show()

    def _lay_out(self, buttons: QDialogButtonBox) -> None:
        choose = button(self, tr("Choose\u2026"), self._choose_folder)
        choose.setAccessibleName(tr("Choose a folder"))
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for label, field in (
            (tr("Name"), self.name),
            (tr("Instructions"), self.instructions),
            (tr("Color"), self.color),
        ):
            shown = PlainLabel(label, self)
            shown.setBuddy(field)
            form.addRow(shown, field)
        form.addRow(PlainLabel(tr("Folder"), self), row_of((self.folder, 1), choose))
        form.addRow(PlainLabel(tr("Recall"), self), self._rule_choices())
        foot = row_of(self.remove, None, buttons)
        column_in(self, form, self.error, foot)

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
        dialog = QFileDialog(self, tr("Folder of the project"), self.folder.text())
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.fileSelected.connect(self.folder.setText)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _on_name_changed(self) -> None:
        self.save.setEnabled(bool(self.name.text().strip()))
        self.error.hide()

    def _on_accepted(self) -> None:
        self.save_requested.emit(self.project)
