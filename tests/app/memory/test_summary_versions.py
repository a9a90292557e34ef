"""Summaries by the user stay until their source changes; no version is lost."""

from dataclasses import replace
from datetime import timedelta

import pytest

from app.domain.changes import ExchangePut, SummaryPut
from app.domain.errors import InvalidInput, NotFound
from app.domain.records.facts import BY_USER
from app.domain.text import content_hash
from app.memory.summaries import SUMMARY_LIMIT_CHARS, SummaryService, SummaryTarget
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.storage.tables.summaries import Summaries
from app.storage.work import summary_work
from app.storage.work.queue import SUMMARIES, request_regeneration
from app.storage.work.summary_work import SummaryWork, conversation_stamp, exchange_stamp
from tests.fakes.stored import AT, ConversationRecord, add_conversation, tables

KINDS = EXCHANGES, WHOLE = summary_work.EXCHANGE_SUMMARIES, summary_work.CONVERSATION_SUMMARIES


def summarised(store: Store) -> ConversationRecord:
    """Store a conversation whose turn and whole were summarised by a worker."""
    whole = add_conversation(store, "one")
    here = whole.conversation.id
    for kind, source in (("exchange", whole.exchanges[0].id), ("conversation", here)):
        store.save(SummaryPut(kind, source, here, "By a worker.", "extractive", "old", AT))
    return whole


def waiting(store: Store) -> tuple[list[int], list[int]]:
    """Return the exchanges and conversations that a summariser would take."""
    at, work = AT + timedelta(days=1), SummaryWork(store)
    exchanges, whole = ([i for i, _ in work.missing(kind, 9, 1, None, at)] for kind in KINDS)
    return exchanges, whole


def source_of(whole: ConversationRecord, of: SummaryTarget) -> int:
    return whole.exchanges[0].id if of is SummaryTarget.EXCHANGE else whole.conversation.id


@pytest.mark.parametrize("of", SummaryTarget)
def test_the_users_own_summary_is_first_the_earlier_kept(store: Store, of: SummaryTarget) -> None:
    source = source_of(summarised(store), of)
    SummaryService(store).write(of, source, "  By me. ")
    newest, oldest = Summaries(store).versions(of, source)
    assert (newest.text, newest.model) == ("By me.", BY_USER)
    assert (oldest.text, oldest.model) == ("By a worker.", "extractive")
    assert Summaries(store).latest(of, [source])[source] == newest
    (passage,) = [row for row in tables(store)["passage"] if row[1] == f"{of}_summary"]
    assert passage[5] == content_hash("By me.")
    SummaryService(store).write(of, source, "By me, later.")
    assert len([row for row in tables(store)["passage"] if row[1] == f"{of}_summary"]) == 1


def test_a_summariser_leaves_it_alone_until_the_source_changes(store: Store) -> None:
    whole = summarised(store)
    assert waiting(store) == ([whole.exchanges[0].id], [whole.conversation.id])
    for of in SummaryTarget:
        SummaryService(store).write(of, source_of(whole, of), "By me.")
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
    assert set(work.summarizable(EXCHANGES, [exchange]).ids) == {exchange}
    assert set(work.summarizable(WHOLE, [here]).ids) == {here}
    for of in SummaryTarget:
        SummaryService(store).write(of, source_of(whole, of), "By me.")
    assert not work.summarizable(EXCHANGES, [exchange]).ids
    assert not work.summarizable(WHOLE, [here]).ids


def test_an_earlier_summary_comes_back_by_whom_it_was_made(store: Store) -> None:
    whole = summarised(store)
    book, source = SummaryService(store), whole.conversation.id
    book.write(SummaryTarget.CONVERSATION, source, "By me.")
    restored = book.restore(SummaryTarget.CONVERSATION, source, AT)
    assert (restored.text, restored.model) == ("By a worker.", "extractive")
    found = [each.text for each in Summaries(store).versions(SummaryTarget.CONVERSATION, source)]
    assert found == ["By a worker.", "By me.", "By a worker."]
    assert waiting(store)[1] == []
    with pytest.raises(NotFound, match="no longer exists"):
        book.restore(SummaryTarget.CONVERSATION, source, AT + timedelta(days=1))


