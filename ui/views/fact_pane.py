"""One fact: its wording to edit in place, its category, source, validity and history."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.domain.facts import FactCategory, FactVersion
from app.storage.facts import KnownFact
from ui.models.facts import CATEGORY_WORDS, source_words, validity_words, version_words
from ui.theme import Theme
from ui.widgets.plain_label import plain_label
from ui.widgets.versions import ShownVersion, VersionsView

_WORDING_PX = 84


class FactPane(QWidget):
    """Shows a fact; what the user does with it are wishes.

    Signals:
        save_requested: Id, wording, category (a `FactCategory`). pin_requested: Id, whether.
        source_requested: The `KnownFact` whose turn is to be shown. forget_requested: It too.
        reinstate_requested: The id of a fact that holds again. restore_requested: Id and the
            `made_at` of a version.
    """

    save_requested = Signal(int, str, object)
    pin_requested = Signal(int, bool)
    source_requested = Signal(object)
    forget_requested = Signal(object)
    reinstate_requested = Signal(int)
    restore_requested = Signal(int, object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._known: KnownFact | None = None
        self._inside = QWidget(self)
        self.wording = QPlainTextEdit(self)
        self.wording.setAccessibleName("Wording of the fact")
        self.wording.setTabChangesFocus(True)
        self.wording.setFixedHeight(_WORDING_PX)
        self.category = QComboBox(self)
        self.category.setAccessibleName("Category of the fact")
        for each, words in CATEGORY_WORDS.items():
            self.category.addItem(words, each.value)
        self._save = _button(self, "Save")
        self._save.setProperty("kind", "primary")
        self.pinned = QCheckBox("Pinned: preferred, never superseded by itself", self)
        self._validity, self._source = plain_label(self), plain_label(self)
        self._open = _button(self, "Open the turn")
        self._reinstate = _button(self, "It holds again")
        self._forget = _button(self, "Forget\u2026")
        self.versions = VersionsView(theme, self)
        self._lay_out()
        self.wording.textChanged.connect(self._on_wording_changed)
        self.category.activated.connect(lambda _number: self._on_wording_changed())
        self._save.clicked.connect(self._on_save_clicked)
        self.pinned.clicked.connect(self._on_pinned_clicked)
        self._open.clicked.connect(lambda: self.source_requested.emit(self._known))
        self._reinstate.clicked.connect(self._on_reinstate_clicked)
        self._forget.clicked.connect(lambda: self.forget_requested.emit(self._known))
        self.versions.restore_requested.connect(self._on_restore_requested)
        self.show_nothing()

    @property
    def fact_id(self) -> int | None:
        """The fact shown."""
        return None if self._known is None else self._known.fact.id

    def show_fact(
        self, known: KnownFact, versions: Sequence[FactVersion], *, anew: bool = False
    ) -> None:
        """Show a fact; a wording being edited stays while the fact is the same, unless `anew`."""
        stays = self._is_edited() and self.fact_id == known.fact.id and not anew
        self._known = known
        fact = known.fact
        if not stays:
            self.wording.setPlainText(fact.text)
            self.category.setCurrentIndex(self.category.findData(fact.category.value))
        self.pinned.setChecked(fact.pinned)
        self._validity.setText(validity_words(known))
        self._source.setText(source_words(known))
        self._open.setVisible(fact.conversation_id is not None)
        self._reinstate.setVisible(fact.valid_until is not None)
        self.versions.show_versions(
            [
                ShownVersion(each.made_at, version_words(each.made_at, each.model), each.text)
                for each in versions
            ]
        )
        self._inside.show()
        self._on_wording_changed()

    def show_nothing(self) -> None:
        """Show that no fact is chosen."""
        self._known = None
        self.wording.setPlainText("")
        self.pinned.setChecked(False)
        for label in (self._validity, self._source):
            label.setText("")
        self._open.hide()
        self._reinstate.hide()
        self.versions.show_versions(())
        self._inside.hide()

    def set_theme(self, theme: Theme) -> None:
        """Draw in another theme."""
        self.versions.set_theme(theme)

    def _is_edited(self) -> bool:
        if self._known is None:
            return False
        fact = self._known.fact
        return (self.wording.toPlainText(), self.category.currentData()) != (
            fact.text,
            fact.category.value,
        )

    def _lay_out(self) -> None:
        worded = QHBoxLayout()
        worded.addWidget(self.category, 1)
        worded.addWidget(self._save)
        deeds = QHBoxLayout()
        deeds.addWidget(self._open)
        deeds.addWidget(self._reinstate)
        deeds.addStretch(1)
        deeds.addWidget(self._forget)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self._inside)
        column = QVBoxLayout(self._inside)
        column.setContentsMargins(12, 16, 16, 16)
        column.setSpacing(10)
        column.addWidget(self.wording)
        column.addLayout(worded)
        column.addWidget(self.pinned)
        column.addWidget(self._validity)
        column.addWidget(self._source)
        column.addLayout(deeds)
        column.addSpacing(6)
        column.addWidget(self.versions, 1)
        column.addStretch(0)

    def _on_wording_changed(self) -> None:
        self._save.setEnabled(self._is_edited() and bool(self.wording.toPlainText().strip()))

    def _on_save_clicked(self) -> None:
        if self._known is not None:
            category = FactCategory(self.category.currentData())
            self.save_requested.emit(self._known.fact.id, self.wording.toPlainText(), category)

    def _on_pinned_clicked(self, on: bool) -> None:
        if self._known is not None:
            self.pin_requested.emit(self._known.fact.id, on)

    def _on_reinstate_clicked(self) -> None:
        if self._known is not None:
            self.reinstate_requested.emit(self._known.fact.id)

    def _on_restore_requested(self, made_at: object) -> None:
        if self._known is not None:
            self.restore_requested.emit(self._known.fact.id, made_at)


def _button(parent: QWidget, words: str) -> QPushButton:
    button = QPushButton(words, parent)
    button.setAutoDefault(False)
    return button
