"""Why a turn is not found: its place, its points, each thing that can keep it back; and probes."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from app.domain.changes import ConversationEdited, TagsChanged
from app.domain.errors import InvalidInput, NotFound
from app.domain.explanations import Cause, Explanation
from app.domain.ids import ExchangeId
from app.domain.probes import Probe
from app.index.calibration import Background
from app.index.ranking import FEATURES
from app.index.text_index import TantivyTextIndex
from app.index.vector_index import ExactVectorIndex
from app.memory.explain import Explainer
from app.memory.index_sync import IndexSync
from app.memory.meaning import Look
from app.memory.probes import MOST, ProbeQuestions
from app.memory.search import SearchService
from app.storage.attempts import Attempts
from app.storage.passages import Passages
from app.storage.settings import Settings
from app.storage.store import Store
from tests.fakes.embedders import BagOfWords
from tests.fakes.stored import Told, asked, opened, told

BREAD = "How does the sourdough bread of my grandmother rise overnight in a cold kitchen"


class Nearness:
    """Search by meaning for a store, by words in common.

    Attributes:
        lacks: Passages that have no vector.
        problem: What a user is told of the last question.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._embedder = BagOfWords(dimension=256)
        self.lacks: set[int] = set()
        self.problem = ""

    def look(self, question: str) -> Look:
        index = ExactVectorIndex(self._embedder.space.dimension)
        for text in Passages(self._store).texts(set(range(1, 200)) - self.lacks):
            ids = np.array([part.id for part in text.parts], np.int64)
            vectors = self._embedder.embed([part.embedded for part in text.parts])
            index.put(ids, np.zeros((len(ids), 2), np.int32), vectors)
        return Look(self._embedder.embed([question])[0], index, Background(0.1, 0.1))


