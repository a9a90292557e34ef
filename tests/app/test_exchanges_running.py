"""Running exchanges: what is stored before, during and after a reply, however it ends."""

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any

import pytest

from app.chat.planner import ExchangePlan
from app.chat.tools.toolbox import Tool
from app.domain import codec
from app.domain.changes import Change, ChangeSet, MessagesAdded, ReplyGrew
from app.domain.chat import (
    ChatRequest,
    Finished,
    FinishReason,
    Retrying,
    TextDelta,
    TextWasThinking,
    ThinkingDelta,
    ToolCompleted,
    ToolSchema,
    UsageReported,
)
from app.domain.conversations import (
    Exchange,
    ExchangeStatus,
    RawReply,
    Role,
    Text,
    Thinking,
    TitleOrigin,
    ToolCall,
)
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
from app.storage.safety.interrupted import end_running_replies
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.passages import Passages
from app.storage.tables.spending import Spending
from tests.fakes.chats import Chat, calls, end_of, open_chat, results_in, tool, wait_for_text
from tests.fakes.models import says
from tests.fakes.stored import busy_writer

COMPLETED, INTERRUPTED = ExchangeStatus.COMPLETED, ExchangeStatus.INTERRUPTED
FAILED = ExchangeStatus.FAILED
MakeChat = Callable[..., Chat]


@pytest.fixture
def chat_with(store: Store) -> Iterator[MakeChat]:
    """Yield a function that opens a chat with a model that plays scripts."""
    with ExitStack() as stack:

        def make(*scripts: list[object], tools: list[Tool] = [], prepare: Any = None) -> Chat:  # noqa: B006
            return stack.enter_context(open_chat(store, scripts, tools, prepare))

        yield make


def problem_kind(exchange: Exchange) -> str | None:
    return exchange.problem.kind if exchange.problem else None


def refused(limit: int, prompt: int | None = None) -> ContextTooLong:
    refusal = ContextTooLong("Too long")
    refusal.limit_tokens, refusal.prompt_tokens = limit, prompt
    return refusal


# -- complete replies


def test_a_complete_reply_is_stored_with_its_usage_and_passage(chat_with: MakeChat) -> None:
    chat = chat_with(
        [
            ThinkingDelta("hm"), TextDelta("Raise "), TextDelta("the limit."),
            UsageReported(10, 4, 2), Finished(FinishReason.STOP),
        ]
    )  # fmt: skip
    exchange = chat.say("How do I fix the timeout in the importer?")
    assert (exchange.status, exchange.problem) == (COMPLETED, None)
    assert exchange.completed_at is not None
    assert exchange.usage is not None
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
            TextDelta("Let me "), TextDelta("see.\n"), TextWasThinking(), TextDelta("Done."),
            Finished(FinishReason.STOP),
        ]
    )  # fmt: skip
    answer = chat.messages(chat.say("Why?"))[-1]
    assert answer.blocks == (Thinking("Let me see."), Text("Done."))


@pytest.mark.parametrize(
    ("script", "status", "kind"),
    [
        ([Finished(FinishReason.STOP)], FAILED, "empty"),
        ([TextDelta(" \n"), Finished(FinishReason.STOP)], INTERRUPTED, "empty"),
        ([ThinkingDelta("hm"), Finished(FinishReason.STOP)], INTERRUPTED, "empty"),
        ([TextDelta("Half"), Finished(FinishReason.UNKNOWN)], INTERRUPTED, "unknown_end"),
        ([TextDelta("Half"), Finished(FinishReason.LENGTH)], INTERRUPTED, "length"),
    ],
)
def test_only_a_whole_answer_is_complete(
    chat_with: MakeChat, script: list[object], status: ExchangeStatus, kind: str
) -> None:
    exchange = chat_with(script).say("Why?")
    assert (exchange.status, problem_kind(exchange)) == (status, kind)


