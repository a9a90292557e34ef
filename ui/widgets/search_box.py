"""Boxes to search with: everything, with the filters of the query as chips, and inside the open conversation."""

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from app.domain.translation import format_number, tr
from ui.widgets.controls import button, column_in, filled, line_edit, tool_button, with_key
from ui.widgets.plain_label import PlainLabel
from ui.widgets.transcript.layout import FlowRow

Span = tuple[int, int]
FindFilters = Callable[[str], Sequence[Span]]
_GAP_PX = 4
_CROSS = "\N{MULTIPLICATION SIGN}"
_DEBOUNCE_MS = 120


class SearchBox(QWidget):
    """A line in which finished filters become chips; the query is the chips and the line.

    `find_filters` returns the (start, end) of each valid filter in a text. A filter is finished when a
    space follows it, when Enter is pressed, and when the line loses the focus.

    Signals:
        changed: The query has changed.
        filters_requested: Show what there is to filter by.
        entered: Enter was pressed. down_pressed: Go to the list.

    Attributes:
        line: What Tab stops at besides the chips. filter_button: Stands beside the box.
    """

    changed = Signal()
    filters_requested = Signal()
    entered = Signal()
    down_pressed = Signal()

    def __init__(self, find_filters: FindFilters, parent: QWidget) -> None:
        super().__init__(parent)
        self._find_filters = find_filters
        self._filters: list[str] = []
        self._is_taking = False
        name = tr("Search everything")
        self.line = line_edit(self, "", name=name, clearable=True)
        self.show_key("")
        self.line.installEventFilter(self)
        self.line.textChanged.connect(self._on_text_changed)
        tip = tr("Filter by title, tag, date, model or source")
        self.filter_button = button(parent, tr("Filter"), self.filters_requested, tip=tip)
        self._chips = _ChipRow(self)
        self._chips.hide()
        column_in(self, self.line, self._chips, margins=(0, 0, 0, 0), spacing=_GAP_PX)

    @property
    def query(self) -> str:
        """The query: the filters of the chips, then what is in the line."""
        return " ".join(filter(None, (*self._filters, self.line.text())))

    @property
    def filters(self) -> tuple[str, ...]:
        """The filters of the chips, as they are typed."""
        return tuple(self._filters)

    def show_key(self, key: str) -> None:
        self.line.setPlaceholderText(with_key(tr("Search everything\u2026"), key))

    def show_query(self, query: str) -> None:
        """Replace the query; its filters become chips. Emits `changed` once if it is another one."""
        before = self.query
        self._filters.clear()
        self._show_line(query)
        self._take_filters(finished_only=False)
        self._show_chips()
        if self.query != before:
            self.changed.emit()

    def add_filter(self, text: str, *, replaces: bool = False) -> None:
        """Add a filter as a chip, or put it in place of those with its key."""
        if text not in self._filters:
            if replaces:
                key = text.partition(":")[0]
                self._filters = [each for each in self._filters if each.partition(":")[0] != key]
            self._filters.append(text)
            self._show_chips()
            self.changed.emit()

    def remove_filter(self, text: str) -> None:
        self._filters.remove(text)
        self._show_chips()
        self.line.setFocus()
        self.changed.emit()

    def begin_filter(self, key: str) -> None:
        """Begin to type a filter in the line."""
        words = self.line.text().rstrip()
        self.line.setText(f"{words} {key}:" if words else f"{key}:")
        self.line.setFocus()

    def clear(self) -> None:
        self.show_query("")

    def _show_line(self, text: str) -> None:
        self._is_taking = True
        self.line.setText(text)
        self._is_taking = False

    def _on_text_changed(self, _text: str) -> None:
        if not self._is_taking:
            self._take_filters(finished_only=True)
            self.changed.emit()

    def _take_filters(self, *, finished_only: bool) -> None:
        """Move valid filters from the line to chips; the cursor stays between the same words."""
        text, cursor = self.line.text(), self.line.cursorPosition()
        spans = [
            (start, end)
            for start, end in self._find_filters(text)
            if not finished_only or text[end : end + 1].isspace()
        ]
        for start, end in reversed(spans):
            after = end + 1 if text[end : end + 1].isspace() else end
            cursor -= max(0, min(cursor, after) - start)
            text = text[:start] + text[after:]
        if spans:
            whole = self.line.text()
            taken = (whole[start:end] for start, end in spans)
            self._filters += [each for each in taken if each not in self._filters]
            self._show_line(text)
            self.line.setCursorPosition(cursor)
            self._show_chips()

    def _show_chips(self) -> None:
        self._chips.show_filters(self._filters, self.remove_filter)

    def _on_finished(self) -> None:
        """Take all filters; the query may be the same with its filters in front."""
        before = self.query
        self._take_filters(finished_only=False)
        if self.query != before:
            self.changed.emit()

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle keys of the line: Enter, Down, Esc to clear, Backspace at its start for the last chip."""
        if event.type() == QEvent.Type.FocusOut:
            self._on_finished()
        if watched is not self.line or not isinstance(event, QKeyEvent):
            return super().eventFilter(watched, event)
        empties = event.key() == Qt.Key.Key_Escape and bool(self.query)
        if event.type() == QEvent.Type.ShortcutOverride and empties:
            event.accept()
            return True
        if event.type() != QEvent.Type.KeyPress:
            return super().eventFilter(watched, event)
        if empties:
            self.clear()
        elif event.key() == Qt.Key.Key_Down:
            self.down_pressed.emit()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._on_finished()
            self.entered.emit()
        elif event.key() == Qt.Key.Key_Backspace and self._is_at_start() and self._filters:
            self.remove_filter(self._filters[-1])
        else:
            return super().eventFilter(watched, event)
        return True

    def _is_at_start(self) -> bool:
        return self.line.cursorPosition() == 0 and not self.line.hasSelectedText()


class _ChipRow(FlowRow):
    """The chips of the filters, in as many lines as they need."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, gap=_GAP_PX)

    def show_filters(self, filters: Sequence[str], remove: Callable[[str], None]) -> None:
        """Show a chip for each filter; a click calls `remove` with it."""
        for chip in self.members:
            chip.hide()
            chip.deleteLater()
        self.members.clear()
        for text in filters:
            key, _, value = text.replace('"', "").partition(":")
            label = value if key.lower() == "is" else f"{key}: {value}"
            chip = tool_button(
                self,
                f"{label}  {_CROSS}",
                partial(remove, text),
                name=tr("Remove the filter {name}").format(name=label),
            )
            chip.setProperty("kind", "chip")
            self.add(chip)
        self.setVisible(bool(filters))
        self._fit()

    def _fit(self) -> None:
        self.setFixedHeight(max(1, self.height_for(max(1, self.width()))))

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the chips for the new width."""
        super().resizeEvent(event)
        self._fit()


class FindBar(QFrame):
    """A text box, the number of matches, and steps between them; hidden at first.

    Signals:
        words_changed: What to find, a moment after it changed.
        stepped: Go to the next (1) or previous (-1) match.
        closed: The bar was closed.
    """

    words_changed = Signal(str)
    stepped = Signal(int)
    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", "side")
        self.box = line_edit(self, tr("Find in this conversation"))
        self.box.installEventFilter(self)
        self.count = PlainLabel(self, tone="muted")
        buttons = (
            tool_button(
                self,
                "",
                lambda: self.stepped.emit(-1),
                icon="chevron-up",
                name=tr("Previous match"),
            ),
            tool_button(
                self, "", lambda: self.stepped.emit(1), icon="chevron-down", name=tr("Next match")
            ),
            tool_button(self, "", self.dismiss, icon="x", name=tr("Close the search")),
        )
        filled(QHBoxLayout(self), (self.box, 1), self.count, *buttons, margins=(16, 6, 16, 6))
        self._pause = QTimer(self, singleShot=True, interval=_DEBOUNCE_MS)
        self._pause.timeout.connect(lambda: self.words_changed.emit(self.box.text()))
        self.box.textChanged.connect(lambda _: self._pause.start())
        self.hide()

    def begin(self) -> None:
        """Show the bar with its text selected."""
        self.show()
        self.box.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.box.selectAll()
        if self.box.text():
            self._pause.start()

    def dismiss(self) -> None:
        self._pause.stop()
        if self.isVisible():
            self.hide()
            self.closed.emit()

    def show_place(self, current: int, total: int) -> None:
        """Show the number of the current match, from 1, and how many there are."""
        if not self.box.text():
            self.count.setText("")
        else:
            self.count.setText(
                tr("{current} of {total}").format(
                    current=format_number(current), total=format_number(total)
                )
                if total
                else tr("not found")
            )

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Step with Enter and Shift+Enter, close with Esc."""
        if watched is not self.box or not isinstance(event, QKeyEvent):
            return super().eventFilter(watched, event)
        closes = event.key() == Qt.Key.Key_Escape
        if event.type() == QEvent.Type.ShortcutOverride and closes:
            event.accept()
            return True
        if event.type() != QEvent.Type.KeyPress:
            return super().eventFilter(watched, event)
        if closes:
            self.dismiss()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self.stepped.emit(-1 if back else 1)
        else:
            return super().eventFilter(watched, event)
        return True
