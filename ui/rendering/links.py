"""The one gate through which a link leaves the program.

Only http, https and mailto go to the system, and `commonplace://ID/TURN` goes to the transcript;
everything else is refused in plain words. What is asked and what is opened is the same canonical
address: host names in punycode, nothing hidden.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from urllib.parse import quote, unquote, urlsplit

from PySide6.QtCore import QUrl

from app.domain.links import Link, link_of

_MAX_CHARS = 8000
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_WEB = re.compile(r"https?://(?P<authority>[^/?#]+)(?P<rest>.*)$", re.IGNORECASE)
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\\\u2028\u2029]")
_HIDDEN = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
_HOST = re.compile(r"[a-z0-9]([a-z0-9_.-]*[a-z0-9])?\.?$")
_SITE_IN_WORDS = re.compile(
    r"(?:https?://|(?=www\.)|(?=[^/\s]*\.(?:com|org|net|gov|edu|io|dev|app|ai|info|eu|uk|de|fr)\b))"
    r"((?:[\w-]+\.)+[\w-]{2,24})(?:[/:?#]\S*)?$"
)
_MAILBOX = re.compile(r"[^@\s,;:]+@[^@\s,;:]+$")
_SAFE = "%/?#[]@!$&'()*+,;=:~-._"
_LOOKALIKE_DOTS = str.maketrans({"。": ".", "．": ".", "｡": "."})


class Verdict(Enum):
    """What may become of a link."""

    WEB = auto()
    MAIL = auto()
    TURN = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class LinkQuestion:
    """A link as it is shown before it is followed.

    Attributes:
        verdict: What may become of it.
        address: The canonical address, ASCII: what is shown and, if allowed, opened. For a refused
            link the target as text, shortened.
        site: `https://host:port`, or "mail"; what consent is remembered for.
        warnings: What may deceive about the target, in sentences; such a link is always asked for.
        reason: Why it is refused, a sentence; else empty.
        turn: What a link of our own names.
    """

    verdict: Verdict
    address: str
    site: str = ""
    warnings: tuple[str, ...] = ()
    reason: str = ""
    turn: Link | None = None


def examine(target: str, label: str = "") -> LinkQuestion:
    """Return what `target` is; `label`, the words it hides behind, may give rise to a warning."""
    if len(target) > _MAX_CHARS:
        return _refused(target, "The link is absurdly long.")
    text = target.strip(" ")
    if link := link_of(text):
        return LinkQuestion(Verdict.TURN, text, turn=link)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _refused(target, "It is no complete address: it names no site.")
    if _FORBIDDEN.search(text) or _HIDDEN.search(text):
        return _refused(target, "It contains characters that hide where it leads.")
    name = scheme[1].lower()
    if name in ("http", "https"):
        return _web(text, label)
    if name == "mailto":
        return _mail(text)
    return _refused(
        target, f"Commonplace opens no '{name[:30]}:' links, only web and mail addresses."
    )


class LinkGate:
    """Judges links, asks once for each site, and opens what was allowed.

    Everything that leaves this class is injected, so it needs no dialog and no browser:
    `ask(question, answer)` shows the address and later calls `answer(True or False)`;
    `open_url(address)` hands it to the system; `open_turn(link)` goes to a turn;
    `refuse(question)` says why not.
    """

    def __init__(
        self,
        ask: Callable[[LinkQuestion, Callable[[bool], None]], None],
        open_url: Callable[[str], None],
        open_turn: Callable[[Link], None],
        refuse: Callable[[LinkQuestion], None],
    ) -> None:
        self._ask = ask
        self._open_url = open_url
        self._open_turn = open_turn
        self._refuse = refuse
        self._allowed_sites: set[str] = set()

    def follow(self, target: str, label: str = "") -> None:
        """Follow a link the user activated; it opens now, after an answer, or never."""
        question = examine(target, label)
        if question.verdict is Verdict.REFUSED:
            self._refuse(question)
        elif question.turn is not None:
            self._open_turn(question.turn)
        elif question.site in self._allowed_sites and not question.warnings:
            self._open_url(question.address)
        else:
            self._ask(question, lambda allowed: self._on_answered(question, allowed=allowed))

    def _on_answered(self, question: LinkQuestion, *, allowed: bool) -> None:
        if not allowed:
            return
        if not question.warnings:
            self._allowed_sites.add(question.site)
        self._open_url(question.address)


def _refused(target: str, reason: str) -> LinkQuestion:
    shown = _HIDDEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", target[:200])
    shown = re.sub(r"[\x00-\x1f\x7f-\x9f]", "\ufffd", shown)
    return LinkQuestion(Verdict.REFUSED, shown, reason=reason)


@dataclass(slots=True)
class _Authority:
    """The part of an address between `//` and the path."""

    user: str = ""
    host: str = ""
    port: str = ""
    warnings: list[str] = field(default_factory=list)


def _web(text: str, label: str) -> LinkQuestion:
    match = _WEB.match(text)
    if match is None:
        return _refused(text, "It is no complete web address.")
    scheme = text[: text.index(":")].lower()
    authority = _read_authority(match["authority"])
    if authority is None:
        return _refused(text, "Its site cannot be read without doubt.")
    rest = match["rest"] if match["rest"].startswith("/") else "/" + match["rest"]
    user = f"{authority.user}@" if authority.user else ""
    port = f":{authority.port}" if authority.port else ""
    address = f"{scheme}://{user}{authority.host}{port}{quote(rest, safe=_SAFE)}"
    if urlsplit(address).hostname != authority.host.strip("[]"):
        return _refused(text, "Its site cannot be read without doubt.")
    warnings = [*authority.warnings, *_label_warnings(label, authority.host)]
    site = f"{scheme}://{authority.host}{port}"
    return LinkQuestion(Verdict.WEB, address, site, tuple(warnings))


def _read_authority(text: str) -> _Authority | None:
    found = _Authority()
    user, at, server = text.rpartition("@")
    if at:
        if "@" in user or "%40" in user:
            return None
        found.user = quote(user, safe="%!$&'()*+,;=:~-._")
        found.warnings.append(
            f"What stands before '@' ('{unquote(user)[:60]}') is a name to log in with, not the site."
        )
    if server.startswith("["):
        host, closing, port = server[1:].partition("]")
        if (
            not closing
            or not re.fullmatch(r"[0-9A-Fa-f:.]+", host)
            or (port and not re.fullmatch(r":\d*", port))
        ):
            return None
        found.host, found.port = f"[{host.lower()}]", port[1:]
        return found
    host, _, port = server.partition(":")
    if port and not (port.isascii() and port.isdigit()):
        return None
    found.port = port
    return _with_host(found, host)


def _with_host(found: _Authority, written: str) -> _Authority | None:
    host = written.translate(_LOOKALIKE_DOTS)
    if "%" in host:
        return None
    if not host.isascii():
        ascii_host = bytes(QUrl.toAce(host).data()).decode("ascii")
        found.warnings.append(
            f"The name '{host[:60]}' has letters outside a-z that can look like others; "
            f"it really is '{ascii_host[:80]}'."
        )
        host = ascii_host
    found.host = host.lower()
    if "xn--" in found.host and host.lower() == written.lower():
        found.warnings.append("The name is written in punycode; browsers may show other letters.")
    if not _HOST.match(found.host) or ".." in found.host:
        return None
    if re.fullmatch(r"[0-9.]+|0x[0-9a-f.x]+", found.host):
        found.warnings.append("The site is a bare number, not a name.")
    return found


def _label_warnings(label: str, host: str) -> list[str]:
    """Return a warning when the words shown name another site than the one opened."""
    seen = _SITE_IN_WORDS.match(label.strip().lower())
    if seen is None:
        return []
    shown = seen[1].removeprefix("www.")
    real = host.removeprefix("www.").rstrip(".")
    if real == shown or real.endswith("." + shown):
        return []
    return [f"The words say '{shown[:60]}', but the link leads to '{real[:80]}'."]


def _mail(text: str) -> LinkQuestion:
    box, mark, query = text[len("mailto:") :].partition("?")
    address = unquote(box)
    if not _MAILBOX.match(address) or _FORBIDDEN.search(address) or _HIDDEN.search(address):
        return _refused(text, "It is no mail address.")
    kept = [
        part for part in query.split("&") if part.partition("=")[0].lower() in ("subject", "body")
    ]
    dropped = bool(mark) and len(kept) < len(query.split("&"))
    warnings = ("It also asked for copies or attachments; these were left out.",) if dropped else ()
    rest = "?" + quote("&".join(kept), safe=_SAFE) if kept else ""
    shown = f"mailto:{quote(address, safe='@.+-_')}{rest}"
    return LinkQuestion(Verdict.MAIL, shown, "mail", warnings)
