"""Presets: their rows. `app.chat.presets` decides which one applies."""

from app.domain.changes import PresetPut, PresetRemoved
from app.domain.presets import Preset
from app.storage.engine.aggregate import Aggregate, Batch, Row, Table, reader, row_of, unique_name
from app.storage.engine.store import Store

_COLUMNS = (
    "uid, name, system_prompt, model, temperature, reasoning_effort, max_output_tokens, tools"
)


def _put(batch: Batch, change: PresetPut) -> None:
    preset = change.preset
    tools = None if preset.tools is None else " ".join(preset.tools)
    batch.rows["preset"][preset.uid] = row_of(preset, _COLUMNS, tools=tools)
    batch.announce("presets", preset.uid)


def _removed(batch: Batch, change: PresetRemoved) -> None:
    batch.rows["preset"][change.uid] = None
    batch.announce("presets", change.uid)


PRESETS = Aggregate(
    (Table("preset", _COLUMNS, "uid"),),
    {PresetPut: _put, PresetRemoved: _removed},
    rules=(unique_name("preset"),),
)


def stored_presets(store: Store) -> tuple[Preset, ...]:
    """Return the presets that were stored, by name. Blocking."""
    rows = store.rows(f"SELECT {_COLUMNS} FROM preset ORDER BY lower(name), uid")
    return tuple(map(_preset, rows))


def _preset(row: Row) -> Preset:
    *values, tools = row
    return _read((*values, None if tools is None else tuple(tools.split())))


_read = reader(Preset)
