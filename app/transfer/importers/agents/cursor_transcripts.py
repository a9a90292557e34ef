"""The importer of Cursor's agent transcripts: `agent-transcripts/ID/ID.jsonl`, one message a line, or older text.

They have no times but those in the user's messages, else that of the file. They have no ids: that of a message is
derived from it and what precedes it.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from pathlib import Path, PurePath
from textwrap import dedent
from typing import Any

from app.domain.conversations import Role, Text
from app.transfer.archive import NamedStream
from app.transfer.importers.parsing.blocks import blocks_of, project_tag
from app.transfer.importers.parsing.building import Imported
from app.transfer.importers.parsing.formats import (
    DOCUMENT_MAX_BYTES,
    ROLES,
    Part,
    Thread,
    lines,
    text_name,
)
from app.transfer.importers.parsing.values import an_object, text_of

_HOME = re.compile(r"\A(?:[A-Za-z]-)?(?:home|Users)-[^-]+-(?=.)")
_QUERY = "<user_query>"
_TYPED = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_AT = re.compile(
    r"<timestamp>[^<,]*, (?P<date>[A-Z][a-z]{2} \d{1,2}, \d{4}), (?P<time>\d{1,2}:\d\d [AP]M)"
    r" \(UTC(?P<hours>[+-]\d{1,2})?(?::(?P<minutes>\d\d))?\)</timestamp>"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TEXT_LINE = re.compile(rb"(?:user|assistant):[ \t]*\r?\n")
_TEXT_ROLE = re.compile(r"^(user|assistant):[ \t]*\r?$\n?", re.MULTILINE)
_MARK = re.compile(r"\[(Thinking|Tool call|Tool result)\]")
_FIRST_LINE = re.compile(rb'\{\s*"role"\s*:\s*"(?:user|assistant)"\s*,\s*"message"\s*:\s*\{')


def is_transcript(head: bytes, name: str) -> bool:
    """Return whether a file with these first bytes is a transcript."""
    is_text = "agent-transcripts/" in name and _TEXT_LINE.match(head) is not None
    return is_text or _FIRST_LINE.match(head) is not None


def read_transcript(file: NamedStream) -> Imported:
    is_text = file.stream.peek(1)[:1] not in b"{"
    thread, named = Thread("cursor", file.name), file.name.rpartition("/")[2].split(".")[0]
    at: datetime | None = None
    began: datetime | None = None
    said = []
    for number, record, flaw in _text_records(file) if is_text else lines(file.stream):
        if flaw:
            thread.left_out.append((str(number), flaw))
            continue
        role = ROLES.get(text_of(record.get("role")), Role.ASSISTANT)
        parts = blocks_of(an_object(record.get("message")).get("content"))
        said.append(json.dumps([thread.last, record.get("role"), record.get("message")]))
        name = text_name(said[-1])
        at = next(filter(None, map(_time, parts)), at) if role is Role.USER else at
        began = began or at
        thread.append(name, role, map(_typed, parts) if role is Role.USER else parts, at)
    ended = file.changed_at
    above = PurePath(file.path or file.name).parts
    *_, parent, folder, _ = ("", "", *above)
    yield thread.finished(
        named, "", began or ended, ended, is_undated=True, tags=project_tag(_project(above, said)),
        started_by=parent if folder == "subagents" else None,
    )  # fmt: skip


def _text_records(file: NamedStream) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Yield the messages of a transcript of Cursor's first versions as later ones write them.

    Where one marks what was typed, a line "user:" without that is part of a text.
    """
    text = file.stream.read(DOCUMENT_MAX_BYTES).decode("utf-8-sig", "replace")
    _, *found = _TEXT_ROLE.split(text)
    is_marked, parts = _QUERY in text, list[tuple[str, str]]()
    for role, said in zip(found[::2], found[1::2], strict=True):
        if role == "user" and is_marked and _QUERY not in said and parts:
            parts[-1] = parts[-1][0], f"{parts[-1][1]}user:\n{said}"
        else:
            parts.append((role, said))
    for number, (role, said) in enumerate(parts, 1):
        user = [{"type": "text", "text": said}]
        content = user if role == "user" else [p for each in _pieces(said) for p in _piece(each)]
        yield number, {"role": role, "message": {"content": content}}, ""


