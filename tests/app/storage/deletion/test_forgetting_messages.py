"""Forgetting single turns and messages: content, everything derived from it, quotes and bytes."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.chat.sent_turns import SentTurns
from app.check import check
from app.domain import changes
from app.domain.conversations import (
    FORGOTTEN,
    ExchangeStatus,
    Forgotten,
    Message,
    Role,
    Text,
    TitleOrigin,
    ToolCall,
    ToolResult,
)
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import ConversationId, ExchangeId, PassageId, new_uid, part_id
from app.domain.passages import Passage, PassageKind, Space
from app.domain.recall import (
    PlanPart,
    PlanPartKind,
    PromptPiece,
    RecalledItem,
    RecallLayer,
    StoredPrompt,
)
from app.domain.records.facts import Memory, MemoryWrite
from app.domain.text import content_hash
from app.memory.core_memory import CoreMemoryService
from app.storage.deletion.forget import forget_messages, forget_turn
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.safety.backup import make_backup
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.passages.queries import Passages
from app.storage.tables.passages.vector_rows import EmbeddedPassage
from app.storage.tables.passages.vectors import Vectors
from app.storage.tables.prompts import Prompts
from app.storage.tables.settings import Settings
from app.storage.work.extraction_work import ExtractionWork
from app.storage.work.summary_work import CONVERSATION_SUMMARIES, SummaryWork
from tests.fakes import stored
from tests.fakes.canary import CANARY, files_after_erasing, files_with, plain_databases
from tests.fakes.stored import AT, ConversationRecord, add_conversation, opened, tables

TURNS = (
    ("How is the weather in Zwickau?", "Rain until Sunday."),
    (f"Where did we hide {CANARY} that day?", f"Behind the shed, {CANARY} is there."),
    ("What grows best on the north wall?", "Ferns, mostly."),
)
SUMMARY = "They talked about the thing in the shed."


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with plain_databases(), opened(data_dir) as made:
        yield made


def put_summary(
    store: Store, here: ConversationId, turn: ExchangeId | None, text: str, stamp: str
) -> None:
    kind, source = ("conversation", int(here)) if turn is None else ("exchange", int(turn))
    passage = Passage(
        store.ids.passage(), PassageKind(f"{kind}_summary"), source, here, turn,
        content_hash(text), AT, 5,
    )  # fmt: skip
    store.save(
        changes.SummaryPut(kind, source, here, text, "m", stamp, AT),
        changes.PassagesPut((passage,)),
    )


def with_vectors(store: Store) -> Space:
    """Give every passage a vector."""
    import numpy as np

    vectors, space = Vectors(store), Space("some", 4, 100)
    vectors.ensure(space, "m")
    rows = store.rows("SELECT id, content_hash FROM passage")
    unit = np.eye(1, 4, dtype=np.float32)
    embedded = [
        EmbeddedPassage(PassageId(each), hash_, [part_id(PassageId(each), 0)], [(0, 1)], unit)
        for each, hash_ in rows
    ]
    assert vectors.put(space, embedded) == len(rows)
    return space


def stamps(store: Store) -> dict[int, str]:
    """Return what the knowledge extractor would read, with its stamps."""
    return dict(ExtractionWork(store).exchange_ids(100, None, now()))


@pytest.fixture
def talk(store: Store) -> ConversationRecord:
    """A conversation whose middle turn has left traces everywhere."""
    whole = add_conversation(store, *TURNS, title=f"{CANARY} of the shed")
    here, turn = whole.conversation.id, whole.exchanges[1]
    stored.learned(store, whole, "The user likes ferns", subject="")
    fact = stored.learned(
        store, whole, f"The user hid {CANARY}", exchange_id=turn.id, message_id=turn.message_ids[0]
    )
    place = (here, turn.id)
    put_summary(store, here, turn.id, f"{CANARY} was hidden.", "2:4")
    put_summary(store, here, None, f"{SUMMARY} {CANARY}.", "3:1")
    store.save(
        changes.SummaryPut("context", turn.id, here, f"So far: {CANARY}", "m", "h", AT),
        changes.TagsChanged(here, (CANARY,), automatic=True),
        changes.TagsChanged(here, ("garden",)),
        changes.MemoryPut(Memory(store.ids.passage(), new_uid(), CANARY, AT, *place)),
        changes.ToolSummaryPut(
            store.ids.passage(), *place, turn.message_ids[1], 0, CANARY, "m", AT
        ),
        changes.SettingPut(
            "probe_questions",
            json.dumps(json.dumps([{"question": CANARY, "exchange_id": turn.id}])),
        ),
        changes.ExtractionDone(turn.id, here, stamps(store)[turn.id], "m", 1, AT),
    )
    _prompt(store, whole, fact.id)
    return whole


def _prompt(store: Store, whole: ConversationRecord, fact_id: PassageId) -> None:
    """Store prompts of the turn and of the one after it, which quotes it."""
    here = whole.conversation.id
    turns = Passages(store).of_source(PassageKind.TURN, whole.exchanges[1].id)
    pieces = (
        PromptPiece(f"> Where did we hide {CANARY} that day?\n", here, turns[0]),
        PromptPiece("> Rain until Sunday.\n", here, PassageId(1)),
        PromptPiece(f"- fact {fact_id} · The user hid {CANARY}\n", here, fact_id),
    )
    parts = (
        PlanPart(PlanPartKind.COMPACTION, 5, True, (PromptPiece(f"> So far: {CANARY}", here),)),
        PlanPart(PlanPartKind.HISTORY, 5, True, message_ids=whole.exchanges[1].message_ids),
        PlanPart(PlanPartKind.EARLIER, 5, False, pieces),
        PlanPart(PlanPartKind.QUESTION, 5, False, message_ids=whole.exchanges[2].message_ids[:1]),
    )
    item = RecalledItem(
        RecallLayer.HISTORY, PassageKind.TURN, turns[0], here, whole.exchanges[1].id, None,
        0.9, None, 0.5, 9, injected=True,
    )  # fmt: skip
    for exchange in whole.exchanges[1:]:
        prompt = StoredPrompt(exchange.id, here, AT, "openai:m", 1_000, 2_000, parts, (item,))
        store.save(changes.PromptStored(prompt))


def test_a_forgotten_turn_is_in_no_file_and_everything_else_stays(
    store: Store, talk: ConversationRecord, tmp_path: Path
) -> None:
    add_conversation(store, "something else", title="Stays")
    turn = talk.exchanges[1]
    make_backup(store)
    left = forget_turn(store, turn.id)
    assert left
    assert files_after_erasing(store) == set()
    assert check(store).problems == ()
    messages = Exchanges(store).messages_in(talk.conversation.id)
    assert [each.text for each in messages] == [*TURNS[0], "", "", *TURNS[2]]
    assert [each.blocks for each in messages[2:4]] == [(Forgotten(),), (Forgotten(),)]
    rows = tables(store)
    assert [row[1] for row in rows["tag"]] == ["garden"]
    assert [row[2] for row in rows["fact"]] == ["The user likes ferns"]
    assert rows["summary"] == rows["memory"] == rows["tool_summary"] == []
    ((title, origin),) = store.rows(
        "SELECT title, title_origin FROM conversation WHERE id = ?", [talk.conversation.id]
    )
    assert (title, origin) == ("How is the weather in Zwickau?", "first_words")
    assert set(store.rows("SELECT exchange_id FROM prompt")) == {(talk.exchanges[2].id,)}
    (prompt,) = Prompts(store).history(talk.exchanges[2].id)
    assert [piece.text for part in prompt.parts for piece in part.pieces] == [
        FORGOTTEN, FORGOTTEN, "> Rain until Sunday.\n", FORGOTTEN,
    ]  # fmt: skip
    assert prompt.items == ()
    killed = stored.killed(store, tmp_path / "killed")
    with opened(killed) as again:
        assert tables(again) == rows
    assert files_with(killed) == set()


def test_neighbors_of_a_forgotten_turn_are_embedded(store: Store, talk: ConversationRecord) -> None:
    space = with_vectors(store)
    position = store.journal.last_position
    forget_turn(store, talk.exchanges[1].id)
    by_turn = [Passages(store).of_source(PassageKind.TURN, each.id) for each in talk.exchanges]
    assert by_turn[1] == ()
    work = Passages(store).work_since(position, 100)
    assert {*by_turn[0], *by_turn[2]} <= {*work.added}
    embedded = {row[0] for row in store.rows(f"SELECT passage_id FROM embedding_{space.name}")}
    assert embedded.isdisjoint({*by_turn[0], *by_turn[2], *work.removed})


def test_of_a_turn_only_the_forgotten_part_goes(store: Store, talk: ConversationRecord) -> None:
    turn = talk.exchanges[1]
    forget_messages(store, [turn.message_ids[0]])
    (passage,) = Passages(store).of_source(PassageKind.TURN, turn.id)
    ((hash_,),) = store.rows("SELECT content_hash FROM passage WHERE id = ?", [passage])
    assert hash_ == content_hash(TURNS[1][1])
    assert [each.text for each in Exchanges(store).messages_of(turn)] == ["", TURNS[1][1]]
    assert check(store).problems == ()
    assert turn.id in stamps(store), "facts are extracted again from what is left"
    (sent,) = SentTurns(store).of([turn], now())
    assert [each.text for each in sent.whole] == [FORGOTTEN, TURNS[1][1]]
    forget_messages(store, [turn.message_ids[1]])
    (sent,) = SentTurns(store).of([turn], now())
    assert sent.whole == ()
    assert Passages(store).of_source(PassageKind.TURN, turn.id) == ()
    assert files_after_erasing(store) == set()


def test_what_a_worker_read_before_is_not_saved(store: Store, talk: ConversationRecord) -> None:
    here, turn = talk.conversation.id, talk.exchanges[1]
    store.save(changes.ExtractionDone(turn.id, here, "other", "m", 0, AT))
    old = stamps(store)[turn.id]
    ((_, waiting),) = SummaryWork(store).missing(CONVERSATION_SUMMARIES, 10, 1, None, now())
    forget_turn(store, turn.id)
    ((_, fresh),) = SummaryWork(store).missing(CONVERSATION_SUMMARIES, 10, 1, None, now())
    assert fresh != waiting
    assert stamps(store)[turn.id] != old
    late = Passage(
        store.ids.passage(), PassageKind.CONVERSATION_SUMMARY, here, here, None, "h", AT, 5
    )
    store.save(
        changes.SummaryPut("conversation", here, here, CANARY, "m", waiting, now()),
        changes.PassagesPut((late,)),
        changes.TagsChanged(here, (CANARY,), automatic=True),
        changes.ConversationEdited(here, title=CANARY, title_origin=TitleOrigin.SUMMARISER),
    )
    store.save(changes.SummaryPut("exchange", turn.id, here, CANARY, "m", old, now()))
    store.save(changes.SummaryPut("context", turn.id, here, CANARY, "m", "h", now()))
    stored.learned(store, talk, CANARY, message_id=turn.message_ids[0])
    assert files_after_erasing(store) == set()
    assert check(store).problems == ()
    store.save(changes.SummaryPut("conversation", here, here, "Ferns", "m", fresh, now()))
    assert store.rows("SELECT text FROM summary") == [("Ferns",)]


def test_quotes_by_tools_of_a_forgotten_turn_are_redacted_and_of_its_neighbors_kept(
    store: Store, talk: ConversationRecord
) -> None:
    here = talk.conversation.id
    asker = add_conversation(store, ("What did we hide?", "Let me look."), title="Asker")
    head = {"conversation_id": here, "title": "The shed"}
    lines = [json.dumps(head)[:-1] + ', "messages": ['] + [
        json.dumps({"role": "user", "text": text}) + "," for pair in TURNS for text in pair
    ]
    question = asker.messages[0]
    call = Message(
        store.ids.message(), new_uid(), asker.conversation.id, asker.messages[1].id,
        Role.ASSISTANT, (ToolCall("c", "fetch_conversation_details", "{}"),), AT, "openai:m",
    )  # fmt: skip
    found = [
        json.dumps({"exchange_id": each.id, "conversation_id": here, "snippet": pair[1]})
        for each, pair in zip(talk.exchanges, TURNS, strict=True)
    ]
    results = (
        ToolResult("c", "fetch_conversation_details", "\n".join(lines)),
        ToolResult("d", "conversation_search", "\n".join(found)),
    )
    result = Message(
        store.ids.message(), new_uid(), asker.conversation.id, call.id, Role.TOOL, results, AT
    )
    exchange = asker.exchanges[0]
    ids = (*exchange.message_ids, call.id, result.id)
    store.save(
        changes.MessagesAdded((call, result)),
        changes.ExchangePut(replace(exchange, message_ids=ids)),
    )
    forget_turn(store, talk.exchanges[1].id)
    kept = Exchanges(store).messages([result.id])[result.id].blocks
    texts = [each.text for each in kept if isinstance(each, ToolResult)]
    assert all(FORGOTTEN in text and "Ferns, mostly." in text for text in texts)
    assert files_after_erasing(store) == set()
    assert Exchanges(store).messages([question.id])[question.id].text == "What did we hide?"


def test_a_forgotten_call_takes_its_results_along_and_a_result_stays_one(store: Store) -> None:
    talk = add_conversation(store, ("Look it up", "Found it."))
    asked, answered = talk.messages
    call = Message(
        store.ids.message(), new_uid(), talk.conversation.id, asked.id, Role.ASSISTANT,
        (Text("Looking"), ToolCall("c", "man_search", "{}")), AT, "openai:m",
    )  # fmt: skip
    result = Message(
        store.ids.message(), new_uid(), talk.conversation.id, call.id, Role.TOOL,
        (ToolResult("c", "man_search", CANARY),), AT,
    )  # fmt: skip
    (exchange,) = talk.exchanges
    other = replace(
        exchange, id=store.ids.exchange(), uid=new_uid(), message_ids=(asked.id, call.id, result.id)
    )
    store.save(changes.MessagesAdded((call, result)), changes.ExchangePut(other))
    forget_messages(store, [result.id])
    assert Exchanges(store).messages([result.id])[result.id].blocks == (
        ToolResult("c", "man_search", FORGOTTEN),
    )
    forget_messages(store, [call.id])
    found = Exchanges(store).messages([call.id, result.id, answered.id])
    assert [found[each].is_forgotten for each in (call.id, result.id)] == [True, True]
    assert found[answered.id].text == "Found it."
    assert files_after_erasing(store) == set()


def test_every_answer_to_a_forgotten_question_goes_and_edited_versions_are_named(
    store: Store, talk: ConversationRecord
) -> None:
    turn = talk.exchanges[1]
    again = stored.sibling(store, turn, (talk.messages[2],), "Another answer")
    edited = stored.sibling(store, turn, (), "Edited")
    left = forget_turn(store, turn.id)
    assert "1 other version" in left[0]
    found = Exchanges(store).messages([*again.message_ids, *edited.message_ids])
    assert all(found[each].is_forgotten for each in again.message_ids)
    assert not any(found[each].is_forgotten for each in edited.message_ids)
    assert check(store).problems == ()


def test_earlier_texts_of_core_memory_are_in_no_file_and_what_holds_stays(store: Store) -> None:
    talk = add_conversation(store, "Remember this")
    here, turn = talk.conversation.id, talk.exchanges[0].id
    core = CoreMemoryService(store, Settings(store))
    core.set(f"Likes ferns\nHid {CANARY}")
    parts = (PlanPart(PlanPartKind.CORE_MEMORY, 5, True, (PromptPiece(core.text()),)),)
    prompt = StoredPrompt(turn, here, AT, "openai:m", 1_000, 2_000, parts, ())
    write = MemoryWrite(new_uid(), here, turn, "openai:m", AT, new=f"Hid {CANARY}")
    kept = MemoryWrite(new_uid(), here, turn, "openai:m", AT, new="Likes ferns")
    store.save(
        changes.PromptStored(prompt), changes.MemoryWritePut(write), changes.MemoryWritePut(kept)
    )
    make_backup(store)
    core.set("Likes ferns")
    times, _ = core.forget_earlier()
    assert len(times) == 1
    assert files_after_erasing(store) == set()
    assert [each.text for each in core.versions()] == ["Likes ferns"]
    assert [row[0] for row in store.rows("SELECT uid FROM memory_write")] == [kept.uid]
    assert core.forget_earlier()[0] == ()
    assert check(store).problems == ()


def test_nothing_is_forgotten_while_a_reply_runs_and_unknown_ids_are_refused(
    store: Store, talk: ConversationRecord
) -> None:
    last = talk.exchanges[2]
    store.save(changes.ExchangePut(replace(last, status=ExchangeStatus.RUNNING, completed_at=None)))
    with pytest.raises(InvalidInput):
        forget_turn(store, talk.exchanges[1].id)
    with pytest.raises(NotFound):
        forget_turn(store, 99)
    with pytest.raises(NotFound):
        forget_messages(store, [99])
