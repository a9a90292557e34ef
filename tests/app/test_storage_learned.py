"""What was learned and recalled is kept, replayed, and gone with the conversation it came from."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from app.domain.changes import (
    ConversationEdited,
    CoreMemoryPut,
    ExtractionDone,
    FactForgotten,
    FactPut,
    FeedbackPut,
    MemoryForgotten,
    MemoryPut,
    PassagesPut,
    PromptKept,
    ToolSummaryPut,
)
from app.domain.facts import BY_PATTERNS, Fact, FactCategory, Memory
from app.domain.ids import PassageId, new_uid
from app.domain.passages import Passage, PassageKind
from app.domain.recalls import (
    KeptPrompt,
    Piece,
    PlanPart,
    PlanPartKind,
    RecalledItem,
    RecallLayer,
    Verdict,
)
from app.domain.turn_text import content_hash
from app.storage.conversations import Conversations
from app.storage.forget import forget
from app.storage.store import Store
from tests.fakes.stored import AT, Told, opened, tables, told

LEARNED = (
    "fact", "fact_version", "extraction", "memory", "tool_summary", "prompt", "prompt_text",
    "recalled", "feedback",
)  # fmt: skip


def fact_of(store: Store, source: Told, text: str) -> tuple[Fact, PassagesPut]:
    """Return a fact learned from a conversation's first turn, and its passage."""
    own = store.ids.passage()
    exchange = source.exchanges[0]
    place = (source.conversation.id, exchange.id)
    fact = Fact(
        own, new_uid(), text, FactCategory.PREFERENCE, "", *place, exchange.message_ids[0], AT,
        BY_PATTERNS, AT,
    )  # fmt: skip
    passage = Passage(own, PassageKind.FACT, own, *place, content_hash(text), AT, 5)
    return fact, PassagesPut((passage,))


def passage_id(source: Told) -> PassageId:
    """Return the passage of a conversation's first turn."""
    put = next(each for each in source.changes if isinstance(each, PassagesPut))
    return put.passages[0].id


def prompt_of(asker: Told, quoted: Told, words: str) -> KeptPrompt:
    """Return a prompt of one conversation that quotes another."""
    source = quoted.conversation.id
    exchange = asker.exchanges[0]
    return KeptPrompt(
        exchange.id, asker.conversation.id, AT, "openai:m", 1000, 2000,
        (
            PlanPart(PlanPartKind.SYSTEM_PROMPT, 3, True, (Piece("Be kind."),)),
            PlanPart(PlanPartKind.RELATED, 9, False, (Piece("Past:"), Piece(words, source))),
        ),
        (
            RecalledItem(
                RecallLayer.HISTORY, PassageKind.TURN, passage_id(quoted), source,
                quoted.exchanges[0].id, None, 0.9, 0.5, 1.0, 9, injected=True,
            ),
        ),
    )  # fmt: skip


def rows(store: Store) -> dict[str, list[Any]]:
    """Return what the tables of this module hold."""
    return {name: held for name, held in tables(store).items() if name in LEARNED}


def full(store: Store) -> tuple[Told, Told]:
    """Fill every table from one conversation; the second quotes it."""
    source, asker = told(store, "I prefer tea"), told(store, "what do I drink?")
    fact, passage = fact_of(store, source, "The user prefers tea.")
    exchange = source.exchanges[0]
    place = (source.conversation.id, exchange.id)
    memory = Memory(store.ids.passage(), new_uid(), "tea at five", AT, *place)
    store.save(
        FactPut(fact),
        passage,
        ExtractionDone(exchange.id, source.conversation.id, "h", BY_PATTERNS, 1, AT),
        MemoryPut(memory),
        CoreMemoryPut("Likes tea.", "user", AT),
        ToolSummaryPut(store.ids.passage(), *place, exchange.message_ids[0], 0, "read", "m", AT),
        PromptKept(prompt_of(asker, source, "I prefer tea")),
        FeedbackPut(passage_id(source), Verdict.UP, AT),
        ConversationEdited(source.conversation.id, recalls=False),
    )
    return source, asker


