"""Files of messages: attached to the one being written, with thumbnails; those of the transcript opened and saved."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QTemporaryDir, QTimer, QUrl
from PySide6.QtGui import QDesktopServices, QImage
from PySide6.QtWidgets import QFileDialog, QWidget

from app.domain.attachments import FILES_MAX, hashes_of
from app.domain.chat import ModelRef
from app.domain.conversations import Draft, File, Image
from app.domain.errors import KnownError, StorageError
from app.domain.translation import tr
from app.storage.safety.attachments import AttachmentFiles
from app.transfer.attaching import Attached, attach, attach_path
from app.transfer.importers.reading import is_export
from ui.presenters.presenter import Presenter
from ui.rendering.images import load_image, png_of
from ui.views.chat_pane import ChatPane
from ui.views.dialogs.confirm import Confirmation, confirm
from ui.views.dialogs.image_viewer import ImageViewer
from ui.views.welcome import looks_like_export
from ui.widgets.banner import Banner
from ui.widgets.dialog import ask_for_files, file_dialog
from ui.widgets.thumbnails import THUMBNAIL_PX

_PASTED = tr("Pasted image.png")
_TOUCH_EVERY_MS = 60_000  # far below UNREFERENCED_FOR_S, also after the computer was asleep


class AttachPresenter(Presenter):
    """Puts files into the composer. Reading, hashing and decoding run on the bridge's pool.

    `sees_images` returns whether a model reads images, None if unknown; it may block. `import_files`
    imports exports, `offer_documents` asks whether folders become documents. `kept` returns the draft of a new
    private conversation, to whose files nothing in the database refers.
    """

    _files: AttachmentFiles
    _sees_images: Callable[[ModelRef], bool | None]
    _import_files: Callable[[list[Path]], object]
    _offer_documents: Callable[[list[Path]], object]
    _kept: Callable[[], Draft]
    _view: ChatPane

    def _set_up(self) -> None:
        self._model = ""
        self._row = self._view.composer.files
        self._view.composer.attach_requested.connect(self.choose)
        self._view.composer.box.files_pasted.connect(self.add)
        self._view.composer.box.image_pasted.connect(self._on_image_pasted)
        self._view.model_shown.connect(self._on_model_shown)
        self._row.changed.connect(self._show_note)
        touch = QTimer(self, interval=_TOUCH_EVERY_MS)
        touch.timeout.connect(self._touch_files)
        touch.start()
        self._row.thumbnails.wanted.connect(self._on_thumbnail_wanted)

    def choose(self) -> None:
        """Ask for files, then attach them."""
        images = tr("Images (*.png *.jpg *.jpeg *.gif *.webp)")
        filters = (tr("All files (*)"), images, tr("PDF (*.pdf)"))
        ask_for_files(self._view.window(), tr("Attach files"), filters, self.add)

    def add(self, paths: list[Path]) -> None:
        for path in paths:
            self._add(path.name, lambda path=path: attach_path(self._files, path))  # type: ignore[misc]

    def take_dropped(self, paths: list[Path]) -> None:
        """Import the exports among dropped files, offer folders as documents, and attach the others."""
        self._bridge.submit(self._take_dropped(paths))

    def take_dropped_to_import(self, paths: list[Path]) -> None:
        """Like `take_dropped`, but import also files that only look like exports by their names."""
        self._bridge.submit(self._take_dropped(paths, is_by_name=True))

    async def _take_dropped(self, paths: list[Path], *, is_by_name: bool = False) -> None:
        def sort() -> tuple[list[Path], list[Path]]:
            folders = [path for path in paths if path.is_dir()]
            exports = [
                path
                for path in paths
                if (is_by_name and path not in folders and looks_like_export(path))
                or is_export(path)
            ]
            return exports, [path for path in folders if path not in exports]

        exports, folders = await self._bridge.run(sort)
        if exports:
            self._import_files(exports)
        if folders:
            self._offer_documents(folders)
        self.add([path for path in paths if path not in exports and path not in folders])

    def _on_image_pasted(self, image: bytes | QImage) -> None:
        def read() -> Attached:
            data = image if isinstance(image, bytes) else png_of(image)
            return attach(self._files, data, _PASTED)

        self._add(_PASTED, read)

    def _add(self, name: str, read: Callable[[], Attached]) -> None:
        if not self._view.composer.isEnabled():
            return
        if self._row.count >= FILES_MAX:
            self._view.banner.show_message(
                tr("A message can have at most {count} files.").format(count=FILES_MAX), brief=True
            )
            return
        key = self._row.add(name)

        async def work() -> None:
            attached = await self._bridge.run(read)
            if self._row.show_file(key, attached.file) and attached.notice:
                self._view.banner.show_message(attached.notice, brief=True)

        def on_error(error: KnownError) -> None:
            self._row.remove(key)
            self._view.banner.show_error(error)

        self._bridge.submit(work(), on_error)
        self._view.composer.box.setFocus()

    # -- files that no message or draft refers to yet: an edit's, or a new private conversation's

    def _touch_files(self) -> None:
        hashes = tuple(hashes_of((*self._row.files, *self._kept().files)))

        def touch() -> None:
            for each in hashes:
                self._files.touch(each)

        if hashes:
            self._bridge.load("touch files", touch, lambda _: None)

    # -- what the model sees

    def _on_model_shown(self, model: str) -> None:
        self._model = model
        self._show_note()

    def _show_note(self) -> None:
        composer, model = self._view.composer, self._model
        if not any(isinstance(each, Image) for each in self._row.files):
            self._bridge.cancel("sees images")
            composer.note.show_text("")
            return
        self._bridge.load(
            "sees images",
            lambda: self._sees_images(ModelRef.parse(model)),
            lambda sees: composer.note.show_text("" if sees is not False else _note(model)),
        )

    # -- thumbnails

    def _on_thumbnail_wanted(self, content_hash: str) -> None:
        thumbnails, path = self._row.thumbnails, self._files.path(content_hash)

        async def work() -> None:
            try:
                image = await self._bridge.run(lambda: load_image(path, THUMBNAIL_PX))
            except KnownError:
                image = QImage()
            thumbnails.put(content_hash, image)

        self._bridge.submit(work())


def _note(model: str) -> str:
    name = tr("Recall") if model.startswith("recall:") else model
    return tr("{name} does not read images: it gets their names only.").format(name=name)


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
        self._open_dialog(viewer, "image viewer")
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
                f"'{target}' cannot be written: {error.strerror or error}", "Choose another place."
            ) from error
