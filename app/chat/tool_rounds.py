"""The rounds between a model's requests: its calls run aside, their results sent back.

Tools run in threads, those that only read side by side; a time limit and Stop end the waiting, not
the thread. What a tool does is `app.chat.tools`.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.chat.tools.cutting import with_cut_results
from app.chat.tools.toolbox import Toolbox, ToolContext
from app.domain.chat import ChatRequest, ToolAnswered
from app.domain.conversations import Message, Role, Text, ToolCall, ToolResult

TIME_LIMIT_S = 30.0
_AT_ONCE = 4
_MOST_CALLS = 16  # of one reply: more of them would fill the prompt with their results alone
_CLOSED = (
    "You have used all tool calls there are for this message. Answer now with what you have found, "
    "and say what is missing."
)

Results = dict[int, ToolResult]
Push = Callable[[ToolAnswered], None]


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """How often tools may be called for one message, and how much of a result a prompt holds."""

    rounds_max: int
    output_max_chars: int


class ToolRounds:
    """Runs the calls of one exchange. Lives on the exchange thread."""

    def __init__(self, toolbox: Toolbox, context: ToolContext, limits: ToolLimits) -> None:
        self._toolbox = toolbox
        self._context = context
        self._limits = limits

    async def run(self, calls: Sequence[ToolCall], results: Results, push: Push) -> None:
        """Run calls; put their results into `results` by place and push them as they come.

        Cancelling it leaves in `results` what was ready by then.
        """
        side_by_side = asyncio.Semaphore(1 if any(map(self._toolbox.writes, calls)) else _AT_ONCE)

        async def answer(place: int, call: ToolCall) -> None:
            async with side_by_side:
                results[place] = await self._answer(place, call)
            push(ToolAnswered(results[place]))

        await asyncio.gather(*(answer(place, call) for place, call in enumerate(calls)))

    def all_of(self, calls: Sequence[ToolCall], results: Results) -> tuple[ToolResult, ...]:
        """Return a result for each call, in order; one that was not ready says so."""
        return tuple(
            results.get(place) or unfinished_result(call) for place, call in enumerate(calls)
        )

    def next_request(
        self, request: ChatRequest, said: Message, answered: Message, rounds: int
    ) -> ChatRequest:
        """Return the request after a round: the same with call and results after it.

        After the last round that is allowed, the model is told to answer.
        """
        came = with_cut_results((said, answered), self._limits.output_max_chars)
        messages = (*request.messages, *came)
        if rounds < self._limits.rounds_max:
            return replace(request, messages=messages)
        telling = replace(answered, role=Role.USER, blocks=(Text(_CLOSED),))
        return replace(request, messages=(*messages, telling), tools_closed=True)

    async def _answer(self, place: int, call: ToolCall) -> ToolResult:
        if place >= _MOST_CALLS:
            words = f"At most {_MOST_CALLS} tools can be called at once. Call it again if needed."
            return ToolResult(call.call_id, call.name, words, is_error=True)
        limit_s = TIME_LIMIT_S
        running = asyncio.to_thread(self._toolbox.run, call, self._context)
        try:
            return await asyncio.wait_for(running, limit_s)
        except TimeoutError:
            words = f"It took longer than {limit_s:g} s. Ask for less, or go on without it."
            return ToolResult(
                call.call_id, call.name, words, is_error=True, duration_ms=round(limit_s * 1000)
            )


def unfinished_result(call: ToolCall) -> ToolResult:
    """Return the result of a call that was broken off, by the user or by the program's end."""
    words = "This was broken off before it had answered. Call it again if it is still needed."
    return ToolResult(call.call_id, call.name, words, is_error=True)
