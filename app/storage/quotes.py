"""Quotes taken out of what tools and Recall answered, when what they quote is forgotten. Pure.

Tools about memory answer in JSON with a line for each thing found (`app.chat.tools.quoting`), so
lines are looked at one by one; Recall answers in Markdown, in sections with a line above each quote:
a link, or what was learned or saved by its id.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from app.domain.conversations import ToolResult
from app.storage.leaving import Leaving

FORGOTTEN = "[forgotten]"
QUOTING_TOOLS = ("conversation_search", "memory_search", "fetch_conversation_details")
_LEARNED = ("fact", "memory")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"?')
_NAME = re.compile(r"\*\*.*\*\* · ")
_KNOWN_NAMES = (  # as `app.providers.recall` writes them: what they name has an id of its own
    "**Facts** · learned from what was said",
    "**Saved memories** · kept on purpose",
)
_KNOWN = r"(?:Fact|Memory) (\d+) · [^\[\]]+"
_LINK = r"commonplace://(\w+)/\d+(?:\?exchange=\d+)?"
_SOURCE = re.compile(rf"(?:\[(?:{_KNOWN}|.*)\]\({_LINK}\)|{_KNOWN}) · \d+%")
_Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Host:
    """Where quotes stand.

    `knows_ids` is False where ids are another library's, because it was imported. `in_doubt` are
    conversations that quote what leaves: who quotes them may quote that too.
    """

    leaving: Leaving
    knows_ids: bool
    in_doubt: Collection[int] = ()

    def is_about(self, entry: _Json) -> bool:
        """Return whether an entry names what leaves."""
        if not self.knows_ids:
            return False
        return (
            entry.get("conversation_id") in self.leaving.conversations
            or entry.get("exchange_id") in self.leaving.exchanges
            or (entry.get("kind") in _LEARNED and entry.get("id") in self.leaving.passages)
        )

    def vouches_for(self, entry: _Json) -> bool:
        """Return whether an entry names what stays: by its own id, or a conversation by which it was said.

        Not one that quotes what leaves.
        """
        named = entry.get("conversation_id")
        if named is None and entry.get("kind") in _LEARNED:
            return self.knows_ids and isinstance(entry.get("id"), int)
        return self.knows_ids and isinstance(named, int) and named not in self.in_doubt

    def quotes(self, text: str) -> bool:
        """Return whether words of what leaves stand in a text."""
        return self.leaving.words.stand_in(text)


def result_without(result: ToolResult, arguments: str, host: Host) -> str:
    """Return a result's text without what leaves; `arguments` are those of the call, as JSON."""
    asked = _object(arguments)
    if result.name not in QUOTING_TOOLS:
        return result.text
    if asked is not None and host.is_about(asked):
        return FORGOTTEN
    lines = result.text.split("\n")
    head = _object(lines[0]) or _object(lines[0] + "]}")
    if head is not None:
        if host.is_about(head):
            return FORGOTTEN
        if host.vouches_for(head):
            return result.text  # its lines name no conversation, because it has
        told = {name: value for name, value in head.items() if name not in ("note", "query")}
        if len(lines) > 1 and any(map(host.quotes, _texts(told))):
            return FORGOTTEN
    kept = [_line_without(line, host) for line in lines]
    return "\n".join(kept)


def _line_without(line: str, host: Host) -> str:
    bare = line.removesuffix(",")
    entry = _object(bare)
    if entry is not None:
        gone = host.is_about(entry) or (
            not host.vouches_for(entry) and any(map(host.quotes, _texts(entry)))
        )
        return json.dumps(FORGOTTEN) + line[len(bare) :] if gone else line
    if _object(line + "]}") is not None:
        return line  # a head: the question that was asked
    return FORGOTTEN if any(map(host.quotes, _pieces(line))) else line


def _object(text: str) -> _Json | None:
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a JSON value, names left out."""
    if isinstance(value, str):
        yield from value.split("\n")
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _pieces(line: str) -> Iterator[str]:
    """Yield the texts in a torn line of JSON: what stands before the first mark, and in them."""
    yield from line.split('"', 1)[0].split("\\n")
    for found in _STRING.findall(line):
        yield from found.split("\\n")
    # Torn inside a text, what stands between two marks is taken for the text.
    for between in line.split('"'):
        yield from between.split("\\n")


def answer_without(text: str, host: Host) -> str:
    """Return one of Recall's answers without what leaves."""
    lines = text.split("\n")
    kept: list[str] = []
    place = 0
    while place < len(lines):
        if _NAME.match(lines[place]):
            section = [lines[place], *takewhile(_in_section, lines[place + 1 :])]
            kept += _section_without(section, host)
            place += len(section)
        else:
            kept.append(lines[place])
            place += 1
    return "\n".join(kept)


def _in_section(line: str) -> bool:
    return not line or line.startswith("> ") or line == ">" or _SOURCE.match(line) is not None


def _section_without(section: list[str], host: Host) -> list[str]:
    """Return a section's name and quotes without those that leave, or a line in their place."""
    starts = [place for place, line in enumerate(section) if _SOURCE.match(line)]
    quotes = [
        section[start:end] for start, end in zip(starts, [*starts[1:], len(section)], strict=True)
    ]
    stay: list[str] = []
    gone = 0
    for quote in quotes:
        if _leaves(quote, host, is_known=section[0] in _KNOWN_NAMES):
            gone += 1
            stay += [f"> {FORGOTTEN}", ""]
        else:
            stay += quote
    if not gone:
        return section
    return [f"*{FORGOTTEN}*", ""] if gone == len(quotes) else [*section[: starts[0]], *stay]


def _leaves(quote: list[str], host: Host, *, is_known: bool) -> bool:
    """Return whether a quote leaves; one that `is_known` bears a fact's id, or a saved text's."""
    source = _SOURCE.match(quote[0])
    linked, *known = source.group(2, 1, 3) if source is not None else (None,)
    named = int(linked) if linked is not None and linked.isdecimal() else None
    learned = next((int(each) for each in known if is_known and each is not None), None)
    if host.knows_ids:
        if named in host.leaving.conversations or learned in host.leaving.passages:
            return True
        if learned is not None or (named is not None and not host.leaving.passages):
            return False
    words = [line.removeprefix(">").strip() for line in quote[1:]]
    return any(map(host.quotes, [*words, " ".join(words)]))
