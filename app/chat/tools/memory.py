"""Tools about memory: search all of it, save a text for later, change what every prompt begins with.

What these write the user finds in the memory view, with the turn it came from, and can take back.
"""

from collections.abc import Mapping
from typing import Any

from app.chat.tools.conversations import QUERY, limit_of
from app.chat.tools.quoting import OFFSET, cut, date, document, part_of, percent, quoted
from app.chat.tools.said_by_user import SaidByUser
from app.chat.tools.toolbox import Tool, ToolContext
from app.domain.passages import PassageKind, SearchResult
from app.memory.core_memory import CoreMemoryService
from app.memory.memories import LIMIT_CHARS, MemoryService
from app.memory.search import SearchService
from app.storage.store import Store

_SNIPPET_CHARS = 160
_QUESTION_CHARS = 100
# Manual pages have a tool of their own; an exchange's summary says less than the exchange.
_EVERYTHING = tuple(
    kind for kind in PassageKind if kind not in (PassageKind.MAN_PAGE, PassageKind.EXCHANGE_SUMMARY)
)


def _text(description: str) -> Mapping[str, Any]:
    return {"type": "string", "description": description, "minLength": 1, "maxLength": LIMIT_CHARS}


class MemoryTools:
    """Reads and writes memory. Blocking; thread-safe."""

    def __init__(
        self,
        store: Store,
        search: SearchService,
        archive: MemoryService,
        core: CoreMemoryService,
    ) -> None:
        self._said = SaidByUser(store)
        self._search = search
        self._archive = archive
        self._core = core

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools."""
        return (
            Tool(
                "memory_search",
                "Search everything that is remembered: conversations, their summaries, facts about "
                "the user, saved memories, documents. Returns quoted snippets with date and ids.",
                _object(
                    {"query": QUERY, "limit": limit_of(10), "offset": OFFSET}, required=("query",)
                ),
                self._find,
            ),
            Tool(
                "memory_save",
                "Save a text in the archival memory, where searches find it. For what the user "
                "wants kept; one self-contained statement, in the user's language.",
                _object({"text": _text("What to save.")}, required=("text",)),
                self._save,
                writes=True,
            ),
            Tool(
                "core_memory_append",
                "Add a line to the core memory, the short text that every prompt begins with. Only "
                "for what matters in every conversation, such as the user's name or lasting wishes.",
                _object({"text": _text("The line to add.")}, required=("text",)),
                self._append,
                writes=True,
            ),
            Tool(
                "core_memory_replace",
                "Replace a passage of the core memory, which stands in the prompt; an empty 'new' "
                "removes it.",
                _object(
                    {
                        "old": _text("The passage as it stands there, occurring once."),
                        "new": {**_text("What takes its place."), "minLength": 0},
                    },
                    required=("old", "new"),
                ),
                self._replace,
                writes=True,
            ),
        )

    # -- reading

    def _find(self, arguments: Mapping[str, Any], _: ToolContext) -> str:
        query = arguments["query"]
        found = self._search.by_sentence(query, arguments["limit"], _EVERYTHING)
        text = document({"query": query}, "results", map(_found, found))
        return part_of(text, arguments["offset"])

    # -- writing

    def _save(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        memory = self._archive.save(arguments["text"], context.conversation.id, context.exchange_id)
        return quoted({"saved": True, "memory_id": memory.id})

    def _append(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        line = " ".join(arguments["text"].split())
        if line in self._core.text().splitlines():
            return _core_memory(self._core.text())
        self._said.check(arguments["text"], context, self._core.text())
        return _core_memory(self._core.append(line, context.model))

    def _replace(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        if arguments["new"].strip():
            self._said.check(arguments["new"], context, self._core.text())
        return _core_memory(self._core.replace(arguments["old"], arguments["new"], context.model))


def _core_memory(text: str) -> str:
    return quoted({"saved": True, "core_memory": text})


def _object(properties: Mapping[str, Any], required: tuple[str, ...]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _found(result: SearchResult) -> Mapping[str, Any]:
    entry = {
        "kind": result.kind.value,
        "id": result.passage_id,
        "relevance": percent(result.relevance),
        "date": date(result.created_at),
        "title": result.conversation_title,
        "conversation_id": result.conversation_id,
        "exchange_id": result.exchange_id,
        "question": cut(result.user_question, _QUESTION_CHARS),
        "text": cut(result.snippet, _SNIPPET_CHARS),
    }
    if result.kind is PassageKind.MEMORY:
        entry["worded_by"] = "user" if result.conversation_id is None else "model"
    return {name: value for name, value in entry.items() if value not in (None, "")}
