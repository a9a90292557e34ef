"""What a server's complaint means to the user: status, type, code and words as a `ProviderError`.

The same table serves an HTTP error and an error event in the middle of a stream (whose status is
200). Sources: platform.openai.com/docs/guides/error-codes, docs.claude.com/en/api/errors, and
what Ollama, llama.cpp, vLLM, Mistral, Groq and Gemini's compatible endpoint answer.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.domain.provider_errors import (
    ContextTooLong,
    KeyMissing,
    KeyRejected,
    ModelNotFound,
    PaymentRequired,
    PermissionRefused,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    ServerFailed,
    ServerOverloaded,
    TimedOut,
)
from app.providers.subject import Subject


class EndpointMissing(RequestRejected):
    """The server does not know the address, as opposed to the model (404, 405)."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """What a server said, taken apart. Missing parts are "" (status 200: said in mid-stream)."""

    status: int
    message: str = ""
    type: str = ""
    code: str = ""
    parameter: str = ""

    @classmethod
    def read(cls, status: int, body: object) -> "Complaint":
        """Take apart a decoded body of any of the shapes servers use; never raises."""
        if isinstance(body, list) and body and isinstance(body[0], Mapping):
            body = body[0]
        if isinstance(body, str):
            return cls(status, body)
        if not isinstance(body, Mapping):
            return cls(status)
        error = body.get("error", body)
        if not isinstance(error, Mapping):
            return cls(status, _text(error) or _text(body.get("message")))
        message = error.get("message") or error.get("detail") or body.get("detail")
        return cls(
            status,
            _text(message),
            _text(error.get("type") or error.get("status")),
            _text(error.get("code")),
            _text(error.get("param")),
        )

    @property
    def words(self) -> str:
        """Type, code and message, folded, for the patterns below."""
        return f"{self.type} {self.code} {self.message}".casefold()


def verdict(
    complaint: Complaint, subject: Subject, retry_after_s: float | None = None
) -> ProviderError:
    """Return the error that a complaint amounts to; `retry_after_s` is the server's own wish."""
    by_status = _rejected if 400 <= complaint.status < 500 else _failed
    build = next((build for applies, build in _TABLE if applies(complaint)), by_status)
    error = build(_Told(complaint, subject, retry_after_s))
    error.own_words = str(build(_Told(replace(complaint, message=""), subject, retry_after_s)))
    return error


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class _Told:
    """A complaint with whom it came from: what the sentences below are made of."""

    complaint: Complaint
    subject: Subject
    retry_after_s: float | None

    @property
    def who(self) -> str:
        return self.subject.provider

    @property
    def model(self) -> str:
        return f"'{self.subject.model}'" if self.subject.model else "the model"

    def hint(self, advice: str) -> str:
        """The advice, then the server's own words."""
        said = self.subject.quote(self.complaint.message)
        return f"{advice}. The server says: {said}" if said else advice


def _context(told: _Told) -> ProviderError:
    return ContextTooLong(
        f"The conversation is longer than {told.model} at {told.who} can read",
        told.hint("Start a new segment with /new, or choose a model with a larger context"),
    )


def _payment(told: _Told) -> ProviderError:
    return PaymentRequired(
        f"{told.who} asks for payment first",
        told.hint("Add credit to the account, or choose another model"),
    )


def _quota(told: _Told) -> ProviderError:
    return QuotaExhausted(
        f"The quota at {told.who} is used up",
        told.hint("Add credit or raise the limit at the provider, or choose another model"),
    )


def _key(told: _Told) -> ProviderError:
    remedy = told.hint(told.subject.key_remedy)
    if not told.subject.key:
        return KeyMissing(f"{told.who} asks for an API key", remedy)
    place = f" from {told.subject.key_place}" if told.subject.key_place else ""
    return KeyRejected(f"{told.who} does not accept the API key{place}", remedy)


def _permission(told: _Told) -> ProviderError:
    return PermissionRefused(
        f"{told.who} does not allow this key to use {told.model}",
        told.hint("Check the key's permissions, or choose another model"),
    )


def _model_missing(told: _Told) -> ProviderError:
    return ModelNotFound(
        f"{told.who} has no model {told.model}", told.hint("Choose another model from its list")
    )


def _endpoint_missing(told: _Told) -> ProviderError:
    bare = told.subject.base_url.count("/") == 2
    advice = f"Try {told.subject.base_url}/v1" if bare else "It usually ends in /v1"
    return EndpointMissing(
        f"{told.who} has nothing at {told.subject.base_url} (status {told.complaint.status})",
        told.hint(f"Check the base URL. {advice}"),
    )


def _rate(told: _Told) -> ProviderError:
    wait = told.retry_after_s
    asked = f" and asks to wait {_seconds(wait)}" if wait else ""
    return RateLimited(
        f"{told.who} is getting too many requests{asked}",
        told.hint("Wait a little, then retry"),
        retry_after_s=wait,
    )


