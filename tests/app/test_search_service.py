"""The search service: filters, places, one result a turn, what is hidden, what Recall asks."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.domain.changes import ConversationEdited, PassagesPut, SummaryPut, TagsChanged
from app.domain.conversations import TitleOrigin
from app.domain.errors import IndexUnavailable, InvalidInput
from app.domain.ids import ConversationId
from app.domain.passages import Passage, PassageKind, SearchResult
from app.index.text_index import TantivyTextIndex
from app.memory.index_sync import IndexSync
from app.memory.search import SearchService
from app.storage.store import Store
from tests.fakes.stored import AT, Told, opened, told


class Library:
    """A store, its index in step with it, and searches on both."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.index = TantivyTextIndex(store.paths.index / "text", store.generation)
        self.sync = IndexSync(store, self.index)
        self.service = SearchService(store, self.index, self.sync)

    def search(self, query: str, limit: int = 20, *kinds: PassageKind) -> tuple[SearchResult, ...]:
        self.sync.catch_up()
        return self.service.search(query, limit, kinds or None).results

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
    assert (result.relevance, result.cosine) == (1.0, None)
    assert result.created_at.tzinfo is UTC


def test_relevance_is_the_share_of_the_words_that_were_found(library: Library) -> None:
    told(library.store, "sourdough bread")
    told(library.store, "rye bread")
    first, second = library.search("sourdough bread")
    assert first.relevance == pytest.approx(1.0)
    assert 0 < second.relevance < 0.5, "the rarer word weighs more"


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


# -- for Recall


def recalled(library: Library, question: str, conversation_id: int = 0) -> list[str]:
    library.sync.catch_up()
    found = library.service.passages_for_recall(question, ConversationId(conversation_id), 3)
    return [each.user_question for each in found]


def test_recall_never_quotes_the_conversation_that_asks(library: Library) -> None:
    own = told(library.store, *(f"sourdough {number}" for number in range(30)))
    told(library.store, "sourdough elsewhere", "nothing of it")
    assert recalled(library, "sourdough", own.conversation.id) == ["sourdough elsewhere"]


def test_a_question_for_recall_is_words_whatever_it_looks_like(library: Library) -> None:
    told(library.store, "sourdough")
    assert recalled(library, 'is:pinned "sourdough -bread title:x') == ["sourdough"]
    assert recalled(library, "sourdough " * 400) == ["sourdough"]


@pytest.mark.parametrize("question", ["", " ", "?", "\u200b"])
def test_a_question_without_words_recalls_nothing(library: Library, question: str) -> None:
    told(library.store, "sourdough")
    assert recalled(library, question) == []
