"""Token index synchronization: removes the vectors of passages that were deleted or changed.

The embedding pipeline puts token vectors; this module removes those of deleted and changed
passages, by journal position, also those deleted while no program ran. What is missing is made
again by the pipeline.
"""

import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from app.domain.change_set import ChangeSet
from app.domain.errors import StorageError
from app.domain.ids import PassageId, part_id, part_number
from app.domain.passages import Space
from app.index.follower import Follower, IsCancelled
from app.index.id_set import IdSet, Int64
from app.index.token_index import TokenIndex, TokenizedPassage, stamp_of
from app.storage.engine.errors import from_os_error
from app.storage.engine.store import Store
from app.storage.tables.passages.queries import Passages
from app.storage.tables.passages.vector_rows import EmbeddingCandidate
from app.storage.tables.passages.vectors import Vectors

_log = logging.getLogger(__name__)
_BATCH = 5_000
_MARK_EVERY = 1_000  # journal positions, when nothing was removed


class TokenIndexSync(Follower):
    """The token indexes in a folder, one for each space and token model. Thread-safe.

    The methods that write raise StorageError.
    """

    def __init__(self, store: Store, vectors: Vectors, folder: Path) -> None:
        super().__init__(store, "token index")
        self._passages = Passages(store)
        self._vectors = vectors
        self._folder = folder
        self._indexes: dict[str, TokenIndex] = {}
        self._is_behind = False
        self._end_watch = store.subscribe(self._watch)

    def stop(self) -> None:
        """End the thread, remove what was deleted since, and close the files. Blocking."""
        super().stop()
        self._end_watch()
        try:
            if self._is_behind:
                self.catch_up()
        finally:
            with self._busy:
                for index in self._indexes.values():
                    index.close()
                self._indexes = {}

    def index_for(self, space: Space, token_model: str) -> TokenIndex | None:
        """Return the index of a space; None if there is none, or none is open yet."""
        if self._thread is None and not self._indexes and self._folder.exists():
            try:
                self.catch_up()
            except StorageError as error:
                _log.warning("the token index waits: %s", error)
        return self._indexes.get(_name(space, token_model))

    def lacking(self, space: Space, token_model: str, passages: Int64) -> Sequence[PassageId]:
        """Return those of `passages`, (n,), that have no tokens, in the same order."""
        name = _name(space, token_model)
        with self._busy:
            held = IdSet(self._opened(name).passages if (self._folder / name).exists() else ())
        return [PassageId(each) for each in passages[~held.holds(passages)].tolist()]

    def put(
        self,
        space: Space,
        token_model: str,
        tokenized: Sequence[TokenizedPassage],
        copies: Mapping[PassageId, EmbeddingCandidate],
    ) -> int:
        """Store token vectors; return how many passages have theirs now.

        Left out are passages that meanwhile are gone or say something else, and `copies` whose twin
        has none.
        """
        with self._busy:  # a deletion after the check is followed after the write
            index = self._opened(_name(space, token_model))
            made = [*tokenized, *_copied(index, copies)]
            hashes = self._passages.hashes([each.id for each in made])
            made = [each for each in made if hashes.get(each.id) == each.content_hash]
            try:
                index.put(made)
            except OSError as error:
                raise from_os_error(error, "The token index") from error
        return len(made)

    def clear(self) -> None:
        """Delete all token indexes; the embedding pipeline makes them again."""
        with self._busy:
            for each in self._folders():
                self._drop(each)

    def _catch_up(self, is_cancelled: IsCancelled) -> None:
        self._is_behind = False
        spaces = {kept.space.name for kept in self._vectors.spaces()}
        for folder in self._folders():
            if folder.name.rpartition("-")[0] in spaces:
                self._follow(self._opened(folder.name), is_cancelled)
            else:
                self._drop(folder)

    def _follow(self, index: TokenIndex, is_cancelled: IsCancelled) -> None:
        is_last = False
        marked = index.position
        while not is_last and not is_cancelled():
            work = self._passages.work_since(index.position, _BATCH)
            held = index.stamps(np.array([*work.added, *work.removed], np.int64))
            hashes = self._passages.hashes(held) if held else {}
            gone = [
                each
                for each, stamp in held.items()
                if each not in hashes or stamp_of(hashes[each]) != stamp
            ]
            index.position, is_last = work.position, work.is_last
            try:
                if gone:
                    index.remove(gone)
                if gone or index.position - marked >= _MARK_EVERY:
                    index.mark()
                    marked = index.position
            except OSError as error:
                raise from_os_error(error, "The token index") from error

    def _folders(self) -> list[Path]:
        return sorted(self._folder.iterdir()) if self._folder.is_dir() else []

    def _opened(self, name: str) -> TokenIndex:
        """Return an open index, created if missing; those of other token models are deleted."""
        if (index := self._indexes.get(name)) is None:
            _, position = self._passages.forgetting()
            try:
                index = TokenIndex(self._folder / name, self._store.generation)
            except OSError as error:
                raise from_os_error(error, "The token index") from error
            if not index.part_count:
                index.position = position
            for folder in self._folders():
                if folder.name != name and folder.name.startswith(f"{name.rpartition('-')[0]}-"):
                    self._drop(folder)
            self._indexes = self._indexes | {name: index}  # others read without a lock
        return index

    def _drop(self, folder: Path) -> None:
        index = self._indexes.get(folder.name)
        self._indexes = {k: v for k, v in self._indexes.items() if k != folder.name}
        if index is not None:
            index.close()
        shutil.rmtree(folder, ignore_errors=True)

    def _watch(self, changed: ChangeSet) -> None:
        self._is_behind |= self._is_relevant(changed)

    def _is_relevant(self, changed: ChangeSet) -> bool:
        is_outdated = changed.replaced_passages or changed.memory  # deletions change the memory
        return is_outdated or bool(changed.vectors)  # a space may have been dropped


def _name(space: Space, token_model: str) -> str:
    return f"{space.name}-{token_model}"


def _copied(
    index: TokenIndex, copies: Mapping[PassageId, EmbeddingCandidate]
) -> Iterator[TokenizedPassage]:
    """Yield passages with the tokens of their twins, whose parts have the same numbers."""
    for each in copies.values():
        tokens = None if each.twin is None else index.tokens_of(each.twin)
        if tokens is not None:
            own = {part_id(each.id, part_number(part)): row for part, row in tokens.items()}
            yield TokenizedPassage(each.id, each.content_hash, own)
