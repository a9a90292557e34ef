"""Error classification: the status, type, code and message of an error as a `ProviderError`.

The same table serves HTTP errors and error events inside a stream (with status 200). Sources:
platform.openai.com/docs/guides/error-codes, docs.claude.com/en/api/errors, and what Ollama, llama.cpp, vLLM,
Mistral, Groq and Gemini's compatible endpoint answer. The sizes that servers name in context-length refusals
are read from the texts of vLLM, llama.cpp, LM Studio, OpenAI, Anthropic, OpenRouter, Mistral, Gemini, xAI,
Cohere, TGI and Moonshot; llama.cpp adds numbers as fields. Ollama names only by how much a prompt is too long.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.domain.errors import (
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
    ServerLoading,
    ServerOverloaded,
    TimedOut,
)
from app.domain.text import sentences
from app.domain.translation import tr_noop
from app.providers.http.endpoint import RequestTarget
from app.providers.http.json_fields import count_at

_NUMBER = r"(\d[\d,]*)"
_BETWEEN = r"(?:(?! by )[^\d+>]){0,40}?"
_LIMITS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"> ?{_NUMBER}(?: maximum|, decrease)",
        rf"{_NUMBER}(?:-token)?(?: maximum)? context",
        rf"context (?:length|window|size|limit){_BETWEEN}{_NUMBER}(?![\d,]* ?\+)",
        rf"(?:(?:model|prompt) length|limit|number of tokens|cannot exceed|<=){_BETWEEN}{_NUMBER}",
    )
)
_PROMPT = re.compile(  # where a refusal names the prompt and the reply apart
    rf"{_NUMBER} (?:(?:tokens )?(?:in|from) the (?:messages|prompt)|of text input|`?inputs?`? tokens)"
    rf"|{_NUMBER} ?\+ ?[\d,]+ ?>",
    re.IGNORECASE,
)
_REPLY = re.compile(r"completion|output|max_\w*tokens", re.IGNORECASE)
_ANY_NUMBER = re.compile(_NUMBER)
_LEAST_TOKENS, _MOST_TOKENS = 256, 100_000_000


def refused_sizes(message: str) -> tuple[int | None, int | None]:
    """Return (the model's window, the refused prompt) in tokens, as far as the server names them."""
    found = (pattern.search(message) for pattern in _LIMITS)
    numbers = (_tokens(match[1]) for match in found if match)
    limit = next((each for each in numbers if _LEAST_TOKENS <= each <= _MOST_TOKENS), None)
    if limit is None:
        return None, None
    if (prompt := _PROMPT.search(message)) is not None:
        return limit, _tokens(prompt[1] or prompt[2])
    if _REPLY.search(message):
        return limit, None  # what else it names contains the reply
    most = max(_tokens(each) for each in _ANY_NUMBER.findall(message))
    return limit, most if limit < most <= _MOST_TOKENS else None


def reply_tokens_after(most: int | None, refusal: ContextTooLong, least_share: float) -> int | None:
    """Return how long a reply may be after a refusal; None for the model's default.

    `most` is how long it might have been, `least_share` the part of the window that its prompt leaves free
    in any case.
    """
    limit = refusal.limit_tokens
    if limit is None or (most is None and not refusal.is_by_reply):
        return most
    prompt = limit if refusal.prompt_tokens is None else refusal.prompt_tokens
    room = max(limit - prompt, int(limit * least_share))
    return room if most is None else min(most, room)


def _tokens(text: str) -> int:
    return int(text.replace(",", "")[:12])


_LONG_WAIT_S = 120


class EndpointMissing(RequestRejected):
    """The server does not know the address, as opposed to the model (404, 405)."""


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """The parts of an error; missing parts are "". An error event has status 200.

    `limit_tokens` and `prompt_tokens` are those of a context-length refusal by llama.cpp.
    """

    status: int
    message: str = ""
    type: str = ""
    code: str = ""
    parameter: str = ""
    limit_tokens: int | None = None
    prompt_tokens: int | None = None

    @classmethod
    def read(cls, status: int, body: object) -> "ErrorResponse":
        """Read a decoded body in any of the shapes that servers use; never raises."""
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
            count_at(error, "n_ctx"),
            count_at(error, "n_prompt_tokens"),
        )

    @property
    def searchable_text(self) -> str:
        """Type, code and message, case folded."""
        return f"{self.type} {self.code} {self.message}".casefold()


