"""The seams: what upper layers ask of lower ones, small enough that a fake is as small.

Everything here is implemented in `storage`, `index` or `providers`, and put together in
`app.bootstrap`.
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from app.domain.chat import ChatRequest, ModelCard, StreamEvent
from app.domain.ids import PartId, PassageId
from app.domain.passages import PassageText, Space, VectorHit

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class ChatModel(Protocol):
    """A language model that streams."""

    def stream(self, request: ChatRequest) -> AsyncIterator[StreamEvent]:
        """Yield the reply as it comes; a complete one ends with `Finished`.

        Raises `ProviderError`. Closing the iterator cancels the request within 200 ms.
        """
        ...


class Provider(Protocol):
    """A source of models."""

    name: str

    async def models(self) -> tuple[ModelCard, ...]:
        """Return the models the server lists, best first; raise `ProviderError`."""
        ...

    def chat_model(self) -> ChatModel:
        """Return what talks to any of its models."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


class TextIndex(Protocol):
    """Passages by their words, as who feeds it sees it: a cache that may be deleted at any time."""

    @property
    def position(self) -> int:
        """The journal's position it stands at; 0 when it is new or had to be thrown away."""
        ...

    @property
    def passage_count(self) -> int:
        """How many passages the last commit holds."""
        ...

    @property
    def needs_rebuild(self) -> str | None:
        """Why it must be built anew before it can be used; None when it can."""
        ...

    def start_over(self) -> None:
        """Throw everything away; `position` is 0 again. Raises IndexUnavailable."""
        ...

    def close(self) -> None:
        """Let go of the writer and of what was not committed; searches still work."""
        ...

    def put(self, passages: Iterable[PassageText]) -> None:
        """Add passages, replacing those with the same id; visible after `commit`.

        Raises IndexUnavailable when the disk refuses; then nothing since the last commit counts.
        """
        ...

    def remove(self, passage_ids: Collection[PassageId]) -> None:
        """Drop passages; unknown ids are ignored; visible after `commit`."""
        ...

    def commit(self, position: int | None) -> None:
        """Make all changes durable and visible; `position` is the journal's, kept beside them.

        None while the index is being rebuilt.
        """
        ...


class VectorIndex(Protocol):
    """Parts of passages by their meaning, all of one space, in memory: a cache of the database."""

    @property
    def passage_count(self) -> int:
        """How many passages it holds."""
        ...

    def put(
        self,
        part_ids: "npt.NDArray[np.int64]",
        spans: "npt.NDArray[np.int32]",
        vectors: "npt.NDArray[np.float32]",
    ) -> None:
        """Add chunks; those of a passage that is held already replace what it held.

        `part_ids` is (n,), the chunks of one passage together; `spans` (n, 2), the chunk's start and
        end in its part's text; `vectors` (n, dim), rows of unit length. Visible at once.
        """
        ...

    def remove(self, passage_ids: Collection[PassageId]) -> None:
        """Drop passages; unknown ids are ignored; visible at once."""
        ...

    def search(
        self,
        vector: "npt.NDArray[np.float32]",
        limit: int,
        allowed: Collection[PassageId] | None = None,
        excluded: Collection[PassageId] = (),
    ) -> Sequence[VectorHit]:
        """Return the parts nearest to `vector` by their best chunk, best first.

        `allowed` restricts the passages (None: all), `excluded` are left out; both should be sets.
        """
        ...

    def cosines(
        self, vector: "npt.NDArray[np.float32]", parts: Collection[PartId]
    ) -> Mapping[PartId, float]:
        """Return the cosine of each part's best chunk; parts that are not held are absent."""
        ...


class Embedder(Protocol):
    """A model that gives texts places in a space, near in meaning being near in place."""

    @property
    def space(self) -> Space:
        """The space that all its vectors belong to."""
        ...

    def embed(
        self, texts: Sequence[str], cancelled: Callable[[], bool] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Return float32, (n, dim), rows of unit length, in the order of `texts`.

        Blocks, so call it off the GUI thread. Text beyond `space.max_tokens` is ignored.
        `cancelled` is asked between batches and ends it with `Cancelled`. Raises `KnownError`
        when the model is missing, cannot be reached or answers nonsense; then nothing is returned.
        """
        ...

    def chunks(self, text: str, max_tokens: int, overlap_tokens: int) -> Sequence[tuple[int, int]]:
        """Return the (start, end) offsets of the pieces of `text` that get a vector each.

        In reading order and without gaps but white space; one piece when the text is short enough,
        none when it is blank. `max_tokens` is lowered to what the space allows.
        """
        ...
