"""Attaching in the window: the composer's files, paste, drop, the viewer and the question about a file."""

import os
from pathlib import Path
from typing import Any, cast

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, QSize, Qt, QUrl
from PySide6.QtGui import QImage, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from app.domain.attachments import FILES_MAX
from app.domain.conversations import Attachment, Draft, Image
from app.domain.errors import InvalidInput, StorageError
from app.storage.safety.attachments import AttachmentFiles
from app.system.paths import DataPaths
from tests.fakes.files import pdf, png
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import FakeBanner, FakeBridge
from ui.presenters.conversation.attach import AttachPresenter, FilesPresenter
from ui.rendering.images import load_image
from ui.views.chat_pane import ChatPane
from ui.views.dialogs.image_viewer import ImageViewer
from ui.views.welcome import drop_text
from ui.widgets.transcript.layout import FlowRow, Label


@pytest.fixture
def files(tmp_path: Path) -> AttachmentFiles:
    paths = DataPaths(tmp_path / "data")
    paths.make()
    return AttachmentFiles(paths)


class Attaching:
    """The presenter with a real pane, files that are really stored, and a bridge without threads."""

    def __init__(self, files: AttachmentFiles) -> None:
        self.bridge = FakeBridge()
        self.pane = ChatPane()
        self.pane.show()
        self.imported: list[list[Path]] = []
        self.offered: list[list[Path]] = []
        self.sees: bool | None = None
        self.kept = Draft()
        self.presenter = AttachPresenter(
            cast(Any, self.bridge), files, lambda _: self.sees, self.imported.append,
            self.offered.append, lambda: self.kept, self.pane,
        )  # fmt: skip

    @property
    def names(self) -> list[str]:
        return [file.name for file in self.pane.composer.draft.files]


attaching = fixture_of(Attaching, "files")


def test_files_are_read_shown_and_removed(attaching: Attaching, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "b.pdf").write_bytes(pdf())
    attaching.presenter.add([tmp_path / "a.png", tmp_path / "b.pdf"])
    assert attaching.names == ["a.png", "b.pdf"]
    row = attaching.pane.composer.files
    holder = row.widget()
    assert not holder.autoFillBackground(), "it stands on the card"
    assert row.isVisible()
    image, document = attaching.pane.composer.draft.files
    assert row.thumbnails.image(image.content_hash or "") is not None
    assert isinstance(document, Attachment)
    buttons = [
        each for each in row.findChildren(QWidget) if each.accessibleName().startswith("Remove ")
    ]
    assert [each.accessibleName() for each in buttons] == ["Remove a.png", "Remove b.pdf"]
    assert next_stop(attaching.pane.composer.box) is buttons[0]
    assert next_stop(buttons[0]) is buttons[1]
    QTest.mouseClick(buttons[0], Qt.MouseButton.LeftButton)
    assert attaching.names == ["b.pdf"]


def test_a_file_is_attached_once_and_the_last_one_is_in_view(
    attaching: Attaching, tmp_path: Path, qtbot: QtBot
) -> None:
    paths = [tmp_path / f"{number}.txt" for number in range(9)]
    for path in paths:
        path.write_text(path.name)
    attaching.presenter.add([*paths, paths[0]])
    assert attaching.names == [path.name for path in paths]
    bar = attaching.pane.composer.files.horizontalScrollBar()
    qtbot.waitUntil(lambda: bar.value() == bar.maximum() > 0)


def test_chips_of_a_message_stand_below_its_images(qtbot: QtBot) -> None:
    row = FlowRow(gap=4)
    heights = (100, 100, 20, 20)
    for height in heights:
        row.add(Sized(QSize(90, height)))
    assert row.natural_width() == 184
    assert row.height_for(400) == 124
    assert [each.y() for each in row.members] == [0, 0, 104, 104]


def test_a_label_of_a_row_wraps_where_it_is_wider_than_its_place() -> None:
    row, label = (
        FlowRow(gap=4),
        Label("The connection ended before the reply was complete", "small"),
    )
    row.add(label)
    row.add(Sized(QSize(40, 10)))
    one_line = row.height_for(1_000)
    assert row.height_for(120) > 2 * one_line
    assert label.width() == 120


