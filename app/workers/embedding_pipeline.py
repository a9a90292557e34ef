"""The embedding pipeline: every passage gets its vectors in the active space, newest first."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from app.domain.errors import Cancelled, EmbedderUnavailable, KnownError
from app.domain.events import Changed
from app.domain.ids import PartId, PassageId, number_of
from app.domain.passages import PassageKind, PassageText, Space
from app.domain.ports import Embedder
from app.domain.text import one_line
from app.domain.workers import WorkerName
from app.storage.attempts import Attempts
from app.storage.passages import Passages
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.tally import Tally
from app.storage.vector_rows import BadVectors, checked
from app.storage.vector_writing import EmbeddedPassage, Unembedded
from app.storage.vectors import Vectors
from app.workers.capped_embedding import CAP_KEYS, CappedEmbedding, is_server
from app.workers.job import IsCancelled, Pace, Saved
from app.workers.page_pace import MOST_PAGES, PagePace
from app.workers.spend_guard import SpendGuard

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

ActiveEmbedder = Callable[[], Embedder]

_MOST_AT_ONCE = 100
_AHEAD = 2_000  # finding looks at every passage there is: 30 ms of a library of 100,000
_PROBE = "hello"
_CONCERNED = CAP_KEYS | frozenset(
    (
        "embedder",
        "embedder_consent",
        "embedding_batch_size",
        "embedding_max_retries",
        "min_message_tokens",
    )
)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A passage to be embedded; `known.twin` is set when the words of both are the same."""

    text: PassageText
    known: Unembedded


@dataclass(frozen=True, slots=True)
class _Made:
    space: Space
    embedded: tuple[EmbeddedPassage, ...]
    copies: dict[PassageId, Unembedded]

    @property
    def count(self) -> int:
        return len(self.embedded) + len(self.copies)


@dataclass(frozen=True, slots=True)
class Redo:
    """What making a space anew comes to: vectors to delete, passages and tokens to embed again."""

    space: str
    vectors: int
    passages: int
    tokens: int


