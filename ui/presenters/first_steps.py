"""First steps: what the welcome page offers, and the tour of the window."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QLocale, QTimer
from PySide6.QtWidgets import QWidget

from app.chat.exchange_loop import ExchangeLoop
from app.chat.models import ModelDirectory
from app.domain.translation import format_day, format_size, tr, trn
from app.domain.turns import RECALL_MODEL
from app.providers.configuration import title_of
from app.storage.tables.settings import Settings
from app.transfer.found_exports import FoundExport
from ui.presenters.presenter import Presenter
from ui.views.welcome import TourCard, Welcome

_EXPORTS_AFTER_MS, _SERVERS_AFTER_MS = 800, 1_500  # the window comes first
_DONE = "tour_done"


class WelcomePresenter(Presenter):
    """Looks once the page is shown; nothing is imported or connected unasked.

    `find_exports` returns exports, it blocks; `import_files` imports files, `connect` connects to a server.
    """

    _models: ModelDirectory
    _network: ExchangeLoop
    _settings: Settings
    _find_exports: Callable[[], Sequence[FoundExport]]
    _welcome: Welcome
    _import_files: Callable[[Sequence[Path]], object]
    _connect: Callable[[str], object]

    def _set_up(self) -> None:
        self._exports: list[Path] = []
        self._server = ""
        for after_ms, look in (
            (_EXPORTS_AFTER_MS, self.look_for_exports),
            (_SERVERS_AFTER_MS, self.look_for_servers),
        ):
            pause = QTimer(self._welcome, singleShot=True, interval=after_ms)
            pause.timeout.connect(look)
            self._welcome.shown.connect(pause.start)
        self._welcome.shown.connect(self._show_setup)
        self._bridge.subscribe(lambda _: self._show_setup(), "default_model")
        self._bridge.subscribe(lambda _: self.look_for_servers(), "default_model")
        self._welcome.found_requested.connect(lambda: self._import_files(self._exports))
        self._welcome.server_requested.connect(lambda: self._connect(self._server))

    def look_for_exports(self) -> None:
        """Look for exports, unless the page is gone or greets somebody who has conversations."""
        if self._welcome.isVisible() and self._welcome.is_newcomer:
            self._bridge.load("found exports", self._find_exports, self._offer_exports)

    def _offer_exports(self, found: Sequence[FoundExport]) -> None:
        self._exports = [each.path for each in found]
        programs = QLocale().createSeparatedList([each.program for each in found])
        files = "\n".join(
            f"{each.path.name}, {format_day(each.modified_at)}, {format_size(each.size_bytes)}"
            for each in found
        )
        self._welcome.offer_exports(
            tr("Import {programs} from Downloads").format(programs=programs) if found else "", files
        )

    @property
    def _has_model(self) -> bool:
        return self._settings.text("default_model") != RECALL_MODEL

    def _show_setup(self) -> None:
        self._welcome.show_setup(has_model=self._has_model)

    def look_for_servers(self) -> None:
        """Look for servers, unless a model is chosen or the page is gone."""
        if self._welcome.isVisible() and not self._has_model:
            self._bridge.start("welcome servers", self._look_for_servers())
        else:
            self._welcome.offer_server("")

    async def _look_for_servers(self) -> None:
        servers = await self._bridge.wait(self._network.call(self._models.local_servers))
        self._server = text = ""
        if (server := next((each for each in servers if each.models), None)) is not None:
            self._server = server.name
            text = tr("Use {title_of}, running on this computer with {count}").format(
                title_of=title_of(server.name),
                count=trn("{count} model", "{count} models", len(server.models)),
            )
        self._welcome.offer_server(text)


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
