"""The developer's commands choose, refuse and report as they say."""

import ast
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import dev
import dev_check
import dev_python

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("cores", "processes"), [(1, 2), (2, 2), (3, 3), (64, 4)])
def test_all_tests_run_in_a_process_for_each_core_within_reason(
    cores: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(cores)), raising=False)
    wanted = ["-n", str(processes), "--dist", "worksteal"]
    assert dev.test_processes([]) == wanted
    assert dev.test_processes(["tests/ui", "-q", "--color=no"]) == wanted


def test_files_are_kept_in_memory_only_where_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dev.memory_folder(tmp_path / "missing") is None
    monkeypatch.setattr(dev, "MEMORY_BYTES", 1)
    assert dev.memory_folder(tmp_path) == tmp_path
    monkeypatch.setattr(dev, "MEMORY_BYTES", 1 << 60)
    assert dev.memory_folder(tmp_path) is None


@pytest.mark.parametrize(
    "argument",
    ["tests/app/test_codec.py", "tests/app/test_codec.py::test_it", "-n4", "-n", "--pdb", "-s"],
)
def test_some_arguments_speak_for_one_process(argument: str) -> None:
    assert dev.test_processes([argument]) == []


def test_a_command_that_takes_no_arguments_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert dev.main(["setup", "--fast"]) == 1
    assert "'--fast'" in capsys.readouterr().out


def test_an_unknown_benchmark_is_answered_with_the_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert dev.main(["bench", "no-such-thing"]) == 1
    assert "Name a benchmark" in capsys.readouterr().out


def test_an_unknown_command_is_wrong_usage() -> None:
    with pytest.raises(SystemExit) as stopped:
        dev.main(["fly"])
    assert stopped.value.code == 2


def test_without_a_display_it_says_what_is_not_set() -> None:
    problem = dev.display_problem({})
    assert problem is not None
    assert "DISPLAY" in problem


def test_a_display_nobody_serves_is_a_problem() -> None:
    assert "no X server answers" in (dev.display_problem({"DISPLAY": ":65123"}) or "")


def test_a_display_that_answers_is_none() -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0/tmp/.X11-unix/X65124")
        server.listen()
        assert dev.display_problem({"DISPLAY": ":65124.0"}) is None


@pytest.mark.parametrize(
    "environ",
    [{"WAYLAND_DISPLAY": "wayland-0"}, {"QT_QPA_PLATFORM": "offscreen"}, {"DISPLAY": "far:1"}],
)
def test_what_cannot_be_judged_is_left_to_qt(environ: dict[str, str]) -> None:
    assert dev.display_problem(environ) is None


def test_the_readme_shows_one_test_command() -> None:
    assert dev_check.test_command_of_readme() == "python3 packaging/dev.py test"


def test_a_check_goes_on_after_a_failure_and_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def step(name: str, good: bool) -> tuple[str, Callable[[], bool]]:
        def run() -> bool:
            ran.append(name)
            return good

        return name, run

    monkeypatch.setattr(dev_check, "STEPS", (step("first", False), step("second", True)))
    assert dev_check.run_all() == 1
    assert ran == ["first", "second"]
    summary = capsys.readouterr().out.partition("=== Summary")[2]
    assert "FAIL  first" in summary
    assert "ok    second" in summary


@pytest.mark.parametrize(("module", "outcome"), [("this", 0), ("no_such_module", 1)])
def test_a_step_beside_others_prints_when_its_turn_comes(
    module: str, outcome: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev_check, "_python", lambda: sys.executable)
    steps = (("first", lambda: True), ("beside", dev_check.Beside(module)))
    monkeypatch.setattr(dev_check, "STEPS", steps)
    assert dev_check.run_all() == outcome
    said = capsys.readouterr().out.partition("=== beside")[2].partition("=== Summary")[0]
    assert ("Beautiful is better" in said) is (outcome == 0)
    assert ("No module named" in said) is (outcome == 1)


def test_a_check_without_failures_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
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
