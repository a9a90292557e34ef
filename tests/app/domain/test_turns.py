"""Turn calculation: limits of turns, branches, and conversations that grow."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
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
    Usage,
)
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.turns import calculate_exchanges, is_reply

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
        parent = draw(st.one_of(st.just(number - 1), st.integers(0, number - 1))) or None
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


@pytest.mark.parametrize(
    ("kinds", "turns"),
    [
        (
            ("user", "call", "result", "assistant", "user", "thinking", "assistant"),
            [(0, (1, 2, 3, 4)), (1, (5, 6, 7))],
        ),
        (("user", "user", "assistant"), [(0, (1, 2, 3))]),  # no reply before the next question
        (("user", "thinking", "user", "assistant"), [(0, (1, 2, 3, 4))]),
        (
            ("system", "assistant", "user", "assistant", "user", "assistant"),
            [(0, (1, 2, 3, 4)), (1, (5, 6))],
        ),
        (("user", "call", "user result", "assistant"), [(0, (1, 2, 3, 4))]),
    ],
)
def test_a_turn_is_a_question_with_its_replies(
    kinds: tuple[str, ...], turns: list[tuple[int, tuple[int, ...]]]
) -> None:
    assert shape(calculated(chain(*kinds))) == turns


@pytest.mark.parametrize(
    ("path", "branches", "turns"),
    [
        # A regenerated reply shares the question.
        (4, [(5, 3, "assistant")], [(0, (1, 2), None), (1, (3, 4), 0), (1, (3, 5), 0)]),
        # An edited question is an exchange of its own.
        (4, [(5, 2, "user")], [(0, (1, 2), None), (1, (3, 4), 0), (1, (5,), 0)]),
        # A reply that continues after the next question is a branch.
        (3, [(4, 2, "assistant")], [(0, (1, 2), None), (1, (3,), 0), (0, (1, 2, 4), None)]),
        # Two questions after a reply that continues elsewhere share its first part.
        (
            2,
            [(3, 2, "assistant"), (4, 2, "user"), (5, 2, "user")],
            [(0, (1, 2), None), (0, (1, 2, 3), None), (1, (4,), 0), (1, (5,), 0)],
        ),
    ],
)
def test_branches_are_sibling_exchanges(
    path: int,
    branches: list[tuple[int, int, str]],
    turns: list[tuple[int, tuple[int, ...], int | None]],
) -> None:
    kinds = ("user", "assistant", "user", "assistant")[:path]
    exchanges = calculated([*chain(*kinds), *(message(*each) for each in branches)])
    ids = [each.id for each in exchanges]
    found = [
        (each.turn_number, each.message_ids, each.parent_id and ids.index(each.parent_id))
        for each in exchanges
    ]
    assert found == turns


def test_the_record_of_a_turn() -> None:
    for block in (Image("a.png", "image/png"), Attachment("a.txt", "text/plain")):
        last = replace(message(3, 2, "user"), blocks=(block,))
        done, open_turn = calculated([*chain("user", "assistant"), last])
        assert shape([done, open_turn]) == [(0, (1, 2)), (1, (3,))]
        assert done.status is ExchangeStatus.COMPLETED
        assert open_turn.status is ExchangeStatus.INTERRUPTED
    (alone,) = calculated(chain("system", "assistant"))
    assert alone.status is ExchangeStatus.COMPLETED
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


def test_an_equal_exchange_keeps_the_id_before_one_that_extends_it() -> None:
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
    by_message = {each.id: each for each in messages}
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
        for each in path[:-1]:  # every turn but the last has a question and an answer
            own = [by_message[message_id] for message_id in each.message_ids]
            assert any(one.opens_turn for one in own)
            assert any(is_reply(one) for one in own)
        assert all(by_message[each.message_ids[0]].opens_turn for each in path[1:])
    order = {each.id: place for place, each in enumerate(exchanges)}
    assert all(e.parent_id is None or order[e.parent_id] < order[e.id] for e in exchanges)


@given(trees(), st.integers(1, 14))
def test_growing_step_by_step_loses_no_identity(messages: list[Message], cut: int) -> None:
    before = calculated(messages[:cut])
    after = calculated(messages, before, first_id=1000)
    assert len({each.id for each in after}) == len(after)
    kept = {each.id for each in after}
    assert all(each.id in kept for each in before)
    assert shape(after) == shape(calculated(messages))
    assert calculated(messages, after, first_id=2000) == after


def test_a_very_long_conversation_needs_no_recursion() -> None:
    assert len(calculated(chain(*["user", "assistant"] * 2000))) == 2000
    assert len(calculated(chain(*["user"] * 2000))) == 1
