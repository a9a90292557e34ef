"""Routines: the dialog that lists them, the editor of one, runs on request, and how their ends are announced."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from PySide6.QtWidgets import QWidget

from app.chat.presets import Presets
from app.chat.projects import Projects
from app.chat.routines import (
    RoutinePlan,
    Routines,
    RoutineState,
    next_times,
    outcome_text,
    plan_text,
)
from app.domain.errors import ConsentMissing, KnownError
from app.domain.records.presets import Preset
from app.domain.records.projects import Project
from app.domain.records.routines import Routine, RoutineRun, RunOutcome
from app.domain.translation import format_moment, tr, weekday_name
from app.language.schedules import read_schedule, schedule_text
from app.storage.engine.stamps import now
from ui.presenters.presenter import OpenTurn, Presenter
from ui.views.dialogs.confirm import Confirmation, confirm, confirm_removal
from ui.views.dialogs.routines_dialog import RoutineForm, RoutinesDialog
from ui.widgets.banner import Banner


class RoutinesPresenter(Presenter):
    """Opens the dialogs, saves with consent, and runs routines.

    `list_models` returns the models of all providers with a key, and failures.
    """

    _routines: Routines
    _presets: Presets
    _projects: Projects
    _list_models: Callable[[], Awaitable[tuple[Sequence[str], Sequence[str]]]]
    _messages: Banner
    _open_turn: OpenTurn

    def _set_up(self) -> None:
        self._dialog: RoutinesDialog | None = None
        self._form: RoutineForm | None = None
        self._bridge.subscribe(lambda _: self._load(), "routines")

    def open(self) -> RoutinesDialog:
        """Show the list; return its dialog."""
        dialog = self._dialog = RoutinesDialog(self._messages.window())
        dialog.selected.connect(self._load_runs)
        dialog.switched.connect(self._switch)
        dialog.add_requested.connect(self.add)
        dialog.edit_requested.connect(self._edit)
        dialog.run_requested.connect(lambda routine: self.run(routine.uid))
        dialog.removal_requested.connect(self._ask_to_remove)
        dialog.turn_requested.connect(self._show_turn)
        dialog.finished.connect(self._on_finished)
        self._load()
        return self._open_dialog(dialog, "routines", "routine runs")

    def add(self) -> None:
        self._edit(Routine("", "", "", "", now(), enabled_at=now()))

    def run(self, uid: str) -> None:
        """Run a routine now; its end is announced as that of any run."""
        self._bridge.run_long(partial(self._routines.run_now, uid), self._show_error)

    # -- the list

    def _load(self, select: str = "") -> None:
        if (dialog := self._dialog) is None:
            return
        self._bridge.load(
            "routines",
            self._routines.listed,
            lambda states: dialog.show_routines(states, select),
            dialog.show_error,
        )

    def _load_runs(self, uid: str) -> None:
        if (dialog := self._dialog) is not None:
            self._bridge.load(
                "routine runs",
                lambda: self._routines.history(uid),
                lambda found: dialog.show_runs(uid, [run for run, _ in found]),
                dialog.show_error,
            )

    def _switch(self, uid: str, is_on: bool) -> None:
        self._bridge.save(
            lambda: self._routines.switch(uid, is_on=is_on), on_error=self._show_error
        )

    def _ask_to_remove(self, routine: Routine) -> None:
        remove = partial(self._routines.remove, routine.uid)
        confirm_removal(
            self._parent,
            tr("Remove a routine"),
            tr("Remove the routine “{name}”?").format(name=routine.name),
            tr("The list of its runs is deleted. Its conversation stays."),
            lambda: self._bridge.save(remove, on_error=self._show_error),
        )

    def _show_turn(self, run: RoutineRun) -> None:
        if self._dialog is not None and run.conversation_id is not None:
            self._dialog.accept()
            self._open_turn(run.conversation_id, run.exchange_id, None)

    def _show_error(self, error: KnownError) -> None:
        (self._messages if self._dialog is None else self._dialog).show_error(error)

    @property
    def _parent(self) -> QWidget:
        return self._dialog or self._messages.window()

    def _on_finished(self) -> None:
        self._dialog = None

    # -- the editor

    def _edit(self, routine: Routine) -> None:
        self._bridge.load(
            "routine",
            lambda: (self._presets.listed(), self._projects.listed()),
            lambda found: self._show_form(routine, *found),
            self._show_error,
        )

    def _show_form(
        self, routine: Routine, presets: Sequence[Preset], projects: Sequence[Project]
    ) -> None:
        form = RoutineForm(
            routine,
            {each.uid: each.name for each in presets},
            {each.uid: each.name for each in projects},
            self._parent,
        )
        form.edited.connect(lambda edited: self._preview(edited, form))
        form.save_requested.connect(lambda edited: self._save(edited, form))
        form.model.opening.connect(
            lambda: self._bridge.start("routine models", self._show_models(form))
        )
        form.finished.connect(self._on_form_finished)
        tasks = ("routine preview", "routine models", "routine plan")
        self._form = self._open_dialog(form, *tasks)

    def _on_form_finished(self) -> None:
        self._form = None

    async def _show_models(self, form: RoutineForm) -> None:
        found, _ = await self._list_models()
        form.show_models(found)

    def _preview(self, routine: Routine, form: RoutineForm) -> None:
        """Show the schedule of an edited routine in words, and what it sends and costs."""

        def read() -> tuple[str, str]:
            cron = read_schedule(routine.cron)
            try:
                plan = plan_text(self._routines.plan(replace(routine, cron=cron)))
            except KnownError as error:
                plan = error.display_text
            return _echo(cron), plan

        def show(found: tuple[str, str]) -> None:
            form.show_schedule(found[0], is_valid=True)
            form.plan.setText(found[1])

        def on_error(error: KnownError) -> None:
            text = error.display_text if routine.cron.strip() else ""
            form.show_schedule(text, is_valid=False)
            form.plan.setText("")

        self._bridge.load("routine preview", read, show, on_error)

    def _save(self, routine: Routine, form: RoutineForm, *, agreed: bool = False) -> None:
        def after(saved: Routine) -> None:
            if self._form is form:
                form.accept()
            self._load(saved.uid)

        def on_error(error: KnownError) -> None:
            if self._form is not form:
                self._show_error(error)
            elif isinstance(error, ConsentMissing):
                self._ask_for_consent(routine, form)
            else:
                form.show_error(error)

        save = partial(self._routines.save, routine, agreed=agreed)
        self._bridge.save(save, after, on_error)

    def _ask_for_consent(self, routine: Routine, form: RoutineForm) -> None:
        def ask(plan: RoutinePlan) -> None:
            texts = Confirmation(
                tr("Save a routine"),
                tr("Let this routine send to {server}?").format(server=plan.sent_to),
                plan_text(plan),
                tr("Agree and save"),
            )
            confirm(form, texts, lambda: self._save(routine, form, agreed=True))

        plan = lambda: self._routines.plan(self._routines.checked(routine))  # noqa: E731
        self._bridge.load("routine plan", plan, ask, form.show_error)


def _echo(cron: str) -> str:
    """Return a schedule in words, with the next times."""
    times = " \u00b7 ".join(
        f"{weekday_name(each.astimezone().weekday())}, {format_moment(each)}"
        for each in next_times(cron)
    )
    return tr("It runs {schedule}, next:\n{times}").format(
        schedule=schedule_text(cron), times=times
    )


class RoutineNotices(Presenter):
    """Shows a banner, and by `notify` a message of the desktop, when a run ends while the window runs.

    The banner names all routines whose runs ended since it was last closed; of several it leads to
    their list. `notify` takes a text and what a click on it runs.
    """

    _routines: Routines
    _messages: Banner
    _notify: Callable[[str, Callable[[], object]], object]
    _open_turn: OpenTurn
    _open_list: Callable[[], object]

    def _set_up(self) -> None:
        self._known: dict[str, datetime | None] | None = None  # the ends of the last runs
        self._unread: dict[str, str] = {}  # what is said of each routine
        self._bridge.subscribe(lambda _: self._look(), "routines")
        self._look()

    def _look(self) -> None:
        self._bridge.load("routine notices", self._routines.listed, self._take)

    def _take(self, states: Sequence[RoutineState]) -> None:
        ended = {each.routine.uid: each.last.finished_at if each.last else None for each in states}
        before, self._known = self._known, ended
        if before is None:
            return
        for each in states:
            if each.last is not None and before.get(each.routine.uid) != each.last.finished_at:
                self._announce(each)

    def _announce(self, state: RoutineState) -> None:
        run, name = state.last, state.routine.name
        assert run is not None
        if run.outcome is RunOutcome.INTERRUPTED:
            return  # by the user, or by the end of the program
        if run.outcome is RunOutcome.COMPLETED:
            text = tr("The routine “{name}” has an answer.").format(name=name)
        else:
            text = state.notice or f"{name}: {outcome_text(run)}"
        show: Callable[[], object] = lambda: None  # noqa: E731
        action = ""
        if run.conversation_id is not None:
            show = partial(self._open_turn, run.conversation_id, run.exchange_id, None)
            action = tr("Show")
        self._unread[state.routine.uid] = text
        act = show
        if len(self._unread) > 1:
            action, act = tr("Show the routines"), self._open_list
        self._messages.show_message(
            " ".join(self._unread.values()), action, partial(self._leave, act),
            brief=False, closed=self._unread.clear,
        )  # fmt: skip
        self._notify(text, show)

    def _leave(self, act: Callable[[], object]) -> None:
        self._unread.clear()
        act()
