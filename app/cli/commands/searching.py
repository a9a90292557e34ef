"""`search`, with and without `--why`, and `probes`."""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from app.bootstrap import Services
from app.chat.commands.finding import place_of, remarks_on, searched
from app.chat.places import parse_place
from app.cli.arguments import WrongUsage
from app.cli.terminal import Terminal
from app.domain.errors import InvalidInput
from app.domain.explanations import Explanation
from app.domain.ids import ExchangeId
from app.domain.passages import PassageKind, SearchResult
from app.domain.probes import ProbePlace
from app.domain.text import whole_number

_WORDS_OF_ACTION = {"list": (), "run": (), "add": ("QUERY", "ID:TURN"), "remove": ("N",)}


def search(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Search by words and meaning, print the results best first; or say why a turn is not found."""
    services.index_sync.catch_up_a_little(terminal.cancelled)
    if given.why is not None:
        return _why(services, given, terminal)
    kinds = {PassageKind(kind) for kind in given.kind} if given.kind else None
    answer = searched(
        services.search, services.index_sync, given.query, given.limit, kinds, terminal.cancelled
    )
    for remark in remarks_on(answer):
        terminal.err(remark)
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
        _print_result(number, result, terminal)
    if not answer.results:
        terminal.err("Nothing was found. Try other or fewer words.")
    return 0


def probes(services: Services, given: Namespace, terminal: Terminal) -> int:
    """List, run, add and remove the probe questions, then print those there are."""
    wanted = _WORDS_OF_ACTION[given.action]
    if len(given.words) != len(wanted):
        raise WrongUsage(
            f"'probes {given.action}' takes {' and '.join(wanted) or 'nothing else'}",
            "See 'commonplace probes --help'.",
        )
    services.index_sync.catch_up_a_little(terminal.cancelled)
    book = services.probes
    if given.action == "add":
        book.add(given.words[0], turn_at(services, given.words[1]))
    elif given.action == "remove":
        book.remove(_number(given.words[0]))
    kept = book.run(terminal.cancelled) if given.action == "run" else book.listed()
    if terminal.as_json:
        terminal.document({"probes": [_probe(n, each) for n, each in enumerate(kept, 1)]})
        return 0
    for number, place in enumerate(kept, 1):
        where = "gone" if place.conversation_id is None else _place_of(place)
        terminal.line(f"{number:2}. {_movement(place):24}  {place.probe.question}  [{where}]")
        if place.probe.problem:
            terminal.line(f"    {place.probe.problem}")
    if not kept:
        terminal.err("No probe questions are kept. 'probes add QUERY ID:TURN' keeps one.")
    return 0


def turn_at(services: Services, words: str) -> ExchangeId:
    """Return the exchange at `ID:TURN` of the shown path; raise InvalidInput, NotFound."""
    conversation_id, turn = parse_place(words)
    if turn is None:
        raise InvalidInput(f"'{words}' names no turn", "Write ID:TURN, such as 12:3.")
    return services.library.exchange_at(conversation_id, turn).id


def _print_result(number: int, result: SearchResult, terminal: Terminal) -> None:
    weak = "  weak match" if result.is_weak else ""
    terminal.line(
        f"{number:2}. {result.relevance:4.0%}  {result.conversation_title}  "
        f"[{place_of(result)}]  {result.created_at.astimezone():%Y-%m-%d}{weak}"
    )
    if result.user_question:
        terminal.line(f"    {result.user_question}")
    terminal.line(f"    {' '.join(result.snippet.split())}")


def _why(services: Services, given: Namespace, terminal: Terminal) -> int:
    exchange_id = turn_at(services, given.why)
    explanation = services.explainer.explain(given.query, exchange_id, given.limit)
    if terminal.as_json:
        terminal.document(_explained(explanation))
        return 0
    for line in explanation_lines(explanation):
        terminal.line(line)
    return 0


def explanation_lines(explained: Explanation) -> Sequence[str]:
    """Return an explanation as lines for people."""
    lines = [
        f"{explained.conversation_title}  [{explained.conversation_id}:{explained.turn_number}]",
        f"    {explained.user_question}",
        f"Found as number {explained.rank} of {explained.ranked_count}."
        if explained.rank
        else "Not found.",
    ]
    if explained.relevance is not None:
        cosine = "no vector" if explained.cosine is None else f"cosine {explained.cosine:.3f}"
        lines.append(f"Relevance {explained.relevance:.0%}, {cosine}.")
    lines += [f"- {each.words} {each.hint}".rstrip() for each in explained.obstacles]
    if explained.notice:
        lines.append(f"- By words only: {explained.notice}")
    if explained.words:
        held = [each.word for each in explained.words if each.is_held]
        missing = [each.word for each in explained.words if not each.is_held]
        lines.append(
            f"Words held: {', '.join(held) or 'none'}; not: {', '.join(missing) or 'none'}"
        )
    if explained.points:
        lines.append("Points    Best  For")
    for each in explained.points:
        best = "" if each.best_points is None else f"{each.best_points:+6.2f}"
        lines.append(f"{each.points:+6.2f}  {best:>6}  {each.words}")
    return lines


def _number(text: str) -> int:
    number = whole_number(text)
    if number is None:
        raise InvalidInput(f"'{text}' is no number", "'probes list' shows the numbers.")
    return number


def _place_of(place: ProbePlace) -> str:
    return f"{place.conversation_id}:{place.turn_number}"


def _movement(place: ProbePlace) -> str:
    probe = place.probe
    if probe.ran_at is None:
        return "not asked yet"
    rank = f"number {probe.rank}" if probe.rank else "not found"
    if probe.before_at is None:
        return rank
    return f"{rank}, was {f'number {probe.before}' if probe.before else 'not found'}"


def _probe(number: int, place: ProbePlace) -> dict[str, Any]:
    probe = place.probe
    return {
        "number": number,
        "question": probe.question,
        "conversation_id": place.conversation_id,
        "turn_number": place.turn_number,
        "exchange_id": probe.exchange_id,
        "rank": probe.rank,
        "ran_at": probe.ran_at.isoformat() if probe.ran_at else None,
        "before": probe.before,
        "before_at": probe.before_at.isoformat() if probe.before_at else None,
        "problem": probe.problem,
    }


def _explained(explained: Explanation) -> dict[str, Any]:
    return {
        "query": explained.question,
        "conversation_id": explained.conversation_id,
        "conversation_title": explained.conversation_title,
        "turn_number": explained.turn_number,
        "exchange_id": explained.exchange_id,
        "message_id": explained.message_id,
        "rank": explained.rank,
        "ranked_count": explained.ranked_count,
        "score": explained.score,
        "relevance": explained.relevance,
        "cosine": explained.cosine,
        "coverage": explained.coverage,
        "floor": explained.floor,
        "by_meaning": explained.by_meaning,
        "notice": explained.notice,
        "words": [{"word": each.word, "held": each.is_held} for each in explained.words],
        "points": [
            {"feature": each.feature, "points": each.points, "best_points": each.best_points}
            for each in explained.points
        ],
        "obstacles": [
            {"cause": each.cause.value, "words": each.words, "hint": each.hint}
            for each in explained.obstacles
        ],
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
