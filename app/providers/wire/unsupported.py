"""Optional parameters of requests: whether an error rejects one, and requests without some.

Compatible servers implement different parts of the protocol and answer 400 or 422.
"""

import re
from collections.abc import Iterable
from typing import Any

from app.providers.http.error_classification import ErrorResponse

_CODES = ("unknown_parameter", "unsupported_parameter", "unsupported_value", "extra_forbidden")
_REJECTION = re.compile(
    r"unknown|unrecogni[sz]ed|unsupported|unavailable|not supported|(?:n[o']t|not) support|extra inputs?"
    r"|unexpected|not permitted|not allowed|deprecated|requires? |must be verified"
    r"|invalid (?:parameter|argument|field)"
)
_IMAGES = re.compile(
    r"\bimages?\b|image_url|input_image|multi-?modal|\bvision\b|content must be a string"
)
_MENTIONS = {
    "tools": r"\btools?\b|tool[ _-]choice|function[ _-]call",
    "include": r"\binclude\b|encrypted content",
    "reasoning.summary": r"reasoning[. _]summar",
    "reasoning_effort": r"reasoning[. _]effort|\breasoning\b|\bthinking\b",
    "reasoning.effort": r"reasoning[. _]effort",
    "thinking": r"\bthinking\b|adaptive",
    "response_format": r"response[_ ]format|json[_ ]schema|structured output",
    "text.format": r"text\.format|json[_ ]schema|structured output",
    "output_config.format": r"output[_ ](?:config\.)?format|json[_ ]schema|structured output",
    "output_config": r"output_config|\beffort\b",
}


def rejected_parameter(
    response: ErrorResponse | None, body: dict[str, Any], optional: Iterable[str]
) -> str | None:
    """Return the optional parameter of `body` that an error response rejects, None for none.

    Dotted names reach into nested objects ("reasoning.summary").
    """
    if response is None or response.status not in (400, 422):
        return None
    present = [name for name in optional if _contains(body, name)]
    for name in present:
        if response.parameter and response.parameter.startswith(name):
            return name
    text = response.searchable_text
    if response.code not in _CODES and not _REJECTION.search(text):
        return None
    for name in present:
        if re.search(_MENTIONS.get(name, rf"\b{re.escape(name)}\b"), text):
            return name
    return None


def rejects_images(response: ErrorResponse | None) -> bool:
    """Return whether an error response to a request with images is about them.

    Servers say so with several statuses: llama.cpp with 500, OpenRouter with 404.
    """
    statuses = (400, 404, 415, 422, 500)
    if response is None or response.status not in statuses:
        return False
    return _IMAGES.search(response.searchable_text) is not None


def without(body: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return a copy of `body` without these parameters and without objects that become empty."""
    copied = dict(body)
    for name in names:
        outer, _, inner = name.partition(".")
        if not inner:
            copied.pop(outer, None)
        elif isinstance(copied.get(outer), dict):
            copied[outer] = {key: value for key, value in copied[outer].items() if key != inner}
            if not copied[outer]:
                copied.pop(outer)
    return copied


def _contains(body: dict[str, Any], name: str) -> bool:
    outer, _, inner = name.partition(".")
    return outer in body and (not inner or inner in body[outer])
