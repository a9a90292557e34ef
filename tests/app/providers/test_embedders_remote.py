"""The embedder that is a server, through the real SDK: requests, replies, errors, limits, keys."""

import logging
import math
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import errors
from app.domain.passages import Space
from app.domain.workers import UsageTotals
from app.providers.embedders.remote import RateLimiter, RemoteEmbedder
from app.providers.embedders.remote_models import RemoteModel, remote_model
from app.providers.http.base_url import check_base_url
from app.providers.http.endpoint import Endpoint
from app.providers.http.loop_thread import EventLoopThread
from app.providers.pricing.usage import estimated_spans, estimated_tokens, first_tokens
from app.system.keys import FoundKey, KeyLocation, Secret
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_client import KEY
from tests.fakes.loopback_embeddings import TOKENS_OF_A_TEXT, vector_of
from tests.fakes.loopback_script import (
    Step,
    empty,
    error,
    garbage,
    hang_up,
    html,
    json_reply,
    redirect,
    stall,
    vectors,
)

OPENAI = remote_model("text-embedding-3-small", check_base_url("https://api.openai.com/v1"))
OTHER = RemoteModel("nomic-embed-text", "nomic_embed_text_0", None, 512, 32_768)
Build = Callable[..., RemoteEmbedder]


@pytest.fixture
def loop() -> Iterator[EventLoopThread]:
    running = EventLoopThread("embedders")
    yield running
    running.close()


@pytest.fixture
def build(server: Loopback, loop: EventLoopThread) -> Build:
    def built(
        model: RemoteModel = OTHER,
        *,
        key: str = KEY,
        url: str = server.v1,
        needs_key: bool = False,
        pace: RateLimiter | None = None,
        **limits: Any,
    ) -> RemoteEmbedder:
        found = FoundKey(Secret(key), KeyLocation.KEYRING) if key else None
        limits.setdefault("query_limit_s", 30.0)  # a busy machine may need more than 2
        endpoint = Endpoint("testing", check_base_url(url), lambda: found, needs_key=needs_key)
        return RemoteEmbedder(endpoint, model, loop, pace or RateLimiter(lambda: None), **limits)

    return built


def expected(texts: list[str], dimension: int = 8) -> Any:
    return np.stack([vector_of(text, dimension) for text in texts])


def inputs(server: Loopback) -> list[list[str]]:
    return [seen.body["input"] for seen in server.posts]


# -- requests and vectors
def test_vectors_are_unit_rows_in_the_order_of_the_texts(server: Loopback, build: Build) -> None:
    texts = [f"text {number}" for number in range(20)]
    made = build().embed(texts)
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, expected(texts), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-6)
    (seen,) = server.posts
    assert seen.path == "/v1/embeddings"
    assert seen.body == {"model": "nomic-embed-text", "input": texts}
    assert seen.headers["authorization"] == f"Bearer {KEY}"


def as_numbers(entries: list[dict[str, Any]]) -> object:
    rows = [vector_of(text, 1536).tolist() for text in ("a", "b")]
    return [one | {"embedding": row} for one, row in zip(entries, rows, strict=True)]


@pytest.mark.parametrize(
    ("model", "step"),
    [(OTHER, vectors(change=lambda entries: entries[::-1])),
     (OTHER, vectors(change=lambda entries: [{"embedding": e["embedding"]} for e in entries])),
     (OPENAI, vectors(1536)), (OPENAI, vectors(1536, as_numbers))],
    ids=["index", "no index", "base64", "numbers instead of base64"],
)  # fmt: skip
def test_any_form_is_read(server: Loopback, build: Build, model: RemoteModel, step: Step) -> None:
    server.always(step)
    dimension = model.dimension or 8
    made = build(model).embed(["a", "b"])
    np.testing.assert_allclose(made, expected(["a", "b"], dimension), atol=1e-6)
    encoding = "base64" if model is OPENAI else None
    assert server.posts[0].body.get("encoding_format") == encoding


def test_only_texts_and_an_unknown_dimension_take_a_request(server: Loopback, build: Build) -> None:
    assert build(OPENAI).embed([]).shape == (0, 1536)
    assert server.requests == []
    assert build(OPENAI).space == Space("text_embedding_3_small", 1536, 8191)
    assert server.requests == []
    embedder = build()
    assert embedder.space == Space("nomic_embed_text_0", 8, 512)
    assert embedder.space.dimension == 8
    assert len(server.posts) == 1


