"""Exports of other chat programs in the folder of downloads, offered on the welcome page."""

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QTimer

from app.domain.formatting import format_day, format_size
from app.domain.translation import tr
from app.transfer.found_exports import FoundExport
from ui.presenters.presenter import Presenter
from ui.views.welcome import Welcome

_AFTER_MS = 800  # the window comes first


class FoundExportsPresenter(Presenter):
    """Looks once, when the welcome page is shown to a newcomer; nothing is imported unasked.

    `find` returns the exports, it blocks; `import_files` imports files.
    """

    _find: Callable[[], Sequence[FoundExport]]
    _welcome: Welcome
    _import_files: Callable[[Sequence[Path]], object]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._found: Sequence[FoundExport] = ()
        self._pause = QTimer(self._welcome, singleShot=True, interval=_AFTER_MS)
        self._pause.timeout.connect(self.look)
        self._welcome.shown.connect(self._pause.start)
        self._welcome.found_requested.connect(self._on_found_requested)

    def look(self) -> None:
        """Look for exports, unless the page is gone or greets somebody who has conversations."""
        if self._welcome.isVisible() and self._welcome.is_newcomer:
            self._bridge.load("found exports", self._find, self._show)

    def _show(self, found: Sequence[FoundExport]) -> None:
        self._found = found
        programs = " and ".join(each.program for each in found)
        files = "\n".join(
            f"{each.path.name}, {format_day(each.modified_at)}, {format_size(each.size_bytes)}"
            for each in found
        )
        self._welcome.offer_exports(
            tr("Import {programs} from Downloads").format(programs=programs) if found else "", files
        )

    def _on_found_requested(self) -> None:
        self._import_files([each.path for each in self._found])
