"""The text index follows the database: changes, restarts, damage and forgetting."""

import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pytest

from app.domain.changes import ExchangePut, PassagesPut
from app.domain.errors import IndexUnavailable
from app.domain.ids import PassageId, part_id
from app.domain.passages import PassageKind, PassageText
from app.domain.records.documents import Chunk, DocumentText, manual_page
from app.index import document_writer, follower, text_sync
from app.index.document_writer import ProcessWriter
from app.index.query import parse_query
from app.index.text_index import RebuildReason, TantivyTextIndex
from app.index.text_sync import TextIndexSync
from app.storage.deletion.forget import forget
from app.storage.engine.store import Store
from app.storage.tables.documents import Documents
from tests.fakes.passages import found_passages
from tests.fakes.stored import AT, add_conversation, new_conversation

WAIT_S = 60.0


class Spied(TantivyTextIndex):
    """A real index that counts its calls, and runs `before_put` before each."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.paths.index / "text", store.generation)
        self.put_count = 0
        self.started_over = 0
        self.before_put: Callable[[], None] = lambda: None
        self.committed = threading.Semaphore(0)

    def put(self, passages: Iterable[PassageText]) -> None:
        self.before_put()
        wanted = list(passages)
        self.put_count += len(wanted)
        super().put(wanted)

    def start_over(self, clean: int = 0) -> None:
        self.started_over += 1
        super().start_over(clean)

    def start_anew(self, clean: int) -> None:
        self.started_over += 1
        super().start_anew(clean)

    def commit(self, position: int) -> None:
        super().commit(position)
        self.committed.release()

    def finds(self, query: str) -> int:
        """Return the number of turns with any of the words."""
        return len(found_passages(self, query))

    def contains(self, word: str) -> bool:
        """Return whether the files contain a word, also one of removed passages."""
        return any(self.document_frequencies(parse_query(word)).values())


class Gate:
    """Holds the thread that calls it until it is opened."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.opened.wait(WAIT_S)


SyncOf = Callable[[Store], tuple[TextIndexSync, Spied]]


@pytest.fixture
def sync_of() -> Iterator[SyncOf]:
    """A function that opens the index of a store; all are stopped afterwards."""
    made: list[TextIndexSync] = []

    def make(store: Store) -> tuple[TextIndexSync, Spied]:
        index = Spied(store)
        made.append(TextIndexSync(store, index))
        return made[-1], index

    yield make
    for each in made:
        each.stop()


# -- what is indexed
def test_only_new_passages_are_indexed_each_after_a_throttle(store: Store, sync_of: SyncOf) -> None:
    sync, index = sync_of(store)
    add_conversation(store, "one", "two")
    counts = list[int]()
    sync.throttle = lambda: counts.append(index.put_count)
    sync.catch_up()
    assert counts == [0, 0]
    add_conversation(store, "three")
    sync.catch_up()
    sync.catch_up()
    assert (index.put_count, index.started_over) == (3, 1)
    sync.stop()
    add_conversation(store, "four")
    second, index = sync_of(store)
    assert second.covered_share == 0.75
    second.catch_up()
    assert (index.put_count, index.started_over, index.finds("four")) == (1, 0, 1)


def test_a_new_turn_is_part_of_the_context_of_the_last_one(store: Store, sync_of: SyncOf) -> None:
    sync, index = sync_of(store)
    whole = new_conversation(store, "one", "sourdough")
    _, second = whole.exchanges
    up_to = next(at for at, each in enumerate(whole.changes) if each == ExchangePut(second))
    store.save(*whole.changes[:up_to])
    sync.catch_up()
    answer, coming = part_id(1, 1), part_id(2, 0)
    table = index.candidate_table(parse_query("sourdough"), [answer])
    assert (table.context[0], coming in table.after) == (0, False)
    store.save(*whole.changes[up_to:])
    sync.catch_up()
    table = index.candidate_table(parse_query("sourdough"), [answer])
    assert table.context[0] > 0
    assert (table.words[0], coming in table.after) == (0, True)
    assert table.before[0].tolist() == [part_id(1, 0), 0, 0]
    assert (index.put_count, index.passage_count) == (3, 2), "the one before, and no other"
    store.save(ExchangePut(replace(second, segment_number=1)))
    sync.rebuild()
    table = index.candidate_table(parse_query("sourdough"), [answer])
    assert coming not in table.after, "another segment"


