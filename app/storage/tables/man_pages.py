"""Manual pages: derived rows, and a passage for each page that has text.

A page that was listed is a row; it is done once it was read as it is listed now and, if it has a
DESCRIPTION, its passage is there. Passages are journalled, rows are not: where one is without the
other, after a kill or a restored backup, the page is read again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.domain.changes import PassagesPut
from app.domain.errors import NotFound
from app.domain.manual import ManualPage, ManualPageText, page_search_text, page_title
from app.domain.passages import Passage, PassageKind
from app.domain.turn_text import content_hash, estimate_tokens
from app.domain.workers import WorkerName
from app.storage.engine.aggregate import Aggregate, Rule, insert_rows, row_of, select_in
from app.storage.engine.database import Connection
from app.storage.engine.store import Store
from app.storage.engine.times import from_db, to_db
from app.storage.work.queue import Tally, WorkQuery

_KIND = PassageKind.MAN_PAGE.value
_LISTED = "id, name, section, summary, stamp, changed_at"
# The most wanted sections first: commands, administration, files, overviews.
_ORDER = "coalesce(nullif(strpos('1857', left(section, 1)), 0), 9), section, name"
_IS_DONE = (
    "read_stamp IS NOT DISTINCT FROM stamp AND (content_hash IS NULL OR (id, content_hash) IN "
    f"(SELECT (source_id, content_hash) FROM passage WHERE kind = '{_KIND}'))"
)
_WORK = WorkQuery(
    WorkerName.MAN_INDEXER.value, "FROM man_page i", "i.id", "WHERE true",
    f"(SELECT id AS page_id FROM man_page WHERE {_IS_DONE}) d ON d.page_id = i.id", "page_id",
)  # fmt: skip


MAN_PAGES = Aggregate(
    (),
    rules=(
        Rule(
            "passage.man_page",
            "The passage {} belongs to a manual page that is not stored or has another text.",
            "SELECT p.id FROM passage p ANTI JOIN man_page w "
            "ON w.id = p.source_id AND w.content_hash = p.content_hash WHERE p.kind = 'man_page'",
            drops_passages=True,
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A page as it is shown: its name, title and DESCRIPTION."""

    source: str
    title: str
    text: str


