"""The window of facts: what is known, found, filtered; one of them worded anew, pinned, forgotten."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QPushButton,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from app.domain.facts import FactCategory
from app.storage.facts import KnownFact
from ui.models.facts import CATEGORY_WORDS, FactListModel
from ui.theme import Theme
from ui.views.fact_pane import FactPane
from ui.views.fact_rows import FactDelegate
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import PlainLabel

_DEBOUNCE_MS = 120
_LIST_PX, _PANE_PX = 400, 440


@dataclass(frozen=True, slots=True)
class FactQuestion:
    """Which facts are to be listed."""

    text: str = ""
    category: FactCategory | None = None
    ended: bool = False


class FactsDialog(QDialog):
    """Lists facts on the left and shows the chosen one on the right.

    Signals:
        asked: A `FactQuestion`. chosen: The id of the fact to show. add_requested: The words of a
            new one.

    Attributes:
        pane: The chosen fact, with signals of its own.
    """

    asked = Signal(object)
    chosen = Signal(int)
    add_requested = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Facts")
        resize_on_screen(self, 900, 600)
        self.box = QLineEdit(self)
        self.box.setPlaceholderText("Search facts")
        self.box.setAccessibleName("Search facts")
        self.box.setClearButtonEnabled(True)
        self.category = QComboBox(self)
        self.category.setAccessibleName("Category")
        self.category.addItem("All categories")
        for each, words in CATEGORY_WORDS.items():
            self.category.addItem(words, each.value)
        self.ended = QCheckBox("Past ones too", self)
        self.facts = FactListModel(self)
        self.list = QListView(self)
        self.list.setModel(self.facts)
        self._delegate = FactDelegate(theme, self.list)
        self.list.setItemDelegate(self._delegate)
        self.list.setAccessibleName("Facts")
        self.list.setMouseTracking(True)
        self.list.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.selectionModel().currentChanged.connect(self._on_list_current_changed)
        self._words = PlainLabel(self, wordWrap=True)
        self._words.setProperty("tone", "muted")
        self.new = QLineEdit(self)
        self.new.setPlaceholderText("Add a fact of your own")
        self.new.setAccessibleName("Add a fact of your own")
        self._add = QPushButton("Add", self)
        self._add.setAutoDefault(False)
        self._add.setEnabled(False)
        self.pane = FactPane(theme, self)
        self._wanted: int | None = None
        self._debounce = QTimer(self, singleShot=True, interval=_DEBOUNCE_MS)
        self._lay_out()
        self._debounce.timeout.connect(self.ask)
        self.box.textChanged.connect(lambda _words: self._debounce.start())
        self.category.activated.connect(lambda _number: self.ask())
        self.ended.toggled.connect(lambda _on: self.ask())
        self.new.textChanged.connect(lambda words: self._add.setEnabled(bool(words.strip())))
        self.new.returnPressed.connect(self._on_add_clicked)
        self._add.clicked.connect(self._on_add_clicked)

    @property
    def question(self) -> FactQuestion:
        """What the filters say."""
        category = self.category.currentData()
        return FactQuestion(
            self.box.text().strip(),
            FactCategory(category) if category else None,
            self.ended.isChecked(),
        )

    def ask(self) -> None:
        """Ask for what the filters say."""
        self.asked.emit(self.question)

    def want(self, fact_id: int) -> None:
        """Choose a fact as soon as it is listed."""
        self._wanted = fact_id

    def show_facts(self, facts: Sequence[KnownFact], total: int) -> None:
        """Show the facts found, of `total`; the one chosen stays so if it is among them."""
        chosen = self._wanted or self._chosen_id()
        self.facts.show_facts(facts)
        index = self.facts.row_of(chosen)
        if not index.isValid() and facts:
            index = self.facts.row_of(facts[0].fact.id)
        else:
            self._wanted = None
        self.list.setCurrentIndex(index)
        if index.isValid():
            self.list.scrollTo(index)
        else:
            self.pane.show_nothing()
        self._words.setText(self._summary(len(facts), total))

    def show_error(self, title: str, hint: str) -> None:
        """Tell what cannot be done, where it was asked for."""
        self._words.setText(f"{title}. {hint}".strip())

    def set_theme(self, theme: Theme) -> None:
        """Draw in another theme."""
        self._delegate.set_theme(theme)
        self.list.doItemsLayout()
        self.pane.set_theme(theme)

    def clear_new(self) -> None:
        """Empty the field for a new fact: it was added."""
        self.new.clear()

    def _summary(self, shown: int, total: int) -> str:
        asked = self.question
        if not total and asked == FactQuestion():
            return (
                "No facts are known yet. They are learned from what you say in conversations, such "
                "as preferences, decisions and dates; you can add your own below."
            )
        if not shown:
            return "Nothing was found. Try other or fewer words."
        if shown < total:
            return f"The first {shown:,} of {total:,}; search for the others."
        return f"{shown:,} {'fact' if shown == 1 else 'facts'}"

    def _chosen_id(self) -> int | None:
        known = self.facts.value_at(self.list.currentIndex())
        return known.fact.id if isinstance(known, KnownFact) else None

    def _lay_out(self) -> None:
        filters = QHBoxLayout()
        filters.addWidget(self.category, 1)
        filters.addWidget(self.ended)
        adding = QHBoxLayout()
        adding.addWidget(self.new, 1)
        adding.addWidget(self._add)
        left = QWidget(self)
        column = QVBoxLayout(left)
        column.setContentsMargins(16, 16, 12, 16)
        column.setSpacing(8)
        column.addWidget(self.box)
        column.addLayout(filters)
        column.addWidget(self._words)
        column.addWidget(self.list, 1)
        column.addLayout(adding)
        split = QSplitter(Qt.Orientation.Horizontal, self)
        split.addWidget(left)
        split.addWidget(self.pane)
        split.setChildrenCollapsible(False)
        split.setSizes([_LIST_PX, _PANE_PX])
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(split)

    def _on_list_current_changed(self, index: QModelIndex) -> None:
        known = self.facts.value_at(index)
        if isinstance(known, KnownFact):
            self.chosen.emit(known.fact.id)

    def _on_add_clicked(self) -> None:
        if words := self.new.text().strip():
            self.add_requested.emit(words)
