"""The system's manual: lists and texts of pages, parsed from the output of `man`."""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

from app.domain.errors import ManualPageUnreadable, ManualUnavailable
from app.domain.records.documents import ListedDocument, manual_page
from app.domain.text import clean, one_line
from app.system.process import LimitExceeded, ProcessLimits, run_captured

IsCancelled = Callable[[], bool]

_LIST = ProcessLimits(seconds=60.0, output_bytes=64 << 20)
_PLACES = ProcessLimits(seconds=10.0, output_bytes=1 << 20)
_PAGE = ProcessLimits(seconds=20.0, output_bytes=16 << 20)
_COMPRESSED = re.compile(r"\.(?:gz|bz2|xz|zst|lz|lzma|Z)$")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WITHOUT = ("MAN_KEEP_FORMATTING", "MANROFFOPT", "MANSECT", "LANGUAGE", "LESS")
_SUMMARY_CHARS = 300
_NAME_CHARS = 200
_LISTED = re.compile(r"^(?P<names>\S.*?)\s+-+\s+(?P<summary>\S.*)$")
_NAMED = re.compile(r"^(?P<name>\S+?)\s*(?:\((?P<section>[0-9A-Za-z]\w{0,15})\))?(?:\s*\[.*\])?$")
_OVERSTRIKE = re.compile(r"[^\n\x08]?\x08")
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z])"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_HEADING = "description"


@dataclass(frozen=True, slots=True)
class _File:
    """The state of a page's file, from its directory entry."""

    stamp: str
    changed_at: datetime


class Manual:
    """Runs `man`, which is looked up on PATH on each call. Blocking.

    `page_limits` apply to the display of one page.
    """

    def __init__(self, page_limits: ProcessLimits = _PAGE) -> None:
        self._page_limits = page_limits

    def pages(self, is_cancelled: IsCancelled) -> Sequence[ListedDocument]:
        """Return all pages that `man -k .` lists, sorted by name and section; 0.6 s for 22,600.

        Raises ManualUnavailable, Cancelled.
        """
        summaries = self._list(is_cancelled)
        if not summaries:
            raise ManualUnavailable(
                "'man -k .' lists no manual pages",
                "Install the manual pages, or build their index as root with 'mandb' or 'makewhatis'.",
            )
        files = _files(self._folders(is_cancelled))
        return [
            _page(name, section, summary, files)
            for (name, section), summary in sorted(summaries.items())
        ]

    def description(self, page: ListedDocument, is_cancelled: IsCancelled) -> str | None:
        """Return the DESCRIPTION section of a page as plain text; None when it has none.

        Raises ManualPageUnreadable, ManualUnavailable, Cancelled.
        """
        title, _, section = page.name.rpartition(".")
        arguments = (section, title)
        name = f"'man {section} {title}'"
        try:
            code, output = _run(arguments, 80, self._page_limits, is_cancelled)
        except LimitExceeded as error:
            raise ManualPageUnreadable(f"{name} {error}") from error
        if code and not output:
            raise ManualPageUnreadable(f"{name} shows nothing (code {code})")
        return parse_description(output.decode("utf-8", "replace"))

    def _list(self, is_cancelled: IsCancelled) -> Mapping[tuple[str, str], str]:
        try:
            _, output = _run(("-k", "."), 10_000, _LIST, is_cancelled)
        except LimitExceeded as error:
            raise ManualUnavailable(f"'man -k .' {error}", "The program will retry.") from error
        return parse_list(output.decode("utf-8", "replace"))

    def _folders(self, is_cancelled: IsCancelled) -> Sequence[Path]:
        """Return the folders of manual pages in search order; none when `man` does not list them."""
        try:
            code, output = _run(("-w",), 80, _PLACES, is_cancelled)
        except (LimitExceeded, ManualUnavailable):
            return ()
        folders = "" if code else os.fsdecode(output).strip()
        return [Path(each) for each in folders.split(":") if each.startswith("/")]


def _run(
    arguments: Sequence[str], width: int, limits: ProcessLimits, is_cancelled: IsCancelled
) -> tuple[int, bytes]:
    """Return the exit code and output of `man`, at low priority, since there are thousands of pages.

    Raises ManualUnavailable, LimitExceeded, Cancelled.
    """
    man, nice = shutil.which("man"), shutil.which("nice")
    if man is None:
        raise ManualUnavailable(
            "There is no 'man' on this computer", "Install it, for example the package 'man-db'."
        )
    command = [*((nice, "-n", "10") if nice else ()), man, *arguments]
    try:
        return run_captured(command, _environment(width), limits, is_cancelled)
    except OSError as error:
        raise ManualUnavailable(
            f"'man' cannot be run: {error.strerror or error}", "Install it again."
        ) from error


