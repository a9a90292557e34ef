"""Opens what search found that is no conversation: manual pages, each in a dialog."""

from PySide6.QtCore import QObject

from app.bootstrap import Services
from app.domain.errors import KnownError
from ui.bridge import Bridge
from ui.errors import words_for
from ui.views.main_window import MainWindow
from ui.views.page_dialog import PageDialog

_TASK = "page"


class PageController(QObject):
    """Shows one page at a time; its text is read off the GUI thread."""

    def __init__(self, services: Services, bridge: Bridge, window: MainWindow) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._window = window

    def open(self, source: str, title: str) -> None:
        """Show the manual page called `source`, such as grep.1."""
        dialog = PageDialog(title, self._window)
        dialog.finished.connect(lambda: self._close(dialog))
        dialog.open()
        self._bridge.start(_TASK, self._show(dialog, source))

    async def _show(self, dialog: PageDialog, source: str) -> None:
        try:
            page = await self._bridge.run(lambda: self._services.man_pages.kept(source))
        except KnownError as error:
            dialog.show_error(*words_for(error))
        else:
            dialog.show_text(page.text)

    def _close(self, dialog: PageDialog) -> None:
        self._bridge.cancel(_TASK)
        dialog.deleteLater()
