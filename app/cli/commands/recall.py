"""`recall`: what would be recalled for a question; `prompt`: the prompt of an answer."""

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from app.chat.inspector import Inspection, InspectionService, requests_text
from app.chat.library import Library
from app.chat.recall_preview import Preview, RecallPreviews
from app.chat.recall_text import budget_text, name_text, outcome_text, summary_text
from app.chat.sent_prompt import SentPrompt
from app.cli.arguments import UsageError
from app.cli.terminal import Terminal, members
from app.domain.errors import NotFound
from app.domain.ids import ConversationId
from app.domain.links import parse_place
from app.domain.passages import PassageKind
from app.domain.recall import RecalledItemDetails
from app.domain.settings_schema import SettingValue, setting_for
from app.domain.text import translate_lines
from app.index.text_sync import TextIndexSync


def recall(
    previews: RecallPreviews, sync: TextIndexSync, given: Namespace, terminal: Terminal
) -> None:
    """Print what would be recalled, in the order of the prompt; nothing is sent or saved."""
    tried = _tried(given.set)
    sync.catch_up_a_little(terminal.cancelled)
    where = None if given.conversation is None else ConversationId(given.conversation)
    candidates = previews.fetch(given.question, where, tried)
    preview = previews.preview(candidates, tried)
    if preview.notice:
        terminal.err(translate_lines(preview.notice))
    lines = (
        f"{place.item.passage_id:6}  {place.item.relevance:4.0%}  {place.item.layer.value:12}  "
        f"{name_text(place)}  [{outcome_text(place)}]"
        for place in preview.places
    )
    terminal.show(_document(given.question, preview), *lines)
    terminal.note(f"{summary_text(preview.places)}: {budget_text(preview)}.")


def prompt(
    library: Library, inspector: InspectionService, given: Namespace, terminal: Terminal
) -> None:
    """Print what was sent for a turn of the shown path, and what was recalled."""
    conversation_id, turn = parse_place(given.place)
    if turn is None:
        raise UsageError(f"'{given.place}' is not a turn", "Write ID:TURN, such as 12:3.")
    exchange_id = library.exchange_at(conversation_id, turn).id
    found = inspector.inspect(exchange_id)
    if found.sent is None:
        raise NotFound(
            f"The prompt of turn {given.place} is not known",
            "Prompts are stored for answers of language models only.",
        )
    if terminal.as_json:
        items = [_item(each.place) | {"cited": each.cited} for each in found.sources]
        terminal.document(asdict(found.sent) | {"items": items, "requests": found.requests})
    else:
        _print(found, found.sent, terminal)


def _tried(pairs: Iterable[str]) -> dict[str, SettingValue]:
    tried: dict[str, SettingValue] = {}
    for pair in pairs:
        key, is_pair, text = pair.partition("=")
        if not is_pair:
            raise UsageError(f"'{pair}' is not KEY=VALUE", "Write --set rag_min_similarity=0.5.")
        tried[key] = setting_for(key).parse(text)
    return tried


def _document(question: str, preview: Preview) -> dict[str, Any]:
    return {
        "question": question,
        "took_ms": round(preview.took_ms, 1),
        "tokens": preview.tokens,
        "max_tokens": preview.most_tokens,
        "window_messages": preview.window_count,
        "budgets": [
            {"key": each.key, "tokens": each.tokens, "max_tokens": each.most_tokens}
            for each in preview.spent
        ],
        "items": [_item(each, "text") for each in preview.places],
    }


def _item(place: RecalledItemDetails, *more: str) -> dict[str, Any]:
    return asdict(place.item) | members(place, "title", "turn_number", *more)


def _print(found: Inspection, sent: SentPrompt, terminal: Terminal) -> None:
    for part in sent.parts:
        cache = ", cacheable" if part.cacheable else ""
        terminal.line(f"## {part.kind.value}: {part.tokens:,} tokens ({part.share:.0%}{cache})\n")
        terminal.line(f"{part.text}\n")
    for source in found.sources:
        item = source.place.item
        is_turn = item.kind is PassageKind.TURN and source.place.turn_number is not None
        number = f" [{item.conversation_id}:{source.place.turn_number}]" if is_turn else ""
        outcome = "cited" if source.cited else "sent" if item.injected else item.dropped_by
        title = f" of '{source.place.title}'" if source.place.title else ""
        terminal.line(
            f"{item.layer.value} {item.kind.value}{number}{title}: "
            f"{item.relevance:.0%}, {item.tokens:,} tokens, {outcome}"
        )
    if text := requests_text(found):
        terminal.err(f"{text}.")
    terminal.err(f"About {sent.tokens:,} tokens, {sent.cacheable_share:.0%} of them cacheable.")
