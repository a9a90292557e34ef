"""Exchange loop: exchanges are started, run, stopped and stored on one thread.

The window and the command line share it. Each request returns a future of a `Reply` that resolves
when the user's text is durable; the reply then runs by itself.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from app.chat.context_fetcher import ContextFetcher
from app.chat.history import HistoryReader
from app.chat.models import ChatModels
from app.chat.planner import ExchangePlan, NewConversation, Planner
from app.chat.presets import Presets
from app.chat.projects import Projects
from app.chat.reply import Reply
from app.chat.request_builder import RequestBuilder
from app.chat.running_exchange import Prepare, RunningExchange
from app.chat.tools.toolbox import Toolbox
from app.domain.conversations import ANY_RECALL, Block, Exchange, RecallChoice
from app.domain.errors import InvalidInput, StorageError
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.memory.core_memory import CoreMemoryService
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings

T = TypeVar("T")
_log = logging.getLogger(__name__)
_STOP_TIMEOUT_S = 3.0


class ExchangeLoop:
    """Runs exchanges, at most one at a time in a conversation. Thread-safe."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        models: ChatModels,
        prepare: Prepare | None = None,
        toolbox: Toolbox | None = None,
    ) -> None:
        """Send what `prepare` returns for a plan; by default a context plan without recall.

        Models may call the tools of `toolbox`; by default none.
        """
        self._store = store
        self._settings = settings
        self._models = models
        self._toolbox = toolbox or Toolbox(())
        self._prepare = prepare or RequestBuilder(
            settings,
            models.context_tokens,
            HistoryReader(store),
            ContextFetcher(store, CoreMemoryService(store, settings)),
            self._toolbox,
            Presets(store, settings),
            Projects(store),
        )
        self._running: dict[ConversationId, Reply] = {}
        self._choices: dict[ExchangeId, RecallChoice] = {}
        self._planner = Planner(store, settings)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._planning = asyncio.Lock()
        self._is_closing = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="exchanges", daemon=True)
        self._thread.start()

    # -- requests; each future resolves when the user's text is durable

    def send(
        self,
        conversation_id: ConversationId | None,
        blocks: tuple[Block, ...],
        new: NewConversation = NewConversation(),  # noqa: B008 - a value that cannot change
        choice: RecallChoice = ANY_RECALL,
    ) -> "Future[Reply]":
        """Send the draft of a conversation, or (None) of a `new` one.

        Its model and preset become those of a stored one too; `choice` is what memory may bring to the
        message. Fails with InvalidInput when the message is empty or a reply is running there,
        NotFound, StorageError.
        """
        return self._start(
            lambda: replace(
                self._planner.send(conversation_id, blocks, new, was_draft=True), choice=choice
            )
        )

    def edit(
        self,
        exchange_id: ExchangeId,
        message_id: MessageId,
        blocks: tuple[Block, ...],
        choice: RecallChoice = ANY_RECALL,
    ) -> "Future[Reply]":
        """Replace a user message on a new branch, and answer it."""
        return self._start(
            lambda: replace(self._planner.edit(exchange_id, message_id, blocks), choice=choice)
        )

    def regenerate(self, exchange_id: ExchangeId, model: str | None = None) -> "Future[Reply]":
        """Answer the same question on a new branch, with another model if given."""
        return self._start(
            lambda: self._as_chosen(self._planner.regenerate(exchange_id, model), exchange_id)
        )

    def retry(self, exchange_id: ExchangeId) -> "Future[Reply]":
        """Run a failed exchange again; one that has text already is continued."""
        return self._start(lambda: self._as_chosen(self._planner.retry(exchange_id), exchange_id))

    def start(self, plan: Callable[[Planner], ExchangePlan]) -> "Future[Reply]":
        """Run the exchange that a function plans, such as one that no user began."""
        return self._start(lambda: plan(self._planner))

    def _as_chosen(self, plan: ExchangePlan, exchange_id: ExchangeId) -> ExchangePlan:
        """Return a plan with the recall choice of its exchange, if made in this process."""
        return replace(plan, choice=self._choices.get(exchange_id, ANY_RECALL))

    def running(self, conversation_id: ConversationId) -> Reply | None:
        return self._running.get(conversation_id)

    def stop(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Stop the replies of conversations; return when they are stored, or after 3 s. Blocking.

        Also those that are being planned: a reply must not begin in what is forgotten meanwhile.
        """
        wanted = tuple(conversation_ids)
        with suppress(TimeoutError, CancelledError, StorageError):
            self.call(self._all_begun).result(_STOP_TIMEOUT_S)
        running = [reply for each in wanted if (reply := self._running.get(each))]
        for reply in running:
            reply.stop()
        wait([reply.done for reply in running], _STOP_TIMEOUT_S)

    def call(self, work: Callable[[], Awaitable[T]]) -> "Future[T]":
        """Run a coroutine on this loop, such as a request to a provider; `close` cancels it."""

        async def run() -> T:
            return await work()

        coroutine = run()
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:  # the loop is closed
            coroutine.close()
            return _failed(Future())

    def close(self) -> None:
        """Stop every reply, store what arrived, end the thread; at most 3 s. Blocking."""
        if not self._thread.is_alive():
            return
        ending = asyncio.run_coroutine_threadsafe(self._end_all(), self._loop)
        try:
            ending.result(_STOP_TIMEOUT_S)
        except TimeoutError:
            _log.warning("a reply did not end in time")
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_TIMEOUT_S)

    # -- on the exchange thread

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _end_all(self) -> None:
        """Stop every reply, wait until it is stored, cancel all other work, close connections."""
        self._is_closing = True
        for reply in tuple(self._running.values()):
            _abandon(reply)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_STOP_TIMEOUT_S - 1)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=0.5)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._models.aclose(), 0.5)

    def _start(self, plan: Callable[[], ExchangePlan]) -> "Future[Reply]":
        """Start an exchange as a task of this loop; abandoning the future does not cancel it."""
        started: Future[Reply] = Future()
        started.set_running_or_notify_cancel()

        def begin() -> None:
            if self._is_closing:
                _failed(started)
                return
            task = self._loop.create_task(self._run(plan, started))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        try:
            self._loop.call_soon_threadsafe(begin)
        except RuntimeError:  # the loop is closed
            _failed(started)
        return started

    async def _run(self, make_plan: Callable[[], ExchangePlan], started: "Future[Reply]") -> None:
        """Plan and store an exchange, run it to its end, report both."""
        try:
            reply = await self._begin(make_plan)
        except asyncio.CancelledError:
            _failed(started)
            raise
        except Exception as error:  # noqa: BLE001 - it belongs to the caller
            started.set_exception(error)
            return
        started.set_result(reply)
        outcome: Exchange | BaseException = _closing()
        try:
            running = RunningExchange(
                self._store, self._settings, self._models, self._prepare, self._toolbox, reply
            )
            outcome = await running.run()
        except Exception as error:  # noqa: BLE001 - the loop must go on; the screen shows the error
            _log.exception("the end of a reply could not be stored")
            outcome = error
        finally:
            self._running.pop(reply.plan.conversation.id, None)
            reply.finish(outcome)

    async def _all_begun(self) -> None:
        """Return when every reply asked for before this call runs, or could not be planned."""
        async with self._planning:  # first come, first served
            pass

    async def _begin(self, make_plan: Callable[[], ExchangePlan]) -> Reply:
        # One at a time: a plan made while another one is being stored would create a branch.
        async with self._planning:
            # What runs before planning: a reply that ends meanwhile is not in the plan.
            running = frozenset(self._running)
            plan = await asyncio.to_thread(make_plan)
            if plan.conversation.id in running:
                raise InvalidInput(
                    "A reply is still running in this conversation",
                    "Stop it or wait until it ends.",
                )
            await asyncio.wrap_future(self._store.commit(*plan.changes))
            if plan.choice != ANY_RECALL:
                self._choices[plan.exchange.id] = plan.choice
            reply = self._running[plan.conversation.id] = Reply(plan)
            if self._is_closing:  # it was asked for just before
                _abandon(reply)
        return reply


def _abandon(reply: Reply) -> None:
    """Stop a reply because the program closes."""
    reply.is_abandoned = True
    reply.stop()


def _failed(future: "Future[Any]") -> "Future[Any]":
    future.set_exception(_closing())
    return future


def _closing() -> StorageError:
    return StorageError("Commonplace is closing", "Start it again to continue.")
