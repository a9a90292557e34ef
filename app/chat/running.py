"""One exchange while it runs: a stream becomes events for a screen, records and, at last, rows.

A reply counts as complete only when its terminal marker was seen. Whatever else happens, what had
arrived is stored, with the cause.
"""

import asyncio
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace

from app.chat.plans import Plan
from app.domain.changes import (
    Change,
    ConversationEdited,
    ExchangePut,
    MessagesAdded,
    PassagesPut,
    ReplyGrew,
    SpendAdded,
)
from app.domain.chat import (
    ChatRequest,
    Finished,
    FinishReason,
    ModelRef,
    Retrying,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    TokensReported,
    ToolCallReady,
)
from app.domain.conversations import (
    Block,
    Exchange,
    ExchangeStatus,
    Message,
    Problem,
    RawReply,
    Role,
    Text,
    Thinking,
    ToolCall,
)
from app.domain.errors import KnownError, StorageError
from app.domain.ids import MessageId, PassageId, new_uid
from app.domain.ports import ChatModel
from app.domain.turn_text import estimate_tokens, turn_passage
from app.domain.usage import Usage
from app.storage.store import Store
from app.storage.times import now

_log = logging.getLogger(__name__)
_JOURNAL_EVERY_S = 0.5
_STORE_RETRY_MAX_S = 5.0

PriceOf = Callable[[ModelRef, TokensReported], tuple[float | None, str]]

_CUT_SHORT = {
    FinishReason.LENGTH: Problem(
        "length", "The reply reached the model's limit", "Continue it, or raise the maximum output."
    ),
    FinishReason.FILTERED: Problem(
        "filtered", "The provider's filter stopped the reply", "Ask differently, or another model."
    ),
    FinishReason.REFUSED: Problem("refused", "The model refused to answer", "Ask differently."),
    FinishReason.CONTEXT_EXCEEDED: Problem(
        "context_exceeded",
        "The conversation has become longer than the model can read",
        "Go on in a new conversation, or choose a model with a larger context.",
    ),
}


class Reply:
    """An exchange under way, as a screen sees it; thread-safe.

    Attributes:
        plan: What was stored before it started.
        replaced: Passages that an earlier run of the same exchange left; the end replaces them.
        done: Resolves to the exchange as it was stored at the end, whatever the end was. While the
            disk refuses it waits; it fails only when the program leaves before that is mended.
        is_abandoned: Set when the program leaves: then nothing is waited for any more.
    """

    def __init__(self, plan: Plan, replaced: tuple[PassageId, ...] = ()) -> None:
        self.plan = plan
        self.replaced = replaced
        self.done: Future[Exchange] = Future()
        self._events: deque[StreamEvent] = deque()
        self._news = threading.Condition()
        self._stopping: Callable[[], None] = lambda: None
        self._stop_wanted = False
        self.is_abandoned = False

    def drain(self) -> list[StreamEvent]:
        """Return what has come since the last call, in order, without waiting."""
        events: list[StreamEvent] = []
        while self._events:
            events.append(self._events.popleft())
        return events

    def wait(self, timeout_s: float) -> None:
        """Wait until there is something to drain, or the end."""
        with self._news:
            self._news.wait_for(lambda: self._events or self.done.done(), timeout_s)

    def stop(self) -> None:
        """Ask for the end; what has arrived is kept, marked interrupted. Safe to call again."""
        if not self._stop_wanted:
            self._stop_wanted = True
            self._stopping()

    def push(self, event: StreamEvent) -> None:
        """Hand an event to the screen (the exchange thread calls it)."""
        self._events.append(event)
        with self._news:
            self._news.notify_all()

    def finish(self, outcome: Exchange | BaseException) -> None:
        """Resolve `done` (the exchange thread calls it)."""
        if isinstance(outcome, BaseException):
            self.done.set_exception(outcome)
        else:
            self.done.set_result(outcome)
        with self._news:
            self._news.notify_all()

    def on_stop(self, stop: Callable[[], None]) -> None:
        """Say how to stop it; called at once if that was asked for already."""
        self._stopping = stop
        if self._stop_wanted:
            stop()


