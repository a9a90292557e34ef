"""Facts travel with their book: into an empty one without loss, into a filled one by uid."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from app.domain.changes import ConversationEdited, FactForgotten, SummaryPut
from app.domain.facts import BY_USER, Fact, FactCategory
from app.domain.ids import new_uid
from app.domain.transfer import CarriedFact, CarriedWording
from app.domain.turn_text import content_hash
from app.storage.conversations import Conversations
from app.storage.exchanges import Exchanges
from app.storage.facts import FactFilter, Facts, fact_changes
from app.storage.store import Store
from app.storage.summaries import Summaries
from app.transfer.carrying_facts import FactAdoption
from app.transfer.exporting import ExportFormat, export
from app.transfer.importers.carried_facts import carried_facts
from app.transfer.importing import import_files
from tests.app.test_facts import ALL, learned
from tests.fakes.stored import AT, opened, told

Carry = Callable[[Store, Store], None]
LATER = AT + timedelta(days=1)


@pytest.fixture(params=[ExportFormat.JSON, ExportFormat.JSONL])
def carry(request: pytest.FixtureRequest, tmp_path: Path) -> Carry:
    """Export one book and import it into another."""

    def carried(source: Store, target: Store) -> None:
        out = tmp_path / "book"
        export(source, out, request.param)
        import_files(target, [out])

    return carried


@pytest.fixture
def books(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    with ExitStack() as stack:
        one = stack.enter_context(opened(tmp_path / "one"))
        yield one, stack.enter_context(opened(tmp_path / "two"))


def own(store: Store, text: str) -> Fact:
    """Store a fact of the user's own."""
    fact = Fact(
        store.ids.passage(), new_uid(), text, FactCategory.IDENTITY, "", None, None, None, AT,
        BY_USER, AT,
    )  # fmt: skip
    store.save(*fact_changes(fact))
    return fact


def told_of(store: Store) -> list[tuple[object, ...]]:
    """Return all there is to know of the facts of a book, without its own ids."""
    facts = Facts(store)
    messages = {
        message.id: message.uid
        for conversation in Conversations(store).listed()
        for message in Exchanges(store).messages_in(conversation.id)
    }
    listed = sorted(facts.listed(ALL), key=lambda known: known.fact.uid)
    return [
        (
            known.fact.uid,
            known.fact.subject,
            known.fact.valid_until,
            known.fact.pinned,
            known.conversation_title,
            known.turn_number,
            known.successor,
            [
                (
                    v.text,
                    v.category,
                    v.model,
                    v.said_at,
                    v.made_at,
                    v.message_id and messages[v.message_id],
                )
                for v in facts.versions(known.fact.id)
            ],
        )
        for known in listed
    ]


def filled(store: Store) -> None:
    """Store facts of every sort: pinned, superseded across conversations, edited, the user's own."""
    first, second = told(store, "zero", "one", title="First"), told(store, "two", title="Second")
    own(store, "I was born in Graz.")
    later = learned(store, second, "The user lives in Graz.", subject="user: home", pinned=True)
    learned(
        store, first, "The user lives in Wien.", subject="user: home", valid_until=LATER,
        superseded_by=later.id,
    )  # fmt: skip
    edited = learned(store, first, "The user drinks tea.")
    moved = replace(
        edited, text="The user drinks green tea.", conversation_id=second.conversation.id,
        exchange_id=second.exchanges[0].id, message_id=second.messages[1].id, made_at=LATER,
        model=BY_USER,
    )  # fmt: skip
    store.save(*fact_changes(moved))
    exchange = first.exchanges[1]
    learned(
        store,
        first,
        "The user counts.",
        exchange_id=exchange.id,
        message_id=exchange.message_ids[0],
    )


def test_facts_come_into_an_empty_book_without_loss(
    books: tuple[Store, Store], carry: Carry
) -> None:
    one, two = books
    filled(one)
    carry(one, two)
    assert told_of(two) == told_of(one)
    assert len(told_of(one)) == 5
    carry(two, one)
    carry(one, two)
    assert told_of(two) == told_of(one)
    assert len(told_of(one)) == 5


def test_a_fact_without_a_message_keeps_its_turn(books: tuple[Store, Store], carry: Carry) -> None:
    one, two = books
    source = told(one, "zero", "one")
    learned(one, source, "So it is.", exchange_id=source.exchanges[1].id, message_id=None)
    learned(one, source, "It is said somewhere.", exchange_id=None, message_id=None)
    carry(one, two)
    assert [known.turn_number for known in Facts(two).listed(ALL)] == [None, 1]


def test_two_books_that_both_changed_a_fact_agree_on_the_later_wording(
    books: tuple[Store, Store], carry: Carry
) -> None:
    one, two = books
    fact = learned(one, told(one, "tea"), "The user drinks tea.")
    carry(one, two)
    (there,) = (known.fact for known in Facts(two).listed(ALL))
    for hours, (store, base) in enumerate(((one, fact), (two, there)), 1):
        made_at = AT + timedelta(hours=hours)
        store.save(*fact_changes(replace(base, text=f"Wording {hours}.", made_at=made_at)))
    one.save(*fact_changes(replace(Facts(one).get(fact.id).fact, pinned=True)))
    carry(one, two)
    carry(two, one)
    assert told_of(one) == told_of(two)
    ((*_, versions),) = told_of(one)
    assert [each[0] for each in versions] == ["Wording 2.", "Wording 1.", "The user drinks tea."]  # type: ignore[attr-defined]


