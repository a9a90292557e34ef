"""The system's manual: parsing of lists and pages, and failures of `man`."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import Cancelled, ManualPageUnreadable, ManualUnavailable
from app.domain.records.documents import ListedDocument, page_summary
from app.system.manual import Manual, parse_description, parse_list
from app.system.process import ProcessLimits
from tests.fakes.manual import FakeManual


def never() -> bool:
    return False


@pytest.fixture
def manual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeManual:
    return FakeManual(tmp_path / "manual", monkeypatch)


def page(manual: FakeManual, source: str) -> ListedDocument:
    return next(each for each in Manual().pages(never) if each.name == source)


# -- lists
@pytest.mark.parametrize(
    ("line", "pages"),
    [("grep (1)             - print lines", {("grep", "1"): "print lines"}),
     ("grep(1) - print lines", {("grep", "1"): "print lines"}),
     ("fopen, fdopen(3) - open", {("fopen", "3"): "open", ("fdopen", "3"): "open"}),
     ("fopen(3), x(2) - open", {("fopen", "3"): "open", ("x", "2"): "open"}),
     ("SSL_new (3ssl) - make - it", {("SSL_new", "3ssl"): "make - it"}),
     ("File::Temp (3perl)   - a file", {("File::Temp", "3perl"): "a file"}),
     ("[ (1)                - check", {("[", "1"): "check"}),
     ("git-log (1) [git log] - show", {("git-log", "1"): "show"}),
     ("../../etc/passwd (1) - a path", {}), ("-Hfirefox (1)        - an option", {}),
     ("x (1; rm -rf)        - a shell", {}), ("no section           - nothing", {}),
     (".: nothing appropriate.", {}), ("", {})],
)  # fmt: skip
def test_a_line_of_the_list_is_parsed(line: str, pages: object) -> None:
    assert parse_list(line) == pages


@given(st.text())
def test_any_list_is_parsed(text: str) -> None:
    for name, section in parse_list(text):
        assert "/" not in name
        assert not name.startswith("-")
        assert section.isalnum() or "_" in section


# -- pages
@pytest.mark.parametrize(
    ("printed", "description"),
    [
        (
            "NAME\n  x - y\nDESCRIPTION\n       One.\n\n   Part\n       Two.\n\nOPTIONS\n  -a\n",
            "    One.\n\nPart\n    Two.",
        ),
        ("DESCRIPTION\n       It does.\n\n", "It does."),
        ("DESCRIPTION\n       It does.\n\n1.0   2024   X(1)\n", "It does."),
        (
            "".join(f"{each}\b{each}" for each in "DESCRIPTION")
            + "\n  \x1b[1mIt\x1b[0m _\bd_\bo_\be_\bs \x1b]8;;http://x\x1b\\it\x1b]8;;\x1b\\.\n",
            "It does it.",
        ),
        ("", None),
        ("NAME\n   x\n", None),
        ("DESCRIPTION\nOPTIONS\n", None),
        ("DESCRIPTION\n   \n", None),
        ("\x00\x01\x02", None),
    ],
)
def test_the_description_is_plain_text_of_a_section(printed: str, description: str | None) -> None:
    assert parse_description(printed) == description


@given(st.text())
def test_any_output_is_parsed(text: str) -> None:
    found = parse_description(f"DESCRIPTION\n  {text}")
    assert found is None or "\x00" not in found


# -- the program
def test_pages_of_all_sections_are_listed_with_the_time_of_their_files(manual: FakeManual) -> None:
    manual.add("grep.1", "print lines", "Searches for patterns.")
    manual.add("printf.3", "formatted output", "Produces output.")
    found = Manual().pages(never)
    assert [(each.name, page_summary(each)) for each in found] == [
        ("grep.1", "print lines"),
        ("printf.3", "formatted output"),
    ]
    seconds = (manual.folder / "share/man1/grep.1").stat().st_mtime
    assert found[0].changed_at.timestamp() == pytest.approx(seconds, abs=0.001)
    assert Manual().description(found[0], never) == "Searches for patterns."


def test_a_page_s_stamp_changes_with_its_file_and_with_its_summary(manual: FakeManual) -> None:
    manual.add("grep.1", "print lines", "Searches.")
    first = page(manual, "grep.1")
    assert page(manual, "grep.1") == first
    plain = manual.folder / "share/man1/grep.1"
    compressed = plain.rename(plain.with_name("grep.1.gz"))
    assert page(manual, "grep.1").stamp == first.stamp
    compressed.unlink()
    manual.add("grep.1", "print lines", "Searches more.")
    second = page(manual, "grep.1")
    manual.list_as("grep.1", "grep (1) - print every line")
    third = page(manual, "grep.1")
    assert len({first.stamp, second.stamp, third.stamp}) == 3
    assert first.id == second.id == third.id


def test_a_missing_man_and_an_empty_manual_are_reported(
    manual: FakeManual, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ManualUnavailable, match="lists no manual pages"):
        Manual().pages(never)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ManualUnavailable, match="no 'man' on this computer"):
        Manual().pages(never)


@pytest.mark.parametrize(
    ("how", "limits", "problem"),
    [("hang", ProcessLimits(0.3, 1 << 20), "took longer"),
     ("endless", ProcessLimits(20, 1 << 20), "wrote more than 1 MB"),
     (None, ProcessLimits(20, 1 << 20), "man 1 bad")],
)  # fmt: skip
def test_a_page_that_cannot_be_read_is_reported(
    manual: FakeManual, how: str | None, limits: ProcessLimits, problem: str
) -> None:
    manual.list_as("bad.1", "bad (1) - a page that is listed")
    if how is not None:
        manual.let(how, "bad.1")
    with pytest.raises(ManualPageUnreadable, match=problem):
        Manual(limits).description(page(manual, "bad.1"), never)


def test_a_hanging_list_ends_when_it_is_cancelled(manual: FakeManual) -> None:
    manual.let("hang", "-k")
    with pytest.raises(Cancelled):
        Manual().pages((manual.folder / "calls").exists)
