"""ChatGPT citation marks, replaced by links where the source is known and removed elsewhere.

New marks are spans of private-use characters (U+E200 kind U+E202 argument ... U+E201), described in
`metadata.content_references`; old ones look like 【4:0†source】, described in `metadata.citations`.
"""

import json
import re
from typing import Any

from app.transfer.importers.parsing.values import an_object, objects, text_of

_SPAN = re.compile("([ \t]*)(\ue200[^\ue200\ue201]*\ue201)")
_LOOSE = re.compile("[\ue200-\ue20f]")
_OLD = re.compile(r"([ \t]*)(【\d+(?::\d+)?†[^】\n]{0,200}】)")
_NO_NAME = re.compile(r"source|L\d|$")
_ALT_MAX_CHARS = 2_000
_ADDED_MAX_CHARS = 200_000


def replace_citations(text: str, metadata: dict[str, Any]) -> str:
    """Return `text` with citation marks replaced by Markdown links or names, or removed."""
    if "\ue200" not in text and "【" not in text and not _LOOSE.search(text):
        return text
    known = _references(metadata) | _citations(text, metadata)
    budget_chars = _ADDED_MAX_CHARS

    def replacement(match: re.Match[str]) -> str:
        nonlocal budget_chars
        new = known.get(match[2])
        new = _name_in(match[2]) if new is None else new
        budget_chars -= len(new)
        if not new or budget_chars < 0:
            return ""
        return f"{match[1] or ' ' * new.startswith('(')}{new}"

    text = _OLD.sub(replacement, _SPAN.sub(replacement, text))
    return _LOOSE.sub("", text)


def _references(metadata: dict[str, Any]) -> dict[str, str]:
    found = {}
    for reference in objects(metadata.get("content_references")):
        mark, alt = text_of(reference.get("matched_text")).strip(), text_of(reference.get("alt"))
        if mark.startswith("\ue200") and len(alt) <= _ALT_MAX_CHARS:
            found[mark] = _LOOSE.sub("", alt) or _links(objects(reference.get("items")))
    return found


def _citations(text: str, metadata: dict[str, Any]) -> dict[str, str]:
    found = {}
    for citation in objects(metadata.get("citations")):
        start, end = citation.get("start_ix"), citation.get("end_ix")
        if isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= start + 300:
            found[text[start:end]] = _links([an_object(citation.get("metadata"))])
    return found


def _links(sources: list[dict[str, Any]]) -> str:
    links = []
    for source in sources[:3]:
        url = text_of(source.get("url"))
        if re.fullmatch(r"https?://[^\s<>]{1,1000}", url):
            name = re.sub(r"[\[\]\s]+", " ", text_of(source.get("title"))[:200]).strip() or url
            links.append(f"[{name}]({url.replace('(', '%28').replace(')', '%29')})")
    return f"({', '.join(links)})" if links else ""


def _name_in(mark: str) -> str:
    """Return the entity, link or page that a mark itself names; "" for none."""
    if mark.startswith("【"):
        label = mark.strip("【】").partition("†")[2]
        return "" if _NO_NAME.match(label) else label.replace("†", ", ")
    kind, _, argument = mark.strip("\ue200\ue201").partition("\ue202")
    if kind == "url":
        return argument.partition("\ue202")[0][:_ALT_MAX_CHARS]
    if kind != "entity":
        return ""
    try:
        parts = json.loads(argument)
    except (ValueError, RecursionError):
        return ""
    names = [part for part in parts if isinstance(part, str)] if isinstance(parts, list) else []
    return names[1][:_ALT_MAX_CHARS] if len(names) > 1 else ""
