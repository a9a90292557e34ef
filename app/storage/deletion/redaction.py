"""Redaction: removing quotes of deleted text from stored messages and prompts.

Otherwise messages are insert-only. The turns of changed messages are indexed again; vectors do not
contain quotes, because neither tool results nor Recall's answers are embedded.

Tools about memory answer in JSON with a line for each thing found (`app.chat.tools.results`), so each line is
examined. Recall answers in Markdown: each quote is followed by its source, a link or the id of a fact, memory or
document, or is a list item that begins with it. Answers of previews, with the source above, are deleted whole.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from app.domain.conversations import FORGOTTEN, Block, Message, Role, Text, ToolCall, ToolResult
from app.domain.turns import RECALL_MODEL, is_recall_reply
from app.storage.deletion.deletion_set import DeletionSet
from app.storage.engine.connection import Connection
from app.storage.tables.exchanges import blocks_of, messages_in, rewrite_messages
from app.storage.tables.passages.rows import index_again

QUOTING_TOOLS = ("conversation_search", "memory_search", "fetch_conversation_details")
_FACT_KINDS = ("fact", "memory", "document")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"?')
_OF_PREVIEW = re.compile(r"^\*\*.*\*\* · ", re.MULTILINE)
_LINK = r"commonplace://(\w+)/\d+(?:\?exchange=(\d+))?"
_LABEL = r"(?:\\.|[^\\\[\]])*?"
_ID = r" · \w+ (\d+)"  # the kind in the language of the window
_OLD_SOURCE = re.compile(rf"(?:Fact|Memory) (\d+) · |{_LINK}")
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
    if _OF_PREVIEW.search(text) and (
        any(map(context.quotes, lines))
        or any(_is_named(found, context) for found in _OLD_SOURCE.finditer(text))
    ):
        return f"*{FORGOTTEN}*"
    kept: list[str] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        if line.startswith(">"):
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


def _is_deleted(source: re.Match[str] | None, texts: list[str], context: QuoteContext) -> bool:
    """Return whether texts are deleted: of a linked conversation or exchange, or of a known fact or memory."""
    if source is not None and context.knows_ids:
        if _is_named(source, context):
            return True
        linked, _, known = _ids_in(source)
        is_other = linked is not None and linked not in context.suspect
        if known is not None or (is_other and not context.deleted.passages):
            return False
    return any(map(context.quotes, [*texts, " ".join(texts)]))


def _is_named(source: re.Match[str], context: QuoteContext) -> bool:
    """Return whether what a source names is deleted."""
    linked, exchange, known = _ids_in(source)
    deleted = context.deleted
    return context.knows_ids and (
        linked in deleted.conversations
        or exchange in deleted.exchanges
        or known in deleted.passages
    )


def _ids_in(source: re.Match[str]) -> tuple[int | None, int | None, int | None]:
    """Return the ids of the conversation, the exchange, and the fact, memory or document that a source names."""
    ids = [int(each) if each and each.isdecimal() else None for each in source.groups()]
    return ids[1], ids[2], ids[0] or next(iter(ids[3:]), None)


_NAMED = " OR ".join(f"contains(m.blocks, '\"{name}\"')" for name in QUOTING_TOOLS)
_CANDIDATES = (
    "SELECT m.id, m.conversation_id FROM message m "
    "WHERE m.conversation_id NOT IN (SELECT unnest($1)) "
    f"AND ((m.role = 'tool' AND ({_NAMED})) OR (m.role = 'assistant' AND m.model = $2)) "
    "ORDER BY m.id"
)
_READ_TOGETHER = 200


def redact_messages(connection: Connection, deleted: DeletionSet, position: int) -> None:
    """Remove quotes of what is deleted from all other messages; `position` is the journal's.

    Inside the caller's transaction, while the deleted rows exist. A result may quote a message that
    quotes what is deleted, so this repeats until nothing is found.
    """
    candidates = connection.rows(_CANDIDATES, [list(deleted.conversations), RECALL_MODEL])
    if not candidates:
        return
    # Ids in what was imported, alone or with its conversation, are not ours.
    alone, whole = (
        connection.column_in("origin", "local_id", ids, "local_id", f"AND kind = '{kind}'")
        for kind, ids in zip(
            ("message", "conversation"), zip(*candidates, strict=True), strict=True
        )
    )
    imported = {each for each, own in candidates if each in alone or own in whole}
    later = [each for each, _ in candidates if each > deleted.since or each in imported]
    suspect: set[int] = set(deleted.within)
    while True:
        changed: list[Message] = []
        for message, calls in _with_calls(connection, later):
            host = QuoteContext(deleted, message.id not in imported, suspect)
            redacted = redact_message(message, calls, host)
            if redacted != message:
                changed.append(redacted)
        if not changed:
            return
        rewrite_messages(connection, changed)
        ids = [each.id for each in changed]
        turns = connection.column_in("exchange_message", "exchange_id", ids, "message_id")
        index_again(connection, "exchange_id", turns, position)
        found = {int(each.conversation_id) for each in changed} - suspect
        if not found:
            return
        suspect |= found


def redact_message(message: Message, calls: Mapping[str, str], host: QuoteContext) -> Message:
    """Return a message without quotes of what is deleted.

    `calls` are the arguments of the tool calls that its results answer, by call id.
    """
    if message.role is Role.TOOL:
        blocks = tuple(
            replace(each, text=redact_result(each, calls.get(each.call_id, ""), host))
            if isinstance(each, ToolResult)
            else each
            for each in message.blocks
        )
    elif is_recall_reply(message.role, message.model):
        blocks = tuple(
            Text(redact_answer(each.text, host)) if isinstance(each, Text) else each
            for each in message.blocks
        )
    else:
        return message
    return message if blocks == message.blocks else replace(message, blocks=blocks)


def call_arguments(blocks: Iterable[Block]) -> dict[str, str]:
    return {block.call_id: block.arguments for block in blocks if isinstance(block, ToolCall)}


def _with_calls(connection: Connection, ids: list[int]) -> Iterator[tuple[Message, dict[str, str]]]:
    """Yield messages, each with the arguments of the tool calls in its parent."""
    for start in range(0, len(ids), _READ_TOGETHER):
        messages = messages_in(connection, ids[start : start + _READ_TOGETHER]).values()
        parents = (each.parent_id for each in messages if each.role is Role.TOOL)
        rows = connection.select_in("message", "id, text, blocks", parents)
        calls = {each: call_arguments(blocks_of(text, blocks)) for each, text, blocks in rows}
        for message in messages:
            yield message, calls.get(message.parent_id or 0, {})


def redact_prompts(connection: Connection, table: str, ids: list[int]) -> None:
    """Delete stored prompt texts that quote facts or memories, which they do by line."""
    if not ids:
        return
    versions = "SELECT text FROM fact_version WHERE fact_id IN (SELECT unnest($1)) UNION ALL "
    connection.execute(
        "DELETE FROM prompt_text p WHERE EXISTS (SELECT 1 FROM "
        f"({versions if table == 'fact' else ''}SELECT text FROM {table} "
        "WHERE id IN (SELECT unnest($1))) AS deleted(line) "
        r"WHERE contains(regexp_replace(p.text, '\n *> ', chr(10), 'g'), "
        "chr(10) || deleted.line || chr(10)))",
        [ids],
    )
