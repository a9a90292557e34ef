"""What was not said in turns is found too: facts, memories, tool summaries, apart and in measure."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.bootstrap import Role, Services, build
from app.domain.changes import ConversationEdited, MemoryPut, PassagesPut, ToolSummaryPut
from app.domain.facts import BY_PATTERNS, Fact, FactCategory, Memory
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId, new_uid
from app.domain.passages import Passage, PassageKind, SearchResult
from app.domain.turn_text import content_hash
from app.memory.side_results import with_sides
from app.storage.facts import fact_changes
from app.system.paths import DataPaths
from tests.fakes.command_line import CommandLine
from tests.fakes.stored import AT, Told, told

TURN, FACT, MEMORY = PassageKind.TURN, PassageKind.FACT, PassageKind.MEMORY
TOOLS, PAGE = PassageKind.TOOL_SUMMARY, PassageKind.MAN_PAGE


class Book:
    """A library in which facts, memories and tool summaries can be written down."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.store = services.store

    def learn(self, text: str, whole: Told | None = None, turn: int = 0) -> None:
        """Keep a fact of a turn's answer, or the user's own."""
        place: tuple[ConversationId | None, ExchangeId | None, MessageId | None] = (None,) * 3
        if whole is not None:
            exchange = whole.exchanges[turn]
            place = (whole.conversation.id, exchange.id, exchange.message_ids[-1])
        fact = Fact(
            self.store.ids.passage(), new_uid(), text, FactCategory.OTHER, "", *place, AT,
            BY_PATTERNS, AT,
        )  # fmt: skip
        self.store.save(*fact_changes(fact))

    def remember(self, text: str) -> None:
        """Keep a memory that no conversation told."""
        own = self.store.ids.passage()
        passage = Passage(own, MEMORY, own, None, None, content_hash(text), AT, 5)
        self.store.save(MemoryPut(Memory(own, new_uid(), text, AT)), PassagesPut((passage,)))

    def note(self, text: str, whole: Told) -> None:
        """Keep a line about a tool call in the first turn."""
        own, exchange = self.store.ids.passage(), whole.exchanges[0]
        place = (whole.conversation.id, exchange.id)
        put = ToolSummaryPut(own, *place, exchange.message_ids[-1], 0, text, BY_PATTERNS, AT)
        passage = Passage(own, TOOLS, own, *place, content_hash(text), AT, 5)
        self.store.save(put, PassagesPut((passage,)))

    def found(self, words: str, limit: int = 20, *kinds: PassageKind) -> tuple[SearchResult, ...]:
        self.services.index_sync.catch_up()
        search = self.services.search.search
        return search(words, limit, kinds or None, by_meaning=False).results

    def kinds(self, words: str, limit: int = 20) -> list[PassageKind]:
        return sorted(each.kind for each in self.found(words, limit))


@pytest.fixture
def book(data_dir: Path) -> Iterator[Book]:
    services = build(DataPaths(data_dir), Role.COMMAND_LINE)
    yield Book(services)
    services.close()


def test_a_fact_opens_at_the_message_it_was_learned_from(book: Book) -> None:
    whole = told(book.store, "How are you?", "What did I plant?", title="Garden")
    book.learn("The user planted sixteen quinces.", whole, turn=1)
    (fact,) = book.found("quinces")
    assert (fact.kind, fact.conversation_title, fact.turn_number) == (FACT, "Garden", 1)
    assert fact.exchange_id == whole.exchanges[1].id
    assert fact.message_id == whole.exchanges[1].message_ids[-1]
    assert fact.snippet == "The user planted sixteen quinces."


def test_what_belongs_to_no_conversation_is_found(book: Book) -> None:
    book.learn("The user likes quinces.")
    book.remember("Order quinces in spring.")
    found = {each.kind: each for each in book.found("quinces")}
    assert set(found) == {FACT, MEMORY}
    for each in found.values():
        assert (each.conversation_id, each.exchange_id, each.message_id) == (None, None, None)
    assert [each.kind for each in book.found("quinces", 20, FACT)] == [FACT]
    assert [each.kind for each in book.found("quinces", 20, MEMORY)] == [MEMORY]


