"""Announcements of routines: a run has ended, or the last three failed."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from app.chat.routines import Routines, RoutineState, outcome_text
from app.domain.routines import Outcome
from app.domain.translation import tr
from ui.presenters.presenter import OpenTurn, Presenter
from ui.widgets.banner import Banner


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
        if run.outcome is Outcome.INTERRUPTED:
            return  # by the user, or by the end of the program
        if run.outcome is Outcome.COMPLETED:
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
