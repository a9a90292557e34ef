"""Attaching files to the message being written: chosen, pasted or dropped; and their thumbnails."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtGui import QImage

from app.domain.attachments import FILES_MAX, hashes_of
from app.domain.chat import ModelRef
from app.domain.conversations import Image
from app.domain.errors import KnownError
from app.domain.translation import tr
from app.storage.safety.attachments import AttachmentFiles
from app.transfer.attaching import Attached, attach, attach_path
from app.transfer.importers.reading import is_export
from ui.presenters.presenter import Presenter
from ui.rendering.images import load_image, png_of
from ui.views.chat_pane import ChatPane
from ui.views.drop_hint import looks_like_export
from ui.widgets.dialog import ask_for_files
from ui.widgets.thumbnails import THUMBNAIL_PX

_PASTED = tr("Pasted image.png")
_TOUCH_EVERY_MS = 60_000  # far below UNREFERENCED_FOR_S, also after the computer was asleep


class AttachPresenter(Presenter):
    """Puts files into the composer. Reading, hashing and decoding run on the bridge's pool.

    `sees_images` returns whether a model reads images, None if unknown; it may block. `import_files`
    imports exports, `offer_documents` asks whether folders become documents.
    """

    _files: AttachmentFiles
    _sees_images: Callable[[ModelRef], bool | None]
    _import_files: Callable[[list[Path]], object]
    _offer_documents: Callable[[list[Path]], object]
    _view: ChatPane

    def _set_up(self) -> None:
        self._model = ""
        self._row = self._view.composer.files
        self._view.composer.attach_requested.connect(self.choose)
        self._view.composer.box.files_pasted.connect(self.add)
        self._view.composer.box.image_pasted.connect(self._on_image_pasted)
        self._view.model_shown.connect(self._on_model_shown)
        self._row.changed.connect(self._show_note)
        self._row.changed.connect(self._on_row_changed)
        self._touch = QTimer(self, interval=_TOUCH_EVERY_MS)
        self._touch.timeout.connect(self._touch_files)
        self._row.thumbnails.wanted.connect(self._on_thumbnail_wanted)

    def choose(self) -> None:
        """Ask for files, then attach them."""
        images = tr("Images (*.png *.jpg *.jpeg *.gif *.webp)")
        filters = (tr("All files (*)"), images, tr("PDF (*.pdf)"))
        ask_for_files(self._view.window(), tr("Attach files"), filters, self.add)

    def add(self, paths: list[Path]) -> None:
        """Attach files."""
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

    def _on_row_changed(self) -> None:
        if not self._row.count:
            self._touch.stop()
        elif not self._touch.isActive():
            self._touch.start()

    def _touch_files(self) -> None:
        hashes = tuple(hashes_of(self._row.files))

        def touch() -> None:
            for each in hashes:
                self._files.touch(each)

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
