"""Whose fault a failure is, the item's or the world's, and how long to wait before the next try."""

import random
from collections.abc import Callable
from datetime import timedelta

from app.domain.errors import ConsentMissing, EmbedderUnavailable, KnownError, StorageError
from app.domain.provider_errors import (
    ConnectionLost,
    KeyMissing,
    KeyRejected,
    ModelNotFound,
    PaymentRequired,
    PermissionRefused,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    ServerOverloaded,
    TimedOut,
    Unreachable,
)
from app.workers.job import Blocked

Jitter = Callable[[float], float]

_LONGEST_ITEM_WAIT_S = 32.0
_LONGEST_WORLD_WAIT_S = 60.0  # at most one probe a minute
_MOST_DOUBLINGS = 10
_USER_MUST_ACT = (
    ConsentMissing,
    KeyMissing,
    KeyRejected,
    PermissionRefused,
    PaymentRequired,
    ModelNotFound,
    QuotaExhausted,
)
_WORLD = (RateLimited, ServerOverloaded, Unreachable, EmbedderUnavailable, StorageError)
_MAYBE_WORLD = (TimedOut, ConnectionLost)


def full_jitter(limit_s: float) -> float:
    """Return a random wait up to `limit_s`, so that retries spread (AWS, "Backoff and Jitter")."""
    return random.uniform(0, limit_s)  # noqa: S311 - no secret depends on it


def block_of(error: Exception, failures_in_a_row: int) -> Blocked | None:
    """Return why the whole worker must wait after `error`, or None when one item is to blame.

    `failures_in_a_row` counts items that failed with no success between: after three, a broken
    connection is held to be the world's.
    """
    if isinstance(error, Blocked):
        return error
    if isinstance(error, _USER_MUST_ACT):
        return Blocked(error.title, error.hint, own_words=error.own_words)
    is_world = isinstance(error, _WORLD) or (
        isinstance(error, _MAYBE_WORLD) and failures_in_a_row >= 2
    )
    if is_world and isinstance(error, KnownError):
        wish = error.retry_after_s if isinstance(error, ProviderError) else None
        return Blocked(
            error.title, error.hint, retry_after_s=wish or 0.0, own_words=error.own_words
        )
    return None


def item_wait(tries: int, error: Exception, jitter: Jitter) -> timedelta:
    """Return how long to wait after the `tries`-th failure of an item.

    Full jitter below 1, 2, 4, 8, 16, 32 s; never less than the server asks for.
    """
    wait_s = jitter(min(_LONGEST_ITEM_WAIT_S, 2.0 ** (tries - 1)))
    wish = error.retry_after_s if isinstance(error, ProviderError) else None
    return timedelta(seconds=max(wait_s, wish or 0.0))


def world_wait_s(blocks_in_a_row: int, block: Blocked, jitter: Jitter) -> float | None:
    """Return how long to wait before probing again; None for as long as it takes the user."""
    if block.retry_after_s is None:
        return None
    doublings = min(blocks_in_a_row - 1, _MOST_DOUBLINGS)  # an outage of 17 hours overflows a float
    limit_s = min(_LONGEST_WORLD_WAIT_S, 2.0**doublings)
    return max(limit_s / 2 + jitter(limit_s / 2), block.retry_after_s)


def public_words(error: Exception) -> str:
    """Return an error in words that quote nobody: a bug's message may hold a conversation's text."""
    if isinstance(error, KnownError):
        return error.own_words
    return f"An internal error ({type(error).__name__}); the log has the details."


def screen_words(error: Exception) -> str:
    """Return the same for the screen of this session, with what a server said of it."""
    return error.screen_words if isinstance(error, KnownError) else public_words(error)
