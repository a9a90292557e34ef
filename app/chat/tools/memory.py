"""Tools to search memory, to save a text, and to change the core memory.

What these write is shown under its turn at once; the user can take it back, and decides about
proposals (`app.memory.memory_writes`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.chat.tools.results import LIMIT, QUERY, found_list, json_line, parameters
from app.chat.tools.toolbox import Tool, ToolContext
from app.domain.conversations import Conversation
from app.domain.ids import ExchangeId
from app.domain.passages import PassageKind
from app.domain.recall import is_recall_on
from app.domain.records.facts import WriteState
from app.domain.results import MEMORY_TOOL, FoundAnswer, as_tool_entry
from app.memory.core_memory import LIMIT_CHARS, CoreMemoryService
from app.memory.memory_writes import MemoryWriteService
from app.memory.recall.answers import AnswerFinder

# Manual pages have their own tool; the summary of an exchange says less than the exchange.
_KINDS = tuple(
    kind for kind in PassageKind if kind not in (PassageKind.MAN_PAGE, PassageKind.EXCHANGE_SUMMARY)
)

CORE_TOOLS = ("core_memory_append", "core_memory_replace")
_TEXT: Mapping[str, Any] = {"type": "string", "minLength": 1, "maxLength": LIMIT_CHARS}


@dataclass(frozen=True, slots=True)
class MemoryTools:
    """Searches and changes memory. Blocking; thread-safe.

    `is_bounded` is whether a conversation's project keeps what it learns to itself.
    """

    answers: AnswerFinder
    core: CoreMemoryService
    writes: MemoryWriteService
    is_bounded: Callable[[Conversation], bool] = lambda _: False

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools, for conversations with memory; bounded projects keep core memory."""
        tools = (
            Tool(
                "memory_search",
                "Search everything remembered: facts about the user, saved texts, conversations, "
                "documents. Returns the sentences that answer, with dates and ids.",
                parameters({"query": QUERY, "limit": LIMIT}, "query"),
                self._find,
            ),
            Tool(
                "memory_save",
                "Save what the user wants kept, for later searches: one self-contained statement "
                "in the user's language.",
                parameters({"text": _TEXT}, "text"),
                self._save,
                writes=True,
            ),
            Tool(
                "core_memory_append",
                "Add a line to core memory, which is part of every prompt. Only for what matters in "
                "every conversation, such as the user's name or lasting wishes.",
                parameters({"text": _TEXT}, "text"),
                self._append,
                writes=True,
            ),
            Tool(
                "core_memory_replace",
                "Replace a passage of core memory; an empty 'new' removes it.",
                parameters(
                    {
                        "old": {**_TEXT, "description": "The exact passage."},
                        "new": {**_TEXT, "minLength": 0},
                    },
                    "old",
                    "new",
                ),
                self._replace,
                writes=True,
            ),
        )
        return tuple(
            replace(
                each, is_usable=self._may_change_core if each.name in CORE_TOOLS else is_recall_on
            )
            for each in tools
        )

    def _may_change_core(self, conversation: Conversation) -> bool:
        return is_recall_on(conversation) and not self.is_bounded(conversation)

    # -- reading

    def _find(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        project = context.conversation.project
        found = self.answers.find(arguments["query"], arguments["limit"], _KINDS, project)
        return found_list(map(_entry, found))

    # -- writing

    def _save(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        memory = self.writes.save(arguments["text"], *_source(context))
        return json_line({"saved": True, "memory_id": memory.id})

    def _append(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        line = " ".join(arguments["text"].split())
        if line in self.core.text().splitlines():
            return _core_memory(self.core.text())
        return self._change("", line, context)

    def _replace(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        return self._change(arguments["old"].strip(), arguments["new"].strip(), context)

    def _change(self, old: str, new: str, context: ToolContext) -> str:
        write = self.writes.change_core(old, new, *_source(context))
        if write.state is WriteState.PROPOSED:
            return json_line({"saved": False, "waits_for": "the user, who is asked to keep it"})
        return _core_memory(self.core.text())


def _source(context: ToolContext) -> tuple[Conversation, ExchangeId, str]:
    return context.conversation, context.exchange_id, context.model


def _core_memory(text: str) -> str:
    return json_line({"saved": True, "core_memory": text})


def _entry(found: FoundAnswer) -> Mapping[str, Any]:
    result = found.result
    entry = as_tool_entry(result, MEMORY_TOOL)
    if result.kind is PassageKind.MEMORY:
        entry["worded_by"] = "user" if result.conversation_id is None else "model"
    if result.kind is PassageKind.TURN:
        entry |= {"user": found.question, "assistant": found.reply}
    else:
        entry["text"] = found.reply
    return {name: value for name, value in entry.items() if value not in (None, "")}
