"""Older schemas are brought up to date, newer ones left untouched, a kill between them is neither."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from app.domain.errors import DatabaseTooNew
from app.storage import migrations
from app.storage.backup import list_backups
from app.storage.recovery import open_store
from app.system.paths import DataPaths
from tests.fakes.libraries import Library, left_by_a_kill
from tests.fakes.stored import opened

ROOT = Path(__file__).resolve().parents[2]
ADDS_A_COLUMN = migrations._script("ALTER TABLE draft ADD COLUMN colour VARCHAR")
FILLS_IT = migrations._script("UPDATE draft SET colour = 'red'", "CREATE TABLE extra (id BIGINT)")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return left_by_a_kill(tmp_path_factory.mktemp("original"))


@pytest.fixture
def library(original: Path, data_dir: Path) -> Library:
    shutil.copytree(original, data_dir)
    return Library(DataPaths(data_dir))


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def become() -> None:
        monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, ADDS_A_COLUMN, FILLS_IT))
        monkeypatch.setattr(migrations, "CURRENT_VERSION", len(migrations.STEPS))

    return become


def test_an_older_schema_is_migrated_with_a_backup_first(
    library: Library, next_version: Callable[[], None]
) -> None:
    old = migrations.CURRENT_VERSION
    next_version()
    library.opens()
    newest, *_ = list_backups(library.paths.backups)
    with duckdb.connect(str(newest.path), read_only=True) as backup:
        assert migrations.version_of(backup) == old
    with duckdb.connect(str(library.paths.database), read_only=True) as live:
        assert migrations.version_of(live) == old + 2
        live.execute("SELECT colour FROM draft")
    assert len(list_backups(library.paths.backups)) == 3


def test_an_older_backup_is_restored_and_migrated(
    library: Library, next_version: Callable[[], None]
) -> None:
    library.tear_metadata()
    next_version()
    library.opens()


@pytest.mark.parametrize("with_log", [True, False], ids=["with log", "without log"])
def test_a_newer_schema_is_refused_and_not_a_byte_changed(
    library: Library, monkeypatch: pytest.MonkeyPatch, with_log: bool
) -> None:
    if not with_log:
        with opened(library.paths.root):
            pass
    monkeypatch.setattr(migrations, "CURRENT_VERSION", migrations.CURRENT_VERSION - 1)
    before = {path: path.read_bytes() for path in library.paths.root.rglob("*") if path.is_file()}
    assert (library.paths.wal in before) is with_log
    with pytest.raises(DatabaseTooNew, match="newer version"):
        open_store(library.paths)
    after = {path: path.read_bytes() for path in library.paths.root.rglob("*") if path.is_file()}
    assert after == before


def test_a_newer_backup_is_not_restored(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    newest, older = list_backups(library.paths.backups)
    with duckdb.connect(str(newest.path)) as backup:
        backup.execute("UPDATE meta SET value = '999' WHERE key = 'schema_version'")
    library.tear_metadata()
    assert library.opens()
    assert older.path.exists()


def test_a_migration_that_fails_leaves_the_old_schema_and_a_message(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = migrations._script("ALTER TABLE draft ADD COLUMN colour VARCHAR", "SELECT 1 / 'a'")
    with monkeypatch.context() as later:
        later.setattr(migrations, "STEPS", (*migrations.STEPS, broken))
        later.setattr(migrations, "CURRENT_VERSION", len(migrations.STEPS) + 1)
        with pytest.raises(Exception, match="The database failed"):
            open_store(library.paths)
    assert library.damaged == set()
    library.opens()


MIGRATE_AND_DIE = """
import os, sys, threading, time
from app.storage import migrations
from app.storage.recovery import open_store
from app.system.paths import DataPaths

deadly, delay_s = int(sys.argv[2]), float(sys.argv[3])
count = 0

def die():
    time.sleep(delay_s)
    os.kill(os.getpid(), 9)

def step(number):
    def run(connection):
        global count
        for statement in (f"ALTER TABLE draft ADD COLUMN colour{number} VARCHAR",
                          f"CREATE TABLE extra{number} AS SELECT * FROM message",
                          f"UPDATE conversation SET title = title || '{number}'"):
            connection.execute(statement)
            count += 1
            if count == deadly:
                threading.Thread(target=die).start() if delay_s else die()
    return run

migrations.STEPS = (*migrations.STEPS, *map(step, range(8)))
migrations.CURRENT_VERSION = len(migrations.STEPS)
open_store(DataPaths.choose(sys.argv[1])).close()
"""


def migrate_and_die(root: Path, statement: int, after_s: float) -> int:
    """Migrate by eight steps of three statements, killed that long after one of them."""
    program = [sys.executable, "-c", MIGRATE_AND_DIE, str(root), str(statement), str(after_s)]
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode in (0, -9), ended.stderr
    return ended.returncode


def test_killed_within_a_migration_it_is_old_or_new_and_never_between(library: Library) -> None:
    seen: set[int] = set()
    old = migrations.CURRENT_VERSION
    for number, kill in enumerate([(2, 0), (6, 0), (6, 0.001), (6, 0.002), (4, 0.003)]):
        assert migrate_and_die(library.paths.root, *kill) == -9
        image = library.paths.root.with_name(f"image{number}")
        shutil.copytree(library.paths.root, image)
        with duckdb.connect(str(image / "commonplace.duckdb")) as found:
            steps = migrations.version_of(found) - old
            made = found.execute(
                "SELECT count(*) FROM duckdb_tables() WHERE table_name SIMILAR TO 'extra[0-9]*'"
            ).fetchall()
            columns = found.execute(
                "SELECT count(*) FROM duckdb_columns() WHERE column_name LIKE 'colour%'"
            ).fetchall()
            (title,) = found.execute("SELECT min(title) FROM conversation").fetchall()
        seen.add(steps)
        assert [(steps,)] == made == columns
        assert title == ("First" + "".join(map(str, range(steps))),)
    assert len(seen) > 2, "the kills met the migration"
    assert migrate_and_die(library.paths.root, -1, 0) == 0
