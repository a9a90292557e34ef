"""`facts`, `topics` and `secrets`: what conversations hold; README describes the documents."""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from app.cli.arguments import wrong_arguments
from app.cli.commands import forgetting
from app.cli.terminal import Terminal, members
from app.domain.errors import IndexUnavailable, InvalidInput
from app.domain.ids import ConversationId
from app.domain.records.facts import FactCategory
from app.domain.records.topics import Topic
from app.domain.translation import format_count, format_day, local_moment
from app.index.text_sync import TextIndexSync
from app.memory.facts import FactService, parse_fact_id
from app.memory.secrets import SecretPlace, secret_places
from app.memory.topics.service import TopicService
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.facts import FactFilter, Facts, KnownFact

_MOST = 50
_VERSION = (
    "text", "category", "model", "said_at", "made_at", "conversation_id", "exchange_id",
    "message_id",
)  # fmt: skip


def facts(
    conversations: Conversations,
    stored: Facts,
    service: FactService,
    sync: TextIndexSync,
    given: Namespace,
    terminal: Terminal,
) -> None:
    if not 1 <= given.limit <= _MOST or given.offset < 0:
        raise InvalidInput(
            f"--limit {given.limit} --offset {given.offset} is not a page of facts",
            f"Allowed: --limit 1 to {_MOST}, --offset from 0 on.",
        )
    category = FactCategory(given.category) if given.category else None
    match given.action:
        case "list":
            return _list(conversations, stored, category, given, terminal)
        case "search":
            return _search(service, sync, given, terminal)
        case "history":
            return _history(stored, given, terminal)
        case "forget":
            return forgetting.facts(stored, service, sync, given.words, given, terminal)
        case "add":
            fact = service.add(" ".join(given.words), category or FactCategory.OTHER)
        case "edit":
            fact_id, text = parse_fact_id(given.words[0]), " ".join(given.words[1:]) or None
            if text is None and category is None:
                raise wrong_arguments(given, "ID, and a new TEXT or --category")
            fact = service.edit(fact_id, text, category)
        case _:
            fact = service.pin(parse_fact_id(given.words[0]), given.action == "pin")
    known = stored.get(fact.id)
    return terminal.show({"fact": _plain(known)}, *_lines(known))


def _list(
    conversations: Conversations,
    stored: Facts,
    category: FactCategory | None,
    given: Namespace,
    terminal: Terminal,
) -> None:
    where = None if given.conversation is None else ConversationId(given.conversation)
    if where is not None:
        conversations.get(where)
    which = FactFilter(
        category=category, conversation_id=where, ended=given.all, limit=given.limit,
        offset=given.offset,
    )  # fmt: skip
    found, total = stored.listed(which), stored.count(which)
    _show({"total": total}, found, terminal)
    if total > len(found):
        terminal.note(f"{len(found):,} of {total:,}; --offset shows more.")
    elif not total and stored.count(FactFilter(ended=True)):
        terminal.note("There are no such facts. 'facts list --all' lists all.")
    elif not total:
        terminal.note("There are no facts yet.")


def _search(
    service: FactService, sync: TextIndexSync, given: Namespace, terminal: Terminal
) -> None:
    query = " ".join(given.words)
    with suppress(IndexUnavailable):  # then words alone find
        sync.catch_up_a_little(terminal.cancelled)
    found = service.search(query, given.limit)
    _show({"query": query}, found, terminal)
    if not found:
        terminal.note(f"No facts match '{query}'.")


def _show(head: dict[str, Any], found: Iterable[KnownFact], terminal: Terminal) -> None:
    lines = [line for each in found for line in _lines(each)]
    terminal.show(head | {"facts": [_plain(each) for each in found]}, *lines)


def _history(stored: Facts, given: Namespace, terminal: Terminal) -> None:
    known = stored.get(parse_fact_id(given.words[0]))
    versions = stored.versions(known.fact.id)
    before = stored.superseded_by(known.fact.id)
    document = {
        "fact": _plain(known),
        "versions": [members(each, *_VERSION) for each in versions],
        "superseded": [each.id for each in before],
    }
    terminal.show(
        document,
        *_lines(known),
        *(
            f"        {each.made_at.astimezone():%Y-%m-%d %H:%M}  {each.model}  {each.text}"
            for each in versions
        ),
        *(f"        replaced {each.id}: {each.text}" for each in before),
    )


