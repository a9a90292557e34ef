"""What a language model's server can do to the user, one class for each thing that happens.

ProviderError
├── KeyMissing, KeyRejected, PermissionRefused, PaymentRequired
├── ModelNotFound, RequestRejected, ContextTooLong
├── RateLimited, QuotaExhausted, ServerFailed, ServerOverloaded
├── Unreachable, TimedOut, ConnectionLost
└── NonsenseReply              not the protocol: HTML, broken JSON, an empty success

Adapters in `app.providers` translate their SDK's exceptions into these at their border.
"""

from app.domain.errors import KnownError


class ProviderError(KnownError):
    """A request to a language model failed.

    Attributes:
        retryable: Whether the same request may succeed later, unchanged.
        retry_after_s: The server's own wish in seconds, a minimum; None when it said nothing.
    """

    retryable = False

    def __init__(
        self,
        title: str,
        hint: str = "",
        *,
        retry_after_s: float | None = None,
        own_words: str = "",
    ) -> None:
        super().__init__(title, hint, own_words=own_words)
        self.retry_after_s = retry_after_s


class KeyMissing(ProviderError):
    """No API key is configured for the provider."""


class KeyRejected(ProviderError):
    """The server does not accept the key (401)."""


class PermissionRefused(ProviderError):
    """The key may not do this (403)."""


class PaymentRequired(ProviderError):
    """The account must be paid first (402)."""


class ModelNotFound(ProviderError):
    """The server does not know the model (404)."""


class RequestRejected(ProviderError):
    """The server calls the request wrong (400, 413, 422)."""


class ContextTooLong(RequestRejected):
    """The conversation is longer than the model can read."""


class RateLimited(ProviderError):
    """Too many requests (429); wait at least `retry_after_s`."""

    retryable = True


class QuotaExhausted(ProviderError):
    """The account's quota is used up (429 without hope)."""


class ServerFailed(ProviderError):
    """The server failed (5xx)."""

    retryable = True


class ServerOverloaded(ServerFailed):
    """The server is overloaded (503, 529, or an overload event in mid-stream)."""


class Unreachable(ProviderError):
    """No connection: refused, no such host, TLS, no network."""

    retryable = True


class TimedOut(ProviderError):
    """Nothing came within the time limit."""

    retryable = True


class ConnectionLost(ProviderError):
    """The connection ended before the reply was complete."""

    retryable = True


class NonsenseReply(ProviderError):
    """What came back is not the protocol."""
