"""Constructors of controls and box layouts: what several screens set up the same way, in one call."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from PySide6.QtCore import QAbstractItemModel, QEvent, QSize, Qt, SignalInstance
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemDelegate,
    QBoxLayout,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLayout,
    QLineEdit,
    QListView,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)  # fmt: skip

from app.domain.translation import tr
from ui.icons import FITTED, Ink, fit_icon, set_icon
from ui.icons import icon as themed_icon
from ui.widgets.choice_box import SelectBox
from ui.widgets.plain_label import PlainLabel, plain_label

Part = QWidget | QLayout | tuple[QWidget, int] | int | None
Button = TypeVar("Button", bound=QAbstractButton)
Slot = Callable[..., object] | SignalInstance
_ARROW_LINES = 1.45  # room for the arrow, in heights of a line


# -- controls


class _EnterPresses:
    """Makes Enter press a button that has the focus, as Space does; Qt does so in some desktops only."""

    # Qt overrides

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not event.isAutoRepeat():
            self.animateClick()  # type: ignore[attr-defined]
        else:
            super().keyPressEvent(event)  # type: ignore[misc]

    def changeEvent(self, event: QEvent) -> None:
        """Keep the icon in the size of the text."""
        super().changeEvent(event)  # type: ignore[misc]
        if event.type() is QEvent.Type.StyleChange and self.property(FITTED):  # type: ignore[attr-defined]
            fit_icon(self)  # type: ignore[arg-type]


class PushButton(_EnterPresses, QPushButton):
    """A push button that Enter presses."""


class ToolButton(_EnterPresses, QToolButton):
    """A tool button that Enter presses."""


def button(
    parent: QWidget,
    text: str,
    on_click: Slot | None = None,
    *,
    kind: str = "",
    tip: str = "",
    name: str = "",
) -> QPushButton:
    """Return a button that Enter in another field does not press; `kind` is the style sheet's."""
    made = PushButton(text, parent)
    made.setAutoDefault(False)
    return _set_up(made, on_click, kind, tip, name)


def tool_button(
    parent: QWidget,
    text: str,
    on_click: Slot | None = None,
    *,
    icon: str = "",
    tip: str = "",
    name: str = "",
) -> QToolButton:
    """Return a small button; `name`, the tip unless one is given, is for screen readers.

    `icon` is one of `resources/icons/lucide`.
    """
    made = ToolButton(parent)
    made.setText(text)
    if icon:
        set_icon(made, icon)
    return _set_up(made, on_click, "", tip or name, name)


def action_button(parent: QWidget, text: str, tip: str, name: str = "") -> QToolButton:
    """Return a flat button of a message, which Tab passes over."""
    made = ToolButton(parent)
    made.setText(text)
    made.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
    return _set_up(made, None, "action", tip, name)


def line_edit(
    parent: QWidget, label: str, *, text: str = "", name: str = "", clearable: bool = False
) -> QLineEdit:
    """Return a line edit with a placeholder, which is also its accessible name unless given."""
    line = QLineEdit(text, parent, placeholderText=label)
    line.setAccessibleName(name or label)
    if clearable:
        make_clearable(line)
    return line


def make_clearable(line: QLineEdit) -> None:
    """Give a line edit a button that clears it."""
    line.setClearButtonEnabled(True)
    if (clear := line.findChild(QAction, "_q_qlineeditclearaction")) is not None:
        clear.setIcon(themed_icon("x", Ink.PlaceholderText))


def key_edit(parent: QWidget, placeholder: str, name: str) -> QLineEdit:
    """Return a line edit that does not show what is typed."""
    line = line_edit(parent, placeholder, name=name)
    line.setEchoMode(QLineEdit.EchoMode.Password)
    return line


