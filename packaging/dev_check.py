"""Everything CI runs, in order and to the end: one heading a step, one summary.

Each step is a function that prints what it does and returns whether it went well. What the steps
are configured to demand stands in pyproject.toml.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import dev_account
from dev_environment import ROOT, command, say

COVERAGE = ROOT / "build" / "coverage"
SAMPLES = ROOT / "resources" / "samples"
README_TEST = re.compile(r"^python3 packaging/dev\.py test\b.*$", re.MULTILINE)
STEP_LIMIT_S = 1800
SMOKE_LIMIT_S = 120


def run_all() -> int:
    """Run every step, print a summary, and return 1 if one failed, else 0."""
    outcomes: list[tuple[str, bool, float]] = []
    with ExitStack() as beside:
        for _, step in STEPS:
            if isinstance(step, Beside):
                beside.enter_context(step)
        for title, step in STEPS:
            say(f"\n=== {title}")
            started = time.monotonic()
            try:
                good = step()
            except subprocess.TimeoutExpired as late:
                say(f"No end after {late.timeout:.0f} s: {shlex.join(late.cmd)}")
                good = False
            outcomes.append((title, good, time.monotonic() - started))
    say("\n=== Summary")
    for title, good, seconds in outcomes:
        say(f"{'ok  ' if good else 'FAIL'}  {title} ({seconds:.0f} s)")
    return 0 if all(good for _, good, _ in outcomes) else 1


class Beside:
    """A command that runs while other steps do; what it prints is kept until its turn comes.

    The processes of the tests leave a core idle now and then, mypy uses one and prints at its end.
    """

    def __init__(self, *arguments: str) -> None:
        self._arguments = [_python(), "-m", *arguments]

    def __enter__(self) -> None:
        self._output = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            self._arguments, cwd=ROOT, stdout=self._output, stderr=subprocess.STDOUT
        )

    def __call__(self) -> bool:
        """Wait for its end, print what it said, and return whether it went well."""
        say(f"$ {shlex.join(self._arguments)}  (beside the steps above)")
        self._process.wait(STEP_LIMIT_S)
        self._output.seek(0)
        say(self._output.read().decode(errors="replace").rstrip())
        return self._process.returncode == 0

    def __exit__(self, *_error: object) -> None:
        if self._process.poll() is None:  # interrupted, or it took too long
            self._process.kill()
            self._process.wait()
        self._output.close()


def test_command_of_readme() -> str | None:
    """Return the line of README.md that runs the tests, or None if it shows none or several."""
    found = set(README_TEST.findall((ROOT / "README.md").read_text(encoding="utf-8")))
    return found.pop() if len(found) == 1 else None


def _tests() -> bool:
    """Run the README's command as it stands, its workers measured."""
    shown = test_command_of_readme()
    if shown is None:
        say("README.md must show one command that starts 'python3 packaging/dev.py test'.")
        return False
    shutil.rmtree(COVERAGE, ignore_errors=True)
    COVERAGE.mkdir(parents=True)
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return _succeeds(shlex.split(shown), os.environ | _measured(ROOT))
    # Root takes other branches where permissions are concerned.
    few = ["-m", "root", "-n0"]  # another process would only collect all the others once more
    as_root = _succeeds([*shlex.split(shown), *few], os.environ | _measured(ROOT))
    as_user, tree = dev_account.run(shlex.split(shown), _measured("{tree}"), STEP_LIMIT_S)
    for path in (tree / "build" / "coverage").glob("data*"):
        shutil.copy(path, COVERAGE)
    return as_root and as_user


def _measured(tree: Path | str) -> dict[str, str]:
    """Return what makes coverage measure every Python of the environment in `tree`.

    Its .pth file reads the first variable in xdist's workers.
    A test that fails is repeated once; pytest's summary names it as RERUN.
    """
    return {
        "PYTEST_ADDOPTS": "--reruns 1",
        "COVERAGE_PROCESS_START": f"{tree}/pyproject.toml",
        "COVERAGE_FILE": f"{tree}/build/coverage/data",
    }


def _coverage() -> bool:
    """Put the processes' measurements together and hold them against the floor."""
    environ = os.environ | {"COVERAGE_FILE": str(COVERAGE / "data")}
    combined = _succeeds([_python(), "-m", "coverage", "combine", "--quiet"], environ)
    return combined and _succeeds([_python(), "-m", "coverage", "report"], environ)


def _window() -> bool:
    """Open the window on an empty data directory, wait until it is ready, and close it."""
    with _new_user() as environ:
        directory = str(Path(environ["HOME"]) / "data")
        arguments = ["-m", "ui.main", "--smoke", "--data-dir", directory]
        return _succeeds([_python(), *arguments], environ, SMOKE_LIMIT_S)


def _command_line() -> bool:
    """Import the sample, find one of its words again, and ask for the status, all as JSON."""
    sample = min(path for path in SAMPLES.iterdir() if path.suffix in {".json", ".zip"})
    with _new_user() as environ:
        imported = _answer(["import", str(sample)], environ)
        shown = _answer(["show", "1"], environ)
        messages = shown["turns"][0]["messages"] if shown else []
        words = re.findall(r"[^\W\d_]+", " ".join(message["text"] for message in messages))
        found = _answer(["search", max(words, key=len, default="nothing")], environ)
        status = _answer(["status"], environ)
    if not (imported and found and status):
        return False
    if imported["messages"] and found["results"] and status["workers"]:
        return True
    say("Every command answered, but one of them found nothing.")
    return False


def _answer(arguments: Sequence[str], environ: dict[str, str]) -> dict[str, Any] | None:
    """Return the one JSON document that the command line prints, or None, having said why."""
    program = [str(command("commonplace")), "--data-dir", str(Path(environ["HOME"]) / "data")]
    say(f"$ commonplace {shlex.join(arguments)} --json")
    ended = subprocess.run(
        [*program, *arguments, "--json"],
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
        timeout=SMOKE_LIMIT_S,
    )
    try:
        answer = json.loads(ended.stdout)
    except ValueError:
        answer = None
    if ended.returncode or not isinstance(answer, dict):
        say(f"Exit code {ended.returncode}, and on stdout: {ended.stdout[:2000]!r}")
        return None
    return answer


@contextmanager
def _new_user() -> Iterator[dict[str, str]]:
    """Yield the environment of someone who starts the program for the first time, offscreen."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    with tempfile.TemporaryDirectory(prefix="commonplace-smoke-") as home:
        yield kept | {
            "HOME": home,
            "QT_QPA_PLATFORM": "offscreen",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
            "PYTHONFAULTHANDLER": "1",
        }


def _succeeds(
    arguments: Sequence[str], environ: Mapping[str, str] = os.environ, limit_s: float = STEP_LIMIT_S
) -> bool:
    say(f"$ {shlex.join(arguments)}")
    ended = subprocess.run(arguments, cwd=ROOT, env=environ, timeout=limit_s)
    return ended.returncode == 0


def _tool(*arguments: str) -> Callable[[], bool]:
    return lambda: _succeeds([_python(), "-m", *arguments])


def _python() -> str:
    return str(command("python"))


STEPS: tuple[tuple[str, Callable[[], bool]], ...] = (
    ("Format", _tool("ruff", "format", "--check")),
    ("Lint", _tool("ruff", "check")),
    ("Layers", lambda: _succeeds([str(command("lint-imports"))])),
    ("Tests, with the README's command", _tests),
    ("Types", Beside("mypy")),
    ("Dead code", Beside("vulture")),
    ("Coverage", _coverage),
    ("The window starts", _window),
    ("The command line answers", _command_line),
)
