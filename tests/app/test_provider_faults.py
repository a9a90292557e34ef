"""Everything a server and the way to it can do wrong: which error the user sees, and how often
the server was asked."""

import asyncio
import gzip
import socket
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from app.domain.errors import KnownError
from app.domain.provider_errors import (
    ConnectionLost,
    ContextTooLong,
    KeyMissing,
    KeyRejected,
    ModelNotFound,
    NonsenseReply,
    PaymentRequired,
    PermissionRefused,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    ServerFailed,
    ServerOverloaded,
    TimedOut,
    Unreachable,
)
from app.providers.limits import Network, SizeLimits
from app.providers.remote import ConnectionReport
from app.providers.verdicts import EndpointMissing
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_client import (
    SHORT,
    SHORT_ONCE_BEGUN,
    WIRES,
    Heard,
    PatientSleeper,
    hear,
    policy,
    provider,
)
from tests.fakes.loopback_script import (
    Step,
    compressed,
    cut_after,
    empty,
    error,
    error_event,
    garbage,
    hang_up,
    html,
    json_reply,
    raw,
    redirect,
    stall,
    text,
)
from tests.fakes.loopback_wire import CHAT, MESSAGES, RESPONSES, stream_bytes


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def shown(heard: Heard) -> str:
    """What the screen says of a failure."""
    assert isinstance(heard.error, KnownError)
    return heard.error.screen_words


def ask(server: Loopback, wire: str, *steps: Step, **terms: Any) -> Heard:
    """Ask a server that always answers the same."""
    server.always(*steps)
    return hear(provider(wire, server.url if wire == MESSAGES else server.v1, **terms))


# status, type, code, words, what it means to the user, requests the server sees
ERRORS = [
    (400, "invalid_request_error", None, "messages: bad", RequestRejected, 1),
    (400, "invalid_request_error", "context_length_exceeded", "context length 9", ContextTooLong, 1),
    (400, "invalid_request_error", None, "prompt is too long: 250000 tokens", ContextTooLong, 1),
    (400, "exceed_context_size_error", None, "the request exceeds", ContextTooLong, 1),
    (400, "invalid_request_error", None, "Your credit balance is too low", PaymentRequired, 1),
    (400, "", None, "API key not valid. Please pass a valid one.", KeyRejected, 1),
    (401, "authentication_error", "invalid_api_key", "bad key", KeyRejected, 1),
    (402, "billing_error", None, "pay first", PaymentRequired, 1),
    (403, "permission_error", None, "not yours", PermissionRefused, 1),
    (404, "not_found_error", "model_not_found", "the model 'x' does not exist", ModelNotFound, 1),
    (404, "not_found_error", None, "model 'test-model' not found", ModelNotFound, 1),
    (405, "", None, "Method Not Allowed", EndpointMissing, 1),
    (408, "timeout", None, "too slow", TimedOut, 1),
    (409, "conflict_error", None, "busy", RequestRejected, 1),
    (413, "request_too_large", None, "too large", RequestRejected, 1),
    (422, "invalid_request_error", None, "no", RequestRejected, 1),
    (429, "rate_limit_error", "rate_limit_exceeded", "slow down", RateLimited, 4),
    (429, "insufficient_quota", "insufficient_quota", "used up", QuotaExhausted, 1),
    (429, "insufficient_quota", "credit_balance_exhausted", "used up", QuotaExhausted, 1),
    (500, "api_error", None, "oops", ServerFailed, 4),
    (502, "", None, "bad gateway", ServerFailed, 4),
    (503, "service_unavailable_error", "server_is_overloaded", "full", ServerOverloaded, 4),
    (504, "", None, "gateway timeout", ServerFailed, 4),
    (529, "overloaded_error", None, "Overloaded", ServerOverloaded, 4),
]  # fmt: skip


