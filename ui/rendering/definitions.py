"""Definitions of links and footnotes, found by a scan of lines ahead of parsing.

A text is rendered piece by piece, and a definition may be far below its references. The scan knows
as much of the block structure as decides what is a definition: fenced and indented code have none,
and one of a link cannot interrupt a paragraph.
"""

import re

from markdown_it.common.utils import normalizeReference, unescapeAll

_LINK = re.compile(
    r"""\[ (?!\^) (?P<label>(?:[^\]\[\\]|\\.){1,300}) \]:
        [ \t]*\n?[ \t>]* (?:<(?P<angled>[^<>\n]{0,2000})>|(?P<bare>[^\s<]\S{0,2000}))
        (?: [ \t]* $ | [ \t]+ (?: "(?:[^"\\]|\\.)*"? | '(?:[^'\\]|\\.)*'? | \((?:[^()\\]|\\.)*\)? ) [ \t]* $ )""",
    re.VERBOSE,
)
_LINK_ALONE = re.compile(r"\[(?!\^)(?:[^\]\[\\]|\\.){1,300}\]:[ \t]*$")
_TITLE_ALONE = re.compile(r"""(?:"[^"]*"|'[^']*'|\([^()]*\))[ \t]*$""")
_FOOTNOTE = re.compile(r"\[\^(?P<label>[^\]\s]{1,100})\]:")
# A footnote at the left edge, with what belongs to it.
_NOTE = re.compile(r"\[\^.*(?:\n(?:[ \t]*\n)*(?: {4}|\t).*)*")
_NOTE_IS_OVER = re.compile(r"\s*\Z|\n[ \t]*\n|\n\[\^")
_REFERENCE = re.compile(r"\[\^(?P<label>[^\]\s]{1,100})\]")
_BAD_SCHEME = re.compile(r"\s*(?:javascript|vbscript|file|data)\s*:", re.IGNORECASE)
_CONTAINER = re.compile(r"(?: {0,3}>[ ]?)*")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_LIST = re.compile(r"[ \t]*(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)")
_NO_PARAGRAPH = re.compile(
    r" {0,3}(?:\#{1,6}(?:[ \t]|$)|=+[ \t]*$|-+[ \t]*$|(?:(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$)"
)
_CODE_INDENT = 4


