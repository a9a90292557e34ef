"""Facts: listing, search, editing, restoring, forgetting, and extraction by another model."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.check import check
from app.domain.changes import ConversationEdited
from app.domain.errors import IndexUnavailable, InvalidInput, NotFound
from app.domain.records.facts import BY_PATTERNS, BY_USER, Fact, FactCategory
from app.domain.text import content_hash
from app.domain.workers import WorkerName, WorkerStatus
from app.memory.facts import FACT_LIMIT_CHARS, FactService, blocked_message_hash, parse_fact_id
from app.memory.search.service import SearchService
from app.storage.engine.store import Store
from app.storage.tables.facts import FactFilter, Facts, fact_changes
from app.storage.tables.settings import Settings
from app.storage.work.extraction_work import ExtractionWork
from app.storage.work.queue import FACTS, request_regeneration
from app.workers.board import WorkerBoard
from app.workers.jobs import JobParts
from app.workers.model_choice import Workloads
from tests.fakes.background import ScriptedAsker
from tests.fakes.fixtures import fixture_of
from tests.fakes.jobs import JumpingClock
from tests.fakes.searchable import Library
from tests.fakes.stored import AT, add_conversation, learned, opened, tables

TEA = "The user drinks tea."


class FactLibrary(Library):
    """A library with a fact service."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.service_of_facts = FactService(store, self.service)
        self.stored = Facts(store)

    def texts(self, **which: object) -> list[str]:
        facts = self.stored.listed(FactFilter(**which))  # type: ignore[arg-type]
        return [known.fact.text for known in facts]

    def fact_passages(self) -> dict[int, str]:
        """Return the content hashes of the indexed facts."""
        rows: Any = tables(self.store)["passage"]
        return {row[0]: row[5] for row in rows if row[1] == "fact"}


library = fixture_of(FactLibrary, "store", then="sync.stop")


@pytest.fixture
def facts(library: FactLibrary) -> FactService:
    return library.service_of_facts


# -- lists
def test_facts_are_listed_pinned_first_then_newest_first(
    library: FactLibrary, facts: FactService
) -> None:
    source = add_conversation(library.store, "tea")
    old, *_ = (learned(library.store, source, f"fact {day}", day) for day in range(3))
    assert library.texts() == ["fact 2", "fact 1", "fact 0"]
    facts.pin(old.id, True)
    assert library.texts() == ["fact 0", "fact 2", "fact 1"]
    facts.pin(old.id, False)
    assert library.texts(limit=1, offset=1) == ["fact 1"]
    assert library.stored.count(FactFilter(limit=1)) == 3


def test_a_list_has_filters_and_each_fact_its_source(library: FactLibrary) -> None:
    source = add_conversation(library.store, "zero", "one", title="Of drinks")
    other = add_conversation(library.store, "cats")
    green = learned(
        library.store, source, "The user prefers green Tea.", exchange_id=source.exchanges[1].id
    )
    learned(library.store, other, "The user has two cats.", category=FactCategory.POSSESSION)
    learned(library.store, other, "The user drank tea.", valid_until=AT, superseded_by=green.id)
    assert library.texts(text="tea GREEN") == library.texts(text="tea") == [green.text]
    assert library.texts(category=FactCategory.POSSESSION) == ["The user has two cats."]
    assert len(library.texts(conversation_id=other.conversation.id, ended=True)) == 2
    known = library.stored.get(green.id)
    assert (known.conversation_title, known.turn_number) == ("Of drinks", 1)
    assert [each.text for each in library.stored.superseded_by(green.id)] == ["The user drank tea."]
    (before,) = library.stored.listed(FactFilter(text="drank", ended=True))
    assert before.successor == green.text


def test_facts_and_versions_of_hidden_conversations_are_hidden(library: FactLibrary) -> None:
    store, source = library.store, add_conversation(library.store, "tea")
    other = add_conversation(store, "more tea")
    fact = learned(library.store, source, TEA)
    learned(library.store, other, "Was so.", valid_until=AT, superseded_by=fact.id)
    store.save(ConversationEdited(source.conversation.id, deleted_at=AT))
    assert (library.texts(), library.texts(ended=True)) == (["Was so."], ["Was so."])
    assert library.stored.listed(FactFilter(ended=True))[0].successor == ""
    with pytest.raises(NotFound):
        library.stored.get(fact.id)
    store.save(ConversationEdited(source.conversation.id, restored=True))
    assert library.texts() == [TEA]
    store.save(ConversationEdited(source.conversation.id, private=True))
    assert library.texts() == ["Was so."]
    store.save(ConversationEdited(source.conversation.id, private=False))
    later = replace(
        fact, text="The user drinks much tea.", conversation_id=other.conversation.id,
        exchange_id=other.exchanges[0].id, made_at=AT + timedelta(days=1),
    )  # fmt: skip
    store.save(*fact_changes(later))
    store.save(ConversationEdited(source.conversation.id, deleted_at=AT))
    assert [each.text for each in library.stored.versions(fact.id)] == [later.text]
    assert library.stored.get(fact.id).versions == 1


