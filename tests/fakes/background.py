"""A `ModelClient` that plays replies."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from app.domain.changes import SpendAdded
from app.domain.errors import Cancelled
from app.domain.workers import WorkerName
from app.workers.background_model import Answer, UnusableAnswer
from app.workers.job_interface import IsCancelled
from app.workers.prompts_and_answers import Prompt, Schema, find_object

Reply = str | dict[str, Any] | Exception


def part_answer(*facts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the answer to a conversation part: "Line NUMBER." for each turn."""
    lines = [{"number": number, "line": f"Line {number}."} for number in range(1, 61)]
    whole = {"summary": "They spoke.", "title": "Talk", "tags": ["talk"], "turns": lines}
    return {**whole, "facts": list(facts), **fields}


class ScriptedAsker:
    """Plays one reply for each request; a dictionary becomes JSON, an exception is raised.

    Without replies left it answers `otherwise`. `asked` holds (prompt, purpose) of every request,
    `schemas` their schemas; `before` is called first, with the prompt.
    """

    def __init__(self, *replies: Reply, model: str = "scripted:1", context: int = 100_000) -> None:
        self.model = model
        self.is_free = False
        self.context = context
        self.asked: list[tuple[Prompt, WorkerName]] = []
        self.written_off: list[Answer] = []
        self.schemas: list[Schema | None] = []
        self.otherwise: Reply = part_answer()
        self.before: Callable[[Prompt], None] = lambda _: None
        self._replies = list(replies)
        self._at = datetime.now(UTC) + timedelta(hours=1)  # later than any worker was made

    def replies_with(self, *replies: Reply) -> None:
        """Replace the replies that are left."""
        self._replies = list(replies)

    def ask_spent(self, purpose: WorkerName) -> SpendAdded:
        """Return the cost of one request."""
        self._at += timedelta(seconds=1)
        return SpendAdded(self._at, purpose, self.model, 10, 5, 0, 0.01)

    def context_tokens(self) -> int:
        return self.context

    def answer_tokens(self) -> int:
        return min(4096, self.context // 4)

    def ask(
        self,
        asked: Prompt,
        purpose: WorkerName,
        is_cancelled: IsCancelled,
        schema: Schema | None = None,
    ) -> Answer:
        model = self.model or "scripted:1"  # a test may switch it off or choose another meanwhile
        self.before(asked)
        if is_cancelled():
            raise Cancelled("The request was stopped")
        self.asked.append((asked, purpose))
        self.schemas.append(schema)
        reply = self._replies.pop(0) if self._replies else self.otherwise
        if isinstance(reply, Exception):
            raise reply
        text = reply if isinstance(reply, str) else json.dumps(reply)
        answer = Answer(text, model, replace(self.ask_spent(purpose), model=model))
        if schema is None:
            return answer
        if (found := find_object(text, schema)) is None:
            self.write_off(answer)
            raise UnusableAnswer("scripted garbage")
        return Answer(text, model, answer.spent, found)

    def write_off(self, answer: Answer) -> None:
        self.written_off.append(answer)
