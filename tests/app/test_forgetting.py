"""Forgetting removes every byte: rows, files, quotes elsewhere, also after a kill at any step."""

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterator
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
from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationForgotten,
    DraftPut,
    ExchangePut,
    FactForgotten,
    FactPut,
    MemoryForgotten,
    MemoryPut,
    MessagesAdded,
    OriginsAdded,
    PassagesPut,
    PromptStored,
    ReplyGrew,
    SettingPut,
    SpendAdded,
    SummaryPut,
    TagsChanged,
    ToolSummaryPut,
)
from app.domain.chat import ChatRequest, TextDelta
from app.domain.conversations import Block, Exchange, Message, Role, Text, ToolCall, ToolResult
from app.domain.errors import StorageError
from app.domain.facts import Fact, Memory
from app.domain.ids import ConversationId, PassageId, new_uid
from app.domain.passages import PassageKind
from app.domain.recall import PlanPart, PlanPartKind, PromptPiece, StoredPrompt
from app.domain.turn_text import RECALL_MODEL, turn_passage
from app.providers.vendors.recall import RecallModel
from app.storage.apply import AGGREGATES
from app.storage.deletion import forget as forget_module
from app.storage.deletion.deletion_set import DeletionSet, TextFingerprints
from app.storage.deletion.forget import finish_forgetting, forget, purge_trash
from app.storage.deletion.quotes import FORGOTTEN, QuoteContext, redact_answer
from app.storage.engine.journal import segments
from app.storage.engine.store import Store
from app.storage.safety import image
from app.storage.safety.backup import backups_of, list_backups, make_backup
from app.storage.tables.attempts import CALLS_PER_MESSAGE, Attempts
from app.storage.tables.facts import FactFilter, fact_changes
from app.storage.tables.passages import Passages
from app.storage.work.summary_work import PartNotes
from app.system.paths import DataPaths
from tests.app.test_learned import fact_of
from tests.fakes.canary import CANARY, files_with, plain_databases
from tests.fakes.libraries import zero
from tests.fakes.stored import (
    AT,
    ConversationRecord,
    add_conversation,
    add_running,
    journal_reply,
    killed,
    new_conversation,
    opened,
    tables,
    titles,
)

# -- rows, journal, database file, backups


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with plain_databases(), opened(data_dir) as made:
        yield made


def add_secret(store: Store) -> ConversationRecord:
    """Write a conversation with the canary everywhere a text can be."""
    whole = add_conversation(store, f"{CANARY} one", f"{CANARY} two", title=CANARY)
    conversation, exchange = whole.conversation.id, whole.exchanges[0]
    place = (conversation, exchange.id)
    fact, passage = fact_of(store, whole, CANARY)
    memory = Memory(store.ids.passage(), new_uid(), CANARY, AT, *place)
    probe = {"question": CANARY, "exchange_id": exchange.id}
    store.save(
        SummaryPut("conversation", conversation, conversation, CANARY, "m", "h", AT),
        TagsChanged(conversation, (CANARY,)),
        DraftPut(conversation, CANARY, AT),
        FactPut(fact),
        passage,
        MemoryPut(memory),
        ToolSummaryPut(store.ids.passage(), *place, exchange.message_ids[0], 0, CANARY, "m", AT),
        SettingPut("probe_questions", json.dumps(json.dumps([probe]))),
    )
    spent = SpendAdded(AT, "conversation_summarizer", "m", 1, 1, 0, None)
    PartNotes(store).keep(conversation, "h", CANARY, spent)
    for worker, item in (
        ("exchange_summarizer", exchange.id), ("conversation_summarizer", conversation),
        ("knowledge_extractor", exchange.id), ("embedding_pipeline", fact.id),
        ("tool_summarizer", exchange.message_ids[0] * CALLS_PER_MESSAGE),
        ("worker_unknown_to_storage", 1),
    ):  # fmt: skip
        Attempts(store, worker).failed(item, 1, None, f"refused: {CANARY}")
    return whole