class ManPages:
    """Reads and writes manual pages. Blocking: for worker threads and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # -- work

    def replace_list(self, pages: Sequence[ManualPage]) -> None:
        """Replace the list of all pages; a page that is not on it is deleted."""
        wanted = {page.id: page for page in pages}
        known = {page.id: page for page in self._all()}
        # Passages first: a row without a passage is found again, a passage without a row is not.
        if gone := self._passages_of_others(wanted):
            self._store.save(PassagesPut(replaced=tuple(gone)))
        removed = [each for each in known if each not in wanted]
        added = [row_of(page, _LISTED) for each, page in wanted.items() if each not in known]
        other = [
            row_of(page, _LISTED) for each, page in wanted.items() if known.get(each, page) != page
        ]

        def write(connection: Connection) -> None:
            connection.execute("DELETE FROM man_page WHERE id IN (SELECT unnest(?))", [removed])
            insert_rows(connection, "man_page", _LISTED, added)
            _update(connection, "summary VARCHAR, stamp VARCHAR, changed_at TIMESTAMP",
                    [(row[0], *row[3:]) for row in other])  # fmt: skip

        if removed or added or other:
            self._store.write_derived(write).result()

    def missing(self, at: datetime) -> tuple[ManualPage, ...]:
        """Return the pages that are to be read, commands first.

        Left out are abandoned pages and those whose next try comes after `at` (UTC).
        """
        rows = self._store.rows(_WORK.missing(_LISTED, f"ORDER BY {_ORDER}"), {"at": to_db(at)})
        return tuple(map(_page, rows))

    def tally(self) -> Tally:
        """Return how many pages are listed, and how many were read in their present version."""
        return self._store.read(_WORK.tally)

    def is_any_read(self) -> bool:
        """Return whether a page can be found."""
        return bool(self._store.row("SELECT 1 FROM man_page WHERE read_stamp IS NOT NULL LIMIT 1"))

    # -- writing

    def put(self, read: Sequence[ManualPageText]) -> None:
        """Store the text of pages with their passages; pages that are no longer listed are skipped."""
        ids = [each.page.id for each in read]
        stored = self._store.read(_stored_pages, ids)
        listed = [each for each in read if each.page.id in stored.listed]
        hashes = {each.page.id: _hash(each) for each in listed}
        rows = [(each.page.id, each.page.stamp, each.text, hashes[each.page.id]) for each in listed]
        self._store.write_derived(
            lambda connection: _update(
                connection, "read_stamp VARCHAR, text VARCHAR, content_hash VARCHAR", rows
            )
        ).result()
        # Unchanged pages keep their passage and its vectors, unless the text was lost.
        stay = {
            each: own[:1]
            for each, own in stored.passages.items()
            if stored.listed.get(each) is not None
            and stored.listed.get(each) == hashes.get(each) == own[0][1]
        }
        made = tuple(
            self._passage(each.page, each.text)
            for each in listed
            if each.text is not None and each.page.id not in stay
        )
        replaced = tuple(
            passage_id
            for each, own in stored.passages.items()
            for passage_id, _ in (own[1:] if each in stay else own)
        )
        if made or replaced:
            self._store.save(PassagesPut(made, replaced))

    def _passage(self, page: ManualPage, text: str) -> Passage:
        words = page_search_text(page.summary, text)
        return Passage(
            self._store.ids.passage(), PassageKind.MAN_PAGE, page.id, None, None,
            content_hash(words), page.changed_at, estimate_tokens(words),
        )  # fmt: skip

    # -- reading

    def kept(self, source: str) -> StoredPage:
        """Return the page called `source`, such as grep.1; raise NotFound for none."""
        row = self._store.row(
            "SELECT name, section, summary, text FROM man_page "
            "WHERE name || '.' || section = ? AND text IS NOT NULL",
            [source],
        )
        if row is None:
            raise NotFound(
                f"The manual page '{source}' is not in the library",
                "'commonplace work --only man_indexer' reads the manual.",
            )
        return StoredPage(source, page_title(*row[:3]), row[3])

    def _all(self) -> Iterable[ManualPage]:
        rows = self._store.rows(f"SELECT {_LISTED} FROM man_page")
        return map(_page, rows)

    def _passages_of_others(self, ids: Iterable[int]) -> list[int]:
        rows = self._store.rows(
            "SELECT id FROM passage WHERE kind = ? AND source_id NOT IN (SELECT unnest(?))",
            [_KIND, list(ids)],
        )
        return [each for (each,) in rows]


def page_texts(
    cursor: Connection, ids: list[int]
) -> Mapping[int, tuple[str, str, tuple[str, ...]]]:
    """Return (title, source, texts of its parts) by page id; no texts for a page without text.

    The one-line description is a separate part: most questions are close to it alone.
    """
    rows = select_in(cursor, "man_page", "id, name, section, summary, text", ids)
    return {
        row[0]: (
            page_title(*row[1:4]),
            f"{row[1]}.{row[2]}",
            tuple(filter(None, row[3:5])) if row[4] is not None else (),
        )
        for row in rows
    }


@dataclass(frozen=True, slots=True)
class _StoredPages:
    """What is stored of the pages, before they are written.

    `listed` is the hash of the stored text by page id, `passages` the (id, hash) of those made of the
    page, oldest first.
    """

    listed: Mapping[int, str | None]
    passages: Mapping[int, Sequence[tuple[int, str]]]


def _stored_pages(cursor: Connection, ids: list[int]) -> _StoredPages:
    listed = select_in(cursor, "man_page", "id, content_hash", ids)
    columns, rest = "source_id, id, content_hash", f"AND kind = '{_KIND}' ORDER BY id"
    rows = select_in(cursor, "passage", columns, ids, "source_id", rest)
    passages: dict[int, list[tuple[int, str]]] = {}
    for source_id, passage_id, own_hash in rows:
        passages.setdefault(source_id, []).append((passage_id, own_hash))
    return _StoredPages(dict(listed), passages)


def _update(connection: Connection, columns: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Set typed columns of rows, given as (id, values of the columns)."""
    if not rows:
        return
    typed = [each.split() for each in ("id BIGINT", *columns.split(", "))]
    lists = ", ".join(
        f"unnest(${number}::{kind}[]) AS {name}" for number, (name, kind) in enumerate(typed, 1)
    )
    sets = ", ".join(f"{name} = r.{name}" for name, _ in typed[1:])
    connection.execute(
        f"UPDATE man_page SET {sets} FROM (SELECT {lists}) r WHERE man_page.id = r.id",
        [list(column) for column in zip(*rows, strict=True)],
    )


def _hash(read: ManualPageText) -> str | None:
    return (
        None if read.text is None else content_hash(page_search_text(read.page.summary, read.text))
    )


def _page(row: Sequence[Any]) -> ManualPage:
    _, name, section, summary, stamp, changed_at = row
    return ManualPage(name, section, summary, stamp, from_db(changed_at))
