"""Asking `man`: what is read of its lists and pages, and what it may do wrong."""

import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import Cancelled
from app.domain.manual import ManualPage, ManualUnavailable, PageUnreadable
from app.system.child_process import Limits, OutOfLimits, output_of
from app.system.manual import Manual
from app.system.manual_text import description, listed
from tests.fakes.manual import FakeManual

FAST = Limits(seconds=0.3, output_bytes=1 << 20)


def never() -> bool:
    return False


@pytest.fixture
def manual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeManual:
    return FakeManual(tmp_path / "manual", monkeypatch)


def page(manual: FakeManual, source: str) -> ManualPage:
    return next(each for each in Manual().pages(never) if each.source == source)


# -- lists


@pytest.mark.parametrize(
    ("line", "pages"),
    [
        ("grep (1)             - print lines", {("grep", "1"): "print lines"}),
        ("grep(1) - print lines", {("grep", "1"): "print lines"}),
        ("fopen, fdopen(3) - open", {("fopen", "3"): "open", ("fdopen", "3"): "open"}),
        ("fopen(3), x(2) - open", {("fopen", "3"): "open", ("x", "2"): "open"}),
        ("SSL_new (3ssl) - make - it", {("SSL_new", "3ssl"): "make - it"}),
        ("File::Temp (3perl)   - a file", {("File::Temp", "3perl"): "a file"}),
        ("[ (1)                - check", {("[", "1"): "check"}),
        ("git-log (1) [git log] - show", {("git-log", "1"): "show"}),
        ("../../etc/passwd (1) - a path", {}),
        ("-Hfirefox (1)        - an option", {}),
        ("x (1; rm -rf)        - a shell", {}),
        ("no section           - nothing", {}),
        (".: nothing appropriate.", {}),
        ("", {}),
    ],
)
def test_a_line_of_the_list_names_its_pages(line: str, pages: object) -> None:
    assert listed(line) == pages


@given(st.text())
def test_any_list_is_read(text: str) -> None:
    for name, section in listed(text):
        assert "/" not in name
        assert not name.startswith("-")
        assert section.isalnum() or "_" in section


# -- pages


def test_the_description_ends_where_the_next_section_begins() -> None:
    printed = "NAME\n  x - y\nDESCRIPTION\n       One.\n\n   Part\n       Two.\n\nOPTIONS\n  -a\n"
    assert description(printed) == "    One.\n\nPart\n    Two."


@pytest.mark.parametrize("end", ["", "1.0   2024   X(1)\n"])
def test_a_description_may_be_the_last_section(end: str) -> None:
    assert description(f"DESCRIPTION\n       It does.\n\n{end}") == "It does."


def test_overstrikes_and_colours_are_removed() -> None:
    bold = "".join(f"{each}\b{each}" for each in "DESCRIPTION")
    printed = (
        f"{bold}\n  \x1b[1mIt\x1b[0m _\bd_\bo_\be_\bs \x1b]8;;http://x\x1b\\it\x1b]8;;\x1b\\.\n"
    )
    assert description(printed) == "It does it."


@pytest.mark.parametrize(
    "printed", ["", "NAME\n   x\n", "DESCRIPTION\nOPTIONS\n", "DESCRIPTION\n   \n", "\x00\x01\x02"]
)
def test_a_page_may_have_no_description(printed: str) -> None:
    assert description(printed) is None


@given(st.text())
def test_whatever_is_printed_is_read(text: str) -> None:
    found = description(f"DESCRIPTION\n  {text}")
    assert found is None or "\x00" not in found


# -- the program


def test_pages_of_all_sections_are_listed_with_the_time_of_their_files(manual: FakeManual) -> None:
    manual.add("grep.1", "print lines", "Searches for patterns.")
    manual.add("printf.3", "formatted output", "Produces output.")
    found = Manual().pages(never)
    assert [(each.source, each.summary) for each in found] == [
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
    manual.add("grep.1", "print lines", "Searches more.")
    second = page(manual, "grep.1")
    manual.list_as("grep.1", "grep (1) - print every line")
    third = page(manual, "grep.1")
    assert len({first.stamp, second.stamp, third.stamp}) == 3
    assert first.id == second.id == third.id


def test_a_compressed_page_is_known_by_its_name(manual: FakeManual) -> None:
    manual.add("grep.1", "print lines", "Searches.")
    plain = manual.folder / "share/man1/grep.1"
    stamp = page(manual, "grep.1").stamp
    plain.rename(plain.with_name("grep.1.gz"))
    assert page(manual, "grep.1").stamp == stamp


def test_without_man_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ManualUnavailable, match="no 'man' on this computer"):
        Manual().pages(never)


def test_a_manual_without_pages_is_said_to_have_none(manual: FakeManual) -> None:
    with pytest.raises(ManualUnavailable, match="lists no manual pages"):
        Manual().pages(never)


def test_a_page_that_hangs_is_killed_with_its_children(manual: FakeManual) -> None:
    manual.add("slow.1", "slow", "Never ends.")
    manual.let("hang", "slow.1")
    asked = page(manual, "slow.1")
    began = time.monotonic()
    with pytest.raises(PageUnreadable, match="took longer"):
        Manual(FAST).description(asked, never)
    assert time.monotonic() - began < 5


def test_a_page_without_end_is_cut_off(manual: FakeManual) -> None:
    manual.add("big.1", "big", "Never ends.")
    manual.let("endless", "big.1")
    with pytest.raises(PageUnreadable, match="wrote more than 1 MB"):
        Manual(Limits(20, 1 << 20)).description(page(manual, "big.1"), never)


def test_a_page_that_is_listed_but_not_there_cannot_be_read(manual: FakeManual) -> None:
    manual.list_as("lost.1", "lost (1) - not there")
    with pytest.raises(PageUnreadable, match="man 1 lost"):
        Manual().description(page(manual, "lost.1"), never)


def test_a_hanging_list_ends_when_it_is_cancelled(manual: FakeManual) -> None:
    manual.let("hang", "-k")
    stop = threading.Event()
    timer = threading.Timer(0.2, stop.set)
    timer.start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        Manual().pages(stop.is_set)
    timer.join()
    assert time.monotonic() - began < 3


def test_a_program_that_closes_its_output_and_stays_is_ended() -> None:
    with pytest.raises(OutOfLimits, match="did not end"):
        output_of(["sh", "-c", "exec >&-; sleep 1000"], {"PATH": "/bin:/usr/bin"}, FAST, never)
