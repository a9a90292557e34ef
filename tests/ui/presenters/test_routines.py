"""Routines in the window: the list, its editor and the announcements, over a recorded service."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from PySide6.QtCore import Qt

from app.chat.routines import RoutinePlan, RoutineState
from app.domain.change_set import ChangeSet
from app.domain.errors import ConsentMissing, InvalidInput
from app.domain.ids import ConversationId, ExchangeId
from app.domain.records.presets import BUILT_IN_PRESET
from app.domain.records.projects import Project
from app.domain.records.routines import Routine, RoutineRun, RunOutcome
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import Parts, Recorder, press
from ui.presenters.routines import RoutineNotices, RoutinesPresenter
from ui.views.dialogs.routines_dialog import RoutineForm

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
ROUTINE = Routine("r", "Report", "What is new?", "0 9 * * 1-5", AT, AT)
RUN = RoutineRun(
    "r",
    AT,
    AT,
    AT,
    RunOutcome.COMPLETED,
    conversation_id=ConversationId(3),
    exchange_id=ExchangeId(5),
)
STATE = RoutineState(ROUTINE, AT, RUN, 0, is_running=False)
OFF = RoutineState(Routine("s", "Sums", "Add.", "0 8 * * *", AT), None, None, 0, is_running=False)
PLAN = RoutinePlan("far:m", "https://far.example", 22, 0.01)


class Screen:
    """The presenter over two routines, the first with one run."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.service = Recorder(
            listed=(STATE, OFF), history=((RUN, 0),), plan=PLAN,
            checked=lambda routine: routine, save=lambda routine: routine,
        )  # fmt: skip
        self.presenter = parts.make(
            RoutinesPresenter, routines=self.service, presets=Recorder(listed=(BUILT_IN_PRESET,)),
            projects=Recorder(listed=(Project("p", "Garden"),)), open_turn=parts.go("turn"),
        )  # fmt: skip

    def calls(self, name: str) -> list[tuple[Any, ...]]:
        return [each[1:] for each in self.service.calls if each[0] == name]

    def form(self, routine: Routine = ROUTINE) -> RoutineForm:
        """Return the editor of a routine as if its pause had passed."""
        self.presenter._edit(routine)
        form = self.parts.dialog(RoutineForm)
        show(form)
        return form


def show(form: RoutineForm) -> None:
    form._pause.stop()
    form.edited.emit(form.routine)


screen = fixture_of(Screen)


def test_the_list_shows_state_and_history_and_opens_the_turn_of_a_run(screen: Screen) -> None:
    dialog = screen.presenter.open()
    rows = [dialog.table.topLevelItem(number) for number in (0, 1)]
    assert [row.text(0) for row in rows if row] == ["Report", "Sums"]
    assert [row.checkState(0) == Qt.CheckState.Checked for row in rows if row] == [True, False]
    assert dialog.runs.topLevelItemCount() == 1
    dialog.open_turn.click()
    assert screen.parts.went == [("turn", 3, 5, None)]
    assert not dialog.isVisible()


def test_a_long_failure_leaves_no_column_cut(screen: Screen) -> None:
    dialog = screen.presenter.open()
    why = "Nothing answers at http://127.0.0.1:9000/v1. Is the server running?"
    dialog.show_routines([replace(STATE, last=replace(RUN, outcome=RunOutcome.FAILED, why=why))])
    row, widths = dialog.table.topLevelItem(0), dialog.table.header().sectionSize
    assert row is not None
    for column in range(4):
        assert widths(column) > dialog.fontMetrics().horizontalAdvance(row.text(column))


def test_the_box_of_a_routine_switches_it_and_one_that_runs_cannot_start(screen: Screen) -> None:
    dialog = screen.presenter.open()
    row = dialog.table.topLevelItem(1)
    row.setCheckState(0, Qt.CheckState.Checked)
    assert screen.calls("switch") == [("s", True)]
    dialog.run.click()
    assert [each[0] for each in screen.calls("run_now")] == ["r"]
    dialog.show_routines([replace(STATE, is_running=True)])
    assert not dialog.run.isEnabled()


def test_a_routine_is_removed_once_that_is_confirmed(screen: Screen) -> None:
    screen.presenter.open().remove.click()
    press("Cancel")
    assert not screen.calls("remove")
    screen.presenter._ask_to_remove(ROUTINE)
    press("Remove")
    assert screen.calls("remove") == [("r",)]


