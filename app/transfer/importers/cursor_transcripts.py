"""The importer of Cursor's agent transcripts: `agent-transcripts/ID/ID.jsonl`, one message a line.

They have no times: a conversation has that of its file. They have no ids: that of a message is derived from
it and what precedes it.
"""

import hashlib
import json
import re

from app.domain.conversations import Role, Text
from app.transfer.archive import NamedStream
from app.transfer.importers.agent_logs import blocks_of
from app.transfer.importers.building import Imported
from app.transfer.importers.formats import ROLES, Part, Thread, file_time, lines
from app.transfer.importers.values import an_object, text_of

_TYPED = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_FIRST_LINE = re.compile(rb'\{\s*"role"\s*:\s*"(?:user|assistant)"\s*,\s*"message"\s*:\s*\{')


def is_transcript(head: bytes) -> bool:
    """Return whether a JSON file with these first bytes is a transcript."""
    return _FIRST_LINE.match(head) is not None


def read_transcript(file: NamedStream) -> Imported:
    """Yield the conversation of a transcript."""
    thread, named = Thread("cursor", file.name), file.name.rpartition("/")[2].split(".")[0]
    for number, record, flaw in lines(file.stream):
        if flaw:
            thread.left_out.append((str(number), flaw))
            continue
        role = ROLES.get(text_of(record.get("role")), Role.ASSISTANT)
        parts = blocks_of(an_object(record.get("message")).get("content"))
        said = json.dumps([thread.last, record.get("role"), record.get("message")])
        name = hashlib.sha256(said.encode()).hexdigest()[:32]
        thread.append(name, role, map(_typed, parts) if role is Role.USER else parts)
    yield thread.finished(named, "", file_time(file), file_time(file), is_undated=True)


def _typed(part: Part) -> Part:
    """Return what the user typed of a message, without what the program adds around it."""
    typed = _TYPED.search(part.text) if isinstance(part, Text) else None
    return Text(typed[1]) if typed else part
