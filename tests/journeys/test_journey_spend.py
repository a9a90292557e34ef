"""A kill during a request: its possible cost is on record and counts; work goes on afterwards."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.bootstrap import RunMode, Services, build
from app.domain.chat import StoredProvider
from app.providers.pricing.prices import OwnPrice
from app.system.paths import DataPaths
from tests.fakes.background import part_answer
from tests.fakes.command_line import CommandLine
from tests.fakes.fixtures import fixture_of
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import stall, text, usage
from tests.fakes.stored import add_conversation, opened

ROOT = Path(__file__).parents[2]
MODEL = "local:test-model"
EXCHANGES = ("work", "--until-idle", "--only", "exchange_summarizer")
WAIT_S = 60.0


class Program:
    """The command line on one data directory, with the loopback server as provider `local`."""

    def __init__(
        self, data_dir: Path, server: Loopback, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._here = CommandLine(data_dir, capsys)
        self._paths = DataPaths(data_dir)
        self._command = [sys.executable, "-m", "app", "--data-dir", str(data_dir)]
        self._server = server
        with opened(data_dir) as store:
            add_conversation(
                store, "I would like to know which tea is best in the morning, and why"
            )
        row = StoredProvider("local", "compatible", server.v1, None)
        self.inside(lambda services: services.settings.put_provider(row))

    def inside(self, act: Callable[[Services], Any]) -> Any:
        """Return what a call on the program in this process returns."""
        services = build(self._paths, RunMode.COMMAND_LINE)
        try:
            return act(services)
        finally:
            services.close()

    def set(self, key: str, value: str | float) -> None:
        self.inside(lambda services: services.settings.set(key, value))

    def __call__(self, *words: str, code: int = 0) -> str:
        """Run a command in this process; return what it writes."""
        ran = self._here(*words)
        assert ran.code == code, ran
        return ran.out + ran.err

    def spend(self) -> dict[str, Any]:
        return dict(json.loads(self("status", "--json").partition("\n}")[0] + "\n}")["spend"])

    def killed_while_asking(self, *words: str) -> None:
        """Run a command until the server has one more request, then kill it."""
        asked = len(self._server.posts)
        process = subprocess.Popen(
            [*self._command, *words], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            self._server.wait_for(lambda: len(self._server.posts) > asked, WAIT_S)
        finally:
            process.kill()
            process.wait()


program = fixture_of(Program, "data_dir", "server", "capsys")


def test_a_request_cut_by_a_kill_counts_in_the_limit(program: Program, server: Loopback) -> None:
    program.set("background_model", MODEL)
    program.inside(lambda services: services.own_prices.put(MODEL, OwnPrice(100.0, 100.0)))
    server.always(text("Tea"), stall())
    program.killed_while_asking(*EXCHANGES)
    spend = program.spend()
    (row,) = spend["this_month"]
    assert (row["purpose"], row["requests"], row["interrupted_requests"]) == (
        "exchange_summarizer", 1, 1,
    )  # fmt: skip
    assert row["estimated_usd"] == row["known_usd"] == spend["today_estimated_usd"] > 0.1
    program.set("spend_cap_daily_usd", row["known_usd"])
    assert "is reached" in program(*EXCHANGES, code=1)
    assert len(server.posts) == 1, "nothing more was sent"
    program.inside(lambda services: services.settings.reset("spend_cap_daily_usd"))
    server.always(text(json.dumps(part_answer())), usage(100, 10))
    program(*EXCHANGES)
    (row,) = program.spend()["this_month"]
    assert (row["requests"], row["interrupted_requests"]) == (2, 1)
    assert row["known_usd"] == pytest.approx(row["estimated_usd"] + 110 * 100 / 1e6)
    assert program.inside(lambda services: services.check()).problems == ()
