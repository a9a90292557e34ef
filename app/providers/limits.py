"""How long we wait, how much we take, and which way we go out: plain values for `http`.

Here and not there, because these are needed before anything that is slow to import.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Our own time limits, in seconds.

    `first_byte_s` runs from the request sent to the first byte of the answer and, anew, from the
    answer's headers to its first event: a slow local model reads a long prompt in that time.
    `idle_s` is the longest silence after that; `tail_s` how long we wait for what may follow the
    terminal marker (usage), which is nice to have and nothing more.
    """

    connect_s: float = 10.0
    first_byte_s: float = 60.0
    idle_s: float = 60.0
    tail_s: float = 2.0


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """The most we take, in bytes: one server-sent event, one reply, one error's body."""

    event_bytes: int = 1 << 20
    reply_bytes: int = 8 << 20
    error_bytes: int = 64 << 10


@dataclass(frozen=True, slots=True)
class Network:
    """The way out. None means what the environment says (HTTPS_PROXY, SSL_CERT_FILE, ...).

    `ca_bundle` is the path of a file of trusted certificates in PEM form.
    """

    proxy_url: str | None = None
    ca_bundle: str | None = None
