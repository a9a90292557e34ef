"""Test runs as an ordinary user: an account, its own copy of the tree, its own environment.

Root passes permission checks that everyone else fails. CI runs as root, so the tests run in an
account that is created for them, in a copy that the account owns. Linux only.
"""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import dev_system
from dev_environment import ROOT, Stopped, say

NAME = "commonplace-tests"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
PYTHONS = (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3")
SUPPORTED = "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))"


def run(command: Sequence[str], environ: Mapping[str, str], limit_s: float) -> tuple[bool, Path]:
    """Run `python3 ...` in the account's copy of the tree; return its success and the copy's path.

    `environ` is added to the account's own, with `{tree}` replaced by that path. Raises `Stopped`
    without a Python that the account can run, `TimeoutExpired` after `limit_s`.
    """
    account = _account()
    tree = Path(account.pw_dir) / "commonplace"
    _copy(tree, account)
    python = _python(account)
    say(f"$ {' '.join(command)}  (as the user {NAME}, in {tree})")
    own = {"HOME": account.pw_dir, "USER": NAME, "LOGNAME": NAME, "PATH": SYSTEM_PATH}
    given = {key: value.format(tree=tree) for key, value in environ.items()}
    kept = {
        key: value for key, value in os.environ.items() if key.startswith(("PIP_", "LANG", "CI"))
    }
    ended = subprocess.run(
        [python, *command[1:]],
        cwd=tree,
        env=kept | own | given,
        timeout=limit_s,
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=[],
    )
    return ended.returncode == 0, tree


def _account() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(NAME)
    except KeyError:
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", NAME], check=True)
        return pwd.getpwnam(NAME)


def _copy(tree: Path, account: pwd.struct_passwd) -> None:
    """Copy the files that git tracks or would track; keep the environment of an earlier run."""
    tree.mkdir(exist_ok=True)
    for entry in tree.iterdir():
        if entry.name != ".venv":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        source, target = ROOT / name, tree / name
        if name and source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    subprocess.run(["chown", "-R", f"{account.pw_uid}:{account.pw_gid}", str(tree)], check=True)


def _python(account: pwd.struct_passwd) -> str:
    """Return a supported Python that the account can run and create an environment with."""
    found = [each for each in PYTHONS if _runs(each, SUPPORTED, account)]
    for each in found:
        if _runs(each, "import ensurepip", account):
            return each
    if found and dev_system.install([dev_system.Part("venv", "python3-venv")]):
        return found[0]
    raise Stopped(
        f"The user {NAME} can run no Python 3.11 to 3.13 with venv. Install the system packages "
        "python3 and python3-venv."
    )


def _runs(python: str, code: str, account: pwd.struct_passwd) -> bool:
    try:
        return not subprocess.call(
            [python, "-c", code],
            cwd="/",
            stderr=subprocess.DEVNULL,
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
        )
    except OSError:
        return False
