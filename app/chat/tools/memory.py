"""Tools to search memory, to save a text, and to change the core memory.

The user finds what these write in the memory view, with its turn, and can delete it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.chat.tools.results import (
    LIMIT,
    OFFSET,
    QUERY,
    json_line,
    json_list,
    page,
    parameters,
)
from app.chat.tools.toolbox import Tool, ToolContext
from app.chat.tools.user_statements import check_stated
from app.domain.passages import PassageKind
from app.domain.recall import is_recall_on
from app.domain.results import MEMORY_TOOL, SearchResult, as_tool_entry
from app.memory.core_memory import LIMIT_CHARS, ArchivalMemoryService, CoreMemoryService
from app.memory.search import SearchService
from app.storage.engine.store import Store

# Manual pages have their own tool; the summary of an exchange says less than the exchange.
_KINDS = tuple(
    kind for kind in PassageKind if kind not in (PassageKind.MAN_PAGE, PassageKind.EXCHANGE_SUMMARY)
)


def _text(description: str) -> Mapping[str, Any]:
    return {"type": "string", "description": description, "minLength": 1, "maxLength": LIMIT_CHARS}


class MemoryTools:
    """Searches and changes memory. Blocking; thread-safe."""

    def __init__(
        self,
        store: Store,
        search: SearchService,
        archive: ArchivalMemoryService,
        core: CoreMemoryService,
    ) -> None:
        self._store = store
        self._search = search
        self._archive = archive
        self._core = core

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools, for conversations with memory."""
        tools = (
            Tool(
                "memory_search",
                "Search everything that is remembered: conversations, their summaries, facts about "
                "the user, saved memories, documents. Returns quoted snippets with date and ids.",
                parameters({"query": QUERY, "limit": LIMIT, "offset": OFFSET}, "query"),
                self._find,
            ),
            Tool(
                "memory_save",
                "Save a text in the archival memory, where searches find it. For what the user "
                "wants kept; one self-contained statement, in the user's language.",
                parameters({"text": _text("What to save.")}, "text"),
                self._save,
                writes=True,
            ),
            Tool(
                "core_memory_append",
                "Add a line to the core memory, the short text that every prompt begins with. Only "
                "for what matters in every conversation, such as the user's name or lasting wishes.",
                parameters({"text": _text("The line to add.")}, "text"),
                self._append,
                writes=True,
            ),
            Tool(
                "core_memory_replace",
                "Replace a passage of the core memory, which the prompt contains; an empty 'new' "
                "removes it.",
                parameters(
                    {
                        "old": _text("The exact passage, which must occur once."),
                        "new": {**_text("The replacement."), "minLength": 0},
                    },
                    "old",
                    "new",
                ),
                self._replace,
                writes=True,
            ),
        )
        return tuple(replace(each, is_usable=is_recall_on) for each in tools)

    # -- reading

    def _find(self, arguments: Mapping[str, Any], _: ToolContext) -> str:
        query = arguments["query"]
        found = self._search.by_sentence(query, arguments["limit"], _KINDS)
        text = json_list({"query": query}, "results", map(_entry, found))
        return page(text, arguments["offset"])

    # -- writing

    def _save(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        memory = self._archive.save(arguments["text"], context.conversation.id, context.exchange_id)
        return json_line({"saved": True, "memory_id": memory.id})

    def _append(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        line = " ".join(arguments["text"].split())
        if line in self._core.text().splitlines():
            return _core_memory(self._core.text())
        check_stated(self._store, arguments["text"], context, self._core.text())
        return _core_memory(self._core.append(line, context.model))

    def _replace(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        if arguments["new"].strip():
            check_stated(self._store, arguments["new"], context, self._core.text())
        return _core_memory(self._core.replace(arguments["old"], arguments["new"], context.model))


def _core_memory(text: str) -> str:
    return json_line({"saved": True, "core_memory": text})


def _entry(result: SearchResult) -> Mapping[str, Any]:
    entry = as_tool_entry(result, MEMORY_TOOL, question_chars=100, text_chars=160)
    if result.kind is PassageKind.MEMORY:
        entry["worded_by"] = "user" if result.conversation_id is None else "model"
    return {name: value for name, value in entry.items() if value not in (None, "")}
