"""The importer of what Claude's exports hold beside conversations: projects, and what Claude remembers.

Each becomes a conversation, so that it is found, recalled and undone like one. What Claude remembers of its user
is offered as facts, too.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from app.domain.conversations import Attachment, Block, Role, Text
from app.domain.transfer import Skipped
from app.language.sentences import split_sentences
from app.transfer.importers.claude import SOURCE
from app.transfer.importers.parsing.blocks import project_tag
from app.transfer.importers.parsing.building import Imported
from app.transfer.importers.parsing.formats import Thread, documents, remembered, text_name
from app.transfer.importers.parsing.values import an_object, identity, media_type, objects, text_of

_HEADING = re.compile(r"([*_]{1,3})[^*_]+\1:?")
_FACT_MIN_CHARS, _FACT_MAX_CHARS = 12, 500


def _memories(value: Any, where: str) -> Imported:
    """Yield a conversation for each account of a `memories.json`."""
    for record in objects(value if isinstance(value, list) else [value]):
        own = text_of(record.get("conversations_memory"))
        texts = (own, *map(text_of, an_object(record.get("project_memories")).values()))
        name = f"memories/{identity(record.get('account_uuid'))}"
        yield remembered(Thread(SOURCE, where), name, "Claude", texts, _statements(own))


def _statements(text: str) -> Iterator[str]:
    """Yield the sentences of Markdown, without headings, which may be bold or italic lines."""
    said = (each for each in text.splitlines() if not _HEADING.fullmatch(each.strip()))
    for sentence, _ in split_sentences("\n".join(said)):
        if _FACT_MIN_CHARS <= len(sentence) <= _FACT_MAX_CHARS:
            yield sentence


def _projects(value: Any, where: str) -> Imported:
    """Yield a conversation for each project, with its instructions and its documents as attachments."""
    for record in objects(value if isinstance(value, list) else [value]):
        name = text_of(record.get("name")).strip() or "project"
        if record.get("is_starter_project") is True:
            yield Skipped(f"'{name[:100]}'", "it is an example project of Claude")
            continue
        at = record.get("created_at")
        thread = Thread(SOURCE, where)
        told = (text_of(record.get(each)).strip() for each in ("description", "prompt_template"))
        if told_text := "\n\n".join(filter(None, told)):
            thread.append(text_name(told_text), Role.SYSTEM, [Text(told_text)], at)
        for each in objects(record.get("docs")):
            file = text_of(each.get("filename")).strip() or "document"
            text = text_of(each.get("content"))
            kind = media_type(file) or "text/plain"
            blocks: list[Block] = [
                Attachment(file, kind, len(text.encode("utf-8", "replace")), text)
            ]
            given = identity(each.get("uuid")) or text_name(json.dumps([file, text]))
            if given not in thread.nodes:
                thread.append(given, Role.USER, blocks, each.get("created_at") or at)
        uuid, tags = identity(record.get("uuid")), project_tag(name)
        made = thread.finished(
            f"project/{uuid}", name, at, record.get("updated_at"), is_list=True, tags=tags
        )
        yield Skipped(f"'{name[:100]}'", "it is empty") if isinstance(made, Skipped) else made


read_memories = documents(_memories)
"""Yield what Claude remembers, from a `memories.json`."""

read_projects = documents(_projects)
"""Yield projects, from a `projects.json` or a file of one project."""
