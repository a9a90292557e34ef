"""The profile: its accepted versions, the last review with its proposal, and rejected lines.

A line whose facts were deleted is deleted with them, from every version and from stored prompts; the
review is then repeated at once. Lines of hidden facts stay stored and are left out by readers
(`ProfileRows.visible`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from app.domain import codec
from app.domain.changes import ProfileLinesRejected, ProfilePut, ProfileReviewPut
from app.domain.records.profile import (
    FactSource,
    Profile,
    ProfileLine,
    ProfileReview,
    supported_lines,
)
from app.domain.text import content_hash
from app.storage.engine.aggregate import Aggregate, Batch, Table, columns_of, reader
from app.storage.engine.connection import IGNORE, Connection
from app.storage.engine.stamps import from_db
from app.storage.engine.store import StoreReader
from app.storage.tables.facts import VERSION_SEEN
from app.storage.tables.projects import APART

_PROFILE = Table("profile", columns_of(Profile), "made_at")
_REVIEW = Table(
    "profile_review", "only_row, made_at, facts_key, author, proposed_at, lines", "only_row"
)
_Lines = tuple[ProfileLine, ...]


# -- changes


def _review(batch: Batch, change: ProfileReviewPut) -> None:
    made = change.review.proposal
    author, at, lines = (
        ("", None, None) if made is None else (made.author, made.made_at, made.lines)
    )
    _REVIEW.put(batch, change.review, only_row=0, author=author, proposed_at=at, lines=lines)
    batch.mark("memory")


PROFILES = Aggregate(
    (_PROFILE, _REVIEW, Table("profile_rejected", "text_hash", "text_hash", how=IGNORE)),
    {
        ProfilePut: _PROFILE.puts("profile", mark=["memory"]),
        ProfileReviewPut: _review,
        ProfileLinesRejected: lambda batch, change: batch.rows["profile_rejected"].update(
            (each, (each,)) for each in change.text_hashes
        ),
    },
    erase=lambda connection, _ids, _position: drop_unsupported_lines(connection),
)


def drop_unsupported_lines(connection: Connection) -> None:
    """Delete the lines that only deleted facts said; inside the caller's transaction."""
    dropped: set[str] = set()
    for table, key in (("profile", "made_at"), ("profile_review", "only_row")):
        rows = connection.execute(f"SELECT {key}, lines FROM {table} WHERE lines IS NOT NULL")
        for row, text in rows.fetchall():
            lines: _Lines = codec.loads(_Lines, text)
            kept = supported_lines(lines, _texts(connection, lines))
            if kept != lines:
                dropped |= {each.in_prompt for each in {*lines} - {*kept}}
                statement = f"UPDATE {table} SET lines = ? WHERE {key} = ?"
                connection.execute(statement, [codec.dumps(kept), row])
    if dropped:
        connection.execute("UPDATE profile_review SET facts_key = ''")
        connection.delete_in("prompt_text", "hash", map(content_hash, dropped))


def _texts(
    cursor: Connection, lines: Iterable[ProfileLine], *, visible: bool = False
) -> Mapping[FactSource, str]:
    """Return the texts of the sources that exist; those set apart are not visible."""
    ids = {source.fact_id for line in lines for source in line.sources}
    rest = f"AND {VERSION_SEEN} AND {_OUTSIDE}" if visible else ""
    columns = "v.fact_id, v.made_at, v.text"
    rows = cursor.select_in("fact_version v", columns, ids, "v.fact_id", rest) if ids else []
    return {FactSource(fact_id, from_db(made_at)): text for fact_id, made_at, text in rows}


_OUTSIDE = f"coalesce(v.conversation_id, 0) NOT IN (SELECT id FROM {APART})"

# -- queries


class ProfileRows(StoreReader):
    """Reads the profile. Blocking: for worker threads and the command line."""

    def current(self) -> Profile | None:
        """Return the newest version without lines of hidden facts; None before the first."""
        return next(iter(self.versions(1)), None)

    def versions(self, limit: int = 100) -> tuple[Profile, ...]:
        """Return the versions, newest first, without lines of hidden facts."""
        rows = self._store.rows(
            f"SELECT {_PROFILE.columns} FROM profile ORDER BY made_at DESC LIMIT ?", [limit]
        )
        return tuple(map(self._visible, rows))

    def review(self) -> ProfileReview | None:
        """Return the last review, its proposal without lines of hidden facts; None before the first."""
        columns = "made_at, facts_key, lines, author, proposed_at"
        row = self._store.row(f"SELECT {columns} FROM profile_review")
        if row is None:
            return None
        made_at, facts_key, *proposal = row
        proposed = None if proposal[0] is None else self._visible(proposal)
        return ProfileReview(from_db(made_at), facts_key, proposed)

    def rejected(self) -> frozenset[str]:
        """Return the keys of the texts that are not to be proposed again."""
        return frozenset(self._store.column("SELECT text_hash FROM profile_rejected"))

    def source_texts(self, lines: Sequence[ProfileLine]) -> Mapping[FactSource, str]:
        """Return the texts of the sources of lines that are not hidden."""
        return self._store.read(_texts, lines, visible=True)

    def _visible(self, row: Sequence[object]) -> Profile:
        profile = reader(Profile)(row)
        kept = supported_lines(profile.lines, self.source_texts(profile.lines))
        return replace(profile, lines=kept)
