"""The text index follows the database: after every change, after a kill, after damage, forgetting."""

import shutil
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

import pytest

from app.domain.changes import ExchangePut, PassagesPut
from app.domain.errors import IndexUnavailable
from app.domain.ids import PassageId, part_id, passage_of
from app.domain.manual import ManualPage, PageText
from app.domain.passages import PassageText
from app.index.query import parse_query
from app.index.text_index import TantivyTextIndex
from app.memory import following, index_sync
from app.memory.index_sync import IndexSync
from app.storage.forget import forget
from app.storage.man_pages import ManPages
from app.storage.store import Store
from tests.fakes.stored import AT, opened, tell, told

WAIT_S = 20.0


class Spied(TantivyTextIndex):
    """A real index that counts what it is asked to do, and can be told to fail or to wait."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.paths.index / "text", store.generation)
        self.put_count = 0
        self.started_over = 0
        self.before_put: Callable[[], None] = lambda: None

    def put(self, passages: Iterable[PassageText]) -> None:
        self.before_put()
        wanted = list(passages)
        self.put_count += len(wanted)
        super().put(wanted)

    def start_over(self) -> None:
        self.started_over += 1
        super().start_over()

    def finds(self, query: str) -> int:
        """How many turns hold any of the words."""
        return len({passage_of(hit.part_id) for hit in self.search(query, 50)})


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with opened(data_dir) as open_store:
        yield open_store


@pytest.fixture
def sync_of() -> Iterator[Callable[[Store], tuple[IndexSync, Spied]]]:
    """Return what makes a synchronised index of a store; it is stopped afterwards."""
    made: list[IndexSync] = []

    def make(store: Store) -> tuple[IndexSync, Spied]:
        index = Spied(store)
        made.append(IndexSync(store, index))
        return made[-1], index

    yield make
    for each in made:
        each.stop()


SyncOf = Callable[[Store], tuple[IndexSync, Spied]]


def test_what_was_written_is_found_after_catching_up(store: Store, sync_of: SyncOf) -> None:
    sync, index = sync_of(store)
    told(store, "sourdough")
    sync.catch_up()
    assert (index.finds("sourdough"), sync.covered_share) == (1, 1.0)


def test_it_gives_way_before_each_passage(store: Store, sync_of: SyncOf) -> None:
    sync, index = sync_of(store)
    told(store, "one")
    told(store, "two")
    at = list[int]()
    sync.give_way = lambda: at.append(index.put_count)
    sync.catch_up()
    assert at == [0, 0]  # this index counts what it was given once it has it all


def test_only_what_is_new_is_put(store: Store, sync_of: SyncOf) -> None:
    sync, index = sync_of(store)
    told(store, "one")
    sync.catch_up()
    told(store, "two")
    sync.catch_up()
    sync.catch_up()
    assert (index.put_count, index.started_over) == (2, 1)


def test_a_new_turn_becomes_part_of_the_context_of_the_one_before(
    store: Store, sync_of: SyncOf
) -> None:
    sync, index = sync_of(store)
    whole = tell(store, "one", "sourdough")
    _, second = whole.exchanges
    up_to = next(at for at, each in enumerate(whole.changes) if each == ExchangePut(second))
    store.save(*whole.changes[:up_to])
    sync.catch_up()
    answer, coming = part_id(1, 1), part_id(2, 0)
    survey = index.survey(parse_query("sourdough"), [answer])
    assert (survey.context[0], coming in survey.after) == (0, False)
    store.save(*whole.changes[up_to:])
    sync.catch_up()
    survey = index.survey(parse_query("sourdough"), [answer])
    assert survey.context[0] > 0
    assert (survey.words[0], coming in survey.after) == (0, True)
    assert (index.put_count, index.passage_count) == (3, 2), "the one before, and no other"


def test_the_next_start_goes_on_where_the_last_one_stood(store: Store, sync_of: SyncOf) -> None:
    first, _ = sync_of(store)
    told(store, "one")
    first.catch_up()
    first.stop()
    told(store, "two")
    second, index = sync_of(store)
    assert second.covered_share == 0.5
    second.catch_up()
    assert (index.put_count, index.started_over, index.finds("two")) == (1, 0, 1)


def test_pages_of_the_manual_are_no_part_of_the_history_that_is_covered(
    store: Store, sync_of: SyncOf
) -> None:
    told(store, "sourdough")
    first, _ = sync_of(store)
    first.catch_up()
    first.stop()
    page = ManualPage("grep", "1", "print lines", "1", AT)
    ManPages(store).list_anew([page])
    ManPages(store).put([PageText(page, "Searches.")])
    assert sync_of(store)[0].covered_share == 1.0


def test_an_empty_book_is_covered_and_not_built_again_and_again(
    store: Store, sync_of: SyncOf
) -> None:
    store.save(*told(store).changes)  # a conversation without turns
    first, _ = sync_of(store)
    first.catch_up()
    first.stop()
    second, index = sync_of(store)
    second.catch_up()
    assert (second.covered_share, index.started_over) == (1.0, 0)


def test_a_missing_index_covers_nothing_until_it_is_there(store: Store, sync_of: SyncOf) -> None:
    told(store, "one")
    sync, _ = sync_of(store)
    assert sync.covered_share == 0.0
    sync.catch_up()
    assert sync.covered_share == 1.0


def test_a_damaged_index_is_built_anew(store: Store, sync_of: SyncOf) -> None:
    told(store, "one")
    first, _ = sync_of(store)
    first.catch_up()
    first.stop()
    for file in (store.paths.index / "text").rglob("*.term"):
        file.write_bytes(b"noise")
    second, index = sync_of(store)
    second.catch_up()
    assert index.finds("one") == 1


def test_an_index_of_another_state_of_the_database_is_built_anew(
    store: Store, sync_of: SyncOf
) -> None:
    told(store, "one")
    first, _ = sync_of(store)
    first.catch_up()
    first.stop()
    store.generation = "restored"
    second, index = sync_of(store)
    second.catch_up()
    assert (index.started_over, index.finds("one")) == (1, 1)


def test_an_index_that_lacks_what_its_position_says_is_built_anew(
    store: Store, sync_of: SyncOf
) -> None:
    told(store, "one", "two")
    first, index = sync_of(store)
    first.catch_up()
    index.remove([PassageId(1)])
    index.commit(index.position)
    first.stop()
    second, index = sync_of(store)
    second.catch_up()
    assert (index.started_over, index.passage_count) == (1, 2)


def test_what_is_replaced_leaves_the_index(store: Store, sync_of: SyncOf) -> None:
    told(store, "one", "two")
    sync, index = sync_of(store)
    sync.catch_up()
    store.save(PassagesPut((), (1,)))
    sync.catch_up()
    assert (index.passage_count, index.started_over, sync.covered_share) == (1, 1, 1.0)


def test_what_was_only_dropped_stays_in_the_files(store: Store, sync_of: SyncOf) -> None:
    """Were it otherwise, forgetting could be had for less than a new index."""
    told(store, "xylocarp")
    told(store, "sourdough")
    sync, index = sync_of(store)
    sync.catch_up()
    store.save(PassagesPut((), (1,)))
    sync.catch_up()
    assert (index.finds("xylocarp"), _remembers(index, "xylocarp")) == (0, True)


def test_what_is_forgotten_is_in_no_file_of_the_index(store: Store, sync_of: SyncOf) -> None:
    secret = told(store, "xylocarp")
    told(store, "sourdough")
    sync, index = sync_of(store)
    sync.catch_up()
    assert _remembers(index, "xylocarp")
    forget(store, [secret.conversation.id])
    sync.catch_up()
    assert (index.started_over, index.finds("sourdough")) == (2, 1)
    assert not _remembers(index, "xylocarp")
    sync.catch_up()
    assert index.started_over == 2, "once is enough"


def test_forgetting_before_a_start_is_noticed_at_the_start(store: Store, sync_of: SyncOf) -> None:
    secret = told(store, "xylocarp")
    first, _ = sync_of(store)
    first.catch_up()
    first.stop()
    forget(store, [secret.conversation.id])
    second, index = sync_of(store)
    second.catch_up()
    assert not _remembers(index, "xylocarp")
    assert index.started_over == 1
    second.stop()
    third, index = sync_of(store)
    third.catch_up()
    assert index.started_over == 0


def test_forgetting_in_the_middle_of_a_batch_is_noticed(store: Store, sync_of: SyncOf) -> None:
    secret = told(store, "xylocarp")
    sync, index = sync_of(store)
    sync.catch_up()

    def forget_meanwhile() -> None:
        index.before_put = lambda: None
        forget(store, [secret.conversation.id])

    told(store, "sourdough")
    index.before_put = forget_meanwhile
    sync.catch_up()
    sync.catch_up()
    assert index.finds("sourdough") == 1
    assert not _remembers(index, "xylocarp")


def _remembers(index: Spied, word: str) -> bool:
    """Whether the files hold a word: what was only dropped counts until they are written anew."""
    return any(index.document_frequencies(word).values())


def test_a_rebuild_that_is_broken_off_goes_on_and_answers_partially(
    store: Store, sync_of: SyncOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_sync, "_BATCH", 2)
    for number in range(6):
        told(store, f"number {number}")
    sync, index = sync_of(store)
    sync.rebuild(lambda: index.put_count >= 4)
    assert index.finds("number") == 4
    assert sync.covered_share == pytest.approx(4 / 6)
    sync.catch_up()
    assert (index.put_count, index.finds("number"), sync.covered_share) == (6, 6, 1.0)


# -- in the background


def test_a_thread_follows_every_change(store: Store, sync_of: SyncOf) -> None:
    sync, index = sync_of(store)
    committed = threading.Semaphore(0)
    real = index.commit

    def commit(position: int | None) -> None:
        real(position)
        committed.release()

    index.commit = commit  # type: ignore[method-assign]
    sync.start()
    sync.start()
    for word in ("one", "two"):
        told(store, word)
        assert committed.acquire(timeout=WAIT_S)
        sync.catch_up()
        assert index.finds(word) == 1


def test_a_thread_that_is_refused_tries_again(
    store: Store, sync_of: SyncOf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(following, "_RETRY_S", 0.01)
    sync, index = sync_of(store)
    healed = threading.Event()
    failures = iter([IndexUnavailable("no room"), IndexUnavailable("no room")])

    def fail_twice() -> None:
        failure = next(failures, None)
        if failure is not None:
            raise failure
        healed.set()

    index.before_put = fail_twice
    told(store, "one")
    sync.start()
    assert healed.wait(WAIT_S)
    sync.catch_up()
    assert index.finds("one") == 1
    assert "the text index waits: no room" in caplog.text


def test_a_bug_does_not_end_the_thread(
    store: Store, sync_of: SyncOf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(following, "_RETRY_S", 0.01)
    sync, index = sync_of(store)
    failed, healed = threading.Event(), threading.Event()

    def fail_once() -> None:
        if failed.is_set():
            healed.set()
            return
        failed.set()
        raise ZeroDivisionError

    index.before_put = fail_once
    told(store, "one")
    sync.start()
    assert failed.wait(WAIT_S)
    told(store, "two")
    assert healed.wait(WAIT_S)
    sync.catch_up()
    assert (index.finds("one"), index.finds("two")) == (1, 1)
    assert "could not be brought in step" in caplog.text


def test_a_search_does_not_wait_for_a_long_rebuild(
    store: Store, sync_of: SyncOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_sync, "_PATIENCE_S", 0.05)
    told(store, "one")
    sync, index = sync_of(store)
    begun, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert go_on.wait(WAIT_S)

    index.before_put = hold
    sync.start()
    assert begun.wait(WAIT_S)
    sync.catch_up_a_little()
    assert sync.covered_share == 0.0
    go_on.set()
    sync.catch_up()
    assert sync.covered_share == 1.0


def test_catching_up_a_little_never_raises(store: Store, sync_of: SyncOf) -> None:
    sync, index = sync_of(store)
    told(store, "one")

    def fail() -> None:
        raise IndexUnavailable("no room")

    index.before_put = fail
    sync.catch_up_a_little()
    index.before_put = lambda: None
    sync.catch_up_a_little()
    assert index.finds("one") == 1


def test_a_thread_rebuilds_in_the_background(store: Store, sync_of: SyncOf) -> None:
    told(store, "one")
    sync, index = sync_of(store)
    sync.start()
    sync.catch_up()
    begun, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert go_on.wait(WAIT_S)

    index.before_put = hold
    sync.rebuild()
    assert begun.wait(WAIT_S), "it is the thread that waits"
    assert sync.covered_share == 0.0
    go_on.set()
    sync.catch_up()
    assert (index.finds("one"), sync.covered_share) == (1, 1.0)


def test_stopping_keeps_what_was_done(store: Store, sync_of: SyncOf) -> None:
    first, index = sync_of(store)
    stopper: list[threading.Thread] = []

    def stop() -> None:
        thread = threading.Thread(target=first.stop)
        thread.start()
        stopper.append(thread)
        index.before_put = lambda: None

    index.before_put = stop
    told(store, "one")
    first.catch_up()
    stopper[0].join(WAIT_S)
    second, index = sync_of(store)
    second.catch_up()
    assert (index.put_count, index.finds("one")) == (0, 1)


def test_an_index_folder_that_vanishes_is_made_again(store: Store, sync_of: SyncOf) -> None:
    told(store, "one")
    first, _ = sync_of(store)
    first.catch_up()
    first.stop()
    shutil.rmtree(store.paths.index)
    second, index = sync_of(store)
    second.catch_up()
    assert index.finds("one") == 1


def test_passages_that_leave_before_they_were_put_are_no_trouble(
    store: Store, sync_of: SyncOf
) -> None:
    gone: Collection[int] = (1,)
    told(store, "one", "two")
    store.save(PassagesPut((), tuple(gone)))
    sync, index = sync_of(store)
    sync.catch_up()
    assert (index.passage_count, sync.covered_share) == (1, 1.0)
