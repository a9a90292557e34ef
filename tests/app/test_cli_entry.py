"""The command itself: its words, exit codes, streams and signals, and what it cannot open."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app import bootstrap
from app.bootstrap import Role, build
from app.cli import entry
from app.cli.entry import main
from app.cli.terminal import OutputFile, own_terminal
from app.memory.search import SearchService
from app.storage import migrations
from app.storage.store import Store
from app.system.lock import InstanceLock
from app.system.paths import DataPaths
from tests.fakes.command_line import CommandLine
from tests.fakes.stored import made, opened, told

ROOT = Path(__file__).parents[2]


@pytest.fixture
def cli(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    made(data_dir)
    return CommandLine(data_dir, capsys)


# -- words


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("nonsense",), "Argument COMMAND: invalid choice: 'nonsense'"),
        (("ask",), "The following arguments are required: TEXT"),
        (("show", "1", "--turn", "x"), "Argument --turn: invalid int value: 'x'"),
        (("archive", "one"), "Argument ID: invalid int value: 'one'"),
        (("archive",), "The following arguments are required: ID"),
        (("search", "x", "--kind", "dream"), "Argument --kind: invalid choice: 'dream'"),
        (("list", "--arch"), "Unrecognized arguments: --arch"),
        (("export", "--format", "pdf", "x"), "Argument --format: invalid choice: 'pdf'"),
        (("work", "--only", "nobody"), "Argument --only: invalid choice: 'nobody'"),
        (("rebuild", "everything"), "Argument what: invalid choice: 'everything'"),
        (("config", "get"), "'config get' takes KEY"),
        (("config", "set", "theme"), "'config set' takes KEY and VALUE"),
        (("config", "list", "theme"), "'config list' takes nothing more"),
        (("config", "reset", "theme", "dark"), "'config reset' takes KEY"),
        (("provider", "add"), "'provider add' takes NAME"),
        (("provider", "add", "x"), "'provider add' takes --kind"),
        (("provider", "list", "x"), "'provider list' takes nothing more"),
        (("--nonsense",), "Unrecognized arguments: --nonsense"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_usage_says_what_is_wrong_and_where_to_read_on(
    cli: CommandLine, words: tuple[str, ...], complaint: str
) -> None:
    ran = cli(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(complaint)
    assert "--help'" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["ask", "--help"], ["provider", "-h"]])
def test_help_goes_to_standard_output(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("usage: commonplace")
    assert captured.err == ""


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("commonplace ")


def test_json_may_stand_before_or_after_the_command(cli: CommandLine) -> None:
    assert cli("--json", "list").document == cli("list", "--json").document == {"conversations": []}


def test_a_question_about_json_is_not_a_wish_for_it(cli: CommandLine) -> None:
    assert not cli.done("ask", "--", "--json").out.startswith("{")


def test_the_data_directory_comes_from_the_environment(
    data_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_DATA_DIR", str(data_dir))
    assert main(["list"]) == 0
    assert (data_dir / "commonplace.duckdb").exists()


# -- what it cannot open


def test_a_data_directory_of_nobody_is_a_known_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data-dir", "~nobody-of-that-name/x", "list"]) == 1
    assert capsys.readouterr().err.startswith("The data directory cannot be found")


@pytest.mark.parametrize("place", ["", "journal", "lock"])
def test_a_file_where_a_folder_should_be_is_a_known_error(
    tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "data"
    if place == "":
        root.write_text("I am a file")
    elif place == "journal":
        root.mkdir()
        (root / place).write_text("I am a file")
    else:
        (root / place).mkdir(parents=True)
    ran = CommandLine(root, capsys)("list")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.count("\n") == 1
    assert str(tmp_path) in ran.err


@pytest.fixture
def frozen(data_dir: Path) -> Iterator[Path]:
    """Return a data directory on a disk that cannot be written: mounted so, since root may all."""
    made(data_dir)
    mounts = (["--bind"], ["-o", "remount,bind,ro"])
    if os.geteuid() != 0:
        data_dir.chmod(0o500)
        yield data_dir
        data_dir.chmod(0o700)
        return
    if subprocess.run(["mount", *mounts[0], data_dir, data_dir], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    subprocess.run(["mount", *mounts[1], data_dir, data_dir], check=True)
    yield data_dir
    subprocess.run(["umount", data_dir], check=True)


@pytest.mark.parametrize("words", [("list",), ("ask", "Hello"), ("restore", __file__)])
def test_a_data_directory_that_cannot_be_written_is_a_known_error(
    frozen: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(frozen.rglob("*"))
    ran = CommandLine(frozen, capsys)(*words)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"The data directory '{frozen}' cannot be written")
    assert sorted(frozen.rglob("*")) == before


def test_a_newer_database_is_refused_untouched(cli: CommandLine, data_dir: Path) -> None:
    newer = migrations.CURRENT_VERSION + 1
    with opened(data_dir) as store:
        store.write_derived(
            lambda c: c.execute(
                "UPDATE meta SET value = ? WHERE key = 'schema_version'", [str(newer)]
            )
        ).result()
        rows = store.read(lambda c: c.execute("SELECT key, value FROM meta").fetchall())
    assert str(newer) in dict(rows).values(), "the schema's version has another key now"
    before = (data_dir / "commonplace.duckdb").read_bytes()
    ran = cli("list")
    assert (ran.code, ran.out) == (1, "")
    assert "was written by a newer version of the program. Update the program" in ran.err
    assert (data_dir / "commonplace.duckdb").read_bytes() == before


def test_what_recovery_did_is_told(cli: CommandLine, data_dir: Path) -> None:
    with opened(data_dir) as store:
        told(store, "one", title="Kept")
    (data_dir / "commonplace.duckdb").unlink()
    ran = cli.done("list")
    assert "Kept" in ran.out
    assert "The database file was missing." in ran.err


def test_a_directory_that_is_held_without_a_window_is_a_known_error(
    cli: CommandLine, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry, "_PATIENCE_S", 0.1)
    with InstanceLock(DataPaths(data_dir)):
        ran = cli("list")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(
        f"Another program (process {os.getpid()}) is using the data directory"
    )


def test_a_directory_that_is_held_for_a_moment_is_waited_for(
    cli: CommandLine, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = InstanceLock(DataPaths(data_dir))
    monkeypatch.setattr("app.cli.entry.time.sleep", lambda _seconds: lock.release())
    assert cli("list").code == 0


@pytest.mark.parametrize(
    "part", ["app.bootstrap.chat.ExchangeLoop", "app.bootstrap.storage.Settings"]
)
def test_an_opening_that_fails_half_way_lets_go_of_everything(
    data_dir: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no more threads")

    with monkeypatch.context() as patch:
        patch.setattr(part, fail)
        with pytest.raises(OSError, match="no more threads"):
            build(DataPaths(data_dir), Role.WINDOW)
    build(DataPaths(data_dir), Role.COMMAND_LINE).close()


def test_closing_takes_every_step_even_when_one_fails(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    services = build(DataPaths(data_dir), Role.WINDOW)
    real = Store.close

    def fail(store: Store) -> None:
        real(store)
        raise OSError("the disk went away")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "close", fail)
        services.close()
    assert "closing failed" in caplog.text
    build(DataPaths(data_dir), Role.COMMAND_LINE).close()


# -- failures


def test_a_bug_is_told_in_a_line_and_logged(
    cli: CommandLine, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(SearchService, "search", fail)
    ran = cli("search", "anything")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "The program failed: ZeroDivisionError: division by zero. The log tells more.\n"
    )
    log = (data_dir / "logs" / "commonplace.log").read_text()
    assert "ZeroDivisionError" in log
    assert f'File "{__file__}"' in log


def test_the_window_that_cannot_start_says_why(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ImportError("libEGL.so.1: cannot open shared object file")

    monkeypatch.setattr("app.cli.entry.runpy.run_module", fail)
    monkeypatch.setattr(sys, "argv", ["commonplace"])
    assert main([]) == 1
    err = capsys.readouterr().err
    assert err.startswith("The window cannot be opened: libEGL.so.1")
    assert "commonplace --help" in err


@pytest.mark.parametrize(("left", "code"), [(3, 3), (None, 0), ("went wrong", 1)])
def test_the_windows_exit_code_is_the_programs(
    left: object, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave(*_: object, **__: object) -> None:
        raise SystemExit(left)

    monkeypatch.setattr("app.cli.entry.runpy.run_module", leave)
    monkeypatch.setattr(sys, "argv", ["commonplace"])
    assert main([]) == code


# -- streams


def test_a_reader_that_has_enough_ends_the_command_in_silence(data_dir: Path) -> None:
    made(data_dir)
    with opened(data_dir) as store:
        told(store, "x" * 300_000, title="Long")
    command = [sys.executable, "-m", "app", "--data-dir", str(data_dir), "show", "1"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(6) == b"# Long"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(30) == 1
    build(DataPaths(data_dir), Role.COMMAND_LINE).close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_output_that_cannot_be_written_is_a_known_error(data_dir: Path) -> None:
    made(data_dir)
    command = [sys.executable, "-m", "app", "--data-dir", str(data_dir), "status"]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ran.returncode == 1
    assert ran.stderr.startswith("Standard output cannot be written: No space left on device.")
    assert ran.stderr.count("\n") == 1


def test_output_is_utf_8_whatever_the_locale(data_dir: Path) -> None:
    made(data_dir)
    with opened(data_dir) as store:
        told(store, "Größe 🌱", title="Grüße 🌱")
    command = [sys.executable, "-m", "app", "--data-dir", str(data_dir), "list"]
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1"}
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, env=environment)
    assert "Grüße 🌱" in ran.stdout.decode("utf-8")


def test_large_output_goes_out_in_larger_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[str] = []
    from dataclasses import replace

    with OutputFile(replace(own_terminal(lambda: False), out=pieces.append)) as out:
        for _ in range(1000):
            out.write("x" * 100)
    assert len(pieces) == 2
    assert sum(map(len, pieces)) == 100_000


def test_a_folder_that_was_deleted_under_us_is_no_hindrance(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert cli("list").code == 0


# -- signals


@pytest.fixture
def interrupting(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Return what makes a part of the program send signals to this process when it is called."""

    def when(part: str, times: int) -> None:
        def send(*_: object, **__: object) -> None:
            for _each in range(times):
                os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(part, send)

    return when


