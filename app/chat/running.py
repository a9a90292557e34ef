"""One exchange while it runs: requests and tool rounds until the model has answered.

A reply counts as complete only when its terminal marker was seen. What a round brought is durable
before the next request goes out; whatever else happens, what had arrived is stored, with the cause.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from app.chat.arrived import Arrived
from app.chat.outcomes import (
    CONNECTION_LOST,
    CUT_SHORT,
    STOPPED,
    Bill,
    PriceOf,
    bug,
    problem_of,
    too_many_rounds,
)
from app.chat.preparing import Prepared
from app.chat.reply import Reply
from app.chat.reply_journal import ReplyJournal
from app.chat.tool_rounds import Results, ToolRounds
from app.domain.changes import (
    Change,
    ConversationEdited,
    ExchangePut,
    MessagesAdded,
    PassagesPut,
)
from app.domain.chat import ChatRequest, ModelRef, Retrying, TextDelta, ThinkingDelta
from app.domain.conversations import (
    Block,
    Exchange,
    ExchangeStatus,
    Message,
    Problem,
    Role,
    ToolCall,
)
from app.domain.errors import KnownError, StorageError
from app.domain.ids import MessageId, new_uid
from app.domain.ports import ChatModel
from app.domain.turn_text import turn_passage
from app.storage.store import Store
from app.storage.times import now

T = TypeVar("T")
_log = logging.getLogger(__name__)
_STORE_RETRY_MAX_S = 5.0


@dataclass(frozen=True, slots=True)
class Answering:
    """Who answers: a model, its name, what it costs."""

    model: ChatModel
    ref: ModelRef
    price_of: PriceOf


class RunningExchange:
    """Runs a plan against a model and stores what comes. Lives on the exchange thread."""

    def __init__(self, store: Store, reply: Reply, answering: Answering, tools: ToolRounds) -> None:
        plan = reply.plan
        self._store = store
        self._reply = reply
        self._model = answering.model
        self._ref = answering.ref
        self._tools = tools
        self._exchange = plan.exchange
        self._own = [each for each in plan.path if each.id in set(plan.exchange.message_ids)]
        self._had = len(self._own)
        before = plan.exchange.usage if plan.continues else None
        self._bill = Bill(answering.ref, answering.price_of, before)
        self._spent: list[Change] = []
        self._arrived = Arrived(store.ids.message())
        self._journal = ReplyJournal(store, plan.exchange, self._is_stored)
        self._work: asyncio.Future[Any] | None = None
        self._is_stopped = False

    async def run(
        self, prepare: Callable[[], Prepared], on_prepared: Callable[[Prepared], None]
    ) -> Exchange:
        """Answer to the end, store it, return the exchange as stored. Never raises ProviderError.

        `prepare` is called in a thread. Stopping ends the wait for it, for a request or for tools;
        storing what arrived cannot be stopped.
        """
        loop = asyncio.get_running_loop()

        def stop() -> None:
            loop.call_soon_threadsafe(self._stop)

        self._reply.on_stop(stop)
        journal = asyncio.ensure_future(self._journal.keep())
        try:
            problem = await self._outcome(prepare, on_prepared)
        finally:
            journal.cancel()
        await self._commit(self._ended(problem))
        return self._exchange

    async def _outcome(
        self, prepare: Callable[[], Prepared], on_prepared: Callable[[Prepared], None]
    ) -> Problem | None:
        """Go through all rounds and say what was wrong with them."""
        try:
            prepared = await self._stoppable(asyncio.to_thread(prepare))
            on_prepared(prepared)
            return await self._rounds(prepared.request)
        except asyncio.CancelledError:
            return STOPPED
        except KnownError as error:
            return problem_of(error)
        except Exception as error:  # noqa: BLE001 - the edge of a turn: its text must be kept
            _log.exception("a reply failed in a way we did not foresee")
            return bug(error)

    async def _rounds(self, request: ChatRequest) -> Problem | None:
        """Ask, run the tools that are called, ask again; every round is stored before the next."""
        for rounds in itertools.count(1):
            await self._stoppable(self._stream(request))
            calls = self._arrived.calls if request.tools else ()
            if calls and request.tools_closed:
                return too_many_rounds(rounds - 1)
            if not calls:
                break
            said = self._said()
            await self._commit(self._kept(said))
            answered = await self._answered(calls)
            request = self._tools.next_request(request, said, answered, rounds)
            self._arrived = Arrived(self._store.ids.message())
        return None if self._arrived.finished else CONNECTION_LOST

    async def _stream(self, request: ChatRequest) -> None:
        stream = self._model.stream(request)
        try:
            async for event in stream:
                self._arrived.take(event)
                self._reply.push(event)
                if isinstance(event, TextDelta | ThinkingDelta):
                    self._journal.add(self._arrived.message_id, event)
        finally:
            self._spent += self._bill.add(self._arrived, request, self._exchange.id)
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()

    async def _answered(self, calls: Sequence[ToolCall]) -> Message:
        """Run tools and store what they answered, also when the user has stopped them."""
        results: Results = {}
        try:
            await self._stoppable(self._tools.run(calls, results, self._reply.push))
        finally:
            blocks = self._tools.all_of(calls, results)
            answered = self._message(self._store.ids.message(), Role.TOOL, blocks)
            await self._commit(self._kept(answered))
        return answered

    async def _stoppable(self, work: Coroutine[Any, Any, T]) -> T:
        """Do what Stop may end; raises CancelledError then."""
        self._work = doing = asyncio.ensure_future(work)
        if self._is_stopped:
            doing.cancel()
        try:
            return await doing
        finally:
            self._work = None

    def _stop(self) -> None:
        self._is_stopped = True
        if self._work is not None:
            self._work.cancel()

    # -- what is written

    async def _commit(self, changes: Sequence[Change]) -> None:
        """Store changes; while the disk refuses, wait and try again: the words are only here."""
        for attempt in itertools.count(1):
            try:
                await asyncio.wrap_future(self._store.commit(*changes))
            except StorageError as error:
                if self._reply.is_abandoned:
                    raise
                wait_s = min(_STORE_RETRY_MAX_S, 2.0 ** (attempt - 1) / 2)
                self._reply.push(Retrying(attempt + 1, wait_s, error.title))
                await asyncio.sleep(wait_s)
            else:
                return

    def _kept(self, message: Message) -> list[Change]:
        """Return what a part of the exchange writes that more will follow."""
        return [*self._added(message), ExchangePut(self._exchange), *self._spending()]

    def _ended(self, problem: Problem | None) -> list[Change]:
        """Return all that the end writes, in one transaction."""
        arrived = self._arrived
        changes: list[Change] = []
        if arrived.holds_something and not self._is_stored(arrived.message_id):
            changes += self._added(self._said())
        cut_short = CUT_SHORT.get(arrived.finished.reason) if arrived.finished else None
        self._exchange = replace(
            self._exchange,
            status=self._status(problem, cut_short),
            completed_at=now(),
            problem=problem or cut_short,
            usage=self._bill.usage,
        )
        changes.append(ExchangePut(self._exchange))
        return [*changes, *self._spending(), *self._passages()]

    def _added(self, message: Message) -> list[Change]:
        """Take a message into the exchange; return what that writes."""
        self._own.append(message)
        self._exchange = replace(
            self._exchange,
            message_ids=(*self._exchange.message_ids, message.id),
            usage=self._bill.usage,
        )
        conversation_id = self._reply.plan.conversation.id
        shown = ConversationEdited(
            conversation_id, visible_leaf_id=message.id, updated_at=message.created_at
        )
        return [MessagesAdded((message,)), shown]

    def _is_stored(self, message_id: MessageId) -> bool:
        return message_id in self._exchange.message_ids

    def _said(self) -> Message:
        arrived = self._arrived
        said = self._message(arrived.message_id, Role.ASSISTANT, arrived.blocks)
        return replace(said, model=str(self._ref), raw=arrived.raw)

    def _message(self, message_id: MessageId, role: Role, blocks: Sequence[Block]) -> Message:
        return Message(
            message_id,
            new_uid(),
            self._exchange.conversation_id,
            self._exchange.message_ids[-1],
            role,
            tuple(blocks),
            now(),
        )

    def _spending(self) -> list[Change]:
        spent, self._spent = self._spent, []
        return spent

    def _status(self, problem: Problem | None, cut_short: Problem | None) -> ExchangeStatus:
        if problem is None:
            return ExchangeStatus.INTERRUPTED if cut_short else ExchangeStatus.COMPLETED
        kept = len(self._own) > self._had or problem is STOPPED
        return ExchangeStatus.INTERRUPTED if kept else ExchangeStatus.FAILED

    def _passages(self) -> list[Change]:
        if self._reply.plan.conversation.private:
            return []
        passage = turn_passage(self._store.ids.passage(), self._exchange, self._own)
        made = () if passage is None else (passage,)
        return [PassagesPut(made, self._reply.replaced)] if made or self._reply.replaced else []
