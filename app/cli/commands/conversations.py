"""`list`, `show`, `archive`, `delete`, `forget`, `tag` and their opposites."""

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from app.bootstrap import Services
from app.chat.places import parse_page, parse_place
from app.cli.terminal import NotAgreed, Terminal
from app.domain.conversations import (
    Attachment,
    Conversation,
    Exchange,
    Image,
    Message,
    ToolCall,
    ToolResult,
)
from app.domain.errors import NotFound
from app.domain.ids import ConversationId, ExchangeId
from app.domain.text import one_line
from app.memory.coverage import Searchable
from app.storage.conversations import ListFilter

_CALL_CHARS = 240
_GONE = Searchable(words=False, meaning=False, why="It was deleted meanwhile.")


def listed(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Print the conversations of a list."""
    which = ListFilter(archived=given.archived, trash=given.trash, tag=given.tag)
    found = services.conversations.listed(which)
    tags = services.conversations.tags_of([conversation.id for conversation in found])
    if terminal.as_json:
        rows = [_head(conversation, tags.get(conversation.id, ())) for conversation in found]
        terminal.document({"conversations": rows})
        return 0
    for conversation in found:
        mark = "*" if conversation.pinned else " "
        day = f"{conversation.updated_at.astimezone():%Y-%m-%d}"
        words = " ".join(f"#{name}" for name in tags.get(conversation.id, ()))
        terminal.line(f"{conversation.id:6} {mark} {day}  {conversation.title}  {words}".rstrip())
    return 0


def show(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Print a conversation's shown path, one of its turns, or all branches; or a manual page."""
    if (page := parse_page(given.id)) is not None:
        return _show_page(services, page, terminal)
    conversation_id, turn = parse_place(given.id)
    turn = given.turn if given.turn is not None else turn
    view = services.library.open(conversation_id)
    path = services.exchanges.of(conversation_id) if given.branches else view.path
    exchanges = [each for each in path if turn is None or each.turn_number == turn]
    if turn is not None and not exchanges:
        raise NotFound(
            f"Conversation {conversation_id} has no turn {turn}",
            f"It has turns 0 to {len(view.path) - 1}." if view.path else "It has none yet.",
        )
    messages = services.library.messages(exchanges)
    summaries = services.summaries.latest("exchange", [each.id for each in exchanges])
    texts = {each: summary.text for each, summary in summaries.items()}
    if terminal.as_json:
        found = services.coverage.of_turns([each.id for each in exchanges])
        document = _head(view.conversation, view.tags) | {
            "summary": view.summary or None,
            "turns": [
                _turn(each, messages[each.id], texts.get(each.id))
                | {"searchable": _searchable(found.get(each.id, _GONE))}
                for each in exchanges
            ],
        }
        terminal.document(document)
    else:
        _print(view.conversation, exchanges, messages, terminal)
    return 0


def _show_page(services: Services, source: str, terminal: Terminal) -> int:
    page = services.man_pages.kept(source)
    if terminal.as_json:
        terminal.document(asdict(page))
    else:
        terminal.line(f"{page.title}\n\n{page.text}")
    return 0


def archive(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Take conversations out of list and search."""
    for each in _checked(services, given):
        services.library.archive(each, True)
    return _told("archived", given, terminal)


def unarchive(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Bring archived conversations back."""
    for each in _checked(services, given):
        services.library.archive(each, False)
    return _told("unarchived", given, terminal)


def delete(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Move conversations to the trash; what is being answered there ends first."""
    ids = _checked(services, given)
    services.chat.stop(ids)
    for each in ids:
        services.library.delete(each)
    return _told("deleted", given, terminal)


def undelete(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Take conversations out of the trash."""
    for each in _checked(services, given):
        services.library.restore(each)
    return _told("restored", given, terminal)


def forget(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Erase conversations in every byte that is kept, once that was agreed to."""
    ids = list(dict.fromkeys(_checked(services, given)))
    if not given.yes:
        _say_what_goes(services, ids, terminal)
        if not terminal.says_yes():
            raise NotAgreed("Nothing was forgotten: nobody agreed to it", "Add --yes to agree.")
    services.chat.stop(ids)
    left = services.forget(ids)
    if terminal.as_json:
        terminal.document({"forgotten": given.ids, "remains": list(left)})
    for remark in left:
        terminal.err(remark)
    return 0


def tag(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Add and remove tags, then print those there are."""
    conversation_id = ConversationId(given.id)
    services.conversations.get(conversation_id)
    if given.names or given.remove:
        services.library.tag(conversation_id, given.names, given.remove)
    tags = services.conversations.tags_of([conversation_id]).get(conversation_id, ())
    if terminal.as_json:
        terminal.document({"conversation_id": conversation_id, "tags": list(tags)})
    else:
        terminal.line(" ".join(tags))
    return 0


def _checked(services: Services, given: Namespace) -> list[ConversationId]:
    """Return the conversations named; raise NotFound before anything is done if one is not there."""
    return [services.conversations.get(each).id for each in given.ids]


def _say_what_goes(services: Services, ids: Sequence[ConversationId], terminal: Terminal) -> None:
    for each in ids:
        turns = len(services.exchanges.of(each))
        title = services.conversations.get(each).title
        terminal.err(f"{each}: {title} ({turns:,} {'turn' if turns == 1 else 'turns'})")
    terminal.err("would be gone for ever, out of the backups too.")


def _told(done: str, given: Namespace, terminal: Terminal) -> int:
    if terminal.as_json:
        terminal.document({done: given.ids})
    return 0


def _head(conversation: Conversation, tags: Sequence[str]) -> dict[str, Any]:
    return {
        "conversation_id": conversation.id,
        "title": conversation.title,
        "source": conversation.source,
        "pinned": conversation.pinned,
        "archived": conversation.archived,
        "private": conversation.private,
        "created_at": conversation.created_at.isoformat(),
        "updated_at": conversation.updated_at.isoformat(),
        "tags": list(tags),
    }


def _turn(exchange: Exchange, messages: Sequence[Message], summary: str | None) -> dict[str, Any]:
    return {
        "turn_number": exchange.turn_number,
        "exchange_id": exchange.id,
        "status": exchange.status.value,
        "summary": summary,
        "started_at": exchange.started_at.isoformat(),
        "completed_at": exchange.completed_at.isoformat() if exchange.completed_at else None,
        "model": exchange.model,
        "messages": [
            {"message_id": each.id, "role": each.role.value, "text": each.text} for each in messages
        ],
    }


def _searchable(found: Searchable) -> dict[str, Any]:
    return {"words": found.words, "meaning": found.meaning, "why": found.why or None}


def _print(
    conversation: Conversation,
    exchanges: Sequence[Exchange],
    messages: Mapping[ExchangeId, Sequence[Message]],
    terminal: Terminal,
) -> None:
    terminal.line(f"# {conversation.title}")
    for exchange in exchanges:
        status = "" if exchange.status.value == "completed" else f" ({exchange.status.value})"
        terminal.line(f"\n## Turn {exchange.turn_number}{status}")
        for message in messages[exchange.id]:
            stamp = f"{message.created_at.astimezone():%Y-%m-%d %H:%M}"
            words = "\n".join(text for text in (message.text, *_block_lines(message)) if text)
            terminal.line(f"\n[{message.role.value}, {stamp}]\n{words}")


def _block_lines(message: Message) -> Iterator[str]:
    """Yield a line for each call of a tool, result and picture, and what an attachment says."""
    for block in message.blocks:
        if isinstance(block, Attachment):
            yield f"{one_line(block.name, _CALL_CHARS) or 'attachment'}:\n{block.text}".rstrip(
                ":\n"
            )
        elif isinstance(block, Image):
            yield f"picture: {one_line(block.name, _CALL_CHARS)}"
        elif isinstance(block, ToolCall):
            yield one_line(f"{block.name} {block.arguments}", _CALL_CHARS)
        elif isinstance(block, ToolResult):
            size = "failed" if block.is_error else f"{len(block.text):,} characters"
            yield f"{one_line(block.name, _CALL_CHARS)}: {size}"
