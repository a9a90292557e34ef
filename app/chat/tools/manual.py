"""Tools to search manual pages, and to read the state of their index."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.chat.tools.results import OFFSET, QUERY, json_line, json_list, page, parameters
from app.chat.tools.toolbox import Tool, ToolContext
from app.domain.errors import NotFound
from app.domain.passages import PassageKind
from app.domain.results import MANUAL_TOOL, as_tool_entry
from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from app.memory.search.service import SearchService

_LIMIT = 10

Statuses = Callable[[], Sequence[WorkerStatus]]


def manual_tools(
    search: SearchService, statuses: Statuses, is_on: Callable[[], bool]
) -> tuple[Tool, ...]:
    """Return the tools; `statuses` returns fresh worker statuses. Blocking; thread-safe.

    `is_on` is whether manual pages are indexed or being indexed.
    """

    def find(arguments: Mapping[str, Any], _: ToolContext) -> str:
        query = arguments["query"]
        found = search.by_sentence(query, _LIMIT, (PassageKind.MAN_PAGE,), None)
        if not found and not _status(statuses).done:
            raise NotFound(
                "No manual page is indexed", "The user can switch indexing on with /index-man on."
            )
        entries = [as_tool_entry(each, MANUAL_TOOL) for each in found]
        return page(json_list({"query": query}, "results", entries), arguments["offset"])

    tools = (
        Tool(
            "man_search",
            "Find manual pages of this computer that tell how to do something.",
            parameters({"query": QUERY, "offset": OFFSET}, "query"),
            find,
        ),
        Tool(
            "man_indexer",
            "Tell how far manual pages are indexed.",
            parameters({}),
            lambda _arguments, _context: _progress(_status(statuses)),
        ),
    )
    return tuple(replace(each, is_usable=lambda _: is_on()) for each in tools)


def _progress(status: WorkerStatus) -> str:
    return json_line(
        {
            "enabled": status.enabled,
            "running": status.state is WorkerState.RUNNING,
            "progress": {
                "total": status.total,
                "completed": status.done,
                "failed": status.abandoned,
                "skipped": status.skipped,
                "remaining": max(0, status.total - status.done - status.abandoned),
            },
            "session": {"spend": status.session.cost_usd, "tokens": status.session.tokens},
            "current_batch": status.current_item or None,
        }
    )


def _status(statuses: Statuses) -> WorkerStatus:
    for status in statuses():
        if status.name is WorkerName.MAN_INDEXER:
            return status
    raise NotFound("There is no man-page indexer here")
