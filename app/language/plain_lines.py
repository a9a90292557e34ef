"""Markdown as plain text on one line, by patterns: an excerpt is no document to parse."""

import re

_LINE_MARKS = re.compile(
    r"^[ \t]*(?:"
    r"(?:`{3,}|~{3,})[^\n`]*$"  # code fences with a language name
    r"|(?:[-*_][ \t]*){3,}$"  # horizontal rules
    r"|\|?(?:[ \t]*:?-+:?[ \t]*\|)+[-: \t]*$"  # table header separators
    r"|=+[ \t]*$"  # heading underlines
    r"|(?:[#>]+[ \t]+)+"  # headings, quotations
    r"|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?"  # bullets, tasks
    r")",
    re.MULTILINE,
)
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\((?:[^()\s]|\([^()\s]*\)){0,600}(?: \"[^\"\n]*\")?\)")
_STARS = re.compile(r"(?<!\w)(?:\*{1,3}|~~)(?=\S)|(?<=\S)(?:\*{1,3}|~~)(?!\w)")
_TABLE_ROW = re.compile(r"^[ \t]*\|.*\|[ \t]*$", re.MULTILINE)


def strip_markdown(text: str) -> str:
    """Return `text` on one line without Markdown's marks and link targets."""
    text = _LINE_MARKS.sub("", text)
    text = _LINK.sub(r"\1", text)
    text = _STARS.sub("", text)
    text = _TABLE_ROW.sub(_row_in_line, text)
    return " ".join(text.replace("`", "").split())


def _row_in_line(row: "re.Match[str]") -> str:
    """Return a table's row as prose: its cells apart, and it apart from the next."""
    cells = (each.strip() for each in row[0].replace("\\|", "\0").strip().strip("|").split("|"))
    joined = " \N{MIDDLE DOT} ".join(each.replace("\0", "|") for each in cells if each)
    return f"{joined};" if joined else ""
