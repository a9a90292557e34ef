"""The process that is killed: it writes through the store and says what it is about to do and did.

    python -m tests.fakes.crash_writer DATA_DIR SEED

Each line on standard output is JSON: {"do": changes, "kind": ...} before a write is handed in, {"ok": N}
once the Nth is acknowledged, {"ready": true} when the store is open. One thread writes as a user, a
worker and a streaming reply do; another checkpoints, backs up and finishes deletions.
"""

import json
import os
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from app.domain import codec
from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationPut,
    DraftPut,
    ExchangePut,
    MessagesAdded,
    PassagesPut,
    ReplyGrew,
    SettingPut,
    SummaryPut,
    TagsChanged,
)
from app.domain.conversations import ExchangeStatus, Message, Role, Text
from app.domain.deletions import ConversationForgotten
from app.domain.ids import new_uid
from app.domain.turns import turn_passage
from app.storage.deletion.erasure import erase_bytes
from app.storage.engine.store import Store
from app.storage.safety.backup import make_backup
from app.storage.safety.recovery import open_store
from app.storage.tables.conversations import Conversations
from app.system.paths import DataPaths
from tests.fakes.stored import AT, new_conversation

WORDS = ("how", "do", "I", "raise", "the", "limit", "of", "a", "connection", "that", "times", "out")


class Writer:
    """What the two threads do, forever."""

    def __init__(self, store: Store, seed: int) -> None:
        self._store = store
        self._chance = random.Random(seed)
        self._output = threading.Lock()
        self._count = 0

    def run(self) -> None:
        """Start; only a kill ends it."""
        self._line(ready=True)
        for work in (self._write, self._maintain):
            threading.Thread(target=self._forever, args=(work,), daemon=True).start()
        threading.Event().wait()

    def _forever(self, work: Callable[[], None]) -> None:
        try:
            while True:
                work()
        except Exception as error:  # noqa: BLE001 - any end but the kill is reported
            _end(error)

    def _line(self, **content: object) -> None:
        """Write a line whole, however long: a pipe takes only 4 KB in one piece.

        Not with the system call `write`, which `tests.bench.disk` has fail.
        """
        rest = (json.dumps(content) + "\n").encode()
        with self._output:
            while rest:
                rest = rest[os.writev(1, [rest]) :]

    def _save(self, *changes: Change, kind: str = "commit", waits: bool = True) -> None:
        self._count += 1
        number = self._count
        self._line(do=codec.dumps(changes), kind=kind)

        def acknowledge(done: "Future[Any]") -> None:
            if (error := done.exception()) is not None:
                _end(error)
            self._line(ok=number)

        future: Future[Any] = getattr(self._store, kind)(*changes)
        future.add_done_callback(acknowledge)
        if waits:
            future.result()

    def _write(self) -> None:
        chance = self._chance
        known = [each.id for each in Conversations(self._store).listed()]
        which = chance.choice(known) if known else None
        what = chance.choice(["import", "talk", "edit", "edit", "edit"] if known else ["import"])
        if what == "import":
            for _ in range(chance.randint(1, 12)):
                texts = [self._text() for _ in range(chance.randint(1, 4))]
                whole = new_conversation(self._store, *texts, title=f"T{chance.random()}")
                self._save(*whole.changes, waits=False)
        elif what == "talk":
            self._talk()
        elif which is not None:
            at = AT.replace(microsecond=chance.randrange(1_000_000))
            edits: list[Change] = [
                ConversationEdited(which, title=f"Renamed {chance.random()}"),
                TagsChanged(which, (f"tag{chance.randrange(5)}",), (f"tag{chance.randrange(5)}",)),
                DraftPut(which, self._text(), AT),
                SettingPut("rag_max_tokens", str(chance.randrange(1000))),
                SummaryPut("conversation", which, which, self._text(), "extractive", "h", at),
                ConversationForgotten(which),
            ]
            self._save(chance.choices(edits, (4, 4, 4, 4, 4, 2))[0], waits=chance.random() < 0.7)

    def _talk(self) -> None:
        """Stream a reply, part by part."""
        whole = new_conversation(
            self._store, self._text(), title=f"Streamed {self._chance.random()}"
        )
        (exchange,), (question, _) = whole.exchanges, whole.messages
        running = replace(
            exchange, status=ExchangeStatus.RUNNING, message_ids=(question.id,), completed_at=None
        )
        shown = replace(whole.conversation, visible_leaf_id=question.id)
        reply = self._store.ids.message()
        self._save(ConversationPut(shown), MessagesAdded((question,)), ExchangePut(running))
        parts: list[str] = []
        for _ in range(self._chance.randrange(12)):
            parts.append(self._text() + " ")
            grew = ReplyGrew(exchange.id, reply, "text", parts[-1], AT, "openai:m")
            self._save(grew, kind="journal_only", waits=False)
            threading.Event().wait(self._chance.random() * 0.03)
        answer = Message(
            reply, new_uid(), shown.id, question.id, Role.ASSISTANT, (Text("".join(parts)),), AT,
            "openai:m",
        )  # fmt: skip
        completed = replace(exchange, message_ids=(question.id, reply))
        passage = turn_passage(self._store.ids.passage(), completed, (question, answer))
        assert passage is not None
        self._save(
            MessagesAdded((answer,)), ExchangePut(completed), PassagesPut((passage,)),
            ConversationEdited(shown.id, visible_leaf_id=reply),
        )  # fmt: skip

    def _maintain(self) -> None:
        erase_bytes(self._store)
        threading.Event().wait(random.random() * 0.2)
        if random.random() < 0.5:
            self._store.checkpoint().result()
        else:
            make_backup(self._store)

    def _text(self) -> str:
        return " ".join(self._chance.choices(WORDS, k=self._chance.choice((3, 10, 400))))


def _end(error: BaseException) -> None:
    os.writev(2, [f"{type(error).__name__}: {error}\n".encode()])
    os._exit(1)


if __name__ == "__main__":
    paths = DataPaths.choose(sys.argv[1])
    paths.make()
    Writer(open_store(paths), int(sys.argv[2])).run()