class Definitions:
    """The link and footnote definitions of a text, which is read line by line.

    Attributes:
        links: Normalized label to `{"href", "title"}`, as markdown-it expects it.
        footnotes: `:label` to its number, counted from 1 in the order of the first references; those
            without a reference follow.
    """

    def __init__(self) -> None:
        self.links: dict[str, dict[str, str]] = {}
        self.footnotes: dict[str, int] = {}
        self._defined: dict[str, int] = {}  # footnotes, to where their line begins
        self._line_at = 0
        self._referred: dict[str, None] = {}
        self._unread = ""
        self._fence = ""
        self._fence_is_quoted, self._fence_indent = False, 0
        self._begun = ""  # a definition whose target is on the next line
        self._in_paragraph = self._in_list = self._after_link = self._was_blank = False

    def read(self, text: str) -> bool:
        """Read whole lines that follow those read before; the first definition of a label wins.

        Return whether there is a new definition, or a footnote has another number now.
        """
        self._unread += text
        if "]:" not in text and "[^" not in text and not self._begun:
            return False  # nothing to find yet, nor to remember where
        links, footnotes = len(self.links), dict(self.footnotes)
        lines, self._unread = self._unread.split("\n"), ""
        for line in lines if lines[-1] else lines[:-1]:
            self._read_line(line)
            self._line_at += len(line) + 1
        ordered = [each for each in self._referred if each in self._defined]
        ordered += [each for each in self._defined if each not in self._referred]
        self.footnotes.clear()
        self.footnotes.update((label, number) for number, label in enumerate(ordered, 1))
        return len(self.links) > links or footnotes != self.footnotes

    def in_order(self, text: str) -> str:
        """Return `text`, all of which was read, with footnotes that follow each other in the order of their numbers."""
        runs: list[list[tuple[int, int, int]]] = [[]]
        for label, start in self._defined.items():
            note = _NOTE.match(text, start)
            if note is None or not _NOTE_IS_OVER.match(text, note.end()):
                continue
            if runs[-1] and text[runs[-1][-1][2] : start].strip():
                runs.append([])
            runs[-1].append((self.footnotes[label], start, note.end()))
        parts, at = list[str](), 0
        for run in runs:
            for (_, start, end), (_, moved, moved_to) in zip(run, sorted(run), strict=True):
                parts += text[at:start], text[moved:moved_to]
                at = end
        return "".join(parts) + text[at:]

    def _read_line(self, line: str) -> None:
        container = _CONTAINER.match(line)
        quotes = container[0] if container is not None else ""
        begun, self._begun = self._begun, ""
        if self._fence and self._is_in_fence(line, quotes):
            return
        line = line[len(quotes) :]
        if not line.strip():
            self._in_paragraph, self._after_link, self._was_blank = False, False, True
            return
        is_item = _LIST.match(line) is not None and not _NO_PARAGRAPH.match(line)
        indent = _indent(line)
        if is_item:
            self._in_list, self._in_paragraph = True, False
        elif self._was_blank and not indent:
            self._in_list = False
        self._was_blank = False
        if indent >= _CODE_INDENT and not (self._in_list or self._in_paragraph or begun):
            return  # indented code
        content = _LIST.sub("", line, count=1).strip() if is_item else line.strip()
        fence = _FENCE.match(content)
        if fence is not None and (indent < _CODE_INDENT or self._in_list):
            self._fence, self._in_paragraph = fence[1], False
            self._fence_is_quoted = bool(quotes)
            self._fence_indent = 0 if not self._in_list else indent or int(is_item)
            return
        self._read_content(f"{begun}\n{content}" if begun else content)

    def _is_in_fence(self, line: str, quotes: str) -> bool:
        """Return whether a line belongs to the open fence; without what it is in, the fence ends."""
        if self._fence_is_quoted:
            line = line[len(quotes) :]
        is_left = self._fence_is_quoted and not quotes
        if is_left or (line.strip() and _indent(line) < self._fence_indent):
            self._fence = ""
            return False
        if _closes(line, self._fence):
            self._fence = ""
        return True

    def _read_content(self, content: str) -> None:
        """Read a line that is no code, without what it is in."""
        if (footnote := _FOOTNOTE.match(content)) is not None:
            self._defined.setdefault(":" + footnote["label"], self._line_at)
            self._in_paragraph = True
            content = content[footnote.end() :]
        elif not self._in_paragraph and (link := _LINK.match(content)) is not None:
            self._take_link(link)
            self._after_link = True
            return
        elif not self._in_paragraph and _LINK_ALONE.match(content):
            self._begun = content
            return
        elif not (self._after_link and _TITLE_ALONE.match(content)):
            self._in_paragraph = not _NO_PARAGRAPH.match(content)
        self._after_link = False
        for reference in _REFERENCE.finditer(content):
            self._referred.setdefault(":" + reference["label"])

    def _take_link(self, link: "re.Match[str]") -> None:
        href = link["angled"] if link["angled"] is not None else link["bare"]
        label = normalizeReference(link["label"])
        if label.strip() and not _BAD_SCHEME.match(href):
            self.links.setdefault(label, {"href": unescapeAll(href), "title": ""})


def _indent(line: str) -> int:
    expanded = line.expandtabs(_CODE_INDENT)
    return len(expanded) - len(expanded.lstrip())


def _closes(line: str, fence: str) -> bool:
    """Return whether a line ends the code that `fence` opened."""
    marks = line.strip()
    return len(marks) >= len(fence) and not marks.strip(fence[0])