def test_forgotten_text_is_in_no_file_and_the_rest_is_unchanged(store: Store) -> None:
    stays = add_conversation(store, "something else", title="Stays")
    gone = add_secret(store)
    store.checkpoint().result()
    before = {make_backup(store).path for _ in range(2)}
    add_conversation(store, "later", title="Later")
    assert len(files_with(store.paths.root)) == 4, "database, journal and backups"
    position = store.journal.last_position
    left = forget(store, [gone.conversation.id])
    assert files_with(store.paths.root) == set()
    assert titles(store) == {"Stays", "Later"}
    assert tables(store)["message"][0][0] == stays.messages[0].id
    assert check(store).problems == ()
    assert len(left) == 2
    after = backups_of(store.paths.backups, store.uid)
    assert len(after) == 2
    assert not before & {each.path for each in after}
    for each in after:
        image.verify(each.path)
    assert {path.name for path in store.paths.backups.iterdir()} == {e.path.name for e in after}
    assert set(Passages(store).work_since(position, 10).removed) == {2, 3, 4}
    store.paths.damaged.mkdir()
    (store.paths.damaged / "old.duckdb").write_text(CANARY)
    assert str(store.paths.damaged) in forget(store, [])[-1], "what may contain it is named"


def test_nothing_comes_back_after_a_kill_or_a_restore(store: Store, tmp_path: Path) -> None:
    running = add_running(store, "Why?")
    reply = store.ids.message()
    journal_reply(store, running.exchanges[0], reply, "Because ")
    gone = add_secret(store)
    make_backup(store)
    forget(store, [gone.conversation.id])
    assert len(segments(store.paths.journal)) == 1
    journal_reply(store, running.exchanges[0], reply, "it is.")
    add_conversation(store, "later", title="Later")
    after_kill = killed(store, tmp_path / "killed")
    zero(after_kill / "commonplace.duckdb", 12288)
    with opened(after_kill) as again:
        assert titles(again) == {"A talk", "Later"}
        assert "backup of" in again.notices[1]
        assert again.ids.conversation() > gone.conversation.id
        assert again.ids.message() > gone.messages[-1].id
        texts = {row[5] for row in tables(again)["message"]}
        assert {"Why?", "Because it is."} <= texts, "a reply that runs elsewhere survives the cut"
    assert files_with(after_kill) == set()


def test_others_read_and_write_meanwhile(store: Store) -> None:
    for number in range(10):
        add_conversation(store, "text " * 500, title=f"T{number}")
    gone = add_secret(store)
    stop = threading.Event()
    written: list[str] = []
    failures: list[Exception] = []

    def work() -> None:
        while not stop.is_set():
            try:
                add_conversation(store, "meanwhile", title=f"M{len(written)}")
                written.append(f"M{len(written)}")
                assert len(titles(store)) >= 10
            except Exception as error:  # noqa: BLE001 - reported to the test
                failures.append(error)
                return

    working = threading.Thread(target=work)
    working.start()
    try:
        forget(store, [gone.conversation.id])
    finally:
        stop.set()
        working.join()
    assert failures == []
    assert titles(store) == {*(f"T{n}" for n in range(10)), *written}
    assert files_with(store.paths.root) == set()
    assert check(store).problems == ()


@pytest.mark.parametrize(
    ("when", "step"),
    [
        ("before", "_begin_clean_segment"), ("before", "_rewrite"), ("after", "_swap"),
        ("after", "_renew_backups"), ("before", "_record_erased"),
    ],
)  # fmt: skip
def test_after_a_kill_at_any_step_forgetting_is_completed_later(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, step: str
) -> None:
    add_conversation(store, "something else", title="Stays")
    gone = add_secret(store)
    make_backup(store)
    done: Callable[..., object] = getattr(forget_module, step)

    def killed_here(*given: object) -> object:
        if when == "after":
            done(*given)
        raise StorageError("killed here")

    monkeypatch.setattr(forget_module, step, killed_here)
    with pytest.raises(StorageError, match="killed here"):
        forget(store, [gone.conversation.id])
    assert titles(store) == {"Stays"}
    monkeypatch.undo()
    after_kill = killed(store, tmp_path / "killed")
    with opened(after_kill) as again:
        assert finish_forgetting(again) is True
        assert finish_forgetting(again) is False
        assert titles(again) == {"Stays"}
        assert check(again).problems == ()
        again.checkpoint().result()
        assert files_with(after_kill) == set()


