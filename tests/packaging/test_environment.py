"""`.venv` is made once, and again when the lock, the project or the place has changed."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import dev_environment
import dev_system
from dev_environment import Stopped

ROOT = Path(__file__).resolve().parents[2]


class Installer:
    """A fake pip and venv: leaves the files they would leave; `done` lists its steps in order."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.works = True

    def pip(self, *arguments: str) -> None:
        if not self.works:
            raise Stopped("no network")
        self.done.append("project" if "--editable" in arguments else "lock")
        dev_environment.command("commonplace").touch()

    def venv(self) -> None:
        self.done.append("venv")
        python = dev_environment.command("python")
        python.parent.mkdir(parents=True, exist_ok=True)
        if not python.exists():
            python.symlink_to(sys.executable)


@pytest.fixture
def installer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Installer:
    fake = Installer()
    monkeypatch.setattr(dev_environment, "_pip", fake.pip)
    monkeypatch.setattr(dev_environment, "_create", fake.venv)
    for name, value in {
        "ROOT": tmp_path,
        "VENV": tmp_path / ".venv",
        "STAMP": tmp_path / ".venv" / "installed",
        "LOCK": tmp_path / "requirements.lock",
        "PROJECT": tmp_path / "pyproject.toml",
    }.items():
        monkeypatch.setattr(dev_environment, name, value)
    monkeypatch.setattr(dev_environment, "has_pip", dev_environment.command("python").exists)
    (tmp_path / "requirements.lock").write_text("one==1\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    return fake


def test_the_first_call_does_everything_and_the_second_nothing(installer: Installer) -> None:
    assert not dev_environment.is_ready()
    dev_environment.make()
    assert installer.done == ["venv", "lock", "project"]
    assert dev_environment.is_ready()
    dev_environment.make()
    assert installer.done == ["venv", "lock", "project"]


@pytest.mark.parametrize(
    ("change", "done"),
    [(lambda: dev_environment.LOCK.write_text("one==2\n"), ["lock", "project"]),
     (lambda: dev_environment.PROJECT.write_text("[project]\nname = 'other'\n"), ["project"]),
     (lambda: dev_environment.command("commonplace").unlink(), ["project"])],
    ids=["new lock", "changed project", "lost launcher"],
)  # fmt: skip
def test_only_what_changed_is_installed_again(
    installer: Installer, change: Callable[[], object], done: list[str]
) -> None:
    dev_environment.make()
    installer.done.clear()
    change()
    dev_environment.make()
    assert installer.done == done


def test_a_moved_tree_gets_a_new_environment(
    installer: Installer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dev_environment.make()
    installer.done.clear()
    moved = dev_environment.VENV.rename(tmp_path / "moved")
    monkeypatch.setattr(dev_environment, "VENV", moved)
    monkeypatch.setattr(dev_environment, "STAMP", moved / "installed")
    dev_environment.make()
    assert installer.done == ["venv", "lock", "project"]


def test_a_failed_installation_is_continued(installer: Installer) -> None:
    installer.works = False
    with pytest.raises(Stopped):
        dev_environment.make()
    assert not dev_environment.is_ready()
    installer.works = True
    dev_environment.make()
    assert dev_environment.is_ready()
    assert installer.done == ["venv", "lock", "project"]


def test_a_python_that_cannot_create_environments_leaves_none_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    venv, program = tmp_path / ".venv", tmp_path / "python3"
    program.write_text(  # like a bare Debian's: a Python without pip, and an error
        f"#!/bin/sh\nmkdir -p {venv}/bin\nln -s /bin/false {venv}/bin/python\nexit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(dev_environment, "VENV", venv)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(Stopped, match="python3-venv"):
        dev_environment.make()
    assert not venv.exists()
    subprocess.run([program, "-m", "venv"])
    monkeypatch.setattr(dev_system, "VENV_MODULES", ("a_module_nobody_has",))
    (part,) = dev_system.missing_venv()
    assert part.package.endswith("-venv")


def test_progress_is_printed_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pip = tmp_path / "pip"
    pip.write_text(
        "#!/bin/sh\n"
        "echo 'Ignoring pywin32: markers do not match your environment'\n"
        "echo 'Collecting one==1'\necho 'Collecting two==1'\n"
        "echo 'Installing collected packages: one, two'\nexit 3\n"
    )
    pip.chmod(0o755)
    lock = tmp_path / "requirements.lock"
    lock.write_text("one==1\ntwo==1\npywin32==1 ; sys_platform == 'win32'\n")
    monkeypatch.setattr(dev_environment, "LOCK", lock)
    monkeypatch.setattr(dev_environment, "PROGRESS_EVERY_S", 0.0)
    assert dev_environment._with_progress([str(pip)]) == 3
    printed = capsys.readouterr().out
    assert "1 of 2 packages" in printed
    assert "2 of 2 packages" in printed


def test_everything_the_project_names_is_locked_with_hashes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = [*project["project"]["dependencies"], *project["dependency-groups"]["check"]]
    lock = (ROOT / "packaging" / "requirements.lock").read_text(encoding="utf-8")
    locked = re.findall(r"^([\w.-]+)==\S+.*?\\\n +--hash=sha256:", lock, re.MULTILINE)
    assert len(locked) == len(re.findall(r"^\w", lock, re.MULTILINE))
    assert {_normal(re.match(r"[\w.-]+", name)) for name in named} <= set(locked)


def _normal(name: re.Match[str] | None) -> str:
    assert name
    return re.sub(r"[-_.]+", "-", name[0]).lower()  # PEP 503