class Book:
    """A store with an explainer on it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.settings = Settings(store)
        self.index = TantivyTextIndex(store.paths.index / "text", store.generation)
        self.sync = IndexSync(store, self.index)
        self.meaning = Nearness(store)
        self.search = SearchService(
            store, self.settings, self.index, self.sync, self.meaning  # type: ignore[arg-type]
        )  # fmt: skip
        self.explainer = Explainer(store, self.settings, self.index, self.search)
        self.probes = ProbeQuestions(store, self.settings, self.explainer)

    def explain(self, question: str, told: Told, turn: int = 0, limit: int = 20) -> Explanation:
        self.sync.catch_up()
        return self.explainer.explain(question, told.exchanges[turn].id, limit)

    def causes(self, question: str, told: Told, turn: int = 0) -> list[Cause]:
        """Return what keeps a turn back, being weak left out."""
        found = [each.cause for each in self.explain(question, told, turn).obstacles]
        return [each for each in found if each is not Cause.WEAK]

    def edit(self, told: Told, **fields: object) -> None:
        self.store.save(ConversationEdited(told.conversation.id, **fields))  # type: ignore[arg-type]


@pytest.fixture
def book(data_dir: Path) -> Iterator[Book]:
    with opened(data_dir) as store:
        made = Book(store)
        yield made
        made.sync.stop()


# -- a turn that is found


def test_the_rank_is_the_place_in_the_results(book: Book) -> None:
    talks = [told(book.store, f"{BREAD} number {number}") for number in range(5)]
    book.sync.catch_up()
    results = book.search.search("sourdough bread number 3").results
    for place, result in enumerate(results, 1):
        (talk,) = (each for each in talks if each.conversation.id == result.conversation_id)
        explained = book.explain("sourdough bread number 3", talk)
        assert (explained.rank, explained.ranked_count) == (place, 5)
        assert explained.relevance == pytest.approx(result.relevance)
        assert explained.cosine == pytest.approx(result.cosine)
        assert explained.message_id == result.message_id


def test_the_points_add_up_to_the_score(book: Book) -> None:
    first = told(book.store, BREAD)
    told(book.store, "Rye bread", "And the oven for bread")
    explained = book.explain("my grandmother's sourdough", first)
    assert explained.score == pytest.approx(sum(each.points for each in explained.points), abs=0.05)
    assert {each.feature for each in explained.points} <= {*FEATURES, "company"}
    amounts = [abs(each.points) for each in explained.points]
    assert amounts == sorted(amounts, reverse=True)
    assert [each.best_points for each in explained.points] == [
        each.points for each in explained.points
    ]


def test_every_feature_is_told_in_words(book: Book) -> None:
    whole = told(book.store, BREAD, "Rye")
    for each in book.explain("sourdough", whole).points:
        assert each.words != each.feature


def test_the_words_that_count_are_named_as_they_were_typed(book: Book) -> None:
    whole = told(book.store, BREAD)
    words = book.explain("how do the Sourdoughs rise in winter", whole).words
    assert [(each.word, each.is_held) for each in words] == [
        ("Sourdoughs", True),
        ("rise", True),
        ("winter", False),
    ]


def test_a_weak_match_names_the_setting(book: Book) -> None:
    whole = told(book.store, BREAD)
    book.settings.set("rag_min_similarity", 1.0)
    (weak,) = book.explain("sourdough", whole).obstacles
    assert weak.cause is Cause.WEAK
    assert "below 100%" in weak.words
    assert "rag_min_similarity" in weak.hint
    book.settings.set("rag_min_similarity", 0.0)
    assert book.explain("sourdough", whole).obstacles == ()


def test_a_list_by_filters_has_places_and_no_points(book: Book) -> None:
    old = told(book.store, BREAD, at=datetime(2024, 1, 1, tzinfo=UTC))
    told(book.store, BREAD)
    explained = book.explain("after:2023", old)
    assert (explained.rank, explained.ranked_count) == (2, 2)
    assert (explained.relevance, explained.score, explained.points) == (None, None, ())
    assert explained.obstacles == ()


# -- what keeps a turn back


def test_archived_is_a_cause_until_it_is_asked_for(book: Book) -> None:
    whole = told(book.store, BREAD)
    book.edit(whole, archived=True)
    assert book.causes("sourdough", whole) == [Cause.ARCHIVED]
    assert book.explain("sourdough", whole).rank is None
    assert book.explain("sourdough", whole).score is not None, "what it would have had"
    assert book.causes("sourdough is:archived", whole) == []
    other = told(book.store, BREAD)
    assert book.causes("sourdough is:archived", other) == [Cause.FILTER]


def test_private_trash_and_unfinished_are_causes(book: Book) -> None:
    private = told(book.store, BREAD, private=True)
    assert book.causes("sourdough", private) == [Cause.PRIVATE]
    trashed = told(book.store, BREAD)
    book.edit(trashed, deleted_at=datetime(2026, 3, 1, tzinfo=UTC))
    assert book.causes("sourdough", trashed) == [Cause.TRASH]
    assert book.causes("sourdough", asked(book.store, BREAD)) == [Cause.UNFINISHED]


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("bread title:cake", "title:cake"),
        ("bread tag:work", "tag:work"),
        ("bread model:claude", "model:claude"),
        ("bread before:2025", "before:2025-01-01"),
        ("bread after:2030", "after:2030-01-01"),
        ("bread is:pinned", "is:pinned"),
    ],
)
def test_the_filter_that_leaves_it_out_is_named(book: Book, question: str, named: str) -> None:
    whole = told(book.store, BREAD, title="Baking")
    book.store.save(TagsChanged(whole.conversation.id, ("kitchen",)))
    (cause, *_) = book.explain(f"{question} title:baking tag:kitchen model:openai", whole).obstacles
    assert (cause.cause, cause.words) == (Cause.FILTER, f"The filter {named} leaves it out.")


def test_an_excluded_word_and_a_missing_phrase_are_causes(book: Book) -> None:
    whole = told(book.store, BREAD)
    assert book.causes("bread -sourdough", whole) == [Cause.EXCLUDED_WORD]
    assert book.causes('"bread sourdough"', whole) == [Cause.PHRASE]
    assert book.causes('"sourdough bread" -rye', whole) == []


def test_what_the_index_does_not_hold_yet_is_said(book: Book) -> None:
    told(book.store, BREAD)
    book.sync.catch_up()
    late = told(book.store, BREAD)
    found = book.explainer.explain("sourdough", late.exchanges[0].id)
    assert found.obstacles[0].cause is Cause.NOT_INDEXED


def test_beyond_the_limit_is_a_cause(book: Book) -> None:
    talks = [told(book.store, f"{BREAD} number {number}") for number in range(4)]
    ranks = {talk.conversation.id: book.explain("sourdough", talk).rank for talk in talks}
    (last,) = (talk for talk in talks if ranks[talk.conversation.id] == 4)
    obstacle = book.explain("sourdough", last, limit=3).obstacles[0]
    assert obstacle.cause is Cause.LIMIT
    assert obstacle.words == "It is number 4, and the first 3 results are shown."


def test_without_a_vector_the_reason_is_told(book: Book) -> None:
    short, long = told(book.store, "Rye"), told(book.store, BREAD)
    passages = [
        Passages(book.store).texts(range(1, 20))[number].id for number in range(2)
    ]  # in the order they were told
    book.meaning.lacks = set(passages)
    told(book.store, "Something else to look at by meaning")

    def reason(talk: Told, question: str) -> str:
        found = book.explain(question, talk).obstacles
        return next(each.words for each in found if each.cause is Cause.NO_VECTOR)

    book.settings.set("min_message_tokens", 10)
    assert "too short to be embedded" in reason(short, "rye")
    assert "waits to be embedded." in reason(long, "sourdough")
    Attempts(book.store, "embedding_pipeline").failed(passages[1], 2, None, "no")
    assert "has failed so far" in reason(long, "sourdough")
    book.settings.set("embedding_pipeline_enabled", False)
    assert "the embedding pipeline is off" in reason(long, "sourdough")


def test_a_turn_that_no_list_names_is_told_so(book: Book) -> None:
    whole = told(book.store, "Zucchini")
    for number in range(210):
        told(book.store, f"{BREAD} number {number}")
    explained = book.explain("sourdough bread", whole)
    assert explained.rank is None
    assert explained.obstacles[0].cause is Cause.NOT_A_CANDIDATE
    assert explained.score is not None


def test_why_meaning_takes_no_part_is_passed_on(book: Book) -> None:
    whole = told(book.store, BREAD)
    book.meaning.problem = "The embedder is gone"
    assert book.explain("sourdough", whole).notice == "The embedder is gone"


def test_what_cannot_be_explained_is_refused(book: Book) -> None:
    whole = told(book.store, BREAD)
    with pytest.raises(NotFound):
        book.explainer.explain("sourdough", ExchangeId(999))
    for question in ("", "x", "title:", "y" * 501):
        with pytest.raises(InvalidInput):
            book.explain(question, whole)


@pytest.mark.parametrize(
    "question", ["the of", "\U0001f600\U0001f600", '"open', "a\x00b \ud800 bread", "-- bread"]
)
def test_a_strange_question_is_explained(book: Book, question: str) -> None:
    whole = told(book.store, BREAD)
    assert book.explain(question, whole).exchange_id == whole.exchanges[0].id


# -- probe questions


def test_a_probe_remembers_where_its_turn_stood(book: Book) -> None:
    whole = told(book.store, BREAD, title="Baking")
    book.sync.catch_up()
    book.probes.add(" sourdough bread ", whole.exchanges[0].id)
    book.edit(whole, archived=True)
    (place,) = book.probes.run()
    assert (place.conversation_title, place.turn_number) == ("Baking", 0)
    assert (place.probe.question, place.probe.rank, place.probe.before) == (
        "sourdough bread",
        None,
        1,
    )
    assert place.probe.fell_by > 0
    book.edit(whole, archived=False)
    (place,) = book.probes.run()
    assert (place.probe.rank, place.probe.before) == (1, None)
    assert place.probe.fell_by < 0
    assert ProbeQuestions(book.store, Settings(book.store), book.explainer).listed() == (place,)


def test_a_question_is_kept_once_for_a_turn(book: Book) -> None:
    whole = told(book.store, BREAD, "Rye bread in summer")
    book.sync.catch_up()
    for turn in (0, 1, 0):
        book.probes.add("bread", whole.exchanges[turn].id)
    kept = [each.probe.exchange_id for each in book.probes.listed()]
    assert sorted(kept) == [each.id for each in whole.exchanges]
    assert book.probes.remove(1).exchange_id == whole.exchanges[1].id
    with pytest.raises(NotFound, match="There is no probe question 2"):
        book.probes.remove(2)
    book.probes.drop(Probe("bread", whole.exchanges[0].id))
    assert book.probes.listed() == ()


def test_a_probe_whose_turn_is_gone_says_so_and_the_rest_goes_on(book: Book) -> None:
    gone, there = told(book.store, BREAD), told(book.store, BREAD)
    book.sync.catch_up()
    for whole in (gone, there):
        book.probes.add("sourdough", whole.exchanges[0].id)
    book.settings.set(
        "probe_questions",
        book.settings.text("probe_questions").replace(
            f'"exchange_id": {gone.exchanges[0].id}', '"exchange_id": 9999'
        ),
    )
    first, second = book.probes.run()
    assert (first.conversation_id, first.turn_number) == (None, None)
    assert "9999" in first.probe.problem
    assert second.probe.problem == ""
    assert second.probe.rank is not None


def test_a_run_that_is_broken_off_changes_nothing(book: Book) -> None:
    whole = told(book.store, BREAD)
    book.sync.catch_up()
    book.probes.add("sourdough", whole.exchanges[0].id)
    before = book.probes.listed()
    assert book.probes.run(cancelled=lambda: True) == before
    seen: list[tuple[int, int]] = []
    book.probes.run(progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 1), (1, 1)]


def test_too_many_probes_are_refused(book: Book) -> None:
    whole = told(book.store, BREAD)
    book.sync.catch_up()
    row = '{"question": "q%d", "exchange_id": 1}'
    kept = ", ".join(row % number for number in range(MOST))
    book.settings.set("probe_questions", f"[{kept}]")
    with pytest.raises(InvalidInput, match="200 probe questions already"):
        book.probes.add("sourdough", whole.exchanges[0].id)


@pytest.mark.parametrize(
    "kept", ["", "nonsense", "{}", "[1, null, {}]", '[{"question": 1, "exchange_id": "x"}]']
)
def test_probes_that_cannot_be_read_are_none(book: Book, kept: str) -> None:
    book.settings.set("probe_questions", kept)
    assert book.probes.listed() == ()


def test_odd_places_and_times_of_a_kept_probe_are_passed_over(book: Book) -> None:
    book.settings.set(
        "probe_questions",
        '[{"question": "q", "exchange_id": 1, "rank": -3, "ran_at": "soon", "before": "x", '
        '"before_at": "2026-01-01T00:00:00"}]',
    )
    (place,) = book.probes.listed()
    assert (place.probe.rank, place.probe.ran_at, place.probe.before) == (None, None, None)
    assert place.probe.before_at == datetime(2026, 1, 1, tzinfo=UTC)
