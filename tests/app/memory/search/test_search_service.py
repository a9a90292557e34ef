"""The search service: results, filters, hidden conversations, meaning, and results that are not turns."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest

from app.domain.changes import (
    ConversationEdited,
    MemoryPut,
    PassagesPut,
    ProjectPut,
    TagsChanged,
    ToolSummaryPut,
)
from app.domain.conversations import TitleOrigin
from app.domain.errors import IndexUnavailable, InvalidInput
from app.domain.ids import PassageId, new_uid, part_id, part_number
from app.domain.passages import Passage, PassageKind
from app.domain.records.facts import BY_PATTERNS, Memory
from app.domain.records.projects import Project
from app.domain.text import content_hash
from app.memory.search import service as search
from app.memory.search.results import merge_side_results
from app.storage.tables.conversations import Conversations, FilterValues
from app.storage.tables.passages.queries import Passages
from tests.fakes.command_line import CommandLine
from tests.fakes.found import search_result
from tests.fakes.searchable import OTHERS, Library
from tests.fakes.stored import AT, add_conversation, opened

TURN, FACT, MEMORY = PassageKind.TURN, PassageKind.FACT, PassageKind.MEMORY
TOOLS, PAGE = PassageKind.TOOL_SUMMARY, PassageKind.MAN_PAGE


@pytest.fixture
def library(data_dir: Path) -> Iterator[Library]:
    with opened(data_dir) as store:
        made = Library(store)
        yield made
        made.sync.stop()


# -- results
def test_a_result_names_the_turn_and_marks_the_words(library: Library) -> None:
    add_conversation(library.store, "How is bread made", "How does sourdough rise", title="Baking")
    (result,) = library.search("sourdough")
    assert (result.conversation_title, result.turn_number) == ("Baking", 1)
    assert result.user_question == "How does sourdough rise"
    assert {result.snippet[start:end] for start, end in result.marks} == {"sourdough"}
    assert result.relevance > 0.85
    assert (result.cosine, result.is_weak) == (None, False)
    assert result.created_at.tzinfo is UTC


def test_keywords_find_the_reply_containing_them_before_what_comes_next(library: Library) -> None:
    add_conversation(
        library.store,
        ("How warm is too warm?", reply := "A bulk rise of five hours becomes three."),
        ("It stood up, but the top is pale.", "Take the lid off five minutes earlier."),
    )
    for other in OTHERS:
        add_conversation(library.store, other)
    best, *others = library.search("bulk rise")
    assert (best.snippet, best.is_weak) == (reply, False)
    assert all(each.is_weak for each in others)


def test_relevance_falls_with_the_share_of_the_words_found(library: Library) -> None:
    add_conversation(library.store, "sourdough bread")
    add_conversation(library.store, "rye bread")
    first, second = library.search("sourdough bread")
    assert first.relevance > second.relevance > library.search("xylophone bread")[0].relevance
    (poor, *_) = library.search("sourdough xylophone quartz brisket")
    assert (first.is_weak, poor.is_weak) == (False, True)
    library.settings.set("rag_min_similarity", 0.0)
    assert not library.search("sourdough xylophone quartz brisket")[0].is_weak


def test_a_result_is_the_message_that_was_found(library: Library) -> None:
    whole = add_conversation(library.store, "How is bread made", "How does sourdough rise")
    assert library.search("bread")[0].message_id == whole.messages[0].id
    again = library.answer_again(whole, "By wild yeast.")
    result = library.search("yeast")[0]
    assert (result.exchange_id, result.snippet) == (again.id, "By wild yeast.")
    assert result.message_id not in {each.id for each in whole.messages}
    assert result.user_question == "How does sourdough rise"
    shared = library.search("sourdough rise")
    assert shared[0].message_id == whole.messages[2].id
    ids = [each.message_id for each in shared]
    assert len(ids) == len(set(ids)), "a question that two answers share is shown once"
    library.answer_again(whole, "By wild yeast, and patience.")
    assert len({each.snippet for each in library.search("yeast")[:2]}) == 2


def test_summaries_of_turns_are_found_by_kind_only_at_the_turns_place(library: Library) -> None:
    for number in range(12):
        whole = add_conversation(library.store, f"sourdough number {number}")
        library.summarize(whole, f"About fermentation of sourdough number {number}.")
    assert library.search("fermentation") == ()
    assert library.search("fermentation after:2020") == ()
    assert library.search("fermentation", 20, FACT) == ()
    results = library.search("fermentation", 20, PassageKind.EXCHANGE_SUMMARY)
    assert {each.kind for each in results} == {PassageKind.EXCHANGE_SUMMARY}
    assert whole.exchanges[0].id in {each.exchange_id for each in results}
    turns = [each.exchange_id for each in library.search("sourdough", 10)]
    assert len(turns) == len(set(turns)) == 10


def test_a_fact_counts_as_words_of_its_message_but_not_for_keywords(library: Library) -> None:
    first = add_conversation(library.store, "We take the blue one, on Friday.", title="First")
    add_conversation(library.store, "We take the green one, on Friday.", title="Second")
    for other in OTHERS:
        add_conversation(library.store, other)

    def found() -> list[str]:
        library.sync.catch_up()
        asked = "Which of the bicycles do we take on Friday?"
        results = library.service.by_sentence(asked, 2, [TURN], None)
        return [each.conversation_title for each in results]

    assert found() == ["Second", "First"], "the newer of equals"
    library.fact("The user takes the blue bicycle on Friday.", first)
    assert found() == ["First", "Second"]
    assert library.titles("take Friday")[:2] == ["Second", "First"]


def test_conversations_are_found_by_their_current_title(library: Library) -> None:
    whole = add_conversation(library.store, "How much water", "And how much light", title="Herbs")
    add_conversation(library.store, "Which bolt fits", title="Bicycle")
    assert library.titles("herbs") == ["Herbs"] * 2
    _, position = Passages(library.store).forgetting()
    edit = ConversationEdited(whole.conversation.id, title="Plants", title_origin=TitleOrigin.USER)
    assert library.store.save(edit).passages
    assert len(Passages(library.store).work_since(position, 10).added) == 2, "only its own turns"
    assert library.titles("plants") == ["Plants"] * 2
    assert library.titles("herbs") == []
    assert not library.store.save(ConversationEdited(whole.conversation.id, pinned=True)).passages


# -- filters, and what is hidden
def test_the_words_of_a_title_find_where_its_conversation_begins(library: Library) -> None:
    """They are what people see in the list and type."""
    add_conversation(
        library.store, ("I made three changes on main.", "Branch off."), ("Thanks for that.", "Yes."),
        title="Untangling a merge",
    )  # fmt: skip
    add_conversation(library.store, "A merge of two lists: how does a merge sort merge them?")
    for other in OTHERS:
        add_conversation(library.store, other, title="Other things")
    for asked in ("untangling merge", "untangling"):
        best, *others = library.search(asked)
        assert (best.conversation_title, best.turn_number) == ("Untangling a merge", 0)
        assert not best.is_weak
        assert all(each.is_weak for each in others)
        marked = {best.conversation_title[start:end].lower() for start, end in best.title_marks}
        assert marked == set(asked.split())
    assert library.titles("merge sort")[0] == "A talk"


def test_filters_narrow_the_results(library: Library) -> None:
    store = library.store
    old = add_conversation(store, "bread one", title="Baking", at=datetime(2024, 5, 1, tzinfo=UTC))
    new = add_conversation(
        store, "bread two", title="Shopping", at=datetime(2026, 5, 1, tzinfo=UTC), source="chatgpt"
    )
    store.save(TagsChanged(old.conversation.id, ("kitchen",)))
    library.edit(new, pinned=True)
    for query, titles in (
        ("title:bak", ["Baking"]), ("tag:KITCHEN", ["Baking"]), ("after:2025", ["Shopping"]),
        ("before:2025", ["Baking"]), ("is:pinned", ["Shopping"]), ("model:nobody", []),
        ("source:ChatGPT", ["Shopping"]), ("source:commonplace", ["Baking"]),
        ('"bread two"', ["Shopping"]), ("-two", ["Baking"]),
    ):  # fmt: skip
        assert library.titles(f"bread {query}") == titles, query


def test_filters_that_match_nothing_by_themselves_are_named(library: Library) -> None:
    store = library.store
    archived = add_conversation(store, "rye bread", title="Baking", source="chatgpt")
    add_conversation(store, "white bread")
    library.edit(archived, archived=True)
    library.sync.catch_up()
    for query, unmatched in (
        ("bread project:nosuch source:chatgpt", ("project:nosuch",)),
        ('topic:"no such" tag:none', ('topic:"no such"', "tag:none")),
        ("bread model:nobody", ("model:nobody",)), ("bread after:2999", ("after:2999",)),
        ("xylophone", ()), ("bread title:bak is:archived", ()), ("bread is:pinned", ("is:pinned",)),
    ):  # fmt: skip
        assert library.service.search(query).unmatched == unmatched, query
    library.edit(archived, archived=False)
    assert library.service.search("bread is:archived").unmatched == ("is:archived",)


def test_what_can_be_filtered_by_is_counted(library: Library) -> None:
    store = library.store
    whole = [add_conversation(store, "bread", source=each) for each in ("a", "b", "b", "b")]
    for each, tags in zip(whole, (("x",), ("x", "y"), ("z",), ("z",)), strict=True):
        store.save(TagsChanged(each.conversation.id, tags))
    library.edit(whole[2], deleted_at=AT)
    library.edit(whole[3], private=True)
    library.edit(whole[0], project="p")
    store.save(ProjectPut(Project("p", "House")), ProjectPut(Project("q", "Empty")))
    values = Conversations(store).filter_values()
    counted = (("x", 2), ("y", 1)), (("openai:m", 2),), (("a", 1), ("b", 1))
    assert values == FilterValues(*counted, projects=(("House", 1), ("Empty", 0)))


def test_the_words_are_marked_in_the_question_too(library: Library) -> None:
    answer = "The starter is fed on Fridays with rye flour and warm water. Patience helps."
    add_conversation(library.store, ("When is the sourdough fed?", answer))
    (result,) = library.search("sourdough rye")
    marked = [result.user_question[start:end] for start, end in result.question_marks]
    assert marked == ["sourdough"]
    assert [result.snippet[start:end] for start, end in result.marks] == ["rye"]
    assert library.search("starter")[0].question_marks == ()


def test_filters_alone_list_the_newest_first(library: Library) -> None:
    for year in (2024, 2026, 2025):
        add_conversation(
            library.store, "bread", title=str(year), at=datetime(year, 5, 1, tzinfo=UTC)
        )
    assert library.titles("after:2024") == ["2026", "2025", "2024"]
    assert [each.conversation_title for each in library.search("after:2024", 2)] == ["2026", "2025"]
    assert library.titles("after:2024 -bread") == []
    found = library.service.search("after:2024", among=[1]).results
    assert [each.conversation_title for each in found] == ["2024"]


def test_a_search_for_yesterday_lists_what_was_said_then(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "datetime", Mock(now=Mock(return_value=AT)))
    yesterday = AT - timedelta(days=1)
    said = {
        title: add_conversation(library.store, f"Of {title}", title=title, at=at)
        for title, at in (("bees", yesterday), ("tea", yesterday - timedelta(days=1)))
    }
    add_conversation(library.store, "The song Yesterday", title="song")
    asked = "What did we talk about yesterday?"
    for query in ("yesterday", asked, "title:bees yesterday"):
        assert library.titles(query) == ["bees"], query
    assert library.titles("the day before yesterday") == ["tea"]
    assert library.titles("song yesterday") == library.titles('"yesterday"') == ["song"]
    first = f"{said['tea'].conversation.created_at.astimezone():%Y-%m-%d}"
    assert "tea" not in library.titles(f"yesterday after:{first}")
    found = library.with_meaning.by_sentence(asked, 5, {TURN}, None)
    assert [each.conversation_title for each in found] == ["bees"]
    assert library.service.inspect("yesterday").ranking_input is None


def test_archived_deleted_and_private_conversations_are_hidden_at_once(library: Library) -> None:
    archived = add_conversation(library.store, "sourdough bread", title="Archived")
    deleted = add_conversation(library.store, "sourdough rolls", title="Deleted")
    add_conversation(library.store, "sourdough cake", title="Private", private=True)
    assert sorted(library.titles("sourdough")) == ["Archived", "Deleted"]
    library.edit(archived, archived=True)
    library.edit(deleted, deleted_at=AT)
    assert library.titles("sourdough") == []
    assert library.titles("sourdough is:archived") == ["Archived"]
    library.edit(archived, archived=False)
    library.edit(deleted, restored=True, title="Restored", title_origin=TitleOrigin.USER)
    assert sorted(library.titles("sourdough")) == ["Archived", "Restored"]
    library.edit(deleted, private=True)
    assert library.titles("sourdough") == ["Archived"]
    library.store.write_derived(lambda c: c.execute("DELETE FROM passage")).result()
    assert library.service.search("sourdough").results == (), "the index alone still has it"


@pytest.mark.parametrize("query", ["", "x", "x" * 501, "after:never", "title:"])
def test_invalid_queries_are_refused(library: Library, query: str) -> None:
    with pytest.raises(InvalidInput):
        library.service.search(query)


def test_a_missing_index_is_built_after_a_search_asked_for_it(library: Library) -> None:
    with pytest.raises(IndexUnavailable):
        library.service.search("anything")
    library.sync.start()
    library.sync.catch_up()
    library.sync.covered_share = 0.25
    response = library.service.search("anything")
    assert (response.results, response.covered_share) == ((), 0.25)


# -- meaning
def test_a_paraphrase_is_found_by_meaning(library: Library) -> None:
    add_conversation(library.store, "kittens", title="Cats")
    for number in range(20):
        add_conversation(library.store, f"bicycle {number}", title="Bicycles")
    assert library.titles("feline") == []
    response = library.by_meaning("feline")
    first = response.results[0]
    assert (first.conversation_title, first.user_question) == ("Cats", "kittens")
    assert (response.by_meaning, response.notice) == (True, "")
    assert first.cosine is not None
    assert first.cosine > 0.9


def test_without_meaning_only_words_rank(library: Library) -> None:
    add_conversation(library.store, "kittens")
    library.sync.catch_up()
    response = library.with_meaning.search("feline", by_meaning=False)
    assert (response.results, response.by_meaning, library.vector_search.asked) == ((), False, [])
    (result,) = library.with_meaning.search("kittens", by_meaning=False).results
    assert result.cosine is None
    library.vector_search.is_there, library.vector_search.problem = False, "The model is missing"
    response = library.by_meaning("kittens")
    assert [each.user_question for each in response.results] == ["kittens"]
    assert (response.by_meaning, response.notice) == (False, "The model is missing")


def test_only_the_subject_of_a_question_is_embedded(library: Library) -> None:
    add_conversation(library.store, "grey kittens")
    library.by_meaning("What did I say about my kittens? Answer in one word.")
    (asked,) = library.vector_search.asked
    assert "kittens" in asked
    assert "Answer" not in asked
    for query in ("is:pinned", "-kittens", "after:2020"):
        assert not library.by_meaning(query).by_meaning
    assert len(library.vector_search.asked) == 1, "filters alone have no meaning"
    assert library.by_meaning('"grey kittens"').by_meaning


def test_filters_apply_to_what_meaning_finds(library: Library) -> None:
    store = library.store
    old = add_conversation(store, "kittens", title="Old", at=datetime(2024, 5, 1, tzinfo=UTC))
    add_conversation(store, "cats", title="New", at=datetime(2026, 5, 1, tzinfo=UTC))
    store.save(TagsChanged(old.conversation.id, ("pets",)))

    def titles(query: str) -> list[str]:
        return sorted({each.conversation_title for each in library.by_meaning(query).results})

    for query, expected in (
        ("", ["New", "Old"]), ("tag:pets", ["Old"]), ("before:2025", ["Old"]),
        ("after:2025", ["New"]), ("-kittens", ["New"]), ('"an answer to cats"', ["New"]),
    ):  # fmt: skip
        assert titles(f"feline {query}") == expected, query
    library.edit(old, archived=True)
    assert (titles("feline"), titles("feline is:archived")) == (["New"], ["Old"])
    library.edit(old, archived=False, deleted_at=AT)
    assert titles("feline") == ["New"]


def test_an_archived_turn_with_the_word_ranks_above_one_without(library: Library) -> None:
    for text, title in (("cats", "Without"), ("a feline", "With")):
        library.edit(add_conversation(library.store, text, title=title), archived=True)
    assert library.by_meaning("feline is:archived").results[0].conversation_title == "With"


def test_parts_are_ranked_in_some_conversations_or_in_all(library: Library) -> None:
    one = add_conversation(library.store, "sourdough one", "rye bread")
    add_conversation(library.store, "sourdough two")
    library.sync.catch_up()
    own = library.service.parts_ranked("sourdough", [one.conversation.id])
    assert own[0] in {part_id(1, 0), part_id(1, 1)}
    assert {each // part_id(1, 0) for each in own} <= {1, 2}
    everywhere = library.service.parts_ranked("sourdough")
    assert {part_number(each) for each in everywhere} == {0, 1}
    assert part_id(PassageId(3), 0) in everywhere
    assert library.service.parts_ranked("sourdough", by_meaning=False) == everywhere


# -- facts, saved texts and tool summaries
def save_memory(library: Library, text: str) -> None:
    own = library.store.ids.passage()
    passage = Passage(own, MEMORY, own, None, None, content_hash(text), AT, 5)
    library.store.save(MemoryPut(Memory(own, new_uid(), text, AT)), PassagesPut((passage,)))


def test_a_fact_opens_at_the_message_it_was_extracted_from(library: Library) -> None:
    whole = add_conversation(library.store, "How are you?", "What did I plant?", title="Garden")
    exchange = whole.exchanges[1]
    library.fact(
        "The user planted sixteen quinces.", whole,
        exchange_id=exchange.id, message_id=exchange.message_ids[-1],
    )  # fmt: skip
    library.fact("The user's quinces are yellow.", whole)
    results = {each.snippet: each for each in library.search("quinces")}
    assert len(results) == 2, "facts of one conversation are results of their own"
    fact = results["The user planted sixteen quinces."]
    assert (fact.kind, fact.conversation_title, fact.turn_number) == (FACT, "Garden", 1)
    assert (fact.exchange_id, fact.message_id) == (exchange.id, exchange.message_ids[-1])


def test_each_kind_is_found_by_itself_and_without_a_conversation(library: Library) -> None:
    library.fact("The user likes quinces.")
    save_memory(library, "Order quinces in spring.")
    whole = add_conversation(library.store, "Nothing of it")
    own, exchange = library.store.ids.passage(), whole.exchanges[0]
    place = (whole.conversation.id, exchange.id)
    library.store.save(
        ToolSummaryPut(own, *place, exchange.message_ids[-1], 0, "Listed quinces", BY_PATTERNS, AT),
        PassagesPut((Passage(own, TOOLS, own, *place, content_hash("Listed quinces"), AT, 5),)),
    )
    results = {each.kind: each for each in library.search("quinces")}
    assert set(results) == {FACT, MEMORY, TOOLS}
    assert results[TOOLS].exchange_id == exchange.id
    for kind in (FACT, MEMORY):
        each = results[kind]
        assert (each.conversation_id, each.exchange_id, each.message_id) == (None, None, None)
        assert [each.kind for each in library.search("quinces", 20, kind)] == [kind]
    for sentence in ("quinces?", "what about quinces"):
        (found,) = library.service.by_sentence(sentence, 5, {MEMORY}, None)
        assert found.kind is MEMORY


def test_facts_take_a_quarter_of_the_places_unless_they_are_asked_for(library: Library) -> None:
    whole = add_conversation(library.store, *(f"quinces number {number}" for number in range(20)))
    for number in range(30):
        library.fact(f"quinces {number}", whole)
    kinds = [each.kind for each in library.search("quinces")]
    assert len(kinds) == 20
    assert 1 <= kinds.count(FACT) <= 5
    assert len(library.search("quinces", 40, FACT)) == 30


def test_filters_and_archiving_apply_to_facts(library: Library) -> None:
    garden = add_conversation(library.store, "Nothing of it", title="Garden")
    library.fact("quinces in the garden", garden)
    library.fact(
        "quinces in the kitchen", add_conversation(library.store, "Nothing either", title="Kitchen")
    )
    assert [each.snippet for each in library.search("quinces title:gard")] == ["quinces in the garden"]  # fmt: skip
    library.edit(garden, archived=True)
    for kinds in ((), (FACT,)):
        snippets = [each.snippet for each in library.search("quinces", 20, *kinds)]
        assert snippets == ["quinces in the kitchen"]


def test_side_results_take_half_of_the_places_and_weak_ones_displace_nothing() -> None:
    turns = [search_result(0.5, TURN) for _ in range(8)]
    sides = [[search_result(0.9, kind), search_result(0.8, kind)] for kind in (FACT, MEMORY, PAGE)]
    merged = merge_side_results(turns, sides, 8)
    assert [each.kind for each in merged] == [FACT, MEMORY, PAGE, FACT, *[TURN] * 4]
    weak_turns = [search_result(0.5, TURN, is_weak=True) for _ in range(8)]
    weak = [search_result(0.9, FACT, is_weak=True) for _ in range(4)]
    merged = merge_side_results(weak_turns, [weak, [search_result(0.8, PAGE) for _ in range(4)]], 8)
    assert [each.kind for each in merged] == [*[PAGE] * 4, *[TURN] * 4]
    assert merge_side_results(turns, [weak], 8) == turns
    assert len(merge_side_results(turns[:3], [weak], 8)) == 7


def test_facts_are_listed_with_places(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(data_dir) as store:
        library = Library(store)
        whole = add_conversation(store, "What of quinces?", title="Garden")
        library.fact("The user planted quinces.", whole)
        library.fact("The user likes quinces.")
    cli = CommandLine(data_dir, capsys)
    found = cli.json("search", "quinces", "--kind", "fact")["results"]
    places = {each["snippet"]: (each["kind"], each["turn_number"]) for each in found}
    assert places == {
        "The user planted quinces.": ("fact", 0), "The user likes quinces.": ("fact", None),
    }  # fmt: skip
    assert f"[{whole.conversation.id}:0]" in cli.done("search", "planted", "--kind", "fact").out
    assert "None" not in cli.done("search", "likes", "--kind", "fact").out
