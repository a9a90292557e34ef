"""Parts of a library as a whole, in exports and imports: saved texts, core memory, spend, settings.

Saved texts are imported like facts. The rest changes what the program does: it is taken only from an
export that the user calls their own. Keys are never part of it.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from app.domain.changes import (
    Change,
    CoreMemoryPut,
    MemoryPut,
    PassagesPut,
    ProjectPut,
    ProviderPut,
    RoutinePut,
    SettingPut,
    SpendAdded,
)
from app.domain.errors import InvalidSetting
from app.domain.ids import ExchangeId
from app.domain.passages import Passage, PassageKind
from app.domain.records.facts import Memory
from app.domain.records.named import free_name
from app.domain.records.projects import Project, project_problem
from app.domain.records.routines import Routine, routine_problem
from app.domain.settings_schema import SETTINGS
from app.domain.text import content_hash
from app.domain.transfer import PortableLibrary, PortableMemory, PortableSpend
from app.domain.turns import estimate_tokens
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.forgotten import forgotten_uids
from app.storage.tables.memories import ArchivalMemories, CoreMemory
from app.storage.tables.portable_reads import portable_memories, portable_settings, portable_spend
from app.storage.tables.projects import stored_projects
from app.storage.tables.routines import RoutineRows
from app.storage.tables.settings import PROBES, Settings
from app.storage.work.queue import FACTS, SUMMARIES
from app.transfer.other_records import import_topics, portable_topics

_ALL = 1_000_000
_OF_THIS_LIBRARY = frozenset(
    (
        PROBES, FACTS.key, SUMMARIES.key, "clean_slates", "import_history", "mcp_clients",
        "profile_announced", "project_proposals_dismissed", "tool_servers",
    )
)  # fmt: skip
_BATCH = 500
Named = TypeVar("Named", Project, Routine)


def portable_library(store: Store) -> PortableLibrary:
    """Return what an export of everything contains. Blocking."""
    versions = CoreMemory(store).versions(_ALL)
    return PortableLibrary(
        core_memory=tuple(
            CoreMemoryPut(each.text, each.author or "", each.made_at)
            for each in reversed(versions)
            if each.made_at is not None
        ),
        memories=portable_memories(store),
        spend=portable_spend(store),
        settings=tuple(row for row in portable_settings(store) if _is_portable(row[0])),
        providers=Settings(store).providers(),
        projects=stored_projects(store),
        routines=tuple(map(_switched_off, RoutineRows(store).listed())),
        topics=portable_topics(store),
    )


def import_library(
    store: Store, library: PortableLibrary, *, own: bool, restore_forgotten: bool
) -> tuple[str, ...]:
    """Store what is new of a library, after its conversations; return what was left out. Blocking.

    What is set here stays. The instructions of projects are another person's text: only those of one's `own`
    library are stored.
    """
    _save(store, _memories(store, library.memories, restore_forgotten=restore_forgotten))
    _save(store, _projects(store, library.projects, own=own))
    if own:
        _save(store, [*_core_memory(store, library), *_settings(store, library)])
        _save(store, [*_spend(store, library.spend), *_routines(store, library.routines)])
        import_topics(store, library.topics)
        return ()
    parts = {
        "core memory": library.core_memory, "settings": library.settings,
        "providers": library.providers, "spend": library.spend, "topics": library.topics,
        "routines": library.routines,
        "instructions of projects": any(each.instructions for each in library.projects),
    }  # fmt: skip
    return tuple(name for name, found in parts.items() if found)


def _save(store: Store, changes: Sequence[Change]) -> None:
    for start in range(0, len(changes), _BATCH):
        store.save(*changes[start : start + _BATCH])


def _is_portable(key: str) -> bool:
    return key in SETTINGS and key not in _OF_THIS_LIBRARY


def _projects(store: Store, imported: Sequence[Project], *, own: bool) -> list[Change]:
    """Return projects whose uid is not known."""
    new = _new(imported, stored_projects(store), project_problem)
    return [ProjectPut(each if own else replace(each, instructions="")) for each in new]


def _routines(store: Store, imported: Sequence[Routine]) -> list[Change]:
    """Return routines whose uid is not known, switched off: whether one runs is decided in each library."""
    new = _new(imported, RoutineRows(store).listed(), routine_problem)
    return [RoutinePut(_switched_off(each)) for each in new]


def _new(
    imported: Iterable[Named], stored: Iterable[Named], problem: Callable[[Named], str]
) -> list[Named]:
    """Return the valid ones of unknown uid, each under a free name."""
    known = {each.uid: each.name for each in stored}
    new: list[Named] = []
    for each in imported:
        if each.uid not in known and not problem(each):
            new.append(replace(each, name=free_name(each.name, known.values())))
            known[each.uid] = new[-1].name
    return new


def _switched_off(routine: Routine) -> Routine:
    return replace(routine, enabled_at=None, agreed_to="")


def _memories(
    store: Store, imported: Sequence[PortableMemory], *, restore_forgotten: bool
) -> list[Change]:
    known = ArchivalMemories(store).listed()
    left_out = {each.uid for each in known}
    texts = {each.text for each in known}
    if not restore_forgotten:
        left_out |= forgotten_uids(store, [each.uid for each in imported])
    conversations = Conversations(store)
    ids = conversations.ids_by_uid({each.conversation for each in imported} - {""})
    rows = conversations.by_ids(ids.values())
    turns = _turn_ids(store, (each.turn for each in imported))
    changes: list[Change] = []
    for each in imported:
        here = ids.get(each.conversation)
        is_missing = each.conversation and (here is None or rows[here].private)
        if not each.text.strip() or each.uid in left_out or each.text in texts or is_missing:
            continue
        left_out.add(each.uid)
        turn = turns.get(each.turn) if here is not None else None
        memory = Memory(store.ids.passage(), each.uid, each.text, each.saved_at, here, turn)
        passage = Passage(
            memory.id, PassageKind.MEMORY, memory.id, here, turn, content_hash(each.text),
            each.saved_at, estimate_tokens(each.text),
        )  # fmt: skip
        changes += [MemoryPut(memory), PassagesPut((passage,))]
    return changes


def _turn_ids(store: Store, uids: Iterable[str]) -> Mapping[str, ExchangeId]:
    return dict(store.select_in("exchange", "uid, id", {*uids} - {""}, "uid"))


def _core_memory(store: Store, library: PortableLibrary) -> list[Change]:
    known = {each.made_at for each in CoreMemory(store).versions(_ALL)}
    versions = sorted(library.core_memory, key=lambda each: each.made_at)
    return [each for each in versions if each.made_at not in known]


def _settings(store: Store, library: PortableLibrary) -> list[Change]:
    settings = Settings(store)
    chosen = settings.chosen()
    changes: list[Change] = []
    for key, value_json in library.settings:
        if key not in chosen and _is_portable(key):
            try:
                value = SETTINGS[key].check(json.loads(value_json))
            except (ValueError, RecursionError, InvalidSetting):
                continue
            changes.append(SettingPut(key, json.dumps(value)))
    names = {row.name for row in settings.providers()}
    changes += [
        ProviderPut(
            each.name, each.kind, each.base_url, each.key_env,
            allow_plain_http=each.allow_plain_http,
        )
        for each in library.providers
        if each.name not in names
    ]  # fmt: skip
    return changes


def _spend(store: Store, imported: Sequence[PortableSpend]) -> list[Change]:
    known = {replace(each, turn="") for each in portable_spend(store)}
    turns = _turn_ids(store, (each.turn for each in imported))
    return [
        SpendAdded(
            each.at, each.purpose, each.model, each.input_tokens, each.output_tokens,
            each.cached_tokens, each.cost_usd, turns.get(each.turn), is_estimated=each.is_estimated,
        )
        for each in imported
        if replace(each, turn="") not in known
    ]  # fmt: skip
