"""Link and footnote definitions of a text, found ahead of everything else.

A text is drawn piece by piece, and a definition may stand far below its use; one quick scan of
the lines makes every piece see all of them. What a definition looks like where it stands is the
writer's business.
"""

import re
from dataclasses import dataclass, field

from markdown_it.common.utils import normalizeReference

_LINK = re.compile(
    r"""^[ \t>]{0,40} \[ (?!\^) (?P<label>(?:[^\]\[\\\n]|\\.){1,300}) \]:
        [ \t]*\n?[ \t]* (?:<(?P<angled>[^<>\n]{0,2000})>|(?P<bare>[^\s<]\S{0,2000}))
        [ \t]* (?: $ | ["'(] )""",
    re.VERBOSE | re.MULTILINE,
)
_FOOTNOTE = re.compile(r"^[ \t>]{0,40}\[\^(?P<label>[^\]\s]{1,100})\]:", re.MULTILINE)
_BAD_SCHEME = re.compile(r"\s*(?:javascript|vbscript|file|data)\s*:", re.IGNORECASE)


@dataclass(slots=True)
class Definitions:
    """What references in a text may point to.

    Attributes:
        links: Normalised label to `{"href", "title"}`, as markdown-it wants it.
        footnotes: `:label` to its number, counted from 1 in the order of the definitions.
    """

    links: dict[str, dict[str, str]] = field(default_factory=dict)
    footnotes: dict[str, int] = field(default_factory=dict)

    def learn(self, text: str) -> bool:
        """Add what `text` (whole lines) defines; the first definition of a label wins.

        Return whether anything was new.
        """
        if "]:" not in text:
            return False
        before = len(self.links) + len(self.footnotes)
        for match in _LINK.finditer(text):
            href = match["angled"] if match["angled"] is not None else match["bare"]
            label = normalizeReference(match["label"])
            if label.strip() and not _BAD_SCHEME.match(href):
                self.links.setdefault(label, {"href": href, "title": ""})
        for match in _FOOTNOTE.finditer(text):
            self.footnotes.setdefault(":" + match["label"], len(self.footnotes) + 1)
        return len(self.links) + len(self.footnotes) > before
