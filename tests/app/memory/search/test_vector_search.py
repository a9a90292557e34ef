"""Vector search: the answering space, a change of embedder, and failing servers."""

import json
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.domain.chat import StoredProvider
from app.domain.passages import Space
from app.domain.workers import WorkerName
from app.index.vector_sync import VectorIndexSync
from app.memory.search import space_measurements
from app.memory.search.embedders import BUILT_IN, EmbedderDirectory
from app.memory.search.vector_search import VectorSearch
from app.providers.embedders.local import LocalEmbedder
from app.providers.registry import provider_registry
from app.storage.engine.store import Store
from app.storage.tables.passages.vectors import Vectors
from app.storage.tables.settings import Settings
from app.system.keys import KeyStore
from app.workers.board import WorkerBoard
from app.workers.jobs import JobParts
from tests.fakes.embedders import BagOfWords
from tests.fakes.jobs import until
from tests.fakes.loopback import Loopback, Seen
from tests.fakes.loopback_embeddings import embeddings_body
from tests.fakes.loopback_script import Http, error, hang_up, json_reply, stall, vectors
from tests.fakes.stored import add_conversation

LOCAL = "local:nomic-embed-text"
TEXTS = tuple(
    f"How do I keep plant number {number} alive through the winter?" for number in range(6)
)
WAIT_S = 60.0


class Held(VectorIndexSync):
    """A real sync that notes the spaces in use, and can be kept from loading."""

    def __init__(self, store: Store, stored: Vectors) -> None:
        super().__init__(store, stored)
        self.uses: list[list[str]] = []
        self.may_load = threading.Event()
        self.may_load.set()

    def use(self, spaces: object) -> None:
        wanted: list[Space] = list(spaces)  # type: ignore[call-overload]
        self.uses.append([space.name.partition("_")[0] for space in wanted])
        super().use(wanted)

    def catch_up(self, *more: object) -> None:
        if self.may_load.wait(WAIT_S):
            super().catch_up(*more)  # type: ignore[arg-type]


@dataclass
class Desk:
    """A store with some turns, vector search over them, and a pipeline to embed them."""

    store: Store
    settings: Settings
    embedders: EmbedderDirectory
    stored: Vectors
    sync: Held
    vector_search: VectorSearch

    def embed(self) -> None:
        """Embed everything with the chosen embedder."""
        board = WorkerBoard(JobParts(self.store, self.settings, embedder=self.embedders.active), ())
        board.run_until_idle([WorkerName.EMBEDDING_PIPELINE])
        board.stop()

    def until_answering(self, name: str) -> None:
        """Wait until the space whose name begins with `name` answers."""
        until(lambda: self.answers(name))

    def answers(self, name: str) -> bool:
        space = self.vector_search.answering_space
        is_it = space is not None and space.name.startswith(name)
        return is_it and self.vector_search.query_vector("a plant") is not None


@pytest.fixture
def desk(store: Store, server: Loopback) -> Iterator[Desk]:
    server.models = ["nomic-embed-text"]
    settings = Settings(store)
    settings.put_provider(StoredProvider("local", "compatible", server.v1, None))
    registry = provider_registry(settings, KeyStore())
    embedders = EmbedderDirectory(settings, registry, query_limit_s=0.5, decision_s=0.0)
    stored = Vectors(store)
    sync = Held(store, stored)
    vector_search = VectorSearch(store, settings, embedders, stored, sync, retry_s=0.05)
    add_conversation(store, *TEXTS)
    yield Desk(store, settings, embedders, stored, sync, vector_search)
    sync.may_load.set()
    embedders.close()
    vector_search.stop()


