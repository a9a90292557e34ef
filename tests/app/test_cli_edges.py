"""What no one types on purpose: bytes that are no text, endless numbers, closed streams, own files."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from app.bootstrap import Role, build
from app.cli.entry import main
from app.cli.terminal import own_terminal
from app.domain.errors import ImportRefused
from app.system.paths import DataPaths
from app.transfer.importing import import_files
from tests.fakes.canary import files_with
from tests.fakes.command_line import CommandLine
from tests.fakes.stored import made, opened, told

ROOT = Path(__file__).parents[2]
NO_TEXT = os.fsdecode(b"no \xff text")


@pytest.fixture
def cli(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    made(data_dir)
    with opened(data_dir) as store:
        told(store, "How do I keep basil alive", title="Herbs")
    return CommandLine(data_dir, capsys)


@pytest.mark.parametrize(
    "words",
    [
        ("list", "--tag", NO_TEXT),
        ("search", NO_TEXT),
        ("facts", "search", NO_TEXT),
        ("facts", "add", NO_TEXT),
        ("memory", "set", NO_TEXT),
        ("tag", "1", "--remove", NO_TEXT),
        ("tag", "1", NO_TEXT),
        ("config", "set", "system_prompt", NO_TEXT),
        ("provider", "add", "z", "--kind", "compatible", "--base-url", "http://localhost:1/v1",
         "--key-env", NO_TEXT),
    ],
    ids=lambda words: " ".join(words[:2]),
)  # fmt: skip
def test_words_that_are_no_text_fail_nothing(cli: CommandLine, words: tuple[str, ...]) -> None:
    ran = cli(*words, "--json")
    assert "The program failed" not in ran.err
    assert ran.code in (0, 1)
    (ran.out + ran.err).encode()  # no lone surrogate has come back


def test_what_was_no_text_is_kept_as_text(cli: CommandLine) -> None:
    cli.done("config", "set", "system_prompt", NO_TEXT)
    assert cli.json("config", "get", "system_prompt")["value"] == "no \ufffd text"


def test_a_file_whose_name_is_no_text_is_found(cli: CommandLine, tmp_path: Path) -> None:
    cli.done("export", tmp_path / NO_TEXT)
    assert cli.json("import", tmp_path / NO_TEXT)["duplicates"] == 2


@pytest.mark.parametrize(
    "words",
    [
        ("show", "{}"),
        ("show", "1:{}"),
        ("show", "1", "--turn", "{}"),
        ("delete", "{}"),
        ("memory", "forget", "{}", "--yes"),
        ("facts", "forget", "{}", "--yes"),
        ("probes", "remove", "{}"),
        ("search", "basil", "--limit", "{}"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("digits", [40, 5000])
def test_a_number_without_end_is_refused_in_a_line(
    cli: CommandLine, words: tuple[str, ...], digits: int
) -> None:
    ran = cli(*(each.format("9" * digits) for each in words))
    assert ran.code in (1, 2)
    assert "The program failed" not in ran.err
    assert ran.err.count("\n") == 1


def test_an_error_quotes_no_more_than_a_line_holds_and_ends_in_what_to_do(cli: CommandLine) -> None:
    ran = cli("config", "get", "x" * 100_000)
    assert ran.code == 1
    assert len(ran.err) < 1500
    assert ran.err.startswith("There is no setting 'xxx")
    assert ran.err.endswith("config list shows them all.\n")


def test_a_name_with_a_line_end_leaves_an_error_in_one_line(cli: CommandLine) -> None:
    assert cli("import", "a\nb").err.count("\n") == 1


@pytest.mark.parametrize(
    "words", [("import", ""), ("export", ""), ("backup", ""), ("restore", "")], ids=" ".join
)
def test_an_empty_name_is_not_the_folder_one_is_in(
    cli: CommandLine, words: tuple[str, ...]
) -> None:
    ran = cli(*words)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "'' is the name of no file. Name one.\n"


@pytest.mark.parametrize("command", ["import", "export", "backup", "restore"])
def test_a_name_too_long_for_a_file_is_a_known_error(cli: CommandLine, command: str) -> None:
    ran = cli(command, "n" * 5000)
    assert (ran.code, ran.out) == (1, "")
    assert "is too long for a name" in ran.err


def test_an_empty_data_directory_is_not_the_users_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data-dir", "", "list"]) == 1
    assert capsys.readouterr().err.startswith("--data-dir '' names no folder")


# -- files of the program's own


@pytest.mark.parametrize("name", ["commonplace.duckdb", "journal/x.json", "new.json"])
@pytest.mark.parametrize("command", ["export", "backup"])
def test_nothing_is_written_over_in_the_data_directory(
    cli: CommandLine, data_dir: Path, command: str, name: str
) -> None:
    ran = cli(command, data_dir / name)
    assert (ran.code, ran.out) == (1, "")
    assert "lies in the data directory" in ran.err
    assert [row["title"] for row in cli.json("list")["conversations"]] == ["Herbs"]
    assert not list(data_dir.glob("*.part"))


def test_a_link_into_the_data_directory_is_seen_through(
    cli: CommandLine, data_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "out.json").symlink_to(data_dir / "commonplace.duckdb")
    assert "lies in the data directory" in cli("export", tmp_path / "out.json").err


def test_a_file_that_is_no_backup_is_refused_in_a_line(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("root\n")
    command = [sys.executable, "-m", "app", "--data-dir", str(cli.data_dir), "restore"]
    ran = subprocess.run([*command, tmp_path / "passwd"], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stderr == "The file 'passwd' is damaged. Choose another backup.\n"


# -- reading


def test_a_disk_that_cannot_be_read_refuses_the_import(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chats.json").write_text("[]")

    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("app.transfer.archive._file", broken)
    ran = cli("import", tmp_path / "chats.json")
    assert ran.code == 1
    assert ran.err.startswith(f"'{tmp_path / 'chats.json'}' cannot be read: Input/output error.")
    with opened(cli.data_dir) as store, pytest.raises(ImportRefused):
        import_files(store, [tmp_path / "chats.json"])


# -- streams


def _closed(cli: CommandLine, *closed: int) -> subprocess.CompletedProcess[str]:
    def close() -> None:
        for number in closed:
            os.close(number)

    command = [sys.executable, "-m", "app", "--data-dir", str(cli.data_dir), "list"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, preexec_fn=close)


def test_a_closed_standard_output_is_a_known_error(cli: CommandLine) -> None:
    ran = _closed(cli, 1)
    assert ran.returncode == 1
    assert ran.stderr == "Standard output is closed. Send it to another place.\n"


def test_a_closed_standard_error_stops_nothing(cli: CommandLine) -> None:
    ran = _closed(cli, 0, 2)
    assert ran.returncode == 0
    assert "Herbs" in ran.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a screen")
def test_without_a_screen_the_window_is_refused_in_a_line(cli: CommandLine) -> None:
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [sys.executable, "-m", "app", "--data-dir", str(cli.data_dir)]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("There is no screen to open the window on.")
    assert ran.stderr.count("\n") == 1


class _Screen:
    """A terminal that keeps what it is sent."""

    def __init__(self, *, is_terminal: bool) -> None:
        self.text = ""
        self._is_terminal = is_terminal

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_shows_what_would_command_it_and_a_file_gets_it_whole(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, err = _Screen(is_terminal=is_terminal), _Screen(is_terminal=is_terminal)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    here = own_terminal(lambda: False)
    planted = "a\x1b]0;title\x07\tb\r\nc\rd\x9b2J\n"
    here.out(planted)
    here.err("\x1b[31m")
    if is_terminal:
        assert (out.text, err.text) == ("a␛]0;title␇\tb\r\nc␍d\ufffd2J\n", "␛[31m\n")
    else:
        assert (out.text, err.text) == (planted, "\x1b[31m\n")


def test_a_user_at_the_far_end_of_a_socket_is_not_asked() -> None:
    said: list[str] = []
    watched = replace(
        own_terminal(lambda: False), err=said.append, read_input=lambda: "yes", is_watched=True
    )
    assert watched.says_yes()
    said.clear()
    assert not replace(watched, is_far=True).says_yes()
    assert said == []


def test_what_a_window_is_to_remember_is_read_from_the_callers_input(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def ask_window(_paths: object, _words: object, _terminal: object, needs_input: bool) -> int:
        asked.append(needs_input)
        return 0

    monkeypatch.setattr("app.cli.remote.ask_window", ask_window)
    services = build(DataPaths(cli.data_dir), Role.WINDOW)
    try:
        cli.done("memory", "save", "-")
        cli.done("ask", "-")
        cli.done("facts", "search", "-")
    finally:
        services.close()
    assert asked == [True, True, False]


# -- keys


@pytest.mark.parametrize("key", ["sk-CANARY-1234567890", "gsk_CANARY1234567890"])
def test_a_key_in_the_place_of_its_variable_is_kept_nowhere(cli: CommandLine, key: str) -> None:
    url = ("--base-url", "http://localhost:1/v1")
    ran = cli("provider", "add", "x", "--kind", "compatible", *url, "--key-env", key)
    assert ran.code == 1
    assert "never the key itself" in ran.err
    assert key not in ran.out + ran.err
    assert files_with(cli.data_dir, key) == set()
    cli.done("provider", "add", "x", "--kind", "compatible", *url, "--key-env", "X_KEY")


def test_what_failed_and_where_it_is_kept_are_sentences(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ran = cli("ask", "Hello", "--model", "openai:gpt-5")
    assert ran.code == 1
    assert ran.err.endswith("or set OPENAI_API_KEY. What was said is kept in [2:0].\n")


# -- signals


def test_a_signal_inside_executed_text_ends_with_its_own_number(tmp_path: Path) -> None:
    """Run with -m, CPython ends by SIGINT once a bare KeyboardInterrupt has left an `exec`."""
    kill = "os.kill(os.getpid(), signal.SIGTERM)\nfor _ in range(1000): pass"
    program = f"""
