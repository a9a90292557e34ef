"""Presets: which one applies in a conversation, and the changes to them."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

from app.domain.changes import Change, PresetPut, PresetRemoved, SettingPut
from app.domain.conversations import Conversation
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import new_uid
from app.domain.records.named import find_named, free_name, names_hint, one_line_name
from app.domain.records.presets import BUILT_IN_PRESET, Preset, preset_problem
from app.domain.text import clean
from app.storage.engine.store import Store
from app.storage.tables.projects import stored_presets
from app.storage.tables.settings import Settings

_INSTRUCTIONS = Path(__file__).resolve().parents[2] / "resources/prompts/system.txt"
_PROMPT, _DEFAULT = "system_prompt", "default_preset"


class Presets:
    """Reads and changes presets. Blocking; thread-safe.

    The instructions of the built-in preset are the setting `system_prompt`.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def listed(self) -> tuple[Preset, ...]:
        """Return all presets: the built-in one first, then by name."""
        stored = {preset.uid: preset for preset in stored_presets(self._store)}
        built_in = stored.pop(BUILT_IN_PRESET.uid, BUILT_IN_PRESET)
        text = self._settings.text(_PROMPT)
        return (replace(built_in, system_prompt=text), *stored.values())

    def default(self) -> Preset:
        return self.resolve(None)

    def of(self, conversation: Conversation) -> Preset:
        """Return the preset that applies in a conversation."""
        return self.resolve(conversation.preset)

    def resolve(self, uid: str | None) -> Preset:
        """Return the preset with a uid; the default for None and for one that was removed."""
        presets = {preset.uid: preset for preset in self.listed()}
        found = presets.get(uid or "") or presets.get(self._settings.text(_DEFAULT))
        return found or presets[BUILT_IN_PRESET.uid]

    def get(self, uid: str) -> Preset:
        """Return the preset with a uid; raise NotFound."""
        for preset in self.listed():
            if preset.uid == uid:
                return preset
        raise NotFound("This preset does not exist any more", "Choose another one.")

    def named(self, name: str) -> Preset:
        """Return the preset with a name (any case) or uid; raise NotFound with similar names."""
        presets = self.listed()
        if (found := find_named(name, presets)) is not None:
            return found
        raise NotFound(f"There is no preset '{name}'", names_hint(name, presets))

    def instructions(self, preset: Preset) -> str:
        """Return the system prompt of a preset; without one of its own, the built-in preset's."""
        return preset.system_prompt or self._settings.text(_PROMPT) or standard_instructions()

    def save(self, preset: Preset) -> Preset:
        """Add or change a preset and return it as stored; an empty uid adds one.

        Raises InvalidInput for an invalid value or the name of another preset, StorageError.
        """
        tools = None if preset.tools is None else tuple(sorted(set(preset.tools)))
        preset = replace(
            preset,
            uid=preset.uid or new_uid(),
            name=one_line_name(preset.name),
            system_prompt=clean(preset.system_prompt).strip(),
            model=(preset.model or "").strip() or None,
            tools=tools,
        )
        if problem := preset_problem(preset):
            raise InvalidInput(f"The preset '{preset.name}' {problem}", "Correct it and try again.")
        if (other := find_named(preset.name, self.listed(), preset.uid)) is not None:
            raise InvalidInput(f"There is already a preset '{other.name}'", "Choose another name.")
        changes: list[Change] = [PresetPut(preset)]
        if preset.is_built_in:
            changes = [PresetPut(replace(preset, system_prompt=""))]
            if preset.system_prompt != self._settings.text(_PROMPT):
                changes.append(SettingPut(_PROMPT, json.dumps(preset.system_prompt)))
        self._store.save(*changes)
        return preset

    def duplicate(self, uid: str) -> Preset:
        """Store a copy of a preset under a new name and return it; raise NotFound."""
        original = self.get(uid)
        names = [preset.name for preset in self.listed()]
        return self.save(replace(original, uid="", name=free_name(original.name, names)))

    def remove(self, uid: str) -> None:
        """Remove a preset: its conversations have the default one from then on.

        Removing the built-in one restores its original state. Raises NotFound.
        """
        preset = self.get(uid)
        changes: list[Change] = [PresetRemoved(uid)]
        if preset.is_built_in:
            changes.append(SettingPut(_PROMPT, None))
        elif self._settings.text(_DEFAULT) == uid:
            changes.append(SettingPut(_DEFAULT, None))
        self._store.save(*changes)

    def choose_default(self, uid: str) -> None:
        """Make a preset that of new conversations; raise NotFound."""
        self._settings.set(_DEFAULT, self.get(uid).uid)


@cache
def standard_instructions() -> str:
    return _INSTRUCTIONS.read_text(encoding="utf-8").strip()
