"""Link checks: the only way a link leaves the program.

Only http, https and mailto links are passed to the system, and `commonplace://ID/TURN` opens a
turn; everything else is refused with a reason. The address that is shown for confirmation is the
one that is opened: canonical, host names in punycode, nothing hidden.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from urllib.parse import quote, unquote, urlsplit

from PySide6.QtCore import QUrl

from app.domain.links import Link, parse_commonplace_link
from app.domain.translation import tr

_MAX_CHARS = 8000
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_WEB = re.compile(r"https?://(?P<authority>[^/?#]+)(?P<rest>.*)$", re.IGNORECASE)
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\\\u2028\u2029]")
_HIDDEN = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
_HOST = re.compile(r"[a-z0-9]([a-z0-9_.-]*[a-z0-9])?\.?$")
_SITE_IN_LABEL = re.compile(
    r"(?:https?://|(?=www\.)|(?=[^/\s]*\.(?:com|org|net|gov|edu|io|dev|app|ai|info|eu|uk|de|fr)\b))"
    r"((?:[\w-]+\.)+[\w-]{2,24})(?:[/:?#]\S*)?$"
)
_MAILBOX = re.compile(r"[^@\s,;:]+@[^@\s,;:]+$")
_SAFE = "%/?#[]@!$&'()*+,;=:~-._"
_LOOKALIKE_DOTS = str.maketrans({"。": ".", "．": ".", "｡": "."})


class LinkKind(Enum):
    """What a link is."""

    WEB = auto()
    MAIL = auto()
    TURN = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class LinkCheck:
    """The result of checking a link.

    Attributes:
        kind: What it is.
        address: The canonical address in ASCII, which is shown and, if allowed, opened. For a
            refused link the target as text, shortened.
        site: `https://host:port`, or "mail"; consent is remembered for it.
        warnings: What may be deceptive, in sentences; such a link always needs confirmation.
        reason: Why it is refused, in a sentence; else "".
        turn: The turn that a `commonplace:` link names.
    """

    kind: LinkKind
    address: str
    site: str = ""
    warnings: tuple[str, ...] = ()
    reason: str = ""
    turn: Link | None = None


def check_link(target: str, label: str = "") -> LinkCheck:
    """Check `target`; a `label` that names another site causes a warning."""
    if len(target) > _MAX_CHARS:
        return _refused(target, tr("The link is too long."))
    text = target.strip(" ")
    if link := parse_commonplace_link(text):
        return LinkCheck(LinkKind.TURN, text, turn=link)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _refused(target, tr("It is not a complete address: it does not name a site."))
    if _FORBIDDEN.search(text) or _HIDDEN.search(text):
        return _refused(target, tr("It contains characters that can hide its target."))
    name = scheme[1].lower()
    if name in ("http", "https"):
        return _web(text, label)
    if name == "mailto":
        return _mail(text)
    return _refused(
        target,
        tr("Commonplace does not open '{name}:' links, only web and mail addresses.").format(
            name=name[:30]
        ),
    )


class LinkOpener:
    """Checks links, asks for confirmation once per site, and opens what was allowed.

    Its effects are injected, so it needs no dialog and no browser: `ask(check, answer)` shows the
    address and later calls `answer` with the user's decision; `open_url(address)` passes it to the
    system; `open_turn(link)` shows a turn; `refuse(check)` shows the reason.
    """

    def __init__(
        self,
        ask: Callable[[LinkCheck, Callable[[bool], None]], None],
        open_url: Callable[[str], None],
        open_turn: Callable[[Link], None],
        refuse: Callable[[LinkCheck], None],
    ) -> None:
        self._ask = ask
        self._open_url = open_url
        self._open_turn = open_turn
        self._refuse = refuse
        self._allowed_sites: set[str] = set()

    def follow(self, target: str, label: str = "") -> None:
        """Follow a link the user activated; it opens now, after an answer, or never."""
        check = check_link(target, label)
        if check.kind is LinkKind.REFUSED:
            self._refuse(check)
        elif check.turn is not None:
            self._open_turn(check.turn)
        elif check.site in self._allowed_sites and not check.warnings:
            self._open_url(check.address)
        else:
            self._ask(check, lambda allowed: self._on_answered(check, allowed=allowed))

    def _on_answered(self, check: LinkCheck, *, allowed: bool) -> None:
        if not allowed:
            return
        if not check.warnings:
            self._allowed_sites.add(check.site)
        self._open_url(check.address)


def _refused(target: str, reason: str) -> LinkCheck:
    shown = _HIDDEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", target[:200])
    shown = re.sub(r"[\x00-\x1f\x7f-\x9f]", "\ufffd", shown)
    return LinkCheck(LinkKind.REFUSED, shown, reason=reason)


@dataclass(slots=True)
class _Authority:
    """The part of an address between `//` and the path."""

    user: str = ""
    host: str = ""
    port: str = ""
    warnings: list[str] = field(default_factory=list)


def _web(text: str, label: str) -> LinkCheck:
    match = _WEB.match(text)
    if match is None:
        return _refused(text, tr("It is not a complete web address."))
    scheme = text[: text.index(":")].lower()
    authority = _read_authority(match["authority"])
    if authority is None:
        return _refused(text, tr("Its site is ambiguous."))
    rest = match["rest"] if match["rest"].startswith("/") else "/" + match["rest"]
    user = f"{authority.user}@" if authority.user else ""
    port = f":{authority.port}" if authority.port else ""
    address = f"{scheme}://{user}{authority.host}{port}{quote(rest, safe=_SAFE)}"
    if urlsplit(address).hostname != authority.host.strip("[]"):
        return _refused(text, tr("Its site is ambiguous."))
    warnings = [*authority.warnings, *_label_warnings(label, authority.host)]
    site = f"{scheme}://{authority.host}{port}"
    return LinkCheck(LinkKind.WEB, address, site, tuple(warnings))


def _read_authority(text: str) -> _Authority | None:
    found = _Authority()
    user, at, server = text.rpartition("@")
    if at:
        if "@" in user or "%40" in user:
            return None
        found.user = quote(user, safe="%!$&'()*+,;=:~-._")
        found.warnings.append(
            tr("The part before “@” (“{unquote}”) is a user name, not the site.").format(
                unquote=unquote(user)[:60]
            )
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
            tr(
                "The name “{host}” has letters outside a-z that can look like others; its canonical form is “{ascii_host}”."
            ).format(host=host[:60], ascii_host=ascii_host[:80])
        )
        host = ascii_host
    found.host = host.lower()
    if "xn--" in found.host and host.lower() == written.lower():
        found.warnings.append(
            tr("The name is written in punycode; browsers may show other letters.")
        )
    if not _HOST.match(found.host) or ".." in found.host:
        return None
    if re.fullmatch(r"[0-9.]+|0x[0-9a-f.x]+", found.host):
        found.warnings.append(tr("The site is a number, not a name."))
    return found


def _label_warnings(label: str, host: str) -> list[str]:
    """Return a warning when the label names another site than the one opened."""
    seen = _SITE_IN_LABEL.match(label.strip().lower())
    if seen is None:
        return []
    shown = seen[1].removeprefix("www.")
    real = host.removeprefix("www.").rstrip(".")
    if real == shown or real.endswith("." + shown):
        return []
    return [
        tr("The label says “{shown}”, but the link opens “{real}”.").format(
            shown=shown[:60], real=real[:80]
        )
    ]


def _mail(text: str) -> LinkCheck:
    box, mark, query = text[len("mailto:") :].partition("?")
    address = unquote(box)
    if not _MAILBOX.match(address) or _FORBIDDEN.search(address) or _HIDDEN.search(address):
        return _refused(text, tr("It is not a mail address."))
    kept = [
        part for part in query.split("&") if part.partition("=")[0].lower() in ("subject", "body")
    ]
    dropped = bool(mark) and len(kept) < len(query.split("&"))
    warnings = (
        (tr("It also requested copies or attachments; these were left out."),) if dropped else ()
    )
    rest = "?" + quote("&".join(kept), safe=_SAFE) if kept else ""
    shown = f"mailto:{quote(address, safe='@.+-_')}{rest}"
    return LinkCheck(LinkKind.MAIL, shown, "mail", warnings)
