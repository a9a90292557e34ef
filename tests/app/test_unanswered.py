"""A question asked again is no answer to itself: turns that only ask stay behind those that answer."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.domain.changes import ConversationPut, ExchangePut, MessagesAdded, PassagesPut, SummaryPut
from app.domain.conversations import ExchangeStatus
from app.domain.ids import PassageId
from app.domain.passages import Passage, PassageKind
from app.domain.retrieved import RecallOptions, Segment
from app.domain.turn_text import turn_passage
from app.memory.explain import Explainer
from app.memory.finding import Finder
from app.memory.recall import RecallService
from app.storage.passages import Passages
from app.storage.store import Store
from tests.app.test_search_service import Library
from tests.fakes.stored import AT, Told, opened, tell, told

QUESTION = "Why is the database so slow"
QUOTES = "From your conversations:\n\n> The index of the database cannot be used."
ANSWER = ("Our database takes nine seconds", "It is slow because its index cannot be used.")


def only_asked(
    store: Store, text: str, model: str = "recall:", *, failed: bool = False, answer: str = QUOTES
) -> Told:
    """Write a conversation of one question that Recall answered, or whose answer failed."""
    whole = tell(store, (text, answer), title="Asked")
    asked, answered = whole.messages
    messages = (asked,) if failed and not answer else (asked, replace(answered, model=model))
    exchange = replace(
        whole.exchanges[0],
        message_ids=tuple(each.id for each in messages),
        status=ExchangeStatus.FAILED if failed else ExchangeStatus.COMPLETED,
        model=model,
    )
    head = replace(whole.conversation, visible_leaf_id=messages[-1].id)
    passage = turn_passage(store.ids.passage(), exchange, messages)
    assert passage is not None
    store.save(
        ConversationPut(head), MessagesAdded(messages), ExchangePut(exchange), PassagesPut((passage,))
    )  # fmt: skip
    return replace(whole, conversation=head, messages=messages, exchanges=(exchange,))


def summarised(store: Store, whole: Told) -> PassageId:
    """Write a summary of a conversation that says its question again."""
    talk = whole.conversation.id
    put = SummaryPut("conversation", talk, talk, QUESTION, "extractive", "stamp", AT)
    passage = Passage(
        store.ids.passage(), PassageKind.CONVERSATION_SUMMARY, talk, talk, None, "hash", AT, 5
    )
    store.save(put, PassagesPut((passage,)))
    return passage.id


@pytest.fixture
def library(data_dir: Path) -> Iterator[Library]:
    with opened(data_dir) as store:
        made = Library(store)
        told(store, ANSWER, title="Tuning")
        told(store, "Which trains cross the Alps at night", title="Trains")
        yield made
        made.sync.stop()


def recalled(library: Library, segment: Segment | None = None) -> list[str]:
    """Return all that recall finds for the question, however irrelevant."""
    library.sync.catch_up()
    finder = Finder(
        library.with_meaning, library.index, library.sync, library.meaning  # type: ignore[arg-type]
    )  # fmt: skip
    service = RecallService(library.store, library.settings, library.with_meaning, finder)
    found = service.retrieve(QUESTION, None, segment or Segment(), RecallOptions())
    assert found.notice == ""
    titles = [each.title for each in found.conversations]
    return [*titles, *(found.titles[each.conversation_id] for each in found.history),
            *(each.text for each in found.earlier)]  # fmt: skip


def test_what_recall_alone_answered_is_not_embedded(library: Library) -> None:
    whole = only_asked(library.store, QUESTION)
    (own,) = Passages(library.store).of_source(PassageKind.TURN, whole.exchanges[0].id)
    tokens = library.store.read(
        lambda cursor: cursor.execute("SELECT tokens FROM passage WHERE id = ?", [own]).fetchone()
    )
    assert tokens == (0,)


@pytest.mark.parametrize(
    "more", [{}, {"failed": True, "answer": "", "model": "openai:m"}, {"failed": True}]
)
def test_a_question_asked_before_ranks_behind_the_turn_that_answers(
    library: Library, more: dict[str, object]
) -> None:
    only_asked(library.store, QUESTION, **more)  # type: ignore[arg-type]
    only_asked(library.store, QUESTION, **more)  # type: ignore[arg-type]
    for results in (library.search(QUESTION), library.meant(QUESTION).results):
        titles = [each.conversation_title for each in results]
        assert titles[0] == "Tuning"
        assert titles.count("Asked") == 2
        assert all(each.is_weak for each in results if each.conversation_title == "Asked")


def test_it_does_not_make_what_is_beside_the_point_look_better(library: Library) -> None:
    before = library.meant(QUESTION).results[0].relevance
    for _ in range(5):
        only_asked(library.store, QUESTION)
    assert library.meant(QUESTION).results[0].relevance == pytest.approx(before, abs=0.1)


def test_it_is_found_by_words_that_stand_nowhere_else_and_in_the_list(library: Library) -> None:
    only_asked(library.store, "Where is the xylophone")
    assert library.titles("xylophone") == ["Asked"]
    assert "Asked" in library.titles("title:Asked")
    assert library.titles("title:Asked xylophone") == ["Asked"]
    assert [each.conversation_title for each in library.search("xylophone", 5, PassageKind.TURN)] == ["Asked"]  # fmt: skip


@pytest.mark.parametrize("fields", [{"archived": True}, {"deleted_at": AT}])
def test_put_away_it_is_not_found_at_all(library: Library, fields: dict[str, object]) -> None:
    whole = only_asked(library.store, "Where is the xylophone")
    library.edit(whole, **fields)
    assert library.titles("xylophone") == []


def test_recall_never_brings_it_up_nor_a_summary_of_nothing_else(library: Library) -> None:
    first, second = only_asked(library.store, QUESTION), only_asked(library.store, QUESTION)
    summarised(library.store, first)
    assert "Tuning" in recalled(library)
    assert "Asked" not in recalled(library)
    again = Segment(frozenset({first.exchanges[0].id, second.exchanges[0].id}))
    assert QUESTION not in recalled(library, again)


def test_why_it_is_not_found_is_that_it_only_asks(library: Library) -> None:
    whole = only_asked(library.store, QUESTION)
    library.sync.catch_up()
    explainer = Explainer(library.store, library.settings, library.index, library.service)
    (obstacle, *_) = explainer.explain(QUESTION, whole.exchanges[0].id).obstacles
    assert obstacle.words.startswith("It only asks")


def test_half_an_answer_is_one(library: Library) -> None:
    only_asked(library.store, QUESTION, "openai:m", failed=True, answer="It is slow because")
    assert "Asked" in recalled(library)