def test_an_empty_database_and_manual_pages_count_as_covered(store: Store, sync_of: SyncOf) -> None:
    store.save(*add_conversation(store).changes)  # a conversation without turns
    first, _ = sync_of(store)
    first.catch_up()
    first.stop()
    second, index = sync_of(store)
    second.catch_up()
    assert (second.covered_share, index.started_over) == (1.0, 0)
    second.stop()
    page = manual_page("grep", "1", "print lines", "1", AT)
    Documents(store, PassageKind.MAN_PAGE).replace_list([page])
    Documents(store, PassageKind.MAN_PAGE).put(
        [DocumentText(page, [Chunk("Searches.", "print lines")])]
    )
    assert sync_of(store)[0].covered_share == 1.0


def _damage_files(store: Store) -> None:
    for file in (store.paths.index / "text").rglob("*.term"):
        file.write_bytes(b"noise")


def _lose_a_passage(store: Store) -> None:
    index = TantivyTextIndex(store.paths.index / "text", store.generation)
    index.remove([PassageId(1)])
    index.commit(index.position)
    index.close()


@pytest.mark.parametrize(
    "fault",
    [_damage_files, _lose_a_passage, lambda store: shutil.rmtree(store.paths.index),
     lambda store: setattr(store, "generation", "restored")],
    ids=["damaged", "passage lost", "deleted", "another database"],
)  # fmt: skip
def test_an_unusable_index_is_rebuilt_at_the_next_start(
    store: Store, sync_of: SyncOf, fault: Callable[[Store], None]
) -> None:
    add_conversation(store, "one", "two")
    first, _ = sync_of(store)
    assert first.covered_share == 0.0
    first.catch_up()
    first.stop()
    fault(store)
    second, index = sync_of(store)
    second.catch_up()
    found = (index.started_over, index.passage_count, index.finds("one"), second.covered_share)
    assert found == (1, 2, 1, 1.0)


# -- what is removed
def test_a_replaced_passage_is_removed_not_from_the_files(store: Store, sync_of: SyncOf) -> None:
    """Only a rebuild removes words from the files, so forgetting needs one."""
    add_conversation(store, "xylocarp", "two", "three")
    store.save(PassagesPut((), (3,)))  # before it was ever indexed
    sync, index = sync_of(store)
    sync.catch_up()
    store.save(PassagesPut((), (1,)))
    sync.catch_up()
    assert (index.passage_count, index.started_over, sync.covered_share) == (1, 1, 1.0)
    assert (index.finds("xylocarp"), index.contains("xylocarp")) == (0, True)


@pytest.mark.parametrize("when", ["running", "stopped", "during a batch"])
def test_forgotten_words_are_not_found_and_later_removed_from_the_files(
    store: Store, sync_of: SyncOf, when: str
) -> None:
    secret = add_conversation(store, "xylocarp")
    sync, index = sync_of(store)
    sync.catch_up()
    assert index.contains("xylocarp")
    started_over = 2
    if when == "stopped":
        sync.stop()
    add_conversation(store, "sourdough")
    if when == "during a batch":

        def forget_meanwhile() -> None:
            index.before_put = lambda: None
            forget(store, [secret.conversation.id])

        index.before_put = forget_meanwhile
        sync.catch_up()
    else:
        forget(store, [secret.conversation.id])
    if when == "stopped":
        sync, index = sync_of(store)
        started_over = 1
    sync.catch_up()
    assert (index.finds("xylocarp"), index.finds("sourdough")) == (0, 1)
    assert (index.started_over, sync.owes_erasure) == (started_over - 1, True)
    sync.stop()
    sync, index = sync_of(store)
    assert sync.owes_erasure, "also after a start"
    sync.erase()
    assert (index.started_over, index.finds("sourdough"), sync.owes_erasure) == (1, 1, False)
    assert not index.contains("xylocarp")
    sync.erase()
    sync.stop()
    sync, again = sync_of(store)
    sync.catch_up()
    sync.erase()
    assert (index.started_over, again.started_over) == (1, 0), "once is enough"


