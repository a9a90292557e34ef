"""Base URLs: validation of the address that receives a key and a conversation.

A URL that different parsers read differently is rejected, and each valid one has a single spelling.
Nothing is looked up or connected here.
"""

import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache

from app.domain.errors import InvalidInput

_SHAPE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)(/[^?#]*)?([?#].*)?", re.DOTALL)
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\]")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_PATH = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@/-]*")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
_PRIVATE = tuple(
    map(ipaddress.ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"))
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_EXAMPLE = "A base URL looks like https://api.example.com/v1 or http://localhost:11434/v1"


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """A base URL in its only spelling.

    Attributes:
        text: The URL without a slash at its end.
        origin: Scheme, host and port (without the default port). Saved keys are bound to it.
        is_private: Whether the host is another machine of the same network, by its address (RFC 1918,
            RFC 4193) or name (RFC 6762).
    """

    text: str
    origin: str
    host: str
    is_loopback: bool
    is_private: bool = False


@lru_cache(maxsize=64)  # every request looks at the configuration of each provider
def check_base_url(text: str, *, allow_plain_http: bool = False) -> BaseUrl:
    """Return `text` as a base URL; raise InvalidInput that names the problem.

    Plain http is accepted for loopback only, unless the user allows it (`allow_plain_http`).
    """
    trimmed = text.strip()
    match = _SHAPE.fullmatch(trimmed)
    if match is None or _FORBIDDEN.search(trimmed):
        raise InvalidInput(f"'{text}' is not a base URL", _EXAMPLE)
    scheme, authority, path, rest = match[1].lower(), match[2], match[3] or "", match[4]
    if scheme not in _DEFAULT_PORTS:
        raise InvalidInput(f"A base URL cannot begin with {scheme}://", _EXAMPLE)
    if "@" in authority:
        raise InvalidInput(
            "A base URL cannot hold a user name or password",
            "Leave out everything before the @ and enter the key in its own field",
        )
    if rest:
        raise InvalidInput(f"'{text}' has a '{rest[0]}' part, which a base URL cannot have")
    host, port = _split_port(authority, text)
    address = _address(host, text)
    host = host.strip("[]")
    is_loopback = _is_loopback(host, address)
    if scheme == "http" and not is_loopback and not allow_plain_http:
        raise InvalidInput(
            f"http://{host} would send your key and your words unencrypted",
            "Use https, or allow http beyond this computer (--insecure) in a network that you trust",
        )
    shown = f"[{host}]" if isinstance(address, ipaddress.IPv6Address) else host
    is_default = port is None or port == _DEFAULT_PORTS[scheme]
    origin = f"{scheme}://{shown}" if is_default else f"{scheme}://{shown}:{port}"
    is_private = not is_loopback and _is_private(host, address)
    return BaseUrl(origin + _checked_path(path, text), origin, host, is_loopback, is_private)


def with_scheme(text: str) -> str:
    """Return an address as it is typed with its scheme: http in this computer's network, https elsewhere.

    A name without a dot is of the network: a public one has one.
    """
    if "://" in text or not re.search("[.:]", text):
        return text
    try:
        url = check_base_url(f"http://{text}", allow_plain_http=True)
    except InvalidInput:
        return f"https://{text}"
    is_near = url.is_loopback or url.is_private or not re.search("[.:]", url.host)
    return url.text if is_near else f"https://{text}"


def _split_port(authority: str, text: str) -> tuple[str, int | None]:
    head, colon, tail = authority.rpartition(":")
    if not colon or "]" in tail:
        return authority.lower(), None
    if not tail.isascii() or not tail.isdigit() or not 0 < int(tail) < 65_536:
        raise InvalidInput(f"'{tail}' in '{text}' is not a port", "A port is a number below 65536")
    return head.lower(), int(tail)


def _address(host: str, text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the host as an address, None for a name; reject alternative spellings."""
    if host.startswith("[") and host.endswith("]"):
        try:
            address = ipaddress.IPv6Address(host[1:-1])
        except ValueError as error:
            raise InvalidInput(f"'{host}' in '{text}' is not an address") from error
        if str(address) != host[1:-1] or address.scope_id:
            raise InvalidInput(f"'{host}' is an unusual spelling", f"Write [{address}] instead")
        return address
    if not host.isascii():
        raise InvalidInput(
            f"'{host}' is written with letters outside a-z, which can look like another name",
            f"If you mean it, write {_punycode(host)}",
        )
    labels = host.split(".")
    if not all(_LABEL.fullmatch(label) for label in labels) or len(host) > 253:
        raise InvalidInput(f"'{host}' in '{text}' is not a host name", _EXAMPLE)
    if not _NUMBER.fullmatch(labels[-1]):
        return None
    try:
        return ipaddress.IPv4Address(host)
    except ValueError as error:
        raise InvalidInput(
            f"'{host}' is an unusual spelling of an address", "Write it as 127.0.0.1"
        ) from error


def _punycode(host: str) -> str:
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return "its xn-- form"


def _is_loopback(host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    if address is None:
        return host == "localhost" or host.endswith(".localhost")
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def _is_private(host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    if address is None:
        return host.endswith(".local")
    known = getattr(address, "ipv4_mapped", None) or address
    return any(known.version == each.version and known in each for each in _PRIVATE)


def _checked_path(path: str, text: str) -> str:
    trimmed = path.rstrip("/")
    segments = trimmed.split("/")[1:]
    if not _PATH.fullmatch(trimmed) or any(segment in ("", ".", "..") for segment in segments):
        raise InvalidInput(f"'{path}' in '{text}' is not a path of a base URL", _EXAMPLE)
    return trimmed
