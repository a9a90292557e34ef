"""Prompts as they were sent: filled in again, also after something they quoted was forgotten."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.changes import FactForgotten, FactPut, MemoryForgotten, MemoryPut, PromptKept
from app.domain.facts import BY_PATTERNS, Fact, FactCategory, Memory
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.passages import PassageKind
from app.domain.recalls import (
    KeptPrompt,
    Piece,
    PlanPart,
    PlanPartKind,
    RecalledItem,
    RecallLayer,
)
from app.memory.memories import MemoryService
from app.memory.recalled_text import of_fact
from app.storage.forget import forget
from app.storage.passages import Passages
from app.storage.prompts import FORGOTTEN, Prompts
from app.storage.runs import as_runs, from_runs
from app.storage.store import Store
from tests.fakes.found import fact, match
from tests.fakes.stored import AT, Told, opened, tables, told


def prompt_of(store: Store, asker: Told, quoted: Told) -> KeptPrompt:
    source, exchange = quoted.conversation.id, asker.exchanges[-1]
    (passage,) = Passages(store).of_source(PassageKind.TURN, quoted.exchanges[0].id)
    return KeptPrompt(
        exchange.id, asker.conversation.id, AT, "openai:m", 1000, 2000,
        (
            PlanPart(PlanPartKind.SYSTEM_PROMPT, 3, True, (Piece("Be kind."),)),
            PlanPart(
                PlanPartKind.RELATED, 9, False, (Piece("Past: "), Piece("I like tea", source))
            ),
            PlanPart(
                PlanPartKind.WINDOW, 9, True,
                message_ids=tuple(each.id for each in asker.messages[:-1]),
            ),
        ),
        (
            RecalledItem(
                RecallLayer.HISTORY, PassageKind.TURN, passage, source, quoted.exchanges[0].id,
                None, 0.9, 0.5, 1.0, 9, injected=True,
            ),
        ),
        "slow",
    )  # fmt: skip


def test_a_prompt_comes_back_as_it_was_sent(data_dir: Path) -> None:
    with opened(data_dir) as store:
        quoted, asker = told(store, "I like tea"), told(store, "hello", "what do I like?")
        sent = prompt_of(store, asker, quoted)
        again = replace(sent, sent_at=AT + timedelta(seconds=1), notice="")
        store.save(PromptKept(sent), PromptKept(again))
        prompts = Prompts(store)
        assert prompts.of(sent.exchange_id) == again
        assert prompts.history(sent.exchange_id) == (again, sent)
        assert prompts.last_window([sent.exchange_id]) == (asker.messages[0].id, 1000)


def test_nothing_is_known_of_what_was_imported(data_dir: Path) -> None:
    with opened(data_dir) as store:
        prompts = Prompts(store)
        assert prompts.of(ExchangeId(1)) is None
        assert prompts.places(ExchangeId(1)) == ()
        assert prompts.last_window([ExchangeId(1)]) == (None, 0)


def test_chips_name_the_turn_and_its_question(data_dir: Path) -> None:
    with opened(data_dir) as store:
        quoted = told(store, "I like tea", "and milk", title="Drinks")
        asker = told(store, "what do I like?")
        store.save(PromptKept(prompt_of(store, asker, quoted)))
        (place,) = Prompts(store).places(asker.exchanges[0].id)
        assert (place.title, place.turn_number, place.text) == ("Drinks", 0, "I like tea")
        assert place.item.injected


def test_what_was_forgotten_says_so(data_dir: Path) -> None:
    with opened(data_dir) as store:
        quoted, asker = told(store, "I like tea"), told(store, "what do I like?")
        store.save(PromptKept(prompt_of(store, asker, quoted)))
        forget(store, [quoted.conversation.id])
        kept = Prompts(store).of(asker.exchanges[0].id)
        assert kept is not None
        assert [part.text for part in kept.parts] == ["Be kind.", f"Past: {FORGOTTEN}", ""]
        assert kept.items == ()
        forget(store, [ConversationId(asker.conversation.id)])
        assert Prompts(store).of(asker.exchanges[0].id) is None


@given(st.lists(st.integers(1, 60), unique=True))
def test_runs_say_the_same_as_the_ids(numbers: list[int]) -> None:
    for ids in (list(map(MessageId, numbers)), [MessageId(each) for each in sorted(numbers)]):
        assert list(from_runs(as_runs(ids))) == ids


def test_a_long_window_is_two_numbers() -> None:
    assert as_runs([MessageId(each) for each in range(7, 1007)]) == (7, 1000)


@pytest.mark.parametrize("words", ["I like tea.", "first line\nsecond (line)"])
def test_a_memory_that_is_forgotten_leaves_the_prompts_that_quoted_it(
    data_dir: Path, words: str
) -> None:
    with opened(data_dir) as store:
        asker = told(store, "what do I like?")
        memories = MemoryService(store)
        memory = memories.save(words)
        found = replace(
            fact(memory.id, words), conversation_id=None, exchange_id=None,
            match=match(memory.id, kind=PassageKind.MEMORY),
        )  # fmt: skip
        others = fact(memory.id + 1, words + " And milk."), fact(memory.id + 2, "like")
        pieces = tuple(of_fact(each, None) for each in (found, *others))
        part = PlanPart(PlanPartKind.FACTS, 9, False, pieces)
        exchange = asker.exchanges[0].id
        prompt = KeptPrompt(exchange, asker.conversation.id, AT, "m", 1, 1, (part,), ())
        store.save(PromptKept(prompt))
        memories.forget(memory.id)
        kept = Prompts(store).of(exchange)
        assert kept is not None
        assert [piece.text == FORGOTTEN for piece in kept.parts[0].pieces] == [True, False, False]


def test_what_was_saved_quoted_and_forgotten_in_one_breath_is_gone(data_dir: Path) -> None:
    with opened(data_dir) as store:
        asker = told(store, "what do I like?")
        memory = Memory(store.ids.passage(), "u", "I like tea.", AT)
        part = PlanPart(PlanPartKind.FACTS, 9, False, (Piece("- memory 1\n  > I like tea.\n"),))
        exchange = asker.exchanges[0].id
        prompt = KeptPrompt(exchange, asker.conversation.id, AT, "m", 1, 1, (part,), ())
        store.save(MemoryPut(memory), PromptKept(prompt), MemoryForgotten(memory.id))
        assert "I like tea" not in str(tables(store)["prompt_text"])


def test_a_fact_that_is_forgotten_leaves_the_prompts_in_all_its_wordings(data_dir: Path) -> None:
    with opened(data_dir) as store:
        source, asker = told(store, "I like tea"), told(store, "what do I like?")
        own = store.ids.passage()
        place = (source.conversation.id, source.exchanges[0].id, source.messages[0].id)
        first = Fact(
            own, "u", "Likes tea.", FactCategory.PREFERENCE, "", *place, AT, BY_PATTERNS, AT
        )
        later = replace(first, text="Loves tea.", made_at=AT + timedelta(seconds=1))
        store.save(FactPut(first), FactPut(later))
        pieces = tuple(of_fact(fact(own, text), 0) for text in ("Likes tea.", "Loves tea.", "Tea."))
        pieces = tuple(replace(each, conversation_id=source.conversation.id) for each in pieces)
        part = PlanPart(PlanPartKind.FACTS, 9, False, pieces)
        exchange = asker.exchanges[0].id
        prompt = KeptPrompt(exchange, asker.conversation.id, AT, "m", 1, 1, (part,), ())
        store.save(PromptKept(prompt))
        store.save(FactForgotten(own, "hash"))
        kept = Prompts(store).of(exchange)
        assert kept is not None
        assert [piece.text == FORGOTTEN for piece in kept.parts[0].pieces] == [True, True, False]
