"""All workers together: on and off, hosted, woken by what is written, drained, warned about."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from app.domain.errors import NotFound
from app.domain.events import Changed
from app.domain.ids import ConversationId
from app.domain.workers import FailedItem, WorkerName, WorkerState, WorkerStatus
from app.storage.attempts import Attempts
from app.storage.failed_items import FailedItems
from app.storage.part_notes import PartNotes
from app.storage.settings import Settings
from app.storage.spending import Spending
from app.storage.store import Store
from app.storage.summary_work import SummaryWork
from app.system.manual import Manual
from app.workers.background_model import AsksModel
from app.workers.clock import Clock, SystemClock
from app.workers.conversation_summarizer import ConversationSummarizer
from app.workers.courtesy import Courtesy
from app.workers.embedding_pipeline import ActiveEmbedder, EmbeddingPipeline
from app.workers.exchange_summarizer import ExchangeSummarizer
from app.workers.fact_engines import ChosenEngine, FactEngine, ModelEngine, PatternEngine
from app.workers.job import Job
from app.workers.knowledge_extractor import KnowledgeExtractor
from app.workers.machine import StatusListener, Worker
from app.workers.man_indexer import ManIndexer
from app.workers.model_summariser import ModelSummariser
from app.workers.open_conversation import OpenConversation
from app.workers.spend_guard import SpendGuard
from app.workers.summariser import ChosenSummariser, ExtractiveSummariser, Summariser
from app.workers.tool_lines import ToolLines
from app.workers.tool_summarizer import ToolSummarizer
from app.workers.verdicts import Jitter, full_jitter
from app.workers.wording import CALLED, wait_words

Host = Callable[[Callable[[], None]], None]

ENABLED_KEYS: Mapping[WorkerName, str] = {
    WorkerName.EXCHANGE_SUMMARIZER: "summarizer_exchange_enabled",
    WorkerName.CONVERSATION_SUMMARIZER: "summarizer_conversation_enabled",
    WorkerName.EMBEDDING_PIPELINE: "embedding_pipeline_enabled",
    WorkerName.KNOWLEDGE_EXTRACTOR: "knowledge_extractor_enabled",
    WorkerName.TOOL_SUMMARIZER: "tool_summarizer_enabled",
    WorkerName.MAN_INDEXER: "index_man_enabled",
}
_OFF_AT_START = (WorkerName.MAN_INDEXER,)
_OFF_BY_DEFAULT = (*_OFF_AT_START, WorkerName.TOOL_SUMMARIZER)  # which is nothing to warn of
_LOOK_EVERY_S = 0.1


@dataclass(slots=True)
class _Run:
    """One hosting of a worker's loop."""

    stop: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)


