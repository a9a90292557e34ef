"""Documents: derived rows of files and manual pages, their chunks, and a passage for each readable chunk.

A document that was listed is a row; it is done once it was read as it is listed now and the passages of
its chunks are there. Passages are journalled, rows are not: where one is without the other, after a kill
or a restored backup, the document is read again. A chunk's id is made of its document and its text, so
that a chunk of a changed document that says the same keeps its passage and its vectors. Of a passage whose
chunk is gone a row says where it was and a hash of its text, so that what quotes it can be told what became
of the file, and leads to the text where that is now.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain

import duckdb

from app.domain.change_set import ChangeSet
from app.domain.changes import PassagesPut
from app.domain.errors import NotFound
from app.domain.links import parse_document, parse_page
from app.domain.passages import Passage, PassageKind
from app.domain.records.documents import (
    Chunk,
    DocumentState,
    DocumentStatus,
    DocumentText,
    FileState,
    ListedDocument,
    StoredDocument,
    hashed_id,
)
from app.domain.text import content_hash
from app.domain.turns import estimate_tokens
from app.domain.workers import WorkerName
from app.storage.deletion.deletion_set import DeletionSet, TextFingerprints
from app.storage.deletion.redaction import redact_messages
from app.storage.engine.aggregate import Aggregate, Rule, columns_of, reader, reference, row_of
from app.storage.engine.connection import REPLACE, Connection, Row
from app.storage.engine.stamps import now, to_db
from app.storage.engine.store import Store, StoreReader
from app.storage.tables.passages.rows import remove_passages
from app.storage.work.queue import Tally, WorkQuery

_WORKERS = {
    PassageKind.MAN_PAGE: WorkerName.MAN_INDEXER,
    PassageKind.DOCUMENT: WorkerName.DOCUMENT_INDEXER,
}
_LISTED = columns_of(ListedDocument)
_CHUNK = "id, document_id, place, start, page, heading, text, content_hash"
_READ_TOGETHER = 500
_STATE = (
    f"CASE WHEN read_stamp IS NULL THEN '{DocumentState.WAITING}' WHEN read_stamp <> stamp "
    f"THEN '{DocumentState.CHANGED}' WHEN c.chunks > 0 THEN '{DocumentState.READ}' "
    f"ELSE '{DocumentState.SKIPPED}' END"
)
# Chunks follow each other, so that the value may stand in two of them.
_WITH_VALUE = """WITH chunk AS (SELECT document_id, place, contains(text, $1) AS has_value,
        left(text, $2) AS head, right(text, $2) AS tail FROM document_chunk)
    SELECT DISTINCT d.id, d.name FROM document d JOIN chunk c ON c.document_id = d.id
    LEFT JOIN chunk n ON n.document_id = c.document_id AND n.place = c.place + 1
    WHERE d.kind = 'document' AND (c.has_value OR contains(c.tail || n.head, $1))"""
# Where passages of files are, before their chunks are deleted.
_KEEP_PLACES = """INSERT OR REPLACE INTO former_passage
    SELECT p.id, d.id, c.start, d.name, d.title, d.project, p.content_hash FROM passage p
    JOIN document_chunk c ON c.id = p.source_id JOIN document d ON d.id = c.document_id
    WHERE p.kind = 'document' AND p.id IN (SELECT unnest(?))"""
_OF_PASSAGE = """SELECT d.id, d.name, d.title, c.place, d.read_stamp, d.pages, false FROM passage p
    JOIN document_chunk c ON c.id = p.source_id JOIN document d ON d.id = c.document_id
    WHERE p.id = $1 AND p.kind = 'document'
    UNION ALL (SELECT d.id, d.name, d.title, c.place, d.read_stamp, d.pages,
        c.content_hash IS DISTINCT FROM f.content_hash AS is_former FROM former_passage f
        JOIN document_chunk c ON c.content_hash = f.content_hash
            OR c.document_id = f.document_id AND (c.start <= f.start OR c.place = 0)
        JOIN document d ON d.id = c.document_id AND d.kind = 'document' WHERE f.id = $1
        ORDER BY d.id = f.document_id DESC, is_former, c.place DESC LIMIT 1)"""
# The names of the listed files with text of a file that is not listed any more.
_FORMER = """SELECT f.document_id, any_value(f.name), list(DISTINCT d.name) FILTER (d.name IS NOT NULL)
    FROM former_passage f LEFT JOIN document_chunk c ON c.content_hash = f.content_hash
    LEFT JOIN document d ON d.id = c.document_id AND d.kind = 'document'
    WHERE f.document_id NOT IN (SELECT id FROM document) GROUP BY f.document_id"""
_FORMER_OF = """SELECT id FROM former_passage WHERE document_id IN (SELECT unnest($1)) OR content_hash IN
    (SELECT content_hash FROM document_chunk WHERE document_id IN (SELECT unnest($1)))"""


def _work(kind: PassageKind) -> WorkQuery:
    lacking = (
        "SELECT document_id FROM document_chunk WHERE content_hash IS NOT NULL "
        "AND (id, content_hash) NOT IN "
        f"(SELECT (source_id, content_hash) FROM passage WHERE kind = '{kind}')"
    )
    done = f"kind = '{kind}' AND read_stamp = stamp AND id NOT IN ({lacking})"
    return WorkQuery(
        _WORKERS[kind].value, "FROM document i", "i.id", f"WHERE i.kind = '{kind}'",
        f"(SELECT id AS document_id FROM document WHERE {done}) d ON d.document_id = i.id",
        "document_id",
    )  # fmt: skip


def erase_documents(connection: Connection, document_ids: list[int], position: int) -> None:
    """Delete documents with their chunks and passages; inside the caller's transaction."""
    ids = connection.column(
        "SELECT p.id FROM passage p JOIN document_chunk c ON c.id = p.source_id WHERE p.kind IN "
        "('man_page', 'document') AND c.document_id IN (SELECT unnest(?))",
        [document_ids],
    )
    former = connection.column(_FORMER_OF, [document_ids])
    connection.delete_in("former_passage", "id", former)
    ids += former
    deleted = DeletionSet(frozenset(), frozenset(), frozenset(ids), TextFingerprints(()))
    redact_messages(connection, deleted, position)
    connection.execute(
        "DELETE FROM prompt_text WHERE conversation_id = 0 AND "
        "regexp_extract(text, '^- document (\\d+) ', 1) IN (SELECT unnest(?)::VARCHAR)",
        [ids],
    )
    remove_passages(connection, ids, position)
    _delete(connection, document_ids)


