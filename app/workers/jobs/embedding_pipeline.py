"""The embedding pipeline: every passage gets its vectors in the active space, newest first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from app.domain.change_set import ChangeSet
from app.domain.errors import Cancelled, EmbedderUnavailable, KnownError
from app.domain.ids import PassageId, part_number
from app.domain.passages import PassageKind, PassageText, Space
from app.domain.ports import Embedder, token_embedder
from app.domain.text import one_line
from app.domain.workers import WorkerName
from app.storage.engine.stamps import now
from app.storage.tables.attempts import Attempts
from app.storage.tables.passages.queries import Passages
from app.storage.tables.passages.vector_rows import BadVectors, EmbeddedPassage, EmbeddingCandidate
from app.storage.tables.passages.vectors import Vectors
from app.storage.work.queue import Tally
from app.workers.job_interface import CONVERSATIONS, IsCancelled, Pace, PrefetchingJob, Saved
from app.workers.jobs import JobParts
from app.workers.jobs.chunk_vectors import (
    MAX_PAGES_PER_REQUEST,
    SPEND_KEYS,
    ChunkVectors,
    LimitedEmbedding,
    PageRateLimit,
    is_server,
    space_name_of,
)

if TYPE_CHECKING:
    from app.index.token_index import TokenizedPassage

_PREFETCH = 2_000  # finding looks at every passage there is: 30 ms of a library of 100,000


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A passage to be embedded; `known.twin` is set when both have the same text.

    One that `has_vectors` lacks only those of its tokens.
    """

    text: PassageText
    known: EmbeddingCandidate
    has_vectors: bool = False

    @property
    def id(self) -> int:
        return self.text.id


@dataclass(frozen=True, slots=True)
class _Made:
    """Vectors of passages and of their tokens; those in `tokenized` alone had vectors before."""

    space: Space
    count: int
    embedded: tuple[EmbeddedPassage, ...]
    copies: dict[PassageId, EmbeddingCandidate]
    tokenized: "tuple[TokenizedPassage, ...]" = ()
    token_model: str = ""


@dataclass(frozen=True, slots=True)
class EmbeddingAmount:
    """The work of embedding a space again: vectors to delete, passages and tokens to embed."""

    space: str
    vectors: int
    passages: int
    tokens: int


