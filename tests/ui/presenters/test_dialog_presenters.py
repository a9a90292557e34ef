"""Presenters of dialogs, each alone with its dialog: edits are not lost, errors are reported."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from PySide6.QtCore import QStandardPaths
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QLabel,
    QMessageBox,
    QPushButton,
)
from pytestqt.qtbot import QtBot

from app.domain.errors import InvalidInput, NotFound, StorageError
from app.domain.ids import ConversationId, PassageId
from app.domain.records.facts import Fact, FactCategory
from app.domain.transfer import AddedConversation, ImportProgress, ImportReport, Skipped
from app.memory.summaries import SummaryTarget
from app.storage.tables.facts import KnownFact
from app.storage.tables.summaries import Summary
from app.transfer.import_history import PastImport, Undone
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import TALK, Parts, Recorder, exchange, press, view_of
from ui.presenters.imports import ImportPresenter
from ui.presenters.memory.facts import FactsPresenter, SummariesPresenter
from ui.views.dialogs.import_dialog import PastImportsDialog
from ui.views.memory.facts_view import FactsView
from ui.views.memory.summaries_pane import SummariesPane

AT = datetime(2026, 3, 18, tzinfo=UTC)


def known(number: int, text: str) -> KnownFact:
    fact = Fact(
        PassageId(number), f"u{number}", text, FactCategory.PLAN, "", ConversationId(1), None,
        None, AT, "user", AT,
    )  # fmt: skip
    return KnownFact(fact, "Talk", archived=False, turn_number=None, successor="", versions=1)


class FactStore(Recorder):
    """Two facts; every edit is recorded, or raises `error`."""

    def __init__(self) -> None:
        self.facts = {1: known(1, "first"), 2: known(2, "second")}
        super().__init__(
            listed=lambda _: list(self.facts.values()), count=2, versions=[], edit=self.change,
            by_ids=lambda ids: {each: self.facts[each] for each in ids},
        )  # fmt: skip

    @property
    def edits(self) -> list[tuple[int, str]]:
        return [each[1:3] for each in self.calls if each[0] == "edit"]

    def change(self, fact_id: int, text: str, _category: FactCategory) -> None:
        fact = self.facts[fact_id]
        self.facts[fact_id] = replace(fact, fact=replace(fact.fact, text=text))


class Facts:
    """The presenter with its page open at the first fact, whose text is edited."""

    def __init__(self, parts: Parts) -> None:
        self.store, self.pages = FactStore(), list[str]()
        self.view = FactsView()
        self.presenter = parts.make(
            FactsPresenter, facts=self.store, service=self.store, view=self.view,
            open_page=self.open_page,
        )  # fmt: skip
        self.presenter.open(1)
        assert (self.pane.fact_id, self.pages) == (1, ["facts"])
        self.pane.text.setPlainText("edited")

    @property
    def pane(self) -> Any:
        return self.view.pane

    def open_page(self, page: str) -> None:
        self.pages.append(page)
        self.view.show()

    def leave_by(self, way: str) -> Callable[[], bool]:
        """Leave the edited fact; return what says whether that has happened."""
        left: list[int] = []
        if way == "select":
            self.view.list.setCurrentIndex(self.view.facts.row_of(2))
            QApplication.processEvents()
            return lambda: self.pane.fact_id == 2
        self.view.hide()
        self.presenter.ask_before_leaving(lambda: left.append(1))
        assert self.pages[-1] == "facts"
        return lambda: bool(left)


facts = fixture_of(Facts)


@pytest.mark.parametrize("way", ["select", "quit"])
@pytest.mark.parametrize(
    ("answer", "edits", "leaves"),
    [("Save", [(1, "edited")], True), ("Discard", [], True), ("Cancel", [], False)],
)
def test_an_edited_fact_is_left_only_after_a_question(
    facts: Facts, way: str, answer: str, edits: list[tuple[int, str]], leaves: bool
) -> None:
    has_left = facts.leave_by(way)
    assert not has_left()
    assert facts.pane.text.toPlainText() == "edited"
    press(answer, facts.view)
    assert facts.store.edits == edits
    assert has_left() is leaves
    assert facts.pane.is_edited is not leaves


def test_an_edit_that_is_refused_stays_and_is_reported(facts: Facts) -> None:
    facts.store.error = InvalidInput("A fact cannot be that long")
    has_left = facts.leave_by("quit")
    press("Save", facts.view)
    assert not has_left()
    assert facts.pane.text.toPlainText() == "edited"
    assert "cannot be that long" in facts.view._status.text()


def test_an_edit_survives_a_filter_that_hides_its_fact(facts: Facts) -> None:
    facts.view.show_facts([known(2, "second")], 1)
    assert facts.pane.fact_id == 1
    assert facts.pane.text.toPlainText() == "edited"


class SummariesPage:
    """The presenter with its page open at a conversation, whose summary is typed."""

    def __init__(self, parts: Parts) -> None:
        self.store = store = Recorder(
            open=SimpleNamespace(path=[exchange(5)]), questions={5: "Why?"}, versions=[],
            write=self.write,
        )  # fmt: skip
        self.bridge, self.banner, self.open, self.pages = (
            parts.bridge, parts.banner, parts.open, list[str]()
        )  # fmt: skip
        self.open.open_path(view_of())
        self.pane = SummariesPane()
        self.presenter = parts.make(
            SummariesPresenter, library=store, questions=store, summaries=store, service=store,
            pane=self.pane, open_page=self.pages.append,
        )  # fmt: skip
        self.pane.show()
        self.pane.text.setPlainText("mine")

    def write(self, _of: SummaryTarget, source_id: int, text: str) -> None:
        self.store.results["versions"] = [Summary(source_id, text, "user", AT)]


summaries = fixture_of(SummariesPage)


@pytest.mark.parametrize("way", ["choose", "quit"])
@pytest.mark.parametrize(
    ("answer", "count", "leaves"), [("Save", 1, True), ("Discard", 0, True), ("Cancel", 0, False)]
)
def test_an_edited_summary_is_left_only_after_a_question(
    summaries: SummariesPage, way: str, answer: str, count: int, leaves: bool
) -> None:
    left: list[str] = []
    if way == "choose":
        summaries.pane.choice.activated.emit(1)
    else:
        summaries.presenter.ask_before_leaving(lambda: left.append("left"))
    assert (summaries.pane.text.toPlainText(), summaries.pages) == ("mine", ["summaries"])
    press(answer, summaries.pane)
    written = [each[1:] for each in summaries.store.calls if each[0] == "write"]
    assert written == [(SummaryTarget.CONVERSATION, TALK, "mine")] * count
    source = summaries.pane.source
    assert (source.of is SummaryTarget.EXCHANGE if way == "choose" else bool(left)) is leaves
    assert summaries.pane.is_edited is not leaves


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_a_refused_summary_is_reported_there(summaries: SummariesPage, is_elsewhere: bool) -> None:
    summaries.store.error = StorageError("The disk is full")
    summaries.bridge.hold()
    summaries.pane.save.click()
    if is_elsewhere:
        summaries.pane.hide()
    summaries.bridge.release()
    in_page = "The disk is full" in summaries.pane.status.text()
    assert (in_page, len(summaries.banner.errors)) == (not is_elsewhere, int(is_elsewhere))
    assert summaries.pane.is_edited


def test_an_edited_summary_stays_when_another_one_is_opened(summaries: SummariesPage) -> None:
    summaries.open.open_path(view_of(number=8))
    assert summaries.pane.text.toPlainText() == "mine"
    summaries.pane.save.click()
    assert ("write", SummaryTarget.CONVERSATION, TALK, "mine") in summaries.store.calls
    assert summaries.pane.source.source_id == 8


def test_text_typed_while_a_summary_is_saved_stays(summaries: SummariesPage) -> None:
    summaries.bridge.hold()
    summaries.pane.save.click()
    summaries.pane.text.setPlainText("mine, and more")
    summaries.bridge.release()
    assert (summaries.pane.text.toPlainText(), summaries.pane.is_edited) == ("mine, and more", True)


@pytest.mark.parametrize("view", [None, view_of(private=True), view_of(deleted_at=AT)])
def test_only_conversations_that_are_summarized_have_a_page_of_summaries(
    summaries: SummariesPage, view: object
) -> None:
    summaries.pane.undo()
    summaries.open.open_path(view)
    assert not summaries.pane.text.isVisible()
    assert summaries.pane.status.text()


class Imports:
    """The presenter, whose next import ends as `outcome` says."""

    def __init__(self, parts: Parts) -> None:
        self.background = Recorder(revoke_consents="given")
        self.bridge, self.banner = parts.bridge, parts.banner
        self.outcome: ImportReport | Exception = ImportReport()
        self.preview = ImportReport()
        self.dry_runs: list[bool] = []
        self.readers: list[object] = []
        undone = Undone([ConversationId(1), ConversationId(2)])
        self.history = Recorder(undo=undone, get=PastImport(4, AT, ("export.zip",), 2))
        self.presenter = parts.make(
            ImportPresenter, import_files=self.run, background=self.background,
            ask_for_consent=lambda: None, history=self.history, questions=lambda _: (),
        )  # fmt: skip

    def run(
        self,
        _paths: object,
        *,
        cancelled: Callable[[], bool],
        on_progress: Callable[[ImportProgress], None],
        read: object,
        dry_run: bool = False,
        memories: bool = False,
    ) -> ImportReport:
        self.dry_runs.append(dry_run)
        self.memories = memories
        self.readers.append(read)
        on_progress(ImportProgress(1, 2, bytes_read=5, bytes_total=10))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return replace(self.preview if dry_run else self.outcome, cancelled=cancelled())


imports = fixture_of(Imports)


@pytest.mark.parametrize(
    "outcome",
    [ImportReport(), InvalidInput("No export", "Choose another."), RuntimeError("a bug")],
    ids=["report", "refused", "bug"],
)
def test_the_import_dialog_can_be_closed_however_the_import_ended(
    imports: Imports, outcome: ImportReport | Exception
) -> None:
    imports.outcome = outcome
    imports.presenter.start([Path("export.zip")])
    assert not imports.presenter.is_running
    dialog = imports.presenter.dialog
    assert not dialog.isModal()
    dialog.reject()
    assert not dialog.isVisible()
    assert [type(each) for each in imports.bridge.failures] == (
        [RuntimeError] if isinstance(outcome, RuntimeError) else []
    )


def test_an_import_is_cancelled_and_a_second_one_waits_for_its_end(imports: Imports) -> None:
    imports.bridge.hold()
    imports.presenter.start([Path("export.zip")])
    imports.presenter.start([Path("other.zip")])
    assert len(imports.banner.messages) == 1
    dialog = imports.presenter.dialog
    dialog.reject()
    assert dialog.isVisible()
    imports.bridge.release()
    assert not imports.presenter.is_running
    assert "stopped" in dialog._headline.text()


def test_what_an_import_would_add_is_shown_first_and_can_be_undone(imports: Imports) -> None:
    new = AddedConversation(ConversationId(1), "A trip", AT)
    imports.preview = ImportReport(1, 1, 2, new=(new,), skipped=(Skipped("b.json", "broken"),))
    imports.outcome = replace(imports.preview, number=4)
    imports.presenter.start([Path("export.zip")])
    dialog = imports.presenter.dialog
    assert dialog is not None
    shown = dialog.list.toPlainText()
    assert shown.startswith("b.json: broken\n\n"), "below the line that counts what was skipped"
    assert shown.endswith("A trip")
    assert imports.dry_runs == [True]
    click(dialog, "Import")
    assert imports.dry_runs == [True, False]
    assert imports.readers[0] == imports.readers[1]  # what the preview read is kept
    (buttons,) = dialog.findChildren(QDialogButtonBox)
    assert {each.text() for each in buttons.buttons()} == {"Undo import", "Close"}
    click(dialog, "Undo import")
    assert {each.text() for each in buttons.buttons()} == {"Close"}
    assert imports.history.calls == [("get", 4), ("undo", 4)]
    assert "2 conversations" in dialog.words.text()
    assert dialog.list.isHidden(), "what was skipped is of the import"


@pytest.mark.parametrize("wanted", [True, False])
def test_statements_of_another_program_are_kept_as_facts_if_chosen(
    imports: Imports, wanted: bool
) -> None:
    imports.preview = ImportReport(offered=3)  # an earlier import brought all else
    imports.presenter.start([Path("export.zip")])
    dialog = imports.presenter.dialog
    assert dialog is not None
    assert dialog.memories.isVisible()
    dialog.memories.setChecked(wanted)
    click(dialog, "Import")
    assert (imports.dry_runs, imports.memories) == ([True, False], wanted)
    assert dialog.memories.isHidden()


def test_a_preview_that_is_left_stores_nothing(imports: Imports) -> None:
    imports.preview = ImportReport(1, 1, 2)
    imports.presenter.start([Path("export.zip")])
    imports.presenter.dialog.reject()
    imports.presenter.start([Path("other.zip")])
    assert imports.dry_runs == [True, True]


def test_past_imports_are_listed_and_undone(imports: Imports, qtbot: QtBot) -> None:
    past = [
        PastImport(3, AT, ("c.zip",), 0, 5), PastImport(2, AT, ("b.zip",), 3),
        PastImport(1, AT, ("a.zip",), 0), PastImport(0, AT, ("0.zip",), 0, changed=1),
    ]  # fmt: skip
    enabled = list[bool]()

    def undone(_number: int) -> Undone:
        enabled.extend(each.isEnabled() for each in undo)
        return Undone([ConversationId(1)])

    imports.history = Recorder(listed=past, undo=undone)
    imports.presenter._history = cast(Any, imports.history)
    imports.presenter.show_past()
    (dialog,) = imports.banner.findChildren(PastImportsDialog)
    explained = dialog.status.text()
    undo = [each for each in dialog.findChildren(QPushButton) if each.text() == "Undo"]
    assert [each.isEnabled() for each in undo] == [True, True, False, True]
    assert not [each for each in dialog.findChildren(QLabel) if "0 conversations" in each.text()]
    undo[0].click()
    (box,) = dialog.findChildren(QMessageBox)
    assert ("undo", 3) not in imports.history.calls
    next(each for each in box.buttons() if each.text() == "Undo import").click()
    assert ("undo", 3) in imports.history.calls
    undo = [each for each in dialog.findChildren(QPushButton) if each.text() == "Undo"]
    undo[1].click()
    assert ("undo", 2) in imports.history.calls
    assert set(enabled) == {False}
    undo = [each for each in dialog.findChildren(QPushButton) if each.text() == "Undo"]
    imports.history.error = NotFound("There is no import 0", "Look.")
    undo[3].click()
    assert undo[3].isEnabled()
    assert dialog.status.text() != explained
    dialog.reject()
    qtbot.waitUntil(lambda: not imports.banner.findChildren(PastImportsDialog))


def click(dialog: QDialog, text: str) -> None:
    (button,) = (each for each in dialog.findChildren(QPushButton) if each.text() == text)
    button.click()


def test_consents_are_restored_if_nothing_was_imported(imports: Imports) -> None:
    for report, calls in (
        (ImportReport(), [("revoke_consents",), ("restore_consents", "given")]),
        (ImportReport(turns=2), [("revoke_consents",), ("plan",)]),
    ):
        imports.outcome = report
        imports.background.calls.clear()
        imports.presenter.start([Path("export.zip")])
        assert imports.background.calls == calls


def test_a_file_dialog_begins_in_downloads_and_is_deleted(imports: Imports, qtbot: QtBot) -> None:
    folder = Path(QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DownloadLocation))
    folder.mkdir(exist_ok=True)
    imports.presenter.choose()
    (dialog,) = imports.banner.findChildren(QFileDialog)
    assert Path(dialog.directory().path()) == folder
    dialog.reject()
    qtbot.waitUntil(lambda: not imports.banner.findChildren(QFileDialog))
