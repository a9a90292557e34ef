"""Text index: a tantivy index of passages that can be rebuilt from the database at any time.

`text_schema` defines its fields, `text_query` builds queries, `text_snapshot` runs them,
`index_folder` checks the files. The index never reads the database; `text_sync` feeds it what is
missing after `position`.
"""

import logging
import threading
import unicodedata
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt
import Stemmer
import tantivy

from app.domain.errors import IndexUnavailable
from app.domain.ids import PartId, PassageId, passage_id_of
from app.domain.passages import PassageKind, PassageText, SearchQuery
from app.domain.translation import tr_noop
from app.index.document_writer import (
    FORMAT,
    PANIC,
    LocalWriter,
    ProcessWriter,
    WriterPanic,
    index_schema,
)
from app.index.index_folder import (
    IndexManifest,
    InvalidIndex,
    OpenSegments,
    check_files,
    clear_folder,
    read_manifest,
    remove_files,
    write_manifest,
)
from app.index.text_query import token_weights
from app.index.text_snapshot import CandidateTable, ResolvedQuery, TextSnapshot

_log = logging.getLogger(__name__)


class RebuildReason(StrEnum):
    """The reason why an index must be rebuilt."""

    MISSING = "missing"
    DAMAGED = "damaged"
    OLD_FORMAT = "old_format"
    OTHER_GENERATION = "other_generation"


