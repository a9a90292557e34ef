"""What the machine lacks is found, named, and installed where that is possible."""

import os
from pathlib import Path

import pytest

import dev_environment
import dev_system
from dev_environment import Stopped
from dev_system import Part

THERE = Part("libc.so.6", "libc6")
GONE = Part("libnowhere.so.9", "libnowhere9")
GONE_TWIN = Part("libnowhere-twin.so.9", "libnowhere9")


@pytest.fixture(autouse=True)
def complete_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Lack nothing, unless a test says so, and never meet the real apt-get."""
    fonts = tmp_path / "fonts"
    fonts.mkdir()
    (fonts / "Some.ttf").touch()
    monkeypatch.setattr(dev_system, "FONT_FOLDERS", (str(fonts),))
    monkeypatch.setattr(dev_system, "QT", (THERE,))
    monkeypatch.setattr(dev_system, "X11", (THERE,))
    monkeypatch.setattr(dev_system, "WAYLAND", (THERE,))
    monkeypatch.setattr(dev_environment, "VENV", tmp_path / ".venv")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.fixture
def apt_get(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Put an apt-get on the path that writes down what it is asked; return where.

    It fails to install as often as the file `failures` beside it has lines.
    """
    program = tmp_path / "bin" / "apt-get"
    program.parent.mkdir()
    log, failures = tmp_path / "asked", tmp_path / "failures"
    failures.touch()
    program.write_text(
        "#!/bin/sh\n"
        f'echo "$*" >> {log}\n'
        f'case "$*" in *update*) exit 0;; esac\n'
        f"[ -s {failures} ] || exit 0\n"
        f"/bin/sed -i 1d {failures}\n"
        "exit 100\n"
    )
    program.chmod(0o755)
    lists = tmp_path / "lists"
    lists.mkdir()
    (lists / "deb.example_Packages").touch()
    monkeypatch.setattr(dev_system, "APT_LISTS", lists)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return log


def test_libraries_are_looked_for_by_loading_them() -> None:
    assert dev_system.missing_libraries((THERE, GONE)) == [GONE]


def test_a_complete_system_is_left_in_peace(capsys: pytest.CaptureFixture[str]) -> None:
    dev_system.provide({}, needs_qt=True, needs_display=True)
    assert capsys.readouterr().out == ""


def test_what_is_missing_is_named_with_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev_system, "QT", (GONE, GONE_TWIN))
    with pytest.raises(Stopped):
        dev_system.provide({}, needs_qt=True)
    said = capsys.readouterr().out
    assert "libnowhere.so.9, libnowhere-twin.so.9" in said
    assert "sudo apt-get install libnowhere9\n" in said


def test_nobody_is_stopped_for_what_they_do_not_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dev_system, "X11", (GONE,))
    dev_system.provide({"DISPLAY": ":0"}, needs_qt=True)
    dev_system.provide({"DISPLAY": ":0", "WAYLAND_DISPLAY": "w"}, needs_display=True)
    with pytest.raises(Stopped):
        dev_system.provide({"DISPLAY": ":0"}, needs_display=True)


def test_a_wayland_session_needs_its_own_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dev_system, "WAYLAND", (GONE,))
    dev_system.provide({"DISPLAY": ":0"}, needs_display=True)
    with pytest.raises(Stopped):
        dev_system.provide({"WAYLAND_DISPLAY": "w"}, needs_display=True)


def test_a_python_without_venv_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dev_system, "VENV_MODULES", ("venv", "a_module_nobody_has"))
    (part,) = dev_system.missing_venv()
    assert part.package.startswith("python3.")
    assert part.package.endswith("-venv")
    with pytest.raises(Stopped):
        dev_system.provide({})


def test_an_environment_that_exists_needs_no_venv_module(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(dev_system, "VENV_MODULES", ("a_module_nobody_has",))
    python = dev_environment.command("python")
    python.parent.mkdir(parents=True)
    python.touch()
    assert dev_system.missing_venv() == []


def test_a_system_without_fonts_is_told_of_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev_system, "FONT_FOLDERS", (str(tmp_path / "nothing"),))
    dev_system.provide({}, needs_qt=True)
    assert "fonts-dejavu-core" in capsys.readouterr().out


def test_root_gets_it_installed_at_once(monkeypatch: pytest.MonkeyPatch, apt_get: Path) -> None:
    monkeypatch.setattr(dev_system, "QT", (GONE, GONE_TWIN))
    dev_system.provide({}, needs_qt=True)
    assert apt_get.read_text().splitlines() == [
        "-qq install --yes --no-install-recommends libnowhere9"
    ]


def test_empty_package_lists_are_fetched_first(apt_get: Path) -> None:
    for path in dev_system.APT_LISTS.iterdir():
        path.unlink()
    dev_system.install([GONE])
    assert apt_get.read_text().splitlines()[0] == "-qq update"


def test_stale_package_lists_are_fetched_anew(apt_get: Path, tmp_path: Path) -> None:
    (tmp_path / "failures").write_text("once\n")
    dev_system.install([GONE])
    asked = [line.split()[1] for line in apt_get.read_text().splitlines()]
    assert asked == ["install", "update", "install"]


def test_what_apt_cannot_install_stops_those_who_need_it(
    monkeypatch: pytest.MonkeyPatch, apt_get: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(dev_system, "QT", (GONE,))
    (tmp_path / "failures").write_text("always\n" * 9)
    dev_system.provide({})
    with pytest.raises(Stopped):
        dev_system.provide({}, needs_qt=True)