class Sized(QWidget):
    """A widget of one size."""

    def __init__(self, size: QSize) -> None:
        super().__init__()
        self._size = size

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        return self._size


def next_stop(widget: QWidget) -> QWidget:
    """Return where Tab goes to."""
    step = widget.nextInFocusChain()
    assert step is not None
    while not step.focusPolicy() & Qt.FocusPolicy.TabFocus or step.isHidden():
        step = step.nextInFocusChain()
        assert step is not None
    return step


def test_a_file_that_is_not_attached_leaves_no_chip(attaching: Attaching, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png()[:-30])
    attaching.presenter.add([tmp_path / "a.png"])
    assert attaching.pane.composer.files.count == 0
    assert attaching.pane.banner.isVisible()


def test_a_message_has_a_limit_of_files(attaching: Attaching, tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.txt" for number in range(FILES_MAX + 2)]
    for path in paths:
        path.write_text(path.name)
    attaching.presenter.add(paths)
    assert len(attaching.names) == FILES_MAX


def test_pasted_images_are_attached_text_stays_text(attaching: Attaching, tmp_path: Path) -> None:
    box, picture = attaching.pane.composer.box, QImage(4, 3, QImage.Format.Format_RGB32)
    picture.fill(Qt.GlobalColor.blue)
    for data in (png(), None):
        mime = QMimeData()
        if data is None:
            mime.setImageData(picture)
        else:
            mime.setData("image/png", data)
        assert box.canInsertFromMimeData(mime)
        box.insertFromMimeData(mime)
    sizes = [
        each.width_px for each in attaching.pane.composer.draft.files if isinstance(each, Image)
    ]
    assert sizes == [40, 4]
    (tmp_path / "c.txt").write_text("words")
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(tmp_path / "c.txt"))])
    box.insertFromMimeData(mime)
    assert attaching.names[-1] == "c.txt"
    table = QMimeData()
    table.setText("a\tb")
    table.setImageData(picture)
    box.insertFromMimeData(table)
    assert (attaching.pane.composer.text, len(attaching.names)) == ("a\tb", 3)


def test_dropped_exports_are_imported_others_attached(attaching: Attaching, tmp_path: Path) -> None:
    export, data, image = (tmp_path / name for name in ("e.json", "d.json", "a.png"))
    export.write_text('[{"title": "x", "mapping": {}}]')
    data.write_text('{"dear": "Ada"}')
    image.write_bytes(png())
    attaching.presenter.take_dropped([export, data, image])
    assert attaching.imported == [[export]]
    assert attaching.names == ["d.json", "a.png"]
    attaching.presenter.take_dropped_to_import([data])
    assert attaching.imported[-1] == [data]


def test_dropped_folders_are_offered_as_documents_unless_they_are_exports(
    attaching: Attaching, tmp_path: Path
) -> None:
    folder, export = tmp_path / "notes", tmp_path / "chatgpt"
    for each in (folder, export):
        each.mkdir()
    (folder / "a.md").write_text("# Notes")
    (export / "conversations.json").write_text('[{"title": "x", "mapping": {}}]')
    for drop in (attaching.presenter.take_dropped, attaching.presenter.take_dropped_to_import):
        drop([folder, export])
    assert attaching.offered == [[folder]] * 2
    assert attaching.imported == [[export]] * 2
    assert not attaching.names


def test_the_hint_says_what_a_drop_does() -> None:
    assert "import" in drop_text([Path("a.zip")])
    assert drop_text([Path("a.png"), Path("b.pdf")]) == "Drop to attach 2 files"
    assert "import" in drop_text([Path("a.png"), Path("b.zip")])
    in_trash = drop_text([Path("a.png")], can_attach=False)
    assert in_trash != drop_text([Path("a.png")])
    assert "import" in drop_text([Path("a.zip")], can_attach=False)


def test_a_model_without_vision_is_named_at_once(attaching: Attaching, tmp_path: Path) -> None:
    note = attaching.pane.composer.note
    (tmp_path / "a.png").write_bytes(png())
    attaching.presenter.add([tmp_path / "a.png"])
    assert not note.isVisible(), "unknown is tried"
    attaching.sees = False
    attaching.pane.model_shown.emit("local:m")
    assert note.isVisible()
    assert "local:m" in note.text()
    attaching.pane.composer.clear()
    assert not note.isVisible()


