"""Values become JSON and come back the same; what does not fit is refused."""

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import codec
from app.domain.changes import Change, MessagesAdded, SettingPut, SummaryPut
from app.domain.conversations import Block, Exchange, Message, Role, Text, ToolResult
from app.domain.ids import ConversationId, MessageId
from app.domain.usage import Usage
from tests.fakes.values import values

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)


@dataclass(frozen=True, slots=True)
class Pair:
    pair: tuple[str, int]
    share: float = 0.5
    names: tuple[str, ...] = ()


@given(st.lists(values(Change), max_size=4).map(tuple))
def test_every_change_comes_back_the_same(changes: tuple[Change, ...]) -> None:
    text = codec.dumps(changes)
    assert codec.loads(tuple[Change, ...], text) == changes
    assert codec.dumps(codec.loads(tuple[Change, ...], text)) == text


@pytest.mark.parametrize("at_once", [1, 3, 200])
@given(changes=st.lists(values(Change), max_size=6).map(tuple))
def test_pieces_are_the_text_however_short_they_are(
    at_once: int, changes: tuple[Change, ...]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "_AT_ONCE", at_once)
        assert "".join(codec.pieces(changes)) == codec.dumps(changes)


def test_no_piece_of_a_long_conversation_is_long() -> None:
    messages = tuple(
        Message(MessageId(each), "uid", ConversationId(1), None, Role.USER, (Text("words"),), AT)
        for each in range(5_000)
    )
    pieces = list(codec.pieces((MessagesAdded(messages), SettingPut("theme", None))))
    assert "".join(pieces) == codec.dumps((MessagesAdded(messages), SettingPut("theme", None)))
    assert max(map(len, pieces)) < 50_000


@pytest.mark.parametrize("kind", [Message, Exchange, Usage, tuple[Block, ...]])
@given(data=st.data())
def test_every_value_of_a_row_comes_back_the_same(kind: Any, data: st.DataObject) -> None:
    value = data.draw(values(kind))
    assert codec.loads(kind, codec.dumps(value)) == value


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("_"), inner),
                    max_leaves=10))  # fmt: skip
def test_any_json_is_taken_or_refused_by_a_value_error(plain: Any) -> None:
    for annotation in (tuple[Change, ...], Message, Pair, datetime, Role, float, bool):
        with suppress(ValueError):
            codec.from_plain(annotation, plain)


def test_the_json_is_compact_and_leaves_defaults_out() -> None:
    assert (
        codec.dumps(SettingPut("theme", None))
        == '{"_":"SettingPut","key":"theme","value_json":null}'
    )
    assert codec.dumps(Usage(output_tokens=3)) == '{"_":"Usage","output_tokens":3}'
    assert codec.dumps(Text("ü")) == '{"_":"Text","text":"ü"}'


def test_times_are_kept_in_utc_to_the_microsecond() -> None:
    elsewhere = AT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    text = codec.dumps(SummaryPut("exchange", 1, ConversationId(1), "s", "m", "h", elsewhere))
    back: SummaryPut = codec.loads(SummaryPut, text)
    assert back.made_at == AT
    assert back.made_at.utcoffset() == timedelta(0)


def test_fields_of_a_later_version_are_passed_over() -> None:
    assert codec.loads(Text, '{"_":"Text","text":"a","colour":"red"}') == Text("a")


def test_missing_fields_take_their_default_or_are_named() -> None:
    result: ToolResult = codec.loads(ToolResult, '{"call_id":"1","name":"grep","text":"x"}')
    assert result == ToolResult("1", "grep", "x", is_error=False, duration_ms=None)
    with pytest.raises(ValueError, match="Text lacks text"):
        codec.loads(Text, "{}")


@pytest.mark.parametrize("text", ['[{"_":"BlockOfTomorrow"}]', '[{"text":"no name"}]'])
def test_a_type_of_a_later_version_is_told_from_nonsense(text: str) -> None:
    with pytest.raises(codec.UnknownType):
        codec.loads(tuple[Block, ...], text)


def test_an_enum_s_value_of_a_later_version_is_told_from_nonsense() -> None:
    with pytest.raises(codec.UnknownType, match="narrator"):
        codec.loads(Role, '"narrator"')


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (int, "true"), (int, "1.5"), (str, "1"), (bool, "1"), (float, "true"),
        (datetime, "5"), (datetime, '"yesterday"'), (tuple[str, ...], '"ab"'),
        (Pair, '{"pair":"ab"}'), (Pair, '{"pair":["a"]}'), (Pair, '{"pair":5}'), (Pair, "[]"),
        (Text, "not json"), (int | str, "1.5"), (int | None, '"a"'),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_a_value_error(annotation: Any, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        codec.loads(annotation, text)


def test_a_whole_number_is_a_float_where_one_is_wanted() -> None:
    back: Pair = codec.loads(Pair, '{"pair":["a",1],"share":1}')
    assert (back.share, type(back.share)) == (1.0, float)


def test_what_is_no_value_of_the_domain_cannot_be_written() -> None:
    for stranger in (object(), b"bytes", Text):
        with pytest.raises(TypeError):
            codec.dumps(stranger)
    with pytest.raises(TypeError):
        codec.loads(dict[str, int], "{}")


def test_the_oldest_journals_can_be_read() -> None:
    kept = json.dumps([
        {"_": "SettingPut", "key": "theme", "value_json": '"dark"'},
        {"_": "TagsChanged", "conversation_id": 3, "added": ["a"]},
        {"_": "OriginsAdded", "source": "claude", "kind": "message", "pairs": [["u", 4]]},
        {"_": "SpendAdded", "at": "2026-01-02T03:04:05+00:00", "purpose": "chat", "model": "a:b",
         "input_tokens": 1, "output_tokens": 2, "cached_tokens": 0, "cost_usd": None},
    ])  # fmt: skip
    assert len(codec.loads(tuple[Change, ...], kept)) == 4
