"""The system's manual: which pages there are and what they say, asked of `man`.

What it prints is read in `manual_text`. Nothing is kept here.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

from app.domain.manual import ManualPage, ManualUnavailable, PageUnreadable
from app.system.child_process import Limits, OutOfLimits, output_of
from app.system.manual_text import description, listed

IsCancelled = Callable[[], bool]

_LIST = Limits(seconds=60.0, output_bytes=64 << 20)
_PLACES = Limits(seconds=10.0, output_bytes=1 << 20)
_PAGE = Limits(seconds=20.0, output_bytes=16 << 20)
_COMPRESSED = re.compile(r"\.(?:gz|bz2|xz|zst|lz|lzma|Z)$")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WITHOUT = ("MAN_KEEP_FORMATTING", "MANROFFOPT", "MANSECT", "LANGUAGE", "LESS")


@dataclass(frozen=True, slots=True)
class _File:
    """What is known of a page's file without reading it."""

    stamp: str
    changed_at: datetime


class Manual:
    """Asks `man`, which is looked up on PATH each time. Blocking: for worker threads.

    `page_limits` are those of showing one page.
    """

    def __init__(self, page_limits: Limits = _PAGE) -> None:
        self._page_limits = page_limits

    def pages(self, is_cancelled: IsCancelled) -> Sequence[ManualPage]:
        """Return all pages of all sections that `man -k .` lists, by name and section.

        0.6 s for 22,600. Raises ManualUnavailable, Cancelled.
        """
        words = self._list(is_cancelled)
        if not words:
            raise ManualUnavailable(
                "'man -k .' lists no manual pages",
                "Install the manual pages, or build their index as root: 'mandb' or 'makewhatis'.",
            )
        files = _files(self._folders(is_cancelled))
        return [
            _page(name, section, summary, files)
            for (name, section), summary in sorted(words.items())
        ]

    def description(self, page: ManualPage, is_cancelled: IsCancelled) -> str | None:
        """Return a page's DESCRIPTION section as plain text; None when it has none.

        Raises PageUnreadable, ManualUnavailable, Cancelled.
        """
        command = [*_gently(), _man(), page.section, page.name]
        try:
            code, output = output_of(command, _environment(80), self._page_limits, is_cancelled)
        except OutOfLimits as error:
            raise PageUnreadable(f"'man {page.section} {page.name}' {error}") from error
        except OSError as error:
            raise _unavailable(error) from error
        if code and not output:
            raise PageUnreadable(f"'man {page.section} {page.name}' shows nothing (code {code})")
        return description(output.decode("utf-8", "replace"))

    def _list(self, is_cancelled: IsCancelled) -> Mapping[tuple[str, str], str]:
        try:
            _, output = output_of([_man(), "-k", "."], _environment(10_000), _LIST, is_cancelled)
        except OutOfLimits as error:
            raise ManualUnavailable(f"'man -k .' {error}", "It will be tried again.") from error
        except OSError as error:
            raise _unavailable(error) from error
        return listed(output.decode("utf-8", "replace"))

    def _folders(self, is_cancelled: IsCancelled) -> Sequence[Path]:
        """Return where manual pages are, the first to be asked first; none when `man` won't say."""
        try:
            code, output = output_of([_man(), "-w"], _environment(80), _PLACES, is_cancelled)
        except (OutOfLimits, OSError):
            return ()
        words = "" if code else os.fsdecode(output).strip()
        return [Path(each) for each in words.split(":") if each.startswith("/")]


def _man() -> str:
    if (path := shutil.which("man")) is None:
        raise ManualUnavailable(
            "There is no 'man' on this computer", "Install it, such as the package 'man-db'."
        )
    return path


def _gently() -> Sequence[str]:
    """Return what leaves the processor to others: thousands of pages take a while."""
    nice = shutil.which("nice")
    return () if nice is None else (nice, "-n", "10")


def _unavailable(error: OSError) -> ManualUnavailable:
    return ManualUnavailable(f"'man' cannot be run: {error.strerror or error}", "Install it anew.")


def _environment(width: int) -> Mapping[str, str]:
    """Return an environment in which `man` prints plain English text, lines whole and unhyphenated."""
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
    """Return the files of manual folders by what they are called: grep.1; and by section, 1.

    A page that is listed under another name than its file's changes when its section's folder does.
    """
    files: dict[str, _File] = {}
    for folder in folders:
        for section in _entries(folder):
            if not section.name.startswith("man"):
                continue
            for each in _entries(section):
                files.setdefault(_COMPRESSED.sub("", each.name), _seen(each.stat()))
            files.setdefault(section.name.removeprefix("man"), _seen(section.stat()))
    return files


def _entries(folder: os.PathLike[str]) -> Iterator["os.DirEntry[str]"]:
    """Yield what stands in a folder and can be looked at; nothing of what is no folder."""
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


def _seen(stat: os.stat_result) -> _File:
    return _File(f"{stat.st_mtime_ns}:{stat.st_size}", _moment(stat.st_mtime))


def _moment(unix_s: float) -> datetime:
    try:
        return datetime.fromtimestamp(max(0.0, unix_s), UTC)
    except (OverflowError, ValueError, OSError):
        return _EPOCH


def _page(name: str, section: str, summary: str, files: Mapping[str, _File]) -> ManualPage:
    found = files.get(f"{name}.{section}") or files.get(section[:1]) or _File("", _EPOCH)
    stamp = f"{found.stamp}:{crc32(summary.encode()):08x}"
    return ManualPage(name, section, summary, stamp, found.changed_at)
