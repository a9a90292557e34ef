"""Ports: the interfaces of language models and embedders, whose implementations the user chooses.

Implementations are in `app.providers`.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

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
    def space(self) -> Space: ...

    def embed(
        self,
        texts: Sequence[str],
        cancelled: Callable[[], bool] | None = None,
        *,
        as_queries: bool = False,
    ) -> "npt.NDArray[np.float32]":
        """Return float32, (n, dim), rows of unit length, in the order of `texts`.

        `as_queries` tells questions from the texts in which they are searched: some models embed
        the two differently. Blocking. Text beyond `space.max_tokens` is ignored. `cancelled` is called between batches; when
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


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """The tokens of a text in order, without special ones.

    `spans` is int32 (n, 2), the (start, end) of each in the text; `vectors` float32 (n, 32), rows of unit
    length.
    """

    spans: "npt.NDArray[np.int32]"
    vectors: "npt.NDArray[np.float32]"


@runtime_checkable
class TokenEmbedder(Protocol):
    """An embedder that can return the vectors of tokens too, for token matching."""

    @property
    def token_model(self) -> str:
        """The identity of its token vectors: those of another are not comparable. "" if it has none."""
        ...

    @property
    def unrelated_tokens(self) -> float:
        """The mean cosine of a question's tokens with the nearest ones of an unrelated message."""
        ...

    def embed_with_tokens(
        self,
        texts: Sequence[str],
        cancelled: Callable[[], bool] | None = None,
        *,
        as_queries: bool = False,
    ) -> "tuple[npt.NDArray[np.float32], Sequence[TokenVectors]]":
        """Return what `Embedder.embed` does, and the tokens of each text. Raises as it does."""
        ...


def token_embedder(embedder: object) -> TokenEmbedder | None:
    """Return an embedder if it has token vectors, else None."""
    is_one = isinstance(embedder, TokenEmbedder) and embedder.token_model
    return embedder if is_one else None  # type: ignore[return-value]
