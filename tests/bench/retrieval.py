"""How good and how fast recall is on evaluation sets, through the product's own code; prints JSON.

    python tests/bench/retrieval.py --data FILE [--data FILE] [--words-only] [--json]

Each file is imported, indexed, embedded with the built-in model and asked through the search service
in a data directory of its own that is thrown away. Every question is asked within its own
conversation and over everything (`pooled`). Figures are by turn (message), by exchange and by session.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.bootstrap import Role, Services, build
from app.domain.ids import ConversationId, MessageId
from app.domain.workers import WorkerName
from app.system.paths import DataPaths
from tests.bench.evaluation import (
    Asked,
    Evaluation,
    StoredEvaluation,
    read_evaluation,
    report,
    store_evaluation,
)

Ask = Callable[[str, frozenset[ConversationId]], list[MessageId]]


def main(files: list[Path], *, words_only: bool) -> None:
    """Measure and print."""
    sets = [read_evaluation(file) for file in files]
    with tempfile.TemporaryDirectory() as folder:
        services = build(DataPaths(Path(folder)), Role.COMMAND_LINE)
        try:
            figures = _measured(services, sets, words_only=words_only)
        finally:
            services.close()
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")


def _measured(services: Services, sets: list[Evaluation], *, words_only: bool) -> dict[str, Any]:
    started = time.perf_counter()
    stored = [store_evaluation(services.store, each) for each in sets]
    services.index_sync.catch_up()
    indexed_s = time.perf_counter() - started
    if not words_only:
        services.workers.run_until_idle([WorkerName.EMBEDDING_PIPELINE])
    embedded_s = time.perf_counter() - started - indexed_s
    ask = asker(services, words_only=words_only)
    found: dict[str, Any] = {
        "stored_and_indexed_s": round(indexed_s, 2),
        "embedded_s": round(embedded_s, 2),
        "sets": {},
    }
    for each, places in zip(sets, stored, strict=True):
        found["sets"][each.name] = {
            "own": report(places, _answers(each, places, ask, pooled=False)),
            "pooled": report(places, _answers(each, places, ask, pooled=True)),
        }
    return found


def asker(services: Services, *, words_only: bool = False) -> Ask:
    """Return what asks the product: a question, the conversations to stay in (none: all) -> messages."""

    def ask(question: str, within: frozenset[ConversationId]) -> list[MessageId]:
        parts = services.search.parts_ranked(question, within, by_meaning=not words_only)
        messages = services.passages.messages_of(parts)
        return list(dict.fromkeys(messages[part] for part in parts if part in messages))

    ask("ready", frozenset())  # loads the model and the vectors
    return ask


def _answers(
    evaluation: Evaluation, stored: StoredEvaluation, ask: Ask, *, pooled: bool
) -> list[Asked]:
    answers = []
    for talk in evaluation.talks:
        within = frozenset() if pooled else stored.talks[talk.id].conversation_ids
        for question in talk.questions:
            began = time.perf_counter()
            ranking = ask(question.text, within)
            answers.append(Asked(talk.id, question, ranking, (time.perf_counter() - began) * 1000))
    return answers


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, action="append", required=True, metavar="FILE")
    parser.add_argument("--words-only", action="store_true", help="leave meaning out")
    parser.add_argument("--json", action="store_true", help="accepted; the output is always JSON")
    given = parser.parse_args()
    main(given.data, words_only=given.words_only)
