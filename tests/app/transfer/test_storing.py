"""Import runs: from files to the store, once, with progress, cancellation and damaged files."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from app.domain.conversations import Conversation, ExchangeStatus
from app.domain.errors import ImportRefused
from app.domain.passages import PassageKind
from app.domain.transfer import ImportProgress, ImportReport
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations, ListFilter
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.passages.queries import Passages
from app.transfer.importing import import_files
from tests.fakes.exports import (
    Shape,
    chatgpt_message,
    chatgpt_row,
    write_chatgpt_export,
    write_claude_export,
)
from tests.fakes.libraries import SAMPLE

_EVERYTHING = ListFilter(archived=None)


def _listed(store: Store) -> tuple[Conversation, ...]:
    return Conversations(store).listed(_EVERYTHING)


def _written(path: Path, *conversations: dict[str, Any]) -> Path:
    path.write_text(json.dumps(conversations))
    return path


def _row(*texts: str) -> dict[str, Any]:
    """Return a conversation of questions and answers in turn."""
    return chatgpt_row(
        *(
            chatgpt_message(
                f"m{place}", "assistant" if place % 2 else "user", text, at=1.7e9 + place
            )
            for place, text in enumerate(texts)
        )
    )


def _counts(report: ImportReport) -> tuple[int, int, int, int]:
    return report.conversations, report.turns, report.messages, report.duplicates


def test_an_export_is_stored_with_turns_passages_and_progress(store: Store, tmp_path: Path) -> None:
    path = write_chatgpt_export(tmp_path / "export.zip", Shape(conversations=40, turns=6), shards=3)
    progress, throttled = list[ImportProgress](), list[int]()
    store.throttle = lambda: throttled.append(1)
    report = import_files(store, [path], on_progress=progress.append)
    assert report.conversations == len(_listed(store)) == 40
    exchanges = [each for row in _listed(store) for each in Exchanges(store).of(row.id)]
    assert report.turns == len(exchanges)
    assert all(each.status is ExchangeStatus.COMPLETED for each in exchanges)
    stored = sum(len(Exchanges(store).messages_in(row.id)) for row in _listed(store))
    assert report.messages == stored
    assert Passages(store).count_by_kind()[PassageKind.TURN] == len(exchanges)
    assert len(report.skipped) == 1
    assert (progress[-1].conversations, progress[-1].messages) == (40, stored)
    assert 0 < progress[-1].bytes_total <= path.stat().st_size
    assert len(throttled) > stored + len(exchanges)


def test_progress_is_of_all_paths_from_the_first_on(store: Store, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.json", "b.json", "folder")]
    paths[2].mkdir()
    for name in ("a.json", "b.json", "folder/c.json"):
        shutil.copy(SAMPLE, tmp_path / name)
    progress = list[ImportProgress]()
    import_files(store, paths, on_progress=progress.append)
    size_bytes = SAMPLE.stat().st_size
    assert progress[0].bytes_read < 3 * size_bytes
    assert {each.bytes_total for each in progress} == {3 * size_bytes}


@pytest.mark.parametrize("write", [write_chatgpt_export, write_claude_export])
def test_a_second_import_adds_nothing(store: Store, tmp_path: Path, write: Any) -> None:
    path = write(tmp_path / "export.zip", Shape(conversations=12, turns=4))
    first = import_files(store, [path])
    again = import_files(store, [path])
    assert _counts(again) == (0, 0, 0, first.messages)
    assert len(_listed(store)) == 12


@pytest.mark.parametrize(
    ("second", "counts"),
    [
        ({}, (1, 2, 4, 2)),  # the same conversation, which has grown
        ({"id": "other", "conversation_id": "other"}, (2, 3, 6, 0)),
    ],
    ids=["one conversation", "two conversations"],
)
def test_conversations_of_two_files_are_matched_by_id(
    store: Store, tmp_path: Path, second: dict[str, str], counts: tuple[int, ...]
) -> None:
    (tmp_path / "in").mkdir()
    _written(tmp_path / "in" / "conversations-000.json", _row("Hi?", "Hi."))
    grown = _row("Hi?", "Hi.", "More?", "More.") | second
    _written(tmp_path / "in" / "conversations-001.json", grown)
    assert _counts(import_files(store, [tmp_path / "in"])) == counts


def test_a_cancelled_import_keeps_what_it_counted(store: Store, tmp_path: Path) -> None:
    path = write_chatgpt_export(tmp_path / "c.json", Shape(conversations=300, turns=1, words=5))
    heard: list[ImportProgress] = []
    report = import_files(
        store, [path], cancelled=lambda: len(heard) >= 2, on_progress=heard.append
    )
    assert report.cancelled
    assert 0 < report.conversations == len(_listed(store)) < 300
    rest = import_files(store, [path])
    assert rest.conversations + report.conversations == 300


def test_a_dry_run_counts_what_is_in_two_files_once(store: Store, tmp_path: Path) -> None:
    first = _written(tmp_path / "a.json", _row("One", "Two"))
    again = _written(tmp_path / "b.json", _row("One", "Two", "Three"))
    report = import_files(store, [first, again], dry_run=True)
    assert (report.conversations, report.messages, report.duplicates) == (1, 3, 2)
    assert _listed(store) == ()


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_of_a_truncated_export_a_part_comes(store: Store, tmp_path: Path, share: float) -> None:
    path = write_chatgpt_export(tmp_path / "cut.json", Shape(20, 2, 5))
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    if share > 0.4:
        report = import_files(store, [path])
        assert (report.conversations, report.refused) == (10, 0)
        assert "is truncated" in report.skipped[0].why
        return
    with pytest.raises(ImportRefused, match=r"Nothing could be imported from '.*': .* truncated"):
        import_files(store, [path])
    assert _listed(store) == ()
    other = write_chatgpt_export(tmp_path / "whole.json", Shape(2, 1, 5))
    report = import_files(store, [path, other])
    assert (report.conversations, report.refused) == (2, 1)
    assert [each.where for each in report.skipped] == [str(path)]