def test_facts_never_crowd_out_turns_and_are_all_listed_when_asked_for(book: Book) -> None:
    whole = told(book.store, *(f"quinces number {number}" for number in range(20)))
    for number in range(30):
        book.learn(f"quinces {number}", whole)
    kinds = book.kinds("quinces")
    assert len(kinds) == 20
    assert 1 <= kinds.count(FACT) <= 5
    assert len(book.found("quinces", 40, FACT)) == 30


def test_several_facts_of_one_turn_are_results_of_their_own(book: Book) -> None:
    whole = told(book.store, "Nothing of it")
    book.learn("The user has three cats.", whole)
    book.learn("The user's cats eat fish.", whole)
    assert book.kinds("cats") == [FACT, FACT]


def test_a_tool_summary_is_found_beside_its_turn(book: Book) -> None:
    whole = told(book.store, "Which quinces are there?")
    book.note("Listed the quinces of the shop.", whole)
    assert book.kinds("quinces") == sorted([TURN, TOOLS])


def test_filters_and_what_is_put_away_hold_for_facts(book: Book) -> None:
    whole = told(book.store, "Nothing of it", title="Garden")
    other = told(book.store, "Nothing either", title="Kitchen")
    book.learn("quinces in the garden", whole)
    book.learn("quinces in the kitchen", other)
    assert [each.snippet for each in book.found("quinces title:gard")] == ["quinces in the garden"]
    book.store.save(ConversationEdited(whole.conversation.id, archived=True))
    assert [each.snippet for each in book.found("quinces")] == ["quinces in the kitchen"]
    assert [each.snippet for each in book.found("quinces", 20, FACT)] == ["quinces in the kitchen"]


def result(relevance: float, kind: PassageKind, *, is_weak: bool = False) -> SearchResult:
    return SearchResult(
        kind, PassageId(int(relevance * 1000)), "", None, "", False, None, None, None, relevance,
        is_weak, None, "", "", (), AT, None,
    )  # fmt: skip


def test_all_sides_together_take_half_of_the_places_the_first_of_each_before_the_second() -> None:
    turns = [result(0.5, TURN) for _ in range(8)]
    sides = [[result(0.9, kind), result(0.8, kind)] for kind in (FACT, MEMORY, PAGE)]
    merged = with_sides(turns, sides, 8)
    assert [each.kind for each in merged] == [FACT, MEMORY, PAGE, FACT, *[TURN] * 4]


def test_weak_ones_of_any_side_come_after_strong_ones_of_another() -> None:
    turns = [result(0.5, TURN, is_weak=True) for _ in range(8)]
    weak = [result(0.9, FACT, is_weak=True) for _ in range(4)]
    strong = [result(0.8, PAGE) for _ in range(4)]
    merged = with_sides(turns, [weak, strong], 8)
    assert [each.kind for each in merged] == [*[PAGE] * 4, *[TURN] * 4]


def test_the_command_line_lists_facts(
    data_dir: Path, book: Book, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = told(book.store, "What of quinces?", title="Garden")
    book.learn("The user planted quinces.", whole)
    book.learn("The user likes quinces.")
    book.services.close()
    cli = CommandLine(data_dir, capsys)
    found = cli.json("search", "quinces", "--kind", "fact")["results"]
    places = {each["snippet"]: (each["kind"], each["turn_number"]) for each in found}
    assert places == {
        "The user planted quinces.": ("fact", 0),
        "The user likes quinces.": ("fact", None),
    }
    assert f"[{whole.conversation.id}:0]" in cli.done("search", "planted", "--kind", "fact").out
    assert "None" not in cli.done("search", "likes", "--kind", "fact").out
