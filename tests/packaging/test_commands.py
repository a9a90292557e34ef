"""The developer's commands choose, refuse and report as they say."""

import ast
import re
import socket
import sys
from pathlib import Path

import pytest

import dev
import dev_check
import dev_environment
import dev_python
import dev_system
from app.cli.commands import COMMANDS
from app.system.process import display_problem

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("cores", "processes"), [(1, 2), (2, 3), (3, 4), (64, 4)])
def test_all_tests_run_in_a_process_more_than_cores_within_reason(
    cores: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(cores)), raising=False)
    wanted = ["-n", str(processes), "--dist", "worksteal"]
    assert dev.test_processes([]) == wanted
    assert dev.test_processes(["tests/ui", "-q", "--color=no"]) == wanted
    one_file = "tests/app/test_codec.py"
    for argument in (one_file, f"{one_file}::test_it", "-n4", "-n", "--pdb", "-s"):
        assert dev.test_processes([argument]) == []


def test_memory_holds_files_if_it_has_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert dev.memory_folder(tmp_path / "missing") is None
    monkeypatch.setattr(dev, "MEMORY_BYTES", 1)
    assert dev.memory_folder(tmp_path) == tmp_path
    monkeypatch.setattr(dev, "MEMORY_BYTES", 1 << 60)
    assert dev.memory_folder(tmp_path) is None


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [(["setup", "--fast"], "'--fast'"), (["bench", "no-such-thing"], "Name a benchmark")],
)
def test_unknown_arguments_are_refused(
    arguments: list[str], printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dev.main(arguments) == 1
    assert printed in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        dev.main(["fly"])
    assert stopped.value.code == 2


@pytest.mark.parametrize(
    ("environ", "named"),
    [({}, ["DISPLAY"]), ({"DISPLAY": ":65123"}, ["/tmp/.X11-unix/X65123"]),
     ({"WAYLAND_DISPLAY": "w", "XDG_RUNTIME_DIR": "/nowhere"}, ["/nowhere/w"]),
     ({"WAYLAND_DISPLAY": "/nowhere/w", "DISPLAY": ":65123"}, ["/nowhere/w", "X65123"])],
)  # fmt: skip
def test_a_display_without_a_server_is_a_problem(environ: dict[str, str], named: list[str]) -> None:
    problem = display_problem(environ) or ""
    assert [each for each in named if each in problem] == named


@pytest.mark.parametrize(
    "environ",
    [{"DISPLAY": ":65124.0"}, {"DISPLAY": ":65124", "WAYLAND_DISPLAY": "/nowhere/w"},
     {"QT_QPA_PLATFORM": "offscreen"}, {"DISPLAY": "far:1"}, {"WAYLAND_DISPLAY": "relative"}],
)  # fmt: skip
def test_a_display_that_answers_or_cannot_be_judged_is_left_to_qt(environ: dict[str, str]) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0/tmp/.X11-unix/X65124")
        server.listen()
        assert display_problem(environ) is None


def test_the_display_is_checked_before_anything_is_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev_environment, "make", lambda: pytest.fail("installed"))
    monkeypatch.setattr(dev_system, "provide", lambda *_, **__: pytest.fail("installed"))
    for name in ("WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", ":65123")
    assert dev.main(["run"]) == 1
    assert "X65123" in capsys.readouterr().out


def test_the_readme_names_the_commands_that_exist() -> None:
    named = set[str]()
    for line in re.findall(
        r"^commonplace (.*)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    ):
        named.update(re.findall(r"(?:^|(?<=\| ))[a-z]+", line.split(" ID")[0].split(" [")[0]))
    words_of_commands = {
        "add", "default", "edit", "embeddings", "get", "key", "history", "move", "off", "on",
        "run", "remove", "reset", "set", "test",
    }  # fmt: skip
    named -= words_of_commands
    assert named == {*COMMANDS, "quick", "restore"}


def test_the_readme_shows_one_test_command() -> None:
    assert dev_check.test_command_of_readme() == "python3 packaging/dev.py test"


def test_a_check_goes_on_after_a_failure_and_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev_check, "_python", lambda: sys.executable)
    steps = {
        "first": lambda: False, "second": lambda: True, "beside": dev_check.Beside("this"),
        "missing": dev_check.Beside("no_such_module"),
    }  # fmt: skip
    monkeypatch.setattr(dev_check, "STEPS", tuple(steps.items()))
    assert dev_check.run_all() == 1
    _, *sections, summary = capsys.readouterr().out.split("=== ")
    assert [each.split()[0] for each in sections] == list(steps)
    assert "Beautiful is better" in sections[2]
    assert "No module named" in sections[3]
    for line in ("FAIL  first", "ok    second", "ok    beside", "FAIL  missing"):
        assert line in summary
    monkeypatch.setattr(dev_check, "STEPS", (("only", lambda: True),))
    assert dev_check.run_all() == 0


def test_another_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dev_python, "OLDEST", (3, 98))
    monkeypatch.setattr(dev_python, "NEWEST", (3, 99))
    with pytest.raises(SystemExit, match=r"needs Python 3\.98 to 3\.99"):
        dev_python.require()


@pytest.mark.parametrize("name", ["dev.py", "dev_python.py"])
def test_an_older_python_can_read_the_refusal(name: str) -> None:
    source = (ROOT / "packaging" / name).read_text(encoding="utf-8")
    assert ast.parse(source, feature_version=(3, 7)).body
