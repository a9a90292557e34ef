"""JSON encoding of values: round trips, invalid data, other versions and serialized names."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import codec
from app.domain.changes import Change, MessagesAdded, SettingPut, SpendReleased, SummaryPut
from app.domain.conversations import Block, Exchange, Message, Role, Text, ToolResult, Usage
from app.domain.ids import ConversationId, MessageId
from tests.fakes.values import values

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)


@dataclass(frozen=True, slots=True)
class Pair:
    pair: tuple[str, int]
    share: float = 0.5
    names: tuple[str, ...] = ()


@given(st.lists(values(Change), max_size=4).map(tuple))
def test_every_change_round_trips(changes: tuple[Change, ...]) -> None:
    text = codec.dumps(changes)
    assert codec.loads(tuple[Change, ...], text) == changes
    assert codec.dumps(codec.loads(tuple[Change, ...], text)) == text


@pytest.mark.parametrize("at_once", [1, 3, 200])
@given(changes=st.lists(values(Change), max_size=6).map(tuple))
def test_chunks_are_the_text_at_any_chunk_size(at_once: int, changes: tuple[Change, ...]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "_CHUNK_ITEMS", at_once)
        assert "".join(codec.iter_json(changes)) == codec.dumps(changes)


def test_the_chunks_of_a_long_conversation_are_short() -> None:
    messages = tuple(
        Message(MessageId(each), "uid", ConversationId(1), None, Role.USER, (Text("words"),), AT)
        for each in range(5_000)
    )
    pieces = list(codec.iter_json((MessagesAdded(messages), SettingPut("theme", None))))
    assert "".join(pieces) == codec.dumps((MessagesAdded(messages), SettingPut("theme", None)))
    assert max(map(len, pieces)) < 50_000


@pytest.mark.parametrize("kind", [Message, Exchange, Usage, tuple[Block, ...]])
@given(data=st.data())
def test_every_value_of_a_row_round_trips(kind: Any, data: st.DataObject) -> None:
    value = data.draw(values(kind))
    assert codec.loads(kind, codec.dumps(value)) == value


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("_"), inner),
                    max_leaves=10))  # fmt: skip
def test_any_json_is_decoded_or_raises_a_value_error(plain: Any) -> None:
    for annotation in (tuple[Change, ...], Message, Pair, datetime, Role, float, bool):
        with suppress(ValueError):
            value = codec.from_json_value(annotation, plain)
            assert isinstance(value, get_origin(annotation) or annotation)


def test_the_json_is_compact_and_omits_defaults() -> None:
    assert (
        codec.dumps(SettingPut("theme", None))
        == '{"_":"SettingPut","key":"theme","value_json":null}'
    )
    assert codec.dumps(Usage(output_tokens=3)) == '{"_":"Usage","output_tokens":3}'
    assert codec.dumps(Text("ü")) == '{"_":"Text","text":"ü"}'


def test_times_are_stored_in_utc_with_microseconds() -> None:
    elsewhere = AT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    text = codec.dumps(SummaryPut("exchange", 1, ConversationId(1), "s", "m", "h", elsewhere))
    back: SummaryPut = codec.loads(SummaryPut, text)
    assert back.made_at == AT
    assert back.made_at.utcoffset() == timedelta(0)


def test_unknown_fields_are_ignored_and_missing_ones_have_their_default_or_raise() -> None:
    assert codec.loads(Text, '{"_":"Text","text":"a","colour":"red"}') == Text("a")
    result: ToolResult = codec.loads(ToolResult, '{"call_id":"1","name":"grep","text":"x"}')
    assert result == ToolResult("1", "grep", "x", is_error=False, duration_ms=None)
    with pytest.raises(ValueError, match="Text lacks text"):
        codec.loads(Text, "{}")


@pytest.mark.parametrize(
    ("annotation", "text"),
    [(tuple[Block, ...], '[{"_":"BlockOfTomorrow"}]'), (tuple[Block, ...], '[{"text":"no name"}]'),
     (Role, '"narrator"')],
)  # fmt: skip
def test_an_unknown_class_or_enum_value_raises_unknown_type(annotation: Any, text: str) -> None:
    with pytest.raises(codec.UnknownType):
        codec.loads(annotation, text)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (int, "true"), (int, "1.5"), (str, "1"), (bool, "1"), (float, "true"),
        (datetime, "5"), (datetime, '"yesterday"'), (tuple[str, ...], '"ab"'),
        (Pair, '{"pair":"ab"}'), (Pair, '{"pair":["a"]}'), (Pair, '{"pair":5}'), (Pair, "[]"),
        (Text, "not json"), (int | str, "1.5"), (int | None, '"a"'),
    ],
)  # fmt: skip
def test_invalid_data_raises_a_value_error(annotation: Any, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        codec.loads(annotation, text)


def test_types_other_than_the_domain_s_are_refused() -> None:
    back: Pair = codec.loads(Pair, '{"pair":["a",1],"share":1}')
    assert (back.share, type(back.share)) == (1.0, float)
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


def test_serialized_names_of_changes_never_change() -> None:
    classes = codec.dataclasses_of(Change)
    names = {getattr(each, "SERIALIZED_NAME", each.__name__) for each in classes}
    assert names == {
        "ConversationPut", "ConversationEdited", "MessagesAdded", "ExchangePut", "PassagesPut",
        "TagsChanged", "OriginsAdded", "ImportNoted", "SettingPut", "ProviderPut", "PresetPut",
        "PresetRemoved", "RoutinePut", "RoutineRemoved", "RoutineRunPut", "SummaryPut", "DraftPut",
        "SpendHeld", "SpendFreed", "SpendAdded", "ReplyGrew", "FactPut", "FactForgotten",
        "ExtractionDone", "MemoryPut", "MemoryForgotten", "CoreMemoryPut", "CoreMemoryForgotten",
        "MemoryWritePut",
        "ProfilePut", "ProfileReviewPut", "ProfileLinesRejected", "ToolSummaryPut",
        "PromptKept", "FeedbackPut", "ConversationForgotten",
        "MessagesForgotten", "ValueForgotten", "UidsRestored", "ProjectPut", "ProjectRemoved", "TopicChosen",
        "DocumentsForgotten",
    }  # fmt: skip
    freed = codec.dumps((SpendReleased("u"),))
    assert freed == '[{"_":"SpendFreed","uid":"u"}]'
    assert codec.loads(tuple[Change, ...], freed) == (SpendReleased("u"),)


def enums_in(annotation: Any) -> Iterator[type[Enum]]:
    """Yield the enumerations that values of a type are made of."""
    if is_dataclass(annotation):
        for each in get_type_hints(annotation).values():
            yield from enums_in(each)
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        yield annotation
    below = codec.dataclasses_of(annotation) if isinstance(annotation, type) else ()
    for each in get_args(annotation) or below:
        yield from enums_in(each)


def test_stored_values_of_enumerations_never_change() -> None:
    assert {each.__name__: " ".join(each) for each in enums_in(Change)} == {
        "Effort": "none minimal low medium high xhigh max",
        "ExchangeStatus": "running completed interrupted failed",
        "FactCategory": "preference instruction identity relationship possession event plan "
        "decision other",
        "PassageKind": "turn exchange_summary conversation_summary fact memory tool_summary "
        "man_page document",
        "PlanPartKind": "system_prompt profile core_memory tools summary shortened window date "
        "facts related documents earlier question note",
        "RecallLayer": "fact conversation exchange history hint document earlier mention",
        "RecallRule": "only first all",
        "Role": "user assistant tool system",
        "RunOutcome": "completed failed interrupted skipped",
        "TitleOrigin": "first_words summariser import user",
        "Verdict": "up down never",
        "WriteState": "in_force proposed removed",
    }
