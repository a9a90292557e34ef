"""Boxes to choose from and for numbers, which the wheel does not change by accident."""

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPaintEvent, QShowEvent, QWheelEvent
from PySide6.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QFrame,
    QLabel,
    QSlider,
    QSpinBox,
    QStyleOptionComboBox,
    QStylePainter,
    QWidget,
)

from ui.theme import current_theme
from ui.widgets.plain_label import PlainLabel

_MOST_ROWS = 14  # more scroll
_MAX_CHARS = 28
_FRAME_LINES = 3.2  # the frame and the arrow, in multiples of the height of a line
_ROOM_PX = 12  # of the list's frame and padding
_MARGIN_PX = 6


class SelectBox(QComboBox):
    """A combo box that the wheel leaves alone and whose list shows all its rows.

    On Linux Qt gives screen readers the value as a combo box's name; its label, which may be hidden,
    names it.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._label: PlainLabel | None = None

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        """Add a label for screen readers, unless a visible one names the box."""
        super().showEvent(event)
        parent = self.parentWidget()
        if self._label is not None or parent is None or not self.accessibleName():
            return
        if all(each.buddy() is not self for each in parent.findChildren(QLabel)):
            self._label = PlainLabel(self.accessibleName(), parent)
            self._label.setBuddy(self)
            self._label.hide()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the choice as it is: the wheel scrolls what is below."""
        event.ignore()

    def showPopup(self) -> None:
        """Give the list the size of its rows.

        Qt's own height leaves out what the style sheet adds to rows.
        """
        view = self.view()
        view.setFrameShape(QFrame.Shape.StyledPanel)  # QComboBox takes it away, and the border too
        heights = [max(0, view.sizeHintForRow(number)) for number in range(self.count())]
        view.setMinimumWidth(view.sizeHintForColumn(0) + 2 * _ROOM_PX)
        frame = current_theme().ui_px // 2 + 1  # the style sheet's padding, above and below
        view.setMinimumHeight(sum(heights[:_MOST_ROWS]) + frame)
        super().showPopup()


class ChoiceBox(SelectBox):
    """A list of choices and commands.

    Attributes:
        has_choice: Whether there is more than one choice.

    Signals:
        opening: Before the list is shown. filled: It has other choices now.
        chosen: The key of a choice. command_chosen: The text of a command.
    """

    opening = Signal()
    filled = Signal()
    chosen = Signal(str)
    command_chosen = Signal(str)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.has_choice = False
        self.setAccessibleName(name)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.activated.connect(self._on_activated)

    def show_choices(
        self, labels: Mapping[str, str], chosen: str, commands: Sequence[str] = ()
    ) -> None:
        """Show choices by their key; `chosen` is among them. An open list stays open."""
        self.blockSignals(True)
        self.clear()
        for key, label in labels.items():
            self.addItem(label, key)
        if commands:
            self.insertSeparator(self.count())
            self.addItems(list(commands))
        longest = max(map(len, labels.values()), default=0)
        self.setMinimumContentsLength(min(longest, _MAX_CHARS))  # commands are longer
        self._select(chosen)
        self.blockSignals(False)
        self.has_choice = len(labels) > 1
        self.filled.emit()
        if self.view().isVisible():
            super().hidePopup()
            super().showPopup()

    def _select(self, chosen: str) -> None:
        self._chosen = chosen
        self.setCurrentIndex(self.findData(chosen))

    def _on_activated(self, number: int) -> None:
        key = self.itemData(number)
        if key is not None:
            self.chosen.emit(str(key))
            return
        self._select(self._chosen)
        self.command_chosen.emit(self.itemText(number))

    # Qt overrides

    def paintEvent(self, event: QPaintEvent) -> None:
        """Elide a choice that is wider than the box: Qt cuts it in mid-letter."""
        if not self.currentText():  # as in the first frame
            super().paintEvent(event)
            return
        from PySide6.QtWidgets import QStyle

        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        part = QStyle.SubControl.SC_ComboBoxEditField
        control = QStyle.ComplexControl.CC_ComboBox
        width = self.style().subControlRect(control, option, part, self).width()
        text = self.fontMetrics().elidedText(option.currentText, Qt.TextElideMode.ElideRight, width)
        if text == option.currentText:
            super().paintEvent(event)
            return
        option.currentText = text
        painter = QStylePainter(self)
        painter.drawComplexControl(control, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)

    def sizeHint(self) -> QSize:
        """Be as wide as the longest choice; Qt counts each letter as an X."""
        hint, metrics = super().sizeHint(), self.fontMetrics()
        labels = [self.itemText(each) for each in range(self.count()) if self.itemData(each)]
        longest = max(map(metrics.horizontalAdvance, labels), default=0)
        return QSize(
            min(hint.width(), round(longest + _FRAME_LINES * metrics.height())), hint.height()
        )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Open the list instead of choosing the next entry, which may be a command."""
        if event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self.showPopup()
        else:
            super().keyPressEvent(event)

    def showPopup(self) -> None:
        """Report that the list is about to open."""
        self.opening.emit()
        super().showPopup()


class _LeavesWheel:
    def __init__(self, *parent: Any, **properties: Any) -> None:
        super().__init__(*parent, **properties)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # type: ignore[attr-defined]
        if isinstance(self, QSpinBox | QDoubleSpinBox):
            self.lineEdit().setTextMargins(_MARGIN_PX, 0, 0, 0)

    # Qt overrides

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Change the value only with the focus."""
        if self.hasFocus():  # type: ignore[attr-defined]
            super().wheelEvent(event)  # type: ignore[misc]
        else:
            event.ignore()


class NumberBox(_LeavesWheel, QSpinBox):
    """A spin box for a whole number."""


class AmountBox(_LeavesWheel, QDoubleSpinBox):
    """A spin box for a number with decimals."""


class Slider(_LeavesWheel, QSlider):
    """A slider."""
