"""Running exchanges: what is stored before, during and after a reply, however it ends."""

import asyncio
import threading
from concurrent.futures import Future
from typing import Any

import pytest

from app.chat import exchange_loop
from app.chat.planner import ExchangePlan
from app.domain import codec
from app.domain.change_set import ChangeSet
from app.domain.changes import Change, MessagesAdded, ReplyGrew
from app.domain.chat import (
    ChatRequest,
    Finished,
    FinishReason,
    Retrying,
    TextWasThinking,
    ToolSchema,
    UsageReported,
)
from app.domain.conversations import Draft, ExchangeStatus, Role, Text, Thinking, TitleOrigin
from app.domain.errors import (
    ConnectionLost,
    ContextTooLong,
    DiskFull,
    InvalidInput,
    KeyMissing,
    NotFound,
    StorageError,
)
from app.domain.ids import ExchangeId
from app.domain.passages import PassageKind
from app.storage.engine.journal import JournalReader
from app.storage.engine.store import Store
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.passages.queries import Passages
from app.storage.tables.spending import Spending
from tests.fakes.chats import MakeChat, calls, end_of, problem_kind, tool, wait_for_text
from tests.fakes.models import says
from tests.fakes.stored import busy_writer

COMPLETED, INTERRUPTED = ExchangeStatus.COMPLETED, ExchangeStatus.INTERRUPTED
FAILED = ExchangeStatus.FAILED


def refused(limit: int, prompt: int | None = None) -> ContextTooLong:
    refusal = ContextTooLong("Too long")
    refusal.limit_tokens, refusal.prompt_tokens = limit, prompt
    return refusal


# -- complete replies
def test_a_complete_reply_is_stored_with_its_usage_and_passage(chat_with: MakeChat) -> None:
    chat = chat_with(
        [
            Thinking("hm"), Text("Raise "), Text("the limit."),
            UsageReported(10, 4, 2), Finished(FinishReason.STOP),
        ]
    )  # fmt: skip
    exchange = chat.say("How do I fix the timeout in the importer?")
    assert (exchange.status, exchange.problem) == (COMPLETED, None)
    assert exchange.completed_at is not None
    assert (exchange.usage.input_tokens, exchange.usage.cost_usd) == (10, 2.0)
    assert exchange.usage.first_token_ms is not None
    assert not exchange.usage.estimated
    question, answer = chat.messages(exchange)
    assert (question.role, answer.model) == (Role.USER, "openai:scripted")
    assert answer.blocks == (Thinking("hm"), Text("Raise the limit."))
    conversation = chat.library.open(exchange.conversation_id).conversation
    assert conversation.title == "How do I fix the timeout in the importer?"
    assert conversation.title_origin is TitleOrigin.FIRST_WORDS
    assert Passages(chat.store).count_by_kind() == {"turn": 1}
    assert chat.loop.running(exchange.conversation_id) is None


def test_text_that_proves_to_be_thinking_is_stored_as_thinking(chat_with: MakeChat) -> None:
    chat = chat_with(
        [
            Text("Let me "), Text("see.\n"), TextWasThinking(), Text("Done."),
            Finished(FinishReason.STOP),
        ]
    )  # fmt: skip
    answer = chat.messages(chat.say("Why?"))[-1]
    assert answer.blocks == (Thinking("Let me see."), Text("Done."))


@pytest.mark.parametrize(
    ("script", "status", "kind"),
    [([Finished(FinishReason.STOP)], FAILED, "empty"),
     ([Text(" \n"), Finished(FinishReason.STOP)], INTERRUPTED, "empty"),
     ([Thinking("hm"), Finished(FinishReason.STOP)], INTERRUPTED, "empty"),
     ([Text("Half"), Finished(FinishReason.UNKNOWN)], INTERRUPTED, "unknown_end"),
     ([Text("Half"), Finished(FinishReason.LENGTH)], INTERRUPTED, "length")],
)  # fmt: skip
def test_only_a_whole_answer_is_complete(
    chat_with: MakeChat, script: list[object], status: ExchangeStatus, kind: str
) -> None:
    exchange = chat_with(script).say("Why?")
    assert (exchange.status, problem_kind(exchange)) == (status, kind)


