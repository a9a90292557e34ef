"""Missing parts of the machine: found, named, and installed where that is possible."""

import os
from contextlib import nullcontext
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


def test_a_complete_system_is_not_changed(capsys: pytest.CaptureFixture[str]) -> None:
    assert dev_system.missing_libraries((THERE, GONE)) == [GONE]
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
    assert "sudo apt-get update && sudo apt-get install libnowhere9\n" in said


@pytest.mark.parametrize(
    ("lacks", "environ", "needs", "is_stopped"),
    [("X11", {"DISPLAY": ":0"}, "needs_qt", False),
     ("X11", {"DISPLAY": ":0", "WAYLAND_DISPLAY": "w"}, "needs_display", False),
     ("X11", {"DISPLAY": ":0"}, "needs_display", True),
     ("WAYLAND", {"DISPLAY": ":0"}, "needs_display", False),
     ("WAYLAND", {"WAYLAND_DISPLAY": "w"}, "needs_display", True)],
)  # fmt: skip
def test_only_needed_libraries_are_required(
    monkeypatch: pytest.MonkeyPatch,
    lacks: str,
    environ: dict[str, str],
    needs: str,
    is_stopped: bool,
) -> None:
    monkeypatch.setattr(dev_system, lacks, (GONE,))
    with pytest.raises(Stopped) if is_stopped else nullcontext():
        dev_system.provide(environ, **{needs: True})


def test_a_python_without_venv_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dev_system, "VENV_MODULES", ("venv", "a_module_nobody_has"))
    (part,) = dev_system.missing_venv()
    assert (part.package[:8], part.package[-5:]) == ("python3.", "-venv")
    with pytest.raises(Stopped):
        dev_system.provide({})
    monkeypatch.setattr(dev_environment, "has_pip", lambda: True)
    assert dev_system.missing_venv() == []


def test_a_system_without_fonts_is_told_of_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev_system, "FONT_FOLDERS", (str(tmp_path / "nothing"),))
    dev_system.provide({}, needs_qt=True)
    assert "fonts-dejavu-core" in capsys.readouterr().out


def asked_of(apt_get: Path) -> list[str]:
    return [line.split()[1] for line in apt_get.read_text().splitlines()]


def test_root_gets_it_installed_with_current_package_lists(
    monkeypatch: pytest.MonkeyPatch, apt_get: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(dev_system, "QT", (GONE, GONE_TWIN))
    dev_system.provide({}, needs_qt=True)
    assert apt_get.read_text() == "-qq install --yes --no-install-recommends libnowhere9\n"
    (tmp_path / "failures").write_text("once\n")  # stale lists
    dev_system.install([GONE])
    assert asked_of(apt_get)[1:] == ["install", "update", "install"]
    for path in dev_system.APT_LISTS.iterdir():
        path.unlink()
    dev_system.install([GONE])
    assert asked_of(apt_get)[4] == "update"


def test_what_apt_cannot_install_stops_those_who_need_it(
    monkeypatch: pytest.MonkeyPatch, apt_get: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(dev_system, "QT", (GONE,))
    (tmp_path / "failures").write_text("always\n" * 9)
    dev_system.provide({})
    with pytest.raises(Stopped):
        dev_system.provide({}, needs_qt=True)
