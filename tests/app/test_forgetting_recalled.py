"""Facts and saved texts that Recall quoted leave its answers when they are forgotten, and nothing else does."""

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from app.bootstrap import Role as Front
from app.bootstrap import build
from app.chat.library import Library
from app.check import check
from app.domain.changes import (
    Change,
    FactForgotten,
    FactPut,
    MemoryForgotten,
    MemoryPut,
    OriginsAdded,
    PassagesPut,
    PromptKept,
)
from app.domain.conversations import Message, Role, Text
from app.domain.facts import Fact, Memory
from app.domain.ids import ConversationId
from app.domain.recalls import KeptPrompt, Piece, PlanPart, PlanPartKind
from app.domain.turn_text import QUOTING_MODEL
from app.storage.facts import FactFilter, fact_changes
from app.storage.forget import finish_forgetting, forget
from app.system.paths import DataPaths
from tests.app.test_forgetting_quotes import STAYS, Book
from tests.fakes.canary import files_with, plain_databases
from tests.fakes.stored import AT


@pytest.fixture
def book(data_dir: Path) -> Iterator[Book]:
    with plain_databases():
        services = build(DataPaths(data_dir), Front.COMMAND_LINE)
        yield Book(services)
        services.close()


def known_quoted(book: Book) -> tuple[Fact, Fact, Memory]:
    """Let Recall quote a fact of what stays, one that the user wrote, and a saved text; return them."""
    told_there = book.learn("The user keeps a mule beside the coal mine.", book.stays)
    written = replace(
        book.learn("The user keeps a lantern beside the coal mine."),
        conversation_id=None, exchange_id=None, message_id=None,
    )  # fmt: skip
    book.store.save(*fact_changes(written))
    memory = book.services.memories.save("Oil the pump\nbelow the shaft\nat noon.")
    asked = ("Which mule does the user keep?", "Which lantern is kept?", "Which pump, oiled below?")
    answer = "\n\n".join(map(book.recalled, asked))
    for words in (told_there.text, written.text, "Oil the pump", "at noon."):
        assert words in answer
    book.says(book.asker, (Role.ASSISTANT, (Text(answer),), QUOTING_MODEL))
    return told_there, written, memory


def forgotten(book: Book, *changes: Change) -> str:
    """Forget; return what is stored in messages then."""
    book.store.save(*changes)
    finish_forgetting(book.store)
    return book.texts()


def test_of_what_recall_quoted_only_the_fact_that_is_forgotten_leaves(book: Book) -> None:
    told_there, written, _ = known_quoted(book)
    texts = forgotten(book, FactForgotten(told_there.id, "h"), PassagesPut((), (told_there.id,)))
    assert told_there.text not in texts
    assert files_with(book.store.paths.root, told_there.text) == set()
    assert written.text in texts
    assert "Oil the pump" in texts
    texts = forgotten(book, FactForgotten(written.id, "i"), PassagesPut((), (written.id,)))
    assert written.text not in texts
    assert f"Fact {written.id}" not in texts
    assert "Oil the pump" in texts
    assert check(book.store).problems == ()


def test_a_saved_text_that_is_forgotten_leaves_recalls_answer_line_by_line(book: Book) -> None:
    told_there, written, memory = known_quoted(book)
    texts = forgotten(book, MemoryForgotten(memory.id), PassagesPut((), (memory.id,)))
    for line in memory.text.split("\n"):
        assert line not in texts
        assert files_with(book.store.paths.root, line) == set()
    assert told_there.text in texts
    assert written.text in texts


def test_a_forgotten_conversation_takes_its_facts_out_of_recalls_answers(book: Book) -> None:
    told_there, written, _ = known_quoted(book)
    assert forget(book.store, [book.stays.conversation.id])
    texts = book.texts()
    assert told_there.text not in texts
    assert STAYS not in texts
    assert written.text in texts
    assert "Oil the pump" in texts


def test_a_fork_loses_what_recall_quoted_as_well(book: Book) -> None:
    told_there, _, memory = known_quoted(book)
    fork = Library(book.store).fork(book.asker.exchanges[0].id)
    assert any(told_there.text in each.text for each in said_in(book, fork))
    forgotten(
        book, FactForgotten(told_there.id, "h"), MemoryForgotten(memory.id),
        PassagesPut((), (told_there.id, memory.id)),
    )  # fmt: skip
    (answer,) = (each.text for each in said_in(book, fork) if each.model == QUOTING_MODEL)
    assert told_there.text not in answer
    assert "Oil the pump" not in answer


def test_in_an_imported_answer_words_tell_what_is_quoted(book: Book) -> None:
    told_there, written, memory = known_quoted(book)
    imported = (("x", book.asker.conversation.id),)
    book.store.save(OriginsAdded("commonplace", "conversation", imported))
    other = book.learn("The user cannot abide violins.", book.stays)
    assert written.text in forgotten(book, FactForgotten(other.id, "h"))
    texts = forgotten(book, FactForgotten(told_there.id, "i"), MemoryForgotten(memory.id))
    assert told_there.text not in texts
    assert "Oil the pump" not in texts
    assert written.text in texts


