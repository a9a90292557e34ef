"""Token vectors on a real store: what the pipeline puts, what follows deletions, what questions get."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.bootstrap import RunMode, Services, build
from app.domain.changes import ConversationEdited, PassagesPut
from app.domain.errors import AlreadyOpen, DiskFull
from app.domain.ids import PassageId, part_id
from app.domain.workers import WorkerName
from app.index.query import sentence_query
from app.index.token_index import MAX_PART_TOKENS, TokenIndex
from app.index.token_sync import TokenIndexSync
from app.memory.search.scope import SearchScope
from app.storage.deletion.forget import forget
from app.storage.engine.store import Store
from app.storage.tables.passages.vectors import Vectors
from app.system.paths import DataPaths
from tests.fakes.embedders import BagOfTokens, BagOfWords, words_of
from tests.fakes.fixtures import fixture_of
from tests.fakes.jobs import hosted, until
from tests.fakes.pipelines import PipelineBench, long
from tests.fakes.stored import AT, add_conversation, learned, opened

CANARY = "xylophone"


class TokenBench(PipelineBench):
    """A pipeline whose embedder has tokens, and their index."""

    def __init__(self, store: Store) -> None:
        self.folder = store.paths.index / "tokens"
        self.sync = TokenIndexSync(store, Vectors(store), self.folder)
        super().__init__(store, self.sync)
        self.embedder = BagOfTokens()

    @property
    def index(self) -> TokenIndex:
        found = self.sync.index_for(self.embedder.space, BagOfTokens.token_model)
        assert found is not None
        return found

    def tokenized(self) -> set[int]:
        return set(self.index.passages.tolist())

    def holds(self, word: str, passage: int, part: int = 0) -> bool:
        (found,) = self.index.window_scores(
            words_of(word).vectors, np.ones(1), [part_id(passage, part)]
        )
        return bool(found > 0.98)

    def is_in_files(self, word: str) -> bool:
        code = bytes(np.rint(words_of(word).vectors[0] * 127).astype(np.int8).data)
        return any(code in path.read_bytes() for path in self.folder.rglob("tokens-*"))


bench = fixture_of(TokenBench, "store", then="sync.stop")


# -- what the pipeline puts
def test_what_is_embedded_gets_tokens_in_the_pass_or_those_of_its_twin(bench: TokenBench) -> None:
    add_conversation(bench.store, long("tea"))
    add_conversation(bench.store, long("milk"))
    status = bench.run()
    assert (status.done, status.total, status.completed) == (2, 2, 2)
    assert len(bench.bag.read) == 4  # each text once
    assert bench.tokenized() == bench.passages() == {1, 2}
    assert bench.holds("tea", 1)
    assert bench.holds("answer", 1, 1)
    assert not bench.holds("answer", 1)
    read = len(bench.bag.read)
    add_conversation(bench.store, long("tea"))
    assert bench.run().done == 3
    assert len(bench.bag.read) == read
    assert bench.holds("tea", 3)
    assert bench.holds("answer", 3, 1)


def test_tokens_in_the_overlap_of_two_chunks_are_stored_once(bench: TokenBench) -> None:
    bench.embedder = BagOfTokens(max_tokens=40)
    bench.settings.set("turn_overlap_tokens", 10)
    words = [f"word{number}" for number in range(150)]
    add_conversation(bench.store, " ".join(words))
    bench.run()
    stored = (bench.index.tokens_of(PassageId(1)) or {})[part_id(1, 0)]
    np.testing.assert_allclose(stored, words_of(" ".join(words)).vectors, atol=0.005)


def test_a_long_message_has_its_first_tokens(bench: TokenBench) -> None:
    add_conversation(bench.store, " ".join(f"word{n}" for n in range(MAX_PART_TOKENS + 100)))
    bench.run()
    assert bench.holds(f"word{MAX_PART_TOKENS - 1}", 1)
    assert not bench.holds(f"word{MAX_PART_TOKENS}", 1)


def test_a_library_embedded_before_gets_its_tokens_after_all_else(store: Store) -> None:
    before = PipelineBench(store)
    for about in ("one", "two", "three"):
        add_conversation(store, long(about))
    before.run()
    bench = TokenBench(store)
    bench.settings.set("embedding_batch_size", 2)
    add_conversation(store, long("new"))
    assert [(each.done, each.total) for each in bench.board.refresh()] == [(0, 4)]
    (rows,) = bench.vectors.load(bench.embedder.space)
    status = bench.run()
    assert (status.done, status.total, status.failed) == (4, 4, 0)
    questions = [text for text in bench.bag.read if "answer" not in text]
    order = [text.split()[3] for text in questions]
    assert (order[0], set(order[1:3]), order[3]) == ("new", {"three", "two"}, "one")
    assert bench.tokenized() == {1, 2, 3, 4}
    written = next(bench.vectors.load(bench.embedder.space, rows.until))
    assert set(written.part_ids // 4096) == {4}  # the vectors of the others are left
    bench.sync.stop()


def test_a_deleted_cache_is_filled_and_deleted_vectors_take_tokens_along(bench: TokenBench) -> None:
    add_conversation(bench.store, long("tea"))
    bench.run()
    bench.sync.clear()
    assert list(bench.folder.iterdir()) == []
    status = bench.run()
    assert (status.done, status.total) == (1, 1)
    assert bench.holds("tea", 1)
    bench.pipeline.start_over()
    bench.run()
    assert bench.tokenized() == {1}
    assert bench.holds("tea", 1)
    bench.sync.start()
    bench.vectors.drop("bag_of_words")
    until(lambda: not any(bench.folder.iterdir()))


def test_private_and_deleted_conversations_get_none(bench: TokenBench) -> None:
    add_conversation(bench.store, long("secret"), private=True)
    old = PipelineBench(bench.store)
    trashed = add_conversation(bench.store, long("trash"))
    old.run()
    bench.store.save(ConversationEdited(trashed.conversation.id, deleted_at=AT))
    assert bench.run().total == 0
    assert bench.bag.read == []
    with hosted(bench.board):
        bench.store.save(ConversationEdited(trashed.conversation.id, restored=True))
        until(lambda: bench.folder.exists() and bench.tokenized() == {1})


def test_an_embedder_without_tokens_leaves_no_file(bench: TokenBench) -> None:
    bench.embedder = BagOfWords()
    add_conversation(bench.store, long("tea"))
    assert bench.run().done == 1
    assert not bench.folder.exists()


def test_a_full_disk_blocks_the_worker(bench: TokenBench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    add_conversation(bench.store, long("tea"))
    with monkeypatch.context() as patched:
        patched.setattr(TokenIndex, "put", full)
        with pytest.raises(DiskFull):
            bench.sync.put(bench.embedder.space, "words", [], {})
    bench.run()
    assert bench.tokenized() == {1}


# -- what follows deletions
def test_forgotten_passages_leave_no_bytes(bench: TokenBench) -> None:
    talk = add_conversation(bench.store, long(CANARY))
    add_conversation(bench.store, long("tea"))
    bench.run()
    bench.sync.catch_up()
    assert bench.is_in_files(CANARY)
    forget(bench.store, [talk.conversation.id])
    bench.sync.catch_up()
    assert not bench.is_in_files(CANARY)
    assert bench.tokenized() == {2}


def test_a_command_that_forgets_leaves_no_bytes_when_it_ends(bench: TokenBench) -> None:
    """Without a window, nothing follows in the background."""
    talk = add_conversation(bench.store, long(CANARY))
    bench.run()
    forget(bench.store, [talk.conversation.id])
    bench.sync.stop()
    assert not bench.is_in_files(CANARY)


def test_what_was_forgotten_before_a_crash_is_overwritten_at_the_next_start(data_dir: Path) -> None:
    with opened(data_dir) as store:
        bench = TokenBench(store)
        talk = add_conversation(store, long(CANARY))
        bench.run()
        forget(store, [talk.conversation.id])
        bench.sync._end_watch()
        bench.index.close()  # the sync is never stopped, as in a crash
    with opened(data_dir) as store:
        bench = TokenBench(store)
        assert bench.is_in_files(CANARY)
        bench.sync.start()
        until(lambda: not bench.is_in_files(CANARY))
        bench.sync.stop()


def test_a_passage_whose_text_changed_leaves_no_bytes(bench: TokenBench) -> None:
    add_conversation(bench.store, long("tea"))
    talk = add_conversation(bench.store, long(CANARY))
    bench.run()
    (passages,) = [each for each in talk.changes if isinstance(each, PassagesPut)]
    bench.store.save(PassagesPut((replace(passages.passages[0], content_hash="changed"),)))
    bench.sync.catch_up()
    assert not bench.is_in_files(CANARY)
    assert bench.tokenized() == {1}


def test_tokens_that_come_after_the_deletion_are_not_stored(bench: TokenBench) -> None:
    add_conversation(bench.store, long(CANARY))
    made = bench.pipeline.make(bench.pipeline.find(AT), lambda: False)
    bench.store.save(PassagesPut(replaced=(PassageId(1),)))
    bench.sync.catch_up()
    assert bench.pipeline.save([made]).completed == 0
    assert bench.tokenized() == set()
    assert not bench.is_in_files(CANARY)


def test_the_tokens_of_another_projection_are_deleted(bench: TokenBench) -> None:
    add_conversation(bench.store, long("tea"))
    bench.run()

    class Other(BagOfTokens):
        token_model = "other"

    bench.embedder = Other()
    bench.run()
    assert [each.name for each in bench.folder.iterdir()] == ["bag_of_words-other"]


def test_a_hosted_pipeline_and_a_started_sync_work_together(bench: TokenBench) -> None:
    bench.sync.start()
    with hosted(bench.board):
        add_conversation(bench.store, long("tea"))
        until(lambda: bench.sync.index_for(bench.embedder.space, "words") is not None)
        until(lambda: bench.tokenized() == {1})
        bench.store.save(PassagesPut(replaced=(PassageId(1),)))
        until(lambda: bench.tokenized() == set())


# -- what questions get
def test_a_question_comes_with_its_tokens_and_their_index(data_dir: Path) -> None:
    with closing(build(DataPaths(data_dir), RunMode.COMMAND_LINE)) as services:
        add_conversation(services.store, long("tea from Assam"))
        services.workers.run_until_idle([WorkerName.EMBEDDING_PIPELINE])
        question = "Where is the tea from?"
        found = services.vector_search.query_vector(question)
        words = [question[start:end] for start, end in found.tokens.spans]
        assert words == ["Where", "is", "the", "tea", "from", "?"]
        weights = np.array([each == "tea" for each in words], float)
        (near,) = found.tokens.index.window_scores(found.tokens.vectors, weights, [part_id(1, 0)])
        assert near > 0.5
        again = services.vector_search.query_vector(question)
        assert again.tokens.vectors is found.tokens.vectors  # it was embedded once


def test_the_tokens_of_a_fact_count_for_its_message(data_dir: Path) -> None:
    with closing(build(DataPaths(data_dir), RunMode.COMMAND_LINE)) as services:
        whole = add_conversation(services.store, "We take the blue one.")
        query = sentence_query("Which bicycle was chosen?")

        def best() -> float:
            services.workers.run_until_idle([WorkerName.EMBEDDING_PIPELINE])
            services.index_sync.catch_up()
            scope = SearchScope(None, services.search.pools().excluded)
            vector = services.search.query_vector(query)
            found = services.search.ranking_input(query, vector, scope)
            return float(found.nearness.tokens.max())

        before = best()
        learned(services.store, whole, "The bicycle that was chosen is blue.")
        assert best() > before + 0.3


def test_a_second_process_does_not_touch_the_index(data_dir: Path) -> None:
    """The data directory's lock comes first; a command beside a window runs inside it."""
    first = build(DataPaths(data_dir), RunMode.COMMAND_LINE)
    with closing(first), pytest.raises(AlreadyOpen):
        Services(DataPaths(data_dir))
