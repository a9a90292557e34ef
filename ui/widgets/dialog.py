"""The base class of dialogs, and dialogs that ask for a file."""

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QDir, QStandardPaths
from PySide6.QtWidgets import QDialog, QFileDialog, QWidget

from app.domain.errors import KnownError
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import plain_label


class Dialog(QDialog):
    """A dialog that is deleted once it is closed.

    Attributes:
        status: What it shows, or why a request failed; a subclass lays it out.
    """

    def __init__(
        self, title: str, size_px: tuple[int, int], parent: QWidget | None, *, tone: str = "muted"
    ) -> None:
        """`size_px` is width and height where the screen has room, `tone` that of the status."""
        super().__init__(parent)
        self.setWindowTitle(title)
        resize_on_screen(self, *size_px)
        self.status = plain_label(self, tone, selectable=False)
        self.finished.connect(self.deleteLater)

    def show_error(self, error: KnownError) -> None:
        """Show why a request failed."""
        self.status.setText(error.display_text)
        self.status.show()


def file_dialog(parent: QWidget, title: str, start: str = "") -> QFileDialog:
    """Return a file dialog in a folder, by default the last one, the first time the user's documents.

    Qt begins in the working directory, which is nothing to whom started the program from a menu.
    """
    dialog = QFileDialog(parent, title, start)
    if not start and dialog.directory() == QDir.current():
        kind = QStandardPaths.StandardLocation.DocumentsLocation
        place = QStandardPaths.writableLocation(kind)
        dialog.setDirectory(place if QDir(place).exists() else QDir.homePath())
    return dialog


def ask_for_folder(
    parent: QWidget, title: str, take: Callable[[str], object], start: str = ""
) -> None:
    """Ask for a folder, from the folder `start` on, and call `take` with its path."""
    dialog = file_dialog(parent, title, start)
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.setOption(QFileDialog.Option.ShowDirsOnly)
    dialog.fileSelected.connect(take)
    dialog.finished.connect(dialog.deleteLater)
    dialog.open()


def ask_for_files(
    parent: QWidget,
    title: str,
    filters: Sequence[str],
    take: Callable[[list[Path]], object],
    start: str = "",
) -> None:
    """Ask for existing files, from the folder `start` on, and call `take` with them."""
    dialog = file_dialog(parent, title, start)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
    dialog.setNameFilters(list(filters))
    dialog.filesSelected.connect(lambda names: take([Path(name) for name in names]))
    dialog.finished.connect(dialog.deleteLater)
    dialog.open()
