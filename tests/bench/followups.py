"""Follow-ups: whether memory is in the prompt for those that need it, and nothing for the others; prints JSON.

    python -m tests.bench.followups [--words-only] [--data FILE]

Twenty conversations of `tests/data/followups.json`, in six languages, each with two earlier turns in memory. A
follow-up comes after the turns of `now`, whose own recall counts as standing in the request. `needs` are
follow-ups with the number of the earlier turn that answers them, `alone` those that no memory answers. Figures are
shares (0-1), each also with the question searched alone; `found_by_itself` is what the follow-up would find had
nothing been recalled before it. With `--data`, the questions of an evaluation set that have a history are ranked
instead: alone, with their conversation, and in the given stand-alone wording (`rewrite`), which is the ceiling. `differs` are
those that have one in other words.
"""

import json
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.bootstrap import RunMode, Services, build
from app.domain.conversations import Role, Text
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.recall import RecalledItem, RecallSettings, SegmentContext
from app.domain.transfer import ImportedConversation, ImportedMessage
from app.domain.workers import WorkerName
from app.memory.context.items import SelectionContext
from app.memory.context.selection import select_recalled
from app.memory.context.token_budget import RecallRoom
from app.memory.recall.ranking import prepare, ranked_in
from app.memory.search.scope import SearchScope
from app.system.paths import DataPaths
from app.transfer.importer import ConversationImporter
from tests.bench.evaluation import Evaluation, Question, fill, read_evaluation, scores
from tests.bench.shared.measuring import Figures, options, print_json, wait_for

_DATA = Path(__file__).parents[1] / "data" / "followups.json"
_SOURCE = "followups"


def main() -> None:
    given = options(__doc__, words_only=False, data=Path)
    if given.data:
        print_json(_of_set(read_evaluation(given.data), words_only=given.words_only))
        return
    cases = json.loads(_DATA.read_text(encoding="utf-8"))["conversations"]
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(build(DataPaths(Path(folder)), RunMode.COMMAND_LINE)) as services,
    ):
        turns = _fill(services, cases, words_only=given.words_only)
        print_json(
            {
                name: _figures(services, cases, turns, in_context=in_context)
                for name, in_context in (("alone", False), ("with_conversation", True))
            }
        )


def _of_set(evaluation: Evaluation, *, words_only: bool) -> Figures:
    found: dict[str, dict[str, list[dict[str, float]]]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(build(DataPaths(Path(folder)), RunMode.COMMAND_LINE)) as services,
    ):
        (stored,), _ = fill(services, [evaluation], words_only=words_only)
        for talk, question in evaluation.asked:
            evidence = stored.talks[talk.id].evidence(question)
            if not question.history or not evidence:
                continue
            groups = ["all"]
            if question.rewrite and question.rewrite.casefold() != question.text.casefold():
                groups.append("differs")
            for name, text, recent in (
                ("alone", question.text, ()),
                ("with_conversation", question.text, _recent(question)),
                ("rewrite", question.rewrite or question.text, ()),
            ):
                figures = scores(_ranking(services, text, recent), evidence)
                for group in groups:
                    found.setdefault(group, {}).setdefault(name, []).append(figures)
    return {
        group: {name: {"questions": len(own), **_means(own)} for name, own in of_name.items()}
        for group, of_name in found.items()
    }


def _means(own: list[dict[str, float]]) -> dict[str, float]:
    return {key: round(sum(each[key] for each in own) / len(own), 3) for key in own[0]}


def _recent(question: Question) -> tuple[str, ...]:
    return tuple(each.text for each in question.history if each.role is Role.USER)


def _ranking(services: Services, question: str, recent: tuple[str, ...]) -> list[MessageId]:
    """Return the messages that recall finds for a question, best first."""
    search = services.search
    prepared = prepare(search, question, recent)
    scope = SearchScope(None, search.pools().excluded)
    ranked = ranked_in(search, prepared, scope) if prepared else []
    messages = services.passages.messages_of([each.part_id for each in ranked])
    return list(
        dict.fromkeys(messages[each.part_id] for each in ranked if each.part_id in messages)
    )


def _fill(
    services: Services, cases: list[dict[str, Any]], *, words_only: bool
) -> dict[str, list[ExchangeId]]:
    """Store the earlier turns, each in a conversation of its own, and return their exchanges by title."""
    conversations = []
    for case in cases:
        for number, (user, assistant) in enumerate(case["memory"]):
            ids = f"{case['title']}/{number}/q", f"{case['title']}/{number}/a"
            messages = (
                ImportedMessage(ids[0], None, Role.USER, (Text(user),)),
                ImportedMessage(ids[1], ids[0], Role.ASSISTANT, (Text(assistant),)),
            )
            conversations.append(
                ImportedConversation(_SOURCE, ids[0], case["title"], messages, visible_leaf=ids[1])
            )
    for pending in ConversationImporter(services.store).store(conversations):
        pending.wait()
    services.index_sync.catch_up()
    if not words_only:
        services.workers.run_until_idle([WorkerName.EMBEDDING_PIPELINE])
        services.vector_search.start()
        wait_for(lambda: services.search.search("ready").by_meaning)
    rows = services.store.rows(
        "SELECT text, exchange_id FROM message JOIN exchange_message ON message_id = message.id"
    )
    exchange_of = {text: ExchangeId(exchange) for text, exchange in rows}
    return {case["title"]: [exchange_of[user] for user, _ in case["memory"]] for case in cases}


def _figures(
    services: Services, cases: list[dict[str, Any]], turns: dict[str, list[ExchangeId]], *,
    in_context: bool,
) -> Figures:  # fmt: skip
    found: list[bool] = []
    by_itself: list[bool] = []
    empty: list[bool] = []
    missed: list[str] = []
    for case in cases:
        recent: list[str] = []
        sent: list[RecalledItem] = []
        for user, _ in case["now"]:
            sent += _recalled(services, user, _segment(recent, sent))
            recent.append(user)
        segment = _segment(recent if in_context else [], sent)
        for question, answer in case["needs"]:
            items = [*sent, *_recalled(services, question, segment)]
            found.append(turns[case["title"]][answer] in {each.exchange_id for each in items})
            missed += [] if found[-1] else [question]
            own = _recalled(services, question, replace(segment, quoted=frozenset()))
            by_itself.append(turns[case["title"]][answer] in {each.exchange_id for each in own})
        for question in case["alone"]:
            empty.append(not _recalled(services, question, segment))
            missed += [] if empty[-1] else [question]
    return {
        "follow_ups": len(found) + len(empty),
        "evidence_in_prompt": round(sum(found) / len(found), 3),
        "found_by_itself": round(sum(by_itself) / len(by_itself), 3),
        "nothing_injected": round(sum(empty) / len(empty), 3),
        "missed": missed,
    }


def _segment(recent: list[str], sent: list[RecalledItem]) -> SegmentContext:
    quoted = frozenset(PassageId(each.passage_id) for each in sent)
    return SegmentContext(quoted=quoted, recent=tuple(recent))


def _recalled(services: Services, question: str, segment: SegmentContext) -> list[RecalledItem]:
    """Return the items that a prompt would quote or hint at."""
    settings = RecallSettings.read(services.settings.get)
    found = services.recall.retrieve(question, None, segment, settings)
    context = SelectionContext(ConversationId(0), question, frozenset())
    selection = select_recalled(found, settings, context, RecallRoom(settings.rag_max_tokens, 0, 0))
    return [each for each in selection.items if each.injected]


if __name__ == "__main__":
    main()
