"""Reading of exports: finds the importer of each file by its content, and reports files that none reads."""

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, islice
from pathlib import Path

from app.domain.errors import ImportRefused, KnownError
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.archive import PEEK_BYTES, Meter, NamedStream, open_export
from app.transfer.importers import (
    chatbox,
    cherry_studio,
    deepseek_grok,
    gemini_app,
    jan,
    librechat,
    lm_studio,
    open_webui,
)
from app.transfer.importers.agents import (
    claude_code,
    codex,
    cursor_transcripts,
    gemini_cli,
    llm_logs,
)
from app.transfer.importers.agents import databases as agent_databases
from app.transfer.importers.chatgpt import read_chatgpt
from app.transfer.importers.claude import read_claude
from app.transfer.importers.claude_extras import read_memories, read_projects
from app.transfer.importers.commonplace import read_commonplace
from app.transfer.importers.parsing.building import Imported
from app.transfer.importers.parsing.formats import (
    HEAD_BYTES,
    Format,
    has_members,
    is_database,
    tables_of,
)
from app.transfer.importers.parsing.json_events import ConversationStart, iter_events
from app.transfer.importers.parsing.scanner import Readable
from app.transfer.importers.parsing.values import take_damage
from app.transfer.zip_reader import DamagedArchive

FORMATS: tuple[Format, ...] = (
    claude_code.FORMAT, codex.FORMAT, codex.APP_FORMAT, gemini_cli.FORMAT,
    *agent_databases.OPENCODE_STORAGE_FORMATS, agent_databases.OPENCODE_FORMAT, agent_databases.GOOSE_FORMAT, agent_databases.CURSOR_FORMAT,
    open_webui.FORMAT, open_webui.DATABASE_FORMAT, librechat.FORMAT, chatbox.FORMAT,
    deepseek_grok.DEEPSEEK_FORMAT, deepseek_grok.GROK_FORMAT, jan.FORMAT, jan.THREAD_FORMAT,
    cherry_studio.FORMAT, cherry_studio.DATABASE_FORMAT, lm_studio.FORMAT, llm_logs.NEW_FORMAT,
    llm_logs.FORMAT, gemini_app.TAKEOUT_FORMAT, gemini_app.WORKSPACE_FORMAT,
    gemini_app.STUDIO_FORMAT,
)  # fmt: skip
"""The formats besides ChatGPT's, Claude's and our own; the first that fits a file reads it."""

KNOWN_FORMATS = (
    "Commonplace imports ChatGPT, Claude and its own exports, and "
    f"{', '.join(sorted({each.title for each in FORMATS}, key=str.casefold))}."
)

_BY_MEMBER: dict[str, Callable[[Readable, str], Imported]] = {
    "mapping": read_chatgpt,
    "chat_messages": read_claude,
}
_OWN_FORMAT = re.compile(rb'"format"\s*:\s*"commonplace"')
_BLANK_BYTES = b" \t\r\n\xef\xbb\xbf"
_FIRST_BYTES = (
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"RIFF", "a sound, video or image file"),
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

_SILENT_FILES = frozenset(
    (
        "conversation_asset_file_names", "library_files", "login_history", "shared_conversations",
        "user", "user_settings", "users",
    )
)  # fmt: skip
_NOT_IMPORTED = frozenset(
    ("group_chats", "message_feedback", "model_comparisons", "shopping", "sora")
)
_NOTHING = re.compile(rb'(?:\{\s*"\w+"\s*:\s*)?\[\s*\]\s*\}?|\{\s*\}')
_EMPTY_LIST = re.compile(rb'\[\s*\]|\{\s*"conversations"\s*:\s*\[\s*\]\s*\}')
_UNSUPPORTED = (
    ("Mistral's Le Chat", frozenset(("chatId", "contentChunks", "role"))),
    ("Poe", frozenset(("bot", "messages", "chatCode"))),
    ("Perplexity", frozenset(("backend_uuid", "query_str"))),
    ("Character.AI", frozenset(("turn_key", "candidates"))),
    ("the prompts of Claude Code without replies", frozenset(("display", "project", "sessionId"))),
    ("Zed", frozenset(("context_servers", "messages"))),
    ("Visual Studio Code's Copilot", frozenset(("requests", "responderUsername"))),
    ("SillyTavern", frozenset(("user_name", "character_name", "create_date"))),
)
_REPORTS_MAX = 100
_FILES_LOOKED_AT = 100