def documents_with(connection: Connection, value: str) -> Mapping[int, str]:
    """Return the names of the files whose text contains a value, by id; of a database of any version."""
    try:
        return dict(connection.rows(_WITH_VALUE, [value, len(value)]))
    except duckdb.CatalogException:
        return {}  # it is older than the tables


DOCUMENTS = Aggregate(
    (),
    rules=(
        reference("document_chunk.document_id", "document", "delete"),
        *(
            Rule(
                f"passage.{kind}",
                "The passage {} belongs to a document that is not stored or has another text.",
                "SELECT p.id FROM passage p ANTI JOIN document_chunk c ON c.id = p.source_id "
                f"AND c.content_hash = p.content_hash WHERE p.kind = '{kind}'",
                drops_passages=True,
            )
            for kind in _WORKERS
        ),
    ),
)


class Documents:
    """Reads and writes the documents whose passages are of one kind. Blocking."""

    def __init__(self, store: Store, kind: PassageKind) -> None:
        self._store = store
        self._kind = kind
        self._work = _work(kind)

    # -- work

    def replace_list(self, documents: Iterable[ListedDocument]) -> None:
        """Replace the list of all documents; one that is not on it is deleted."""
        wanted = {each.id: each for each in documents}
        known = {each.id: each for each in self.listed()}
        removed = [each for each in known if each not in wanted]
        # Passages first: a row without a passage is found again, a passage without a row is not.
        gone = self._store.column(
            "SELECT id FROM passage WHERE kind = $kind AND source_id NOT IN (SELECT c.id "
            "FROM document_chunk c WHERE c.document_id IN (SELECT unnest($ids)))",
            {"kind": self._kind.value, "ids": list(wanted)},
        )
        if gone:
            self._store.write_derived(lambda c: c.execute(_KEEP_PLACES, [gone])).result()
            self._store.save(PassagesPut(replaced=tuple(gone)))
        changed = [each for key, each in wanted.items() if each != known.get(key)]
        if removed or changed:
            self._write_list(changed, removed)

    def read_again(self, reason: str) -> None:
        """Have the documents read again that were not read in full for a reason with that word."""
        again = "UPDATE document SET read_stamp = NULL WHERE kind = ? AND contains(why, ?)"
        self._store.write_derived(lambda c: c.execute(again, [self._kind.value, reason])).result()

    def move(self, documents: Iterable[ListedDocument]) -> None:
        if moved := list(documents):
            self._write_list(moved)

    def _write_list(self, documents: Sequence[ListedDocument], removed: Sequence[int] = ()) -> None:
        columns = f"id, kind, {_LISTED}"
        rows = [row_of(each, columns, kind=self._kind) for each in documents]

        def write(connection: Connection) -> None:
            self._note_superseded(connection, removed)
            _delete(connection, list(removed))
            connection.insert_rows("document", columns, rows, REPLACE)

        # The boundaries of projects depend on it.
        self._store.write_derived(write, ChangeSet(passages=True)).result()

    def missing(self, at: datetime) -> tuple[ListedDocument, ...]:
        """Return the documents that are to be read.

        Left out are abandoned ones and those whose next try comes after `at` (UTC).
        """
        rows = self._store.read(self._work.missing, _LISTED, "ORDER BY name", at)
        return tuple(map(reader(ListedDocument), rows))

    def tally(self) -> Tally:
        """Return how many documents are listed, and how many were read in their present version."""
        (in_part,) = self._store.column(
            "SELECT count(*) FROM document d WHERE kind = ? AND why <> '' AND read_stamp = stamp "
            "AND EXISTS (SELECT 1 FROM document_chunk WHERE document_id = d.id)",
            [self._kind.value],
        )
        return replace(self._store.read(self._work.tally), in_part=in_part)

    def is_any_read(self) -> bool:
        statement = "SELECT 1 FROM document WHERE kind = ? AND read_stamp IS NOT NULL LIMIT 1"
        return bool(self._store.row(statement, [self._kind.value]))

    # -- writing

    def put(self, read: Sequence[DocumentText]) -> None:
        """Store the text of documents with their passages; those that are no longer listed are skipped."""
        ids = [each.document.id for each in read]
        of_kind = f"AND kind = '{self._kind}'"
        listed = self._store.column_in("document", "id", ids, "id", of_kind)
        read = [each for each in read if each.document.id in listed]
        rows = {row[0]: row for each in read for row in _chunk_rows(each)}
        known, passages = self._store.read(_stored_chunks, ids, self._kind)

        def write(connection: Connection) -> None:
            gone = [each for each in known if each not in rows]
            own = [each for key in gone for each, _ in passages.get(key, ())]
            connection.execute(_KEEP_PLACES, [own])
            self._note_superseded(connection, gone)
            connection.delete_in("document_chunk", "id", gone)
            # The user may have removed one meanwhile.
            there = connection.column_in("document", "id", ids)
            chunks = [row for row in rows.values() if row[1] in there]
            connection.insert_rows("document_chunk", _CHUNK, chunks, REPLACE)
            for each in read:
                connection.execute(
                    "UPDATE document SET read_stamp = ?, why = ?, pages = ? WHERE id = ?",
                    [each.document.stamp, each.why, each.pages, each.document.id],
                )

        self._store.write_derived(write).result()
        made, kept = [], set()
        at = {each.document.id: each.document.changed_at for each in read}
        for key, document_id, _, _, _, heading, text, digest in rows.values():
            own = passages.get(key, ())
            # Of a lost row the indexes may have no text, so its passage is made again.
            if own and digest == own[0][1] == known.get(key):
                kept.add(own[0][0])
            elif digest is not None:
                tokens = estimate_tokens(_searched(heading, text))
                of = (self._store.ids.passage(), self._kind, key, None, None)
                made.append(Passage(*of, digest, at[document_id], tokens))
        replaced = tuple(
            each for each, _ in chain.from_iterable(passages.values()) if each not in kept
        )
        if made or replaced:
            self._store.save(PassagesPut(tuple(made), replaced))

    def _note_superseded(self, connection: Connection, deleted: Sequence[int]) -> None:
        """Note that text of files was deleted, whose bytes are still in the database."""
        if deleted and self._kind is PassageKind.DOCUMENT:
            statement = "INSERT OR IGNORE INTO meta VALUES ('superseded_at', ?)"
            connection.execute(statement, [str(to_db(now()))])

    # -- reading

    def listed(self) -> Iterable[ListedDocument]:
        """Return all documents as they were listed."""
        rows = self._store.rows(
            f"SELECT {_LISTED} FROM document WHERE kind = ?", [self._kind.value]
        )
        return map(reader(ListedDocument), rows)

    def former(self) -> Iterable[tuple[int, str, list[str] | None]]:
        """Return (id, name, names of the listed ones that have its text) of documents that are gone."""
        return self._store.rows(_FORMER)

    def answers_with(self, document_ids: Sequence[int]) -> int:
        """Return how many turns had a passage of documents in their prompt, in any version."""
        (count,) = self._store.column(
            "SELECT count(DISTINCT exchange_id) FROM recalled WHERE kind = 'document' AND injected AND passage_id IN "
            "(SELECT p.id FROM passage p JOIN document_chunk c ON c.id = p.source_id AND p.kind = 'document' "
            "WHERE c.document_id IN (SELECT unnest($1)) "
            f"UNION {_FORMER_OF})",
            [list(document_ids)],
        )
        return int(count)

    def statuses(self) -> tuple[DocumentStatus, ...]:
        """Return what became of each document, by name."""
        rows = self._store.rows(
            f"SELECT name, {_STATE}, why, pages, coalesce(c.passages, 0), "
            "project, TRY_CAST(split_part(stamp, ':', 2) AS BIGINT) FROM document LEFT JOIN (SELECT document_id, "
            "count(*) AS chunks, count(content_hash) AS passages FROM document_chunk "
            "GROUP BY document_id) c ON c.document_id = document.id WHERE kind = ? ORDER BY name",
            [self._kind.value],
        )
        return tuple(map(reader(DocumentStatus), rows))


