"""Ascending ids in few numbers: a long window is a handful of runs, not a thousand ids."""

from collections.abc import Sequence

from app.domain.ids import MessageId


def as_runs(ids: Sequence[MessageId]) -> tuple[MessageId, ...]:
    """Return (first id, how many follow each other by one) for each run of `ids`, flattened."""
    runs: list[int] = []
    for each in ids:
        if runs and each == runs[-2] + runs[-1]:
            runs[-1] += 1
        else:
            runs += [each, 1]
    return tuple(map(MessageId, runs))


def from_runs(runs: Sequence[MessageId]) -> tuple[MessageId, ...]:
    """Return the ids that `as_runs` was given."""
    pairs = zip(runs[::2], runs[1::2], strict=True)
    return tuple(MessageId(first + step) for first, count in pairs for step in range(count))
