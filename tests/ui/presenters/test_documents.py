"""Documents in the window: the list, adding with consent, removing after a question, and the viewer."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices, QGuiApplication, QImage
from PySide6.QtWidgets import QApplication
from pytestqt.modeltest import ModelTester

from app.chat.planner import NewConversation
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import PassageId
from app.domain.passages import PassageKind
from app.domain.recall import RecalledItem, RecalledItemDetails, RecallLayer
from app.domain.records.documents import (
    AddedPath,
    Chunk,
    DocumentState,
    DocumentStatus,
    FileState,
    StoredDocument,
)
from app.domain.records.projects import Project
from app.domain.translation import choose_language
from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from app.system import file_programs
from tests.fakes.files import pdf
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import Parts, Recorder, press
from ui.models.documents import DocumentColumn, DocumentTableModel, rows_of, summary_text
from ui.models.labels import chip_text
from ui.presenters.memory import documents as presenters
from ui.presenters.memory.documents import DocumentsPresenter
from ui.views.dialogs.page_dialog import PageDialog

READ, SKIPPED = DocumentState.READ, DocumentState.SKIPPED
GARDEN = Project("g", "Garden")
FOLDER, AWAY = AddedPath("/d", True, True), AddedPath("/usb", False, False, "g")
STATUSES = (
    DocumentStatus("/d/b.md", READ, "", None, 3, None, 2_000),
    DocumentStatus("/d/sub/a.pdf", SKIPPED, "It is protected by a password.", 4, 0, None, 9_000),
    DocumentStatus("/d/sub/c.txt", DocumentState.CHANGED, "", None, 1, None, 10),
    DocumentStatus("/usb/x.txt", READ, "", None, 1, "g", 5),
)
OFF = WorkerStatus(WorkerName.DOCUMENT_INDEXER, False, WorkerState.IDLE)


def names(model: DocumentTableModel) -> list[Any]:
    return [model.index(row, 0).data() for row in range(model.rowCount())]


@pytest.fixture
def model(qtmodeltester: ModelTester) -> DocumentTableModel:
    made = DocumentTableModel()
    made.show_documents(rows_of((FOLDER, AWAY), STATUSES, {"g": "Garden"}))
    qtmodeltester.check(made)  # type: ignore[no-untyped-call]
    return made


# -- the list
def test_folders_come_first_and_rows_are_found_by_any_text(model: DocumentTableModel) -> None:
    assert names(model) == ["/d", "/usb", "b.md", "sub/a.pdf", "sub/c.txt", "x.txt"]
    model.sort(DocumentColumn.SIZE, Qt.SortOrder.DescendingOrder)
    assert names(model) == ["/d", "/usb", "sub/a.pdf", "b.md", "sub/c.txt", "x.txt"]
    pages = [model.index(row, DocumentColumn.PAGES).data() for row in range(6)]
    assert pages == ["4", "", "4", "", "", ""]
    for text, expected in (
        ("a.PDF", ["sub/a.pdf"]),
        ("skipped password", ["sub/a.pdf"]),
        ("garden", ["/usb", "x.txt"]),
        ("gone", ["/usb", "x.txt"]),
        ("no such", []),
    ):
        model.set_filter(text)
        assert [each for each in names(model) if each != "/d" or "d" not in text] == expected


def test_the_reason_of_a_skipped_file_is_shown_in_the_language(model: DocumentTableModel) -> None:
    choose_language("de")
    try:
        rows = rows_of((FOLDER,), STATUSES, {})
    finally:
        choose_language("en")
    assert "Passwort" in next(each.state for each in rows if each.name == "sub/a.pdf")


def test_files_that_were_read_in_part_are_counted() -> None:
    part = DocumentStatus("/d/big.csv", READ, "Only 9 of 20 rows were read.", None, 3)
    assert "1 read in part" in summary_text([*STATUSES, part])
    folder, file = rows_of((FOLDER,), [part], {})
    assert folder.state == "1 read in part"
    assert file.state.startswith("Read in part: ")


def test_a_thousand_rows_are_sorted_and_filtered_with_the_selection_kept() -> None:
    statuses = [DocumentStatus(f"/d/{n:04}.md", READ, "", n, 1, None, n + 1) for n in range(1_000)]
    model = DocumentTableModel()
    model.show_documents(rows_of((FOLDER,), statuses, {}))
    resets: list[None] = []
    model.modelReset.connect(lambda: resets.append(None))
    model.show_documents(rows_of((FOLDER,), statuses, {"g": "Garden"}))
    assert not resets
    model.sort(DocumentColumn.PAGES, Qt.SortOrder.DescendingOrder)
    assert names(model)[:2] == ["/d", "0999.md"]
    assert model.index_of("/d/0000.md").row() == 1_000


# -- the dialog
class Screen:
    def __init__(self, parts: Parts) -> None:
        self.parts, self.server = parts, ""
        self.added = Recorder(
            added=(FOLDER, AWAY), statuses=STATUSES, remove=("It stays in an export.",),
            affected=lambda path: tuple(each for each in STATUSES if each.name.startswith(str(path))),
        )  # fmt: skip
        self.workers, self.texts = Recorder(statuses=(OFF,)), Recorder()
        self.updates: list[None] = []
        self.presenter = parts.make(
            DocumentsPresenter, added=self.added, texts=self.texts, workers=self.workers,
            projects=Recorder(listed=(GARDEN,)), server=lambda: self.server,
            update_index=lambda: self.updates.append(None),
        )  # fmt: skip

    def calls(self, name: str) -> list[tuple[Any, ...]]:
        return [each[1:] for each in self.added.calls if each[0] == name]


screen = fixture_of(Screen)


def test_what_is_dropped_is_added_to_the_project_of_the_conversation(screen: Screen) -> None:
    screen.parts.open.new = NewConversation(project="g")
    dialog = screen.presenter.open()
    dialog.dropped.emit([Path("/a"), Path("/b")])
    assert screen.calls("add") == [(Path("/a"), "g"), (Path("/b"), "g")]
    dialog.target.setCurrentIndex(0)
    dialog.dropped.emit([Path("/c")])
    assert screen.calls("add")[2:] == [(Path("/c"), None)]


def test_nothing_is_added_without_consent_where_texts_are_sent_elsewhere(screen: Screen) -> None:
    screen.server = "https://far.example"
    dialog = screen.presenter.open()
    for answer, count in (("Cancel", 0), ("Agree and add", 1)):
        dialog.dropped.emit([Path("/a")])
        press(answer)
        assert len(screen.calls("add")) == count


def test_an_error_is_shown_until_the_next_try_and_a_selection_is_removed(screen: Screen) -> None:
    dialog = screen.presenter.open()
    screen.added.error = InvalidInput("No", "Choose another folder.")
    dialog.dropped.emit([Path("/a")])
    assert dialog.notice.text() == "No. Choose another folder."
    screen.added.error = None
    dialog.dropped.emit([Path("/a")])
    assert not dialog.notice.isVisible()
    assert not dialog.remove.isEnabled()
    dialog.table.setCurrentIndex(dialog.model.index_of("/d"))
    for answer in ("Cancel", "Remove"):
        assert not screen.calls("remove")
        dialog.remove.click()
        press(answer)
    assert screen.calls("remove") == [([Path("/d")],)]
    assert screen.updates == [None]
    assert dialog.notice.text() == "3 documents were removed.\nIt stays in an export."


def test_a_row_opens_its_text_or_shows_its_folder_alone(screen: Screen) -> None:
    dialog = screen.presenter.open()
    for path, can_open in (("/d/sub/a.pdf", False), ("/d", True), ("/d/b.md", True)):
        dialog.table.setCurrentIndex(dialog.model.index_of(path))
        assert dialog.open_text.isEnabled() == can_open, (path, dialog._selected())
    screen.texts.results["at"] = StoredDocument("/d/b.md", "b.md", (Chunk("Text"),))
    dialog.open_text.click()
    viewer = screen.parts.dialog(PageDialog)
    assert viewer.text.toPlainText() == "Text"
    viewer.reject()
    dialog.table.setCurrentIndex(dialog.model.index_of("/d"))
    dialog.open_text.click()
    assert names(dialog.model) == ["/d", "b.md", "sub/a.pdf", "sub/c.txt"]


def test_reading_that_is_off_is_said_and_can_be_switched_on(screen: Screen) -> None:
    dialog = screen.presenter.open()
    dialog.start.click()
    assert screen.workers.calls[-1] == ("set_enabled", WorkerName.DOCUMENT_INDEXER, True)
    on = WorkerStatus(WorkerName.DOCUMENT_INDEXER, True, WorkerState.RUNNING, "/d/b.md")
    screen.parts.bridge.post_status(on)
    assert not dialog.start.isVisible()
    assert "/d/b.md" in dialog.work.text()


def test_a_dropped_folder_is_added_once_that_is_confirmed(screen: Screen) -> None:
    screen.presenter.offer([Path("/d")])
    press("Cancel")
    screen.presenter.offer([Path("/d")])
    press("Add folder")
    assert screen.calls("add") == [(Path("/d"), None)]


def test_a_source_says_what_became_of_its_file() -> None:
    item = RecalledItem(
        RecallLayer.DOCUMENT, PassageKind.DOCUMENT, PassageId(1), None, None, None, 0.8, 0.5, 0.6, 40, True
    )  # fmt: skip
    place = RecalledItemDetails(item, "a.pdf", None, "")
    chips = [
        chip_text(replace(place, title=title, file=state), with_turn=False)
        for title, state in (
            ("a.pdf", FileState.SAME), ("a.pdf", FileState.GONE), ("", FileState.GONE),
        )
    ]  # fmt: skip
    assert chips == ["a.pdf", "a.pdf \N{MIDDLE DOT} file is gone", "a deleted document"]


# -- the viewer
def document(path: Path, *, place: int | None = 1) -> StoredDocument:
    chunks = (Chunk("One. \n\n", "", 0, 1), Chunk("Two \U0001f333.\n\n", "A \u203a B", 7, 2), Chunk("Three.", "", 14, 3))  # fmt: skip
    return StoredDocument(str(path), path.name, chunks, place, "now", 3)


def viewer(screen: Screen, found: StoredDocument, place: str = "document:5") -> PageDialog:
    screen.texts.results["at"] = found
    screen.presenter.open_page(place, "title")
    return screen.parts.dialog(PageDialog)


def test_the_passage_is_marked_placed_and_copied(screen: Screen, tmp_path: Path) -> None:
    dialog = viewer(screen, document(tmp_path / "a.txt"))
    (mark,) = dialog.text.extraSelections()
    assert mark.cursor.selectedText() == "Two \U0001f333."
    assert dialog.text.textCursor().position() == 7
    assert "A \u203a B" in dialog.place.text()
    assert "page 2 of 3" in dialog.place.text()
    dialog.copy.click()
    assert QGuiApplication.clipboard().text() == "Two \U0001f333."
    dialog.text.moveCursor(dialog.text.textCursor().MoveOperation.End)
    dialog.passage.click()
    assert dialog.text.textCursor().position() == 7


def test_of_a_file_gone_or_changed_the_text_is_shown(screen: Screen, tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    for state in (FileState.GONE, FileState.CHANGED):
        dialog = viewer(screen, document(path))
        assert dialog.notice.isVisible()
        assert dialog.folder.isVisible() == (state is FileState.CHANGED)
        assert not dialog.image.isVisible()
        assert "Three." in dialog.text.toPlainText()
        dialog.reject()
        path.write_bytes(pdf("Other"))


def test_a_passage_of_a_former_version_says_what_is_there(screen: Screen, tmp_path: Path) -> None:
    dialog = viewer(screen, replace(document(tmp_path / "a.txt"), is_former=True))
    assert "since it was quoted" in dialog.notice.text()
    assert dialog.text.textCursor().position() == 7


def test_the_page_of_a_pdf_is_shown_and_can_be_turned(
    screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf("One", "Two", "Three"))
    monkeypatch.setattr(presenters, "state_of_file", lambda *_: FileState.SAME)
    dialog = viewer(screen, document(path))
    assert dialog.page.text() == "page 2 of 3"
    image = dialog.image.image
    assert image is not None
    assert max(image.width(), image.height()) == 1_600
    assert is_marked(image)
    dialog._turn(1)
    assert dialog.page.text() == "page 3 of 3"
    assert dialog.image.image is not None
    assert dialog.image.image != image
    assert not is_marked(dialog.image.image)
    dialog._turn(1)
    assert dialog.page.text() == "page 3 of 3"
    assert not dialog._image_problem.isVisible()
    path.write_bytes(pdf("One", "", "Three"))  # without a program that recognizes text
    monkeypatch.setattr(file_programs, "text_recognizer", lambda: "")
    dialog._turn(-1)
    assert dialog.image.isVisible()
    assert dialog._image_problem.isVisible()
    path.write_bytes(b"%PDF-1.7 broken")
    dialog._turn(-1)
    assert not dialog.image.isVisible()
    assert dialog._image_problem.isVisible()


def test_the_text_stays_where_it_is_when_the_width_changes(screen: Screen, tmp_path: Path) -> None:
    dialog = viewer(screen, long_document(tmp_path / "a.txt", place=10))
    top = dialog.text.firstVisibleBlock().blockNumber()
    assert top > 30
    for width_px in (dialog.width() - 2, 1_300, 500):
        dialog.resize(width_px, dialog.height())
        QApplication.processEvents()
        assert dialog.text.firstVisibleBlock().blockNumber() == top


def long_document(path: Path, *, place: int | None) -> StoredDocument:
    line = "Section {} says how the unit is mounted, filled, vented and checked for leaks, and where it is kept. "
    texts = [
        "".join(3 * line.format(n) + "\n" for n in range(at, at + 5)) for at in range(0, 100, 5)
    ]
    chunks = tuple(Chunk(text, "", sum(map(len, texts[:n]))) for n, text in enumerate(texts))
    return StoredDocument(str(path), path.name, chunks, place, "now")


def test_a_document_that_is_shown_again_is_where_it_was_left_and_a_passage_in_view(
    screen: Screen, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    dialog = viewer(screen, long_document(path, place=10))

    def top() -> int:
        return dialog.text.firstVisibleBlock().blockNumber()

    dialog.text.verticalScrollBar().setValue(0)
    viewer(screen, long_document(path, place=None), str(path))
    assert top() == 0
    dialog.text.verticalScrollBar().setValue(dialog.text.verticalScrollBar().maximum())
    left_at = top()
    assert left_at > 60
    screen.texts.results["at"] = long_document(path, place=10)
    dialog.back.click()
    assert top() == 0
    assert len(dialog.text.extraSelections()) == 1
    dialog.forward.click()
    assert top() == left_at
    dialog.reject()
    dialog = viewer(screen, long_document(path, place=None), str(path))
    assert top() == left_at
    dialog = viewer(screen, long_document(path, place=10))
    assert dialog.text.viewport().rect().contains(dialog.text.cursorRect())
    assert dialog.text.textCursor().blockNumber() == 50


def is_marked(image: QImage) -> bool:
    """Return whether a pixel of a page is yellow."""
    pixels = (
        image.pixelColor(x, y) for x in range(0, image.width(), 3) for y in range(image.height())
    )
    return any(each.blue() < 160 < each.red() for each in pixels)


def test_the_viewer_is_a_window_with_back_and_forward(screen: Screen, tmp_path: Path) -> None:
    first = viewer(screen, document(tmp_path / "a.txt"))
    assert not first.isModal()
    assert not first.back.isVisible()
    screen.texts.results["at"] = lambda place: (
        document(tmp_path / "a.txt")
        if place == "document:5"
        else document(tmp_path / "b.txt", place=None)
    )
    screen.presenter.open_page("document:6", "b.txt")
    assert screen.parts.dialog(PageDialog) is first
    assert first.windowTitle() == "b.txt"
    assert first.text.extraSelections() == []
    assert (first.back.isEnabled(), first.forward.isEnabled()) == (True, False)
    first.back.click()
    assert first.windowTitle() == "a.txt"
    assert len(first.text.extraSelections()) == 1
    first.forward.click()
    assert first.windowTitle() == "b.txt"
    for _ in range(2):
        first.step_requested.emit(-1)
    assert not first.isVisible()


def test_a_manual_page_is_shown_without_a_file_or_its_error(screen: Screen) -> None:
    page = StoredDocument("grep.1", "grep(1)", (Chunk("GREP(1)"),))
    for error, shown in ((None, "GREP(1)"), (NotFound("It is gone"), "")):
        screen.texts.error = error
        dialog = viewer(screen, page, "man:grep.1")
        assert dialog.text.toPlainText() == shown
        assert dialog.text.isReadOnly()
        assert not any(each.isVisible() for each in (dialog.folder, dialog.copy, dialog.notice))
        assert ("It is gone" in dialog.status.text()) == (error is not None)
        dialog.reject()


def test_a_folder_is_shown(screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    (tmp_path / "a.txt").write_text("Two")
    viewer(screen, document(tmp_path / "a.txt")).folder.click()
    assert opened == [str(tmp_path)]


def test_what_is_loaded_when_the_dialog_is_closed_is_not_shown(screen: Screen) -> None:
    screen.parts.bridge.hold()
    dialog = screen.presenter.open()
    dialog.reject()
    screen.parts.bridge.release()
    assert dialog.target.count() == 0