def test_it_is_the_newest_even_if_the_clock_was_set_back(store: Store) -> None:
    whole = add_conversation(store, "one")
    here = whole.conversation.id
    future = AT + timedelta(days=9_999)
    store.save(SummaryPut("conversation", here, here, "Early.", "extractive", "s", future))
    SummaryService(store).write(SummaryTarget.CONVERSATION, here, "By me.")
    assert Summaries(store).versions(SummaryTarget.CONVERSATION, here)[0].text == "By me."


@pytest.mark.parametrize("text", ["", "  \n", "x" * (SUMMARY_LIMIT_CHARS + 1)])
def test_a_summary_that_cannot_be_kept_is_refused(store: Store, text: str) -> None:
    whole = add_conversation(store, "one")
    with pytest.raises(InvalidInput, match="A summary cannot"):
        SummaryService(store).write(SummaryTarget.CONVERSATION, whole.conversation.id, text)


def test_a_private_conversation_gets_none(store: Store) -> None:
    whole = add_conversation(store, "one", private=True)
    with pytest.raises(InvalidInput, match="private"):
        SummaryService(store).write(SummaryTarget.EXCHANGE, whole.exchanges[0].id, "By me.")


def test_summaries_by_other_models_are_regenerated_but_not_the_users(store: Store) -> None:
    settings, work = Settings(store), SummaryWork(store)

    theirs, own = add_conversation(store, "one"), add_conversation(store, "two")
    for whole in (theirs, own):
        here, exchange = whole.conversation.id, whole.exchanges[0]
        for kind, source, stamp in (
            ("exchange", exchange.id, exchange_stamp(exchange)),
            ("conversation", here, conversation_stamp(whole.exchanges)),
        ):
            store.save(SummaryPut(kind, source, here, "By a worker.", "extractive", stamp, AT))
    for of in SummaryTarget:
        SummaryService(store).write(of, source_of(own, of), "By me.")
    assert waiting(store) == ([], [])
    assert [work.count_by_other_models(kind, 1) for kind in KINDS] == [0, 0]
    settings.set("background_model", "local:qwen")
    assert waiting(store) == ([], []), "nobody asked for that"
    assert [work.count_by_other_models(kind, 1) for kind in KINDS] == [1, 1]
    request_regeneration(settings, SUMMARIES)
    again = theirs.exchanges[0].id
    assert waiting(store) == ([again], [theirs.conversation.id])
    assert work.tally(EXCHANGES, 1).done == 1
    assert [work.count_by_other_models(kind, 1) for kind in KINDS] == [0, 0]
    assert work.summarizable(EXCHANGES, [again]).ids == {again}
    assert work.summarizable(WHOLE, [own.conversation.id]).ids == set()


def test_thinking_that_a_model_gave_as_a_summary_is_regenerated(store: Store) -> None:
    whole = add_conversation(store, "one")
    here, exchange = whole.conversation.id, whole.exchanges[0]
    thought, stamp = "<think>Okay, the user wants", exchange_stamp(exchange)
    for number, (text, model, is_wanted) in enumerate(
        (
            (thought, "local:qwen", True),
            ("Good.", "local:qwen", False),
            (thought, "extractive", False),  # it may be the reply's own sentence
        )
    ):
        at = AT + timedelta(minutes=number)
        store.save(SummaryPut("exchange", exchange.id, here, text, model, stamp, at))
        assert waiting(store)[0] == ([exchange.id] if is_wanted else [])


def test_a_regenerated_summary_is_current_after_the_clock_was_set_back(store: Store) -> None:
    settings, whole = Settings(store), add_conversation(store, "one")
    settings.set("background_model", "local:qwen")
    request_regeneration(settings, SUMMARIES)
    exchange, here = whole.exchanges[0], whole.conversation.id
    put = SummaryPut(
        "exchange", exchange.id, here, "Anew.", "local:qwen", exchange_stamp(exchange), AT
    )
    store.save(put)
    assert waiting(store)[0] == []
