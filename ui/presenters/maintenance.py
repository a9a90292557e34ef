"""Maintenance commands of the Help menu: back up, restore, check, privacy, the data folder, About."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from app.check import CheckReport
from app.domain.translation import format_moment, format_number, format_percent, tr, trn
from app.privacy import ConnectionRow
from app.storage.safety.backup import Backup
from app.system.licenses import program_version, third_party_parts
from ui.presenters.presenter import Presenter
from ui.views.dialogs.confirm import Confirmation, confirm, inform
from ui.views.dialogs.help_dialogs import AboutDialog, BackupsDialog, PrivacyDialog
from ui.widgets.banner import Banner


class MaintenancePresenter(Presenter):
    """Runs the commands and shows their outcome; `back_up` and `check` block."""

    _back_up: Callable[[], Backup]
    _check: Callable[..., CheckReport]
    _folder: Path
    _messages: Banner
    _connections: Callable[[], Sequence[ConnectionRow]]
    _backups: Callable[[], Sequence[Backup]]
    _restore: Callable[[Path], object]

    def back_up(self) -> None:
        """Make a verified backup, unless the newest has everything."""

        def show(backup: Backup) -> None:
            text = tr("The backup of {moment} has everything and was verified.")
            text = text.format(moment=format_moment(backup.made_at))
            self._messages.show_message(text, brief=True)

        self._bridge.load("backup", self._back_up, show)

    def choose_backup(self) -> None:
        """List the backups; once the user has agreed, one is restored and the program starts again."""

        def ask(backup: Backup) -> None:
            texts = Confirmation(
                tr("Restore a backup"),
                tr("Return to {moment}?").format(moment=format_moment(backup.made_at)),
                tr(
                    "What was written since then is no longer shown; it is kept in the data folder, below "
                    "“damaged”. Commonplace closes and starts again."
                ),
                tr("Restore"),
                is_warning=True,
            )
            confirm(dialog, texts, lambda: self._restore(backup.path))

        dialog = self._open_dialog(BackupsDialog(self._messages.window()), "backups")
        dialog.restore_requested.connect(ask)
        self._bridge.load("backups", self._backups, dialog.show_backups)

    def check(self, *, repair: bool = False) -> None:
        """Check the library and show the report, which offers to repair it."""
        cancelled = threading.Event()
        tenths, text = 0, ""

        def show(report: CheckReport) -> None:
            if self._messages.shows(text):
                self._messages.dismiss()
            self._show_report(report, offers_repair=bool(report.problems) and not repair)

        def show_progress(share: float) -> None:
            nonlocal text
            if text and not self._messages.shows(text):
                return  # it was closed, or another message is there
            text = tr("The library is being checked: {percent}").format(
                percent=format_percent(share)
            )
            self._messages.show_message(text, tr("Cancel"), cancelled.set, brief=False)

        def progress(done: int, total: int) -> None:
            nonlocal tenths
            if (tenth := done * 10 // total) > tenths:
                tenths = tenth
                self._bridge.on_gui(partial(show_progress, tenth / 10))()

        show_progress(0.0)
        check = partial(
            self._check, repair=repair, is_cancelled=cancelled.is_set, progress=progress
        )
        self._bridge.load("check", check, show)

    def open_folder(self) -> None:
        """Show the data folder in the file manager."""
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._folder)))

    def show_about(self) -> None:
        """Show what the program is, and the licenses of what it is made of."""
        about = AboutDialog(program_version(), self._messages.window())
        dialog = self._open_dialog(about, "licenses")
        self._bridge.load("licenses", third_party_parts, dialog.show_parts)

    def show_privacy(self) -> None:
        """Show every connection that the program can make."""
        dialog = self._open_dialog(PrivacyDialog(self._messages.window()), "privacy")
        self._bridge.load("privacy", self._connections, dialog.show_connections)

    def _show_report(self, report: CheckReport, *, offers_repair: bool) -> None:
        found, repaired = len(report.problems), len(report.repaired)
        rows = sum(report.counts.values())
        checked = tr("Records checked: {rows}.").format(rows=format_number(rows))
        if repaired:
            done = tr("Repaired: {repaired}.").format(repaired=format_number(repaired))
            checked = f"{done} {checked}"
        inform(
            self._messages.window(),
            tr("Check"),
            trn("{count} problem found.", "{count} problems found.", found)
            if found
            else tr("No problems found."),
            checked,
            more="\n".join((*report.problems, *report.repaired)),
            action=tr("Repair") if offers_repair else "",
            act=lambda: self.check(repair=True),
        )
