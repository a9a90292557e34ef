"""The manual pages that search knows: rows of derived data, and a passage for each that has text.

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
from app.domain.manual import ManualPage, PageText, page_title, page_words
from app.domain.passages import Passage, PassageKind
from app.domain.turn_text import content_hash, estimate_tokens
from app.storage.database import Connection
from app.storage.rows import insert_rows
from app.storage.store import Store
from app.storage.tally import Tally
from app.storage.times import from_db, to_db

_WORKER = "man_indexer"
_KIND = PassageKind.MAN_PAGE.value
_LISTED = "id, name, section, summary, stamp, changed_at"
# What people ask for first: commands, their administration, files, overviews.
_ORDER = "coalesce(nullif(strpos('1857', left(section, 1)), 0), 9), section, name"
_IS_DONE = (
    "read_stamp IS NOT DISTINCT FROM stamp AND (content_hash IS NULL OR (id, content_hash) IN "
    f"(SELECT (source_id, content_hash) FROM passage WHERE kind = '{_KIND}'))"
)


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A page as it is shown: what it is called, its title, its DESCRIPTION."""

    source: str
    title: str
    text: str


class ManPages:
    """Reads and writes manual pages. Blocking: for worker threads and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # -- what is to be done

    def list_anew(self, pages: Sequence[ManualPage]) -> None:
        """Take in the list of all pages there are: what is not on it is dropped."""
        wanted = {page.id: page for page in pages}
        known = {page.id: page for page in self._all()}
        # Passages first: a row without one is found again, a passage without its row is not.
        if gone := self._passages_of_others(wanted):
            self._store.save(PassagesPut(replaced=tuple(gone)))
        lost = [each for each in known if each not in wanted]
        come = [_row(page) for each, page in wanted.items() if each not in known]
        other = [_row(page) for each, page in wanted.items() if known.get(each, page) != page]

        def write(connection: Connection) -> None:
            connection.execute("DELETE FROM man_page WHERE id IN (SELECT unnest(?))", [lost])
            insert_rows(connection, "man_page", _LISTED, come)
            _update(connection, "summary VARCHAR, stamp VARCHAR, changed_at TIMESTAMP",
                    [(row[0], *row[3:]) for row in other])  # fmt: skip

        if lost or come or other:
            self._store.write_derived(write).result()

    def missing(self, at: datetime) -> tuple[ManualPage, ...]:
        """Return the pages that are to be read, commands first.

        Left out are those set aside and those whose next try comes after `at` (UTC).
        """
        rows = self._store.read(
            lambda cursor: cursor.execute(
                f"SELECT {_LISTED} FROM man_page WHERE NOT ({_IS_DONE}) AND id NOT IN "
                "(SELECT item_id FROM attempt WHERE worker = ? "
                "AND (next_at IS NULL OR (next_at > ? AND next_at <= ? + INTERVAL 1 DAY))) "
                f"ORDER BY {_ORDER}",
                [_WORKER, to_db(at), to_db(at)],
            ).fetchall()
        )
        return tuple(_page(row) for row in rows)

    def tally(self) -> Tally:
        """Return how many pages are listed, and how many of them were read as they are."""
        row = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT count(*) FILTER (p.is_done), count(*), count(a.next_at), "
                "count(a.item_id) - count(a.next_at), min(a.next_at) FROM "
                f"(SELECT id, {_IS_DONE} AS is_done FROM man_page) p LEFT JOIN attempt a "
                "ON a.worker = ? AND a.item_id = p.id AND NOT p.is_done",
                [_WORKER],
            ).fetchone()
        )
        done, total, waiting, aside, next_at = row or (0, 0, 0, 0, None)
        return Tally(done, total, waiting, aside, from_db(next_at))

    # -- writing

    def put(self, read: Sequence[PageText]) -> None:
        """Keep what pages say, with their passages; pages that are not listed any more are left."""
        ids = [each.page.id for each in read]
        before = self._store.read(lambda cursor: _before(cursor, ids))
        listed = [each for each in read if each.page.id in before.listed]
        hashes = {each.page.id: _hash(each) for each in listed}
        rows = [(each.page.id, each.page.stamp, each.text, hashes[each.page.id]) for each in listed]
        self._store.write_derived(
            lambda connection: _update(
                connection, "read_stamp VARCHAR, text VARCHAR, content_hash VARCHAR", rows
            )
        ).result()
        # What stays as it was keeps its passage and its vectors, unless the words were lost.
        stay = {
            each: own[:1]
            for each, own in before.passages.items()
            if before.listed.get(each) is not None
            and before.listed.get(each) == hashes.get(each) == own[0][1]
        }
        made = tuple(
            self._passage(each.page, each.text)
            for each in listed
            if each.text is not None and each.page.id not in stay
        )
        replaced = tuple(
            passage_id
            for each, own in before.passages.items()
            for passage_id, _ in (own[1:] if each in stay else own)
        )
        if made or replaced:
            self._store.save(PassagesPut(made, replaced))

    def _passage(self, page: ManualPage, text: str) -> Passage:
        words = page_words(page.summary, text)
        return Passage(
            id=self._store.ids.passage(),
            kind=PassageKind.MAN_PAGE,
            source_id=page.id,
            conversation_id=None,
            exchange_id=None,
            content_hash=content_hash(words),
            created_at=page.changed_at,
            tokens=estimate_tokens(words),
        )

    # -- reading

    def kept(self, source: str) -> KeptPage:
        """Return the page called `source`, such as grep.1; raise NotFound when none is kept."""
        row = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT name, section, summary, text FROM man_page "
                "WHERE name || '.' || section = ? AND text IS NOT NULL",
                [source],
            ).fetchone()
        )
        if row is None:
            raise NotFound(
                f"No manual page '{source}' is kept",
                "'commonplace work --only man_indexer' reads the manual.",
            )
        return KeptPage(source, page_title(*row[:3]), row[3])

    def _all(self) -> Iterable[ManualPage]:
        rows = self._store.read(
            lambda cursor: cursor.execute(f"SELECT {_LISTED} FROM man_page").fetchall()
        )
        return map(_page, rows)

    def _passages_of_others(self, ids: Iterable[int]) -> list[int]:
        wanted = list(ids)
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT id FROM passage WHERE kind = ? AND source_id NOT IN (SELECT unnest(?))",
                [_KIND, wanted],
            ).fetchall()
        )
        return [each for (each,) in rows]


def words_of(cursor: Connection, ids: list[int]) -> Mapping[int, tuple[str, str, tuple[str, ...]]]:
    """Return (title, source, the words of its parts) by the page's id; without text no words.

    The one-line description is a part of its own: most questions come near to it alone.
    """
    rows = cursor.execute(
        "SELECT id, name, section, summary, text FROM man_page WHERE id IN (SELECT unnest(?))",
        [ids],
    ).fetchall()
    return {
        row[0]: (
            page_title(*row[1:4]),
            f"{row[1]}.{row[2]}",
            tuple(filter(None, row[3:5])) if row[4] is not None else (),
        )
        for row in rows
    }


@dataclass(frozen=True, slots=True)
class _Before:
    """What is there before pages are written.

    `listed` has by id the hash of the words that are kept, `passages` the (id, hash) of those made
    of the page, oldest first.
    """

    listed: Mapping[int, str | None]
    passages: Mapping[int, Sequence[tuple[int, str]]]


def _before(cursor: Connection, ids: list[int]) -> _Before:
    listed = cursor.execute(
        "SELECT id, content_hash FROM man_page WHERE id IN (SELECT unnest(?))", [ids]
    ).fetchall()
    rows = cursor.execute(
        "SELECT source_id, id, content_hash FROM passage "
        "WHERE kind = ? AND source_id IN (SELECT unnest(?)) ORDER BY id",
        [_KIND, ids],
    ).fetchall()
    passages: dict[int, list[tuple[int, str]]] = {}
    for source_id, passage_id, own_hash in rows:
        passages.setdefault(source_id, []).append((passage_id, own_hash))
    return _Before(dict(listed), passages)


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


def _hash(read: PageText) -> str | None:
    return None if read.text is None else content_hash(page_words(read.page.summary, read.text))


def _row(page: ManualPage) -> tuple[object, ...]:
    return (
        page.id, page.name, page.section, page.summary, page.stamp, to_db(page.changed_at),
    )  # fmt: skip


def _page(row: Sequence[Any]) -> ManualPage:
    _, name, section, summary, stamp, changed_at = row
    return ManualPage(name, section, summary, stamp, from_db(changed_at))