class TantivyTextIndex:
    """The text index in a folder of its own.

    Opening never raises: `needs_rebuild` says what is wrong. Until `start_over`, an index that
    needs it cannot be used. Searches are thread-safe, take no lock and see the last commit; writes
    are serialized. Everything blocks: call it off the GUI thread.
    """

    def __init__(
        self,
        folder: Path,
        generation: str,
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    ) -> None:
        """Open the index in `folder`; `generation` identifies the database it was made from.

        `now` is the local time, to which "last week" in a query is relative.
        """
        self._folder = folder
        self._now = now
        self._generation = generation
        self._lock = threading.RLock()
        self._schema = index_schema()
        self._index: tantivy.Index | None = None
        self._writer: LocalWriter | ProcessWriter | None = None
        self._reader: TextSnapshot | None = None
        self._segments = OpenSegments()
        self._highest = 0
        self._dirty = False
        self._manifest = self._new_manifest()
        self._languages: Counter[str] = Counter()
        self._answering: IndexManifest | None = None  # of what answers while it is made anew
        self.needs_rebuild: RebuildReason | None = None
        self._open()

    @property
    def position(self) -> int:
        """The journal position of the last commit; 0 when it must be rebuilt."""
        return self._manifest.position

    @property
    def answering_position(self) -> int:
        """The journal position of what searches see."""
        return (self._answering or self._manifest).position

    @property
    def clean_position(self) -> int:
        """The journal position up to which the files contain no words of forgotten passages."""
        clean = self._manifest.clean
        return self._manifest.position if clean is None else clean

    @property
    def passage_count(self) -> int:
        """The number of passages in the last commit."""
        return self._reader.passage_count if self._reader else 0

    def start_over(self, clean: int = 0) -> None:
        """Delete everything and start empty. Raises IndexUnavailable when the disk refuses.

        Then `put` all passages, with commits in between. Of those no words were forgotten up to the
        journal position `clean`.
        """
        with self._lock, self._as_unavailable("could not be started over"):
            self.close()
            self._index = self._reader = self._answering = None
            self.needs_rebuild = RebuildReason.MISSING
            clear_folder(self._folder)
            self._begin(clean)
            write_manifest(self._folder, self._manifest)
            self.needs_rebuild = None

    def start_anew(self, clean: int) -> None:
        """Start empty beside the present files, which searches use until `finish`.

        `clean` is as in `start_over`. After a crash before `finish` the present files are used
        again. Raises IndexUnavailable.
        """
        with self._lock, self._as_unavailable("could not be started anew"):
            self._answering = self._answering or self._manifest
            self._close_writer()
            remove_files(self._folder, self._answering.files)
            self._begin(clean)

    def finish(self) -> None:
        """Let searches use the files of `start_anew`, if it was called, and delete the others."""
        with self._lock:
            if self._answering is None:
                return
            with self._as_unavailable("could not be saved"):
                write_manifest(self._folder, self._manifest)
                self._answering = None
                self._segments.close()
                self._refresh()
                remove_files(self._folder, self._manifest.files)

    def put(self, passages: Iterable[PassageText]) -> None:
        """Add passages, a document for each part, replacing equal ids; visible after `commit`.

        Raises IndexUnavailable when the disk refuses; then everything since the last commit is lost
        and must be put again from `position` on.
        """
        with self._lock, self._writing():
            self._open_writer().put(passages)

    @property
    def has_process(self) -> bool:
        """Whether a process of its own writes; passages sent to it must be picklable."""
        return isinstance(self._writer, ProcessWriter)

    def use_process(self, *, wanted: bool) -> None:
        """Write in a process of its own from now on, or here again; nothing may be uncommitted.

        If none can be started, this process goes on writing. Raises as `put`.
        """
        with self._lock:
            if wanted is self.has_process:
                return
            with self._writing():
                if isinstance(self._writer, ProcessWriter):
                    self._writer.end()
                self._close_writer()
                if wanted:
                    self._writer = self._new_process()
            self._dirty = False

    def remove(self, passage_ids: Collection[PassageId]) -> None:
        """Remove passages; unknown ids are ignored; visible after `commit`. Raises as `put`."""
        with self._lock, self._writing():
            self._open_writer().remove(passage_ids)

    def commit(self, position: int) -> None:
        """Make all changes durable and visible, with the journal `position` they go up to.

        Takes 20-100 ms after a few changes. Raises as `put`.
        """
        with self._lock:
            opstamp = self._manifest.opstamp
            if self._dirty:
                with self._writing():
                    opstamp, languages, self._highest = self._open_writer().commit()
                    self._languages.update(languages)
                    self._dirty = False
            elif self._usable() and position == self._manifest.position:
                return
            with self._as_unavailable("could not be saved"):
                manifest = replace(
                    self._manifest,
                    position=position,
                    opstamp=opstamp,
                    languages=tuple(self._languages.items()),
                    clean=self.clean_position,
                )
                if self._answering is None:
                    write_manifest(self._folder, manifest)
                self._manifest = manifest
                self._refresh()

    def candidates(
        self,
        query: SearchQuery,
        limit: int,
        allowed: Collection[PassageId] | None = None,
        excluded: Collection[PassageId] = (),
        kind: PassageKind | None = None,
    ) -> frozenset[PartId]:
        """Return the best parts by their own words and the best by the words of their context.

        At most `limit` of each. Any word may match (stop words only if there are no others), every
        phrase must. `allowed` restricts the passages (None: all), `excluded` removes some; pass
        sets. `kind` may be given if all of `allowed` are of it: that is faster. Raises
        IndexUnavailable.
        """
        with self._resolved(query) as (snapshot, resolved):
            unwanted = snapshot.excluded_passages(resolved)
            removed = unwanted.union(excluded) if unwanted else excluded  # which may be large
            return frozenset(
                part
                for by_context in (False, True)
                for part in snapshot.ranked(
                    resolved, limit, allowed, removed, by_context=by_context, kind=kind
                )
            )

    def candidate_table(
        self, query: SearchQuery, parts: Collection[PartId], *, with_facts: bool = False
    ) -> CandidateTable:
        """Return the feature table of parts, and, `with_facts`, of facts from them; 5 ms for 300.

        Parts that are not indexed, lack a phrase of the query or contain excluded words are
        omitted. Raises IndexUnavailable.
        """
        with self._resolved(query) as (snapshot, resolved):
            removed = snapshot.excluded_passages(resolved)
            kept = [each for each in parts if passage_id_of(each) not in removed]
            return snapshot.candidate_table(resolved, kept, with_facts=with_facts)

    def excluded_passages(self, query: SearchQuery) -> frozenset[PassageId]:
        """Return the passages that contain what the query excludes. Raises IndexUnavailable."""
        with self._resolved(query) as (snapshot, resolved):
            return snapshot.excluded_passages(resolved)

    def document_frequencies(self, query: SearchQuery) -> Mapping[str, int]:
        """Return the number of parts with each word of the query, in the query's order."""
        with self._resolved(query) as (_, resolved):
            return {each.word: each.documents for each in resolved.terms}

    def token_weights(
        self, query: SearchQuery, spans: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float64]:
        """Return the idf of the word that each (start, end) of the query's words lies in, (n,).

        0 for stop words and punctuation; all 1 when nothing else is there. Raises IndexUnavailable.
        """
        with self._resolved(query) as (_, resolved):
            return token_weights(query.words, resolved.terms, spans)

    def close(self) -> None:
        """Close the writer, dropping uncommitted changes; searches still work."""
        with self._lock:
            self._close_writer()
            self._segments.close()

    def _open(self) -> None:
        try:
            manifest = read_manifest(self._folder)
            if manifest is None:
                self.needs_rebuild = RebuildReason.MISSING
            elif manifest.format != self._manifest.format:
                self.needs_rebuild = RebuildReason.OLD_FORMAT
            elif manifest.generation != self._generation:
                self.needs_rebuild = RebuildReason.OTHER_GENERATION
            else:
                files = self._folder / manifest.files
                check_files(files, manifest.opstamp)
                self._manifest, self._languages = manifest, Counter(dict(manifest.languages))
                with self._as_unavailable("cannot be opened"):
                    remove_files(self._folder, manifest.files)  # of one that was not finished
                    self._use(tantivy.Index.open(str(files)))
        except (InvalidIndex, IndexUnavailable) as error:
            _log.warning("text index in %s is damaged: %s", self._folder, error)
            self._index = self._reader = None
            self.needs_rebuild = RebuildReason.DAMAGED

    def _begin(self, clean: int) -> None:
        """Create empty files and write to them from now on."""
        self._manifest, self._languages = self._new_manifest(clean), Counter()
        files = self._folder / self._manifest.files
        files.mkdir(mode=0o700)
        self._use(tantivy.Index(self._schema, path=str(files)))

    def _use(self, index: tantivy.Index) -> None:
        index.config_reader("manual", 0)  # otherwise a thread of tantivy watches the folder
        self._index = index
        self._refresh()
        answers = self._answering is None
        self._highest = self._usable().highest_id() if answers else 0

    def _refresh(self) -> None:
        if self._index is not None and self._answering is None:
            self._index.reload()
            likely = tuple(language for language, _ in self._languages.most_common(2))
            self._reader = TextSnapshot(self._index.searcher(), self._schema, likely)
            self._segments.follow(self._folder / self._manifest.files)

    def _new_manifest(self, clean: int = 0) -> IndexManifest:
        made_with = f"{FORMAT}/{Stemmer.version()}/{unicodedata.unidata_version}"
        name = f"words-{uuid.uuid4().hex[:12]}"
        return IndexManifest(made_with, self._generation, name, clean=clean)

    def _usable(self) -> TextSnapshot:
        if self._reader is None:
            raise IndexUnavailable(
                "The text index must be rebuilt", "Search works again when that is done."
            )
        return self._reader

    @contextmanager
    def _resolved(self, query: SearchQuery) -> Iterator[tuple[TextSnapshot, ResolvedQuery]]:
        """Resolve a query against the last commit; raise IndexUnavailable if anything fails."""
        with self._as_unavailable("cannot answer"):
            snapshot = self._usable()
            yield snapshot, snapshot.resolved(query, self._now().date())

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Drop the writer and everything since the last commit when writing fails."""
        with self._as_unavailable("could not be written"):
            self._dirty = True
            try:
                yield
            except BaseException:
                self.close()
                raise

    def _open_writer(self) -> LocalWriter | ProcessWriter:
        self._usable()
        assert self._index is not None
        if self._writer is None:
            self._writer = LocalWriter(self._index, self._highest)
        return self._writer

    def _new_process(self) -> ProcessWriter | None:
        try:
            return ProcessWriter(self._folder / self._manifest.files, self._highest)
        except OSError as error:
            _log.warning("the text index gets no process of its own: %s", error)
            return None

    def _close_writer(self) -> None:
        writer, self._writer, self._dirty = self._writer, None, False
        if writer is not None:
            writer.close()

    @contextmanager
    def _as_unavailable(self, what: str) -> Iterator[None]:
        """Raise IndexUnavailable for errors of tantivy or the disk."""
        try:
            yield
        except BaseException as error:
            is_panic = isinstance(error, WriterPanic) or type(error).__name__ == PANIC
            is_bug = isinstance(error, UnicodeError)  # ours, although it is a ValueError
            if is_bug or not (is_panic or isinstance(error, ValueError | OSError)):
                raise
            if is_panic:
                self.needs_rebuild = RebuildReason.DAMAGED
            why = error if self._folder.is_dir() else tr_noop("its folder is gone")
            raise IndexUnavailable(
                f"The text index {what}: {why}",
                "Check that the disk has room, or rebuild it with 'commonplace rebuild index'.",
            ) from error
