"""What is known of how an answer came about: sources, citations, verdicts, runs, what was sent."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from app.chat.inspecting import Inspector, StandIn
from app.chat.library import Library
from app.chat.prompt_difference import PartState
from app.domain.changes import PromptKept
from app.domain.errors import NotFound
from app.domain.ids import ExchangeId
from app.domain.passages import PassageKind
from app.domain.recalls import (
    KeptPrompt,
    Piece,
    PlanPart,
    PlanPartKind,
    RecalledItem,
    RecallLayer,
    Verdict,
)
from app.storage.changed import changed_by
from app.storage.feedback import Feedback
from app.storage.passages import Passages
from app.storage.store import Store
from tests.fakes.stored import AT, Told, opened, told


def item(
    store: Store, quoted: Told, layer: RecallLayer = RecallLayer.HISTORY, *, injected: bool = True
) -> RecalledItem:
    """Return the first turn of a conversation as it was recalled."""
    exchange = quoted.exchanges[0].id
    (passage,) = Passages(store).of_source(PassageKind.TURN, exchange)
    return RecalledItem(
        layer, PassageKind.TURN, passage, quoted.conversation.id,
        None if layer is RecallLayer.CONVERSATION else exchange, None, 0.9, 0.5, 1.0, 9,
        injected, "" if injected else "rag_max_tokens is 10",
    )  # fmt: skip


def prompt(asker: Told, turn: int, *items: RecalledItem, notice: str = "") -> KeptPrompt:
    exchange = asker.exchanges[turn]
    parts = (
        PlanPart(PlanPartKind.SYSTEM_PROMPT, 3, True, (Piece("Be kind."),)),
        PlanPart(PlanPartKind.QUESTION, 4, False, message_ids=exchange.message_ids[:1]),
    )
    return KeptPrompt(
        exchange.id, asker.conversation.id, AT, "openai:m", 1000, 2000, parts, items, notice
    )


def test_what_was_injected_comes_with_its_place_and_whether_it_is_cited(data_dir: Path) -> None:
    with opened(data_dir) as store:
        tea, cake = told(store, "I like tea", title="Drinks"), told(store, "cake", title="Cake")
        answer = f"As [you said](commonplace://{tea.conversation.id}/0)."
        asker = told(store, ("what do I like?", answer), "and now?")
        left_out = item(store, cake, injected=False)
        store.save(PromptKept(prompt(asker, 0, item(store, tea), left_out, notice="slow")))
        found = Inspector(store).contributions(each.id for each in asker.exchanges)
        assert list(found) == [asker.exchanges[0].id]
        contribution = found[asker.exchanges[0].id]
        assert contribution.notice == "slow"
        (source,) = contribution.sources
        assert source.cited
        assert source.place.title == "Drinks"
        assert source.place.said_at == tea.exchanges[0].started_at


def test_a_conversation_found_by_a_turn_leads_to_that_turn(data_dir: Path) -> None:
    with opened(data_dir) as store:
        tea, asker = told(store, "I like tea"), told(store, "what do I like?")
        talk = item(store, tea, RecallLayer.CONVERSATION)
        store.save(PromptKept(prompt(asker, 0, talk)))
        (source,) = Inspector(store).inspect(asker.exchanges[0].id).sources
        assert source.place.exchange_id == tea.exchanges[0].id
        assert source.place.turn_number == 0


def test_an_inspection_tells_of_all_runs_and_of_the_answer_before(data_dir: Path) -> None:
    with opened(data_dir) as store:
        tea, asker = told(store, "I like tea"), told(store, "hello", "what do I like?")
        last = prompt(asker, 1, item(store, tea), item(store, tea, injected=False))
        older = replace(last, sent_at=AT - timedelta(hours=1), items=())
        store.save(PromptKept(prompt(asker, 0)), PromptKept(older), PromptKept(last))
        inspector = Inspector(store)
        newest = inspector.inspect(asker.exchanges[1].id)
        assert newest.question == "what do I like?"
        assert newest.runs == (last.sent_at, older.sent_at)
        assert [(each.rank, each.place.item.injected) for each in newest.sources] == [
            (1, True),
            (2, False),
        ]
        assert newest.sent is not None
        assert newest.sent.parts[-1].text == "user: what do I like?"
        assert newest.compared is not None
        assert [each.state for each in newest.compared] == [PartState.SAME, PartState.CHANGED]
        assert inspector.inspect(asker.exchanges[1].id, 7).prompt == older
        assert inspector.inspect(asker.exchanges[0].id).compared is None


def test_an_answer_without_a_prompt_says_so(data_dir: Path) -> None:
    with opened(data_dir) as store:
        asker = told(store, "hello")
        bare = Inspector(store).inspect(asker.exchanges[0].id)
        assert (bare.prompt, bare.sent, bare.runs) == (None, None, ())
        with pytest.raises(NotFound):
            Inspector(store).inspect(ExchangeId(99))


def test_a_summary_stands_for_what_was_not_sent(data_dir: Path) -> None:
    with opened(data_dir) as store:
        asker = told(store, "hello", "what do I like?", "and now?")
        kept = prompt(asker, 2)
        summary = PlanPart(PlanPartKind.SUMMARY, 3, True, (Piece("They said hello."),))
        window = PlanPart(PlanPartKind.WINDOW, 3, True, message_ids=asker.exchanges[1].message_ids)
        with_summary = replace(kept, parts=(summary, window, *kept.parts))
        store.save(PromptKept(prompt(asker, 1)), PromptKept(with_summary))
        inspector = Inspector(store)
        assert inspector.stand_in(asker.exchanges[0].id) is None
        assert inspector.stand_in(asker.exchanges[1].id) is None
        found = inspector.stand_in(asker.exchanges[2].id)
        assert found == StandIn("They said hello.", asker.exchanges[1].message_ids[0])


def test_a_verdict_on_a_turn_is_kept_and_taken_back(data_dir: Path) -> None:
    with opened(data_dir) as store:
        tea, asker = told(store, "I like tea"), told(store, "what do I like?")
        recalled = item(store, tea)
        store.save(PromptKept(prompt(asker, 0, recalled)))
        inspector, asked = Inspector(store), asker.exchanges[0].id
        (source,) = inspector.inspect(asked).sources
        inspector.judge(source.place, Verdict.NEVER)
        assert Feedback(store).verdicts() == {recalled.passage_id: Verdict.NEVER}
        assert inspector.inspect(asked).sources[0].verdict is Verdict.NEVER
        inspector.judge(source.place, None)
        assert Feedback(store).verdicts() == {}


def test_a_kept_prompt_changes_its_exchange(data_dir: Path) -> None:
    with opened(data_dir) as store:
        asker = told(store, "what do I like?")
        changed = changed_by([PromptKept(prompt(asker, 0))])
        assert changed.exchanges == {asker.exchanges[0].id}


def test_memory_is_left_out_of_a_conversation_and_let_in_again(data_dir: Path) -> None:
    with opened(data_dir) as store:
        library, talk = Library(store), told(store, "hello").conversation.id
        library.use_memory(talk, False)
        assert not library.open(talk).conversation.recalls
        library.use_memory(talk, True)
        assert library.open(talk).conversation.recalls
