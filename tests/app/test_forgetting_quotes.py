"""What is forgotten leaves other conversations too, where the program itself quoted it there."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.bootstrap import Role as Front
from app.bootstrap import Services, build
from app.chat.tools.conversations import ConversationTools
from app.chat.tools.memory import MemoryTools
from app.chat.tools.toolbox import Toolbox, ToolContext
from app.check import check
from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationForgotten,
    ExchangePut,
    FactForgotten,
    FactPut,
    MemoryForgotten,
    MessagesAdded,
    OriginsAdded,
    PassagesPut,
    ReplyGrew,
)
from app.domain.chat import ChatRequest, TextDelta
from app.domain.conversations import Block, Exchange, Message, Role, Text, ToolCall, ToolResult
from app.domain.facts import BY_PATTERNS, Fact, FactCategory
from app.domain.ids import PassageId, new_uid
from app.domain.passages import Passage, PassageKind
from app.domain.turn_text import QUOTING_MODEL, content_hash, turn_passage
from app.providers.recall import RecallModel
from app.storage.forget import finish_forgetting, forget
from app.storage.leaving import Leaving, Wordings
from app.storage.quotes import FORGOTTEN, Host, answer_without
from app.system.paths import DataPaths
from tests.fakes.canary import CANARY, files_with, plain_databases
from tests.fakes.stored import AT, Told, asked, grow, killed, told

STAYS = "The price of coal from the mine at Zwickau rose in 1887"
QUESTION = "What do we know about coal in the mine?"


class Book:
    """A library in which things are said, looked up and quoted, as the program does it."""

    def __init__(self, services: Services) -> None:
        self.services, self.store = services, services.store
        self.gone = told(
            self.store,
            (f"{CANARY} sings of coal in the mine", f"So {CANARY} does"),
            title=f"{CANARY} coal",
        )
        self.stays = told(self.store, STAYS, title="Coal prices")
        self.asker = told(self.store, QUESTION, title="Asker")
        self.fact = self.learn(f"The user keeps {CANARY} for the coal mine.")
        self.memory = services.memories.save(
            f"Feed {CANARY} in the coal mine at five.", self.gone.conversation.id,
            self.gone.exchanges[0].id,
        )  # fmt: skip

    def learn(self, text: str, source: Told | None = None) -> Fact:
        """Learn a fact from a conversation's first turn."""
        exchange = (source or self.gone).exchanges[0]
        own = self.store.ids.passage()
        place = (exchange.conversation_id, exchange.id)
        fact = Fact(
            own, new_uid(), text, FactCategory.POSSESSION, "", *place, exchange.message_ids[0],
            AT, BY_PATTERNS, AT,
        )  # fmt: skip
        passage = Passage(own, PassageKind.FACT, own, *place, content_hash(text), AT, 5)
        self.store.save(FactPut(fact), PassagesPut((passage,)))
        return fact

    def says(self, asker: Told, *said: tuple[Role, tuple[Block, ...], str | None]) -> Exchange:
        """Append messages to a conversation's first exchange."""
        exchange = self.services.exchanges.by_ids([asker.exchanges[0].id])[asker.exchanges[0].id]
        parent = exchange.message_ids[-1]
        messages = []
        for role, blocks, model in said:
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
            said_in_all = [*self.services.exchanges.messages_of(exchange), *messages]
            passage = turn_passage(self.store.ids.passage(), grown, said_in_all)
            assert passage is not None
            earlier = self.services.passages.of_source(PassageKind.TURN, grown.id)
            changes.append(PassagesPut((passage,), replaced=tuple(earlier)))
        self.store.save(*changes)
        return grown

    def called(self, name: str, asker: Told | None = None, **arguments: object) -> ToolResult:
        """Call a tool and store call and result."""
        asker = asker or self.asker
        result, call = self.answer(name, asker, **arguments)
        self.says(
            asker, (Role.ASSISTANT, (call,), "openai:m"), (Role.TOOL, (result,), None),
            (Role.ASSISTANT, (Text("I see."),), "openai:m"),
        )  # fmt: skip
        return result

    def answer(self, name: str, asker: Told, **arguments: object) -> tuple[ToolResult, ToolCall]:
        """Return what a tool answers, and the call."""
        store, search = self.store, self.services.search
        self.services.index_sync.catch_up(lambda: False)
        box = Toolbox(
            (
                *ConversationTools(store, search).tools(),
                *MemoryTools(
                    store, search, self.services.memories, self.services.core_memory
                ).tools(),
            )
        )
        call = ToolCall(new_uid(), name, json.dumps(arguments))
        context = ToolContext(asker.conversation, asker.exchanges[0].id, "openai:m")
        result = box.run(call, context)
        assert not result.is_error, result.text
        return result, call

    def recalled(self, question: str = QUESTION) -> str:
        """Return what Recall answers."""
        self.services.index_sync.catch_up(lambda: False)
        said = replace(self.asker.messages[0], blocks=(Text(question),))
        model = RecallModel(self.services.recall.quotable)

        async def answer() -> str:
            request = ChatRequest("", (said,))
            return "".join(
                [each.text async for each in model.stream(request) if isinstance(each, TextDelta)]
            )

        return asyncio.run(answer())

    def texts(self) -> str:
        """Return all that is stored in messages, as one text."""
        rows = self.store.read(
            lambda cursor: cursor.execute("SELECT text, blocks FROM message ORDER BY id").fetchall()
        )
        return "\n".join(str(row) for row in rows)


