"""The process that is killed: it writes through the store and says what it is about to do and did.

    python -m tests.fakes.crash_writer DATA_DIR SEED

Each line on standard output is JSON: {"do": N, ...} before a write is handed in, {"ok": N} once it
is acknowledged, {"ready": true} when the store is open. Three threads: one lets a reply stream,
one does what a user does in the lists, one keeps house.
"""

import itertools
import json
import os
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from app.domain.changes import (
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
from app.domain.ids import ConversationId, new_uid
from app.domain.turn_text import turn_passage
from app.storage.backup import make_backup
from app.storage.conversations import Conversations
from app.storage.forget import finish_forgetting, forget
from app.storage.recovery import open_store
from app.storage.store import Store
from app.system.paths import DataPaths
from tests.fakes.stored import AT, tell

WORDS = [
    "how",
    "do",
    "I",
    "raise",
    "the",
    "limit",
    "of",
    "a",
    "connection",
    "that",
    "times",
    "out",
    "after",
    "a",
    "minute",
]


class Voice:
    """Says on standard output what is about to be done and what is done."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)

    def line(self, **content: object) -> None:
        """Write a line whole, however long: a pipe takes only 4 KB in one piece."""
        rest = (json.dumps(content) + "\n").encode()
        with self._lock:
            while rest:
                rest = rest[os.write(1, rest) :]

    def doing(self, op: str, **what: object) -> int:
        """Say what is about to be written; return its number."""
        number = next(self._numbers)
        self.line(do=number, op=op, **what)
        return number

    def when_done(self, number: int, future: "Future[Any]") -> None:
        """Say so when a write is acknowledged."""

        def say(done: "Future[Any]") -> None:
            done.result()
            self.line(ok=number)

        future.add_done_callback(say)


class Writer:
    """What the three threads do, forever."""

    def __init__(self, store: Store, seed: int) -> None:
        self._store = store
        self._voice = Voice()
        self._seed = seed

    def run(self) -> None:
        """Start; only a kill ends it."""
        self._voice.line(ready=True)
        for number, work in enumerate((self._talk, self._keep_house, self._use_lists)):
            chance = random.Random(self._seed * 10 + number)
            threading.Thread(target=self._forever, args=(work, chance), daemon=True).start()
        threading.Event().wait()

    def _forever(self, work: Callable[[random.Random], None], chance: random.Random) -> None:
        try:
            while True:
                work(chance)
        except Exception as error:  # noqa: BLE001 - any end but the kill is told
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)

    # -- a reply that streams

    def _talk(self, chance: random.Random) -> None:
        whole = tell(self._store, _text(chance), title=f"Streamed {chance.random()}")
        (exchange,), (question, _) = whole.exchanges, whole.messages
        running = replace(
            exchange, status=ExchangeStatus.RUNNING, message_ids=(question.id,), completed_at=None
        )
        shown = replace(whole.conversation, visible_leaf_id=question.id)
        reply = self._store.ids.message()
        names: dict[str, Any] = {"conversation": shown.id, "exchange": exchange.id, "reply": reply}
        self._save(
            self._voice.doing("ask", **names, title=shown.title, text=question.text,
                              message=question.id),
            ConversationPut(shown), MessagesAdded((question,)), ExchangePut(running),
        )  # fmt: skip
        parts: list[str] = []
        for _ in range(chance.randrange(12)):
            parts.append(_text(chance) + " ")
            number = self._voice.doing("grow", exchange=exchange.id, text=parts[-1])
            grew = ReplyGrew(exchange.id, reply, "text", parts[-1], AT, "openai:m")
            self._voice.when_done(number, self._store.journal_only(grew))
            threading.Event().wait(chance.random() * 0.05)
        answer = Message(
            reply, new_uid(), shown.id, question.id, Role.ASSISTANT, (Text("".join(parts)),), AT,
            "openai:m",
        )  # fmt: skip
        completed = replace(exchange, message_ids=(question.id, reply))
        passage = turn_passage(self._store.ids.passage(), completed, (question, answer))
        assert passage is not None
        self._save(
            self._voice.doing("answer", exchange=exchange.id),
            MessagesAdded((answer,)), ExchangePut(completed), PassagesPut((passage,)),
            ConversationEdited(shown.id, visible_leaf_id=reply),
        )  # fmt: skip

    # -- what a user does

    def _use_lists(self, chance: random.Random) -> None:
        known = [each.id for each in Conversations(self._store).listed() if "Told" in each.title]
        doing: list[Callable[[random.Random, ConversationId], None]] = [self._import]
        if known:
            doing += [
                self._tell, self._tell, self._rename, self._tag, self._draft, self._set,
                self._summarise, self._forget,
            ]  # fmt: skip
        chance.choice(doing)(chance, chance.choice(known) if known else ConversationId(0))

    def _tell(self, chance: random.Random, _: ConversationId, *, wait: bool = True) -> None:
        texts = [_text(chance) for _ in range(chance.randint(1, 4))]
        whole = tell(self._store, *texts, title=f"Told {chance.random()}")
        number = self._voice.doing(
            "tell",
            conversation=whole.conversation.id,
            title=whole.conversation.title,
            messages=[message.id for message in whole.messages],
            texts=[message.text for message in whole.messages],
            exchanges=[exchange.id for exchange in whole.exchanges],
        )
        future = self._store.commit(*whole.changes)
        self._voice.when_done(number, future)
        if wait:
            future.result()

    def _import(self, chance: random.Random, nobody: ConversationId) -> None:
        for _ in range(chance.randint(5, 15)):
            self._tell(chance, nobody, wait=False)

    def _rename(self, chance: random.Random, which: ConversationId) -> None:
        title = f"Told again {chance.random()}"
        number = self._voice.doing("put", key=f"title {which}", value=title)
        self._save(number, ConversationEdited(which, title=title))

    def _tag(self, chance: random.Random, which: ConversationId) -> None:
        name = f"tag{chance.randrange(5)}"
        number = self._voice.doing("put", key=f"tag {which} {name}", value=name)
        self._save(number, TagsChanged(which, (name,)))

    def _draft(self, chance: random.Random, which: ConversationId) -> None:
        text = _text(chance)
        number = self._voice.doing("put", key=f"draft {which}", value=text)
        self._save(number, DraftPut(which, text, AT))

    def _set(self, chance: random.Random, _: ConversationId) -> None:
        value = str(chance.randrange(1000))
        number = self._voice.doing("put", key="setting rag_max_tokens", value=value)
        self._save(number, SettingPut("rag_max_tokens", value))

    def _summarise(self, chance: random.Random, which: ConversationId) -> None:
        text = _text(chance)
        number = self._voice.doing("put", key=f"summary {which}", value=text)
        change = SummaryPut("conversation", which, which, text, "extractive", "h", _moment(chance))
        self._save(number, change)

    def _forget(self, chance: random.Random, which: ConversationId) -> None:
        if chance.random() < 0.3:
            number = self._voice.doing("forget", conversation=which)
            forget(self._store, [which])
            self._voice.line(ok=number)

    # -- what the caretaker does

    def _keep_house(self, chance: random.Random) -> None:
        finish_forgetting(self._store)
        threading.Event().wait(chance.random() * 0.2)
        if chance.random() < 0.5:
            self._store.checkpoint().result()
        else:
            make_backup(self._store)

    def _save(self, number: int, *changes: Any) -> None:
        future = self._store.commit(*changes)
        self._voice.when_done(number, future)
        future.result()


def _text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.choice((3, 10, 400))))


def _moment(chance: random.Random) -> Any:
    return AT.replace(microsecond=chance.randrange(1_000_000))


if __name__ == "__main__":
    paths = DataPaths.choose(sys.argv[1])
    paths.make()
    Writer(open_store(paths), int(sys.argv[2])).run()