def _overloaded(told: _Told) -> ProviderError:
    return ServerOverloaded(
        f"{told.who} is overloaded{_status(told)}",
        told.hint("Retry in a while, or choose another model"),
        retry_after_s=told.retry_after_s,
    )


def _failed(told: _Told) -> ProviderError:
    return ServerFailed(
        f"{told.who} failed{_status(told)}",
        told.hint("Retry; if it goes on, look at the provider's status page"),
        retry_after_s=told.retry_after_s,
    )


def _timed_out(told: _Told) -> ProviderError:
    return TimedOut(
        f"{told.who} gave up waiting{_status(told)}",
        told.hint("Retry"),
        retry_after_s=told.retry_after_s,
    )


def _too_large(told: _Told) -> ProviderError:
    return RequestRejected(
        f"The request is larger than {told.who} takes{_status(told)}",
        told.hint("Send less at once: fewer or smaller attachments"),
    )


def _rejected(told: _Told) -> ProviderError:
    return RequestRejected(
        f"{told.who} does not accept the request for {told.model}{_status(told)}",
        told.hint("Try another model or other settings"),
    )


def _status(told: _Told) -> str:
    return f" (status {told.complaint.status})" if told.complaint.status >= 400 else ""


def _seconds(wait_s: float) -> str:
    return f"{wait_s:.0f} s" if wait_s < 120 else f"{wait_s / 60:.0f} minutes"


_CONTEXT = re.compile(
    r"context_length_exceeded|exceed_context_size|context (?:length|window|size|limit)"
    r"|maximum context|prompt is too long|input is too long|too many (?:input )?tokens"
    r"|exceeds? the (?:maximum|max)[a-z ]* tokens|model_context_window_exceeded"
)
_QUOTA = re.compile(
    r"insufficient_quota|credit_balance_exhausted|billing_hard_limit|billing_not_active"
    r"|exceeded your current quota"
)
_PAYMENT = re.compile(r"billing_error|payment_required|credit balance is too low|insufficient bal")
_BAD_KEY = re.compile(
    r"authentication_error|invalid_api_key|invalid x-api-key|incorrect api key"
    r"|api[ _-]?key (?:is )?(?:not valid|invalid)"
)
_NO_MODEL = re.compile(
    r"model_not_found|not_found_error.{0,9}\bmodel: |unknown_model|unknown model|no such model"
    r"|model\b.{0,120}?\b(?:not found|does ?n[o']t exist|is not available)",
    re.DOTALL,
)
_RATE = re.compile(r"rate_limit|rate limit|too_many_requests|resource_exhausted|too many requests")
_OVERLOADED = re.compile(r"overloaded|server_is_overloaded|slow_down|service_unavailable")
_PERMISSION = re.compile(r"permission_error|permission_denied")
_TOO_LARGE = re.compile(r"request_too_large")
_TIMED_OUT = re.compile(r"timeout_error|request_timeout|deadline_exceeded")


def _says(pattern: re.Pattern[str], *statuses: int) -> Callable[[Complaint], bool]:
    """A test for the words, valid for these statuses (none named: for all)."""
    return lambda complaint: (
        (not statuses or complaint.status in statuses) and bool(pattern.search(complaint.words))
    )


def _is(*statuses: int) -> Callable[[Complaint], bool]:
    return lambda complaint: complaint.status in statuses


# The first row that applies decides. Words come before the bare status where servers put the
# cause in them: Anthropic says "credit balance is too low" with 400, Gemini "API key not valid".
_TABLE: tuple[tuple[Callable[[Complaint], bool], Callable[[_Told], ProviderError]], ...] = (
    (_says(_QUOTA), _quota),
    (_is(402), _payment),
    (_says(_PAYMENT), _payment),
    (_says(_CONTEXT, 200, 400, 413, 422, 500), _context),
    (_is(401), _key),
    (_says(_BAD_KEY, 200, 400, 403), _key),
    (_is(403), _permission),
    (_is(429), _rate),
    (_says(_NO_MODEL, 200, 400, 404, 422), _model_missing),
    (_is(404, 405, 501), _endpoint_missing),
    (_is(413), _too_large),
    (_is(408), _timed_out),
    (_is(503, 529), _overloaded),
    (_says(_OVERLOADED), _overloaded),
    (_says(_RATE, 200), _rate),
    (_says(_PERMISSION, 200), _permission),
    (_says(_TOO_LARGE, 200), _too_large),
    (_says(_TIMED_OUT, 200), _timed_out),
    (lambda complaint: complaint.type == "not_found_error", _model_missing),
    (lambda complaint: complaint.type == "invalid_request_error", _rejected),
)
