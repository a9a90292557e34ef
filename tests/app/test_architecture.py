"""Import contracts: they hold, and each detects a violation."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS: list[dict[str, Any]] = CONFIGURATION["tool"]["importlinter"]["contracts"]
LINT = Path(sys.executable).with_name("lint-imports")

# For each contract the files that violate it, with the module that they must not import.
VIOLATIONS = {
    "The layers of app, highest first": [
        ("app/domain/violation.py", "app.storage"),
        ("app/index/violation.py", "app.providers"),
        ("app/helpers.py", ""),
    ],
    "app knows neither Qt nor the window": [
        ("app/cli/qt.py", "PySide6.QtCore"),
        ("app/cli/loop.py", "qasync"),
        ("app/cli/window.py", "ui.theme"),
    ],
    "DuckDB is known to storage alone": [
        ("app/memory/violation.py", "duckdb"),
        ("ui/models/violation.py", "duckdb"),
    ],
    "Vendor SDKs are known to providers alone": [
        ("app/chat/violation.py", "openai"),
        ("ui/views/violation.py", "anthropic"),
    ],
    "The layers of the window, highest first": [
        ("ui/models/violation.py", "ui.views"),
        ("ui/rendering/violation.py", "ui.widgets"),
        ("ui/dialogs.py", ""),
    ],
}
QT = {"PySide6", "shiboken6", "qasync"}
# Hosts of packages and sources; the program must not contact them.
PACKAGE_HOSTS = re.compile(
    r"(git(hub|lab)|githubusercontent|codeberg|bitbucket|pypi|pythonhosted|huggingface|npmjs"
    r"|anaconda)\.(com|org|co|io)",
    re.IGNORECASE,
)


def lint(directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT, "--no-cache"], cwd=directory, capture_output=True, text=True, timeout=100
    )


def broken_contracts(output: str) -> set[str]:
    return {line.removesuffix(" BROKEN").strip() for line in output.splitlines()
            if line.endswith(" BROKEN")}  # fmt: skip


@pytest.fixture
def tiny_tree(tmp_path: Path) -> Path:
    """A tree with the project's configuration and an empty package for every layer."""
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    for contract in CONTRACTS:
        for container in contract.get("containers", []):
            for layer in re.findall(r"\w+", " ".join(contract["layers"])):
                package = tmp_path / container / layer
                package.mkdir(parents=True, exist_ok=True)
                (package / "__init__.py").touch()
                (package.parent / "__init__.py").touch()
    return tmp_path


def test_the_layers_hold() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_tree_without_violations_keeps_every_contract(tiny_tree: Path) -> None:
    result = lint(tiny_tree)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(CONTRACTS)} kept, 0 broken" in result.stdout


@pytest.mark.parametrize("contract", VIOLATIONS)
def test_a_contract_detects_its_violations(tiny_tree: Path, contract: str) -> None:
    for path, imported in VIOLATIONS[contract]:
        (tiny_tree / path).write_text(f"import {imported}\n" if imported else "", encoding="utf-8")
    result = lint(tiny_tree)
    assert broken_contracts(result.stdout) == {contract}, result.stdout + result.stderr
    report = result.stdout.partition("Broken contracts")[2]
    for path, imported in VIOLATIONS[contract]:
        module = path.removesuffix(".py").replace("/", ".")
        assert (
            f"{module} -> {imported.removesuffix('.QtCore')}" in report
            if imported
            else module in report
        )


def test_every_contract_has_violations() -> None:
    assert {contract["name"] for contract in CONTRACTS} == set(VIOLATIONS)


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
