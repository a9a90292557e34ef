"""The manual-page indexer on a real store, with a `man` of the test's own on PATH."""

import threading
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from app.check import check
from app.domain.errors import NotFound
from app.domain.ids import PassageId
from app.domain.passages import PassageKind
from app.domain.records.documents import ListedDocument, manual_page
from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from app.providers.pricing.usage import estimated_tokens
from app.storage.engine import migrations
from app.storage.engine.store import Store
from app.storage.tables.documents import Documents, DocumentTexts
from app.storage.tables.passages.queries import Passages
from app.storage.tables.settings import Settings
from app.system.manual import Manual
from app.system.process import ProcessLimits
from app.workers.board import WorkerBoard
from app.workers.job_interface import IsCancelled
from app.workers.jobs import JobParts
from app.workers.jobs.man_indexer import MOST_TOKENS, ManIndexer
from tests.fakes.fixtures import fixture_of
from tests.fakes.jobs import JumpingClock, hosted, until
from tests.fakes.manual import FakeManual
from tests.fakes.stored import AT, execute, killed, make_earlier, opened

NAME = WorkerName.MAN_INDEXER
LIMITS = ProcessLimits(seconds=0.5, output_bytes=1 << 20)


@pytest.fixture
def manual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeManual:
    return FakeManual(tmp_path / "manual", monkeypatch)


class Bench:
    """A board with the indexer alone."""

    def __init__(self, store: Store, pages: Manual | None = None) -> None:
        self.store = store
        self.clock = JumpingClock()
        self.job = ManIndexer(store, pages or Manual(LIMITS))
        self.board = WorkerBoard(JobParts(store, Settings(store), clock=self.clock), [self.job])

    def run(self) -> WorkerStatus:
        """Index the manual as it is now."""
        self.clock.pass_s(60)
        (status,) = self.board.run_until_idle([NAME])
        return status

    def counts(self) -> tuple[int, int, int, int]:
        status = self.run()
        return status.done, status.total, status.completed, status.skipped

    def passages(self) -> dict[str, PassageId]:
        """Return the passages of pages by source, such as "grep.1"; the store must be in order."""
        passages = Passages(self.store)
        places = passages.places(passages.of_kind(PassageKind.MAN_PAGE))
        return {place.source: place.id for place in places.values()}

    def text(self, source: str) -> str:
        return DocumentTexts(self.store).at(f"man:{source}").text


bench = fixture_of(Bench, "store")


def test_descriptions_become_passages_others_are_skipped(bench: Bench, manual: FakeManual) -> None:
    manual.add("grep.1", "print lines", "Searches for patterns.\n\nIn files.")
    manual.add("printf.1", "format and print", "A command.")
    manual.add("printf.3", "formatted output", "A function.")
    manual.add("ip.8", "routes", None)
    heard: list[WorkerStatus] = []
    bench.board.subscribe(heard.append)
    assert bench.counts() == (4, 4, 3, 1)
    assert "listing the manual" in [each.current_item for each in heard]
    assert (heard[-1].abandoned, heard[-1].last_error) == (0, "")
    passages = bench.passages()
    assert passages.keys() == {"grep.1", "printf.1", "printf.3"}
    assert (bench.text("printf.1"), bench.text("printf.3")) == ("A command.", "A function.")
    (text,) = Passages(bench.store).texts([passages["grep.1"]])
    assert text.title == "grep(1) – print lines"
    parts = [part.text for part in text.parts]
    assert parts == ["print lines", "Searches for patterns.\n\nIn files."]
    assert (text.conversation_id, text.kind) == (None, PassageKind.MAN_PAGE)
    manual.calls()
    assert bench.counts() == (4, 4, 3, 1)
    assert manual.calls() == ["-k .", "-w"], "no page was read again"
    assert check(bench.store).problems == ()
    assert bench.job.poll_interval_s() == 86_400


