"""What the user does with facts: every deed is one commit, and forgetting is for ever."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from app.domain.changes import ConversationEdited
from app.domain.errors import IndexUnavailable, InvalidInput, NotFound
from app.domain.facts import BY_PATTERNS, BY_USER, Fact, FactCategory
from app.domain.ids import new_uid
from app.domain.turn_text import content_hash
from app.index.text_index import TantivyTextIndex
from app.memory.fact_merging import silenced
from app.memory.facts import FACT_LIMIT_CHARS, FactBook, fact_number
from app.memory.index_sync import IndexSync
from app.memory.search import SearchService
from app.storage.facts import FactFilter, Facts, fact_changes
from app.storage.forget import forget
from app.storage.settings import Settings
from app.storage.store import Store
from tests.fakes.stored import AT, Told, opened, tables, told

HOLDING, ALL = FactFilter(), FactFilter(ended=True)


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with opened(data_dir) as open_store:
        yield open_store


@pytest.fixture
def sync(store: Store) -> Iterator[IndexSync]:
    index_sync = IndexSync(store, TantivyTextIndex(store.paths.index / "text", store.generation))
    yield index_sync
    index_sync.stop()


@pytest.fixture
def book(store: Store, sync: IndexSync) -> FactBook:
    index = sync._index
    assert isinstance(index, TantivyTextIndex)
    return FactBook(store, SearchService(store, Settings(store), index, sync))


def learned(store: Store, source: Told, text: str, days: int = 0, **more: object) -> Fact:
    """Store a fact as the extractor does."""
    exchange = source.exchanges[0]
    at = AT + timedelta(days=days)
    fact = Fact(
        store.ids.passage(), new_uid(), text, FactCategory.PREFERENCE, "", source.conversation.id,
        exchange.id, exchange.message_ids[0], at, BY_PATTERNS, at,
    )  # fmt: skip
    fact = replace(fact, **more)  # type: ignore[arg-type]
    store.save(*fact_changes(fact))
    return fact


def texts(store: Store, which: FactFilter = HOLDING) -> list[str]:
    return [known.fact.text for known in Facts(store).listed(which)]


def test_facts_are_listed_pinned_first_then_newest_first(store: Store, book: FactBook) -> None:
    source = told(store, "tea")
    old, middle, new = (learned(store, source, f"fact {day}", day) for day in range(3))
    assert texts(store) == ["fact 2", "fact 1", "fact 0"]
    book.pin(old.id, True)
    assert texts(store) == ["fact 0", "fact 2", "fact 1"]
    book.pin(old.id, False)
    assert texts(store, FactFilter(limit=1, offset=1)) == ["fact 1"]
    assert Facts(store).count(FactFilter(limit=1)) == 3
    assert middle.id < new.id


def test_a_list_is_narrowed_by_words_category_and_conversation(store: Store) -> None:
    source, other = told(store, "tea"), told(store, "cats")
    learned(store, source, "The user prefers green Tea.")
    learned(store, other, "The user has two cats.", category=FactCategory.POSSESSION)
    learned(store, other, "The user drank tea once.", valid_until=AT)
    assert texts(store, FactFilter(text="tea GREEN")) == ["The user prefers green Tea."]
    assert texts(store, FactFilter(category=FactCategory.POSSESSION)) == ["The user has two cats."]
    here = FactFilter(conversation_id=other.conversation.id, ended=True)
    assert len(texts(store, here)) == 2
    assert len(texts(store, FactFilter(text="tea"))) == 1


def test_a_fact_says_where_it_was_said_and_what_took_its_place(store: Store) -> None:
    source = told(store, "zero", "one", title="Of drinks")
    now_so = learned(store, source, "The user drinks coffee.", exchange_id=source.exchanges[1].id)
    learned(store, source, "The user drinks tea.", valid_until=AT, superseded_by=now_so.id)
    before = Facts(store).listed(FactFilter(text="tea", ended=True))[0]
    assert before.successor == "The user drinks coffee."
    assert (before.conversation_title, before.turn_number) == ("Of drinks", 0)
    assert Facts(store).get(now_so.id).turn_number == 1
    assert [each.text for each in Facts(store).superseded_by(now_so.id)] == ["The user drinks tea."]


def test_facts_of_the_trash_are_not_there_until_it_is_restored(store: Store) -> None:
    source, other = told(store, "tea"), told(store, "more tea")
    fact = learned(store, source, "The user drinks tea.")
    learned(store, other, "Was so.", valid_until=AT, superseded_by=fact.id)
    store.save(ConversationEdited(source.conversation.id, deleted_at=AT))
    assert texts(store) == ["Was so."]
    assert Facts(store).listed(ALL)[0].successor == ""
    with pytest.raises(NotFound):
        Facts(store).get(fact.id)
    store.save(ConversationEdited(source.conversation.id, restored=True))
    assert texts(store) == ["The user drinks tea."]
    store.save(ConversationEdited(source.conversation.id, private=True))
    assert texts(store) == ["Was so."]


def test_a_wording_from_the_trash_is_left_out_of_the_history(store: Store, book: FactBook) -> None:
    source, other = told(store, "tea"), told(store, "more tea")
    fact = learned(store, source, "The user drinks tea.")
    later = replace(
        fact, text="The user drinks much tea.", conversation_id=other.conversation.id,
        exchange_id=other.exchanges[0].id, made_at=AT + timedelta(days=1),
    )  # fmt: skip
    store.save(*fact_changes(later))
    assert Facts(store).get(fact.id).versions == 2
    store.save(ConversationEdited(source.conversation.id, deleted_at=AT))
    assert [each.text for each in Facts(store).versions(fact.id)] == ["The user drinks much tea."]
    assert Facts(store).get(fact.id).versions == 1


def test_facts_go_with_a_conversation_that_is_forgotten(store: Store) -> None:
    source = told(store, "tea")
    learned(store, source, "The user drinks tea.")
    forget(store, [source.conversation.id])
    assert texts(store, ALL) == []


def test_an_edit_is_a_new_version_by_the_user(store: Store, book: FactBook) -> None:
    fact = learned(store, told(store, "tea"), "The user drinks tea.")
    edited = book.edit(fact.id, "  The user drinks\n green tea. ", FactCategory.OTHER)
    assert (edited.text, edited.model) == ("The user drinks green tea.", BY_USER)
    newest, oldest = Facts(store).versions(fact.id)
    assert (newest.text, newest.category, newest.model) == (
        edited.text,
        FactCategory.OTHER,
        BY_USER,
    )
    assert (oldest.text, oldest.model) == (fact.text, BY_PATTERNS)
    (passage,) = [row for row in tables(store)["passage"] if row[1] == "fact"]
    assert passage[5] == content_hash(edited.text)


def test_an_edit_that_changes_nothing_makes_no_version(store: Store, book: FactBook) -> None:
    fact = learned(store, told(store, "tea"), "The user drinks tea.")
    assert book.edit(fact.id, fact.text) == fact
    assert len(Facts(store).versions(fact.id)) == 1


def test_a_version_is_the_newest_even_if_the_clock_was_set_back(
    store: Store, book: FactBook
) -> None:
    fact = learned(store, told(store, "tea"), "The user drinks tea.", days=9_999)
    book.edit(fact.id, "The user drinks coffee.")
    assert Facts(store).versions(fact.id)[0].text == "The user drinks coffee."


@pytest.mark.parametrize("text", ["", " \n ", "x" * (FACT_LIMIT_CHARS + 1)])
def test_a_wording_that_cannot_be_kept_is_refused(book: FactBook, text: str) -> None:
    with pytest.raises(InvalidInput, match="A fact cannot"):
        book.add(text, FactCategory.OTHER)


def test_a_fact_of_the_users_own_has_no_source(
    store: Store, book: FactBook, sync: IndexSync
) -> None:
    fact = book.add("I was born in Graz.", FactCategory.IDENTITY)
    known = Facts(store).get(fact.id)
    assert (known.fact.model, known.conversation_title, known.turn_number) == (BY_USER, "", None)
    sync.catch_up()
    assert [each.fact.id for each in book.search("Graz")] == [fact.id]


def test_an_earlier_version_comes_back_as_the_newest(store: Store, book: FactBook) -> None:
    fact = learned(store, told(store, "tea"), "The user drinks tea.")
    book.edit(fact.id, "The user drinks coffee.")
    restored = book.restore(fact.id, fact.made_at)
    assert restored.text == fact.text
    assert [each.text for each in Facts(store).versions(fact.id)] == [
        "The user drinks tea.",
        "The user drinks coffee.",
        "The user drinks tea.",
    ]
    with pytest.raises(NotFound, match="no such version"):
        book.restore(fact.id, AT - timedelta(days=1))


def test_a_superseded_fact_holds_again_and_its_rival_ends(store: Store, book: FactBook) -> None:
    source = told(store, "tea")
    rival = learned(store, source, "The user lives in Graz.", subject="user: home")
    old = learned(
        store, source, "The user lives in Wien.", subject="user: home", valid_until=AT,
        superseded_by=rival.id,
    )  # fmt: skip
    book.reinstate(old.id)
    assert texts(store) == ["The user lives in Wien."]
    ended = Facts(store).get(rival.id).fact
    assert ended.valid_until is not None
    assert ended.superseded_by == old.id
    kept = {row[0] for row in tables(store)["passage"] if row[1] == "fact"}
    assert kept == {old.id}


def test_what_holds_two_steps_further_ends_too(store: Store, book: FactBook) -> None:
    source = told(store, "tea")
    red = learned(store, source, "Red.", 2, subject="user: favourite colour")
    green = learned(
        store, source, "Green.", 1, subject=red.subject, valid_until=AT, superseded_by=red.id
    )
    blue = learned(
        store, source, "Blue.", subject=red.subject, valid_until=AT, superseded_by=green.id
    )
    book.reinstate(blue.id)
    assert texts(store) == ["Blue."]
    assert Facts(store).get(red.id).fact.superseded_by == blue.id


def test_facts_that_can_both_hold_do(store: Store, book: FactBook) -> None:
    source = told(store, "tea")
    other = learned(store, source, "The user likes coffee.")
    old = learned(store, source, "The user likes tea.", valid_until=AT, superseded_by=other.id)
    back = book.reinstate(old.id)
    assert book.reinstate(old.id) == back
    assert len(texts(store)) == 2


def test_a_forgotten_fact_is_gone_in_all_its_wordings_and_not_learned_again(
    store: Store, book: FactBook
) -> None:
    source = told(store, "something else")
    fact = learned(store, source, "The user hates kumquats.")
    before = learned(store, source, "Was so.", valid_until=AT, superseded_by=fact.id)
    book.edit(fact.id, "The user detests kumquats.")
    remains = book.forget(fact.id)
    assert remains[0] == "The conversation it came from still says it."
    assert "forks" not in " ".join(remains)
    assert texts(store, ALL) == ["Was so."]
    assert Facts(store).get(before.id).fact.superseded_by is None
    held = tables(store)
    assert {row[0] for row in held["fact_refused"]} == {
        content_hash("The user hates kumquats."),
        content_hash("The user detests kumquats."),
        silenced(source.messages[0].id),
    }
    assert "kumquats" not in str(held)
    assert b"kumquats" not in store.paths.database.read_bytes()
    with pytest.raises(NotFound):
        book.forget(fact.id)


def test_a_search_ranks_by_the_index_and_then_by_words(
    store: Store, book: FactBook, sync: IndexSync
) -> None:
    source = told(store, "talk")
    tea = learned(store, source, "The user prefers green tea to coffee.")
    learned(store, source, "The user sails on Sundays.")
    sync.catch_up()
    late = learned(store, source, "The user has a green tea pot.")
    learned(store, source, "The user drank green tea.", valid_until=AT)
    assert [each.fact.id for each in book.search("green tea")] == [tea.id, late.id]


def test_a_search_within_a_category_finds_and_counts_all_of_it(
    store: Store, book: FactBook, sync: IndexSync
) -> None:
    source = told(store, "talk")
    for number in range(12):
        learned(store, source, f"The user drinks green tea, kind {number}.")
    plan = learned(
        store, source, "The user plans to grow much tea in a garden.", category=FactCategory.PLAN
    )
    sync.catch_up()
    assert plan.id not in {each.fact.id for each in book.search("green tea", 5)}
    found = book.found("green tea", FactCategory.PLAN, 5)
    assert [each.fact.id for each in found.facts] == [plan.id]
    found = book.found("green tea", FactCategory.PREFERENCE, 5)
    assert (len(found.facts), found.total) == (5, 12)


def test_words_find_while_the_index_cannot_answer(
    store: Store, book: FactBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = learned(store, told(store, "talk"), "The user prefers green tea.")

    def fail(*_given: object, **_named: object) -> None:
        raise IndexUnavailable("The index is being built")

    monkeypatch.setattr(SearchService, "search", fail)
    assert [each.fact.id for each in book.search("green")] == [fact.id]


def test_a_number_that_is_none_is_refused() -> None:
    assert fact_number(" 12 ") == 12
    with pytest.raises(InvalidInput, match="'tea' is no fact's number"):
        fact_number("tea")


def test_the_id_of_a_fact_that_never_held_here_is_not_given_again(data_dir: Path) -> None:
    with opened(data_dir) as store:
        source = told(store, "tea")
        ended = learned(store, source, "The user drank tea.", valid_until=AT)
    with opened(data_dir) as store:
        assert store.ids.passage() > ended.id
