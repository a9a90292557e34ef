"""The profile: its accepted versions, the last review with its proposal, and rejected lines.

A line whose facts were deleted is deleted with them, from every version and from stored prompts; the
review is then repeated at once. Lines of hidden facts stay stored and are left out by readers
(`ProfileRows.visible`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from app.domain import codec
from app.domain.changes import ProfileLinesRejected, ProfilePut, ProfileReviewPut
from app.domain.profile import (
    FactSource,
    Profile,
    ProfileLine,
    ProfileReview,
    supported_lines,
)
from app.domain.turn_text import content_hash
from app.storage.engine.aggregate import IGNORE, Aggregate, Batch, Table, delete_where_in, select_in
from app.storage.engine.database import Connection
from app.storage.engine.store import StoreReader
from app.storage.engine.times import from_db, to_db
from app.storage.tables.facts import VERSION_SEEN
from app.storage.tables.projects import BOUNDED

_VERSION_COLUMNS = "made_at, author, lines"
_REVIEW_COLUMNS = "only_row, made_at, facts_key, author, proposed_at, lines"
_Lines = tuple[ProfileLine, ...]


# -- changes


def _put(batch: Batch, change: ProfilePut) -> None:
    profile = change.profile
    made_at = to_db(profile.made_at)
    batch.rows["profile"][made_at] = (made_at, profile.author, codec.dumps(profile.lines))
    batch.mark("memory")


def _review(batch: Batch, change: ProfileReviewPut) -> None:
    review, proposal = change.review, change.review.proposal
    proposed = (
        ("", None, None)
        if proposal is None
        else (proposal.author, to_db(proposal.made_at), codec.dumps(proposal.lines))
    )
    batch.rows["profile_review"][0] = (0, to_db(review.made_at), review.facts_key, *proposed)
    batch.mark("memory")


def _rejected(batch: Batch, change: ProfileLinesRejected) -> None:
    batch.rows["profile_rejected"].update((each, (each,)) for each in change.text_hashes)


PROFILES = Aggregate(
    (
        Table("profile", _VERSION_COLUMNS, "made_at"),
        Table("profile_review", _REVIEW_COLUMNS, "only_row"),
        Table("profile_rejected", "text_hash", "text_hash", how=IGNORE),
    ),
    {ProfilePut: _put, ProfileReviewPut: _review, ProfileLinesRejected: _rejected},
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
        delete_where_in(connection, "prompt_text", "hash", map(content_hash, dropped))


def _texts(
    cursor: Connection, lines: Iterable[ProfileLine], *, visible: bool = False
) -> Mapping[FactSource, str]:
    """Return the texts of the sources that exist; those in bounded projects are not visible."""
    ids = {source.fact_id for line in lines for source in line.sources}
    rest = f"AND {VERSION_SEEN} AND {_OUTSIDE}" if visible else ""
    columns = "v.fact_id, v.made_at, v.text"
    rows = select_in(cursor, "fact_version v", columns, ids, "v.fact_id", rest) if ids else []
    return {FactSource(fact_id, from_db(made_at)): text for fact_id, made_at, text in rows}


_OUTSIDE = f"coalesce(v.conversation_id, 0) NOT IN (SELECT id FROM {BOUNDED})"

# -- queries


class ProfileRows(StoreReader):
    """Reads the profile. Blocking: for worker threads and the command line."""

    def current(self) -> Profile | None:
        """Return the newest version without lines of hidden facts; None before the first."""
        return next(iter(self.versions(1)), None)

    def versions(self, limit: int = 100) -> tuple[Profile, ...]:
        """Return the versions, newest first, without lines of hidden facts."""
        rows = self._store.rows(
            f"SELECT {_VERSION_COLUMNS} FROM profile ORDER BY made_at DESC LIMIT ?", [limit]
        )
        return tuple(self._visible(*row) for row in rows)

    def review(self) -> ProfileReview | None:
        """Return the last review, its proposal without lines of hidden facts; None before the first."""
        columns = "made_at, facts_key, proposed_at, author, lines"
        row = self._store.row(f"SELECT {columns} FROM profile_review")
        if row is None:
            return None
        made_at, facts_key, *proposal = row
        proposed = None if proposal[2] is None else self._visible(*proposal)
        return ProfileReview(from_db(made_at), facts_key, proposed)

    def rejected(self) -> frozenset[str]:
        """Return the keys of the texts that are not to be proposed again."""
        return frozenset(each for (each,) in self._store.rows("SELECT * FROM profile_rejected"))

    def source_texts(self, lines: Sequence[ProfileLine]) -> Mapping[FactSource, str]:
        """Return the texts of the sources of lines that are not hidden."""

        def read(cursor: Connection) -> Mapping[FactSource, str]:
            return _texts(cursor, lines, visible=True)

        return self._store.read(read)

    def _visible(self, made_at: datetime, author: str, text: str) -> Profile:
        lines: _Lines = codec.loads(_Lines, text)
        profile = Profile(lines, author, from_db(made_at))
        return replace(profile, lines=supported_lines(lines, self.source_texts(lines)))
