"""Chunks of passages and the vectors of their texts, embedded a batch a request within the spend limits."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from app.domain.changes import SpendAdded
from app.domain.errors import Cancelled, EmbedderUnavailable
from app.domain.ids import PartId
from app.domain.passages import PassageText, Space
from app.domain.ports import Embedder, TokenVectors, token_embedder
from app.domain.workers import UsageTotals, WorkerName
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.passages.vector_rows import BadVectors, validated_vectors
from app.storage.tables.settings import Settings
from app.workers.job_interface import IsCancelled
from app.workers.progress import plus
from app.workers.spend_limits import MaxUsage, Reservation, SpendLimits, may_be_paid

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from app.providers.embedders.remote import RemoteEmbedder

SPEND_KEYS = frozenset(("own_prices", "spend_cap_daily_usd", "spend_cap_monthly_usd"))
MAX_PAGES_PER_REQUEST = 10
_PROBE_TEXT = "hello"
_PAGE_REQUESTS, _PER_S = 10, 60.0
_CHECK_EVERY_S = 0.1


@runtime_checkable
class MeteredEmbedder(Protocol):
    """An embedder on a server, whose requests are counted and may cost money."""

    def max_usage(self, texts: Sequence[str]) -> tuple[int, float | None]:
        """Return the maximum tokens and USD for embedding texts; None is an unknown price."""
        ...

    def take_usage(self) -> UsageTotals | None:
        """Return the usage since the last call; None for none."""
        ...


if TYPE_CHECKING:

    def _is_metered(embedder: RemoteEmbedder) -> MeteredEmbedder:
        return embedder


class LimitedEmbedding:
    """Embeds texts within the spend limits and records what servers charge."""

    def __init__(self, store: Store, settings: Settings, limits: SpendLimits | None) -> None:
        self._store = store
        self._settings = settings
        self._limits = limits or SpendLimits(store, settings)
        self._spent = UsageTotals()

    def space(self, embedder: Embedder, is_cancelled: IsCancelled) -> Space:
        """Return an embedder's space; raises as `vectors` if a server has to be asked for it."""
        if not getattr(embedder, "knows_space", True):
            self.vectors(embedder, [_PROBE_TEXT], is_cancelled)  # the property cannot be cancelled
        return embedder.space

    def vectors(
        self, embedder: Embedder, texts: Sequence[str], is_cancelled: IsCancelled
    ) -> "npt.NDArray[np.float32]":
        """Return `embedder.embed(texts)`; blocks.

        Raises Blocked before a request that might exceed a spend limit, StorageError if the cost
        cannot be recorded, and what the embedder raises.
        """
        if not isinstance(embedder, MeteredEmbedder):
            return embedder.embed(texts, is_cancelled)
        tokens, cost_usd = embedder.max_usage(texts)
        maximum = MaxUsage(tokens, 0, cost_usd)
        model = self._settings.text("embedder")
        reservation = self._limits.reserve(WorkerName.EMBEDDING_PIPELINE, model, maximum)
        try:
            vectors = embedder.embed(texts, is_cancelled)
        except BaseException as error:
            self._settle(embedder, reservation, maximum if may_be_paid(error) else None)
            raise
        self._settle(embedder, reservation)
        return vectors

    def take_spend(self) -> UsageTotals:
        """Return what requests have cost since the last call."""
        spent, self._spent = self._spent, UsageTotals()
        return spent

    def _settle(
        self,
        embedder: MeteredEmbedder,
        reservation: Reservation,
        interrupted: MaxUsage | None = None,
    ) -> None:
        """Record what requests cost, including failed ones; `interrupted` ones at their maximum."""
        usage = embedder.take_usage()
        if interrupted is not None:
            usage = _at_most(interrupted, usage or UsageTotals())
        if usage is None:
            self._limits.release(reservation)
            return
        spent = SpendAdded(
            now(), WorkerName.EMBEDDING_PIPELINE, reservation.model, usage.tokens, 0, 0,
            usage.cost_usd, held=reservation.uid, is_estimated=interrupted is not None,
        )  # fmt: skip
        self._spent = plus(self._spent, usage)
        self._limits.settle(reservation, spent)  # counts until it is stored
        self._store.save(spent)


def is_server(embedder: Embedder | None) -> bool:
    """Return whether an embedder runs on a server, so that its requests are counted."""
    return isinstance(embedder, MeteredEmbedder)


def _at_most(maximum: MaxUsage, reported: UsageTotals) -> UsageTotals:
    """Return the upper bound for requests of which the server reported only some."""
    tokens = max(maximum.input_tokens, reported.tokens)
    if maximum.cost_usd is None or reported.cost_usd is None:
        return UsageTotals(tokens, None)
    cost_usd = max(maximum.cost_usd, reported.cost_usd)
    return UsageTotals(tokens, cost_usd, cost_usd)


class PageRateLimit:
    """Allows ten requests in any minute: thousands of manual pages must not use up a quota."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._sent: deque[float] = deque(maxlen=_PAGE_REQUESTS)

    def wait(self, should_yield: Callable[[], bool]) -> None:
        """Wait until a request may be sent, and count it; raise Cancelled once `should_yield`."""
        while len(self._sent) == _PAGE_REQUESTS and self._clock() < self._sent[0] + _PER_S:
            if should_yield():
                raise Cancelled("Manual pages yield to other passages")
            self._sleep(_CHECK_EVERY_S)
        self._sent.append(self._clock())


def space_name_of(embedder: Embedder) -> str:
    """Return the name of an embedder's space, without a request if possible."""
    return str(getattr(embedder, "space_name", "") or embedder.space.name)


