"""Data directories to copy: as a kill leaves one, and the sample archive with all work done."""

import atexit
import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from app.bootstrap import RunMode, build
from app.domain.changes import SettingPut
from app.storage.safety.backup import make_backup
from app.storage.tables.settings import Settings
from app.system.paths import DataPaths
from app.transfer.importing import import_files
from tests.fakes.stored import add_conversation, killed, made, opened, titles

SAMPLE = Path(__file__).resolve().parents[2] / "resources" / "samples" / "sample-archive.json"
EVERYTHING = {"First", "Second", "Third", "Fourth"}


@dataclass(frozen=True)
class Library:
    """Two backups, then more, some of it folded into the file and some only in its log."""

    paths: DataPaths

    @property
    def damaged(self) -> set[str]:
        """The names of all files set aside."""
        return {path.name for path in self.paths.damaged.rglob("*") if path.is_file()}

    def opens(self) -> tuple[str, ...]:
        """Open; everything acknowledged is there, and can be gone on with; return the notices."""
        with opened(self.paths.root) as store:
            assert titles(store) == EVERYTHING
            assert Settings(store).text("theme") == "dark"
            add_conversation(store, "goes on", title="Fifth")
            notices = store.notices
        with opened(self.paths.root) as again:
            assert titles(again) == EVERYTHING | {"Fifth"}
            assert again.notices == ()
        return notices

    def tear_metadata(self) -> None:
        """Zero one sector of what DuckDB rewrites at each checkpoint (reliability F3)."""
        zero(self.paths.database, 12288)


def left_by_a_kill(folder: Path) -> Path:
    """Return a data directory in `folder` in which everything was acknowledged."""
    with opened(folder / "live") as store:
        add_conversation(store, "one", title="First")
        make_backup(store)
        add_conversation(store, "two", title="Second")
        make_backup(store)
        add_conversation(store, "three", title="Third")
        store.checkpoint().result()
        store.save(SettingPut("theme", '"dark"'))
        add_conversation(store, "four", title="Fourth")
        return killed(store, folder / "killed")


def zero(path: Path, offset: int, length: int = 4096) -> None:
    """Overwrite a stretch of a file with zeros."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(offset)
        file.write(bytes(max(0, min(length, size - offset))))


@cache
def embedded_sample() -> Path:
    """Return a data directory with the sample archive, all background work done."""
    root = Path(tempfile.mkdtemp(prefix="commonplace-sample-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    services = build(made(root / "data"), RunMode.COMMAND_LINE)
    try:
        import_files(services.store, [SAMPLE])
        services.workers.run_until_idle()
    finally:
        services.close()
    return root / "data"
