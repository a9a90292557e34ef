"""Routines in their table: the conversation that the next run goes on in."""

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.bootstrap import RunMode, build
from app.chat.routine_runs import RoutineRuns
from app.domain.changes import ConversationEdited, RoutinePut, RoutineRunPut
from app.domain.records.routines import Routine, RoutineRun, RunOutcome
from app.storage.engine.store import Store
from app.storage.tables.routines import RoutineRows
from tests.fakes.stored import add_conversation, made

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
DAILY = Routine("d", "Daily", "Report.", "0 9 * * *", AT, project="home")


@pytest.mark.parametrize(
    ("change", "is_reused"),
    [({}, True), ({"project": "work"}, False), ({"project": None}, False),
     ({"is_private": True}, False)],
)  # fmt: skip
def test_a_run_goes_on_where_the_last_one_was_if_its_project_and_privacy_are_the_same(
    store: Store, change: dict[str, object], is_reused: bool
) -> None:
    whole = add_conversation(store, ("Report.", "All is well."))
    here = whole.conversation
    run = RoutineRun(
        "d", AT, AT, AT, RunOutcome.COMPLETED, conversation_id=here.id,
        exchange_id=whole.exchanges[0].id,
    )  # fmt: skip
    store.save(RoutinePut(DAILY), RoutineRunPut(run), ConversationEdited(here.id, project="home"))
    rows = RoutineRows(store)
    assert rows.listed() == (DAILY,)
    found = rows.conversation_id(replace(DAILY, **change))  # type: ignore[arg-type]
    assert found == (here.id if is_reused else None)


@pytest.mark.parametrize(
    ("cron", "least", "most"), [("* * * * *", 43_100, 43_300), ("0 9 * * 1-5", 20, 23)]
)
def test_the_runs_of_a_month_are_counted(data_dir: Path, cron: str, least: int, most: int) -> None:
    with closing(build(made(data_dir), RunMode.COMMAND_LINE)) as services:
        plan = services.routines.plan(replace(DAILY, cron=cron, project=None))
    assert least <= plan.runs_a_month <= most


@pytest.mark.parametrize(("outcome", "is_running"), [(None, True), (RunOutcome.COMPLETED, False)])
def test_a_run_whose_end_is_stored_is_not_running_although_it_is_still_there(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, outcome: RunOutcome | None, is_running: bool
) -> None:
    monkeypatch.setattr(RoutineRuns, "is_running", lambda *_: True)
    with closing(build(made(data_dir), RunMode.COMMAND_LINE)) as services:
        services.store.save(
            RoutinePut(DAILY), RoutineRunPut(RoutineRun("d", AT, AT, None, outcome))
        )
        (state,) = services.routines.listed()
    assert state.is_running is is_running


@pytest.mark.parametrize(("is_running", "outcome"), [(True, None), (False, RunOutcome.INTERRUPTED)])
def test_a_run_that_was_killed_is_not_shown_as_running(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, is_running: bool, outcome: RunOutcome | None
) -> None:
    monkeypatch.setattr(RoutineRuns, "is_running", lambda *_: is_running)
    with closing(build(made(data_dir), RunMode.COMMAND_LINE)) as services:
        runs = [RoutineRun("d", at, at) for at in (AT - timedelta(days=1), AT)]
        services.store.save(RoutinePut(DAILY), *map(RoutineRunPut, runs))
        (last, _), (earlier, _) = services.routines.history("d")
    assert (last.outcome, earlier.outcome) == (outcome, RunOutcome.INTERRUPTED)
