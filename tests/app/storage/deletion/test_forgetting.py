"""Quotes of forgotten text elsewhere are redacted, also what comes late."""

import asyncio
import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from app.bootstrap import RunMode, Services, build
from app.chat.library import Library
from app.chat.tools.conversations import ConversationTools
from app.chat.tools.memory import MemoryTools
from app.chat.tools.toolbox import Toolbox, ToolContext
from app.check import check
from app.domain import changes, deletions
from app.domain.chat import ChatRequest
from app.domain.conversations import (
    FORGOTTEN,
    Block,
    Exchange,
    Message,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from app.domain.ids import ConversationId, PassageId, new_uid
from app.domain.passages import PassageKind
from app.domain.recall import PlanPart, PlanPartKind, PromptPiece, StoredPrompt
from app.domain.records.facts import Fact, Memory
from app.domain.turns import RECALL_MODEL, turn_passage
from app.providers.vendors.recall import RecallModel
from app.storage.deletion import deletion_set
from app.storage.deletion.deletion_set import DeletionSet, TextFingerprints
from app.storage.deletion.erasure import erase_bytes
from app.storage.deletion.forget import forget
from app.storage.deletion.redaction import QuoteContext, redact_answer
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.facts import FactFilter, fact_changes
from app.system.paths import DataPaths
from tests.fakes import stored
from tests.fakes.canary import CANARY, files_with, plain_databases
from tests.fakes.stored import AT, ConversationRecord, add_conversation, made

STAYS = "The price of coal from the mine at Zwickau rose in 1887"
QUESTION = "What do we know about coal in the mine?"
MULE = "The user keeps a mule beside the coal mine."
PUMP = "Oil the pump\nbelow the shaft\nat noon."
OIL = "Oil the pump below the shaft at noon."


class Book:
    """A library in which things are said, looked up and quoted, as the program does it."""

    def __init__(self, services: Services) -> None:
        self.services, self.store = services, services.store
        sung = (f"{CANARY} sings of coal in the mine", f"So {CANARY} does")
        self.gone = add_conversation(self.store, sung, title=f"{CANARY} coal")
        self.stays = add_conversation(self.store, STAYS, title="Coal prices")
        self.asker = add_conversation(self.store, QUESTION, title="Asker")
        self.learn(f"The user keeps {CANARY} for the coal mine.", self.gone)
        self.save_text(
            f"Feed {CANARY} in the coal mine at five.", self.gone.conversation.id,
            self.gone.exchanges[0].id,
        )  # fmt: skip

    def learn(self, text: str, source: ConversationRecord) -> Fact:
        """Learn a fact from a conversation's first turn."""
        return stored.learned(self.store, source, text)

    def save_text(self, text: str, *place: int) -> Memory:
        return self.services.memories.save(text, *place)  # type: ignore[arg-type]

    def append(
        self, asker: ConversationRecord, *added: tuple[Role, Block, str | None]
    ) -> list[Message]:
        """Append messages to a conversation's first exchange; return all that it has."""
        exchange = self.services.exchanges.get(asker.exchanges[0].id)
        messages = [*self.services.exchanges.messages_of(exchange)]
        for role, block, model in added:
            message = Message(
                self.store.ids.message(), new_uid(), asker.conversation.id, messages[-1].id, role,
                (block,), AT, model,
            )  # fmt: skip
            messages.append(message)
        grown = replace(exchange, message_ids=tuple(each.id for each in messages))
        new = tuple(messages[-len(added) :])
        written: list[changes.Change] = [changes.MessagesAdded(new), changes.ExchangePut(grown)]
        if not asker.conversation.private:
            passage = turn_passage(self.store.ids.passage(), grown, messages)
            assert passage is not None
            earlier = self.services.passages.of_source(PassageKind.TURN, grown.id)
            written.append(changes.PassagesPut((passage,), replaced=tuple(earlier)))
        self.store.save(*written)
        return messages

    def append_answer(self, text: str) -> Message:
        """Append an answer of Recall to the asker's turn."""
        return self.append(self.asker, (Role.ASSISTANT, Text(text), RECALL_MODEL))[-1]

    def append_result(self, asker: ConversationRecord, result: ToolResult, call: ToolCall) -> None:
        """Append a tool's result with the call before and an answer after it."""
        self.append(
            asker, (Role.ASSISTANT, call, "openai:m"), (Role.TOOL, result, None),
            (Role.ASSISTANT, Text("I see."), "openai:m"),
        )  # fmt: skip

    def called(
        self, name: str, asker: ConversationRecord | None = None, **arguments: object
    ) -> str:
        """Call a tool and store call and result; return the result's text."""
        asker = asker or self.asker
        result, call = self.call(name, asker, **arguments)
        self.append_result(asker, result, call)
        return result.text

    def call(
        self, name: str, asker: ConversationRecord, **arguments: object
    ) -> tuple[ToolResult, ToolCall]:
        s = self.services
        s.index_sync.catch_up(lambda: False)
        of_memory = MemoryTools(s.answers, s.core_memory, s.memory_writes).tools()
        box = Toolbox((*ConversationTools(self.store, s.search).tools(), *of_memory))
        call = ToolCall(new_uid(), name, json.dumps(arguments))
        result = box.run(call, ToolContext(asker.conversation, asker.exchanges[0].id, "openai:m"))
        assert not result.is_error, result.text
        return result, call

    def recalled(self, question: str = QUESTION) -> str:
        self.services.index_sync.catch_up(lambda: False)
        asked = replace(self.asker.messages[0], blocks=(Text(question),))
        model = RecallModel(self.services.recall.answers)

        async def answer() -> str:
            events = model.stream(ChatRequest("", (asked,)))
            return "".join([each.text async for each in events if isinstance(each, Text)])

        return asyncio.run(answer())

    def texts(self, conversation: ConversationId | None = None) -> str:
        """Return what is stored in messages, of all conversations or one, as one text."""
        condition = "true" if conversation is None else f"conversation_id = {conversation}"
        statement = f"SELECT text, blocks FROM message WHERE {condition} ORDER BY id"
        return "\n".join(map(str, self.store.rows(statement)))

    def forget(self, *known: Fact | Memory) -> str:
        """Forget facts and memories; return what is stored in messages then."""
        for each in known:
            is_fact = isinstance(each, Fact)
            gone = (
                deletions.FactForgotten(each.id, "h")
                if is_fact
                else deletions.MemoryForgotten(each.id)
            )
            self.store.save(gone, changes.PassagesPut((), (each.id,)))
        erase_bytes(self.store)
        return self.texts()

    def holds(self, *texts: str) -> set[str]:
        """Return those of some texts that any message or file holds."""
        self.services.maintenance.erase()
        stays, root = self.texts(), self.store.paths.root
        return {text for text in texts if text in stays or files_with(root, text)}

    def finds_asker(self) -> bool:
        """Return whether the text index finds the asker's turn by the canary."""
        self.services.index_sync.catch_up(lambda: False)
        found = self.services.search.by_sentence("canary 7f3a9c", 10, (PassageKind.TURN,), None)
        return self.asker.conversation.id in {each.conversation_id for each in found}


@pytest.fixture
def book(data_dir: Path) -> Iterator[Book]:
    with plain_databases():
        services = build(made(data_dir), RunMode.COMMAND_LINE)
        yield Book(services)
        services.close()


def look_up_everything(book: Book) -> list[str]:
    """Quote what is to be forgotten in every way there is; return the results."""
    gone = book.gone.conversation.id
    details = "fetch_conversation_details"
    results = [
        book.called("conversation_search", query="coal in the mine"),
        book.called("memory_search", query="coal in the mine", limit=20),
        book.called(details, conversation_id=gone),
        book.called(details, exchange_id=book.gone.exchanges[0].id),
        book.called(details, conversation_id=gone, include_full_transcript=True, offset=170),
    ]
    answer = book.recalled()
    book.append_answer(answer)
    # Others read the conversation that quotes, and so quote it at second hand.
    other = add_conversation(book.store, "What did the asker find?", title="At second hand")
    asker = book.asker.conversation.id
    second = book.called(details, other, conversation_id=asker, include_full_transcript=True)
    assert all(CANARY in each for each in (*results, answer, second))
    return results


def test_every_quote_of_a_forgotten_conversation_is_redacted(book: Book, tmp_path: Path) -> None:
    before = look_up_everything(book)
    private = add_conversation(book.store, "hush", title="Private", private=True)
    book.called("memory_search", private, query="coal in the mine")
    assert book.finds_asker()
    book.services.probes.add(f"Where is {CANARY}?", book.gone.exchanges[0].id)
    book.services.probes.add("coal prices", book.stays.exchanges[0].id)

    book.store.save(deletions.ConversationForgotten(book.gone.conversation.id))
    after_kill = stored.killed(book.store, tmp_path / "killed")
    erase_bytes(book.store)
    book.services.index_sync.erase()
    assert not book.holds(CANARY)
    assert not book.finds_asker()
    assert [each.probe.question for each in book.services.probes.listed()] == ["coal prices"]
    assert check(book.store).problems == ()

    exchange: Exchange = book.services.exchanges.get(book.asker.exchanges[0].id)
    messages = book.services.exchanges.messages_of(exchange)
    results = [b.text for m in messages for b in m.blocks if isinstance(b, ToolResult)]
    lines = set(before[0].split("\n")) - set(results[0].split("\n"))
    assert lines
    assert all(CANARY in line for line in lines), "what is beside a quote is unchanged"
    assert STAYS in results[0]
    assert FORGOTTEN in results[0]
    json.loads(results[0])
    assert results[2] == results[3] == results[4] == FORGOTTEN
    (answer,) = [each.text for each in messages if each.model == RECALL_MODEL]
    assert FORGOTTEN in answer

    services = build(DataPaths(after_kill), RunMode.COMMAND_LINE)
    try:
        assert erase_bytes(services.store) is True
        services.index_sync.catch_up()
        assert services.index_sync.owes_erasure
        services.index_sync.erase()
        services.store.checkpoint().result()
        assert files_with(after_kill) == set()
    finally:
        services.close()


def test_moving_to_the_trash_and_forgetting_what_is_not_quoted_redact_nothing(book: Book) -> None:
    look_up_everything(book)
    before = book.texts()
    book.store.save(deletions.MemoryForgotten(PassageId(999_999)))
    book.store.save(changes.ConversationEdited(book.gone.conversation.id, deleted_at=AT))
    assert book.texts() == before
    assert CANARY not in book.call("conversation_search", book.asker, query="coal mine")[0].text
    assert CANARY not in book.recalled()
    book.store.save(changes.ConversationEdited(book.gone.conversation.id, restored=True))
    imported = (("x", book.asker.conversation.id),)
    book.store.save(changes.OriginsAdded("commonplace", "conversation", imported))
    unlike = add_conversation(book.store, "Something else entirely", title="Unlike")
    forget(book.store, [unlike.conversation.id])
    assert CANARY in book.texts()
    forget(book.store, [book.gone.conversation.id])
    assert CANARY not in book.texts(), "quotes in imported conversations are found by text"
    assert STAYS in book.texts()


def test_a_forgotten_fact_and_memory_are_redacted_in_results_not_in_sources(book: Book) -> None:
    fact, memory = book.learn(MULE, book.stays), book.save_text(OIL)
    assert fact.text in book.called("memory_search", query="a mule beside the mine", limit=20)
    assert memory.text in book.called("memory_search", query="the pump of the shaft", limit=20)
    book.called("memory_search", query="the pump of the coal mine", limit=20)
    book.append_answer(book.recalled("Which animal is beside the coal mine?"))
    for known in (fact, memory):
        book.forget(known)
        assert not book.holds(known.text)
    assert STAYS in book.texts()
    assert FORGOTTEN in book.texts()
    again = book.save_text(OIL)
    assert again.text in book.called("memory_search", query="oil the pump below the shaft")
    book.append_answer(book.recalled("oil the pump below the shaft"))
    assert book.texts().count(OIL) == 2, "what is saved again may be quoted"


@pytest.mark.parametrize(
    ("fact", "said", "stays"), [(7, "Yes", True), (9, "Yes", False), (7, MULE, False)]
)
def test_an_answer_of_a_preview_that_names_or_quotes_what_is_deleted_goes_whole(
    fact: int, said: str, *, stays: bool
) -> None:
    known = f"Fact {fact} · 3 May 2026 · 80%"
    answer = "\n".join(("**Facts** · learned from what was said", "", known, "", f"> {said}", ""))
    leaving = DeletionSet(
        frozenset(), frozenset(), frozenset({9}), TextFingerprints((), whole=[MULE])
    )
    left = redact_answer(answer, QuoteContext(leaving, knows_ids=True))
    assert left == (answer if stays else f"*{FORGOTTEN}*")


def test_texts_of_many_deletions_are_recognized_in_the_memory_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deletion_set, "_MAX_WINDOWS", 40)
    texts = [f"{number} {PUMP} {number * 7919} {STAYS}" for number in range(20)]
    known = TextFingerprints((), whole=[MULE])
    for each in texts:
        known |= TextFingerprints([each])
    assert len(known._windows) <= 40
    lines = [line for each in texts for line in each.split("\n")]
    assert all(map(known.matches, (*lines, MULE, f"So: {MULE}"[4:30])))
    assert not known.matches(QUESTION)


