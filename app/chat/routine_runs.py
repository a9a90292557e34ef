"""Runs of routines: each is a turn in the routine's conversation, stored with its record.

A run has a segment of its own and sees the last completed runs, the core memory and the request;
nothing is recalled by itself, and only tools that neither write nor ask are offered.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from app.chat.exchange_loop import ExchangeLoop
from app.chat.models import ModelDirectory
from app.chat.planner import ExchangePlan, NewConversation, Planner, Unattended
from app.chat.presets import Presets
from app.chat.reply import STOPPED
from app.domain.changes import Change, RoutineRunPut, SpendAdded
from app.domain.chat import ChatRequest, ModelRef, UsageReported
from app.domain.conversations import Exchange, ExchangeStatus, Text
from app.domain.errors import (
    ConnectionLost,
    InvalidInput,
    KnownError,
    RateLimited,
    ServerFailed,
    ServerLoading,
    ServerOverloaded,
    StorageError,
    TimedOut,
    Unreachable,
)
from app.domain.records.routines import Routine, RoutineRun, RunOutcome
from app.domain.translation import in_english, month_start
from app.domain.workers import WorkerName
from app.providers.registry import ProviderRegistry
from app.providers.vendors.recall import RECALL
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.routines import RoutineRows
from app.storage.tables.settings import Settings
from app.workers.background_model import consent
from app.workers.spend_limits import MaxUsage, SpendLimits

_POLL_S = 0.2
_LEAVES_S = 2.0
_SLACK = 1.3  # tokens are estimated
_USUAL_OUTPUT_TOKENS = 4_096  # of a model that is given no maximum
_PASSING = frozenset(
    each.kind
    for each in (
        ConnectionLost,
        RateLimited,
        ServerFailed,
        ServerLoading,
        ServerOverloaded,
        TimedOut,
        Unreachable,
    )
)
Settle = Callable[[Sequence[SpendAdded]], Sequence[Change]]


class RoutineRuns:
    """Runs routines, each at most once at a time. Thread-safe; blocking."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        chat: ExchangeLoop,
        models: ModelDirectory,
        registry: ProviderRegistry,
        limits: SpendLimits,
        get_ready: Callable[[str, Callable[[], bool]], None] = lambda _text, _is_cancelled: None,
    ) -> None:
        """Call `get_ready` with the prompt before each run, so that history can be searched."""
        self._get_ready = get_ready
        self._settings = settings
        self._store = store
        self._chat = chat
        self._models = models
        self._registry = registry
        self._limits = limits
        self._presets = Presets(store, settings)
        self._rows = RoutineRows(store)
        self._exchanges = Exchanges(store)
        self._changed = threading.Condition()
        self._running: set[str] = set()

    def model_of(self, routine: Routine) -> ModelRef:
        """Return the model of a routine's next run: its own, its preset's or the default."""
        preset = self._presets.resolve(routine.preset)
        return ModelRef.parse(routine.model or preset.model or self._settings.text("default_model"))

    def sent_to(self, ref: ModelRef) -> tuple[str, str]:
        """Return the base URL that a model's prompts go to and the consent to that.

        Both are "" for a model on this computer. Raises NotFound, InvalidInput.
        """
        if ref.provider == RECALL:
            return "", ""
        config = self._registry.config(ref.provider)
        base_url = config.url()
        return ("", "") if base_url.is_loopback else (base_url.text, consent(ref, config))

    def is_running(self, uid: str) -> bool:
        """Return whether a run of a routine is under way; never blocks."""
        return uid in self._running

    def run(
        self,
        routine: Routine,
        due_at: datetime,
        is_cancelled: Callable[[], bool] = lambda: False,
        *,
        is_manual: bool = False,
        may_retry: bool = False,
    ) -> RoutineRun:
        """Run a routine, or go on with its run of that due time; return the record at the end.

        It is unfinished if it was cancelled, or failed for a passing reason and `may_retry`. Raises
        InvalidInput while a run, or another reply in the conversation, is under way, and
        StorageError.
        """
        with self._only_one(routine):
            record = RoutineRun(routine.uid, due_at, now(), is_manual=is_manual)
            try:
                self._check_consent(routine)
                self._get_ready(routine.prompt, is_cancelled)
                running = _RunningRoutine(self, routine, record, is_cancelled, may_retry)
                reply = self._chat.start(running.plan).result()
                while not reply.done.done():
                    if is_cancelled():
                        reply.stop()
                    reply.drain()
                    reply.wait(_POLL_S)
                reply.done.result()
            except (StorageError, _Busy):
                raise
            except KnownError as error:  # it could not even begin
                with in_english():
                    why = f"{error.title}\n{error.hint}"
                known = self._rows.run_at(routine.uid, due_at) or record
                failed = replace(known, finished_at=now(), outcome=RunOutcome.FAILED, why=why)
                self._store.save(RoutineRunPut(failed))
                return failed
            return running.record

    @contextmanager
    def _only_one(self, routine: Routine) -> Iterator[None]:
        with self._changed:
            # The last run's record is stored a moment before it leaves.
            if not self._changed.wait_for(lambda: routine.uid not in self._running, _LEAVES_S):
                raise _Busy(f"The routine '{routine.name}' is running", "Wait until it has ended.")
            self._running.add(routine.uid)
        try:
            yield
        finally:
            with self._changed:
                self._running.discard(routine.uid)
                self._changed.notify_all()

    def _check_consent(self, routine: Routine) -> None:
        ref = self.model_of(routine)
        server, needed = self.sent_to(ref)
        if needed and needed != routine.agreed_to:
            raise InvalidInput(
                f"'{ref}' at {server} is not what you agreed to for the routine '{routine.name}'",
                "Save the routine again to send it there, or choose another model.",
            )

    # -- for `_RunningRoutine`

    def planned(
        self, planner: Planner, routine: Routine, record: RoutineRun
    ) -> tuple[ExchangePlan, RoutineRun]:
        """Return the plan of a run and its record; a run that was interrupted goes on."""
        known = self._rows.run_at(routine.uid, record.due_at)
        if known is not None and known.exchange_id is not None:
            plan, record = planner.retry(known.exchange_id), replace(known, outcome=None)
        else:
            ref, preset = self.model_of(routine), self._presets.resolve(routine.preset)
            new = NewConversation(
                str(ref), routine.is_private, preset=preset.uid, project=routine.project,
                title=routine.name,
            )  # fmt: skip
            place = self._rows.conversation_id(routine)
            if place is not None and self._chat.running(place) is not None:
                raise _Busy("A reply is running in the routine's conversation", "Wait for its end.")
            plan = planner.send(place, (Text(routine.prompt),), new, in_own_segment=True)
            record = replace(
                record, conversation_id=plan.conversation.id, exchange_id=plan.exchange.id
            )
        count = self._settings.number("context_subagent_history")
        ids = self._rows.completed(routine.uid, plan.conversation.id, count)
        found = self._exchanges.by_ids(ids)
        past = (found[each] for each in ids if each in found and each != plan.exchange.id)
        return replace(plan, segment=(*past, plan.exchange)), record

    def admit(self, routine: Routine, request: ChatRequest) -> Settle:
        """Reserve the cost of a request; raise KnownError when a limit forbids it."""
        ref = ModelRef(self.model_of(routine).provider, request.model)
        if ref.provider == RECALL:
            return lambda spent: spent
        tokens = round(self._models.usage.input_tokens(ref, request) * _SLACK)
        output = request.max_output_tokens or _USUAL_OUTPUT_TOKENS
        written = UsageReported(tokens, output, cache_write_tokens=tokens)
        most_usd, _ = self._models.price_of(ref, written)
        self._check_cap(routine, ref, most_usd)
        reservation = self._limits.reserve(
            WorkerName.ROUTINE_RUNNER, str(ref), MaxUsage(tokens, output, most_usd)
        )

        def settle(spent: Sequence[SpendAdded]) -> Sequence[Change]:
            if not spent:
                return (self._limits.dropped(reservation),)
            held = replace(spent[0], held=reservation.uid)
            self._limits.settle(reservation, held)
            return (held, *spent[1:])

        return settle

    def _check_cap(self, routine: Routine, ref: ModelRef, most_usd: float | None) -> None:
        if routine.cap_usd is None or most_usd == 0:
            return
        if most_usd is None:
            raise InvalidInput(
                f"The price of {ref} is unknown, so the limit of the routine cannot be kept",
                f"Enter its price with 'commonplace price set {ref} INPUT OUTPUT', or remove the limit.",
            )
        spent_usd = self._rows.spent_usd(routine.uid, month_start(now()))
        if spent_usd + most_usd > routine.cap_usd:
            raise InvalidInput(
                f"The routine could exceed its limit of ${routine.cap_usd:,.2f} a month: "
                f"${spent_usd:,.2f} are spent, the next request may cost ${most_usd:,.2f}",
                "Raise the limit, or wait until next month.",
            )


