"""`search`, also with `--why`, `probes`, `recall` and `prompt`: what is found, recalled and sent."""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import count
from typing import Any

from app.chat.inspector import Inspection, InspectionService, requests_text
from app.chat.library import Library
from app.chat.recall_preview import Preview, RecallPreviews
from app.chat.recall_text import budget_text, name_text, outcome_text, summary_text
from app.chat.sent_prompt import SentPrompt
from app.cli.arguments import UsageError
from app.cli.terminal import Terminal, members
from app.commands.search import coverage_notes, nothing_found, search_or_rebuild
from app.domain.conversations import Exchange
from app.domain.diagnostics import Explanation, ProbeDetails
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import ConversationId
from app.domain.links import parse_place
from app.domain.passages import PassageKind
from app.domain.recall import RecalledItemDetails
from app.domain.results import SearchResult, as_document, details
from app.domain.settings_schema import SettingValue, setting_for
from app.domain.text import parse_whole_number, translate_lines
from app.index.text_sync import TextIndexSync
from app.memory.search.explain import Explainer
from app.memory.search.probes import ProbeQuestions
from app.memory.search.service import SearchService


def search(
    service: SearchService,
    sync: TextIndexSync,
    explainer: Explainer,
    library: Library,
    given: Namespace,
    terminal: Terminal,
) -> None:
    """Search and print the results, best first; or explain why a turn is or is not found."""
    sync.catch_up_a_little(terminal.cancelled)
    if given.why is not None:
        exchange = exchange_at(library, given.why)
        explanation = explainer.explain(given.query, exchange.id, given.limit)
        return terminal.show(_explained(explanation), *explanation_lines(explanation))
    kinds = {PassageKind(kind) for kind in given.kind} if given.kind else None
    answer = search_or_rebuild(service, sync, given.query, given.limit, kinds, terminal.cancelled)
    for note in coverage_notes(answer):
        terminal.err(note)
    document = {
        "query": answer.query,
        "took_ms": round(answer.took_ms, 1),
        "results": [as_document(result) for result in answer.results],
    }
    terminal.show(document, *map(_result_text, count(1), answer.results))
    if not answer.results:
        terminal.note(nothing_found(answer))
    return None


def probes(
    questions: ProbeQuestions,
    library: Library,
    sync: TextIndexSync,
    given: Namespace,
    terminal: Terminal,
) -> None:
    """List, run, add or remove test questions, then print all."""
    sync.catch_up_a_little(terminal.cancelled)
    if given.action == "add":
        questions.add(given.words[0], exchange_at(library, given.words[1]).id)
    elif given.action == "remove":
        questions.remove(_number(given.words[0]))
    is_run = given.action == "run"
    kept = questions.run(terminal.cancelled) if is_run else questions.listed()
    rows = [
        {"number": number, **asdict(each.probe), **members(each, "conversation_id", "turn_number")}
        for number, each in enumerate(kept, 1)
    ]
    terminal.show({"probes": rows}, *map(_probe_text, count(1), kept))
    if not kept:
        terminal.note("There are no test questions. 'probes add QUERY ID:TURN' adds one.")


def exchange_at(library: Library, words: str) -> Exchange:
    """Return the exchange at `ID:TURN` of the shown path; raise InvalidInput, NotFound."""
    conversation_id, turn = parse_place(words)
    if turn is None:
        raise InvalidInput(f"'{words}' is not a turn", "Write ID:TURN, such as 12:3.")
    return library.exchange_at(conversation_id, turn)


def _result_text(number: int, result: SearchResult) -> str:
    weak = "  weak match" if result.is_weak else ""
    head = (
        f"{number:2}. {result.relevance:4.0%}  {result.conversation_title}  "
        f"[{result.place}]  {'  '.join(details(result))}{weak}"
    )
    texts = (" ".join(each.split()) for each in (result.user_question, result.snippet))
    return "\n    ".join((head, *filter(None, dict.fromkeys(texts))))


def explanation_lines(explained: Explanation) -> Sequence[str]:
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
        held = [each.word for each in explained.words if each.is_present]
        missing = [each.word for each in explained.words if not each.is_present]
        lines.append(
            f"Words found: {', '.join(held) or 'none'}; not: {', '.join(missing) or 'none'}"
        )
    if explained.points:
        lines.append("Points    Best  For")
    for each in explained.points:
        best = "" if each.best_points is None else f"{each.best_points:+6.2f}"
        lines.append(f"{each.points:+6.2f}  {best:>6}  {each.words}")
    return lines


def _number(text: str) -> int:
    number = parse_whole_number(text)
    if number is None:
        raise InvalidInput(f"'{text}' is not a number", "'probes list' shows the numbers.")
    return number


def _probe_text(number: int, place: ProbeDetails) -> str:
    where = f"{place.conversation_id}:{place.turn_number}"
    where = "deleted" if place.conversation_id is None else where
    head = f"{number:2}. {_rank_text(place):24}  {place.probe.question}  [{where}]"
    return f"{head}\n    {place.probe.problem}" if place.probe.problem else head


def _rank_text(place: ProbeDetails) -> str:
    probe = place.probe
    if probe.ran_at is None:
        return "not run yet"
    rank = f"number {probe.rank}" if probe.rank else "not found"
    if probe.before_at is None:
        return rank
    return f"{rank}, was {f'number {probe.before}' if probe.before else 'not found'}"


def _explained(explained: Explanation) -> dict[str, Any]:
    """Return an explanation as a document, with the documented names of its fields."""
    document = asdict(explained)
    document["query"] = document.pop("question")
    del document["user_question"]
    for word in document["words"]:
        word["held"] = word.pop("is_present")
    document["points"] = [
        members(each, "feature", "points", "best_points") for each in explained.points
    ]
    return document


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