def test_conversations_in_the_trash_for_too_long_are_forgotten(store: Store) -> None:
    old, new, _ = (add_conversation(store, "x", title=title) for title in ("Old", "New", "Kept"))
    position = store.journal.last_position
    forget(store, [])
    assert store.journal.last_position == position
    for whole, days in ((old, 31), (new, 29)):
        at = AT - timedelta(days=days)
        store.save(ConversationEdited(whole.conversation.id, deleted_at=at))
    assert purge_trash(store, AT - timedelta(days=30)) == 1
    assert titles(store) == {"New", "Kept"}
    position = store.journal.last_position
    assert purge_trash(store, AT - timedelta(days=30)) == 0
    assert store.journal.last_position == position
    again = new_conversation(store, "x", title="Old")
    store.save(*again.changes)
    assert again.conversation.id != old.conversation.id
    assert titles(store) == {"Old", "New", "Kept"}, "written again it is a new one"
    forget(store, [ConversationId(77), ConversationId(77)])
    assert len(list_backups(store.paths.backups)) == 2
    assert finish_forgetting(store) is False


def test_every_table_that_names_a_conversation_is_erased(store: Store) -> None:
    named = store.rows(
        "SELECT DISTINCT table_name FROM duckdb_columns() WHERE database_name = current_database() "
        "AND column_name IN ('conversation_id', 'exchange_id', 'message_id')"
    )
    erased = {
        table.name
        for aggregate in AGGREGATES
        for table in aggregate.tables
        if table.erased or aggregate.erase is not None
    }
    by_id = {"fact", "fact_version"}  # `delete_facts_of_conversations`
    assert {name for (name,) in named} - erased == by_id


# -- quotes in other conversations

STAYS = "The price of coal from the mine at Zwickau rose in 1887"
QUESTION = "What do we know about coal in the mine?"
MULE = "The user keeps a mule beside the coal mine."
PUMP = "Oil the pump\nbelow the shaft\nat noon."


