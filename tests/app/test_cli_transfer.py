"""`import` and `export`, as a user types them: there, back again, and what stands in the way."""

import json
import os
import shutil
import signal
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli.entry import main
from app.domain.errors import DiskFull, IndexUnavailable
from app.memory.index_sync import IndexSync
from app.storage.store import Store
from app.transfer.adopting import Adoption
from tests.fakes.command_line import CommandLine
from tests.fakes.exports import (
    Shape,
    chatgpt_message,
    chatgpt_node,
    chatgpt_row,
    write_chatgpt_export,
    write_claude_export,
)
from tests.fakes.stored import made, opened, told

SMALL = Shape(conversations=3, turns=3, words=12)


@pytest.fixture
def cli(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    made(data_dir)
    return CommandLine(data_dir, capsys)


@pytest.fixture
def other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """Return the command line of a second, empty book."""
    made(tmp_path / "other")
    return CommandLine(tmp_path / "other", capsys)


@pytest.fixture
def chatgpt(tmp_path: Path) -> Path:
    return write_chatgpt_export(tmp_path / "chatgpt.zip", SMALL)


# -- import


def test_import_tells_what_came(cli: CommandLine, chatgpt: Path) -> None:
    ran = cli.done("import", chatgpt)
    assert ran.out == (
        "3 conversations, 9 turns and 18 messages were imported; 0 messages here already.\n"
    )
    assert ran.err.startswith("skipped chatgpt.zip: ")


def test_import_as_json_has_the_documented_fields(cli: CommandLine, tmp_path: Path) -> None:
    claude = write_claude_export(tmp_path / "claude.zip", SMALL)
    document = cli.json("import", claude)
    assert document.keys() >= {"conversations", "turns", "messages", "duplicates", "skipped"}
    assert (document["conversations"], document["turns"], document["messages"]) == (3, 9, 18)
    assert (document["duplicates"], document["skipped"]) == (0, [])


def test_what_was_imported_is_found_and_shown(cli: CommandLine, tmp_path: Path) -> None:
    row = chatgpt_row(
        chatgpt_message("m0", "user", "How does sourdough rise", at=1.7e9),
        chatgpt_message("m1", "assistant", "By wild yeast", at=1.7e9 + 5, model_slug="gpt-4o"),
        title="Bread",
    )
    path = tmp_path / "row.json"
    path.write_text(json.dumps([row]))
    cli.done("import", path)
    (result,) = cli.json("search", "wild yeast")["results"]
    assert (result["source"], result["conversation_title"]) == ("chatgpt", "Bread")
    (turn,) = cli.json("show", result["conversation_id"])["turns"]
    assert turn["started_at"] == "2023-11-14T22:13:20+00:00"
    assert [each["text"] for each in turn["messages"]] == [
        "How does sourdough rise",
        "By wild yeast",
    ]


def test_a_folder_and_several_paths_are_imported(cli: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    write_claude_export(folder / "claude.zip", SMALL)
    (folder / "notes.txt").write_text("Not an export")
    more = write_chatgpt_export(tmp_path / "chatgpt.json", SMALL)
    assert cli.json("import", folder, more)["conversations"] == 6


def test_a_path_is_relative_to_where_the_user_stands(
    cli: CommandLine, chatgpt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(chatgpt.parent)
    assert cli.json("import", "chatgpt.zip")["conversations"] == 3


def test_a_second_import_adds_nothing(cli: CommandLine, chatgpt: Path) -> None:
    cli.done("import", chatgpt)
    again = cli.json("import", chatgpt)
    assert (again["conversations"], again["turns"], again["messages"]) == (0, 0, 0)
    assert again["duplicates"] == 18


def test_a_dry_run_stores_nothing(cli: CommandLine, chatgpt: Path) -> None:
    ran = cli.done("import", chatgpt, "--dry-run")
    assert "3 conversations, 9 turns and 18 messages would be imported" in ran.out
    assert cli.json("list")["conversations"] == []


def test_a_grown_export_adds_what_is_new_and_turns_keep_their_ids(
    cli: CommandLine, tmp_path: Path
) -> None:
    short, long = (
        write_claude_export(tmp_path / f"{turns}.zip", Shape(2, turns, 12)) for turns in (2, 4)
    )
    cli.done("import", short)
    before = [turn["exchange_id"] for turn in cli.json("show", 1)["turns"]]
    grown = cli.json("import", long)
    assert (grown["conversations"], grown["turns"], grown["messages"]) == (0, 4, 8)
    assert grown["duplicates"] == 8
    after = [turn["exchange_id"] for turn in cli.json("show", 1)["turns"]]
    assert (after[:2], len(after)) == (before, 4)


def test_a_path_that_is_not_there_stops_everything_before_it_begins(
    cli: CommandLine, chatgpt: Path, tmp_path: Path
) -> None:
    ran = cli("import", chatgpt, tmp_path / "nowhere.zip")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"There is no file or folder '{tmp_path / 'nowhere.zip'}'")
    assert cli.json("list")["conversations"] == []


def test_a_home_of_nobody_is_a_path_that_is_not_there(cli: CommandLine) -> None:
    assert cli("import", "~nobody-of-that-name/export.zip").err.startswith("There is no file")


def test_a_file_that_is_no_export_is_a_known_error(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear all")
    ran = cli("import", tmp_path / "letter.txt")
    assert (ran.code, ran.out) == (1, "")
    assert "is no export of conversations" in ran.err
    assert "ChatGPT" in ran.err


def test_a_path_that_is_no_export_does_not_hold_back_the_others(
    cli: CommandLine, chatgpt: Path, tmp_path: Path
) -> None:
    (tmp_path / "letter.txt").write_text("Dear all")
    ran = cli("import", tmp_path / "letter.txt", chatgpt, "--json")
    assert ran.code == 1, "a script must learn that one was refused"
    assert (ran.document["conversations"], ran.document["refused"]) == (3, 1)
    (first, *_) = ran.document["skipped"]
    assert first["where"] == str(tmp_path / "letter.txt")
    assert "no export" in first["why"]


def test_a_truncated_zip_is_named(cli: CommandLine, chatgpt: Path) -> None:
    chatgpt.write_bytes(chatgpt.read_bytes()[:-200])
    ran = cli("import", chatgpt)
    assert ran.code == 1
    assert str(chatgpt) in ran.err


def test_a_disk_that_fills_up_says_what_was_stored(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = write_chatgpt_export(tmp_path / "many.json", Shape(80, 1, 5))
    real = Store.commit
    written = 0

    def commit(store: Store, *changes: Any) -> Any:
        nonlocal written
        written += 1
        if written > 50:
            raise DiskFull("There is no room on the disk to save this", "Free some space.")
        return real(store, *changes)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "commit", commit)
        patch.setattr("app.transfer.importing._BATCH_CONVERSATIONS", 32)  # the second one is cut
        ran = cli("import", export)
    assert (ran.code, ran.out) == (1, "")
    first, second = ran.err.splitlines()
    assert first == "32 conversations, 64 messages were stored; a second import adds the rest."
    assert second.startswith("There is no room on the disk")
    assert cli.json("import", export)["conversations"] == 30


def test_an_index_that_cannot_be_written_does_not_undo_an_import(
    cli: CommandLine, chatgpt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise IndexUnavailable("The text index could not be written: no room", "Free some.")

    with monkeypatch.context() as patch:
        patch.setattr(IndexSync, "catch_up", fail)
        ran = cli("import", chatgpt)
    assert ran.code == 0
    assert "3 conversations" in ran.out
    assert "Search does not find all of it yet: The text index could not be written" in ran.err


def test_an_interrupt_keeps_and_tells_what_was_stored(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = write_chatgpt_export(tmp_path / "many.json", Shape(100, 1, 5))
    real = Adoption.adopt

    def adopt(adoption: Adoption, batch: Any) -> Any:
        written = real(adoption, batch)
        os.kill(os.getpid(), signal.SIGINT)
        return written

    with monkeypatch.context() as patch:
        patch.setattr(Adoption, "adopt", adopt)
        ran = cli("import", export, "--json")
    assert ran.code == 130
    assert ran.document["cancelled"] is True
    assert ran.err == "The import was stopped; what was stored by then stays.\n"
    stored = sum(len(cli.json("list", *words)["conversations"]) for words in ((), ("--archived",)))
    assert stored == ran.document["conversations"] > 0
    assert cli.json("import", export)["conversations"] == 100 - ran.document["conversations"]


def test_two_interrupts_break_an_import_off(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = write_chatgpt_export(tmp_path / "many.json", Shape(100, 1, 5))

    def adopt(*_: object) -> Any:
        for _each in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Adoption, "adopt", adopt)
        ran = cli("import", export)
    assert (ran.code, ran.out) == (130, "")
    assert cli.done("list").code == 0


def test_a_backup_is_made_before_an_import_into_a_filled_book(
    cli: CommandLine, chatgpt: Path, tmp_path: Path, data_dir: Path
) -> None:
    cli.done("import", chatgpt)
    assert list((data_dir / "backups").iterdir()) == []
    cli.done("import", write_claude_export(tmp_path / "claude.zip", SMALL))
    assert len(list((data_dir / "backups").iterdir())) == 1


# -- export


@pytest.fixture(scope="module")
def rich_book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a book with branches, tags, summaries, pins, archives and a live turn, to be copied."""
    folder = tmp_path_factory.mktemp("rich")
    row = chatgpt_row(
        chatgpt_message("u0", "user", "Name a colour", at=1.7e9),
        chatgpt_message("a0", "assistant", "Blue", at=1.7e9 + 1, model_slug="gpt-4o"),
        title="Colours",
    )
    green = chatgpt_message("a1", "assistant", "Green", at=1.7e9 + 2, model_slug="gpt-4o")
    row["mapping"]["a1"] = chatgpt_node("a1", "u0", green)
    row["mapping"]["u0"]["children"].append("a1")
    (folder / "row.json").write_text(json.dumps([row]))
    shape = Shape(conversations=14, turns=5, words=12)
    for words in (
        ("import", folder / "row.json", write_chatgpt_export(folder / "rich.zip", shape)),
        ("ask", "What did we say of colours?"),
        ("work", "--until-idle"),
        ("tag", 1, "art", "to do"),
        ("archive", 3),
    ):
        assert main(["--data-dir", str(folder / "data"), *map(str, words)]) == 0
    return folder / "data"


@pytest.fixture
def rich(rich_book: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    shutil.copytree(rich_book, data_dir)
    return CommandLine(data_dir, capsys)


def exported(cli: CommandLine, form: str = "json") -> Any:
    ran = cli.done("export", "--format", form, "-")
    if form != "json":
        return ran.out
    document = ran.document
    del document["exported_at"]
    return document


def test_an_export_comes_back_without_loss(
    rich: CommandLine, other: CommandLine, tmp_path: Path
) -> None:
    out = tmp_path / "book.json"
    assert rich.json("export", out) == {"conversations": 16, "out": str(out)}
    there = exported(rich)
    assert sum(each["pinned"] for each in there["conversations"]) == 1
    assert sum(each["archived"] for each in there["conversations"]) == 2
    assert sum(len(each["summaries"]) for each in there["conversations"]) > 16
    other.done("import", out)
    back = exported(other)
    assert back == there


def test_what_came_back_needs_no_new_summaries(
    rich: CommandLine, other: CommandLine, tmp_path: Path
) -> None:
    rich.done("export", tmp_path / "book.json")
    other.done("import", tmp_path / "book.json")
    assert other.json("status")["passages"] == rich.json("status")["passages"]
    workers = other.json("work", "--until-idle")["workers"]
    made = {name: each["completed"] for name, each in workers.items()}
    assert (made["exchange_summarizer"], made["conversation_summarizer"]) == (0, 0)
    assert made["embedding_pipeline"] > 0, "vectors do not travel"
    assert all(
        each["done"] == each["total"] > 0
        for name, each in workers.items()
        if name not in {"man_indexer", "tool_summarizer"}  # off, and no part of an export
    )


def test_importing_our_own_export_into_the_same_book_changes_nothing(
    rich: CommandLine, tmp_path: Path
) -> None:
    rich.done("export", tmp_path / "book.json")
    before = exported(rich)
    report = rich.json("import", tmp_path / "book.json")
    assert (report["conversations"], report["turns"], report["messages"]) == (0, 0, 0)
    assert exported(rich) == before


def test_jsonl_comes_back_like_json(rich: CommandLine, other: CommandLine, tmp_path: Path) -> None:
    rich.done("export", "--format", "jsonl", tmp_path / "book.jsonl")
    other.done("import", tmp_path / "book.jsonl")
    assert exported(other) == exported(rich)


def test_the_trash_is_not_exported(rich: CommandLine) -> None:
    rich.done("delete", 1)
    titles = [each["title"] for each in exported(rich)["conversations"]]
    assert (len(titles), "Colours" in titles) == (15, False)


def test_one_conversation_is_exported_as_markdown(rich: CommandLine, tmp_path: Path) -> None:
    out = tmp_path / "colours.md"
    ran = rich.done("export", "--conversation", 1, "--format", "md", out)
    assert (ran.out, ran.err) == ("", f"1 conversation written to {out}\n")
    assert "Name a colour" in out.read_text()
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_an_export_to_standard_output_is_the_same(rich: CommandLine, tmp_path: Path) -> None:
    rich.done("export", "--format", "md", tmp_path / "book.md")
    assert exported(rich, "md") == (tmp_path / "book.md").read_text()


@pytest.mark.parametrize("place", ["nowhere/book.json", ""])
def test_a_place_that_cannot_be_written_is_a_known_error(
    cli: CommandLine, tmp_path: Path, place: str
) -> None:
    ran = cli("export", tmp_path / place)
    assert (ran.code, ran.out) == (1, "")
    assert "cannot be written" in ran.err
    assert ran.err.endswith("Choose another place.\n")
    assert [each for each in tmp_path.iterdir() if each.name != "data"] == []


def test_a_failed_export_leaves_the_file_before_it(
    cli: CommandLine, tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(data_dir) as store:
        told(store, "one")
    out = tmp_path / "book.json"
    out.write_text("what was here before")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.transfer.exporting.write_json", fail)
    ran = cli("export", out)
    assert (ran.code, "No space left on device" in ran.err) == (1, True)
    assert out.read_text() == "what was here before"
    assert list(tmp_path.glob(".*")) == []


def test_a_link_is_written_through(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    cli.done("export", tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text())["conversations"] == []


def test_a_pipe_is_written_and_not_replaced(cli: CommandLine, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    cli.done("export", pipe)
    reader.join()
    assert json.loads(read[0])["format"] == "commonplace"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.fixture
def merged(
    cli: CommandLine, other: CommandLine, tmp_path: Path
) -> Callable[[], list[dict[str, Any]]]:
    """Return what carries all of `cli` into `other` and tells the conversations there."""

    def merge() -> list[dict[str, Any]]:
        cli.done("export", tmp_path / "carried.json")
        other.done("import", tmp_path / "carried.json")
        conversations: list[dict[str, Any]] = exported(other)["conversations"]
        return conversations

    return merge


def test_two_books_that_went_on_apart_are_merged(
    cli: CommandLine, other: CommandLine, merged: Callable[[], list[dict[str, Any]]]
) -> None:
    cli.done("ask", "The beginning")
    merged()
    cli.done("ask", "Said on the first machine", "--conversation", 1)
    cli.done("tag", 1, "first")
    other.done("ask", "Said on the second machine", "--conversation", 1)
    other.done("tag", 1, "second")
    (conversation,) = merged()
    assert conversation["tags"] == ["first", "second"]
    asked = [
        message["blocks"][0]["text"]
        for message in conversation["messages"]
        if message["role"] == "user"
    ]
    assert asked == ["The beginning", "Said on the second machine", "Said on the first machine"]
    shown = [turn["messages"][0]["text"] for turn in other.json("show", 1)["turns"]]
    assert shown == ["The beginning", "Said on the second machine"], "the other is a branch"
    assert len(other.json("show", 1, "--branches")["turns"]) == 3
