"""Facts in exports: complete in an empty library, merged by uid in another."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.domain.changes import ConversationEdited, SummaryPut
from app.domain.deletions import FactForgotten
from app.domain.ids import PassageId, new_uid
from app.domain.records.facts import BY_USER, Fact, FactCategory
from app.domain.text import content_hash
from app.domain.transfer import PortableFact, PortableFactVersion
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.facts import FactFilter, Facts, fact_changes
from app.storage.tables.summaries import Summaries
from app.transfer.exporting import ExportFormat, export
from app.transfer.facts import FactImporter
from app.transfer.importers.commonplace import _facts
from app.transfer.importing import import_files
from tests.fakes.stored import AT, add_conversation, learned, opened

Carry = Callable[[Store, Store], None]
ALL = FactFilter(ended=True)
LATER = AT + timedelta(days=1)


@pytest.fixture
def carry(request: pytest.FixtureRequest, tmp_path: Path) -> Carry:
    """Export one library and import it into another."""

    def carried(source: Store, target: Store) -> None:
        out = tmp_path / "book"
        export(source, out, getattr(request, "param", ExportFormat.JSON), replaces=True)
        import_files(target, [out])

    return carried


@pytest.fixture
def books(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    with ExitStack() as stack:
        one = stack.enter_context(opened(tmp_path / "one"))
        yield one, stack.enter_context(opened(tmp_path / "two"))


def own(store: Store, text: str) -> Fact:
    """Store a fact that the user wrote."""
    fact = Fact(
        store.ids.passage(), new_uid(), text, FactCategory.IDENTITY, "", None, None, None, AT,
        BY_USER, AT,
    )  # fmt: skip
    store.save(*fact_changes(fact))
    return fact


def facts_of(store: Store) -> list[tuple[object, ...]]:
    """Return the facts of a library without local ids."""
    facts = Facts(store)
    messages: dict[int | None, str] = {
        message.id: message.uid
        for conversation in Conversations(store).listed()
        for message in Exchanges(store).messages_in(conversation.id)
    }
    no_source: Any = {"conversation_id": None, "exchange_id": None, "message_id": None}
    return sorted(
        (
            known.fact.uid,
            replace(known.fact, id=PassageId(0), superseded_by=None, **no_source),
            (known.conversation_title, known.turn_number, known.successor),
            [
                (replace(each, fact_id=PassageId(0), **no_source), messages.get(each.message_id))
                for each in facts.versions(known.fact.id)
            ],
        )
        for known in facts.listed(ALL)
    )


def filled(store: Store) -> None:
    """Store facts of every sort: pinned, superseded across conversations, edited, the user's own."""
    first, second = (
        add_conversation(store, "zero", "one", title="First"),
        add_conversation(store, "two", title="Second"),
    )
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
    source = {"exchange_id": exchange.id, "message_id": exchange.message_ids[0]}
    learned(store, first, "The user counts.", **source)


@pytest.mark.parametrize("carry", [ExportFormat.JSON, ExportFormat.JSONL], indirect=True)
def test_facts_are_imported_completely(books: tuple[Store, Store], carry: Carry) -> None:
    one, two = books
    filled(one)
    carry(one, two)
    assert facts_of(two) == facts_of(one)
    assert len(facts_of(one)) == 5
    carry(two, one)
    carry(one, two)
    assert facts_of(two) == facts_of(one)
    assert len(facts_of(one)) == 5


def test_two_libraries_agree_on_newest_versions(books: tuple[Store, Store], carry: Carry) -> None:
    one, two = books
    fact = learned(one, add_conversation(one, "tea"), "The user drinks tea.")
    carry(one, two)
    (there,) = (known.fact for known in Facts(two).listed(ALL))
    for hours, (store, base) in enumerate(((one, fact), (two, there)), 1):
        made_at = AT + timedelta(hours=hours)
        store.save(*fact_changes(replace(base, text=f"Wording {hours}.", made_at=made_at)))
    one.save(*fact_changes(replace(Facts(one).get(fact.id).fact, pinned=True)))
    carry(one, two)
    carry(two, one)
    assert facts_of(one) == facts_of(two)
    ((*_, versions),) = facts_of(one)
    texts = [each.text for each, _ in versions]  # type: ignore[attr-defined]
    assert texts == ["Wording 2.", "Wording 1.", "The user drinks tea."]


