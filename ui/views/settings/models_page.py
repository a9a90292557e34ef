"""The models page of the settings: a gallery of providers, and the form of the one that is open."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QGridLayout, QStackedWidget, QVBoxLayout, QWidget

from app.domain.translation import tr
from ui.views.settings.provider_form import FormContent, ProviderForm
from ui.widgets.controls import PushButton, column_in, filled
from ui.widgets.on_screen import stop_before, tab_through
from ui.widgets.plain_label import PlainLabel

_COLUMNS = 2
_MARGINS = (16, 8, 16, 16)
_ABOUT = tr(
    "Choose where your models come from. Without a provider, nothing leaves this computer; "
    "messages to one are sent to its address, together with what recall adds from your "
    "history."
)


@dataclass(frozen=True, slots=True)
class TileContent:
    """A provider in the gallery; `name` is "" for a server that is still to be named."""

    name: str
    title: str
    state: str
    is_set_up: bool = False


class ModelsPage(QStackedWidget):
    """The gallery, or the form of one provider.

    A tile keeps its place: what is found out later changes its second line only.

    Attributes:
        form: The form. tiles: The tiles of the gallery by name.

    Signals:
        shown: The gallery became visible; what it shows may be outdated.
        opened: The name of a provider whose form is wanted, "" for another server.
        connect_requested: The name of a server on this computer that is to be tested and saved.
    """

    shown = Signal()
    opened = Signal(str)
    connect_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.tiles: dict[str, ProviderTile] = {}
        self._gallery = QWidget(self)
        about = PlainLabel(_ABOUT, self._gallery, wordWrap=True, tone="small")
        self.default = PlainLabel(self._gallery, wordWrap=True)
        self._grid = QGridLayout()
        self._grid.setSpacing(10)
        column_in(self._gallery, about, self.default, self._grid, None, margins=_MARGINS)
        self.form = ProviderForm(self)
        self.form.closed.connect(self.show_gallery)
        self.currentChanged.connect(self.updateGeometry)
        self.addWidget(self._gallery)
        self.addWidget(self.form)

    def show_gallery(self) -> None:
        self.setCurrentWidget(self._gallery)
        if (tile := self.tiles.get(self.form.name)) is not None:
            tile.setFocus()
        self.shown.emit()

    def show_form(self, content: FormContent) -> None:
        self.setCurrentWidget(self.form)  # only a field that is shown takes the focus
        self.form.show_content(content)

    @property
    def _shown(self) -> QWidget:
        return self.currentWidget() or self._gallery

    @property
    def is_form_open(self) -> bool:
        return self.currentWidget() is self.form

    def show_tiles(self, tiles: Sequence[TileContent]) -> None:
        before = stop_before(next(iter(self.tiles.values()), self.form.back))
        for name in set(self.tiles) - {each.name for each in tiles}:
            self.tiles.pop(name).deleteLater()
        is_new = any(each.name not in self.tiles for each in tiles)
        for place, content in enumerate(tiles):
            tile = self.tiles.get(content.name)
            if tile is None:
                tile = self.tiles[content.name] = ProviderTile(self._gallery)
                tile.clicked.connect(lambda _=False, name=content.name: self.opened.emit(name))
            tile.show_content(content)
            self._grid.addWidget(tile, *divmod(place, _COLUMNS))
        if is_new:
            shown = [self.tiles[each.name] for each in tiles]
            tab_through((before, *shown, self.form.back))

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        """Report it, so that outdated content is refreshed."""
        super().showEvent(event)
        if not self.is_form_open:
            self.shown.emit()

    def hideEvent(self, event: QHideEvent) -> None:
        """Begin with the gallery the next time."""
        super().hideEvent(event)
        if not event.spontaneous():
            self.setCurrentWidget(self._gallery)

    def sizeHint(self) -> QSize:
        """Be as high as the part that is shown, not as the higher one."""
        return self._shown.sizeHint()

    def minimumSizeHint(self) -> QSize:
        return self._shown.minimumSizeHint()

    def heightForWidth(self, width: int) -> int:
        """As `sizeHint`."""
        return self._shown.heightForWidth(width)


class ProviderTile(PushButton):
    """A button with a title and a line about the provider's state."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("kind", "tile")
        self.setAutoDefault(False)
        self._title = PlainLabel(self, tone="heading")
        self.state = PlainLabel(self, tone="small")
        for label in (self._title, self.state):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        filled(QVBoxLayout(self), self._title, self.state, margins=(14, 10, 14, 10), spacing=2)

    def show_content(self, content: TileContent) -> None:
        self._title.setText(content.title)
        self.state.setText(content.state)
        self.state.setProperty("tone", "success" if content.is_set_up else "small")
        self.state.style().polish(self.state)
        self.setAccessibleName(f"{content.title}: {content.state}")