def classify(
    response: ErrorResponse, target: RequestTarget, retry_after_s: float | None = None
) -> ProviderError:
    """Return the error that a response means; `retry_after_s` is the server's Retry-After."""
    default = _REJECTED if 400 <= response.status < 500 else _FAILED
    text = response.searchable_text
    fitting = (
        outcome
        for pattern, statuses, outcome in _TABLE
        if (not statuses or response.status in statuses) and (not pattern or pattern.search(text))
    )
    outcome = next(fitting, default)
    if outcome is _KEY and not target.key:
        outcome = _KEY_MISSING
    wait_s = retry_after_s or 0.0
    has_path = target.base_url.count("/") > 2
    parts = {
        "provider": target.provider,
        "model": f"'{target.model}'" if target.model else "the model",
        "url": target.base_url,
        "url_advice": "It usually ends in /v1" if has_path else f"Try {target.base_url}/v1",
        "status": f" (status {response.status})" if response.status >= 400 else "",
        "wait": _wait(wait_s) if wait_s else "",
        "key": f"the API key from {target.key_location}" if target.key_location else "the API key",
        "key_remedy": target.key_remedy,
    }
    title, hint = outcome.title.format_map(parts), outcome.hint.format_map(parts)
    quote = target.quote(response.message)
    error = outcome.raised(
        title,
        f"{hint}. The server says: {quote}" if quote else hint,
        retry_after_s=retry_after_s,
        log_text=sentences(title, hint),
    )
    if isinstance(error, ContextTooLong):
        limit_tokens, prompt_tokens = refused_sizes(response.message)
        error.limit_tokens = response.limit_tokens or limit_tokens
        error.prompt_tokens = response.prompt_tokens or prompt_tokens
    return error


def _wait(wait_s: float) -> str:
    if wait_s < _LONG_WAIT_S:
        return tr_noop(f" and asks to wait {wait_s:.0f} s")
    return tr_noop(f" and asks to wait {wait_s / 60:.0f} minutes")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """An error class and the templates of its message."""

    raised: type[ProviderError]
    title: str
    hint: str


_CONTEXT = _Outcome(
    ContextTooLong,
    "The conversation is longer than {model} at {provider} can read",
    "Shorten the message, start a new segment with /new, or choose a model with a larger context",
)
_PAYMENT = _Outcome(
    PaymentRequired,
    "{provider} requires payment first",
    "Add credit to the account, or choose another model",
)
_QUOTA = _Outcome(
    QuotaExhausted,
    "The quota at {provider} is used up",
    "Add credit or raise the limit at the provider, or choose another model",
)
_KEY_MISSING = _Outcome(KeyMissing, "{provider} requires an API key", "{key_remedy}")
_KEY = _Outcome(KeyRejected, "{provider} does not accept {key}", "{key_remedy}")
_PERMISSION = _Outcome(
    PermissionRefused,
    "{provider} does not allow this key to use {model}",
    "Check the key's permissions, or choose another model",
)
_MODEL = _Outcome(
    ModelNotFound, "{provider} has no model {model}", "Choose another model from its list"
)
_ENDPOINT = _Outcome(
    EndpointMissing,
    "{provider} has no such address{status}: {url}",
    "Check the base URL. {url_advice}",
)
_RATE = _Outcome(
    RateLimited, "{provider} receives too many requests{wait}", "Wait a little, then retry"
)
_LOADING = _Outcome(
    ServerLoading,
    "{provider} is still loading its model",
    "Retry in a while, or choose another model",
)
_OVERLOADED = _Outcome(
    ServerOverloaded,
    "{provider} is overloaded{status}",
    "Retry in a while, or choose another model",
)
_FAILED = _Outcome(
    ServerFailed,
    "The server of {provider} failed{status}",
    "Retry; if it fails again, check the provider's status page",
)
_TIMED_OUT = _Outcome(TimedOut, "{provider} reports a timeout{status}", "Retry")
_TOO_LARGE = _Outcome(
    RequestRejected,
    "The request is larger than {provider} accepts{status}",
    "Send less at once: fewer or smaller attachments",
)
_REJECTED = _Outcome(
    RequestRejected,
    "{provider} does not accept the request{status} for {model}",
    "Try another model or other settings",
)

