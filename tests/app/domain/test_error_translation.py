"""Translation of errors: every text that the code raises has one, found again when it is filled in."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from app.chat.context_fetcher import FetchedContext
from app.chat.reply import STOPPED
from app.domain.errors import ImportRefused, KnownError, NotFound
from app.domain.text import translate_lines
from app.domain.translation import LANGUAGES, choose_language, in_english, tr_noop, translate_filled
from app.providers.http.endpoint import RequestTarget
from app.providers.http.error_classification import ErrorResponse, classify
from app.system.file_programs import UnreadableFile
from app.system.keys import FoundKey, KeyLocation, Secret

pytestmark = pytest.mark.unmeasured

ROOT = Path(__file__).resolve().parents[3]
TABLES = ROOT / "resources" / "translations"
# Read by models and on the command line only.
ENGLISH_ONLY = tuple(
    f"app/{each}" for each in ("cli/", "chat/tools/", "mcp/access.py", "mcp/memory_tools.py")
)
# Templates of a server's errors, and what fills them; `{name}` in them is `{}` in the table.
SERVER_ERRORS = ("_Outcome", "RejectedReply", "format_map", "raised")
NAMES = [name for name in LANGUAGES if name != "en"]
Scope = Mapping[str, list[ast.expr]]


def modules() -> Iterator[ast.Module]:
    for path in sorted((*ROOT.glob("app/**/*.py"), *ROOT.glob("ui/**/*.py"))):
        if not str(path.relative_to(ROOT)).startswith(ENGLISH_ONLY):
            yield ast.parse(path.read_text(encoding="utf-8"))


def name_of(node: ast.expr) -> str:
    """The last part of a name: that of a class or a function."""
    return ast.unparse(node).rpartition(".")[2]


def error_classes(trees: list[ast.Module]) -> set[str]:
    found = {KnownError.__name__, UnreadableFile.__name__}
    classes = [each for tree in trees for each in ast.walk(tree) if isinstance(each, ast.ClassDef)]
    while (
        more := {each.name for each in classes if found & {name_of(base) for base in each.bases}}
        - found
    ):
        found |= more
    return found


def templates(node: ast.expr, scope: Scope) -> Iterator[str]:
    """The texts an expression can be, with `{}` for each value; those of `tr` are not among them."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts
            )
        case ast.IfExp(body=first, orelse=second):
            yield from templates(first, scope)
            yield from templates(second, scope)
        case ast.BoolOp(values=values) | ast.Dict(values=values):
            for value in values:
                yield from templates(value, scope)
        case ast.Name(id=name):
            for value in scope.get(name, ()):
                yield from templates(value, {})


def raised() -> set[str]:
    trees = list(modules())
    errors, found = error_classes(trees), set[str]()
    for tree in trees:
        nodes = list(ast.walk(tree))
        scope: dict[str, list[ast.expr]] = {}
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    scope.setdefault(name, []).append(value)
        for node in nodes:
            if isinstance(node, ast.Call) and name_of(node.func) == tr_noop.__name__:
                found.update(templates(node.args[0], scope))
            if isinstance(node, ast.Call) and name_of(node.func) in errors:
                hints = [each.value for each in node.keywords if each.arg == "hint"]
                for text in (*node.args[:2], *hints):
                    found.update(templates(text, scope))
            if isinstance(node, ast.Call) and name_of(node.func) in SERVER_ERRORS:
                for text in node.args:
                    filled = templates(text, scope)
                    found.update(re.sub(r"{\w+}|{{\w+}}", "{}", each) for each in filled)
    return {text for text in found if any(map(str.isalpha, text))}


