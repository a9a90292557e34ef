"""Turns: where they begin and end, on every branch, and how a conversation grows."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.domain.conversations import (
    Attachment,
    Block,
    Exchange,
    ExchangeStatus,
    Image,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.turns import calculate_exchanges, is_reply
from app.domain.usage import Usage

AT = datetime(2026, 1, 1, tzinfo=UTC)
KINDS: dict[str, tuple[Role, tuple[Block, ...]]] = {
    "user": (Role.USER, (Text("a question"),)),
    "assistant": (Role.ASSISTANT, (Text("an answer"),)),
    "call": (Role.ASSISTANT, (ToolCall("1", "grep", "{}"),)),
    "thinking": (Role.ASSISTANT, (Thinking("hm"),)),
    "result": (Role.TOOL, (ToolResult("1", "grep", "found"),)),
    "user result": (Role.USER, (ToolResult("1", "grep", "found"),)),
    "system": (Role.SYSTEM, (Text("be kind"),)),
}


def message(number: int, parent: int | None, kind: str) -> Message:
    role, blocks = KINDS[kind]
    return Message(
        MessageId(number), f"uid{number}", ConversationId(1),
        None if parent is None else MessageId(parent), role, blocks, AT + timedelta(seconds=number),
        "p:m" if role is Role.ASSISTANT else None,
    )  # fmt: skip


def chain(*kinds: str) -> list[Message]:
    return [message(n, n - 1 if n > 1 else None, kind) for n, kind in enumerate(kinds, start=1)]


def calculated(
    messages: Sequence[Message], known: Sequence[Exchange] = (), first_id: int = 1
) -> tuple[Exchange, ...]:
    numbers = itertools.count(first_id)
    return calculate_exchanges(messages, lambda: ExchangeId(next(numbers)), known)


def shape(exchanges: Iterable[Exchange]) -> list[tuple[int, tuple[int, ...]]]:
    return [(each.turn_number, tuple(map(int, each.message_ids))) for each in exchanges]


@st.composite
def trees(draw: st.DrawFn, max_size: int = 14) -> list[Message]:
    """Any tree of messages, every message after its parent, siblings in any order."""
    made: list[Message] = []
    for number in range(1, draw(st.integers(1, max_size)) + 1):
        # Mostly the newest message goes on, as in a real conversation.
        choices = st.one_of(st.just(number - 1), st.integers(0, number - 1))
        parent = draw(choices) or None
        made.append(message(number, parent, draw(st.sampled_from(list(KINDS)))))
    return made


def path_to(messages: Sequence[Message], leaf: Message) -> list[int]:
    by_id = {each.id: each for each in messages}
    path = [leaf]
    while path[-1].parent_id is not None:
        path.append(by_id[path[-1].parent_id])
    return [int(each.id) for each in reversed(path)]


def leaves(messages: Sequence[Message]) -> list[Message]:
    parents = {each.parent_id for each in messages}
    return [each for each in messages if each.id not in parents]


def test_a_turn_is_a_question_with_all_that_answers_it() -> None:
    messages = chain("user", "call", "result", "assistant", "user", "thinking", "assistant")
    assert shape(calculated(messages)) == [(0, (1, 2, 3, 4)), (1, (5, 6, 7))]


def test_a_question_without_a_reply_is_grouped_with_the_next() -> None:
    assert shape(calculated(chain("user", "user", "assistant"))) == [(0, (1, 2, 3))]
    assert shape(calculated(chain("user", "thinking", "user", "assistant"))) == [(0, (1, 2, 3, 4))]


def test_what_stands_before_the_first_question_belongs_to_turn_0() -> None:
    messages = chain("system", "assistant", "user", "assistant", "user", "assistant")
    assert shape(calculated(messages)) == [(0, (1, 2, 3, 4)), (1, (5, 6))]


def test_a_tool_result_in_the_user_s_name_opens_no_turn() -> None:
    messages = chain("user", "call", "user result", "assistant")
    assert shape(calculated(messages)) == [(0, (1, 2, 3, 4))]


def test_an_image_or_an_attachment_opens_a_turn() -> None:
    for block in (Image("a.png", "image/png"), Attachment("a.txt", "text/plain")):
        last = replace(message(3, 2, "user"), blocks=(block,))
        assert shape(calculated([*chain("user", "assistant"), last])) == [(0, (1, 2)), (1, (3,))]


def test_a_turn_without_a_reply_is_interrupted() -> None:
    done, open_turn = calculated(chain("user", "assistant", "user"))
    assert (done.status, open_turn.status) == (ExchangeStatus.COMPLETED, ExchangeStatus.INTERRUPTED)
    (alone,) = calculated(chain("system", "assistant"))
    assert alone.status is ExchangeStatus.COMPLETED


def test_a_regenerated_reply_is_a_sibling_that_shares_the_question() -> None:
    messages = [*chain("user", "assistant", "user", "assistant"), message(5, 3, "assistant")]
    first, one, other = calculated(messages)
    assert shape([first, one, other]) == [(0, (1, 2)), (1, (3, 4)), (1, (3, 5))]
    assert one.parent_id == other.parent_id == first.id


def test_an_edited_question_is_a_sibling_of_its_own() -> None:
    messages = [*chain("user", "assistant", "user", "assistant"), message(5, 2, "user")]
    assert shape(calculated(messages)) == [(0, (1, 2)), (1, (3, 4)), (1, (5,))]


def test_two_questions_after_the_middle_of_a_turn_share_one_exchange() -> None:
    # The first reply went on (3), and two questions (4, 5) were asked before it did.
    middle = [
        *chain("user", "assistant", "assistant"),
        message(4, 2, "user"),
        message(5, 2, "user"),
    ]
    exchanges = calculated(middle)
    assert sorted(shape(exchanges)) == [(0, (1, 2)), (0, (1, 2, 3)), (1, (4,)), (1, (5,))]
    ids = {each.message_ids: each.id for each in exchanges}
    followers = [each for each in exchanges if each.turn_number == 1]
    assert {each.parent_id for each in followers} == {ids[MessageId(1), MessageId(2)]}


def test_a_reply_that_goes_on_after_a_next_question_is_a_branch() -> None:
    # 4 continues the answer 2 although the question 3 has already followed it.
    messages = [*chain("user", "assistant", "user"), message(4, 2, "assistant")]
    first, second, longer = calculated(messages)
    assert shape([first, second, longer]) == [(0, (1, 2)), (1, (3,)), (0, (1, 2, 4))]
    assert second.parent_id == first.id


def test_the_record_says_when_with_what_and_where_it_stands() -> None:
    _, second = calculated(chain("user", "assistant", "user", "assistant"))
    assert second.started_at == AT + timedelta(seconds=3)
    assert second.completed_at == AT + timedelta(seconds=4)
    assert (second.model, second.segment_number, second.conversation_id) == ("p:m", 0, 1)


def test_a_conversation_that_grew_keeps_its_exchanges() -> None:
    messages = chain("user", "assistant", "user")
    first, second = calculated(messages)
    kept = replace(second, segment_number=2, usage=Usage(1, 2))
    grown = [*messages, message(4, 3, "assistant"), message(5, 4, "user"), message(6, 2, "user")]
    after = calculated(grown, (replace(first, status=ExchangeStatus.FAILED), kept), first_id=50)
    assert [(each.id, *pair) for each, pair in zip(after, shape(after), strict=True)] == [
        (1, 0, (1, 2)), (2, 1, (3, 4)), (50, 2, (5,)), (51, 1, (6,)),
    ]  # fmt: skip
    assert after[0].status is ExchangeStatus.FAILED
    assert after[1].status is ExchangeStatus.COMPLETED
    assert (after[1].segment_number, after[1].usage) == (2, Usage(1, 2))


def test_of_two_that_fit_the_one_that_is_equal_keeps_the_id() -> None:
    messages = chain("user", "assistant")
    (known,) = calculated(messages)
    grown = [*messages, message(3, 2, "assistant"), message(4, 2, "user")]
    ids = {each.message_ids: each.id for each in calculated(grown, (known,), first_id=50)}
    assert ids[MessageId(1), MessageId(2)] == known.id
    assert ids[MessageId(1), MessageId(2), MessageId(3)] >= 50


@given(trees())
def test_every_path_is_made_of_whole_exchanges(messages: list[Message]) -> None:
    exchanges = calculated(messages)
    by_id = {each.id: each for each in exchanges}
    by_end = {each.message_ids[-1]: each for each in exchanges}
    assert len(by_end) == len(exchanges), "two exchanges are the same"
    for leaf in leaves(messages):
        step: Exchange | None = by_end[leaf.id]
        path: list[Exchange] = []
        while step is not None:
            path.insert(0, step)
            step = None if step.parent_id is None else by_id[step.parent_id]
        assert [int(m) for each in path for m in each.message_ids] == path_to(messages, leaf)
        assert [each.turn_number for each in path] == list(range(len(path)))


@given(trees())
def test_every_turn_but_the_last_has_a_question_and_an_answer(messages: list[Message]) -> None:
    by_id = {each.id: each for each in messages}
    exchanges = calculated(messages)
    parents = {each.parent_id for each in exchanges}
    for exchange in exchanges:
        own = [by_id[each] for each in exchange.message_ids]
        if exchange.id in parents:
            assert any(each.opens_turn for each in own)
            assert any(is_reply(each) for each in own)
        if exchange.turn_number > 0:
            assert own[0].opens_turn
    order = {each.id: place for place, each in enumerate(exchanges)}
    assert all(e.parent_id is None or order[e.parent_id] < order[e.id] for e in exchanges)


@given(trees())
def test_calculating_again_changes_nothing(messages: list[Message]) -> None:
    exchanges = calculated(messages)
    assert calculated(messages, exchanges, first_id=1000) == exchanges


@given(trees(), st.integers(1, 14))
def test_growing_step_by_step_loses_no_identity(messages: list[Message], cut: int) -> None:
    before = calculated(messages[:cut])
    after = calculated(messages, before, first_id=1000)
    assert len({each.id for each in after}) == len(after)
    kept = {each.id for each in after}
    assert all(each.id in kept for each in before)
    assert shape(after) == shape(calculated(messages))


def test_a_very_long_conversation_takes_no_recursion() -> None:
    messages = chain(*["user", "assistant"] * 5000)
    assert len(calculated(messages)) == 5000
    assert len(calculated(chain(*["user"] * 5000))) == 1
