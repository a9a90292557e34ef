"""One fact: its text and category to edit, its source, validity and versions."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QCheckBox, QWidget

from app.domain.records.facts import FactCategory, FactVersion
from app.domain.translation import tr
from app.storage.tables.facts import KnownFact
from ui.models.facts import CATEGORY_NAMES, source_text, validity_text
from ui.views.memory.versions import ShownVersion, VersionsView
from ui.widgets.controls import button, column_in, combo_box, row_of, stack_if_narrow, text_edit
from ui.widgets.plain_label import plain_label

_TEXT_PX, _EDGE_PX = 84, 12


class FactPane(QWidget):
    """Shows a fact and requests changes to it.

    Signals:
        save_requested: Id, text, `FactCategory`. pin_requested: Id, whether it is pinned.
        source_requested, forget_requested: The `KnownFact`.
        reinstate_requested: The id of a past fact that is current again.
        restore_requested: Id and the `made_at` of a version.
    """

    save_requested = Signal(int, str, object)
    pin_requested = Signal(int, bool)
    source_requested = Signal(object)
    forget_requested = Signal(object)
    reinstate_requested = Signal(int)
    restore_requested = Signal(int, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._known: KnownFact | None = None
        self._inside = QWidget(self)
        self.text = text_edit(self, tr("Text of the fact"), _TEXT_PX)
        categories = ((name, each.value) for each, name in CATEGORY_NAMES.items())
        self.category = combo_box(
            self, tr("Category of the fact"), categories, on_activated=self._on_edited
        )
        self._save = button(self, tr("Save"), kind="primary")
        self.pinned = QCheckBox(tr("Pinned"), self)
        self.pinned.setToolTip(
            tr("A pinned fact is preferred, and never superseded automatically.")
        )
        self._validity, self._source = plain_label(self), plain_label(self)
        self._open = button(self, tr("Open the turn"))
        self._reinstate = button(self, tr("Mark as current"))
        self._forget = button(self, tr("Forget\u2026"))
        self.versions = VersionsView(self)
        self._lay_out()
        self.text.textChanged.connect(self._on_edited)
        self._save.clicked.connect(
            lambda: self.save_requested.emit(
                self.fact_id, self.text.toPlainText(), self.chosen_category
            )
        )
        self.pinned.clicked.connect(lambda on: self.pin_requested.emit(self.fact_id, on))
        self._open.clicked.connect(lambda: self.source_requested.emit(self._known))
        self._reinstate.clicked.connect(lambda: self.reinstate_requested.emit(self.fact_id))
        self._forget.clicked.connect(lambda: self.forget_requested.emit(self._known))
        self.versions.restore_requested.connect(
            lambda made_at: self.restore_requested.emit(self.fact_id, made_at)
        )
        self.show_nothing()

    @property
    def fact_id(self) -> int | None:
        return None if self._known is None else self._known.fact.id

    @property
    def chosen_category(self) -> FactCategory:
        return FactCategory(self.category.currentData())

    @property
    def is_edited(self) -> bool:
        """Whether text or category differ from what is stored."""
        if self._known is None:
            return False
        fact = self._known.fact
        return (self.text.toPlainText(), self.chosen_category) != (fact.text, fact.category)

    def undo(self) -> None:
        """Show what is stored."""
        if self._known is not None:
            self.text.setPlainText(self._known.fact.text)
            self.category.setCurrentIndex(self.category.findData(self._known.fact.category.value))

    def show_fact(
        self, known: KnownFact, versions: Sequence[FactVersion], *, replaces_edit: bool = False
    ) -> None:
        """Show a fact; an edit of the same fact stays, unless `replaces_edit`."""
        keeps_edit = self.is_edited and self.fact_id == known.fact.id and not replaces_edit
        self._known = known
        fact = known.fact
        if not keeps_edit:
            self.undo()
        self.pinned.setChecked(fact.pinned)
        self._validity.setText(validity_text(known))
        self._source.setText(source_text(known))
        self._open.setVisible(fact.conversation_id is not None)
        self._reinstate.setVisible(fact.valid_until is not None)
        self.versions.show_versions(
            [ShownVersion(each.made_at, each.model, each.text) for each in versions]
        )
        self._inside.show()
        self._on_edited()

    def show_nothing(self) -> None:
        self._known = None
        self._inside.hide()

    def _lay_out(self) -> None:
        column_in(self, self._inside, margins=(0, 0, 0, 0))
        self._buttons = row_of(self._open, self._reinstate, None, self._forget)
        column = column_in(
            self._inside, self.text, row_of((self.category, 1), self._save), self.pinned,
            self._validity, self._source, self._buttons, 6,
            (self.versions, 1), margins=(_EDGE_PX, 8, _EDGE_PX, 12),
        )  # fmt: skip
        column.addStretch(0)

    def _on_edited(self, *_: object) -> None:
        self._save.setEnabled(self.is_edited and bool(self.text.toPlainText().strip()))

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Stack the buttons where there is no room beside each other."""
        super().resizeEvent(event)
        stack_if_narrow(self._buttons, event.size().width() - 2 * _EDGE_PX)
