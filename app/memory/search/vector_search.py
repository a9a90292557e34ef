"""Vector search: the answering embedder, its vectors in memory, and the vectors of questions.

The answering space is determined in the background, so a question waits neither for a model nor for
a hanging server; search uses only words until it is ready.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from app.domain.change_set import ChangeSet
from app.domain.errors import Cancelled, IndexUnavailable, KnownError
from app.domain.passages import Space
from app.domain.ports import Embedder, TokenVectors, token_embedder
from app.domain.translation import tr_noop
from app.index.space_traits import SpaceTraits
from app.index.token_sync import TokenIndexSync
from app.index.vector_index import ExactVectorIndex
from app.index.vector_sync import VectorIndexSync
from app.memory.search.coverage import EmbeddingCoverage
from app.memory.search.embedders import EmbedderDirectory
from app.memory.search.query_vectors import QueryTokens, QueryVector, QuestionEmbedder
from app.memory.search.space_measurements import SpaceMeasurements
from app.providers.embedders.local import LocalEmbedder
from app.storage.engine.store import Store
from app.storage.tables.passages.vectors import Vectors
from app.storage.tables.settings import Settings

_log = logging.getLogger(__name__)
_RETRY_S = 5.0
_MIN_INTERVAL_S = 0.1  # between two checks while vectors are written continuously
_STOP_WAIT_S = 0.5  # loading a large model cannot be interrupted
_PROBE = "ready"
_RELEVANT_SETTINGS = frozenset(("embedder", "embedder_before", "embedder_consent", "proxy_url"))


@dataclass(frozen=True, slots=True)
class _Answering:
    """The answering embedder. `traits` is None while its space has no vectors."""

    embedder: Embedder
    space: Space
    traits: SpaceTraits | None


class VectorSearch:
    """Search by meaning, as far as it is available. Thread-safe."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        embedders: EmbedderDirectory,
        vectors: Vectors,
        sync: VectorIndexSync,
        tokens: TokenIndexSync | None = None,
        *,
        retry_s: float = _RETRY_S,
    ) -> None:
        """`retry_s` is the delay after a failure."""
        self._store = store
        self._settings = settings
        self._embedders = embedders
        self._vectors = vectors
        self._sync = sync
        self._tokens = tokens
        self._look_again_s = retry_s
        self._measurements = SpaceMeasurements(vectors, self._is_outdated, retry_s=retry_s)
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._questions = QuestionEmbedder(self._stopping.is_set)
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self._once_settled: Callable[[], object] = lambda: None
        self._settled = threading.Event()
        self._answering: _Answering | None = None
        self._chosen = ""
        self._considered_spaces: tuple[Space, ...] = ()  # coverage was read, the chosen one first
        self._used_spaces: tuple[Space, ...] = ()
        self._problem = ""

    def start(self, once_settled: Callable[[], object] = lambda: None) -> None:
        """Determine the answering space now and after changes, in the background; idempotent.

        `once_settled` is called there once: when questions are first answered by meaning, or it is
        known that for now they cannot be.
        """
        if self._thread is None:
            self._once_settled = once_settled
            self._sync.start()
            if self._tokens is not None:
                self._tokens.start()
            self._unsubscribe = self._store.subscribe(self._on_changed)
            self._thread = threading.Thread(target=self._run, name="vector-search", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the background work; may be called twice. Blocking, at most 1 s.

        A model that is being loaded is not waited for; a request to a server ends when the
        `EmbedderDirectory` is closed, which should come first.
        """
        self._unsubscribe()
        self._unsubscribe = lambda: None
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_STOP_WAIT_S)
            self._thread = None
        self._sync.stop()
        if self._tokens is not None:
            self._tokens.stop()

    @property
    def problem(self) -> str:
        """What the user should know of the last question, "" for nothing.

        Why it could not be searched by meaning and what to do, or that the previous embedder still
        answers.
        """
        chosen = self._settings.text("embedder")
        before = self._settings.text("embedder_before")
        if self._problem or chosen == before or self._answering is None:
            return self._problem
        old, new = self._embedders.describe(before), self._embedders.describe(chosen)
        answers = tr_noop(f"Search still answers with {old}: {new} is processing your history.")
        return " ".join(filter(None, (answers, self.new_space_problem)))

    @property
    def new_space_problem(self) -> str:
        """Why the new space could not be measured, and when it is retried; "" for nothing."""
        problem = self._measurements.problem
        if not (problem and self._candidate_spaces()):
            return ""
        return tr_noop(f"It cannot be measured yet: {problem}. It is retried within a minute.")

    @property
    def answering_space(self) -> Space | None:
        """The answering space, None without one. Blocks unless started."""
        if self._thread is not None or self._stopping.is_set():
            return self._answering.space if self._answering is not None else None
        try:
            return self._embedders.answering(self.covered_share).space
        except KnownError:
            return None

    def wait_until_settled(self, timeout_s: float) -> bool:
        """Wait until questions are answered by meaning or cannot be; return whether that is so.

        Without `start` the first question loads the model, so nothing is waited for.
        """
        if self._thread is None:
            return self._answering is not None
        return self._settled.wait(timeout_s)

    def query_vector(self, question: str) -> QueryVector | None:
        """Return the question's vector in the answering space; None if only words can be searched.

        That is so while model and vectors are loaded in the background, when there are none, and
        for a question in a script that the model does not know; without `start` both are loaded
        now. 5 ms with the built-in model. Never raises.
        """
        try:
            if self._thread is None and not self._stopping.is_set():
                self._update_answering()
            if (answering := self._answering) is None:
                return None
            index = self._index(answering.space)
            if (
                index is None
                or not index.passage_count
                or answering.traits is None
                or not _reads(answering.embedder, question)
            ):
                self._problem = ""
                return None
            vector, tokens = self._questions.embedded(answering.embedder, question)
        except KnownError as error:
            # It is not used until the background finds that it works again.
            if not (self._stopping.is_set() or isinstance(error, Cancelled)):
                self._set_problem(error)
                if self._thread is not None:
                    self._answering = None
                    self._wake.set()
            return None
        self._problem = ""
        found = self._query_tokens(answering, tokens)
        background = answering.traits.background.of_question(index.sampled_cosines(vector))
        preference = np.array(answering.traits.preference, np.float32)
        request = answering.traits.request_likelihood(vector)
        return QueryVector(vector, index, background, preference, request, found)

    def similarities(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return the cosine of each text with a question, by a local model; none without one.

        2 to 5 ms for a sentence. Never raises.
        """
        embedder = None if self._answering is None else self._answering.embedder
        if not (texts and isinstance(embedder, LocalEmbedder) and embedder.reads(question)):
            return ()
        try:
            of_texts = embedder.embed(texts, self._stopping.is_set)
            vector, _ = self._questions.embedded(embedder, question)
        except KnownError:
            return ()
        cosines: list[float] = (np.asarray(of_texts, np.float32) @ vector).tolist()
        return cosines

    def embedded(self) -> EmbeddingCoverage | None:
        """Return what is found by meaning now, None without an embedder. Blocking."""
        space = self.answering_space
        return None if space is None else EmbeddingCoverage(space.name, self.covered_share(space))

    def covered_share(self, space: Space) -> float:
        """Return the share (0-1) of the passages to embed that a space holds. Blocking."""
        tally = self._vectors.tally(space.name, self._settings.number("min_message_tokens"))
        return tally.done / tally.total if tally.total else 1.0

    def _update_answering(self) -> None:
        """Determine the answering embedder and prepare model, vectors and traits.

        Raises KnownError when none can answer; the previous one stays if it is still chosen.
        """
        if (chosen := self._settings.text("embedder")) != self._chosen:
            self._chosen, self._considered_spaces = chosen, ()
        embedder = self._embedders.answering(self._share_once_loaded)
        space = embedder.space
        before = self._answering
        is_same = before is not None and before.space == space
        self._use_spaces(
            space, *(() if before is None else (before.space,)), *self._candidate_spaces()
        )
        if not is_same:
            embedder.embed([_PROBE], self._is_outdated)
        traits = self._measurements.of(embedder)
        self._answering = _Answering(embedder, space, traits)
        self._use_spaces(space, *self._candidate_spaces())
        if self._thread is not None and self._candidate_spaces():
            self._measurements.try_new(self._embedders.active)
        elif traits is not None and not traits.is_current:
            self._measurements.try_new(lambda: embedder)
            self._answering = _Answering(embedder, space, self._measurements.of(embedder))
        else:
            self._measurements.reset()

    def _share_once_loaded(self, space: Space) -> float:
        """Return the share of a space, raising IndexUnavailable while its vectors are loaded."""
        if space not in self._considered_spaces:
            self._considered_spaces = (*self._considered_spaces, space)
        share = self.covered_share(space)
        is_first = space == self._considered_spaces[0]
        if is_first and self._thread is not None and not self._holds_all(space):
            raise IndexUnavailable(f"The vectors of “{space.name}” are being loaded")
        return share

    def _candidate_spaces(self) -> tuple[Space, ...]:
        """The spaces between which the choice is open, none once it is made."""
        is_over = self._settings.text("embedder") == self._settings.text("embedder_before")
        return () if is_over else self._considered_spaces

    def _use_spaces(self, *spaces: Space) -> None:
        wanted = tuple(dict.fromkeys(spaces))
        if wanted != self._used_spaces:
            self._sync.use(wanted)
            self._used_spaces = wanted

    def _index(self, space: Space) -> ExactVectorIndex | None:
        index = self._sync.index_for(space)
        if self._thread is None and not self._stopping.is_set():
            self._sync.catch_up()
            index = self._sync.index_for(space)
        if index is None:
            self._used_spaces = ()  # reading it made the space be loaded, so it is declared again
        return index

    def _query_tokens(
        self, answering: _Answering, tokens: TokenVectors | None
    ) -> QueryTokens | None:
        """Return a question's tokens with their index, None while there is none."""
        embedder = token_embedder(answering.embedder)
        if tokens is None or embedder is None or self._tokens is None:
            return None
        index = self._tokens.index_for(answering.space, embedder.token_model)
        if index is None:
            return None
        return QueryTokens(tokens.spans, tokens.vectors, index, embedder.unrelated_tokens)

    def _set_problem(self, error: KnownError) -> None:
        if self._problem != str(error):
            _log.warning("search by meaning waits: %s", error)
        self._problem = str(error)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            wait_s = self._look_again_s
            try:
                self._update_answering()
                self._problem = ""
                if self._is_loaded():
                    self._notify_settled()
                else:
                    wait_s = _MIN_INTERVAL_S
            except KnownError as error:
                if not self._is_outdated() and not isinstance(error, Cancelled):
                    self._set_problem(error)
                    self._answering = None
                if not isinstance(error, IndexUnavailable):  # its vectors are still being loaded
                    self._notify_settled()
            except Exception:  # noqa: BLE001 - search goes by words; the thread must live
                if not self._stopping.is_set():
                    _log.exception("search by meaning could not be prepared")
            self._stopping.wait(_MIN_INTERVAL_S)
            self._wake.wait(wait_s)

    def _is_loaded(self) -> bool:
        """Return whether the answering space can be searched, or holds no vector yet."""
        answering = self._answering
        return answering is None or answering.traits is None or self._holds_all(answering.space)

    def _holds_all(self, space: Space) -> bool:
        index = self._sync.index_for(space)
        # An empty index may be from before the first vector was written.
        return index is not None and bool(
            index.passage_count or not self._vectors.count(space.name)[0]
        )

    def _notify_settled(self) -> None:
        self._settled.set()
        notify, self._once_settled = self._once_settled, lambda: None
        if not self._stopping.is_set():
            notify()

    def _is_outdated(self) -> bool:
        """Whether the program ends, or another embedder was chosen meanwhile."""
        return self._stopping.is_set() or self._settings.text("embedder") != self._chosen

    def _on_changed(self, changed: ChangeSet) -> None:
        if changed.settings & _RELEVANT_SETTINGS or changed.providers or changed.vectors:
            self._wake.set()


def _reads(embedder: Embedder, question: str) -> bool:
    """Return whether an embedder knows the script of a question, as far as that is known."""
    return not isinstance(embedder, LocalEmbedder) or embedder.reads(question)
