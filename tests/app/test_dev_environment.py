"""`.venv` is made once, and again when the lock, the project or the place has changed."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

import dev_environment
from dev_environment import Stopped

ROOT = Path(__file__).resolve().parents[2]


class Installer:
    """Stands for pip and venv: writes down what was asked, and leaves what they would leave.

    Attributes:
        done: "venv", "lock" and "project", in order.
        works: Whether packages can be fetched.
    """

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
    monkeypatch.setattr(dev_environment, "_has_pip", dev_environment.command("python").exists)
    (tmp_path / "requirements.lock").write_text("one==1\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    return fake


def test_the_first_call_does_everything(installer: Installer) -> None:
    assert not dev_environment.is_ready()
    dev_environment.make()
    assert installer.done == ["venv", "lock", "project"]
    assert dev_environment.is_ready()


def test_the_second_call_does_nothing(installer: Installer) -> None:
    dev_environment.make()
    installer.done.clear()
    dev_environment.make()
    assert installer.done == []


def test_a_new_lock_is_installed(installer: Installer) -> None:
    dev_environment.make()
    installer.done.clear()
    dev_environment.LOCK.write_text("one==2\n")
    dev_environment.make()
    assert installer.done == ["lock", "project"]


def test_a_changed_project_leaves_the_packages_alone(installer: Installer) -> None:
    dev_environment.make()
    installer.done.clear()
    dev_environment.PROJECT.write_text("[project]\nname = 'other'\n")
    dev_environment.make()
    assert installer.done == ["project"]


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


def test_a_lost_launcher_is_brought_back(installer: Installer) -> None:
    dev_environment.make()
    dev_environment.command("commonplace").unlink()
    installer.done.clear()
    dev_environment.make()
    assert installer.done == ["project"]


def test_a_failed_installation_goes_on_where_it_was(installer: Installer) -> None:
    installer.works = False
    with pytest.raises(Stopped):
        dev_environment.make()
    assert not dev_environment.is_ready()
    installer.works = True
    dev_environment.make()
    assert dev_environment.is_ready()
    assert installer.done == ["venv", "lock", "project"]


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
