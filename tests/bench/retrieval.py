"""Benchmark of retrieval: quality and speed on evaluation sets, through the product's own code; prints JSON.

    python -m tests.bench.retrieval --data FILE [--data FILE] [--words-only] [--json]
        [--embedder CHOICE] [--ask FIELD] [--keywords N] [--texts-only]

Each file is imported, indexed, embedded with the built-in model (or `--embedder`) and asked through
the search service in a data directory of its own that is thrown away. The facts and summaries of a file are stored with it, as those of a background model
would be, unless `--texts-only`. `--ask` names the field with
the question's wording, such as `question_en`. With `--keywords`, N searches by words drawn from the messages are asked instead. Every question is asked within its own
conversation and over everything (`pooled`). Figures are by turn (message), by exchange and by session.
`--json` changes nothing: the output is always JSON.
"""

import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random

from app.bootstrap import RunMode, Services, build
from app.domain.ids import ConversationId, MessageId
from app.memory.search.embedders import BUILT_IN
from app.system.paths import DataPaths
from tests.bench.evaluation import Asked, fill, read_evaluation, report, with_keywords
from tests.bench.shared.measuring import options, print_json, timed

Ask = Callable[[str, frozenset[ConversationId]], list[MessageId]]


def main() -> None:
    given = options(
        __doc__, required=["data"], data=[Path], words_only=False, json=False,
        embedder=BUILT_IN, ask="question", keywords=0, texts_only=False,
    )  # fmt: skip
    sets = [read_evaluation(file, given.ask) for file in given.data]
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(build(DataPaths(Path(folder)), RunMode.COMMAND_LINE)) as services,
    ):
        if given.embedder != BUILT_IN:
            services.embedders.choose(given.embedder)
        stored, figures = fill(
            services, sets, with_notes=not given.texts_only, words_only=given.words_only
        )
        if given.keywords:
            sets = [with_keywords(each, given.keywords, Random(11)) for each in sets]
        ask = asker(services, words_only=given.words_only, is_message=not given.keywords)
        figures["sets"] = {}
        for each, places in zip(sets, stored, strict=True):
            scopes: dict[str, list[Asked]] = {"own": [], "pooled": []}
            for scope, answers in scopes.items():
                for talk, question in each.asked:
                    own = places.talks[talk.id].conversation_ids
                    within = own if scope == "own" else frozenset()
                    took = timed(partial(ask, question.text, within))
                    answers.append(Asked(talk.id, question, took.result, took.ms))
            figures["sets"][each.name] = {
                scope: report(places, answers) for scope, answers in scopes.items()
            }
    print_json(figures)


def asker(services: Services, *, words_only: bool = False, is_message: bool = True) -> Ask:
    """Return what asks the product: a question, the conversations to stay in (none: all) -> messages."""

    def ask(question: str, within: frozenset[ConversationId]) -> list[MessageId]:
        parts = services.search.parts_ranked(
            question, within, by_meaning=not words_only, is_message=is_message
        )
        messages = services.passages.messages_of(parts)
        return list(dict.fromkeys(messages[part] for part in parts if part in messages))

    ask("ready", frozenset())  # loads the model and the vectors
    return ask


if __name__ == "__main__":
    main()
