"""A model looked up when its stream begins, so that a missing key is an error of the turn."""

import asyncio
from collections.abc import Callable
from typing import Any

from app.domain.chat import ChatRequest
from app.domain.ports import ChatModel


class Deferred:
    """A `ChatModel` that `find` gives, in a thread, when it is first asked."""

    def __init__(self, find: Callable[[], ChatModel]) -> None:
        self._find = find

    async def stream(self, request: ChatRequest) -> Any:
        """Yield what that model says; raises what `find` and the model do."""
        model = await asyncio.to_thread(self._find)
        stream = model.stream(request)
        try:
            async for event in stream:
                yield event
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
