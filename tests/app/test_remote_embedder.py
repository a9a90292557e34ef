"""The embedder that is a server, through the real SDK against a loopback one: what it sends, takes,
refuses, and how it ends."""

import logging
import math
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import Cancelled, EmbedderUnavailable, InvalidInput, KnownError
from app.domain.passages import Space
from app.domain.provider_errors import (
    ConnectionLost,
    ContextTooLong,
    KeyMissing,
    KeyRejected,
    ModelNotFound,
    NonsenseReply,
    RateLimited,
    ServerFailed,
    TimedOut,
    Unreachable,
)
from app.domain.workers import Ledger
from app.providers.base_url import check_base_url
from app.providers.connection import Endpoint
from app.providers.estimated_tokens import estimated_spans, estimated_tokens, first_tokens
from app.providers.loop_thread import LoopThread
from app.providers.remote_embedder import RemoteEmbedder, RemoteModel, remote_model
from app.providers.request_pace import RequestPace
from app.system.keys import FoundKey, KeyPlace, Secret
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
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    running = LoopThread("embedders")
    yield running
    running.close()


@pytest.fixture
def build(server: Loopback, loop: LoopThread) -> Build:
    def built(
        model: RemoteModel = OTHER,
        *,
        key: str = KEY,
        url: str = server.v1,
        needs_key: bool = False,
        pace: RequestPace | None = None,
        **limits: Any,
    ) -> RemoteEmbedder:
        found = FoundKey(Secret(key), KeyPlace.KEYRING) if key else None
        limits.setdefault("question_limit_s", 30.0)  # a busy machine may need more than 2
        endpoint = Endpoint("testing", check_base_url(url), lambda: found, needs_key=needs_key)
        return RemoteEmbedder(endpoint, model, loop, pace or RequestPace(lambda: None), **limits)

    return built


def expected(texts: list[str], dimension: int = 8) -> Any:
    return np.stack([vector_of(text, dimension) for text in texts])


def inputs(server: Loopback) -> list[list[str]]:
    return [seen.body["input"] for seen in server.posts]


# -- what is sent and taken


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


def test_the_servers_index_decides_the_order(server: Loopback, build: Build) -> None:
    server.always(vectors(change=lambda entries: entries[::-1]))
    texts = ["a", "b", "c"]
    np.testing.assert_allclose(build().embed(texts), expected(texts), atol=1e-6)


def test_without_an_index_the_order_of_the_answer_counts(server: Loopback, build: Build) -> None:
    server.always(
        vectors(change=lambda entries: [{"embedding": one["embedding"]} for one in entries])
    )
    texts = ["a", "b", "c"]
    np.testing.assert_allclose(build().embed(texts), expected(texts), atol=1e-6)


def test_openai_is_asked_for_base64(server: Loopback, build: Build) -> None:
    server.always(vectors(1536))
    made = build(OPENAI).embed(["a", "b"])
    np.testing.assert_allclose(made, expected(["a", "b"], 1536), atol=1e-6)
    assert server.posts[0].body["encoding_format"] == "base64"


def test_plain_numbers_where_base64_was_asked_for_are_read_as_numbers(
    server: Loopback, build: Build
) -> None:
    def as_numbers(entries: list[dict[str, Any]]) -> object:
        rows = [vector_of(text, 1536).tolist() for text in ("a", "b")]
        return [one | {"embedding": row} for one, row in zip(entries, rows, strict=True)]

    server.always(vectors(1536, as_numbers))
    made = build(OPENAI).embed(["a", "b"])
    np.testing.assert_allclose(made, expected(["a", "b"], 1536), atol=1e-6)


def test_no_texts_give_no_rows_and_ask_nobody_where_the_dimension_is_known(
    server: Loopback, build: Build
) -> None:
    assert build(OPENAI).embed([]).shape == (0, 1536)
    assert server.requests == []


def test_a_request_holds_2048_texts_at_most(server: Loopback, build: Build) -> None:
    texts = [f"t{number}" for number in range(2049)]
    made = build().embed(texts)
    assert [len(each) for each in inputs(server)] == [2048, 1]
    np.testing.assert_allclose(made, expected(texts), atol=1e-6)


def test_a_request_holds_300_000_tokens_at_most(server: Loopback, build: Build) -> None:
    server.always(vectors(1536))
    texts = ["word " * 7000 for _ in range(60)]
    assert len(build(OPENAI).embed(texts)) == 60
    sizes = [sum(estimated_tokens(text, OPENAI.name) for text in each) for each in inputs(server)]
    assert sum(sizes) == 420_000
    assert max(sizes) <= 300_000
    assert len(sizes) == 2