def test_long_texts_are_deleted_in_parts(store: Store) -> None:
    made = [add_conversation(store, "word " * 300_000).conversation.id for _ in range(2)]
    assert [*Conversations(store).in_parts(made)] == [[each] for each in made]


def test_part_of_a_line_is_recognized_alike_in_the_first_and_the_last_of_many_deletions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deletion_set, "_MAX_WINDOWS", 5_000)  # a tenth of what there is
    chance = random.Random(7)
    texts = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=40_000)) for _ in range(11)]
    *deleted, other = texts
    known = TextFingerprints(())
    for each in deleted:
        known |= TextFingerprints([each])
    assert len(known._windows) <= 5_000
    for each in (deleted[0], deleted[-1]):
        quotes = [each[start : start + 300] for start in range(100, 39_000, 300)]
        assert sum(map(known.matches, quotes)) > 0.85 * len(quotes)
    assert not any(known.matches(other[start : start + 300]) for start in range(0, 39_000, 300))


def test_a_question_that_looks_like_a_fact_shields_no_citation() -> None:
    leaving = DeletionSet(
        frozenset(), frozenset(), frozenset({9}), TextFingerprints((), whole=[MULE])
    )
    context = QuoteContext(leaving, knows_ids=True)
    turn, fact = (
        "[Talk, 3 May 2026](commonplace://3/0)",
        "[Talk, 3 May 2026 · fact 7](commonplace://3/0)",
    )
    for source in (f"{turn} · Who? · fact 7", turn):
        assert MULE not in redact_answer(f"> {MULE}\n\n{source}\n", context)
    assert MULE not in redact_answer(f"- {turn}: {MULE}\n", context)
    assert MULE not in redact_answer(f"> Yes.\n\n{turn} · {MULE}\n", context), "what was asked"
    for kept in (
        f"> {MULE}\n\n{fact}\n",
        f"- {fact}: {MULE}\n",
        f"- Saved memory, 3 May 2026 · memory 7: {MULE}\n",
        f"- [Neuer: Talk, 3. Mai 2026 · Fakt 7](commonplace://3/0): {MULE}\n",
    ):
        assert redact_answer(kept, context) == kept, "fact 7 stays"
    for source in ("Saved memory, 3 May 2026 · memory 9", "Neuer: Fakt, 3. Mai 2026 · Fakt 9"):
        assert redact_answer(f"- {source}: {OIL}\n", context) == f"- {FORGOTTEN}\n"


