"""`.venv`: made, filled from the lock, and made again when the lock, the tree or Python moved.

What was installed is written to a stamp, so that a second call costs two hashes. Nothing here
knows about system libraries (`dev_system.py`).
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "packaging" / "requirements.lock"
PROJECT = ROOT / "pyproject.toml"
STAMP = VENV / "installed"


class Stopped(Exception):
    """What the user has to know before this can go on; its text says what to do."""


def say(text: str) -> None:
    """Print a line at once, also into a pipe."""
    print(text, flush=True)


def command(name: str) -> Path:
    """Return the path of a program inside the environment, installed or not."""
    if os.name == "nt":
        return VENV / "Scripts" / f"{name}.exe"
    return VENV / "bin" / name


def is_ready() -> bool:
    """Return whether all that the lock and the project name is installed."""
    programs = (command("python"), command("commonplace"))
    return _installed() == _wanted() and all(program.exists() for program in programs)


def make() -> None:
    """Leave a complete environment behind; does nothing when there is one.

    Raises `Stopped` when packages cannot be fetched.
    """
    if is_ready():
        return
    place, lock, project = _wanted()
    installed = _installed()
    if installed[:1] != [place] or not _has_pip():
        _create()
        installed = []
    # Written before and after, so that an installation cut short goes on where it was.
    STAMP.write_text(place, encoding="utf-8")
    if installed[1:2] != [lock]:
        _install_lock()
    say("Installing the project itself (editable)")
    _pip("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    STAMP.write_text(f"{place}\n{lock}\n{project}", encoding="utf-8")


def _create() -> None:
    # Scripts in it carry absolute paths: an environment that was moved is made anew.
    if VENV.exists():
        say(f"Making {VENV} anew: it is incomplete, was moved, or its Python is gone")
        shutil.rmtree(VENV)
    else:
        say(f"Making {VENV} with Python {sys.version.partition(' ')[0]}")
    subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)


def _install_lock() -> None:
    count = sum("==" in line for line in LOCK.read_text(encoding="utf-8").splitlines())
    say(f"Installing {count} packages from {LOCK.relative_to(ROOT)}, hashes checked; the first "
        "time fetches some 200 MB")  # fmt: skip
    started = time.monotonic()
    # The lock is complete: resolving it once more would only cost time.
    _pip("--no-deps", "--require-hashes", "--requirement", str(LOCK))
    say(f"Installed in {time.monotonic() - started:.0f} s")


def _pip(*arguments: str) -> None:
    quiet = [] if sys.stdout.isatty() else ["--quiet"]
    options = ["--disable-pip-version-check", "--no-input", *quiet]
    install = [str(command("python")), "-m", "pip", "install", *options, *arguments]
    if subprocess.run(install, cwd=ROOT).returncode:
        raise Stopped(
            "Packages could not be installed; pip says why above. When the network was down, "
            "start this again: what was fetched is kept."
        )


def _has_pip() -> bool:
    python = command("python")
    return python.exists() and not subprocess.call([str(python), "-c", "import pip"])


def _installed() -> list[str]:
    try:
        return STAMP.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def _wanted() -> list[str]:
    # Where the environment stands, what is locked, what the project says of itself.
    return [str(VENV), *(hashlib.sha256(path.read_bytes()).hexdigest() for path in (LOCK, PROJECT))]
