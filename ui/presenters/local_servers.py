"""Model servers on this computer, offered on the welcome page while no model is chosen."""

from collections.abc import Callable

from PySide6.QtCore import QTimer

from app.chat.exchange_loop import ExchangeLoop
from app.chat.models import ModelDirectory
from app.domain.translation import tr, trn
from app.providers.gallery import title_of
from app.storage.tables.settings import Settings
from ui.presenters.presenter import Presenter
from ui.views.welcome import Welcome

_AFTER_MS = 1_500  # the window comes first


class LocalServersPresenter(Presenter):
    """Looks for servers once the welcome page is shown; `connect` connects to one."""

    _models: ModelDirectory
    _network: ExchangeLoop
    _settings: Settings
    _welcome: Welcome
    _connect: Callable[[str], object]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._found = ""
        self._pause = QTimer(self._welcome, singleShot=True, interval=_AFTER_MS)
        self._pause.timeout.connect(self.look)
        self._welcome.shown.connect(self._pause.start)
        self._welcome.server_requested.connect(lambda: self._connect(self._found))

    def look(self) -> None:
        """Look for servers, unless a model is chosen or the page is gone."""
        if self._welcome.isVisible() and self._settings.text("default_model") == "recall:":
            self._bridge.start("welcome servers", self._look())
        else:
            self._welcome.offer_server("")

    async def _look(self) -> None:
        servers = await self._bridge.wait(self._network.call(self._models.local_servers))
        server = next((each for each in servers if each.models), None)
        self._found = server.name if server is not None else ""
        text = ""
        if server is not None:
            count = trn("{count} model", "{count} models", len(server.models))
            text = tr("{title_of} is running on this computer with {count}. Use it").format(
                title_of=title_of(server.name), count=count
            )
        self._welcome.offer_server(text)