@pytest.mark.parametrize("round_first", [False, True])
def test_a_request_that_is_too_long_is_planned_anew(chat_with: MakeChat, round_first: bool) -> None:
    refusal = refused(4096)
    rounds = [calls(("c", "find", "{}"))] if round_first else []
    chat = chat_with(
        *rounds, [refusal], says("Short."), [refusal], [refusal],
        tools=[tool("find", lambda _: "x")],
    )  # fmt: skip
    exchange = chat.say("Why?")
    assert exchange.status is COMPLETED
    *_, first, again = chat.model.requests
    assert [each.role for each in again.messages] == [each.role for each in first.messages]
    assert exchange.usage.cost_usd is not None, "what was refused costs nothing"
    second = chat.say("And now?", exchange.conversation_id)
    assert problem_kind(second) == "context_too_long"
    assert len(chat.model.requests) == len(rounds) + 4


@pytest.mark.parametrize(
    ("most", "prompt", "again"),
    [
        (16_000, 4_000, 4_192),  # what the prompt leaves
        (16_000, 8_000, 2_048),  # a quarter, which the next plan leaves
        (16_000, 9_000, 2_048),
        (16_000, None, 2_048),
        (500, 9_000, 500),
        (None, 4_000, 4_192),  # a wire that names a maximum by itself
        (None, 9_000, None),
    ],
)
def test_a_reply_refused_as_too_long_is_asked_for_in_the_room_that_there_is(
    chat_with: MakeChat, most: int | None, prompt: int | None, again: int | None
) -> None:
    def prepare(plan: ExchangePlan) -> tuple[ChatRequest, None]:
        return ChatRequest("m", plan.messages, max_output_tokens=most), None

    chat = chat_with([refused(8_192, prompt)], says("Short."), prepare=prepare)
    assert chat.say("Why?").status is COMPLETED
    assert chat.model.requests[-1].max_output_tokens == again


def test_each_round_fits_its_reply_beside_a_longer_prompt(chat_with: MakeChat) -> None:
    chat = chat_with(
        [refused(8_192, 4_000)],
        calls(("c", "find", "{}")),
        [refused(8_192, 5_000)],
        says("Short."),
        tools=[tool("find", lambda _: "x")],
        prepare=lambda plan: (
            ChatRequest(
                "m", plan.messages, tools=(ToolSchema("find", "", "{}"),), max_output_tokens=16_000
            ),
            None,
        ),
    )
    assert chat.say("Why?").status is COMPLETED
    assert [each.max_output_tokens for each in chat.model.requests] == [16_000, 4_192, 4_192, 3_192]


def test_the_model_receives_the_whole_path(chat_with: MakeChat) -> None:
    chat = chat_with(says("One."), says("Two."))
    first = chat.say("First?")
    second = chat.say("Second?", first.conversation_id, model="local:small")
    assert (second.turn_number, second.parent_id) == (1, first.id)
    sent = [message.text.rpartition("\n\n")[2] for message in chat.model.requests[1].messages]
    assert sent == ["First?", "One.", "Second?"]
    dated = [message.text.startswith("[Sent on ") for message in chat.model.requests[1].messages]
    assert dated == [True, False, True]
    third = chat.say("Third", first.conversation_id, model=None)
    assert third.model == "local:small", "a conversation keeps its model"


def test_the_question_is_durable_before_the_reply_begins(chat_with: MakeChat) -> None:
    chat = chat_with([asyncio.Event()])
    reply = chat.send("Are you there?")
    own = reply.plan.conversation.id
    assert chat.texts(own) == ["Are you there?"]
    with pytest.raises(InvalidInput, match="still running"):
        chat.send("Second", own)
    with pytest.raises(InvalidInput, match="still running"):
        chat.retry(reply.plan.exchange)
    assert chat.loop.running(own) is reply
    chat.loop.stop([own])
    assert reply.done.result(0).status is INTERRUPTED
    assert chat.texts(own) == ["Are you there?"]


