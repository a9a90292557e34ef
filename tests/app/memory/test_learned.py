"""Facts, memories and prompts: stored, replayed, versioned, and erased with their conversation."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.changes import (
    ConversationEdited,
    CoreMemoryPut,
    ExtractionDone,
    FactPut,
    FeedbackPut,
    MemoryPut,
    PassagesPut,
    PromptStored,
    ToolSummaryPut,
)
from app.domain.conversations import FORGOTTEN, SAMPLE_SOURCE
from app.domain.deletions import FactForgotten, MemoryForgotten
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import MessageId, PassageId, new_uid
from app.domain.passages import Passage, PassageKind
from app.domain.recall import (
    PlanPart,
    PlanPartKind,
    PromptPiece,
    RecalledItem,
    RecallLayer,
    StoredPrompt,
    Verdict,
)
from app.domain.records.facts import BY_PATTERNS, Fact, FactCategory, Memory
from app.domain.text import content_hash
from app.memory.context.text import fact_piece
from app.memory.core_memory import LIMIT_CHARS, ArchivalMemoryService, CoreMemoryService
from app.storage.deletion.forget import forget
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.memories import CoreMemory
from app.storage.tables.passages.queries import Passages
from app.storage.tables.prompts import Prompts, as_runs, from_runs
from app.storage.tables.settings import Settings
from tests.fakes import found
from tests.fakes.stored import AT, ConversationRecord, add_conversation, opened, tables

LEARNED = (
    "fact", "fact_version", "extraction", "memory", "tool_summary", "prompt", "prompt_text",
    "recalled", "feedback",
)  # fmt: skip
SECOND = timedelta(seconds=1)


def fact_of(store: Store, source: ConversationRecord, text: str) -> tuple[Fact, PassagesPut]:
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


def passage_id(source: ConversationRecord) -> PassageId:
    """Return the passage of a conversation's first turn."""
    return next(each for each in source.changes if isinstance(each, PassagesPut)).passages[0].id


def prompt_of(asker: ConversationRecord, quoted: ConversationRecord) -> StoredPrompt:
    """Return a prompt of a conversation's last turn that quotes another conversation."""
    source, exchange = quoted.conversation.id, asker.exchanges[-1]
    quotes = (PromptPiece("Past: "), PromptPiece("I like tea", source))
    window = tuple(each.id for each in asker.messages[:-1])
    item = RecalledItem(
        RecallLayer.HISTORY, PassageKind.TURN, passage_id(quoted), source, quoted.exchanges[0].id,
        None, 0.9, 0.5, 1.0, 9, injected=True,
    )  # fmt: skip
    parts = (
        PlanPart(PlanPartKind.SYSTEM_PROMPT, 3, True, (PromptPiece("Be kind."),)),
        PlanPart(PlanPartKind.RELATED, 9, False, quotes),
        PlanPart(PlanPartKind.HISTORY, 9, True, message_ids=window),
    )
    here = asker.conversation.id
    return StoredPrompt(exchange.id, here, AT, "openai:m", 1000, 2000, parts, (item,), "slow")


def prompt_with(asker: ConversationRecord, *pieces: PromptPiece) -> StoredPrompt:
    """Return a prompt that holds only these facts."""
    part = PlanPart(PlanPartKind.FACTS, 9, False, pieces)
    exchange = asker.exchanges[0]
    return StoredPrompt(exchange.id, exchange.conversation_id, AT, "m", 1, 1, (part,), ())


def redacted(store: Store, asker: ConversationRecord) -> list[bool]:
    """Return which pieces of the stored prompt have a placeholder."""
    kept = Prompts(store).of(asker.exchanges[0].id)
    return [piece.text == FORGOTTEN for piece in kept.parts[0].pieces]


def rows(store: Store) -> dict[str, list[Any]]:
    """Return what the tables of this module hold."""
    return {name: held for name, held in tables(store).items() if name in LEARNED}


