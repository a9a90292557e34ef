"""Projects: their rows. `conversation.project` is the uid of a conversation's project, if any."""

from app.domain.changes import ProjectPut, ProjectRemoved
from app.domain.projects import Project
from app.storage.engine.aggregate import Aggregate, Batch, Rule, Table, reader, row_of
from app.storage.engine.store import Store

_COLUMNS = "uid, name, instructions, color, folder, recall"


def _put(batch: Batch, change: ProjectPut) -> None:
    batch.rows["project"][change.project.uid] = row_of(change.project, _COLUMNS)
    batch.announce("projects", change.project.uid)


def _removed(batch: Batch, change: ProjectRemoved) -> None:
    batch.rows["project"][change.uid] = None
    batch.announce("projects", change.uid)


PROJECTS = Aggregate(
    (Table("project", _COLUMNS, "uid"),),
    {ProjectPut: _put, ProjectRemoved: _removed},
    rules=(
        Rule(
            "project.name",
            "Several projects have the name of the project {}.",
            "SELECT uid FROM project WHERE lower(name) IN (SELECT lower(name) FROM project "
            "GROUP BY lower(name) HAVING count(*) > 1) AND uid NOT IN (SELECT min(uid) FROM project "
            "GROUP BY lower(name))",
            "UPDATE project SET name = name || ' ' || uid WHERE uid IN (SELECT unnest($1))",
        ),
    ),
)


def stored_projects(store: Store) -> tuple[Project, ...]:
    """Return the projects, by name. Blocking."""
    rows = store.rows(f"SELECT {_COLUMNS} FROM project ORDER BY lower(name), uid")
    return tuple(map(_read, rows))


_read = reader(Project)
