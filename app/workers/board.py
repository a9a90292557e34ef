"""All workers of a store: switching, hosting in threads, waking by changes, draining, warnings."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from app.domain.change_set import ChangeSet
from app.domain.errors import NotFound
from app.domain.ids import ConversationId
from app.domain.translation import tr, trn
from app.domain.workers import WORKERS, FailedItem, WorkerName, WorkerState, WorkerStatus
from app.storage.tables.attempts import Attempts, FailedItems
from app.storage.tables.spending import Spending
from app.workers.background_model import MODEL_KEYS
from app.workers.job_interface import Job, UiPriority
from app.workers.jobs import JobParts, build_jobs, embedding_pipeline
from app.workers.jobs.embedding_pipeline import EmbeddingPipeline
from app.workers.jobs.part_reader import READERS
from app.workers.loop import StatusListener, WorkerLoop
from app.workers.retries import Jitter, full_jitter
from app.workers.status_text import blocked_text, waiting_text

Host = Callable[[Callable[[], None]], None]

_LOOK_EVERY_S = 0.1
_MOST_FAILURES = 200


@dataclass(slots=True)
class _Run:
    """One hosting of a worker's loop."""

    stop: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)


class WorkerBoard:
    """The workers of one store. Thread-safe; methods that block say so.

    It has all workers, or those of `jobs`. Nothing runs before `start` or `run_until_idle`.

    Attributes:
        embedding: The embedding pipeline; None without `embedder`.
        ui_priority: Makes workers and other background work yield to the user.
    """

    def __init__(
        self,
        parts: JobParts,
        jobs: Sequence[Job[Any, Any]] | None = None,
        jitter: Jitter = full_jitter,
    ) -> None:
        self._store, self._settings, self._clock = parts.store, parts.settings, parts.clock
        self._open_conversation, self._reader = parts.open_conversation, parts.reader
        self.ui_priority = UiPriority(self._clock)
        if self._reader is not None:
            self._reader.on_stored = self.wake
        if jobs is None:
            jobs = build_jobs(parts)
        elif (pipeline := embedding_pipeline.build(parts)) is not None:
            jobs = (*jobs, pipeline)
        pipelines = (job for job in jobs if isinstance(job, EmbeddingPipeline))
        self.embedding: EmbeddingPipeline | None = next(pipelines, None)
        self._workers = {job.name: self._worker_for(job, jitter) for job in jobs}
        if self.embedding is not None:
            self.embedding.is_stopping = self._workers[self.embedding.name].is_stopping
        self._lock = threading.Lock()
        self._host: Host | None = None
        self._runs: dict[WorkerName, _Run] = {}
        self._busy: set[WorkerName] = set()
        self._listeners: list[StatusListener] = []
        self._unsubscribe: Callable[[], None] | None = None
        self._last_wake = object()
        enabled_keys = (WORKERS[name].enabled_key for name in self._workers)
        self._concerned = MODEL_KEYS.union(enabled_keys, *(job.wakes_on for job in jobs))

    # -- on and off

    def start(self, host: Host) -> None:
        """Run the workers that are on, each in a thread of `host`; blocks briefly.

        `host` is called on any thread with a function that returns when its worker is stopped, and
        must return at once.
        """
        for name in self._workers:
            key = WORKERS[name].enabled_key
            if WORKERS[name].off_at_start and self._settings.flag(key):
                self._settings.set(key, False)
        with self._lock:
            self._host = host
        self._listen()
        for name in self._workers:
            self._follow(name)

    def set_enabled(self, name: WorkerName, on: bool) -> None:
        """Switch a worker on or off, also for later starts; blocking.

        Switched off, it stops within 3 s, even during an item. Raises NotFound.
        """
        worker = self._worker(name)
        self._settings.set(WORKERS[name].enabled_key, on)
        self._follow(name)
        worker.refresh()

    def stop(self, timeout_s: float = 3.0) -> tuple[WorkerName, ...]:
        """Stop all workers; return those that did not end in time. Blocking; `start` may follow."""
        self._stop_listening()
        with self._lock:
            self._host = None
            runs = dict(self._runs)
        return self._end(runs, timeout_s)

    # -- status

    def statuses(self) -> tuple[WorkerStatus, ...]:
        """Return the newest status of each worker; never waits.

        The counts of a stopped worker are as of its last run or `refresh`.
        """
        return tuple(worker.status() for worker in self._workers.values())

    def refresh(self) -> tuple[WorkerStatus, ...]:
        """Return the statuses with new counts of the stopped workers; blocking."""
        return tuple(worker.refresh() for worker in self._workers.values())

    def subscribe(self, listener: StatusListener) -> Callable[[], None]:
        """Call `listener` with every new status; return a function that ends that.

        It is called on the workers' threads, for `refresh` on the caller's, and must return at once.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def failures(self, name: WorkerName) -> Sequence[FailedItem]:
        """Return a worker's retry queue, the next try first, abandoned items last; blocking."""
        return FailedItems(self._store).of(name, _MOST_FAILURES)

    def warnings(self, names: Collection[WorkerName] | None = None) -> tuple[str, ...]:
        """Return warnings about workers (None: all) as sentences; never waits."""
        waiting: dict[str, list[WorkerName]] = {}
        warnings: list[str] = []
        for name, worker in self._workers.items():
            if names is None or name in names:
                status = worker.status()
                warnings += _warnings_about(status)
                if status.enabled and status.state is WorkerState.BLOCKED:
                    waiting.setdefault(status.blocked_by, []).append(name)
        return (*(blocked_text(who, why) for why, who in waiting.items()), *warnings)

    # -- steering

    def set_open_conversation(self, conversation_id: ConversationId | None) -> None:
        """Set the open conversation; the one before may now be summarized; never waits."""
        left, self._open_conversation.id = self._open_conversation.id, conversation_id
        if left is not None and left != conversation_id:
            self.wake()

    def wake(self, names: Collection[WorkerName] | None = None) -> None:
        """Make workers (None: all) look for work now, blocked ones too; never waits."""
        self._last_wake = object()
        for name, worker in self._workers.items():
            if names is None or name in names:
                worker.wake()

    def run_now(self, name: WorkerName) -> None:
        """Make a worker look for work now, and retry what waits for its next try; blocking.

        Raises NotFound.
        """
        self._last_wake = object()
        self._worker(name).run_now()

    def retry_failed(self, name: WorkerName, item_ids: Collection[int] | None = None) -> None:
        """Retry failed items of a worker now (None: all of them); blocking. Raises NotFound."""
        worker = self._worker(name)
        worker.retry_failed(item_ids)
        worker.refresh()

    def run_until_idle(
        self,
        names: Collection[WorkerName] | None = None,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> tuple[WorkerStatus, ...]:
        """Run workers (None: those that are on) until no work is left; return their statuses.

        Abandoned items and work that waits for the user are left. A worker that is hosted already
        goes on there; the others get a thread until the end. Blocking. Raises NotFound.
        """
        on = [name for name in self._workers if self._settings.flag(WORKERS[name].enabled_key)]
        chosen = [self._worker(name) for name in names or on]
        arrived = threading.Event()
        unsubscribe = self.subscribe(lambda _: arrived.set())
        was_listening = self._unsubscribe is not None
        self._listen()
        hosted = {name for name, run in self._runs.items() if not run.stop.is_set()}
        here = [worker for worker in chosen if worker.name not in hosted]
        runs = {worker.name: _Run() for worker in here}
        for worker in here:
            self._note_running(worker.name)
        for worker in here:
            given = (worker, runs[worker.name])
            threading.Thread(target=self._serve, args=given, name=worker.name, daemon=True).start()
        self.wake([worker.name for worker in chosen])
        try:
            while not (is_drained := self._are_drained(chosen)) and not is_cancelled():
                arrived.wait(_LOOK_EVERY_S)
                arrived.clear()
        finally:
            self._end(runs, timeout_s=3.0)
            unsubscribe()
            if not was_listening:
                self._stop_listening()
        return tuple(worker.status() if is_drained else worker.refresh() for worker in chosen)

    # -- inside

    def _worker_for(self, job: Job[Any, Any], jitter: Jitter) -> WorkerLoop[Any, Any]:
        worker = WorkerLoop(
            job,
            Attempts(self._store, job.name),
            is_enabled=partial(self._settings.flag, WORKERS[job.name].enabled_key),
            totals=partial(Spending(self._store).totals, job.name),
            clock=self._clock,
            jitter=jitter,
        )
        worker.on_status = self._publish
        worker.throttle = self.ui_priority.throttle
        return worker

    def _worker(self, name: WorkerName) -> WorkerLoop[Any, Any]:
        if (worker := self._workers.get(name)) is None:
            raise NotFound(
                f"There is no worker '{name}'", f"There are: {', '.join(self._workers)}."
            )
        return worker

    def _follow(self, name: WorkerName) -> None:
        """Start or stop a worker according to its setting; never waits."""
        worker = self._workers[name]
        with self._lock:
            on = self._settings.flag(WORKERS[name].enabled_key)
            run = self._runs.get(name)
            if on and self._host is not None and (run is None or run.stop.is_set()):
                run = self._runs[name] = _Run()
                self._note_running(name)
                self._host(partial(self._serve, worker, run))
            elif not on and run is not None:
                run.stop.set()
        worker.wake()

    def _serve(self, worker: WorkerLoop[Any, Any], run: _Run) -> None:
        try:
            worker.run(run.stop)
        finally:
            if self._reader is not None and worker.name in READERS:
                self._reader.running.end(worker.name)
                self.wake(READERS)  # one of the others asks the model now
            run.ended.set()

    def _note_running(self, name: WorkerName) -> None:
        if self._reader is not None and name in READERS:
            self._reader.running.start(name)

    def _end(self, runs: Mapping[WorkerName, _Run], timeout_s: float) -> tuple[WorkerName, ...]:
        for name, run in runs.items():
            run.stop.set()
            self._workers[name].wake()
        end, left = self._clock.monotonic() + timeout_s, self._clock.monotonic
        return tuple(n for n, run in runs.items() if not run.ended.wait(max(0.0, end - left())))

    def _listen(self) -> None:
        if self._unsubscribe is None:
            self._unsubscribe = self._store.subscribe(self._on_changed)

    def _stop_listening(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _on_changed(self, changed: ChangeSet) -> None:
        """Wake the workers that a change concerns; on the writer thread."""
        if not changed.settings & self._concerned and changed == ChangeSet(
            settings=changed.settings
        ):
            return  # settings that no worker uses
        self._last_wake = object()
        for name, worker in self._workers.items():
            if WORKERS[name].enabled_key in changed.settings:
                self._follow(name)
            else:
                worker.follow(changed)

    def _are_drained(self, workers: Sequence[WorkerLoop[Any, Any]]) -> bool:
        """Return whether all are drained, and none woke another meanwhile."""
        wake = self._last_wake
        return all(worker.is_drained for worker in workers) and wake is self._last_wake

    def _publish(self, status: WorkerStatus) -> None:
        if status.state is WorkerState.RUNNING:
            self._busy.add(status.name)
        elif status.state is WorkerState.IDLE and status.name in self._busy:
            self._busy.discard(status.name)
            self.wake([name for name in self._workers if WORKERS[name].follows is status.name])
        for listener in tuple(self._listeners):
            listener(status)


def _warnings_about(status: WorkerStatus) -> list[str]:
    spec = WORKERS[status.name]
    waiting = status.total - status.done - status.abandoned
    warnings = []
    if waiting > 0 and not status.enabled and spec.is_on_by_default:
        warnings.append(
            tr("{waiting_text}: {label} is off.").format(
                waiting_text=waiting_text(status.name, waiting), label=tr(spec.label)
            )
        )
    if status.abandoned:
        warnings.append(
            tr(
                "{abandoned} failed too often and will not be retried by {label} unless you ask for it."
            ).format(
                abandoned=trn("{count} item", "{count} items", status.abandoned),
                label=tr(spec.label),
            )
        )
    return warnings
