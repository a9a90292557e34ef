"""Attached files of the transcript: images in a viewer, other files opened or saved after a question."""

from functools import partial
from pathlib import Path

from PySide6.QtCore import QTemporaryDir, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QWidget

from app.domain.conversations import File, Image
from app.domain.errors import StorageError
from app.domain.translation import tr
from app.storage.safety.attachments import AttachmentFiles
from ui.presenters.presenter import Presenter
from ui.rendering.images import load_image
from ui.views.dialogs.confirm import Confirmation, confirm
from ui.views.dialogs.image_viewer import ImageViewer
from ui.widgets.banner import Banner
from ui.widgets.dialog import file_dialog


class FilesPresenter(Presenter):
    """Opens and saves attached files.

    Attributes:
        viewer: That of the image shown last.
    """

    _files: AttachmentFiles
    _banner: Banner

    def _set_up(self) -> None:
        self.viewer: ImageViewer | None = None
        self._opened: QTemporaryDir | None = None

    def open(self, file: File) -> None:
        """Show an image; ask what to do with another file."""
        if file.content_hash is None:
            return
        if isinstance(file, Image):
            self._show_image(file)
        else:
            self._ask(file)

    def _show_image(self, image: Image) -> None:
        viewer = self.viewer = ImageViewer(image.name, self._banner.window())
        viewer.save_requested.connect(lambda: self._save(image, viewer))
        self._open_dialog(viewer)
        path = self._files.path(image.content_hash or "")
        self._bridge.load(
            "image viewer", lambda: load_image(path), viewer.show_image, viewer.show_error
        )

    def _ask(self, file: File) -> None:
        texts = Confirmation(
            tr("Attached file"),
            tr("Open “{name}”?").format(name=file.name),
            tr("It opens in another program. Files from others can contain harmful content."),
            tr("Open"),
            other=tr("Save as\u2026"),
        )
        window = self._banner.window()
        confirm(window, texts, lambda: self._open(file), on_other=lambda: self._save(file, window))

    def _open(self, file: File) -> None:
        """Open a copy that has the file's name, read-only, deleted with the program's end."""
        if self._opened is None:
            self._opened = QTemporaryDir()
        name = Path(file.name.replace("/", "_").replace("\\", "_")).name or "file"
        target = Path(self._opened.path(), file.content_hash or "", name)

        def show(_: object) -> None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(target)))

        self._bridge.save(partial(self._copy, file, target), show)

    def _save(self, file: File, parent: QWidget) -> None:
        dialog = file_dialog(parent, tr("Save file"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.selectFile(Path(file.name).name)
        dialog.fileSelected.connect(
            lambda target: self._bridge.save(
                partial(self._copy, file, Path(target)),
                lambda _: self._banner.show_message(
                    tr("Saved as {target}.").format(target=target), brief=True
                ),
            )
        )
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _copy(self, file: File, target: Path) -> None:
        """Write a file elsewhere; raises KnownError. Blocking."""
        data = self._files.read(file.content_hash or "")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except OSError as error:
            raise StorageError(
                f"'{target}' cannot be written: {error.strerror or error}",
                "Choose another place.",
            ) from error