import os, signal, sys
from app.cli import entry
entry._command = lambda *_: exec({kill!r}, globals())
sys.exit(entry.main(["list"]))
"""
    (tmp_path / "signalled.py").write_text(program)
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    ran = subprocess.run([sys.executable, "-m", "signalled"], cwd=tmp_path, env=environment)
    assert ran.returncode == 128 + signal.SIGTERM


# -- what is shown


def test_a_turn_shows_its_attachments_and_pictures(cli: CommandLine, tmp_path: Path) -> None:
    message = {
        "uuid": "m1",
        "sender": "human",
        "content": [{"type": "text", "text": "Look"}],
        "attachments": [
            {"file_name": "notes.txt", "extracted_content": "Water it daily"},
            {"file_name": "scan.pdf"},
        ],
        "files": [{"file_name": "leaf.png"}],
    }
    export = [{"uuid": "c1", "name": "Leaves", "chat_messages": [message]}]
    (tmp_path / "conversations.json").write_text(json.dumps(export))
    cli.done("import", tmp_path / "conversations.json")
    shown = cli.done("show", 2).out
    assert "Look\nnotes.txt:\nWater it daily\nscan.pdf\npicture: leaf.png\n" in shown


def test_facts_of_a_conversation_that_is_not_there_are_not_all_facts(cli: CommandLine) -> None:
    for number in (0, 99):
        assert cli("facts", "list", "--conversation", number).code == 1


# -- documents


def _keys(document: object) -> set[str]:
    if isinstance(document, list):
        return set().union(*map(_keys, document))
    if not isinstance(document, dict):
        return set()
    return {str(key) for key in document}.union(*map(_keys, document.values()))


@pytest.mark.parametrize(
    "words",
    [
        ("ask", "Hello"),
        ("search", "basil"),
        ("search", "basil", "--why", "1:0"),
        ("probes", "add", "what basil", "1:0"),
        ("list",),
        ("show", "1"),
        ("archive", "1"),
        ("delete", "1"),
        ("undelete", "1"),
        ("forget", "1", "--yes"),
        ("tag", "1", "x"),
        ("memory",),
        ("memory", "save", "Basil"),
        ("facts", "add", "Basil is green"),
        ("facts", "list"),
        ("recall", "basil"),
        ("config", "get", "theme"),
        ("provider", "list"),
        ("price", "set", "openai:x", "1", "2"),
        ("price", "list"),
        ("backup",),
        ("rebuild", "index"),
        ("rebuild", "embeddings", "--yes"),
    ],
    ids=" ".join,
)
def test_the_readme_documents_every_field_that_json_prints(
    cli: CommandLine, words: tuple[str, ...]
) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [key for key in sorted(_keys(cli.json(*words))) if f'"{key}"' not in readme] == []
