"""Careful reading of JSON that may be anything: each function takes any value and returns its own.

Times come back as UTC; every text has passed `app.domain.text.clean`.
"""

import hashlib
import json
import math
from datetime import UTC, datetime
from typing import Any

from app.domain.text import clean, one_line

MESSAGE_MAX_CHARS = 32 << 20
"""The JSON text of one message may be this long; parsed, it takes up to twelve times as much."""

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
_TITLE_MAX_CHARS = 300
_EARLIEST_S = datetime(1990, 1, 1, tzinfo=UTC).timestamp()
_LATEST_S = datetime(2200, 1, 1, tzinfo=UTC).timestamp()


class Unreadable(Exception):
    """What stands here cannot be taken; the words say why, for the user."""


def parsed(text: str | None) -> Any:
    """Return the value of JSON text; None for the text means there was too much of it.

    NaN and Infinity become None, integers beyond 18 digits floats. Raises Unreadable.
    """
    if text is None:
        raise Unreadable(f"it is larger than {MESSAGE_MAX_CHARS >> 20} MB")
    try:
        return _DECODER.decode(text)
    except ValueError as error:
        raise Unreadable("it is not valid JSON") from error
    except RecursionError as error:
        raise Unreadable("it is nested too deeply") from error


def decoded(text: str, start: int) -> tuple[Any, int] | None:
    """Return the value that begins at `start` and where it ends; None if none that is whole."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= 19 else float(digits)


_DECODER = json.JSONDecoder(strict=False, parse_int=_integer, parse_constant=lambda _name: None)


def an_object(value: object) -> dict[str, Any]:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[dict[str, Any]]:
    """Return the objects of an array, without whatever else is in it."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def words(value: object) -> str:
    """Return a text, cleaned; anything else is the empty text."""
    return clean(value) if isinstance(value, str) else ""


def strings(value: object) -> list[str]:
    """Return the texts of an array, cleaned, without whatever else is in it."""
    return (
        [words(each) for each in value if isinstance(each, str)] if isinstance(value, list) else []
    )


def count(value: object) -> int | None:
    """Return a whole number from 0 on that any program can hold; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53:
        return value
    return None


def media_type(name: str) -> str:
    """Return the media type that a file's name tells; empty when it tells none.

    The standard library's table depends on files of the machine, so it is not used.
    """
    return _MEDIA_TYPES.get(name.rpartition(".")[2].lower(), "")


def title(value: object) -> str:
    """Return a text as one line of at most 300 characters."""
    return one_line(words(value), _TITLE_MAX_CHARS)


def identity(value: object) -> str:
    """Return an id as text, a very long one as its hash; empty when there is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    text = words(value)
    if len(text) <= _ID_MAX_CHARS:
        return text
    return hashlib.sha256(text.encode()).hexdigest()


def moment(value: object) -> datetime | None:
    """Return a time given as epoch seconds, epoch milliseconds or ISO 8601; None for nonsense.

    A time without a zone is UTC; one before 1990 or after 2200 is nonsense.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _from_epoch(value)
    if not isinstance(value, str) or len(value) > 64:
        return None
    try:
        return _from_epoch(float(value))
    except ValueError:
        return _from_iso(value)


def _from_epoch(value: float) -> datetime | None:
    seconds = value / 1000 if abs(value) > 1e11 else float(value)
    if not math.isfinite(seconds) or not _EARLIEST_S <= seconds <= _LATEST_S:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def _from_iso(value: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    if not datetime(1991, 1, 1, tzinfo=UTC) <= found <= datetime(2199, 1, 1, tzinfo=UTC):
        return None
    return found.astimezone(UTC)
