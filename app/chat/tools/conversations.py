"""Tools to search earlier conversations and to read one.

Private conversations, those in the trash and those beyond the boundary of a project are never
shown; archived ones only by their id.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.chat.tools.results import (
    LIMIT,
    NOTE,
    OFFSET,
    QUERY,
    format_date,
    found_list,
    json_line,
    json_list,
    page,
    parameters,
)
from app.chat.tools.toolbox import Tool, ToolContext
from app.domain.conversations import (
    Attachment,
    Conversation,
    Exchange,
    Image,
    Message,
    Role,
    ToolCall,
    ToolResult,
)
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import ConversationId, ExchangeId
from app.domain.passages import PassageKind
from app.domain.recall import is_recall_on
from app.domain.results import CONVERSATION_TOOL, as_tool_entry
from app.domain.text import one_line
from app.memory.recall.answers import AnswerFinder
from app.memory.search.service import SearchService
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges, shown_path
from app.storage.tables.summaries import Summaries

FETCH = "fetch_conversation_details"
SEARCH = "conversation_search"
_SIDE_CHARS = 200
_BATCH = 200
_ABOUT_CONVERSATIONS = (PassageKind.TURN, PassageKind.CONVERSATION_SUMMARY)
_TOPIC: Mapping[str, Any] = {
    "type": "string",
    "description": "Only conversations on this topic: a part of its name.",
    "maxLength": 80,
    "default": "",
}
_ID: Mapping[str, Any] = {"type": "integer", "minimum": 1, "maximum": 2**62}
_TURN: Mapping[str, Any] = {"type": "integer", "minimum": 0, "maximum": 10**9}


class ConversationTools:
    """Searches and reads conversations. Blocking; thread-safe."""

    def __init__(self, store: Store, search: SearchService) -> None:
        self._conversations = Conversations(store)
        self._exchanges = Exchanges(store)
        self._summaries = Summaries(store)
        self._answers = AnswerFinder(store, search)
        self._boundaries = search.boundaries

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools, for conversations with memory."""
        tools = (
            Tool(
                FETCH,
                "Read an earlier conversation, or one exchange of it, by an id from a search or by "
                "a link: commonplace://CONVERSATION_ID/TURN_NUMBER?exchange=EXCHANGE_ID; give the "
                "exchange_id if the link has one.",
                parameters(
                    {
                        "conversation_id": _ID,
                        "turn_number": _TURN,
                        "exchange_id": _ID,
                        "include_full_transcript": {
                            "type": "boolean",
                            "description": "Every message whole.",
                            "default": False,
                        },
                        "offset": OFFSET,
                    }
                ),
                self._fetch,
            ),
            Tool(
                SEARCH,
                "Find what was said in earlier conversations: the sentences that answer, with ids.",
                parameters({"query": QUERY, "limit": LIMIT, "topic": _TOPIC}, "query"),
                self._find,
            ),
        )
        return tuple(replace(each, is_usable=is_recall_on) for each in tools)

    # -- searching

    def _find(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        project, kinds = context.conversation.project, _ABOUT_CONVERSATIONS
        topics = (arguments["topic"],) if arguments["topic"] else ()
        query, limit = arguments["query"], arguments["limit"]
        found = self._answers.find(query, limit, kinds, project, topics)
        return found_list(
            {
                **as_tool_entry(each.result, CONVERSATION_TOOL),
                **({"user": each.question} if each.question else {}),
                ("assistant" if each.result.kind is PassageKind.TURN else "summary"): each.reply,
            }
            for each in found
        )

    # -- reading

    def _fetch(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        exchange_id, conversation_id = arguments["exchange_id"], arguments["conversation_id"]
        whole, turn = arguments["include_full_transcript"], arguments["turn_number"]
        if exchange_id is None and conversation_id is not None and turn is not None:
            exchange_id = self._exchange_at(conversation_id, turn, context.conversation)
        if exchange_id is not None:
            text = self._exchange(exchange_id, context.conversation, whole=whole)
        elif conversation_id is not None:
            text = self._conversation(conversation_id, context.conversation, whole=whole)
        else:
            raise InvalidInput(
                "Neither conversation_id nor exchange_id was given", f"{SEARCH} finds ids."
            )
        return page(text, arguments["offset"])

    def _conversation(self, conversation_id: int, asked_in: Conversation, *, whole: bool) -> str:
        missing = f"conversation {conversation_id}"
        conversation = self._shown(conversation_id, asked_in, missing)
        path = shown_path(conversation, self._exchanges.of(conversation_id))
        summary = self._summaries.latest("conversation", [conversation_id]).get(conversation_id)
        head = {
            "conversation_id": conversation.id,
            "title": conversation.title,
            "summary": summary.text if summary else None,
            "created_at": format_date(conversation.created_at),
            "updated_at": format_date(conversation.updated_at),
            "status": "archived" if conversation.archived else "active",
            "exchange_count": len(path),
        }
        text = json_list(head, "exchanges", self._exchanges_of(path, whole=whole))
        self._shown(conversation_id, asked_in, missing)  # it may have been moved meanwhile
        return text

    def _exchanges_of(
        self, path: Sequence[Exchange], *, whole: bool
    ) -> Iterator[Mapping[str, Any]]:
        for start in range(0, len(path), _BATCH):
            some = path[start : start + _BATCH]
            summaries = self._summaries.latest("exchange", [each.id for each in some])
            found = self._exchanges.messages(
                message_id for exchange in some for message_id in exchange.message_ids
            )
            for exchange in some:
                messages = [found[each] for each in exchange.message_ids if each in found]
                summary = summaries.get(exchange.id)
                yield {
                    "exchange_id": exchange.id,
                    "turn_number": exchange.turn_number,
                    "status": exchange.status.value,
                    "started_at": format_date(exchange.started_at),
                    "summary": summary.text if summary else None,
                    **_sides(messages, None if whole else _SIDE_CHARS),
                }

    def _exchange_at(self, conversation_id: int, turn: int, asked_in: Conversation) -> ExchangeId:
        """Return the exchange of a turn on the visible path."""
        missing = f"turn {turn} in conversation {conversation_id}"
        conversation = self._shown(conversation_id, asked_in, missing)
        path = shown_path(conversation, self._exchanges.of(conversation.id))
        found = (each.id for each in path if each.turn_number == turn)
        if (exchange_id := next(found, None)) is None:
            raise _not_found(missing)
        return exchange_id

    def _exchange(self, exchange_id: int, asked_in: Conversation, *, whole: bool) -> str:
        missing = f"exchange {exchange_id}"
        exchange = self._exchanges.by_ids([exchange_id]).get(ExchangeId(exchange_id))
        if exchange is None:
            raise _not_found(missing)
        conversation = self._shown(exchange.conversation_id, asked_in, missing)
        messages = self._exchanges.messages_of(exchange)
        summary = self._summaries.latest("exchange", [exchange_id]).get(exchange_id)
        head = {
            "exchange_id": exchange.id,
            "conversation_id": conversation.id,
            "title": conversation.title,
            "turn_number": exchange.turn_number,
            "status": exchange.status.value,
            "started_at": format_date(exchange.started_at),
            "completed_at": format_date(exchange.completed_at),
            "summary": summary.text if summary else None,
        }
        self._shown(conversation.id, asked_in, missing)  # it may have been moved meanwhile
        if whole:
            return json_list(head, "messages", map(_message, messages))
        return json_line({"note": NOTE, **head, **_sides(messages, None)})

    def _shown(self, conversation_id: int, asked_in: Conversation, missing: str) -> Conversation:
        """Return a conversation that may be read in another; the same NotFound for all others."""
        found = self._conversations.by_ids([conversation_id]).get(ConversationId(conversation_id))
        boundary = self._boundaries.of(asked_in.project)
        if (
            found is None
            or found.private
            or found.deleted_at is not None
            or not boundary.allows(found.project)
        ):
            raise _not_found(missing)
        return found


def _not_found(missing: str) -> NotFound:
    return NotFound(f"There is no {missing}", f"{SEARCH} finds what there is.")


def _sides(messages: Sequence[Message], max_chars: int | None) -> Mapping[str, Any]:
    """Return the joined messages of each side, cut to `max_chars` (None: whole)."""
    sides = {}
    for side, role in (("user", Role.USER), ("assistant", Role.ASSISTANT)):
        text = "\n\n".join(_text(each) for each in messages if each.role is role)
        sides[side] = text if max_chars is None else one_line(text, max_chars)
    return sides


def _text(message: Message) -> str:
    """Return the text of a message and the names of its attachments."""
    files = [b.name for b in message.blocks if isinstance(b, Image | Attachment)]
    attached = [f"[attached: {name}]" for name in files]
    return "\n".join([message.text, *attached]).strip()


def _message(message: Message) -> Mapping[str, Any]:
    """Return a whole message, without thinking."""
    calls = [
        {"name": block.name, "arguments": block.arguments}
        for block in message.blocks
        if isinstance(block, ToolCall)
    ]
    results = [
        {"name": block.name, "result": block.text, "is_error": block.is_error}
        for block in message.blocks
        if isinstance(block, ToolResult)
    ]
    shown: dict[str, Any] = {
        "message_id": message.id,
        "role": message.role.value,
        "date": format_date(message.created_at),
        "text": _text(message),
    }
    if message.model:
        shown["model"] = message.model
    if calls:
        shown["tool_calls"] = calls
    if results:
        shown["tool_results"] = results
    return shown
