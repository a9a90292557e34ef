"""Questions into the space that answers: the embedder, the vectors in memory, their background.

Search asks `look` for each question and goes by words alone where there is nothing to look with.
"""

import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.domain.errors import KnownError
from app.domain.passages import Space
from app.domain.ports import Embedder, VectorIndex
from app.index.calibration import Background, measured
from app.memory.embedders import EmbedderDirectory
from app.memory.overview import Embedded
from app.memory.vector_sync import VectorSync
from app.storage.settings import Settings
from app.storage.vectors import Vectors

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_log = logging.getLogger(__name__)
_KEPT_QUESTIONS = 64
_LOOK_AGAIN_S = 5.0


@dataclass(frozen=True, slots=True)
class Look:
    """A question in the answering space: its vector, and where to look for what is near it."""

    vector: "npt.NDArray[np.float32]"
    index: VectorIndex
    background: Background


class Meaning:
    """Search by meaning, as far as it is there. Thread-safe.

    Attributes:
        problem: Why the last question could not be looked up, for the user; "" when it could.
    """

    def __init__(
        self, settings: Settings, embedders: EmbedderDirectory, vectors: Vectors, sync: VectorSync
    ) -> None:
        self._settings = settings
        self._embedders = embedders
        self._vectors = vectors
        self._sync = sync
        self._backgrounds: dict[str, Background] = {}
        self._questions: OrderedDict[tuple[str, str], npt.NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.problem = ""

    def start(self) -> None:
        """Load the embedder and the vectors in the background; safe to call twice."""
        if self._thread is None:
            self._sync.start()
            self._thread = threading.Thread(target=self._prepare, name="meaning", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the background work; safe to call twice. Blocking."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._sync.stop()

    def look(self, question: str) -> Look | None:
        """Return the question's place in the answering space; None where words must do.

        That is so while model and vectors are being loaded in the background, and when there are
        none; without `start` both are loaded now. 5 ms with the built-in model. Never raises.
        """
        try:
            embedder = self._embedders.answering(self.covered_share)
            index = self._index(embedder.space)
            if index is None or not index.passage_count:
                self.problem = ""
                return None
            background = self._background(embedder)
            vector = self._vector(embedder, question)
        except KnownError as error:
            self.problem = str(error)
            return None
        self.problem = ""
        return Look(vector, index, background)

    def embedded(self) -> Embedded | None:
        """Return what is found by meaning now, None while there is no embedder. Blocking."""
        try:
            space = self._embedders.answering(self.covered_share).space
        except KnownError:
            return None
        return Embedded(space.name, self.covered_share(space))

    def covered_share(self, space: Space) -> float:
        """Return the share (0-1) of the passages to be embedded that a space holds. Blocking."""
        tally = self._vectors.tally(space.name, self._settings.number("min_message_tokens"))
        return tally.done / tally.total if tally.total else 1.0

    def _index(self, space: Space) -> VectorIndex | None:
        index = self._sync.index_for(space)
        if self._thread is None:
            self._sync.catch_up()
            index = self._sync.index_for(space)
        return index

    def _background(self, embedder: Embedder) -> Background:
        """The space's background; that of the built-in one until it was measured."""
        name = embedder.space.name
        with self._lock:
            known = self._backgrounds.get(name)
        if known is not None:
            return known
        kept = next((each for each in self._vectors.spaces() if each.space.name == name), None)
        if kept is None or kept.background_mean is None or kept.background_deviation is None:
            background = measured(embedder)
            if kept is not None:
                self._vectors.set_background(embedder.space, background.mean, background.deviation)
        else:
            background = Background(kept.background_mean, kept.background_deviation)
        with self._lock:
            self._backgrounds[name] = background
        return background

    def _vector(self, embedder: Embedder, question: str) -> "npt.NDArray[np.float32]":
        key = (embedder.space.name, question)
        with self._lock:
            if (known := self._questions.get(key)) is not None:
                self._questions.move_to_end(key)
                return known
        vector: npt.NDArray[np.float32] = embedder.embed([question])[0]
        with self._lock:
            self._questions[key] = vector
            if len(self._questions) > _KEPT_QUESTIONS:
                self._questions.popitem(last=False)
        return vector

    def _prepare(self) -> None:
        """Bring the first question's wait forward: model, vectors and background."""
        while not self._stopping.is_set():
            try:
                embedder = self._embedders.answering(self.covered_share)
                self._sync.use([embedder.space])
                embedder.embed(["ready"])
                if any(each.space == embedder.space for each in self._vectors.spaces()):
                    self._background(embedder)
                    return
            except KnownError as error:
                if self.problem != str(error):
                    _log.warning("search by meaning waits: %s", error)
                self.problem = str(error)
            except Exception:  # noqa: BLE001 - search goes by words; the thread must end quietly
                _log.exception("search by meaning could not be prepared")
                return
            self._stopping.wait(_LOOK_AGAIN_S)