class DocumentTexts(StoreReader):
    """Reads whole documents. Blocking."""

    def at(self, place: str) -> StoredDocument:
        """Return the document of a place as people write it: man:grep.1, document:PASSAGE, or a whole path.

        Of a passage of a former version, the one that is there now. Raises NotFound.
        """
        page, passage = parse_page(place), parse_document(place)
        if passage is None:
            kind = PassageKind.DOCUMENT if page is None else PassageKind.MAN_PAGE
            row = self._store.row(
                "SELECT id, name, title, NULL, read_stamp, pages, false FROM document WHERE name = ? AND kind = ?",
                [place if page is None else page, kind.value],
            )
        else:
            row = self._store.row(_OF_PASSAGE, [passage])
        rows = self._store.rows(
            "SELECT text, heading, start, page, content_hash IS NULL FROM document_chunk "
            "WHERE document_id = ? ORDER BY place",
            [None if row is None else row[0]],
        )
        if row is None or not rows:
            former = self._store.row("SELECT name FROM former_passage WHERE id = ?", [passage])
            if former is not None:
                raise NotFound(
                    f"The file '{former[0]}' is gone or has no text any more",
                    "What an answer quotes of it is only in the answer.",
                )
            raise NotFound(
                f"'{place}' is not in the library", "It was removed, or has not been read yet."
            )
        _, source, title, *rest = row
        return StoredDocument(source, title, tuple(Chunk(*each) for each in rows), *rest)


