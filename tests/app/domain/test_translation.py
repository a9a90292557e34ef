"""Translation: every text has one, with the same placeholders; numbers and dates follow the language."""

import ast
import json
import string
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from app.chat.reply import CONNECTION_LOST, CUT_SHORT, EMPTY, STOPPED
from app.domain import translation
from app.domain.records.sources import SOURCES
from app.domain.settings_schema import SETTINGS, SettingPage
from app.domain.translation import (
    LANGUAGES,
    choose_language,
    format_day,
    format_number,
    format_size,
    format_turn,
    in_english,
    language,
    long_day,
    money,
    quoted,
    tr,
    trn,
)
from app.domain.workers import WORKERS
from app.memory.search.explain import FEATURE_LABELS, UNANSWERED, UNFINISHED
from app.storage.safety.interrupted import PROGRAM_ENDED
from app.workers.jobs.routine_runner import ENDED, MISSED
from app.workers.status_text import ESTIMATED, STATE_TEXTS

pytestmark = pytest.mark.unmeasured

REPOSITORY = Path(__file__).resolve().parents[3]
TABLES = [name for name in LANGUAGES if name != "en"]


@pytest.fixture
def german() -> Iterator[None]:
    choose_language("de")
    yield
    choose_language("en")


def table(name: str) -> dict[str, str | list[str]]:
    file = REPOSITORY / "resources" / "translations" / f"{name}.json"
    found: dict[str, str | list[str]] = json.loads(file.read_text(encoding="utf-8"))
    return found


def calls() -> Iterator[tuple[str, ast.expr]]:
    """The name of a translation function and its first argument, of every call."""
    for path in [*REPOSITORY.glob("app/**/*.py"), *REPOSITORY.glob("ui/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="tr" | "trn" as name), args=[text, *_]):
                    yield name, text


def written() -> dict[str, bool]:
    """Every text that the code gives to `tr` (False) or `trn` (True)."""
    return {
        str(text.value): name == "trn" for name, text in calls() if isinstance(text, ast.Constant)
    }


def of_commands() -> set[str]:
    """What the help says of the forms of slash commands, and texts that their table shows."""
    found = set()
    for path in REPOSITORY.glob("app/commands/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="Form"), args=[_, _, ast.Constant(value=str(text))]):
                    found.add(text)
                case ast.keyword(arg="help", value=ast.Constant(value=str(text))):
                    found.add(text)
                case ast.Assign(
                    targets=[ast.Name(id="_ESCAPE" | "_NOT_CONFIRMED" | "_CONFIRM")],
                    value=ast.Constant(value=str(text)),
                ):
                    found.add(text)
    return found


def listed() -> dict[str, bool]:
    """Texts of tables, which are translated where they are shown."""
    texts = dict.fromkeys((*STATE_TEXTS.values(), ESTIMATED, *FEATURE_LABELS.values()), False)
    texts |= dict.fromkeys((*of_commands(), "ranks higher", "ranks lower"), False)
    for setting in SETTINGS.values():
        if setting.page is not SettingPage.INTERNAL:
            for text in (setting.page, setting.label, setting.help, setting.unit):
                texts[str(text)] = False
            texts[setting.pattern_text] = False
            names = [each.capitalize() for each in setting.choices if each not in LANGUAGES]
            texts |= dict.fromkeys(names, False)
    for obstacle in (UNFINISHED, UNANSWERED):
        texts |= {obstacle.words: False, obstacle.hint: False}
    for problem in (STOPPED, CONNECTION_LOST, EMPTY, PROGRAM_ENDED, *CUT_SHORT.values()):
        texts |= {problem.title: False, problem.hint: False}
    stored = "Commonplace was not running then"  # by an earlier version
    texts |= dict.fromkeys((MISSED, ENDED, stored), False)
    texts |= dict.fromkeys((each.deletes for each in SOURCES.values()), False)
    for spec in WORKERS.values():
        texts |= {spec.title: False, spec.label: False, spec.waiting_one: True}
    return {text: counted for text, counted in texts.items() if text}


@pytest.mark.parametrize("name", TABLES)
def test_every_text_is_translated_and_nothing_else(name: str) -> None:
    wanted, found = written() | listed(), table(name)
    assert sorted(set(wanted) - set(found)) == [], "without a translation"
    assert sorted(set(found) - set(wanted)) == [], "no longer used"
    assert [text for text in wanted if isinstance(found[text], list) != wanted[text]] == []


@pytest.mark.parametrize("name", TABLES)
def test_a_translation_has_the_placeholders_spaces_and_lines_of_its_text(name: str) -> None:
    def shape(text: str) -> tuple[object, ...]:
        fields = sorted(str(field) for _, field, _, _ in string.Formatter().parse(text) if field)
        return fields, text[:1] == " ", text[-1:] == " ", text.count("\n")

    for text, found in table(name).items():
        for form in found if isinstance(found, list) else [found]:
            assert shape(form) == shape(text), text


@pytest.mark.parametrize("name", TABLES)
def test_menu_texts_keep_their_ellipsis_and_have_one_mnemonic(name: str) -> None:
    for text, found in table(name).items():
        if isinstance(found, str):
            assert found.endswith("\u2026") == text.endswith("\u2026"), text
            assert (found.count("&") > 0) == (text.count("&") > 0), text


def test_a_text_that_is_translated_is_not_put_together_before() -> None:
    assert [ast.unparse(text) for _, text in calls() if isinstance(text, ast.JoinedStr)] == []


@pytest.mark.usefixtures("german")
def test_texts_numbers_and_dates_follow_the_language() -> None:
    assert tr("Settings") == "Einstellungen"
    assert tr("No such text") == "No such text"
    turns = [trn("{count} turn", "{count} turns", count) for count in (0, 1, 1234)]
    assert turns == ["0 Beitr\u00e4ge", "1 Beitrag", "1.234 Beitr\u00e4ge"]
    assert (format_number(1234.5, 1), money(0.1)) == ("1.234,5", "0,10\u00a0$")
    assert format_day(datetime(2026, 3, 1, 12, tzinfo=UTC)) == "1. M\u00e4rz 2026"
    assert long_day(date(2026, 5, 3)) == "Sonntag, 3. Mai 2026"
    assert (format_turn(4), format_size(3 << 20)) == ("Beitrag 5", "3,0 MB")
    assert quoted("Bees") == "\N{DOUBLE LOW-9 QUOTATION MARK}Bees\N{LEFT DOUBLE QUOTATION MARK}"


@pytest.mark.usefixtures("german")
def test_what_programs_read_is_english() -> None:
    with in_english():
        assert (tr("Settings"), format_number(1234.5, 1)) == ("Settings", "1,234.5")
    assert language() == "de"


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({"LANG": "de_AT.UTF-8"}, "de"), ({"LANG": "de_DE", "LC_ALL": "en_US"}, "en"),
        ({"LANG": "fr_FR"}, "en"), ({"LANGUAGE": "de:en", "LANG": "en_US"}, "de"), ({}, "en"),
    ],
)  # fmt: skip
def test_the_systems_language_is_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], wanted: str
) -> None:
    for name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    try:
        assert choose_language("system") == wanted
    finally:
        choose_language("en")
    assert translation.language() == "en"