def combo_box(
    parent: QWidget,
    name: str,
    entries: Iterable[tuple[str, Any]] = (),
    *,
    on_activated: Slot | None = None,
    min_chars: int = 0,
    editable: bool = False,
) -> QComboBox:
    """Return a box of (text, data); with `min_chars` its width is that, not its longest entry's."""
    box = SelectBox(parent)
    box.setAccessibleName(name)
    for text, value in entries:
        box.addItem(text, value)
    if min_chars:
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setMinimumContentsLength(min_chars)
    if editable:
        box.setEditable(True)
        box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
    if on_activated is not None:
        box.activated.connect(on_activated)
    return box


def text_edit(parent: QWidget, name: str, height_px: int | None = None) -> QPlainTextEdit:
    """Return a text edit that Tab leaves."""
    edit = QPlainTextEdit(parent, tabChangesFocus=True)
    edit.setAccessibleName(name)
    if height_px is not None:
        edit.setFixedHeight(height_px)
    return edit


def progress_bar(parent: QWidget, name: str) -> QProgressBar:
    """Return a bar without text."""
    bar = QProgressBar(parent, textVisible=False)
    bar.setAccessibleName(name)
    return bar


def list_view(
    parent: QWidget, model: QAbstractItemModel, delegate: QAbstractItemDelegate, name: str
) -> QListView:
    """Return a list whose rows a delegate draws; it scrolls by pixels and never sideways."""
    view = QListView(parent)
    set_up_list_view(view, model, delegate, name)
    return view


def set_up_list_view(
    view: QListView, model: QAbstractItemModel, delegate: QAbstractItemDelegate, name: str
) -> None:
    view.setModel(model)
    view.setItemDelegate(delegate)
    view.setAccessibleName(name)
    view.setMouseTracking(True)
    view.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
    view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)


def scroll_area(parent: QWidget, content: QWidget, *, framed: bool = True) -> QScrollArea:
    """Return a view of `content` that scrolls it up and down only, and is as wide."""
    area = QScrollArea(parent, widgetResizable=True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(content)
    if not framed:
        area.setFrameShape(QFrame.Shape.NoFrame)
    return area


def closing_buttons(dialog: QDialog, *actions: str) -> tuple[QDialogButtonBox, list[QPushButton]]:
    """Return a row with a button for each action and Close, and those of the actions.

    Enter in another field presses none.
    """
    box, role = QDialogButtonBox(dialog), QDialogButtonBox.ButtonRole
    made = [button(dialog, each) for each in actions]
    for each in made:
        box.addButton(each, role.ActionRole)
    box.addButton(button(dialog, tr("Close")), role.RejectRole)
    box.rejected.connect(dialog.reject)
    return box, made


def saving_buttons(dialog: QDialog, save: Slot) -> tuple[QDialogButtonBox, QPushButton]:
    """Return a row with Save, the default, and Cancel, and the first of them."""
    box = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, dialog)
    made = button(dialog, tr("Save"), kind="primary")
    box.addButton(made, QDialogButtonBox.ButtonRole.AcceptRole)
    made.setDefault(True)
    box.accepted.connect(save)
    box.rejected.connect(dialog.reject)
    return box, made


def with_key(text: str, key: str) -> str:
    """Return a tip or an invitation with the key that does the same, "" for none."""
    return f"{text} ({key})" if key else text


def _set_up(made: Button, on_click: Slot | None, kind: str, tip: str, name: str) -> Button:
    if kind:
        made.setProperty("kind", kind)
    if tip:
        made.setToolTip(tip)
    if name:
        made.setAccessibleName(name)
    if on_click is not None:
        made.clicked.connect(on_click)
    return made


# -- layouts


