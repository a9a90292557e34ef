"""Markdown's marks taken out of a piece of text that is shown on one line.

Light on purpose: what is cut out of the middle of a text is no document any more, so nothing is
parsed; marks go where they stand, words stay.
"""

import re

_LINE_MARKS = re.compile(
    r"^[ \t]*(?:"
    r"(?:`{3,}|~{3,})[^\n`]*$"  # fences, with the language's name
    r"|(?:[-*_][ \t]*){3,}$"  # rules
    r"|\|?(?:[ \t]*:?-+:?[ \t]*\|)+[-: \t]*$"  # under a table's head
    r"|=+[ \t]*$"  # under a heading
    r"|(?:[#>]+[ \t]+)+"  # headings, quotations
    r"|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?"  # bullets, tasks
    r")",
    re.MULTILINE,
)
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\((?:[^()\s]|\([^()\s]*\)){0,600}(?: \"[^\"\n]*\")?\)")
_STARS = re.compile(r"(?<!\w)(?:\*{1,3}|~~)(?=\S)|(?<=\S)(?:\*{1,3}|~~)(?!\w)")
_TABLE_ROW = re.compile(r"^[ \t]*\|.*\|[ \t]*$", re.MULTILINE)


def without_marks(text: str) -> str:
    """Return `text` on one line, without fences, headings, bullets, bold, links' targets."""
    text = _LINE_MARKS.sub("", text)
    text = _LINK.sub(r"\1", text)
    text = _STARS.sub("", text)
    text = _TABLE_ROW.sub(lambda row: row[0].replace("|", " "), text)
    return " ".join(text.replace("`", "").split())
