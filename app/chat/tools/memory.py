"""Tools about memory: search all of it, save a text for later, change what every prompt begins with.

What these write the user finds in the memory view, with the turn it came from, and can take back.
"""

import threading
from collections.abc import Mapping
from typing import Any

from app.chat.tools.conversations import QUERY, limit_of
from app.chat.tools.quoting import OFFSET, cut, date, document, part_of, percent, quoted
from app.chat.tools.toolbox import Tool, ToolContext
from app.domain.changes import CoreMemoryPut, MemoryPut, PassagesPut
from app.domain.errors import InvalidInput
from app.domain.facts import Memory
from app.domain.ids import new_uid
from app.domain.passages import Passage, PassageKind, SearchResult
from app.domain.turn_text import content_hash, estimate_tokens
from app.memory.search import SearchService
from app.storage.core_memory import CoreMemory
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.times import now

_SNIPPET_CHARS = 160
_QUESTION_CHARS = 100
# Manual pages have a tool of their own; an exchange's summary says less than the exchange.
_EVERYTHING = tuple(
    kind for kind in PassageKind if kind not in (PassageKind.MAN_PAGE, PassageKind.EXCHANGE_SUMMARY)
)


def _text(description: str) -> Mapping[str, Any]:
    return {"type": "string", "description": description, "minLength": 1, "maxLength": 4_000}


class MemoryTools:
    """Reads and writes memory. Blocking; thread-safe."""

    def __init__(self, store: Store, settings: Settings, search: SearchService) -> None:
        self._store = store
        self._settings = settings
        self._search = search
        self._core = CoreMemory(store)
        self._lock = threading.Lock()

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
        text, at = arguments["text"].strip(), now()
        memory_id = self._store.ids.passage()
        conversation_id = context.conversation.id
        memory = Memory(memory_id, new_uid(), text, at, conversation_id, context.exchange_id)
        passage = Passage(
            memory_id, PassageKind.MEMORY, memory_id, conversation_id, context.exchange_id,
            content_hash(text), at, estimate_tokens(text),
        )  # fmt: skip
        self._store.save(MemoryPut(memory), PassagesPut((passage,)))
        return quoted({"saved": True, "memory_id": memory_id})

    def _append(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        line = " ".join(arguments["text"].split())
        with self._lock:
            before = self._core.now().text
            if line in before.splitlines():
                return quoted({"saved": True, "core_memory": before})
            return self._put("\n".join(filter(None, (before, line))), context)

    def _replace(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        old, new = arguments["old"], arguments["new"]
        with self._lock:
            before = self._core.now().text
            if (count := before.count(old)) != 1:
                often = f"occurs {count} times" if count else "does not occur"
                raise InvalidInput(
                    f"'{cut(old, _QUESTION_CHARS)}' {often} in the core memory",
                    f"It says: {quoted({'core_memory': before})}",
                )
            lines = before.replace(old, new).splitlines()
            return self._put("\n".join(line for line in lines if line.strip()), context)

    def _put(self, text: str, context: ToolContext) -> str:
        tokens = estimate_tokens(text)
        most = self._settings.number("core_memory_max_tokens")
        if tokens > most:
            raise InvalidInput(
                f"The core memory would take {tokens} tokens, {most} are allowed",
                "Shorten it with core_memory_replace, or use memory_save.",
            )
        self._store.save(CoreMemoryPut(text, context.model, now()))
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
    return {name: value for name, value in entry.items() if value not in (None, "")}