def full(store: Store) -> tuple[ConversationRecord, ConversationRecord]:
    """Fill every table from one conversation; the second quotes it."""
    source = add_conversation(store, "I like tea", "and milk", title="Drinks")
    asker = add_conversation(store, "hello", "what do I drink?")
    fact, passage = fact_of(store, source, "The user prefers tea.")
    exchange = source.exchanges[0]
    place = (source.conversation.id, exchange.id)
    memory = Memory(store.ids.passage(), new_uid(), "tea at five", AT, *place)
    store.save(
        FactPut(fact), passage,
        ExtractionDone(exchange.id, source.conversation.id, "h", BY_PATTERNS, 1, AT),
        MemoryPut(memory), CoreMemoryPut("Likes tea.", "user", AT),
        ToolSummaryPut(store.ids.passage(), *place, exchange.message_ids[0], 0, "read", "m", AT),
        PromptStored(prompt_of(asker, source)), FeedbackPut(passage_id(source), Verdict.UP, AT),
        ConversationEdited(source.conversation.id, recalls=False),
    )  # fmt: skip
    return source, asker


def test_all_records_survive_a_restart_and_forgetting_erases_them(data_dir: Path) -> None:
    with opened(data_dir) as store:
        source, asker = full(store)
        before = rows(store)
        assert all(before.values())
        store.save(PromptStored(prompt_of(asker, source)))
        assert rows(store)["prompt_text"] == before["prompt_text"], "equal texts are stored once"
    with opened(data_dir) as store:
        assert rows(store) == before
        assert not Conversations(store).get(source.conversation.id).recalls
        forget(store, [source.conversation.id])
        left = rows(store)
        assert [row for row in left.pop("prompt_text") if "tea" in str(row)] == []
        (kept,) = left.pop("prompt")
        assert kept[0] == asker.exchanges[-1].id
        assert not any(left.values())


def test_a_late_fact_of_a_forgotten_conversation_is_dropped(store: Store) -> None:
    source, asker = add_conversation(store, "I like tea"), add_conversation(store, "what?")
    fact, passage = fact_of(store, source, "The user prefers tea.")
    prompt = prompt_of(asker, source)
    forget(store, [source.conversation.id])
    store.save(FactPut(fact), passage, PromptStored(prompt))
    left = rows(store)
    assert not left["fact"]
    assert not left["recalled"]
    assert "I like tea" not in str(left["prompt_text"])


def test_a_fact_that_another_conversation_contains_too_moves_there(store: Store) -> None:
    first, second = (add_conversation(store, text) for text in ("I prefer tea", "tea it is"))
    fact, passage = fact_of(store, first, "The user prefers tea.")
    exchange = second.exchanges[0]
    for each in (first, second):
        here, begun = each.conversation.id, each.exchanges[0].id
        store.save(ExtractionDone(begun, here, "h", BY_PATTERNS, 1, AT))
    there = replace(fact, conversation_id=second.conversation.id, exchange_id=exchange.id)
    store.save(FactPut(there), passage)
    store.save(FactPut(replace(fact, made_at=AT + SECOND)))
    forget(store, [first.conversation.id])
    left = rows(store)
    (kept,), (version,) = left["fact"], left["fact_version"]
    assert kept[5] == version[5] == second.conversation.id
    assert [row[0] for row in left["extraction"]] == [exchange.id]


def test_a_forgotten_fact_or_memory_is_erased_with_its_verdicts(store: Store) -> None:
    full(store)
    (fact,), (memory,) = rows(store)["fact"], rows(store)["memory"]
    own = (fact[0], memory[0])
    store.save(*(FeedbackPut(each, Verdict.DOWN, AT) for each in own))
    assert len(rows(store)["feedback"]) == 3
    store.save(FactForgotten(fact[0], "hash"), MemoryForgotten(memory[0]), PassagesPut((), own))
    left = rows(store)
    assert not [*left["fact"], *left["fact_version"], *left["memory"]]
    assert len(left["feedback"]) == 1


