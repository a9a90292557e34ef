"""The Cherry Studio importer: backups of version 1 (`data.json`) and the database of version 2."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from app.domain.conversations import Role
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.importers.parsing.blocks import (
    blocks_of,
    call_block,
    counts_of,
    error_part,
    file_part,
    named_tags,
    rating_part,
    result_block,
    result_parts,
    text_block,
    thinking_block,
    unknown_part,
)
from app.transfer.importers.parsing.formats import (
    Format,
    NotKept,
    Part,
    Row,
    Thread,
    columns,
    databases,
    documents,
    json_of,
    tables,
)
from app.transfer.importers.parsing.values import (
    an_object,
    identity,
    link_list,
    objects,
    strings,
    text_of,
)

SOURCE = "cherry_studio"
_TIMES = ("createdAt", "updatedAt")
_STATES = frozenset(
    (
        "data-agent-session-fork", "data-agent-task-event", "data-clear", "data-compaction-anchor",
        "data-conversation-reset", "data-knowledge-scope", "data-retry", "data-skill-scope",
    )
)  # fmt: skip
"""Parts that record what the program did, without content."""


def _read(value: Any, where: str) -> Iterable[ImportedConversation | Skipped]:
    data = an_object(value)
    stored = an_object(data.get("indexedDB"))
    named = _topics(an_object(data.get("localStorage")))
    if counts := counts_of(stored, "quick_phrases", "knowledge_notes"):
        yield Skipped(where, f"it has {counts} that are not imported")
    blocks: dict[str, list[dict[str, Any]]] = {}
    for block in objects(stored.get("message_blocks")):
        blocks.setdefault(identity(block.get("messageId")), []).append(block)
    for topic in objects(stored.get("topics")):
        name = identity(topic.get("id"))
        about = named.get(name, {})
        if not objects(topic.get("messages")) and not about.get("pinned"):
            continue
        yield _conversation(topic, about, blocks, f"{where}, topic {name}")


def _topics(storage: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what the program's settings say of each topic: its name, times, prompt and whether it is pinned."""
    state = an_object(json_of(storage.get("persist:cherry-studio")))
    assistants = an_object(json_of(state.get("assistants")))
    listed = [*objects(assistants.get("assistants")), an_object(assistants.get("defaultAssistant"))]
    return {
        identity(topic.get("id")): {
            **topic,
            "told": _told(assistant, topic),
            "tags": _tags(assistant),
        }
        for assistant in listed
        for topic in objects(assistant.get("topics"))
    }