def test_a_text_is_cut_at_the_models_limit(server: Loopback, build: Build) -> None:
    build().embed(["word " * 5000])
    assert inputs(server) == [["word " * 512]]


def test_what_the_server_finds_too_long_is_shortened_until_it_fits(
    server: Loopback, build: Build
) -> None:
    too_long = error(400, code="context_length_exceeded", message="maximum context length is 9")
    server.reply(too_long).reply(too_long)
    made = build().embed(["字" * 500, "short"])
    assert made.shape == (2, 8)
    assert [len(each[0]) for each in inputs(server)] == [500, 300, 180]
    assert {each[1] for each in inputs(server)} == {"short"}


def test_a_server_that_finds_everything_too_long_is_asked_five_times(
    server: Loopback, build: Build
) -> None:
    server.always(error(400, code="context_length_exceeded"))
    with pytest.raises(ContextTooLong):
        build().embed(["many words " * 100])
    assert len(server.posts) == 5


@pytest.mark.parametrize("text", ["", " \n", "\0", "\ud800", "a" * 1_000_000, "🏴" * 9000])
def test_any_text_gets_a_vector(server: Loopback, build: Build, text: str) -> None:
    assert build().embed([text, "b"]).shape == (2, 8)
    assert all(sent and "\0" not in sent for sent in inputs(server)[0])


# -- the space


def test_an_unknown_dimension_is_found_out_by_one_request(server: Loopback, build: Build) -> None:
    embedder = build()
    assert embedder.space == Space("nomic_embed_text_0", 8, 512)
    assert embedder.space.dimension == 8
    assert len(server.posts) == 1


def test_a_known_dimension_asks_nobody(server: Loopback, build: Build) -> None:
    assert build(OPENAI).space == Space("text_embedding_3_small", 1536, 8191)
    assert server.requests == []


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
        Endpoint("testing", check_base_url("http://127.0.0.1:9"), lambda: None),
        OTHER,
        LoopThread("unused"),
        RequestPace(lambda: None),
    )
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


# -- what it cost


def test_usage_is_what_the_server_counted_since_the_last_call(
    server: Loopback, build: Build
) -> None:
    embedder = build(cost_of=lambda tokens: tokens / 1000)
    assert embedder.take_usage() is None
    embedder.embed(["a", "b"])
    embedder.for_questions().embed(["c"])
    assert embedder.take_usage() == Ledger(3 * TOKENS_OF_A_TEXT, 0.024)
    assert embedder.take_usage() is None


def test_usage_is_estimated_where_the_server_does_not_count_and_a_price_may_be_unknown(
    server: Loopback, build: Build
) -> None:
    server.always(vectors(tokens=None))
    embedder = build()
    embedder.embed(["four words of text"])
    assert embedder.take_usage() == Ledger(4, None)


def test_what_was_paid_counts_also_when_the_vectors_are_useless(
    server: Loopback, build: Build
) -> None:
    server.always(vectors(tokens=77, change=lambda entries: entries[:-1]))
    embedder = build()
    with pytest.raises(EmbedderUnavailable):
        embedder.embed(["a", "b"])
    assert embedder.take_usage() == Ledger(77, None)


# -- useless vectors: nothing is returned


def first_with(numbers: object) -> Step:
    """Answer with a vector replaced by something else."""

    def change(entries: list[dict[str, Any]]) -> object:
        return [entries[0] | {"embedding": numbers}, *entries[1:]]

    return vectors(change=change)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (first_with([1.0] * 7 + [math.nan]), "no number"),
        (first_with([1.0] * 7 + [math.inf]), "no number"),
        (first_with([1e200] * 8), "no number"),
        (first_with([0.0] * 8), "zeros"),
        (first_with([1.0] * 7), "numbers where 7 were expected"),
        (first_with([]), "something else than vectors"),
        (first_with(["1.0"] * 8), "something else than vectors"),
        (first_with([None] * 8), "something else than vectors"),
        (first_with([[1.0]] * 8), "something else than vectors"),
        (first_with([10**400] * 8), "something else than vectors"),
        (first_with("!!! no base64"), "something else than vectors"),
        (first_with("AAA="), "something else than vectors"),
        (first_with([1.0] * 100_000), "something else than vectors"),
        (first_with(None), "something else than vectors"),
        (vectors(change=lambda entries: entries[:-1]), "gave 1 vectors for 2 texts"),
        (vectors(change=lambda entries: entries * 2), "gave 4 vectors for 2 texts"),
        (vectors(change=lambda _: []), "gave 0 vectors for 2 texts"),
        (vectors(change=lambda _: [None, 1]), "something else than vectors"),
        (vectors(change=lambda entries: [entries[0]] * 2), "which vector belongs to which text"),
        (vectors(change=lambda _: {"a": 1}), "something else than vectors"),
        (json_reply(["vectors"]), "something else than vectors"),
        (json_reply({"embedding": [1.0]}), "something else than vectors"),
    ],
)  # fmt: skip
def test_useless_vectors_are_refused(
    server: Loopback, build: Build, step: Step, words: str
) -> None:
    server.always(step)
    with pytest.raises(EmbedderUnavailable, match=words) as refusal:
        build().embed(["a", "b"])
    assert "'nomic-embed-text' at testing" in refusal.value.title
    assert refusal.value.hint


