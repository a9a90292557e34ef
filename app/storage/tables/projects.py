"""Projects and presets: their rows. `conversation.project` is the uid of a conversation's project, if any."""

from collections.abc import Iterable, Mapping, Sequence

from app.domain.changes import PresetPut, PresetRemoved, ProjectPut, ProjectRemoved
from app.domain.conversations import SAMPLE_SOURCE
from app.domain.ids import ConversationId
from app.domain.records.presets import Preset
from app.domain.records.projects import Project
from app.domain.records.sources import SUBAGENT_TAG, SourceName
from app.storage.engine.aggregate import Aggregate, Batch, Table, columns_of, reader, unique_name
from app.storage.engine.store import Store

_PROJECT = Table("project", columns_of(Project), "uid")
APART = (
    "(SELECT b.id, coalesce(p.uid, b.source) AS place FROM conversation b "
    "LEFT JOIN project p ON p.uid = b.project AND p.recall = 'only' "
    f"WHERE p.uid IS NOT NULL OR b.source = '{SAMPLE_SOURCE}')"
)
"""The conversations whose facts count among themselves alone, with their place: a table.

A place is a bounded project, or else the sample archive.
"""


PROJECTS = Aggregate(
    (_PROJECT,),
    {
        ProjectPut: _PROJECT.puts("project", "projects"),
        ProjectRemoved: _PROJECT.removes("projects"),
    },
    rules=(unique_name("project"),),
)


def stored_projects(store: Store) -> tuple[Project, ...]:
    """Return the projects, by name. Blocking."""
    rows = store.rows(f"SELECT {_PROJECT.columns} FROM project ORDER BY lower(name), uid")
    return tuple(map(reader(Project), rows))


def conversations_in_projects(store: Store) -> Mapping[str, int]:
    """Return how many conversations each project has, without those in the trash. Blocking."""
    return dict(
        store.rows(
            "SELECT project, count(*) FROM conversation WHERE project IS NOT NULL "
            "AND deleted_at IS NULL GROUP BY project"
        )
    )


def folders_without_project(store: Store) -> Sequence[tuple[str, tuple[ConversationId, ...]]]:
    """Return the folders of agents' sessions with those that have no project. Blocking.

    Most conversations first; those of subagents do not count, nor do automatic tags.
    """
    rows = store.rows(
        "SELECT t.name, list(c.id ORDER BY c.id) FROM conversation c JOIN tag t "
        "ON t.conversation_id = c.id AND NOT t.automatic LEFT JOIN project p ON p.uid = c.project "
        "WHERE p.uid IS NULL AND c.source IN (SELECT unnest($1)) AND NOT c.private AND c.deleted_at IS NULL "
        "AND c.id NOT IN (SELECT conversation_id FROM tag WHERE name = $2) "
        "GROUP BY t.name ORDER BY count(*) DESC, t.name",
        [list(map(str, SourceName)), SUBAGENT_TAG],
    )
    return [(name, tuple(ids)) for name, ids in rows]


def places_apart(
    store: Store, conversation_ids: Iterable[int | None]
) -> Mapping[ConversationId | None, str]:
    """Return the places of the conversations that are set `APART`. Blocking."""
    wanted = {each for each in conversation_ids if each is not None}
    return dict(store.select_in(f"{APART} c", "c.id, c.place", wanted, "c.id"))


def conversations_within(
    store: Store, project: str | None, conversation_ids: Iterable[int]
) -> frozenset[ConversationId]:
    """Return those of some conversations that may be recalled in a project, by its uid. Blocking.

    They are in the bounded project that the uid names, and in none if it names none. All is read in one
    statement, so that a move is either seen or not.
    """
    ids = store.column(
        "SELECT c.id FROM conversation c LEFT JOIN project own ON own.uid = $1 AND own.recall = 'only' "
        "LEFT JOIN project p ON p.uid = c.project AND p.recall = 'only' "
        "WHERE c.id IN (SELECT unnest($2)) AND p.uid IS NOT DISTINCT FROM own.uid",
        [project, list(conversation_ids)],
    )
    return frozenset(ids)


_PRESET = Table("preset", columns_of(Preset), "uid")


def _put(batch: Batch, change: PresetPut) -> None:
    tools = None if change.preset.tools is None else " ".join(change.preset.tools)
    batch.announce("presets", _PRESET.put(batch, change.preset, tools=tools))


PRESETS = Aggregate(
    (_PRESET,),
    {PresetPut: _put, PresetRemoved: _PRESET.removes("presets")},
    rules=(unique_name("preset"),),
)


def stored_presets(store: Store) -> tuple[Preset, ...]:
    """Return the presets that were stored, by name. Blocking."""
    rows = store.rows(f"SELECT {_PRESET.columns} FROM preset ORDER BY lower(name), uid")
    return tuple(
        _read((*values, None if tools is None else tuple(tools.split()))) for *values, tools in rows
    )


_read = reader(Preset)