@dataclass(slots=True)
class _Arrived:
    """What has come of a reply so far."""

    message_id: MessageId
    started: float
    blocks: list[Block]
    tokens: TokensReported | None = None
    finished: Finished | None = None
    first_token_ms: int | None = None
    raw: RawReply | None = None

    def take(self, event: StreamEvent) -> None:
        match event:
            case TextDelta(text=text):
                self._grow(Text, text)
            case ThinkingDelta(text=text):
                self._grow(Thinking, text)
            case ToolCallReady(call_id=call_id, name=name, arguments=arguments):
                self.blocks.append(ToolCall(call_id, name, arguments))
            case TokensReported():
                self.tokens = event
            case Finished():
                self.finished = event
                self.raw = event.raw
            case Retrying():
                pass

    def _grow(self, kind: type[Text] | type[Thinking], text: str) -> None:
        if self.first_token_ms is None:
            self.first_token_ms = round((time.monotonic() - self.started) * 1000)
        last = self.blocks[-1] if self.blocks else None
        if isinstance(last, kind):
            self.blocks[-1] = kind(last.text + text)
        else:
            self.blocks.append(kind(text))

    @property
    def holds_something(self) -> bool:
        return any(not isinstance(block, Text | Thinking) or block.text for block in self.blocks)


class RunningExchange:
    """Runs a plan against a model and stores the end. Lives on the exchange thread."""

    def __init__(
        self, store: Store, reply: Reply, model: ChatModel, ref: ModelRef, price_of: PriceOf
    ) -> None:
        self._store = store
        self._reply = reply
        self._model = model
        self._ref = ref
        self._price_of = price_of
        self._arrived = _Arrived(store.ids.message(), time.monotonic(), [])
        self._unjournalled: list[TextDelta | ThinkingDelta] = []

    async def run(self, request: ChatRequest) -> Exchange:
        """Stream to the end, store it, return the exchange as stored. Never raises ProviderError.

        Stopping ends the stream alone: storing what arrived cannot be cancelled by it.
        """
        stream = asyncio.ensure_future(self._stream(request))
        loop = asyncio.get_running_loop()

        def stop() -> None:
            loop.call_soon_threadsafe(stream.cancel)

        self._reply.on_stop(stop)
        journal = asyncio.ensure_future(self._keep_journal())
        try:
            problem = await self._outcome(stream)
        finally:
            journal.cancel()
        ended = self._ended(problem)
        await self._store_end(ended)
        return next(change.exchange for change in ended if isinstance(change, ExchangePut))

    async def _outcome(self, stream: "asyncio.Future[None]") -> Problem | None:
        """Wait for the stream's end and say what was wrong with it."""
        try:
            await stream
        except asyncio.CancelledError:
            return Problem("stopped", "You stopped this reply", "Continue or regenerate it.")
        except KnownError as error:
            return Problem(_kind_of(error), error.title, error.hint)
        except Exception as error:  # noqa: BLE001 - the edge of a turn: its text must be kept
            _log.exception("a reply failed in a way we did not foresee")
            title = f"The program failed: {type(error).__name__}"
            return Problem("bug", title, "Try again; the log tells more.")
        return None

    async def _stream(self, request: ChatRequest) -> None:
        stream = self._model.stream(request)
        try:
            async for event in stream:
                self._arrived.take(event)
                self._reply.push(event)
                if isinstance(event, TextDelta | ThinkingDelta):
                    self._unjournalled.append(event)
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()

    async def _keep_journal(self) -> None:
        """Make durable what arrives, twice a second, also while the stream stalls."""
        while True:
            await asyncio.sleep(_JOURNAL_EVERY_S)
            parts, self._unjournalled = self._unjournalled, []
            if not parts:
                continue
            grown = [self._grown(event) for event in _joined(parts)]
            try:
                await asyncio.wrap_future(self._store.journal_only(*grown))
            except StorageError as error:
                _log.warning("a running reply cannot be kept at present: %s", error)
                self._unjournalled = parts + self._unjournalled

    def _grown(self, event: TextDelta | ThinkingDelta) -> ReplyGrew:
        return ReplyGrew(
            self._reply.plan.exchange.id,
            self._arrived.message_id,
            "text" if isinstance(event, TextDelta) else "thinking",
            event.text,
            now(),
            str(self._ref),
        )

    async def _store_end(self, ended: list[Change]) -> None:
        """Store the end; while the disk refuses, wait and try again: the words are only here."""
        for attempt in itertools.count(1):
            try:
                await asyncio.wrap_future(self._store.commit(*ended))
            except StorageError as error:
                if self._reply.is_abandoned:
                    raise
                wait_s = min(_STORE_RETRY_MAX_S, 2.0 ** (attempt - 1) / 2)
                self._reply.push(Retrying(attempt + 1, wait_s, error.title))
                await asyncio.sleep(wait_s)
            else:
                return

    def _ended(self, problem: Problem | None) -> list[Change]:
        """Return all that the end writes, in one transaction."""
        plan, arrived, at = self._reply.plan, self._arrived, now()
        cut_short = _CUT_SHORT.get(arrived.finished.reason) if arrived.finished else None
        if problem is None and arrived.finished is None:
            problem = Problem(
                "connection_lost", "The reply ended before it was complete", "Continue or retry it."
            )
        status = self._status(problem, cut_short)
        usage = self._usage()
        exchange = replace(
            plan.exchange,
            status=status,
            completed_at=at,
            problem=problem or cut_short,
            usage=usage,
        )
        changes: list[Change] = []
        messages = [m for m in plan.path if m.id in set(plan.exchange.message_ids)]
        if arrived.holds_something:
            message = self._message(plan)
            messages.append(message)
            exchange = replace(exchange, message_ids=(*exchange.message_ids, message.id))
            changes.append(MessagesAdded((message,)))
            changes.append(
                ConversationEdited(plan.conversation.id, visible_leaf_id=message.id, updated_at=at)
            )
        changes.append(ExchangePut(exchange))
        if arrived.tokens is not None:
            changes.append(self._spend(arrived.tokens, usage))
        return [*changes, *self._passages(exchange, messages)]

    def _status(self, problem: Problem | None, cut_short: Problem | None) -> ExchangeStatus:
        if problem is None:
            return ExchangeStatus.INTERRUPTED if cut_short else ExchangeStatus.COMPLETED
        stopped = problem.kind == "stopped"
        kept = self._arrived.holds_something or stopped
        return ExchangeStatus.INTERRUPTED if kept else ExchangeStatus.FAILED

    def _message(self, plan: Plan) -> Message:
        return Message(
            self._arrived.message_id,
            new_uid(),
            plan.conversation.id,
            plan.exchange.message_ids[-1],
            Role.ASSISTANT,
            tuple(self._arrived.blocks),
            now(),
            str(self._ref),
            self._arrived.raw,
        )

    def _usage(self) -> Usage:
        arrived = self._arrived
        duration_ms = round((time.monotonic() - arrived.started) * 1000)
        tokens = arrived.tokens
        if tokens is None:
            words = "".join(b.text for b in arrived.blocks if isinstance(b, Text | Thinking))
            asked = sum(estimate_tokens(each.text) for each in self._reply.plan.path)
            guess = TokensReported(asked, estimate_tokens(words) if words else 0)
            cost_usd, price = self._price_of(self._ref, guess)
            return Usage(
                guess.input_tokens,
                guess.output_tokens,
                cost_usd=None if cost_usd else cost_usd,  # only what is free is known to cost that
                price="" if cost_usd else price,
                estimated=True,
                first_token_ms=arrived.first_token_ms,
                duration_ms=duration_ms,
            )
        cost_usd, price = self._price_of(self._ref, tokens)
        return Usage(
            tokens.input_tokens,
            tokens.output_tokens,
            tokens.cached_tokens,
            cost_usd,
            price,
            first_token_ms=arrived.first_token_ms,
            duration_ms=duration_ms,
        )

    def _spend(self, tokens: TokensReported, usage: Usage) -> SpendAdded:
        return SpendAdded(
            now(),
            "chat",
            str(self._ref),
            tokens.input_tokens,
            tokens.output_tokens,
            tokens.cached_tokens,
            usage.cost_usd,
            self._reply.plan.exchange.id,
        )

    def _passages(self, exchange: Exchange, messages: list[Message]) -> list[Change]:
        if self._reply.plan.conversation.private:
            return []
        passage = turn_passage(self._store.ids.passage(), exchange, messages)
        made = () if passage is None else (passage,)
        return [PassagesPut(made, self._reply.replaced)] if made or self._reply.replaced else []


def _joined(
    events: list[TextDelta | ThinkingDelta],
) -> list[TextDelta | ThinkingDelta]:
    """Return neighbours of one kind as one."""
    joined: list[TextDelta | ThinkingDelta] = []
    for event in events:
        if joined and type(joined[-1]) is type(event):
            joined[-1] = type(event)(joined[-1].text + event.text)
        else:
            joined.append(event)
    return joined


def _kind_of(error: KnownError) -> str:
    """Return a class's name as the words of a stored kind: RateLimited is "rate_limited"."""
    name = type(error).__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
