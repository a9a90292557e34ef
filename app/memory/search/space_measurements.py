"""Traits of embedding spaces: read where they are stored, else measured by the space's embedder."""

import logging
import time
from collections.abc import Callable

from app.domain import codec
from app.domain.errors import Cancelled, EmbedderUnavailable, KnownError
from app.domain.passages import Space
from app.domain.ports import Embedder
from app.index.space_traits import SpaceTraits, measure_space
from app.providers.embedders.remote import RemoteEmbedder
from app.storage.tables.passages.vectors import StoredSpace, Vectors

_log = logging.getLogger(__name__)
_LIMIT_S = 30.0  # 300 short texts, at the 110 tokens a second of a slow machine
_LONGEST_WAIT_S = 60.0  # between two attempts at a server that does not answer
_MOST_DOUBLINGS = 10


class SpaceMeasurements:
    """The traits of the spaces of a library.

    Attributes:
        problem: Why `try_new` could not measure a space, "" for nothing.
    """

    def __init__(
        self, vectors: Vectors, is_cancelled: Callable[[], bool], *, retry_s: float
    ) -> None:
        """`retry_s` is the first delay after a failure."""
        self._vectors = vectors
        self._is_cancelled = is_cancelled
        self._retry_s = retry_s
        self._known: dict[tuple[Space, object], SpaceTraits] = {}
        self.problem = ""
        self._tries = 0
        self._again_at = 0.0  # on the monotonic clock

    def of(self, embedder: Embedder, *, renews: bool = False) -> SpaceTraits | None:
        """Return a space's traits, measured if there are none; None while it has no vectors.

        Those that an earlier version measured count until the space was measured again, which
        `renews` does. Raises EmbedderUnavailable if the stored vectors have another dimension, and
        KnownError.
        """
        space = embedder.space
        if (stored := self._stored(space)) is None:
            return None
        key = (space, stored.begun_at)
        traits = self._known.get(key)
        if traits is None and stored.traits is not None:
            traits = codec.loads(SpaceTraits, stored.traits)
        if traits is None or (renews and not traits.is_current):
            traits = measure_space(self._with_limit(embedder), self._is_cancelled)
            self._vectors.set_traits(space, codec.dumps(traits))
        self._known[key] = traits
        return traits

    def try_new(self, embedder: Callable[[], Embedder]) -> None:
        """Measure a space that is being filled, or that an earlier version measured.

        The one can then answer at once when it is ready, the other answers meanwhile. A server that
        does not answer is retried after growing delays, so that the answering space stays maintained.
        """
        if time.monotonic() < self._again_at:
            return
        try:
            self.of(self._with_limit(embedder()), renews=True)
        except Cancelled:
            return
        except KnownError as error:
            if self.problem != error.title:
                _log.info("a space is not measured yet: %s", error)
            self.problem = error.title
            doublings = min(self._tries, _MOST_DOUBLINGS)
            self._again_at = time.monotonic() + min(_LONGEST_WAIT_S, self._retry_s * 2.0**doublings)
            self._tries += 1
        else:
            self.problem, self._tries = "", 0

    def reset(self) -> None:
        """Forget earlier failures: nothing is to be measured."""
        self.problem, self._tries, self._again_at = "", 0, 0.0

    def _with_limit(self, embedder: Embedder) -> Embedder:
        """Return the embedder with the time limit of a measurement, if it is a server."""
        return embedder.within(_LIMIT_S) if isinstance(embedder, RemoteEmbedder) else embedder

    def _stored(self, space: Space) -> StoredSpace | None:
        """Return the stored space; raises EmbedderUnavailable if its dimension differs."""
        stored = next((k for k in self._vectors.spaces() if k.space.name == space.name), None)
        if stored is not None and stored.space.dimension != space.dimension:
            raise EmbedderUnavailable(
                f"The embedder of “{space.name}” returns {space.dimension} dimensions; "
                f"its stored vectors have {stored.space.dimension}",
                "Choose another embedder in Settings, or embed everything again.",
            )
        return stored
