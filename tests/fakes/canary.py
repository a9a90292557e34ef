"""A text that must be in no file once it is forgotten, and the files that still contain it."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from app.storage.deletion.erasure import erase_bytes
from app.storage.engine.frames import frames
from app.storage.engine.store import Store

CANARY = "canary-7f3a9c-in-the-coal-mine"


@contextmanager
def plain_databases() -> Iterator[None]:
    """Have databases write text as it is: compressed, it would hide from a search (reliability F6)."""
    connect = duckdb.connect

    def plain(path: str, **options: object) -> duckdb.DuckDBPyConnection:
        connection = connect(path, **options)  # type: ignore[arg-type]
        connection.execute("SET force_compression = 'uncompressed'")
        return connection

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(duckdb, "connect", plain)
        yield


def files_with(root: Path, words: str = CANARY) -> set[str]:
    """Return the files that contain `words`, journals unpacked."""
    wanted = words.encode()
    found = set()
    for path in root.rglob("*"):
        if not path.is_file():
            continue
        content = path.read_bytes()
        unpacked = b""
        if path.suffix == ".journal":
            unpacked = "".join(r.payload for r in frames(content) if r is not None).encode()
        if wanted in content or wanted in unpacked or base64.b64encode(wanted)[:20] in content:
            found.add(path.name)
    return found


def files_after_erasing(store: Store, words: str = CANARY) -> set[str]:
    """Return the files that contain `words` after the work of a quiet time."""
    erase_bytes(store)
    return files_with(store.paths.root, words)
