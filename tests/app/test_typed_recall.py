"""Recall while typing: what is searched for ahead, what is kept for sending, and what drops it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from app.chat.typed_recall import RetrievalCache
from app.domain.changes import ChangeListener, ChangeSet
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
    [
        (ChangeSet(passages=True), 2),
        (ChangeSet(memory=True), 2),
        (ChangeSet(settings=frozenset({"embedder"})), 2),
        (ChangeSet(conversations=frozenset({ConversationId(60)})), 2),
        (ChangeSet(conversations=frozenset({ConversationId(50)})), 2),
        (ChangeSet(conversations=frozenset({HERE}), messages_in=frozenset({HERE})), 1),
    ],
)
def test_a_result_is_dropped_when_what_it_quotes_may_have_changed(
    change: ChangeSet, searches: int
) -> None:
    asking = Counted()
    asking.ask()
    asking.store.tell(change)
    assert asking.ask() == searches


def test_only_complete_results_by_meaning_are_kept() -> None:
    asking = Counted()
    assert [asking.ask(by_meaning=False), asking.ask(is_late=True), asking.ask(), asking.ask()] == [
        1,
        2,
        3,
        3,
    ]
    asking = Counted(replace(FOUND, notice="The index is being built."))
    assert [asking.ask(), asking.ask()] == [1, 2]
