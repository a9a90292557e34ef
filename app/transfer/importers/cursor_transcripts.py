"""The importer of Cursor's agent transcripts: `agent-transcripts/ID/ID.jsonl`, one message a line.

They have no times but those in the user's messages, else that of the file. They have no ids: that of a message is
derived from it and what precedes it.
"""

import json
import re
from contextlib import suppress
from datetime import datetime, timedelta, timezone

from app.domain.conversations import Role, Text
from app.transfer.archive import NamedStream
from app.transfer.importers.agent_logs import blocks_of
from app.transfer.importers.building import Imported
from app.transfer.importers.formats import ROLES, Part, Thread, file_time, lines, text_name
from app.transfer.importers.values import an_object, text_of

_TYPED = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_AT = re.compile(
    r"<timestamp>[^<,]*, (?P<date>[A-Z][a-z]{2} \d{1,2}, \d{4}), (?P<time>\d{1,2}:\d\d [AP]M)"
    r" \(UTC(?P<hours>[+-]\d{1,2})?(?::(?P<minutes>\d\d))?\)</timestamp>"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_FIRST_LINE = re.compile(rb'\{\s*"role"\s*:\s*"(?:user|assistant)"\s*,\s*"message"\s*:\s*\{')


def is_transcript(head: bytes) -> bool:
    """Return whether a JSON file with these first bytes is a transcript."""
    return _FIRST_LINE.match(head) is not None


def read_transcript(file: NamedStream) -> Imported:
    """Yield the conversation of a transcript."""
    thread, named = Thread("cursor", file.name), file.name.rpartition("/")[2].split(".")[0]
    at: datetime | None = None
    began: datetime | None = None
    for number, record, flaw in lines(file.stream):
        if flaw:
            thread.left_out.append((str(number), flaw))
            continue
        role = ROLES.get(text_of(record.get("role")), Role.ASSISTANT)
        parts = blocks_of(an_object(record.get("message")).get("content"))
        said = json.dumps([thread.last, record.get("role"), record.get("message")])
        name = text_name(said)
        at = next(filter(None, map(_time, parts)), at) if role is Role.USER else at
        began = began or at
        thread.append(name, role, map(_typed, parts) if role is Role.USER else parts, at)
    ended = file_time(file)
    yield thread.finished(named, "", began or ended, ended, is_undated=True)


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
