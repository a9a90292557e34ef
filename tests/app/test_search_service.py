"""The search service: filters, places, one result a turn, what is hidden, what Recall asks."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from app.domain.changes import (
    ConversationEdited,
    ExchangePut,
    MessagesAdded,
    PassagesPut,
    SummaryPut,
    TagsChanged,
)
from app.domain.conversations import Exchange, Message, Role, Text, TitleOrigin
from app.domain.errors import IndexUnavailable, InvalidInput
from app.domain.ids import PassageId, new_uid, number_of, part_id
from app.domain.passages import Passage, PassageKind, SearchAnswer, SearchResult
from app.domain.turn_text import turn_passage
from app.index.calibration import Background
from app.index.text_index import TantivyTextIndex
from app.index.vector_index import ExactVectorIndex
from app.memory.index_sync import IndexSync
from app.memory.meaning import Look
from app.memory.search import SearchService
from app.storage.passages import Passages
from app.storage.settings import Settings
from app.storage.store import Store
from tests.fakes.embedders import BagOfWords
from tests.fakes.stored import AT, Told, opened, told

CATS = frozenset({"feline", "kittens", "cats"})


class Thesaurus:
    """Search by meaning for a store: words that mean the same are the same direction.

    Attributes:
        asked: Every question that was looked up.
        problem: What a user is told of the last question.
        is_there: Whether there is anything to look with.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._embedder = BagOfWords(dimension=256)
        self.asked: list[str] = []
        self.problem = ""
        self.is_there = True

    def look(self, question: str) -> Look | None:
        self.asked.append(question)
        if not self.is_there:
            return None
        index = ExactVectorIndex(self._embedder.space.dimension)
        for text in Passages(self._store).texts(range(1, 200)):
            texts = [self._meant(part.embedded) for part in text.parts]
            ids = np.array([part.id for part in text.parts], np.int64)
            index.put(ids, np.zeros((len(ids), 2), np.int32), self._embedder.embed(texts))
        vector = self._embedder.embed([self._meant(question)])[0]
        return Look(vector, index, Background(0.1, 0.1))

    def _meant(self, text: str) -> str:
        words = (word.strip(".,?!") for word in text.casefold().split())
        return " ".join("cat" if word in CATS else word for word in words)


