"""`ask` and `search`."""

from argparse import Namespace
from typing import Any

from app.bootstrap import Services
from app.chat.running import Reply
from app.cli.arguments import WrongUsage
from app.cli.terminal import Terminal
from app.domain.chat import Retrying, TextDelta
from app.domain.conversations import Exchange, ExchangeStatus, Text
from app.domain.errors import IndexUnavailable
from app.domain.ids import ConversationId
from app.domain.passages import PassageKind, SearchAnswer, SearchResult

_POLL_S = 0.2


def ask(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Ask, stream the answer, say where it is kept."""
    if given.private and given.conversation is not None:
        raise WrongUsage("--private begins a conversation", "Leave out --conversation.")
    text = terminal.read_input() if given.text == "-" else given.text
    conversation_id = None if given.conversation is None else ConversationId(given.conversation)
    model = None if given.model is None else services.models.check_name(given.model)
    services.index_sync.catch_up_a_little(terminal.cancelled)
    reply = services.chat.send(
        conversation_id, (Text(text),), model=model, private=given.private
    ).result()
    try:
        answer = _follow(reply, terminal)
    except BaseException:
        reply.stop()  # nobody listens any more; what had come is kept
        raise
    exchange = reply.done.result()
    if terminal.as_json:
        terminal.document(_asked(exchange, answer))
    elif answer and not answer.endswith("\n"):
        terminal.line()
    terminal.err(_outcome(exchange))
    return 0 if exchange.status is ExchangeStatus.COMPLETED else 1


def search(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Search by words, print the results best first."""
    answer = _searched(services, given, terminal)
    if answer.covered_share < 1:
        terminal.err(f"{answer.covered_share:.0%} of your history is searchable so far.")
    if terminal.as_json:
        terminal.document(
            {
                "query": answer.query,
                "took_ms": round(answer.took_ms, 1),
                "results": [_result(result) for result in answer.results],
            }
        )
        return 0
    for number, result in enumerate(answer.results, 1):
        place = f"{result.conversation_id}:{result.turn_number}"
        terminal.line(
            f"{number:2}. {result.relevance:4.0%}  {result.conversation_title}  "
            f"[{place}]  {result.created_at.astimezone():%Y-%m-%d}"
        )
        if result.user_question:
            terminal.line(f"    {result.user_question}")
        terminal.line(f"    {' '.join(result.snippet.split())}")
    if not answer.results:
        terminal.err("Nothing was found. Try other or fewer words.")
    return 0


def _searched(services: Services, given: Namespace, terminal: Terminal) -> SearchAnswer:
    kinds = {PassageKind(kind) for kind in given.kind} if given.kind else None
    services.index_sync.catch_up_a_little(terminal.cancelled)
    try:
        return services.search.search(given.query, limit=given.limit, kinds=kinds)
    except IndexUnavailable:
        services.index_sync.catch_up(terminal.cancelled)  # damage was found: it is built anew
        return services.search.search(given.query, limit=given.limit, kinds=kinds)


def _follow(reply: Reply, terminal: Terminal) -> str:
    """Print the answer as it grows; return it whole."""
    words: list[str] = []
    while True:
        ended = reply.done.done()
        for event in reply.drain():
            if isinstance(event, TextDelta):
                words.append(event.text)
                if not terminal.as_json:
                    terminal.out(event.text)
            elif isinstance(event, Retrying):
                terminal.err(f"{event.reason}; trying again in {event.wait_s:.0f} s")
        if ended:
            return "".join(words)
        if terminal.cancelled():
            reply.stop()
        reply.wait(_POLL_S)


def _outcome(exchange: Exchange) -> str:
    """Return in a line how it ended and where it is kept."""
    place = f"{exchange.conversation_id}:{exchange.turn_number}"
    if exchange.problem is None:
        return f"[{place}]"
    words = f"{exchange.problem.title}. {exchange.problem.hint}".strip()
    return f"{words} What was said is kept in [{place}]."


def _asked(exchange: Exchange, answer: str) -> dict[str, Any]:
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
        "recalled": [],
    }


def _result(result: SearchResult) -> dict[str, Any]:
    return {
        "kind": result.kind.value,
        "id": result.passage_id,
        "source": result.source,
        "conversation_id": result.conversation_id,
        "conversation_title": result.conversation_title,
        "turn_number": result.turn_number,
        "exchange_id": result.exchange_id,
        "message_id": result.message_id,
        "relevance": round(result.relevance, 4),
        "cosine": result.cosine,
        "user_question": result.user_question,
        "snippet": result.snippet,
        "created_at": result.created_at.isoformat(),
        "model": result.model,
    }
