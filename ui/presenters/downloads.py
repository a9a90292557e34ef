"""New exports in the folder of downloads: whether to look for them is asked once, then each is offered."""

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QTimer

from app.domain.errors import KnownError
from app.domain.transfer import ImportReport
from app.domain.translation import tr, trn
from app.storage.tables.settings import Settings
from app.transfer.found_exports import FoundExport
from ui.presenters.presenter import Presenter
from ui.widgets.banner import Banner

SWITCH, SEEN = "watch_downloads", "seen_exports"
_SETTLED_MS = 3000  # after the last change in the folder: a browser is still writing
_SEEN_KEPT = 50
_TASK = "new exports"
_log = logging.getLogger(__name__)


class DownloadsPresenter(Presenter):
    """Offers exports that appear in the folder; it never imports one unasked.

    `find` returns the exports in the folder; `read` reads one without storing it. Both block. `start_import`
    shows what an export would add.
    """

    _settings: Settings
    _folder: Path
    _find: Callable[[], Sequence[FoundExport]]
    _read: Callable[[Path], ImportReport]
    _start_import: Callable[[Sequence[Path]], object]
    _messages: Banner

    def _set_up(self) -> None:
        self._watcher = QFileSystemWatcher(self)
        self._pause = QTimer(self, singleShot=True, interval=_SETTLED_MS)
        self._pause.timeout.connect(self.look)
        self._watcher.directoryChanged.connect(self._pause.start)
        self._bridge.subscribe(lambda _: self.apply(), SWITCH)
        self.apply()

    def apply(self) -> None:
        """Watch the folder if that is switched on."""
        if self._settings.text(SWITCH) == "on":
            self._watcher.addPath(str(self._folder))
            self._pause.start()
        else:
            self._watcher.removePath(str(self._folder))
            self._pause.stop()

    def note_import(self, paths: Sequence[Path]) -> None:
        """Ask whether to look for new exports, after the first import from the folder."""
        if self._settings.text(SWITCH) == "ask" and any(
            each.parent == self._folder for each in paths
        ):
            self._messages.show_message(
                tr("Offer new exports when they appear in Downloads? Nothing is imported unasked."),
                tr("Yes"),
                lambda: self._switch("on"),
                brief=False,
                closed=lambda: self._switch("off"),
            )

    def look(self) -> None:
        """Offer the newest export that was not offered before, if it has anything new."""
        self._bridge.load(_TASK, self._new, self._offer)

    def _new(self) -> tuple[FoundExport, ImportReport] | None:
        seen: list[str] = json.loads(self._settings.text(SEEN))
        for each in self._find():
            mark = f"{each.path.name} {each.size_bytes} {each.modified_at.isoformat()}"
            if mark not in seen:
                try:
                    report = self._read(each.path)
                except KnownError as error:  # it may still be written: it is read again next time
                    _log.info("an export in Downloads cannot be read: %s", type(error).__name__)
                    continue
                seen.append(mark)
                self._settings.set(SEEN, json.dumps(seen[-_SEEN_KEPT:]))
                if report.messages:
                    return each, report
        return None

    def _offer(self, found: tuple[FoundExport, ImportReport] | None) -> None:
        if found is None:
            return
        export, report = found
        new = (
            trn("{count} new conversation", "{count} new conversations", report.conversations)
            if report.conversations
            else trn("{count} new message", "{count} new messages", report.messages)
        )
        self._messages.show_message(
            tr("A new export of {program} is in Downloads: {new}.").format(
                program=export.program, new=new
            ),
            tr("Import\u2026"),
            lambda: self._start_import([export.path]),
            brief=False,
            closed=lambda: None,
        )

    def _switch(self, value: str) -> None:
        self._bridge.save(lambda: self._settings.set(SWITCH, value))