@pytest.mark.parametrize("round_first", [False, True])
def test_a_request_refused_as_too_long_is_planned_again_once(
    chat_with: MakeChat, round_first: bool
) -> None:
    refusal = refused(4096)
    rounds = [calls(("c", "find", "{}"))] if round_first else []
    chat = chat_with(
        *rounds,
        [refusal],
        says("Short."),
        [refusal],
        [refusal],
        tools=[tool("find", lambda _: "x")],
    )
    exchange = chat.say("Why?")
    assert exchange.status is COMPLETED
    *_, first, again = chat.model.requests
    assert [each.role for each in again.messages] == [each.role for each in first.messages]
    assert exchange.usage is not None
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
                "m",
                plan.messages,
                tools=(ToolSchema("find", "", "{}"),),
                max_output_tokens=16_000,
            ),
            None,
        ),
    )
    assert chat.say("Why?").status is COMPLETED
    sent = [each.max_output_tokens for each in chat.model.requests]
    assert sent == [16_000, 4_192, 4_192, 3_192]


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
    chat.say("A secret.", private=True)
    assert passages.count_by_kind() == {}
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
    chat.library.switch_branch(first.id)
    assert chat.texts(own) == ["Q1", "A1", "Q2", "A3"]
    fork = chat.library.fork(first.id)
    assert chat.texts(fork) == ["Q1", "A1"]
    assert chat.texts(own) == ["Q1", "A1", "Q2", "A3"]


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
    [
        ([TextDelta("Half")], INTERRUPTED, "connection_lost"),
        ([TextDelta("Half"), ConnectionLost("Lost")], INTERRUPTED, ConnectionLost("").kind),
        ([TextDelta("Half"), Finished(FinishReason.LENGTH)], INTERRUPTED, "length"),
        ([TextDelta("Half"), Finished(FinishReason.REFUSED)], INTERRUPTED, "refused"),
        ([TextDelta("Half"), ValueError("a bug")], INTERRUPTED, "bug"),
        ([KeyMissing("No key", "Enter one.")], ExchangeStatus.FAILED, KeyMissing("").kind),
    ],
    ids=["no end", "connection", "length", "refused", "bug", "no key"],
)
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
    chat = chat_with([TextDelta("Half")])
    broken = chat.say("One?")
    chat.say("Two?", broken.conversation_id)
    with pytest.raises(InvalidInput, match="last turn"):
        chat.retry(broken)


def test_nothing_is_answered_in_the_trash(chat_with: MakeChat) -> None:
    chat = chat_with([TextDelta("Yes.")])
    asked = chat.say("One?")
    chat.library.delete(asked.conversation_id)
    with pytest.raises(InvalidInput, match="trash"):
        chat.say("Two?", asked.conversation_id)
    with pytest.raises(InvalidInput, match="trash"):
        chat.loop.regenerate(asked.id).result()


def test_text_is_journaled_while_the_stream_stalls(chat_with: MakeChat) -> None:
    chat = chat_with([TextDelta("Alpha "), TextDelta("Beta"), asyncio.Event()])
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


