"""What answers questions by meaning: through a change of embedder, and through all that goes wrong."""

import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.domain.passages import Space
from app.domain.workers import WorkerName
from app.memory.embedders import BUILT_IN, EmbedderDirectory, provider_registry
from app.memory.meaning import Meaning
from app.memory.vector_sync import VectorSync
from app.providers.local_embedder import LocalEmbedder
from app.storage.settings import ProviderRow, Settings
from app.storage.store import Store
from app.storage.vectors import Vectors
from app.system.keys import KeyStore
from app.workers.board import WorkerBoard
from tests.fakes.embedders import BagOfWords
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import error, hang_up, json_reply, stall, vectors
from tests.fakes.stored import opened, told

SHIPPED = Path(__file__).resolve().parents[2] / "resources/models/all-MiniLM-L6-v2"
LOCAL = "local:nomic-embed-text"
TEXTS = tuple(
    f"How do I keep plant number {number} alive through the winter?" for number in range(6)
)
WAIT_S = 20.0


class Held(VectorSync):
    """A real sync that tells what it was told to hold, and can be kept from loading."""

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
    """A store with some turns, what answers questions about them, and the means to embed them."""

    store: Store
    settings: Settings
    embedders: EmbedderDirectory
    stored: Vectors
    sync: Held
    meaning: Meaning
    opened: list[EmbedderDirectory] = field(default_factory=list)

    def embed(self) -> None:
        """Embed all there is with the chosen embedder."""
        board = WorkerBoard(self.store, self.settings, (), embedder=self.embedders.active)
        board.run_until_idle([WorkerName.EMBEDDING_PIPELINE])
        board.stop()

    def until(self, condition: Callable[[], object]) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, (self.meaning.problem, self.sync.uses)
            time.sleep(0.005)

    def until_answering(self, name: str) -> None:
        """Wait until the space whose name begins so answers, and its index is there."""
        self.until(lambda: self.answers(name))

    def answers(self, name: str) -> bool:
        space = self.meaning.answering_space
        is_it = space is not None and space.name.startswith(name)
        return is_it and self.meaning.look("a plant") is not None


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        running.models = ["nomic-embed-text"]
        yield running


@pytest.fixture
def desk(data_dir: Path, server: Loopback) -> Iterator[Desk]:
    with opened(data_dir) as store:
        settings = Settings(store)
        settings.put_provider(ProviderRow("local", "compatible", server.v1, None))
        registry = provider_registry(settings, KeyStore())
        embedders = EmbedderDirectory(settings, registry, question_limit_s=0.5, decision_s=0.0)
        stored = Vectors(store)
        sync = Held(store, stored)
        meaning = Meaning(store, settings, embedders, stored, sync, look_again_s=0.05)
        told(store, *TEXTS)
        yield Desk(store, settings, embedders, stored, sync, meaning)
        sync.may_load.set()
        embedders.close()
        meaning.stop()