def _pieces(said: str) -> list[list[str]]:
    """Return the lines of each part of a reply: below its mark, the lines of a part are indented."""
    pieces: list[list[str]] = []
    for line in said.splitlines():
        is_after_mark = pieces and _MARK.match(pieces[-1][0]) and line[:1].strip()
        if not pieces or is_after_mark or _MARK.match(line):
            pieces.append([])
        pieces[-1].append(line)
    return pieces


def _piece(lines_of: list[str]) -> Iterator[dict[str, Any]]:
    """Yield a part of a reply; the results of tools are left out as in later transcripts."""
    mark = _MARK.match(lines_of[0])
    head, body = lines_of[0][mark.end() :].strip() if mark else "", dedent("\n".join(lines_of[1:]))
    if mark is None:
        yield {"type": "text", "text": "\n".join(lines_of).strip()}
    elif mark[1] == "Thinking":
        yield {"type": "thinking", "thinking": f"{head}\n{body}".strip()}
    elif mark[1] == "Tool call":
        yield {"type": "tool_use", "name": head, "input": body.strip()}


def _project(above: tuple[str, ...], said: Iterable[str]) -> str:
    """Return the folder of a project, whose path is a name in which all other characters are dashes.

    One that no longer exists is looked for in what is `said` of files, which is JSON text.
    """
    at = above.index("agent-transcripts") - 1 if "agent-transcripts" in above else -1
    if at < 0:
        return ""
    dashed = above[at].strip("-")
    missing_chars, name = _folder(Path(Path.home().anchor), dashed)
    words = r"[^A-Za-z0-9\"]{1,4}".join(map(re.escape, dashed.split("-")))
    path = re.compile(rf"(?:/|\b){words}(?![A-Za-z0-9])") if missing_chars else None
    found = (match[0] for each in said if path for match in path.finditer(each))
    best = min(name, _HOME.sub("", dashed), key=len)
    return next((each for each in found if "/" in each or "\\" in each), best)


@lru_cache(maxsize=256)
def _folder(above: Path, dashed: str) -> tuple[int, str]:
    """Return the name of the folder below `above` that has such a path, after how much of that is missing.

    That of a folder that does not exist is what follows the path of the last one that does.
    """
    best = len(dashed), dashed
    with suppress(OSError):
        for each in above.iterdir():
            own = _dashed(each.name)
            if dashed == own:
                return 0, each.name
            if dashed.startswith(f"{own}-"):
                best = min(best, _folder(each, dashed[len(own) + 1 :]))
    return best


def _dashed(path: Path | str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "-", str(path))


def _typed(part: Part) -> Part:
    """Return what the user typed of a message, without what the program adds around it."""
    typed = _TYPED.search(part.text) if isinstance(part, Text) else None
    return Text(typed[1]) if typed else part


def _time(part: Part) -> datetime | None:
    """Return when a message was sent, as the program says in English in front of it."""
    found = _AT.search(part.text) if isinstance(part, Text) else None
    if found is None or found["date"][:3] not in _MONTHS:
        return None
    day, year = found["date"][4:].split(", ")
    hour, rest = found["time"].split(":")
    hours = int(hour) % 12 + 12 * rest.endswith("PM")
    offset = timedelta(hours=int(found["hours"] or 0))
    minutes = timedelta(minutes=int(found["minutes"] or 0))
    offset += -minutes if (found["hours"] or "").startswith("-") else minutes
    with suppress(ValueError):
        month = _MONTHS.index(found["date"][:3]) + 1
        return datetime(int(year), month, int(day), hours, int(rest[:2]), tzinfo=timezone(offset))
    return None