def test_a_plan_is_refused_when_a_reply_ended_after_its_data_was_read(
    chat_with: MakeChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, is_planned, go_on = asyncio.Event(), threading.Event(), threading.Event()
    chat = chat_with([gate, *says("Kept.")])
    reply = chat.send("Is it kept?")
    make_plan = chat.loop._planner.retry

    def slowly(exchange_id: ExchangeId) -> ExchangePlan:
        plan = make_plan(exchange_id)
        is_planned.set()
        go_on.wait(10)
        return plan

    monkeypatch.setattr(chat.loop._planner, "retry", slowly)
    retried = chat.loop.retry(reply.plan.exchange.id)
    assert is_planned.wait(10)
    chat.release(gate)
    exchange = reply.done.result(10)
    go_on.set()
    with pytest.raises(InvalidInput, match="still running"):
        retried.result(10)
    assert Exchanges(chat.store).get(exchange.id) == exchange
    assert chat.texts(exchange.conversation_id) == ["Is it kept?", "Kept."]


def test_empty_messages_and_unknown_conversations_are_refused(chat_with: MakeChat) -> None:
    chat = chat_with()
    with pytest.raises(InvalidInput):
        chat.send("  \n")
    with pytest.raises(NotFound):
        chat.send("Hello", 99)


def test_abandoning_the_future_does_not_cancel_the_message(chat_with: MakeChat) -> None:
    started = chat_with().loop.send(None, (Text("Hello?"),))
    assert not started.cancel()
    assert end_of(started).status is COMPLETED


def test_a_rename_during_a_reply_is_kept(chat_with: MakeChat) -> None:
    gate = asyncio.Event()
    chat = chat_with([gate, *says("Done.")])
    reply = chat.send("Some question")
    chat.library.rename(reply.plan.conversation.id, "My title")
    chat.release(gate)
    reply.done.result(10)
    assert chat.library.open(reply.plan.conversation.id).conversation.title == "My title"


def test_private_messages_and_quotations_of_recall_are_not_indexed(chat_with: MakeChat) -> None:
    chat = chat_with(says("Hush."), says("From your conversations: it rose for nine hours."))
    passages = Passages(chat.store)
    chat.library.save_draft(None, Draft("Not sent yet"))
    chat.say("A secret.", private=True)
    assert passages.count_by_kind() == {}
    assert chat.library.draft(None) == Draft("Not sent yet"), "it was typed elsewhere"
    rows = "SELECT count(*) FROM spend"
    exchange = chat.say("How long did the bread rise?", model="recall:")
    (text,) = passages.texts(passages.of_source(PassageKind.TURN, exchange.id))
    assert [part.text for part in text.parts] == ["How long did the bread rise?"]
    assert chat.store.read(lambda c: c.execute(rows).fetchall()) == [(1,)], "Recall is free"


# -- branches
def test_regenerating_and_editing_make_branches(chat_with: MakeChat) -> None:
    chat = chat_with(says("A1"), says("A2"), says("A3"), says("A4"))
    first = chat.say("Q1")
    own = first.conversation_id
    again = end_of(chat.loop.regenerate(first.id))
    assert chat.texts(own) == ["Q1", "A2"]
    assert chat.library.open(own).siblings == ((first.id, again.id),)
    assert first.message_ids[0] == again.message_ids[0]
    chat.library.switch_branch(first.id)
    chat.say("Q2", own)
    edited = end_of(chat.loop.edit(first.id, first.message_ids[0], (Text("Q1 again"),)))
    assert (edited.turn_number, chat.texts(own)) == (0, ["Q1 again", "A4"])
    assert chat.library.open(own).conversation.title == "Q1 again"
    chat.library.switch_branch(first.id)
    assert chat.texts(own) == ["Q1", "A1", "Q2", "A3"]
    fork = chat.library.fork(first.id)
    assert chat.texts(fork) == ["Q1", "A1"]
    assert chat.texts(own) == ["Q1", "A1", "Q2", "A3"]


def test_an_edit_changes_no_title_but_the_one_made_of_the_first_words(chat_with: MakeChat) -> None:
    chat = chat_with(*(says("A") for _ in range(7)))
    for title, more in (("Mine", {"title": "Mine"}), ("Private conversation", {"private": True})):
        first = chat.say("Q1", **more)
        end_of(chat.loop.edit(first.id, first.message_ids[0], (Text("Q2"),)))
        assert chat.library.open(first.conversation_id).conversation.title == title
    own = chat.say("Q1").conversation_id
    later = chat.say("Q2", own)
    end_of(chat.loop.edit(later.id, later.message_ids[0], (Text("Q3"),)))
    assert chat.library.open(own).conversation.title == "Q1"


def test_another_model_answers_once_and_the_conversation_keeps_its_own(chat_with: MakeChat) -> None:
    chat = chat_with(says("A1"), says("A2"))
    first = chat.say("Q1")
    before = chat.library.open(first.conversation_id).conversation.model
    again = end_of(chat.loop.regenerate(first.id, "recall:"))
    assert (first.model != "recall:", again.model) == (True, "recall:")
    assert chat.library.open(first.conversation_id).conversation.model == before


# -- replies that do not complete
@pytest.mark.parametrize(
    ("script", "status", "kind"),
    [([Text("Half")], INTERRUPTED, "connection_lost"),
     ([Text("Half"), ConnectionLost("Lost")], INTERRUPTED, ConnectionLost("").kind),
     ([Text("Half"), Finished(FinishReason.LENGTH)], INTERRUPTED, "length"),
     ([Text("Half"), Finished(FinishReason.REFUSED)], INTERRUPTED, "refused"),
     ([Text("Half"), ValueError("a bug")], INTERRUPTED, "bug"),
     ([KeyMissing("No key", "Enter one.")], ExchangeStatus.FAILED, KeyMissing("").kind)],
    ids=["no end", "connection", "length", "refused", "bug", "no key"],
)  # fmt: skip
def test_a_reply_that_fails_is_retried_in_its_exchange(
    chat_with: MakeChat, script: list[object], status: ExchangeStatus, kind: str
) -> None:
    chat = chat_with(script, says(", whole."))
    failed = chat.say("Count to three for me, please.")
    assert (failed.status, problem_kind(failed)) == (status, kind)
    again = chat.retry(failed)
    assert (again.id, again.status, again.problem) == (failed.id, COMPLETED, None)
    texts = ["Count to three for me, please.", *["Half"] * (status is INTERRUPTED), ", whole."]
    assert chat.texts(failed.conversation_id) == texts
    assert chat.model.requests[1].messages[-1].role is Role.USER
    passages = Passages(chat.store)
    (text,) = passages.texts(passages.of_source(PassageKind.TURN, failed.id))
    assert [part.text for part in text.parts] == texts
    assert passages.count_by_kind() == {"turn": 1}


def test_a_question_without_a_reply_is_grouped_with_the_next_one(chat_with: MakeChat) -> None:
    chat = chat_with([KeyMissing("No key")], says("Both."))
    failed = chat.say("Is anybody out there")
    answered = chat.say("second half", failed.conversation_id)
    assert (answered.id, answered.turn_number) == (failed.id, 0)
    assert chat.texts(failed.conversation_id) == ["Is anybody out there", "second half", "Both."]
    assert Passages(chat.store).count_by_kind() == {"turn": 1}


def test_only_the_last_turn_can_be_continued(chat_with: MakeChat) -> None:
    chat = chat_with([Text("Half")])
    broken = chat.say("One?")
    chat.say("Two?", broken.conversation_id)
    with pytest.raises(InvalidInput, match="last turn"):
        chat.retry(broken)


def test_nothing_is_answered_in_the_trash(chat_with: MakeChat) -> None:
    chat = chat_with([Text("Yes.")])
    asked = chat.say("One?")
    chat.library.delete(asked.conversation_id)
    with pytest.raises(InvalidInput, match="trash"):
        chat.say("Two?", asked.conversation_id)
    with pytest.raises(InvalidInput, match="trash"):
        chat.loop.regenerate(asked.id).result()


def test_text_is_journaled_while_the_stream_stalls(chat_with: MakeChat) -> None:
    chat = chat_with([Text("Alpha "), Text("Beta"), asyncio.Event()])
    reply = chat.send("Go on.")

    def journaled() -> str:
        parts: list[str] = []
        for record in JournalReader(chat.store.paths.journal, 0):
            changes: tuple[Change, ...] = codec.loads(tuple[Change, ...], record.payload)
            parts += [change.text for change in changes if isinstance(change, ReplyGrew)]
        return "".join(parts)

    for _ in range(50):
        if journaled() == "Alpha Beta":
            break
        reply.drain()
        reply.wait(0.2)
    assert journaled() == "Alpha Beta"


def test_a_reply_waits_for_disk_space(chat_with: MakeChat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.chat.running_exchange._STORE_RETRY_MAX_S", 0.01)
    real, refusals = Store.commit, iter([True, True])
    gate = asyncio.Event()
    chat = chat_with([Text("Kept "), gate, Text("whole."), Finished(FinishReason.STOP)])
    reply = chat.send("Is it kept?")

    def commit(store: Store, *changes: Change) -> "Future[ChangeSet]":
        if any(isinstance(each, MessagesAdded) for each in changes) and next(refusals, False):
            refused: Future[ChangeSet] = Future()
            refused.set_exception(DiskFull("There is no space", "Free some space."))
            return refused
        return real(store, *changes)

    monkeypatch.setattr(Store, "commit", commit)
    chat.release(gate)
    exchange = reply.done.result(20)
    assert (exchange.status, chat.messages(exchange)[-1].text) == (COMPLETED, "Kept whole.")
    attempts = [each.attempt for each in reply.drain() if isinstance(each, Retrying)]
    assert attempts == [2, 3]


# -- stopping and closing
def test_a_reply_stopped_repeatedly_is_stored_once(chat_with: MakeChat) -> None:
    chat = chat_with([Text("Half an ans"), asyncio.Event()])
    reply = chat.send("Tell me a story")
    wait_for_text(reply)
    with busy_writer(chat.store):
        for _ in range(5):
            reply.stop()
            chat.loop.call(lambda: asyncio.sleep(0)).result(10)
    exchange = reply.done.result(10)
    assert (exchange.status, problem_kind(exchange)) == (INTERRUPTED, "stopped")
    assert chat.texts(exchange.conversation_id) == ["Tell me a story", "Half an ans"]


def test_closing_keeps_what_arrived_and_refuses_more(chat_with: MakeChat) -> None:
    started = threading.Event()

    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    chat = chat_with([Text("So far"), asyncio.Event()])
    reply = chat.send("Long story")
    wait_for_text(reply)
    call = chat.loop.call(endless)
    assert started.wait(10)
    chat.loop.close()
    assert reply.done.result(10).status is INTERRUPTED
    assert chat.texts(reply.plan.conversation.id) == ["Long story", "So far"]
    assert call.cancelled()
    for refused in (chat.loop.call(endless), chat.loop.send(None, (Text("Hello"),))):
        assert isinstance(refused.exception(10), StorageError)


def test_a_message_that_is_planned_while_the_program_closes_is_stored_and_not_answered(
    chat_with: MakeChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = chat_with([asyncio.Event()])
    planned, go_on, plan = threading.Event(), threading.Event(), chat.loop._planner.send

    def slowly(*given: Any, **more: Any) -> ExchangePlan:
        planned.set()
        assert go_on.wait(10)
        return plan(*given, **more)

    monkeypatch.setattr(chat.loop._planner, "send", slowly)
    started = chat.loop.send(None, (Text("Just before the end"),))
    assert planned.wait(10)
    closing = threading.Thread(target=chat.loop.close)
    closing.start()
    while not chat.loop._is_closing:
        closing.join(0.01)
    go_on.set()
    reply = started.result(10)
    assert reply.done.result(10).status is INTERRUPTED
    closing.join()
    assert chat.texts(reply.plan.conversation.id)[0] == "Just before the end"


def test_closing_gives_up_a_message_whose_planning_takes_too_long(
    chat_with: MakeChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, go_on = chat_with(), threading.Event()
    monkeypatch.setattr(chat.loop._planner, "send", lambda *_, **__: go_on.wait(20))
    monkeypatch.setattr(exchange_loop, "_STOP_TIMEOUT_S", 1.1)
    started = chat.loop.send(None, (Text("Too late"),))
    chat.loop.close()
    go_on.set()
    assert isinstance(started.exception(10), StorageError)


def test_the_cost_of_a_stopped_reply_is_estimated(chat_with: MakeChat) -> None:
    chat = chat_with([asyncio.Event()], [Text("Half an answer " * 20), asyncio.Event()])
    silent = chat.send("Tell me a story")
    while not chat.model.requests:
        silent.wait(0.01)
    silent.stop()
    silent.done.result(10)
    assert Spending(chat.store).totals("chat").tokens == 0, "nothing had arrived"
    reply = chat.send("Tell me a story")
    wait_for_text(reply)
    reply.stop()
    usage = reply.done.result(10).usage
    spent = Spending(chat.store).totals("chat")
    assert usage.estimated
    assert usage.cost_usd == spent.cost_usd == usage.output_tokens * 0.5
    assert spent.tokens == usage.input_tokens + usage.output_tokens > 60


def test_stop_during_the_preparation_sends_nothing(chat_with: MakeChat) -> None:
    began, go_on = threading.Event(), threading.Event()

    def prepare(_: object) -> object:
        began.set()
        go_on.wait(10)
        raise AssertionError("nobody waits for this")

    chat = chat_with(prepare=prepare)
    reply = chat.send("Go")
    assert began.wait(10)
    reply.stop()
    exchange = reply.done.result(5)
    go_on.set()
    assert (exchange.status, chat.model.requests) == (INTERRUPTED, [])


def test_a_preparation_that_fails_is_a_failure_of_the_turn(chat_with: MakeChat) -> None:
    failed = chat_with(prepare=lambda _: 1 // 0).say("Go")
    assert (failed.status, problem_kind(failed)) == (ExchangeStatus.FAILED, "bug")
