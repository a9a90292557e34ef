"""The program `commonplace`: arguments, exit codes, streams, signals, and what it cannot open."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app import bootstrap
from app.bootstrap import RunMode, build
from app.chat.presets import Presets
from app.cli import entry
from app.cli.entry import main
from app.cli.terminal import OutputFile, own_terminal
from app.domain.errors import DatabaseDamaged
from app.memory.search.service import SearchService
from app.storage.engine import migrations
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.system.lock import InstanceLock
from app.system.paths import DataPaths
from tests.fakes.canary import files_with
from tests.fakes.command_line import CommandLine, Console, typed
from tests.fakes.stored import add_conversation, made, opened

ROOT = Path(__file__).parents[3]
NO_TEXT = os.fsdecode(b"no \xff text")


# -- arguments
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nonsense", "There is no command 'nonsense'. See"),
        ("lsit", "There is no command 'lsit'. Did you mean list?"),
        ("ask", "The following arguments are required: TEXT"),
        ("show 1 --turn x", "Argument --turn: invalid int value: 'x'"),
        ("archive one", "Argument ID: invalid int value: 'one'"),
        ("archive", "The following arguments are required: ID"),
        ("search x --kind dream", "Argument --kind: invalid choice: 'dream'"),
        ("list --arch", "Unrecognized arguments: --arch"),
        ("export --format pdf x", "Argument --format: invalid choice: 'pdf'"),
        ("work --only nobody", "Argument --only: invalid choice: 'nobody'"),
        ("rebuild everything", "Argument what: invalid choice: 'everything'"),
        (
            "project add x --recall no",
            "Argument --recall: invalid choice: 'no' (choose from 'only', 'first', 'all')",
        ),
        ("config get", "'config get' takes KEY"),
        ("config set theme", "'config set' takes KEY VALUE"),
        ("config list theme", "'config list' takes nothing more"),
        ("config reset theme dark", "'config reset' takes KEY"),
        ("provider add", "'provider add' takes NAME"),
        ("provider add x", "'provider add' takes --kind"),
        ("provider list x", "'provider list' takes nothing more"),
        ("--nonsense", "Unrecognized arguments: --nonsense"),
    ],
)
def test_wrong_usage(unchanged: Console, words: str, message: str) -> None:
    ran = unchanged(*words.split())
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith(message)
    assert "--help'" in ran.err


def test_help_version_and_the_position_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["-h"], ["ask", "--help"], ["provider", "-h"]):
        assert main(words) == 0
        captured = capsys.readouterr()
        assert (captured.out.startswith("usage: commonplace"), captured.err) == (True, "")
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("commonplace ")


def test_json_is_an_option_before_or_after_the_command(cli: Console) -> None:
    assert cli("--json", "list").document == cli("list", "--json").document
    assert not cli.done("ask", "--", "--json").out.startswith("{")


def test_bytes_that_are_no_text(cli: Console, tmp_path: Path) -> None:
    url = ("--base-url", "http://localhost:1/v1")
    for words in (
        ("list", "--tag", NO_TEXT), ("search", NO_TEXT), ("facts", "search", NO_TEXT),
        ("facts", "add", NO_TEXT), ("memory", "set", NO_TEXT), ("tag", "1", "--remove", NO_TEXT),
        ("tag", "1", NO_TEXT), ("config", "set", "system_prompt", NO_TEXT),
        ("provider", "add", "z", "--kind", "compatible", *url, "--key-env", NO_TEXT),
    ):  # fmt: skip
        ran = cli(*words, "--json")
        assert ran.code in (0, 1)
        assert "failed:" not in ran.err
        (ran.out + ran.err).encode()  # without lone surrogates
    assert cli.json("config", "get", "system_prompt")["value"] == "no \ufffd text"
    cli.done("export", tmp_path / NO_TEXT)
    assert cli.json("import", tmp_path / NO_TEXT)["duplicates"] > 0


@pytest.mark.parametrize("digits", [40, 5000])
def test_a_number_without_end_is_refused_in_a_line(unchanged: Console, digits: int) -> None:
    number = "9" * digits
    for words in (
        ("show", number), ("show", f"1:{number}"), ("show", "1", "--turn", number),
        ("delete", number), ("memory", "forget", number, "--yes"), ("probes", "remove", number),
        ("facts", "forget", number, "--yes"), ("search", "basil", "--limit", number),
    ):  # fmt: skip
        ran = unchanged(*words)
        assert (words, ran.code in (1, 2), ran.err.count("\n")) == (words, True, 1)
        assert "failed:" not in ran.err


def test_a_long_or_broken_name_leaves_an_error_of_one_line(cli: Console) -> None:
    ran = cli("config", "get", "x" * 100_000)
    assert (ran.code, len(ran.err) < 1500) == (1, True)
    assert ran.err.startswith("There is no setting 'xxx")
    assert ran.err.endswith("Run 'config list' to see all settings.\n")
    assert cli("import", "a\nb").err.count("\n") == 1


@pytest.mark.parametrize("command", ["import", "export", "backup", "restore"])
def test_impossible_file_names(program: CommandLine, command: str) -> None:
    for name, message in (("", "'' is not a file name"), ("n" * 5000, "is too long for a file")):
        ran = program(command, name)
        assert (ran.code, ran.out, message in ran.err) == (1, "", True)


def test_files_of_the_data_directory_are_not_overwritten(cli: Console, tmp_path: Path) -> None:
    (tmp_path / "out.json").symlink_to(cli.data_dir / "commonplace.duckdb")
    inside = ("commonplace.duckdb", "journal/x.json", "new.json")
    for path in (*(cli.data_dir / name for name in inside), tmp_path / "out.json"):
        for command in ("export", "backup"):
            ran = cli(command, path)
            assert (ran.code, ran.out) == (1, "")
            assert "is inside the data directory" in ran.err
    assert not list(cli.data_dir.glob("*.part"))
    assert cli.titles() == ["Bicycle", "Herbs", "Secret"]


@pytest.mark.parametrize("key", ["sk-CANARY-1234567890", "gsk_CANARY1234567890"])
def test_a_key_given_as_the_name_of_its_variable_is_stored_nowhere(cli: Console, key: str) -> None:
    add = ("provider", "add", "x", "--kind", "compatible", "--base-url", "http://localhost:1/v1")
    ran = cli(*add, "--key-env", key)
    assert (ran.code, key in ran.out + ran.err) == (1, False)
    assert files_with(cli.data_dir, key) == set()
    cli.done(*add, "--key-env", "X_KEY")


def keys_of(document: object) -> set[str]:
    if isinstance(document, list):
        return set().union(*map(keys_of, document))
    if not isinstance(document, dict):
        return set()
    return {str(key) for key in document}.union(*map(keys_of, document.values()))


def test_the_readme_documents_every_field_that_json_prints(cli: Console) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for words in (
        ("ask", "Hello"), ("search", "basil"), ("search", "basil", "--why", "1:0"),
        ("probes", "add", "what basil", "1:0"), ("list",), ("show", "1"), ("archive", "1"),
        ("delete", "1"), ("undelete", "1"), ("tag", "1", "x"), ("memory",),
        ("memory", "save", "Basil"), ("facts", "add", "Basil is green"), ("facts", "list"),
        ("recall", "basil"), ("config", "get", "theme"), ("provider", "list"),
        ("price", "set", "openai:x", "1", "2"), ("price", "list"), ("backup",),
        ("rebuild", "index"), ("rebuild", "embeddings", "--yes"), ("forget", "1", "--yes"),
    ):  # fmt: skip
        printed = keys_of(cli.json(*words))
        assert (words, {key for key in printed if f'"{key}"' not in readme}) == (words, set())


# -- the data directory
def test_the_data_directory_is_chosen(
    data_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("", "~nobody-of-that-name/x"):
        assert main(["--data-dir", folder, "list"]) == 1
        assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setenv("COMMONPLACE_DATA_DIR", str(data_dir))
    assert main(["list"]) == 0
    assert (data_dir / "commonplace.duckdb").exists()


@pytest.mark.parametrize("place", ["", "journal", "lock"])
def test_a_file_in_the_place_of_a_folder(
    tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "data"
    if place == "lock":
        (root / place).mkdir(parents=True)
    else:
        (root / place).parent.mkdir(exist_ok=True)
        (root / place).write_text("I am a file")
    ran = CommandLine(root, capsys)("list")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert str(tmp_path) in ran.err


@pytest.fixture
def frozen(data_dir: Path) -> Iterator[Path]:
    """Yield a data directory that its owner has made read-only."""
    made(data_dir)
    data_dir.chmod(0o500)
    yield data_dir
    data_dir.chmod(0o700)


def test_a_read_only_directory_is_left(frozen: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(frozen.rglob("*"))
    for words in (("list",), ("ask", "Hello"), ("restore", __file__)):
        ran = CommandLine(frozen, capsys)(*words)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith(f"The data directory '{frozen}' cannot be written")
    assert sorted(frozen.rglob("*")) == before
    assert frozen.stat().st_mode & 0o777 == 0o500


def test_a_newer_database_is_refused_and_left_as_it_is(program: CommandLine) -> None:
    newer = str(migrations.CURRENT_VERSION + 1)
    change = "UPDATE meta SET value = ? WHERE key = 'schema_version' RETURNING value"
    with opened(program.data_dir) as store:
        changed = store.write_derived(lambda c: c.execute(change, [newer]).fetchall()).result()
        assert changed == [(newer,)]
    before = (program.data_dir / "commonplace.duckdb").read_bytes()
    ran = program("list")
    assert (ran.code, ran.out, "newer version of the program" in ran.err) == (1, "", True)
    assert (program.data_dir / "commonplace.duckdb").read_bytes() == before


def test_a_recovery_is_reported(program: CommandLine) -> None:
    with opened(program.data_dir) as store:
        add_conversation(store, "one", title="Kept")
    (program.data_dir / "commonplace.duckdb").unlink()
    ran = program.done("list")
    assert "Kept" in ran.out
    assert "The database file was missing." in ran.err


def test_the_relay_of_mcp_starts_without_the_rest_of_the_program(tmp_path: Path) -> None:
    """Other programs start it for each of their sessions."""
    code = (
        "import sys, app.mcp.relay\n"
        "app.mcp.relay.relay = lambda *_: 0\n"
        "from app.cli.entry import main\n"
        f"code = main(['mcp', '--data-dir', {str(tmp_path)!r}])\n"
        "sys.exit(code or len({'app.bootstrap', 'duckdb', 'mcp'}.intersection(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_programs_that_connect_over_two_transports_at_once_are_all_served() -> None:
    """The SDK's packages import each other, so that two threads that import it end in a deadlock."""
    code = (
        "import io, sys, threading\n"
        "from app.mcp.server import memory_server, serve\n"
        "sys.setswitchinterval(1e-5)\n"
        "begin, failed = threading.Barrier(2), []\n"
        "def run(work):\n"
        "    begin.wait()\n"
        "    try: work()\n"
        "    except BaseException as error: failed.append(error)\n"
        "works = lambda: serve(io.StringIO(), io.StringIO(), None), lambda: memory_server(None)\n"
        "threads = [threading.Thread(target=run, args=[work]) for work in works]\n"
        "for each in threads: each.start()\n"
        "for each in threads: each.join()\n"
        "sys.exit(str(failed) if failed else 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_a_directory_in_use(program: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = InstanceLock(DataPaths(program.data_dir))
    monkeypatch.setattr("app.cli.entry.time.sleep", lambda _seconds: lock.release())
    assert program("list").code == 0, "it is waited for"
    monkeypatch.undo()
    monkeypatch.setattr(entry, "_OPEN_TIMEOUT_S", 0.1)
    with InstanceLock(DataPaths(program.data_dir)):
        ran = program("list")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"Another program (process {os.getpid()}) is using")