def test_the_rest_is_found_while_forgotten_words_leave(store: Store, sync_of: SyncOf) -> None:
    secret = add_conversation(store, "xylocarp")
    add_conversation(store, "sourdough")
    sync, index = sync_of(store)
    sync.catch_up()
    seen: list[tuple[int, float]] = []
    index.before_put = lambda: seen.append((index.finds("sourdough"), sync.covered_share))
    forget(store, [secret.conversation.id])
    sync.erase()
    assert seen == [(1, 1.0)]
    assert (index.finds("sourdough"), sync.covered_share) == (1, 1.0)
    assert not index.contains("xylocarp")
    assert len([each for each in (store.paths.index / "text").iterdir() if each.is_dir()]) == 1


def test_a_removal_that_was_interrupted_begins_again_at_the_next_start(
    store: Store, sync_of: SyncOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = add_conversation(store, "xylocarp")
    add_conversation(store, "sourdough")
    sync, index = sync_of(store)
    sync.catch_up()
    forget(store, [secret.conversation.id])
    monkeypatch.setattr(index, "finish", lambda: None)  # killed just before
    sync.erase()
    index.close()
    second, again = sync_of(store)
    assert (again.finds("sourdough"), again.contains("xylocarp")) == (1, True)
    second.erase()
    assert (again.finds("sourdough"), again.contains("xylocarp")) == (1, False)


def test_forgetting_a_private_one_leaves_the_index_alone(store: Store, sync_of: SyncOf) -> None:
    private = new_conversation(store, private=True)
    store.save(*private.changes)
    add_conversation(store, "sourdough")
    sync, index = sync_of(store)
    sync.catch_up()
    forget(store, [private.conversation.id])
    sync.erase()
    assert index.started_over == 1
    secret = add_conversation(store, "xylocarp")
    sync.catch_up()
    forget(store, [secret.conversation.id])
    sync.erase()
    assert (index.started_over, index.contains("xylocarp")) == (2, False)


def test_an_interrupted_rebuild_continues_and_is_partial_meanwhile(
    store: Store, sync_of: SyncOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_sync, "_BATCH", 2)
    for number in range(6):
        add_conversation(store, f"number {number}")
    sync, index = sync_of(store)
    sync.rebuild(lambda: index.put_count >= 4)
    assert index.finds("number") == 4
    assert sync.covered_share == pytest.approx(4 / 6)
    sync.catch_up()
    assert (index.put_count, index.finds("number"), sync.covered_share) == (6, 6, 1.0)


# -- in the background
@pytest.mark.parametrize("failure", [IndexUnavailable("no room"), ZeroDivisionError()])
def test_the_thread_follows_every_change_also_after_failures(
    store: Store, sync_of: SyncOf, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture, failure: Exception,
) -> None:  # fmt: skip
    monkeypatch.setattr(follower, "_RETRY_S", 0.01)
    sync, index = sync_of(store)
    failures = iter([failure, failure])

    def fail_twice() -> None:
        if (each := next(failures, None)) is not None:
            raise each

    index.before_put = fail_twice
    sync.start()
    sync.start()
    for word in ("one", "two"):
        add_conversation(store, word)
        assert index.committed.acquire(timeout=WAIT_S)
        sync.catch_up()
        assert index.finds(word) == 1
    levels = {"WARNING" if isinstance(failure, IndexUnavailable) else "ERROR"}
    assert {each.levelname for each in caplog.records if each.name == follower.__name__} == levels


def test_a_rebuild_runs_in_the_thread_and_a_search_does_not_wait_for_it(
    store: Store, sync_of: SyncOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_sync, "_MAX_WAIT_S", 0.05)
    add_conversation(store, "one")
    sync, index = sync_of(store)
    sync.catch_up_soon()
    assert index.finds("one") == 1, "at once without the thread"
    sync.start()
    gate = index.before_put = Gate()
    sync.rebuild()
    assert gate.reached.wait(WAIT_S)
    sync.catch_up_a_little()
    assert sync.covered_share == 0.0
    gate.opened.set()
    sync.catch_up()
    assert (index.finds("one"), sync.covered_share) == (1, 1.0)
    sync.catch_up_soon()


def test_catching_up_before_a_search_never_raises(store: Store, sync_of: SyncOf) -> None:
    sync, index = sync_of(store)
    add_conversation(store, "one")

    def fail() -> None:
        raise IndexUnavailable("no room")

    index.before_put = fail
    sync.catch_up_a_little()
    index.before_put = lambda: None
    sync.catch_up_a_little()
    assert index.finds("one") == 1


def test_catching_up_before_a_search_indexes_a_few_batches_and_the_rest_is_reported(
    store: Store, sync_of: SyncOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_sync, "_BATCH", 2)
    monkeypatch.setattr(text_sync, "_BUSY_S", 0.0)
    monkeypatch.setattr(text_sync, "_MANY", 1)
    for number in range(10):
        add_conversation(store, f"word{number}")
    sync, index = sync_of(store)
    sync.catch_up_a_little()
    assert (index.passage_count, sync.covered_share, index.has_process) == (4, 0.4, False)
    sync.catch_up_soon()
    assert (index.passage_count, sync.covered_share) == (8, 0.8)
    sync.catch_up_a_little()
    assert (index.passage_count, sync.covered_share, index.put_count) == (10, 1.0, 10)


def test_stopping_keeps_finished_batches(store: Store, sync_of: SyncOf) -> None:
    first, index = sync_of(store)
    stopper: list[threading.Thread] = []

    def stop() -> None:
        stopper.append(threading.Thread(target=first.stop))
        stopper[0].start()
        index.before_put = lambda: None

    index.before_put = stop
    add_conversation(store, "one")
    first.catch_up()
    stopper[0].join(WAIT_S)
    second, index = sync_of(store)
    second.catch_up()
    assert (index.put_count, index.finds("one")) == (0, 1)


# -- a process of its own
def test_a_backlog_is_indexed_by_another_process_and_what_it_lost_is_indexed_again(
    store: Store, sync_of: SyncOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_sync, "_BATCH", 2)
    monkeypatch.setattr(text_sync, "_BUSY_S", 0.0)
    monkeypatch.setattr(text_sync, "_MANY", 1)
    sync, index = sync_of(store)
    by_process = list[bool]()
    index.before_put = lambda: by_process.append(index.has_process)
    for words in ("one two", "three", "four", "five", "six"):
        add_conversation(store, words)
    sync.catch_up()
    assert (by_process, index.has_process) == ([False, True, True], False)
    assert (index.finds("one"), index.finds("five"), index.passage_count) == (1, 1, 5)
    for words in ("seven", "eight", "nine"):
        add_conversation(store, words)

    def kill() -> None:
        if isinstance(index._writer, ProcessWriter):
            index._writer._process.kill()
            index._writer._process.wait()

    index.before_put = kill
    with pytest.raises(IndexUnavailable):
        sync.catch_up()
    index.before_put = lambda: None
    sync.catch_up()
    assert (index.finds("seven"), index.finds("nine"), index.passage_count) == (1, 1, 8)
    assert index.needs_rebuild is None


@pytest.mark.parametrize(
    ("program", "reason"),
    [(None, None), ("import sys; sys.exit('no module')", None),
     ("import sys; sys.exit('pyo3_runtime.PanicException: x')", RebuildReason.DAMAGED)],
)  # fmt: skip
def test_without_a_process_this_one_indexes_and_does_not_try_again_at_once(
    store: Store,
    sync_of: SyncOf,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    program: str | None,
    reason: RebuildReason | None,
) -> None:
    """It cannot be started, or ends by itself; what it said last is in the log."""
    monkeypatch.setattr(text_sync, "_BATCH", 2)
    monkeypatch.setattr(text_sync, "_BUSY_S", 0.0)
    command = [sys.executable, "-c", program] if program else [str(store.paths.root / "none")]
    starts = list[str]()

    def started(name: str) -> list[str]:
        starts.append(name)
        return command

    monkeypatch.setattr(document_writer, "module_command", started)
    sync, index = sync_of(store)
    for words in ("one", "two", "three", "four", "five", "six"):
        add_conversation(store, words)
    if program:
        with pytest.raises(IndexUnavailable):
            sync.catch_up()
        assert program[22:-2] in caplog.text
        assert index.needs_rebuild == reason
    sync.catch_up()
    assert (index.passage_count, len(starts), index.needs_rebuild) == (6, 1, None)


def test_a_failure_while_idle_does_not_end_the_thread(
    store: Store, sync_of: SyncOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "_IDLE_S", 0.01)
    monkeypatch.setattr(follower, "_RETRY_S", 0.0)
    sync, index = sync_of(store)
    failed = threading.Event()

    def fail() -> None:
        failed.set()
        raise RuntimeError

    monkeypatch.setattr(sync, "_on_idle", fail)
    sync.start()
    assert failed.wait(WAIT_S)
    add_conversation(store, "one")
    while not index.finds("one"):
        assert index.committed.acquire(timeout=WAIT_S)