@pytest.mark.parametrize(("status", "kind", "code", "words", "meaning", "requests"), ERRORS)
def test_an_http_error_becomes_ours_and_is_asked_again_only_where_that_helps(
    server: Loopback,
    wire: str,
    status: int,
    kind: str,
    code: str | None,
    words: str,
    meaning: type[ProviderError],
    requests: int,
) -> None:
    if status == 405 and wire == RESPONSES:
        requests = 2  # the other protocol of the same kind is tried
    heard = ask(server, wire, error(status, kind, code=code, message=words))
    assert type(heard.error) is meaning, heard.error
    assert len(server.posts) == requests
    assert len(heard.retries) == (requests - 1 if requests == 4 else 0)
    assert "testing" in shown(heard)
    assert words.rstrip(".") in shown(heard)


def test_a_missing_model_is_named(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, error(404, "not_found_error", message="model: test-model"))
    assert "'test-model'" in shown(heard)


def test_a_wrong_address_hints_at_v1(server: Loopback) -> None:
    server.always(json_reply("404 page not found", 404))
    heard = hear(provider(CHAT, server.url))
    assert isinstance(heard.error, EndpointMissing)
    assert f"Try {server.url}/v1" in shown(heard)


def test_a_server_that_wants_a_key_we_have_not_says_so(server: Loopback) -> None:
    heard = ask(server, CHAT, error(401, "authentication_error"), key="")
    assert isinstance(heard.error, KeyMissing)


def test_a_web_page_as_an_error_is_not_quoted(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, html(502))
    assert isinstance(heard.error, ServerFailed)
    assert "<" not in shown(heard)


@pytest.mark.parametrize(
    "body",
    [None, [], "", 5, {"error": None}, {"error": "words"}, {"error": {"message": {"a": 1}}},
     [{"error": {"message": "in a list", "status": "INVALID"}}], {"detail": [{"msg": "x"}]},
     {"message": "plain"}, {"object": "error", "message": "vllm", "code": 400}],
)  # fmt: skip
def test_errors_of_any_shape_are_understood(server: Loopback, wire: str, body: Any) -> None:
    heard = ask(server, wire, json_reply(body, 400))
    assert type(heard.error) is RequestRejected


def test_a_long_ugly_complaint_is_shortened_to_one_clean_line(server: Loopback, wire: str) -> None:
    words = "line\n" * 500 + "\u202e\U000e0041"
    heard = ask(server, wire, error(400, "x", message=words))
    assert "\n" not in shown(heard)
    assert len(shown(heard)) < 400


def test_a_huge_error_body_is_not_read(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, json_reply({"error": {"message": "x" * 500_000}}, 400))
    assert type(heard.error) is RequestRejected


# what goes wrong, what it means, requests the server sees
WAYS = [
    ("closed before headers", (hang_up(),), ConnectionLost, 4),
    ("reset before headers", (hang_up(reset=True),), ConnectionLost, 4),
    ("no HTTP", (garbage(),), NonsenseReply, 1),
    ("silent before headers", (stall(before_headers=True),), TimedOut, 1),
    ("silent after headers", (stall(),), TimedOut, 1),
    ("web page", (html(),), NonsenseReply, 1),
    ("JSON", (json_reply({"choices": []}),), NonsenseReply, 1),
    ("empty", (empty(),), NonsenseReply, 1),
    ("redirect", (redirect("https://evil.example/v1"),), NonsenseReply, 1),
    ("permanent redirect", (redirect("/elsewhere", 308),), NonsenseReply, 1),
    ("see other", (redirect("/elsewhere", 303),), NonsenseReply, 1),
    ("compressed", (compressed(gzip.compress(b"data: {}\n\n")),), NonsenseReply, 1),
    ("bomb", (compressed(gzip.compress(b"z" * (10 << 20))),), NonsenseReply, 1),
    ("other encoding", (compressed(b"xx", "br"),), NonsenseReply, 1),
    ("200 with an error in JSON", (json_reply({"error": {"message": "slow", "code": "rate_limit_exceeded"}}),), RateLimited, 4),
]  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "meaning", "requests"), [w[1:] for w in WAYS], ids=[w[0] for w in WAYS]
)
def test_what_is_no_reply_becomes_an_error(
    server: Loopback,
    wire: str,
    steps: tuple[Step, ...],
    meaning: type[ProviderError],
    requests: int,
) -> None:
    times = SHORT if any(step in (stall(), stall(before_headers=True)) for step in steps) else None
    heard = ask(server, wire, *steps, times=times)
    assert type(heard.error) is meaning, heard.error
    assert heard.text == ""
    assert len(server.posts) == requests


