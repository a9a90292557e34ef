"""Killed while a request is under way: what it may have cost is on record, and counts."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import stall, text, usage
from tests.fakes.stored import opened, told

ROOT = Path(__file__).parents[2]
MODEL, EMBEDDER = "local:test-model", "local:embed-model"
WAIT_S = 60.0


class Program:
    """`python -m app` on one data directory, with the loopback server as provider `local`."""

    def __init__(self, data_dir: Path, server: Loopback) -> None:
        self._command = [sys.executable, "-m", "app", "--data-dir", str(data_dir)]
        self._server = server
        with opened(data_dir) as store:
            told(store, "I would like to know which tea is best in the morning, and why that is")
        self("provider", "add", "local", "--kind", "compatible", "--base-url", server.v1)

    def __call__(self, *words: str, code: int = 0) -> str:
        ran = subprocess.run(
            [*self._command, *words], cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S,
            check=False,
        )  # fmt: skip
        assert ran.returncode == code, ran
        return ran.stdout + ran.stderr

    def spend(self) -> dict[str, Any]:
        plain: dict[str, Any] = json.loads(self("status", "--json").partition("\n}")[0] + "\n}")
        return dict(plain["spend"])

    def killed_while_asking(self, *words: str) -> None:
        """Do something until the server has a request more, and die of SIGKILL."""
        asked = len(self._server.posts)
        process = subprocess.Popen(
            [*self._command, *words],
            cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ),
        )  # fmt: skip
        try:
            self._server.wait_for(lambda: len(self._server.posts) > asked, WAIT_S)
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        running.models = ["test-model", "embed-model"]
        yield running


@pytest.mark.parametrize("begins", [False, True], ids=["silent", "answering"])
def test_a_request_under_way_at_a_kill_counts_against_the_cap(
    data_dir: Path, server: Loopback, begins: bool
) -> None:
    program = Program(data_dir, server)
    program("config", "set", "background_model", MODEL)
    program("price", "set", MODEL, "100", "100")
    server.always(*((text("Tea"), stall()) if begins else (stall(before_headers=True),)))
    program.killed_while_asking("work", "--until-idle", "--only", "exchange_summarizer")
    spend = program.spend()
    (row,) = spend["this_month"]
    assert (row["purpose"], row["requests"], row["interrupted_requests"]) == (
        "exchange_summarizer", 1, 1,
    )  # fmt: skip
    assert row["estimated_usd"] == row["known_usd"] == spend["today_estimated_usd"] > 0.1
    assert "of it interrupted, estimated)" in program("status")
    program("config", "set", "spend_cap_daily_usd", str(row["known_usd"]))
    assert "is reached" in program("work", "--until-idle", "--only", "exchange_summarizer", code=1)
    assert len(server.posts) == 1, "nothing more was sent"


def test_work_goes_on_after_the_kill_and_real_answers_are_no_estimates(
    data_dir: Path, server: Loopback
) -> None:
    program = Program(data_dir, server)
    program("config", "set", "background_model", MODEL)
    program("price", "set", MODEL, "1", "2")
    server.reply(stall(before_headers=True)).always(text("Tea was spoken of."), usage(100, 10))
    program.killed_while_asking("work", "--until-idle", "--only", "exchange_summarizer")
    program("work", "--until-idle", "--only", "exchange_summarizer")
    (row,) = program.spend()["this_month"]
    assert (row["requests"], row["interrupted_requests"]) == (2, 1)
    assert row["known_usd"] == pytest.approx(row["estimated_usd"] + 120 / 1e6)
    assert "Everything is in order" in program("check")


def test_texts_that_were_being_embedded_at_a_kill_count_too(
    data_dir: Path, server: Loopback
) -> None:
    program = Program(data_dir, server)
    program("config", "set", "embedder", EMBEDDER)
    program("price", "set", EMBEDDER, "1000", "0")
    server.always(stall(before_headers=True))
    program.killed_while_asking("work", "--until-idle", "--only", "embedding_pipeline")
    (row,) = program.spend()["this_month"]
    assert (row["purpose"], row["interrupted_requests"]) == ("embedding_pipeline", 1)
    assert row["estimated_usd"] > 0


def test_facts_that_are_being_learned_again_at_a_kill_answer_until_the_new_ones_are_there(
    data_dir: Path, server: Loopback
) -> None:
    program = Program(data_dir, server)
    with opened(data_dir) as store:
        told(store, "I live in Oslo.")
    program("work", "--until-idle", "--only", "knowledge_extractor")
    program("config", "set", "background_model", MODEL)
    server.always(stall(before_headers=True))
    program.killed_while_asking("rebuild", "facts", "--yes")
    assert "The user lives in Oslo." in program("facts", "list")
    learned = {"message": 1, "text": "The user's home is in Oslo.", "category": "identity"}
    server.always(text(json.dumps({"facts": [learned]})), usage(100, 10))
    program("work", "--until-idle", "--only", "knowledge_extractor")
    told_now = program("facts", "list")
    assert "The user's home is in Oslo." in told_now
    assert "The user lives in Oslo." not in told_now
    assert "The user lives in Oslo." in program("facts", "list", "--all")
    assert "Everything is in order" in program("check")