def test_a_passage_that_comes_back_is_no_longer_gone(store: Store) -> None:
    fact, passage = fact_of(store, add_conversation(store, "I prefer tea"), "Prefers tea.")
    store.save(FactPut(fact), passage)
    store.save(PassagesPut((), (fact.id,)))
    assert [row[0] for row in tables(store)["passage_gone"]] == [fact.id]
    store.save(passage)
    assert tables(store)["passage_gone"] == []


# -- prompts
@given(st.lists(st.integers(1, 60), unique=True))
def test_runs_are_equivalent_to_ids(numbers: list[int]) -> None:
    for ids in (list(map(MessageId, numbers)), [MessageId(each) for each in sorted(numbers)]):
        assert list(from_runs(as_runs(ids))) == ids
    assert as_runs([MessageId(each) for each in range(7, 1007)]) == (7, 1000)


@pytest.mark.parametrize("words", ["I like tea.", "first line\nsecond (line)"])
def test_a_forgotten_memory_is_redacted_in_prompts(store: Store, words: str) -> None:
    asker, memories = add_conversation(store, "what do I like?"), ArchivalMemoryService(store)
    memory = memories.save(words)
    quoted = replace(
        found.fact(memory.id, words), conversation_id=None, exchange_id=None,
        match=found.match(memory.id, kind=PassageKind.MEMORY),
    )  # fmt: skip
    others = found.fact(memory.id + 1, words + " And milk."), found.fact(memory.id + 2, "like")
    pieces = (fact_piece(each, None) for each in (quoted, *others))
    store.save(PromptStored(prompt_with(asker, *pieces)))
    memories.forget(memory.id)
    assert redacted(store, asker) == [True, False, False]


def test_a_memory_saved_quoted_and_forgotten_in_one_batch_is_erased(store: Store) -> None:
    asker = add_conversation(store, "what do I like?")
    memory = Memory(store.ids.passage(), "u", "I like tea.", AT)
    prompt = prompt_with(asker, PromptPiece("- memory 1\n  > I like tea.\n"))
    store.save(MemoryPut(memory), PromptStored(prompt), MemoryForgotten(memory.id))
    assert "I like tea" not in str(tables(store)["prompt_text"])


def test_all_versions_of_a_forgotten_fact_are_redacted_in_prompts(store: Store) -> None:
    source, asker = add_conversation(store, "I like tea"), add_conversation(store, "what?")
    first, _ = fact_of(store, source, "Likes tea.")
    store.save(FactPut(first), FactPut(replace(first, text="Loves tea.", made_at=AT + SECOND)))
    quoted = (fact_piece(found.fact(first.id, f"{how} tea."), 0) for how in ("Likes", "Loves", "A"))
    here = source.conversation.id
    store.save(
        PromptStored(prompt_with(asker, *(replace(each, conversation_id=here) for each in quoted)))
    )
    store.save(FactForgotten(first.id, "hash"))
    assert redacted(store, asker) == [True, True, False]


# -- core memory and memories
@pytest.fixture
def core(store: Store) -> CoreMemoryService:
    return CoreMemoryService(store, Settings(store))


def test_core_memory_is_edited_if_a_clock_was_ahead(store: Store, core: CoreMemoryService) -> None:
    ahead = now() + timedelta(days=400)
    store.save(CoreMemoryPut("Written in the future.", "user", ahead))
    core.set("Written now.")
    assert core.text() == "Written now."
    assert CoreMemory(store).now().text == "Written now."


