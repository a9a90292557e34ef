"""Inspection of answers: sources, citations, verdicts, runs, and how two prompts differ."""

from dataclasses import replace
from datetime import timedelta

import pytest

from app.chat.inspector import InspectionService, SentSummary
from app.chat.sent_prompt import LineMark, PartState, SentPart, SentPrompt, difference
from app.domain.changes import PromptStored
from app.domain.errors import NotFound
from app.domain.ids import ExchangeId
from app.domain.passages import PassageKind
from app.domain.recall import (
    PlanPart,
    PlanPartKind,
    PromptPiece,
    RecalledItem,
    RecallLayer,
    StoredPrompt,
    Verdict,
)
from app.storage.engine.store import Store
from app.storage.tables.passages.queries import Passages
from app.storage.tables.prompts import Feedback
from tests.fakes.stored import AT, ConversationRecord, add_conversation


def item(
    store: Store,
    quoted: ConversationRecord,
    layer: RecallLayer = RecallLayer.HISTORY,
    *,
    injected: bool = True,
) -> RecalledItem:
    """Return the first turn of a conversation as it was recalled."""
    exchange = quoted.exchanges[0].id
    (passage,) = Passages(store).of_source(PassageKind.TURN, exchange)
    return RecalledItem(
        layer, PassageKind.TURN, passage, quoted.conversation.id,
        None if layer is RecallLayer.CONVERSATION else exchange, None, 0.9, 0.5, 1.0, 9,
        injected, "" if injected else "rag_max_tokens is 10",
    )  # fmt: skip


def prompt(
    asker: ConversationRecord, turn: int, *items: RecalledItem, notice: str = ""
) -> StoredPrompt:
    exchange = asker.exchanges[turn]
    parts = (
        PlanPart(PlanPartKind.SYSTEM_PROMPT, 3, True, (PromptPiece("Be kind."),)),
        PlanPart(PlanPartKind.QUESTION, 4, False, message_ids=exchange.message_ids[:1]),
    )
    return StoredPrompt(
        exchange.id, asker.conversation.id, AT, "openai:m", 1000, 2000, parts, items, notice
    )


def test_contributions_are_what_was_injected(store: Store) -> None:
    tea, cake = (
        add_conversation(store, "I like tea", title="Drinks"),
        add_conversation(store, "cake", title="Cake"),
    )
    answer = f"As [you said](commonplace://{tea.conversation.id}/0)."
    asker = add_conversation(store, ("what do I like?", answer), "and now?")
    first = asker.exchanges[0].id
    stored = prompt(asker, 0, item(store, tea), item(store, cake, injected=False), notice="slow")
    store.save(PromptStored(stored))
    assert store.save(PromptStored(stored)).exchanges == {first}
    found = InspectionService(store).contributions(each.id for each in asker.exchanges)
    assert (list(found), found[first].notice) == ([first], "slow")
    (source,) = found[first].sources
    assert (source.cited, source.place.title) == (True, "Drinks")
    assert source.place.said_at == tea.exchanges[0].started_at
    store.save(PromptStored(prompt(asker, 1, item(store, tea, RecallLayer.CONVERSATION))))
    (source,) = InspectionService(store).inspect(asker.exchanges[1].id).sources
    assert (source.place.exchange_id, source.place.turn_number) == (tea.exchanges[0].id, 0)


def test_an_answer_without_a_prompt_has_the_links_it_quotes_by(store: Store) -> None:
    answer = (
        "> An M8.\n\n[Bi\\*ke, 3 May](commonplace://7/2?exchange=9) · more\n\n[again](commonplace://7/2?exchange=9)"
        "\n\n[a.md · document 4](commonplace://document/4) and [a page](https://example.org)"
    )
    asker = add_conversation(store, ("see [x](commonplace://1/1)", answer))
    found = InspectionService(store).inspect(asker.exchanges[0].id)
    assert found.links == (
        ("Bi*ke, 3 May", "commonplace://7/2?exchange=9"),
        ("a.md · document 4", "commonplace://document/4"),
    )


