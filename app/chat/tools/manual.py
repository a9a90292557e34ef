"""Tools about manual pages: find the right one, and how far they are indexed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.chat.tools.conversations import QUERY
from app.chat.tools.quoting import OFFSET, document, part_of, percent, quoted
from app.chat.tools.toolbox import Tool, ToolContext
from app.domain.errors import NotFound
from app.domain.passages import PassageKind, SearchResult
from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from app.memory.search import SearchService

_PAGES = 10

Statuses = Callable[[], Sequence[WorkerStatus]]


class ManualTools:
    """Asks the index of manual pages and its worker. Blocking; thread-safe."""

    def __init__(self, search: SearchService, statuses: Statuses) -> None:
        """Search in `search`; `statuses` are the workers', with numbers asked anew."""
        self._search = search
        self._statuses = statuses

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools."""
        return (
            Tool(
                "man_search",
                "Find manual pages of this computer (commands, files, system calls) that tell how "
                "to do something.",
                {
                    "type": "object",
                    "properties": {"query": QUERY, "offset": OFFSET},
                    "required": ["query"],
                    "additionalProperties": False,
                },
                self._find,
            ),
            Tool(
                "man_indexer",
                "Tell whether manual pages are being indexed, and how far that is.",
                {"type": "object", "properties": {}, "additionalProperties": False},
                self._progress,
            ),
        )

    def _find(self, arguments: Mapping[str, Any], _: ToolContext) -> str:
        query = arguments["query"]
        found = self._search.by_sentence(query, _PAGES, (PassageKind.MAN_PAGE,))
        if not found and not self._status().done:
            raise NotFound(
                "No manual page is indexed", "The user can switch indexing on with /index-man on."
            )
        return part_of(
            document({"query": query}, "results", map(_page, found)), arguments["offset"]
        )

    def _progress(self, _arguments: Mapping[str, Any], _: ToolContext) -> str:
        status = self._status()
        batch = status.current_item or None
        return quoted(
            {
                "enabled": status.enabled,
                "running": status.state is WorkerState.RUNNING,
                "progress": {
                    "total": status.total,
                    "completed": status.done,
                    "failed": status.set_aside,
                    "skipped": status.skipped,
                    "remaining": max(0, status.total - status.done - status.set_aside),
                },
                "session": {"spend": status.session.cost_usd, "tokens": status.session.tokens},
                "current_batch": batch,
            }
        )

    def _status(self) -> WorkerStatus:
        for status in self._statuses():
            if status.name is WorkerName.MAN_INDEXER:
                return status
        raise NotFound("There is no man-page indexer here")


def _page(result: SearchResult) -> Mapping[str, Any]:
    return {
        "page": result.source,
        "title": result.conversation_title,
        "relevance": percent(result.relevance),
        "text": result.snippet,
    }