@pytest.fixture(autouse=True)
def nothing_worse_than_a_warning(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever an embedder does, nothing of it is a bug of ours in the log."""
    yield
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


def started(desk: Desk) -> None:
    """Have the built-in embedder answer."""
    desk.embed()
    desk.meaning.start()
    desk.until_answering("all_minilm")


# -- one embedder


def test_without_a_background_a_question_loads_what_it_needs(desk: Desk) -> None:
    assert desk.meaning.look("a plant") is None
    assert desk.meaning.problem == ""
    desk.embed()
    look = desk.meaning.look("a plant")
    assert look is not None
    assert look.index.passage_count == len(TEXTS)
    assert look.vector.shape == (384,)
    embedded = desk.meaning.embedded()
    assert embedded is not None
    assert (embedded.space, embedded.share) == ("all_minilm_l6_v2", 1.0)


def test_in_the_background_it_begins_to_answer_with_the_first_vectors(desk: Desk) -> None:
    desk.meaning.start()
    desk.until(lambda: desk.meaning.answering_space is not None)
    assert desk.meaning.look("a plant") is None
    desk.embed()
    desk.until_answering("all_minilm")
    assert {tuple(each) for each in desk.sync.uses} == {("all",)}


def test_a_space_is_measured_once_and_kept(desk: Desk) -> None:
    started(desk)
    (kept,) = desk.stored.spaces()
    assert kept.background_mean is not None
    look = desk.meaning.look("a plant")
    assert look is not None
    assert look.background.mean == kept.background_mean


def test_a_question_is_embedded_once(desk: Desk, server: Loopback) -> None:
    desk.settings.set("embedder", LOCAL)
    desk.settings.set("embedder_before", LOCAL)
    desk.embed()
    assert desk.meaning.look("a plant") is not None
    before = len(server.posts)
    assert desk.meaning.look("a plant") is not None
    assert len(server.posts) == before


# -- a change of embedder


def test_while_the_new_space_fills_the_old_one_answers_and_both_are_held(desk: Desk) -> None:
    started(desk)
    desk.settings.set("embedder", LOCAL)
    desk.until(lambda: ["all", "nomic"] in desk.sync.uses)
    assert desk.answers("all_minilm")
    assert desk.meaning.problem == (
        "Search still answers with all-MiniLM-L6-v2, built in: "
        "nomic-embed-text at local is reading your history."
    )


def test_the_new_space_answers_by_itself_and_the_old_one_is_let_go(desk: Desk) -> None:
    started(desk)
    desk.settings.set("embedder", LOCAL)
    desk.embed()
    desk.until_answering("nomic")
    desk.until(lambda: desk.sync.uses[-1] == ["nomic"])
    assert desk.settings.text("embedder_before") == LOCAL
    assert desk.meaning.problem == ""
    assert len(desk.stored.spaces()) == 2


def test_the_old_space_is_not_let_go_before_the_new_one_is_loaded(desk: Desk) -> None:
    started(desk)
    desk.sync.may_load.clear()
    desk.settings.set("embedder", LOCAL)
    desk.embed()
    desk.until(lambda: ["all", "nomic"] in desk.sync.uses)
    for number in range(20):
        assert desk.meaning.look(f"question {number}") is not None
        assert desk.answers("all_minilm")
    desk.sync.may_load.set()
    desk.until(lambda: desk.answers("nomic"))


def test_at_no_moment_of_the_switch_words_alone_must_do(desk: Desk) -> None:
    started(desk)
    over = threading.Event()
    missed: list[str] = []

    def ask() -> None:
        number = 0
        while not over.is_set():
            number += 1
            if desk.meaning.look(f"question {number}") is None:
                missed.append(desk.meaning.problem)

    asking = threading.Thread(target=ask)
    asking.start()
    desk.settings.set("embedder", LOCAL)
    desk.embed()
    desk.until_answering("nomic")
    over.set()
    asking.join()
    assert len(missed) <= 1  # the one that was on its way when the old one was let go


def test_going_back_answers_at_once_and_embeds_nothing(desk: Desk, server: Loopback) -> None:
    started(desk)
    desk.settings.set("embedder", LOCAL)
    desk.embed()
    desk.until_answering("nomic")
    desk.settings.set("embedder", BUILT_IN)
    desk.until_answering("all_minilm")
    vectors_before = desk.stored.count("all_minilm_l6_v2")
    desk.embed()
    assert desk.stored.count("all_minilm_l6_v2") == vectors_before


def test_a_change_of_mind_while_the_new_server_hangs_takes_effect(
    desk: Desk, server: Loopback
) -> None:
    started(desk)
    server.always(stall(before_headers=True))
    desk.settings.set("embedder", LOCAL)
    server.wait_for(lambda: server.posts)
    desk.settings.set("embedder", BUILT_IN)
    desk.until(lambda: desk.meaning.problem == "")
    assert desk.answers("all_minilm")


def test_a_new_server_that_falls_silent_is_given_up_soon_and_said_so_while_the_old_one_answers(
    desk: Desk, server: Loopback
) -> None:
    """Without a limit of its own the measurement held what answers for 300 s, a batch's limit."""
    desk.meaning._measure_limit_s = 0.3
    started(desk)
    desk.settings.set("embedder", LOCAL)
    desk.until(lambda: getattr(desk.embedders.active(), "knows_space", False))
    server.always(stall(before_headers=True))
    desk.stored.ensure(desk.embedders.active().space, LOCAL)  # as with the first batch
    began = time.monotonic()
    desk.until(lambda: "It cannot be measured yet" in desk.meaning.problem)
    assert time.monotonic() - began < 5.0
    assert "is asked again within a minute" in desk.meaning.problem
    assert desk.answers("all_minilm")
    server.always(vectors())
    desk.until(lambda: "measured" not in desk.meaning.problem)


def test_a_new_start_in_the_middle_of_a_switch_goes_on_with_the_old_space(desk: Desk) -> None:
    desk.embed()
    desk.settings.set("embedder", LOCAL)
    desk.meaning.start()
    desk.until_answering("all_minilm")
    assert desk.settings.text("embedder_before") == BUILT_IN
    desk.embed()
    desk.until_answering("nomic")


# -- what goes wrong


WRONG = {
    "hangs": stall(before_headers=True),
    "is gone": hang_up(),
    "refuses": error(401, "invalid_api_key"),
    "is broken": error(500),
    "says nonsense": json_reply({"data": "none"}),
    "gives another dimension": vectors(5),
    "gives no numbers": vectors(change=lambda entries: [e | {"embedding": [None] * 8} for e in entries]),
    "gives zeros": vectors(change=lambda entries: [e | {"embedding": [0.0] * 8} for e in entries]),
    "gives none": vectors(change=lambda _: []),
}  # fmt: skip


@pytest.mark.parametrize("step", WRONG.values(), ids=WRONG)
def test_when_the_server_fails_words_must_do_until_it_is_back(
    desk: Desk, server: Loopback, step: object
) -> None:
    desk.settings.set("embedder", LOCAL)
    desk.settings.set("embedder_before", LOCAL)
    desk.embed()
    desk.meaning.start()
    desk.until_answering("nomic")
    server.always(step)  # type: ignore[arg-type]
    assert desk.meaning.look("something new") is None
    problem = desk.meaning.problem
    assert problem
    assert problem.count(". ") >= 1 or problem.endswith("."), "what to do next"
    began = time.monotonic()
    for number in range(5):
        assert desk.meaning.look(f"other {number}") is None
    assert time.monotonic() - began < 0.3, "a question must not wait for what has just failed"
    assert desk.meaning.problem
    server.always(vectors())
    desk.until_answering("nomic")
    assert desk.meaning.problem == ""


def test_a_deleted_model_folder_is_told_of_and_words_must_do(desk: Desk, tmp_path: Path) -> None:
    desk.settings.set("embedder", f"onnx:{tmp_path / 'gone'}")
    desk.settings.set("embedder_before", f"onnx:{tmp_path / 'gone'}")
    desk.meaning.start()
    desk.until(lambda: desk.meaning.problem)
    assert desk.meaning.look("a plant") is None
    assert "holds no usable embedding model" in desk.meaning.problem
    assert "choose a folder" in desk.meaning.problem
    assert desk.meaning.embedded() is None


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "embedder.json"])
def test_a_damaged_model_folder_is_told_of_and_words_must_do(
    desk: Desk, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(SHIPPED, folder)
    (folder / name).write_bytes(b"\0 not what it was")
    desk.settings.set("embedder", f"onnx:{folder}")
    desk.settings.set("embedder_before", f"onnx:{folder}")
    assert desk.meaning.look("a plant") is None
    assert name in desk.meaning.problem
    desk.meaning.start()
    desk.until(lambda: name in desk.meaning.problem)
    assert desk.meaning.look("a plant") is None


def test_a_damaged_new_model_leaves_the_old_one_answering(desk: Desk, tmp_path: Path) -> None:
    started(desk)
    desk.settings.set("embedder", f"onnx:{tmp_path / 'nowhere'}")
    for _ in range(10):
        assert desk.answers("all_minilm")
        time.sleep(0.01)


def test_vectors_of_another_dimension_are_not_searched_and_it_is_said(desk: Desk) -> None:
    desk.stored.ensure(Space("all_minilm_l6_v2", 8, 256), "builtin")
    desk.meaning.start()
    desk.until(lambda: desk.meaning.problem)
    assert "gives 384 numbers for a text; its vectors so far have 8" in desk.meaning.problem
    assert desk.meaning.look("a plant") is None


def test_who_waits_for_the_first_answer_is_called_once(desk: Desk) -> None:
    desk.embed()
    calls: list[bool] = []
    desk.meaning.start(lambda: calls.append(desk.meaning.look("a plant") is not None))
    desk.until(lambda: calls)
    desk.settings.set("embedder_consent", "anew")
    desk.until(lambda: desk.answers("all_minilm"))
    assert calls == [True]


def test_who_waits_for_the_first_answer_is_called_too_when_there_is_none(
    desk: Desk, tmp_path: Path
) -> None:
    desk.settings.set("embedder", f"onnx:{tmp_path / 'nowhere'}")
    desk.settings.set("embedder_before", f"onnx:{tmp_path / 'nowhere'}")
    settled = threading.Event()
    desk.meaning.start(settled.set)
    assert settled.wait(WAIT_S)


# -- the end


def test_stopping_does_not_wait_for_a_server_that_hangs(desk: Desk, server: Loopback) -> None:
    server.always(stall(before_headers=True))
    desk.settings.set("embedder", LOCAL)
    desk.settings.set("embedder_before", LOCAL)
    desk.meaning.start()
    server.wait_for(lambda: server.posts)
    began = time.monotonic()
    desk.embedders.close()
    desk.meaning.stop()
    assert time.monotonic() - began < 1.0


def test_stopping_does_not_wait_for_a_model_that_is_being_loaded(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading, loaded = threading.Event(), threading.Event()

    def embed(_: LocalEmbedder, texts: list[str], cancelled: object = None) -> object:
        loading.set()
        loaded.wait(WAIT_S)
        return BagOfWords("all_minilm_l6_v2", 384).embed(texts)

    monkeypatch.setattr(LocalEmbedder, "embed", embed)
    desk.meaning.start()
    (thread,) = (each for each in threading.enumerate() if each.name == "meaning")
    assert loading.wait(WAIT_S)
    began = time.monotonic()
    desk.meaning.stop()
    assert time.monotonic() - began < 1.0
    loaded.set()
    thread.join(WAIT_S)
    assert not thread.is_alive()


def test_stopping_twice_and_asking_afterwards_is_no_error(desk: Desk) -> None:
    started(desk)
    desk.meaning.stop()
    desk.meaning.stop()
    desk.meaning.look("a plant")
