"""JSON streams as events, for any size of reads and any damage."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.transfer.importers.parsing.json_events import (
    ConversationEnd,
    ConversationStart,
    JsonEvent,
    MessageEntry,
    Truncated,
    iter_events,
)
from app.transfer.importers.parsing.scanner import Scanner

pytestmark = pytest.mark.unmeasured


class _Dribble:
    """A stream that returns a few bytes per read."""

    def __init__(self, content: bytes, step: int) -> None:
        self._file = io.BytesIO(content)
        self._step = step

    def read(self, count_bytes: int, /) -> bytes:
        return self._file.read(min(self._step, count_bytes))


def _events(text: str | bytes, step: int = 1 << 20) -> list[JsonEvent]:
    return list(iter_events(_Dribble(text.encode() if isinstance(text, str) else text, step)))


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ['"', "\\", '\\"', "{", "]}", '{"mapping": {', "\n", "é", "🙂", "\u2028"]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)
_ENTRIES = st.dictionaries(_TEXTS, st.dictionaries(_TEXTS, _VALUES, max_size=3), max_size=4)
_HEADERS = st.dictionaries(
    _TEXTS.filter(lambda key: key not in ("mapping", "chat_messages", "messages", "conversations")),
    _VALUES,
    max_size=4,
)


@given(st.lists(st.tuples(_HEADERS, _ENTRIES), max_size=3), st.integers(1, 40), st.booleans())
def test_messages_and_headers_do_not_depend_on_read_sizes(
    written: list[tuple[dict[str, object], dict[str, object]]], step: int, ascii_only: bool
) -> None:
    conversations = [header | {"mapping": entries} for header, entries in written]
    found = _events(json.dumps(conversations, ensure_ascii=ascii_only), step)
    headers = [event.header for event in found if isinstance(event, ConversationEnd)]
    assert headers == [header | {"mapping": {}} for header, _ in written]
    entries = [event for event in found if isinstance(event, MessageEntry)]
    expected = [item for _, each in written for item in each.items()]
    assert [event.value for event in entries] == [value for _, value in expected]
    assert [json.loads(f'"{event.key}"') for event in entries] == [key for key, _ in expected]


@given(
    st.binary(max_size=60) | st.text('{}[]",:\\ a', max_size=60).map(str.encode), st.integers(1, 9)
)
def test_any_bytes_are_read(content: bytes, step: int) -> None:
    assert isinstance(_events(content, step), list)


@given(st.integers(0, 200))
def test_a_truncated_stream_gives_its_complete_events(cut: int) -> None:
    whole = '[{"title": "a}]", "mapping": {"x": {"id": "x"}, "y": {"q": "\\""}}, "id": 1}, {"mapping": {"z": {}}}]'
    found = _events(whole[:cut], 7)
    expected = _events(whole)
    complete = [event for event in found if not isinstance(event, Truncated)]
    assert complete == expected[: len(complete)]
    if 0 < cut < len(whole):
        (last,) = [event for event in found if isinstance(event, Truncated)][:1]
        assert last.at_byte == cut


def test_members_after_the_messages_belong_to_the_header() -> None:
    assert _events('{"a": 1, "chat_messages": [{"m": 1}], "b": {"c": []}}') == [
        ConversationStart("chat_messages"),
        MessageEntry("", {"m": 1}, 8),
        ConversationEnd({"a": 1, "chat_messages": [], "b": {"c": []}}, "chat_messages"),
    ]


def test_nan_infinity_and_long_numbers_are_read() -> None:
    number = "9" * 5000
    (entry,) = [
        event
        for event in _events('{"mapping": {"x": {"a": NaN, "b": -Infinity, "c": ' + number + "}}}")
        if isinstance(event, MessageEntry)
    ]
    assert entry.value["a"] is entry.value["b"] is None
    assert entry.value["c"] == float("inf")


def test_invalid_utf8_is_reported() -> None:
    found = _events(b'{"mapping": {"x": {"a": "caf\xe9"}, "y": {"a": "\xc3\xa9"}}}', 3)
    entries = [event for event in found if isinstance(event, MessageEntry)]
    assert [entry.replaced for entry in entries] == [True, False]


def test_a_string_longer_than_the_buffer_is_passed() -> None:
    text = '"' + "\\\\" * 400_000 + "x" * 400_000 + '"}'
    assert Scanner(_Dribble(text.encode(), 100_000)).next_bracket() == "}"


@pytest.mark.parametrize(
    ("text", "events"),
    [
        (
            '{"format": "x"}\n{"messages": [{"m": 1}]}\n',
            [ConversationEnd, ConversationStart, MessageEntry, ConversationEnd],
        ),
        (
            '[["mapping", {}], {"mapping": {}}]',
            [ConversationEnd, ConversationStart, ConversationEnd],
        ),
        ('[null, {"messages": []}, null]', [ConversationStart, ConversationEnd]),
        (
            '[1, {"messages": ["a {", {}, null, 2]}, "b"]',
            [ConversationEnd, ConversationStart, *3 * [MessageEntry], *2 * [ConversationEnd]],
        ),
        (
            '[{"mapping": {"a": null, "b": 1, "c": {}, "d": "}"}}]',
            [ConversationStart, *3 * [MessageEntry], ConversationEnd],
        ),
        (
            '[{"conversations": [{"mapping": {"a": {}}}], "mapping": {}}]',
            [ConversationStart, ConversationEnd],
        ),
    ],
)
def test_conversations_are_found_in_every_form(text: str, events: list[type]) -> None:
    assert [type(event) for event in _events(text)] == events


@pytest.mark.parametrize(
    ("damaged", "flaw"),
    [('{"a": }', "it is not valid JSON"), ('{"a": "b" "c"}', "it is not valid JSON"),
     ('{"a": 01}', "it is not valid JSON"),
     ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "it is nested too deeply"),
     ('{"a": [' + "[]," * 600_000 + "[]]}", "it is larger than 32 MB")],
    ids=range(5),
)  # fmt: skip
def test_a_damaged_message_is_reported_and_the_next_one_read(damaged: str, flaw: str) -> None:
    text = '{"mapping": {"x": ' + damaged + ', "y": {"b": 2}}}'
    entries = [event for event in _events(text) if isinstance(event, MessageEntry)]
    assert [(each.key, each.flaw) for each in entries] == [("x", flaw), ("y", "")]
    assert entries[1].value == {"b": 2}
