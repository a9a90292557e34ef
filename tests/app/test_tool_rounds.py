"""Turns with tools: rounds until the model answers, each stored before the next, and their ends."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.chat import (
    Finished,
    FinishReason,
    TextDelta,
    TokensReported,
    ToolAnswered,
)
from app.domain.conversations import (
    Exchange,
    ExchangeStatus,
    Message,
    RawReply,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from app.domain.provider_errors import ConnectionLost
from app.storage.exchanges import Exchanges
from app.storage.interrupted import end_running_replies
from app.storage.store import Store
from tests.fakes.models import says
from tests.fakes.stored import opened
from tests.fakes.talks import Scripts, calls, talking, tool

ECHO = tool("echo", lambda given: f"echo {given['n']}", {"n": {"type": "string"}})


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with opened(data_dir) as open_store:
        yield open_store


def results_of(messages: tuple[Message, ...]) -> list[ToolResult]:
    return [block for each in messages for block in each.blocks if isinstance(block, ToolResult)]


def test_a_model_calls_a_tool_and_answers_with_what_it_found(store: Store) -> None:
    raw = RawReply("openai.chat", "openai:scripted", "[{}]")
    asks = [
        TextDelta("Let me look."),
        *calls(("call_1", "echo", '{"n": "a"}'))[:-1],
        Finished(FinishReason.TOOL_CALLS, raw),
    ]
    answers = [TextDelta("It says a."), TokensReported(30, 4), Finished(FinishReason.STOP)]
    with talking(store, [asks, answers], [ECHO]) as talk:
        reply = talk.send("What does it say?")
        exchange = reply.done.result(10)
        messages = talk.messages(exchange)

    assert exchange.status is ExchangeStatus.COMPLETED
    assert [each.role for each in messages] == [
        Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT,
    ]  # fmt: skip
    assert [each.parent_id for each in messages[1:]] == [each.id for each in messages[:-1]]
    assert messages[1].raw == raw
    (result,) = results_of(messages)
    assert (result.call_id, result.text, result.is_error) == ("call_1", "echo a", False)
    assert result.duration_ms is not None
    assert messages[3].text == "It says a."
    assert talk.model.requests[1].messages[:1] == talk.model.requests[0].messages
    assert [type(event) for event in reply.drain()].count(ToolAnswered) == 1


def test_usage_adds_up_and_spend_is_recorded_for_each_request(store: Store) -> None:
    answers = [TextDelta("Done."), TokensReported(30, 4, 20), Finished(FinishReason.STOP)]
    with talking(store, [calls(("c", "echo", '{"n": "a"}')), answers], [ECHO]) as talk:
        exchange = talk.say("Go")
    assert exchange.usage is not None
    assert (exchange.usage.input_tokens, exchange.usage.output_tokens) == (40, 6)
    assert (exchange.usage.cached_tokens, exchange.usage.cost_usd) == (20, 3.0)
    spent = store.read(
        lambda cursor: cursor.execute("SELECT output_tokens FROM spend ORDER BY 1").fetchall()
    )
    assert spent == [(2,), (4,)]


def test_tools_that_only_read_run_side_by_side_and_answer_in_order(store: Store) -> None:
    both = threading.Barrier(2, timeout=10)

    def wait(given: object) -> str:
        both.wait()
        return str(given)

    slow = tool("slow", wait)
    asks = calls(("c1", "slow", "{}"), ("c2", "slow", "{}"))
    with talking(store, [asks, says("Done.")], [slow]) as talk:
        messages = talk.messages(talk.say("Go"))
    assert [each.call_id for each in results_of(messages)] == ["c1", "c2"]
    assert not any(each.is_error for each in results_of(messages))


def test_tools_that_write_run_one_after_the_other(store: Store) -> None:
    seen: list[str] = []

    def write(given: object) -> str:
        seen.append(f"begin {given}")
        seen.append(f"end {given}")
        return "written"

    writer = tool("write", write, {"n": {"type": "string"}}, writes=True)
    asks = calls(*((f"c{n}", "write", f'{{"n": "{n}"}}') for n in range(5)))
    with talking(store, [asks, says("Done.")], [writer]) as talk:
        talk.say("Go")
    assert seen == [f"{side} {{'n': '{n}'}}" for n in range(5) for side in ("begin", "end")]


def test_after_the_last_round_the_model_is_told_to_answer(store: Store) -> None:
    again = calls(("c", "echo", '{"n": "a"}'))
    with talking(store, [again, again, says("Enough.")], [ECHO]) as talk:
        talk.settings.set("tool_rounds_max", 2)
        exchange = talk.say("Go")
    assert exchange.status is ExchangeStatus.COMPLETED
    assert [each.tools_closed for each in talk.model.requests] == [False, False, True]
    last = talk.model.requests[2].messages[-1]
    assert last.role is Role.USER
    assert "all tool calls" in last.text


def test_a_model_that_calls_tools_for_ever_is_stopped_and_can_be_continued(store: Store) -> None:
    again = calls(("c", "echo", '{"n": "a"}'))
    with talking(store, [again, again, says("At last.")], [ECHO]) as talk:
        talk.settings.set("tool_rounds_max", 1)
        exchange = talk.say("Go")
        assert exchange.status is ExchangeStatus.INTERRUPTED
        assert exchange.problem is not None
        assert exchange.problem.kind == "tool_rounds"
        ended = talk.loop.retry(exchange.id).result(10).done.result(10)
        messages = talk.messages(ended)
    assert ended.status is ExchangeStatus.COMPLETED
    assert messages[-1].text == "At last."
    assert messages[-2].role is Role.TOOL  # what was called and never run says so
    assert "broken off" in results_of(messages)[-1].text


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("ecko", "{}", "Did you mean echo?"),
        ("echo", '{"n": 5}', "Give a string"),
        ("echo", '{"m": "a"}', "There is no argument 'm'"),
        ("echo", '{"n": "a', "no valid JSON"),
        ("echo", "[1]", "Send one JSON object"),
        ("broken", "{}", "ZeroDivisionError"),
    ],
)
def test_every_failure_is_a_result_that_the_model_can_act_on(
    store: Store, name: str, arguments: str, words: str
) -> None:
    broken = tool("broken", lambda _: str(1 // 0))
    with talking(store, [calls(("c", name, arguments)), says("Hm.")], [ECHO, broken]) as talk:
        exchange = talk.say("Go")
        (result,) = results_of(talk.messages(exchange))
    assert exchange.status is ExchangeStatus.COMPLETED
    assert result.is_error
    assert words in result.text


def test_a_hundred_calls_at_once_are_bounded_and_all_answered(store: Store) -> None:
    ran: list[object] = []

    def count(given: object) -> str:
        ran.append(given)
        return "counted"

    counted = tool("count", count)
    asks = calls(*((f"c{n}", "count", "{}") for n in range(100)))
    with talking(store, [asks, says("Done.")], [counted]) as talk:
        results = results_of(talk.messages(talk.say("Go")))
    assert (len(results), len(ran)) == (100, 16)
    assert "At most 16" in results[-1].text


def test_a_long_result_is_stored_whole_and_cut_in_the_prompt(store: Store) -> None:
    offset = {"offset": {"type": "integer", "minimum": 0, "maximum": 10**6, "default": 0}}
    long = tool("long", lambda given: "x" * 5000, offset)
    scripts: Scripts = [calls(("c", "long", '{"offset": 300}')), says("Done."), says("Later.")]
    with talking(store, scripts, [long]) as talk:
        exchange = talk.say("Go")
        (stored,) = results_of(talk.messages(exchange))
        talk.say("And now?", exchange.conversation_id)
    assert len(stored.text) == 5000
    for request in talk.model.requests[1:]:  # in the next round, and in the next turn
        (sent,) = results_of(request.messages)
        assert sent.text.startswith("x" * 2000 + "\n[Cut: 2,000 of 5,000 characters")
        assert "offset=2300" in sent.text


def test_stop_ends_a_tool_at_once_and_stores_what_there_is(store: Store) -> None:
    began, go_on = threading.Event(), threading.Event()

    def hang(_: object) -> str:
        began.set()
        go_on.wait(10)
        return "too late"

    hanging = tool("hang", hang)
    asks = calls(("c1", "echo", '{"n": "a"}'), ("c2", "hang", "{}"))
    with talking(store, [asks, says("Never said.")], [ECHO, hanging]) as talk:
        reply = talk.send("Go")
        assert began.wait(10)
        stopped_at = time.monotonic()
        reply.stop()
        exchange = reply.done.result(10)
        took_s = time.monotonic() - stopped_at
        go_on.set()
        messages = talk.messages(exchange)
        assert took_s < 1.0  # the tool itself would have taken ten
        assert exchange.status is ExchangeStatus.INTERRUPTED
        assert [each.call_id for each in results_of(messages)] == ["c1", "c2"]
        assert "broken off" in results_of(messages)[1].text
        again = talk.loop.retry(exchange.id).result(10).done.result(10)
    assert again.status is ExchangeStatus.COMPLETED
    assert len(talk.model.requests) == 2
    assert talk.model.requests[1].messages[-1].role is Role.TOOL  # and nothing is asked again


def test_a_request_that_fails_after_a_round_keeps_the_round_and_goes_on_from_there(
    store: Store,
) -> None:
    scripts: Scripts = [
        calls(("c", "echo", '{"n": "a"}')),
        [ConnectionLost("The connection was lost", "Retry.")],
        says("Here it is."),
    ]
    with talking(store, scripts, [ECHO]) as talk:
        exchange = talk.say("Go")
        assert exchange.status is ExchangeStatus.INTERRUPTED
        assert len(exchange.message_ids) == 3
        again = talk.loop.retry(exchange.id).result(10).done.result(10)
        messages = talk.messages(again)
    assert [each.text for each in messages][-1] == "Here it is."
    assert len(results_of(messages)) == 1  # the tool was not run again
    assert again.usage is not None
    assert again.usage.output_tokens >= 2


def test_a_round_is_durable_before_the_next_request_goes_out(store: Store) -> None:
    held = asyncio.Event()
    with talking(store, [calls(("c", "echo", '{"n": "a"}')), [held]], [ECHO]) as talk:
        reply = talk.send("Go")
        while len(talk.model.requests) < 2:
            reply.wait(0.01)
        stored = Exchanges(store).get(reply.plan.exchange.id)
        assert len(stored.message_ids) == 3
        assert end_running_replies(store) == 1  # as after a kill
        ended = Exchanges(store).get(reply.plan.exchange.id)
        assert ended.status is ExchangeStatus.INTERRUPTED
        assert ended.message_ids == stored.message_ids
        reply.stop()
        reply.done.result(10)


def test_a_private_conversation_and_recall_are_not_offered_what_they_must_not_have(
    store: Store,
) -> None:
    writer = tool("save", lambda _: "saved", writes=True)
    with talking(store, [calls(("c", "save", "{}")), says("Hm.")], [ECHO, writer]) as talk:
        exchange = talk.say("Go", private=True)
        (result,) = results_of(talk.messages(exchange))
        talk.loop.send(None, (Text("And you?"),), model="recall:").result(10).done.result(10)
    offered = [[each.name for each in request.tools] for request in talk.model.requests]
    assert offered == [["echo"], ["echo"], []]
    assert result.is_error


def test_a_turn_with_tools_can_be_answered_again_and_asked_differently(store: Store) -> None:
    round_ = calls(("c", "echo", '{"n": "a"}'))
    scripts: Scripts = [round_, says("One."), round_, says("Two."), round_, says("Three.")]
    with talking(store, scripts, [ECHO]) as talk:
        first = talk.say("Go")
        second = talk.loop.regenerate(first.id).result(10).done.result(10)
        question = first.message_ids[0]
        edited = talk.loop.edit(first.id, question, (Text("Go on"),)).result(10).done.result(10)
        endings = [talk.messages(each)[-1].text for each in (first, second, edited)]
    assert endings == ["One.", "Two.", "Three."]
    assert second.message_ids[0] == question
    assert all(len(each.message_ids) == 4 for each in (first, second, edited))


def test_a_reply_without_its_end_runs_no_tool(store: Store) -> None:
    cut = [*calls(("c", "echo", '{"n": "a"}'))[:-1], Finished(FinishReason.LENGTH)]
    with talking(store, [cut, says("Never said.")], [ECHO]) as talk:
        exchange = talk.say("Go")
    assert exchange.status is ExchangeStatus.INTERRUPTED
    assert len(talk.model.requests) == 1
    assert [type(b) for b in talk.messages(exchange)[-1].blocks] == [ToolCall]


def test_a_tool_that_takes_too_long_is_given_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.chat.tool_rounds.TIME_LIMIT_S", 0.05)
    go_on = threading.Event()
    slow = tool("slow", lambda _: str(go_on.wait(10)))
    with talking(store, [calls(("c", "slow", "{}")), says("Never mind.")], [slow]) as talk:
        exchange: Exchange = talk.say("Go")
        (result,) = results_of(talk.messages(exchange))
        go_on.set()
    assert exchange.status is ExchangeStatus.COMPLETED
    assert "longer than" in result.text


def test_stop_while_the_prompt_is_being_prepared_sends_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = threading.Event(), threading.Event()
    with talking(store, [says("Never said.")]) as talk:

        def slow(*_: object) -> object:
            began.set()
            go_on.wait(10)
            raise AssertionError("nobody waits for this")

        monkeypatch.setattr(talk.loop, "_prepare", slow)
        reply = talk.send("Go")
        assert began.wait(10)
        reply.stop()
        exchange = reply.done.result(1)
        go_on.set()
    assert exchange.status is ExchangeStatus.INTERRUPTED
    assert talk.model.requests == []


def test_a_prompt_that_cannot_be_prepared_is_a_failure_of_the_turn(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with talking(store, [says("Here.")]) as talk:
        with monkeypatch.context() as patched:
            patched.setattr(talk.loop, "_prepare", lambda *_: 1 // 0)
            failed = talk.say("Go")
        again = talk.loop.retry(failed.id).result(10).done.result(10)
    assert failed.status is ExchangeStatus.FAILED
    assert failed.problem is not None
    assert "ZeroDivisionError" in failed.problem.title
    assert again.status is ExchangeStatus.COMPLETED
