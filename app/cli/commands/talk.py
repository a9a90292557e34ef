"""`ask`."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.bootstrap import Services
from app.chat.reply import Reply
from app.cli.arguments import WrongUsage
from app.cli.terminal import Terminal
from app.domain.chat import (
    MemoryRecalled,
    ModelRef,
    Retrying,
    TextDelta,
    ToolAnswered,
    ToolCallReady,
)
from app.domain.conversations import Exchange, ExchangeStatus, Text, ToolResult
from app.domain.ids import ConversationId
from app.domain.text import one_line
from app.providers.recall import RECALL, RecallModel

_POLL_S = 0.2
_TITLES, _TITLE_CHARS = 3, 60


@dataclass(frozen=True, slots=True)
class _Recalled:
    """An item of the document's `recalled`; `title` is its conversation's."""

    kind: str
    id: int
    conversation_id: int | None
    turn_number: int | None
    relevance: float
    injected: bool
    title: str

    @property
    def plain(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "title"}


_NAME_CHARS = 60


def ask(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Ask, stream the answer, say where it is kept."""
    if given.private and given.conversation is not None:
        raise WrongUsage("--private begins a conversation", "Leave out --conversation.")
    text = terminal.read_input() if given.text == "-" else given.text
    conversation_id = None if given.conversation is None else ConversationId(given.conversation)
    model = None if given.model is None else services.models.check_name(given.model)
    services.index_sync.catch_up_a_little(terminal.cancelled)
    services.meaning.look(text)  # loads what finds by meaning: recall would not wait for that
    reply = services.chat.send(
        conversation_id, (Text(text),), model=model, private=given.private
    ).result()
    try:
        answer = _follow(reply, terminal)
    except BaseException:
        reply.stop()  # nobody listens any more; what had come is kept
        raise
    exchange = reply.done.result()
    recalled = _recalled(services, exchange)
    if terminal.as_json:
        terminal.document(_asked(exchange, answer, recalled))
    elif answer and not answer.endswith("\n"):
        terminal.line()
    if reply.prompt is not None and (words := _recalled_words(recalled)):
        terminal.err(words)
    terminal.err(_outcome(exchange))
    return 0 if exchange.status is ExchangeStatus.COMPLETED else 1


def _follow(reply: Reply, terminal: Terminal) -> str:
    """Print the answer as it grows, and which tools were called; return it whole."""
    words: list[str] = []
    was_words = False
    while True:
        ended = reply.done.done()
        for event in reply.drain():
            if isinstance(event, TextDelta):
                # What is said before a tool call and after it are two paragraphs.
                text = event.text if was_words or not words else f"\n\n{event.text}"
                was_words = True
                words.append(text)
                if not terminal.as_json:
                    terminal.out(text)
            elif isinstance(event, ToolCallReady):
                was_words = False
            elif isinstance(event, ToolAnswered):
                terminal.err(_tool_line(event.result))
            elif isinstance(event, MemoryRecalled):
                if event.notice:
                    terminal.err(f"{event.notice}.")
            elif isinstance(event, Retrying):
                terminal.err(f"{event.reason}; trying again in {event.wait_s:.0f} s")
        if ended:
            return "".join(words)
        if terminal.cancelled():
            reply.stop()
        reply.wait(_POLL_S)


def _tool_line(result: ToolResult) -> str:
    took = "" if result.duration_ms is None else f" in {result.duration_ms:,} ms"
    size = "failed" if result.is_error else f"{len(result.text):,} characters"
    return f"{one_line(result.name, _NAME_CHARS)}: {size}{took}"


def _outcome(exchange: Exchange) -> str:
    """Return in a line how it ended and where it is kept."""
    place = f"{exchange.conversation_id}:{exchange.turn_number}"
    if exchange.problem is None:
        return f"[{place}]"
    words = f"{exchange.problem.title}. {exchange.problem.hint}".strip().removesuffix(".")
    return f"{words}. What was said is kept in [{place}]."


def _recalled(services: Services, exchange: Exchange) -> list[_Recalled]:
    """Return what was retrieved, or what Recall quoted."""
    if ModelRef.parse(exchange.model or "").provider != RECALL:
        return [
            _Recalled(
                place.item.kind.value, place.item.passage_id, place.item.conversation_id,
                place.turn_number, round(place.item.relevance, 4), place.item.injected, place.title,
            )
            for place in services.prompts.places(exchange.id)
        ]  # fmt: skip
    model = services.models.chat_model(ModelRef(RECALL, ""))
    quoted = model.quoted_in(exchange.conversation_id) if isinstance(model, RecallModel) else ()
    return [
        _Recalled(
            each.kind.value, each.passage_id, each.conversation_id, each.turn_number,
            round(each.relevance, 4), injected=True, title=each.conversation_title,
        )
        for each in quoted
    ]  # fmt: skip


def _recalled_words(recalled: Sequence[_Recalled]) -> str:
    """Return in a line what was recalled; "" for nothing."""
    titles = [
        f"'{one_line(each.title, _TITLE_CHARS)}'" if each.title else each.kind
        for each in recalled
        if each.injected
    ]
    names = list(dict.fromkeys(titles))
    more = f" and {len(names) - _TITLES:,} more" if len(names) > _TITLES else ""
    return f"Recalled from {', '.join(names[:_TITLES])}{more}." if names else ""


def _asked(exchange: Exchange, answer: str, recalled: Sequence[_Recalled]) -> dict[str, Any]:
    usage = exchange.usage
    return {
        "conversation_id": exchange.conversation_id,
        "exchange_id": exchange.id,
        "turn_number": exchange.turn_number,
        "answer": answer,
        "model": exchange.model,
        "status": exchange.status.value,
        "usage": {
            "input_tokens": usage.input_tokens if usage else None,
            "output_tokens": usage.output_tokens if usage else None,
            "cached_tokens": usage.cached_tokens if usage else None,
            "cost_usd": usage.cost_usd if usage else None,
        },
        "recalled": [each.plain for each in recalled],
    }