def former_documents(
    cursor: Connection, passage_ids: Iterable[int]
) -> Mapping[int, tuple[str, FileState]]:
    """Return (title of the file, what became of it) by passage of a former version."""
    rows = cursor.select_in("former_passage f", "f.id, f.title, f.document_id IN (SELECT id FROM document) "
        "OR coalesce(f.content_hash IN (SELECT content_hash FROM document_chunk), false)",
        passage_ids, "f.id",
    )  # fmt: skip
    return {
        each: (title, FileState.CHANGED if is_there else FileState.GONE)
        for each, title, is_there in rows
    }


def chunk_texts(
    cursor: Connection, ids: list[int]
) -> Mapping[int, tuple[str, str, str, str, int | None]]:
    """Return (title of the document, its name, heading, text, page) by chunk id."""
    rows = cursor.select_in("document_chunk c JOIN document d ON d.id = c.document_id",
        "c.id, d.title, d.name, c.heading, c.text, c.page", ids, "c.id",
    )  # fmt: skip
    return {row[0]: row[1:] for row in rows}


def _chunk_rows(read: DocumentText) -> Iterable[Row]:
    document_id = read.document.id
    seen: Counter[str] = Counter()
    for place, each in enumerate(read.chunks):
        digest = content_hash(_searched(each.heading, each.text))
        key = hashed_id(f"{document_id}/{digest}/{seen[digest]}")
        seen[digest] += 1
        kept_hash = None if each.is_garbage else digest
        yield (key, document_id, place, each.start, each.page, each.heading, each.text, kept_hash)


def _searched(heading: str, text: str) -> str:
    return f"{heading}\n\n{text}" if heading else text


def _stored_chunks(
    cursor: Connection, document_ids: list[int], kind: PassageKind
) -> tuple[dict[int, str | None], dict[int, list[tuple[int, str]]]]:
    """Return the hashes of the chunks of documents, and the (id, hash) of their passages, by chunk id."""
    chunks = cursor.select_in("document_chunk", "id, content_hash", document_ids, "document_id")
    passages: dict[int, list[tuple[int, str]]] = {}
    for at in range(0, len(chunks), _READ_TOGETHER):
        ids = [each for each, _ in chunks[at : at + _READ_TOGETHER]]
        columns, rest = "source_id, id, content_hash", f"AND kind = '{kind}' ORDER BY id"
        for key, *own in cursor.select_in("passage", columns, ids, "source_id", rest):
            passages.setdefault(key, []).append((own[0], own[1]))
    return dict(chunks), passages


def _delete(connection: Connection, document_ids: list[int]) -> None:
    connection.delete_in("document_chunk", "document_id", document_ids)
    connection.delete_in("document", "id", document_ids)
