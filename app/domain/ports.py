"""Ports: the interfaces of language models and embedders, whose implementations the user chooses.

Implementations are in `app.providers`.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from app.domain.chat import ChatRequest, StreamEvent
from app.domain.passages import Space

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class ChatModel(Protocol):
    """A language model with streaming replies."""

    def stream(self, request: ChatRequest) -> AsyncIterator[StreamEvent]:
        """Yield the events of the reply; a complete one ends with `Finished`.

        Raises `ProviderError`. Closing the iterator cancels the request within 200 ms.
        """
        ...


class Embedder(Protocol):
    """An embedding model."""

    @property
    def space(self) -> Space:
        """The space of its vectors."""
        ...

    def embed(
        self, texts: Sequence[str], cancelled: Callable[[], bool] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Return float32, (n, dim), rows of unit length, in the order of `texts`.

        Blocking. Text beyond `space.max_tokens` is ignored. `cancelled` is called between batches; when
        it returns True, `Cancelled` is raised. Raises `KnownError` when the model is missing, cannot be
        reached or returns invalid data.
        """
        ...

    def chunks(self, text: str, max_tokens: int, overlap_tokens: int) -> Sequence[tuple[int, int]]:
        """Return the (start, end) offsets of the chunks of `text`, in order.

        Only white space lies between chunks. A short text is one chunk, a blank one none. `max_tokens`
        is limited to the maximum of the space.
        """
        ...
