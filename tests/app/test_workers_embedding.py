"""The embedding pipeline on a real store: what it embeds, once, in which pieces, and what goes wrong."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from app.check import check
from app.domain.changes import ConversationEdited, PassagesPut, SummaryPut
from app.domain.conversations import ExchangeStatus
from app.domain.errors import EmbedderUnavailable
from app.domain.ids import PassageId, part_id
from app.domain.passages import Passage, PassageKind
from app.domain.ports import Embedder
from app.domain.provider_errors import KeyMissing, TimedOut
from app.domain.turn_text import content_hash
from app.domain.workers import Ledger, WorkerName, WorkerState, WorkerStatus
from app.storage.attempts import Attempts
from app.storage.forget import forget
from app.storage.passages import Passages
from app.storage.settings import Settings
from app.storage.spending import Spending
from app.storage.store import Store
from app.storage.vectors import Vectors
from app.workers.board import WorkerBoard
from tests.fakes.embedders import BagOfWords
from tests.fakes.jobs import JumpingClock, until
from tests.fakes.stored import AT, Told, killed, opened, told

NAME = WorkerName.EMBEDDING_PIPELINE
LONG = "a question about {} with words enough that the turn is embedded"


def long(about: object) -> str:
    return LONG.format(about)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "data") as made:
        yield made


class Bench:
    """A board with nothing but the pipeline, on a store, with a fake embedder."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.settings = Settings(store)
        self.embedder: Embedder = BagOfWords()
        self.refusal: Exception | None = None
        self.clock = JumpingClock()
        self.vectors = Vectors(store)
        self.board = WorkerBoard(
            store, self.settings, (), clock=self.clock, embedder=self._active
        )  # fmt: skip

    def _active(self) -> Embedder:
        if self.refusal is not None:
            raise self.refusal
        return self.embedder

    @property
    def bag(self) -> BagOfWords:
        assert isinstance(self.embedder, BagOfWords)
        return self.embedder

    def run(self) -> WorkerStatus:
        (status,) = self.board.run_until_idle([NAME])
        return status

    def parts(self, name: str = "bag_of_words") -> list[int]:
        """Return the parts that have vectors, in order, once for each chunk."""
        (space,) = [kept.space for kept in self.vectors.spaces() if kept.space.name == name]
        return [int(part) for rows in self.vectors.load(space) for part in rows.part_ids]

    def passages(self) -> set[int]:
        return {part // 4096 for part in self.parts()}


@pytest.fixture
def bench(store: Store) -> Bench:
    return Bench(store)


def summary(store: Store, talk: Told, words: str) -> PassageId:
    """Write a conversation's summary and its passage."""
    conversation = talk.conversation.id
    own = store.ids.passage()
    kind = PassageKind.CONVERSATION_SUMMARY
    passage = Passage(own, kind, conversation, conversation, None, content_hash(words), AT, 3)
    put = SummaryPut("conversation", conversation, conversation, words, "m", "h", AT)
    store.save(put, PassagesPut((passage,)))
    return own


# -- what is embedded


def test_each_message_of_a_turn_gets_a_vector_and_so_does_a_summary(bench: Bench) -> None:
    talk = told(bench.store, long("tea"))
    own = summary(bench.store, talk, "Tea")
    status = bench.run()
    assert bench.parts() == [part_id(1, 0), part_id(1, 1), part_id(own, 0)]
    assert set(bench.bag.read) == {long("tea"), f"An answer to {long('tea')}", "Tea"}
    assert (status.done, status.total, status.completed, status.failed) == (2, 2, 2, 0)


def test_vectors_are_those_of_the_chunks_they_name(bench: Bench) -> None:
    told(bench.store, " ".join(f"word{number}" for number in range(150)))
    bench.run()
    (text,) = Passages(bench.store).texts([1])
    words = {part.id: part.embedded for part in text.parts}
    (rows,) = bench.vectors.load(bench.embedder.space)
    assert len(rows.part_ids) == 6
    for part, (start, end), vector in zip(rows.part_ids, rows.spans, rows.vectors, strict=True):
        (wanted,) = bench.embedder.embed([words[part][start:end]])
        assert wanted @ vector == pytest.approx(1, abs=1e-3)


def test_chunks_are_as_long_as_the_settings_say(bench: Bench) -> None:
    bench.embedder = BagOfWords(max_tokens=8000)
    bench.settings.set("turn_max_tokens", 100)
    bench.settings.set("turn_overlap_tokens", 20)
    told(bench.store, " ".join(f"word{number}" for number in range(180)))
    bench.run()
    sizes = {text.split()[0]: len(text.split()) for text in bench.bag.read}
    assert (sizes["word0"], sizes["word80"]) == (100, 100)


def test_an_overlap_longer_than_a_chunk_is_a_tenth(bench: Bench) -> None:
    bench.embedder = BagOfWords(max_tokens=8000)
    bench.settings.set("turn_max_tokens", 100)
    told(bench.store, " ".join(f"word{number}" for number in range(180)))
    assert bench.run().done == 1
    assert "word90" in {text.split()[0] for text in bench.bag.read}


def test_the_newest_come_first_and_the_same_text_is_embedded_once(bench: Bench) -> None:
    bench.settings.set("embedding_batch_size", 2)
    for about in ("one", "two", "one", "three"):
        told(bench.store, long(about))
    bench.run()
    questions = [text for text in bench.bag.read if "answer" not in text]
    assert set(questions[:2]) == {long("three"), long("one")}
    assert questions[2:] == [long("two")]
    assert bench.passages() == {1, 2, 3, 4}


def test_a_copy_gets_the_vectors_of_what_it_says_without_the_model(bench: Bench) -> None:
    told(bench.store, long("tea"))
    bench.run()
    told(bench.store, long("tea"))
    before = len(bench.bag.read)
    assert bench.run().done == 2
    assert len(bench.bag.read) == before
    assert bench.parts()[2:] == [part_id(2, 0), part_id(2, 1)]


def test_words_divided_otherwise_are_no_copy(bench: Bench) -> None:
    """The hash is of all a turn says: who said which part of it may still differ."""
    bench.settings.set("min_message_tokens", 0)
    first = told(bench.store, long("tea"))
    bench.run()
    second = told(bench.store, long("coffee"))
    same = f"(SELECT content_hash FROM passage WHERE source_id = {first.exchanges[0].id})"
    bench.store.write_derived(
        lambda c: c.execute(
            f"UPDATE passage SET content_hash = {same} WHERE source_id = ?",
            [second.exchanges[0].id],
        )
    ).result()
    bench.run()
    assert long("coffee") in bench.bag.read


def test_a_passage_without_words_is_done_and_not_found_for_ever(bench: Bench) -> None:
    talk = told(bench.store, long("tea"))
    own = summary(bench.store, talk, " \n\t ")
    assert bench.run().done == 2
    assert own not in bench.passages()
    assert check(bench.store).problems == ()


def test_short_and_incomplete_turns_private_and_trashed_talks_are_left_out(bench: Bench) -> None:
    told(bench.store, "hi")
    told(bench.store, long("secret"), private=True)
    trashed = told(bench.store, long("trash"))
    bench.store.save(ConversationEdited(trashed.conversation.id, deleted_at=AT))
    assert bench.run().total == 0
    assert bench.bag.read == []
    bench.store.save(ConversationEdited(trashed.conversation.id, restored=True))
    bench.settings.set("min_message_tokens", 1)
    assert bench.run().done == 2


def test_a_batch_has_at_most_as_many_texts_as_is_set_and_never_more_than_100(
    bench: Bench,
) -> None:
    told(bench.store, *(long(number) for number in range(130)))
    bench.settings.set("embedding_batch_size", 2048)
    bench.run()
    assert (max(bench.bag.batches), sum(bench.bag.batches)) == (100, 260)
    bench.board.embedding.start_over()  # type: ignore[union-attr]
    bench.bag.batches.clear()
    bench.settings.set("embedding_batch_size", 7)
    bench.run()
    assert (max(bench.bag.batches), sum(bench.bag.batches)) == (7, 260)


def test_nothing_is_embedded_twice(bench: Bench) -> None:
    told(bench.store, *(long(number) for number in range(30)))
    bench.run()
    bench.run()
    assert len(bench.bag.read) == len(set(bench.bag.read)) == 60


def test_a_turn_that_ends_is_embedded_at_once_by_a_running_worker(
    store: Store, bench: Bench
) -> None:
    bench.settings.set("embedding_pipeline_poll_interval", 86_400)
    real = WorkerBoard(store, bench.settings, (), embedder=lambda: bench.embedder)
    threads: list[threading.Thread] = []

    def host(loop: Callable[[], None]) -> None:
        threads.append(threading.Thread(target=loop))
        threads[-1].start()

    real.start(host)
    try:
        until(lambda: real.statuses()[0].state is WorkerState.IDLE)
        told(store, long("tea"))
        until(lambda: real.statuses()[0].done == 1)
        bench.settings.set("min_message_tokens", 1)
        told(store, "hi")
        until(lambda: real.statuses()[0].done == 2)
    finally:
        assert real.stop() == ()
        for thread in threads:
            thread.join()


# -- spaces


def test_two_spaces_stand_side_by_side_and_going_back_costs_nothing(bench: Bench) -> None:
    told(bench.store, long("tea"), long("coffee"))
    first = bench.bag
    bench.run()
    bench.embedder = second = BagOfWords("second", 16)
    assert bench.board.refresh()[0].done == 0
    assert bench.run().done == 2
    assert (bench.vectors.count("bag_of_words"), bench.vectors.count("second")) == ((2, 4), (2, 4))
    bench.embedder = first
    read = len(first.read)
    assert bench.run().done == 2
    assert (len(first.read), len(second.read)) == (read, 4)


def test_a_change_in_mid_work_mixes_nothing(bench: Bench) -> None:
    told(bench.store, *(long(number) for number in range(20)))
    bench.settings.set("embedding_batch_size", 5)
    first, second = bench.bag, BagOfWords("second", 16)

    def change(_: Sequence[str]) -> None:
        bench.embedder = second

    first.poison = change
    assert bench.run().done == 20
    assert bench.vectors.count("second")[0] == 20
    assert 0 < bench.vectors.count("bag_of_words")[0] < 20
    assert check(bench.store).problems == ()


def test_what_one_embedder_set_aside_another_may_take(bench: Bench) -> None:
    told(bench.store, long("poison"), long("tea"))
    bench.bag.poison = poisoned_by("poison")
    assert bench.run().set_aside == 1
    bench.embedder = BagOfWords("second", 16)
    status = bench.run()
    assert (status.done, status.set_aside) == (2, 0)


def test_a_space_of_another_dimension_blocks_with_what_to_do_until_it_is_rebuilt(
    bench: Bench,
) -> None:
    told(bench.store, long("tea"))
    bench.run()
    told(bench.store, long("coffee"))
    bench.embedder = BagOfWords(dimension=16)
    status = bench.run()
    assert "gives 16 numbers" in status.last_error
    assert "rebuild" in status.last_error
    assert bench.vectors.count("bag_of_words") == (1, 2)
    bench.board.embedding.start_over()  # type: ignore[union-attr]
    assert bench.run().done == 2
    assert bench.vectors.spaces()[0].space.dimension == 16


def test_starting_over_tells_what_it_will_take_and_makes_all_anew(bench: Bench) -> None:
    told(bench.store, long("tea"), long("coffee"))
    bench.run()
    pipeline = bench.board.embedding
    assert pipeline is not None
    redo = pipeline.redo()
    assert (redo.space, redo.vectors, redo.passages) == ("bag_of_words", 4, 2)
    assert redo.tokens > 30
    pipeline.start_over()
    assert bench.board.refresh()[0].done == 0
    assert bench.run().done == 2
    assert len(bench.bag.read) == 8


# -- what goes wrong


def poisoned_by(word: str, error: Exception | None = None) -> Callable[[Sequence[str]], None]:
    def refuse(texts: Sequence[str]) -> None:
        if any(word in text for text in texts):
            raise error or ValueError("a text that cannot be embedded")

    return refuse


def spoiled(how: str, word: str = "poison") -> Callable[[np.ndarray, Sequence[str]], object]:
    """Return what makes nonsense of the vectors of texts with a word."""

    def spoil(vectors: np.ndarray, texts: Sequence[str]) -> object:
        bad = [row for row, text in enumerate(texts) if word in text]
        if not bad:
            return vectors
        match how:
            case "nan":
                vectors[bad] = np.nan
            case "zeros":
                vectors[bad] = 0
            case "fewer":
                return np.delete(vectors, bad, axis=0)
            case "dimension":
                return vectors[:, :-1]
            case _:
                return "nonsense"
        return vectors

    return spoil


def test_one_bad_text_does_not_hold_back_its_batch_and_is_set_aside(bench: Bench) -> None:
    told(bench.store, *(long(number) for number in range(40)), long("poison"), long("last"))
    bench.bag.poison = poisoned_by("poison")
    status = bench.run()
    assert (status.done, status.total, status.set_aside, status.failed) == (41, 42, 1, 1)
    assert bench.passages() == set(range(1, 43)) - {41}
    tries = Attempts(bench.store, NAME).tries()
    assert tries == {41: bench.settings.number("embedding_max_retries") + 1}
    assert len(bench.bag.read) == len(set(bench.bag.read)) == 82, "good texts are embedded once"


def test_the_waits_of_a_bad_text_grow_to_32_s_and_it_may_be_tried_again(bench: Bench) -> None:
    told(bench.store, long("poison"))
    moments: list[float] = []

    def note(_: Sequence[str]) -> None:
        moments.append(bench.clock.monotonic())
        raise ValueError("no")

    bench.bag.poison = note
    bench.board = WorkerBoard(
        bench.store, bench.settings, (), clock=bench.clock, jitter=lambda limit: limit,
        embedder=lambda: bench.embedder,
    )  # fmt: skip
    assert bench.run().set_aside == 1
    waits = np.diff(moments)
    assert [round(wait) for wait in waits] == [1, 2, 4, 8, 16, 32]
    bench.bag.poison = lambda _: None
    bench.board.retry_set_aside(NAME)
    assert bench.run().done == 1


def test_the_retry_queue_survives_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as store:
        bench = Bench(store)
        bench.settings.set("embedding_max_retries", 0)
        told(store, long("poison"), long("tea"))
        bench.bag.poison = poisoned_by("poison")
        assert bench.run().set_aside == 1
    with opened(tmp_path / "data") as store:
        later = Bench(store)
        status = later.run()
        assert (status.done, status.set_aside, later.bag.read) == (1, 1, [])


@pytest.mark.parametrize("how", ["nan", "zeros", "fewer", "dimension", "nonsense"])
def test_a_text_that_gets_no_vector_is_isolated_and_nothing_bad_is_stored(
    bench: Bench, how: str
) -> None:
    told(bench.store, *(long(number) for number in range(9)), long("poison"))
    bench.bag.spoil = spoiled(how)
    status = bench.run()
    assert (status.done, status.set_aside) == (9, 1)
    assert "bag_of_words" in status.last_error
    assert check(bench.store).problems == ()
    for rows in bench.vectors.load(bench.embedder.space):
        assert np.isfinite(rows.vectors).all()
        assert np.allclose(np.linalg.norm(rows.vectors, axis=1), 1, atol=1e-3)


@pytest.mark.parametrize("how", ["nan", "zeros", "fewer", "dimension", "nonsense"])
def test_an_embedder_that_answers_nothing_but_nonsense_blocks_the_worker_and_fails_no_one(
    bench: Bench, how: str
) -> None:
    told(bench.store, *(long(number) for number in range(50)))
    bench.bag.spoil = spoiled(how, word="")
    status = bench.run()
    assert (status.done, status.failed, status.set_aside) == (0, 0, 0)
    assert "bag_of_words" in status.last_error
    assert bench.vectors.count("bag_of_words") == (0, 0)
    bench.bag.spoil = lambda vectors, _: vectors
    assert bench.run().done == 50


@pytest.mark.parametrize(
    "refusal",
    [EmbedderUnavailable("The folder is gone"), KeyMissing("There is no key")],
    ids=["unavailable", "no key"],
)
def test_without_an_embedder_the_worker_waits_and_says_why(
    bench: Bench, refusal: Exception
) -> None:
    told(bench.store, long("tea"))
    bench.refusal = refusal
    status = bench.run()
    assert (status.done, status.total, status.failed) == (0, 1, 0)
    assert str(refusal) in status.last_error
    bench.refusal = None
    assert bench.run().done == 1


def test_an_embedder_that_hangs_until_its_time_limit_blocks_after_three(bench: Bench) -> None:
    told(bench.store, *(long(number) for number in range(10)))
    bench.bag.poison = poisoned_by("", TimedOut("It took too long"))
    status = bench.run()
    assert (status.done, status.set_aside) == (0, 0)
    assert "took too long" in status.last_error
    bench.bag.poison = lambda _: None
    assert bench.run().done == 10


def test_it_stops_between_two_batches_of_the_model(bench: Bench) -> None:
    told(bench.store, *(long(number) for number in range(300)))
    (status,) = bench.board.run_until_idle(
        [NAME], is_cancelled=lambda: len(bench.bag.batches) >= 2
    )  # fmt: skip
    assert status.state is WorkerState.STOPPED
    assert 0 < status.done < 300
    assert status.failed == status.waiting_retry == 0
    assert bench.run().done == 300


def test_a_kill_between_writes_loses_nothing_and_doubles_nothing(
    bench: Bench, tmp_path: Path
) -> None:
    told(bench.store, *(long(number) for number in range(120)))
    bench.settings.set("embedding_batch_size", 20)
    roots: list[Path] = []

    def kill(_: Sequence[str]) -> None:
        if len(bench.bag.batches) in (1, 4, 9):
            roots.append(killed(bench.store, tmp_path / f"killed {len(roots)}"))

    bench.bag.poison = kill
    bench.run()
    done = []
    for root in roots:
        with opened(root) as store:
            after = Bench(store)
            done.append(after.board.refresh()[0].done)
            assert after.run().done == 120
            assert len(after.parts()) == 240
            assert check(store).problems == ()
    assert done[0] == 0
    assert done[0] < done[1] < done[2] < 120


def test_a_conversation_forgotten_while_it_is_embedded_leaves_no_vector(bench: Bench) -> None:
    secret = told(bench.store, long("secret")).conversation.id
    told(bench.store, long("tea"))

    def forget_it(_: Sequence[str]) -> None:
        forget(bench.store, [secret])

    bench.bag.poison = forget_it
    status = bench.run()
    assert (status.done, status.total) == (1, 1)
    assert bench.passages() == {2}
    assert check(bench.store).problems == ()


def test_a_turn_made_anew_while_it_is_embedded_is_embedded_as_it_is(bench: Bench) -> None:
    whole = told(bench.store, long("tea"))
    assert whole.exchanges[0].status is ExchangeStatus.COMPLETED

    def replace_it(_: Sequence[str]) -> None:
        bench.bag.poison = lambda _: None
        exchange, conversation = whole.exchanges[0].id, whole.conversation.id
        fresh = bench.store.ids.passage()
        kind = PassageKind.TURN
        passage = Passage(fresh, kind, exchange, conversation, exchange, "other", AT, 30)
        bench.store.save(PassagesPut((passage,), (PassageId(1),)))

    bench.bag.poison = replace_it
    assert bench.run().done == 1
    assert bench.passages() == {2}


# -- what it tells


def test_what_requests_cost_is_recorded_whether_they_came_to_something_or_not(
    bench: Bench,
) -> None:
    told(bench.store, long("tea"), long("poison"))
    bench.settings.set("embedding_max_retries", 0)

    def pay(texts: Sequence[str]) -> None:
        bench.bag.usage = Ledger(10 * len(texts), 0.001 * len(texts))
        poisoned_by("poison")(texts)

    bench.bag.poison = pay
    status = bench.run()
    assert status.done == 1
    assert status.session == status.all_time == Spending(bench.store).all_time(NAME)
    assert status.session.tokens == 10 * sum(bench.bag.batches)
    assert status.session.cost_usd == pytest.approx(0.001 * sum(bench.bag.batches))


def test_its_card_names_the_conversation_and_its_warning_what_waits(bench: Bench) -> None:
    told(bench.store, long("tea"), long("coffee"), title="Hot drinks")
    pipeline = bench.board.embedding
    assert pipeline is not None
    items = pipeline.find(bench.clock.now())
    assert {pipeline.describe(item) for item in items} == {"Hot drinks"}
    bench.run()
    bench.board.set_enabled(NAME, False)
    told(bench.store, long("milk"))
    bench.board.refresh()
    assert bench.board.warnings() == (
        "1 passage waits for its embedding, the embedding pipeline is off.",
    )
    told(bench.store, long("juice"))
    bench.board.refresh()
    (warning,) = bench.board.warnings()
    assert warning == "2 passages wait for embeddings, the embedding pipeline is off."


def test_without_an_embedder_to_ask_there_is_no_pipeline(store: Store) -> None:
    board = WorkerBoard(store, Settings(store))
    assert board.embedding is None
    assert NAME not in {status.name for status in board.statuses()}
