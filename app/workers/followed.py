"""Followed places of this computer: sessions of other programs, and folders and files of documents."""

import json
import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.domain.deletions import DocumentsForgotten
from app.domain.errors import InvalidInput, NotFound
from app.domain.passages import PassageKind
from app.domain.records.documents import AddedPath, DocumentStatus, ListedDocument
from app.domain.records.sources import SOURCES, SourceName, SourceState
from app.domain.translation import trn
from app.storage.deletion.forget import remains_of_files
from app.storage.engine.store import Store
from app.storage.tables.documents import Documents
from app.storage.tables.settings import Settings
from app.system.paths import DataPaths
from app.transfer.source_files import SourceFiles, estimated_messages, folders_of
from app.workers.model_choice import BackgroundModelChoice

_SUGGESTED = "suggested_sources"
FOLDERS_KEY = "document_folders"
Owner = bool | str
"""Whether a path and all below it are documents: no, those of the library, or those of a project, by its uid."""


@dataclass(frozen=True, slots=True)
class FollowedSources:
    """The sources of this computer. Blocking; not for the GUI thread."""

    paths: DataPaths
    settings: Settings
    background: BackgroundModelChoice

    def suggestions(self) -> Sequence[SourceState]:
        """Return the sources with sessions that are off and were never suggested."""
        asked = self.settings.text(_SUGGESTED).split()
        files = SourceFiles(self.paths)
        found = [e for e in self._states(files) if e.files and not e.is_on and e.name not in asked]
        return [replace(each, messages=self._messages(files, each.name)) for each in found]

    def note_suggested(self, names: Iterable[SourceName]) -> None:
        """Never suggest sources again. Raises StorageError."""
        asked = dict.fromkeys((*self.settings.text(_SUGGESTED).split(), *names))
        self.settings.set(_SUGGESTED, " ".join(asked))

    def _messages(self, files: SourceFiles, name: SourceName) -> int:
        own = (each for each in files.files.values() if each.source is name)
        return estimated_messages(SOURCES[name], own)

    def states(self) -> Sequence[SourceState]:
        """Return the sources that keep sessions here, or did, in the order of their names."""
        return self._states(SourceFiles(self.paths))

    def _states(self, files: SourceFiles) -> list[SourceState]:
        files.look(list(SOURCES))
        found = []
        for name, spec in SOURCES.items():
            folders = ", ".join(str(each) for each, _ in folders_of(spec))
            own = [each for each in files.files.values() if each.source is name]
            is_on = self.settings.flag(spec.setting)
            if own or is_on:
                read, total = files.counts(name)
                size_bytes = sum(each.size_bytes for each in own)
                kept = files.kept_only_here(name)
                found.append(SourceState(name, is_on, folders, total, size_bytes, read, kept))
        return found

    def switch(self, name: SourceName, *, is_on: bool) -> str:
        """Follow a source or no longer; what was imported stays.

        Returns the background models that had consent: with a source that is followed, they are asked
        for again, since they would read what it brings. Raises StorageError.
        """
        revoked = self.background.revoke_consents() if is_on else ""
        self.settings.set(SOURCES[name].setting, is_on)
        return revoked


def added_paths(settings: Settings) -> dict[str, Owner]:
    """Return what was added and removed, by path."""
    return dict(json.loads(settings.text(FOLDERS_KEY)))


def nearest(path: str, added: Mapping[str, Owner]) -> Owner:
    """Return the entry at or above a path that is nearest to it; False for none."""
    above = nearest_path(path, added)
    return above is not None and added[above]


def nearest_path(path: str, paths: Container[str]) -> str | None:
    """Return the one of some paths that is a path itself, or above and nearest to it; None for none."""
    while path not in paths:
        if not path.strip(os.sep):
            return None
        path = path.rpartition(os.sep)[0] or os.sep
    return path


def in_project(document: ListedDocument, added: Mapping[str, Owner]) -> ListedDocument:
    owner = nearest(document.name, added)
    return replace(document, project=owner if isinstance(owner, str) else None)


class AddedDocuments:
    """Adds, lists and removes documents. Thread-safe; blocking."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._documents = Documents(store, PassageKind.DOCUMENT)

    def add(self, path: Path, project: str | None = None) -> str:
        """Add a file, or a folder with all that is and will be below it; return its whole path.

        They are searched and recalled like the conversations of the project with that uid; None adds to the
        library. What is below and was added to another project stays in that. Raises NotFound, InvalidInput
        for the data directory or a path that is not valid text.
        """
        whole = str(path.resolve())
        if not os.path.lexists(whole):
            raise NotFound(f"There is no file or folder '{path}'", "Check its name.")
        own = os.path.realpath(self._store.paths.root)
        if os.path.commonpath((own, os.path.realpath(whole))) == own:
            raise InvalidInput(
                "The data directory cannot be added to the documents", "Choose another folder."
            )
        try:
            whole.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InvalidInput(
                "The path is not valid text", "Rename the file or folder, then add it."
            ) from error
        self._set(whole, True if project is None else project)
        return whole

    def affected(self, path: Path) -> tuple[DocumentStatus, ...]:
        """Return the documents that removing a path would remove; raise NotFound for none."""
        whole = str(path.resolve())
        found = tuple(each for each in self.statuses() if nearest(each.name, {whole: True}))
        if not found and not added_paths(self._settings).get(whole):
            raise NotFound(
                f"'{path}' is not among the documents", "See 'commonplace documents list'."
            )
        return found

    def remove(self, paths: Iterable[Path]) -> tuple[str, ...]:
        """Remove files and folders with all below; their words leave the library's files and backups later.

        Return where words may remain, as sentences. The files themselves are not touched. Blocking. Raises
        StorageError.
        """
        for path in paths:
            self._set(str(path.resolve()), False)
        added = added_paths(self._settings)
        removed = [each.id for each in self._documents.listed() if not nearest(each.name, added)]
        for each, name, places in self._documents.former():
            is_moved = places and not any(nearest(place, added) for place in places)
            if is_moved or not nearest(name, added):
                removed.append(each)
        answers = self._documents.answers_with(removed)
        if removed:
            self._store.save(DocumentsForgotten(tuple(removed)))
        left = trn(
            "{count} answer of a model that used them stays in its conversation.",
            "{count} answers of models that used them stay in their conversations.",
            answers,
        )
        return (*((left,) if answers else ()), *remains_of_files(self._store))

    def statuses(self) -> tuple[DocumentStatus, ...]:
        """Return what became of each file, by path."""
        return self._documents.statuses()

    def folders(self) -> tuple[str, ...]:
        """Return the files and folders that were added, by path."""
        return tuple(sorted(path for path, is_on in added_paths(self._settings).items() if is_on))

    def added(self) -> tuple[AddedPath, ...]:
        """Return what was added as it is now, by path; blocking where a drive does not answer."""
        return tuple(
            AddedPath(
                path,
                os.path.lexists(path),
                Path(path).is_dir(),
                owner if isinstance(owner, str) else None,
            )
            for path, owner in sorted(added_paths(self._settings).items())
            if owner
        )

    def _set(self, path: str, owner: Owner) -> None:
        added = added_paths(self._settings)
        for each, other in list(added.items()):
            is_others = isinstance(other, str) and each != path and bool(owner)
            if nearest(each, {path: True}) and not is_others:
                del added[each]
        if nearest(path, added) != owner:
            added[path] = owner
        self._settings.set(FOLDERS_KEY, json.dumps(added, ensure_ascii=False))
        kept = (each for each in self._documents.listed() if nearest(each.name, added))
        self._documents.move(now for each in kept if (now := in_project(each, added)) != each)