def test_a_compressed_reply_is_named_as_such(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, compressed(gzip.compress(b"data: {}\n\n")))
    assert "compressed reply (gzip)" in shown(heard)


def test_a_redirect_names_its_target_and_is_not_followed(server: Loopback, wire: str) -> None:
    with Loopback() as other:
        heard = ask(server, wire, redirect(other.v1))
        assert other.v1 in shown(heard)
        assert other.requests == []


def test_a_list_of_models_does_not_follow_a_redirect_either(server: Loopback, wire: str) -> None:
    server.always(redirect("https://evil.example/"))
    report = run_test(server, wire)
    assert isinstance(report.problem, NonsenseReply)
    assert not report.ok


def run_test(server: Loopback, wire: str) -> ConnectionReport:
    async def run() -> ConnectionReport:
        source = provider(wire, server.url if wire == MESSAGES else server.v1)
        try:
            return await source.test()
        finally:
            await source.aclose()

    return asyncio.run(run())


@pytest.mark.parametrize(
    "steps", [(html(),), (json_reply([1]),), (error(500, "x"),), (hang_up(),), (redirect("/x"),)]
)
def test_a_connection_test_reports_instead_of_raising(
    server: Loopback, wire: str, steps: tuple[Step, ...]
) -> None:
    server.always(*steps)
    report = run_test(server, wire)
    assert isinstance(report.problem, ProviderError)
    assert not report.ok
    assert len(server.requests) == 1


# kinds of error events, as either vendor names them, in the middle of a reply
EVENTS = [
    ("overloaded_error", "", ServerOverloaded),
    ("api_error", "", ServerFailed),
    ("server_error", "", ServerFailed),
    ("rate_limit_error", "rate_limit_exceeded", RateLimited),
    ("insufficient_quota", "insufficient_quota", QuotaExhausted),
    ("invalid_request_error", "context_length_exceeded", ContextTooLong),
    ("authentication_error", "", KeyRejected),
    ("brand_new_error", "", ServerFailed),
]


@pytest.mark.parametrize(("kind", "code", "meaning"), EVENTS)
def test_an_error_event_keeps_what_was_heard_and_is_classified_by_its_type(
    server: Loopback, wire: str, kind: str, code: str, meaning: type[ProviderError]
) -> None:
    words = "prompt is too long" if meaning is ContextTooLong else "says who"
    words = "exceeded your current quota" if meaning is QuotaExhausted else words
    heard = ask(server, wire, text("Half an"), error_event(kind, words, code))
    assert heard.text == "Half an"
    assert type(heard.error) is meaning, heard.error
    assert heard.finished is None
    assert len(server.posts) == 1


def test_an_overload_before_any_output_is_tried_again(server: Loopback, wire: str) -> None:
    server.reply(error_event("overloaded_error"))
    heard = ask(server, wire, text("here"))
    assert heard.text == "here"
    assert len(server.posts) == 2


def test_a_drop_in_mid_stream_keeps_what_was_heard_and_is_not_tried_again(
    server: Loopback, wire: str
) -> None:
    whole = stream_bytes(wire, text("Hello", chunks=2))
    middle = whole.index(b"Hel") + whole[whole.index(b"Hel") :].index(b"\n\n") + 3
    for reset in (False, True):
        server.reply(text("Hello", chunks=2), cut_after(middle, reset=reset))
        heard = ask(server, wire, text("never"))
        assert heard.text == "Hel" or (reset and heard.text == "")
        assert isinstance(heard.error, ConnectionLost) or reset


def test_silence_in_mid_stream_ends_by_our_own_limit(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, text("Hel"), stall(), text("lo"), times=SHORT_ONCE_BEGUN)
    assert heard.text == "Hel"
    assert isinstance(heard.error, TimedOut)
    assert "0.15 s" in shown(heard)
    assert server.posts[0].hung_up.wait(5)


