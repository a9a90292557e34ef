"""Synthetic exports in the forms of ChatGPT and Claude, of any size, the same for the same seed.

They are written as a stream, so that a file of gigabytes costs no memory to make.
"""

import json
import random
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

_BEGIN = datetime(2024, 3, 1, 9, 0, tzinfo=UTC)
_CLAUDE_ROOT = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class Shape:
    """What a synthetic export is like; `words` is the mean length of a message."""

    conversations: int = 10
    turns: int = 5
    words: int = 60
    seed: int = 1
    hidden_every: int = 7
    branch_every: int = 9


def chatgpt_node(
    name: str, parent: str | None, message: dict[str, Any] | None, children: Iterable[str] = ()
) -> dict[str, Any]:
    return {"id": name, "message": message, "parent": parent, "children": list(children)}


def chatgpt_message(
    name: str,
    role: str,
    content: object,
    *,
    at: float | None = None,
    recipient: str = "all",
    author: str | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    """Return a message; a `content` that is a text becomes a text content."""
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    return {
        "id": name, "author": {"role": role, "name": author, "metadata": {}}, "create_time": at,
        "update_time": None, "content": content, "status": "finished_successfully",
        "end_turn": None, "weight": 1.0, "metadata": metadata, "recipient": recipient,
        "channel": None,
    }  # fmt: skip


def chatgpt_row(*messages: dict[str, Any], title: str | None = "A row") -> dict[str, Any]:
    mapping = {"root": chatgpt_node("root", None, None)}
    above = "root"
    for message in messages:
        mapping[above]["children"].append(message["id"])
        mapping[message["id"]] = chatgpt_node(message["id"], above, message)
        above = message["id"]
    return {
        "title": title, "create_time": _BEGIN.timestamp(), "update_time": _BEGIN.timestamp() + 3600,
        "mapping": mapping, "current_node": above, "conversation_id": "row", "id": "row",
    }  # fmt: skip


def chatgpt_conversations(shape: Shape) -> Iterator[dict[str, Any]]:
    """Yield conversations with hidden system messages, some reasoning and some branches."""
    for number in range(shape.conversations):
        yield _ChatGptConversation(shape, number).made()


def claude_conversations(shape: Shape, tree: bool = True) -> Iterator[dict[str, Any]]:
    for number in range(shape.conversations):
        yield _claude_conversation(shape, number, tree)


def write_chatgpt_export(path: Path, shape: Shape, shards: int = 1) -> Path:
    """Write an export to `path`: a zip if it is named so, else the JSON of one file; return it."""
    conversations = chatgpt_conversations(shape)
    if path.suffix != ".zip":
        with path.open("w", encoding="utf-8") as out:
            write_array(out, conversations)
        return path
    names = ["conversations.json"] if shards == 1 else [
        f"conversations-{number:03}.json" for number in range(shards)
    ]  # fmt: skip
    each = -(-shape.conversations // shards)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("user.json", json.dumps({"id": "user-1", "email": "reader@example.org"}))
        for name in names:
            _write_member(archive, name, islice(conversations, each))
        archive.writestr("chat.html", "<html><body>The same again</body></html>")
    return path


def write_claude_export(path: Path, shape: Shape, tree: bool = True) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("users.json", json.dumps([{"uuid": "user-1", "full_name": "A Reader"}]))
        _write_member(archive, "conversations.json", claude_conversations(shape, tree))
    return path


def write_array(out: TextIO, values: Iterable[object]) -> None:
    out.writelines(array_pieces(values))


def array_pieces(values: Iterable[object]) -> Iterator[str]:
    yield "["
    for number, value in enumerate(values):
        yield (", " if number else "") + json.dumps(value, ensure_ascii=False)
    yield "]"


def _write_member(
    archive: zipfile.ZipFile, name: str, conversations: Iterable[dict[str, Any]]
) -> None:
    with archive.open(name, "w") as member:
        for piece in array_pieces(conversations):
            member.write(piece.encode())


class _ChatGptConversation:
    def __init__(self, shape: Shape, number: int) -> None:
        self._shape = shape
        self._number = number
        self._random = random.Random(f"{shape.seed}/{number}")
        self._at = (_BEGIN + timedelta(hours=5 * number)).timestamp()
        self._mapping: dict[str, dict[str, Any]] = {}
        self._last: str | None = None

    def made(self) -> dict[str, Any]:
        begun = self._at
        self._add("root", None)
        self._say("system", "system", "", is_visually_hidden_from_conversation=True)
        for turn in range(self._shape.turns):
            self._turn(turn)
        return {
            "title": _topic(self._random), "create_time": begun, "update_time": self._at,
            "mapping": self._mapping, "moderation_results": [], "current_node": self._last,
            "conversation_id": f"conversation-{self._shape.seed}-{self._number}",
            "default_model_slug": "gpt-4o", "is_archived": self._number % 11 == 5,
            "is_starred": self._number % 13 == 4,
            "id": f"conversation-{self._shape.seed}-{self._number}",
        }  # fmt: skip

    def _turn(self, turn: int) -> None:
        self._say("user", f"u{turn}", self._text())
        asked = self._last
        if turn % self._shape.hidden_every == 3:
            thoughts = [{"summary": "Weighing it", "content": self._text()}]
            self._say("assistant", f"t{turn}", {"content_type": "thoughts", "thoughts": thoughts})
        if turn % self._shape.branch_every == 4:
            self._say("assistant", f"old{turn}", self._text(), model_slug="gpt-4o")
            self._last = asked
        self._say("assistant", f"a{turn}", self._text(), model_slug="gpt-4o")

    def _text(self) -> str:
        return _paragraph(self._random, self._shape.words)

    def _say(self, role: str, name: str, content: object, **metadata: Any) -> None:
        self._at += self._random.uniform(2, 90)
        full = f"{self._shape.seed}-{self._number}-{name}"
        self._add(full, chatgpt_message(full, role, content, at=self._at, **metadata))

    def _add(self, name: str, message: dict[str, Any] | None) -> None:
        if self._last is not None:
            self._mapping[self._last]["children"].append(name)
        self._mapping[name] = chatgpt_node(name, self._last, message)
        self._last = name


def _claude_conversation(shape: Shape, number: int, tree: bool) -> dict[str, Any]:
    source = random.Random(f"{shape.seed}/{number}")
    at = _BEGIN + timedelta(hours=7 * number)
    begun = at
    messages: list[dict[str, Any]] = []
    above = _CLAUDE_ROOT
    for place in range(2 * shape.turns):
        at += timedelta(seconds=source.uniform(2, 90))
        text = _paragraph(source, shape.words)
        message = {
            "uuid": f"{shape.seed}-{number}-{place}", "text": text,
            "content": [{"type": "text", "text": text, "citations": []}],
            "sender": "assistant" if place % 2 else "human", "created_at": _iso(at),
            "updated_at": _iso(at), "attachments": [], "files": [],
        }  # fmt: skip
        if tree:
            message["parent_message_uuid"] = above
        above = str(message["uuid"])
        messages.append(message)
    return {
        "uuid": f"conversation-{shape.seed}-{number}", "name": _topic(source), "summary": "",
        "created_at": _iso(begun), "updated_at": _iso(at), "account": {"uuid": "user-1"},
        "chat_messages": messages,
    }  # fmt: skip


def _iso(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def chatgpt_branches(title: str) -> dict[str, Any]:
    """Return a conversation whose one answer was regenerated, as ChatGPT exports it."""
    row = chatgpt_row(
        chatgpt_message("u0", "user", "Name a color", at=1.7e9),
        chatgpt_message("a0", "assistant", "Blue", at=1.7e9 + 1, model_slug="gpt-4o"),
        title=title,
    )
    green = chatgpt_message("a1", "assistant", "Green", at=1.7e9 + 2, model_slug="gpt-4o")
    row["mapping"]["a1"] = chatgpt_node("a1", "u0", green)
    row["mapping"]["u0"]["children"].append("a1")
    return row


# -- prose that reads a little like a conversation
def _listed(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_WORDS = _listed(
    "the a of to and in is that it for on with as at by from this be are was or an which if not but "
    "we you they when then how why what where can should would will there have has had do does"
)
_SUBJECTS = _listed(
    "garden kettle engine query sonata recipe window ladder novel bicycle budget harbour mountain "
    "index table thread keyboard lantern theorem bread orchestra passport battery compiler river "
    "museum contract forest satellite violin journal magnet saddle telescope vineyard"
)
_ACTIONS = _listed(
    "compare measure repair translate refactor plan simmer rehearse insulate classify draft prune "
    "calibrate summarise balance deploy sketch ferment tune archive"
)


def _paragraph(source: random.Random, words: int) -> str:
    """Return sentences of about so many words, sometimes with code or umlauts in them."""
    wanted = max(3, int(source.gauss(words, words / 4)))
    sentences = []
    while wanted > 0:
        length = min(wanted, source.randint(6, 16))
        sentences.append(_sentence(source, length))
        wanted -= length
    text = " ".join(sentences)
    roll = source.random()
    if roll < 0.05:
        text += f'\n\n```python\nprint("{source.choice(_SUBJECTS)}")\n```'
    elif roll < 0.1:
        text += " Grüße aus Köln, 東京 and «Москва» 🙂."
    return text


def _topic(source: random.Random) -> str:
    return f"{source.choice(_ACTIONS)} the {source.choice(_SUBJECTS)}".capitalize()


def _sentence(source: random.Random, length: int) -> str:
    picked = [
        source.choice(_SUBJECTS if place % 4 == 2 else _ACTIONS if place % 7 == 3 else _WORDS)
        for place in range(length)
    ]
    return " ".join(picked).capitalize() + source.choice((".", ".", ".", "?", ","))
