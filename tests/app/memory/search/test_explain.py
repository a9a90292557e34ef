"""Explanations of a search, and test questions."""

from datetime import UTC, datetime

import pytest

from app.domain.changes import TagsChanged
from app.domain.diagnostics import Explanation, ObstacleCause, Probe
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import ExchangeId
from app.index.ranking import FEATURES
from app.memory.search.explain import Explainer
from app.memory.search.probes import MAX_PROBES, ProbeQuestions
from app.storage.engine.store import Store
from app.storage.tables.attempts import Attempts
from app.storage.tables.passages.queries import Passages
from tests.fakes.fixtures import fixture_of
from tests.fakes.searchable import Library
from tests.fakes.stored import ConversationRecord, add_conversation, add_running

BREAD = "How does the sourdough bread of my grandmother rise overnight in a cold kitchen"
CAUSE = ObstacleCause


class ExplainedLibrary(Library):
    """A library with an explainer and test questions."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.explainer = Explainer(store, self.settings, self.index, self.with_meaning)
        self.probes = ProbeQuestions(store, self.settings, self.explainer)

    def explain(
        self, question: str, whole: ConversationRecord, turn: int = 0, limit: int = 20
    ) -> Explanation:
        self.sync.catch_up()
        return self.explainer.explain(question, whole.exchanges[turn].id, limit)

    def causes(self, question: str, whole: ConversationRecord) -> list[ObstacleCause]:
        """Return the obstacles of the first turn besides a low relevance."""
        found = [each.cause for each in self.explain(question, whole).obstacles]
        return [each for each in found if each is not CAUSE.WEAK]


library = fixture_of(ExplainedLibrary, "store", then="sync.stop")


# -- a turn that is found
def test_the_rank_is_the_place_among_the_results(library: ExplainedLibrary) -> None:
    query = "sourdough bread number 3"
    talks = [add_conversation(library.store, f"{BREAD} number {number}") for number in range(5)]
    by_id = {each.conversation.id: each for each in talks}
    for place, result in enumerate(library.by_meaning(query).results, 1):
        assert result.conversation_id is not None
        whole = by_id[result.conversation_id]
        explained = library.explain(query, whole, limit=3)
        assert (explained.rank, explained.ranked_count) == (place, 5)
        assert explained.relevance == pytest.approx(result.relevance)
        assert explained.cosine == pytest.approx(result.cosine)
        assert explained.message_id == result.message_id
        assert (CAUSE.LIMIT in library.causes(query, whole)) is False
        assert any(each.cause is CAUSE.LIMIT for each in explained.obstacles) is (place > 3)


def test_the_points_add_up_to_the_score_and_words_are_as_typed(library: ExplainedLibrary) -> None:
    first = add_conversation(library.store, BREAD)
    add_conversation(library.store, "Rye bread", "And the oven for bread")
    explained = library.explain("my grandmother's sourdough", first)
    assert explained.score == pytest.approx(sum(each.points for each in explained.points), abs=0.05)
    assert {each.feature for each in explained.points} <= {*FEATURES, "company"}
    amounts = [abs(each.points) for each in explained.points]
    assert amounts == sorted(amounts, reverse=True)
    assert all(each.best_points == each.points for each in explained.points)
    words = library.explain("how do the Sourdoughs rise in winter", first).words
    assert [(each.word, each.is_present) for each in words] == [
        ("Sourdoughs", True), ("rise", True), ("winter", False),
    ]  # fmt: skip


def test_a_low_relevance_is_an_obstacle_by_the_setting(library: ExplainedLibrary) -> None:
    whole = add_conversation(library.store, BREAD)
    library.settings.set("rag_min_similarity", 1.0)
    library.settings.set("rag_hint_similarity", 0.0)
    (weak,) = library.explain("sourdough", whole).obstacles
    assert weak.cause is CAUSE.WEAK
    assert "rag_min_similarity" in weak.hint
    library.settings.set("rag_hint_similarity", 1.0)
    (left_out,) = library.explain("sourdough", whole).obstacles
    assert left_out.words != weak.words
    library.settings.set("rag_min_similarity", 0.0)
    library.vector_search.problem = "The embedder is gone"
    explained = library.explain("sourdough", whole)
    assert (explained.obstacles, explained.notice) == ((), "The embedder is gone")


def test_a_list_by_filters_has_ranks_and_no_points(library: ExplainedLibrary) -> None:
    old = add_conversation(library.store, BREAD, at=datetime(2024, 1, 1, tzinfo=UTC))
    add_conversation(library.store, BREAD)
    explained = library.explain("after:2023", old)
    assert (explained.rank, explained.ranked_count) == (2, 2)
    assert (explained.relevance, explained.score, explained.points) == (None, None, ())
    assert explained.obstacles == ()


# -- obstacles
def test_hidden_conversations_and_unfinished_turns_are_obstacles(library: ExplainedLibrary) -> None:
    store, other = library.store, add_conversation(library.store, BREAD)
    archived, trashed = add_conversation(store, BREAD), add_conversation(store, BREAD)
    library.edit(archived, archived=True)
    library.edit(trashed, deleted_at=datetime(2026, 3, 1, tzinfo=UTC))
    for question, whole, causes in (
        ("sourdough", archived, [CAUSE.ARCHIVED]),
        ("sourdough is:archived", archived, []),
        ("sourdough is:archived", other, [CAUSE.FILTER]),
        ("sourdough", add_conversation(store, BREAD, private=True), [CAUSE.PRIVATE]),
        ("sourdough", trashed, [CAUSE.TRASH]),
        ("sourdough", add_running(store, BREAD), [CAUSE.UNFINISHED]),
        ("bread -sourdough", other, [CAUSE.EXCLUDED_WORD]),
        ('"bread sourdough"', other, [CAUSE.PHRASE]),
        ('"sourdough bread" -rye', other, []),
    ):
        assert library.causes(question, whole) == causes
    explained = library.explain("sourdough", archived)
    assert explained.rank is None
    assert explained.score is not None, "the score without the obstacle"
    late = add_conversation(store, BREAD)
    found = library.explainer.explain("sourdough", late.exchanges[0].id)
    assert found.obstacles[0].cause is CAUSE.NOT_INDEXED


@pytest.mark.parametrize(
    "named", ["title:cake", "tag:work", "model:claude", "before:2025", "after:2030", "is:pinned"]
)
def test_an_excluding_filter_is_named(library: ExplainedLibrary, named: str) -> None:
    whole = add_conversation(library.store, BREAD, title="Baking")
    library.store.save(TagsChanged(whole.conversation.id, ("kitchen",)))
    query = f"bread {named} title:baking tag:kitchen model:openai"
    (obstacle, *_) = library.explain(query, whole).obstacles
    assert obstacle.cause is CAUSE.FILTER
    assert named in obstacle.words


def test_a_missing_vector_has_a_reason(library: ExplainedLibrary) -> None:
    short, long = add_conversation(library.store, "Rye"), add_conversation(library.store, BREAD)
    passages = sorted(each.id for each in Passages(library.store).texts(range(1, 20)))
    library.vector_search.lacks = set(passages)
    add_conversation(library.store, "Something else with a vector")

    def reason(whole: ConversationRecord, question: str) -> str:
        found = library.explain(question, whole).obstacles
        return next(each.words for each in found if each.cause is CAUSE.NO_VECTOR)

    library.settings.set("min_message_tokens", 10)
    assert "fewer than 10" in reason(short, "rye")
    assert "not read it yet" in reason(long, "sourdough")
    library.settings.set("embedding_pipeline_enabled", False)
    assert "meaning is off" in reason(long, "sourdough")
    Attempts(library.store, "embedding_pipeline").failed(passages[1], 2, None, "no")
    assert "failed" in reason(long, "sourdough")


def test_a_turn_that_is_no_candidate_says_so(library: ExplainedLibrary) -> None:
    whole = add_conversation(library.store, "Zucchini")
    add_conversation(library.store, *(f"{BREAD} number {number}" for number in range(130)))
    explained = library.explain("sourdough bread", whole)
    assert explained.rank is None
    assert explained.obstacles[0].cause is CAUSE.NOT_A_CANDIDATE
    assert explained.score is not None
    with pytest.raises(NotFound):
        library.explainer.explain("sourdough", ExchangeId(999))
    for question in ("", "x", "title:", "y" * 501):
        with pytest.raises(InvalidInput):
            library.explain(question, whole)


# -- test questions
def test_a_probe_has_the_ranks_of_its_last_two_runs(library: ExplainedLibrary) -> None:
    whole = add_conversation(library.store, BREAD, title="Baking")
    library.sync.catch_up()
    library.probes.add(" sourdough bread ", whole.exchanges[0].id)
    ranks = []
    for archived in (True, False):
        library.edit(whole, archived=archived)
        (listed,) = library.probes.run()
        ranks.append((listed.probe.rank, listed.probe.before, listed.probe.rank_drop > 0))
    assert ranks == [(None, 1, True), (1, None, False)]
    assert listed.probe.rank_drop < 0
    assert (listed.conversation_title, listed.turn_number) == ("Baking", 0)
    assert listed.probe.question == "sourdough bread"
    assert ProbeQuestions(library.store, library.settings, library.explainer).listed() == (listed,)
    assert library.probes.run(cancelled=lambda: True) == (listed,)
    progress: list[tuple[int, int]] = []
    library.probes.run(progress=lambda done, total: progress.append((done, total)))
    assert progress == [(0, 1), (1, 1)]


def test_a_question_is_stored_once_for_a_turn(library: ExplainedLibrary) -> None:
    whole = add_conversation(library.store, BREAD, "Rye bread in summer")
    library.sync.catch_up()
    for turn in (0, 1, 0):
        library.probes.add("bread", whole.exchanges[turn].id)
    stored = [each.probe.exchange_id for each in library.probes.listed()]
    assert stored == [whole.exchanges[1].id, whole.exchanges[0].id]
    assert library.probes.remove(1).exchange_id == whole.exchanges[1].id
    for number in (0, 2):
        with pytest.raises(NotFound):
            library.probes.remove(number)
    library.probes.drop(Probe("bread", whole.exchanges[0].id))
    assert library.probes.listed() == ()
    row = '{"question": "q%d", "exchange_id": 1}'
    rows = ", ".join(row % number for number in range(MAX_PROBES))
    library.settings.set("probe_questions", f"[{rows}]")
    with pytest.raises(InvalidInput, match="200"):
        library.probes.add("sourdough", whole.exchanges[0].id)


def test_a_probe_of_a_deleted_turn_has_a_problem(library: ExplainedLibrary) -> None:
    gone, there = (add_conversation(library.store, BREAD).exchanges[0].id for _ in range(2))
    library.sync.catch_up()
    for each in (gone, there):
        library.probes.add("sourdough", each)
    stored = library.settings.text("probe_questions")
    stored = stored.replace(f'"exchange_id": {gone}', '"exchange_id": 9999')
    library.settings.set("probe_questions", stored)
    first, second = library.probes.run()
    assert (first.conversation_id, first.turn_number) == (None, None)
    assert "9999" in first.probe.problem
    assert (second.probe.problem, second.probe.rank is None) == ("", False)


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "{}", "[1, null, {}]", '[{"question": 1, "exchange_id": "x"}]',
     '[{"question": "q", "exchange_id": 1, "ran_at": "soon"}]'],
)  # fmt: skip
def test_unreadable_probes_are_skipped(library: ExplainedLibrary, text: str) -> None:
    stored = '{"question": "q", "exchange_id": 1, "before_at": "2026-01-01T00:00:00+00:00"}'
    library.settings.set("probe_questions", text)
    assert library.probes.listed() == ()
    library.settings.set("probe_questions", f"{text[:-1]}, {stored}]" if text[:1] == "[" else "[]")
    dates = [each.probe.before_at for each in library.probes.listed()]
    assert dates == ([datetime(2026, 1, 1, tzinfo=UTC)] if text[:1] == "[" else [])