def table(name: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((TABLES / f"{name}-errors.json").read_text("utf-8"))
    return found


@pytest.fixture(params=NAMES)
def language(request: pytest.FixtureRequest) -> Iterator[str]:
    yield choose_language(request.param)
    choose_language("en")


def test_every_text_of_an_error_is_translated_and_nothing_else(language: str) -> None:
    wanted, found = raised(), set(table(language))
    assert sorted(wanted - found) == [], "without a translation"
    assert sorted(found - wanted) == [], "no longer used"


def test_every_filled_text_finds_its_own_translation(language: str) -> None:
    for text, form in table(language).items():
        values = [f"value {number}" for number in range(text.count("{}"))]
        wanted = form.replace(":verbatim", "").format(*values)
        assert translate_filled(text.format(*values)) == wanted, text


def test_english_errors_quote_as_the_window_does_except_to_other_programs() -> None:
    error = NotFound(
        "There is no project 'Don't wait'", "Did you mean 'a' or 'b'? It isn't listed."
    )
    assert error.display_text == (
        "There is no project \u201cDon't wait\u201d. Did you mean \u201ca\u201d or \u201cb\u201d? It isn't listed."
    )
    with in_english():
        assert error.title == "There is no project 'Don't wait'"


@pytest.mark.usefixtures("language")
def test_an_error_is_shown_in_the_language_and_logged_as_it_was_raised() -> None:
    error = NotFound("There is no conversation 12", "The list shows the existing ones.")
    assert error.display_text == "Es gibt keine Unterhaltung 12. Die Liste zeigt die vorhandenen."
    assert str(error) == "There is no conversation 12. The list shows the existing ones."
    with in_english():
        assert error.title == "There is no conversation 12"


@pytest.mark.usefixtures("language")
def test_an_error_in_an_error_is_translated_too() -> None:
    error = ImportRefused("'a.zip' cannot be imported: Its directory is damaged")
    assert error.title == "„a.zip“ kann nicht importiert werden: Sein Verzeichnis ist beschädigt"
    assert KnownError("No such text").title == "No such text"


@pytest.mark.usefixtures("language")
def test_a_name_in_an_error_stays_though_the_window_has_a_word_like_it() -> None:
    assert NotFound("There is no project 'Documents'").title == "Es gibt kein Projekt „Documents“"


@pytest.mark.usefixtures("language")
def test_a_number_in_an_error_has_the_separators_of_the_language() -> None:
    error = KnownError("The request is larger than 1,024.5 accepts")
    assert error.title == "Die Anfrage ist größer, als 1.024,5 annimmt"


@pytest.mark.usefixtures("language")
def test_what_recall_lacked_is_translated_one_problem_at_a_time() -> None:
    error = NotFound("There is no conversation 12", "The list shows the existing ones.")
    problems = (
        "Recall was stopped because it took too long.",
        "A part of recall failed. See the log for details.",
        "Recall is still busy with earlier questions", f"Recall found less: {error}",
        f"Core memory could not be read: {error}", "Recall failed: ValueError",
    )  # fmt: skip
    fetched = FetchedContext()
    for each in problems:
        fetched.add_notice(each)
    shown = translate_lines(fetched.notice)
    assert not re.search(r"\b(?:Recall|recall|Core|There|list|log)\b", shown)
    assert shown.count(error.display_text) == 2
    before = "Recall is still busy with earlier questions. Recall failed: ValueError"
    assert "busy" not in translate_lines(before), "as prompts were stored before"
    with in_english():
        assert translate_lines(fetched.notice).startswith(" ".join(problems[:2]))


@pytest.mark.usefixtures("language")
@pytest.mark.parametrize(
    ("status", "said", "shown"),
    [
        (401, "", "open nimmt den API-Schlüssel aus dem Schlüsselbund nicht an. Geben Sie in den"),
        (500, "upstream request failed with status 502", "Der Server von open ist ausgefallen (Status 500)."),
        (400, "temperature cannot be used with this model", ""),
        (429, "", "open erhält zu viele Anfragen und bittet, 3 Minuten zu warten."),
    ],
)  # fmt: skip
def test_a_servers_words_are_quoted_ours_translated(status: int, said: str, shown: str) -> None:
    place = FoundKey(Secret("key"), KeyLocation.KEYRING)
    target = RequestTarget(
        "open", "https://open/v1", key="key", key_location=place.location_text,
        key_remedy=place.remedy,
    )  # fmt: skip
    error = classify(ErrorResponse(status, said), target, 180.0 if status == 429 else None)
    assert error.display_text.startswith(shown)
    assert error.display_text.endswith(f"Der Server meldet: {said}." if said else ".")


def test_a_stored_problem_is_shown_in_the_language() -> None:
    choose_language("de")
    try:
        with in_english():
            stored = NotFound("There is no conversation 7", "Use /search.").title
        assert stored == "There is no conversation 7"
        assert translate_filled(STOPPED.title) not in ("", STOPPED.title)
    finally:
        choose_language("en")
