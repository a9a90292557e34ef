"""Vectors between a model and the database: looked at once, kept as float16, and back.

numpy is imported on first use: opening the program does not wait for it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.domain.errors import EmbedderUnavailable, KnownError
from app.domain.passages import Space

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_LEAST_LENGTH = 1e-6
_KEPT_AS = "<f2"


class BadVectors(KnownError):
    """An embedder answered some of the texts with nothing that is a vector; others may do."""


def checked(vectors: object, count: int, space: Space) -> "npt.NDArray[np.float32]":
    """Return what an embedder gave for `count` texts as float32, (count, dim), rows of unit length.

    Raises `BadVectors` when some are missing, zero or no numbers, which can be a text's fault, and
    `EmbedderUnavailable` when it is not the space's shape.
    """
    import numpy as np

    try:
        given = np.asarray(vectors, np.float32)
    except (TypeError, ValueError) as error:
        raise _unfit(space, "something that is no table of numbers") from error
    if given.ndim != 2:
        raise _unfit(space, f"an answer of shape {given.shape}")
    if given.shape[1] != space.dimension and len(given):
        raise _unfit(space, f"vectors of {given.shape[1]} numbers, not of {space.dimension}")
    if len(given) != count:
        raise BadVectors(
            f"The embedder of “{space.name}” gave {len(given)} vectors for {count} texts",
            "Choose another embedder if this goes on.",
        )
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(given.astype(np.float64), axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise BadVectors(
            f"The embedder of “{space.name}” gave vectors that are no numbers",
            "Choose another embedder if this goes on.",
        )
    if (lengths < _LEAST_LENGTH).any():
        raise BadVectors(
            f"The embedder of “{space.name}” gave vectors without a direction",
            "Choose another embedder if this goes on.",
        )
    unit: npt.NDArray[np.float32] = (given / lengths).astype(np.float32)
    return unit


def to_blobs(vectors: "npt.NDArray[np.float32]") -> list[bytes]:
    """Return each row as the database keeps it."""
    return [row.tobytes() for row in vectors.astype(_KEPT_AS)]


def from_blobs(blobs: Sequence[bytes], dimension: int) -> "npt.NDArray[np.float32]":
    """Return the rows of blobs, all of that dimension: float32, (n, dim)."""
    import numpy as np

    kept = np.frombuffer(b"".join(blobs), _KEPT_AS)
    return kept.reshape(len(blobs), dimension).astype(np.float32)


def bytes_of(dimension: int) -> int:
    """Return the size of one vector as it is kept."""
    return 2 * dimension


def _unfit(space: Space, what: str) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        f"The embedder of “{space.name}” gave {what}",
        "Check the embedder's settings or choose another one.",
    )