def _environment(width: int) -> Mapping[str, str]:
    """Return an environment in which `man` prints plain English text without hyphenation."""
    kept = {name: value for name, value in os.environ.items() if name not in _WITHOUT}
    return kept | {
        "LC_ALL": "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8",
        "MANPAGER": "cat",
        "PAGER": "cat",
        "MANWIDTH": str(width),
        "COLUMNS": str(width),
        "MANOPT": "--no-hyphenation --no-justification" if width < 1000 else "",
        "GROFF_NO_SGR": "1",
        "TERM": "dumb",
    }


def _files(folders: Sequence[Path]) -> Mapping[str, _File]:
    """Return the files of manual folders by name (grep.1), and the folders by section (1).

    The folder stands for pages that are listed under another name than their file's.
    """
    files: dict[str, _File] = {}
    for folder in folders:
        for section in _entries(folder):
            if not section.name.startswith("man"):
                continue
            for each in _entries(section):
                files.setdefault(_COMPRESSED.sub("", each.name), _file(each.stat()))
            files.setdefault(section.name.removeprefix("man"), _file(section.stat()))
    return files


def _entries(folder: os.PathLike[str]) -> Iterator["os.DirEntry[str]"]:
    """Yield the readable entries of a folder; nothing when it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            for each in entries:
                try:
                    each.stat()
                except OSError:
                    continue
                yield each
    except OSError:
        return


def _file(stat: os.stat_result) -> _File:
    return _File(f"{stat.st_mtime_ns}:{stat.st_size}", _moment(stat.st_mtime))


def _moment(unix_s: float) -> datetime:
    try:
        return datetime.fromtimestamp(max(0.0, unix_s), UTC)
    except (OverflowError, ValueError, OSError):
        return _EPOCH


def _page(name: str, section: str, summary: str, files: Mapping[str, _File]) -> ListedDocument:
    found = files.get(f"{name}.{section}") or files.get(section[:1]) or _File("", _EPOCH)
    stamp = f"{found.stamp}:{crc32(summary.encode()):08x}"
    return manual_page(name, section, summary, stamp, found.changed_at)


def parse_list(output: str) -> Mapping[tuple[str, str], str]:
    """Return {(name, section): one-line description} from the output of `man -k`.

    A line names one page, "grep (1) - print lines", or several, "egrep, grep(1) - print lines". Other
    lines are ignored, and names that could be a path or an option.
    """
    pages: dict[tuple[str, str], str] = {}
    for line in output.splitlines():
        if (match := _LISTED.match(_plain(line).strip())) is not None:
            for key in _names(match["names"]):
                pages.setdefault(key, one_line(clean(match["summary"]), _SUMMARY_CHARS))
    return pages


def parse_description(output: str) -> str | None:
    """Return the DESCRIPTION section from the output of `man`; None when it has none.

    It begins below the heading, which is not indented, and ends before the next unindented line.
    """
    lines = _plain(output).splitlines()
    at = next((n for n, line in enumerate(lines) if line.rstrip().lower() == _HEADING), None)
    if at is None:
        return None
    section = []
    for line in lines[at + 1 :]:
        if line and not line[0].isspace():
            break
        section.append(line.rstrip())
    text = clean(textwrap.dedent("\n".join(section)).strip("\n"))
    return text if text.strip() else None


def _names(text: str) -> Iterator[tuple[str, str]]:
    """Yield (name, section); a name without a section has that of the following name."""
    section: str | None = None
    for piece in reversed(text.split(",")):
        if (match := _NAMED.match(piece.strip())) is None:
            continue
        section = match["section"] or section
        name = match["name"]
        if section is not None and _is_sound(name):
            yield name, section


def _is_sound(name: str) -> bool:
    """Return whether `man` takes a name for a page, not for a file or an option."""
    return name.isprintable() and "/" not in name and name[0] != "-" and len(name) <= _NAME_CHARS


def _plain(text: str) -> str:
    """Return text without escape sequences and overstrikes of a terminal."""
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\x08" in text:
        text = _OVERSTRIKE.sub("", text)
    return _CONTROL.sub("", text)