# -- facts and memories in Recall's answers
@pytest.fixture
def known(book: Book) -> tuple[Fact, Fact, Memory]:
    """Let Recall quote a fact of what stays, one that the user wrote, and a saved text."""
    learned = book.learn(MULE, book.stays)
    written = replace(
        book.learn("The user keeps a lantern beside the coal mine.", book.gone),
        conversation_id=None, exchange_id=None, message_id=None,
    )  # fmt: skip
    book.store.save(*fact_changes(written))
    memory = book.save_text(PUMP)
    asked = ("Which mule does the user keep?", "Which lantern is kept?", "Which pump, oiled below?")
    answer = "\n\n".join(map(book.recalled, asked))
    for text in (learned.text, written.text, "Oil the pump", "at noon."):
        assert text in answer
    book.append_answer(answer)
    return learned, written, memory


def test_only_the_forgotten_part_is_redacted(book: Book, known: tuple[Fact, Fact, Memory]) -> None:
    learned, written, memory = known
    texts = book.forget(learned)
    assert not book.holds(learned.text)
    assert written.text in texts
    assert "Oil the pump" in texts
    texts = book.forget(written)
    assert written.text not in texts
    assert f"Fact {written.id}" not in texts
    assert "Oil the pump" in texts
    book.forget(memory)
    assert not book.holds(*memory.text.split("\n"))
    assert check(book.store).problems == ()