class WorkerBoard:
    """The workers of one store. Thread-safe; only what says so blocks.

    Built with the workers there are, or with `jobs` of the caller's making; `model` is for those that
    may ask one, `guard` keeps them all under the caps. It does nothing until `start` gives it a host, or `run_until_idle` a thread.

    Attributes:
        embedding: The embedding pipeline; None without `embedder`, which says what to embed with.
        courtesy: What has workers, and who else keeps the interpreter, give way to the window.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        jobs: Sequence[Job[Any, Any]] | None = None,
        clock: Clock | None = None,
        jitter: Jitter = full_jitter,
        *,
        embedder: ActiveEmbedder | None = None,
        model: AsksModel | None = None,
        guard: SpendGuard | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._opened = OpenConversation(SummaryWork(store), settings)
        self._clock = clock or SystemClock()
        self.courtesy = Courtesy(self._clock)
        self.embedding = embedder and EmbeddingPipeline(store, settings, embedder, guard=guard)
        if jobs is None:
            jobs = (
                *summarisers(store, settings, self._opened, model),
                extractor(store, self._opened, embedder, model),
                ToolSummarizer(store, ToolLines(model), self._opened),
                ManIndexer(store, Manual()),
            )
        if self.embedding is not None:
            jobs = (*jobs, self.embedding)
        self._workers = {job.name: self._worker_for(job, jitter) for job in jobs}
        if self.embedding is not None:
            self.embedding.is_stopping = self._workers[self.embedding.name].is_stopping
        self._lock = threading.Lock()
        self._host: Host | None = None
        self._runs: dict[WorkerName, _Run] = {}
        self._listeners: list[StatusListener] = []
        self._unsubscribe: Callable[[], None] | None = None
        self._last_wake = object()

    # -- on and off

    def start(self, host: Host) -> None:
        """Run what is switched on, each in a thread that `host` gives it; blocking for a moment.

        `host` takes a function that returns when its worker is stopped; it is called from any
        thread and must return at once.
        """
        for name in _OFF_AT_START:
            if name in self._workers and self._settings.flag(ENABLED_KEYS[name]):
                self._settings.set(ENABLED_KEYS[name], False)
        with self._lock:
            self._host = host
        self._listen()
        for name in self._workers:
            self._follow(name)

    def set_enabled(self, name: WorkerName, on: bool) -> None:
        """Switch a worker on or off, now and at every later start; blocking.

        Off, it stops within 3 s, in the middle of an item too. Raises NotFound.
        """
        worker = self._worker(name)
        self._settings.set(ENABLED_KEYS[name], on)
        self._follow(name)
        worker.refresh()

    def stop(self, timeout_s: float = 3.0) -> tuple[WorkerName, ...]:
        """Stop all workers; return those that have not ended in time. Blocking; `start` may follow."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        with self._lock:
            self._host = None
            runs = dict(self._runs)
        return self._end(runs, timeout_s)

    # -- looking on

    def statuses(self) -> tuple[WorkerStatus, ...]:
        """Return the newest status of each worker; never waits.

        The numbers of one that does not run are as old as its last run or `refresh`.
        """
        return tuple(worker.status() for worker in self._workers.values())

    def refresh(self) -> tuple[WorkerStatus, ...]:
        """Return the same, with the numbers of those that do not run asked anew; blocking."""
        return tuple(worker.refresh() for worker in self._workers.values())

    def subscribe(self, listener: StatusListener) -> Callable[[], None]:
        """Tell `listener` every status from now on; return what ends that.

        It is called on the workers' threads, for `refresh` on the caller's, and must return at once.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def failures(self, name: WorkerName, limit: int = 200) -> Sequence[FailedItem]:
        """Return a worker's retry queue, the next try first, what was set aside last; blocking."""
        return FailedItems(self._store).of(name, limit)

    def warnings(self, names: Collection[WorkerName] | None = None) -> tuple[str, ...]:
        """Return what the user should know of workers (None: all), in sentences; never waits."""
        waiting: dict[str, list[str]] = {}
        words: list[str] = []
        for name, worker in self._workers.items():
            if names is None or name in names:
                status = worker.status()
                words += _warnings_about(worker, status)
                if status.enabled and status.state is WorkerState.BLOCKED:
                    waiting.setdefault(status.blocked_by, []).append(CALLED[name].label)
        return (*(wait_words(who, why) for why, who in waiting.items()), *words)

    # -- steering

    def conversation_opened(self, conversation_id: ConversationId | None) -> None:
        """Note which conversation the window shows; the one left may be summarised; never waits."""
        left, self._opened.id = self._opened.id, conversation_id
        if left is not None and left != conversation_id:
            self.wake()

    def wake(self, names: Collection[WorkerName] | None = None) -> None:
        """Make workers (None: all) look for work at once, blocked ones too; never waits."""
        self._last_wake = object()
        for name, worker in self._workers.items():
            if names is None or name in names:
                worker.wake()

    def run_now(self, name: WorkerName) -> None:
        """Make a worker look for work at once, and try again what waits for that; blocking.

        Raises NotFound.
        """
        self._last_wake = object()
        self._worker(name).run_now()

    def retry_set_aside(self, name: WorkerName, item_ids: Collection[int] | None = None) -> None:
        """Try again at once what a worker failed at (None: all of it); blocking. Raises NotFound."""
        worker = self._worker(name)
        worker.retry_set_aside(item_ids)
        worker.refresh()

    def run_until_idle(
        self,
        names: Collection[WorkerName] | None = None,
        is_cancelled: Callable[[], bool] = lambda: False,
        on_status: StatusListener = lambda _: None,
    ) -> tuple[WorkerStatus, ...]:
        """Run workers (None: those switched on) until nothing is left to do; return their statuses.

        What was set aside after failing, or waits for the user, does not keep it from ending. A
        worker that is hosted already goes on there; the others get a thread until the end.
        `on_status` is called on the calling thread. Blocking. Raises NotFound.
        """
        chosen = [self._worker(name) for name in names or self._enabled()]
        news: dict[WorkerName, WorkerStatus] = {}
        arrived = threading.Event()

        def take(status: WorkerStatus) -> None:
            news[status.name] = status
            arrived.set()

        unsubscribe = self.subscribe(take)
        was_listening = self._unsubscribe is not None
        self._listen()
        runs = self._run_here([worker for worker in chosen if not self._is_hosted(worker.name)])
        self.wake([worker.name for worker in chosen])
        try:
            while not is_cancelled() and not self._are_drained(chosen):
                self._tell_news(news, on_status)
                arrived.wait(_LOOK_EVERY_S)
                arrived.clear()
            self._tell_news(news, on_status)  # before they say that they have stopped
        finally:
            self._end(runs, timeout_s=3.0)
            unsubscribe()
            if not was_listening and self._unsubscribe is not None:
                self._unsubscribe()
                self._unsubscribe = None
        self._tell_news(news, on_status)
        return tuple(worker.refresh() for worker in chosen)

    # -- inside

    def _worker_for(self, job: Job[Any, Any], jitter: Jitter) -> Worker[Any, Any]:
        worker = Worker(
            job,
            Attempts(self._store, job.name),
            is_enabled=partial(self._settings.flag, ENABLED_KEYS[job.name]),
            all_time=partial(Spending(self._store).all_time, job.name),
            clock=self._clock,
            jitter=jitter,
            spent_since=partial(Spending(self._store).on, job.name),
        )
        worker.on_status = self._tell
        worker.give_way = self.courtesy.give_way
        return worker

    def _worker(self, name: WorkerName) -> Worker[Any, Any]:
        if (worker := self._workers.get(name)) is None:
            there_are = ", ".join(self._workers)
            raise NotFound(f"There is no worker '{name}'", f"There are: {there_are}.")
        return worker

    def _enabled(self) -> list[WorkerName]:
        return [name for name in self._workers if self._settings.flag(ENABLED_KEYS[name])]

    def _follow(self, name: WorkerName) -> None:
        """Make a worker run or stop as its setting says; never waits."""
        on = self._settings.flag(ENABLED_KEYS[name])
        worker = self._workers[name]
        with self._lock:
            run = self._runs.get(name)
            if on and self._host is not None and (run is None or run.stop.is_set()):
                run = self._runs[name] = _Run()
                self._host(partial(self._serve, worker, run))
            elif not on and run is not None:
                run.stop.set()
        worker.wake()

    def _serve(self, worker: Worker[Any, Any], run: _Run) -> None:
        try:
            worker.run(run.stop)
        finally:
            run.ended.set()

    def _is_hosted(self, name: WorkerName) -> bool:
        run = self._runs.get(name)
        return run is not None and not run.stop.is_set()

    def _run_here(self, workers: Sequence[Worker[Any, Any]]) -> dict[WorkerName, _Run]:
        runs = {worker.name: _Run() for worker in workers}
        for worker in workers:
            target = partial(self._serve, worker, runs[worker.name])
            threading.Thread(target=target, name=worker.name, daemon=True).start()
        return runs

    def _end(self, runs: Mapping[WorkerName, _Run], timeout_s: float) -> tuple[WorkerName, ...]:
        for name, run in runs.items():
            run.stop.set()
            self._workers[name].wake()
        deadline = self._clock.monotonic() + timeout_s
        return tuple(
            name
            for name, run in runs.items()
            if not run.ended.wait(max(0.0, deadline - self._clock.monotonic()))
        )

    def _listen(self) -> None:
        if self._unsubscribe is None:
            self._unsubscribe = self._store.subscribe(self._on_changed)

    def _on_changed(self, changed: Changed) -> None:
        """Wake whom a write concerns; on the writer thread."""
        self._last_wake = object()
        for name, worker in self._workers.items():
            if ENABLED_KEYS[name] in changed.settings:
                self._follow(name)
            elif worker.wakes_for(changed):
                worker.wake()

    def _are_drained(self, workers: Sequence[Worker[Any, Any]]) -> bool:
        """Whether all rest; one that woke another while they were asked makes it untrue."""
        wake = self._last_wake
        return all(worker.is_drained for worker in workers) and wake is self._last_wake

    def _tell(self, status: WorkerStatus) -> None:
        for listener in tuple(self._listeners):
            listener(status)

    def _tell_news(self, news: dict[WorkerName, WorkerStatus], listener: StatusListener) -> None:
        for name in tuple(news):
            listener(news.pop(name))


