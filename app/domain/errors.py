"""Error classes: every failure that the program reports to the user.

CommonplaceError
└── KnownError                 the cause is outside the program; shown with `title` and `hint`
    ├── InvalidInput           the user's input is not valid
    │   └── InvalidSetting     a setting's value is out of range
    ├── NotFound               no such conversation, turn, file or provider
    ├── Cancelled              the user stopped the operation
    ├── StorageError
    │   ├── AlreadyOpen        another process has the data directory open
    │   ├── DatabaseTooNew     written by a later version; left untouched
    │   ├── DatabaseDamaged    detected while running; recovered at the next start
    │   ├── DatabaseUnreadable no readable database and no backup
    │   ├── ReadOnlyStorage    the data directory is not writable
    │   └── DiskFull           nothing of the change was saved
    ├── ImportRefused          not a known export, or damaged as a whole
    ├── MemoryOff              memory is disabled in this conversation
    ├── IndexUnavailable       search cannot run now
    ├── ManualUnavailable      `man` is missing or lists nothing
    ├── ManualPageUnreadable   `man` cannot show one page
    ├── EmbedderUnavailable    texts cannot be embedded now
    │   └── ConsentMissing     the user has not agreed to send text to the embedder's server
    └── ProviderError          a request to a language model failed
        ├── KeyMissing, KeyRejected, PermissionRefused, PaymentRequired
        ├── ModelNotFound, RequestRejected (ContextTooLong)
        ├── RateLimited, QuotaExhausted, ServerFailed (ServerOverloaded (ServerLoading))
        ├── Unreachable, TimedOut, ConnectionLost
        ├── Repeating          the reply repeats a short text without end
        └── InvalidReply       not the protocol: HTML, broken JSON, an empty success

Any other exception is a bug: it goes to the report dialog and the log. Adapters in `app.providers`
convert the exceptions of their SDKs to `ProviderError`.
"""

import re
from typing import ClassVar

from app.domain.text import sentences
from app.domain.translation import translate_filled


class CommonplaceError(Exception):
    """Base of all exceptions that the program raises on purpose."""


class KnownError(CommonplaceError):
    """A failure whose cause is outside the program.

    Attributes:
        kind: The code that is stored with an exchange and printed as JSON: the class name in snake_case.
        log_text: Title and hint as raised, without a server's message, which may quote a conversation.
            `str` returns it, so that logs and tool results are in English and quote nothing; `title`
            and `hint` are for display, in the language in force when they are read.
    """

    kind: ClassVar[str] = "known_error"

    def __init_subclass__(cls, kind: str = "") -> None:
        cls.kind = kind or re.sub(r"(?<!^)([A-Z])", r"_\1", cls.__name__).lower()

    def __init__(self, title: str, hint: str = "", *, log_text: str = "") -> None:
        super().__init__(title, hint)
        self._title = title
        self._hint = hint
        self.log_text = log_text or (sentences(title, hint) if hint else title)

    def __str__(self) -> str:
        return self.log_text

    @property
    def title(self) -> str:
        """What happened: one sentence without a final period that quotes the value at fault."""
        return translate_filled(self._title)

    @property
    def hint(self) -> str:
        """What to do next, one sentence; empty when nothing can be done."""
        return translate_filled(self._hint)

    @property
    def display_text(self) -> str:
        """Title and hint, including a server's message."""
        return sentences(self.title, self.hint) if self.hint else self.title


class InvalidInput(KnownError):
    """The user's input is not valid."""


class InvalidSetting(InvalidInput):
    """A setting's value is out of range; the title names the key and the value, the hint the range."""


class NotFound(KnownError):
    """The named object does not exist."""


class Cancelled(KnownError):
    """The user stopped the operation."""


class StorageError(KnownError):
    """The database or its folder cannot be read or written."""


class AlreadyOpen(StorageError):
    """Another process has the data directory open."""


class DatabaseTooNew(StorageError):
    """The database was written by a later version; it is left untouched."""


class DatabaseDamaged(StorageError):
    """A part of the database cannot be read; the next start recovers it."""


class DatabaseUnreadable(StorageError):
    """The database cannot be read and no backup could be restored."""


class ReadOnlyStorage(StorageError):
    """The data directory is not writable."""


class DiskFull(StorageError):
    """The disk is full; nothing of the change was saved."""


class ImportRefused(KnownError):
    """The file is not a known export, or is damaged as a whole."""


class MemoryOff(KnownError):
    """Memory is disabled in this conversation."""


class IndexUnavailable(KnownError):
    """Search cannot run now."""


class ManualUnavailable(KnownError):
    """The system has no manual: `man` is missing or lists no pages."""


class ManualPageUnreadable(KnownError):
    """`man` cannot show a page that it lists."""


class EmbedderUnavailable(KnownError):
    """Texts cannot be embedded now."""


class ConsentMissing(EmbedderUnavailable):
    """The user has not agreed to send text to the embedder's server."""


class ProviderError(KnownError):
    """A request to a language model failed.

    Attributes:
        retryable: Whether the same request may succeed later.
        retry_after_s: The minimum wait that the server asked for, in seconds; None if it gave none.
    """

    retryable = False

    def __init__(
        self, title: str, hint: str = "", *, retry_after_s: float | None = None, log_text: str = ""
    ) -> None:
        super().__init__(title, hint, log_text=log_text)
        self.retry_after_s = retry_after_s


class KeyMissing(ProviderError):
    """No API key is configured for the provider."""


class KeyRejected(ProviderError):
    """The server does not accept the key (401)."""


class PermissionRefused(ProviderError):
    """The key has no permission for the request (403)."""


class PaymentRequired(ProviderError):
    """The account has no credit (402)."""


class ModelNotFound(ProviderError):
    """The server does not know the model (404)."""


class RequestRejected(ProviderError):
    """The server considers the request invalid (400, 413, 422)."""


class ImagesRefused(RequestRejected):
    """The model does not read images."""


class ContextTooLong(RequestRejected):
    """The conversation exceeds the model's context window.

    Attributes:
        limit_tokens: The window, if the server named it.
        prompt_tokens: The size of the prompt without the reply, if the server named it.
        estimated_tokens: The size of the same prompt by our own estimate, if it is known.
    """

    limit_tokens: int | None = None
    prompt_tokens: int | None = None
    estimated_tokens: int | None = None

    @property
    def is_by_reply(self) -> bool:
        """Whether the prompt fits by itself: the longest reply asked for does not fit beside it."""
        limit, prompt = self.limit_tokens, self.prompt_tokens
        return limit is not None and prompt is not None and prompt < limit


class RateLimited(ProviderError):
    """Too many requests (429); wait at least `retry_after_s`."""

    retryable = True


class QuotaExhausted(ProviderError):
    """The account's quota is used up (429 that no retry resolves)."""


class ServerFailed(ProviderError):
    """The server failed (5xx)."""

    retryable = True


class ServerOverloaded(ServerFailed):
    """The server is overloaded (503, 529, or an overload event during a stream)."""


class ServerLoading(ServerOverloaded):
    """The server answers, but its model is still being loaded."""


class Unreachable(ProviderError):
    """No connection: refused, unknown host, TLS failure or no network."""

    retryable = True


class TimedOut(ProviderError):
    """Nothing arrived within the time limit."""

    retryable = True


class ConnectionLost(ProviderError):
    """The connection ended before the reply was complete."""

    retryable = True


class Repeating(ProviderError):
    """The reply repeats a short text without end and was stopped."""


class InvalidReply(ProviderError, kind="nonsense_reply"):
    """The response does not follow the protocol."""