class EmbeddingPipeline(PrefetchingJob[_Waiting, _Made]):
    """A `Job`: chunks of passages become vectors, a batch of texts a request, stored atomically.

    `parts.embedder` returns the embedder to use now; it raises `EmbedderUnavailable`, `Blocked` or a
    `ProviderError` while there is none. Spaces are kept when another becomes active, so going back
    to one costs nothing. An embedder may have a `space_name` that is known without a request.

    Attributes:
        is_stopping: Whether its worker is to stop, checked while a server is asked for its space.
    """

    name = WorkerName.EMBEDDING_PIPELINE
    wakes_on = CONVERSATIONS | SPEND_KEYS.union(
        (
            "passages",
            "embedder",
            "embedder_consent",
            "embedding_batch_size",
            "embedding_max_retries",
            "min_message_tokens",
        )
    )

    def __init__(self, parts: JobParts, page_rate: PageRateLimit | None = None) -> None:
        assert parts.embedder is not None
        self._attempts = Attempts(parts.store, self.name)
        self._settings = parts.settings
        self._token_indexes = parts.tokens
        self.is_stopping: IsCancelled = lambda: False
        self._active = parts.embedder
        self._limited = LimitedEmbedding(parts.store, parts.settings, parts.limits)
        self._passages = Passages(parts.store)
        self._vectors = Vectors(parts.store)
        self._embedder: Embedder | None = None
        self._space: Space | None = None
        self._chunks = ChunkVectors(
            parts.settings, self._limited, page_rate or PageRateLimit(),
            lambda: self.is_outdated, with_tokens=parts.tokens is not None,
        )  # fmt: skip
        self._lacking_tokens: Sequence[PassageId] = ()
        self._lacking_in: object = None
        self._is_lacking_known = False

    @property
    def pace(self) -> Pace:
        """As many passages at once as a batch has texts, each batch stored before the next."""
        retries = self._settings.number("embedding_max_retries")
        return Pace(self._chunks.at_once(self._embedder), save_items=1, retries=retries)

    def find(self, at: datetime) -> Sequence[_Waiting]:
        """Return the newest passages without vectors in the active space, with their text.

        After these come those without vectors of their tokens, where the embedder has such. They
        come from a prefetched list, unless passages were added since or another embedder was chosen;
        saving checks again whether each still exists. Raises what `active` raises.
        """
        self._chunks.start_over()
        space = self._use_active()
        self.refetch(lambda: self._missing(space, at))
        at_once = self._chunks.at_once(self._embedder)
        while self.prefetched:
            if items := self._items(space, self.take(at_once)):
                return self._pages_last(items)
        self._find_lacking_tokens(self._embedder, at)
        while ids := self._lacking_tokens[:at_once]:
            self._lacking_tokens = self._lacking_tokens[at_once:]
            if items := self._items(space, ids):
                return [replace(each, has_vectors=True) for each in items]
        return ()

    def describe(self, item: _Waiting) -> str:
        """Return the title of the conversation it is from."""
        return one_line(item.text.title, 60) or f"passage {item.text.id}"

    def make(self, items: Sequence[_Waiting], is_cancelled: IsCancelled) -> _Made:
        """Return the vectors of passages; texts that succeeded before are not embedded again.

        Raises `Cancelled` between two batches and whatever the embedder raises: `BadVectors` for a
        text it cannot embed, so that it is tried alone; `EmbedderUnavailable` if it cannot embed
        even a plain word.
        """
        if (embedder := self._embedder) is None or (space := self._space) is None:
            raise EmbedderUnavailable("There is no embedder")
        self._chunks.are_pages = any(item.text.kind is PassageKind.MAN_PAGE for item in items)
        try:
            return self._made(embedder, space, items, is_cancelled)
        except (BadVectors, EmbedderUnavailable) as error:
            self.is_outdated, self._is_lacking_known = True, False
            self._chunks.probe(embedder, space, is_cancelled)
            raise BadVectors(error.title, error.hint) from error
        except Cancelled:
            self._is_lacking_known = False
            raise
        except Exception:
            self.is_outdated = True  # failed passages are found again, in order
            raise

    def save(self, results: Sequence[_Made]) -> Saved:
        """Store vectors; drop those whose passage was deleted or changed meanwhile."""
        stored = 0
        for made in results:
            is_new = made.embedded or made.copies
            if is_new:
                stored += self._vectors.put(made.space, made.embedded, made.copies)
            if made.token_model and self._token_indexes is not None:
                count = self._token_indexes.put(
                    made.space, made.token_model, made.tokenized, made.copies
                )
                stored += 0 if is_new else count
                self._is_lacking_known &= count == made.count
        skipped = sum(made.count for made in results) - stored
        return Saved(stored, skipped, self._limited.take_spend())

    def tally(self) -> Tally:
        """Return how many passages should have vectors, and how many do in the active space.

        Where it has token vectors, those without are not done.
        """
        embedder: Embedder | None = None
        try:
            embedder = self._active()
            name: str | None = space_name_of(embedder)
        except KnownError:
            name = self._space.name if self._space else None  # the last one, better than none
        tally = self._vectors.tally(name, self._least_tokens)
        self._find_lacking_tokens(embedder, now())
        return replace(tally, done=max(0, tally.done - len(self._lacking_tokens)))

    def poll_interval_s(self) -> float:
        return float(self._settings.number("embedding_pipeline_poll_interval"))

    def note(self, changed: ChangeSet) -> None:
        """Look again after passages were added, a conversation was restored or the embedder changed."""
        super().note(changed)
        if changed.passages:
            self.is_outdated = True
        if changed.conversations:
            self._is_lacking_known = False  # one that was restored may lack tokens

    # -- embedding again

    def amount(self, kinds: Collection[PassageKind] = ()) -> EmbeddingAmount:
        """Return what `start_over` would delete and embed again. Blocking; raises as `active` does."""
        name = space_name_of(self._active())
        return EmbeddingAmount(name, *self._vectors.amount(name, self._least_tokens, kinds))

    def start_over(self, kinds: Collection[PassageKind] = ()) -> None:
        """Delete the vectors of the active space, or of these kinds in it. Blocking.

        Raises as `active` does, and StorageError.
        """
        name = space_name_of(self._active())
        if kinds:
            self._vectors.drop_kinds(name, kinds)
        else:
            self._vectors.drop(name)
        self._attempts.clear_failures()
        self.is_outdated = True

    # -- inside

    def _use_active(self) -> Space:
        embedder = self._active()
        space = self._limited.space(embedder, self.is_stopping)
        if space != self._space:
            self._chunks.on_other_space()
            if self._space is not None:
                # Another model may accept what one refused.
                self._attempts.clear_failures()
            self.prefetched = ()
        self._embedder, self._space = embedder, space
        return space

    def _missing(self, space: Space, at: datetime) -> Sequence[PassageId]:
        self._vectors.ensure(space, self._settings.text("embedder"))
        return self._vectors.missing(space, self._least_tokens, _PREFETCH, at)

    @property
    def _least_tokens(self) -> int:
        return self._settings.number("min_message_tokens")

    def _find_lacking_tokens(self, embedder: Embedder | None, at: datetime) -> None:
        """Find the passages with vectors that lack those of their tokens, if there may be any."""
        indexes, wanted = self._token_indexes, token_embedder(embedder)
        if indexes is None or embedder is None or wanted is None:
            self._lacking_tokens = ()
            return
        space, model = embedder.space, wanted.token_model
        index = indexes.index_for(space, model)
        if not self._is_lacking_known or index is not self._lacking_in:
            self._is_lacking_known = True
            ids = self._vectors.embedded(space, self._least_tokens, at)
            self._lacking_tokens = indexes.lacking(space, model, ids)
            self._lacking_in = indexes.index_for(space, model)

    def _pages_last(self, items: list[_Waiting]) -> list[_Waiting]:
        """Return a batch; a server gets manual pages after all else, a few at a time."""
        pages = [item for item in items if item.text.kind is PassageKind.MAN_PAGE]
        if not pages or not is_server(self._embedder):
            return items
        others = [item for item in items if item.text.kind is not PassageKind.MAN_PAGE]
        later = pages if others else pages[MAX_PAGES_PER_REQUEST:]
        self.prefetched = (*self.prefetched, *(item.text.id for item in later))
        return others or pages[:MAX_PAGES_PER_REQUEST]

    def _items(self, space: Space, ids: Sequence[PassageId]) -> list[_Waiting]:
        """Return passages with their text, in the order given, without deleted ones."""
        known = self._vectors.before_embedding(space, ids)  # the hash before the text it is of
        twins = {each.twin for each in known.values() if each.twin is not None}
        texts = {text.id: text for text in self._passages.texts({*ids, *twins})}
        items = []
        for each in ids:
            if each not in known or each not in texts:
                continue
            own, waiting = texts[each], known[each]
            twin = texts.get(waiting.twin) if waiting.twin is not None else None
            if twin is None or _embedded_texts(twin) != _embedded_texts(own):
                waiting = EmbeddingCandidate(waiting.id, waiting.content_hash, None)
            items.append(_Waiting(own, waiting))
        return items

    def _made(
        self, embedder: Embedder, space: Space, items: Sequence[_Waiting], is_cancelled: IsCancelled
    ) -> _Made:
        copies = {
            item.text.id: item.known
            for item in items
            if item.known.twin is not None and not item.has_vectors
        }
        pieces = [
            (item, self._chunks.cut(embedder, item.text, is_cancelled))
            for item in items
            if item.text.id not in copies
        ]
        texts = {piece.text for _, own in pieces for piece in own}
        self._chunks.embed(embedder, space, texts, is_cancelled)
        embedded = tuple(
            EmbeddedPassage(
                item.text.id,
                item.known.content_hash,
                [piece.part for piece in own],
                [piece.span for piece in own],
                self._chunks.vectors(space, own),
            )
            for item, own in pieces
            if not item.has_vectors
        )
        tokens = token_embedder(embedder)
        if tokens is None or self._token_indexes is None:
            return _Made(space, len(items), embedded, copies)
        from app.index.token_index import TokenizedPassage

        tokenized = tuple(
            TokenizedPassage(
                item.text.id, item.known.content_hash, self._chunks.tokens_by_part(own)
            )
            for item, own in pieces
        )
        return _Made(space, len(items), embedded, copies, tokenized, tokens.token_model)


def _embedded_texts(text: PassageText) -> list[tuple[int, str]]:
    """Return the embedded text of each part, by its number: equal means equal vectors."""
    return [(part_number(part.id), part.embedded) for part in text.parts]


def build(parts: JobParts) -> EmbeddingPipeline | None:
    return None if parts.embedder is None else EmbeddingPipeline(parts)
