"""Tools in running exchanges: rounds, concurrency, failures and what is stored of them."""

import asyncio
import itertools
import threading

import pytest

from app.domain.chat import Finished, FinishReason, UsageReported
from app.domain.conversations import ExchangeStatus, RawReply, Role, Text, ToolCall, ToolResult
from app.domain.errors import ConnectionLost
from app.storage.safety.interrupted import end_running_replies
from app.storage.tables.exchanges import Exchanges
from tests.fakes.chats import MakeChat, calls, end_of, problem_kind, results_in, tool
from tests.fakes.models import says

COMPLETED, INTERRUPTED = ExchangeStatus.COMPLETED, ExchangeStatus.INTERRUPTED
ECHO = tool("echo", lambda given: f"echo {given['n']}", {"n": {"type": "string"}})
ROUND = calls(("c", "echo", '{"n": "a"}'))


def test_a_model_calls_a_tool_and_answers(chat_with: MakeChat) -> None:
    raw = RawReply("openai.chat", "openai:scripted", "[{}]")
    asks = [Text("Let me look."), *ROUND[:-1], Finished(FinishReason.TOOL_CALLS, raw)]
    answers = [Text("It says a."), UsageReported(30, 4, 20), Finished(FinishReason.STOP)]
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
    assert [type(event) for event in reply.drain()].count(ToolResult) == 1
    usage = exchange.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (40, 6, 20)
    assert usage.cost_usd == 3.0
    rows = "SELECT output_tokens FROM spend ORDER BY 1"
    assert chat.store.read(lambda c: c.execute(rows).fetchall()) == [(2,), (4,)]


def test_tools_that_read_run_concurrently_and_ones_that_write_in_order(chat_with: MakeChat) -> None:
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


def test_a_model_that_only_calls_tools_is_stopped_and_can_be_continued(chat_with: MakeChat) -> None:
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
    [("ecko", "{}", "Did you mean echo?"), ("echo", '{"n": 5}', "Give a string"),
     ("echo", '{"m": "a"}', "There is no argument 'm'"), ("echo", '{"n": "a', "valid JSON"),
     ("echo", "[1]", "Send one JSON object"), ("broken", "{}", "ZeroDivisionError")],
)  # fmt: skip
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


def test_tools_that_write_are_not_offered_in_private_none_to_recall(chat_with: MakeChat) -> None:
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


def test_slow_tools_are_not_awaited(chat_with: MakeChat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.chat.running_exchange.TOOL_LIMIT_S", 0.05)
    go_on = threading.Event()
    slow = tool("slow", lambda _: str(go_on.wait(10)))
    chat = chat_with(calls(("c", "slow", "{}")), says("Never mind."), tools=[slow])
    exchange = chat.say("Go")
    go_on.set()
    (result,) = chat.results(exchange)
    assert (exchange.status, "longer than" in result.text) == (COMPLETED, True)
    assert result.duration_ms == 50
