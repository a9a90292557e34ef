"""Errors of servers and of the network: their class, the requests made, the waits, and no key in them."""

import asyncio
import gzip
import logging
import socket
import time
import traceback
from contextlib import aclosing, nullcontext
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest

from app.domain import errors
from app.domain.chat import Finished, Retrying
from app.domain.translation import in_english
from app.providers.http import client
from app.providers.http.endpoint import Network, RequestTarget, SizeLimits
from app.providers.http.error_classification import EndpointMissing
from app.providers.http.error_translation import retry_after
from app.providers.remote_provider import ConnectionReport, RemoteProvider
from app.providers.wire.streaming import RetryPolicy
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_client import (
    KEY,
    SHORT,
    SHORT_ONCE_BEGUN,
    Heard,
    PatientSleeper,
    address,
    ask,
    hear,
    hear_all,
    listen,
    policy,
    provider,
    request,
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
    no_marker,
    raw,
    redirect,
    stall,
    text,
)
from tests.fakes.loopback_wire import CHAT, MESSAGES, RESPONSES, stream_bytes

ELSEWHERE = "https://api.example.com/v1"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def shown(heard: Heard) -> str:
    """Return the text of an error where other programs read it, with plain quotation marks."""
    assert isinstance(heard.error, errors.KnownError)
    with in_english():
        return heard.error.display_text


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Everything that is logged, however verbose the SDKs are asked to be."""
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "anthropic", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.DEBUG)
    return caplog


def everything_seen(heard: Heard, log: pytest.LogCaptureFixture) -> str:
    """Return all that a report, a log or a dialog could show of it."""
    seen = [repr(heard.events), log.text, *(str(record.__dict__) for record in log.records)]
    pending: list[BaseException | None] = [heard.error]
    while pending:
        if (each := pending.pop()) is not None:
            seen += [str(each), repr(each), repr(each.args), *traceback.format_exception(each)]
            pending += [each.__cause__, each.__context__]
    return "\n".join(seen)


def check_secrecy(source: RemoteProvider, heard: Heard, log: pytest.LogCaptureFixture) -> None:
    """Check that the key appears in no error, traceback, log or repr."""
    assert KEY not in everything_seen(heard, log)
    assert KEY not in f"{source!r} {vars(source)!r}"


# -- whole answers

# status, type, code, message, error, requests
ERRORS = [
    (400, "invalid_request_error", None, "messages: bad", errors.RequestRejected, 1),
    (400, "invalid_request_error", "context_length_exceeded", "context length 9", errors.ContextTooLong, 1),
    (400, "invalid_request_error", None, "prompt is too long: 250000 tokens", errors.ContextTooLong, 1),
    (400, "exceed_context_size_error", None, "the request exceeds", errors.ContextTooLong, 1),
    (400, "invalid_request_error", None, "Your credit balance is too low", errors.PaymentRequired, 1),
    (400, "", None, "API key not valid. Please pass a valid one.", errors.KeyRejected, 1),
    (401, "authentication_error", "invalid_api_key", "bad key", errors.KeyRejected, 1),
    (402, "billing_error", None, "pay first", errors.PaymentRequired, 1),
    (403, "permission_error", None, "not yours", errors.PermissionRefused, 1),
    (404, "not_found_error", "model_not_found", "the model 'x' does not exist", errors.ModelNotFound, 1),
    (404, "not_found_error", None, "model 'test-model' not found", errors.ModelNotFound, 1),
    (400, "None", 400, "Invalid model name passed in model=x", errors.ModelNotFound, 1),
    (405, "", None, "Method Not Allowed", EndpointMissing, 1),
    (408, "timeout", None, "too slow", errors.TimedOut, 1),
    (409, "conflict_error", None, "busy", errors.RequestRejected, 1),
    (413, "request_too_large", None, "too large", errors.RequestRejected, 1),
    (422, "invalid_request_error", None, "no", errors.RequestRejected, 1),
    (429, "rate_limit_error", "rate_limit_exceeded", "slow down", errors.RateLimited, 4),
    (429, "insufficient_quota", "insufficient_quota", "used up", errors.QuotaExhausted, 1),
    (429, "insufficient_quota", "credit_balance_exhausted", "used up", errors.QuotaExhausted, 1),
    (500, "api_error", None, "oops", errors.ServerFailed, 4),
    (502, "", None, "bad gateway", errors.ServerFailed, 4),
    (503, "service_unavailable_error", "server_is_overloaded", "full", errors.ServerOverloaded, 4),
    (504, "", None, "gateway timeout", errors.ServerFailed, 4),
    (503, "unavailable_error", 503, "Loading model", errors.ServerLoading, 90),
    (529, "overloaded_error", None, "Overloaded", errors.ServerOverloaded, 4),
]  # fmt: skip


@pytest.mark.parametrize(("status", "kind", "code", "words", "meaning", "requests"), ERRORS)
def test_an_http_error_is_classified_and_retried_where_that_helps(
    server: Loopback,
    wire: str,
    status: int,
    kind: str,
    code: str | None,
    words: str,
    meaning: type[errors.ProviderError],
    requests: int,
) -> None:
    if status == 405 and wire == RESPONSES:
        requests = 2  # the other protocol of the same kind is tried
    heard = ask(server, wire, error(status, kind, code=code, message=words))
    assert type(heard.error) is meaning, heard.error
    assert len(server.posts) == requests
    assert len(heard.retries) == (requests - 1 if requests >= 4 else 0)
    assert "testing" in shown(heard)
    assert words.rstrip(".") in shown(heard)


UGLY = "line\n" * 500 + "\u202e\U000e0041"
SHAPES: list[Any] = [
    None, [], "", 5, {"error": None}, {"error": "words"}, {"error": {"message": {"a": 1}}},
    [{"error": {"message": "in a list", "status": "INVALID"}}], {"detail": [{"msg": "x"}]},
    {"message": "plain"}, {"object": "error", "message": "vllm", "code": 400},
    {"error": {"message": "x" * 500_000}}, {"error": {"message": UGLY}},
]  # fmt: skip


def test_an_error_of_any_shape_is_shown_as_one_short_line(server: Loopback, wire: str) -> None:
    for body in SHAPES:
        server.reply(json_reply(body, 400))
    for heard in hear_all(provider(wire, address(server, wire)), [request()] * len(SHAPES)):
        assert type(heard.error) is errors.RequestRejected
        assert "\n" not in shown(heard)
        assert len(shown(heard)) < 400


# steps, error, requests, text on the screen
def test_a_short_key_is_hidden_as_a_word_only() -> None:
    target = RequestTarget("local", "http://127.0.0.1", key="x")
    assert target.quote("key x exceeded") == "key [key] exceeded"


ECHO = f"Incorrect API key provided: {KEY}. Bearer {KEY}"
REJECTED: dict[str, tuple[Step, type[errors.ProviderError], int, str]] = {
    "closed before headers": (hang_up(), errors.ConnectionLost, 4, ""),
    "reset before headers": (hang_up(reset=True), errors.ConnectionLost, 4, ""),
    "no HTTP": (garbage(f"NOT HTTP {KEY}\r\n\r\n".encode()), errors.InvalidReply, 1, ""),
    "silent before headers": (stall(before_headers=True), errors.TimedOut, 1, "sent nothing"),
    "silent after headers": (stall(), errors.TimedOut, 1, "sent nothing"),
    "web page": (html(), errors.InvalidReply, 1, "a web page"),
    "web page as an error": (html(502), errors.ServerFailed, 4, "status 502"),
    "JSON": (json_reply({"choices": []}), errors.InvalidReply, 1, "application/json"),
    "empty": (empty(), errors.InvalidReply, 1, "empty"),
    "redirect": (redirect(f"https://evil.example/?key={KEY}"), errors.InvalidReply, 1, "evil.example"),
    "permanent redirect": (redirect("/elsewhere", 308), errors.InvalidReply, 1, "/elsewhere"),
    "see other": (redirect("/elsewhere", 303), errors.InvalidReply, 1, "/elsewhere"),
    "compressed": (compressed(gzip.compress(b"data: {}\n\n")), errors.InvalidReply, 1, "(gzip)"),
    "bomb": (compressed(gzip.compress(b"z" * (10 << 20))), errors.InvalidReply, 1, "(gzip)"),
    "other encoding": (compressed(b"xx", "br"), errors.InvalidReply, 1, "(br)"),
    "200 with an error": (json_reply({"error": {"message": "slow", "code": "rate_limit_exceeded"}}), errors.RateLimited, 4, "slow"),
    "200 with the key": (json_reply({"error": {"message": ECHO}}), errors.KeyRejected, 1, "[key]"),
    "401 with the key": (error(401, "authentication_error", message=ECHO), errors.KeyRejected, 1, "[key]"),
    "400 with the key": (error(400, "x", message=ECHO, param="temperature"), errors.KeyRejected, 1, "[key]"),
    "429 with the key": (error(429, ECHO, code=ECHO, message=ECHO), errors.RateLimited, 4, "[key]"),
    "500 with the key": (error(500, "api_error", message=ECHO), errors.ServerFailed, 4, "[key]"),
    "a text with the key": (json_reply(ECHO, 418), errors.RequestRejected, 1, "[key]"),
    "an event with the key": (error_event("overloaded_error", ECHO, ECHO), errors.KeyRejected, 1, "[key]"),
}  # fmt: skip


@pytest.mark.parametrize("name", REJECTED)
def test_a_response_that_is_no_reply_is_an_error_without_the_key(
    server: Loopback, wire: str, name: str, log: pytest.LogCaptureFixture
) -> None:
    step, meaning, requests, words = REJECTED[name]
    server.always(step)
    times = SHORT if meaning is errors.TimedOut else None
    source = provider(wire, address(server, wire), times=times)
    heard = hear(source)
    assert type(heard.error) is meaning, heard.error
    assert heard.text == ""
    assert len(server.posts) == requests
    assert server.posts[0].headers["authorization"] == f"Bearer {KEY}"
    assert words in shown(heard)
    assert "<" not in shown(heard)
    check_secrecy(source, heard, log)


def test_a_redirect_is_not_followed(server: Loopback, wire: str) -> None:
    with Loopback() as other:
        assert other.v1 in shown(ask(server, wire, redirect(other.v1)))
        assert other.requests == []


def test_the_model_the_missing_key_and_a_better_base_url_are_named(server: Loopback) -> None:
    heard = ask(server, CHAT, error(404, "not_found_error", message="model: test-model"))
    assert "'test-model'" in shown(heard)
    heard = ask(server, CHAT, error(401, "authentication_error"), key="")
    assert isinstance(heard.error, errors.KeyMissing)
    server.always(json_reply("404 page not found", 404))
    heard = hear(provider(CHAT, server.url))
    assert isinstance(heard.error, EndpointMissing)
    assert f"Try {server.url}/v1" in shown(heard)


def test_a_connection_test_reports_the_problem(server: Loopback, wire: str) -> None:
    steps: list[Step] = [html(), json_reply([1]), error(500, "x"), hang_up(), redirect("/x")]

    async def run() -> list[ConnectionReport]:
        source = provider(wire, address(server, wire))
        reports = []
        for step in steps:
            server.routes["/v1/models"] = step
            reports.append(await source.test())
        await source.aclose()
        return reports

    for report in asyncio.run(run()):
        assert isinstance(report.problem, errors.ProviderError)
        assert not report.ok
    assert len(server.requests) == len(steps)


@pytest.mark.parametrize(
    ("reply", "is_ok"),
    [(None, True),
     (error(404, "model_not_found", message="The model `default` does not exist"), True),
     (error(400, "invalid_request_error", message="Unknown model"), True),
     (error(401, "invalid_api_key", message="Wrong key"), False),
     (json_reply("404 page not found", 404), False), (error(500, "x"), False)],
)  # fmt: skip
def test_a_server_without_a_list_of_models_is_tested_by_a_chat(
    server: Loopback, wire: str, reply: Step | None, is_ok: bool
) -> None:
    server.routes["/v1/models"] = json_reply({"detail": "Not Found"}, 404)
    server.always(*((text("Hi"),) if reply is None else (reply,)))

    async def run() -> ConnectionReport:
        source = provider(wire, address(server, wire), retries=policy(tries=1))
        report = await source.test()
        await source.aclose()
        return report

    report = asyncio.run(run())
    assert (report.ok, report.models) == (is_ok, ())


# -- in mid-stream

# type and code of an error event, as either vendor names them
EVENTS = [
    ("overloaded_error", "", errors.ServerOverloaded), ("api_error", "", errors.ServerFailed),
    ("server_error", "", errors.ServerFailed),
    ("rate_limit_error", "rate_limit_exceeded", errors.RateLimited),
    ("insufficient_quota", "insufficient_quota", errors.QuotaExhausted),
    ("invalid_request_error", "context_length_exceeded", errors.ContextTooLong),
    ("authentication_error", "", errors.KeyRejected), ("brand_new_error", "", errors.ServerFailed),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "code", "meaning"), EVENTS)
def test_an_error_event_keeps_the_text_and_is_classified_by_its_type(
    server: Loopback, wire: str, kind: str, code: str, meaning: type[errors.ProviderError]
) -> None:
    messages = {
        errors.ContextTooLong: "prompt is too long",
        errors.QuotaExhausted: "exceeded your current quota",
    }
    event = error_event(kind, messages.get(meaning, "says who"), code)
    heard = ask(server, wire, text("Half an"), event)
    assert (heard.text, heard.finished) == ("Half an", None)
    assert type(heard.error) is meaning, heard.error
    assert len(server.posts) == 1


def test_a_lost_connection_keeps_the_text_and_is_not_retried(server: Loopback, wire: str) -> None:
    whole = stream_bytes(wire, text("Hello", chunks=2))
    middle = whole.index(b"\n\n", whole.index(b"Hel")) + 3
    for reset in (False, True):
        server.reply(text("Hello", chunks=2), cut_after(middle, reset=reset))
        heard = ask(server, wire, text("never"))
        assert heard.text == "Hel" or (reset and heard.text == "")
        assert isinstance(heard.error, errors.ConnectionLost) or reset


FLOOD = raw(b"data: " + b"x" * (2 << 20))
LIMITED: dict[str, tuple[tuple[Step, ...], dict[str, Any], type[errors.ProviderError], str]] = {
    "silence": ((stall(), text("lo")), {"times": SHORT_ONCE_BEGUN}, errors.TimedOut, "0.15 s"),
    "a large event": (
        (text("x" * 70_000),), {"sizes": SizeLimits(event_bytes=65_536)}, errors.InvalidReply, "event",
    ),
    "an endless event": ((FLOOD,), {}, errors.InvalidReply, "1 MB"),
    "an error with the key": ((error_event("api_error", ECHO),), {}, errors.KeyRejected, "[key]"),
    "damage with the key": ((raw(f'event: x\ndata: {{"a": "{KEY}\n\n'.encode()),), {}, errors.InvalidReply, ""),
    "no terminal marker": ((no_marker(),), {}, errors.ConnectionLost, "before it was complete"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITED)
def test_a_fault_in_mid_stream_keeps_the_text(
    server: Loopback, wire: str, name: str, log: pytest.LogCaptureFixture
) -> None:
    steps, terms, meaning, words = LIMITED[name]
    server.always(text("Hel"), *steps)
    source = provider(wire, address(server, wire), **terms)
    heard = hear(source)
    assert (heard.text, heard.finished) == ("Hel", None)
    assert type(heard.error) is meaning
    assert words in shown(heard)
    assert len(server.posts) == 1
    assert meaning is not errors.TimedOut or server.posts[0].hung_up.wait(5)
    check_secrecy(source, heard, log)


def test_a_reply_over_its_limit_is_cut_off(server: Loopback, wire: str) -> None:
    sizes = SizeLimits(reply_bytes=100_000)
    heard = ask(server, wire, text("".join(map(str, range(24_000))), chunks=600), sizes=sizes)
    assert isinstance(heard.error, errors.InvalidReply)
    assert 0 < len(heard.text) < 100_000


# -- the network
def test_a_refused_connection_on_this_machine_is_not_retried() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    sleeper = PatientSleeper()
    heard = hear(provider(CHAT, f"http://127.0.0.1:{port}/v1", retries=policy(sleeper)))
    assert isinstance(heard.error, errors.Unreachable)
    assert "Is the server running?" in shown(heard)
    assert sleeper.waits_s == []


class Failing(httpx2.AsyncBaseTransport):
    """A network on which each request fails in the same way."""

    def __init__(self, failure: Exception, cause: Exception | None = None) -> None:
        self._failure, self._cause = failure, cause
        self.requests = 0

    async def handle_async_request(self, _request: httpx2.Request) -> httpx2.Response:
        self.requests += 1
        raise self._failure from self._cause


@pytest.mark.parametrize(
    ("failure", "cause", "meaning", "words", "requests"),
    [
        (httpx2.ConnectError("x"), socket.gaierror(-2, "unknown"), errors.Unreachable, "cannot be found", 4),
        (httpx2.ConnectError("x"), OSError("unreachable"), errors.Unreachable, "Nothing answers", 4),
        (httpx2.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED]"), None, errors.Unreachable, "certificate", 1),
        (httpx2.ConnectTimeout("x"), None, errors.Unreachable, "does not answer", 4),
        (httpx2.ReadTimeout("x"), None, errors.TimedOut, "sent nothing", 1),
        (httpx2.ProxyError("x"), None, errors.Unreachable, "proxy", 4),
        (httpx2.ReadError("x"), None, errors.ConnectionLost, "ended before", 4),
        (httpx2.WriteError("x"), None, errors.ConnectionLost, "ended before", 4),
        (httpx2.UnsupportedProtocol("x"), None, errors.Unreachable, "No request", 4),
        (ConnectionResetError("x"), None, errors.ConnectionLost, "ended before", 4),
    ],
)  # fmt: skip
def test_an_error_of_the_transport_is_translated(
    wire: str,
    failure: Exception,
    cause: Exception | None,
    meaning: type[errors.ProviderError],
    words: str,
    requests: int,
) -> None:
    transport = Failing(failure, cause)
    heard = hear(provider(wire, ELSEWHERE, transport=transport))
    assert type(heard.error) is meaning, heard.error
    assert words in shown(heard)
    assert transport.requests == requests


def test_a_bug_in_this_program_is_not_reported_as_an_error_of_the_server() -> None:
    heard = hear(provider(CHAT, ELSEWHERE, transport=Failing(AttributeError("a slip"))))
    assert isinstance(heard.error, AttributeError)


@pytest.mark.parametrize(
    "network",
    [Network(ca_bundle="/nowhere/at/all.pem"), Network(proxy_url="gopher://proxy.example"),
     Network(proxy_url="not a url")],
)  # fmt: skip
def test_unusable_network_settings_are_named(network: Network) -> None:
    heard = hear(provider(CHAT, ELSEWHERE, network=network))
    assert isinstance(heard.error, errors.Unreachable)
    assert "Settings, Network" in shown(heard)


# -- retries
def test_a_retry_is_reported_and_the_reply_follows(server: Loopback, wire: str) -> None:
    sleeper = PatientSleeper()
    server.reply(error(429, "rate_limit_error", retry_after=2)).reply(hang_up())
    server.reply(error_event("overloaded_error")).reply(text("here"))
    heard = hear(provider(wire, address(server, wire), retries=policy(sleeper)))
    assert heard.text == "here"
    assert [each.attempt for each in heard.retries] == [2, 3, 4]
    assert [each.wait_s for each in heard.retries] == sleeper.waits_s == [3.0, 2.0, 4.0]
    assert "too many requests and asks to wait 2 s" in heard.retries[0].reason


def test_a_retry_after_of_over_a_minute_is_reported(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, error(429, "rate_limit_error", retry_after=90))
    assert isinstance(heard.error, errors.RateLimited)
    assert heard.error.retry_after_s == 90
    assert "wait 90 s" in str(heard.error)
    assert len(server.posts) == 1


@pytest.mark.parametrize(("status", "header", "requests"), [(429, "false", 1), (409, "true", 4)])
def test_the_server_decides_with_x_should_retry(
    server: Loopback, wire: str, status: int, header: str, requests: int
) -> None:
    ask(server, wire, error(status, "x", headers=(("x-should-retry", header),)))
    assert len(server.posts) == requests


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [({}, None), ({"retry-after": "3"}, 3.0), ({"retry-after": "0.5"}, 0.5),
     ({"retry-after": "-7"}, 0.0), ({"retry-after": "soon"}, None), ({"retry-after": "nan"}, None),
     ({"retry-after": "inf"}, None), ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
     ({"retry-after": format_datetime(NOW + timedelta(seconds=40), usegmt=True)}, 40.0),
     ({"retry-after": format_datetime(NOW - timedelta(days=1), usegmt=True)}, 0.0),
     ({"retry-after": "Sun, 99 Foo 2026 12:00:00 GMT"}, None)],
)  # fmt: skip
def test_both_forms_of_retry_after_are_read(headers: dict[str, str], wait_s: float | None) -> None:
    assert retry_after(headers, NOW) == wait_s


@pytest.mark.parametrize(
    ("fault", "failures", "wait_s"),
    [(errors.ServerFailed("x"), 1, 0.5), (errors.ServerFailed("x"), 3, 2.0),
     (errors.RateLimited("x", retry_after_s=10), 1, 10.5),
     (errors.RateLimited("x", retry_after_s=60), 1, 60.5),
     (errors.RateLimited("x", retry_after_s=61), 1, None), (errors.ConnectionLost("x"), 1, 0.5),
     (errors.ServerFailed("x"), 4, None), (errors.TimedOut("x"), 1, None),
     (errors.QuotaExhausted("x"), 1, None), (errors.RequestRejected("x"), 1, None)],
)  # fmt: skip
def test_the_policy_adds_full_jitter_to_retry_after(
    fault: errors.ProviderError, failures: int, wait_s: float | None
) -> None:
    assert RetryPolicy(chance=lambda: 0.5).wait_s(fault, failures) == wait_s
    capped = RetryPolicy(tries=99, chance=lambda: 1.0)
    assert capped.wait_s(errors.ServerFailed("x"), 50) == capped.cap_s


# -- cancellation at each stage closes the socket at once
def test_closing_the_stream_closes_the_socket(server: Loopback, wire: str) -> None:
    server.reply(text("Hel"), stall())
    heard = hear(provider(wire, address(server, wire)), until=lambda heard: heard.text == "Hel")
    assert (heard.text, heard.error) == ("Hel", None)
    assert server.posts[0].hung_up.wait(5)


@pytest.mark.parametrize("before_headers", [True, False])
def test_cancelling_closes_the_socket(server: Loopback, wire: str, before_headers: bool) -> None:
    server.reply(stall(before_headers=before_headers))

    async def run() -> None:
        source = provider(wire, address(server, wire))
        task = asyncio.create_task(listen(source.chat_model(), request()))
        await asyncio.to_thread(server.wait_for, lambda: server.requests)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.posts[0].hung_up.wait, 5)
        await source.aclose()

    asyncio.run(run())


def test_cancelling_during_a_wait_sends_no_further_request(server: Loopback, wire: str) -> None:
    server.always(error(500, "api_error"))

    async def run() -> None:
        source = provider(wire, address(server, wire), retries=RetryPolicy(base_s=3600))
        waiting = asyncio.Event()

        async def ask() -> None:
            async with aclosing(source.chat_model().stream(request())) as events:  # type: ignore[type-var]
                async for event in events:
                    assert isinstance(event, Retrying)
                    waiting.set()

        task = asyncio.create_task(ask())
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await source.aclose()

    asyncio.run(run())
    assert len(server.posts) == 1


def test_concurrent_streams_are_independent(server: Loopback, wire: str) -> None:
    replies = [f"reply {n} " * 50 for n in range(8)]
    for reply in replies:
        server.reply(text(reply, chunks=20))

    async def run() -> list[Heard]:
        source = provider(wire, address(server, wire))
        heard = await asyncio.gather(*(listen(source.chat_model(), request()) for _ in replies))
        await source.aclose()
        return heard

    heard = asyncio.run(run())
    assert all(isinstance(each.finished, Finished) for each in heard)
    assert sorted(each.text for each in heard) == replies


def test_neither_the_key_nor_the_conversation_is_logged(
    server: Loopback, wire: str, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_LOG", "debug")
    monkeypatch.setenv("ANTHROPIC_LOG", "debug")
    assert ask(server, wire, text("a secret answer")).text == "a secret answer"
    logged = log.text + str([record.__dict__ for record in log.records])
    assert not [word for word in (KEY, "Hello", "a secret answer") if word in logged]
    for name in ("openai", "anthropic", "httpx2", "httpcore2"):
        assert logging.getLogger(name).getEffectiveLevel() >= logging.WARNING


def test_an_invalid_key_is_rejected_before_anything_is_sent(server: Loopback) -> None:
    heard = hear(provider(MESSAGES, server.url, key=f"{KEY}\nX-Evil: 1"))
    assert type(heard.error) is errors.KeyRejected
    assert KEY not in str(heard.error)
    assert server.requests == []


@pytest.mark.parametrize(("pause_s", "longest_delay_s"), [(0.0, 60.0), (1.0, 0.5)])
def test_a_reply_that_arrived_while_the_process_was_stopped_is_read(
    monkeypatch: pytest.MonkeyPatch, pause_s: float, longest_delay_s: float
) -> None:
    monkeypatch.setattr(client, "_PAUSE_S", longest_delay_s)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(time.sleep, pause_s)  # nothing runs meanwhile, as when a computer sleeps
        async with client.time_limit(0.1):
            arrived: asyncio.Future[None] = loop.create_future()
            loop.call_later(0.15, arrived.set_result, None)
            await arrived

    with nullcontext() if pause_s else pytest.raises(TimeoutError):
        asyncio.run(run())
