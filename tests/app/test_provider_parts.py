"""The small parts on their own: the gate, the cleaner, the readers, lists of models."""

import json
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.chat import Finished, ModelRef, StreamEvent, TextDelta
from app.domain.text import clean
from app.providers.anthropic_reader import MessagesReader
from app.providers.cleaning import StreamCleaner
from app.providers.faults import StreamFault
from app.providers.http import _Gate
from app.providers.limits import SizeLimits
from app.providers.model_list import is_model_list, model_cards, with_known_contexts
from app.providers.openai_chat_reader import ChatReader
from app.providers.openai_responses import ResponsesReader
from app.providers.refusals import Oversized
from app.providers.streaming import Reader
from app.providers.transcript import arguments_object, arguments_text
from tests.fakes.loopback_script import text, thinking, tool_call, usage
from tests.fakes.loopback_wire import CHAT, MESSAGES, RESPONSES, stream_bytes

SMALL = SizeLimits(event_bytes=60, reply_bytes=10_000)
BLANKS_BYTES = 24  # blank lines in a row may count with the event before or after them
lines = st.sampled_from(["data: x", "event: y", ": c", "data: " + "z" * 20, ""])


def split_at(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[begin:end] for begin, end in pairwise(edges)]


@given(
    st.lists(lines, max_size=12),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 500)),
    st.text(alphabet="ab", max_size=5),
)
def test_the_gate_passes_whole_lines_on_and_counts_events_however_they_are_cut(
    said: list[str], line_end: str, places: list[int], rest: str
) -> None:
    data = "".join(line + line_end for line in said).encode()
    gate = _Gate(SMALL, as_events=True)
    largest = size = 0
    for line in [*said, rest]:
        size = size + len(line) + len(line_end) if line else 0
        largest = max(largest, size)
    try:
        passed = b"".join(gate.feed(part) for part in split_at(data + rest.encode(), places))
    except Oversized:
        assert largest > SMALL.event_bytes - BLANKS_BYTES
    else:
        assert passed == data
        assert largest <= SMALL.event_bytes + BLANKS_BYTES


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_many_small_events_are_fine_and_one_large_is_not(line_end: bytes, size: int) -> None:
    gate = _Gate(SMALL, as_events=True)
    small = (b"data: " + b"x" * 20 + line_end * 2) * 50
    feed_all(gate, (small[start : start + size] for start in range(0, len(small), size)))
    large = b"data: " + b"x" * 60 + line_end * 2
    with pytest.raises(Oversized):
        feed_all(gate, (large[start : start + size] for start in range(0, len(large), size)))


def feed_all(gate: _Gate, parts: Iterable[bytes]) -> None:
    for part in parts:
        gate.feed(part)


def test_an_event_of_many_lines_is_counted_as_one() -> None:
    with pytest.raises(Oversized):
        feed_all(_Gate(SMALL, as_events=True), [b"data: x\n"] * 9)


pieces_of_text = st.lists(
    st.text(
        alphabet="ab🎉\ud83c\udf89\ud800\x00\u202e🏴\U000e0067\U000e0062\U000e007f", max_size=6
    ),
    max_size=8,
)


@given(pieces_of_text)
def test_text_cleaned_in_pieces_is_the_text_cleaned_whole(pieces: list[str]) -> None:
    cleaner = StreamCleaner()
    streamed = "".join(cleaner.feed(piece) for piece in pieces) + cleaner.flush()
    assert streamed == clean("".join(pieces))


def test_endless_hidden_text_is_not_held_back_for_ever() -> None:
    cleaner = StreamCleaner()
    shown = "".join(cleaner.feed("\U000e0061") for _ in range(500))
    assert len(shown) > 400


READERS: dict[str, Callable[[], Reader]] = {
    CHAT: lambda: ChatReader("p:m"),
    RESPONSES: lambda: ResponsesReader("p:m"),
    MESSAGES: lambda: MessagesReader("p:m"),
}


def real_events(wire: str) -> list[Any]:
    said = (thinking("hm"), text("ab", chunks=2), tool_call("f", {"a": 1}, pieces=2), usage(2, 3))
    data = stream_bytes(wire, *said).decode()
    held = [line[6:] for line in data.split("\n") if line.startswith("data: {")]
    return [json.loads(each) for each in held]


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def damaged(event: Any, places: list[int], value: Any) -> Any:
    """The event with one member, found by walking down, replaced."""
    if not places or not isinstance(event, dict | list) or not event:
        return value
    keys = list(event) if isinstance(event, dict) else list(range(len(event)))
    key = keys[places[0] % len(keys)]
    changed = dict(event) if isinstance(event, dict) else list(event)
    changed[key] = damaged(event[key], places[1:], value)
    return changed