def summarisers(
    store: Store, settings: Settings, opened: OpenConversation, model: AsksModel | None = None
) -> tuple[Job[Any, Any], ...]:
    """Return the jobs that write summaries; extractive ones where no `model` is given or chosen."""
    summariser: Summariser = ExtractiveSummariser()
    if model is not None:
        by_model = ModelSummariser(model, PartNotes(store))
        summariser = ChosenSummariser(lambda: bool(model.model), by_model)
    return (
        ExchangeSummarizer(store, settings, summariser, opened),
        ConversationSummarizer(store, settings, summariser, opened),
    )


def extractor(
    store: Store,
    opened: OpenConversation,
    embedder: ActiveEmbedder | None = None,
    model: AsksModel | None = None,
) -> KnowledgeExtractor:
    """Return the job that finds facts; by patterns where no `model` is given or chosen."""
    engine: FactEngine = PatternEngine()
    if model is not None:
        engine = ChosenEngine(lambda: bool(model.model), ModelEngine(model, PartNotes(store)))
    return KnowledgeExtractor(store, engine, opened, embedder)


def _warnings_about(worker: Worker[Any, Any], status: WorkerStatus) -> list[str]:
    label = CALLED[status.name].label
    waiting = status.total - status.done - status.set_aside
    words = []
    is_off = not status.enabled and status.name not in _OFF_BY_DEFAULT
    if waiting > 0 and is_off:
        words.append(f"{worker.waiting_words(waiting)}, {label} is off.")
    if status.set_aside:
        times = "item was" if status.set_aside == 1 else "items were"
        words.append(
            f"{status.set_aside:,} {times} set aside by {label} after failing too often; "
            "they can be tried again."
        )
    return words
