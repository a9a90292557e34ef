"""The man-page indexer on a real store, with a `man` of the test's own on PATH."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from app.check import check
from app.domain.errors import NotFound
from app.domain.ids import PassageId
from app.domain.manual import ManualPage
from app.domain.passages import PassageKind
from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from app.providers.estimated_tokens import estimated_tokens
from app.storage.man_pages import ManPages
from app.storage.passages import Passages
from app.storage.settings import Settings
from app.storage.store import Store
from app.system.child_process import Limits
from app.system.manual import Manual
from app.workers.board import WorkerBoard
from app.workers.job import IsCancelled
from app.workers.man_indexer import MOST_TOKENS, ManIndexer, PagesOfTheManual
from tests.fakes.jobs import JumpingClock, until
from tests.fakes.manual import FakeManual
from tests.fakes.stored import AT, killed, opened

NAME = WorkerName.MAN_INDEXER
FAST = Manual(Limits(seconds=0.5, output_bytes=1 << 20))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "data") as made:
        yield made


@pytest.fixture
def manual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeManual:
    return FakeManual(tmp_path / "manual", monkeypatch)


class Bench:
    """A board with nothing but the indexer."""

    def __init__(self, store: Store, manual: PagesOfTheManual = FAST) -> None:
        self.store = store
        self.settings = Settings(store)
        self.clock = JumpingClock()
        self.board = WorkerBoard(
            store, self.settings, [ManIndexer(store, manual)], clock=self.clock
        )  # fmt: skip

    def run(self) -> WorkerStatus:
        """Index the manual as it is now."""
        self.clock.pass_s(60)
        (status,) = self.board.run_until_idle([NAME])
        return status

    def passages(self) -> dict[str, PassageId]:
        """Return the passages of pages, by what the page is called."""
        passages = Passages(self.store)
        places = passages.places(passages.of_kind(PassageKind.MAN_PAGE))
        return {place.source: place.id for place in places.values()}

    def text(self, source: str) -> str:
        return ManPages(self.store).kept(source).text


@pytest.fixture
def bench(store: Store) -> Bench:
    return Bench(store)


def counts(status: WorkerStatus) -> tuple[int, int, int, int]:
    return status.done, status.total, status.completed, status.skipped


def test_the_description_of_every_page_becomes_a_passage(bench: Bench, manual: FakeManual) -> None:
    manual.add("grep.1", "print lines", "Searches for patterns.\n\nIn files.")
    manual.add("printf.3", "formatted output", "Produces output.")
    status = bench.run()
    assert counts(status) == (2, 2, 2, 0)
    assert (status.set_aside, status.last_error) == (0, "")
    passages = bench.passages()
    assert passages.keys() == {"grep.1", "printf.3"}
    (text,) = Passages(bench.store).texts([passages["grep.1"]])
    assert text.title == "grep(1) – print lines"
    assert [part.text for part in text.parts] == [
        "print lines",
        "Searches for patterns.\n\nIn files.",
    ]
    assert (text.conversation_id, text.kind) == (None, PassageKind.MAN_PAGE)
    assert check(bench.store).problems == ()


def test_a_page_without_a_description_is_skipped_and_counted(
    bench: Bench, manual: FakeManual
) -> None:
    manual.add("grep.1", "print lines", "Searches.")
    manual.add("ip.8", "routes", None)
    assert counts(bench.run()) == (2, 2, 1, 1)
    assert bench.passages().keys() == {"grep.1"}
    manual.calls()
    assert counts(bench.run()) == (2, 2, 1, 1)
    assert manual.calls() == ["-k .", "-w"], "it was read again"


def test_only_what_is_new_or_changed_is_read_again(bench: Bench, manual: FakeManual) -> None:
    for name in ("grep.1", "sed.1", "awk.1"):
        manual.add(name, "text", f"About {name}.")
    bench.run()
    before = bench.passages()
    manual.calls()
    manual.add("sed.1", "text", "About streams.")
    manual.add("ed.1", "text", "The standard.")
    assert bench.run().completed == 5
    assert sorted(manual.calls()[2:]) == ["1 ed", "1 sed"]
    after = bench.passages()
    assert bench.text("sed.1") == "About streams."
    assert after["sed.1"] != before["sed.1"]
    assert after["grep.1"] == before["grep.1"]
    assert check(bench.store).problems == ()


def test_a_page_whose_file_changed_but_not_its_words_keeps_its_passage(
    bench: Bench, manual: FakeManual
) -> None:
    manual.add("grep.1", "print lines", "Searches.")
    bench.run()
    before = bench.passages()
    manual.add("grep.1", "print lines", "Searches.")
    assert bench.run().completed == 2
    assert bench.passages() == before


def test_a_page_that_is_gone_is_dropped(bench: Bench, manual: FakeManual) -> None:
    manual.add("grep.1", "print lines", "Searches.")
    manual.add("sed.1", "edit", "Edits.")
    bench.run()
    gone = bench.passages()["sed.1"]
    position = Passages(bench.store).work_since(0, 10).position
    manual.remove("sed.1")
    status = bench.run()
    assert (status.done, status.total) == (1, 1)
    assert bench.passages().keys() == {"grep.1"}
    with pytest.raises(NotFound, match=r"sed\.1"):
        bench.text("sed.1")
    assert Passages(bench.store).work_since(position, 10).removed == (gone,)
    assert check(bench.store).problems == ()


def test_a_page_that_loses_its_description_leaves_the_index(
    bench: Bench, manual: FakeManual
) -> None:
    manual.add("grep.1", "print lines", "Searches.")
    bench.run()
    manual.add("grep.1", "print lines", None)
    assert (bench.run().skipped, bench.passages()) == (1, {})
    assert check(bench.store).problems == ()


def test_a_page_in_another_section_is_another_page(bench: Bench, manual: FakeManual) -> None:
    manual.add("printf.1", "format and print", "A command.")
    manual.add("printf.3", "formatted output", "A function.")
    bench.run()
    assert (bench.text("printf.1"), bench.text("printf.3")) == ("A command.", "A function.")


def test_a_long_page_is_cut(bench: Bench, manual: FakeManual) -> None:
    manual.add("zsh.1", "a shell", "\n".join(f"Line {n} says something." for n in range(4_000)))
    bench.run()
    text = bench.text("zsh.1")
    assert estimated_tokens(text, "") == MOST_TOKENS
    assert text.startswith("Line 0 says")


def test_garbage_is_skipped_and_what_can_be_read_is_kept(bench: Bench, manual: FakeManual) -> None:
    manual.add("grep.1", "print lines", "Searches.")
    manual.add_raw("noise.1", "noise", bytes(range(256)) * 500)
    manual.add_raw("half.1", "half", b"DESCRIPTION\n    Half \xff\xfe\x00 of it.\n")
    manual.list_as("bad", "\x1b]0;\x07no page at all")
    status = bench.run()
    assert (status.total, status.completed, status.skipped) == (3, 2, 1)
    assert bench.text("half.1") == "Half \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER} of it."


def test_a_hanging_page_holds_up_no_other_and_is_set_aside(
    bench: Bench, manual: FakeManual
) -> None:
    for number in range(40):
        manual.add(f"page{number}.1", "text", f"About {number}.")
    manual.let("hang", "page7.1")
    status = bench.run()
    assert (status.done, status.completed, status.set_aside) == (39, 39, 1)
    assert "'man 1 page7' took longer" in status.last_error
    calls = manual.calls()
    assert calls.count("1 page7") == 3, "twice more"
    assert calls.count("1 page8") == 1, "the others were not read again"
    manual.mend("hang", "page7.1")
    bench.board.retry_set_aside(NAME)
    status = bench.run()
    assert (status.done, status.set_aside) == (40, 0)


def test_switching_off_ends_a_hanging_page_at_once(store: Store, manual: FakeManual) -> None:
    manual.add("slow.1", "slow", "Never ends.")
    manual.let("hang", "slow.1")
    bench = Bench(store, Manual())
    threads: list[threading.Thread] = []

    def host(loop: object) -> None:
        threads.append(threading.Thread(target=loop))  # type: ignore[arg-type]
        threads[-1].start()

    bench.board.start(host)
    bench.board.set_enabled(NAME, True)
    until(lambda: manual.was_called("1 slow"))
    assert bench.board.stop(timeout_s=3.0) == ()
    threads[-1].join()


def test_it_is_off_at_every_start_until_it_is_switched_on(bench: Bench, manual: FakeManual) -> None:
    manual.add("grep.1", "print lines", "Searches.")
    bench.settings.set("index_man_enabled", True)
    threads: list[threading.Thread] = []

    def host(loop: object) -> None:
        threads.append(threading.Thread(target=loop))  # type: ignore[arg-type]
        threads[-1].start()

    bench.board.start(host)
    try:
        assert threads == []
        assert manual.calls() == []
        bench.board.set_enabled(NAME, True)
        until(lambda: bool(bench.passages()))
    finally:
        bench.board.stop()
    threads[0].join()


def test_without_man_it_is_blocked_and_says_so(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    news: list[WorkerStatus] = []
    bench.board.subscribe(news.append)
    status = bench.run()
    assert "There is no 'man' on this computer" in status.last_error
    assert WorkerState.BLOCKED in {each.state for each in news}
    assert (status.done, status.total, status.set_aside) == (0, 0, 0)


def test_a_manual_that_cannot_be_listed_loses_no_page(
    bench: Bench, manual: FakeManual, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    manual.add("grep.1", "print lines", "Searches.")
    bench.run()
    (manual.folder / "list").write_text(".: nothing appropriate.\n")
    status = bench.run()
    assert "lists no manual pages" in status.last_error
    assert bench.passages().keys() == {"grep.1"}


def test_thousands_of_pages_are_read_to_the_last(bench: Bench, manual: FakeManual) -> None:
    for number in range(2_000):
        manual.add_raw(
            f"p{number}.1", "text", f"DESCRIPTION\n   About {number}.\n" * (number % 50 > 0)
        )
    status = bench.run()
    assert (status.done, status.total) == (2_000, 2_000)
    assert (status.completed, status.skipped) == (1_960, 40)
    assert len(bench.passages()) == 1_960
    assert check(bench.store).problems == ()


class _StopsAfter:
    """A manual that lets its caller be killed after some pages."""

    def __init__(self, pages: int, then: threading.Event) -> None:
        self._left = pages
        self._then = then
        self._lock = threading.Lock()

    def pages(self, is_cancelled: IsCancelled) -> Sequence[ManualPage]:
        return FAST.pages(is_cancelled)

    def description(self, page: ManualPage, is_cancelled: IsCancelled) -> str | None:
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self._then.set()
        return FAST.description(page, is_cancelled)


def test_a_kill_in_between_costs_nothing_but_the_pages_at_hand(
    store: Store, manual: FakeManual, tmp_path: Path
) -> None:
    for number in range(300):
        manual.add(f"p{number}.1", "text", f"About {number}.")
    reached, copies = threading.Event(), []

    def watch() -> None:
        reached.wait(20)
        copies.append(killed(store, tmp_path / "killed"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    Bench(store, _StopsAfter(150, reached)).run()
    watcher.join()
    manual.calls()
    with opened(copies[0]) as again:
        bench = Bench(again)
        already = bench.board.refresh()[0].done
        assert 90 <= already < 300
        status = bench.run()
        assert (status.done, status.total, status.completed) == (300, 300, 300 - already)
        assert len(manual.calls()) == 2 + 300 - already
        assert len(bench.passages()) == 300
        assert check(again).problems == ()


def test_rows_that_were_lost_are_read_again_and_found_again(
    bench: Bench, manual: FakeManual
) -> None:
    """A restored backup may be older than the passages, which the journal brings back."""
    manual.add("grep.1", "print lines", "Searches.")
    manual.add("sed.1", "edit", "Edits.")
    bench.run()
    before = bench.passages()
    bench.store.write_derived(
        lambda connection: connection.execute("DELETE FROM man_page WHERE name = 'grep'")
    ).result()
    assert len(check(bench.store).problems) == 1
    bench.run()
    after = bench.passages()
    assert after.keys() == before.keys()
    assert after["grep.1"] != before["grep.1"], "indexes must take it in anew"
    assert after["sed.1"] == before["sed.1"]
    assert check(bench.store).problems == ()


def test_passages_of_pages_that_nothing_is_kept_of_are_mended_away(
    bench: Bench, manual: FakeManual
) -> None:
    manual.add("grep.1", "print lines", "Searches.")
    bench.run()
    bench.store.write_derived(
        lambda connection: connection.execute("DELETE FROM man_page")
    ).result()
    report = check(bench.store, repair=True)
    assert (len(report.repaired), report.problems) == (1, ())
    assert Passages(bench.store).of_kind(PassageKind.MAN_PAGE) == frozenset()


def test_the_card_says_what_waits(store: Store, manual: FakeManual) -> None:
    job = ManIndexer(store, Manual())
    assert job.waiting_words(1) == "1 manual page waits to be indexed"
    assert job.waiting_words(2_000) == "2,000 manual pages wait to be indexed"
    assert job.poll_interval_s() == 86_400


def test_that_the_indexer_is_off_is_no_warning(bench: Bench, manual: FakeManual) -> None:
    """Off is how it is at every start; what it has not read yet is nobody's history."""
    ManPages(bench.store).list_anew([ManualPage("grep", "1", "print lines", "1", AT)])
    (status,) = bench.board.refresh()
    assert (status.enabled, status.total - status.done) == (False, 1)
    assert bench.board.warnings() == ()


def test_while_the_manual_is_listed_that_is_what_it_does(bench: Bench, manual: FakeManual) -> None:
    manual.add("grep.1", "print lines", "Searches.")
    told: list[WorkerStatus] = []
    bench.board.subscribe(told.append)
    bench.run()
    assert "listing the manual" in [each.current_item for each in told]