@dataclass(frozen=True, slots=True)
class Detected:
    """The content of a file: the importer that reads it, or what it is instead.

    `instead` is text for the user, `is_json` whether it is JSON at all. `ignored` is set when the file
    belongs to an export but contains no conversations: the reason to report, "" to report nothing.
    """

    read: Callable[[NamedStream], Imported] | None = None
    instead: str = ""
    is_json: bool = False
    ignored: str | None = None


def read_export(
    path: Path,
    *,
    cancelled: Callable[[], bool] = lambda: False,
    on_bytes: Callable[[int, int], None] = lambda _read, _total: None,
) -> Iterator[ImportedConversation | Skipped]:
    """Yield the conversations of an export in order, and everything that could not be imported.

    `path` is a file, a zip or a folder of any known format. One conversation is in memory at a time; a
    conversation that is in two files is yielded twice. `on_bytes` often receives the number of bytes
    read and their total, which may change. Blocking.

    Raises NotFound, Cancelled once `cancelled()` is true, and ImportRefused, at once or after some
    conversations, when the path cannot be read, is not an export, or is damaged as a whole.
    """
    report = _Report()
    for found in open_export(path, Meter(cancelled, on_bytes)):
        if isinstance(found, Skipped):
            report.add(found)
            continue
        try:
            detected = detect(found)
            if detected.read is None:
                report.add_unread(found.name, detected)
            else:
                report.has_export = True
                made = (_dated(each, found.changed_at) for each in detected.read(found))
                yield from _with_damage(made, found.name)
        except DamagedArchive as error:
            report.add(Skipped(found.name, f"{error.title}; only what precedes it was imported"))
        except OSError as error:
            report.add(Skipped(found.name, f"reading it failed: {error.strerror or error}"))
    if not report.has_export:
        raise report.refusal(path)
    yield from report.skipped(path)


def _with_damage(made: Imported, where: str) -> Imported:
    """Yield what a reader makes, and before it whether values in it were left out.

    What was read before the first conversation may be the list of them: that is said of the file.
    """
    take_damage()  # of a reader that was not asked for all
    for at, each in enumerate(chain(made, (None,))):
        if take_damage():
            title = each.title if at and isinstance(each, ImportedConversation) else ""
            yield Skipped(
                f"'{title}'" if title else where,
                "some of its values are damaged or have an unknown shape",
            )
        if each is not None:
            yield each


def _dated(
    found: ImportedConversation | Skipped, changed_at: datetime | None
) -> ImportedConversation | Skipped:
    """Return a conversation that has messages, but no time at all, with that of its file."""
    if isinstance(found, Skipped) or found.created_at or not found.messages:
        return found
    if any(each.created_at for each in found.messages):
        return found
    return replace(found, created_at=changed_at, updated_at=changed_at, is_undated=True)


def is_export(path: Path) -> bool:
    """Return whether a path has conversations that can be imported, by its first files. Blocking."""
    try:
        found = open_export(path, Meter(lambda: False, lambda _read, _total: None))
        for each in islice(found, _FILES_LOOKED_AT):
            if isinstance(each, Skipped):
                continue
            detected = detect(each)
            if detected.read is not None or detected.ignored:
                return True
    except (KnownError, OSError):
        pass
    return False


