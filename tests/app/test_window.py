"""The window of messages that is sent: the newest that fit, whole turns, a start that stays."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.domain.conversations import (
    Attachment,
    Block,
    Message,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from app.domain.ids import ConversationId, MessageId
from app.memory.window import WindowRoom, weight_tokens, window_start
from tests.fakes.stored import AT


def message(number: int, role: Role, *blocks: Block) -> Message:
    return Message(
        MessageId(number), str(number), ConversationId(1), MessageId(number - 1) or None, role,
        blocks, AT,
    )  # fmt: skip


def talk(turns: int, tokens: int = 96) -> list[Message]:
    """Return question and answer in turn, each weighing `tokens` and four more."""
    words = Text("word" * tokens)
    return [
        message(number + 1, Role.ASSISTANT if number % 2 else Role.USER, words)
        for number in range(turns * 2)
    ]


def window_of(
    messages: Sequence[Message],
    budget_tokens: int,
    min_messages: int,
    most_tokens: int | None = None,
    begins_at: int = 0,
) -> tuple[Message, ...]:
    """Return the window; what is asked is the last time a user says something."""
    opening = [place for place, each in enumerate(messages) if each.opens_turn]
    room = WindowRoom(budget_tokens, min_messages, most_tokens, begins_at)
    weights = [*map(weight_tokens, messages)]
    asked_at = opening[-1] if opening else max(0, len(messages) - 1)
    return tuple(messages[window_start(messages, weights, asked_at, room) :])


def first_of(messages: tuple[Message, ...]) -> int:
    return messages[0].id


def test_a_short_talk_is_sent_whole() -> None:
    talked = talk(5)
    assert window_of(talked, 1000, 4) == tuple(talked)


def test_nothing_is_sent_of_nothing() -> None:
    assert window_of([], 1000, 4) == ()


def test_the_newest_that_fit_are_sent() -> None:
    talked = talk(50)
    sent = window_of(talked, 2000, 4)
    assert sent == tuple(talked[-len(sent) :])
    assert sum(map(weight_tokens, sent)) <= 2000


def test_at_least_so_many_messages_stay_whatever_they_weigh() -> None:
    talked = talk(20, tokens=5000)
    assert len(window_of(talked, 1000, 6)) == 6


def test_the_last_message_stays_even_without_a_minimum() -> None:
    talked = talk(3, tokens=5000)[:-1]
    assert window_of(talked, 10, 0) == (talked[-1],)


def test_the_start_moves_rarely() -> None:
    talked = talk(60)
    starts = [first_of(window_of(talked[:count], 2000, 4)) for count in range(20, 120)]
    assert starts == sorted(starts)
    moves = sum(one != other for one, other in pairwise(starts))
    assert moves <= 100 * 100 / (2000 / 4) + 1, "a quarter of the budget goes at a time"


def test_the_first_message_sent_is_a_user_message() -> None:
    talked = talk(50)
    for count in range(1, 101):
        assert window_of(talked[:count], 1500, 3)[0].role is Role.USER


def test_a_tools_result_never_stands_without_its_call() -> None:
    rounds: list[Message] = [message(1, Role.USER, Text("Look it up " * 50))]
    for number in range(2, 42, 2):
        rounds.append(message(number, Role.ASSISTANT, ToolCall(str(number), "search", "{}")))
        rounds.append(
            message(number + 1, Role.TOOL, ToolResult(str(number), "search", "found " * 200))
        )
    sent = window_of(rounds, 1000, 3)
    assert sent == tuple(rounds), "a turn is not cut in two, whatever it weighs"


def test_a_user_message_of_tool_results_alone_opens_no_turn() -> None:
    talked = [
        message(1, Role.USER, Text("a" * 4000)),
        message(2, Role.ASSISTANT, Text("b" * 4000)),
        message(3, Role.USER, Text("c" * 4000)),
        message(4, Role.ASSISTANT, ToolCall("1", "search", "{}")),
        message(5, Role.USER, ToolResult("1", "search", "d" * 4000)),
        message(6, Role.ASSISTANT, Text("e" * 4000)),
    ]
    assert first_of(window_of(talked, 3500, 2)) == 3


def test_everything_that_is_sent_has_its_weight() -> None:
    plain = weight_tokens(message(1, Role.USER, Text("x" * 400)))
    assert plain == 104
    for block in (
        ToolCall("1", "search", "x" * 400),
        ToolResult("1", "search", "x" * 400),
        Attachment("notes.txt", "text/plain", None, "x" * 400),
    ):
        assert weight_tokens(message(1, Role.USER, block)) >= plain


@given(
    st.lists(st.tuples(st.sampled_from(Role), st.integers(0, 3000)), max_size=40),
    st.integers(1, 5000),
    st.integers(1, 30),
)
def test_a_window_is_the_end_of_what_there_is(
    shape: list[tuple[Role, int]], budget: int, least: int
) -> None:
    talked = [
        message(number, role, Text("x" * size)) for number, (role, size) in enumerate(shape, 1)
    ]
    sent = window_of(talked, budget, least)
    assert sent == tuple(talked[len(talked) - len(sent) :])
    assert len(sent) >= min(least, len(talked))


def test_the_window_stays_where_it_began_while_all_after_it_fits() -> None:
    talked = talk(50)
    assert first_of(window_of(talked, 2000, 4, begins_at=90)) == talked[90].id
    assert first_of(window_of(talked, 2000, 4, begins_at=2)) > talked[2].id


def test_nothing_goes_beyond_what_the_model_takes_but_the_question() -> None:
    talked = talk(20, tokens=500)[:-1]
    assert sum(map(weight_tokens, window_of(talked, 1000, 20, most_tokens=2100))) <= 2100
    assert window_of(talked, 100, 20, most_tokens=100) == (talked[-1],)


@given(
    st.lists(
        st.tuples(st.sampled_from(["user", "tools", "answer"]), st.integers(1, 900)), max_size=20
    ),
    st.integers(0, 4000),
    st.integers(1, 30),
    st.integers(0, 5000) | st.none(),
    st.integers(0, 60),
)
def test_a_call_and_its_results_are_sent_together_or_not_at_all(
    shape: list[tuple[str, int]], budget: int, least: int, most: int | None, begins_at: int
) -> None:
    talked: list[Message] = []
    for kind, size in shape:
        words = "x" * size
        number = len(talked) + 1
        if kind == "tools":
            talked.append(message(number, Role.ASSISTANT, ToolCall(str(number), "f", words)))
            talked.append(message(number + 1, Role.TOOL, ToolResult(str(number), "f", words)))
            talked.append(message(number + 2, Role.TOOL, ToolResult(str(number), "f", words)))
        else:
            role = Role.USER if kind == "user" else Role.ASSISTANT
            talked.append(message(number, role, Text(words)))
    talked.append(message(len(talked) + 1, Role.USER, Text("and now?")))
    sent = window_of(talked, budget, least, most, begins_at)
    assert sent[-1] == talked[-1]
    assert sent[0].role is not Role.TOOL
    weight = sum(map(weight_tokens, sent))
    assert most is None or weight <= most or sent == (talked[-1],)
