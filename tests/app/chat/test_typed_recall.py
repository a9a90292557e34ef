"""Recall while typing: what is searched for ahead, what is kept for sending, and what drops it."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import cast

import pytest

from app.chat.typed_recall import RetrievalCache
from app.domain.change_set import ChangeListener, ChangeSet
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.recall import RecallSettings, RetrievalResult, SegmentContext
from tests.fakes.found import fact, turn

ASKED = "Which tea do I drink?"
HERE, NEW = ConversationId(7), ConversationId(-5)
SETTINGS = replace(RecallSettings(), auto_rag_enabled=False)
FOUND = RetrievalResult(
    facts=(fact(1, "The user drinks tea."),),
    history=(turn(600),),
    titles={ConversationId(60): "Tea"},
)


class Listened:
    """A store that only announces changes."""

    def __init__(self) -> None:
        self.tell: ChangeListener = lambda _: None

    def subscribe(self, listener: ChangeListener) -> Callable[[], None]:
        self.tell = listener
        return lambda: None


class Counted:
    """A retrieval that counts its searches."""

    def __init__(self, found: RetrievalResult = FOUND) -> None:
        self.found, self.count, self.store = found, 0, Listened()
        self.cache = RetrievalCache(self.store, self._retrieve)  # type: ignore[arg-type]

    def _retrieve(self, *_: object) -> RetrievalResult:
        self.count += 1
        return self.found

    def ask(
        self, text: str = ASKED, where: ConversationId = HERE, segment: SegmentContext | None = None,
        settings: RecallSettings = SETTINGS, *, by_meaning: bool = True, is_late: bool = False,
    ) -> int:  # fmt: skip
        """Ask, and return how many searches there were so far."""
        context = segment or SegmentContext(frozenset({ExchangeId(1)}))
        self.cache(text, where, context, settings, lambda: is_late, by_meaning)
        return self.count


def test_the_same_question_is_searched_for_once() -> None:
    asking = Counted()
    sent = SegmentContext(frozenset({ExchangeId(1)}), frozenset({MessageId(9)}))
    assert [asking.ask(), asking.ask(), asking.ask(segment=sent), asking.ask(by_meaning=False)] == [
        1
    ] * 4
    assert asking.ask("Which tea do I like?") == 2
    assert asking.ask(where=NEW) == 3
    assert asking.ask(settings=replace(SETTINGS, rag_fact_limit=1)) == 4
    assert asking.ask(segment=SegmentContext(frozenset({ExchangeId(2)}))) == 5
    begun = SegmentContext()
    assert asking.ask(where=NEW, segment=begun) == asking.ask(where=HERE, segment=begun) == 6


@pytest.mark.parametrize(
    ("change", "searches"),
    [(ChangeSet(passages=True), 2), (ChangeSet(memory=True), 2),
     (ChangeSet(settings=frozenset({"embedder"})), 2),
     (ChangeSet(conversations=frozenset({ConversationId(60)})), 2),
     (ChangeSet(conversations=frozenset({ConversationId(50)})), 2),
     (ChangeSet(conversations=frozenset({HERE}), messages_in=frozenset({HERE})), 1)],
)  # fmt: skip
def test_a_result_is_dropped_when_its_quotes_may_differ(change: ChangeSet, searches: int) -> None:
    asking = Counted()
    asking.ask()
    asking.store.tell(change)
    assert asking.ask() == searches


def test_only_complete_results_by_meaning_are_kept() -> None:
    asking = Counted()
    assert [asking.ask(by_meaning=False), asking.ask(is_late=True), asking.ask(), asking.ask()] == [
        1, 2, 3, 3,
    ]  # fmt: skip
    asking = Counted(replace(FOUND, notice="The index is being built."))
    assert [asking.ask(), asking.ask()] == [1, 2]


class Slow(Counted):
    """A retrieval that begins, and ends once `go_on` is set or it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = threading.Semaphore(0), threading.Event()

    def _retrieve(self, *asked: object) -> RetrievalResult:
        is_cancelled = cast("Callable[[], bool]", asked[4])
        self.begun.release()
        while not self.go_on.wait(0.005) and not is_cancelled():
            pass
        return super()._retrieve()

    def call(self, is_cancelled: Callable[[], bool] = lambda: False) -> "Future[RetrievalResult]":
        """Ask in a thread."""
        done: Future[RetrievalResult] = Future()
        asked = ASKED, HERE, SegmentContext(frozenset({ExchangeId(1)})), SETTINGS

        def run() -> None:
            done.set_result(self.cache(*asked, is_cancelled, True))

        threading.Thread(target=run, daemon=True).start()
        return done


@pytest.mark.parametrize(
    ("change", "searches"),
    [(None, 1), (ChangeSet(conversations=frozenset({HERE})), 1),
     (ChangeSet(conversations=frozenset({ConversationId(60)})), 2)],
)  # fmt: skip
def test_sending_waits_for_the_search_under_way(change: ChangeSet | None, searches: int) -> None:
    asking, changed, waits = Slow(), threading.Event(), threading.Event()
    typed = asking.call(changed.is_set)
    assert asking.begun.acquire(timeout=10)

    def is_late() -> bool:
        waits.set()
        return False

    sent = asking.call(is_late)
    assert waits.wait(10)
    changed.set()
    if change is not None:
        asking.store.tell(change)
    assert not typed.done(), "what is waited for is not cancelled"
    asking.go_on.set()
    assert (typed.result(10), sent.result(10), asking.count) == (FOUND, FOUND, searches)


def test_a_cancelled_search_is_neither_waited_for_nor_kept() -> None:
    asking, changed = Slow(), threading.Event()
    typed = asking.call(changed.is_set)
    changed.set()
    typed.result(10)
    asking.go_on.set()
    assert asking.call().result(10) == FOUND
    assert asking.count == 2


def test_who_waits_for_a_search_may_give_up() -> None:
    asking, is_late = Slow(), threading.Event()
    typed = asking.call()
    assert asking.begun.acquire(timeout=10)
    sent = asking.call(is_late.is_set)
    is_late.set()
    assert sent.result(10) == RetrievalResult()
    asking.go_on.set()
    assert (typed.result(10), asking.count) == (FOUND, 1)
