"""Tools that other programs call: search, reading turns, recall, and saving where that is switched on.

Private conversations, those in the trash and those of bounded projects are never shown. Results quote memory:
they are data.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.chat.tools.results import LIMIT, NOTE, QUERY, format_date, parameters
from app.chat.tools.toolbox import check_arguments
from app.domain.conversations import Conversation, Exchange, Role
from app.domain.errors import KnownError, NotFound
from app.domain.ids import ConversationId, PassageId
from app.domain.links import find_links, link_to, parse_commonplace_link
from app.domain.passages import PassageKind
from app.domain.results import SearchResult
from app.language.secrets import masked
from app.mcp.access import McpAccess
from app.memory.core_memory import ArchivalMemoryService
from app.memory.recall.answers import AnswerFinder
from app.memory.recall.brief import MAX_TOKENS, MIN_TOKENS, Briefs
from app.memory.search.service import SearchService
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges, shown_path
from app.storage.tables.passages.queries import Passages
from app.storage.tables.projects import folders_without_project, stored_projects
from app.storage.tables.settings import Settings

MISS = "Nothing was found. Other words may find more."
_READ = (PassageKind.TURN, PassageKind.CONVERSATION_SUMMARY)
_BY_ID = (PassageKind.FACT, PassageKind.MEMORY, PassageKind.DOCUMENT)
_ALL = (*_READ, *_BY_ID)
_AROUND_MAX = 10
_RESULTS = 10
_TEXT_CHARS = 40_000
_REMEMBER = "mcp_remember"
_ID: Mapping[str, Any] = {"type": "string", "minLength": 1, "maxLength": 200}
_DATE: Mapping[str, Any] = {"type": "string", "description": "YYYY-MM-DD", "maxLength": 10}

Run = Callable[[Mapping[str, Any]], Any]


def _whole(minimum: int, maximum: int, default: int | None = None) -> Mapping[str, Any]:
    """Return the schema of a whole number, optional where it has a default."""
    schema = {"type": "integer", "minimum": minimum, "maximum": maximum}
    return schema if default is None else {**schema, "default": default}


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool: `parameters` is the JSON schema of its arguments."""

    name: str
    title: str
    description: str
    parameters: Mapping[str, Any]
    writes: bool = False


_NAMED = ("source", "project", "topic")  # filters by a name
_SEARCHED = {"query": QUERY, "after": _DATE, "before": _DATE, **dict.fromkeys(_NAMED, _ID)}
_TURNS = {
    "conversation": _whole(1, 2**62),
    "turn": _whole(0, 10**9),
    "around": _whole(0, _AROUND_MAX, 0),
}
_TOOLS = (
    McpTool(
        "search",
        "Search memory",
        "Search the user's earlier conversations, facts and saved texts. Returns ids for fetch.",
        parameters({"query": QUERY}, "query"),
    ),
    McpTool(
        "fetch",
        "Read a result",
        "Return the whole text of a result of search.",
        parameters({"id": _ID}, "id"),
    ),
    McpTool(
        "search_conversations",
        "Search conversations",
        "Find turns of earlier conversations by a natural sentence, with dates and links.",
        parameters({**_SEARCHED, "limit": LIMIT}, "query"),
    ),
    McpTool(
        "get_turns",
        "Read turns",
        "Return turns of a conversation in full: the one with that number and its neighbors.",
        parameters(_TURNS, "conversation", "turn"),
    ),
    McpTool(
        "recall",
        "Recall",
        "Return what memory holds on a question: dated, linked quotations and facts as Markdown.",
        parameters(
            {"question": QUERY, "max_tokens": _whole(MIN_TOKENS, MAX_TOKENS, 1200)}, "question"
        ),
    ),
    McpTool(
        "list_projects",
        "List projects",
        "List the user's projects and the folders of coding agents' sessions, for search_conversations.",
        parameters({}),
    ),
    McpTool(
        "remember",
        "Save to memory",
        "Save a text to the user's memory. Only what the user asked to keep.",
        parameters({"text": {"type": "string", "minLength": 2, "maxLength": 2000}}, "text"),
        writes=True,
    ),
)
"""The tools in the order in which they are listed."""


