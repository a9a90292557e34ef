"""`import` and `export`: without loss, with what was skipped, and after failures."""

import json
import os
import shutil
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.cli.entry import main
from app.domain.errors import DiskFull, ImportRefused, IndexUnavailable
from app.index.text_sync import TextIndexSync
from app.storage.engine.store import Store
from app.transfer.importer import ConversationImporter
from app.transfer.importing import import_files
from tests.fakes.command_line import CommandLine, Console
from tests.fakes.exports import Shape, chatgpt_branches, write_chatgpt_export, write_claude_export
from tests.fakes.stored import made

SMALL = Shape(conversations=3, turns=3, words=12)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Console]:
    """Yield a command line on an empty library."""
    with closing(Console(made(tmp_path / "empty").root)) as console:
        yield console


@pytest.fixture
def chatgpt(tmp_path: Path) -> Path:
    return write_chatgpt_export(tmp_path / "chatgpt.zip", SMALL)


# -- import
def test_imports_are_listed_and_undone(empty: Console, chatgpt: Path) -> None:
    preview = empty.json("import", chatgpt, "--dry-run")["new"]
    assert [each["conversation_id"] for each in preview] == [None] * 3
    stored = empty.json("import", chatgpt)
    assert [each["title"] for each in stored["new"]] == [each["title"] for each in preview]
    (listed,) = empty.json("imports")["imports"]
    assert (listed["number"], listed["conversations"]) == (stored["number"], 3)
    assert empty("imports", "undo", "x").code == 2
    undone = empty.json("imports", "undo", listed["number"])
    assert undone["deleted"] == [each["conversation_id"] for each in stored["new"]]
    assert (undone["messages"], undone["changed"]) == (0, 0)
    assert empty.titles() == []
    assert "0 conv" not in empty.done("imports", "undo", listed["number"]).out


def test_an_import_shows_progress_also_where_nothing_is_new(empty: Console, chatgpt: Path) -> None:
    for empty.is_watched in (True, True, False):
        assert ("100% read; " in empty.done("import", chatgpt).err) is empty.is_watched