def test_another_dimension_than_the_spaces_is_refused(server: Loopback, build: Build) -> None:
    embedder = build()
    embedder.embed(["a"])
    server.always(vectors(9))
    with pytest.raises(EmbedderUnavailable, match="9 numbers where 8 were expected"):
        embedder.embed(["a"])
    with pytest.raises(EmbedderUnavailable, match="9 numbers where 1536 were expected"):
        build(OPENAI).embed(["a"])


def test_a_failure_in_the_second_request_returns_nothing(server: Loopback, build: Build) -> None:
    server.reply(vectors()).reply(first_with([0.0] * 8))
    with pytest.raises(EmbedderUnavailable, match="zeros"):
        build().embed([f"t{number}" for number in range(2050)])
    assert len(server.posts) == 2


# -- what the server and the way there do

FAULTS: list[tuple[Step, type[KnownError]]] = [
    (error(401, "invalid_request_error", code="invalid_api_key"), KeyRejected),
    (error(404, code="model_not_found", message="The model does not exist"), ModelNotFound),
    (error(429, "rate_limit_error"), RateLimited),
    (error(500, "server_error"), ServerFailed),
    (json_reply({"error": {"message": "model not found", "code": "model_not_found"}}), ModelNotFound),
    (redirect("https://elsewhere.example/v1"), NonsenseReply),
    (garbage(), NonsenseReply),
    (hang_up(), ConnectionLost),
    (html(), EmbedderUnavailable),
    (empty(), EmbedderUnavailable),
]  # fmt: skip


@pytest.mark.parametrize(("step", "kind"), FAULTS, ids=range(len(FAULTS)))
def test_a_fault_is_said_once_and_nothing_is_tried_again(
    server: Loopback, build: Build, step: Step, kind: type[KnownError]
) -> None:
    server.always(step)
    with pytest.raises(kind) as fault:
        build().embed(["a"])
    assert "testing" in fault.value.title
    assert len(server.posts) == 1


def test_the_servers_retry_after_is_carried_to_whoever_tries_again(
    server: Loopback, build: Build
) -> None:
    server.reply(error(429, "rate_limit_error", retry_after=7))
    embedder = build()
    with pytest.raises(RateLimited) as fault:
        embedder.embed(["a"])
    assert fault.value.retry_after_s == 7
    assert embedder.embed(["a"]).shape == (1, 8)


def test_nobody_listening_is_unreachable(build: Build) -> None:
    with pytest.raises(Unreachable, match="Nothing answers at"):
        build(url="http://127.0.0.1:9/v1").embed(["a"])


def test_a_server_that_hangs_ends_in_an_error(server: Loopback, build: Build) -> None:
    server.always(stall(before_headers=True))
    with pytest.raises(TimedOut, match=r"testing sent nothing for 0\.2 s"):
        build(batch_limit_s=0.2).embed(["a"])
    assert server.posts[0].hung_up.wait(5)


def test_an_answer_that_breaks_off_is_a_lost_connection(server: Loopback, build: Build) -> None:
    half = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"data"'
    server.always(garbage(half))
    with pytest.raises(ConnectionLost):
        build().embed(["a"])


def test_a_question_has_a_shorter_limit_than_a_batch(server: Loopback, build: Build) -> None:
    embedder = build(OPENAI, batch_limit_s=60.0, question_limit_s=0.2)
    server.always(stall(before_headers=True))
    with pytest.raises(TimedOut, match=r"0\.2 s"):
        embedder.for_questions().embed(["where is the basil?"])


def test_a_question_is_answered_while_a_batch_hangs(server: Loopback, build: Build) -> None:
    embedder = build()
    assert embedder.space.dimension == 8
    server.reply(stall(before_headers=True))
    stop = threading.Event()
    ended: list[BaseException] = []

    def run() -> None:
        try:
            embedder.embed(["batch"], stop.is_set)
        except Cancelled as cancelled:
            ended.append(cancelled)

    batch = threading.Thread(target=run)
    batch.start()
    server.wait_for(lambda: len(server.posts) == 2)
    assert embedder.for_questions().embed(["question"]).shape == (1, 8)
    stop.set()
    batch.join(10)
    assert ended
    assert server.posts[1].hung_up.wait(5)


