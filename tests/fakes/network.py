"""The network as tests see it: this machine only."""

import ipaddress
import socket
from types import TracebackType
from typing import Any, Self

_METHODS = ("connect", "connect_ex", "sendto")


class NetworkForbidden(AssertionError):
    """A test tried to leave this machine. No OSError, so that no retry takes it for bad luck."""


class NetworkGuard:
    """While entered, refuses to connect, send or resolve anywhere but loopback.

    Attributes:
        refused: What was tried, in order; a test that means to try clears it.
    """

    def __init__(self) -> None:
        self.refused: list[str] = []
        self._patched: list[tuple[object, str, Any]] = []

    def __enter__(self) -> Self:
        for method in _METHODS:
            self._replace(socket.socket, method, self._guarded_method(method))
        self._replace(socket, "getaddrinfo", self._guarded_lookup())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._patched:
            owner, name, original = self._patched.pop()
            setattr(owner, name, original)

    def _replace(self, owner: object, name: str, substitute: object) -> None:
        self._patched.append((owner, name, getattr(owner, name)))
        setattr(owner, name, substitute)

    def _guarded_method(self, name: str) -> object:
        original = getattr(socket.socket, name)

        def guarded(this: socket.socket, *arguments: Any) -> Any:
            if this.family in (socket.AF_INET, socket.AF_INET6):
                self._require_loopback(arguments[-1][0])  # the address comes last in all three
            return original(this, *arguments)

        return guarded

    def _guarded_lookup(self) -> object:
        original = socket.getaddrinfo

        def guarded(host: Any, *arguments: Any, **options: Any) -> Any:
            self._require_loopback(host)
            return original(host, *arguments, **options)

        return guarded

    def _require_loopback(self, host: str | bytes | None) -> None:
        name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        if name is None or name in ("", "localhost") or _is_loopback(name):
            return
        self.refused.append(name)
        raise NetworkForbidden(f"no network in tests: '{name}' is not loopback")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
