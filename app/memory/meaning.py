"""Questions into the space that answers: the embedder, the vectors in memory, their background.

Search asks `look` for each question and goes by words alone where there is nothing to look with.
What answers is settled in the background: a question waits neither for a model nor for a server
that hangs.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.domain.errors import Cancelled, EmbedderUnavailable, IndexUnavailable, KnownError
from app.domain.events import Changed
from app.domain.passages import Space
from app.domain.ports import Embedder, VectorIndex
from app.index.calibration import Background, measured
from app.memory.embedders import EmbedderDirectory
from app.memory.overview import Embedded
from app.memory.vector_sync import VectorSync
from app.providers.remote_embedder import QuestionEmbedder, RemoteEmbedder
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.vector_rows import checked
from app.storage.vectors import KeptSpace, Vectors

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_log = logging.getLogger(__name__)
_KEPT_QUESTIONS = 64
_LOOK_AGAIN_S = 5.0
_BREATH_S = 0.1  # between two looks, while vectors are being written all the time
_MEASURE_LIMIT_S = 30.0  # 180 short texts, at the 110 tokens a second of a slow machine
_LONGEST_WAIT_S = 60.0  # between two tries at a server that does not answer
_MOST_DOUBLINGS = 10
_GOODBYE_S = 0.5  # a large model that is just being loaded cannot be interrupted
_PROBE = "ready"
_CONCERNED = frozenset(("embedder", "embedder_before", "embedder_consent", "proxy_url"))


@dataclass(frozen=True, slots=True)
class Look:
    """A question in the answering space: its vector, and where to look for what is near it."""

    vector: "npt.NDArray[np.float32]"
    index: VectorIndex
    background: Background


@dataclass(frozen=True, slots=True)
class _Answering:
    """What answers. `background` is None while its space holds nothing to be found."""

    embedder: Embedder
    space: Space
    background: Background | None


class Meaning:
    """Search by meaning, as far as it is there. Thread-safe."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        embedders: EmbedderDirectory,
        vectors: Vectors,
        sync: VectorSync,
        *,
        look_again_s: float = _LOOK_AGAIN_S,
        measure_limit_s: float = _MEASURE_LIMIT_S,
    ) -> None:
        """Know nothing yet; `look_again_s` is how long what failed is left alone.

        `measure_limit_s` is the most that a server is waited for while its space is measured.
        """
        self._store = store
        self._settings = settings
        self._embedders = embedders
        self._vectors = vectors
        self._sync = sync
        self._look_again_s = look_again_s
        self._measure_limit_s = measure_limit_s
        self._backgrounds: dict[tuple[Space, object], Background] = {}
        self._questions: OrderedDict[tuple[Space, str], npt.NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self._once_settled: Callable[[], object] | None = None
        self._answering: _Answering | None = None
        self._chosen = ""
        self._considered: tuple[Space, ...] = ()  # what coverage was asked of, the chosen one first
        self._held: tuple[Space, ...] = ()
        self._problem = ""
        self._filling_problem = ""
        self._filling_tries = 0
        self._fills_again_at = 0.0  # on the monotonic clock

    def start(self, once_settled: Callable[[], object] = lambda: None) -> None:
        """Settle what answers, now and after every change, in the background; safe to call twice.

        `once_settled` is called there, once: when questions are first answered by meaning, or it is
        clear that for now they cannot be.
        """
        if self._thread is None:
            self._once_settled = once_settled
            self._sync.start()
            self._unsubscribe = self._store.subscribe(self._on_changed)
            self._thread = threading.Thread(target=self._serve, name="meaning", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the background work; safe to call twice. Blocking, 1 s at most.

        A model that is being loaded is left to itself; a request to a server ends when the
        `EmbedderDirectory` is closed, which should come before.
        """
        self._unsubscribe()
        self._unsubscribe = lambda: None
        self._stopping.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join(_GOODBYE_S)
            self._thread = None
        self._sync.stop()

    # -- what search and screens ask

    @property
    def problem(self) -> str:
        """What a user should know of the last question, "" for nothing.

        Why it could not be looked up and what to do, or that the embedder before still answers.
        """
        return self._problem or self._switching_words()

    @property
    def filling_problem(self) -> str:
        """Why the space that is being filled could not be measured, and what happens; "" for nothing."""
        if not (problem := self._filling_problem):
            return ""
        return f"It cannot be measured yet: {problem}. It is asked again within a minute."

    @property
    def answering_space(self) -> Space | None:
        """The space that answers, None while there is none. Blocks unless it was started."""
        if self._thread is not None or self._stopping.is_set():
            return self._answering.space if self._answering is not None else None
        try:
            return self._embedders.answering(self.covered_share).space
        except KnownError:
            return None

    def look(self, question: str) -> Look | None:
        """Return the question's place in the answering space; None where words must do.

        That is so while model and vectors are being loaded in the background, and when there are
        none; without `start` both are loaded now. 5 ms with the built-in model. Never raises.
        """
        try:
            if (answering := self._now()) is None:
                return None
            index = self._index(answering.space)
            if index is None or not index.passage_count or answering.background is None:
                self._problem = ""
                return None
            vector = self._vector(answering, question)
        except KnownError as error:
            self._failed(error)
            return None
        self._problem = ""
        return Look(vector, index, answering.background)

    def embedded(self) -> Embedded | None:
        """Return what is found by meaning now, None while there is no embedder. Blocking."""
        space = self.answering_space
        return None if space is None else Embedded(space.name, self.covered_share(space))

    def covered_share(self, space: Space) -> float:
        """Return the share (0-1) of the passages to be embedded that a space holds. Blocking."""
        tally = self._vectors.tally(space.name, self._settings.number("min_message_tokens"))
        return tally.done / tally.total if tally.total else 1.0

    # -- what answers

    def _now(self) -> _Answering | None:
        if self._thread is None and not self._stopping.is_set():
            self._settle()
        return self._answering

    def _settle(self) -> None:
        """Find out what answers and make it ready: model, vectors, background.

        Raises KnownError when nothing can; what answered before stays, if it is still chosen.
        """
        if (chosen := self._settings.text("embedder")) != self._chosen:
            self._chosen, self._considered = chosen, ()
        embedder = self._embedders.answering(self._share_once_loaded)
        space = embedder.space
        before = self._answering
        is_same = before is not None and before.space == space
        self._hold(space, *(() if before is None else (before.space,)), *self._filling())
        if not is_same:
            embedder.embed([_PROBE], self._is_outdated)
        background = self._background(embedder, space)
        self._answering = _Answering(embedder, space, background)
        self._hold(space, *self._filling())
        self._prepare_filling()

    def _share_once_loaded(self, space: Space) -> float:
        """The share of a space, as soon as it could answer at once."""
        if space not in self._considered:
            self._considered = (*self._considered, space)
        share = self.covered_share(space)
        is_chosen = space == self._considered[0]
        if is_chosen and self._thread is not None and not self._is_in_step(space):
            raise IndexUnavailable(f"The vectors of “{space.name}” are being loaded")
        return share

    def _is_in_step(self, space: Space) -> bool:
        """Whether the index is loaded, and not from before the first vector was written."""
        index = self._sync.index_for(space)
        return index is not None and (
            index.passage_count > 0 or not self._vectors.count(space.name)[0]
        )

    def _filling(self) -> tuple[Space, ...]:
        """The spaces between which it is being decided, none when that is over."""
        is_over = self._settings.text("embedder") == self._settings.text("embedder_before")
        return () if is_over else self._considered

    def _hold(self, *spaces: Space) -> None:
        wanted = tuple(dict.fromkeys(spaces))
        if wanted != self._held:
            self._sync.use(wanted)
            self._held = wanted

    def _prepare_filling(self) -> None:
        """Measure the space that is being filled, so that nobody waits when it begins to answer.

        A server that does not answer is left alone for longer each time: what answers now must stay
        looked after.
        """
        if self._thread is None or not self._filling():
            self._filling_problem, self._filling_tries, self._fills_again_at = "", 0, 0.0
            return
        if time.monotonic() < self._fills_again_at:
            return
        try:
            embedder = self._with_limit(self._embedders.active())
            if self._kept(embedder.space) is not None:
                self._background(embedder, embedder.space)
        except KnownError as error:
            self._filling_failed(error)
        else:
            self._filling_problem, self._filling_tries = "", 0

    def _filling_failed(self, error: KnownError) -> None:
        if isinstance(error, Cancelled):
            return
        if self._filling_problem != error.title:
            _log.info("the space that is being filled waits: %s", error)
        self._filling_problem = error.title
        self._filling_tries += 1
        doublings = min(self._filling_tries - 1, _MOST_DOUBLINGS)
        wait_s = min(_LONGEST_WAIT_S, self._look_again_s * 2.0**doublings)
        self._fills_again_at = time.monotonic() + wait_s

    def _background(self, embedder: Embedder, space: Space) -> Background | None:
        """The background of a space, measured where that was not done yet; None without vectors."""
        if (kept := self._kept(space)) is None:
            return None
        key = (space, kept.begun_at)
        with self._lock:
            known = self._backgrounds.get(key)
        if known is not None:
            return known
        if kept.background_mean is None or kept.background_deviation is None:
            background = measured(self._with_limit(embedder), self._is_outdated)
            self._vectors.set_background(space, background.mean, background.deviation)
        else:
            background = Background(kept.background_mean, kept.background_deviation)
        with self._lock:
            self._backgrounds[key] = background
        return background

    def _with_limit(self, embedder: Embedder) -> Embedder:
        """The embedder with the time limit of a measurement, where it is a server."""
        if isinstance(embedder, RemoteEmbedder | QuestionEmbedder):
            return embedder.within(self._measure_limit_s)
        return embedder

    def _kept(self, space: Space) -> KeptSpace | None:
        """What the database has of a space; raises EmbedderUnavailable if that is another one."""
        kept = next((k for k in self._vectors.spaces() if k.space.name == space.name), None)
        if kept is not None and kept.space.dimension != space.dimension:
            raise EmbedderUnavailable(
                f"The embedder of “{space.name}” gives {space.dimension} numbers for a text; "
                f"its vectors so far have {kept.space.dimension}",
                "Choose another embedder, or embed everything again, in Settings.",
            )
        return kept

    # -- questions

    def _index(self, space: Space) -> VectorIndex | None:
        index = self._sync.index_for(space)
        if self._thread is None and not self._stopping.is_set():
            self._sync.catch_up()
            index = self._sync.index_for(space)
        if index is None:
            self._held = ()  # asking made the space be loaded: what is held is said anew
        return index

    def _vector(self, answering: _Answering, question: str) -> "npt.NDArray[np.float32]":
        key = (answering.space, question)
        with self._lock:
            if (known := self._questions.get(key)) is not None:
                self._questions.move_to_end(key)
                return known
        given = answering.embedder.embed([question], self._stopping.is_set)
        vector: npt.NDArray[np.float32] = checked(given, 1, answering.space)[0]
        with self._lock:
            self._questions[key] = vector
            if len(self._questions) > _KEPT_QUESTIONS:
                self._questions.popitem(last=False)
        return vector

    def _failed(self, error: KnownError) -> None:
        """Leave what failed alone until the background finds that it works again."""
        if self._stopping.is_set() or isinstance(error, Cancelled):
            return
        self._note(error)
        if self._thread is not None:
            self._answering = None
            self._news.set()

    def _note(self, error: KnownError) -> None:
        if self._problem != str(error):
            _log.warning("search by meaning waits: %s", error)
        self._problem = str(error)

    def _switching_words(self) -> str:
        chosen = self._settings.text("embedder")
        before = self._settings.text("embedder_before")
        if chosen == before or self._answering is None:
            return ""
        return (
            f"Search still answers with {self._embedders.describe(before)}: "
            f"{self._embedders.describe(chosen)} is reading your history."
            f"{self.filling_problem and ' '}{self.filling_problem}"
        )

    # -- in the background

    def _serve(self) -> None:
        while not self._stopping.is_set():
            self._news.clear()
            try:
                self._settle()
                self._problem = ""
                self._tell_settled()
            except KnownError as error:
                self._failed_to_settle(error)
                if not isinstance(error, IndexUnavailable):  # that is still being loaded
                    self._tell_settled()
            except Exception:  # noqa: BLE001 - search goes by words; the thread must live
                if not self._stopping.is_set():
                    _log.exception("search by meaning could not be prepared")
            self._stopping.wait(_BREATH_S)
            self._news.wait(self._look_again_s)

    def _tell_settled(self) -> None:
        tell, self._once_settled = self._once_settled, None
        if tell is not None and not self._stopping.is_set():
            tell()

    def _failed_to_settle(self, error: KnownError) -> None:
        if not self._is_outdated() and not isinstance(error, Cancelled):
            self._note(error)
            self._answering = None

    def _is_outdated(self) -> bool:
        """Whether the program ends, or another embedder was chosen meanwhile."""
        return self._stopping.is_set() or self._settings.text("embedder") != self._chosen

    def _on_changed(self, changed: Changed) -> None:
        if changed.settings & _CONCERNED or changed.providers or changed.vectors:
            self._news.set()
