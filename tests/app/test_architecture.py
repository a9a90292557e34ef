"""The modules: what importing loads, which hosts they name, their lists, their number and docstrings."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

QT = {"PySide6", "shiboken6", "qasync"}
# Hosts of packages and sources; the program must not contact them.
PACKAGE_HOSTS = re.compile(
    r"(git(hub|lab)|githubusercontent|codeberg|bitbucket|pypi|pythonhosted|huggingface|npmjs"
    r"|anaconda)\.(com|org|co|io)",
    re.IGNORECASE,
)

# The first column of a list of modules.
LISTED = re.compile(r"^(\w+(?:, \w+)*)(?:/|\.py)?  +\S", re.MULTILINE)

UNCLEAR = re.compile(r"(?:What|Whether|How|Which|Where|When|Why|Who|This|It) ")


def import_all(package: str, *flags: str) -> set[str]:
    """Import every module of `package` in a new process; return the loaded modules."""
    program = (
        f"import importlib, pkgutil, sys, {package} as package\n"
        "for found in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "    if not found.name.endswith('__main__'): importlib.import_module(found.name)\n"
        "print(*sys.modules)\n"
    )
    result = subprocess.run(
        [sys.executable, *flags, "-W", "error", "-c", program],
        cwd=ROOT, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


def test_importing_all_of_app_loads_no_qt() -> None:
    loaded = import_all("app")
    assert "app.storage.engine.database" in loaded
    assert not QT & {name.partition(".")[0] for name in loaded}


def test_the_domain_needs_only_the_standard_library() -> None:
    assert "app.domain.ports" in import_all("app.domain", "-S")  # -S: no site-packages


def test_the_program_names_no_host_of_packages() -> None:
    sources = [path for part in ("app", "ui") for path in (ROOT / part).rglob("*.py")]
    assert sources
    named = {
        str(path.relative_to(ROOT)): found[0]
        for path in sources
        if (found := PACKAGE_HOSTS.search(path.read_text(encoding="utf-8")))
    }
    assert named == {}


@pytest.mark.parametrize(
    "package",
    [
        pytest.param(path.parent, id=path.parent.relative_to(ROOT).as_posix())
        for part in ("app", "ui")
        for path in sorted((ROOT / part).rglob("__init__.py"))
        if LISTED.search(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")
    ],
)
def test_a_package_that_lists_its_modules_lists_them_all(package: Path) -> None:
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""
    first = {name for line in LISTED.findall(text) for name in re.findall(r"\w+", line)}
    modules = {path.stem for path in package.glob("*.py")} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }
    assert first <= modules
    assert modules - {"__init__", "__main__"} <= first | set(re.findall(r"`(\w+)`", text))


def test_folders_are_small_and_docstrings_of_modules_begin_with_what_is_in_them() -> None:
    """Some twenty files at most; "What ...", "Whether ..." are no names of contents."""
    paths = [
        path for part in ("app", "ui", "tests", "packaging") for path in (ROOT / part).rglob("*.py")
    ]
    sizes = Counter(
        path.parent for path in paths if path.relative_to(ROOT).parts[0] in ("app", "ui")
    )
    assert {folder: size for folder, size in sizes.items() if size > 22} == {}
    texts = {path: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) for path in paths}
    assert [path for path, text in texts.items() if text and UNCLEAR.match(text)] == []
