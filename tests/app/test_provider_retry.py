"""When a request is sent again, after how long, and that stopping always works."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from app.domain.chat import Finished, Retrying, TextDelta
from app.domain.provider_errors import (
    ConnectionLost,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    ServerFailed,
    ServerOverloaded,
    TimedOut,
)
from app.providers.faults import retry_after
from app.providers.retry import RetryPolicy, with_retries
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_client import (
    WIRES,
    PatientSleeper,
    hear,
    listen,
    policy,
    provider,
    request,
)
from tests.fakes.loopback_script import error, hang_up, stall, text
from tests.fakes.loopback_wire import CHAT, MESSAGES

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def address(server: Loopback, wire: str) -> str:
    return server.url if wire == MESSAGES else server.v1


def test_a_retry_is_shown_and_the_reply_then_arrives(server: Loopback, wire: str) -> None:
    sleeper = PatientSleeper()
    server.reply(error(429, "rate_limit_error", retry_after=2)).reply(hang_up()).reply(text("here"))
    heard = hear(provider(wire, address(server, wire), retries=policy(sleeper)))
    assert heard.text == "here"
    assert [each.attempt for each in heard.retries] == [2, 3]
    assert [each.wait_s for each in heard.retries] == sleeper.waits_s == [3.0, 2.0]
    assert "too many requests and asks to wait 2 s" in heard.retries[0].reason


def test_after_four_tries_the_error_is_raised(server: Loopback, wire: str) -> None:
    sleeper = PatientSleeper()
    server.always(error(503, "overloaded_error"))
    heard = hear(provider(wire, address(server, wire), retries=policy(sleeper)))
    assert isinstance(heard.error, ServerOverloaded)
    assert len(server.posts) == 4
    assert sleeper.waits_s == [1.0, 2.0, 4.0]


def test_a_wait_of_over_a_minute_is_reported_and_not_sat_out(server: Loopback, wire: str) -> None:
    server.always(error(429, "rate_limit_error", retry_after=90))
    heard = hear(provider(wire, address(server, wire)))
    assert isinstance(heard.error, RateLimited)
    assert heard.error.retry_after_s == 90
    assert "wait 90 s" in str(heard.error)
    assert len(server.posts) == 1


@pytest.mark.parametrize(("status", "wish", "requests"), [(429, "false", 1), (409, "true", 4)])
def test_the_server_may_say_whether_to_try_again(
    server: Loopback, wire: str, status: int, wish: str, requests: int
) -> None:
    server.always(error(status, "x", headers=(("x-should-retry", wish),)))
    hear(provider(wire, address(server, wire)))
    assert len(server.posts) == requests


def test_a_date_as_retry_after_counts_from_now(server: Loopback) -> None:
    server.always(error(429, "x", retry_after=format_datetime(NOW.replace(year=2090), usegmt=True)))
    heard = hear(provider(CHAT, server.v1))
    assert isinstance(heard.error, RateLimited)
    assert heard.error.retry_after_s is not None
    assert heard.error.retry_after_s > 1e9


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-7"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=40), usegmt=True)}, 40.0),
        ({"retry-after": format_datetime(NOW - timedelta(days=1), usegmt=True)}, 0.0),
        ({"retry-after": "Sun, 99 Foo 2026 12:00:00 GMT"}, None),
    ],
)
def test_both_forms_of_retry_after_are_read(headers: dict[str, str], wait_s: float | None) -> None:
    assert retry_after(headers, NOW) == wait_s


@pytest.mark.parametrize(
    ("fault", "failures", "wait_s"),
    [
        (ServerFailed("x"), 1, 0.5),
        (ServerFailed("x"), 3, 2.0),
        (RateLimited("x", retry_after_s=10), 1, 10.5),
        (RateLimited("x", retry_after_s=60), 1, 60.5),
        (RateLimited("x", retry_after_s=61), 1, None),
        (ConnectionLost("x"), 1, 0.5),
        (ServerFailed("x"), 4, None),
        (TimedOut("x"), 1, None),
        (QuotaExhausted("x"), 1, None),
        (RequestRejected("x"), 1, None),
    ],
)
def test_the_policy_waits_with_full_jitter_above_the_servers_wish(
    fault: ProviderError, failures: int, wait_s: float | None
) -> None:
    assert RetryPolicy(chance=lambda: 0.5).wait_s(fault, failures) == wait_s


def test_waits_are_capped() -> None:
    many = RetryPolicy(tries=99, chance=lambda: 1.0)
    assert many.wait_s(ServerFailed("x"), 50) == many.cap_s


def test_after_any_output_nothing_is_tried_again() -> None:
    async def attempt():  # type: ignore[no-untyped-def]
        yield TextDelta("half")
        raise ConnectionLost("x")

    async def run() -> list[object]:
        seen: list[object] = []
        try:
            async for event in with_retries(attempt, policy()):
                seen.append(event)  # noqa: PERF401  what came before the error counts
        except ConnectionLost as fault:
            seen.append(fault.title)
        return seen

    assert asyncio.run(run()) == [TextDelta("half"), "x"]


# Stopping, in every phase: the socket is closed at once.


def test_closing_the_stream_closes_the_socket(server: Loopback, wire: str) -> None:
    server.reply(text("Hel"), stall())
    heard = hear(provider(wire, address(server, wire)), until=lambda heard: heard.text == "Hel")
    assert (heard.text, heard.error) == ("Hel", None)
    assert server.posts[0].hung_up.wait(5)


@pytest.mark.parametrize("before_headers", [True, False])
def test_cancelling_the_task_closes_the_socket(
    server: Loopback, wire: str, before_headers: bool
) -> None:
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


def test_stopping_while_waiting_for_the_next_try_sends_nothing_more(
    server: Loopback, wire: str
) -> None:
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


def test_streams_at_once_do_not_disturb_each_other(server: Loopback, wire: str) -> None:
    for n in range(8):
        server.reply(text(f"reply {n} " * 50, chunks=20))

    async def run() -> list[str]:
        source = provider(wire, address(server, wire))
        heard = await asyncio.gather(*(listen(source.chat_model(), request()) for _ in range(8)))
        await source.aclose()
        assert all(isinstance(each.finished, Finished) for each in heard)
        return sorted(each.text for each in heard)

    assert asyncio.run(run()) == sorted(f"reply {n} " * 50 for n in range(8))