def test_the_editor_can_save_only_what_it_has_echoed(screen: Screen) -> None:
    form = screen.form()
    assert form.save.isEnabled()
    assert len(form.echo.text().split("\u00b7")) == 3
    assert "far.example" in form.plan.text()
    form.schedule.setText("every blue moon")
    form.schedule.textEdited.emit("")
    assert not form.save.isEnabled()
    show(form)
    assert not form.save.isEnabled()
    assert "blue" in form.echo.text()
    form.schedule.setText("every day at 8")
    show(form)
    form.cap.setValue(2.5)
    assert not form.save.isEnabled()
    show(form)
    form.project.setCurrentIndex(form.project.findData("p"))
    form.save.click()
    (saved, _) = screen.calls("save")[0]
    assert (saved.cron, saved.cap_usd, saved.project) == ("every day at 8", 2.5, "p")
    assert not form.isVisible()


def test_what_is_wrong_stays_in_the_editor(screen: Screen) -> None:
    form = screen.form()
    screen.service.results["save"] = _raises(InvalidInput("It needs a name"))
    form.save.click()
    assert form.isVisible()
    assert "needs a name" in form.status.text()


def test_a_model_elsewhere_is_agreed_to_before_it_is_saved(screen: Screen) -> None:
    form = screen.form()
    screen.service.results["save"] = _raises(ConsentMissing("It would send"))
    form.save.click()
    press("Cancel", form)
    assert form.isVisible()
    assert [agreed for _, agreed in screen.calls("save")] == [False]
    form.save.click()
    screen.service.results["save"] = lambda routine: routine
    press("Agree and save", form)
    assert not form.isVisible()
    assert screen.calls("save")[-1][1] is True


def _raises(error: Exception) -> Any:
    def save(_: Routine) -> Routine:
        raise error

    return save


class Notices:
    """The announcements, with the messages that went to the desktop."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.service = Recorder(listed=(STATE,))
        self.sent: list[str] = []
        parts.make(
            RoutineNotices, routines=self.service, open_turn=parts.go("turn"),
            open_list=parts.go("routines"),
            notify=lambda text, _: self.sent.append(text),
        )  # fmt: skip

    def end(self, run: RoutineRun, failures: int = 0) -> None:
        self.service.results["listed"] = (replace(STATE, last=run, failures=failures),)
        self.parts.bridge.changed.emit(ChangeSet(routines=frozenset("r")))


def test_the_end_of_a_run_is_announced_once_and_leads_to_its_turn(parts: Parts) -> None:
    notices = Notices(parts)
    assert parts.banner.messages == []
    later = replace(RUN, finished_at=AT + timedelta(days=1))
    notices.end(later)
    notices.end(later)
    assert len(notices.sent) == 1
    assert parts.banner.messages == notices.sent
    assert parts.banner.act is not None
    parts.banner.act()
    assert parts.went == [("turn", 3, 5, None)]


def test_several_runs_share_a_banner_that_leads_to_the_list_of_routines(parts: Parts) -> None:
    notices = Notices(parts)
    notices.service.results["listed"] = (STATE, replace(OFF, last=None))
    day = AT + timedelta(days=1)
    ended = replace(RUN, finished_at=day)
    notices.service.results["listed"] = (replace(STATE, last=ended), replace(OFF, last=ended))
    parts.bridge.changed.emit(ChangeSet(routines=frozenset("rs")))
    assert all(name in parts.banner.messages[-1] for name in ("Report", "Sums"))
    assert parts.banner.act is not None
    parts.banner.act()
    assert parts.went == [("routines",)]
    notices.end(replace(RUN, finished_at=day + timedelta(days=1)))
    assert "Sums" not in parts.banner.messages[-1]


def test_failures_are_announced_and_three_in_a_row_say_so(parts: Parts) -> None:
    notices = Notices(parts)
    failed = replace(RUN, outcome=RunOutcome.FAILED, why="It broke\nTry again.")
    notices.end(replace(failed, finished_at=AT + timedelta(days=1)), 1)
    assert "It broke. Try again." in notices.sent[-1]
    notices.end(replace(failed, finished_at=AT + timedelta(days=3)), 3)
    assert " 3 " in notices.sent[-1]
    interrupted = replace(RUN, outcome=RunOutcome.INTERRUPTED, finished_at=AT + timedelta(days=4))
    notices.end(interrupted)
    assert len(notices.sent) == 2