def test_a_draft_brings_its_files_back(attaching: Attaching, files: AttachmentFiles) -> None:
    image = Image("a.png", "image/png", files.put(png()), 100, 40, 30)
    attaching.pane.composer.show_draft(Draft("Look", (image,)))
    assert attaching.pane.composer.draft == Draft("Look", (image,))
    attaching.pane.composer.discard()
    assert attaching.pane.composer.draft == Draft("", (image,)), "a command keeps files"


@pytest.mark.parametrize("is_kept", [False, True])
def test_files_stay_while_they_are_in_the_composer_or_a_new_private_conversation(
    is_kept: bool, qtbot: QtBot, files: AttachmentFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.presenters.conversation.attach._TOUCH_EVERY_MS", 1)
    attaching = Attaching(files)
    content_hash, sent_hash = files.put(png()), files.put(b"smaller")
    image = Image("a.png", "image/png", content_hash, 100, 40, 30, sent_hash)
    paths = [files.path(each) for each in (content_hash, sent_hash)]
    for path in paths:
        os.utime(path, (0, 0))
    if is_kept:
        attaching.kept = Draft("Look", (image,))
    else:
        attaching.pane.composer.show_draft(Draft("Look", (image,)))
    qtbot.waitUntil(lambda: all(path.stat().st_mtime > 0 for path in paths))


# -- the transcript's files
def test_an_image_opens_in_a_viewer_that_zooms(files: AttachmentFiles) -> None:
    holder = FakeBanner()
    presenter = FilesPresenter(cast(Any, FakeBridge()), files, cast(Any, holder))
    presenter.open(Image("a.png", "image/png", files.put(png(3000, 20)), 1, 3000, 20))
    viewer = presenter.viewer
    assert viewer is not None
    fitted = viewer.view.scale_factor
    assert fitted < 1
    viewer.actual.click()
    assert viewer.view.scale_factor == 1
    middle = viewer.view.viewport().rect().center()
    at_middle = viewer.view.mapToScene(middle)
    QTest.keyClick(viewer, Qt.Key.Key_Plus)
    assert (viewer.view.mapToScene(middle) - at_middle).manhattanLength() < 4
    at = QPointF(0, 0)
    at_corner = viewer.view.mapToScene(at.toPoint())
    wheel = QWheelEvent(
        at, at, QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(viewer.view.viewport(), wheel)
    assert viewer.view.scale_factor > 1
    assert abs(viewer.view.mapToScene(at.toPoint()).x() - at_corner.x()) < 4
    viewer.fit.click()
    assert viewer.view.scale_factor == pytest.approx(fitted)
    viewer.copy.click()
    assert QApplication.clipboard().image().width() == 3000
    QTest.keyClick(viewer, Qt.Key.Key_Escape)
    assert not viewer.isVisible()


def test_another_file_is_opened_if_allowed(files: AttachmentFiles, tmp_path: Path) -> None:
    banner = FakeBanner()
    presenter = FilesPresenter(cast(Any, FakeBridge()), files, cast(Any, banner))
    document = Attachment("../b.pdf", "application/pdf", 3, "", files.put(b"pdf"))
    presenter.open(Attachment("lost.pdf", "application/pdf"))
    assert not banner.window().findChildren(QMessageBox)
    presenter.open(document)
    (question,) = banner.window().findChildren(QMessageBox)
    presenter._save(document, banner)
    (dialog,) = banner.findChildren(QFileDialog)
    dialog.fileSelected.emit(str(tmp_path / "saved.pdf"))
    dialog.reject()
    assert (tmp_path / "saved.pdf").read_bytes() == b"pdf"
    question.reject()


def test_a_bomb_is_not_decoded(tmp_path: Path) -> None:
    header = png(1, 1)
    bomb = header[:16] + (60_000).to_bytes(4) + (60_000).to_bytes(4) + header[24:]
    (tmp_path / "bomb.png").write_bytes(bomb)
    with pytest.raises(InvalidInput):
        load_image(tmp_path / "bomb.png")
    viewer = ImageViewer("bomb.png")
    viewer.show_error(StorageError("It is damaged"))
    viewer.deleteLater()
