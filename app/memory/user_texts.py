"""Texts that the user writes: checked before they are stored; their versions by time."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from app.domain.errors import InvalidInput, NotFound
from app.domain.text import clean
from app.storage.engine.stamps import now


class _Version(Protocol):
    @property
    def made_at(self) -> datetime | None: ...


V = TypeVar("V", bound=_Version)


def checked_text(text: str, limit_chars: int, kind: str) -> str:
    """Return a text as it is stored; raises InvalidInput for an empty or too long one."""
    words = clean(text).strip()
    allowed = f"Allowed: 1 to {limit_chars:,} characters."
    if not words:
        raise InvalidInput(f"A {kind} cannot be empty", allowed)
    if len(words) > limit_chars:
        raise InvalidInput(f"A {kind} cannot have {len(words):,} characters", allowed)
    return words


def version_at(versions: Iterable[V], made_at: datetime, kind: str) -> V:
    """Return the version of a time; raises NotFound."""
    if (found := next((each for each in versions if each.made_at == made_at), None)) is None:
        raise NotFound(f"This version of {kind} no longer exists")
    return found


def later_than(last: datetime) -> datetime:
    """Return the present, or just after the last version if the clock was set back."""
    return max(now(), last + timedelta(microseconds=1))