@pytest.fixture(autouse=True)
def nothing_worse_than_a_warning(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A failing embedder is never logged as a bug."""
    yield
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


def start(desk: Desk) -> None:
    """Let the built-in embedder answer."""
    desk.embed()
    desk.vector_search.start()
    desk.until_answering("all_minilm")


def choose(desk: Desk, choice: str) -> None:
    """Make a choice the embedder, without a previous one."""
    desk.settings.set("embedder", choice)
    desk.settings.set("embedder_before", choice)


# -- one embedder
def test_without_the_thread_a_question_loads_what_it_needs(desk: Desk, server: Loopback) -> None:
    assert desk.vector_search.query_vector("a plant") is None
    assert desk.vector_search.problem == ""
    desk.embed()
    query = desk.vector_search.query_vector("a plant")
    assert (query.index.passage_count, query.vector.shape) == (len(TEXTS), (384,))
    embedded = desk.vector_search.embedded()
    assert (embedded.space, embedded.share) == ("all_minilm_l6_v2", 1.0)
    choose(desk, LOCAL)
    desk.embed()
    assert desk.vector_search.query_vector("a plant") is not None
    before = len(server.posts)
    assert desk.vector_search.query_vector("a plant") is not None
    assert len(server.posts) == before, "a question is embedded once"


def test_traits_of_an_earlier_version_answer_until_the_space_is_measured_again(
    desk: Desk, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(space_measurements, "_LONGEST_WAIT_S", 0.05)
    choose(desk, LOCAL)
    desk.embed()
    assert desk.vector_search.query_vector("a plant") is not None
    space = desk.embedders.active().space
    (measured,) = (each.traits or "" for each in desk.stored.spaces())
    traits = json.loads(measured)
    earlier = json.dumps({key: traits[key] for key in ("background", "preference")})
    desk.stored.set_traits(space, earlier)

    def answer_questions_alone(seen: Seen) -> Http:
        is_question = len(seen.body["input"]) == 1
        return Http(200, embeddings_body(seen.body, vectors())) if is_question else error(500)

    server.routes["/v1/embeddings"] = answer_questions_alone
    search = VectorSearch(
        desk.store, desk.settings, desk.embedders, desk.stored, desk.sync, retry_s=0.05
    )
    query = search.query_vector("another plant")
    assert (query.request, search.problem) == (0.5, "")
    assert [each.traits for each in desk.stored.spaces()] == [earlier]
    del server.routes["/v1/embeddings"]
    until(lambda: search.query_vector("another plant").request != 0.5)
    assert [each.traits for each in desk.stored.spaces()] == [measured]


def test_a_question_in_a_script_unknown_to_the_model_is_searched_by_words(desk: Desk) -> None:
    desk.embed()
    assert desk.vector_search.query_vector("哪一株植物？") is None
    assert desk.vector_search.problem == "", "that is no failure"
    assert desk.vector_search.query_vector("das Café und die Pflanze, 植物") is not None
    choose(desk, LOCAL)
    desk.embed()
    assert desk.vector_search.query_vector("哪一株植物？") is not None, "a server may know it"


def test_only_models_of_this_machine_compare_sentences(desk: Desk, server: Loopback) -> None:
    search, sentences = desk.vector_search, ["Water the fern weekly.", "The train leaves at nine."]
    assert search.similarities("How do I care for a fern?", sentences) == ()
    desk.embed()
    assert search.query_vector("How do I care for a fern?") is not None
    fern, train = search.similarities("How do I care for a fern?", sentences)
    assert fern > train + 0.2
    assert search.similarities("哪一株植物？", sentences) == ()
    choose(desk, LOCAL)
    desk.embed()
    assert search.query_vector("a plant") is not None
    before = len(server.posts)
    assert search.similarities("a plant", sentences) == ()
    assert len(server.posts) == before


def test_the_thread_answers_once_there_are_vectors(desk: Desk) -> None:
    desk.vector_search.start()
    until(lambda: desk.vector_search.answering_space is not None)
    assert desk.vector_search.query_vector("a plant") is None
    desk.embed()
    desk.until_answering("all_minilm")
    assert {tuple(each) for each in desk.sync.uses} == {("all",)}


def test_the_first_answer_is_reported_once(desk: Desk) -> None:
    desk.embed()
    calls: list[bool] = []
    desk.vector_search.start(
        lambda: calls.append(desk.vector_search.query_vector("a plant") is not None)
    )
    until(lambda: calls)
    desk.settings.set("embedder_consent", "anew")
    until(lambda: desk.answers("all_minilm"))
    assert calls == [True]


# -- a change of embedder
def test_the_old_space_answers_until_the_new_one_is_filled_and_loaded(desk: Desk) -> None:
    start(desk)
    desk.settings.set("embedder", LOCAL)
    until(lambda: ["all", "nomic"] in desk.sync.uses)
    assert desk.answers("all_minilm")
    assert "all-MiniLM-L6-v2, built in" in desk.vector_search.problem
    assert "nomic-embed-text at local" in desk.vector_search.problem
    desk.sync.may_load.clear()
    desk.embed()
    for number in range(20):
        assert desk.vector_search.query_vector(f"question {number}") is not None
        assert desk.answers("all_minilm")
    desk.sync.may_load.set()
    desk.until_answering("nomic")
    until(lambda: desk.sync.uses[-1] == ["nomic"])
    assert desk.settings.text("embedder_before") == LOCAL
    assert desk.vector_search.problem == ""
    assert len(desk.stored.spaces()) == 2


def test_a_switch_continues_after_a_restart(desk: Desk) -> None:
    desk.embed()
    desk.settings.set("embedder", LOCAL)
    desk.vector_search.start()
    desk.until_answering("all_minilm")
    desk.embed()
    desk.until_answering("nomic")


def test_a_switch_can_be_undone_while_the_new_server_hangs(desk: Desk, server: Loopback) -> None:
    start(desk)
    server.always(stall(before_headers=True))
    desk.settings.set("embedder", LOCAL)
    server.wait_for(lambda: server.posts)
    desk.settings.set("embedder", BUILT_IN)
    until(lambda: desk.vector_search.problem == "")
    assert desk.answers("all_minilm")


def test_a_new_server_that_cannot_be_measured_is_retried(
    desk: Desk, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measuring has a time limit of its own, so that the answering space stays maintained."""
    monkeypatch.setattr(space_measurements, "_LIMIT_S", 0.3)
    start(desk)
    desk.settings.set("embedder", LOCAL)
    until(lambda: getattr(desk.embedders.active(), "knows_space", False))
    server.always(stall(before_headers=True))
    desk.stored.ensure(desk.embedders.active().space, LOCAL)  # as with the first batch
    until(lambda: desk.vector_search.new_space_problem)
    assert desk.vector_search.problem.endswith(desk.vector_search.new_space_problem)
    assert desk.answers("all_minilm")
    server.always(vectors())
    until(lambda: not desk.vector_search.new_space_problem)


# -- faults

FAULTS = {
    "hangs": stall(before_headers=True),
    "hangs up": hang_up(),
    "refuses": error(401, "invalid_api_key"),
    "fails": error(500),
    "returns nonsense": json_reply({"data": "none"}),
    "returns another dimension": vectors(5),
    "returns no numbers": vectors(change=lambda entries: [e | {"embedding": [None] * 8} for e in entries]),
    "returns zeros": vectors(change=lambda entries: [e | {"embedding": [0.0] * 8} for e in entries]),
    "returns none": vectors(change=lambda _: []),
}  # fmt: skip


@pytest.mark.parametrize("step", FAULTS.values(), ids=FAULTS)
def test_a_failing_server_is_left_in_peace(desk: Desk, server: Loopback, step: object) -> None:
    choose(desk, LOCAL)
    desk.embed()
    desk.vector_search.start()
    desk.until_answering("nomic")
    server.always(step)  # type: ignore[arg-type]
    assert desk.vector_search.query_vector("something new") is None
    assert desk.vector_search.problem
    asked = sum("other" in str(each.body) for each in server.posts)
    for number in range(5):
        assert desk.vector_search.query_vector(f"other {number}") is None
    assert sum("other" in str(each.body) for each in server.posts) == asked, "at once"
    assert desk.vector_search.problem
    server.always(vectors())
    desk.until_answering("nomic")
    assert desk.vector_search.problem == ""


def test_a_missing_model_leaves_words_or_the_previous_embedder(desk: Desk, tmp_path: Path) -> None:
    settled = threading.Event()
    desk.embed()
    choose(desk, f"onnx:{tmp_path / 'gone'}")
    desk.vector_search.start(settled.set)
    assert settled.wait(WAIT_S)
    until(lambda: desk.vector_search.problem)
    assert desk.vector_search.query_vector("a plant") is None
    assert str(tmp_path / "gone") in desk.vector_search.problem
    assert desk.vector_search.embedded() is None
    choose(desk, BUILT_IN)
    desk.until_answering("all_minilm")
    desk.settings.set("embedder", f"onnx:{tmp_path / 'nowhere'}")
    for number in range(10):
        assert desk.answers("all_minilm"), number


def test_vectors_of_another_dimension_are_not_searched(desk: Desk) -> None:
    desk.stored.ensure(Space("all_minilm_l6_v2", 8, 256), "builtin")
    desk.vector_search.start()
    until(lambda: desk.vector_search.problem)
    assert "384 dimensions" in desk.vector_search.problem
    assert desk.vector_search.query_vector("a plant") is None


# -- stopping
def test_stopping_does_not_wait_for_a_hanging_server(desk: Desk, server: Loopback) -> None:
    server.always(stall(before_headers=True))
    choose(desk, LOCAL)
    desk.vector_search.start()
    server.wait_for(lambda: server.posts)
    began = time.monotonic()
    desk.embedders.close()
    desk.vector_search.stop()
    assert time.monotonic() - began < WAIT_S / 2


def test_only_questions_are_query_embedded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = BagOfWords("all_minilm_l6_v2", 384)
    monkeypatch.setattr(
        LocalEmbedder, "embed", lambda _, *given, **more: fake.embed(*given, **more)
    )
    monkeypatch.setattr(LocalEmbedder, "token_model", "")
    desk.embed()
    assert not fake.queries
    assert desk.vector_search.query_vector("Which plant?") is not None
    assert "Which plant?" in fake.queries
    assert not set(TEXTS) & set(fake.queries)


def test_stopping_waits_for_no_loading_model(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    loading, loaded = threading.Event(), threading.Event()

    def embed(_: LocalEmbedder, texts: list[str], cancelled: object = None, **__: bool) -> object:
        loading.set()
        loaded.wait(WAIT_S)
        return BagOfWords("all_minilm_l6_v2", 384).embed(texts)

    monkeypatch.setattr(LocalEmbedder, "embed", embed)
    desk.vector_search.start()
    (thread,) = (each for each in threading.enumerate() if each.name == "vector-search")
    assert loading.wait(WAIT_S)
    desk.vector_search.stop()
    assert thread.is_alive()
    loaded.set()
    thread.join(WAIT_S)
    assert not thread.is_alive()
