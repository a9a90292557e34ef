"""Damaged exports of every format, and what must hold of whatever is read from them."""

import copy
import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from app.domain.text import clean
from app.domain.transfer import ImportedConversation, ImportedMessage, Skipped

_ODD: list[Any] = [
    None, True, 0, -1, 10**30, 1e308, float("inf"), "", "a", " ", "\ud800", "\x00", "a\u202eb", [], {}, [[]],
    {"type": "text"}, [None], ["a", 1], {"text": None}, {"id": []}, {"parts": [{}]}, "2026-03-04T10:00:00Z",
    "2026-13-45T99:00:00+99:00", "-9999999999999", "user", "assistant", "tool", "system", "{", '{"a": 1}',
    "[1, 2", "../../../etc/passwd", "file:///etc/passwd", "C:\\x", "s1", "m1", "x" * 5_000, -1e18, 253402300800,
]  # fmt: skip


def damage(path: Path, drawn: random.Random) -> None:
    """Damage one or some of the files at `path`, each in a way of its kind."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    for file in drawn.sample(files, drawn.randint(1, len(files))):
        content = file.read_bytes()
        if content.startswith(b"SQLite format 3") and drawn.random() < 0.8:
            _damage_rows(file, drawn)
        elif drawn.random() < 0.2:
            file.write_bytes(_damaged_bytes(content, drawn))
        else:
            file.write_bytes(_damaged_text(content, drawn))


def check_imported(found: ImportedConversation | Skipped) -> None:
    """Assert that a conversation is a tree of clean texts, and that a report says where and why."""
    if isinstance(found, Skipped):
        assert found.where
        assert found.why
        return
    seen: set[str] = set()
    for message in found.messages:
        assert message.source_id not in seen
        assert message.parent is None or message.parent in seen
        seen.add(message.source_id)
        _check_message(message)
    assert found.visible_leaf in seen if found.messages else found.visible_leaf is None
    assert clean(found.title) == found.title
    assert found.source_id


def _check_message(message: ImportedMessage) -> None:
    assert message.created_at is None or message.created_at.tzinfo is not None
    for block in message.blocks:
        for name in ("text", "name", "arguments", "call_id", "media_type"):
            text = getattr(block, name, "")
            assert isinstance(text, str)
            assert clean(text) == text


def _damaged_bytes(content: bytes, drawn: random.Random) -> bytes:
    """Cut, change or repeat some bytes."""
    made = bytearray(content)
    for _ in range(drawn.randint(1, 8)):
        at = drawn.randrange(len(made) + 1)
        match drawn.randrange(4):
            case 0:
                del made[at:]
            case 1:
                made[at : at + 1] = drawn.randbytes(1)
            case 2:
                del made[at : at + drawn.randint(1, 40)]
            case _:
                made[at:at] = made[max(0, at - drawn.randint(1, 200)) : at]
    return bytes(made)


def _damaged_text(content: bytes, drawn: random.Random) -> bytes:
    """Replace or delete members of JSON documents: of a whole file, else of its lines."""
    try:
        return _dumped(damaged_value(json.loads(content), drawn))
    except ValueError:
        lines = content.split(b"\n")
    for _ in range(drawn.randint(1, 3)):
        at = drawn.randrange(len(lines))
        try:
            lines[at] = _dumped(damaged_value(json.loads(lines[at]), drawn))
        except ValueError:
            lines[at] = _damaged_bytes(lines[at], drawn)
    if drawn.random() < 0.2:
        drawn.shuffle(lines)
    return b"\n".join(lines)


def _dumped(value: object) -> bytes:
    return json.dumps(value).encode()


def damaged_value(whole: Any, drawn: random.Random) -> Any:
    """Return a copy in which some members, at any depth, are missing or something else."""
    made = [copy.deepcopy(whole)]
    for _ in range(drawn.randint(1, 6)):
        container: Any = made
        while container:
            key = drawn.choice(
                list(container) if isinstance(container, dict) else range(len(container))
            )
            inner = container[key]
            if not isinstance(inner, dict | list) or not inner or drawn.random() < 0.15:
                _damage_member(container, key, drawn)
                break
            container = inner
    return made[0] if made else None


def _damage_member(container: Any, key: Any, drawn: random.Random) -> None:
    inner = container[key]
    choice = drawn.randrange(4)
    if choice == 0:
        del container[key]
    elif choice == 1 and isinstance(container, list):
        container.insert(drawn.randrange(len(container) + 1), copy.deepcopy(inner))
    elif choice == 2 and isinstance(inner, str) and inner[:1] in ("{", "["):
        try:
            container[key] = json.dumps(damaged_value(json.loads(inner), drawn))
        except ValueError:
            container[key] = inner[: len(inner) // 2]
    else:
        container[key] = drawn.choice(_ODD)


def _damage_rows(file: Path, drawn: random.Random) -> None:
    """Replace values of a database, delete or repeat rows, or drop a table or column."""
    with closing(sqlite3.connect(file)) as connection, connection:
        tables = [
            row[0]
            for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        for _ in range(drawn.randint(1, 4)):
            table = drawn.choice(tables)
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            rows = connection.execute(f'SELECT rowid, * FROM "{table}"').fetchall()
            if not rows:
                continue
            row, at = drawn.choice(rows), drawn.randrange(len(columns))
            value = row[1 + at]
            if isinstance(value, str) and value[:1] in ("{", "[") and drawn.random() < 0.7:
                odd: Any = _damaged_text(value.encode(), drawn).decode("utf-8", "replace")
            else:
                odd = drawn.choice(
                    [
                        each
                        for each in _ODD
                        if isinstance(each, str | int | float) and each not in (10**30, "\ud800")
                    ]
                    + [None, b"\xff\x00\xfe"]
                )
            change = f'UPDATE "{table}" SET "{columns[at]}" = ? WHERE rowid = ?'
            try:
                connection.execute(change, (odd, row[0]))
            except sqlite3.Error:
                connection.execute(f'DELETE FROM "{table}" WHERE rowid = ?', (row[0],))
            if drawn.random() < 0.1:
                connection.execute(
                    f'ALTER TABLE "{table}" RENAME COLUMN "{columns[at]}" TO renamed_{at}'
                )
                break