# -- versions
def test_an_edit_is_a_new_version_by_the_user(library: FactLibrary, facts: FactService) -> None:
    fact = learned(library.store, add_conversation(library.store, "tea"), TEA, days=9_999)
    assert facts.edit(fact.id, fact.text) == fact
    edited = facts.edit(fact.id, "  The user drinks\n green tea. ", FactCategory.OTHER)
    newest, oldest = library.stored.versions(fact.id)  # the clock may have been set back
    assert (newest.text, newest.category, newest.model) == (
        "The user drinks green tea.", FactCategory.OTHER, BY_USER,
    )  # fmt: skip
    assert (oldest.text, oldest.model) == (TEA, BY_PATTERNS)
    assert library.fact_passages() == {fact.id: content_hash(edited.text)}
    restored = facts.restore(fact.id, fact.made_at)
    assert (restored.text, restored.category) == (TEA, FactCategory.PREFERENCE)
    assert len(library.stored.versions(fact.id)) == 3
    with pytest.raises(NotFound):
        facts.restore(fact.id, AT - timedelta(days=1))


def test_a_fact_of_the_user_has_no_source(library: FactLibrary, facts: FactService) -> None:
    fact = facts.add("I was born in Graz.", FactCategory.IDENTITY)
    known = library.stored.get(fact.id)
    assert (known.fact.model, known.conversation_title, known.turn_number) == (BY_USER, "", None)
    library.sync.catch_up()
    assert [each.fact.id for each in facts.search("Graz")] == [fact.id]
    assert facts.add("x" * FACT_LIMIT_CHARS, FactCategory.OTHER)
    for text in ("", " \n ", "x" * (FACT_LIMIT_CHARS + 1)):
        with pytest.raises(InvalidInput):
            facts.add(text, FactCategory.OTHER)
    assert parse_fact_id(" 12 ") == 12
    with pytest.raises(InvalidInput):
        parse_fact_id("tea")


def test_a_reinstated_fact_ends_its_rivals(library: FactLibrary, facts: FactService) -> None:
    source = add_conversation(library.store, "tea")
    subject = "user: home"
    red = learned(library.store, source, "Red.", 2, subject=subject)
    ended: dict[str, Any] = {"subject": subject, "valid_until": AT}
    green = learned(library.store, source, "Green.", 1, superseded_by=red.id, **ended)
    blue = learned(library.store, source, "Blue.", superseded_by=green.id, **ended)
    other = learned(library.store, source, "The user likes coffee.")
    tea = learned(library.store, source, TEA, valid_until=AT, superseded_by=other.id)
    back = facts.reinstate(tea.id)
    assert facts.reinstate(tea.id) == back
    assert sorted(library.texts()) == ["Red.", TEA, other.text], "both can be true"
    facts.reinstate(blue.id)
    assert sorted(library.texts()) == ["Blue.", TEA, other.text]
    rival = library.stored.get(red.id).fact
    assert rival.valid_until is not None
    assert rival.superseded_by == blue.id
    assert set(library.fact_passages()) == {blue.id, tea.id, other.id}


def test_a_forgotten_fact_is_erased_and_refused(library: FactLibrary, facts: FactService) -> None:
    store, source = library.store, add_conversation(library.store, "something else")
    fact = learned(library.store, source, "The user hates kumquats.")
    before = learned(library.store, source, "Was so.", valid_until=AT, superseded_by=fact.id)
    facts.edit(fact.id, "The user detests kumquats.")
    assert len(facts.forget(fact.id)) == 3, "source, other phrasings and exports remain"
    assert library.texts(ended=True) == ["Was so."]
    assert library.stored.get(before.id).fact.superseded_by is None
    held = tables(store)
    assert {row[0] for row in held["fact_refused"]} == {
        content_hash("The user hates kumquats."), content_hash("The user detests kumquats."),
        blocked_message_hash(source.messages[0].id),
    }  # fmt: skip
    assert "kumquats" not in str(held)
    assert b"kumquats" not in store.paths.database.read_bytes()
    with pytest.raises(NotFound):
        facts.forget(fact.id)


