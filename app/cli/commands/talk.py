"""`ask` and `search`."""

from argparse import Namespace
from typing import Any

from app.bootstrap import Services
from app.chat.running import Reply
from app.cli.terminal import Terminal
from app.domain.chat import Retrying, TextDelta
from app.domain.conversations import Exchange, ExchangeStatus, Text
from app.domain.ids import ConversationId
from app.domain.passages import PassageKind, SearchResult

_POLL_S = 0.2


def ask(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Ask, stream the answer, say where it is kept."""
    text = terminal.read_input() if given.text == "-" else given.text
    conversation_id = None if given.conversation is None else ConversationId(given.conversation)
    model = None if given.model is None else services.models.check_name(given.model)
    services.index_sync.catch_up()
    reply = services.chat.send(
        conversation_id, (Text(text),), model=model, private=given.private
    ).result()
    answer = _follow(reply, terminal)
    exchange = reply.done.result()
    if terminal.as_json:
        terminal.document(_asked(exchange, answer))
    else:
        terminal.line()
    if exchange.problem is not None:
        terminal.err(f"{exchange.problem.title}. {exchange.problem.hint}".strip())
    return 0 if exchange.status is ExchangeStatus.COMPLETED else 1


def search(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Search by words, print the results best first."""
    kinds = {PassageKind(kind) for kind in given.kind} if given.kind else None
    services.index_sync.catch_up()
    answer = services.search.search(given.query, limit=given.limit, kinds=kinds)
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
