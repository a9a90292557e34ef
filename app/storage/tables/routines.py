"""Routines and the records of their runs. `app.chat.routines` runs them."""

from collections.abc import Sequence
from datetime import datetime

from app.domain.changes import RoutinePut, RoutineRemoved, RoutineRunPut
from app.domain.ids import ConversationId, ExchangeId
from app.domain.records.routines import Routine, RoutineRun
from app.storage.engine.aggregate import (
    OF_CONVERSATIONS,
    Aggregate,
    Batch,
    Rule,
    State,
    Table,
    columns_of,
    reader,
    reference,
)
from app.storage.engine.connection import Connection
from app.storage.engine.stamps import to_db
from app.storage.engine.store import StoreReader

_ROUTINE = Table("routine", columns_of(Routine), "uid")
# The times of runs are kept without their conversation, so that none is repeated.
_RUN = Table(
    "routine_run",
    columns_of(RoutineRun),
    "routine_uid, due_at",
    OF_CONVERSATIONS,
    cleared="conversation_id, exchange_id",
)
_WITHOUT_ROUTINE = "routine_uid NOT IN (SELECT uid FROM routine)"


# -- changes


def _removed(batch: Batch, change: RoutineRemoved) -> None:
    batch.rows["routine"][change.uid] = None
    batch.rows["removed_routine"][change.uid] = None
    runs = batch.rows["routine_run"]
    for key in [key for key in runs if key[0] == change.uid]:
        del runs[key]
    batch.announce("routines", change.uid)


def _run_put(batch: Batch, change: RoutineRunPut) -> None:
    uid, _ = _RUN.put(batch, change.run)
    batch.announce("routines", uid)


def _write(connection: Connection, batch: Batch, _state: State) -> None:
    """Write routines and runs; a run that ends after its routine was removed is dropped.

    A run of a conversation that was forgotten meanwhile keeps its times alone.
    """
    if removed := batch.rows["removed_routine"]:
        connection.delete_in("routine_run", "routine_uid", removed)
    _ROUTINE.write(connection, batch.rows["routine"])
    runs = batch.rows["routine_run"]
    if not runs:
        return
    ids = {row[8] for row in runs.values() if row[8] is not None}
    present = connection.existing_ids("exchange", batch.rows["exchange"], ids)
    kept = {
        key: row if row[8] is None or row[8] in present else (*row[:7], None, None, row[9])
        for key, row in runs.items()
    }
    _RUN.write(connection, kept)
    connection.execute(f"DELETE FROM routine_run WHERE {_WITHOUT_ROUTINE}")


ROUTINES = Aggregate(
    (_ROUTINE, _RUN),
    {
        RoutinePut: _ROUTINE.puts("routine", "routines"),
        RoutineRemoved: _removed,
        RoutineRunPut: _run_put,
    },
    _write,
    rules=(
        reference("routine_run.conversation_id", "conversation", "clear"),
        reference("routine_run.exchange_id", "exchange", "clear"),
        Rule(
            "routine_run.routine_uid",
            "A run refers to the routine {}, which does not exist.",
            f"SELECT DISTINCT routine_uid FROM routine_run WHERE {_WITHOUT_ROUTINE}",
            "DELETE FROM routine_run WHERE routine_uid IN (SELECT unnest($1))",
        ),
        Rule(
            "routine_run.outcome",
            "A run of the routine {} has an outcome and no time at which it ended, or the opposite.",
            "SELECT DISTINCT routine_uid FROM routine_run WHERE outcome <> 'skipped' "
            "AND (outcome IS NULL) <> (finished_at IS NULL)",
        ),
    ),
)


# -- queries


class RoutineRows(StoreReader):
    """Reads routines and runs. Blocking; raises StorageError."""

    def listed(self) -> tuple[Routine, ...]:
        """Return all routines, by name."""
        rows = self._store.rows(f"SELECT {_ROUTINE.columns} FROM routine ORDER BY lower(name), uid")
        return tuple(map(reader(Routine), rows))

    def runs(self, uid: str, limit: int = 50) -> tuple[RoutineRun, ...]:
        """Return the runs of a routine, the latest due time first.

        One that failed and was then tried again by the user counts by what it has become.
        """
        columns = _RUN.columns.replace(
            "outcome",
            "CASE WHEN (SELECT e.status FROM exchange e WHERE e.id = exchange_id) = 'completed' "
            "AND outcome IS NOT NULL THEN 'completed' ELSE outcome END",
        )
        return self._runs(uid, "true", limit, columns=columns)

    def run_at(self, uid: str, due_at: datetime) -> RoutineRun | None:
        return next(iter(self._runs(uid, "due_at = ?", 1, to_db(due_at))), None)

    def last_due(self, uid: str, until: datetime) -> datetime | None:
        """Return the latest due time up to a moment that has a record; manual runs do not count."""
        found = self._runs(uid, "due_at <= ? AND NOT is_manual", 1, to_db(until))
        return found[0].due_at if found else None

    def unfinished(self, uid: str) -> RoutineRun | None:
        """Return the latest run that began and did not end."""
        return next(iter(self._runs(uid, "started_at IS NOT NULL AND outcome IS NULL", 1)), None)

    def conversation_id(self, routine: Routine) -> ConversationId | None:
        """Return the conversation of the latest run, if it is not in the trash.

        It has to be as private, and in the routine's project: what was said in another one stays there.
        """
        ids = self._store.column(
            "SELECT r.conversation_id FROM routine_run r JOIN conversation c "
            "ON c.id = r.conversation_id WHERE r.routine_uid = ? AND c.deleted_at IS NULL "
            "AND c.private = ? AND c.project IS NOT DISTINCT FROM ? "
            "ORDER BY r.started_at DESC LIMIT 1",
            [routine.uid, routine.is_private, routine.project],
        )
        return ids[0] if ids else None

    def completed(self, uid: str, conversation_id: int, limit: int) -> tuple[ExchangeId, ...]:
        """Return the exchanges of the last runs in a conversation that were completed, oldest first."""
        ids = self._store.column(
            "SELECT r.exchange_id FROM routine_run r JOIN exchange e ON e.id = r.exchange_id "
            "WHERE r.routine_uid = ? AND r.conversation_id = ? AND e.status = 'completed' "
            "AND r.outcome IS NOT NULL ORDER BY r.started_at DESC LIMIT ?",
            [uid, conversation_id, limit],
        )
        return tuple(reversed(ids))

    def turns(self, runs: Sequence[RoutineRun]) -> dict[int, int]:
        """Return the turn numbers of runs by the ids of their exchanges."""
        ids = [run.exchange_id for run in runs if run.exchange_id is not None]
        return dict(self._store.select_in("exchange", "id, turn_number", ids))

    def spent_usd(self, uid: str, since: datetime) -> float:
        """Return what the runs of a routine cost since a moment; unknown prices count as nothing."""
        (spent_usd,) = self._store.column(
            "SELECT coalesce(sum(s.cost_usd), 0) FROM spend s JOIN routine_run r "
            "ON r.exchange_id = s.exchange_id WHERE r.routine_uid = ? AND s.spent_at >= ?",
            [uid, to_db(since)],
        )
        return float(spent_usd)

    def _runs(
        self, uid: str, condition: str, limit: int, *values: object, columns: str = _RUN.columns
    ) -> tuple[RoutineRun, ...]:
        rows = self._store.rows(
            f"SELECT {columns} FROM routine_run WHERE routine_uid = ? AND {condition} "
            "ORDER BY due_at DESC LIMIT ?",
            [uid, *values, limit],
        )
        return tuple(map(reader(RoutineRun), rows))
