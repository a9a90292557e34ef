"""`recall`: what would be recalled for a question, with the settings as they are or others tried."""

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from app.bootstrap import Services
from app.chat.commands.recalled_words import (
    budget_words,
    fate_words,
    name_words,
    summary_words,
)
from app.chat.previewing import Preview
from app.cli.arguments import WrongUsage
from app.cli.terminal import Terminal
from app.domain.ids import ConversationId
from app.domain.recalls import RecalledPlace
from app.domain.settings_schema import SettingValue, setting_for


def recall(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Print what would be recalled, in the order of the prompt; nothing is asked, sent or saved."""
    tried = _tried(given.set)
    services.index_sync.catch_up_a_little(terminal.cancelled)
    where = None if given.conversation is None else ConversationId(given.conversation)
    asked = services.previews.ask(given.question, where, tried)
    preview = services.previews.preview(asked, tried)
    if preview.notice:
        terminal.err(preview.notice)
    if terminal.as_json:
        terminal.document(_document(given.question, preview))
        return 0
    for place in preview.places:
        item = place.item
        terminal.line(
            f"{item.passage_id:6}  {item.relevance:4.0%}  {item.layer.value:12}  "
            f"{name_words(place)}  [{fate_words(place)}]"
        )
    terminal.err(f"{summary_words(preview.places)}: {budget_words(preview)}.")
    return 0


def _tried(pairs: Iterable[str]) -> dict[str, SettingValue]:
    tried: dict[str, SettingValue] = {}
    for pair in pairs:
        key, is_pair, text = pair.partition("=")
        if not is_pair:
            raise WrongUsage(f"'{pair}' is no KEY=VALUE", "Write --set rag_min_similarity=0.5.")
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
        "items": [_plain(each) for each in preview.places],
    }


def _plain(place: RecalledPlace) -> dict[str, Any]:
    shown = {"title": place.title, "turn_number": place.turn_number, "text": place.text}
    return asdict(place.item) | shown
