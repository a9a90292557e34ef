"""What `man` prints, read: the list of `man -k`, and the DESCRIPTION section of a page."""

import re
import textwrap
from collections.abc import Iterator, Mapping

from app.domain.text import clean, one_line

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


def listed(output: str) -> Mapping[tuple[str, str], str]:
    """Return {(name, section): one-line description} of the list that `man -k` prints.

    One line names a page, "grep (1) - print lines", or several, "egrep, grep(1) - print lines".
    Lines that say nothing of the kind are left out, and names that could be a path or an option.
    """
    pages: dict[tuple[str, str], str] = {}
    for line in output.splitlines():
        if (match := _LISTED.match(_plain(line).strip())) is not None:
            for key in _names(match["names"]):
                pages.setdefault(key, one_line(clean(match["summary"]), _SUMMARY_CHARS))
    return pages


def description(output: str) -> str | None:
    """Return the DESCRIPTION section of a page as `man` prints it; None when it has none.

    It begins below its heading, which stands at the left edge, and ends before the next line there.
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


def _names(words: str) -> Iterator[tuple[str, str]]:
    """Yield (name, section); a name without one has that of the next after it."""
    section: str | None = None
    for piece in reversed(words.split(",")):
        if (match := _NAMED.match(piece.strip())) is None:
            continue
        section = match["section"] or section
        name = match["name"]
        if section is not None and _is_sound(name):
            yield name, section


def _is_sound(name: str) -> bool:
    """Whether a name can be given to `man` and means a page there, not a file or an option."""
    return name.isprintable() and "/" not in name and name[0] != "-" and len(name) <= _NAME_CHARS


def _plain(text: str) -> str:
    """Return text without what makes it bold, underlined or coloured on a terminal."""
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\x08" in text:
        text = _OVERSTRIKE.sub("", text)
    return _CONTROL.sub("", text)
