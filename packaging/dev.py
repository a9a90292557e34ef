"""The developer's commands: set up, run, test, check, bench, build. Standard library only.

What a machine needs is in `dev_system.py`, `.venv` in `dev_environment.py`, what CI runs in
`dev_check.py`. Nothing here knows the program beyond the names of its entry points.
"""

import sys

import dev_python

# Any Python from 3.6 on must be able to read this far and to parse the rest, or it could not
# say what is wrong.
dev_python.require()

import argparse
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import dev_check
import dev_environment
import dev_system
from dev_environment import ROOT, Stopped, say

sys.path.insert(1, str(ROOT))  # for the display check, which the program makes too
from app.system.process import display_problem

# With one of these, tests in several processes would hide output, break the debugger or cost
# more than they save.
ONE_PROCESS = {"-s", "--capture=no", "--pdb", "--trace", "--co", "--collect-only"}
MEMORY_BYTES = 2 << 30  # several times what all tests hold at once


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command that `arguments` name and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="dev.py",
        description="Set up, run and check Commonplace. "
        "Everything is kept in .venv and build/; both can be deleted at any time.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (_, text) in COMMANDS.items():
        # What follows the sub-command belongs to the program it starts, --help included.
        commands.add_parser(name, help=text, add_help=False)
    chosen, rest = parser.parse_known_args(arguments[:1]), list(arguments[1:])
    command, _ = COMMANDS[chosen[0].command]
    try:
        return command(rest)
    except Stopped as stopped:
        say(str(stopped))
        return 1
    except subprocess.CalledProcessError as failed:
        say(f"This failed (exit code {failed.returncode}): {shlex.join(map(str, failed.cmd))}")
        return 1
    except KeyboardInterrupt:
        return 130


def setup(arguments: Sequence[str]) -> int:
    """Make `.venv` with everything in the lock, and `.venv/bin/commonplace`."""
    _refuse(arguments, "setup")
    ready = dev_environment.is_ready()
    dev_system.provide(os.environ)
    dev_environment.make()
    say(f"{'Already set up' if ready else 'Set up'}: {dev_environment.command('commonplace')}")
    return 0


def run(arguments: Sequence[str]) -> int:
    """Open the window; `arguments` go to it."""
    problem = display_problem(os.environ)
    if problem:  # before minutes of installing
        raise Stopped(
            f"The window cannot open: {problem}. Start this in a desktop session (over SSH: "
            "ssh -X). The command line needs no display: run 'python3 packaging/dev.py setup', "
            "then '.venv/bin/commonplace --help'."
        )
    dev_system.provide(os.environ, needs_qt=True, needs_display=True)
    dev_environment.make()
    # -P: a folder named ui where the user happens to stand is not ours.
    return _become(["-P", "-m", "ui.main", *arguments])


def test(arguments: Sequence[str]) -> int:
    """Run the tests offscreen, in several processes unless `arguments` speak against it."""
    dev_system.provide(os.environ, needs_qt=True)
    dev_environment.make()
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    # Tests start Python some hundred times: what it has compiled is kept, and not in the tree.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / "build" / "pycache"))
    memory = memory_folder()
    if memory is not None:
        os.environ.setdefault("TMPDIR", str(memory))
    os.chdir(ROOT)
    return _become(["-m", "pytest", *test_processes(arguments), *arguments])


def check(arguments: Sequence[str]) -> int:
    """Run all that CI runs, in order, to the end; 1 if anything failed."""
    _refuse(arguments, "check")
    dev_system.provide(os.environ, needs_qt=True)
    dev_environment.make()
    return dev_check.run_all()


def bench(arguments: Sequence[str]) -> int:
    """Run one measurement of tests/bench; the arguments after its name go to it."""
    names = sorted(path.stem for path in (ROOT / "tests" / "bench").glob("[a-z]*.py"))
    if not arguments or arguments[0] not in names:
        raise Stopped(f"Name a benchmark: {', '.join(names) or 'there is none yet'}.")
    dev_system.provide(os.environ, needs_qt=True)
    dev_environment.make()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.chdir(ROOT)
    return _become(["-m", f"tests.bench.{arguments[0]}", *arguments[1:]])


def build(arguments: Sequence[str]) -> int:
    """Make a wheel and a source archive in build/dist with what the lock holds, offline."""
    _refuse(arguments, "build")
    dev_system.provide(os.environ)
    dev_environment.make()
    target = ROOT / "build" / "dist"
    between = (ROOT / "build" / "lib", ROOT / "commonplace.egg-info")
    for leftover in (target, *between):  # from an older tree: setuptools would ship its modules
        shutil.rmtree(leftover, ignore_errors=True)
    python = str(dev_environment.command("python"))
    pip_wheel = ["pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(target), "."]
    backend = "import setuptools.build_meta as backend; backend.build_sdist('build/dist')"
    for step in ([python, "-m", *pip_wheel], [python, "-c", backend]):
        subprocess.run(step, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    for leftover in between:
        shutil.rmtree(leftover, ignore_errors=True)
    for made in sorted(target.iterdir()):
        say(f"{made.relative_to(ROOT)}  {made.stat().st_size / 1e6:.1f} MB")
    return 0


def test_processes(arguments: Sequence[str]) -> list[str]:
    """Return pytest's options for parallel runs: several processes for more than a file of tests.

    One more than the cores we may use, because tests wait for a quarter of their time (measured: no
    thread of a process or its children could run), and at most four, because a container may tell
    of cores that it does not give.
    """
    for argument in arguments:
        one_file = "::" in argument or argument.endswith(".py")
        if one_file or argument in ONE_PROCESS or argument.startswith(("-n", "--numprocesses")):
            return []
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    return ["-n", str(min(4, cores + 1)), "--dist", "worksteal"]


def memory_folder(folder: Path = Path("/dev/shm")) -> Path | None:
    """Return a folder in memory with room for the tests' files, or None.

    A killed process loses no byte that it wrote to either, so what the tests prove of kills, of
    order and of damage holds on a disk too; what a power cut does, neither can show. Opening and
    writing a library on a busy disk mostly waits for fsync.
    """
    try:
        free_bytes = shutil.disk_usage(folder).free
    except OSError:
        return None
    return folder if free_bytes >= MEMORY_BYTES and os.access(folder, os.W_OK) else None


def _become(arguments: Sequence[str]) -> int:
    """Go on as the environment's Python, so that signals and the exit code are its own."""
    interpreter = str(dev_environment.command("python"))
    sys.stdout.flush()
    if os.name != "nt":  # exec there returns to the shell at once
        os.execv(interpreter, [interpreter, *arguments])
    return subprocess.run([interpreter, *arguments]).returncode


def _refuse(arguments: Sequence[str], command: str) -> None:
    if arguments:
        raise Stopped(f"{command} takes no arguments; '{arguments[0]}' was given.")


COMMANDS = {
    "setup": (setup, "make .venv with everything needed, and .venv/bin/commonplace"),
    "run": (run, "open the window; arguments such as --data-dir DIR go to it"),
    "test": (test, "run the tests; arguments go to pytest"),
    "check": (check, "run everything CI runs"),
    "bench": (bench, "run one measurement of tests/bench, by name"),
    "build": (build, "make a wheel and a source archive in build/dist"),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
