"""Endpoints: where requests go, with which key, how long they wait and how much they accept.

These values are needed before anything that is slow to import.
"""

import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app.domain.errors import InvalidInput
from app.domain.text import clean, one_line
from app.domain.translation import tr_noop
from app.providers.http.base_url import BaseUrl
from app.system.keys import FoundKey

if TYPE_CHECKING:
    import httpx2

ENTER_KEY = tr_noop("Enter one in Settings, Models, or with 'commonplace provider key'")
_QUOTE_CHARS = 200
_SHORT_KEY_CHARS = 8


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Time limits in seconds.

    `first_byte_s` runs from the sent request to the first byte of the response and, again, from
    the response's headers to its first event: a slow local model reads a long prompt in that time.
    `idle_s` is the longest silence after that. `tail_s` limits the wait for usage data after the
    terminal marker.
    """

    connect_s: float = 10.0
    first_byte_s: float = 60.0
    idle_s: float = 60.0
    tail_s: float = 2.0


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """The largest accepted server-sent event, reply and error body, in bytes."""

    event_bytes: int = 1 << 20
    reply_bytes: int = 8 << 20
    error_bytes: int = 64 << 10


@dataclass(frozen=True, slots=True)
class Network:
    """Proxy and trusted certificates. None means the environment's (HTTPS_PROXY, SSL_CERT_FILE).

    `ca_bundle` is the path of a file of trusted certificates in PEM form.
    """

    proxy_url: str | None = None
    ca_bundle: str | None = None


def check_proxy_url(text: str) -> str:
    """Return the URL of a proxy; raise InvalidInput, without quoting it: it may hold a password."""
    try:
        parts = urlsplit(text.strip())
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or any(character.isspace() for character in text.strip()):
        raise InvalidInput(
            "This is not the address of a proxy",
            "Write http://HOST:PORT, such as http://proxy.example.com:3128",
        )
    return text.strip()


def check_ca_bundle(text: str) -> str:
    """Return the path of a file of certificates; raise InvalidInput if it cannot be used. Blocking."""
    path, hint = Path(text.strip()).expanduser(), "Name a file with certificates in PEM form"
    if not path.is_absolute():
        raise InvalidInput(f"'{text}' is not a complete path", f"{hint}, from / on")
    try:
        ssl.create_default_context(cafile=str(path))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"No certificates can be read from '{path}'", hint) from error
    return str(path)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One provider's server and the terms of its requests.

    Attributes:
        find_key: Returns the API key. May block (a locked keyring); called in a thread.
        needs_key: Whether a request without a key is refused before it is sent.
        key_hint: What to do without a key.
        is_vendors: Whether the vendors' environment variables (organization, project, custom
            headers) apply: for built-in providers only.
        transport: Replaces the network in tests.
        title: What errors call the provider; "" for its name.
    """

    provider: str
    base_url: BaseUrl
    find_key: Callable[[], FoundKey | None]
    needs_key: bool = False
    key_hint: str = ENTER_KEY
    is_vendors: bool = False
    network: Network = field(default_factory=Network)
    times: TimeLimits = field(default_factory=TimeLimits)
    sizes: SizeLimits = field(default_factory=SizeLimits)
    transport: "httpx2.AsyncBaseTransport | None" = None
    title: str = ""

    @property
    def shown_name(self) -> str:
        """What errors call the provider."""
        return self.title or self.provider


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """The destination of a request, for error messages, and the key, which they must not quote.

    Attributes:
        provider: What the user knows it by.
        model: The requested model; "" for none.
        key_location: Where the key came from ("OPENAI_API_KEY", "the keyring").
        key_remedy: What to do when the key is refused.
        is_near: Whether the server is on this machine or in the user's own network.
    """

    provider: str
    base_url: str
    model: str = ""
    is_loopback: bool = False
    key: str = field(default="", repr=False)
    key_location: str = ""
    key_remedy: str = ENTER_KEY
    is_near: bool = False

    def redact(self, text: str) -> str:
        """Return `text` without the key; a short one, as local servers take any, only as a word."""
        if not self.key:
            return text
        key = re.escape(self.key)
        is_short = len(self.key) < _SHORT_KEY_CHARS
        return re.sub(rf"(?<!\w){key}(?!\w)" if is_short else key, "[key]", text)

    def quote(self, text: str) -> str:
        """Return a server's message as one clean line without the key; "" for a web page."""
        if text.lstrip()[:1] == "<":
            return ""
        return self.redact(one_line(clean(self.redact(text)), _QUOTE_CHARS)).rstrip(".")
