"""Power of the tests: the share of small faults in the product that some test detects.

Run: .venv/bin/python -m tests.bench.mutants [--count 100] [--seed 1] [--folder app --folder ui]

One line in `count` is drawn from all executable lines (`seed` makes the draw repeatable), one
expression or statement on it is changed, and the tests that reach the line run in a copy of the
tree, the most specific first, until one fails or `limit-s` of their time is used. Which tests reach
a line is measured first by one run of the whole suite with coverage contexts; `--contexts FILE`
reuses such a measurement. A line that no test reaches counts as not detected.
Prints JSON: the share detected, and every surviving mutant with its place and change.
"""

import ast
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from coverage.numbits import numbits_to_nums

from tests.bench.shared.measuring import ROOT, options, print_json

_SUITE_LIMIT_S = 3_600
_WHOLE_FILE = 0  # lines that run on import have no context: the tests of their file stand in
_AT_ONCE = 12  # test functions in one run of pytest
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
}  # fmt: skip
_STATEMENTS = (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed line; `tests` is how many test functions reach it."""

    path: str
    line: int
    before: str
    after: str
    tests: int
    detected: bool


class _Change(ast.NodeTransformer):
    """Applies the `wanted`-th possible change on a line; counts them in `seen`."""

    def __init__(self, line: int, wanted: int | None) -> None:
        self.seen = 0
        self._line, self._wanted = line, wanted

    def _takes(self, node: ast.AST) -> bool:
        if getattr(node, "lineno", None) != self._line:
            return False
        self.seen += 1
        return self.seen - 1 == self._wanted

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.JoinedStr | ast.arg) or _is_annotation_only(node):
            return node
        if isinstance(node, ast.AnnAssign):
            node.value = node.value and cast(ast.expr, self.visit(node.value))
            return node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            returns, node.returns = node.returns, None
            self.generic_visit(node)
            node.returns = returns
            return node
        mutated = self._mutated(node)
        return self.generic_visit(node) if mutated is None else mutated

    def _mutated(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Compare) and self._takes(node):
            node.ops = [_COMPARISONS[type(node.ops[0])](), *node.ops[1:]]
            return node
        if isinstance(node, ast.BoolOp) and self._takes(node):
            node.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and self._takes(node):
            return node.operand
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS and self._takes(node):
            node.op = _OPERATORS[type(node.op)]()
            return node
        if isinstance(node, ast.IfExp) and self._takes(node):
            node.body, node.orelse = node.orelse, node.body
            return node
        if isinstance(node, ast.Constant) and self._takes(node):
            return ast.copy_location(ast.Constant(_other(node.value)), node)
        if isinstance(node, ast.If | ast.While) and self._takes(node):
            node.test = ast.UnaryOp(ast.Not(), node.test)
            return node
        if isinstance(node, ast.Return) and node.value is not None and self._takes(node):
            node.value = ast.Constant(None)
            return node
        if isinstance(node, _STATEMENTS) and not _is_docstring(node) and self._takes(node):
            return ast.copy_location(ast.Pass(), node)
        return None


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_annotation_only(node: ast.AST) -> bool:
    return _is_docstring(node) or (isinstance(node, ast.AnnAssign) and node.value is None)


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value + "x" if value else "x"
    return 0 if value is None else None


def main() -> None:
    given = options(__doc__, count=100, seed=1, folder=[str], limit_s=60.0, contexts=Path)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder, "tree")
        ignored = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache")
        shutil.copytree(ROOT, tree, ignore=ignored)
        reached = _reached(given.contexts or _measured(Path(folder)))
        drawn = random.Random(given.seed)
        folders = given.folder or ["app", "ui"]
        mutants = []
        for path, line in _draw(folders, given.count, drawn):
            tests = reached.get((path, line)) or reached.get((path, _WHOLE_FILE), [])
            mutant = _try(tree, path, line, tests, drawn, given.limit_s)
            mutants.append(mutant)
            sys.stderr.write(
                f"{len(mutants)} {'ok  ' if mutant.detected else 'MISS'} {path}:{line}\n"
            )
    detected = sum(mutant.detected for mutant in mutants)
    missed = [asdict(mutant) for mutant in mutants if not mutant.detected]
    result = {"seed": given.seed, "mutants": len(mutants), "detected": detected, "missed": missed}
    print_json(result)


def _measured(folder: Path) -> Path:
    """Run the suite with a context for each test function; return the combined coverage file."""
    settings = folder / "coveragerc"
    settings.write_text(
        "[run]\nsource_pkgs = app,ui\nparallel = true\nconcurrency = thread\nsigterm = true\n"
        "dynamic_context = test_function\n"
    )
    environ = os.environ | {
        "COVERAGE_PROCESS_START": str(settings),
        "COVERAGE_FILE": str(folder / "data"),
        "QT_QPA_PLATFORM": "offscreen",
    }
    suite = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal"]
    subprocess.run(suite, cwd=ROOT, env=environ, timeout=_SUITE_LIMIT_S, stdout=subprocess.DEVNULL)
    combine = [sys.executable, "-m", "coverage", "combine", "-q", f"--rcfile={settings}"]
    subprocess.run(combine, cwd=ROOT, env=environ, check=True)
    return folder / "data"


def _reached(file: Path) -> dict[tuple[str, int], list[str]]:
    """Return for (path, line) the test functions that reach it, the most specific first."""
    with sqlite3.connect(file) as database:
        names = dict(database.execute("select id, context from context"))
        paths = dict(database.execute("select id, path from file"))
        bits = database.execute("select file_id, context_id, numbits from line_bits").fetchall()
    reached: dict[tuple[str, int], list[str]] = defaultdict(list)
    breadth: dict[str, int] = defaultdict(int)
    for file_id, context_id, numbits in bits:
        parts = Path(paths[file_id]).parts
        first = next((i for i, part in enumerate(parts) if part in {"app", "ui"}), None)
        name = names[context_id]
        if first is None or not _is_present(name):  # it may have been deleted since
            continue
        for line in numbits_to_nums(numbits):
            reached["/".join(parts[first:]), line].append(name)
            breadth[name] += 1
        reached["/".join(parts[first:]), _WHOLE_FILE].append(name)
    return {
        place: sorted(tests, key=lambda each: breadth[each]) for place, tests in reached.items()
    }


@cache
def _is_present(name: str) -> bool:
    file, _, function = _node(name).partition("::")
    path = ROOT / file
    return path.is_file() and f"def {function}(" in path.read_text(encoding="utf-8")


def _draw(folders: list[str], count: int, drawn: random.Random) -> Iterator[tuple[str, int]]:
    trees = {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
    }
    places = sorted(
        {
            (path, node.lineno)
            for path, tree in trees.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.stmt)
        }
    )
    drawn.shuffle(places)
    found = 0
    for path, line in places:
        changes = _Change(line, None)
        changes.visit(trees[path])
        if changes.seen and found < count:
            found += 1
            yield path, line


def _try(
    tree: Path, path: str, line: int, tests: list[str], drawn: random.Random, limit_s: float
) -> Mutant:
    """Change the line in `tree`, run its tests, and restore it."""
    source = (tree / path).read_text(encoding="utf-8")
    module = ast.parse(source)
    count = _Change(line, None)
    count.visit(module)
    changed = _Change(line, drawn.randrange(count.seen)).visit(ast.parse(source))
    before = source.splitlines()[line - 1].strip()
    plain, mutated = (ast.unparse(each).splitlines() for each in (ast.parse(source), changed))
    after = next((new.strip() for old, new in zip(plain, mutated, strict=False) if old != new), "")
    (tree / path).write_text(ast.unparse(ast.fix_missing_locations(changed)), encoding="utf-8")
    try:
        failed = _first_failure(tree, tests, limit_s)
    finally:
        (tree / path).write_text(source, encoding="utf-8")
    # A test that fails without the change too (on a busy machine) has detected nothing.
    detected = bool(failed) and not _first_failure(tree, failed, limit_s)
    return Mutant(path, line, before, after, len(tests), detected)


def _first_failure(tree: Path, tests: list[str], limit_s: float) -> list[str]:
    """Return the tests of the run in which one failed, hung or could not be collected; else []."""
    environ = os.environ | {
        "QT_QPA_PLATFORM": "offscreen",
        "PYTHONPYCACHEPREFIX": str(tree.parent / "pycache"),
    }
    ends_at = time.monotonic() + limit_s
    for start in range(0, len(tests), _AT_ONCE):
        some = tests[start : start + _AT_ONCE]
        options = ["-x", "-q", "-p", "no:cacheprovider", "--timeout", "120"]
        command = [sys.executable, "-m", "pytest", *options, *(_node(each) for each in some)]
        try:
            ended = subprocess.run(command, cwd=tree, env=environ, capture_output=True, timeout=300)
        except subprocess.TimeoutExpired:
            return some
        if ended.returncode:
            return some
        if time.monotonic() > ends_at:
            break
    return []


def _node(name: str) -> str:
    module, _, function = name.rpartition(".")
    return f"{module.replace('.', '/')}.py::{function}"


if __name__ == "__main__":
    main()
