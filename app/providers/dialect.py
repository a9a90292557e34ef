"""What a server's dialect lacks: optional parameters it has refused, left out from then on.

Compatible servers know different parts of the protocol and say so with status 400 or 422. The
request is then sent once more without the parameter; if that works, it is remembered per base URL
and model (tools and temperature are a matter of the model) until the program ends.
"""

import copy
import logging
import re
import threading
from collections.abc import Iterable
from typing import Any

from app.providers.verdicts import Complaint

_log = logging.getLogger(__name__)
_CODES = ("unknown_parameter", "unsupported_parameter", "unsupported_value", "extra_forbidden")
_WORDS = re.compile(
    r"unknown|unrecogni[sz]ed|unsupported|not supported|(?:n[o']t|not) support|extra inputs?"
    r"|unexpected|not permitted|not allowed|deprecated|requires? |must be verified"
    r"|invalid (?:parameter|argument|field)"
)
_ALSO_CALLED = {
    "tools": r"\btools?\b|tool[ _-]choice|function[ _-]call",
    "include": r"\binclude\b|encrypted content",
    "reasoning.summary": r"reasoning[. _]summar",
    "reasoning.effort": r"reasoning[. _]effort",
    "thinking": r"\bthinking\b|adaptive",
    "output_config": r"output_config|\beffort\b",
}


class Dialects:
    """The refused parameters of every server and model met so far; thread-safe."""

    def __init__(self) -> None:
        self._refused: dict[tuple[str, str], frozenset[str]] = {}
        self._lock = threading.Lock()

    def refused(self, base_url: str, model: str) -> frozenset[str]:
        """Return the parameters to leave out."""
        with self._lock:
            return self._refused.get((base_url, model), frozenset())

    def remember(self, base_url: str, model: str, names: Iterable[str]) -> None:
        """Leave these out from now on."""
        added = frozenset(names)
        with self._lock:
            key = (base_url, model)
            if added <= self._refused.get(key, frozenset()):
                return
            self._refused[key] = self._refused.get(key, frozenset()) | added
        _log.info("%s does not take %s for %s", base_url, ", ".join(sorted(added)), model)


def refused_parameter(
    complaint: Complaint | None, body: dict[str, Any], optional: Iterable[str]
) -> str | None:
    """Return which optional parameter of `body` the server complains about, None if none.

    Dotted names reach into nested objects ("reasoning.summary").
    """
    if complaint is None or complaint.status not in (400, 422):
        return None
    present = [name for name in optional if _holds(body, name)]
    for name in present:
        if complaint.parameter and complaint.parameter.startswith(name):
            return name
    words = complaint.words
    if complaint.code not in _CODES and not _WORDS.search(words):
        return None
    for name in present:
        if re.search(_ALSO_CALLED.get(name, rf"\b{re.escape(name)}\b"), words):
            return name
    return None


def without(body: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return a copy of `body` lacking these parameters; an object left empty goes too."""
    leaner = dict(body)
    for name in names:
        outer, _, inner = name.partition(".")
        if not inner:
            leaner.pop(outer, None)
        elif isinstance(leaner.get(outer), dict):
            held = copy.copy(leaner[outer])
            held.pop(inner, None)
            leaner[outer] = held
            if not held:
                leaner.pop(outer)
    return leaner


def _holds(body: dict[str, Any], name: str) -> bool:
    outer, _, inner = name.partition(".")
    return outer in body and (not inner or inner in body[outer])
