"""Maintenance commands of the Help menu: back up, check and repair, the data folder, About."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QMessageBox

from app.check import CheckReport
from app.storage.safety.backup import Backup
from ui.presenters.presenter import Presenter
from ui.widgets.banner import Banner


class MaintenancePresenter(Presenter):
    """Runs the commands and shows their outcome; `back_up` and `check` block."""

    _back_up: Callable[[], Backup]
    _check: Callable[..., CheckReport]
    _folder: Path
    _messages: Banner

    def back_up(self) -> None:
        """Make a verified backup."""

        def show(backup: Backup) -> None:
            text = f"The backup {backup.path.name} was made and verified."
            self._messages.show_message(text, brief=True)

        self._bridge.load("backup", self._back_up, show)

    def check(self, *, repair: bool = False) -> None:
        """Check the library and show the report, which offers to repair it."""
        self._bridge.load(
            "check",
            lambda: self._check(repair=repair),
            lambda report: self._show_report(
                report, offers_repair=bool(report.problems) and not repair
            ),
        )

    def open_folder(self) -> None:
        """Show the data folder in the file manager."""
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._folder)))

    def show_about(self) -> None:
        """Show what the program is."""
        box = QMessageBox(self._messages.window())
        box.setWindowTitle("About Commonplace")
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setIconPixmap(self._messages.window().windowIcon().pixmap(64))
        box.setText("Commonplace")
        box.setInformativeText(
            "A chat program that remembers. Everything is stored on this computer. MIT license."
        )
        box.finished.connect(box.deleteLater)
        box.open()

    def _show_report(self, report: CheckReport, *, offers_repair: bool) -> None:
        found, repaired = len(report.problems), len(report.repaired)
        rows = sum(report.counts.values())
        box = QMessageBox(self._messages.window())
        box.setWindowTitle("Check")
        box.setTextFormat(Qt.TextFormat.PlainText)
        noun = "problem" if found == 1 else "problems"
        box.setText(f"{found:,} {noun} found." if found else "No problems found.")
        repairs = f"{repaired:,} repaired. " if repaired else ""
        box.setInformativeText(f"{repairs}{rows:,} records were checked.")
        box.setDetailedText("\n".join((*report.problems, *report.repaired)))
        if offers_repair:
            button = box.addButton("Repair", QMessageBox.ButtonRole.ActionRole)
            button.clicked.connect(lambda: self.check(repair=True))
        box.addButton(QMessageBox.StandardButton.Close)
        box.finished.connect(box.deleteLater)
        box.open()