class Library:
    """A store, its index in step with it, and searches on both."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.index = TantivyTextIndex(store.paths.index / "text", store.generation)
        self.sync = IndexSync(store, self.index)
        self.meaning = Thesaurus(store)
        self.settings = Settings(store)
        self.service = self.searching(None)
        self.with_meaning = self.searching(self.meaning)

    def searching(self, meaning: Thesaurus | None) -> SearchService:
        return SearchService(self.store, self.settings, self.index, self.sync, meaning)  # type: ignore[arg-type]

    def search(self, query: str, limit: int = 20, *kinds: PassageKind) -> tuple[SearchResult, ...]:
        self.sync.catch_up()
        return self.service.search(query, limit, kinds or None).results

    def meant(self, query: str) -> SearchAnswer:
        """Search by words and meaning."""
        self.sync.catch_up()
        return self.with_meaning.search(query)

    def answer_again(self, whole: Told, text: str) -> Exchange:
        """Give the last question of a conversation another answer, in a branch of its own."""
        last = whole.exchanges[-1]
        question, _ = whole.messages[-2:]
        answer = Message(
            self.store.ids.message(), new_uid(), whole.conversation.id, question.id,
            Role.ASSISTANT, (Text(text),), AT, "openai:m",
        )  # fmt: skip
        again = replace(last, id=self.store.ids.exchange(), message_ids=(question.id, answer.id))
        passage = turn_passage(self.store.ids.passage(), again, (question, answer))
        assert passage is not None
        self.store.save(MessagesAdded((answer,)), ExchangePut(again), PassagesPut((passage,)))
        return again

    def titles(self, query: str) -> list[str]:
        return [each.conversation_title for each in self.search(query)]

    def summarise(self, whole: Told, text: str) -> None:
        """Give the first turn of a conversation a summary."""
        exchange = whole.exchanges[0]
        put = SummaryPut(
            "exchange", exchange.id, whole.conversation.id, text, "extractive", "stamp", AT
        )
        passage = Passage(
            self.store.ids.passage(), PassageKind.EXCHANGE_SUMMARY, exchange.id,
            whole.conversation.id, exchange.id, "hash", AT, 5,
        )  # fmt: skip
        self.store.save(put, PassagesPut((passage,)))

    def edit(self, whole: Told, **fields: object) -> None:
        self.store.save(ConversationEdited(whole.conversation.id, **fields))  # type: ignore[arg-type]


@pytest.fixture
def library(data_dir: Path) -> Iterator[Library]:
    with opened(data_dir) as store:
        made = Library(store)
        yield made
        made.sync.stop()


def test_a_result_names_the_turn_and_shows_where_it_matched(library: Library) -> None:
    told(library.store, "How is bread made", "How does sourdough rise", title="Baking")
    (result,) = library.search("sourdough")
    assert (result.conversation_title, result.turn_number) == ("Baking", 1)
    assert result.user_question == "How does sourdough rise"
    marked = [result.snippet[start:end] for start, end in result.marks]
    assert set(marked) == {"sourdough"}
    assert result.relevance > 0.9
    assert (result.cosine, result.is_weak) == (None, False)
    assert result.created_at.tzinfo is UTC


def test_relevance_falls_with_the_share_of_the_words_that_were_found(library: Library) -> None:
    told(library.store, "sourdough bread")
    told(library.store, "rye bread")
    first, second = library.search("sourdough bread")
    assert first.relevance > second.relevance
    alone = library.search("xylophone bread")[0]
    assert alone.relevance < second.relevance


def test_a_result_is_weak_below_what_the_settings_ask(library: Library) -> None:
    told(library.store, "sourdough bread")
    (good,) = library.search("sourdough bread")
    (poor,) = library.search("sourdough xylophone quartz brisket")
    assert (good.is_weak, poor.is_weak) == (False, True)
    library.settings.set("rag_min_similarity", 0.0)
    (poor,) = library.search("sourdough xylophone quartz brisket")
    assert not poor.is_weak


def test_a_result_is_the_message_that_was_found(library: Library) -> None:
    whole = told(library.store, "How is bread made", "How does sourdough rise")
    assert library.search("bread")[0].message_id == whole.messages[0].id
    library.answer_again(whole, "By wild yeast.")
    result = library.search("yeast")[0]
    assert result.snippet == "By wild yeast."
    assert result.message_id not in {each.id for each in whole.messages}
    assert result.user_question == "How does sourdough rise"


def test_a_question_that_two_answers_share_is_shown_once(library: Library) -> None:
    whole = told(library.store, "How does sourdough rise")
    again = library.answer_again(whole, "By wild yeast.")
    results = library.search("sourdough rise")
    assert results[0].message_id == whole.messages[0].id
    found = [each.message_id for each in results]
    assert len(found) == len(set(found))
    assert library.search("yeast")[0].exchange_id == again.id


def test_an_answer_that_says_the_same_again_is_a_result_of_its_own(library: Library) -> None:
    whole = told(library.store, "What makes it rise?")
    library.answer_again(whole, "Yeast, and patience.")
    library.answer_again(whole, "Yeast, and warmth.")
    snippets = {each.snippet for each in library.search("yeast")[:2]}
    assert snippets == {"Yeast, and patience.", "Yeast, and warmth."}


def test_a_long_talk_fills_no_more_than_its_turns(library: Library) -> None:
    told(library.store, *(f"sourdough {number}" for number in range(30)))
    results = library.search("sourdough", 25)
    assert len(results) == len({each.exchange_id for each in results}) == 25


def test_summaries_of_turns_are_found_only_when_asked_for(library: Library) -> None:
    whole = told(library.store, "How does sourdough rise")
    library.summarise(whole, "About fermentation.")
    assert library.search("fermentation") == ()
    assert library.search("fermentation after:2020") == ()
    (result,) = library.search("fermentation", 20, PassageKind.EXCHANGE_SUMMARY)
    assert result.exchange_id == whole.exchanges[0].id


def test_a_turn_and_its_summary_are_one_result(library: Library) -> None:
    whole = told(library.store, "How does sourdough rise")
    library.summarise(whole, "The user asked how sourdough rises.")
    (result,) = library.search("sourdough")
    assert result.exchange_id == whole.exchanges[0].id


def test_a_list_is_full_although_every_turn_has_a_summary(library: Library) -> None:
    for number in range(12):
        whole = told(library.store, f"sourdough number {number}")
        library.summarise(whole, f"sourdough number {number}")
    assert len(library.search("sourdough", 10)) == 10


def test_a_kind_can_be_asked_for_alone(library: Library) -> None:
    whole = told(library.store, "How does sourdough rise")
    library.summarise(whole, "Sourdough rises by yeast.")
    (result,) = library.search("sourdough", 20, PassageKind.EXCHANGE_SUMMARY)
    assert (result.kind, result.snippet) == (
        PassageKind.EXCHANGE_SUMMARY,
        "Sourdough rises by yeast.",
    )
    assert library.search("sourdough", 20, PassageKind.FACT) == ()


def test_filters_narrow_what_words_found(library: Library) -> None:
    store = library.store
    old = told(store, "bread one", title="Baking", at=datetime(2024, 5, 1, tzinfo=UTC))
    new = told(store, "bread two", title="Shopping", at=datetime(2026, 5, 1, tzinfo=UTC))
    store.save(TagsChanged(old.conversation.id, ("kitchen",)))
    library.edit(new, pinned=True)
    assert library.titles("bread title:bak") == ["Baking"]
    assert library.titles("bread tag:KITCHEN") == ["Baking"]
    assert library.titles("bread after:2025") == ["Shopping"]
    assert library.titles("bread before:2025") == ["Baking"]
    assert library.titles("bread is:pinned") == ["Shopping"]
    assert library.titles("bread model:nobody") == []
    assert library.titles('"bread two"') == ["Shopping"]
    assert library.titles("bread -two") == ["Baking"]


def test_filters_alone_list_the_newest_first(library: Library) -> None:
    for year in (2024, 2026, 2025):
        told(library.store, "bread", title=str(year), at=datetime(year, 5, 1, tzinfo=UTC))
    assert library.titles("after:2024") == ["2026", "2025", "2024"]
    assert [each.conversation_title for each in library.search("after:2024", 2)] == ["2026", "2025"]
    assert library.titles("after:2024 -bread") == []


def test_what_is_archived_deleted_or_private_is_hidden_at_once(library: Library) -> None:
    archived = told(library.store, "sourdough", title="Archived")
    deleted = told(library.store, "sourdough", title="Deleted")
    told(library.store, "sourdough", title="Private", private=True)
    assert sorted(library.titles("sourdough")) == ["Archived", "Deleted"]
    library.edit(archived, archived=True)
    library.edit(deleted, deleted_at=AT)
    assert library.titles("sourdough") == []
    assert library.titles("sourdough is:archived") == ["Archived"]
    library.edit(archived, archived=False)
    library.edit(deleted, restored=True)
    assert sorted(library.titles("sourdough")) == ["Archived", "Deleted"]


def test_a_conversation_made_private_is_hidden_at_once(library: Library) -> None:
    whole = told(library.store, "sourdough")
    library.edit(whole, private=True)
    assert library.search("sourdough") == ()


def test_a_new_title_shows_without_a_new_index(library: Library) -> None:
    whole = told(library.store, "sourdough", title="Before")
    assert library.titles("sourdough") == ["Before"]
    library.edit(whole, title="After", title_origin=TitleOrigin.USER)
    assert library.titles("sourdough") == ["After"]


def test_what_the_index_holds_and_the_database_does_not_is_left_out(library: Library) -> None:
    told(library.store, "sourdough")
    library.sync.catch_up()
    library.store.write_derived(lambda c: c.execute("DELETE FROM passage")).result()
    assert library.service.search("sourdough").results == ()


@pytest.mark.parametrize("query", ["", "x", "x" * 501, "after:never", "title:"])
def test_a_query_that_cannot_be_taken_says_so(library: Library, query: str) -> None:
    with pytest.raises(InvalidInput):
        library.service.search(query)


def test_an_index_that_is_missing_asks_to_be_made(library: Library) -> None:
    with pytest.raises(IndexUnavailable):
        library.service.search("anything")
    library.sync.start()
    library.sync.catch_up()
    assert library.service.search("anything").results == ()


def test_an_answer_says_what_share_was_searchable(library: Library) -> None:
    told(library.store, "one")
    library.sync.catch_up()
    library.sync.covered_share = 0.25
    assert library.service.search("one").covered_share == 0.25


# -- by meaning


def test_a_paraphrase_is_found_by_meaning(library: Library) -> None:
    told(library.store, "kittens", title="Cats")
    for number in range(20):
        told(library.store, f"bicycle {number}", title="Bicycles")
    assert library.titles("feline") == []
    answer = library.meant("feline")
    first = answer.results[0]
    assert (first.conversation_title, first.user_question) == ("Cats", "kittens")
    assert (answer.by_meaning, answer.notice) == (True, "")
    assert first.cosine is not None
    assert first.cosine > 0.9


def test_without_meaning_words_alone_rank(library: Library) -> None:
    told(library.store, "kittens")
    library.sync.catch_up()
    answer = library.with_meaning.search("feline", by_meaning=False)
    assert (answer.results, answer.by_meaning, library.meaning.asked) == ((), False, [])
    (result,) = library.with_meaning.search("kittens", by_meaning=False).results
    assert result.cosine is None


def test_where_nothing_can_be_looked_up_words_rank_and_the_answer_says_why(
    library: Library,
) -> None:
    told(library.store, "kittens")
    library.meaning.is_there = False
    library.meaning.problem = "The model is missing"
    answer = library.meant("kittens")
    assert [each.user_question for each in answer.results] == ["kittens"]
    assert (answer.by_meaning, answer.notice) == (False, "The model is missing")


def test_what_is_looked_up_is_what_is_asked_for(library: Library) -> None:
    told(library.store, "kittens")
    library.meant("What did I say about my kittens? Answer in one word.")
    (asked,) = library.meaning.asked
    assert "kittens" in asked
    assert "Answer" not in asked


@pytest.mark.parametrize("query", ['"grey kittens"', "is:pinned", "-kittens", "after:2020"])
def test_without_words_of_its_own_a_query_is_not_looked_up(library: Library, query: str) -> None:
    told(library.store, "grey kittens")
    answer = library.meant(query)
    assert answer.by_meaning is bool(library.meaning.asked) is query.startswith('"')


def test_filters_hold_for_what_meaning_found(library: Library) -> None:
    store = library.store
    old = told(store, "kittens", title="Old", at=datetime(2024, 5, 1, tzinfo=UTC))
    told(store, "cats", title="New", at=datetime(2026, 5, 1, tzinfo=UTC))
    store.save(TagsChanged(old.conversation.id, ("pets",)))

    def titles(query: str) -> list[str]:
        return sorted({each.conversation_title for each in library.meant(query).results})

    assert titles("feline") == ["New", "Old"]
    assert titles("feline tag:pets") == ["Old"]
    assert titles("feline before:2025") == ["Old"]
    assert titles("feline after:2025") == ["New"]
    assert titles("feline -kittens") == ["New"]
    assert titles('feline "an answer to cats"') == ["New"]
    library.edit(old, archived=True)
    assert titles("feline") == ["New"]
    assert titles("feline is:archived") == ["Old"]
    library.edit(old, archived=False, deleted_at=AT)
    assert titles("feline") == ["New"]


def test_summaries_are_not_found_by_meaning_either(library: Library) -> None:
    library.summarise(told(library.store, "How does sourdough rise"), "kittens")
    kinds = {each.kind for each in library.meant("feline").results}
    assert kinds <= {PassageKind.TURN}


# -- for measuring and explaining


def test_parts_are_ranked_in_some_conversations_or_in_all(library: Library) -> None:
    one = told(library.store, "sourdough one", "rye bread")
    told(library.store, "sourdough two")
    library.sync.catch_up()
    own = library.service.parts_ranked("sourdough", [one.conversation.id])
    assert own[0] in {part_id(1, 0), part_id(1, 1)}
    assert {each // part_id(1, 0) for each in own} <= {1, 2}
    everywhere = library.service.parts_ranked("sourdough")
    assert {number_of(each) for each in everywhere} == {0, 1}
    assert part_id(PassageId(3), 0) in everywhere
    assert library.service.parts_ranked("sourdough", by_meaning=False) == everywhere


def test_an_inspection_is_the_ranking_itself(library: Library) -> None:
    told(library.store, "kittens")
    told(library.store, "bicycles")
    library.sync.catch_up()
    looked = library.with_meaning.inspect("feline")
    assert looked.considered is not None
    ranked = [each.part_id for each in looked.ranked]
    assert ranked == library.with_meaning.parts_ranked("feline")
    assert looked.considered.background == Background(0.1, 0.1)


def test_a_part_that_nothing_found_can_be_inspected(library: Library) -> None:
    told(library.store, "sourdough")
    told(library.store, "bicycles")
    library.sync.catch_up()
    wanted = part_id(2, 0)
    looked = library.service.inspect("sourdough", [wanted])
    assert looked.considered is not None
    assert wanted not in {each.part_id for each in looked.ranked}
    assert wanted in looked.considered.survey.parts
