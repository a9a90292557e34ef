"""Passages by their words: a tantivy index that may be deleted at any time.

What the fields hold is `text_schema`, how a query is asked `text_query`, how the files are kept
`index_folder`. Nothing here reads the database: whoever feeds the index knows what it lacks from
`position`.
"""

import logging
import threading
import unicodedata
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import Stemmer
import tantivy

from app.domain.errors import IndexUnavailable
from app.domain.ids import PartId, PassageId, passage_of
from app.domain.passages import PassageKind, PassageText, SearchQuery, TextHit
from app.index.index_folder import (
    HeldFiles,
    Seal,
    Unsealed,
    check_files,
    clear,
    read_seal,
    write_seal,
)
from app.index.text_ranking import Commit, Survey
from app.index.text_schema import FORMAT, PASSAGE, DocumentMaker, schema

_log = logging.getLogger(__name__)

_MEMORY_BYTES = 48_000_000  # of one writer thread; 15 MB is tantivy's least


class RebuildReason(StrEnum):
    """Why an index must be built anew before it can be relied on."""

    MISSING = "missing"
    DAMAGED = "damaged"
    OLD_FORMAT = "old_format"
    OTHER_GENERATION = "other_generation"
    UNFINISHED = "unfinished"


class TantivyTextIndex:
    """The text index in a folder of its own; implements `TextIndex`.

    Opening never raises: `needs_rebuild` says what is wrong. Until `start_over` an index that
    needs it cannot be used (UNFINISHED can: it answers with what it holds). Searches may come from
    any thread at any time and see the last commit; they take no lock. Writes take turns.
    All of it blocks: off the GUI thread.
    """

    def __init__(self, folder: Path, generation: str) -> None:
        """Open the index in `folder`; `generation` names the database it was made from."""
        self._folder = folder
        self._generation = generation
        self._lock = threading.RLock()
        self._schema = schema()
        self._index: tantivy.Index | None = None
        self._writer: tantivy.IndexWriter | None = None
        self._reader: Commit | None = None
        self._held = HeldFiles()
        self._highest_put = 0
        self._dirty = False
        self._seal = self._new_seal()
        self._languages: Counter[str] = Counter()
        self.needs_rebuild: RebuildReason | None = None
        self._open()

    @property
    def position(self) -> int:
        """The journal's position that the last commit goes up to; 0 when it must be built anew."""
        return self._seal.position or 0

    @property
    def passage_count(self) -> int:
        """How many passages the last commit holds."""
        return self._reader.passage_count if self._reader else 0

    def start_over(self) -> None:
        """Delete everything and begin empty; raise IndexUnavailable when the disk refuses.

        Then `put` everything, with `commit(None)` in between, and `commit(position)` at the end.
        """
        with self._lock, self._translated("could not be started anew"):
            self.close()
            self._index = self._reader = None
            self.needs_rebuild = RebuildReason.MISSING
            clear(self._folder)
            self._seal, self._languages, self._highest_put = self._new_seal(), Counter(), 0
            files = self._folder / self._seal.files
            files.mkdir(mode=0o700)
            self._use(tantivy.Index(self._schema, path=str(files)))
            write_seal(self._folder, self._seal)
            self.needs_rebuild = None

    def put(self, passages: Iterable[PassageText]) -> None:
        """Add passages, a document for each part, replacing those with the same id; visible after `commit`.

        Raises IndexUnavailable when the disk refuses; then nothing since the last commit counts,
        and whatever came after `position` must be put again.
        """
        maker = DocumentMaker()
        for passage in passages:
            made = list(maker.documents(passage))
            with self._lock, self._writing():
                if passage.id <= self._highest_put:
                    self._lent().delete_documents_by_term(PASSAGE, passage.id)
                for document, _ in made:
                    self._lent().add_document(document)
                self._highest_put = max(self._highest_put, passage.id)
                self._languages.update(language for _, language in made)

    def remove(self, passage_ids: Collection[PassageId]) -> None:
        """Drop passages; unknown ids are ignored; visible after `commit`. Raises as `put`."""
        with self._lock, self._writing():
            for each in passage_ids:
                self._lent().delete_documents_by_term(PASSAGE, each)

    def commit(self, position: int | None) -> None:
        """Make all changes durable and visible; `position` is the journal's, kept beside them.

        None while the index is being rebuilt: found so at the next start, it is UNFINISHED.
        Takes 20-100 ms after a few changes. Raises as `put`.
        """
        with self._lock:
            opstamp = self._seal.opstamp
            if self._dirty:
                with self._writing():
                    opstamp = self._lent().commit()
                    self._dirty = False
            elif self._usable() and position == self._seal.position:
                return
            with self._translated("could not be saved"):
                languages = tuple(self._languages.items())
                seal = replace(self._seal, position=position, opstamp=opstamp, languages=languages)
                write_seal(self._folder, seal)
                self._seal = seal
                self._refresh()
            if position is not None and self.needs_rebuild is RebuildReason.UNFINISHED:
                self.needs_rebuild = None

    def search(
        self,
        query: SearchQuery | str,
        limit: int,
        allowed: Collection[PassageId] | None = None,
        excluded: Collection[PassageId] = (),
    ) -> Sequence[TextHit]:
        """Return the best parts by their own words, best first; a plain text is words alone.

        `allowed` restricts the passages (None: all), `excluded` are left out; both should be sets.
        Any word may match (small words do not count unless there are no others), every phrase
        must. Raises IndexUnavailable.
        """
        with self._translated("cannot answer"):
            commit = self._usable()
            ask = commit.understood(query)
            left_out = _either(commit.holding(ask), excluded)
            found = commit.ranked(ask, limit, allowed, left_out)
            held = commit.held_weight(ask, [each for each, _ in found])
        return [TextHit(each, score, ask.share(held[each])) for each, score in found]

    def candidates(
        self,
        query: SearchQuery,
        limit: int,
        allowed: Collection[PassageId] | None = None,
        excluded: Collection[PassageId] = (),
        kind: PassageKind | None = None,
    ) -> frozenset[PartId]:
        """Return the best parts by their own words and the best by those of their context.

        At most `limit` of each, filtered like `search`. Where all that is `allowed` is known to be of
        one `kind`, saying so is faster. Raises IndexUnavailable.
        """
        with self._translated("cannot answer"):
            commit = self._usable()
            ask = commit.understood(query)
            left_out = _either(commit.holding(ask), excluded)
            return frozenset(
                part
                for by_context in (False, True)
                for part, _ in commit.ranked(
                    ask, limit, allowed, left_out, by_context=by_context, kind=kind
                )
            )

    def survey(self, query: SearchQuery, parts: Collection[PartId]) -> Survey:
        """Return what the ranking needs to know of parts; 5 ms for 300 of them.

        Left out is what the index does not hold, lacks a phrase of the query or holds what the
        query excludes. Raises IndexUnavailable.
        """
        with self._translated("cannot answer"):
            commit = self._usable()
            ask = commit.understood(query)
            left_out = commit.holding(ask)
            kept = [each for each in parts if passage_of(each) not in left_out]
            return commit.survey(ask, kept)

    def holding(self, query: SearchQuery) -> frozenset[PassageId]:
        """Return the passages that hold what the query excludes. Raises IndexUnavailable."""
        with self._translated("cannot answer"):
            commit = self._usable()
            return commit.holding(commit.understood(query))

    def document_frequencies(self, query: SearchQuery | str) -> Mapping[str, int]:
        """Return for each word of the query in how many parts it occurs, in the query's order."""
        with self._translated("cannot answer"):
            needs = self._usable().understood(query).needs
            return {need.word: need.documents for need in needs}

    def passage_ids(self) -> frozenset[PassageId]:
        """Return all passages the last commit holds; 30 ms for 100,000."""
        with self._translated("cannot be read"):
            return self._usable().passage_ids()

    def close(self) -> None:
        """Let go of the writer and of what was not committed; searches still work."""
        with self._lock:
            self._writer = None
            self._dirty = False
            self._held.let_go()

    def _open(self) -> None:
        try:
            seal = read_seal(self._folder)
            if seal is None:
                self.needs_rebuild = RebuildReason.MISSING
            elif seal.format != self._seal.format:
                self.needs_rebuild = RebuildReason.OLD_FORMAT
            elif seal.generation != self._generation:
                self.needs_rebuild = RebuildReason.OTHER_GENERATION
            else:
                self._open_files(seal)
        except (Unsealed, IndexUnavailable) as error:
            _log.warning("text index in %s is damaged: %s", self._folder, error)
            self._index = self._reader = None
            self.needs_rebuild = RebuildReason.DAMAGED

    def _open_files(self, seal: Seal) -> None:
        files = self._folder / seal.files
        check_files(files, seal.opstamp)
        self._seal, self._languages = seal, Counter(dict(seal.languages))
        with self._translated("cannot be opened"):
            self._use(tantivy.Index.open(str(files)))
        self.needs_rebuild = None if seal.position is not None else RebuildReason.UNFINISHED

    def _use(self, index: tantivy.Index) -> None:
        index.config_reader("manual", 0)  # else a thread of tantivy's watches the folder
        self._index = index
        self._refresh()
        self._highest_put = self._usable().highest_id()

    def _refresh(self) -> None:
        if self._index is not None:
            self._index.reload()
            likely = tuple(language for language, _ in self._languages.most_common(2))
            self._reader = Commit(self._index.searcher(), self._schema, likely)
            self._held.follow(self._folder / self._seal.files)

    def _new_seal(self) -> Seal:
        made_with = f"{FORMAT}/{Stemmer.version()}/{unicodedata.unidata_version}"
        return Seal(made_with, self._generation, f"words-{uuid.uuid4().hex[:12]}")

    def _usable(self) -> Commit:
        if self._reader is None:
            raise self._must_be_rebuilt()
        return self._reader

    def _must_be_rebuilt(self) -> IndexUnavailable:
        return IndexUnavailable(
            "The text index must be built anew", "Search answers again when that is done."
        )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """When writing fails, drop the writer with everything since the last commit."""
        with self._translated("could not be written"):
            self._dirty = True
            try:
                yield
            except BaseException:
                self.close()
                self._languages = Counter(dict(self._seal.languages))
                raise

    def _lent(self) -> tantivy.IndexWriter:
        """Return the writer for one call. Do not name it: its lock lives while a traceback does."""
        if self._index is None:
            raise self._must_be_rebuilt()
        if self._writer is None:
            self._writer = self._index.writer(_MEMORY_BYTES, num_threads=1)
        return self._writer

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        """Raise IndexUnavailable for whatever tantivy or the disk says."""
        try:
            yield
        except UnicodeError:
            raise  # a bug of ours: nothing that tantivy says, although a ValueError too
        except (ValueError, OSError) as error:
            raise self._unavailable(what, error) from error
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # tantivy's, a BaseException of PyO3
                raise
            self.needs_rebuild = RebuildReason.DAMAGED
            raise self._unavailable(what, error) from error

    def _unavailable(self, what: str, error: BaseException) -> IndexUnavailable:
        return IndexUnavailable(
            f"The text index {what}: {error}",
            "Check that the disk has room, or rebuild it with 'commonplace rebuild index'.",
        )


def _either(some: frozenset[PassageId], others: Collection[PassageId]) -> Collection[PassageId]:
    """Return what is in one or the other; `others`, which may be many, are seldom copied."""
    return some.union(others) if some else others
