"""JSON in pieces: where messages begin and end, however the stream is cut into reads."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.transfer.importers.pieces import Begun, Cut, Ended, Entry, Piece, Stray, pieces
from app.transfer.importers.scanner import Scanner


class _Dribble:
    """Gives a few bytes at a time, whatever is asked for."""

    def __init__(self, content: bytes, step: int) -> None:
        self._file = io.BytesIO(content)
        self._step = step

    def read(self, count_bytes: int, /) -> bytes:
        return self._file.read(min(self._step, count_bytes))


def _pieces(text: str | bytes, step: int = 1 << 20) -> list[Piece]:
    content = text.encode() if isinstance(text, str) else text
    return list(pieces(_Dribble(content, step)))


_TEXTS = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
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


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(_HEADERS, _ENTRIES), max_size=3), st.integers(1, 40), st.booleans())
def test_every_message_and_header_comes_back_however_it_is_read(
    written: list[tuple[dict[str, object], dict[str, object]]], step: int, ascii_only: bool
) -> None:
    conversations = [header | {"mapping": entries} for header, entries in written]
    text = json.dumps(conversations, ensure_ascii=ascii_only)
    found = _pieces(text, step)
    headers = [piece.header for piece in found if isinstance(piece, Ended)]
    assert headers == [header | {"mapping": {}} for header, _ in written]
    entries = [piece for piece in found if isinstance(piece, Entry)]
    expected = [item for _, each in written for item in each.items()]
    assert [piece.value for piece in entries] == [value for _, value in expected]
    assert [json.loads(f'"{piece.key}"') for piece in entries] == [key for key, _ in expected]


@settings(max_examples=80, deadline=None)
@given(
    st.binary(max_size=60) | st.text('{}[]",:\\ a', max_size=60).map(str.encode), st.integers(1, 9)
)
def test_no_bytes_whatever_make_it_fail(content: bytes, step: int) -> None:
    assert isinstance(_pieces(content, step), list)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 200))
def test_a_stream_cut_anywhere_gives_what_was_whole_and_says_where_it_ends(cut: int) -> None:
    whole = '[{"title": "a}]", "mapping": {"x": {"id": "x"}, "y": {"q": "\\""}}, "id": 1}, {"mapping": {"z": {}}}]'
    found = _pieces(whole[:cut], 7)
    expected = _pieces(whole)
    complete = [piece for piece in found if not isinstance(piece, Cut)]
    assert complete == expected[: len(complete)]
    if 0 < cut < len(whole):
        (last,) = [piece for piece in found if isinstance(piece, Cut)][:1]
        assert last.at_byte == cut


def test_members_after_the_messages_belong_to_the_header() -> None:
    assert _pieces('{"a": 1, "chat_messages": [{"m": 1}], "b": {"c": []}}') == [
        Begun("chat_messages"),
        Entry("", {"m": 1}, 8),
        Ended({"a": 1, "chat_messages": [], "b": {"c": []}}, "chat_messages"),
    ]


def test_lines_of_objects_are_conversations() -> None:
    found = _pieces('{"format": "x"}\n{"messages": [{"m": 1}]}\n')
    assert [type(piece) for piece in found] == [Ended, Begun, Entry, Ended]


def test_an_array_where_a_conversation_should_be_is_a_stray() -> None:
    assert [type(piece) for piece in _pieces('[["mapping", {}], {"mapping": {}}]')] == [
        Stray,
        Begun,
        Ended,
    ]


def test_a_list_of_conversations_inside_a_conversation_is_only_a_member() -> None:
    found = _pieces('[{"conversations": [{"mapping": {"a": {}}}], "mapping": {}}]')
    assert [type(piece) for piece in found] == [Begun, Ended]


@pytest.mark.parametrize("flawed", ['{"a": }', '{"a": "b" "c"}', '{"a": 01}', "[1, {]"])
def test_a_flawed_message_is_told_apart_and_the_next_one_read(flawed: str) -> None:
    text = '{"mapping": {"x": ' + flawed + ', "y": {"b": 2}}}'
    entries = [piece for piece in _pieces(text) if isinstance(piece, Entry)]
    assert (entries[0].key, entries[0].flaw) == ("x", "it is not valid JSON")
    if flawed.startswith("{"):
        assert (entries[1].key, entries[1].value) == ("y", {"b": 2})


def test_nan_infinity_and_endless_numbers_are_read() -> None:
    number = "9" * 5000
    (entry,) = [
        piece
        for piece in _pieces('{"mapping": {"x": {"a": NaN, "b": -Infinity, "c": ' + number + "}}}")
        if isinstance(piece, Entry)
    ]
    assert entry.value["a"] is entry.value["b"] is None
    assert entry.value["c"] == float("inf")


def test_nesting_beyond_reason_costs_one_message() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    entries = [
        piece
        for piece in _pieces('{"mapping": {"x": {"a": ' + deep + '}, "y": {}}}')
        if isinstance(piece, Entry)
    ]
    assert [entry.flaw for entry in entries] == ["it is nested too deeply", ""]


def test_a_message_of_millions_of_brackets_is_too_large() -> None:
    found = _pieces('{"mapping": {"x": {"a": [' + "[]," * 600_000 + '[]]}, "y": {}}}')
    entries = [piece for piece in found if isinstance(piece, Entry)]
    assert [entry.flaw for entry in entries] == ["it is larger than 32 MB", ""]


def test_what_is_not_utf8_is_kept_and_told() -> None:
    found = _pieces(b'{"mapping": {"x": {"a": "caf\xe9"}, "y": {"a": "\xc3\xa9"}}}', 3)
    entries = [piece for piece in found if isinstance(piece, Entry)]
    assert [entry.replaced for entry in entries] == [True, False]


def test_a_string_longer_than_any_buffer_is_passed() -> None:
    text = '"' + "\\\\" * 400_000 + "x" * 400_000 + '"}'
    scanner = Scanner(_Dribble(text.encode(), 100_000))
    assert scanner.next_bracket() == "}"
