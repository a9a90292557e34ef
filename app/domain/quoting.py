"""Quotation of untrusted text in prompts.

What a user, a model, a file or a web page says may contain instructions: each line begins with a quotation
mark, text that looks like our tags is changed, and the tags contain a hash of the quoted text, which the
text itself cannot contain.
"""

import re

from app.domain.text import clean
from app.domain.turn_text import content_hash

RECALLED = "recalled"
PROFILE = "user-profile"
CORE_MEMORY = "core-memory"
SUMMARY = "earlier-summary"
ATTACHMENT = "attachment"

_MARK = re.compile(
    rf"<(?=\s*/?\s*(?:{RECALLED}|{PROFILE}|{CORE_MEMORY}|{SUMMARY}|{ATTACHMENT}))", re.IGNORECASE
)


def wrap_in_tag(name: str, text: str) -> str:
    """Return `text` in a tag; "" for none."""
    if not text:
        return ""
    mark = f"{name}-{content_hash(text)[:12]}"
    return f"<{mark}>\n{text.strip()}\n</{mark}>"


def sanitize(text: str) -> str:
    """Return text that cannot close a block."""
    return _MARK.sub("‹", clean(text))


def blockquote(text: str, indent: str = "") -> str:
    """Return text as lines that begin with a quotation mark."""
    lines = sanitize(text).strip().splitlines() or [""]
    return "".join(f"{indent}> {line}\n" for line in lines)
