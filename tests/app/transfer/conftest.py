"""Fixtures of followed sources."""

from pathlib import Path

import pytest

from app.storage.engine.store import Store
from app.transfer import source_files
from tests.fakes.followed import Followed


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """List folders at every look, and read a file again at once."""
    monkeypatch.setattr(source_files, "LIST_EVERY_S", 0.0)
    monkeypatch.setattr(source_files, "_READ_SHARE", 0)
    monkeypatch.setattr(source_files, "_DATABASE_LAG_S", 0.0)


@pytest.fixture
def followed(store: Store, clean_home: Path) -> Followed:
    return Followed(store, clean_home)
