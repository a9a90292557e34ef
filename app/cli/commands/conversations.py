"""`list`, `show`, `archive`, `delete`, `tag` and their opposites."""

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from app.chat.exchange_loop import ExchangeLoop
from app.chat.library import AgentLink, AgentLinks, Library, no_turn
from app.cli.terminal import Terminal, members
from app.domain.conversations import (
    FORGOTTEN,
    Attachment,
    Conversation,
    Exchange,
    Forgotten,
    Image,
    Message,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.ids import ConversationId, ExchangeId
from app.domain.links import parse_document, parse_page, parse_place
from app.domain.text import one_line
from app.memory.search.coverage import TurnCoverage, TurnSearchStatus
from app.storage.tables.conversations import Conversations, ListFilter
from app.storage.tables.documents import DocumentTexts
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.summaries import Summaries

_CALL_CHARS = 240
_DELETED = TurnSearchStatus(words=False, meaning=False, why="It was deleted meanwhile.")


def listed(conversations: Conversations, given: Namespace, terminal: Terminal) -> None:
    which = ListFilter(archived=given.archived, trash=given.trash, tag=given.tag)
    found = conversations.listed(which)
    tags = conversations.tags_of([conversation.id for conversation in found])
    rows = [_head(conversation, tags.get(conversation.id, ())) for conversation in found]
    lines = []
    for row in rows:
        mark, words = "*" if row["pinned"] else " ", " ".join(f"#{name}" for name in row["tags"])
        day = f"{row['updated_at'].astimezone():%Y-%m-%d}"
        lines.append(f"{row['conversation_id']:6} {mark} {day}  {row['title']}  {words}".rstrip())
    terminal.show({"conversations": rows}, *lines)
    if not rows:
        terminal.note("There are no such conversations.")


def show(
    library: Library,
    stored: Exchanges,
    summarized: Summaries,
    coverage: TurnCoverage,
    documents: DocumentTexts,
    given: Namespace,
    terminal: Terminal,
) -> None:
    """Print a conversation's shown path, one turn or all branches; a manual page or a document."""
    if parse_page(given.id) is None and parse_document(given.id) is None:
        _show_conversation(library, stored, summarized, coverage, given, terminal)
    else:
        found = documents.at(given.id)
        terminal.show(asdict(found) | {"text": found.text}, f"{found.title}\n\n{found.text}")
        if found.is_former:
            terminal.note("The file has changed since it was quoted.")


def _show_conversation(
    library: Library,
    stored: Exchanges,
    summarized: Summaries,
    coverage: TurnCoverage,
    given: Namespace,
    terminal: Terminal,
) -> None:
    conversation_id, turn = parse_place(given.id)
    turn = given.turn if given.turn is not None else turn
    view = library.open(conversation_id)
    path = stored.of(conversation_id) if given.branches else view.path
    exchanges = [each for each in path if turn is None or each.turn_number == turn]
    if turn is not None and not exchanges:
        raise no_turn(conversation_id, turn, len(view.path))
    messages = library.messages(exchanges)
    summaries = summarized.latest("exchange", [each.id for each in exchanges])
    texts = {each: summary.text for each, summary in summaries.items()}
    links = library.agent_links(conversation_id)
    if terminal.as_json:
        found = coverage.of_turns([each.id for each in exchanges])
        document = _head(view.conversation, view.tags) | {
            "summary": view.summary or None,
            "started_by": links.started_by and _agent(links.started_by),
            "subagents": [_agent(each) for each in links.subagents],
            "turns": [
                _turn(each, messages[each.id], texts.get(each.id), found.get(each.id, _DELETED))
                for each in exchanges
            ],
        }
        terminal.document(document)
    else:
        _print(view.conversation, links, exchanges, messages, terminal)


_CHANGES: Mapping[str, tuple[str, Callable[[Library, Sequence[ConversationId]], None]]] = {
    "archive": ("archived", lambda library, ids: library.archive(ids, True)),
    "unarchive": ("unarchived", lambda library, ids: library.archive(ids, False)),
    "delete": ("deleted", lambda library, ids: library.delete(*ids)),
    "undelete": ("restored", lambda library, ids: library.restore(*ids)),
}


def change(library: Library, chat: ExchangeLoop, given: Namespace, terminal: Terminal) -> None:
    """Archive, unarchive, delete or undelete conversations; replies in deleted ones are stopped."""
    done, apply = _CHANGES[given.command]
    if given.command == "delete":
        chat.stop(given.ids)
    apply(library, given.ids)
    terminal.show({done: given.ids})


def tag(
    conversations: Conversations, library: Library, given: Namespace, terminal: Terminal
) -> None:
    """Add and remove tags, then print all tags."""
    conversation_id = ConversationId(given.id)
    conversations.get(conversation_id)
    if given.names or given.remove:
        library.tag([conversation_id], given.names, given.remove)
    tags = conversations.tags_of([conversation_id]).get(conversation_id, ())
    terminal.show({"conversation_id": conversation_id, "tags": list(tags)}, " ".join(tags))


def _head(conversation: Conversation, tags: Sequence[str]) -> dict[str, Any]:
    names = ("title", "source", "pinned", "archived", "private", "created_at", "updated_at")
    own = {"conversation_id": conversation.id, "tags": list(tags)}
    return own | members(conversation, *names)


def _turn(
    exchange: Exchange, messages: Sequence[Message], summary: str | None, found_by: TurnSearchStatus
) -> dict[str, Any]:
    return {
        "exchange_id": exchange.id,
        **members(exchange, "turn_number", "status", "started_at", "completed_at", "model"),
        "summary": summary,
        "messages": [{"message_id": each.id} | members(each, "role", "text") for each in messages],
        "searchable": members(found_by, "words", "meaning") | {"why": found_by.why or None},
    }


def _agent(link: AgentLink) -> dict[str, Any]:
    turn = link.exchange and link.exchange.turn_number
    return {
        "conversation_id": link.conversation.id,
        "title": link.conversation.title,
        "at_turn": turn,
    }


def _print(
    conversation: Conversation,
    links: AgentLinks,
    exchanges: Sequence[Exchange],
    messages: Mapping[ExchangeId, Sequence[Message]],
    terminal: Terminal,
) -> None:
    terminal.line(f"# {conversation.title}")
    if (agent := links.started_by) is not None:
        turn = f":{agent.exchange.turn_number}" if agent.exchange else ""
        terminal.line(f"Started by [{agent.conversation.id}{turn}] {agent.conversation.title}")
    for subagent in links.subagents:
        turn = f" in turn {subagent.exchange.turn_number}" if subagent.exchange else ""
        terminal.line(f"Started [{subagent.conversation.id}]{turn}: {subagent.conversation.title}")
    for exchange in exchanges:
        status = "" if exchange.status.value == "completed" else f" ({exchange.status.value})"
        terminal.line(f"\n## [{exchange.conversation_id}:{exchange.turn_number}]{status}")
        for message in messages[exchange.id]:
            stamp = f"{message.created_at.astimezone():%Y-%m-%d %H:%M}"
            words = "\n".join(text for text in (message.text, *_block_lines(message)) if text)
            terminal.line(f"\n[{message.role.value}, {stamp}]\n{words}")


def _block_lines(message: Message) -> Iterator[str]:
    """Yield a line for reasoning, each tool call, result and image, and the text of attachments."""
    for block in message.blocks:
        if isinstance(block, Forgotten):
            yield FORGOTTEN
        elif isinstance(block, Attachment):
            name = one_line(block.name, _CALL_CHARS) or "attachment"
            yield f"{name}:\n{block.text}".rstrip(":\n")
        elif isinstance(block, Image):
            yield f"picture: {one_line(block.name, _CALL_CHARS)}"
        elif isinstance(block, ToolCall):
            yield one_line(f"{block.name} {block.arguments}", _CALL_CHARS)
        elif isinstance(block, ToolResult):
            size = "failed" if block.is_error else f"{len(block.text):,} characters"
            yield f"{one_line(block.name, _CALL_CHARS) or 'result'}: {size}"
        elif isinstance(block, Thinking):
            yield f"reasoning: {len(block.text):,} characters"