@pytest.fixture
def book(data_dir: Path) -> Iterator[Book]:
    with plain_databases():
        services = build(DataPaths(data_dir), Front.COMMAND_LINE)
        yield Book(services)
        services.close()


def look_up_everything(book: Book) -> list[str]:
    """Quote what is to be forgotten in every way there is; return the results."""
    gone = book.gone.conversation.id
    results = [
        book.called("conversation_search", query="coal in the mine"),
        book.called("memory_search", query="coal in the mine", limit=20),
        book.called("memory_search", query="coal in the mine", limit=20, offset=150),
        book.called("fetch_conversation_details", conversation_id=gone),
        book.called("fetch_conversation_details", exchange_id=book.gone.exchanges[0].id),
        book.called(
            "fetch_conversation_details", conversation_id=gone, include_full_transcript=True,
            offset=170,
        ),
    ]  # fmt: skip
    assert all(CANARY in each.text for each in results)
    answer = book.recalled()
    assert CANARY in answer
    book.says(book.asker, (Role.ASSISTANT, (Text(answer),), QUOTING_MODEL))
    # Others read the conversation that quotes, and so quote it at second hand.
    other = told(book.store, "What did the asker find?", title="At second hand")
    second = book.called(
        "fetch_conversation_details", other, conversation_id=book.asker.conversation.id,
        include_full_transcript=True,
    )  # fmt: skip
    assert CANARY in second.text
    return [each.text for each in results]


def test_a_forgotten_conversation_leaves_every_quote_of_it(book: Book) -> None:
    look_up_everything(book)
    forget(book.store, [book.gone.conversation.id])
    assert CANARY not in book.texts()
    book.services.index_sync.catch_up(lambda: False)
    assert files_with(book.store.paths.root) == set()
    assert check(book.store).problems == ()


def test_what_stood_beside_the_quotes_stays_to_the_letter(book: Book) -> None:
    before = look_up_everything(book)
    forget(book.store, [book.gone.conversation.id])
    exchange = book.services.exchanges.by_ids([book.asker.exchanges[0].id])
    messages = book.services.exchanges.messages_of(exchange[book.asker.exchanges[0].id])
    results = [b.text for m in messages for b in m.blocks if isinstance(b, ToolResult)]
    lines = set(before[0].split("\n")) - set(results[0].split("\n"))
    assert lines
    assert all(CANARY in line for line in lines)
    assert STAYS in results[0]
    assert FORGOTTEN in results[0]
    json.loads(results[0])
    assert results[3] == results[4] == results[5] == FORGOTTEN
    (answer,) = [each.text for each in messages if each.model == QUOTING_MODEL]
    assert f"*{FORGOTTEN}*" in answer
    assert STAYS in answer
    assert "Recall answered, not a language model" in answer


def test_the_text_index_no_longer_finds_the_turn_by_the_quote(book: Book) -> None:
    book.called("memory_search", query="coal in the mine")
    book.services.index_sync.catch_up(lambda: False)
    found = book.services.search.by_sentence("canary 7f3a9c", 10, (PassageKind.TURN,))
    assert book.asker.conversation.id in {each.conversation_id for each in found}
    forget(book.store, [book.gone.conversation.id])
    book.services.index_sync.catch_up(lambda: False)
    found = book.services.search.by_sentence("canary 7f3a9c", 10, (PassageKind.TURN,))
    assert book.asker.conversation.id not in {each.conversation_id for each in found}


def test_the_trash_takes_no_quote_away(book: Book) -> None:
    look_up_everything(book)
    book.store.save(ConversationEdited(book.gone.conversation.id, deleted_at=AT))
    before = book.texts()
    assert CANARY in before
    assert CANARY not in book.answer("conversation_search", book.asker, query="coal mine")[0].text
    assert CANARY not in book.recalled()
    book.store.save(ConversationEdited(book.gone.conversation.id, restored=True))
    assert book.texts() == before


def test_a_private_conversation_loses_its_quotes_too(book: Book) -> None:
    private = told(book.store, "hush", title="Private", private=True)
    book.called("memory_search", private, query="coal in the mine")
    forget(book.store, [book.gone.conversation.id])
    assert CANARY not in book.texts()


