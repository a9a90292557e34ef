"""Texts of the window: each is given to the translation, and none is a sign made of letters."""

import ast
import re
from pathlib import Path

import pytest

from app.domain import errors

pytestmark = pytest.mark.unmeasured

UI = Path(__file__).parents[2] / "ui"
FOLDERS = ("views", "widgets", "models", "presenters")
SENTENCE = re.compile(r"[A-Z][a-z]+[,:]? [a-z]|[a-z]+ [a-z]+ [a-z]+|[a-z]{3}\u2026$|[a-z]{3}\.$")
SIGNS = re.compile("[\u2190-\u21ff\u25a0-\u27bf\u2b00-\u2bff\U0001f300-\U0001faff]")
STYLE = re.compile(r"(?:color|background|margin|border)[-a-z]*: ")
JARGON = re.compile(
    r"\b(?:exchanges?|embed\w*|workers?|probes?|extractive|pipelines?|passages?|vectors?)\b",
    re.IGNORECASE,
)
FOR_EXPERTS = {"preview.py", "recalled.py", "labels.py", "why_dialog.py"}  # of the inspector
NUMBER = re.compile(r",|%$|\.\d+f")
NAMES = {"recall while typing"}  # of a task
IN_ROWS = {"\u25cf", "\u2191", "\u2193"}  # a running reply, a rank that rose or fell: drawn as text
NOT_SHOWN = ("debug", "info", "warning", "exception", "error", "critical", "compile", "ValueError",
             "load", "start", "run_alone", "tr", "trn")  # fmt: skip
ERRORS = {name for name, each in vars(errors).items() if isinstance(each, type)}  # of another table


class Reader(ast.NodeVisitor):
    """Collects string constants that could be texts and are not translated."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # docstrings
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        arguments = [] if name in NOT_SHOWN[:8] or name in {"tr", "trn", *ERRORS} else node.args
        for each in (*(arguments[1:] if name in NOT_SHOWN else arguments), *node.keywords):
            self.visit(each)
        self.visit(node.func)

    def visit_Constant(self, node: ast.Constant) -> None:
        text = node.value if isinstance(node.value, str) else ""
        if SENTENCE.search(text) and not STYLE.search(text) and text not in NAMES:
            self.found.append(text)


def test_every_text_of_the_window_is_translated() -> None:
    loose = []
    for folder in FOLDERS:
        for path in (UI / folder).rglob("*.py"):
            reader = Reader()
            reader.visit(ast.parse(path.read_text(encoding="utf-8")))
            loose += [f"{path.name}: {text}" for text in reader.found]
    assert loose == []


def test_no_sign_made_of_letters_is_an_icon() -> None:
    signs = []
    for folder in FOLDERS:
        for path in (UI / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    is_sign = SIGNS.search(node.value) and not re.search("[a-z]", node.value)
                    signs += [node.value] if is_sign and node.value not in IN_ROWS else []
    assert signs == []


def test_numbers_are_written_in_the_language_of_the_window() -> None:
    """Separators and the percent sign differ: `app.domain.translation` writes both."""
    loose = []
    for path in UI.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
                spec = ast.unparse(node.format_spec).strip("f'")
                loose += [f"{path.name}:{node.lineno} {spec}"] if NUMBER.search(spec) else []
    assert loose == []


def test_words_of_the_code_are_left_to_the_inspector() -> None:
    found = []
    for path in UI.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("tr", "trn"):
                texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
                plain = [re.sub(r"\{.*?\}", "", each) for each in texts if isinstance(each, str)]
                is_known = path.name in FOR_EXPERTS
                found += [each for each in plain if JARGON.search(each) and not is_known]
    assert found == []