class _Busy(InvalidInput):
    """Another reply is under way: the run has to wait."""


class _RunningRoutine:
    """One run under way: its record, and what the exchange loop asks for it."""

    def __init__(
        self,
        runs: RoutineRuns,
        routine: Routine,
        record: RoutineRun,
        is_cancelled: Callable[[], bool],
        may_retry: bool,
    ) -> None:
        self.record = record
        self._runs, self._routine = runs, routine
        self._is_cancelled, self._may_retry = is_cancelled, may_retry

    def plan(self, planner: Planner) -> ExchangePlan:
        """Return the plan; its record is stored with the exchange."""
        plan, self.record = self._runs.planned(planner, self._routine, self.record)
        unattended = Unattended(
            WorkerName.ROUTINE_RUNNER,
            lambda request: self._runs.admit(self._routine, request),
            self._ends,
        )
        changes = (*plan.changes, RoutineRunPut(self.record))
        return replace(plan, changes=changes, unattended=unattended)

    def _ends(self, exchange: Exchange) -> Sequence[Change]:
        problem = exchange.problem
        if exchange.status is ExchangeStatus.COMPLETED:
            outcome, why = RunOutcome.COMPLETED, ""
        elif problem is None or problem.kind == STOPPED.kind:
            outcome, why = RunOutcome.INTERRUPTED, "" if problem is None else problem.title
            if self._is_cancelled():
                return ()
        else:
            outcome, why = RunOutcome.FAILED, f"{problem.title}\n{problem.hint}"
            if self._may_retry and problem.kind in _PASSING:
                return ()
        self.record = replace(
            self.record, finished_at=exchange.completed_at, outcome=outcome, why=why
        )
        return (RoutineRunPut(self.record),)