def test_only_new_and_changed_pages_are_read_again(bench: Bench, manual: FakeManual) -> None:
    for name in ("grep.1", "sed.1", "awk.1", "gone.1", "lost.1"):
        manual.add(name, "text", f"About {name}.")
    bench.run()
    before = bench.passages()
    position = Passages(bench.store).work_since(0, 10).position
    manual.calls()
    manual.add("sed.1", "text", "About streams.")
    manual.add("awk.1", "text", "About awk.1.")  # a new file with the same text
    manual.add("ed.1", "text", "The standard.")
    manual.add("lost.1", "text", None)
    manual.remove("gone.1")
    status = bench.run()
    assert (status.done, status.total, status.completed, status.skipped) == (5, 5, 8, 1)
    assert sorted(manual.calls()[2:]) == ["1 awk", "1 ed", "1 lost", "1 sed"]
    after = bench.passages()
    assert after.keys() == {"grep.1", "sed.1", "awk.1", "ed.1"}
    assert bench.text("sed.1") == "About streams."
    assert [after[each] == before[each] for each in ("sed.1", "grep.1", "awk.1")] == [
        False, True, True,
    ]  # fmt: skip
    with pytest.raises(NotFound, match=r"gone\.1"):
        bench.text("gone.1")
    removed = Passages(bench.store).work_since(position, 10).removed
    assert set(removed) == {before[each] for each in ("gone.1", "lost.1", "sed.1")}
    assert check(bench.store).problems == ()


def test_long_pages_are_cut_and_garbage_is_skipped(bench: Bench, manual: FakeManual) -> None:
    manual.add("zsh.1", "a shell", "\n".join(f"Line {n} says something." for n in range(4_000)))
    manual.add_raw("noise.1", "noise", bytes(range(256)) * 500)
    manual.add_raw("half.1", "half", b"DESCRIPTION\n    Half \xff\xfe\x00 of it.\n")
    manual.list_as("bad", "\x1b]0;\x07no page at all")
    assert bench.counts() == (3, 3, 2, 1)
    assert bench.text("half.1") == "Half \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER} of it."
    text = bench.text("zsh.1")
    assert estimated_tokens(text, "") == MOST_TOKENS
    assert text.startswith("Line 0 says")


def test_a_hanging_page_is_set_aside_others_read_once(bench: Bench, manual: FakeManual) -> None:
    for number in range(40):
        manual.add(f"page{number}.1", "text", f"About {number}.")
    manual.let("hang", "page7.1")
    status = bench.run()
    assert (status.done, status.completed, status.abandoned) == (39, 39, 1)
    assert "man 1 page7" in status.last_error
    calls = manual.calls()
    assert (calls.count("1 page7"), calls.count("1 page8")) == (3, 1)
    manual.mend("hang", "page7.1")
    bench.board.retry_failed(NAME)
    status = bench.run()
    assert (status.done, status.abandoned) == (40, 0)


def test_it_is_off_at_every_start_and_stops_during_a_page(store: Store, manual: FakeManual) -> None:
    manual.add("slow.1", "slow", "Never ends.")
    manual.let("hang", "slow.1")
    bench = Bench(store, Manual())
    Settings(store).set("index_man_enabled", True)
    with hosted(bench.board) as threads:
        assert (threads, manual.calls()) == ([], [])
        bench.board.set_enabled(NAME, True)
        until(lambda: manual.was_called("1 slow"))
        assert bench.board.stop(timeout_s=3.0) == ()