def test_facts_of_a_forgotten_conversation_and_forks_are_redacted_too(
    book: Book, known: tuple[Fact, Fact, Memory]
) -> None:
    learned, written, memory = known
    fork = Library(book.store).fork(book.asker.exchanges[0].id)
    assert learned.text in book.texts(fork)
    book.forget(memory)
    assert forget(book.store, [book.stays.conversation.id])
    assert not [each for each in (learned.text, STAYS, "Oil the pump") if each in book.texts()]
    assert written.text in book.texts(fork)


@pytest.mark.parametrize("origin", ["conversation", "message"])
def test_quotes_in_imported_answers_are_found_by_text(
    book: Book, known: tuple[Fact, Fact, Memory], origin: str
) -> None:
    learned, written, memory = known
    imported = int(book.asker.conversation.id)
    if origin == "message":
        # Continued on another machine, where ids name other things, and merged from its export.
        messages = book.services.exchanges.messages_in(imported)
        (answer,) = (each.text for each in messages if each.model == RECALL_MODEL)
        other = re.sub(r"(Fact |Memory |commonplace://)(\d+)", r"\g<1>99\2", answer)
        imported = book.append_answer(other).id
    book.store.save(changes.OriginsAdded("commonplace", origin, (("x", imported),)))
    assert written.text in book.forget(book.learn("The user cannot abide violins.", book.stays))
    assert "Oil the pump" not in book.forget(memory)
    if origin == "conversation":
        assert learned.text not in book.forget(learned)
        assert written.text in book.texts()
    else:
        forget(book.store, [book.stays.conversation.id])
        assert learned.text not in book.texts()
        assert STAYS not in book.texts()


