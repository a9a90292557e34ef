"""Turns without an answer rank after all possible answers, and are never recalled."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from app.domain.changes import ConversationPut, ExchangePut, MessagesAdded, PassagesPut
from app.domain.conversations import ExchangeStatus
from app.domain.diagnostics import ObstacleCause
from app.domain.passages import PassageKind
from app.domain.recall import SegmentContext
from app.domain.turns import turn_passage
from app.memory.search.explain import Explainer
from app.storage.engine.store import Store
from app.storage.tables.passages.queries import Passages
from tests.fakes.searchable import RecallLibrary
from tests.fakes.stored import AT, ConversationRecord, add_conversation, new_conversation, opened

QUESTION = "Why is the database so slow"
QUOTES = "From your conversations:\n\n> The index of the database cannot be used."
ANSWER = ("Our database takes nine seconds", "It is slow because its index cannot be used.")


def only_asked(
    store: Store, text: str, model: str = "recall:", *, failed: bool = False, answer: str = QUOTES,
    at: datetime = AT,
) -> ConversationRecord:  # fmt: skip
    """Store a conversation of one question that the Recall model answered, or whose reply failed."""
    whole = new_conversation(store, (text, answer), title="Asked", at=at)
    asked, answered = whole.messages
    messages = (asked,) if failed and not answer else (asked, replace(answered, model=model))
    exchange = replace(
        whole.exchanges[0], message_ids=tuple(each.id for each in messages), model=model,
        status=ExchangeStatus.FAILED if failed else ExchangeStatus.COMPLETED,
    )  # fmt: skip
    head = replace(whole.conversation, visible_leaf_id=messages[-1].id)
    passage = turn_passage(store.ids.passage(), exchange, messages)
    assert passage is not None
    assert passage.tokens == 0, "it is not embedded"
    store.save(
        ConversationPut(head), MessagesAdded(messages), ExchangePut(exchange), PassagesPut((passage,))
    )  # fmt: skip
    return replace(whole, conversation=head, messages=messages, exchanges=(exchange,))


@pytest.fixture
def library(data_dir: Path) -> Iterator[RecallLibrary]:
    with opened(data_dir) as store:
        made = RecallLibrary(store)
        add_conversation(store, ANSWER, title="Tuning")
        yield made
        made.sync.stop()


@pytest.mark.parametrize(
    "more", [{}, {"failed": True, "answer": "", "model": "openai:m"}, {"failed": True}],
    ids=["recall model", "failed without text", "failed"],
)  # fmt: skip
def test_a_repeated_question_ranks_second(library: RecallLibrary, more: dict[str, object]) -> None:
    relevance = library.by_meaning(QUESTION).results[0].relevance
    for days in range(4):
        only_asked(library.store, QUESTION, at=AT + timedelta(days), **more)  # type: ignore[arg-type]
    for results in (library.search(QUESTION), library.by_meaning(QUESTION).results):
        titles = [each.conversation_title for each in results]
        assert titles[0] == "Tuning"
        assert titles.count("Asked") == 4
        assert all(each.is_weak for each in results if each.conversation_title == "Asked")
    assert library.by_meaning(QUESTION).results[0].relevance == pytest.approx(relevance, abs=0.1)


def test_it_is_found_by_its_own_words_unless_it_is_hidden(library: RecallLibrary) -> None:
    whole = only_asked(library.store, "Where is the xylophone")
    for query in ("xylophone", "title:Asked", "title:Asked xylophone"):
        assert library.titles(query) == ["Asked"]
    (found,) = library.search("xylophone", 5, PassageKind.TURN)
    assert found.relevance <= 0.25
    assert library.by_meaning("xylophone").results[0].conversation_title == "Asked"
    for hide, show in (({"archived": True}, {"archived": False}), ({"deleted_at": AT}, {})):
        library.edit(whole, **hide)
        assert library.titles("xylophone") == []
        library.edit(whole, **show)


def test_neither_it_nor_its_summary_is_recalled(library: RecallLibrary) -> None:
    first, second = only_asked(library.store, QUESTION), only_asked(library.store, QUESTION)
    library.summarize(first, QUESTION, conversation=True)
    segment = SegmentContext(frozenset({first.exchanges[0].id, second.exchanges[0].id}))
    found = library.recall(QUESTION, segment=segment)
    titles = {found.titles[each.conversation_id] for each in found.history}
    titles |= {each.title for each in found.conversations}
    assert "Tuning" in titles
    assert "Asked" not in titles
    assert found.earlier == ()
    assert len(Passages(library.store).unanswered()) >= 2
    explainer = Explainer(library.store, library.settings, library.index, library.service)
    obstacles = explainer.explain(QUESTION, first.exchanges[0].id).obstacles
    assert obstacles[0].cause is ObstacleCause.UNFINISHED


@pytest.mark.parametrize(
    ("text", "is_memory"),
    [
        ("I moved to Lisbon last week.", True), ("my sister is called Ana", True),
        ("我对花生过敏。", True), ("Mein Bruder wohnt in Kiel", True),
        ("Where does Ana live?", False), ("where does ana live", False), ("wie heißt er", False),
        ("他住在哪里", False), ("Hi! Do you know a good baker in Lisbon?", False), ("?", False),
    ],
)  # fmt: skip
def test_a_statement_without_a_reply_is_memory(data_dir: Path, text: str, is_memory: bool) -> None:
    with opened(data_dir) as store:
        whole = new_conversation(store, (text, "x"))
        exchange = replace(
            whole.exchanges[0], message_ids=(whole.messages[0].id,), status=ExchangeStatus.INTERRUPTED
        )  # fmt: skip
        passage = turn_passage(store.ids.passage(), exchange, whole.messages[:1])
        assert (passage.tokens > 0) is is_memory
        running = replace(exchange, status=ExchangeStatus.RUNNING)
        later = turn_passage(store.ids.passage(), running, whole.messages[:1])
        assert later.tokens == 0, "its reply may still come"
