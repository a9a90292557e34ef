"""A summary the user wrote or chose stands until what it is of changes; none is ever lost."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from app.domain.changes import ExchangePut, SummaryPut
from app.domain.errors import InvalidInput, NotFound
from app.domain.facts import BY_USER
from app.domain.turn_text import content_hash
from app.memory.summaries import SUMMARY_LIMIT_CHARS, SummaryBook, SummaryOf
from app.storage.remaking import SUMMARIES, make_again
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.summaries import Summaries
from app.storage.summary_work import SummaryWork, conversation_stamp, exchange_stamp
from tests.fakes.stored import AT, Told, opened, tables, told


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with opened(data_dir) as open_store:
        yield open_store


def summarised(store: Store) -> Told:
    """Store a conversation whose turn and whole were summarised by a worker."""
    whole = told(store, "one")
    here = whole.conversation.id
    for kind, source in (("exchange", whole.exchanges[0].id), ("conversation", here)):
        store.save(SummaryPut(kind, source, here, "By a worker.", "extractive", "old", AT))
    return whole


def waiting(store: Store) -> tuple[list[int], list[int]]:
    """Return the exchanges and conversations that a summariser would take."""
    at, work = AT + timedelta(days=1), SummaryWork(store)
    exchanges = [each for each, _ in work.exchange_ids(9, 1, None, at)]
    return exchanges, [each.id for each in work.conversations(9, 1, None, at)]


def source_of(whole: Told, of: SummaryOf) -> int:
    return whole.exchanges[0].id if of is SummaryOf.EXCHANGE else whole.conversation.id


@pytest.mark.parametrize("of", SummaryOf)
def test_the_users_own_summary_is_the_newest_and_the_earlier_is_kept(
    store: Store, of: SummaryOf
) -> None:
    source = source_of(summarised(store), of)
    SummaryBook(store).write(of, source, "  By me. ")
    newest, oldest = Summaries(store).versions(of, source)
    assert (newest.text, newest.model) == ("By me.", BY_USER)
    assert (oldest.text, oldest.model) == ("By a worker.", "extractive")
    assert Summaries(store).latest(of, [source])[source] == newest
    (passage,) = [row for row in tables(store)["passage"] if row[1] == f"{of}_summary"]
    assert passage[5] == content_hash("By me.")
    SummaryBook(store).write(of, source, "By me, later.")
    assert len([row for row in tables(store)["passage"] if row[1] == f"{of}_summary"]) == 1


def test_a_summariser_leaves_it_alone_until_the_source_changes(store: Store) -> None:
    whole = summarised(store)
    assert waiting(store) == ([whole.exchanges[0].id], [whole.conversation.id])
    for of in SummaryOf:
        SummaryBook(store).write(of, source_of(whole, of), "By me.")
    assert waiting(store) == ([], [])
    longer = replace(
        whole.exchanges[0], message_ids=whole.exchanges[0].message_ids[:1],
        completed_at=AT + timedelta(hours=1),
    )  # fmt: skip
    store.save(ExchangePut(longer))
    assert waiting(store) == ([whole.exchanges[0].id], [whole.conversation.id])


def test_a_summary_written_while_a_worker_wrote_another_stands(store: Store) -> None:
    whole = summarised(store)
    work, exchange, here = SummaryWork(store), whole.exchanges[0].id, whole.conversation.id
    assert set(work.standing_exchanges([exchange]).ids) == {exchange}
    assert set(work.standing_conversations([here]).ids) == {here}
    for of in SummaryOf:
        SummaryBook(store).write(of, source_of(whole, of), "By me.")
    assert not work.standing_exchanges([exchange]).ids
    assert not work.standing_conversations([here]).ids


def test_an_earlier_summary_comes_back_by_whom_it_was_made(store: Store) -> None:
    whole = summarised(store)
    book, source = SummaryBook(store), whole.conversation.id
    book.write(SummaryOf.CONVERSATION, source, "By me.")
    restored = book.restore(SummaryOf.CONVERSATION, source, AT)
    assert (restored.text, restored.model) == ("By a worker.", "extractive")
    found = [each.text for each in Summaries(store).versions(SummaryOf.CONVERSATION, source)]
    assert found == ["By a worker.", "By me.", "By a worker."]
    assert waiting(store)[1] == []
    with pytest.raises(NotFound, match="no such version"):
        book.restore(SummaryOf.CONVERSATION, source, AT + timedelta(days=1))


def test_it_is_the_newest_even_if_the_clock_was_set_back(store: Store) -> None:
    whole = told(store, "one")
    here = whole.conversation.id
    future = AT + timedelta(days=9_999)
    store.save(SummaryPut("conversation", here, here, "Early.", "extractive", "s", future))
    SummaryBook(store).write(SummaryOf.CONVERSATION, here, "By me.")
    assert Summaries(store).versions(SummaryOf.CONVERSATION, here)[0].text == "By me."


@pytest.mark.parametrize("text", ["", "  \n", "x" * (SUMMARY_LIMIT_CHARS + 1)])
def test_a_summary_that_cannot_be_kept_is_refused(store: Store, text: str) -> None:
    whole = told(store, "one")
    with pytest.raises(InvalidInput, match="A summary cannot"):
        SummaryBook(store).write(SummaryOf.CONVERSATION, whole.conversation.id, text)


def test_a_private_conversation_gets_none(store: Store) -> None:
    whole = told(store, "one", private=True)
    with pytest.raises(InvalidInput, match="private"):
        SummaryBook(store).write(SummaryOf.EXCHANGE, whole.exchanges[0].id, "By me.")


def test_what_others_summarised_is_made_again_when_asked_for_but_not_the_users(
    store: Store,
) -> None:
    settings, work = Settings(store), SummaryWork(store)
    theirs, own = told(store, "one"), told(store, "two")
    for whole in (theirs, own):
        here, exchange = whole.conversation.id, whole.exchanges[0]
        for kind, source, stamp in (
            ("exchange", exchange.id, exchange_stamp(exchange)),
            ("conversation", here, conversation_stamp(whole.exchanges)),
        ):
            store.save(SummaryPut(kind, source, here, "By a worker.", "extractive", stamp, AT))
    for of in SummaryOf:
        SummaryBook(store).write(of, source_of(own, of), "By me.")
    assert waiting(store) == ([], [])
    assert work.made_by_others(1, 1) == (0, 0)
    settings.set("background_model", "local:qwen")
    assert waiting(store) == ([], []), "nobody asked for that"
    assert work.made_by_others(1, 1) == (1, 1)
    make_again(settings, SUMMARIES)
    again = theirs.exchanges[0].id
    assert waiting(store) == ([again], [theirs.conversation.id])
    assert work.exchange_tally(1).done == 1
    assert work.made_by_others(1, 1) == (0, 0)
    assert work.standing_exchanges([again]).ids == {again}
    assert work.standing_conversations([own.conversation.id]).ids == set()


def test_one_that_was_made_again_stands_also_when_the_clock_was_set_back(store: Store) -> None:
    settings, whole = Settings(store), told(store, "one")
    settings.set("background_model", "local:qwen")
    make_again(settings, SUMMARIES)
    exchange, here = whole.exchanges[0], whole.conversation.id
    put = SummaryPut(
        "exchange", exchange.id, here, "Anew.", "local:qwen", exchange_stamp(exchange), AT
    )
    store.save(put)
    assert waiting(store)[0] == []
