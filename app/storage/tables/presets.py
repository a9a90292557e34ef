"""Presets: their rows. `app.chat.presets` decides which one applies."""

from app.domain.changes import PresetPut, PresetRemoved
from app.domain.presets import Preset
from app.storage.engine.aggregate import (
    Aggregate,
    Batch,
    Table,
    columns_of,
    reader,
    unique_name,
)
from app.storage.engine.store import Store

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
