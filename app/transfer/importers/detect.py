"""Which importer reads a file, decided by what is in it, never by what it is called."""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass

from app.transfer.importers.building import Imported
from app.transfer.importers.chatgpt import read_chatgpt
from app.transfer.importers.claude import read_claude
from app.transfer.importers.commonplace import read_commonplace
from app.transfer.importers.pieces import Begun, pieces
from app.transfer.importers.scanner import Readable

KNOWN_FORMATS = (
    "Exports of ChatGPT and Claude (zip, folder or conversations.json) can be imported, and "
    "Commonplace's own JSON and JSONL."
)

_BY_MEMBER: dict[str, Callable[[Readable, str], Imported]] = {
    "mapping": read_chatgpt,
    "chat_messages": read_claude,
}
_OUR_MARK = re.compile(rb'"format"\s*:\s*"commonplace"')
_BLANKS = b" \t\r\n\xef\xbb\xbf"
_FIRST_BYTES = (
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"RIFF", "a sound, a film or a picture"),
    (b"\x1f\x8b", "a gzip archive; unpack it first"),
    (b"7z\xbc\xaf", "a 7-Zip archive; unpack it first"),
    (b"Rar!", "a RAR archive; unpack it first"),
    (b"BZh", "a bzip2 archive; unpack it first"),
    (b"\xfd7zXZ", "an xz archive; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive; unpack it first"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\xff\xfe", "text in UTF-16; save it as UTF-8 first"),
    (b"\xfe\xff", "text in UTF-16; save it as UTF-8 first"),
    (b"<", "a web page or other markup"),
)

_SILENT = frozenset(
    (
        "group_chats",
        "login_history",
        "message_feedback",
        "model_comparisons",
        "shared_conversations",
        "shopping",
        "sora",
        "user",
        "user_settings",
        "users",
    )
)
_NONE_AT_ALL = re.compile(rb'\[\s*\]|\{\s*"conversations"\s*:\s*\[\s*\]\s*\}')


@dataclass(frozen=True, slots=True)
class Found:
    """What a file is: the importer that reads it, or what it is instead.

    `instead` is in words for the user, `is_json` whether that is JSON at all; `aside` says that it
    belongs to an export but holds no conversations, and why it is not taken (empty where nobody
    would miss it).
    """

    read: Callable[[Readable, str], Imported] | None = None
    instead: str = ""
    is_json: bool = False
    aside: str | None = None


def detect(head: bytes, name: str) -> Found:
    """Return what a file with these first bytes is; `name` only tells side files apart."""
    body = head.lstrip(_BLANKS)
    if not body:
        return Found(instead="an empty file")
    if body[:1] not in (b"[", b"{"):
        return Found(instead=_named(head))
    member = next((each.member for each in pieces(io.BytesIO(body)) if isinstance(each, Begun)), "")
    if member in _BY_MEMBER:
        return Found(read=_BY_MEMBER[member])
    if _OUR_MARK.search(body):
        return Found(read=read_commonplace)
    return _side_file(body, name)


def _side_file(body: bytes, name: str) -> Found:
    stem = name.rpartition("/")[2].rpartition(".")[0].lower()
    if b'"conversations_memory"' in body:
        return Found(
            aside="it holds what Claude remembered about you, not conversations; such memories are "
            "not imported, but you can paste what you want to keep into core memory"
        )
    if b'"prompt_template"' in body or stem == "projects" or "/projects/" in f"/{name}":
        return Found(
            aside="it holds Claude projects (instructions and documents), not conversations; they "
            "are not imported, but their documents can be attached where you need them"
        )
    if stem in _SILENT or stem.startswith(("manifest", "export_manifest")):
        return Found(aside="")
    if _NONE_AT_ALL.fullmatch(body.rstrip()):
        return Found(aside="it holds no conversations")
    return Found(instead="JSON, but not of a form that is known", is_json=True)


def _named(head: bytes) -> str:
    for first, what in _FIRST_BYTES:
        if head.startswith(first):
            return what
    try:
        head[:4096].decode("utf-8", "strict" if len(head) <= 4096 else "ignore")
    except UnicodeDecodeError:
        return "no text"
    return "no text" if b"\0" in head[:4096] else "text, but no JSON"