def test_standard_input_is_read_for_the_window_that_executes_a_command(
    program: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed: list[bool] = []

    def forward(_paths: object, _words: object, _terminal: object, needs_input: bool) -> int:
        needed.append(needs_input)
        return 0

    monkeypatch.setattr("app.cli.remote.forward_command", forward)
    services = build(DataPaths(program.data_dir), RunMode.WINDOW)
    try:
        for words, is_needed in (
            ("memory save -", True), ("ask -", True), ("profile edit -", True),
            ("preset edit Commonplace --prompt -", True), ("facts search -", False),
        ):  # fmt: skip
            program.done(*words.split())
            assert (words, needed.pop()) == (words, is_needed)
    finally:
        services.close()


@pytest.mark.parametrize(
    "part", ["app.bootstrap.services.ExchangeLoop", "app.bootstrap.services.Settings"]
)
def test_an_opening_that_fails_halfway_releases_everything(
    data_dir: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no more threads")

    with monkeypatch.context() as patch:
        patch.setattr(part, fail)
        with pytest.raises(OSError, match="no more threads"):
            build(DataPaths(data_dir), RunMode.WINDOW)
    build(DataPaths(data_dir), RunMode.COMMAND_LINE).close()


def test_closing_goes_on_after_a_step_that_fails(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = Store.close

    def fail(store: Store) -> None:
        real(store)
        raise OSError("the disk went away")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "close", fail)
        build(DataPaths(data_dir), RunMode.WINDOW).close()
    assert "closing failed" in caplog.text
    build(DataPaths(data_dir), RunMode.COMMAND_LINE).close()


# -- failures and the window
def test_a_bug_is_told_and_logged(program: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(SearchService, "search", fail)
    ran = program("search", "anything")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "ZeroDivisionError: division by zero" in ran.err
    assert f'File "{__file__}"' in (program.data_dir / "logs" / "commonplace.log").read_text()


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [(ImportError("libEGL.so.1: cannot open"), 1, "The window cannot be opened: libEGL.so.1"),
     (SystemExit(3), 3, ""), (SystemExit(None), 0, ""), (SystemExit("went wrong"), 1, "")],
    ids=repr,
)  # fmt: skip
def test_the_exit_code_of_the_window(
    raised: BaseException, code: int, message: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def run(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr("app.cli.entry.runpy.run_module", run)
    monkeypatch.setattr(sys, "argv", ["commonplace"])
    assert main([]) == code
    assert capsys.readouterr().err.startswith(message)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems always have a display")
@pytest.mark.parametrize("display", ["", ":65123"])
def test_no_window_without_a_display(
    display: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    if display:
        monkeypatch.setenv("DISPLAY", display)
    assert main([]) == 1
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n"), "DISPLAY" in captured.err) == ("", 1, True)


# -- streams
class Screen(io.StringIO):
    """A terminal, or a file, that keeps what is written."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self.isatty = lambda: is_terminal  # type: ignore[method-assign]


def test_control_characters_reach_a_file_but_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    planted = "a\x1b]0;title\x07\tb\r\nc\rd\x9b2J\n"
    for is_terminal, out, err in (
        (True, "a␛]0;title␇\tb\r\nc␍d\ufffd2J\n", "␛[31m\n"), (False, planted, "\x1b[31m\n"),
    ):  # fmt: skip
        screens = Screen(is_terminal=is_terminal), Screen(is_terminal=is_terminal)
        monkeypatch.setattr(sys, "stdout", screens[0])
        monkeypatch.setattr(sys, "stderr", screens[1])
        terminal = own_terminal(lambda: False)
        terminal.out(planted)
        terminal.err("\x1b[31m")
        assert (terminal.is_watched, *(each.getvalue() for each in screens)) == (
            is_terminal, out, err,
        )  # fmt: skip


def test_only_a_person_at_this_end_of_the_socket_is_asked() -> None:
    asked: list[str] = []
    terminal = replace(
        own_terminal(lambda: False), err=asked.append, read_input=lambda: "yes", is_watched=True
    )
    assert terminal.confirm()
    assert not replace(terminal, is_remote=True).confirm()
    assert not replace(terminal, is_watched=False).confirm()
    assert len(asked) == 1


def test_output_is_utf_8_whatever_the_locale(
    program: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with opened(program.data_dir) as store:
        add_conversation(store, "Größe 🌱", title="Grüße 🌱")
    with (tmp_path / "out").open("w", encoding="latin-1") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert program("list").code == 0
    assert "Grüße 🌱" in (tmp_path / "out").read_text("utf-8")


@pytest.mark.parametrize("target", ["/dev/full", None])
def test_output_that_cannot_be_written(
    program: CommandLine, target: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if target and not Path(target).exists():
        pytest.skip("there is no device that is full")
    stream = Path(target).open("w") if target else None  # noqa: SIM115
    monkeypatch.setattr(sys, "stdout", stream)
    ran = program("status")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert ran.err.startswith("Standard output ")
    if stream:
        stream.close()


def test_closed_streams_and_readers_that_stop(data_dir: Path) -> None:
    with opened(data_dir) as store:
        add_conversation(store, "x" * 300_000, title="Long")
    command = [sys.executable, "-m", "app", "--data-dir", str(data_dir), "show", "1"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe) as process:
        assert process.stdout.read(6) == b"# Long"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1

    def close() -> None:
        os.close(0)
        os.close(2)

    ran = subprocess.run(command, cwd=ROOT, capture_output=True, preexec_fn=close)
    assert (ran.returncode, ran.stdout[:6]) == (0, b"# Long")


def test_large_output_is_written_in_larger_pieces() -> None:
    pieces: list[str] = []
    with OutputFile(replace(own_terminal(lambda: False), out=pieces.append)) as out:
        for _ in range(1000):
            out.write("x" * 100)
    assert (len(pieces), sum(map(len, pieces))) == (2, 100_000)


def test_a_working_directory_that_was_deleted(
    program: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deleted").mkdir()
    monkeypatch.chdir(tmp_path / "deleted")
    (tmp_path / "deleted").rmdir()
    assert program("list").code == 0


@pytest.mark.parametrize("lasts", [False, True])
def test_a_command_that_meets_damage_runs_again_once(
    program: CommandLine, monkeypatch: pytest.MonkeyPatch, lasts: bool
) -> None:
    program("memory", "set", "I am Ada.")
    listed, met = Conversations.listed, list[Conversations]()

    def damaged(self: Conversations, *given: Any) -> object:
        met.append(self)
        if lasts or len(met) == 1:
            raise DatabaseDamaged("The database is damaged", "Start the program again.")
        return listed(self, *given)

    monkeypatch.setattr(Conversations, "listed", damaged)
    assert program("list").code == (1 if lasts else 0)
    assert len(met) == 2


def test_a_command_that_runs_again_reads_the_same_input(
    program: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("preset", "add", "Brief", "--prompt", "Be brief.")
    save, met = Presets.save, list[object]()

    def damaged(self: Presets, *given: Any) -> object:
        met.append(given)
        if len(met) == 1:
            raise DatabaseDamaged("The database is damaged", "Start the program again.")
        return save(self, *given)

    monkeypatch.setattr(Presets, "save", damaged)
    monkeypatch.setattr(sys, "stdin", typed("Be exact."))
    assert program("preset", "edit", "Brief", "--prompt", "-").code == 0
    assert len(met) == 2
    assert met[0] == met[1]


# -- signals
def signals_in(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, number: int = signal.SIGINT
) -> None:
    """Send a signal to this process whenever a function is called."""
    real = getattr(owner, name)

    def interrupted(*given: object) -> object:
        os.kill(os.getpid(), number)
        return real(*given)

    monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts_a_command_that_does_not_poll(
    program: CommandLine, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals_in(monkeypatch, Conversations, "listed", number)
    inherited = signal.signal(number, signal.SIG_DFL)  # which may be to ignore it
    try:
        ran = program("list")
        assert (ran.code, ran.out, ran.err) == (128 + number, "", "")
        assert (program.data_dir / "closed").exists(), "it was closed in order"
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, inherited)


@pytest.mark.parametrize(
    ("owner", "name"), [(bootstrap, "build"), (bootstrap.Services, "close")], ids=["open", "close"]
)
def test_opening_and_closing_are_completed(
    program: CommandLine, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals_in(monkeypatch, owner, name)
    assert program("list").code == 130
    assert (program.data_dir / "closed").exists(), "it was closed in order"


def test_one_interrupt_ends_an_input(program: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    class Typing(io.BytesIO):
        def read(self, _size: int | None = -1) -> bytes:
            os.kill(os.getpid(), signal.SIGINT)
            return b"too late"

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Typing()))
    ran = program("ask", "-")
    assert (ran.code, ran.out, ran.err) == (130, "", "")


def test_an_ignored_signal_stays_ignored(program: CommandLine) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        program("list")
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


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
