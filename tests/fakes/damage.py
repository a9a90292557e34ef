"""Random damage to data directories by disks, power cuts and people.

Every kind damages files of a library that was left by a kill (`tests.fakes.libraries`), never more
than recovery promises to survive: the journal with any image, or an image with any journal.
"""

import os
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from app.storage.engine.journal import segments
from app.storage.safety.backup import list_backups
from app.system.paths import DataPaths
from tests.fakes.libraries import zero

Damage = Callable[[DataPaths, random.Random], None]
_SECTOR = 4096
_METADATA = range(12288, 12288 + 262144, _SECTOR)


def flip_bits(path: Path, chance: random.Random, count: int = 1) -> None:
    """Flip single bits anywhere in a file."""
    content = bytearray(path.read_bytes())
    for _ in range(count):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def cut(path: Path, chance: random.Random) -> None:
    """Cut a file anywhere."""
    os.truncate(path, chance.randrange(path.stat().st_size))


def _torn_metadata(paths: DataPaths, chance: random.Random) -> None:
    size = paths.database.stat().st_size
    for _ in range(chance.randint(1, 3)):
        zero(paths.database, chance.choice([s for s in _METADATA if s < size]))


def _zeroed_pages(paths: DataPaths, chance: random.Random) -> None:
    size = paths.database.stat().st_size
    for _ in range(chance.randint(1, 8)):
        zero(paths.database, chance.randrange(size // _SECTOR) * _SECTOR)


def _swapped_pages(paths: DataPaths, chance: random.Random) -> None:
    content = bytearray(paths.database.read_bytes())
    one, other = (chance.randrange(len(content) // _SECTOR) * _SECTOR for _ in range(2))
    first, second = content[one : one + _SECTOR], content[other : other + _SECTOR]
    content[other : other + len(first)], content[one : one + len(second)] = first, second
    paths.database.write_bytes(content)


def _noise_for_log(paths: DataPaths, chance: random.Random) -> None:
    paths.wal.write_bytes(chance.randbytes(chance.randrange(1, 20_000)))


def _flipped_log(paths: DataPaths, chance: random.Random) -> None:
    flip_bits(paths.wal, chance, chance.randint(1, 5))


def _broken_backup_too(paths: DataPaths, chance: random.Random) -> None:
    _torn_metadata(paths, chance)
    newest = list_backups(paths.backups)[0].path
    chance.choice([cut, flip_bits])(newest, chance)


def _torn_journal_end(paths: DataPaths, chance: random.Random) -> None:
    _, newest = segments(paths.journal)[-1]
    with newest.open("ab") as file:
        file.write(chance.randbytes(chance.randrange(1, 3000)))


def _lost_journal(paths: DataPaths, _: random.Random) -> None:
    shutil.rmtree(paths.journal)


def _flipped_journal(paths: DataPaths, chance: random.Random) -> None:
    for _, path in segments(paths.journal):
        flip_bits(path, chance, 2)


KINDS: Mapping[str, Damage] = {
    "torn metadata": _torn_metadata, "zeroed pages": _zeroed_pages, "swapped pages": _swapped_pages,
    "flipped bits": lambda paths, chance: flip_bits(paths.database, chance, chance.randint(1, 9)),
    "cut file": lambda paths, chance: cut(paths.database, chance),
    "missing file": lambda paths, _: paths.database.unlink(),
    "missing log": lambda paths, _: paths.wal.unlink(),
    "cut log": lambda paths, chance: cut(paths.wal, chance), "flipped log": _flipped_log,
    "noise for a log": _noise_for_log, "file and newest backup": _broken_backup_too,
    "no backups": lambda paths, _: shutil.rmtree(paths.backups),
    "torn journal end": _torn_journal_end, "flipped journal": _flipped_journal,
    "no journal": _lost_journal,
}  # fmt: skip