def test_an_end_and_a_pin_make_no_new_version(books: tuple[Store, Store], carry: Carry) -> None:
    one, two = books
    source = add_conversation(one, "tea")
    fact = learned(one, source, "The user drinks tea.")
    carry(one, two)
    later = learned(one, source, "The user drinks coffee.", days=2)
    one.save(*fact_changes(replace(fact, valid_until=LATER, superseded_by=later.id, pinned=True)))
    carry(one, two)
    assert facts_of(two) == facts_of(one)
    (known,) = Facts(two).listed(FactFilter(text="tea", ended=True))
    assert (known.successor, known.fact.pinned) == ("The user drinks coffee.", True)


def test_deleted_equal_and_private_facts_stay_out(books: tuple[Store, Store], carry: Carry) -> None:
    one, two = books
    source = add_conversation(one, "tea")
    fact = learned(one, source, "The user drinks tea.")
    carry(one, two)
    (there,) = (known.fact for known in Facts(two).listed(ALL))
    two.save(FactForgotten(there.id, content_hash(fact.text)))
    coffee = learned(one, source, "The user drinks coffee.")
    same = replace(there, id=two.ids.passage(), uid=new_uid(), text=coffee.text)
    two.save(*fact_changes(same))
    carry(one, two)
    assert [known.fact.uid for known in Facts(two).listed(ALL)] == [same.uid]
    two.save(ConversationEdited(Conversations(two).listed()[0].id, private=True))
    learned(one, source, "The user drinks water.")
    carry(one, two)
    unknown = PortableFactVersion("So.", FactCategory.OTHER, "m", AT, AT, "no such", "no such")
    FactImporter(two).store([PortableFact("uid", unknown)])
    assert [each.uid for each in Facts(two).of_conversation(there.conversation_id)] == [same.uid]
    assert Facts(two).of_conversation(None) == []


def test_many_facts_take_several_commits(books: tuple[Store, Store], carry: Carry) -> None:
    one, two = books
    first = own(one, "Fact 0.")
    more = (
        replace(first, id=one.ids.passage(), uid=new_uid(), text=f"Fact {number}.")
        for number in range(1, 205)
    )
    one.save(*(change for fact in more for change in fact_changes(fact)))
    carry(one, two)
    assert Facts(two).count(ALL) == 205


def test_facts_without_a_message_summaries_and_recall_are_exported(
    books: tuple[Store, Store], carry: Carry, tmp_path: Path
) -> None:
    one, two = books
    source = add_conversation(one, "zero", "one")
    here = source.conversation.id
    learned(one, source, "So it is.", exchange_id=source.exchanges[1].id, message_id=None)
    learned(one, source, "It is said somewhere.", exchange_id=None, message_id=None)
    one.save(
        ConversationEdited(here, recalls=False),
        SummaryPut("conversation", here, here, "By a worker.", "extractive", "s", AT),
        SummaryPut("conversation", here, here, "By me.", BY_USER, "s", LATER),
    )
    export(one, tmp_path / "library", ExportFormat.JSON)
    import_files(two, [tmp_path / "library"], dry_run=True)
    assert facts_of(two) == []
    carry(one, two)
    assert [known.turn_number for known in Facts(two).listed(ALL)] == [None, 1]
    (there,) = Conversations(two).listed()
    assert not there.recalls
    found = Summaries(two).versions("conversation", there.id)
    assert [(each.text, each.model) for each in found] == [
        ("By me.", BY_USER),
        ("By a worker.", "extractive"),
    ]


def test_invalid_facts_are_ignored() -> None:
    valid = {"uid": "u", "text": "So.", "said_at": AT.isoformat(), "made_at": AT.isoformat()}
    (fact,) = _facts([valid | {"category": "strange", "earlier": [3, {}]}, 3, {}])
    assert (fact.version.category, fact.earlier) == (FactCategory.OTHER, ())
    for missing in valid:
        assert _facts([{key: valid[key] for key in valid if key != missing}]) == ()