class _Report:
    """The files that no importer reads; reported last, when it is known whether there is an export."""

    def __init__(self) -> None:
        self.has_export = False
        self._listed: list[Skipped] = []
        self._unlisted_count = 0
        self._other_files: list[Skipped] = []

    def add(self, skipped: Skipped) -> None:
        """Add a report; after the first hundred they are only counted."""
        if len(self._listed) < _REPORTS_MAX:
            self._listed.append(skipped)
        else:
            self._unlisted_count += 1

    def add_unread(self, name: str, detected: Detected) -> None:
        """Add a file that is ignored or has an unknown format."""
        if detected.ignored is None:
            skipped = Skipped(name, f"it is {detected.instead}")
            if detected.is_json:
                self.add(skipped)
            else:
                self._other_files.append(skipped)
        elif detected.ignored:
            self.has_export = True
            self.add(Skipped(name, detected.ignored))

    def skipped(self, path: Path) -> Iterator[Skipped]:
        """Yield the reports; files that are not JSON are only counted."""
        yield from self._listed
        if self._unlisted_count:
            yield Skipped(path.name, f"{self._unlisted_count:,} more like these were skipped")
        if count := len(self._other_files):
            files = "1 more file contains" if count == 1 else f"{count:,} more files contain"
            yield Skipped(path.name, f"{files} no conversations; skipped")

    def refusal(self, path: Path) -> ImportRefused:
        """Return the error that nothing can be imported, which names what was found instead."""
        found = self._listed + self._other_files
        if not found:
            return ImportRefused(f"'{path}' contains no files that can be imported", KNOWN_FORMATS)
        first, more = found[0], len(found) - 1 + self._unlisted_count
        if not more and first.where == path.name:
            return ImportRefused(
                f"'{path}' is not an export of conversations: {first.why}", KNOWN_FORMATS
            )
        count = f" (and {more:,} more)" if more else ""
        return ImportRefused(
            f"'{path}' contains no conversations: {first.where}: {first.why}{count}", KNOWN_FORMATS
        )


def detect(file: NamedStream) -> Detected:
    """Return what a file is, by its first bytes; its name only distinguishes other files of exports."""
    head = file.stream.peek(PEEK_BYTES)
    body = head.lstrip(_BLANK_BYTES)
    if not body:
        return Detected(instead="an empty file")
    if is_database(head):
        known = tables_of(file)
        found = next((each for each in FORMATS if each.has_tables(known)), None)
        return Detected(found.read) if found else Detected(instead=_file_type(head))
    if cursor_transcripts.is_transcript(body, str(file.path or file.name)):
        return Detected(cursor_transcripts.read_transcript)
    if body[:1] not in (b"[", b"{"):
        return Detected(instead=_file_type(head))
    if _OWN_FORMAT.search(body):
        return Detected(lambda file: read_commonplace(file.stream, file.name))
    start = body[:HEAD_BYTES]
    for each in FORMATS:
        if each.has_members(start):
            return Detected(each.read)
    starts = (each for each in iter_events(io.BytesIO(body)) if isinstance(each, ConversationStart))
    member = next((each.member for each in starts), "")
    if read := _BY_MEMBER.get(member):
        return Detected(lambda file: read(file.stream, file.name))
    return _other_json(body, file.name)


def _other_json(body: bytes, name: str) -> Detected:
    stem = name.rpartition("/")[2].rpartition(".")[0].lower()
    if b'"conversations_memory"' in body:
        return Detected(read_memories)
    is_project = "/projects/" in f"/{name}" and has_members(body, ("docs",))
    if b'"prompt_template"' in body or stem == "projects" or is_project:
        return Detected(read_projects)
    if stem.endswith(".meta") and has_members(body, ("agentType",)):
        return Detected(ignored="")  # of a subagent of Claude Code
    if stem in _NOT_IMPORTED:
        why = f"it contains {stem.replace('_', ' ')}, which Commonplace does not import"
        return Detected(ignored="" if _NOTHING.fullmatch(body.rstrip()) else why)
    if stem in _SILENT_FILES or stem.startswith(("manifest", "export_manifest")):
        return Detected(ignored="")
    if _EMPTY_LIST.fullmatch(body.rstrip()):
        return Detected(ignored="it contains no conversations")
    for program, known in _UNSUPPORTED:
        if has_members(body[:HEAD_BYTES], known):
            return Detected(
                instead=f"an export of {program}, which is not supported yet", is_json=True
            )
    return Detected(instead="JSON of an unknown format", is_json=True)


def _file_type(head: bytes) -> str:
    if b'class="outer-cell' in head:
        return "Google's activity as a web page; choose JSON for My Activity in Google Takeout, and export again"
    for first_bytes, file_type in _FIRST_BYTES:
        if head.startswith(first_bytes):
            return file_type
    try:
        head[:4096].decode("utf-8", "strict" if len(head) <= 4096 else "ignore")
    except UnicodeDecodeError:
        return "not text"
    return "not text" if b"\0" in head[:4096] else "text, but not JSON"