# -- search
def test_a_search_has_the_ranked_facts_then_those_with_its_words(
    library: FactLibrary, facts: FactService, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = add_conversation(library.store, "talk")
    tea = learned(library.store, source, "The user prefers green tea to coffee.")
    learned(library.store, source, "The user sails on Sundays.")
    for number in range(7):
        learned(library.store, source, f"The user drinks green tea, kind {number}.")
    plan = learned(library.store, source, "The user plans to grow tea.", category=FactCategory.PLAN)
    library.sync.catch_up()
    late = learned(library.store, source, "The user has a green tea pot and prefers coffee.")
    learned(library.store, source, "The user drank green tea.", valid_until=AT)
    assert [each.fact.id for each in facts.search("prefers coffee")] == [tea.id, late.id]
    found = facts.found("green tea", FactCategory.PLAN, 5)
    assert [each.fact.id for each in found.facts] == [plan.id]
    found = facts.found("green tea", FactCategory.PREFERENCE, 5)
    assert (len(found.facts), found.total) == (5, 9)

    def fail(*_given: object, **_named: object) -> None:
        raise IndexUnavailable("The index is being built")

    monkeypatch.setattr(SearchService, "search", fail)
    assert {each.fact.id for each in facts.search("prefers coffee")} == {tea.id, late.id}


def test_the_newest_facts_in_the_script_of_a_text_are_near_to_it(facts: FactService) -> None:
    old = facts.add("用户住在北京。", FactCategory.IDENTITY)
    for number in range(40):
        facts.add(f"Shelf {number} is full.", FactCategory.POSSESSION)
    near = facts.nearest(["我搬到上海了。"], 20)
    assert old.id in {each.id for each in near}
    assert len(near) == 20


def test_the_id_of_an_ended_fact_is_not_used_again(data_dir: Path) -> None:
    with opened(data_dir) as store:
        ended = Library(store).fact(
            "The user drank tea.", add_conversation(store, "tea"), valid_until=AT
        )
    with opened(data_dir) as store:
        assert store.ids.passage() > ended.id


# -- extraction by another model

MODEL = "scripted:1"
HOME = {
    "op": "add", "source_turn": 1, "words": "I live in Oslo", "text": "The user's home is Oslo.",
    "category": "identity",
}  # fmt: skip


def likes(text: str) -> dict[str, Any]:
    words = "I'm allergic to green tea"
    return {"op": "add", "source_turn": 2, "words": words, "text": text, "category": "preference"}


class Extraction:
    """Facts of two turns extracted by patterns, and a model that may extract them again."""

    def __init__(self, store: Store) -> None:
        self.store, self.settings = store, Settings(store)
        self.asker = ScriptedAsker(model="")
        clock = JumpingClock()
        self.board = WorkerBoard(JobParts(store, self.settings, clock=clock, model=self.asker))
        unused: Any = None
        self.service = FactService(store, unused)
        add_conversation(store, "I live in Oslo.", "I'm allergic to green tea.")
        self.run()
        self.home, self.tea = (
            self.facts()[text] for text in ("I live in Oslo.", "I'm allergic to green tea.")
        )

    def run(self) -> WorkerStatus:
        (status,) = self.board.run_until_idle([WorkerName.KNOWLEDGE_EXTRACTOR])
        return status

    def choose_model(self) -> None:
        self.settings.set("background_model", MODEL)
        self.asker.model = MODEL

    def again(self, *replies: object) -> WorkerStatus:
        self.choose_model()
        self.asker.replies_with(*replies)  # type: ignore[arg-type]
        request_regeneration(self.settings, FACTS)
        return self.run()

    def facts(self, *, ended: bool = False) -> dict[str, Fact]:
        listed = Facts(self.store).listed(FactFilter(ended=ended))
        return {known.fact.text: known.fact for known in listed}


@pytest.fixture
def extraction(store: Store) -> Iterator[Extraction]:
    yield Extraction(store)
    assert check(store).problems == ()


def test_facts_not_extracted_again_end_and_keep_their_versions(extraction: Extraction) -> None:
    work, before = ExtractionWork(extraction.store), set(extraction.facts())
    again = Workloads(extraction.store, extraction.settings).facts_again
    extraction.choose_model()
    assert (extraction.run().completed, extraction.asker.asked) == (2, [])
    assert (again().turns, work.facts_by_other_models()) == (2, 2)
    request_regeneration(extraction.settings, FACTS)
    assert list(work.exchange_ids(9, None, JumpingClock().now()))
    assert set(extraction.facts()) == before
    status = extraction.again({"facts": [HOME]})
    assert (status.done, status.total) == (2, 2)
    assert set(extraction.facts()) == {HOME["text"]}
    assert extraction.tea.text in extraction.facts(ended=True)
    assert extraction.facts()["The user's home is Oslo."].model == MODEL
    assert extraction.home.text in extraction.facts(ended=True)
    assert (again().turns, work.facts_by_other_models()) == (0, 0)
    extraction.run()
    assert len(extraction.asker.asked) == 1


def test_an_interrupted_extraction_keeps_the_old_facts(extraction: Extraction) -> None:
    before = set(extraction.facts())
    extraction.asker.otherwise = RuntimeError("killed in the middle")
    extraction.again()
    assert set(extraction.facts()) == before


def test_facts_of_the_user_are_kept_and_forgotten_ones_stay_gone(extraction: Extraction) -> None:
    extraction.service.edit(extraction.home.id, "The user lives in Bergen.", None)
    extraction.service.pin(extraction.tea.id, True)
    boat = extraction.service.add("The user owns a boat.", extraction.tea.category)
    home = {**HOME, "text": extraction.home.text}
    extraction.again({"facts": [home, likes("The user has an allergy to green tea.")]})
    kept = {"The user lives in Bergen.", extraction.tea.text, boat.text}
    assert set(extraction.facts()) == kept
    assert extraction.facts()["The user lives in Bergen."].model == BY_USER
    extraction.service.forget(extraction.home.id)
    extraction.again({"facts": [home, likes(extraction.tea.text)]})
    assert set(extraction.facts(ended=True)) == {extraction.tea.text, boat.text}