def test_a_reply_waits_for_space_on_the_disk(
    chat_with: MakeChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.chat.running_exchange._STORE_RETRY_MAX_S", 0.01)
    real, refusals = Store.commit, iter([True, True])
    gate = asyncio.Event()
    chat = chat_with([TextDelta("Kept "), gate, TextDelta("whole."), Finished(FinishReason.STOP)])
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
    chat = chat_with([TextDelta("Half an ans"), asyncio.Event()])
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

    chat = chat_with([TextDelta("So far"), asyncio.Event()])
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


def test_the_cost_of_a_stopped_reply_is_estimated(chat_with: MakeChat) -> None:
    chat = chat_with([asyncio.Event()], [TextDelta("Half an answer " * 20), asyncio.Event()])
    silent = chat.send("Tell me a story")
    while not chat.model.requests:
        silent.wait(0.01)
    silent.stop()
    silent.done.result(10)
    assert Spending(chat.store).all_time("chat").tokens == 0, "nothing had arrived"
    reply = chat.send("Tell me a story")
    wait_for_text(reply)
    reply.stop()
    usage = reply.done.result(10).usage
    spent = Spending(chat.store).all_time("chat")
    assert usage is not None
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


# -- tools

ECHO = tool("echo", lambda given: f"echo {given['n']}", {"n": {"type": "string"}})
ROUND = calls(("c", "echo", '{"n": "a"}'))


def test_a_model_calls_a_tool_and_answers(chat_with: MakeChat) -> None:
    raw = RawReply("openai.chat", "openai:scripted", "[{}]")
    asks = [TextDelta("Let me look."), *ROUND[:-1], Finished(FinishReason.TOOL_CALLS, raw)]
    answers = [TextDelta("It says a."), UsageReported(30, 4, 20), Finished(FinishReason.STOP)]
    chat = chat_with(asks, answers, tools=[ECHO])
    reply = chat.send("What does it say?")
    exchange = reply.done.result(10)
    messages = chat.messages(exchange)
    assert exchange.status is COMPLETED
    assert [each.role.value for each in messages] == ["user", "assistant", "tool", "assistant"]
    assert [each.parent_id for each in messages[1:]] == [each.id for each in messages[:-1]]
    assert (messages[1].raw, messages[3].text) == (raw, "It says a.")
    (result,) = results_in(messages)
    assert (result.call_id, result.text, result.is_error) == ("c", "echo a", False)
    assert result.duration_ms is not None
    assert chat.model.requests[1].messages[:1] == chat.model.requests[0].messages
    assert [type(event) for event in reply.drain()].count(ToolCompleted) == 1
    usage = exchange.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (40, 6, 20)
    assert usage.cost_usd == 3.0
    rows = "SELECT output_tokens FROM spend ORDER BY 1"
    assert chat.store.read(lambda c: c.execute(rows).fetchall()) == [(2,), (4,)]


def test_tools_that_read_run_concurrently_and_those_that_write_in_order(
    chat_with: MakeChat,
) -> None:
    both = threading.Barrier(2, timeout=10)
    seen: list[str] = []

    def write(given: object) -> str:
        seen.append(f"begin {given}")
        seen.append(f"end {given}")
        return "written"

    reader = tool("read", lambda _: str(both.wait()))
    writer = tool("write", write, {"n": {"type": "string"}}, writes=True)
    chat = chat_with(
        calls(("c1", "read", "{}"), ("c2", "read", "{}")), says("Done."),
        calls(*((f"c{n}", "write", f'{{"n": "{n}"}}') for n in range(5))), says("Done."),
        tools=[reader, writer],
    )  # fmt: skip
    results = chat.results(chat.say("Go"))
    assert [(each.call_id, each.is_error) for each in results] == [("c1", False), ("c2", False)]
    chat.say("Go")
    assert seen == [f"{side} {{'n': '{n}'}}" for n in range(5) for side in ("begin", "end")]


def test_after_the_last_round_the_model_must_answer(chat_with: MakeChat) -> None:
    chat = chat_with(ROUND, ROUND, says("Enough."), tools=[ECHO])
    chat.settings.set("tool_rounds_max", 2)
    assert chat.say("Go").status is COMPLETED
    assert [each.tools_disabled for each in chat.model.requests] == [False, False, True]
    last = chat.model.requests[2].messages[-1]
    assert (last.role, "all tool calls" in last.text) == (Role.TOOL, True)


def test_a_model_that_goes_on_calling_tools_is_stopped_and_can_be_continued(
    chat_with: MakeChat,
) -> None:
    chat = chat_with(ROUND, ROUND, says("At last."), tools=[ECHO])
    chat.settings.set("tool_rounds_max", 1)
    exchange = chat.say("Go")
    assert (exchange.status, problem_kind(exchange)) == (INTERRUPTED, "tool_rounds")
    ended = chat.retry(exchange)
    messages = chat.messages(ended)
    assert (ended.status, messages[-1].text, messages[-2].role) == (
        COMPLETED, "At last.", Role.TOOL,
    )  # fmt: skip
    assert "interrupted" in results_in(messages)[-1].text


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("ecko", "{}", "Did you mean echo?"),
        ("echo", '{"n": 5}', "Give a string"),
        ("echo", '{"m": "a"}', "There is no argument 'm'"),
        ("echo", '{"n": "a', "valid JSON"),
        ("echo", "[1]", "Send one JSON object"),
        ("broken", "{}", "ZeroDivisionError"),
    ],
)
def test_a_call_that_fails_is_a_result_for_the_model(
    chat_with: MakeChat, name: str, arguments: str, message: str
) -> None:
    broken = tool("broken", lambda _: str(1 // 0))
    chat = chat_with(calls(("c", name, arguments)), says("Hm."), tools=[ECHO, broken])
    exchange = chat.say("Go")
    (result,) = chat.results(exchange)
    assert (exchange.status, result.is_error, message in result.text) == (COMPLETED, True, True)


def test_at_most_sixteen_calls_run_and_all_get_a_result(chat_with: MakeChat) -> None:
    ran = itertools.count()
    counted = tool("count", lambda _: str(next(ran)))
    asks = calls(*((f"c{n}", "count", "{}") for n in range(100)))
    results = chat_with(asks, says("Done."), tools=[counted])
    stored = results.results(results.say("Go"))
    assert (len(stored), next(ran)) == (100, 16)
    assert "At most 16" in stored[-1].text


def test_a_long_result_is_stored_whole_and_truncated_in_prompts(chat_with: MakeChat) -> None:
    offset = {"offset": {"type": "integer", "minimum": 0, "maximum": 10**6, "default": 0}}
    long = tool("long", lambda _: "x" * 5000, offset)
    asks = calls(("c", "long", '{"offset": 300}'))
    chat = chat_with(asks, says("Done."), says("Later."), tools=[long])
    exchange = chat.say("Go")
    (stored,) = chat.results(exchange)
    chat.say("And now?", exchange.conversation_id)
    assert len(stored.text) == 5000
    for request in chat.model.requests[1:]:  # in the next round, and in the next turn
        (sent,) = results_in(request.messages)
        assert sent.text.startswith("x" * 2000 + "\n[Cut: 2,000 of 5,000 characters")
        assert "offset=2300" in sent.text


def test_stop_does_not_wait_for_a_tool_and_keeps_finished_results(chat_with: MakeChat) -> None:
    began, go_on = threading.Event(), threading.Event()

    def hang(_: object) -> str:
        began.set()
        go_on.wait(60)
        return "too late"

    asks = calls(("c1", "echo", '{"n": "a"}'), ("c2", "hang", "{}"))
    chat = chat_with(asks, says("Here it is."), tools=[ECHO, tool("hang", hang)])
    reply = chat.send("Go")
    assert began.wait(10)
    reply.stop()
    exchange = reply.done.result(30)
    assert not go_on.is_set()
    go_on.set()
    results = chat.results(exchange)
    assert exchange.status is INTERRUPTED
    assert [each.call_id for each in results] == ["c1", "c2"]
    assert "interrupted" in results[1].text
    assert chat.retry(exchange).status is COMPLETED
    assert len(chat.model.requests) == 2
    assert chat.model.requests[1].messages[-1].role is Role.TOOL  # nothing is asked again


def test_a_request_that_fails_after_a_round_keeps_the_round(chat_with: MakeChat) -> None:
    lost = ConnectionLost("The connection was lost", "Retry.")
    chat = chat_with(ROUND, [lost], says("Here it is."), tools=[ECHO])
    exchange = chat.say("Go")
    assert (exchange.status, len(exchange.message_ids)) == (INTERRUPTED, 3)
    again = chat.retry(exchange)
    assert chat.messages(again)[-1].text == "Here it is."
    assert len(chat.results(again)) == 1  # the tool was not run again
    assert again.usage is not None
    assert again.usage.output_tokens >= 2


def test_a_round_is_durable_before_the_next_request(chat_with: MakeChat) -> None:
    chat = chat_with(ROUND, [asyncio.Event()], tools=[ECHO])
    reply = chat.send("Go")
    while len(chat.model.requests) < 2:
        reply.wait(0.01)
        reply.drain()
    stored = Exchanges(chat.store).get(reply.plan.exchange.id)
    assert len(stored.message_ids) == 3
    assert end_running_replies(chat.store) == 1  # as after a kill
    ended = Exchanges(chat.store).get(reply.plan.exchange.id)
    assert (ended.status, ended.message_ids) == (INTERRUPTED, stored.message_ids)
    reply.stop()
    reply.done.result(10)


def test_tools_that_write_are_not_offered_in_private_and_none_to_recall(
    chat_with: MakeChat,
) -> None:
    writer = tool("save", lambda _: "saved", writes=True)
    chat = chat_with(calls(("c", "save", "{}")), says("Hm."), tools=[ECHO, writer])
    (result,) = chat.results(chat.say("Go", private=True))
    chat.say("And you?", model="recall:")
    offered = [[each.name for each in request.tools] for request in chat.model.requests]
    assert (offered, result.is_error) == ([["echo"], ["echo"], []], True)


def test_a_turn_with_tools_is_regenerated_and_edited(chat_with: MakeChat) -> None:
    answers = ["One.", "Two.", "Three."]
    scripts = [script for answer in answers for script in (ROUND, says(answer))]
    chat = chat_with(*scripts, tools=[ECHO])
    first = chat.say("Go")
    second = end_of(chat.loop.regenerate(first.id))
    question = first.message_ids[0]
    edited = end_of(chat.loop.edit(first.id, question, (Text("Go on"),)))
    assert [chat.messages(each)[-1].text for each in (first, second, edited)] == answers
    assert second.message_ids[0] == question
    assert {len(each.message_ids) for each in (first, second, edited)} == {4}


def test_an_incomplete_reply_runs_no_tool(chat_with: MakeChat) -> None:
    chat = chat_with([*ROUND[:-1], Finished(FinishReason.LENGTH)], tools=[ECHO])
    exchange = chat.say("Go")
    assert (exchange.status, len(chat.model.requests)) == (INTERRUPTED, 1)
    assert [type(block) for block in chat.messages(exchange)[-1].blocks] == [ToolCall]


def test_a_slow_tool_is_not_waited_for(
    chat_with: MakeChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.chat.running_exchange.TOOL_LIMIT_S", 0.05)
    go_on = threading.Event()
    slow = tool("slow", lambda _: str(go_on.wait(10)))
    chat = chat_with(calls(("c", "slow", "{}")), says("Never mind."), tools=[slow])
    exchange = chat.say("Go")
    go_on.set()
    (result,) = chat.results(exchange)
    assert (exchange.status, "longer than" in result.text) == (COMPLETED, True)
    assert result.duration_ms == 50
