"""Redaction of quotes in tool results and Recall's answers. Pure functions.

Tools about memory answer in JSON with a line for each thing found (`app.chat.tools.results`), so
each line is examined. Recall answers in Markdown: each quote is followed by its source, a link or the id of a
fact, memory or document, or is a list item that begins with it; earlier versions wrote sections with the source above.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from app.domain.conversations import FORGOTTEN, ToolResult
from app.storage.deletion.deletion_set import DeletionSet

QUOTING_TOOLS = ("conversation_search", "memory_search", "fetch_conversation_details")
_FACT_KINDS = ("fact", "memory", "document")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"?')
_NAME = re.compile(r"\*\*.*\*\* · ")
_KNOWN_NAMES = (  # as earlier versions wrote them: what they name has an id of its own
    "**Facts** · learned from what was said",
    "**Saved memories** · kept on purpose",
)
_KNOWN = r"(?:Fact|Memory) (\d+) · [^\[\]]+"
_LINK = r"commonplace://(\w+)/\d+(?:\?exchange=(\d+))?"
_SOURCE = re.compile(rf"(?:\[(?:{_KNOWN}|.*)\]\({_LINK}\)|{_KNOWN}) · \d+%")
_SECTION = re.compile(rf"$|> |>$|{_SOURCE.pattern}")
_LABEL = r"(?:\\.|[^\\\[\]])*?"
_ID = r" · (?:fact|memory|document) (\d+)"
_CITATION = re.compile(  # as `app.providers.vendors.recall` writes it
    rf"(?:- )?(?:\[{_LABEL}(?:{_ID})?\]\({_LINK}\)|{_LABEL}{_ID}(?=$|: ))"
)
_Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class QuoteContext:
    """The message that contains quotes, and what is deleted.

    `knows_ids` is False for imported messages, whose ids belong to another library. `suspect` are
    conversations that quote what is deleted, so that quotes of them may contain it too.
    """

    deleted: DeletionSet
    knows_ids: bool
    suspect: Collection[int] = ()

    def is_about(self, entry: _Json) -> bool:
        """Return whether an entry names what is deleted."""
        if not self.knows_ids:
            return False
        return (
            entry.get("conversation_id") in self.deleted.conversations
            or entry.get("exchange_id") in self.deleted.exchanges
            or (entry.get("kind") in _FACT_KINDS and entry.get("id") in self.deleted.passages)
        )

    def is_of_other_source(self, entry: _Json) -> bool:
        """Return whether an entry names a source that is not deleted: its own id or a conversation.

        A conversation that quotes what is deleted does not count.
        """
        named = entry.get("conversation_id")
        if named is None and entry.get("kind") in _FACT_KINDS:
            return self.knows_ids and isinstance(entry.get("id"), int)
        return self.knows_ids and isinstance(named, int) and named not in self.suspect

    def quotes(self, text: str) -> bool:
        """Return whether a text quotes what is deleted."""
        return self.deleted.text.matches(text)


def redact_result(result: ToolResult, arguments: str, context: QuoteContext) -> str:
    """Return a result's text without deleted quotes; `arguments` are those of the call, as JSON."""
    given = _object(arguments)
    if result.name not in QUOTING_TOOLS:
        return result.text
    if given is not None and context.is_about(given):
        return FORGOTTEN
    lines = result.text.split("\n")
    head = _object(lines[0]) or _object(lines[0] + "]}")
    if head is not None:
        if context.is_about(head):
            return FORGOTTEN
        if context.is_of_other_source(head):
            return result.text  # the head names the conversation for all lines
        own = {name: value for name, value in head.items() if name not in ("note", "query")}
        if len(lines) > 1 and any(map(context.quotes, _texts(own))):
            return FORGOTTEN
    kept = [_line_without(line, context) for line in lines]
    return "\n".join(kept)


def _line_without(line: str, context: QuoteContext) -> str:
    bare = line.removesuffix(",")
    entry = _object(bare)
    if entry is not None:
        gone = context.is_about(entry) or (
            not context.is_of_other_source(entry) and any(map(context.quotes, _texts(entry)))
        )
        return json.dumps(FORGOTTEN) + line[len(bare) :] if gone else line
    if _object(line + "]}") is not None:
        return line  # a head, with the query
    return FORGOTTEN if any(map(context.quotes, _pieces(line))) else line


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
    """Yield the texts in a truncated line of JSON: before the first quotation mark and between them."""
    yield from line.split('"', 1)[0].split("\\n")
    for found in _STRING.findall(line):
        yield from found.split("\\n")
    # If it was truncated inside a text, any part between two marks may be text.
    for between in line.split('"'):
        yield from between.split("\\n")


def redact_answer(text: str, context: QuoteContext) -> str:
    """Return one of Recall's answers without deleted quotes."""
    lines = text.split("\n")
    kept: list[str] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        if _NAME.match(line):
            section = [line, *takewhile(_SECTION.match, lines[place + 1 :])]
            kept += _section_without(section, context)
        elif line.startswith(">"):
            section = list(takewhile(lambda each: each.startswith(">"), lines[place:]))
            end = place + len(section)
            section += lines[end : end + 2]  # a blank line and the source
            kept += [f"> {FORGOTTEN}", ""] if _is_cited_deleted(section, context) else section
        else:
            section = [line]
            is_item = line.startswith("- ")
            kept.append(
                f"- {FORGOTTEN}" if is_item and _is_cited_deleted([line], context) else line
            )
        place += len(section)
    return "\n".join(kept)


def _is_cited_deleted(section: list[str], context: QuoteContext) -> bool:
    """Return whether a quote with its citation in the last line is deleted."""
    source = _CITATION.match(section[-1])
    rest = section[-1][source.end() :] if source is not None else section[-1]
    texts = [line.lstrip("> ").strip() for line in section[:-1]] + [rest.lstrip(">: ·-")]
    return _is_deleted(source, texts, context)


def _section_without(section: list[str], context: QuoteContext) -> list[str]:
    """Return a section's title and quotes with a placeholder for each deleted quote."""
    starts = [place for place, line in enumerate(section) if _SOURCE.match(line)]
    quotes = [
        section[start:end] for start, end in zip(starts, [*starts[1:], len(section)], strict=True)
    ]
    stay: list[str] = []
    removed = 0
    for quote in quotes:
        texts = [line.removeprefix(">").strip() for line in quote[1:]]
        is_known = section[0] in _KNOWN_NAMES
        if _is_deleted(_SOURCE.match(quote[0]), texts, context, is_known=is_known):
            removed += 1
            stay += [f"> {FORGOTTEN}", ""]
        else:
            stay += quote
    if not removed:
        return section
    return [f"*{FORGOTTEN}*", ""] if removed == len(quotes) else [*section[: starts[0]], *stay]


def _is_deleted(
    source: re.Match[str] | None, texts: list[str], context: QuoteContext, *, is_known: bool = True
) -> bool:
    """Return whether texts are deleted: of a linked conversation or exchange, or of a known fact or memory."""
    known, linked, exchange, other = source.groups() if source is not None else (None,) * 4
    named = int(linked) if linked is not None and linked.isdecimal() else None
    learned = int(known or other or 0) if is_known and (known or other) else None
    if context.knows_ids:
        deleted = context.deleted
        if named in deleted.conversations or learned in deleted.passages:
            return True
        if exchange is not None and int(exchange) in deleted.exchanges:
            return True
        is_other = named is not None and named not in context.suspect and not deleted.passages
        if learned is not None or is_other:
            return False
    return any(map(context.quotes, [*texts, " ".join(texts)]))