def _tags(assistant: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the name of an assistant that the user made, as a tag."""
    return () if assistant.get("id") == "default" else named_tags(assistant.get("name"))


def _told(*records: Mapping[str, Any]) -> str:
    """Return the prompts of an assistant and its topic."""
    return "\n\n".join(filter(str.strip, (text_of(each.get("prompt")) for each in records)))


def _conversation(
    topic: dict[str, Any],
    about: Mapping[str, Any],
    blocks: Mapping[str, list[dict[str, Any]]],
    where: str,
) -> ImportedConversation | Skipped:
    """Return a topic; replies of several models to one question are branches of it."""
    thread = Thread(SOURCE, where)
    last: str | None = None
    if objects(topic.get("messages")) and (prompt := text_block(about.get("told"))):
        last = thread.add("system", None, Role.SYSTEM, prompt)
    for message in objects(topic.get("messages")):
        name = identity(message.get("id")) or thread.generated_id()
        role, asked = message.get("role"), identity(message.get("askId"))
        parent = asked if role == Role.ASSISTANT and asked in thread.nodes else last
        by = an_object(message.get("model")).get("id") or message.get("modelId")
        order = [identity(each) for each in strings(message.get("blocks"))]
        own = {identity(block.get("id")): block for block in blocks.get(name, ())}
        kept = [own[each] for each in order if each in own] or list(own.values())
        made = [each for block in kept for each in _block(block)]
        said = made or text_block(message.get("content"))
        said += rating_part({"useful": message.get("useful")})
        thread.add(name, parent, role, said, message.get("createdAt"), by)
        is_sibling = parent == asked and last != asked and role == Role.ASSISTANT
        if not is_sibling or message.get("foldSelected") is True:
            last = name
    given, pinned = map(about.get, ("name", *_TIMES)), about.get("pinned") is True
    tags = about.get("tags", ())
    return thread.finished(topic.get("id"), *given, leaf=last, pinned=pinned, tags=tags)


def _block(block: dict[str, Any]) -> Iterator[Part]:
    kind, content = text_of(block.get("type")), block.get("content")
    if kind in ("main_text", "translation", "compact"):
        yield from text_block(content)
    elif kind == "thinking":
        yield from thinking_block(content)
    elif kind == "code":
        yield from text_block(f"```{text_of(block.get('language'))}\n{text_of(content)}\n```")
    elif kind == "tool":
        raw = an_object(an_object(block.get("metadata")).get("rawMcpToolResponse"))
        call = block.get("toolId")
        name = block.get("toolName") or an_object(raw.get("tool")).get("name")
        yield call_block(call, name, block.get("arguments") or raw.get("arguments", ""))
        result = raw.get("response") if content is None else content
        if result is not None:
            yield from result_parts(call, name, result)
    elif kind in ("image", "file"):
        file = an_object(block.get("file"))
        made = an_object(an_object(block.get("metadata")).get("generateImageResponse"))
        addresses: list[Any] = strings(made.get("images")) or [block.get("url") or file.get("id")]
        name = file.get("origin_name") or file.get("name") or kind
        yield from (file_part(name, kind, each) for each in addresses)
    elif kind == "citation":
        found = objects(an_object(block.get("response")).get("results"))
        knowledge = objects(block.get("knowledge"))
        links = (
            (each.get("title"), each.get("sourceUrl") or each.get("url"))
            for each in found + knowledge
        )
        yield from text_block(link_list(links))
        texts = [each for each in knowledge if each.get("content")]
        if counts := counts_of(
            {**block, "texts of sources": texts}, "texts of sources", "memories"
        ):
            yield NotKept(f"it has {counts} that are not imported")
    elif kind == "error":
        yield from error_part(block.get("error") or block.get("message") or kind)
    elif kind not in ("", "unknown"):
        yield unknown_part(kind)


def _database(
    connection: sqlite3.Connection, where: str
) -> Iterable[ImportedConversation | Skipped]:
    """Yield the topics of version 2."""
    if "agent_session_message" in tables(connection):
        query = "SELECT count(*) AS n FROM agent_session_message"
        if count := connection.execute(query).fetchone()["n"]:
            yield Skipped(where, f"its sessions of agents ({count:,} messages) are not imported")
    known = columns(connection, "message")
    query = "SELECT * FROM message WHERE topicId = ? ORDER BY rowid"
    if "topic_id" in known:
        query = "SELECT * FROM message WHERE topic_id = ? ORDER BY rowid"
    assistants = _assistants(connection)
    for row in connection.execute("SELECT * FROM topic"):
        topic = _camel(row)
        if topic.get("deletedAt"):
            continue
        thread, root = Thread(SOURCE, f"{where}, topic {topic.get('id')}"), None
        rows = connection.execute(query, (topic["id"],)).fetchall()
        assistant = assistants.get(topic.get("assistantId"), Row())
        if rows and (prompt := text_block(assistant.get("prompt"))):
            root = thread.add("system", None, Role.SYSTEM, prompt)
        for each in rows:
            message = _camel(each)
            name, parent = identity(message.get("id")), identity(message.get("parentId")) or root
            content = an_object(thread.json(name, message.get("data")))
            blocks = [made for part in objects(content.get("parts")) for made in _part(part)]
            blocks += [made for old in objects(content.get("blocks")) for made in _block(old)]
            kept = [] if message.get("deletedAt") else blocks
            at, model = message.get("createdAt"), text_of(message.get("modelId"))
            thread.add(name, parent, message.get("role"), kept, at, model.rpartition("::")[2])
        given, leaf = map(topic.get, ("id", "name", *_TIMES)), topic.get("activeNodeId")
        pinned = bool(topic.get("isPinned"))
        yield thread.finished(*given, leaf=leaf, pinned=pinned, tags=_tags(assistant))


def _assistants(connection: sqlite3.Connection) -> dict[object, Row]:
    """Return the assistants by their ids."""
    if "assistant" not in tables(connection):
        return {}
    rows = connection.execute("SELECT * FROM assistant")
    return {row["id"]: row for row in rows}


def _camel(row: Row) -> Row:
    """Return a row by column names in the form `parentId`."""
    named = Row()
    for key, value in row.items():
        first, *more = key.split("_")
        named[first + "".join(each.capitalize() for each in more)] = value
    return named


def _part(part: dict[str, Any]) -> Iterator[Part]:
    kind = text_of(part.get("type"))
    if kind in ("dynamic-tool", "tool-invocation") or kind.startswith("tool-"):
        call = part.get("toolCallId")
        name = part.get("toolName") or kind.removeprefix("tool-")
        yield call_block(call, name, part.get("input", ""))
        if part.get("output") is not None:
            yield from result_parts(call, name, part["output"])
        elif part.get("errorText"):
            yield result_block(call, name, part["errorText"], is_error=True)
    elif kind == "file":
        yield file_part(part.get("filename"), part.get("mediaType"), part.get("url"))
    elif kind == "source-url":
        yield from text_block(link_list([(part.get("title"), part.get("url"))]))
    elif kind.startswith("data-"):
        if kind not in _STATES:
            yield from _block(an_object(part.get("data")) | {"type": kind.removeprefix("data-")})
    elif kind != "step-start":
        yield from blocks_of([part])
        about = an_object(an_object(part.get("providerMetadata")).get("cherry"))
        for cited in objects(about.get("references")):
            found = cited.get("content")
            yield from _block({"type": "citation", "response": found, "knowledge": found})


FORMAT = Format(SOURCE, "Cherry Studio", documents(_read), members=("localStorage indexedDB",))
DATABASE_FORMAT = Format(SOURCE, "Cherry Studio", databases(_database), tables="topic message")