def test_requests_have_up_to_2048_texts_and_300_000_tokens(server: Loopback, build: Build) -> None:
    texts = [f"t{number}" for number in range(2049)]
    made = build().embed(texts)
    assert [len(each) for each in inputs(server)] == [2048, 1]
    np.testing.assert_allclose(made, expected(texts), atol=1e-6)
    server.always(vectors(1536))
    assert len(build(OPENAI).embed(["word " * 7000] * 60)) == 60
    sent = inputs(server)[2:]
    sizes = [sum(estimated_tokens(text, OPENAI.name) for text in each) for each in sent]
    assert (len(sizes), sum(sizes)) == (2, 420_000)
    assert max(sizes) <= 300_000


def test_texts_are_cut_at_limits_and_shortened(server: Loopback, build: Build) -> None:
    build().embed(["word " * 5000])
    assert inputs(server) == [["word " * 512]]
    too_long = error(400, code="context_length_exceeded", message="maximum context length is 9")
    server.reply(too_long).reply(too_long)
    assert build().embed(["字" * 500, "short"]).shape == (2, 8)
    assert [len(each[0]) for each in inputs(server)[1:]] == [500, 300, 180]
    assert {each[1] for each in inputs(server)[1:]} == {"short"}
    server.always(too_long)
    with pytest.raises(errors.ContextTooLong):
        build().embed(["many words " * 100])
    assert len(server.posts) == 1 + 3 + 5


@pytest.mark.parametrize("text", ["", " \n", "\0", "\ud800", "a" * 1_000_000, "🏴" * 9000])
def test_any_text_gets_a_vector(server: Loopback, build: Build, text: str) -> None:
    assert build().embed([text, "b"]).shape == (2, 8)
    assert all(sent and "\0" not in sent for sent in inputs(server)[0])


# -- the space
def test_two_servers_never_share_a_space() -> None:
    places = [
        "https://api.openai.com/v1", "https://gateway.example/v1", "http://127.0.0.1:11434/v1",
        "http://127.0.0.1:1234/v1",
    ]  # fmt: skip
    models = ["text-embedding-3-small", "text_embedding.3/small"]
    made = [remote_model(model, check_base_url(place)) for place in places for model in models]
    assert made[0].space_name == "text_embedding_3_small"
    others = [each.space_name for each in made[2:]]
    assert len(set(others)) == len(others)
    assert all(name.replace("_", "").isalnum() and name.islower() for name in others)
    assert made[0].dimension == 1536
    assert made[2].dimension is None


