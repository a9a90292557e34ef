"""`topics`: list, name, merge and hide the subjects of conversations; README describes the documents."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from app.cli.arguments import wrong_arguments
from app.cli.terminal import Terminal
from app.domain.topics import Topic
from app.domain.translation import format_count, format_day
from app.memory.topics.service import TopicService


def topics(service: TopicService, given: Namespace, terminal: Terminal) -> None:
    """Run an action on topics, which are given by number or name."""
    if given.action == "list":
        return _list(service.topics(hidden=given.all), terminal)
    if given.action == "merge" and len(given.words) < 2:
        raise wrong_arguments(given)
    first = service.topic(given.words[0])
    match given.action:
        case "show":
            return _show(service, first, terminal)
        case "rename":
            first = service.rename(first.id, " ".join(given.words[1:]))
        case "merge":
            *merged, into = map(service.topic, given.words)
            first = service.merge([each.id for each in merged], into.id)
        case "split":
            first = service.split(first.id)
        case _:
            first = service.hide(first.id, hidden=given.action == "hide")
    return terminal.show({"topic": _plain(first)}, _line(first))


def _list(found: Sequence[Topic], terminal: Terminal) -> None:
    terminal.show({"topics": [_plain(each) for each in found]}, *map(_line, found))
    if not found:
        terminal.note(
            "There are no topics yet. 'commonplace work --until-idle' finds them, from eight conversations "
            "on, where several are about one subject."
        )


def _show(service: TopicService, topic: Topic, terminal: Terminal) -> None:
    conversations = service.conversations(topic.id)
    document = {
        "topic": _plain(topic),
        "conversations": [
            {"conversation_id": each.id, "title": each.title, "created_at": each.created_at,
             "updated_at": each.updated_at}
            for each in conversations
        ],
    }  # fmt: skip
    lines = (f"{each.id:>7}  {format_day(each.created_at)}  {each.title}" for each in conversations)
    terminal.show(document, _line(topic), *lines)


def _plain(topic: Topic) -> dict[str, Any]:
    return {"topic_id" if name == "id" else name: value for name, value in asdict(topic).items()}


def _line(topic: Topic) -> str:
    indent = "  " if topic.parent_id is not None else ""
    span = f"{format_day(topic.first_at)} to {format_day(topic.last_at)}"
    hidden = ", hidden" if topic.is_hidden else ""
    decided = f"; decided: {topic.decision}" if topic.decision else ""
    count = format_count(topic.conversations, "conversation")
    return f"{topic.id:>4}  {indent}{topic.name}: {count}, {span}{hidden}{decided}"