def test_without_a_manual_it_is_blocked_and_keeps_its_pages(
    bench: Bench, manual: FakeManual, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    manual.add("grep.1", "print lines", "Searches.")
    bench.run()
    (manual.folder / "list").write_text(".: nothing appropriate.\n")
    assert "lists no manual pages" in bench.run().last_error
    monkeypatch.setenv("PATH", str(tmp_path))
    heard: list[WorkerStatus] = []
    bench.board.subscribe(heard.append)
    status = bench.run()
    assert "There is no “man” on this computer" in status.last_error
    assert WorkerState.BLOCKED in {each.state for each in heard}
    assert (status.done, status.total, status.abandoned) == (1, 1, 0)
    assert bench.passages().keys() == {"grep.1"}


class _CallsAfter(Manual):
    """A manual that calls a function after some pages; readers wait for it."""

    def __init__(self, pages: int, then: Callable[[], object]) -> None:
        super().__init__(LIMITS)
        self._left = pages
        self._then = then
        self._lock = threading.Lock()

    def description(self, page: ListedDocument, is_cancelled: IsCancelled) -> str | None:
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self._then()
        return super().description(page, is_cancelled)


def test_hundreds_of_pages_are_read_and_a_kill_costs_only_the_current_ones(
    store: Store, manual: FakeManual, tmp_path: Path
) -> None:
    for number in range(160):
        manual.add_raw(f"p{number}.1", "text", f"DESCRIPTION\n   About {number}.\n")
    copies: list[Path] = []
    whole = Bench(store, _CallsAfter(80, lambda: copies.append(killed(store, tmp_path / "killed"))))
    assert whole.run().completed == len(whole.passages()) == 160
    manual.calls()
    with opened(copies[0]) as again:
        bench = Bench(again)
        already = bench.board.refresh()[0].done
        assert 32 <= already < 160
        status = bench.run()
        assert (status.done, status.total, status.completed) == (160, 160, 160 - already)
        assert len(manual.calls()) == 2 + 160 - already
        assert len(bench.passages()) == 160
        assert check(again).problems == ()


def test_lost_rows_are_read_and_indexed_again_or_repaired(bench: Bench, manual: FakeManual) -> None:
    """A restored backup may be older than the passages, which the journal restores."""
    manual.add("grep.1", "print lines", "Searches.")
    manual.add("sed.1", "edit", "Edits.")
    bench.run()
    before = bench.passages()

    def delete(condition: str) -> None:
        chunks = f"document_id IN (SELECT id FROM document WHERE {condition})"
        for table, of_it in (("document_chunk", chunks), ("document", condition)):
            execute(bench.store, f"DELETE FROM {table} WHERE {of_it}")

    delete("name = 'grep.1'")
    assert len(check(bench.store).problems) == 1
    bench.run()
    after = bench.passages()
    assert after.keys() == before.keys()
    assert after["grep.1"] != before["grep.1"], "indexes must add it again"
    assert after["sed.1"] == before["sed.1"]
    assert check(bench.store).problems == ()
    delete("true")
    report = check(bench.store, repair=True)
    assert (len(report.repaired), report.problems) == (2, ())
    assert Passages(bench.store).of_kind(PassageKind.MAN_PAGE) == frozenset()


def test_being_off_is_no_warning(bench: Bench) -> None:
    Documents(bench.store, PassageKind.MAN_PAGE).replace_list(
        [manual_page("grep", "1", "print lines", "1", AT)]
    )
    (status,) = bench.board.refresh()
    assert (status.enabled, status.total - status.done) == (False, 1)
    assert bench.board.warnings() == ()


def test_an_upgrade_keeps_the_pages_that_were_read(data_dir: Path) -> None:
    with opened(data_dir) as store:
        path = store.paths.database
    make_earlier(path, migrations.STEPS.index(migrations._DOCUMENTS))
    with duckdb.connect(str(path)) as file:
        file.execute(
            "INSERT INTO man_page (id, name, section, summary, stamp, changed_at, read_stamp, text, "
            "content_hash) VALUES (7, 'grep', '1', 'print lines', 's', '2026-01-01', 's', 'Searches.', "
            "'h'), (8, 'sed', '1', '', 't', '2026-01-01', NULL, NULL, NULL)"
        )
    with opened(data_dir) as store:
        pages = Documents(store, PassageKind.MAN_PAGE)
        titles = {each.title: each.stamp for each in pages.listed()}
        assert titles == {"grep(1) \N{EN DASH} print lines": "s", "sed(1)": "t"}
        assert pages.is_any_read()
        assert DocumentTexts(store).at("man:grep.1").text == "Searches."
        with pytest.raises(NotFound):
            DocumentTexts(store).at("man:sed.1")
        assert check(store).problems == ()
