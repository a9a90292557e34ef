"""What a killed writer said it did, held against what the next start finds.

What was acknowledged must be there; what was handed in and not acknowledged is in doubt: there as
a whole or not at all, never half.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from app.storage.store import Store
from tests.fakes.stored import tables

Event = dict[str, Any]


class Lost(AssertionError):
    """Something acknowledged is not there, or something is there by half."""


@dataclass
class Reply:
    """A reply as it was asked for; `parts` are what had been handed in, `sure` how many for sure."""

    ask: Event
    parts: list[str] = field(default_factory=list)
    sure: int = 0
    answered: bool | None = False  # None is in doubt


@dataclass
class Ledger:
    """All that was said in all rounds.

    Attributes:
        acknowledged: How many writes were.
        in_doubt: How many were handed in and not acknowledged when the kill came.
        lost_stream_chars: The most that one kill took from a reply that had been handed in.
    """

    told: dict[int, Event] = field(default_factory=dict)
    replies: dict[int, Reply] = field(default_factory=dict)
    values: dict[str, str | None] = field(default_factory=dict)
    acknowledged: int = 0
    in_doubt: int = 0
    lost_stream_chars: int = 0

    def settle(self, lines: Iterable[str], store: Store) -> None:
        """Take what a writer said until it was killed, and what the next start found; raise Lost."""
        events = [json.loads(line) for line in lines if line.endswith("}")]
        sure = {event["ok"] for event in events if "ok" in event}
        done = [event for event in events if "do" in event]
        self.acknowledged += len(sure)
        self.in_doubt += len(done) - len(sure)
        found = _Found(tables(store))
        self._settle_told(done, sure, found)
        self._settle_replies(done, sure, found)
        self._settle_values(done, sure, found)

    def _settle_told(self, done: list[Event], sure: set[int], found: "_Found") -> None:
        for event in _those(done, "tell"):
            which = event["conversation"]
            if event["do"] in sure or found.any_message(event):
                self.told[which] = event
                self.values[f"title {which}"] = event["title"]
            else:
                _require(which not in found.conversations, f"half of {which} is there")
        for event in _those(done, "forget"):
            which = event["conversation"]
            if event["do"] in sure or which not in found.conversations:
                _require(which not in found.conversations, f"the forgotten {which} is there")
                self.told.pop(which, None)
                self._drop_values(which)
        for event in self.told.values():
            found.require_whole(event)

    def _drop_values(self, conversation: int) -> None:
        for key in [key for key in self.values if key.split()[1] == str(conversation)]:
            del self.values[key]

    def _settle_replies(self, done: list[Event], sure: set[int], found: "_Found") -> None:
        for event in _those(done, "ask"):
            if event["do"] in sure or event["exchange"] in found.exchanges:
                self.replies[event["exchange"]] = Reply(event)
            else:
                _require(event["message"] not in found.messages, "a question without its exchange")
        for event in _those(done, "grow"):
            if (reply := self.replies.get(event["exchange"])) is not None:
                reply.parts.append(event["text"])
                reply.sure += event["do"] in sure
        for event in _those(done, "answer"):
            if (reply := self.replies.get(event["exchange"])) is not None:
                reply.answered = True if event["do"] in sure else None
        for exchange, reply in self.replies.items():
            self._settle_reply(exchange, reply, found)

    def _settle_reply(self, exchange: int, reply: Reply, found: "_Found") -> None:
        _require(found.messages.get(reply.ask["message"]) == reply.ask["text"], "a lost question")
        status = found.exchanges.get(exchange)
        said = found.said(exchange, reply.ask["reply"])
        whole = "".join(reply.parts)
        if reply.answered or (reply.answered is None and status == "completed"):
            _require(status == "completed" and said == whole, f"a lost answer in {exchange}")
            reply.answered = True
            return
        _require(status == "interrupted", f"the exchange {exchange} is {status}")
        ends = [sum(map(len, reply.parts[:count])) for count in range(len(reply.parts) + 1)]
        _require(
            whole.startswith(said) and len(said) in ends[reply.sure :],
            f"of {reply.sure} acknowledged parts of {exchange} only {len(said)} characters are there",
        )
        self.lost_stream_chars = max(self.lost_stream_chars, len(whole) - len(said))
        reply.parts, reply.sure, reply.answered = [said] if said else [], bool(said), False

    def _settle_values(self, done: list[Event], sure: set[int], found: "_Found") -> None:
        possible: dict[str, list[str | None]] = {key: [value] for key, value in self.values.items()}
        for event in _those(done, "put"):
            choices = possible.setdefault(event["key"], [None])
            if event["do"] in sure:
                choices.clear()
            choices.append(event["value"])
        for key, choices in possible.items():
            kind, *names = key.split()
            if kind != "setting" and int(names[0]) not in self.told:
                continue
            value = found.value(kind, names)
            _require(value in choices, f"{key} is {value!r}, not of {choices}")
            self.values[key] = value


class _Found:
    """The tables as the ledger asks about them."""

    def __init__(self, rows: dict[str, list[Any]]) -> None:
        self.conversations = {row[0]: row[2] for row in rows["conversation"]}
        self.messages = {row[0]: row[5] for row in rows["message"]}
        self.exchanges = {row[0]: row[5] for row in rows["exchange"]}
        self._members: dict[int, list[int]] = {}
        for exchange, _, message in rows["exchange_message"]:
            self._members.setdefault(exchange, []).append(message)
        self._tags = {(row[0], row[1]) for row in rows["tag"]}
        self._drafts = {row[0]: row[1] for row in rows["draft"]}
        self._settings = dict(rows["appconfig"])
        self._summaries = {row[1]: row[4] for row in rows["summary"] if row[7]}

    def said(self, exchange: int, message: int) -> str:
        # A reply of which nothing came leaves its id to others.
        return self.messages[message] if message in self._members.get(exchange, ()) else ""

    def any_message(self, event: Event) -> bool:
        pairs = zip(event["messages"], event["texts"], strict=True)
        return any(self.messages.get(number) == text for number, text in pairs)

    def require_whole(self, event: Event) -> None:
        name = f"the conversation {event['conversation']}"
        _require(event["conversation"] in self.conversations, f"{name} is lost")
        for number, text in zip(event["messages"], event["texts"], strict=True):
            _require(self.messages.get(number) == text, f"a message of {name} is lost")
        for place, exchange in enumerate(event["exchanges"]):
            own = event["messages"][2 * place : 2 * place + 2]
            _require(self._members.get(exchange) == own, f"an exchange of {name} is not whole")
            _require(self.exchanges.get(exchange) == "completed", f"a turn of {name} is lost")

    def value(self, kind: str, names: list[str]) -> str | None:
        number = int(names[0]) if kind != "setting" else 0
        of: dict[str, Callable[[], str | None]] = {
            "title": lambda: self.conversations.get(number),
            "tag": lambda: names[1] if (number, names[1]) in self._tags else None,
            "draft": lambda: self._drafts.get(number),
            "summary": lambda: self._summaries.get(number),
            "setting": lambda: self._settings.get(names[0]),
        }
        return of[kind]()


def _those(events: list[Event], op: str) -> list[Event]:
    return [event for event in events if event["op"] == op]


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Lost(otherwise)