@dataclass(frozen=True, slots=True)
class McpResult:
    """The result of a call: JSON text, or an error that the program can read."""

    text: str
    is_error: bool = False


class McpTools:
    """The tools over one library. Thread-safe; every call blocks."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        search: SearchService,
        answers: AnswerFinder,
        archive: ArchivalMemoryService,
        access: McpAccess,
    ) -> None:
        self._store = store
        self._conversations = Conversations(store)
        self._exchanges = Exchanges(store)
        self._passages = Passages(store)
        self._settings = settings
        self._search = search
        self._boundaries = search.boundaries
        self._answers = answers
        self._briefs = Briefs(store, answers)
        self._archive = archive
        self._access = access
        self._runs: Mapping[str, Run] = {
            "search": self._find, "fetch": self._fetch, "search_conversations": self._find_turns,
            "get_turns": self._turns, "recall": self._recall, "list_projects": self._projects,
            "remember": self._remember,
        }  # fmt: skip

    def listed(self) -> Sequence[McpTool]:
        """Return the tools that are offered now, always in the same order."""
        may_write = self._settings.flag(_REMEMBER)
        return [each for each in _TOOLS if may_write or not each.writes]

    def call(self, name: str, arguments: object, client: str) -> McpResult:
        """Run a tool for a program; an error is a result."""
        try:
            self._access.check(client)
            tool = next((each for each in self.listed() if each.name == name), None)
            if tool is None:
                raise NotFound(
                    f"There is no tool '{name[:60]}'", "tools/list names those there are."
                )
            given = check_arguments(json.dumps(arguments or {}), tool.parameters)
            text = json.dumps(_masked(self._runs[name](given)), ensure_ascii=False)
        except KnownError as error:
            return McpResult(str(error), is_error=True)
        links = dict.fromkeys(link_to(*each[:2]) for each in find_links(text))
        self._access.note(client, name, list(links))
        return McpResult(text)

    # -- searching

    def _find(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        found = self._answers.find(given["query"], _RESULTS, _ALL)
        results = [
            {
                "id": _opaque(each.result),
                "title": each.result.conversation_title or each.result.kind.value,
                "url": _url(each.result),
                "text": "\n\n".join(filter(None, (each.question, each.reply))),
            }
            for each in found
        ]
        return {"results": results} if results else {"results": [], "note": MISS}

    def _find_turns(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        filters = "".join(
            f' {key}:"{value}"' if key in _NAMED else f" {key}:{value}"
            for key in ("after", "before", *_NAMED)
            if (value := given[key])
        )
        response = self._search.search(
            given["query"] + filters, given["limit"], boundary=self._boundaries.of(None)
        )
        found = [each for each in response.results if each.kind in _READ]
        useful = [each for each in found if each.is_hint or not each.is_weak]
        results = [
            {
                "conversation": each.conversation_id,
                "title": each.conversation_title,
                "turn": each.turn_number,
                "date": format_date(each.created_at),
                "relevance": round(each.relevance, 2),
                "question": each.user_question,
                "text": each.snippet,
                "url": _url(each),
            }
            for each in useful
        ]
        if not results and (project := given["project"]) and not self._has_project(project):
            raise NotFound(
                f"There is no project '{project}'", "list_projects names those there are."
            )
        return {"note": NOTE if results else MISS, "results": results}

    def _has_project(self, name: str) -> bool:
        return name.casefold() in map(str.casefold, self._projects({})["projects"])

    def _recall(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"note": NOTE, "text": self._briefs.write(given["question"], given["max_tokens"])}

    # -- reading

    def _fetch(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        name = given["id"]
        link = parse_commonplace_link(name)
        if link is not None:
            conversation = self._shown(link.conversation_id)
            path = self._path(conversation)
            turn = link.turn_number
            chosen = path if turn is None else path[turn : turn + 1]
            if not chosen:
                raise _missing()
            text = "\n\n".join(self._transcript(each) for each in chosen)
            self._shown(conversation.id)  # it may have been moved meanwhile
            return {
                "id": name,
                "title": conversation.title,
                "text": text[:_TEXT_CHARS],
                "url": name,
                "metadata": {"date": format_date(chosen[0].started_at), "note": NOTE},
            }
        kind, _, number = name.partition(":")
        if kind in _BY_ID and number.isdecimal():
            passage_id = PassageId(int(number))
            found = self._passages.shown([passage_id]).get(passage_id)
            if found is not None and found[0].kind.value == kind:
                place, content = found
                if place.conversation_id is not None:
                    self._shown(place.conversation_id)
                if not self._boundaries.of(None).holds(passage_id):
                    raise _missing()
                said = "\n\n".join(part.text or part.shown for part in content.parts)
                metadata = {"note": NOTE}
                return {"id": name, "title": kind, "text": said, "url": "", "metadata": metadata}
        raise _missing()

    def _turns(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        conversation = self._shown(given["conversation"])
        path = self._path(conversation)
        turn, around = given["turn"], given["around"]
        if turn >= len(path):
            raise NotFound(
                f"Conversation {conversation.id} has no turn {turn}",
                f"Its turns are 0 to {len(path) - 1}.",
            )
        first = max(0, turn - around)
        turns = [
            {
                "turn": number,
                "url": link_to(conversation.id, number),
                "date": format_date(exchange.started_at),
                "status": exchange.status.value,
                "text": self._transcript(exchange)[:_TEXT_CHARS],
            }
            for number, exchange in enumerate(path[first : turn + around + 1], first)
        ]
        self._shown(conversation.id)  # it may have been moved meanwhile
        return {"note": NOTE, "title": conversation.title, "turns": turns}

    def _projects(self, _given: Mapping[str, Any]) -> Mapping[str, Any]:
        named = [each.name for each in stored_projects(self._store) if not each.is_bounded]
        folders = folders_without_project(self._store)
        return {"projects": list(dict.fromkeys([*named, *(name for name, _ in folders)]))}

    def _remember(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"saved": self._archive.save(given["text"]).id}

    def _shown(self, conversation_id: int) -> Conversation:
        key = ConversationId(conversation_id)
        found = self._conversations.by_ids([key]).get(key)
        if (
            found is None
            or found.private
            or found.deleted_at is not None
            or not self._boundaries.of(None).allows(found.project)
        ):
            raise _missing()
        return found

    def _path(self, conversation: Conversation) -> Sequence[Exchange]:
        return shown_path(conversation, self._exchanges.of(conversation.id))

    def _transcript(self, exchange: Exchange) -> str:
        return "\n\n".join(self._lines(exchange))

    def _lines(self, exchange: Exchange) -> Iterator[str]:
        for message in self._exchanges.messages_of(exchange):
            if message.role in (Role.USER, Role.ASSISTANT) and message.text:
                yield f"{message.role.value}: {message.text}"


def _masked(value: Any) -> Any:
    """Return JSON values in which keys and passwords are hidden."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, Mapping):
        return {key: _masked(each) for key, each in value.items()}
    return [_masked(each) for each in value] if isinstance(value, list) else value


def _missing() -> NotFound:
    return NotFound("There is nothing with this id", "search finds what there is.")


def _opaque(result: SearchResult) -> str:
    if result.conversation_id is not None and result.kind in _READ:
        return _url(result)
    return f"{result.kind.value}:{result.passage_id}"


def _url(result: SearchResult) -> str:
    if result.conversation_id is None:
        return ""
    return link_to(result.conversation_id, result.turn_number)
