"""Facts: a filtered list, and the selected fact below it, or beside it where there is room."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QCheckBox, QSplitter, QWidget

from app.domain.errors import KnownError
from app.domain.records.facts import FactCategory
from app.domain.translation import format_number, tr, trn
from app.storage.tables.facts import KnownFact
from ui.models.facts import CATEGORY_NAMES, FactListModel
from ui.views.memory.fact_pane import FactPane
from ui.views.rows import FactDelegate
from ui.widgets.choice_box import SelectBox
from ui.widgets.controls import button, column_in, line_edit, list_view, row_of, stack_if_narrow
from ui.widgets.plain_label import plain_label

_DEBOUNCE_MS = 120
_EDGE_PX = 12
_BESIDE_PX = 760  # from this width on, the selected fact is beside the list


@dataclass(frozen=True, slots=True)
class FactQuery:
    """Which facts are listed; `ended` includes past facts, `here` leaves only those of the open conversation."""

    text: str = ""
    category: FactCategory | None = None
    ended: bool = False
    here: bool = False


class FactsView(QWidget):
    """Lists facts and shows the selected one.

    Signals:
        list_requested: A `FactQuery`. selected: The id of the fact to show. add_requested: The
            text of a new fact. leave_requested: What to call once the edit of the fact shown is
            saved or discarded.

    Attributes:
        pane: The selected fact, with signals of its own.
    """

    list_requested = Signal(object)
    selected = Signal(int)
    add_requested = Signal(str)
    leave_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.box = line_edit(self, tr("Search facts"), clearable=True)
        self.category = SelectBox(self)
        self.category.setAccessibleName(tr("Category"))
        self.category.addItem(tr("All categories"))
        for each, name in CATEGORY_NAMES.items():
            self.category.addItem(name, each.value)
        self.ended = QCheckBox(tr("Past facts too"), self)
        self.here = QCheckBox(tr("Only from this conversation"), self)
        self.facts = FactListModel(self)
        self._delegate = FactDelegate(self)
        self.list = list_view(self, self.facts, self._delegate, tr("Facts"))
        self._status = plain_label(self, "muted", selectable=False)
        self.new = line_edit(self, tr("Add a fact of your own"))
        self._add = button(self, tr("Add"))
        self._add.setEnabled(False)
        self.pane = FactPane(self)
        self._awaited: int | None = None
        self._is_listing = False
        self._debounce = QTimer(self, singleShot=True, interval=_DEBOUNCE_MS)
        self._lay_out()
        self._debounce.timeout.connect(self.request_list)
        self.box.textChanged.connect(self._debounce.start)
        self.category.activated.connect(self.request_list)
        for switch in (self.ended, self.here):
            switch.toggled.connect(self.request_list)
        self.list.selectionModel().currentChanged.connect(self._on_current_changed)
        self.new.textChanged.connect(lambda text: self._add.setEnabled(bool(text.strip())))
        self.new.returnPressed.connect(self._on_add_requested)
        self._add.clicked.connect(self._on_add_requested)

    @property
    def query(self) -> FactQuery:
        """What the filters say."""
        category = self.category.currentData()
        return FactQuery(
            self.box.text().strip(),
            FactCategory(category) if category else None,
            self.ended.isChecked(),
            self.here.isChecked(),
        )

    def request_list(self, *_: object) -> None:
        """Request the facts that the filters select."""
        self.list_requested.emit(self.query)

    def select_when_listed(self, fact_id: int) -> None:
        self._awaited = fact_id

    def show_facts(self, facts: Sequence[KnownFact], total: int) -> None:
        """Show the facts found, of `total`; keep the selection, and the pane while it is edited."""
        wanted = self._awaited or self._selected_id()
        self._is_listing = True
        self.facts.show_facts(facts)
        index = self.facts.row_of(wanted)
        if index.isValid():
            self._awaited = None
        elif facts and not self.pane.is_edited:
            index = self.facts.row_of(facts[0].fact.id)
        self.list.setCurrentIndex(index)
        self._is_listing = False
        if index.isValid():
            self.list.scrollTo(index)
            self._on_current_changed(index)
        elif not self.pane.is_edited:
            self.pane.show_nothing()
        self._status.setText(self._summary(len(facts), total))

    def show_error(self, error: KnownError) -> None:
        """Show why a request failed."""
        self._status.setText(error.display_text)

    def _summary(self, shown: int, total: int) -> str:
        if not total and self.query == FactQuery():
            return tr(
                "There are no facts yet. They are extracted from what you say in conversations, "
                "such as preferences, decisions and dates. You can also add your own below."
            )
        if not shown and not self.query.text and self.query.category:
            return tr("There are no facts of this category.")
        if not shown and not self.query.text and self.query.here:
            return tr("There are no facts from this conversation.")
        if not shown:
            return tr("No facts found. Try other or fewer words.")
        if shown < total:
            return tr("The first {shown} of {total} facts. Search to find the others.").format(
                shown=format_number(shown), total=format_number(total)
            )
        return trn("{count} fact", "{count} facts", shown)

    def _selected_id(self) -> int | None:
        known = self.facts.value_at(self.list.currentIndex())
        return known.fact.id if isinstance(known, KnownFact) else None

    def _lay_out(self) -> None:
        left = QWidget(self)
        self._switches = switches = row_of(self.ended, self.here, None)
        adding = row_of((self.new, 1), self._add)
        parts = (self.box, self.category, switches, self._status, (self.list, 1), adding)
        column_in(left, *parts, margins=(_EDGE_PX,) * 4, spacing=8)
        self._split = QSplitter(Qt.Orientation.Vertical, self)
        for each in (left, self.pane):
            each.setMinimumWidth(1)  # their rows are stacked where there is no room for them
        self._split.addWidget(left)
        self._split.addWidget(self.pane)
        self._split.setChildrenCollapsible(False)
        column_in(self, self._split, margins=(0, 0, 0, 0))
        self.setFocusProxy(self.box)

    def _on_current_changed(self, index: QModelIndex) -> None:
        known = self.facts.value_at(index)
        if not isinstance(known, KnownFact) or self._is_listing:
            return
        fact_id = known.fact.id
        if self.pane.is_edited and fact_id != self.pane.fact_id:
            edited = self.pane.fact_id  # a mouse press goes on to select the row that was clicked
            QTimer.singleShot(0, self, lambda: self._select(edited))
            self.leave_requested.emit(lambda: self._select(fact_id, shows=True))
        else:
            self.selected.emit(fact_id)

    def _select(self, fact_id: int | None, *, shows: bool = False) -> None:
        """Select a row; it `shows` the fact unless it only corrects the selection."""
        with QSignalBlocker(self.list.selectionModel()):
            self.list.setCurrentIndex(self.facts.row_of(fact_id))
        self.list.viewport().update()
        if shows and fact_id is not None:
            self.selected.emit(fact_id)

    def _on_add_requested(self) -> None:
        if text := self.new.text().strip():
            self.add_requested.emit(text)

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the selected fact where there is room."""
        super().resizeEvent(event)
        wide = event.size().width() >= _BESIDE_PX
        self._split.setOrientation(Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical)
        stack_if_narrow(self._switches, event.size().width() // (1 + wide) - 2 * _EDGE_PX)
