"""Presets in exports and imports: added under a free name, never in the place of an existing one.

The instructions in a file are another person's text: they never change the user's presets or the default,
and no imported conversation uses them until the user chooses so.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, replace

from app.domain.changes import PresetPut
from app.domain.ids import derived_uid
from app.domain.presets import BUILT_IN_PRESET, Preset, free_name
from app.storage.engine.store import Store
from app.storage.tables.presets import stored_presets
from app.storage.tables.settings import stored_text


def portable_presets(store: Store) -> tuple[Preset, ...]:
    """Return the presets to export: all but the built-in one as it was. Blocking."""
    stored = {preset.uid: preset for preset in stored_presets(store)}
    built_in = stored.pop(BUILT_IN_PRESET.uid, BUILT_IN_PRESET)
    built_in = replace(built_in, system_prompt=stored_text(store, "system_prompt"))
    return (*((built_in,) if built_in != BUILT_IN_PRESET else ()), *stored.values())


def known_uids(store: Store) -> frozenset[str]:
    """Return the uids of all presets here. Blocking."""
    return frozenset(preset.uid for preset in (BUILT_IN_PRESET, *stored_presets(store)))


def import_presets(store: Store, imported: Iterable[Preset], *, dry_run: bool = False) -> int:
    """Store presets whose uid is not known; return their number. Blocking.

    A changed built-in one becomes another preset. A `dry_run` only counts.
    """
    existing = portable_presets(store)
    uids = {preset.uid for preset in existing}
    names = [BUILT_IN_PRESET.name, *(preset.name for preset in existing)]
    new: list[Preset] = []
    for preset in imported:
        own = preset
        if preset.is_built_in:
            if preset in existing:
                continue
            own = replace(preset, uid=derived_uid(json.dumps(asdict(preset), sort_keys=True), 0))
        if own.uid not in uids:
            own = replace(own, name=free_name(own.name, names))
            new.append(own)
            uids.add(own.uid)
            names.append(own.name)
    if new and not dry_run:
        store.save(*map(PresetPut, new))
    return len(new)