def test_an_end_or_a_pin_is_taken_over_without_a_new_wording(
    books: tuple[Store, Store], carry: Carry
) -> None:
    one, two = books
    source = told(one, "tea")
    fact = learned(one, source, "The user drinks tea.")
    carry(one, two)
    later = learned(one, source, "The user drinks coffee.", days=2)
    ended = replace(fact, valid_until=LATER, superseded_by=later.id, pinned=True)
    one.save(*fact_changes(ended))
    carry(one, two)
    assert told_of(two) == told_of(one)
    (known,) = Facts(two).listed(FactFilter(text="tea", ended=True))
    assert (known.successor, known.fact.pinned) == ("The user drinks coffee.", True)


def test_what_was_forgotten_here_is_not_taken_back(
    books: tuple[Store, Store], carry: Carry
) -> None:
    one, two = books
    fact = learned(one, told(one, "tea"), "The user drinks tea.")
    carry(one, two)
    (there,) = (known.fact for known in Facts(two).listed(ALL))
    two.save(FactForgotten(there.id, content_hash(fact.text)))
    carry(one, two)
    assert told_of(two) == []


def test_the_same_words_learned_in_two_books_are_one_fact(
    books: tuple[Store, Store], carry: Carry
) -> None:
    one, two = books
    source = told(one, "tea")
    carry(one, two)
    (there,) = Conversations(two).listed()
    learned(one, source, "The user drinks tea.")
    exchange = Exchanges(two).of(there.id)[0]
    same = Fact(
        two.ids.passage(), new_uid(), "The user drinks tea.", FactCategory.PREFERENCE, "", there.id,
        exchange.id, exchange.message_ids[0], AT, "patterns", AT,
    )  # fmt: skip
    two.save(*fact_changes(same))
    carry(one, two)
    assert [known.fact.uid for known in Facts(two).listed(ALL)] == [same.uid]


def test_facts_of_a_conversation_that_is_not_here_or_private_are_left_out(
    books: tuple[Store, Store], carry: Carry
) -> None:
    one, two = books
    source = told(one, "tea")
    carry(one, two)
    (there,) = Conversations(two).listed()
    two.save(ConversationEdited(there.id, private=True))
    learned(one, source, "The user drinks tea.")
    carry(one, two)
    assert Facts(two).of_conversation(there.id) == []
    strange = CarriedWording("So.", FactCategory.OTHER, "m", AT, AT, "no such", "no such")
    FactAdoption(two).adopt([CarriedFact("uid", strange)])
    assert told_of(two) == []


def test_many_facts_come_in_several_commits(books: tuple[Store, Store], carry: Carry) -> None:
    one, two = books
    source = told(one, "tea")
    for number in range(205):
        learned(one, source, f"Fact {number}.")
    carry(one, two)
    assert Facts(two).count(ALL) == 205


def test_a_dry_run_takes_none(books: tuple[Store, Store], tmp_path: Path) -> None:
    one, two = books
    filled(one)
    export(one, tmp_path / "book", ExportFormat.JSON)
    import_files(two, [tmp_path / "book"], dry_run=True)
    assert told_of(two) == []


def test_a_book_of_nothing_but_own_facts_is_an_export_too(
    books: tuple[Store, Store], carry: Carry
) -> None:
    one, two = books
    own(one, "I was born in Graz.")
    carry(one, two)
    assert told_of(two) == told_of(one) != []


def test_whether_memory_plays_a_part_and_who_summarised_come_along(
    books: tuple[Store, Store], carry: Carry
) -> None:
    one, two = books
    here = told(one, "tea").conversation.id
    one.save(
        ConversationEdited(here, recalls=False),
        SummaryPut("conversation", here, here, "By a worker.", "extractive", "s", AT),
        SummaryPut("conversation", here, here, "By me.", BY_USER, "s", LATER),
    )
    carry(one, two)
    (there,) = Conversations(two).listed()
    assert not there.recalls
    found = Summaries(two).versions("conversation", there.id)
    assert [(each.text, each.model) for each in found] == [
        ("By me.", BY_USER),
        ("By a worker.", "extractive"),
    ]


def test_what_is_no_fact_is_left_out() -> None:
    whole = {"uid": "u", "text": "So.", "said_at": AT.isoformat(), "made_at": AT.isoformat()}
    (fact,) = carried_facts([whole | {"category": "strange", "earlier": [3, {}]}, 3, {}])
    assert (fact.wording.category, fact.earlier) == (FactCategory.OTHER, ())
    for missing in whole:
        assert carried_facts([{key: whole[key] for key in whole if key != missing}]) == ()