class EmbeddingPipeline:
    """A `Job`: chunks of passages to vectors, a batch of texts a request, stored whole or not at all.

    `active` gives the embedder to use now; it raises `EmbedderUnavailable`, `Blocked` or a
    `ProviderError` while there is none. Spaces are left as they are when another becomes active, so
    going back to one costs nothing. An embedder may have more than the port says: a `space_name`
    that asks nobody, and what `CappedEmbedding` asks of servers; `guard` is the one of all workers.

    Attributes:
        is_stopping: Whether its worker is to stop, asked while a server is asked for its space.
    """

    name = WorkerName.EMBEDDING_PIPELINE

    def __init__(
        self,
        store: Store,
        settings: Settings,
        active: ActiveEmbedder,
        pace_of_pages: PagePace | None = None,
        guard: SpendGuard | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self.is_stopping: IsCancelled = lambda: False
        self._active = active
        self._capped = CappedEmbedding(store, settings, guard)
        self._passages = Passages(store)
        self._vectors = Vectors(store)
        self._embedder: Embedder | None = None
        self._space: Space | None = None
        self._ahead: Sequence[PassageId] = ()
        self._news = False
        self._pace_of_pages = pace_of_pages or PagePace()
        self._are_pages = False
        self._known: dict[str, npt.NDArray[np.float32]] = {}

    @property
    def pace(self) -> Pace:
        """As many passages at once as a batch has texts, each batch stored before the next."""
        retries = self._settings.number("embedding_max_retries")
        return Pace(self._batch_size, save_items=1, retries=retries)

    def find(self, at: datetime) -> Sequence[_Waiting]:
        """Return the newest passages without vectors in the active space, with their words.

        A list made a moment ago is read on, unless passages have come since or another embedder
        was chosen; saving looks again whether each is still there. Raises what `active` raises.
        """
        self._known = {}
        space = self._turn_to_active()
        if self._news or not self._ahead:
            self._news = False
            self._vectors.ensure(space, self._settings.text("embedder"))
            least = self._settings.number("min_message_tokens")
            self._ahead = self._vectors.missing(space, least, _AHEAD, at)
        while self._ahead:
            ids, self._ahead = self._ahead[: self._batch_size], self._ahead[self._batch_size :]
            if items := self._items(space, ids):
                return self._pages_last(items)
        return ()

    def item_id(self, item: _Waiting) -> int:
        """Return the passage's id."""
        return item.text.id

    def describe(self, item: _Waiting) -> str:
        """Return the title of the conversation it is from."""
        return one_line(item.text.title, 60) or f"passage {item.text.id}"

    def make(self, items: Sequence[_Waiting], is_cancelled: IsCancelled) -> _Made:
        """Return the vectors of passages; texts that came through before are not embedded again.

        Raises `Cancelled` between two batches of the model and whatever the embedder raises. What
        it cannot do with a text is `BadVectors`, so that the text is tried alone; when it cannot do
        even a plain word, `EmbedderUnavailable`.
        """
        if (embedder := self._embedder) is None or (space := self._space) is None:
            raise EmbedderUnavailable("There is no embedder")
        self._are_pages = any(item.text.kind is PassageKind.MAN_PAGE for item in items)
        try:
            return self._made(embedder, space, items, is_cancelled)
        except (BadVectors, EmbedderUnavailable) as error:
            self._news = True
            self._probe(embedder, space, is_cancelled)
            raise BadVectors(error.title, error.hint) from error
        except Cancelled:
            raise
        except Exception:
            self._news = True  # what was not made is to be found again, in its order
            raise

    def save(self, results: Sequence[_Made]) -> Saved:
        """Store vectors; drop those whose passage is gone or says something else by now."""
        stored = 0
        for made in results:
            stored += self._vectors.put(made.space, made.embedded, made.copies)
        skipped = sum(made.count for made in results) - stored
        return Saved(stored, skipped, self._capped.take_spent())

    def tally(self) -> Tally:
        """Return how many passages should have vectors, and how many do in the active space."""
        try:
            name: str | None = _space_name(self._active())
        except KnownError:
            name = self._space.name if self._space else None  # the last one, better than none
        return self._vectors.tally(name, self._settings.number("min_message_tokens"))

    def poll_interval_s(self) -> float:
        """Return `embedding_pipeline_poll_interval`."""
        return float(self._settings.number("embedding_pipeline_poll_interval"))

    def wakes_for(self, changed: Changed) -> bool:
        """Return whether passages came, a conversation left the trash, or the embedder changed."""
        if changed.passages or changed.turns_completed or changed.settings & _CONCERNED:
            self._news = True
        return self._news or bool(changed.conversations or changed.providers)

    def waiting_words(self, count: int) -> str:
        """Return how many passages wait, in words."""
        if count == 1:
            return "1 passage waits for its embedding"
        return f"{count:,} passages wait for embeddings"

    # -- making a space anew

    def redo(self, kinds: Collection[PassageKind] = ()) -> Redo:
        """Return what `start_over` would delete and do again. Blocking; raises as `active` does."""
        name = _space_name(self._active())
        least = self._settings.number("min_message_tokens")
        if kinds:
            return Redo(name, *self._vectors.amount(name, least, kinds))
        _, vectors = self._vectors.count(name)
        total = self._vectors.tally(name, least).total
        return Redo(name, vectors, total, self._vectors.tokens(least))

    def start_over(self, kinds: Collection[PassageKind] = ()) -> None:
        """Throw the active space away, or these kinds in it; once woken, it is made anew. Blocking.

        Raises as `active` does, and StorageError.
        """
        name = _space_name(self._active())
        if kinds:
            self._vectors.drop_kinds(name, kinds)
        else:
            self._vectors.drop(name)
        Attempts(self._store, self.name).forgive()
        self._news = True

    # -- inside

    @property
    def _batch_size(self) -> int:
        return min(_MOST_AT_ONCE, self._settings.number("embedding_batch_size"))

    def _turn_to_active(self) -> Space:
        embedder = self._active()
        space = self._capped.space(embedder, self.is_stopping)
        if space != self._space:
            if self._space is not None:
                # What one model refused another may take.
                Attempts(self._store, self.name).forgive()
            self._ahead = ()
        self._embedder, self._space = embedder, space
        return space

    def _pages_last(self, items: list[_Waiting]) -> list[_Waiting]:
        """Return a batch; to a server manual pages go after all else, a few at a time."""
        pages = [item for item in items if item.text.kind is PassageKind.MAN_PAGE]
        if not pages or not is_server(self._embedder):
            return items
        others = [item for item in items if item.text.kind is not PassageKind.MAN_PAGE]
        later = pages if others else pages[MOST_PAGES:]
        self._ahead = (*self._ahead, *(item.text.id for item in later))
        return others or pages[:MOST_PAGES]

    def _items(self, space: Space, ids: Sequence[PassageId]) -> list[_Waiting]:
        """Return passages with their words, in the order given; what is gone is left out."""
        known = self._vectors.before_embedding(space, ids)  # the hash first, then what it is of
        twins = {each.twin for each in known.values() if each.twin is not None}
        texts = {text.id: text for text in self._passages.texts({*ids, *twins})}
        items = []
        for each in ids:
            if each not in known or each not in texts:
                continue
            own, waiting = texts[each], known[each]
            twin = texts.get(waiting.twin) if waiting.twin is not None else None
            if twin is None or _said(twin) != _said(own):
                waiting = Unembedded(waiting.id, waiting.content_hash, None)
            items.append(_Waiting(own, waiting))
        return items

    def _made(
        self, embedder: Embedder, space: Space, items: Sequence[_Waiting], is_cancelled: IsCancelled
    ) -> _Made:
        copies = {item.text.id: item.known for item in items if item.known.twin is not None}
        pieces = [
            (item, self._pieces(embedder, item.text, is_cancelled))
            for item in items
            if item.known.twin is None
        ]
        wanted = {piece.text for _, own in pieces for piece in own} - self._known.keys()
        # Short ones together: a model pads each of a batch to the longest.
        self._embed(embedder, space, sorted(wanted, key=_by_length), is_cancelled)
        embedded = tuple(
            EmbeddedPassage(
                item.text.id,
                item.known.content_hash,
                [piece.part for piece in own],
                [piece.span for piece in own],
                self._vectors_of(space, [piece.text for piece in own]),
            )
            for item, own in pieces
        )
        return _Made(space, embedded, copies)

    def _pieces(
        self, embedder: Embedder, text: PassageText, is_cancelled: IsCancelled
    ) -> "list[_Piece]":
        """Return what of a passage gets a vector each, in reading order."""
        most = self._settings.number("turn_max_tokens")
        overlap = self._settings.number("turn_overlap_tokens")
        overlap = overlap if overlap < most else most // 10
        pieces = []
        for part in text.parts:
            if is_cancelled():
                raise Cancelled("The worker was stopped")
            words = part.embedded
            for start, end in embedder.chunks(words, most, overlap) if words.strip() else ():
                pieces.append(_Piece(part.id, (start, end), words[start:end]))
        return pieces

    def _embed(
        self, embedder: Embedder, space: Space, texts: Sequence[str], is_cancelled: IsCancelled
    ) -> None:
        """Embed texts, a batch a request; those of batches that came through are kept."""
        for first in range(0, len(texts), self._batch_size):
            batch = texts[first : first + self._batch_size]
            vectors = self._asked(embedder, space, batch, is_cancelled)
            self._known.update(zip(batch, vectors, strict=True))

    def _probe(self, embedder: Embedder, space: Space, is_cancelled: IsCancelled) -> None:
        """Tell whose fault a failure was: raise EmbedderUnavailable unless the embedder works."""
        try:
            self._asked(embedder, space, [_PROBE], is_cancelled)
        except BadVectors as error:
            raise EmbedderUnavailable(error.title, error.hint) from error

    def _asked(
        self, embedder: Embedder, space: Space, texts: Sequence[str], is_cancelled: IsCancelled
    ) -> "npt.NDArray[np.float32]":
        if self._are_pages and is_server(embedder):
            self._pace_of_pages.turn(lambda: is_cancelled() or self._news)
        vectors = self._capped.vectors(embedder, texts, is_cancelled)
        return checked(vectors, len(texts), space)

    def _vectors_of(self, space: Space, texts: Sequence[str]) -> "npt.NDArray[np.float32]":
        import numpy as np

        if not texts:
            return np.empty((0, space.dimension), np.float32)
        return np.stack([self._known[text] for text in texts])


@dataclass(frozen=True, slots=True)
class _Piece:
    """A chunk: where it stands in which part, and what it says."""

    part: PartId
    span: tuple[int, int]
    text: str


def _by_length(text: str) -> tuple[int, str]:
    return len(text), text


def _said(text: PassageText) -> list[tuple[int, str]]:
    """Return what is embedded of each part, by its number: equal means equal vectors."""
    return [(number_of(part.id), part.embedded) for part in text.parts]


def _space_name(embedder: Embedder) -> str:
    """Return the name of an embedder's space; a server's may be unwilling to say more at once."""
    return str(getattr(embedder, "space_name", "") or embedder.space.name)
