"""Indexable text of turns: sides, calls and results, parts and passages."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.conversations import (
    Attachment,
    Block,
    Exchange,
    ExchangeStatus,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.ids import (
    PARTS_PER_PASSAGE,
    ConversationId,
    ExchangeId,
    MessageId,
    PassageId,
    part_id,
    part_number,
    passage_id_of,
)
from app.domain.text import content_hash
from app.domain.turns import RECALL_MODEL, estimate_tokens, turn_parts, turn_passage, turn_text
from tests.fakes.values import TEXTS, values

Placed = tuple[MessageId, int, Role, str | None, Sequence[Block]]

AT = datetime(2026, 1, 1, tzinfo=UTC)
EXCHANGE = Exchange(
    ExchangeId(7), ConversationId(3), None, 0, 0, ExchangeStatus.COMPLETED,
    (MessageId(1), MessageId(2)), AT, AT,
)  # fmt: skip


def said(role: Role, *blocks: Block) -> Message:
    return Message(MessageId(1), "u", ConversationId(3), None, role, blocks, AT)


def test_sides_calls_and_results_are_separate() -> None:
    words = turn_text([
        (Role.USER, (Text("Why?"), Attachment("a.txt", "text/plain", text="because"))),
        (Role.ASSISTANT, (Thinking("secret"), Text("So."), ToolCall("1", "grep", '{"a": 1, "b": "x"}'))),
        (Role.TOOL, (ToolResult("1", "grep", "found it"),)),
        (Role.ASSISTANT, (Text("Done."), Text("  "))),
    ])  # fmt: skip
    assert words.user == "Why?\n\na.txt\nbecause"
    assert words.assistant == "So.\n\nDone."
    assert words.calls == "grep(a: 1, b: x)"
    assert words.results == "found it"
    assert words.embedded == "Why?\n\na.txt\nbecause\n\nSo.\n\nDone.\n\ngrep(a: 1, b: x)"
    assert "secret" not in words.embedded + words.results


@pytest.mark.parametrize(
    ("arguments", "longest"),
    [
        ('{"a": "' + "x" * 1000 + '"}', 260), ("x" * 1000, 260), ('["' + "x" * 1000 + '"]', 260),
        ("[" * 200_000, 260), ('{"a":' * 2000 + "1" + "}" * 2000, 300), ("9" * 10_000, 260),
    ],
)  # fmt: skip
def test_arguments_are_truncated(arguments: str, longest: int) -> None:
    assert len(turn_text([(Role.ASSISTANT, (ToolCall("1", "f", arguments),))]).calls) <= longest


def placed(*messages: tuple[Role, Sequence[Block]], model: str = "m") -> list[Placed]:
    """Return the arguments of `turn_parts`; the message at position 0 has the id 100."""
    return [
        (MessageId(100 + at), at, role, model if role is Role.ASSISTANT else None, blocks)
        for at, (role, blocks) in enumerate(messages)
    ]


def test_messages_with_text_are_parts_and_tools_belong_to_the_part_before() -> None:
    messages = placed(
        (Role.USER, (Text("Why?"),)),
        (Role.ASSISTANT, (Text("Let me see."), ToolCall("1", "grep", '{"a": 1}'))),
        (Role.TOOL, (ToolResult("1", "grep", "found it"),)),
        (Role.ASSISTANT, (ToolCall("2", "cat", "{}"),)),
        (Role.TOOL, (ToolResult("2", "cat", "more"),)),
        (Role.ASSISTANT, (Thinking("secret"), Text("So."))),
    )
    parts = turn_parts(PassageId(9), messages)
    assert [(part.id, part.message_id, part.role) for part in parts] == [
        (part_id(9, 0), 100, Role.USER),
        (part_id(9, 1), 101, Role.ASSISTANT),
        (part_id(9, 5), 105, Role.ASSISTANT),
    ]
    assert [part.text for part in parts] == ["Why?", "Let me see.", "So."]
    assert (parts[1].calls, parts[1].results) == ("grep(a: 1)\ncat()", "found it\nmore")
    assert parts[1].embedded == "Let me see.\n\ngrep(a: 1)\ncat()"
    assert parts[1].shown == "Let me see.\ngrep(a: 1)\ncat()\nfound it\nmore"


def test_replies_of_recall_are_not_parts() -> None:
    messages = placed(
        (Role.USER, (Text("Why?"),)),
        (Role.ASSISTANT, (Text("From your conversations"),)),
        model=RECALL_MODEL,
    )
    assert [part.text for part in turn_parts(PassageId(9), messages)] == ["Why?"]


@given(st.lists(st.tuples(st.sampled_from(Role), values(tuple[Block, ...]))))
def test_the_parts_contain_the_whole_text(messages: list[tuple[Role, tuple[Block, ...]]]) -> None:
    parts = turn_parts(PassageId(9), placed(*messages))
    whole = turn_text(messages)
    assert all(each in whole.embedded for each in (whole.user, whole.assistant, whole.calls))
    assert {passage_id_of(part.id) for part in parts} <= {9}
    assert [part.id for part in parts] == sorted({part.id for part in parts})
    for role, blocks in messages:
        alone = turn_text([(role, blocks)])
        for words in (alone.user, alone.assistant, alone.calls, alone.results):
            assert any(words in part.shown for part in parts) or not words
    assert bool(parts) == bool(whole.embedded.strip() or whole.results)


@given(st.integers(min_value=1, max_value=2**40), st.integers(min_value=0, max_value=10_000))
def test_a_part_id_contains_passage_and_number(passage: int, number: int) -> None:
    part = part_id(passage, number)
    assert passage_id_of(part) == passage
    assert part_number(part) == min(number, PARTS_PER_PASSAGE - 1)


def test_a_passage_has_its_exchange_and_hash() -> None:
    messages = (said(Role.USER, Text("Why?")), said(Role.ASSISTANT, Text("So.")))
    passage = turn_passage(PassageId(9), EXCHANGE, messages)
    assert (passage.source_id, passage.exchange_id, passage.conversation_id) == (7, 7, 3)
    assert passage.content_hash == content_hash("Why?\n\nSo.")
    assert passage.created_at == AT
    assert passage.tokens == estimate_tokens("Why?\n\nSo.")


def test_turns_that_are_incomplete_or_have_no_text() -> None:
    broken = replace(EXCHANGE, status=ExchangeStatus.INTERRUPTED)
    assert turn_passage(PassageId(9), broken, (said(Role.USER, Text("Why?")),)).tokens == 0
    results = (said(Role.TOOL, ToolResult("1", "grep", "found")),)
    assert turn_passage(PassageId(9), EXCHANGE, results) is not None
    for nothing in ((), (said(Role.ASSISTANT, Thinking("hm")),)):
        assert turn_passage(PassageId(9), EXCHANGE, nothing) is None


@given(TEXTS, TEXTS)
def test_equal_texts_have_equal_hashes(one: str, other: str) -> None:
    assert (content_hash(one) == content_hash(other)) is (one == other)
    assert len(content_hash(one)) == 32


@given(TEXTS)
def test_a_text_has_at_least_one_token(text: str) -> None:
    assert estimate_tokens(text) >= 1
