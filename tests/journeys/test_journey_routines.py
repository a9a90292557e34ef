"""Routines through the window: made, agreed to, limited, run with tools, read again, stopped and killed."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QTreeWidget

from app.bootstrap import Services
from app.domain.changes import RoutinePut
from app.domain.records.projects import Project
from app.domain.records.routines import Routine, RoutineRun, RunOutcome
from app.mcp.tool_servers import Permission, ToolServer
from app.providers.configuration import ProviderConfig
from app.providers.pricing.prices import OwnPrice
from app.system.paths import DataPaths
from app.workers.jobs import routine_runner
from tests.fakes import tool_server
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import Stall, stall, text, thinking, tool_call, usage
from tests.fakes.stored import add_conversation, opened
from tests.fakes.user import LOOPBACK_MODEL, User
from ui.views.dialogs.routines_dialog import RoutineForm

ROOT = Path(__file__).parents[2]


def _add(services: Services, **more: object) -> Routine:
    """Store a routine that is on and due once a year."""
    given = {"name": "Report", "prompt": "How is basil?", "cron": "0 9 1 1 *", **more}
    at = datetime.now(UTC)
    new = Routine("", created_at=at, enabled_at=at, **given)  # type: ignore[arg-type]
    return services.routines.save(new, agreed=True)


def _runs(services: Services) -> list[RoutineRun]:
    """Return the runs of the only routine, the latest first."""
    (state,) = services.routines.listed()
    return [run for run, _ in services.routines.history(state.routine.uid)]


def _ended(count: int, outcome: RunOutcome) -> Callable[[Services], bool]:
    def question(services: Services) -> bool:
        runs = _runs(services)
        return len(runs) == count and runs[0].outcome is outcome

    return question


def _in_a_process(*words: str | Path, module: str = "app") -> "subprocess.Popen[bytes]":
    """Start a command of the command line, or another module of ours."""
    return subprocess.Popen([sys.executable, "-m", module, *map(str, words)], cwd=ROOT)


async def _open_list(user: User) -> None:
    user.action("routines").trigger()
    await user.sees("1 routine")


async def _fill_in(user: User, name: str, prompt: str, schedule: str) -> RoutineForm:
    """Begin a routine, and wait until it can be saved."""
    user.click("New routine\u2026")
    await user.sees("Limit per month")
    for kind, label, words in (
        (QLineEdit, "Name", name),
        (QPlainTextEdit, "Prompt", prompt),
        (QLineEdit, "Schedule", schedule),
    ):
        user.find(kind, label).setFocus()
        user.type(words)
    await user.until(lambda: user.button("Save").isEnabled(), "the schedule in words")
    form = user.button("Save").window()
    assert isinstance(form, RoutineForm)
    return form


async def test_a_routine_is_made_and_its_runs_see_the_last_ones_and_recall_nothing(
    user: User, server: Loopback
) -> None:
    await user.start_with_model(server.v1)
    earlier = ("How do I keep basil alive?", "Water it from below.")
    await user.ask(lambda services: add_conversation(services.store, earlier, title="Herbs"))
    await user.until_so(lambda services: services.search.search("basil").results)
    await user.ask(lambda services: services.settings.set("context_subagent_history", 2))
    await user.ask(lambda services: services.core_memory.set("Lives in Oslo"))
    project = await user.ask(lambda services: services.projects.save(Project("", "Garden")))
    user.action("routines").trigger()
    await user.sees("There are no routines yet.")
    form = await _fill_in(user, "Report", "How is basil?", "every weekday at 9")
    assert "It runs every weekday at 09:00, next:" in form.echo.text()
    assert len(form.echo.text().split("\u00b7")) == 3
    user.choose(form.project, "Garden")
    await user.until(lambda: not form.save.isEnabled())
    await user.until(form.save.isEnabled)
    user.click("Save")
    await user.sees("1 routine")

    for number in range(4):
        server.reply(text(f"Answer {number}."), usage(900, 40))
        user.click("Run now")
        await user.until_so(_ended(number + 1, RunOutcome.COMPLETED))
        await user.until(user.button("Run now").isEnabled)
    sent = str(server.posts[-1].body)
    assert [f"Answer {number}." in sent for number in range(4)] == [False, True, True, False]
    assert "Lives in Oslo" in sent
    assert "Water it from below" not in sent
    (here,) = {run.conversation_id for run in await user.ask(_runs)}
    assert here is not None
    assert await user.ask(lambda services: services.library.project_of(here)) == project.uid
    await user.sees("The routine “Report” has an answer.")
    history = user.find(QTreeWidget, "History")
    await user.until(lambda: history.topLevelItemCount() == 4, "the last run")
    await user.until(user.button("Show the answer").isEnabled)
    user.click("Show the answer")
    await user.until(lambda: "Answer 3." in user.turn_text(3), "the answer")


async def test_nothing_is_saved_or_sent_elsewhere_without_consent_to_that_server(
    user: User, server: Loopback
) -> None:
    await user.start_with_model(server.v1)
    far = ProviderConfig("far", "compatible", "https://far.example/v1")
    await user.ask(lambda services: services.models.add_provider(far))
    user.action("routines").trigger()
    form = await _fill_in(user, "Report", "How is basil?", "every weekday at 9")
    form.model.setEditText("far:m")
    await user.until(lambda: "far.example" in form.plan.text())
    await user.until(lambda: user.button("Save").isEnabled())
    user.click("Save", form)
    await user.sees("Let this routine send to https://far.example/v1?")
    user.click("Cancel")
    assert not await user.ask(lambda services: services.routines.listed())
    user.click("Save", form)
    await user.sees("Let this routine send to https://far.example/v1?")
    user.click("Agree and save")
    await user.sees("1 routine")

    def move(services: Services) -> None:
        services.models.remove_provider("far")
        services.models.add_provider(
            ProviderConfig("far", "compatible", "https://other.example/v1")
        )

    await user.ask(move)
    user.click("Run now")
    await user.until_so(_ended(1, RunOutcome.FAILED))
    (run,) = await user.ask(_runs)
    assert "https://other.example/v1" in run.why
    assert run.exchange_id is None


async def test_a_limit_stops_a_run_before_it_sends(user: User, server: Loopback) -> None:
    await user.start_with_model(server.v1)
    await user.ask(lambda services: services.own_prices.put(LOOPBACK_MODEL, OwnPrice(100, 100)))
    await user.ask(lambda services: _add(services, cap_usd=0.5))
    await _open_list(user)
    for count in (1, 2, 3):
        user.click("Run now")
        await user.until_so(_ended(count, RunOutcome.FAILED))
        await user.until(user.button("Run now").isEnabled)
    assert not server.posts
    await user.sees("failed 3 times in a row; it stays on.")
    (run, *_) = await user.ask(_runs)
    assert "$0.50 a month" in run.why

    user.click("Edit\u2026")
    await user.sees("Limit per month")
    await user.until(lambda: user.button("Save").isEnabled())
    form = user.button("Save").window()
    assert isinstance(form, RoutineForm)
    form.cap.setValue(50)
    await user.until(lambda: not user.button("Save").isEnabled())
    await user.until(lambda: user.button("Save").isEnabled())
    user.click("Save")
    await user.until_so(lambda services: services.routines.listed()[0].routine.cap_usd == 50)
    server.reply(text("It grows."), usage(1000, 10))
    await user.until(user.button("Run now").isEnabled)
    user.click("Run now")
    await user.until_so(_ended(4, RunOutcome.COMPLETED))


async def test_a_run_uses_tools_on_always(user: User, server: Loopback, tmp_path: Path) -> None:
    await user.start_with_model(server.v1)
    calls = tmp_path / "calls"
    command = (sys.executable, tool_server.__file__, "good", str(calls))

    def connect(services: Services) -> None:
        servers = services.tool_servers
        servers.accept(servers.look_at(ToolServer("sums", command)))
        servers.permit("sums", "add", Permission.ALWAYS)
        _add(services)

    await user.ask(connect)
    await _open_list(user)
    server.reply(
        tool_call("mcp_sums_add", {"a": 2, "b": 3}),
        tool_call("mcp_sums_shout", {"text": "x"}, call_id="call_2"),
        tool_call("core_memory_append", {"text": "Lives in Oslo"}, call_id="call_3"),
    )
    server.reply(text("Five."))
    user.click("Run now")
    await user.until_so(_ended(1, RunOutcome.COMPLETED))
    offered = [each["function"]["name"] for each in server.posts[0].body["tools"]]
    assert {"mcp_sums_add", "conversation_search"} <= set(offered)
    assert not {"mcp_sums_shout", "core_memory_append", "memory_save"} & set(offered)
    assert len(calls.read_text().splitlines()) == 1
    assert await user.ask(lambda services: services.core_memory.text()) == ""


async def test_a_private_routine_is_not_found_or_recalled(user: User, server: Loopback) -> None:
    await user.start_with_model(server.v1)
    await user.ask(lambda services: _add(services, is_private=True))
    await _open_list(user)
    server.reply(text("The heron moved to the gateway."))
    user.click("Run now")
    await user.until_so(_ended(1, RunOutcome.COMPLETED))
    open_ = {"name": "Open", "prompt": "How is the gateway?"}
    other = await user.ask(lambda services: _add(services, **open_))
    server.reply(text("The heron is at the gateway."))
    await user.ask(lambda services: services.routines.run_now(other.uid))
    await user.until_so(lambda services: services.search.search("heron gateway").results)
    found = await user.ask(lambda services: services.search.search("heron gateway").results)
    assert {each.conversation_title for each in found} == {"Open"}


async def test_a_run_that_the_end_of_the_program_stops_goes_on_at_the_next_start(
    user: User, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routine_runner, "_SPACING_S", 0.0)
    await user.start_with_model(server.v1)
    server.reply(Stall(before_headers=True))
    due = datetime.now().astimezone() - timedelta(minutes=2)

    def add(services: Services) -> None:
        stored = _add(services, cron=f"{due.minute} {due.hour} * * *")
        services.store.save(
            RoutinePut(replace(stored, enabled_at=due.astimezone(UTC) - timedelta(minutes=1)))
        )

    await user.ask(add)
    await user.until(lambda: len(server.posts) == 1, "the request")
    server.reply(text("It grows."))
    await user.restart()
    await user.until_so(_ended(1, RunOutcome.COMPLETED))
    await _open_list(user)
    await user.until(user.button("Show the answer").isEnabled)
    user.click("Show the answer")
    await user.until(lambda: "It grows." in user.turn_text(0), "the answer")
    assert len(user.transcript.heights) == 1


async def test_a_scheduled_run_whose_window_was_killed_goes_on_once_at_anthropic(
    user: User, server: Loopback, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routine_runner, "_SPACING_S", 0.0)
    monkeypatch.setenv("CLAUDE_API_KEY", "test")
    due = datetime.now().astimezone() - timedelta(minutes=2)
    await user.start()

    def add(services: Services) -> Routine:
        services.models.add_provider(ProviderConfig("claude", "anthropic", server.url))
        services.own_prices.put("claude:test-model", OwnPrice(10, 10))
        return _add(services, model="claude:test-model", cron=f"{due.minute} {due.hour} * * *")

    stored = await user.ask(add)
    await user.leave()
    with opened(data_dir) as store:
        before = due.astimezone(UTC) - timedelta(minutes=1)
        store.save(RoutinePut(replace(stored, enabled_at=before)))
    server.reply(
        thinking("Let me see."), text("Basil grows in", chunks=4), usage(1_000, 10), stall()
    )
    window = _in_a_process(data_dir, "--routines", module="tests.fakes.driven_window")
    journal = DataPaths(data_dir).journal
    try:
        await user.until(
            lambda: any(b"grows in" in each.read_bytes() for each in journal.iterdir()),
            "the journal",
        )
    finally:
        window.kill()
        window.wait()

    server.reply(text(" the sun."), usage(1_000, 10))
    await user.start()
    await user.until_so(_ended(1, RunOutcome.COMPLETED))
    assert [each.path for each in server.posts] == ["/v1/messages", "/v1/messages"]
    await _open_list(user)
    await user.until(user.button("Show the answer").isEnabled)
    user.click("Show the answer")
    await user.until(lambda: "the sun." in user.turn_text(0), "the answer")
    assert "Basil grows in" in user.turn_text(0)
    assert len(user.transcript.heights) == 1
    sent = server.posts[-1].body["messages"]
    assert [each["role"] for each in sent] == ["user", "assistant", "user"], "it is asked to go on"
    rows = await user.ask(lambda services: services.store.rows("SELECT count(*) FROM conversation"))
    assert rows == [(1,)]


async def test_a_killed_run_is_interrupted(user: User, server: Loopback, data_dir: Path) -> None:
    await user.start_with_model(server.v1)
    routine = await user.ask(_add)
    await user.ask(lambda services: services.routines.switch(routine.uid, is_on=False))
    await user.leave()
    server.reply(Stall(before_headers=True))
    running = _in_a_process("--data-dir", data_dir, "routine", "run", "Report")
    try:
        await user.until(lambda: len(server.posts) == 1, "the request")
    finally:
        running.kill()
        running.wait()
    await user.start()
    await user.until_so(_ended(1, RunOutcome.INTERRUPTED))
    await _open_list(user)
    await user.until(lambda: user.button("Run now").isEnabled())