_MOST_AT_ONCE = 100
_FIRST_TEXTS = 32  # in the first request to a server, whose speed is not known
_REQUEST_S = 10.0  # that a request to a server should take at most
_PROBE = "hello"


@dataclass(frozen=True, slots=True)
class CutChunk:
    """A piece of a passage: its part, its range in the part, and its text."""

    part: PartId
    span: tuple[int, int]
    text: str


class ChunkVectors:
    """Cuts passages and embeds the chunks; the vectors of successful batches are kept until `start_over`.

    Attributes:
        are_pages: Whether manual pages are embedded, of which a server gets only some a minute. The wait for
            that ends when `is_outdated`.
    """

    def __init__(
        self,
        settings: Settings,
        limited: LimitedEmbedding,
        page_rate: PageRateLimit,
        is_outdated: Callable[[], bool],
        *,
        with_tokens: bool,
    ) -> None:
        self._settings = settings
        self._limited = limited
        self._page_rate = page_rate
        self._is_outdated = is_outdated
        self._with_tokens = with_tokens
        self._fitting_texts = _FIRST_TEXTS
        self._known: dict[str, npt.NDArray[np.float32]] = {}
        self._known_tokens: dict[str, TokenVectors] = {}
        self.are_pages = False

    def start_over(self) -> None:
        self._known, self._known_tokens = {}, {}

    def on_other_space(self) -> None:
        """Forget how fast the last embedder was."""
        self._fitting_texts = _FIRST_TEXTS

    def at_once(self, embedder: Embedder | None) -> int:
        """Return how many texts a request to the embedder has.

        A server gets as many at once as it embedded lately in some seconds, so that a slow one neither runs
        into the time limit nor shows no progress.
        """
        most = min(_MOST_AT_ONCE, self._settings.number("embedding_batch_size"))
        return min(most, self._fitting_texts) if is_server(embedder) else most

    def cut(
        self, embedder: Embedder, text: PassageText, is_cancelled: IsCancelled
    ) -> list[CutChunk]:
        """Return the chunks of a passage, in reading order. Raises Cancelled."""
        most = self._settings.number("turn_max_tokens")
        overlap = self._settings.number("turn_overlap_tokens")
        overlap = overlap if overlap < most else most // 10
        chunks = []
        for part in text.parts:
            if is_cancelled():
                raise Cancelled("The worker was stopped")
            content = part.embedded
            for start, end in embedder.chunks(content, most, overlap) if content.strip() else ():
                chunks.append(CutChunk(part.id, (start, end), content[start:end]))
        return chunks

    def embed(
        self, embedder: Embedder, space: Space, texts: set[str], is_cancelled: IsCancelled
    ) -> None:
        """Embed the texts without a known vector; raise what the embedder raises, and BadVectors."""
        # Short ones together: a model pads each of a batch to the longest.
        waiting = sorted(texts - self._known.keys(), key=lambda text: (len(text), text))
        while waiting:
            batch = waiting[: self.at_once(embedder)]
            started_s = monotonic()
            vectors = self._request(embedder, space, batch, is_cancelled)
            self._known.update(zip(batch, vectors, strict=True))
            took_s = monotonic() - started_s
            fitting = int(len(batch) * _REQUEST_S / max(took_s, _REQUEST_S / _MOST_AT_ONCE))
            self._fitting_texts = max(1, min(2 * self._fitting_texts, fitting))
            waiting = waiting[len(batch) :]

    def probe(self, embedder: Embedder, space: Space, is_cancelled: IsCancelled) -> None:
        """Raise EmbedderUnavailable unless the embedder can embed a plain word."""
        try:
            self._request(embedder, space, [_PROBE], is_cancelled)
        except BadVectors as error:
            raise EmbedderUnavailable(error.title, error.hint) from error

    def vectors(self, space: Space, chunks: Sequence[CutChunk]) -> "npt.NDArray[np.float32]":
        """Return the vectors of embedded chunks, (n, dim)."""
        import numpy as np

        if not chunks:
            return np.empty((0, space.dimension), np.float32)
        return np.stack([self._known[each.text] for each in chunks])

    def tokens_by_part(self, chunks: Iterable[CutChunk]) -> "dict[PartId, npt.NDArray[np.float32]]":
        """Return the token vectors of a passage by part, those in the overlap of two chunks once."""
        import numpy as np

        parts: dict[PartId, list[npt.NDArray[np.float32]]] = {}
        end: dict[PartId, int] = {}
        for each in chunks:
            tokens, start = self._known_tokens[each.text], each.span[0]
            is_new = tokens.spans[:, 0] + start >= end.get(each.part, 0)
            parts.setdefault(each.part, []).append(tokens.vectors[is_new])
            end[each.part] = each.span[1]
        return {part: np.concatenate(own) for part, own in parts.items()}

    def _request(
        self, embedder: Embedder, space: Space, texts: Sequence[str], is_cancelled: IsCancelled
    ) -> "npt.NDArray[np.float32]":
        if self.are_pages and is_server(embedder):
            self._page_rate.wait(lambda: is_cancelled() or self._is_outdated())
        wanted = token_embedder(embedder)
        if wanted is not None and self._with_tokens:
            vectors, tokens = wanted.embed_with_tokens(texts, is_cancelled)
            self._known_tokens.update(zip(texts, tokens, strict=True))
        else:
            vectors = self._limited.vectors(embedder, texts, is_cancelled)
        return validated_vectors(vectors, len(texts), space)
