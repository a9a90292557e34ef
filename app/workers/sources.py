"""Followed sources: which programs keep sessions on this computer, and switching them on and off."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.sources import SOURCES, SourceName, SourceState
from app.storage.tables.settings import Settings
from app.system.paths import DataPaths
from app.transfer.source_files import SourceFiles, folder_of
from app.workers.model_choice import BackgroundModelChoice

_SUGGESTED = "suggested_sources"


@dataclass(frozen=True, slots=True)
class FollowedSources:
    """The sources of this computer. Blocking; not for the GUI thread."""

    paths: DataPaths
    settings: Settings
    background: BackgroundModelChoice

    def suggestion(self) -> SourceState | None:
        """Return a source with sessions that is off and was never suggested; None for none."""
        asked = self.settings.text(_SUGGESTED).split()
        found = (each for each in self.states() if each.files and each.name not in asked)
        return next((each for each in found if not each.is_on), None)

    def note_suggested(self, name: SourceName) -> None:
        """Never suggest a source again. Raises StorageError."""
        asked = dict.fromkeys((*self.settings.text(_SUGGESTED).split(), name.value))
        self.settings.set(_SUGGESTED, " ".join(asked))

    def states(self) -> Sequence[SourceState]:
        """Return the sources that keep sessions here, or did, in the order of their names."""
        files = SourceFiles(self.paths)
        files.look(list(SOURCES))
        found = []
        for name, spec in SOURCES.items():
            folder = folder_of(spec)
            own = [each for each in files.files.values() if each.source is name]
            is_on = self.settings.flag(spec.setting)
            if own or is_on:
                read, total = files.counts(name)
                size_bytes = sum(each.size_bytes for each in own)
                kept = files.kept_only_here(name)
                found.append(
                    SourceState(name, is_on, str(folder or ""), total, size_bytes, read, kept)
                )
        return found

    def switch(self, name: SourceName, *, is_on: bool) -> str:
        """Follow a source or no longer; what was imported stays.

        Returns the background models that had consent: with a source that is followed, they are asked
        for again, since they would read what it brings. Raises StorageError.
        """
        revoked = self.background.revoke_consents() if is_on else ""
        self.settings.set(SOURCES[name].setting, is_on)
        return revoked
