"""Exchanges: started, streamed, stopped and stored on one asyncio loop in a thread of its own.

The window and the command line use it alike: a wish returns a future of a `Reply`, resolved once
the user's words are safe; the reply then grows by itself.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from app.chat.deferred import Deferred
from app.chat.looking_up import LookUps
from app.chat.outcomes import PriceOf
from app.chat.planning import Beginning, Planner
from app.chat.plans import Plan
from app.chat.preparing import ContextPrepare, Prepare, Prepared
from app.chat.reply import Reply
from app.chat.running import Answering, RunningExchange
from app.chat.tool_rounds import ToolLimits, ToolRounds
from app.chat.tools.cutting import with_cut_results
from app.chat.tools.toolbox import Toolbox, ToolContext
from app.domain.changes import PromptKept
from app.domain.chat import MemoryRecalled, ModelRef
from app.domain.conversations import (
    Block,
    Exchange,
)
from app.domain.errors import InvalidInput, StorageError
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.ports import ChatModel
from app.memory.core_memory import CoreMemoryService
from app.providers.recall import RECALL
from app.storage.settings import Settings
from app.storage.store import Store

T = TypeVar("T")
_log = logging.getLogger(__name__)
_STOP_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class Models:
    """What the loop needs of models: who answers, how much it reads, what it costs, the goodbye."""

    chat_model: Callable[[ModelRef], ChatModel]
    context_tokens: Callable[[ModelRef], int | None]
    price_of: PriceOf
    aclose: Callable[[], Awaitable[None]]


class ExchangeLoop:
    """Runs exchanges, at most one at a time in a conversation. Thread-safe."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        models: Models,
        prepare: Prepare | None = None,
        toolbox: Toolbox | None = None,
    ) -> None:
        """Send what `prepare` makes of a plan; without it what the context plan says, nothing recalled.

        Models may call what is in `toolbox`; without it nothing.
        """
        self._store = store
        self._settings = settings
        self._models = models
        self._prepare = prepare or ContextPrepare(
            settings, models.context_tokens, LookUps(store, CoreMemoryService(store, settings))
        )
        self._toolbox = toolbox or Toolbox(())
        self._running: dict[ConversationId, Reply] = {}
        self._planner = Planner(store, settings, lambda each: each in self._running)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._planning = asyncio.Lock()
        self._closing = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="exchanges", daemon=True)
        self._thread.start()

    # -- wishes; each future resolves when the user's words are durable

    def send(
        self,
        conversation_id: ConversationId | None,
        blocks: tuple[Block, ...],
        *,
        model: str | None = None,
        private: bool = False,
        recalls: bool = True,
    ) -> "Future[Reply]":
        """Say something in a conversation, or (None) begin one, `private` and `recalls` as given.

        `model` (PROVIDER:MODEL) is kept for the conversation from now on. Fails with InvalidInput
        when there is nothing to say or a reply is running there, NotFound, StorageError.
        """
        beginning = Beginning(model, private, recalls)
        return self._wish(lambda: self._planner.send(conversation_id, blocks, beginning))

    def edit(
        self, exchange_id: ExchangeId, message_id: MessageId, blocks: tuple[Block, ...]
    ) -> "Future[Reply]":
        """Say it differently: another user message in that place, on a new branch."""
        return self._wish(lambda: self._planner.edit(exchange_id, message_id, blocks))

    def regenerate(self, exchange_id: ExchangeId) -> "Future[Reply]":
        """Ask for another answer to the same question, on a new branch."""
        return self._wish(lambda: self._planner.regenerate(exchange_id))

    def retry(self, exchange_id: ExchangeId) -> "Future[Reply]":
        """Run a failed exchange again; one that has words already is continued."""
        return self._wish(lambda: self._planner.retry(exchange_id))

    def running(self, conversation_id: ConversationId) -> Reply | None:
        """Return the reply under way in a conversation."""
        return self._running.get(conversation_id)

    def stop(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Stop the replies of conversations; return once what had come is stored. Blocking.

        A disk that refuses is waited for no longer than a goodbye waits.
        """
        running = [reply for each in conversation_ids if (reply := self._running.get(each))]
        for reply in running:
            reply.stop()
        wait([reply.done for reply in running], _STOP_TIMEOUT_S)

    @property
    def busy(self) -> bool:
        """Whether any reply is under way."""
        return bool(self._running)

    def call(self, work: Callable[[], Awaitable[T]]) -> "Future[T]":
        """Run a coroutine on this loop: what else speaks to a provider (lists, tests)."""

        async def run() -> T:
            return await work()

        return asyncio.run_coroutine_threadsafe(run(), self._loop)

    def close(self) -> None:
        """Stop every reply, store what had arrived, end the thread; at most 3 s. Blocking."""
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
        """Stop every reply, wait until what arrived is stored, then close the connections."""
        self._closing = True
        for reply in tuple(self._running.values()):
            reply.is_abandoned = True
            reply.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_STOP_TIMEOUT_S - 1)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._models.aclose(), 0.5)

    def _wish(self, plan: Callable[[], Plan]) -> "Future[Reply]":
        """Begin an exchange as a task of this loop: giving up the future does not undo it."""
        future: Future[Reply] = Future()
        future.set_running_or_notify_cancel()
        begin = partial(self._spawn_wish, plan, future)
        try:
            self._loop.call_soon_threadsafe(begin)
        except RuntimeError:  # the loop is closed
            future.set_exception(_leaving())
        return future

    def _spawn_wish(self, plan: Callable[[], Plan], future: "Future[Reply]") -> None:
        if self._closing:
            future.set_exception(_leaving())
        else:
            self._spawn(self._fulfil(plan, future))

    async def _fulfil(self, plan: Callable[[], Plan], future: "Future[Reply]") -> None:
        try:
            reply = await self._begin(plan)
        except Exception as error:  # noqa: BLE001 - it belongs to whoever wished
            future.set_exception(error)
            return
        future.set_result(reply)
        await self._run(reply)

    async def _begin(self, make_plan: Callable[[], Plan]) -> Reply:
        # One at a time: a plan made while another one is being stored would branch off by accident.
        async with self._planning:
            plan, replaced = await asyncio.to_thread(self._planner.ready, make_plan)
            if plan.conversation.id in self._running:
                raise InvalidInput(
                    "A reply is still running in this conversation", "Stop it or wait for its end."
                )
            await asyncio.wrap_future(self._store.commit(*plan.changes))
            reply = Reply(plan, replaced)
            self._running[plan.conversation.id] = reply
        return reply

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, reply: Reply) -> None:
        plan = reply.plan
        ref = ModelRef.parse(plan.exchange.model or "")
        ended: Exchange | BaseException = _leaving()
        try:
            model = Deferred(lambda: self._models.chat_model(ref))
            answering = Answering(model, ref, self._models.price_of)
            tools = self._tool_rounds(plan)
            running = RunningExchange(self._store, reply, answering, tools)
            ended = await running.run(
                partial(self._prepared, plan, ref), partial(self._keep, reply)
            )
        except Exception as error:  # noqa: BLE001 - the loop must live, the screen gets it
            _log.exception("the end of a reply could not be stored")
            ended = error
        finally:
            self._running.pop(plan.conversation.id, None)
            reply.finish(ended)

    def _prepared(self, plan: Plan, ref: ModelRef) -> Prepared:
        """Return what is sent; blocking, since it looks things up."""
        cut = with_cut_results(plan.path, self._settings.number("tool_output_max_chars"))
        offered = () if ref.provider == RECALL else self._toolbox.offered_in(plan.conversation)
        return self._prepare(replace(plan, path=cut), offered)

    def _keep(self, reply: Reply, prepared: Prepared) -> None:
        """Keep what an answer is asked with; the request does not wait for it."""
        reply.prompt = prompt = prepared.kept
        if prompt is None:
            return
        reply.push(MemoryRecalled(sum(item.injected for item in prompt.items), prompt.notice))
        self._store.commit(PromptKept(prompt)).add_done_callback(_tell_failure)

    def _tool_rounds(self, plan: Plan) -> ToolRounds:
        limits = ToolLimits(
            self._settings.number("tool_rounds_max"),
            self._settings.number("tool_output_max_chars"),
        )
        context = ToolContext(plan.conversation, plan.exchange.id, plan.exchange.model or "")
        return ToolRounds(self._toolbox, context, limits)


def _tell_failure(kept: "Future[Any]") -> None:
    if (error := kept.exception()) is not None:
        _log.warning("what an answer was asked with could not be kept", exc_info=error)


def _leaving() -> StorageError:
    return StorageError("The program is closing", "Start it again to go on.")