# -- chunks
@given(st.text(max_size=400), st.integers(10, 60))
def test_chunks_cover_all_words_and_stay_below_the_limit(text: str, max_tokens: int) -> None:
    embedder = RemoteEmbedder(
        Endpoint("testing", check_base_url("http://127.0.0.1:9"), lambda: None), OTHER,
        EventLoopThread("unused"), RateLimiter(lambda: None),
    )  # fmt: skip
    pieces = embedder.chunks(text, max_tokens, max_tokens // 10)
    covered = {at for start, end in pieces for at in range(start, end)}
    assert all(at in covered for at, letter in enumerate(text) if not letter.isspace())
    assert all(estimated_tokens(text[start:end], OTHER.name) <= max_tokens for start, end in pieces)


def test_a_long_text_is_cut_at_the_end_of_a_sentence(build: Build) -> None:
    text = "The basil likes sun and water. " * 200
    pieces = build().chunks(text, 6000, 500)
    assert len(pieces) > 1
    assert all(text[start:end].rstrip().endswith("water.") for start, end in pieces)
    assert all(text[start:].startswith("The") for start, _ in pieces[:1])
    assert build().chunks("  \n ", 6000, 500) == []
    assert build().chunks("Hello", 6000, 500) == [(0, 5)]


def test_estimates_are_in_order_and_first_tokens_are_a_beginning() -> None:
    text = "Donaudampfschifffahrt 12345 {x} Привет 你好\ud800 🏴"
    spans = estimated_spans(text, "text-embedding-3-small")
    assert spans == sorted(spans)
    assert len(spans) == estimated_tokens(text, "text-embedding-3-small")
    for count in range(len(spans) + 2):
        beginning = first_tokens(text, "text-embedding-3-small", count)
        assert text.startswith(beginning)
        assert estimated_tokens(beginning, "text-embedding-3-small") == min(count, len(spans))


# -- usage
def test_usage_is_the_servers_count_since_the_last_call(server: Loopback, build: Build) -> None:
    embedder = build(cost_of=lambda tokens: tokens / 1000)
    assert embedder.take_usage() is None
    embedder.embed(["a", "b"])
    embedder.for_queries().embed(["c"])
    assert embedder.take_usage() == UsageTotals(3 * TOKENS_OF_A_TEXT, 0.024)
    assert embedder.take_usage() is None


def test_usage_is_estimated_and_counts_if_invalid(server: Loopback, build: Build) -> None:
    server.always(vectors(tokens=None))
    embedder = build()
    embedder.embed(["four words of text"])
    assert embedder.take_usage() == UsageTotals(4, None)
    assert build(cost_of=float).max_usage(["four words of text"]) == (6, 6.0), "with a margin"
    server.always(vectors(tokens=77, change=lambda entries: entries[:-1]))
    with pytest.raises(errors.EmbedderUnavailable):
        embedder.embed(["a", "b"])
    assert embedder.take_usage() == UsageTotals(77, None)


# -- invalid vectors
def first_with(numbers: object) -> Step:
    """Answer with a vector replaced by something else."""

    def change(entries: list[dict[str, Any]]) -> object:
        return [entries[0] | {"embedding": numbers}, *entries[1:]]

    return vectors(change=change)


INVALID: list[tuple[Step, str]] = [
    (first_with([1.0] * 7 + [math.nan]), "with NaN"),
    (first_with([1.0] * 7 + [math.inf]), "with NaN"),
    (first_with([1e200] * 8), "with NaN"),
    (first_with([0.0] * 8), "zeros"),
    (first_with([1.0] * 7), "numbers where 7 were expected"),
    (first_with([]), "did not answer with vectors"),
    (first_with(["1.0"] * 8), "did not answer with vectors"),
    (first_with([None] * 8), "did not answer with vectors"),
    (first_with([[1.0]] * 8), "did not answer with vectors"),
    (first_with([10**400] * 8), "did not answer with vectors"),
    (first_with("!!! no base64"), "did not answer with vectors"),
    (first_with("AAA="), "did not answer with vectors"),
    (first_with([1.0] * 100_000), "did not answer with vectors"),
    (first_with(None), "did not answer with vectors"),
    (vectors(change=lambda entries: entries[:-1]), "gave 1 vectors for 2 texts"),
    (vectors(change=lambda entries: entries * 2), "gave 4 vectors for 2 texts"),
    (vectors(change=lambda _: []), "gave 0 vectors for 2 texts"),
    (vectors(change=lambda _: [None, 1]), "did not answer with vectors"),
    (vectors(change=lambda entries: [entries[0]] * 2), "which vector belongs to which text"),
    (vectors(change=lambda _: {"a": 1}), "did not answer with vectors"),
    (json_reply(["vectors"]), "did not answer with vectors"),
    (json_reply({"embedding": [1.0]}), "did not answer with vectors"),
]  # fmt: skip


def test_invalid_vectors_are_rejected(server: Loopback, build: Build) -> None:
    for step, words in INVALID:
        server.always(step)
        with pytest.raises(errors.EmbedderUnavailable, match=words) as refusal:
            build().embed(["a", "b"])
        assert "“nomic-embed-text” at testing" in refusal.value.title
        assert refusal.value.hint


def test_another_dimension_is_rejected(server: Loopback, build: Build) -> None:
    embedder = build()
    embedder.embed(["a"])
    server.always(vectors(9))
    with pytest.raises(errors.EmbedderUnavailable, match="9 numbers where 8 were expected"):
        embedder.embed(["a"])
    with pytest.raises(errors.EmbedderUnavailable, match="9 numbers where 1536 were expected"):
        build(OPENAI).embed(["a"])


# -- errors of the server and the network

HALF = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"data"'
ECHO = f"Incorrect API key provided: {KEY}"
FAULTS: list[tuple[Step, type[errors.KnownError]]] = [
    (error(401, "invalid_request_error", code="invalid_api_key", message=ECHO), errors.KeyRejected),
    (error(404, code="model_not_found", message="The model does not exist"), errors.ModelNotFound),
    (error(429, ECHO, code=ECHO, message=ECHO), errors.RateLimited),
    (error(500, "server_error", message=ECHO), errors.ServerFailed),
    (json_reply({"error": {"message": "model not found", "code": "model_not_found"}}), errors.ModelNotFound),
    (json_reply({"error": {"message": ECHO}}), errors.KeyRejected),
    (json_reply(ECHO, 418), errors.RequestRejected),
    (json_reply({"data": [{"index": 0, "embedding": KEY}]}), errors.EmbedderUnavailable),
    (redirect(f"https://elsewhere.example/?key={KEY}"), errors.InvalidReply),
    (garbage(f"NOT HTTP {KEY}\r\n\r\n".encode()), errors.InvalidReply),
    (garbage(HALF), errors.ConnectionLost),
    (hang_up(), errors.ConnectionLost),
    (html(), errors.EmbedderUnavailable),
    (empty(), errors.EmbedderUnavailable),
]  # fmt: skip


def test_an_error_is_raised_without_a_retry_the_key_and_the_texts(
    server: Loopback, build: Build, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    embedder, words = build(), "words of mine"
    for number, (step, kind) in enumerate(FAULTS, 1):
        server.always(step)
        with pytest.raises(kind) as fault:
            embedder.embed([words])
        assert "testing" in fault.value.title
        assert len(server.posts) == number
        shown = [caplog.text, *(str(record.__dict__) for record in caplog.records)]
        shown += [*traceback.format_exception(fault.value), repr(embedder), repr(vars(embedder))]
        assert not [each for each in (KEY, words) if each in "".join(shown)]
    assert server.posts[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_closed_port_is_unreachable(build: Build) -> None:
    with pytest.raises(errors.Unreachable, match="Nothing answers at"):
        build(url="http://127.0.0.1:9/v1").embed(["a"])


def test_a_hanging_server_is_given_up_sooner_for_queries(server: Loopback, build: Build) -> None:
    server.always(stall(before_headers=True))
    with pytest.raises(errors.TimedOut, match=r"testing sent nothing for 0\.2 s"):
        build(batch_limit_s=0.2).embed(["a"])
    assert server.posts[0].hung_up.wait(5)
    embedder = build(OPENAI, batch_limit_s=60.0, query_limit_s=0.2)
    with pytest.raises(errors.TimedOut, match=r"0\.2 s"):
        embedder.for_queries().embed(["where is the basil?"])


@contextmanager
def cancelled_batch(
    embedder: RemoteEmbedder, cancelled: Callable[[], bool] | None = None
) -> Iterator[None]:
    """Embed a batch in a thread, which must be cancelled within the block."""
    ended: list[BaseException] = []

    def run() -> None:
        try:
            embedder.embed(["batch"], cancelled)
        except errors.Cancelled as error:
            ended.append(error)

    batch = threading.Thread(target=run)
    batch.start()
    yield
    batch.join(10)
    assert ended


def test_a_query_is_answered_while_a_batch_hangs(server: Loopback, build: Build) -> None:
    embedder = build()
    assert embedder.space.dimension == 8
    server.reply(stall(before_headers=True))
    stop = threading.Event()
    with cancelled_batch(embedder, stop.is_set):
        server.wait_for(lambda: len(server.posts) == 2)
        assert embedder.for_queries().embed(["question"]).shape == (1, 8)
        stop.set()
    assert server.posts[1].hung_up.wait(5)


def test_it_is_cancelled_between_requests(server: Loopback, build: Build) -> None:
    with pytest.raises(errors.Cancelled):
        build().embed([f"t{number}" for number in range(5000)], lambda: len(server.posts) >= 1)
    assert len(server.posts) == 1


def test_a_closed_loop_ends_requests(server: Loopback, build: Build, loop: EventLoopThread) -> None:
    embedder = build(OPENAI)
    server.always(stall(before_headers=True))
    with cancelled_batch(embedder):
        server.wait_for(lambda: server.posts)
        loop.close()
    with pytest.raises(errors.Cancelled, match="closing"):
        embedder.embed(["more"])


# -- the pace
class Clock:
    """A clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.waits_s: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    async def sleep(self, wait_s: float) -> None:
        self.waits_s.append(wait_s)
        self.now_s += wait_s


def test_the_rate_limit_reserves_some_for_queries(server: Loopback, build: Build) -> None:
    clock = Clock()
    embedder = build(pace=RateLimiter(lambda: 3, clock=clock, sleep=clock.sleep))
    for number in range(6):
        embedder.embed([f"t{number}"])
        clock.now_s += 1
    assert clock.waits_s == [58, 58]
    assert len(server.posts) == 6
    embedder.for_queries().embed(["question"])
    assert clock.waits_s == [58, 58]
    with pytest.raises(errors.EmbedderUnavailable, match="3 requests a minute is used up"):
        embedder.for_queries().embed(["another"])
    assert len(server.posts) == 7


def test_a_delayed_request_can_be_cancelled(server: Loopback, build: Build) -> None:
    embedder = build(pace=RateLimiter(lambda: 1))
    embedder.embed(["first"])
    asked: list[bool] = []

    def cancelled() -> bool:
        asked.append(True)
        return len(asked) > 1  # not yet when asked before the request

    with pytest.raises(errors.Cancelled):
        embedder.embed(["second"], cancelled)
    assert len(server.posts) == 1


def test_a_needed_key_is_reported_before_sending(server: Loopback, build: Build) -> None:
    with pytest.raises(errors.KeyMissing):
        build(key="", needs_key=True).embed(["a"])
    assert server.requests == []
    build(key="").embed(["a"])
    assert "authorization" not in server.posts[0].headers
