"""Tolerant reading of JSON values: each function takes any value and returns its own type.

Times are returned in UTC; every text is sanitized by `app.domain.text.clean`.
"""

import hashlib
import json
import math
import re
import threading
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from app.domain.text import clean, one_line

MESSAGE_MAX_CHARS = 32 << 20
"""The limit of one message's JSON text; parsed, it takes up to twelve times as much memory."""

_MEDIA_TYPES = {
    "c": "text/x-c",
    "css": "text/css",
    "csv": "text/csv",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "gif": "image/gif",
    "heic": "image/heic",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "js": "text/javascript",
    "json": "application/json",
    "m4a": "audio/mp4",
    "md": "text/markdown",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "pdf": "application/pdf",
    "png": "image/png",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "py": "text/x-python",
    "svg": "image/svg+xml",
    "txt": "text/plain",
    "wav": "audio/wav",
    "webp": "image/webp",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xml": "application/xml",
    "zip": "application/zip",
}
_ID_MAX_CHARS = 200
_WEB = re.compile(r"https?://[^\s<>()]{1,1000}")
_TITLE_MAX_CHARS = 300
_EARLIEST_S = datetime(1990, 1, 1, tzinfo=UTC).timestamp()
_LATEST_S = datetime(2200, 1, 1, tzinfo=UTC).timestamp()


class UnreadableValue(Exception):
    """A value that cannot be imported; the message is a reason for the user."""


def parsed(text: str | None) -> Any:
    """Return the value of a JSON text; None stands for a text over the limit.

    NaN and Infinity become None, integers of more than 19 digits floats. Raises UnreadableValue.
    """
    if text is None:
        raise UnreadableValue(f"it is larger than {MESSAGE_MAX_CHARS >> 20} MB")
    try:
        return _DECODER.decode(text)
    except ValueError as error:
        raise UnreadableValue("it is not valid JSON") from error
    except RecursionError as error:
        raise UnreadableValue("it is nested too deeply") from error


def decoded(text: str, start: int) -> tuple[Any, int] | None:
    """Return the value that begins at `start` and its end; None when it is incomplete or invalid."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= 19 else float(digits)


_DECODER = json.JSONDecoder(strict=False, parse_int=_integer, parse_constant=lambda _name: None)


def an_object(value: object) -> dict[str, Any]:
    """Return `value` if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


class _Damage(threading.local):
    """Whether `objects` left something out on this thread."""

    is_found = False


_damage = _Damage()


def objects(value: object) -> list[dict[str, Any]]:
    """Return the objects in an array; other values but null are left out, which `take_damage` tells."""
    if not isinstance(value, list):
        _damage.is_found |= bool(value)
        return []
    found = [each for each in value if isinstance(each, dict)]
    if len(found) < len(value):
        _damage.is_found |= len(found) + value.count(None) < len(value)
    return found


def take_damage() -> bool:
    """Return whether `objects` left something out on this thread since this was asked last."""
    is_found, _damage.is_found = _damage.is_found, False
    return is_found


def text_of(value: object) -> str:
    """Return a sanitized text; "" for any other value."""
    return clean(value) if isinstance(value, str) else ""


def strings(value: object) -> list[str]:
    """Return the sanitized texts in an array; other values are ignored."""
    return (
        [text_of(each) for each in value if isinstance(each, str)]
        if isinstance(value, list)
        else []
    )


def count(value: object) -> int | None:
    """Return a non-negative integer below 2**53; None for any other value."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53:
        return value
    return None


def media_type(name: str) -> str:
    """Return the media type for the extension of a file name; "" when it is unknown.

    `mimetypes` is not used because its table depends on files of the system.
    """
    return _MEDIA_TYPES.get(name.rpartition(".")[2].lower(), "")


def title(value: object) -> str:
    """Return a text as one line of at most 300 characters."""
    return one_line(text_of(value), _TITLE_MAX_CHARS)


def link_list(links: Iterable[tuple[object, object]]) -> str:
    """Return names and addresses of sources as a list of links, each address once."""
    known: dict[str, str] = {}
    for name, address in links:
        url = text_of(address)
        if _WEB.fullmatch(url):
            known.setdefault(url, re.sub(r"[\[\]\s]+", " ", text_of(name)[:200]).strip() or url)
    return "\n".join(f"- [{name}]({url})" for url, name in known.items())


def identity(value: object) -> str:
    """Return an id as text, an id of over 200 characters as its hash; "" for none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    text = text_of(value)
    if len(text) <= _ID_MAX_CHARS:
        return text
    return hashlib.sha256(text.encode()).hexdigest()


def moment(value: object) -> datetime | None:
    """Return a time from epoch seconds, epoch milliseconds or ISO 8601; None when it is invalid.

    A time without a zone is UTC; times before 1990 or after 2200 are invalid.
    """
    if isinstance(value, datetime):
        return value  # it was read already
    if isinstance(value, dict):  # as MongoDB's extended JSON writes it
        inner = value.get("$date")
        value = an_object(inner).get("$numberLong", inner)
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _from_epoch(value)
    if not isinstance(value, str) or len(value) > 64:
        return None
    if value[4:5] != "-":  # most dates; a failing conversion takes twice the time of this function
        with suppress(ValueError):
            return _from_epoch(float(value))
    try:
        found = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    if not 1990 < found.year < 2200:
        return None
    return found if found.tzinfo is UTC else found.astimezone(UTC)


def _from_epoch(value: float) -> datetime | None:
    seconds = value / 1000 if abs(value) > 1e11 else float(value)
    if not math.isfinite(seconds) or not _EARLIEST_S <= seconds <= _LATEST_S:
        return None
    return datetime.fromtimestamp(seconds, UTC)
