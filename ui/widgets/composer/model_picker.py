"""The model picker: a button with the name of a model, and a list to choose another one from."""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QHideEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QVBoxLayout, QWidget

from app.domain.translation import tr
from ui.widgets.controls import PushButton, button, filled, row_of, with_key
from ui.widgets.model_rows import ModelGroup, model_name

if TYPE_CHECKING:
    from ui.widgets.model_list import ModelList

_SIZE, _EDGE_PX = QSize(460, 480), 8
_LEAST_HEIGHT_PX = 200  # models that come in later rarely move the rows
_LEAST_CHARS, _MOST_CHARS = 8, 30
_ARROW_PX, _PADDING_LINES = 24, 1.3  # right of the text, and around it in heights of a line


class ModelPicker(PushButton):
    """A button that opens a searchable list below or above itself, always inside the screen.

    Hidden until a model is shown. The list is as high as its rows, within limits, and never shrinks while it is open.

    Attributes:
        model: PROVIDER:MODEL whose name is shown.

    Signals:
        opening: Before the list is shown.
        chosen: PROVIDER:MODEL, unless `open` was told what takes it. favorite_toggled: PROVIDER:MODEL.
        provider_requested: "Add provider" was chosen.
    """

    opening = Signal()
    chosen = Signal(str)
    favorite_toggled = Signal(str)
    provider_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model, self._name, self._key = "", "", ""
        self._take: Callable[[str], object] = self.chosen.emit
        self.setAccessibleName(tr("Model"))
        self.setProperty("kind", "choice")
        self.setAutoDefault(False)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.clicked.connect(self._on_clicked)
        self.hide()

    def show_model(self, model: str) -> None:
        self.model, self._name = model, model_name(model)
        self.setAccessibleDescription(self._name)
        self.show_key(self._key)
        self._fit_text()
        self.updateGeometry()
        self.show()

    def show_key(self, key: str) -> None:
        """Show the key that opens the list."""
        self._key = key
        self.setToolTip(with_key(tr("{model}\nChoose another model").format(model=self.model), key))

    def show_groups(self, groups: Iterable[ModelGroup]) -> None:
        """Show the models to choose from; what is selected in an open list stays so."""
        self.list.show_groups(groups, "" if self.is_open else self.model)
        if self.is_open:
            self._place_popup()

    @cached_property
    def _popup(self) -> "_ModelPopup":
        """What is opened, built when it is first needed: the first frame has none."""
        popup = _ModelPopup(self)
        popup.list.chosen.connect(self._on_chosen)
        popup.list.marked.connect(self.favorite_toggled)
        popup.add.clicked.connect(self._on_add_clicked)
        return popup

    @property
    def list(self) -> "ModelList":
        return self._popup.list

    @property
    def is_open(self) -> bool:
        return self._popup.isVisible()

    def open(self, take: Callable[[str], object] | None = None) -> None:
        """Show the list, with the focus in its search box; `take` gets the choice instead of `chosen`."""
        if self.is_open or not self.isEnabled():
            return
        self._take = take or self.chosen.emit
        self.list.search.clear()
        self.opening.emit()
        self._place_popup()
        self._popup.show()
        self.list.search.setFocus()
        self.list.reveal()

    def _place_popup(self) -> None:
        """Make room for all rows where that fits; an open list never shrinks."""
        place = QRect(self.mapToGlobal(QPoint(0, 0)), self.size())
        height = min(max(self._popup.fitting_height(), _LEAST_HEIGHT_PX), _SIZE.height())
        size = QSize(_SIZE.width(), max(height, self._popup.height() if self.is_open else 0))
        screen = self.screen().availableGeometry()
        self._popup.setGeometry(list_place(place, screen, size, from_left=True))

    def _on_clicked(self) -> None:
        self.open()

    def _on_chosen(self, model: str) -> None:
        self._popup.hide()
        self._take(model)

    def _on_add_clicked(self) -> None:
        self._popup.hide()
        self.provider_requested.emit()

    def _fit_text(self) -> None:
        self.ensurePolished()  # the style sheet's font
        room = max(0, self.width() - self._padding_px)
        self.setText(self.fontMetrics().elidedText(self._name, Qt.TextElideMode.ElideRight, room))

    def _width_px(self, chars: int) -> int:
        self.ensurePolished()
        metrics = self.fontMetrics()
        wanted = metrics.horizontalAdvance(self._name) + 1
        return self._padding_px + min(wanted, chars * metrics.averageCharWidth())

    @property
    def _padding_px(self) -> int:
        return _ARROW_PX + round(_PADDING_LINES * self.fontMetrics().height())

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Cut the name where it has no room."""
        super().resizeEvent(event)
        self._fit_text()

    def sizeHint(self) -> QSize:
        """Be as wide as the name, within limits."""
        return QSize(self._width_px(_MOST_CHARS), super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        """Show at least a few characters of the name."""
        return QSize(self._width_px(_LEAST_CHARS), super().minimumSizeHint().height())


class _ModelPopup(QFrame):
    """The list and what stands below it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        from ui.widgets.model_list import ModelList

        self.setProperty("panel", "popup")
        self.setAccessibleName(tr("Choose a model"))
        self._picker = parent
        self.list = ModelList(self, one_click=True)
        self.add = button(self, tr("Add provider\u2026"), kind="quiet")
        foot = row_of(self.add, None)
        filled(QVBoxLayout(self), (self.list, 1), foot, margins=(8, 8, 8, 8), spacing=6)

    def fitting_height(self) -> int:
        frame = self.height() - self.contentsRect().height()
        return self.list.fitting_height() + self.add.sizeHint().height() + 2 * 8 + 6 + frame

    # Qt overrides

    def hideEvent(self, event: QHideEvent) -> None:
        """Give the focus back to where it is in the window, which may have changed meanwhile."""
        super().hideEvent(event)
        (self._picker.window().focusWidget() or self._picker).setFocus()


def list_place(
    button: QRect, screen: QRect, size: QSize = _SIZE, *, from_left: bool = False
) -> QRect:
    """Return where a list of a size opens, inside the screen: above if it fits, else where there is more room.

    Its right edge is that of its button, or `from_left` its left edge.
    """
    room = screen.adjusted(_EDGE_PX, _EDGE_PX, -_EDGE_PX, -_EDGE_PX)
    below, above = room.bottom() - button.bottom(), button.top() - room.top()
    opens_below = above < min(size.height(), below)
    width = min(size.width(), room.width())
    height = min(size.height(), below if opens_below else above)
    wanted = button.left() if from_left else button.right() - width + 1
    left = max(room.left(), min(wanted, room.right() - width + 1))
    top = button.bottom() + 1 if opens_below else button.top() - height
    return QRect(left, top, width, height)
