"""`prompt`: what an answer was asked with, part by part, and what memory contributed."""

from argparse import Namespace
from dataclasses import asdict
from typing import Any

from app.bootstrap import Services
from app.chat.inspecting import Inspection, Source, request_words
from app.chat.places import parse_place
from app.chat.sent import SentPrompt
from app.cli.arguments import WrongUsage
from app.cli.terminal import Terminal
from app.domain.errors import NotFound
from app.domain.passages import PassageKind


def prompt(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Print what was sent for a turn of the shown path, and what was recalled."""
    conversation_id, turn = parse_place(given.place)
    if turn is None:
        raise WrongUsage(f"'{given.place}' names no turn", "Write ID:TURN, such as 12:3.")
    path = services.library.open(conversation_id).path
    exchange = next((each for each in path if each.turn_number == turn), None)
    if exchange is None:
        raise NotFound(
            f"Conversation {conversation_id} has no turn {turn}",
            f"It has turns 0 to {len(path) - 1}." if path else "It has none yet.",
        )
    found = services.inspector.inspect(exchange.id)
    if found.sent is None:
        raise NotFound(
            f"What turn {conversation_id}:{turn} was asked with is not known",
            "It is kept of answers that a language model gave here.",
        )
    if terminal.as_json:
        items = [_plain(each) for each in found.sources]
        terminal.document(asdict(found.sent) | {"items": items, "requests": found.requests})
    else:
        _print(found, found.sent, terminal)
    return 0


def _plain(source: Source) -> dict[str, Any]:
    place = {"title": source.place.title, "turn_number": source.place.turn_number}
    return asdict(source.place.item) | place | {"cited": source.cited}


def _print(found: Inspection, sent: SentPrompt, terminal: Terminal) -> None:
    for part in sent.parts:
        cache = ", cacheable" if part.cacheable else ""
        terminal.line(f"## {part.kind.value}: {part.tokens:,} tokens ({part.share:.0%}{cache})\n")
        terminal.line(f"{part.text}\n")
    for source in found.sources:
        item = source.place.item
        is_turn = item.kind is PassageKind.TURN and source.place.turn_number is not None
        number = f" {source.place.turn_number}" if is_turn else ""
        became = "cited" if source.cited else "sent" if item.injected else item.dropped_by
        title = f" of '{source.place.title}'" if source.place.title else ""
        terminal.line(
            f"{item.layer.value} {item.kind.value}{number}{title}: "
            f"{item.relevance:.0%}, {item.tokens:,} tokens, {became}"
        )
    if words := request_words(found):
        terminal.err(f"{words}.")
    terminal.err(
        f"About {sent.tokens:,} tokens, {sent.cacheable_share:.0%} of them before the cache's end."
    )