def test_all_of_it_is_kept_through_a_restart(data_dir: Path) -> None:
    with opened(data_dir) as store:
        source, _ = full(store)
        before = rows(store)
        assert all(before.values())
    with opened(data_dir) as store:
        assert rows(store) == before
        assert not Conversations(store).get(source.conversation.id).recalls


def test_the_same_words_of_a_prompt_are_kept_once(data_dir: Path) -> None:
    with opened(data_dir) as store:
        source, asker = full(store)
        texts = rows(store)["prompt_text"]
        again = replace(prompt_of(asker, source, "I prefer tea"), exchange_id=asker.exchanges[0].id)
        store.save(PromptKept(again))
        assert rows(store)["prompt_text"] == texts


def test_forgetting_a_conversation_takes_all_that_came_from_it(data_dir: Path) -> None:
    with opened(data_dir) as store:
        source, asker = full(store)
        forget(store, [source.conversation.id])
        left = rows(store)
        assert [row for row in left["prompt_text"] if "tea" in str(row)] == []
        (kept,) = left.pop("prompt")
        assert kept[0] == asker.exchanges[0].id
        left.pop("prompt_text")
        assert not any(left.values())


def test_a_late_fact_of_a_forgotten_conversation_is_dropped(data_dir: Path) -> None:
    with opened(data_dir) as store:
        source, asker = told(store, "I prefer tea"), told(store, "what do I drink?")
        fact, passage = fact_of(store, source, "The user prefers tea.")
        prompt = prompt_of(asker, source, "I prefer tea")
        forget(store, [source.conversation.id])
        store.save(FactPut(fact), passage, PromptKept(prompt))
        left = rows(store)
        assert not left["fact"]
        assert not left["recalled"]
        assert "I prefer tea" not in str(left["prompt_text"])


def test_what_another_conversation_said_too_is_from_there_then(data_dir: Path) -> None:
    with opened(data_dir) as store:
        first, second = told(store, "I prefer tea"), told(store, "tea it is")
        fact, passage = fact_of(store, first, "The user prefers tea.")
        exchange = second.exchanges[0]
        said_again = replace(
            fact, conversation_id=second.conversation.id, exchange_id=exchange.id, made_at=AT
        )
        for each in (first, second):
            conversation, begun = each.conversation.id, each.exchanges[0].id
            store.save(ExtractionDone(begun, conversation, "h", BY_PATTERNS, 1, AT))
        store.save(FactPut(said_again), passage)
        store.save(FactPut(replace(fact, made_at=AT + timedelta(seconds=1))))
        forget(store, [first.conversation.id])
        left = rows(store)
        (kept,), (version,) = left["fact"], left["fact_version"]
        assert kept[5] == version[5] == second.conversation.id
        assert [row[0] for row in left["extraction"]] == [exchange.id]


def test_a_fact_or_memory_that_is_forgotten_leaves_with_its_votes(data_dir: Path) -> None:
    with opened(data_dir) as store:
        full(store)
        (fact,), (memory,) = rows(store)["fact"], rows(store)["memory"]
        store.save(
            FactForgotten(fact[0], "hash"),
            MemoryForgotten(memory[0]),
            PassagesPut((), (fact[0], memory[0])),
        )
        left = rows(store)
        assert not left["fact"]
        assert not left["fact_version"]
        assert not left["memory"]


def test_a_passage_that_comes_back_is_no_longer_gone(data_dir: Path) -> None:
    with opened(data_dir) as store:
        source = told(store, "I prefer tea")
        fact, passage = fact_of(store, source, "The user prefers tea.")
        store.save(FactPut(fact), passage)
        store.save(PassagesPut((), (fact.id,)))
        assert [row[0] for row in tables(store)["passage_gone"]] == [fact.id]
        store.save(passage)
        assert tables(store)["passage_gone"] == []
