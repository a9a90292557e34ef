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
from app.workers.job import IsCancelled
from app.workers.json_output import Schema, find_object
from app.workers.prompts import Prompt

Reply = str | dict[str, Any] | Exception


class ScriptedAsker:
    """Plays one reply for each request; a dictionary becomes JSON, an exception is raised.

    `asked` holds (prompt, purpose) of every request; `before` is called first, with the prompt.
    """

    def __init__(self, *replies: Reply, model: str = "scripted:1", context: int = 100_000) -> None:
        self.model = model
        self.context = context
        self.asked: list[tuple[Prompt, WorkerName]] = []
        self.written_off: list[Answer] = []
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

    def ask(
        self,
        asked: Prompt,
        purpose: WorkerName,
        is_cancelled: IsCancelled,
        schema: Schema | None = None,
    ) -> Answer:
        self.before(asked)
        if is_cancelled():
            raise Cancelled("The request was stopped")
        self.asked.append((asked, purpose))
        reply = self._replies.pop(0) if self._replies else "All right."
        if isinstance(reply, Exception):
            raise reply
        text = reply if isinstance(reply, str) else json.dumps(reply)
        model = self.model or "scripted:1"  # a test may have switched it off meanwhile
        answer = Answer(text, model, replace(self.ask_spent(purpose), model=model))
        if schema is None:
            return answer
        if (found := find_object(text, schema)) is None:
            self.write_off(answer)
            raise UnusableAnswer("scripted garbage")
        return Answer(text, model, answer.spent, found)

    def write_off(self, answer: Answer) -> None:
        self.written_off.append(answer)
