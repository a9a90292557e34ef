"""Running exchange: prepares the request, streams replies, runs tools, stores the result.

A reply is complete only if its end marker arrived. Each round is stored before the next request;
whatever else happens, the text that arrived is stored together with the cause.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar

from app.chat.models import ChatModels
from app.chat.planner import ExchangePlan
from app.chat.reply import (
    CONNECTION_LOST,
    CUT_SHORT,
    EMPTY,
    STOPPED,
    ExchangeUsage,
    Reply,
    ReplyJournal,
    too_many_rounds,
)
from app.chat.sent_turns import with_note
from app.chat.tools.results import failed_result, truncate_results, unfinished_result
from app.chat.tools.toolbox import Toolbox, ToolContext
from app.domain.changes import (
    Change,
    ConversationEdited,
    ExchangePut,
    MessagesAdded,
    PassagesPut,
    PromptStored,
)
from app.domain.chat import ChatRequest, ModelRef, RecallCompleted, Retrying, TextWasThinking
from app.domain.conversations import (
    Block,
    Exchange,
    ExchangeStatus,
    Message,
    Problem,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.errors import ContextTooLong, KnownError, StorageError
from app.domain.ids import MessageId, new_uid
from app.domain.ports import ChatModel
from app.domain.recall import StoredPrompt
from app.domain.translation import in_english
from app.domain.turns import turn_passage
from app.memory.context.plan import WINDOW_SHARE
from app.providers.http.error_classification import reply_tokens_after
from app.providers.partial_reply import PartialReply
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.storage.tables.spending import CHAT

T = TypeVar("T")
_log = logging.getLogger(__name__)
_STORE_RETRY_MAX_S = 5.0
TOOL_LIMIT_S = 30.0
_CONCURRENT_CALLS = 4
_MAX_CALLS = 16  # of one reply: the results of more would fill the prompt
_LAST_ROUND = (
    "You have used all tool calls available for this message. Answer now with what you have found, "
    "and say what is missing."
)
# Returns the first request for a message and the record of its prompt; called once for each
# message, in a worker thread: it may block.
Prepare = Callable[[ExchangePlan], tuple[ChatRequest, StoredPrompt | None]]


class RunningExchange:
    """Runs an exchange and stores what arrives. Lives on the exchange thread."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        models: ChatModels,
        prepare: Prepare,
        toolbox: Toolbox,
        reply: Reply,
    ) -> None:
        plan = reply.plan
        self._store = store
        self._settings = settings
        self._models = models
        self._prepare = prepare
        self._toolbox = toolbox
        self._reply = reply
        self._ref = ModelRef.parse(plan.exchange.model or "")
        self._model: ChatModel | None = None
        self._exchange = plan.exchange
        self._messages = [*plan.messages]
        self._count_before = len(self._messages)
        before = plan.exchange.usage if plan.continues else None
        purpose = CHAT if plan.unattended is None else plan.unattended.purpose
        self._usage = ExchangeUsage(self._ref, models.price_of, models.usage, before, purpose)
        self._spend: list[Change] = []
        self._partial = PartialReply(store.ids.message())
        self._journal = ReplyJournal(store, plan.exchange.id, str(self._ref))
        self._work: asyncio.Future[Any] | None = None
        self._offered: frozenset[str] = frozenset()
        self._is_stopped = False
        self._was_refused = False  # as too long
        self._prepared_count = 0  # messages of the request before tool rounds

    async def run(self) -> Exchange:
        """Answer, store the result, and return the exchange as stored.

        Stopping ends the preparation, a request or tools; storing what arrived cannot be stopped.
        Raises StorageError when the program closes before the result could be stored.
        """
        loop = asyncio.get_running_loop()
        self._reply.on_stop(lambda: loop.call_soon_threadsafe(self._stop))
        journal = asyncio.ensure_future(self._journal.run(lambda: self._exchange.message_ids))
        problem: Problem | None
        try:
            problem = await self._answer()
        except asyncio.CancelledError:
            problem = STOPPED
        except KnownError as error:
            with in_english():  # it is stored
                problem = Problem(error.kind, error.title, error.hint)
        except Exception as error:  # noqa: BLE001 - the edge of a turn: its text must be kept
            _log.exception("a reply failed unexpectedly")
            title = f"Commonplace failed: {type(error).__name__}"
            problem = Problem("bug", title, "Try again; the log has the details.")
        finally:
            journal.cancel()
        await self._store_end(problem)
        return self._exchange

    async def _answer(self) -> Problem | None:
        """Send the request, run the tools called, send again; return why it ended early.

        Each round is stored before the next request.
        """
        request = await self._prepared()
        rounds_max = self._settings.number("tool_rounds_max")
        result_chars = self._settings.number("tool_output_max_chars")
        if (prompt := self._reply.prompt) is not None:
            result_chars = prompt.result_chars
        for rounds in itertools.count(1):
            request = await self._send(request)
            calls = self._partial.calls if request.tools else ()
            if not calls:
                return None if self._partial.finished else CONNECTION_LOST
            if request.tools_disabled:
                return too_many_rounds(rounds - 1)
            reply = self._assistant_message()
            await self._commit(self._add_message(reply))
            results = await self._run_tools(calls)
            self._partial = PartialReply(self._store.ids.message())
            added = truncate_results((reply, results), result_chars)
            if rounds >= rounds_max:
                request, added = replace(request, tools_disabled=True), self._last(added)
            request = replace(request, messages=(*request.messages, *added))
        raise AssertionError("the rounds end by themselves")

    async def _prepared(self) -> ChatRequest:
        """Return the first request, whose prompt is stored meanwhile."""
        plan = self._reply.plan
        request, prompt = await self._stoppable(asyncio.to_thread(self._prepare, plan))
        self._prepared_count = len(request.messages)
        self._offered = frozenset(tool.name for tool in request.tools)
        self._reply.prompt = prompt
        if prompt is not None:
            self._reply.push(RecallCompleted(prompt.notice))
            # The request does not wait for it.
            self._store.commit(PromptStored(prompt)).add_done_callback(_log_failure)
        return request

    async def _send(self, request: ChatRequest) -> ChatRequest:
        """Stream a reply to the request; return the request, changed if it was refused as too long.

        It is planned again once: the refusal says how much the model reads. Its reply is shortened
        whenever the prompt alone would have fitted.
        """
        try:
            await self._stoppable(self._stream(request))
        except ContextTooLong as refusal:
            if self._partial.has_content or (self._was_refused and not refusal.is_by_reply):
                raise
            least_share = 0.0
            if not self._was_refused:
                request, least_share = await self._planned_again(request, refusal), 1 - WINDOW_SHARE
            most = reply_tokens_after(request.max_output_tokens, refusal, least_share)
            request = replace(request, max_output_tokens=most)
            await self._stoppable(self._stream(request))
        return request

    async def _planned_again(self, request: ChatRequest, refusal: ContextTooLong) -> ChatRequest:
        """Return the request for the window that a refusal names."""
        self._was_refused = True
        rounds = request.messages[self._prepared_count :]
        if (prompt := self._reply.prompt) is not None and not rounds:
            refusal.estimated_tokens = sum(part.tokens for part in prompt.parts)
        await self._stoppable(asyncio.to_thread(self._models.note_refusal, self._ref, refusal))
        again = await self._prepared()
        return replace(
            again, messages=(*again.messages, *rounds), tools_disabled=request.tools_disabled
        )

    def _last(self, added: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the messages of a round, the results with a request to answer; record that."""
        *others, results = added
        if (prompt := self._reply.prompt) is not None:
            self._reply.prompt = with_note(prompt, results.id, _LAST_ROUND)
            self._store.commit(PromptStored(self._reply.prompt)).add_done_callback(_log_failure)
        return (*others, replace(results, blocks=(*results.blocks, Text(_LAST_ROUND))))

    async def _stream(self, request: ChatRequest) -> None:
        stream: Any = None
        is_refused = False
        unattended = self._reply.plan.unattended
        settle = None
        if unattended is not None:
            settle = await asyncio.to_thread(unattended.admit, request)
        try:
            if self._model is None:
                self._model = await asyncio.to_thread(self._models.chat_model, self._ref)
            stream = self._model.stream(request)
            async for event in stream:
                self._partial.add(event)
                self._reply.push(event)
                if isinstance(event, Text | Thinking | TextWasThinking):
                    self._journal.grow(self._partial.message_id, event)
        except ContextTooLong:
            is_refused = not self._partial.has_begun
            raise
        finally:
            spent = [] if is_refused else self._usage.add(self._partial, request, self._exchange.id)
            self._spend += spent if settle is None else settle(spent)
            if (close := getattr(stream, "aclose", None)) is not None:
                await close()

    async def _stoppable(self, work: Coroutine[Any, Any, T]) -> T:
        """Await work that `stop` may end; raises CancelledError then."""
        self._work = task = asyncio.ensure_future(work)
        if self._is_stopped:
            task.cancel()
        try:
            return await task
        finally:
            self._work = None

    def _stop(self) -> None:
        self._is_stopped = True
        if self._work is not None:
            self._work.cancel()

    # -- tools

    async def _run_tools(self, calls: Sequence[ToolCall]) -> Message:
        """Run tools in threads and store their results, also when the user stops them.

        Calls that write run one after the other. Stop or the time limit ends the waiting, not the
        thread.
        """
        results: dict[int, ToolResult] = {}
        writes = any(map(self._toolbox.writes, calls))
        slots = asyncio.Semaphore(1 if writes else _CONCURRENT_CALLS)

        async def run(position: int, call: ToolCall) -> None:
            async with slots:
                results[position] = await self._run_call(position, call)
            self._reply.push(results[position])

        async def run_all() -> None:
            await asyncio.gather(*(run(position, call) for position, call in enumerate(calls)))

        try:
            await self._stoppable(run_all())
        finally:
            blocks = [results.get(at) or unfinished_result(call) for at, call in enumerate(calls)]
            message = self._message(self._store.ids.message(), Role.TOOL, blocks)
            await self._commit(self._add_message(message))
        return message

    async def _run_call(self, position: int, call: ToolCall) -> ToolResult:
        if position >= _MAX_CALLS:
            return failed_result(
                call, f"At most {_MAX_CALLS} tools can be called at once. Call it again if needed."
            )
        plan = self._reply.plan
        is_over = False
        context = ToolContext(
            plan.conversation, plan.exchange.id, plan.exchange.model or "", self._offered,
            lambda: is_over,
        )  # fmt: skip
        limit_s = TOOL_LIMIT_S
        try:
            running = asyncio.to_thread(self._toolbox.run, call, context)
            waits = self._toolbox.waits_for_user(call)
            return await asyncio.wait_for(running, None if waits else limit_s)
        except TimeoutError:
            text = f"It took longer than {limit_s:g} s. Ask for less, or continue without it."
            return failed_result(call, text, round(limit_s * 1000))
        finally:
            is_over = True

    # -- storing

    async def _commit(self, changes: Sequence[Change]) -> None:
        """Store changes and spend; retry while the disk refuses: the text exists only here."""
        changes, self._spend = (*changes, *self._spend), []
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

    async def _store_end(self, problem: Problem | None) -> None:
        """Store what is not stored yet, the outcome and the passage, in one transaction."""
        partial = self._partial
        changes: list[Change] = []
        if partial.has_content and partial.message_id not in self._exchange.message_ids:
            changes += self._add_message(self._assistant_message())[:-1]
        status = ExchangeStatus.COMPLETED
        if problem is None and partial.finished:
            problem = CUT_SHORT.get(partial.finished.reason)
            problem = problem or (None if partial.has_answer else EMPTY)
        if problem is not None:
            has_reply = len(self._messages) > self._count_before or problem is STOPPED
            status = ExchangeStatus.INTERRUPTED if has_reply else ExchangeStatus.FAILED
        self._exchange = replace(
            self._exchange,
            status=status,
            completed_at=now(),
            problem=problem,
            usage=self._usage.usage,
        )
        changes.append(ExchangePut(self._exchange))
        plan = self._reply.plan
        if plan.unattended is not None and not self._reply.is_abandoned:
            changes += plan.unattended.ends(self._exchange)
        if not plan.conversation.private:
            passage = turn_passage(self._store.ids.passage(), self._exchange, self._messages)
            new = () if passage is None else (passage,)
            if new or plan.replaced:
                changes.append(PassagesPut(new, plan.replaced))
        await self._commit(changes)

    def _add_message(self, message: Message) -> list[Change]:
        """Add a message to the exchange; return the changes, the exchange last."""
        self._messages.append(message)
        self._exchange = replace(
            self._exchange,
            message_ids=(*self._exchange.message_ids, message.id),
            usage=self._usage.usage,
        )
        shown = ConversationEdited(
            message.conversation_id, visible_leaf_id=message.id, updated_at=message.created_at
        )
        return [MessagesAdded((message,)), shown, ExchangePut(self._exchange)]

    def _assistant_message(self) -> Message:
        partial = self._partial
        message = self._message(partial.message_id, Role.ASSISTANT, partial.blocks)
        raw = partial.finished.raw if partial.finished else None
        return replace(message, model=str(self._ref), raw=raw)

    def _message(self, message_id: MessageId, role: Role, blocks: Sequence[Block]) -> Message:
        exchange = self._exchange
        return Message(
            message_id, new_uid(), exchange.conversation_id, exchange.message_ids[-1], role,
            tuple(blocks), now(),
        )  # fmt: skip


def _log_failure(commit: "Future[Any]") -> None:
    if (error := commit.exception()) is not None:
        _log.warning("a prompt could not be stored", exc_info=error)