@pytest.mark.parametrize("wire", [CHAT, RESPONSES, MESSAGES])
@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.lists(st.integers(0, 9), max_size=5), anything), max_size=6
    ),
    st.randoms(use_true_random=False),
)
def test_readers_take_any_damage_without_an_exception(
    wire: str, damages: list[tuple[int, list[int], Any]], chance: Any
) -> None:
    events = real_events(wire)
    for which, places, value in damages:
        events[which % len(events)] = damaged(events[which % len(events)], places, value)
    chance.shuffle(events)
    reader = READERS[wire]()
    heard: list[StreamEvent] = []
    try:
        for event in events:
            if isinstance(event, dict):
                heard.extend(reader.feed(event))
    except StreamFault:
        pass  # an error event is what some damage makes of it
    heard.extend(reader.flush())
    assert all(isinstance(event.text, str) for event in heard if isinstance(event, TextDelta))
    assert reader.finished is None or isinstance(reader.finished, Finished)


@given(st.text(max_size=30))
def test_arguments_always_become_an_object(arguments: str) -> None:
    assert isinstance(arguments_object(arguments), dict)
    assert isinstance(json.loads(arguments_text(arguments)), dict)


def test_models_are_listed_newest_first_with_what_the_server_tells() -> None:
    listing = {
        "data": [
            {"id": "old", "created": 1},
            {"id": "new", "created": 9, "max_model_len": 8192},
            {"id": "text-embedding-3-small", "created": 5},
            {"id": "nomic-embed-text"},
            {"id": "routed", "created": 4, "context_length": 128_000, "name": "Routed: Model"},
            {"created": 3},
            "nonsense",
            {"id": "new", "created": 0},
        ]
    }
    cards = model_cards("local", listing)
    assert [card.ref.model for card in cards] == [
        "new", "text-embedding-3-small", "routed", "old", "nomic-embed-text",
    ]  # fmt: skip
    assert [card.is_embedding for card in cards] == [False, True, False, False, True]
    assert [card.context_tokens for card in cards][:3] == [8192, None, 128_000]
    assert cards[2].title == "Routed: Model"


def test_of_openais_models_only_those_that_chat_or_embed_are_listed() -> None:
    names = ["gpt-5", "whisper-1", "tts-1", "dall-e-3", "o3", "gpt-4o-realtime-preview", "omni-moderation-latest"]  # fmt: skip
    listing = {"data": [{"id": name} for name in [*names, "text-embedding-3-large"]]}
    cards = model_cards("openai", listing, is_openai=True)
    assert [card.ref.model for card in cards] == ["gpt-5", "o3", "text-embedding-3-large"]


def test_retired_models_of_anthropic_are_left_out_and_times_are_read() -> None:
    listing = {
        "data": [
            {"id": "a", "created_at": "2025-01-01T00:00:00Z", "max_input_tokens": 200_000},
            {"id": "b", "created_at": "2026-01-01T00:00:00Z", "display_name": "B"},
            {"id": "c", "created_at": "2027-01-01T00:00:00Z", "lifecycle": "retired"},
        ]
    }
    cards = model_cards("anthropic", listing)
    assert [(card.title, card.context_tokens) for card in cards] == [("B", None), ("a", 200_000)]


def test_a_known_context_fills_a_gap_only() -> None:
    cards = model_cards("p", {"data": [{"id": "a", "context_length": 5}, {"id": "b"}]})
    known = {ModelRef("p", "a"): 9, ModelRef("p", "b"): 7}
    assert [card.context_tokens for card in with_known_contexts(cards, known.get)] == [5, 7]


@pytest.mark.parametrize(
    ("listing", "is_list"),
    [({"data": []}, True), ({"data": [{"id": "x"}]}, True), ({"models": [{"model": "x"}]}, True),
     ({"data": [1]}, False), ({"data": "x"}, False), ({}, False), ([], False), (None, False)],
)  # fmt: skip
def test_what_is_a_list_of_models(listing: Any, is_list: bool) -> None:
    assert is_model_list(listing) is is_list