def _lines(known: KnownFact) -> list[str]:
    fact = known.fact
    place = ""
    if fact.conversation_id is not None:
        turn = "" if known.turn_number is None else f":{known.turn_number}"
        place = f"  {known.conversation_title} [{fact.conversation_id}{turn}]"
    said = f"{fact.said_at.astimezone():%Y-%m-%d}"
    if fact.valid_until is not None:
        said += f" until {fact.valid_until.astimezone():%Y-%m-%d}"
    lines = [
        f"{fact.id:6} {'*' if fact.pinned else ' '} {fact.text}",
        f"         {fact.category.value}, {said}{place}",
    ]
    if known.successor:
        lines.append(f"         superseded by {fact.superseded_by}: {known.successor}")
    return lines


def _plain(known: KnownFact) -> dict[str, Any]:
    more = members(known, "conversation_title", "turn_number", "versions")
    return asdict(known.fact) | more


def topics(service: TopicService, given: Namespace, terminal: Terminal) -> None:
    """Run an action on topics, which are given by number or name."""
    if given.action == "list":
        return _list_topics(service.topics(hidden=given.all), terminal)
    if given.action == "merge" and len(given.words) < 2:
        raise wrong_arguments(given)
    first = service.topic(given.words[0])
    match given.action:
        case "show":
            return _show_topic(service, first, terminal)
        case "rename":
            first = service.rename(first.id, " ".join(given.words[1:]))
        case "merge":
            *merged, into = map(service.topic, given.words)
            first = service.merge([each.id for each in merged], into.id)
        case "split":
            first = service.split(first.id)
        case _:
            first = service.hide(first.id, hidden=given.action == "hide")
    return terminal.show({"topic": _plain_topic(first)}, _topic_line(first))


def _list_topics(found: Sequence[Topic], terminal: Terminal) -> None:
    terminal.show({"topics": [_plain_topic(each) for each in found]}, *map(_topic_line, found))
    if not found:
        terminal.note(
            "There are no topics yet. 'commonplace work --until-idle' finds them, from eight conversations "
            "on, where several are about one subject."
        )


def _show_topic(service: TopicService, topic: Topic, terminal: Terminal) -> None:
    conversations = service.conversations(topic.id)
    document = {
        "topic": _plain_topic(topic),
        "conversations": [
            {"conversation_id": each.id} | members(each, "title", "created_at", "updated_at")
            for each in conversations
        ],
    }
    lines = (f"{each.id:>7}  {format_day(each.created_at)}  {each.title}" for each in conversations)
    terminal.show(document, _topic_line(topic), *lines)


def _plain_topic(topic: Topic) -> dict[str, Any]:
    return {"topic_id" if name == "id" else name: value for name, value in asdict(topic).items()}


def _topic_line(topic: Topic) -> str:
    indent = "  " if topic.parent_id is not None else ""
    span = f"{format_day(topic.first_at)} to {format_day(topic.last_at)}"
    hidden = ", hidden" if topic.is_hidden else ""
    decided = f"; decided: {topic.decision}" if topic.decision else ""
    count = format_count(topic.conversations, "conversation")
    return f"{topic.id:>4}  {indent}{topic.name}: {count}, {span}{hidden}{decided}"


def secrets(store: Store, _given: Namespace, terminal: Terminal) -> int:
    """Print where secrets stand and of what kind they are, never what they are."""
    found: list[SecretPlace] = []
    for place in secret_places(store, terminal.cancelled):
        found.append(place)
        if not terminal.as_json:
            turn = "" if place.turn_number is None else f":{place.turn_number}"
            terminal.line(
                f"{place.conversation_id}{turn}  message {place.message_id}  "
                f"{local_moment(place.said_at)}  {', '.join(place.kinds)}  {place.title}"
            )
    if terminal.as_json:
        terminal.document({"secrets": [asdict(each) for each in found]})
    elif not found:
        terminal.err("No message has secrets.")
    else:
        terminal.err(
            f"{format_count(len(found), 'message')} with secrets. They are hidden where memory is quoted. "
            "'commonplace forget secret ID' removes what was found in a message wherever it is, "
            "'forget message ID' the message."
        )
    return 1 if terminal.cancelled() else 0