def test_in_an_imported_conversation_words_tell_what_ids_cannot(book: Book) -> None:
    look_up_everything(book)
    conversation = book.asker.conversation.id
    book.store.save(OriginsAdded("commonplace", "conversation", (("x", conversation),)))
    unlike = told(book.store, "Something else entirely", title="Unlike")
    forget(book.store, [unlike.conversation.id])
    before = book.texts()
    assert CANARY in before
    forget(book.store, [book.gone.conversation.id])
    assert CANARY not in book.texts()
    assert STAYS in book.texts()


def test_a_forgotten_fact_leaves_the_results_that_quoted_it_and_its_source_stays(
    book: Book,
) -> None:
    fact = book.learn("The user keeps a mule beside the coal mine.", book.stays)
    result = book.called("memory_search", query="a mule beside the coal mine", limit=20)
    assert fact.text in result.text
    answer = book.recalled("Which animal is beside the coal mine?")
    book.says(book.asker, (Role.ASSISTANT, (Text(answer),), QUOTING_MODEL))
    book.store.save(FactForgotten(fact.id, "h"))
    finish_forgetting(book.store)
    assert fact.text not in book.texts()
    assert files_with(book.store.paths.root, fact.text) == set()
    assert STAYS in book.texts()
    assert FORGOTTEN in book.texts()


def test_a_forgotten_memory_leaves_the_results_that_quoted_it(book: Book) -> None:
    memory = book.services.memories.save("Oil the lamp of the coal mine on Monday.")
    result = book.called("memory_search", query="the lamp of the coal mine", limit=20)
    assert memory.text in result.text
    torn = book.called("memory_search", query="the lamp of the coal mine", limit=20, offset=120)
    book.store.save(MemoryForgotten(memory.id), PassagesPut((), (memory.id,)))
    finish_forgetting(book.store)
    assert memory.text not in book.texts()
    assert files_with(book.store.paths.root, memory.text) == set()
    assert len(torn.text) > 0


def test_what_a_reply_under_way_quotes_is_taken_out_as_it_is_stored(book: Book) -> None:
    result, call = book.answer("memory_search", book.asker, query="coal in the mine")
    answer = book.recalled()
    running = asked(book.store, "And?")
    reply = book.store.ids.message()
    book.store.journal_only(
        ReplyGrew(running.exchanges[0].id, reply, "text", answer, AT, QUOTING_MODEL)
    ).result()
    forget(book.store, [book.gone.conversation.id])
    book.says(
        book.asker, (Role.ASSISTANT, (call,), "openai:m"), (Role.TOOL, (result,), None),
        (Role.ASSISTANT, (Text(answer),), QUOTING_MODEL),
    )  # fmt: skip
    grow(book.store, running.exchanges[0], reply, "more")
    assert CANARY not in book.texts()
    assert files_with(book.store.paths.root) == set()


def test_a_question_that_looks_like_the_name_of_a_fact_shields_no_quote() -> None:
    gone = "The user keeps a mule beside the coal mine."
    link = "[Fact 7 · 3 May 2026](commonplace://3/0) · 80%"
    answer = "\n".join(("**Talk** · 3 May 2026", "", link, "", f"> {gone}", "", ""))
    leaving = Leaving(frozenset(), frozenset(), frozenset({9}), Wordings([gone]))
    assert gone not in answer_without(answer, Host(leaving, knows_ids=True))
    known = answer.replace("**Talk** · 3 May 2026", "**Facts** · learned from what was said")
    assert gone in answer_without(known, Host(leaving, knows_ids=True)), "fact 7 stays"


def test_a_probe_question_leaves_with_its_turn(book: Book) -> None:
    book.services.index_sync.catch_up(lambda: False)
    book.services.probes.add(f"Where is {CANARY}?", book.gone.exchanges[0].id)
    book.services.probes.add("coal prices", book.stays.exchanges[0].id)
    forget(book.store, [book.gone.conversation.id])
    assert [each.probe.question for each in book.services.probes.listed()] == ["coal prices"]
    assert files_with(book.store.paths.root) == set()


def test_a_kill_after_the_rows_are_gone_leaves_no_quote(book: Book, tmp_path: Path) -> None:
    look_up_everything(book)
    book.store.save(ConversationForgotten(book.gone.conversation.id))
    image = killed(book.store, tmp_path / "killed")
    services = build(DataPaths(image), Front.COMMAND_LINE)
    try:
        assert finish_forgetting(services.store) is True
        services.index_sync.catch_up(lambda: False)
        services.store.checkpoint().result()
        assert files_with(image) == set()
    finally:
        services.close()


def test_a_memory_that_was_never_quoted_takes_nothing(book: Book) -> None:
    look_up_everything(book)
    before = book.texts()
    book.store.save(MemoryForgotten(PassageId(999_999)))
    assert book.texts() == before
