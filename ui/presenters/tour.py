"""The tour of the window: five stops, once after the sample archive, and on request."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtWidgets import QWidget

from app.storage.tables.settings import Settings
from ui.presenters.presenter import Presenter
from ui.views.tour import TourCard

_DONE = "tour_done"


@dataclass(frozen=True, slots=True)
class TourStop:
    """A stop: `show` prepares the window and returns the part that it is about."""

    title: str
    text: str
    show: Callable[[], QWidget]


class TourPresenter(Presenter):
    """Shows the stops one after another; `leave` puts the window back at the end."""

    _settings: Settings
    _window: QWidget
    _stops: Sequence[TourStop]
    _leave: Callable[[], object]

    def _set_up(self) -> None:
        self._card: TourCard | None = None
        self._at = 0

    def start(self) -> None:
        """Show the first stop, unless the tour was shown before."""
        if not self._settings.flag(_DONE):
            self.show()

    def show(self) -> None:
        """Show the first stop."""
        self._end()
        self._bridge.save(lambda: self._settings.set(_DONE, True))
        self._card = TourCard(self._window)
        self._card.next_requested.connect(self._on_next_requested)
        self._card.skip_requested.connect(self._end)
        self._at = 0
        self._show()

    def _show(self) -> None:
        assert self._card is not None
        stop = self._stops[self._at]
        part = stop.show()
        self._card.show_stop(part, stop.title, stop.text, self._at + 1, len(self._stops))

    def _on_next_requested(self) -> None:
        self._at += 1
        if self._at < len(self._stops):
            self._show()
        else:
            self._end()

    def _end(self) -> None:
        if self._card is not None:
            self._card.end()
            self._card = None
            self._leave()
