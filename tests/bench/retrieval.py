"""How good and how fast recall is on evaluation sets, through the product's own code; prints JSON.

    python -m tests.bench.retrieval --data FILE [--data FILE] [--words-only] [--json]

Each file is imported, indexed, embedded with the built-in model and asked through the search service
in a data directory of its own that is thrown away. Every question is asked within its own
conversation and over everything (`pooled`). Figures are by turn (message), by exchange and by session.
`--json` changes nothing: the output is always JSON.
"""

import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from app.bootstrap import RunMode, Services, build
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
from tests.bench.shared.measuring import Figures, options, print_json, timed

Ask = Callable[[str, frozenset[ConversationId]], list[MessageId]]


def main() -> None:
    given = options(__doc__, required=["data"], data=[Path], words_only=False, json=False)
    sets = [read_evaluation(file) for file in given.data]
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(build(DataPaths(Path(folder)), RunMode.COMMAND_LINE)) as services,
    ):
        print_json(_measured(services, sets, words_only=given.words_only))


def _measured(services: Services, sets: list[Evaluation], *, words_only: bool) -> Figures:
    def store_and_index() -> list[StoredEvaluation]:
        stored = [store_evaluation(services.store, each) for each in sets]
        services.index_sync.catch_up()
        return stored

    def embed() -> None:
        if not words_only:
            services.workers.run_until_idle([WorkerName.EMBEDDING_PIPELINE])

    stored, embedded = timed(store_and_index), timed(embed)
    ask = asker(services, words_only=words_only)
    return {
        "stored_and_indexed_s": round(stored.wall_s, 2),
        "embedded_s": round(embedded.wall_s, 2),
        "sets": {
            each.name: {
                scope: report(places, _answers(each, places, ask, pooled=scope == "pooled"))
                for scope in ("own", "pooled")
            }
            for each, places in zip(sets, stored.result, strict=True)
        },
    }


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
            took = timed(partial(ask, question.text, within))
            answers.append(Asked(talk.id, question, took.result, took.ms))
    return answers


if __name__ == "__main__":
    main()