def test_an_inspection_has_all_runs_and_compares_with_the_turn_before(store: Store) -> None:
    tea, asker = (
        add_conversation(store, "I like tea"),
        add_conversation(store, "hello", "what do I like?", "bare"),
    )
    last = prompt(asker, 1, item(store, tea), item(store, tea, injected=False))
    older = replace(last, sent_at=AT - timedelta(hours=1), items=())
    store.save(PromptStored(prompt(asker, 0)), PromptStored(older), PromptStored(last))
    inspector = InspectionService(store)
    newest = inspector.inspect(asker.exchanges[1].id)
    assert newest.question == "what do I like?"
    assert newest.runs == (last.sent_at, older.sent_at)
    ranks = [(each.rank, each.place.item.injected) for each in newest.sources]
    assert ranks == [(1, True), (2, False)]
    assert newest.sent.parts[-1].text == "user: what do I like?"
    assert newest.compared is not None
    assert [each.state for each in newest.compared] == [PartState.SAME, PartState.CHANGED]
    assert inspector.inspect(asker.exchanges[1].id, 7).prompt == older
    assert inspector.inspect(asker.exchanges[0].id).compared is None
    bare = inspector.inspect(asker.exchanges[2].id)
    assert (bare.prompt, bare.sent, bare.runs) == (None, None, ())
    with pytest.raises(NotFound):
        inspector.inspect(ExchangeId(99))


def test_the_summary_that_was_sent_covers_what_precedes_the_window(store: Store) -> None:
    asker = add_conversation(store, "hello", "what do I like?", "and now?")
    plain = prompt(asker, 2)
    summary = PlanPart(PlanPartKind.COMPACTION, 3, True, (PromptPiece("They said hello."),))
    window = PlanPart(PlanPartKind.HISTORY, 3, True, message_ids=asker.exchanges[1].message_ids)
    with_summary = replace(plain, parts=(summary, window, *plain.parts))
    store.save(PromptStored(prompt(asker, 1)), PromptStored(with_summary))
    found = [InspectionService(store).sent_summary(each.id) for each in asker.exchanges]
    assert found == [None, None, SentSummary("They said hello.", asker.exchanges[1].message_ids[0])]


def test_a_verdict_on_a_turn_is_stored_and_deleted(store: Store) -> None:
    tea, asker = add_conversation(store, "I like tea"), add_conversation(store, "what do I like?")
    recalled = item(store, tea)
    store.save(PromptStored(prompt(asker, 0, recalled)))
    inspector, exchange = InspectionService(store), asker.exchanges[0].id
    (source,) = inspector.inspect(exchange).sources
    inspector.vote(source.place, Verdict.NEVER)
    assert Feedback(store).verdicts() == {recalled.passage_id: Verdict.NEVER}
    assert inspector.inspect(exchange).sources[0].verdict is Verdict.NEVER
    inspector.vote(source.place, None)
    assert Feedback(store).verdicts() == {}


# -- differences between prompts
def sent(**texts: str) -> SentPrompt:
    parts = tuple(
        SentPart(PlanPartKind(kind), text, 1, 0.5, True, 0) for kind, text in texts.items()
    )
    return SentPrompt(parts, "", "", "", len(parts), 1.0)


def test_parts_are_same_removed_added_or_changed() -> None:
    before = sent(system_prompt="Be kind.", facts="tea", question="a")
    now = sent(system_prompt="Be kind.", related="milk", question="b")
    assert [(each.kind.value, each.state, each.lines) for each in difference(before, now)] == [
        ("system_prompt", PartState.SAME, ()),
        ("facts", PartState.REMOVED, ((LineMark.REMOVED, "tea"),)),
        ("related", PartState.ADDED, ((LineMark.ADDED, "milk"),)),
        ("question", PartState.CHANGED, (
            (LineMark.SKIPPED, ""), (LineMark.REMOVED, "a"), (LineMark.ADDED, "b"),
        )),
    ]  # fmt: skip


def test_a_changed_part_shows_its_lines_with_their_neighbors() -> None:
    lines = [f"line {number}" for number in range(20)]
    now = "\n".join([*lines[:10], "+ new", *lines[11:], "-- last"])
    (part,) = difference(sent(window="\n".join(lines)), sent(window=now))
    assert part.lines == (
        (LineMark.SKIPPED, ""), (LineMark.SAME, "line 9"), (LineMark.REMOVED, "line 10"),
        (LineMark.ADDED, "+ new"), (LineMark.SAME, "line 11"), (LineMark.SKIPPED, ""),
        (LineMark.SAME, "line 19"), (LineMark.ADDED, "-- last"),
    )  # fmt: skip
    (part,) = difference(sent(window="a\n" * 4000), sent(window="b\n" * 4000))
    marks = [mark for mark, _ in part.lines]  # too long to compare
    assert marks == [LineMark.REMOVED] * 4000 + [LineMark.ADDED] * 4000
