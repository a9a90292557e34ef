"""`list`, `show`, `archive`, `delete`, `forget`, `tag` and their opposites, as a user types them."""

import asyncio
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.bootstrap import Role, Services, build
from app.chat.exchanges import ExchangeLoop, Models
from app.cli.entry import execute
from app.cli.terminal import Terminal
from app.domain.chat import TextDelta
from app.domain.conversations import Text
from app.domain.errors import NotFound
from app.domain.ids import ConversationId
from app.system.paths import DataPaths
from tests.fakes.command_line import CommandLine
from tests.fakes.models import ScriptedModel
from tests.fakes.stored import made, opened, told

TWO_TURNS = ("How do I keep basil alive", "And the mint")


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory of two conversations, to be copied."""
    root = tmp_path_factory.mktemp("book") / "data"
    with opened(root) as store:
        told(store, *TWO_TURNS, title="Herbs")
        told(store, "Which bolt fits the saddle", title="Bicycle")
    return root


@pytest.fixture
def cli(book: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    shutil.copytree(book, data_dir)
    return CommandLine(data_dir, capsys)


def titles(cli: CommandLine, *words: str) -> list[str]:
    return [row["title"] for row in cli.json("list", *words)["conversations"]]


def hits(cli: CommandLine, query: str) -> list[str]:
    """The conversations found, each once, best first."""
    results = cli.json("search", query)["results"]
    return list(dict.fromkeys(each["conversation_title"] for each in results))


def test_a_list_shows_title_day_and_tags(cli: CommandLine) -> None:
    cli.done("tag", 1, "garden")
    line = cli.done("list", "--tag", "garden").out
    assert line.split() == ["1", "2026-03-01", "Herbs", "#garden"]


def test_a_list_as_json_names_every_conversation(cli: CommandLine) -> None:
    rows = cli.json("list")["conversations"]
    assert {row["conversation_id"]: row["title"] for row in rows} == {1: "Herbs", 2: "Bicycle"}
    assert rows[0].keys() >= {"source", "pinned", "archived", "private", "tags", "updated_at"}


def test_an_empty_book_is_an_empty_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path / "empty")
    ran = CommandLine(tmp_path / "empty", capsys).done("list")
    assert (ran.out, ran.err) == ("", "")


def test_show_prints_both_sides_of_every_turn(cli: CommandLine) -> None:
    shown = cli.done("show", 1).out
    assert shown.startswith("# Herbs\n")
    places = [shown.index(each) for each in ("Turn 0", *TWO_TURNS[:1], "An answer", "Turn 1")]
    assert places == sorted(places)


def test_show_as_json_has_the_documented_fields(cli: CommandLine) -> None:
    document = cli.json("show", 1)
    assert document.keys() >= {"conversation_id", "title", "source", "archived", "tags", "summary"}
    assert (document["title"], document["summary"], document["tags"]) == ("Herbs", None, [])
    first, second = document["turns"]
    assert first.keys() == {
        "turn_number", "exchange_id", "status", "summary", "started_at", "completed_at", "model",
        "messages", "searchable",
    }  # fmt: skip
    assert (first["turn_number"], second["turn_number"]) == (0, 1)
    assert first["started_at"] == "2026-03-01T12:00:00+00:00"
    assert [each["role"] for each in first["messages"]] == ["user", "assistant"]
    assert first["messages"][0].keys() == {"message_id", "role", "text"}


@pytest.mark.parametrize(
    "words", [("1", "--turn", "1"), ("1:1",), ("commonplace://1/1",)], ids=" ".join
)
def test_one_turn_is_shown_by_its_number_or_its_link(
    cli: CommandLine, words: tuple[str, ...]
) -> None:
    (turn,) = cli.json("show", *words)["turns"]
    assert turn["messages"][0]["text"] == "And the mint"


def test_a_turn_that_is_not_there_is_named_with_those_there_are(cli: CommandLine) -> None:
    ran = cli("show", "1:7")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "Conversation 1 has no turn 7. It has turns 0 to 1.\n"


@pytest.mark.parametrize(
    "words",
    [
        ("show", "99"),
        ("show", "99999999999999999999999"),
        ("archive", "99"),
        ("delete", "99999999999999999999999"),
        ("forget", "99"),
        ("tag", "99", "x"),
        ("export", "--conversation", "99", "-"),
        ("ask", "Hello", "--conversation", "99"),
        ("show", "0"),
    ],
    ids=" ".join,
)
def test_a_conversation_that_is_not_there_is_a_known_error(
    cli: CommandLine, words: tuple[str, ...]
) -> None:
    ran = cli(*words)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("There is no conversation ")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("place", ["herbs", "1:x", "-", "1.5", "²"])
def test_a_place_that_names_no_turn_is_told_how_to_write_it(cli: CommandLine, place: str) -> None:
    ran = cli("show", place)
    assert ran.code == 1
    assert ran.err == f"'{place}' names no turn. Write ID or ID:TURN, such as 12:3.\n"


def test_archived_conversations_leave_list_and_search_and_come_back(cli: CommandLine) -> None:
    assert hits(cli, "basil") == ["Herbs"]
    cli.done("archive", 1)
    assert (titles(cli), titles(cli, "--archived")) == (["Bicycle"], ["Herbs"])
    assert hits(cli, "basil") == []
    assert hits(cli, "basil is:archived") == ["Herbs"]
    cli.done("unarchive", 1)
    assert hits(cli, "basil") == ["Herbs"]


def test_deleted_conversations_wait_in_the_trash(cli: CommandLine) -> None:
    cli.done("delete", 1, 2)
    assert (titles(cli), hits(cli, "basil")) == ([], [])
    assert sorted(titles(cli, "--trash")) == ["Bicycle", "Herbs"]
    cli.done("undelete", 1)
    assert (titles(cli), hits(cli, "basil")) == (["Herbs"], ["Herbs"])


@pytest.mark.parametrize("command", ["archive", "delete", "forget"])
def test_nothing_is_done_when_one_of_several_is_not_there(cli: CommandLine, command: str) -> None:
    assert cli(command, 1, 99, 2).code == 1
    assert sorted(titles(cli)) == ["Bicycle", "Herbs"]


def test_what_was_done_is_told_as_json(cli: CommandLine) -> None:
    assert cli.json("archive", 1, 2) == {"archived": [1, 2]}
    assert cli.json("unarchive", 1, 2) == {"unarchived": [1, 2]}
    assert cli.json("delete", 2) == {"deleted": [2]}
    assert cli.json("undelete", 2) == {"restored": [2]}


def test_forgotten_is_out_of_every_file(
    cli: CommandLine, data_dir: Path, holds: Callable[[bytes], list[str]]
) -> None:
    assert hits(cli, "basil") == ["Herbs"]
    assert holds(b"basil"), "the test must be able to fail"
    document = cli.json("forget", 1, "--yes")
    assert document["forgotten"] == [1]
    assert "Exports and backups that you copied elsewhere" in document["remains"][0]
    assert (titles(cli), hits(cli, "basil"), hits(cli, "saddle")) == (["Bicycle"], [], ["Bicycle"])
    assert holds(b"basil") == []


@pytest.mark.parametrize("answer", ["", "no", "yes please"])
def test_nothing_is_forgotten_before_a_person_types_yes(
    data_dir: Path, book: Path, answer: str
) -> None:
    shutil.copytree(book, data_dir)
    with closing(build(DataPaths(data_dir), Role.COMMAND_LINE)) as services:
        for is_watched in (True, False):
            code, said = run(services, "forget", "1", typed=answer, is_watched=is_watched)
            assert code == 1
            assert said[:2] == [
                "1: Herbs (2 turns)", "would be gone for ever, out of the backups too.",
            ]  # fmt: skip
            assert said[-1] == "Nothing was forgotten: nobody agreed to it. Add --yes to agree."
        assert services.conversations.get(ConversationId(1)).title == "Herbs"
        assert run(services, "forget", "1", typed=" Yes\n", is_watched=True)[0] == 0
        with pytest.raises(NotFound):
            services.conversations.get(ConversationId(1))


def test_a_script_that_agrees_is_asked_nothing(cli: CommandLine) -> None:
    ran = cli("forget", 1)
    assert (ran.code, ran.out) == (1, "")
    assert sorted(titles(cli)) == ["Bicycle", "Herbs"]
    assert "would be gone" not in cli.done("forget", 1, "--yes").err
    assert titles(cli) == ["Bicycle"]


@pytest.mark.parametrize("words", [("delete",), ("forget", "--yes")], ids=" ".join)
def test_a_reply_under_way_ends_before_its_conversation_goes(
    data_dir: Path, words: tuple[str, ...]
) -> None:
    made(data_dir)
    with closing(build(DataPaths(data_dir), Role.COMMAND_LINE)) as opened_services:
        model = ScriptedModel([TextDelta("Half an ans"), asyncio.Event()])
        services = replace(opened_services, chat=loop_of(opened_services, model))
        with closing(services.chat):
            reply = services.chat.send(None, (Text("Tell me a story"),)).result(10)
            reply.wait(10)
            assert run(services, *words, str(reply.plan.conversation.id))[0] == 0
            assert reply.done.done()
            assert not services.chat.busy


def run(
    services: Services, *words: str, typed: str = "", is_watched: bool = False
) -> tuple[int, list[str]]:
    """Run a command as a window does for a caller; return its exit code and what it said."""
    said: list[str] = []
    terminal = Terminal(
        said.append, said.append, lambda: typed, services.paths.root, lambda: False,
        is_watched=is_watched,
    )  # fmt: skip
    return execute(services, list(words), terminal), said


def loop_of(services: Services, model: ScriptedModel) -> ExchangeLoop:
    async def nothing_to_close() -> None:
        """No connections here."""

    models = Models(lambda _: model, lambda _: None, lambda *_: (None, ""), nothing_to_close)
    return ExchangeLoop(services.store, services.settings, models)


@pytest.fixture
def holds(data_dir: Path) -> Callable[[bytes], list[str]]:
    """Return what names the files below the data directory that hold some bytes."""

    def search(word: bytes) -> list[str]:
        files = [each for each in data_dir.rglob("*") if each.is_file()]
        return [str(each.relative_to(data_dir)) for each in files if word in each.read_bytes()]

    return search


def test_tags_are_added_removed_and_listed(cli: CommandLine) -> None:
    assert cli.json("tag", 1, "garden", "to do") == {
        "conversation_id": 1,
        "tags": ["garden", "to do"],
    }
    assert titles(cli, "--tag", "GARDEN") == ["Herbs"]
    assert cli.json("tag", 1, "--remove", "to do")["tags"] == ["garden"]
    assert cli.done("tag", 1).out == "garden\n"
    assert hits(cli, "tag:garden mint") == ["Herbs"]


def test_a_tag_that_cannot_be_one_is_refused_with_the_range(cli: CommandLine) -> None:
    ran = cli("tag", 1, "x" * 41)
    assert ran.code == 1
    assert "Allowed: 1 to 40 characters." in ran.err
    assert cli.json("tag", 1)["tags"] == []


def test_all_branches_are_shown_when_asked_for(
    cli: CommandLine, tmp_path: Path, branched: dict[str, Any]
) -> None:
    path = tmp_path / "branched.json"
    path.write_text(branched["export"], encoding="utf-8")
    cli.done("import", path)
    shown, everything = cli.json("show", 3), cli.json("show", 3, "--branches")
    assert len(shown["turns"]) == branched["shown"]
    assert len(everything["turns"]) == branched["all"]


@pytest.fixture
def branched() -> dict[str, Any]:
    """Return an export whose one answer was regenerated."""
    import json

    from tests.fakes.exports import chatgpt_message, chatgpt_node, chatgpt_row

    row = chatgpt_row(
        chatgpt_message("u0", "user", "Name a colour", at=1.7e9),
        chatgpt_message("a0", "assistant", "Blue", at=1.7e9 + 1),
    )
    other = chatgpt_message("a1", "assistant", "Green", at=1.7e9 + 2)
    row["mapping"]["a1"] = chatgpt_node("a1", "u0", other)
    row["mapping"]["u0"]["children"].append("a1")
    return {"export": json.dumps([row]), "shown": 1, "all": 2}