def test_it_is_cancelled_between_requests(server: Loopback, build: Build) -> None:
    with pytest.raises(Cancelled):
        build().embed([f"t{number}" for number in range(5000)], lambda: len(server.posts) >= 1)
    assert len(server.posts) == 1


def test_closing_the_loop_ends_what_runs_and_refuses_what_comes(
    server: Loopback, build: Build, loop: LoopThread
) -> None:
    embedder = build(OPENAI)
    server.always(stall(before_headers=True))
    ended: list[BaseException] = []

    def run() -> None:
        try:
            embedder.embed(["batch"])
        except Cancelled as cancelled:
            ended.append(cancelled)

    batch = threading.Thread(target=run)
    batch.start()
    server.wait_for(lambda: server.posts)
    loop.close()
    batch.join(10)
    assert ended
    with pytest.raises(Cancelled, match="closing"):
        embedder.embed(["more"])


# -- the pace


class Clock:
    """Time that passes only when someone sleeps."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.waits_s: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    async def sleep(self, wait_s: float) -> None:
        self.waits_s.append(wait_s)
        self.now_s += wait_s


def test_requests_keep_to_the_limit_a_minute(server: Loopback, build: Build) -> None:
    clock = Clock()
    embedder = build(pace=RequestPace(lambda: 3, clock=clock, sleep=clock.sleep))
    for number in range(5):
        embedder.embed([f"t{number}"])
        clock.now_s += 1
    assert clock.waits_s == [58, 58]
    assert len(server.posts) == 5


def test_questions_find_a_place_that_batches_leave_them(server: Loopback, build: Build) -> None:
    clock = Clock()
    embedder = build(pace=RequestPace(lambda: 2, clock=clock, sleep=clock.sleep))
    embedder.embed(["batch"])
    embedder.for_questions().embed(["question"])
    assert clock.waits_s == []
    with pytest.raises(EmbedderUnavailable, match="2 requests a minute is used up"):
        embedder.for_questions().embed(["another"])
    assert len(server.posts) == 2


def test_a_request_that_waits_for_its_turn_can_be_cancelled(server: Loopback, build: Build) -> None:
    embedder = build(pace=RequestPace(lambda: 1))
    embedder.embed(["first"])
    asked: list[bool] = []

    def cancelled() -> bool:
        asked.append(True)
        return len(asked) > 1  # not yet when asked before the request

    with pytest.raises(Cancelled):
        embedder.embed(["second"], cancelled)
    assert len(server.posts) == 1


# -- keys


ECHO = f"Incorrect API key provided: {KEY}"


@pytest.mark.parametrize(
    "step",
    [
        error(401, "authentication_error", message=ECHO),
        error(429, ECHO, code=ECHO, message=ECHO),
        error(500, message=ECHO),
        json_reply({"error": {"message": ECHO}}),
        json_reply(ECHO, 418),
        json_reply({"data": [{"index": 0, "embedding": KEY}]}),
        redirect(f"https://evil.example/?key={KEY}"),
        garbage(f"NOT HTTP {KEY}\r\n\r\n".encode()),
        html(),
        hang_up(),
    ],
)
def test_no_fault_shows_the_key_or_the_texts(
    server: Loopback, build: Build, step: Step, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.always(step)
    embedder = build()
    text = "what I wrote"
    with pytest.raises(KnownError) as caught:
        embedder.embed([text])
    assert server.posts[0].headers["authorization"] == f"Bearer {KEY}"
    shown = [caplog.text, *(str(record.__dict__) for record in caplog.records)]
    shown += [*traceback.format_exception(caught.value), repr(embedder), repr(vars(embedder))]
    assert KEY not in "".join(shown)
    assert text not in "".join(shown)


def test_a_missing_key_is_said_before_anything_is_sent(server: Loopback, build: Build) -> None:
    with pytest.raises(KeyMissing):
        build(key="", needs_key=True).embed(["a"])
    assert server.requests == []


def test_a_server_without_a_key_gets_none(server: Loopback, build: Build) -> None:
    build(key="").embed(["a"])
    assert "authorization" not in server.posts[0].headers


def test_plain_http_is_refused_off_this_machine(build: Build) -> None:
    with pytest.raises(InvalidInput, match="unencrypted"):
        build(url="http://embedder.example/v1")