def clear(layout: QLayout) -> None:
    """Remove what is in a layout; it is hidden at once and deleted soon."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()


def refill(layout: QBoxLayout, parts: Iterable[Part], empty: str = "") -> None:
    """Replace what is in a layout; without parts the text `empty` is shown, if there is one."""
    clear(layout)
    shown = tuple(parts)
    parent = layout.parentWidget()
    if not shown and empty and parent is not None:
        shown = (plain_label(parent, "muted", empty),)
    filled(layout, *shown)


def filled(
    layout: QBoxLayout,
    *parts: Part,
    margins: tuple[int, int, int, int] | None = None,
    spacing: int | None = None,
) -> QBoxLayout:
    """Return a layout after adding parts: widgets, layouts, (widget, stretch), pixels of space.

    None is a stretch. `margins` (left, top, right, bottom) and `spacing` are in pixels.
    """
    if margins is not None:
        layout.setContentsMargins(*margins)
    if spacing is not None:
        layout.setSpacing(spacing)
    for part in parts:
        if part is None:
            layout.addStretch(1)
        elif isinstance(part, int):
            layout.addSpacing(part)
        elif isinstance(part, QLayout):
            layout.addLayout(part)
        elif isinstance(part, tuple):
            layout.addWidget(*part)
        else:
            layout.addWidget(part)
    return layout


def row_of(*parts: Part) -> QBoxLayout:
    return filled(QHBoxLayout(), *parts)


def stack_if_narrow(row: QBoxLayout, width_px: int) -> None:
    """Lay a row of widgets out below each other where it is wider than its place."""
    widgets = [item.widget() for number in range(row.count()) if (item := row.itemAt(number))]
    hints = [each.sizeHint().width() for each in widgets if each and not each.isHidden()]
    needed = sum(hints) + row.spacing() * (len(hints) - 1)
    way = QBoxLayout.Direction
    row.setDirection(way.TopToBottom if needed > width_px else way.LeftToRight)


def form_of(parent: QWidget, *rows: tuple[str, QWidget | QLayout]) -> QFormLayout:
    """Return a form of labels and fields; a field has its label as its name for screen readers."""
    form = QFormLayout(fieldGrowthPolicy=QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)  # a narrow window cuts no field
    for text, field in rows:
        label = PlainLabel(text, parent)
        if isinstance(field, QWidget):
            field.setAccessibleName(text)
            label.setBuddy(field)
            if not isinstance(field, QPlainTextEdit):
                label.setMinimumHeight(field.sizeHint().height())  # else it is aligned to the top
        form.addRow(label, field)
    return form


def labels_of(form: QFormLayout) -> list[QWidget]:
    items = (form.itemAt(row, QFormLayout.ItemRole.LabelRole) for row in range(form.rowCount()))
    return [label for item in items if item and (label := item.widget()) is not None]


def column_in(
    parent: QWidget,
    *parts: Part,
    margins: tuple[int, int, int, int] = (16, 16, 16, 12),
    spacing: int = 10,
) -> QBoxLayout:
    """Lay parts out below each other in a widget; by default with the margins of a dialog."""
    return filled(QVBoxLayout(parent), *parts, margins=margins, spacing=spacing)


class CompactButton(PushButton):
    """A button with an arrow, unless it is compact; a subclass shows itself in `show_text`."""

    def __init__(self, name: str, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.is_compact = False
        self.setAutoDefault(False)
        self.setProperty("kind", "choice")
        self.setAccessibleName(name)

    def set_compact(self, is_compact: bool) -> None:
        """Say less, where there is little room."""
        if is_compact != self.is_compact:
            self.is_compact = is_compact
            # A property would have to be polished, and style() takes 7 ms the first time.
            bare = f"{type(self).__name__} {{ image: none; }}"  # not what it opens
            self.setStyleSheet(bare if is_compact else "")
            self.show_text()

    def show_text(self) -> None:
        """Show the text, which is shorter while it `is_compact`."""

    # Qt overrides

    def sizeHint(self) -> QSize:
        """Leave room for the arrow, which a compact one has not."""
        if self.is_compact:
            return super().sizeHint()
        return super().sizeHint() + QSize(round(_ARROW_LINES * self.fontMetrics().height()), 0)

    def minimumSizeHint(self) -> QSize:
        """Never cut the text."""
        return self.sizeHint()