def test_an_event_over_its_limit_is_refused(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, text("ok"), text("x" * 70_000), sizes=SizeLimits(event_bytes=65_536))
    assert heard.text == "ok"
    assert isinstance(heard.error, NonsenseReply)


def test_an_event_without_an_end_is_refused(server: Loopback, wire: str) -> None:
    flood = raw(b"data: " + b"x" * (2 << 20))
    heard = ask(server, wire, text("ok"), flood)
    assert heard.text == "ok"
    assert isinstance(heard.error, NonsenseReply)
    assert "1 MB" in shown(heard)


def test_a_reply_over_its_limit_is_cut_off(server: Loopback, wire: str) -> None:
    sizes = SizeLimits(reply_bytes=100_000)
    heard = ask(server, wire, text("x" * 120_000, chunks=600), sizes=sizes)
    assert isinstance(heard.error, NonsenseReply)
    assert 0 < len(heard.text) < 100_000


def test_a_refused_connection_on_this_machine_is_final() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    sleeper = PatientSleeper()
    heard = hear(provider(CHAT, f"http://127.0.0.1:{port}/v1", retries=policy(sleeper)))
    assert isinstance(heard.error, Unreachable)
    assert "Is the server running?" in shown(heard)
    assert sleeper.waits_s == []


class Failing(httpx2.AsyncBaseTransport):
    """A network on which every request fails in the same way."""

    def __init__(self, failure: Exception, cause: Exception | None = None) -> None:
        self._failure, self._cause = failure, cause
        self.requests = 0

    async def handle_async_request(self, _request: httpx2.Request) -> httpx2.Response:
        self.requests += 1
        raise self._failure from self._cause


@pytest.mark.parametrize(
    ("failure", "cause", "meaning", "words", "requests"),
    [
        (httpx2.ConnectError("x"), socket.gaierror(-2, "unknown"), Unreachable, "no host", 4),
        (httpx2.ConnectError("x"), OSError("unreachable"), Unreachable, "Nothing answers", 4),
        (httpx2.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED]"), None, Unreachable, "certificate", 1),
        (httpx2.ConnectTimeout("x"), None, Unreachable, "does not answer", 4),
        (httpx2.ReadTimeout("x"), None, TimedOut, "sent nothing", 1),
        (httpx2.ProxyError("x"), None, Unreachable, "proxy", 4),
        (httpx2.ReadError("x"), None, ConnectionLost, "ended before", 4),
        (httpx2.WriteError("x"), None, ConnectionLost, "ended before", 4),
        (httpx2.UnsupportedProtocol("x"), None, Unreachable, "No request", 4),
        (ConnectionResetError("x"), None, ConnectionLost, "ended before", 4),
    ],
)  # fmt: skip
def test_the_way_there_can_fail_in_many_ways(
    wire: str,
    failure: Exception,
    cause: Exception | None,
    meaning: type[ProviderError],
    words: str,
    requests: int,
) -> None:
    transport = Failing(failure, cause)
    heard = hear(provider(wire, "https://api.example.com/v1", transport=transport))
    assert type(heard.error) is meaning, heard.error
    assert words in shown(heard)
    assert transport.requests == requests


def test_a_bug_of_ours_is_not_dressed_up_as_a_fault_of_the_server() -> None:
    class Clumsy(Failing):
        async def handle_async_request(self, _request: httpx2.Request) -> httpx2.Response:
            raise AttributeError("a slip")

    transport = Clumsy(ValueError())
    heard = hear(provider(CHAT, "https://api.example.com/v1", transport=transport))
    assert isinstance(heard.error, AttributeError)


@pytest.mark.parametrize(
    "network",
    [
        Network(ca_bundle="/nowhere/at/all.pem"),
        Network(proxy_url="gopher://proxy.example"),
        Network(proxy_url="not a url"),
    ],
)
def test_settings_that_cannot_be_used_are_named(network: Network) -> None:
    heard = hear(provider(CHAT, "https://api.example.com/v1", network=network))
    assert isinstance(heard.error, Unreachable)
    assert "Settings, Network" in shown(heard)