def test_a_command_that_does_not_listen_is_broken_off_at_once(
    cli: CommandLine, interrupting: Callable[[str, int], None]
) -> None:
    interrupting("app.storage.conversations.Conversations.listed", 1)
    ran = cli("list")
    assert (ran.code, ran.out, ran.err) == (130, "", "")
    assert cli("check").code in (0, 1), "the directory was let go"


@pytest.mark.parametrize("part", ["app.bootstrap.build", "app.bootstrap.Services.close"])
def test_opening_and_closing_are_let_come_to_their_end(
    cli: CommandLine, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, name = part.removeprefix("app.bootstrap.").rpartition(".")[::2]
    owner = bootstrap.Services if module else bootstrap
    real = getattr(owner, name or module)

    def interrupted(*given: object) -> object:
        os.kill(os.getpid(), signal.SIGINT)
        return real(*given)

    monkeypatch.setattr(owner, name, interrupted)
    assert cli("list").code == 130
    assert not (cli.data_dir / "open").exists(), "it was closed in order"


def test_handlers_are_put_back(cli: CommandLine) -> None:
    before = signal.getsignal(signal.SIGINT)
    cli("list")
    assert signal.getsignal(signal.SIGINT) is before


def test_waiting_for_input_ends_with_one_interrupt(data_dir: Path) -> None:
    made(data_dir)
    command = [sys.executable, "-m", "app", "--data-dir", str(data_dir), "ask", "-"]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    _wait_until_it_reads(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"")


def _wait_until_it_reads(pid: int) -> None:
    """Wait until a process sleeps in a read of its standard input."""
    waiting = Path(f"/proc/{pid}/syscall")
    if not waiting.exists():
        pytest.skip("nobody says here what a process waits for")
    pause = threading.Event()
    for _ in range(6000):
        number, *arguments = waiting.read_text().split()
        if number in ("0", "63") and arguments[:1] == ["0x0"]:  # read(2) on x86-64 and arm64
            return
        pause.wait(0.01)
    raise AssertionError("it never read")


def test_sigterm_is_an_orderly_end(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("app.storage.conversations.Conversations.listed", end)
    assert cli("list").code == 128 + signal.SIGTERM
    assert not (cli.data_dir / "open").exists(), "it was closed in order"


def test_an_ignored_signal_stays_ignored(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        cli("list")
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_copied_directory_is_opened_like_the_first(
    cli: CommandLine, data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.done("ask", "Hello")
    shutil.copytree(data_dir, tmp_path / "copy")
    assert len(CommandLine(tmp_path / "copy", capsys).json("list")["conversations"]) == 1