# -- what comes after the forgetting
def test_quotes_in_a_running_reply_are_redacted_when_stored(book: Book) -> None:
    answers = [book.recalled("Who sings of coal in the mine?")]
    memory, fact = book.save_text(OIL), book.learn(MULE, book.stays)
    queries = ("coal in the mine", "the pump and the mule")
    found = [book.call("memory_search", book.asker, query=each) for each in queries]
    answers += map(book.recalled, ("oil the pump below the shaft", "which mule?"))
    answer = "\n\n".join(answers)
    gone = (CANARY, memory.text, fact.text)
    for text in gone:
        assert text in "".join(result.text for result, _ in found)
        assert text in answer
    running = stored.add_running(book.store, "And?").exchanges[0]
    reply = book.store.ids.message()
    grew = changes.ReplyGrew(running.id, reply, "text", answer, AT, RECALL_MODEL)
    book.store.journal_only(grew).result()
    exchange = book.asker.exchanges[0]
    facts = (
        PromptPiece(f"- fact {each} 2026-03-01\n> {text}\n")
        for each, text in ((memory.id, memory.text), (fact.id, fact.text), (99, STAYS))
    )
    part = PlanPart(PlanPartKind.FACTS, 9, False, (PromptPiece("\nFacts:\n"), *facts))
    prompt = StoredPrompt(
        exchange.id, exchange.conversation_id, AT, "openai:m", 99, 99, (part,), ()
    )
    book.forget(memory, fact)
    forget(book.store, [book.gone.conversation.id])
    for result, call in found:
        book.append_result(book.asker, result, call)
    book.append_answer(answer)
    book.store.journal_only(grew).result()
    stored.journal_reply(book.store, running, reply, "more")
    book.store.save(changes.PromptStored(prompt))
    kept = book.services.prompts.of(exchange.id)
    assert [piece.text for piece in kept.parts[0].pieces] == [
        "\nFacts:\n", f"- fact 99 2026-03-01\n> {STAYS}\n",
    ]  # fmt: skip
    assert not book.holds(*gone)


def test_a_late_edit_does_not_bring_a_forgotten_fact_or_memory_back(book: Book) -> None:
    fact, waiting = book.learn(MULE, book.gone), book.learn("The user keeps two.", book.gone)
    memory = book.save_text(OIL)
    edited = replace(fact, text="The user keeps a mule beside the old mine.", pinned=True)
    with stored.busy_writer(book.store):
        futures = [
            book.store.commit(
                deletions.FactForgotten(waiting.id, "h"), changes.PassagesPut((), (waiting.id,))
            ),
            book.store.commit(*fact_changes(replace(waiting, pinned=True))),
        ]
    for each in futures:
        each.result()
    book.forget(fact, memory)
    book.store.save(*fact_changes(edited), changes.MemoryPut(memory), changes.FactPut(fact))
    assert not book.holds(fact.text, edited.text, memory.text, waiting.text)
    rows = book.store.rows(
        "SELECT id FROM fact UNION SELECT fact_id FROM fact_version UNION SELECT id FROM memory"
    )
    assert not {(fact.id,), (memory.id,), (waiting.id,)} & set(rows)
    assert check(book.store).problems == ()


def test_a_fact_that_stays_because_it_was_said_twice_can_still_be_edited(book: Book) -> None:
    fact = book.learn(MULE, book.stays)
    again = book.gone.exchanges[0]
    later = replace(
        fact, conversation_id=again.conversation_id, exchange_id=again.id,
        message_id=again.message_ids[0], made_at=AT + timedelta(days=1),
    )  # fmt: skip
    book.store.save(*fact_changes(later))
    forget(book.store, [again.conversation_id])
    edited = book.services.fact_service.edit(fact.id, "The user keeps two mules.")
    assert edited.conversation_id == fact.conversation_id
    assert book.services.facts.listed(FactFilter())[0].fact.text == edited.text