def test_an_answer_that_a_conversation_of_ours_got_elsewhere_is_known_by_its_words(
    book: Book,
) -> None:
    told_there, _, memory = known_quoted(book)
    answer = said_in(book, book.asker.conversation.id)[-1]
    # Continued on another machine, where ids name other things, and merged from its export.
    elsewhere = re.sub(r"(Fact |Memory |commonplace://)(\d+)", r"\g<1>99\2", answer.text)
    book.says(book.asker, (Role.ASSISTANT, (Text(elsewhere),), QUOTING_MODEL))
    added = said_in(book, book.asker.conversation.id)[-1]
    book.store.save(OriginsAdded("commonplace", "message", (("y", added.id),)))
    assert memory.text.split("\n")[0] in added.text
    texts = forgotten(book, MemoryForgotten(memory.id))
    assert "Oil the pump" not in texts
    forget(book.store, [book.stays.conversation.id])
    assert told_there.text not in book.texts()
    assert STAYS not in book.texts()


def test_what_a_reply_under_way_quotes_of_a_memory_is_taken_out_as_it_is_stored(book: Book) -> None:
    memory = book.services.memories.save("Oil the pump below the shaft at noon.")
    fact = book.learn("The user keeps a mule beside the coal mine.", book.stays)
    result, call = book.answer("memory_search", book.asker, query="the pump and the mule")
    answer = "\n\n".join(map(book.recalled, ("oil the pump below the shaft", "which mule?")))
    kept = prompt_with(book, (memory.id, memory.text), (fact.id, fact.text), (99, STAYS))
    for text in (memory.text, fact.text):
        assert text in result.text
        assert text in answer
    forgotten(book, MemoryForgotten(memory.id), FactForgotten(fact.id, "h"))
    book.says(
        book.asker, (Role.ASSISTANT, (call,), "openai:m"), (Role.TOOL, (result,), None),
        (Role.ASSISTANT, (Text(answer),), QUOTING_MODEL),
    )  # fmt: skip
    book.store.save(PromptKept(kept))
    prompt = book.services.prompts.of(kept.exchange_id)
    assert prompt is not None
    (part,) = prompt.parts
    assert [piece.text for piece in part.pieces] == [
        "\nFacts:\n",
        f"- fact 99 · today\n  > {STAYS}\n",
    ]
    for text in (memory.text, fact.text):
        assert text not in book.texts()
        assert files_with(book.store.paths.root, text) == set()


def test_an_edit_that_comes_after_a_fact_was_forgotten_does_not_bring_it_back(book: Book) -> None:
    fact = book.learn("The user keeps a mule beside the coal mine.")
    memory = book.services.memories.save("Oil the pump below the shaft at noon.")
    edited = replace(fact, text="The user keeps a mule beside the old mine.", pinned=True)
    late = (*fact_changes(edited), MemoryPut(memory), FactPut(fact))  # read before it was forgotten
    forgotten(
        book, FactForgotten(fact.id, "h"), MemoryForgotten(memory.id),
        PassagesPut((), (fact.id, memory.id)),
    )  # fmt: skip
    book.store.save(*late)
    for text in (fact.text, edited.text, memory.text):
        assert files_with(book.store.paths.root, text) == set()
    rows = book.store.read(
        lambda cursor: cursor.execute(
            "SELECT id FROM fact UNION SELECT fact_id FROM fact_version UNION SELECT id FROM memory"
        ).fetchall()
    )
    assert not {(fact.id,), (memory.id,)} & set(rows)
    assert check(book.store).problems == ()


def test_an_edit_that_waits_behind_the_forgetting_does_not_bring_it_back(book: Book) -> None:
    fact = book.learn("The user keeps a mule beside the coal mine.")
    began, may_go_on = threading.Event(), threading.Event()

    def hold_up() -> None:
        began.set()
        may_go_on.wait(10)

    held = book.store.on_writer(hold_up)
    began.wait(10)
    gone = book.store.commit(FactForgotten(fact.id, "h"), PassagesPut((), (fact.id,)))
    late = book.store.commit(*fact_changes(replace(fact, pinned=True)))
    may_go_on.set()
    for each in (held, gone, late):
        each.result()
    finish_forgetting(book.store)
    assert files_with(book.store.paths.root, fact.text) == set()
    assert check(book.store).problems == ()


def test_a_fact_that_stays_because_it_was_said_twice_can_still_be_edited(book: Book) -> None:
    fact = book.learn("The user keeps a mule beside the coal mine.", book.stays)
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
    forgotten(book, MemoryForgotten(first.id), PassagesPut((), (first.id,)))
    again = book.services.memories.save(first.text)
    result = book.called("memory_search", query="oil the pump below the shaft")
    answer = book.recalled("oil the pump below the shaft")
    book.says(book.asker, (Role.ASSISTANT, (Text(answer),), QUOTING_MODEL))
    assert again.text in result.text
    assert (
        sum(again.text in str(each.blocks) for each in said_in(book, book.asker.conversation.id))
        == 2
    )


def prompt_with(book: Book, *known: tuple[int, str]) -> KeptPrompt:
    """Return a prompt of the asker's turn that quotes facts, by their ids in a line before each."""
    exchange = book.asker.exchanges[0]
    facts = (Piece(f"- fact {each} · today\n  > {text}\n") for each, text in known)
    pieces = (Piece("\nFacts:\n"), *facts)
    part = PlanPart(PlanPartKind.FACTS, 9, False, pieces)
    return KeptPrompt(exchange.id, exchange.conversation_id, AT, "openai:m", 99, 99, (part,), ())


def said_in(book: Book, conversation: ConversationId) -> list[Message]:
    """Return the messages of a conversation, in order."""
    exchanges = book.services.exchanges
    return [m for each in exchanges.of(conversation) for m in exchanges.messages_of(each)]
