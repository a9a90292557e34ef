"""Background work with a model, under everything that can go wrong; prints JSON.

    python -m tests.bench.chaos [--exchanges 10000] [--turns 10] [--kill-every 4]  (seconds; 0 never kills)

A library of made-up exchanges is summarised, embedded and mined for facts by `work --until-idle`
against a loopback server that refuses some requests, breaks some and answers some with nonsense,
while the process is killed (SIGKILL) every few seconds and started again. At the end it is counted what
is missing, what is there twice, what stands at the wrong place, and whether the spend on record is
what the server counted: what was on its way when a process died is on record too, as the most it may
have cost, so the record may say more than the server and never less.
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from app.bootstrap import RunMode, Services, build
from app.domain.workers import WorkerName
from app.storage.engine.connection import Connection
from app.system.paths import DataPaths
from tests.bench.shared.measuring import Figures, options, print_json, timed
from tests.fakes.background import part_answer
from tests.fakes.loopback import Loopback, Seen
from tests.fakes.loopback_script import Step, error, garbage, text, usage
from tests.fakes.stored import new_conversation, opened

LIMITED, FAILING, SENSELESS = 0.05, 0.02, 0.01
MODEL = "loop:test-model"
USD_PER_MILLION = (1.0, 2.0)
PAID_WORKERS = 3
TURN = re.compile(r"turn (\d+), [^\n]*, user\]\n[^\n]*item (\d{6})")


@dataclass
class Answering:
    """What the server says and counts; called on the threads of its connections."""

    chance: random.Random
    lock: threading.Lock = field(default_factory=threading.Lock)
    said: Counter[str] = field(default_factory=Counter)
    exchanges: Counter[str] = field(default_factory=Counter)
    input_tokens: int = 0
    output_tokens: int = 0

    def __call__(self, seen: Seen) -> Iterable[Step]:
        asked = str(seen.body["messages"][-1]["content"])
        with self.lock:
            drawn = self.chance.random()
            if drawn < LIMITED:
                self.said["limited"] += 1
                return [error(429, "rate_limit_error", retry_after=0.2)]
            if drawn < LIMITED + FAILING:
                self.said["failed"] += 1
                return [error(503, "server_error")]
            if drawn < LIMITED + FAILING + SENSELESS / 2:
                self.said["garbage"] += 1
                return [garbage()]
            self.said["answered"] += 1
            tokens_in, tokens_out = len(asked) // 4, 20
            self.input_tokens += tokens_in
            self.output_tokens += tokens_out
            words = self._words(asked, drawn < LIMITED + FAILING + SENSELESS)
        return [text(words), usage(tokens_in, tokens_out)]

    def _words(self, asked: str, nonsense: bool) -> str:
        turns = {int(number): item for number, item in TURN.findall(asked)}
        self.exchanges.update(turns.values())
        facts = [
            {
                "op": "add",
                "text": f"The user owns item {item}.",
                "words": f"item {item}",
                "source_turn": number,
            }
            for number, item in turns.items()
        ]
        lines = [
            {"number": number, "line": f"What was said of item {item}."}
            for number, item in turns.items()
        ]
        return "certainly {" if nonsense else json.dumps(part_answer(*facts, turns=lines))


def main() -> None:
    given = options(__doc__, exchanges=10_000, turns=10, kill_every=4.0)
    answering = Answering(random.Random(3))
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder, Loopback() as server:
        root = Path(folder) / "data"
        filled(root, given.exchanges, given.turns, server.v1)
        server.by(answering)
        took = timed(lambda: worked(root, given.kill_every))
        kills = took.result
        figures = counted(root, given.exchanges, given.exchanges // given.turns)
    billed = (
        answering.input_tokens * USD_PER_MILLION[0] + answering.output_tokens * USD_PER_MILLION[1]
    ) / 1e6
    requests = answering.said["answered"]
    figures |= {
        "took_s": round(took.wall_s), "kills": kills, "server": dict(answering.said),
        "exchanges_answered_again": sum(answering.exchanges.values()) - len(answering.exchanges),
        "server_usd": round(billed, 6),
        "requests_missing_on_record": max(0, requests - figures["requests_on_record"]),
        "usd_missing_on_record": round(max(0.0, billed - figures["usd_on_record"]), 6),
        "requests_estimated_allowed": kills * PAID_WORKERS,
    }  # fmt: skip
    print_json(figures)


def filled(root: Path, exchanges: int, turns: int, base_url: str) -> None:
    with opened(root) as store:
        waiting = []
        for first in range(0, exchanges, turns):
            texts = [
                f"I own item {number:06d} and keep it on shelf {number % 97}, what should I do?"
                for number in range(first, first + turns)
            ]
            waiting.append(store.commit(*new_conversation(store, *texts).changes))
        for each in waiting:
            each.result()
    for words in (
        ("provider", "add", "loop", "--kind", "compatible", "--base-url", base_url),
        ("price", "set", MODEL, *map(str, USD_PER_MILLION)),
        ("config", "set", "background_model", MODEL),
        ("config", "set", "summarizer_quiet_minutes", "0"),
    ):
        subprocess.run([*program(root), *words], check=True, stdout=subprocess.DEVNULL)


def program(root: Path) -> list[str]:
    return [sys.executable, "-m", "app", "--data-dir", str(root)]


def worked(root: Path, kill_every_s: float) -> int:
    """Run `work --until-idle`, killed again and again, until it ends by itself; return the kills."""
    kills = 0
    while True:
        process = subprocess.Popen(
            [*program(root), "work", "--until-idle"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ),
        )  # fmt: skip
        try:
            process.wait(kill_every_s or None)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
            continue
        if process.returncode == 0:
            return kills


def counted(root: Path, exchanges: int, conversations: int) -> Figures:
    """Return what is missing, double or at the wrong place, and what was spent."""
    built = build(DataPaths(root), RunMode.COMMAND_LINE)
    try:
        figures = built.store.read(_rows)
        problems = [str(each) for each in built.check().problems]
        left = {
            str(status.name): {"abandoned": status.abandoned, "missing": status.total - status.done}
            for status in built.workers.refresh()
            if status.enabled
        }
        return {
            "exchanges": exchanges,
            "missing_exchange_summaries": exchanges - figures.pop("exchange_summaries"),
            "missing_conversation_summaries": conversations - figures.pop("conversation_summaries"),
            "missing_extractions": exchanges - figures.pop("extractions"),
            "missing_facts": exchanges - figures["facts"],
            "missing_vectors": _missing_vectors(built),
            "workers": left,
            "problems_found_by_check": problems,
            **figures,
        }
    finally:
        built.close()


def _missing_vectors(built: Services) -> int:
    (status,) = (
        each for each in built.workers.refresh() if each.name is WorkerName.EMBEDDING_PIPELINE
    )
    return status.total - status.done


def _rows(cursor: Connection) -> Figures:
    wrong = (
        "SELECT count(*) FROM summary s JOIN exchange_message l ON l.exchange_id = s.source_id "
        "AND l.place = 0 JOIN message m ON m.id = l.message_id WHERE s.kind = 'exchange' "
        "AND regexp_extract(s.text, 'item (\\d+)') <> regexp_extract(m.text, 'item (\\d+)')"
    )
    questions = {
        "exchange_summaries": "SELECT count(DISTINCT source_id) FROM summary WHERE kind = 'exchange'",
        "conversation_summaries":
            "SELECT count(DISTINCT source_id) FROM summary WHERE kind = 'conversation'",
        "summaries_made_again":
            "SELECT count(*) - count(DISTINCT (kind, source_id)) FROM summary "
            "WHERE kind IN ('exchange', 'conversation')",
        "summaries_at_the_wrong_exchange": wrong,
        "extractions": "SELECT count(*) FROM extraction",
        "facts": "SELECT count(*) FROM fact WHERE valid_until IS NULL",
        "facts_told_twice": "SELECT count(*) - count(DISTINCT text) FROM fact",
        "passages_of_one_source_twice":
            "SELECT count(*) - count(DISTINCT (kind, source_id)) FROM passage",
        "requests_on_record": "SELECT count(*) FROM spend WHERE purpose <> 'chat'",
        "usd_on_record": "SELECT round(sum(cost_usd), 6) FROM spend",
        "requests_estimated": "SELECT count(*) FROM spend WHERE estimated",
        "usd_estimated":
            "SELECT round(coalesce(sum(cost_usd) FILTER (estimated), 0), 6) FROM spend",
    }  # fmt: skip
    return {
        name: (cursor.execute(asked).fetchone() or (0,))[0] for name, asked in questions.items()
    }


if __name__ == "__main__":
    main()
