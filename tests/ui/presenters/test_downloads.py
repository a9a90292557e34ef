"""New exports in Downloads: asked once, offered once each, imported only when the user agrees."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.domain.change_set import ChangeSet
from app.domain.errors import ImportRefused
from app.domain.transfer import ImportReport
from app.transfer.found_exports import FoundExport
from tests.fakes.screens import FakeSettings, Parts
from ui.presenters import imports
from ui.presenters.imports import SWITCH, DownloadsPresenter


class Downloads:
    """The presenter on a real folder."""

    def __init__(self, parts: Parts, folder: Path, switch: str) -> None:
        self.parts, self.settings, self.folder = parts, FakeSettings({SWITCH: switch}), folder
        self.report = ImportReport(2, 5, 9)
        self.damaged: set[str] = set()
        self.read: list[Path] = []
        self.imported: list[Any] = []
        self.offers: list[str] = []
        self.presenter = parts.make(
            DownloadsPresenter, settings=self.settings, folder=folder, find=self.find,
            read=self.take, start_import=self.imported.append, make_offer=self.offer,
        )  # fmt: skip

    def offer(
        self, text: str, accept: Callable[[], object], _dismiss: Callable[[], object]
    ) -> None:
        self.offers.append(text)
        self.accept = accept

    def find(self) -> list[FoundExport]:
        at = datetime(2026, 5, 1, tzinfo=UTC)
        return [FoundExport(path, "ChatGPT", at, 7) for path in sorted(self.folder.iterdir())]

    def take(self, path: Path) -> ImportReport:
        self.read.append(path)
        if path.name in self.damaged:
            raise ImportRefused("The file is damaged")
        return self.report


def test_a_new_export_is_offered_once_and_imported_only_when_wanted(
    parts: Parts, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "_SETTLED_MS", 0)
    made = Downloads(parts, tmp_path, "on")
    (tmp_path / "a.zip").write_text("x")
    qtbot.waitUntil(lambda: bool(made.offers))
    assert "2 new conversations" in made.offers[0]
    assert made.imported == []
    made.accept()
    assert made.imported == [[tmp_path / "a.zip"]]
    made.presenter.look()
    assert made.read == [tmp_path / "a.zip"]


def test_an_export_without_news_is_not_offered(parts: Parts, tmp_path: Path) -> None:
    made = Downloads(parts, tmp_path, "off")
    made.report = ImportReport(duplicates=9)
    (tmp_path / "a.zip").write_text("x")
    made.presenter.look()
    assert made.read == [tmp_path / "a.zip"]
    assert made.offers == []


def test_half_an_export_hides_none_and_is_offered_once_whole(parts: Parts, tmp_path: Path) -> None:
    made = Downloads(parts, tmp_path, "off")
    made.damaged = {"a.zip"}
    (tmp_path / "a.zip").write_text("x")
    (tmp_path / "b.zip").write_text("x")
    made.presenter.look()
    assert len(made.offers) == 1
    made.damaged.clear()
    made.presenter.look()
    assert made.read == [tmp_path / name for name in ("a.zip", "b.zip", "a.zip")]
    assert len(made.offers) == 2


@pytest.mark.parametrize(("switch", "asks"), [("ask", True), ("on", False), ("off", False)])
def test_it_is_asked_once_after_an_import_from_the_folder(
    parts: Parts, tmp_path: Path, switch: str, asks: bool
) -> None:
    made = Downloads(parts, tmp_path, switch)
    made.presenter.note_import([Path("/elsewhere/a.zip")])
    assert made.offers == []
    made.presenter.note_import([tmp_path / "a.zip"])
    assert bool(made.offers) == asks
    if asks:
        made.accept()
        assert made.settings.values[SWITCH] == "on"
        parts.bridge.changed.emit(ChangeSet(settings=frozenset({SWITCH})))
        assert made.presenter._watcher.directories() == [str(tmp_path)]