_CONTEXT_TEXT = re.compile(
    r"context_length_exceeded|exceed_context_size|context (?:length|window|size|limit)"
    r"|maximum context|prompt (?:is )?too long|input is too long|too many (?:input )?tokens"
    r"|maximum (?:model|prompt) length|max_new_tokens|model token limit|context the overflows"
    r"|token count of \d+ exceeds the limit"
    r"|exceeds? the (?:maximum|max)[a-z ]* tokens|model_context_window_exceeded"
)
_QUOTA_TEXT = re.compile(
    r"insufficient_quota|credit_balance_exhausted|billing_hard_limit|billing_not_active"
    r"|exceeded your current quota"
)
_PAYMENT_TEXT = re.compile(
    r"billing_error|payment_required|credit balance is too low|insufficient bal"
)
_KEY_TEXT = re.compile(
    r"authentication_error|invalid_api_key|invalid x-api-key|incorrect api key"
    r"|api[ _-]?key (?:is )?(?:not valid|invalid)"
)
_MODEL_TEXT = re.compile(
    r"model_not_found|invalid model name|not_found_error.{0,9}\bmodel: |unknown_model|unknown model|no such model"
    r"|model\b.{0,120}?\b(?:not found|does ?n[o']t exist|is not available)",
    re.DOTALL,
)
_RATE_TEXT = re.compile(
    r"rate_limit|rate limit|too_many_requests|resource_exhausted|too many requests"
)
_OVERLOADED_TEXT = re.compile(r"overloaded|server_is_overloaded|slow_down|service_unavailable")

# The text that must match, the statuses (() for any), and the outcome; the first row that applies
# decides. The text comes before the bare status where servers put the cause in it: Anthropic says
# "credit balance is too low" with 400, Gemini "API key not valid".
_TABLE: tuple[tuple[re.Pattern[str] | None, tuple[int, ...], _Outcome], ...] = (
    (_QUOTA_TEXT, (), _QUOTA),
    (None, (402,), _PAYMENT),
    (_PAYMENT_TEXT, (), _PAYMENT),
    (_CONTEXT_TEXT, (200, 400, 413, 422, 500), _CONTEXT),
    (None, (401,), _KEY),
    (_KEY_TEXT, (200, 400, 403), _KEY),
    (None, (403,), _PERMISSION),
    (None, (429,), _RATE),
    (_MODEL_TEXT, (200, 400, 404, 422), _MODEL),
    (None, (404, 405, 501), _ENDPOINT),
    (None, (413,), _TOO_LARGE),
    (None, (408,), _TIMED_OUT),
    (re.compile("loading model|model is loading"), (503,), _LOADING),  # llama-server, TGI
    (None, (503, 529), _OVERLOADED),
    (_OVERLOADED_TEXT, (), _OVERLOADED),
    (_RATE_TEXT, (200,), _RATE),
    (re.compile("permission_error|permission_denied"), (200,), _PERMISSION),
    (re.compile("request_too_large"), (200,), _TOO_LARGE),
    (re.compile("timeout_error|request_timeout|deadline_exceeded"), (200,), _TIMED_OUT),
    (re.compile("^not_found_error "), (), _MODEL),
    (re.compile("^invalid_request_error "), (), _REJECTED),
)
