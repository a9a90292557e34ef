"""A canary key, looked for in everything that could be seen: errors, tracebacks, logs, reprs."""

import logging
import traceback
from collections.abc import Iterator

import pytest

from app.providers.registry import ProviderRegistry
from app.system.keys import KeyStore
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_client import KEY, SHORT, WIRES, Heard, hear, provider
from tests.fakes.loopback_script import (
    Step,
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
from tests.fakes.loopback_wire import MESSAGES

ECHO = f"Incorrect API key provided: {KEY}. Bearer {KEY}"
FAULTS: list[tuple[Step, ...]] = [
    (error(401, "authentication_error", message=ECHO),),
    (error(400, "invalid_request_error", message=ECHO, param="temperature"),),
    (error(429, ECHO, code=ECHO, message=ECHO),),
    (error(500, "api_error", message=ECHO),),
    (error_event("overloaded_error", ECHO, ECHO),),
    (text("half"), error_event("api_error", ECHO)),
    (text("half"), raw(f'event: x\ndata: {{"a": "{KEY}\n\n'.encode())),
    (redirect(f"https://evil.example/?key={KEY}"),),
    (json_reply({"error": {"message": ECHO}}),),
    (json_reply(ECHO, 418),),
    (garbage(f"NOT HTTP {KEY}\r\n\r\n".encode()),),
    (html(),),
    (empty(),),
    (hang_up(),),
    (stall(),),
]


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def everything_seen(heard: Heard, caplog: pytest.LogCaptureFixture) -> str:
    """All texts that a report, a log or a dialog could show of it."""
    shown = [repr(heard.events), caplog.text]
    shown += [str(record.__dict__) for record in caplog.records]
    pending: list[BaseException | None] = [heard.error]
    while pending:
        each = pending.pop()
        if each is not None:
            shown += [str(each), repr(each), repr(each.args), *traceback.format_exception(each)]
            pending += [each.__cause__, each.__context__]
    return "\n".join(shown)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("steps", FAULTS, ids=range(len(FAULTS)))
def test_no_fault_shows_the_key(
    server: Loopback,
    wire: str,
    steps: tuple[Step, ...],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "anthropic", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.DEBUG)
    server.always(*steps)
    source = provider(wire, server.url if wire == MESSAGES else server.v1, times=SHORT)
    heard = hear(source)
    assert heard.error is not None
    assert server.posts[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in everything_seen(heard, caplog)
    assert KEY not in f"{source!r} {vars(source)!r}"


@pytest.mark.parametrize("wire", WIRES)
def test_neither_the_key_nor_the_conversation_is_logged(
    server: Loopback, wire: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.always(text("a secret answer"))
    heard = hear(provider(wire, server.url if wire == MESSAGES else server.v1))
    assert heard.text == "a secret answer"
    logged = caplog.text + str([record.__dict__ for record in caplog.records])
    assert not [word for word in (KEY, "Hello", "a secret answer") if word in logged]


def test_vendors_debug_switches_do_not_turn_their_logs_on(
    server: Loopback, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_LOG", "debug")
    monkeypatch.setenv("ANTHROPIC_LOG", "debug")
    hear(provider(MESSAGES, server.url))
    for name in ("openai", "anthropic", "httpx2", "httpcore2"):
        assert logging.getLogger(name).getEffectiveLevel() >= logging.WARNING


def test_a_key_that_is_none_is_refused_before_anything_is_sent(server: Loopback) -> None:
    odd = f"{KEY}\nX-Evil: 1"
    heard = hear(provider(MESSAGES, server.url, key=odd))
    assert type(heard.error).__name__ == "KeyRejected"
    assert KEY not in str(heard.error)
    assert server.requests == []


def test_a_missing_key_is_said_with_the_variable_to_set() -> None:
    registry = ProviderRegistry(lambda: (), KeyStore(environ={}), environ={})
    heard = hear(registry.build("anthropic"))
    assert str(heard.error) == (
        "There is no API key for anthropic. Enter one in Settings, Models, or set ANTHROPIC_API_KEY"
    )
