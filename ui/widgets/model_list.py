"""A searchable list of models under headings, with context size and price."""

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QEvent, QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QFont, QKeyEvent
from PySide6.QtWidgets import QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

from app.domain.translation import tr
from ui.icons import Ink, icon
from ui.widgets.controls import filled, line_edit
from ui.widgets.model_rows import ModelGroup, ModelRow
from ui.widgets.plain_label import plain_label
from ui.widgets.record_table import RecordTable

_COLUMNS = (tr("Model"), tr("Context"), tr("Price per million tokens, in / out"))
_PICKER_COLUMNS = (tr("Model"), tr("Context"), tr("$/M in / out"), "")
_MARK = 3
_MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_CONTROL = Qt.KeyboardModifier.ControlModifier
_MODEL = Qt.ItemDataRole.UserRole
_SEARCHED = Qt.ItemDataRole.UserRole + 1


class ModelList(QWidget):
    """Models to choose from; the search box has the focus and moves the selection.

    Attributes:
        search: The box. tree: The list.
        provider: Whose models are listed, of whom a typed name is taken too; "" for several.

    Signals:
        chosen: PROVIDER:MODEL that was clicked twice, or once if `one_click`, or taken with Enter;
            what was typed if nothing matches it and its provider is known.
        selected: What is `wanted` now, "" for none.
        marked: PROVIDER:MODEL whose star was clicked, or that is selected at Ctrl+D.
    """

    chosen = Signal(str)
    selected = Signal(str)
    marked = Signal(str)

    def __init__(self, parent: QWidget | None = None, *, one_click: bool = False) -> None:
        super().__init__(parent)
        self.search = line_edit(self, tr("Search models"), clearable=True)
        self.search.textChanged.connect(self._filter)
        self.search.installEventFilter(self)
        names = _PICKER_COLUMNS if one_click else _COLUMNS
        self.tree: QTreeWidget = RecordTable(self, tr("Models"), names, range(1, len(names)))
        self._has_marks = one_click
        self.provider = ""
        self.tree.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.tree.currentItemChanged.connect(lambda item, _: self.selected.emit(_model_of(item)))
        clicks = self.tree.itemClicked if one_click else self.tree.itemActivated
        clicks.connect(self._on_clicked)
        self.none = plain_label(self, "muted", tr("No model matches."))
        self.none.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.none.hide()
        filled(
            QVBoxLayout(self),
            self.search,
            self.none,
            (self.tree, 1),
            margins=(0, 0, 0, 0),
            spacing=6,
        )

    @property
    def model(self) -> str:
        """The selected model as PROVIDER:MODEL, "" for none."""
        return _model_of(self.tree.currentItem())

    @property
    def wanted(self) -> str:
        """The selected model, or what is typed where none matches it and its provider is known."""
        typed, own = self.search.text().strip(), f"{self.provider}:"
        if self.model or not typed:
            return self.model
        if self.provider:
            return own + typed.removeprefix(own)
        return typed if ":" in typed else ""

    def show_groups(self, groups: Iterable[ModelGroup], selected: str = "") -> None:
        """Show models in order; without `selected`, what is selected stays so."""
        selected = selected or self.model
        place = self.tree.verticalScrollBar().value()
        self.tree.blockSignals(True)
        self.tree.clear()
        groups = list(groups)
        told = (each for group in groups for each in group.rows)
        is_plain = all(not each.window and each.price in ("", tr("free")) for each in told)
        self.tree.setHeaderHidden(is_plain)
        for group in groups:
            items = _items(group)
            self.tree.addTopLevelItems(items)
            for item in items:
                item.setFirstColumnSpanned(not _model_of(item))
        self.tree.blockSignals(False)
        self._filter(self.search.text())
        self._select(selected)
        self.tree.verticalScrollBar().setValue(place)

    def fitting_height(self) -> int:
        tree, gap = self.tree, 8
        rows = tree.topLevelItemCount() * tree.sizeHintForRow(0)
        header = 0 if tree.isHeaderHidden() else tree.header().sizeHint().height()
        return self.search.sizeHint().height() + gap + header + rows

    def reveal(self) -> None:
        """Scroll to the selection."""
        if (item := self.tree.currentItem()) is not None:
            self.tree.scrollToItem(item, QTreeWidget.ScrollHint.PositionAtCenter)

    def _filter(self, text: str) -> None:
        """Hide the models without all words, and headings without models."""
        words = text.casefold().split()
        heading: QTreeWidgetItem | None = None
        for item in self._items():
            if not _model_of(item) and item.data(0, _SEARCHED) is None:
                heading = item
                item.setHidden(bool(words))
                continue
            searched = str(item.data(0, _SEARCHED))
            item.setHidden(not all(word in searched for word in words))
            if heading is not None and not item.isHidden():
                heading.setHidden(False)
        is_none = bool(words) and all(each.isHidden() for each in self._items())
        self.none.setVisible(is_none)
        self.tree.setVisible(not is_none)
        current = self.tree.currentItem()
        if current is None or current.isHidden():
            self._move(0)
        if not self.model:  # what is typed has changed
            self.selected.emit(self.wanted)

    def _select(self, model: str) -> None:
        shown = [each for each in self._items() if _model_of(each) and not each.isHidden()]
        wanted = next((each for each in shown if _model_of(each) == model), None)
        self._go_to(wanted or (shown[0] if shown else None))

    def _move(self, step: int) -> None:
        """Select the model so many rows further; the first one if none is selected."""
        shown = [each for each in self._items() if _model_of(each) and not each.isHidden()]
        current = self.tree.currentItem()
        at = shown.index(current) + step if current in shown else 0
        self._go_to(shown[max(0, min(len(shown) - 1, at))] if shown else None)

    def _go_to(self, item: QTreeWidgetItem | None) -> None:
        if item is None:
            self.tree.setCurrentIndex(QModelIndex())
        else:
            self.tree.setCurrentItem(item)

    def _items(self) -> Sequence[QTreeWidgetItem]:
        found = (self.tree.topLevelItem(row) for row in range(self.tree.topLevelItemCount()))
        return [each for each in found if each is not None]

    def _on_clicked(self, item: QTreeWidgetItem, column: int) -> None:
        if column == _MARK and _model_of(item):
            self.marked.emit(_model_of(item))
        else:
            self._choose(item)

    def _choose(self, item: QTreeWidgetItem | None) -> None:
        if model := _model_of(item):
            self.chosen.emit(model)

    def _mark_selected(self) -> None:
        if self.model:
            self.marked.emit(self.model)

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Let arrows, Enter and Ctrl+D in the search box act on the list."""
        if event.type() != QEvent.Type.KeyPress or not isinstance(event, QKeyEvent):
            return super().eventFilter(watched, event)
        if (key := event.key()) in _ENTER:
            if self.wanted:
                self.chosen.emit(self.wanted)
            return True
        if self._has_marks and key == Qt.Key.Key_D and event.modifiers() == _CONTROL:
            self._mark_selected()
            return True
        if key not in _MOVES:
            return super().eventFilter(watched, event)
        page = max(1, self.tree.viewport().height() // max(1, self.tree.sizeHintForRow(0)) - 1)
        step = page if key in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown) else 1
        self._move(-step if key in (Qt.Key.Key_Up, Qt.Key.Key_PageUp) else step)
        return True


def _model_of(item: QTreeWidgetItem | None) -> str:
    return "" if item is None else str(item.data(0, _MODEL) or "")


def _items(group: ModelGroup) -> list[QTreeWidgetItem]:
    items = []
    if group.heading:
        heading = QTreeWidgetItem([group.heading])
        heading.setFlags(Qt.ItemFlag.ItemIsEnabled)
        font = QFont()
        font.setBold(True)
        heading.setData(0, Qt.ItemDataRole.FontRole, font)
        items.append(heading)
    items += [_item(row, group.heading) for row in group.rows]
    if group.note:
        note = QTreeWidgetItem([group.note])
        note.setFlags(Qt.ItemFlag.ItemIsEnabled)
        font = QFont()
        font.setItalic(True)
        note.setData(0, Qt.ItemDataRole.FontRole, font)
        note.setData(0, _SEARCHED, group.note.casefold())
        note.setToolTip(0, group.note)
        items.append(note)
    return items


def _item(row: ModelRow, heading: str) -> QTreeWidgetItem:
    item = QTreeWidgetItem([row.name, row.window, row.price])
    item.setIcon(_MARK, icon("star", Ink.Accent, filled=row.is_favorite))
    item.setData(0, _MODEL, row.model)
    item.setData(0, _SEARCHED, f"{row.model} {row.tip} {heading}".casefold())
    right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
    for column in (1, 2):
        item.setTextAlignment(column, right)
    parts = (row.name, row.window and tr("{window} context").format(window=row.window), row.price)
    item.setData(0, Qt.ItemDataRole.AccessibleTextRole, ", ".join(filter(None, parts)))
    item.setToolTip(0, row.tip)
    item.setToolTip(
        _MARK, tr("A favorite") if row.is_favorite else tr("Make it a favorite (Ctrl+D)")
    )
    return item