def test_core_memory_keeps_every_version(store: Store, core: CoreMemoryService) -> None:
    assert core.text() == ""
    assert core.versions() == ()
    assert core.set("Likes tea.") == "Likes tea."
    assert core.append("Lives in Graz.", "openai:m") == "Likes tea.\nLives in Graz."
    assert core.set("Likes coffee.\nLives in Graz.") == "Likes coffee.\nLives in Graz."
    assert CoreMemoryService(store, Settings(store)).text() == "Likes coffee.\nLives in Graz."
    versions = CoreMemory(store).versions()
    assert [each.author for each in versions] == ["user", "openai:m", "user"]
    assert versions[-1].made_at is not None
    assert core.restore(versions[-1].made_at) == "Likes tea."
    assert [each.text for each in core.versions()][::3] == ["Likes tea.", "Likes tea."]
    with pytest.raises(NotFound):
        core.restore(now())


def test_core_memory_beyond_its_limit_is_shortened(store: Store, core: CoreMemoryService) -> None:
    core.set("tea " * 100)
    Settings(store).set("core_memory_max_tokens", 10)
    limited = CoreMemoryService(store, Settings(store))
    assert limited.set("tea " * 50) == ("tea " * 50).strip()
    with pytest.raises(InvalidInput, match=r"core_memory_max_tokens allows 10"):
        limited.append("word" * 250)
    assert limited.text() == ("tea " * 50).strip()


def test_a_change_with_no_clear_meaning_is_refused(store: Store, core: CoreMemoryService) -> None:
    core.set("tea and tea")
    for change in (
        lambda: core.append("  "),
        lambda: ArchivalMemoryService(store).save("  "),
        lambda: ArchivalMemoryService(store).save("x" * (LIMIT_CHARS + 1)),
    ):
        with pytest.raises(InvalidInput):
            change()
    assert core.text() == "tea and tea"


def test_a_saved_text_is_a_passage_until_it_is_forgotten(store: Store) -> None:
    memories, passages = ArchivalMemoryService(store), Passages(store)
    memory = memories.save("The gate code is 4711.")
    assert memories.save(" The gate code is 4711. ") == memory
    assert passages.of_kind(PassageKind.MEMORY) == {memory.id}
    (text,) = passages.texts([memory.id])
    assert [part.text for part in text.parts] == ["The gate code is 4711."]
    memories.forget(memory.id)
    assert not memories.listed()
    assert not passages.of_kind(PassageKind.MEMORY)
    with pytest.raises(NotFound):
        memories.forget(memory.id)


def test_a_text_saved_in_the_sample_archive_is_not_the_users(store: Store) -> None:
    memories = ArchivalMemoryService(store)
    sample = add_conversation(store, "Hello.", source=SAMPLE_SOURCE)
    theirs = memories.save("Likes tea.", sample.conversation.id, sample.exchanges[0].id)
    own = memories.save("Likes tea.")
    assert own.id != theirs.id
    assert memories.save("Likes tea.") == own


def test_a_memory_saved_in_a_conversation_names_it_and_leaves_with_it(store: Store) -> None:
    memories = ArchivalMemoryService(store)
    source = add_conversation(store, "I like tea.", "And oolong most.", title="Tea")
    own = memories.save("Likes tea.")
    by_model = memories.save("Likes oolong.", source.conversation.id, source.exchanges[1].id)
    assert (own.is_written_by_model, by_model.is_written_by_model) == (False, True)
    newest, oldest = memories.known()
    assert (newest.conversation_title, newest.turn_number) == ("Tea", 1)
    assert (oldest.conversation_title, oldest.turn_number) == ("", None)
    saved = replace(found.fact(1, by_model.text), match=found.match(1, kind=PassageKind.MEMORY))
    assert "a model's words" in fact_piece(saved, 0).text
    assert "a model's words" not in fact_piece(replace(saved, conversation_id=None), None).text
    assert "a model's words" not in fact_piece(found.fact(1, "Tea."), 0).text
    forget(store, [source.conversation.id])
    assert [row[0] for row in tables(store)["memory"]] == [own.id]
    assert [row[0] for row in tables(store)["passage"]] == [own.id]