def test_an_import_reports_what_it_stored(
    empty: Console, chatgpt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = "3 conversations, 9 turns and 18 messages"
    ran = empty.done("import", chatgpt, "--dry-run")
    assert (f"{counts} would be imported" in ran.out, empty.titles()) == (True, [])
    monkeypatch.chdir(chatgpt.parent)
    ran = empty.done("import", "chatgpt.zip")
    assert ran.out == f"{counts} were imported; 0 messages already known.\n"
    assert ran.err.startswith("skipped chatgpt.zip: ")
    assert list((empty.data_dir / "backups").iterdir()) == []
    folder = tmp_path / "exports"
    folder.mkdir()
    write_claude_export(folder / "claude.zip", SMALL)
    (folder / "notes.txt").write_text("Not an export")
    document = empty.json("import", folder, write_chatgpt_export(tmp_path / "chatgpt.json", SMALL))
    assert document.keys() >= {"conversations", "turns", "messages", "duplicates", "skipped"}
    stored = {name: document[name] for name in ("conversations", "turns", "messages", "duplicates")}
    assert stored == {"conversations": 3, "turns": 9, "messages": 18, "duplicates": 18}
    assert len(list((empty.data_dir / "backups").iterdir())) == 1, "a backup before a second import"


def test_paths_that_cannot_be_imported(
    empty: Console, chatgpt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "letter.txt").write_text("Dear all")
    (tmp_path / "cut.zip").write_bytes(chatgpt.read_bytes()[:-200])
    for paths, message in (
        (
            [chatgpt, tmp_path / "nowhere.zip"],
            f"There is no file or folder '{tmp_path}/nowhere.zip'",
        ),
        (["~nobody-of-that-name/export.zip"], "There is no file"),
        ([tmp_path / "letter.txt"], "is not an export of conversations"),
        ([tmp_path / "cut.zip"], str(tmp_path / "cut.zip")),
    ):
        ran = empty("import", *paths)
        assert (ran.code, ran.out, message in ran.err) == (1, "", True), ran
        assert empty.titles() == []
    ran = empty("import", tmp_path / "letter.txt", chatgpt, "--json")
    assert ran.code == 1, "a script must learn that one was refused"
    assert (ran.document["conversations"], ran.document["refused"]) == (3, 1)
    first = ran.document["skipped"][0]
    assert (first["where"], "not an export" in first["why"]) == (str(tmp_path / "letter.txt"), True)

    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("app.transfer.archive._file", broken)
    assert f"'{chatgpt}' cannot be read: Input/output error." in empty("import", chatgpt).err
    with pytest.raises(ImportRefused):
        import_files(empty.services.store, [chatgpt])


def test_a_full_disk(empty: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export = write_chatgpt_export(tmp_path / "many.json", Shape(80, 1, 5))
    real = Store.commit
    written = 0

    def commit(store: Store, *changes: Any) -> Any:
        nonlocal written
        written += 1
        if written > 51:  # the beginning of the import is one
            raise DiskFull("There is not enough disk space to save this", "Free some space.")
        return real(store, *changes)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "commit", commit)
        patch.setattr("app.transfer.importing._BATCH_CONVERSATIONS", 32)  # the second one is cut
        ran = empty("import", export)
    assert (ran.code, ran.out) == (1, "")
    first, second = ran.err.splitlines()
    assert first.startswith("32 conversations, 64 messages were stored")
    assert second.startswith("There is not enough disk space")
    assert empty.json("import", export)["conversations"] == 30


def test_an_index_that_cannot_be_written_does_not_undo_an_import(
    empty: Console, chatgpt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise IndexUnavailable("The text index could not be written: no room", "Free some.")

    monkeypatch.setattr(TextIndexSync, "catch_up", fail)
    ran = empty.done("import", chatgpt)
    assert "3 conversations" in ran.out
    assert "The text index could not be written" in ran.err


def test_an_interrupted_import_reports_what_it_stored(
    program: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = write_chatgpt_export(tmp_path / "many.json", Shape(100, 1, 5))
    real = ConversationImporter.store
    signals = 2

    def store(importer: ConversationImporter, batch: Any) -> Any:
        written = real(importer, batch) if signals == 1 else None
        for _ in range(signals):
            os.kill(os.getpid(), signal.SIGINT)
        return written

    with monkeypatch.context() as patch:
        patch.setattr(ConversationImporter, "store", store)
        broken_off = program("import", export)
        assert (broken_off.code, broken_off.out) == (130, ""), "two interrupts break it off"
        signals = 1
        ran = program("import", export, "--json")
    assert (ran.code, ran.document["cancelled"], ran.err.count("\n")) == (130, True, 1)
    stored = len(program.titles()) + len(program.titles("--archived"))
    assert stored == ran.document["conversations"] > 0
    assert program.json("import", export)["conversations"] == 100 - stored


# -- export
@pytest.fixture(scope="module")
def rich_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory to copy: branches, tags, summaries, pins, archives, an own turn."""
    folder = tmp_path_factory.mktemp("rich")
    (folder / "row.json").write_text(json.dumps([chatgpt_branches("Colors")]))
    shape = Shape(conversations=14, turns=5, words=12)
    for words in (
        ("import", folder / "row.json", write_chatgpt_export(folder / "rich.zip", shape)),
        ("ask", "What did we say of colors?"),
        ("work", "--until-idle"),
        ("tag", 1, "art", "to do"),
        ("archive", 3),
    ):
        assert main(["--data-dir", str(folder / "data"), *map(str, words)]) == 0
    return folder / "data"


@pytest.fixture
def rich(rich_library: Path, data_dir: Path) -> Iterator[Console]:
    shutil.copytree(rich_library, data_dir)
    with closing(Console(data_dir)) as console:
        yield console


def exported(cli: Console) -> Any:
    document = cli.done("export", "-").document
    del document["exported_at"]
    return document


def test_an_export_is_imported_without_loss_and_needs_no_new_summaries(
    rich: Console, empty: Console, tmp_path: Path
) -> None:
    out = tmp_path / "library.json"
    assert rich.json("export", out) == {"conversations": 16, "missing_files": [], "out": str(out)}
    whole = exported(rich)
    assert sum(each["pinned"] for each in whole["conversations"]) == 1
    assert sum(each["archived"] for each in whole["conversations"]) == 2
    assert sum(len(each["summaries"]) for each in whole["conversations"]) > 16
    empty.done("import", out)
    assert exported(empty) == whole
    assert empty.json("status")["passages"] == rich.json("status")["passages"]
    workers = empty.json("work", "--until-idle")["workers"]
    for name, each in workers.items():
        # Two are off and no part of an export; others have too few facts, no program to follow, no routine.
        if name not in {
            "man_indexer", "tool_summarizer", "profile_writer", "source_reader", "routine_runner",
            "document_indexer",
        }:  # fmt: skip
            assert each["done"] == each["total"] > 0, name
    assert workers["exchange_summarizer"]["completed"] == 0
    assert workers["conversation_summarizer"]["completed"] == 0
    assert workers["embedding_pipeline"]["completed"] > 0, "vectors are not exported"


def test_an_export_as_markdown(rich: Console, tmp_path: Path) -> None:
    out = tmp_path / "colors.md"
    ran = rich.done("export", "--conversation", 1, "--format", "md", out)
    assert (ran.out, ran.err) == ("", f"1 conversation written to {out}\n")
    assert "Name a color" in out.read_text()
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    rich.done("export", "--format", "md", tmp_path / "all.md")
    assert rich.done("export", "--format", "md", "-").out == (tmp_path / "all.md").read_text()


def test_an_export_that_fails_changes_nothing(
    cli: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("nowhere/library.json", ""):
        ran = cli("export", tmp_path / place)
        assert (ran.code, ran.out, "cannot be written" in ran.err) == (1, "", True)
    assert [each.name for each in tmp_path.iterdir()] == ["data"]
    out = tmp_path / "library.json"
    out.write_text("an older export")

    def fail(*_: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.transfer.exporting.write_json", fail)
    ran = cli("export", out)
    assert (ran.code, "exists already" in ran.err, "--force" in ran.err) == (1, True, True)
    ran = cli("export", "--force", out)
    assert (ran.code, "No space left on device" in ran.err) == (1, True)
    assert out.read_text() == "an older export"
    monkeypatch.undo()
    cli.done("export", "--force", out)
    assert out.read_text() != "an older export"
    assert list(tmp_path.glob(".*")) == []


def test_an_export_to_a_link_or_a_pipe(cli: Console, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    cli.done("export", tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert len(json.loads((tmp_path / "real.json").read_text())["conversations"]) == 3
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    cli.done("export", pipe)
    reader.join()
    assert json.loads(read[0])["format"] == "commonplace"
    assert stat.S_ISFIFO(pipe.stat().st_mode)
