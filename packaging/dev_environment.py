"""The virtual environment `.venv`: created, filled from the lock, and created again when needed.

A stamp file records what was installed, so a second call costs two hashes. System libraries are
the subject of `dev_system.py`.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "packaging" / "requirements.lock"
PROJECT = ROOT / "pyproject.toml"
STAMP = VENV / "installed"
PROGRESS_EVERY_S = 5.0


class Stopped(Exception):
    """A problem that only the user can solve; its text says how."""


def say(text: str) -> None:
    """Print a line and flush it."""
    print(text, flush=True)


def command(name: str) -> Path:
    """Return the path of a program inside the environment, installed or not."""
    if os.name == "nt":
        return VENV / "Scripts" / f"{name}.exe"
    return VENV / "bin" / name


def is_ready() -> bool:
    """Return whether everything in the lock and the project file is installed."""
    programs = (command("python"), command("commonplace"))
    return _installed() == _wanted() and all(program.exists() for program in programs)


def make() -> None:
    """Create or complete the environment; do nothing when it is complete.

    Raises `Stopped` when it cannot be created or packages cannot be downloaded.
    """
    if is_ready():
        return
    place, lock, project = _wanted()
    installed = _installed()
    if installed[:1] != [place] or not has_pip():
        _create()
        installed = []
    # Written before and after, so that an interrupted installation is continued.
    STAMP.write_text(place, encoding="utf-8")
    if installed[1:2] != [lock]:
        _install_lock()
    say("Installing the project itself (editable)")
    _pip("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    STAMP.write_text(f"{place}\n{lock}\n{project}", encoding="utf-8")


def has_pip() -> bool:
    """Return whether the environment has a Python that can run pip.

    `python3 -m venv` leaves one that cannot where ensurepip is missing, as on a bare Debian.
    """
    python = command("python")
    silent = subprocess.DEVNULL
    return python.exists() and not subprocess.call([str(python), "-c", "import pip"], stderr=silent)


def _create() -> None:
    # Scripts in it carry absolute paths, so an environment that was moved is created again.
    if VENV.exists():
        say(f"Creating {VENV} again: it is incomplete, was moved, or its Python is gone")
        shutil.rmtree(VENV)
    else:
        say(f"Creating {VENV} with Python {sys.version.partition(' ')[0]}")
    if subprocess.run([sys.executable, "-m", "venv", str(VENV)]).returncode or not has_pip():
        shutil.rmtree(VENV, ignore_errors=True)
        raise Stopped(
            f"No virtual environment could be created with {sys.executable}; the reason is above. "
            "On Debian or Ubuntu, the package python3-venv is needed."
        )


def _install_lock() -> None:
    say(
        f"Installing the packages of {LOCK.relative_to(ROOT)}, hashes checked. The first time this "
        "downloads some 200 MB."
    )
    started = time.monotonic()
    # The lock is complete: resolving it once more would only cost time.
    _pip("--no-deps", "--require-hashes", "--requirement", str(LOCK))
    say(f"Installed in {time.monotonic() - started:.0f} s")


def _pip(*arguments: str) -> None:
    install = [str(command("python")), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    install += ["install", *arguments]
    if sys.stdout.isatty():
        failed = subprocess.run(install, cwd=ROOT).returncode
    else:
        failed = _with_progress(install)
    if failed:
        raise Stopped(
            "Packages could not be installed; pip says why above. If the network was down, run "
            "this again: downloaded packages are kept."
        )


def _with_progress(install: Sequence[str]) -> int:
    """Run pip without a terminal, with a line of progress every few seconds; return its exit code."""
    total = sum("==" in line for line in LOCK.read_text(encoding="utf-8").splitlines())
    started = shown = time.monotonic()
    collected = 0
    with subprocess.Popen(install, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            total -= line.startswith("Ignoring ")  # a package for another system
            if line.startswith("Collecting "):
                collected += 1
                if time.monotonic() - shown >= PROGRESS_EVERY_S:
                    shown = time.monotonic()
                    say(f"  {collected} of {total} packages downloaded ({shown - started:.0f} s)")
            elif collected and line.startswith("Installing collected packages"):
                say("  unpacking")
    return process.returncode


def _installed() -> list[str]:
    try:
        return STAMP.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def _wanted() -> list[str]:
    # The path of the environment, the lock, the project file.
    return [str(VENV), *(hashlib.sha256(path.read_bytes()).hexdigest() for path in (LOCK, PROJECT))]
