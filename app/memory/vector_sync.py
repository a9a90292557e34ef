"""Keeps the vector indexes in memory in step with the database: one for each space in use.

Each is loaded whole in the background (0.6 s for 100,000 vectors of 384) and then follows what is
written and what leaves, so no file of them is kept. Until one is loaded search goes by words alone.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from app.domain.errors import IndexUnavailable, StorageError
from app.domain.events import Changed
from app.domain.ids import PARTS_OF_A_PASSAGE
from app.domain.passages import Space
from app.domain.ports import VectorIndex
from app.index.vector_index import ExactVectorIndex
from app.memory.following import Follower
from app.storage.passages import Passages
from app.storage.store import Store
from app.storage.vector_loading import LoadedRows
from app.storage.vectors import Vectors

_log = logging.getLogger(__name__)
_BATCH = 5_000

IsCancelled = Callable[[], bool]


@dataclass(slots=True)
class _Held:
    """The index of a space and how far it goes.

    `begun_at` is the space's: another one means that its vectors were thrown away. `until` is when
    the last of its rows was written, `position` the journal's up to which what left is out of it.
    """

    space: Space
    begun_at: datetime | None
    index: VectorIndex
    position: int
    until: datetime | None = None
    is_loaded: bool = False
    covered_share: float = 0.0


class VectorSync:
    """The vector indexes of the spaces in use, and the thread that feeds them.

    What it answers may be asked from any thread, takes no time and never raises.
    """

    def __init__(self, store: Store, vectors: Vectors) -> None:
        self._passages = Passages(store)
        self._vectors = vectors
        self._in_use: dict[str, Space] = {}
        self._held: dict[str, _Held] = {}
        self._naming = threading.Lock()
        self._busy = threading.Lock()
        self._follower = Follower(store, "vector index", self.catch_up, self._matters)

    # -- what search asks

    def index_for(self, space: Space) -> VectorIndex | None:
        """Return the index of a space, None while it is not loaded; asking makes it be loaded."""
        held = self._held.get(space.name)
        if held is not None and held.space == space:
            return held.index if held.is_loaded else None
        with self._naming:
            self._in_use = {**self._in_use, space.name: space}  # others iterate without a lock
        self._follower.wake()
        return None

    def is_loaded(self, space: Space) -> bool:
        """Whether the index of a space holds all it did when it was last looked at."""
        held = self._held.get(space.name)
        return held is not None and held.space == space and held.is_loaded

    def covered_share(self, space: Space) -> float:
        """Return the share (0-1) of a space's passages that its index holds.

        Those that were not embedded yet are not counted: they are `Vectors.tally`'s.
        """
        held = self._held.get(space.name)
        return held.covered_share if held is not None and held.space == space else 0.0

    # -- keeping in step

    def use(self, spaces: Iterable[Space]) -> None:
        """Hold the indexes of these spaces, the answering one first, and let go of all others."""
        with self._naming:
            self._in_use = {space.name: space for space in spaces}
            self._held = {name: held for name, held in self._held.items() if name in self._in_use}
        self._follower.wake()

    def start(self) -> None:
        """Load and follow in the background; safe to call twice."""
        self._follower.start()

    def stop(self) -> None:
        """End the thread after the batch at hand; safe to call twice. Blocking."""
        self._follower.stop()

    def catch_up(self, is_cancelled: IsCancelled = lambda: False) -> None:
        """Bring the indexes in use in step now. Blocking; raises StorageError, IndexUnavailable.

        `is_cancelled` is asked between batches. An index that cannot take its rows is dropped, to
        be loaded anew; while the database cannot be read, it answers with what it has.
        """
        with self._busy:
            for space in tuple(self._in_use.values()):
                try:
                    self._follow(space, is_cancelled)
                except StorageError:
                    raise  # what was taken in is right, and will be taken in again
                except Exception:
                    with self._naming:
                        self._held.pop(space.name, None)
                    raise

    def _follow(self, space: Space, is_cancelled: IsCancelled) -> None:
        held = self._held_of(space)
        until = held.until
        for rows in self._vectors.load(space, held.until):
            _put(held.index, rows)
            until = rows.until
            if self._follower.is_stopping or is_cancelled():
                return  # `until` holds for all the batches: next time they are put again
        held.until = until
        self._drop_what_left(held)
        total, _ = self._vectors.count(space.name)
        held.covered_share = min(1.0, held.index.passage_count / total) if total else 1.0
        held.is_loaded = True

    def _held_of(self, space: Space) -> _Held:
        """What is held of a space, or a new beginning where it is not what the database has."""
        begun_at = next(
            (k.begun_at for k in self._vectors.spaces() if k.space.name == space.name), None
        )
        held = self._held.get(space.name)
        if held is None or held.begun_at != begun_at or held.space != space:
            # The position comes before the rows: what leaves while they are read is looked for.
            _, position = self._passages.forgetting()
            held = _Held(space, begun_at, ExactVectorIndex(space.dimension), position)
            with self._naming:
                if space.name in self._in_use:
                    self._held[space.name] = held
        return held

    def _drop_what_left(self, held: _Held) -> None:
        is_last = False
        while not is_last:
            work = self._passages.work_since(held.position, _BATCH)
            if work.removed:
                held.index.remove(work.removed)
            held.position, is_last = work.position, work.is_last

    def _matters(self, changed: Changed) -> bool:
        return changed.passages or bool(changed.vectors & self._in_use.keys())


def _put(index: VectorIndex, rows: LoadedRows) -> None:
    """Add rows; of passages whose vectors are damaged, none."""
    try:
        index.put(rows.part_ids, rows.spans, rows.vectors)
    except IndexUnavailable as error:
        healthy = _healthy(rows)
        left_out = len(rows.part_ids) - len(healthy.part_ids)
        if not left_out:
            raise
        _log.warning("%d vectors are damaged and were left out: %s", left_out, error)
        index.put(healthy.part_ids, healthy.spans, healthy.vectors)


def _healthy(rows: LoadedRows) -> LoadedRows:
    """The rows of passages all of whose vectors are of about unit length."""
    lengths = np.linalg.norm(rows.vectors, axis=1)
    is_bad = ~((lengths > 0.5) & (lengths < 2))  # also what is not a number
    passages = rows.part_ids // PARTS_OF_A_PASSAGE
    good = ~np.isin(passages, passages[is_bad])
    return replace(
        rows, part_ids=rows.part_ids[good], spans=rows.spans[good], vectors=rows.vectors[good]
    )
