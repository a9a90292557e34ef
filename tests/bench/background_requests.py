"""Requests and tokens of the background model for the sample archive; prints JSON.

    python -m tests.bench.background_requests

The sample's conversations are imported, every worker that uses a model works until it is idle, and
then one more turn is added to the longest conversation. A loopback server counts what is sent, by
the estimate that prices a request.
"""

import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from app.bootstrap import RunMode, build
from app.domain.chat import StoredProvider
from app.domain.workers import WorkerName
from app.providers.pricing.usage import estimated_tokens
from app.system.paths import DataPaths
from app.transfer.importing import import_files
from tests.bench.shared.measuring import Figures, print_json
from tests.fakes.background import part_answer
from tests.fakes.loopback import Loopback, Seen
from tests.fakes.loopback_script import Step, text, usage
from tests.fakes.summarizers import go_on

SAMPLE = Path(__file__).parents[2] / "resources" / "samples" / "sample-archive.json"
NAMES = (
    WorkerName.CONVERSATION_SUMMARIZER, WorkerName.EXCHANGE_SUMMARIZER,
    WorkerName.KNOWLEDGE_EXTRACTOR,
)  # fmt: skip
QUESTION = "And which of the two would you take with you on the train?"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Loopback() as server:
        server.by(answer)
        services = build(DataPaths(Path(folder) / "data"), RunMode.COMMAND_LINE)
        try:
            import_files(services.store, [SAMPLE])
            services.settings.put_provider(StoredProvider("local", "compatible", server.v1, None))
            services.settings.set("background_model", "local:test-model")
            figures: Figures = {"conversations": len(services.conversations.listed())}
            services.workers.run_until_idle(NAMES)
            figures["whole_archive"] = sent(server.posts)
            before = len(server.posts)
            rows = services.store.rows(
                "SELECT conversation_id FROM exchange GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1"
            )
            conversation = services.conversations.get(rows[0][0])
            last = services.exchanges.of(conversation.id)[-1]
            go_on(services.store, conversation, last, QUESTION)
            services.workers.run_until_idle(NAMES)
            figures["one_new_turn"] = sent(server.posts[before:])
        finally:
            services.close()
    print_json(figures)


def answer(seen: Seen) -> Iterable[Step]:
    return [text(json.dumps(part_answer())), usage(tokens(seen.body), 100)]


def sent(posts: Iterable[Seen]) -> Figures:
    bodies = [seen.body for seen in posts]
    return {"requests": len(bodies), "input_tokens": sum(map(tokens, bodies))}


def tokens(body: Mapping[str, Any]) -> int:
    return sum(estimated_tokens(each["content"], "") for each in body["messages"])


if __name__ == "__main__":
    main()
