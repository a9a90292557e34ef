"""The vendors' SDKs are imported on first use, also while other threads import the same packages."""

import sys
from pathlib import Path

import pytest

from app.providers import connection

_HALF_MADE = """
import pathlib
marker = pathlib.Path(__file__).with_name("tried")
if not marker.exists():
    marker.touch()
    raise ImportError("cannot import name 'part' from partially initialized module")
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(connection, "_IMPORT_AGAIN_S", (0.0, 0.0))
    return tmp_path


def test_a_module_that_was_half_made_is_imported_again(packages: Path) -> None:
    (packages / "half_made_sdk.py").write_text(_HALF_MADE)
    connection._import_sdk("half_made_sdk")
    assert "half_made_sdk" in sys.modules


def test_what_is_not_installed_is_said_so(packages: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_sdk"):
        connection._import_sdk("no_such_sdk")