class Book:
    """A library in which things are said, looked up and quoted, as the program does it."""

    def __init__(self, services: Services) -> None:
        self.services, self.store = services, services.store
        self.gone = add_conversation(
            self.store,
            (f"{CANARY} sings of coal in the mine", f"So {CANARY} does"),
            title=f"{CANARY} coal",
        )
        self.stays = add_conversation(self.store, STAYS, title="Coal prices")
        self.asker = add_conversation(self.store, QUESTION, title="Asker")
        self.learn(f"The user keeps {CANARY} for the coal mine.", self.gone)
        services.memories.save(
            f"Feed {CANARY} in the coal mine at five.", self.gone.conversation.id,
            self.gone.exchanges[0].id,
        )  # fmt: skip

    def learn(self, text: str, source: ConversationRecord) -> Fact:
        """Learn a fact from a conversation's first turn."""
        fact, passage = fact_of(self.store, source, text)
        self.store.save(FactPut(fact), passage)
        return fact

    def append(
        self, asker: ConversationRecord, *added: tuple[Role, tuple[Block, ...], str | None]
    ) -> None:
        """Append messages to a conversation's first exchange."""
        exchange = self.exchange(asker)
        parent = exchange.message_ids[-1]
        messages = []
        for role, blocks, model in added:
            message = Message(
                self.store.ids.message(), new_uid(), asker.conversation.id, parent, role, blocks,
                AT, model,
            )  # fmt: skip
            parent = message.id
            messages.append(message)
        ids = (*exchange.message_ids, *(each.id for each in messages))
        grown = replace(exchange, message_ids=ids)
        changes: list[Change] = [MessagesAdded(tuple(messages)), ExchangePut(grown)]
        if not asker.conversation.private:
            in_all = [*self.services.exchanges.messages_of(exchange), *messages]
            passage = turn_passage(self.store.ids.passage(), grown, in_all)
            assert passage is not None
            earlier = self.services.passages.of_source(PassageKind.TURN, grown.id)
            changes.append(PassagesPut((passage,), replaced=tuple(earlier)))
        self.store.save(*changes)

    def append_answer(self, text: str) -> None:
        """Append an answer of Recall to the asker's turn."""
        self.append(self.asker, (Role.ASSISTANT, (Text(text),), RECALL_MODEL))

    def append_result(self, asker: ConversationRecord, result: ToolResult, call: ToolCall) -> None:
        """Append a tool's result with the call before and an answer after it."""
        self.append(
            asker, (Role.ASSISTANT, (call,), "openai:m"), (Role.TOOL, (result,), None),
            (Role.ASSISTANT, (Text("I see."),), "openai:m"),
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
        """Return what a tool answers, and the call."""
        s = self.services
        s.index_sync.catch_up(lambda: False)
        of_memory = MemoryTools(self.store, s.search, s.memories, s.core_memory).tools()
        box = Toolbox((*ConversationTools(self.store, s.search).tools(), *of_memory))
        call = ToolCall(new_uid(), name, json.dumps(arguments))
        context = ToolContext(asker.conversation, asker.exchanges[0].id, "openai:m")
        result = box.run(call, context)
        assert not result.is_error, result.text
        return result, call

    def recalled(self, question: str = QUESTION) -> str:
        """Return what Recall answers."""
        self.services.index_sync.catch_up(lambda: False)
        asked = replace(self.asker.messages[0], blocks=(Text(question),))
        model = RecallModel(self.services.recall.quotable)

        async def answer() -> str:
            events = model.stream(ChatRequest("", (asked,)))
            return "".join([each.text async for each in events if isinstance(each, TextDelta)])

        return asyncio.run(answer())

    def exchange(self, asker: ConversationRecord) -> Exchange:
        """Return a conversation's first exchange as it is now."""
        return self.services.exchanges.get(asker.exchanges[0].id)

    def messages_in(self, conversation: ConversationId) -> list[Message]:
        """Return the messages of a conversation, in order."""
        exchanges = self.services.exchanges
        return [m for each in exchanges.of(conversation) for m in exchanges.messages_of(each)]

    def texts(self) -> str:
        """Return all that is stored in messages, as one text."""
        return "\n".join(map(str, self.store.rows("SELECT text, blocks FROM message ORDER BY id")))

    def forget(self, *changes: Change) -> str:
        """Forget facts and memories; return what is stored in messages then."""
        gone = tuple(
            each.fact_id if isinstance(each, FactForgotten) else each.memory_id
            for each in changes
            if isinstance(each, FactForgotten | MemoryForgotten)
        )
        self.store.save(*changes, PassagesPut((), gone))
        finish_forgetting(self.store)
        return self.texts()

    def finds_by_text(self, words: str) -> set[ConversationId | None]:
        """Return the conversations whose turns the text index finds."""
        self.services.index_sync.catch_up(lambda: False)
        found = self.services.search.by_sentence(words, 10, (PassageKind.TURN,))
        return {each.conversation_id for each in found}


@pytest.fixture
def book(data_dir: Path) -> Iterator[Book]:
    with plain_databases():
        services = build(DataPaths(data_dir), RunMode.COMMAND_LINE)
        yield Book(services)
        services.close()


def look_up_everything(book: Book) -> list[str]:
    """Quote what is to be forgotten in every way there is; return the results."""
    gone = book.gone.conversation.id
    details = "fetch_conversation_details"
    results = [
        book.called("conversation_search", query="coal in the mine"),
        book.called("memory_search", query="coal in the mine", limit=20),
        book.called("memory_search", query="coal in the mine", limit=20, offset=150),
        book.called(details, conversation_id=gone),
        book.called(details, exchange_id=book.gone.exchanges[0].id),
        book.called(details, conversation_id=gone, include_full_transcript=True, offset=170),
    ]
    assert all(CANARY in each for each in results)
    answer = book.recalled()
    assert CANARY in answer
    book.append_answer(answer)
    # Others read the conversation that quotes, and so quote it at second hand.
    other = add_conversation(book.store, "What did the asker find?", title="At second hand")
    asker = book.asker.conversation.id
    second = book.called(details, other, conversation_id=asker, include_full_transcript=True)
    assert CANARY in second
    return results


def test_every_quote_of_a_forgotten_conversation_is_redacted(book: Book, tmp_path: Path) -> None:
    before = look_up_everything(book)
    private = add_conversation(book.store, "hush", title="Private", private=True)
    book.called("memory_search", private, query="coal in the mine")
    assert book.asker.conversation.id in book.finds_by_text("canary 7f3a9c")
    book.services.probes.add(f"Where is {CANARY}?", book.gone.exchanges[0].id)
    book.services.probes.add("coal prices", book.stays.exchanges[0].id)

    book.store.save(ConversationForgotten(book.gone.conversation.id))
    after_kill = killed(book.store, tmp_path / "killed")
    finish_forgetting(book.store)
    assert CANARY not in book.texts()
    assert book.asker.conversation.id not in book.finds_by_text("canary 7f3a9c")
    assert [each.probe.question for each in book.services.probes.listed()] == ["coal prices"]
    assert files_with(book.store.paths.root) == set()
    assert check(book.store).problems == ()

    messages = book.services.exchanges.messages_of(book.exchange(book.asker))
    results = [b.text for m in messages for b in m.blocks if isinstance(b, ToolResult)]
    lines = set(before[0].split("\n")) - set(results[0].split("\n"))
    assert lines
    assert all(CANARY in line for line in lines), "what is beside a quote is unchanged"
    assert STAYS in results[0]
    assert FORGOTTEN in results[0]
    json.loads(results[0])
    assert results[3] == results[4] == results[5] == FORGOTTEN
    (answer,) = [each.text for each in messages if each.model == RECALL_MODEL]
    assert f"*{FORGOTTEN}*" in answer
    assert STAYS in answer

    services = build(DataPaths(after_kill), RunMode.COMMAND_LINE)
    try:
        assert finish_forgetting(services.store) is True
        services.index_sync.catch_up(lambda: False)
        services.store.checkpoint().result()
        assert files_with(after_kill) == set()
    finally:
        services.close()


def test_moving_to_the_trash_and_forgetting_what_is_not_quoted_redact_nothing(book: Book) -> None:
    look_up_everything(book)
    before = book.texts()
    book.store.save(MemoryForgotten(PassageId(999_999)))
    book.store.save(ConversationEdited(book.gone.conversation.id, deleted_at=AT))
    assert book.texts() == before
    assert CANARY not in book.call("conversation_search", book.asker, query="coal mine")[0].text
    assert CANARY not in book.recalled()
    book.store.save(ConversationEdited(book.gone.conversation.id, restored=True))
    imported = (("x", book.asker.conversation.id),)
    book.store.save(OriginsAdded("commonplace", "conversation", imported))
    unlike = add_conversation(book.store, "Something else entirely", title="Unlike")
    forget(book.store, [unlike.conversation.id])
    assert CANARY in book.texts()
    forget(book.store, [book.gone.conversation.id])
    assert CANARY not in book.texts(), "quotes in imported conversations are found by text"
    assert STAYS in book.texts()


def test_a_forgotten_fact_and_memory_are_redacted_in_results_but_not_in_their_source(
    book: Book,
) -> None:
    fact = book.learn(MULE, book.stays)
    memory = book.services.memories.save("Oil the lamp of the coal mine on Monday.")
    assert fact.text in book.called("memory_search", query="a mule beside the mine", limit=20)
    assert memory.text in book.called("memory_search", query="the lamp of the mine", limit=20)
    book.called("memory_search", query="the lamp of the coal mine", limit=20, offset=120)
    book.append_answer(book.recalled("Which animal is beside the coal mine?"))
    for change, text in (
        (FactForgotten(fact.id, "h"), fact.text), (MemoryForgotten(memory.id), memory.text),
    ):  # fmt: skip
        assert text not in book.forget(change)
        assert files_with(book.store.paths.root, text) == set()
    assert STAYS in book.texts()
    assert FORGOTTEN in book.texts()


def test_a_question_that_looks_like_the_name_of_a_fact_shields_no_quote() -> None:
    link = "[Fact 7 · 3 May 2026](commonplace://3/0) · 80%"
    answer = "\n".join(("**Talk** · 3 May 2026", "", link, "", f"> {MULE}", "", ""))
    leaving = DeletionSet(
        frozenset(), frozenset(), frozenset({9}), TextFingerprints([MULE], whole=True)
    )
    assert MULE not in redact_answer(answer, QuoteContext(leaving, knows_ids=True))
    known = answer.replace("**Talk** · 3 May 2026", "**Facts** · learned from what was said")
    assert MULE in redact_answer(known, QuoteContext(leaving, knows_ids=True)), "fact 7 stays"


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
    memory = book.services.memories.save(PUMP)
    asked = ("Which mule does the user keep?", "Which lantern is kept?", "Which pump, oiled below?")
    answer = "\n\n".join(map(book.recalled, asked))
    for text in (learned.text, written.text, "Oil the pump", "at noon."):
        assert text in answer
    book.append_answer(answer)
    return learned, written, memory


def test_only_what_is_forgotten_is_redacted_in_recalls_answer(
    book: Book, known: tuple[Fact, Fact, Memory]
) -> None:
    learned, written, memory = known
    texts = book.forget(FactForgotten(learned.id, "h"))
    assert learned.text not in texts
    assert files_with(book.store.paths.root, learned.text) == set()
    assert written.text in texts
    assert "Oil the pump" in texts
    texts = book.forget(FactForgotten(written.id, "i"))
    assert written.text not in texts
    assert f"Fact {written.id}" not in texts
    assert "Oil the pump" in texts
    texts = book.forget(MemoryForgotten(memory.id))
    for line in memory.text.split("\n"):
        assert line not in texts
        assert files_with(book.store.paths.root, line) == set()
    assert check(book.store).problems == ()


def test_facts_of_a_forgotten_conversation_and_forks_are_redacted_too(
    book: Book, known: tuple[Fact, Fact, Memory]
) -> None:
    learned, written, memory = known
    fork = Library(book.store).fork(book.asker.exchanges[0].id)
    assert any(learned.text in each.text for each in book.messages_in(fork))
    book.forget(MemoryForgotten(memory.id))
    assert forget(book.store, [book.stays.conversation.id])
    texts = book.texts()
    for text in (learned.text, STAYS, "Oil the pump"):
        assert text not in texts
    (answer,) = (each.text for each in book.messages_in(fork) if each.model == RECALL_MODEL)
    assert written.text in answer


@pytest.mark.parametrize("origin", ["conversation", "message"])
def test_quotes_in_imported_answers_are_found_by_text(
    book: Book, known: tuple[Fact, Fact, Memory], origin: str
) -> None:
    learned, written, memory = known
    if origin == "conversation":
        imported = int(book.asker.conversation.id)
    else:
        # Continued on another machine, where ids name other things, and merged from its export.
        answer = book.messages_in(book.asker.conversation.id)[-1].text
        book.append_answer(re.sub(r"(Fact |Memory |commonplace://)(\d+)", r"\g<1>99\2", answer))
        imported = int(book.messages_in(book.asker.conversation.id)[-1].id)
    book.store.save(OriginsAdded("commonplace", origin, (("x", imported),)))
    other = book.learn("The user cannot abide violins.", book.stays)
    assert written.text in book.forget(FactForgotten(other.id, "h"))
    assert "Oil the pump" not in book.forget(MemoryForgotten(memory.id))
    if origin == "conversation":
        assert learned.text not in book.forget(FactForgotten(learned.id, "i"))
        assert written.text in book.texts()
    else:
        forget(book.store, [book.stays.conversation.id])
        assert learned.text not in book.texts()
        assert STAYS not in book.texts()


# -- what comes after the forgetting


def test_quotes_in_a_running_reply_are_redacted_when_stored(book: Book) -> None:
    answers = [book.recalled("Who sings of coal in the mine?")]
    memory = book.services.memories.save("Oil the pump below the shaft at noon.")
    fact = book.learn(MULE, book.stays)
    queries = ("coal in the mine", "the pump and the mule")
    found = [book.call("memory_search", book.asker, query=each) for each in queries]
    answers += map(book.recalled, ("oil the pump below the shaft", "which mule?"))
    answer = "\n\n".join(answers)
    gone = (CANARY, memory.text, fact.text)
    for text in gone:
        assert text in "".join(result.text for result, _ in found)
        assert text in answer
    running = add_running(book.store, "And?").exchanges[0]
    reply = book.store.ids.message()
    grew = ReplyGrew(running.id, reply, "text", answer, AT, RECALL_MODEL)
    book.store.journal_only(grew).result()
    exchange = book.asker.exchanges[0]
    facts = (
        PromptPiece(f"- fact {each} · today\n  > {text}\n")
        for each, text in ((memory.id, memory.text), (fact.id, fact.text), (99, STAYS))
    )
    part = PlanPart(PlanPartKind.FACTS, 9, False, (PromptPiece("\nFacts:\n"), *facts))
    prompt = StoredPrompt(
        exchange.id, exchange.conversation_id, AT, "openai:m", 99, 99, (part,), ()
    )
    book.forget(MemoryForgotten(memory.id), FactForgotten(fact.id, "h"))
    forget(book.store, [book.gone.conversation.id])
    for result, call in found:
        book.append_result(book.asker, result, call)
    book.append_answer(answer)
    book.store.journal_only(grew).result()
    journal_reply(book.store, running, reply, "more")
    book.store.save(PromptStored(prompt))
    stored = book.services.prompts.of(exchange.id)
    assert stored is not None
    assert [piece.text for piece in stored.parts[0].pieces] == [
        "\nFacts:\n", f"- fact 99 · today\n  > {STAYS}\n",
    ]  # fmt: skip
    for text in gone:
        assert text not in book.texts()
        assert files_with(book.store.paths.root, text) == set()


def test_a_late_edit_does_not_bring_a_forgotten_fact_or_memory_back(book: Book) -> None:
    fact, waiting = book.learn(MULE, book.gone), book.learn("The user keeps two.", book.gone)
    memory = book.services.memories.save("Oil the pump below the shaft at noon.")
    edited = replace(fact, text="The user keeps a mule beside the old mine.", pinned=True)
    go_on = threading.Event()
    held = book.store.on_writer(lambda: go_on.wait(10))
    futures = [
        book.store.commit(FactForgotten(waiting.id, "h"), PassagesPut((), (waiting.id,))),
        book.store.commit(*fact_changes(replace(waiting, pinned=True))),
    ]
    go_on.set()
    held.result()
    for each in futures:
        each.result()
    book.forget(FactForgotten(fact.id, "h"), MemoryForgotten(memory.id))
    book.store.save(*fact_changes(edited), MemoryPut(memory), FactPut(fact))
    for text in (fact.text, edited.text, memory.text, waiting.text):
        assert files_with(book.store.paths.root, text) == set()
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
    edited = book.services.fact_book.edit(fact.id, "The user keeps two mules.")
    assert edited.conversation_id == fact.conversation_id
    assert book.services.facts.listed(FactFilter())[0].fact.text == edited.text


def test_what_is_saved_again_after_it_was_forgotten_may_be_quoted(book: Book) -> None:
    first = book.services.memories.save("Oil the pump below the shaft at noon.")
    book.forget(MemoryForgotten(first.id))
    again = book.services.memories.save(first.text)
    assert again.text in book.called("memory_search", query="oil the pump below the shaft")
    book.append_answer(book.recalled("oil the pump below the shaft"))
    quoting = [
        m for m in book.messages_in(book.asker.conversation.id) if again.text in str(m.blocks)
    ]
    assert len(quoting) == 2
