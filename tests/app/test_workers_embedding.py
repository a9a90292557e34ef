"""The embedding pipeline on a real store: what it embeds, once, in which pieces, in which space."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from app.check import check
from app.domain.changes import ConversationEdited
from app.domain.ids import part_id
from app.domain.passages import PassageKind
from app.domain.workers import WorkerState
from app.storage.passages import Passages
from app.storage.settings import Settings
from app.storage.store import Store
from app.workers.board import WorkerBoard
from tests.fakes.embedders import BagOfWords
from tests.fakes.jobs import until
from tests.fakes.pipelines import NAME, PipelineBench, long, poisoned_by, summary
from tests.fakes.stored import AT, opened, told


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "data") as made:
        yield made


@pytest.fixture
def bench(store: Store) -> PipelineBench:
    return PipelineBench(store)


# -- what is embedded


def test_each_message_of_a_turn_gets_a_vector_and_so_does_a_summary(bench: PipelineBench) -> None:
    talk = told(bench.store, long("tea"))
    own = summary(bench.store, talk, "Tea")
    status = bench.run()
    assert bench.parts() == [part_id(1, 0), part_id(1, 1), part_id(own, 0)]
    assert set(bench.bag.read) == {long("tea"), f"An answer to {long('tea')}", "Tea"}
    assert (status.done, status.total, status.completed, status.failed) == (2, 2, 2, 0)


def test_vectors_are_those_of_the_chunks_they_name(bench: PipelineBench) -> None:
    told(bench.store, " ".join(f"word{number}" for number in range(150)))
    bench.run()
    (text,) = Passages(bench.store).texts([1])
    words = {part.id: part.embedded for part in text.parts}
    (rows,) = bench.vectors.load(bench.embedder.space)
    assert len(rows.part_ids) == 6
    for part, (start, end), vector in zip(rows.part_ids, rows.spans, rows.vectors, strict=True):
        (wanted,) = bench.embedder.embed([words[part][start:end]])
        assert wanted @ vector == pytest.approx(1, abs=1e-3)


def test_chunks_are_as_long_as_the_settings_say(bench: PipelineBench) -> None:
    bench.embedder = BagOfWords(max_tokens=8000)
    bench.settings.set("turn_max_tokens", 100)
    bench.settings.set("turn_overlap_tokens", 20)
    told(bench.store, " ".join(f"word{number}" for number in range(180)))
    bench.run()
    sizes = {text.split()[0]: len(text.split()) for text in bench.bag.read}
    assert (sizes["word0"], sizes["word80"]) == (100, 100)


def test_an_overlap_longer_than_a_chunk_is_a_tenth(bench: PipelineBench) -> None:
    bench.embedder = BagOfWords(max_tokens=8000)
    bench.settings.set("turn_max_tokens", 100)
    told(bench.store, " ".join(f"word{number}" for number in range(180)))
    assert bench.run().done == 1
    assert "word90" in {text.split()[0] for text in bench.bag.read}


def test_the_newest_come_first_and_the_same_text_is_embedded_once(bench: PipelineBench) -> None:
    bench.settings.set("embedding_batch_size", 2)
    for about in ("one", "two", "one", "three"):
        told(bench.store, long(about))
    bench.run()
    questions = [text for text in bench.bag.read if "answer" not in text]
    assert set(questions[:2]) == {long("three"), long("one")}
    assert questions[2:] == [long("two")]
    assert bench.passages() == {1, 2, 3, 4}


def test_a_copy_gets_the_vectors_of_what_it_says_without_the_model(bench: PipelineBench) -> None:
    told(bench.store, long("tea"))
    bench.run()
    told(bench.store, long("tea"))
    before = len(bench.bag.read)
    assert bench.run().done == 2
    assert len(bench.bag.read) == before
    assert bench.parts()[2:] == [part_id(2, 0), part_id(2, 1)]


def test_words_divided_otherwise_are_no_copy(bench: PipelineBench) -> None:
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


def test_a_passage_without_words_is_done_and_not_found_for_ever(bench: PipelineBench) -> None:
    talk = told(bench.store, long("tea"))
    own = summary(bench.store, talk, " \n\t ")
    assert bench.run().done == 2
    assert own not in bench.passages()
    assert check(bench.store).problems == ()


def test_short_and_incomplete_turns_private_and_trashed_talks_are_left_out(
    bench: PipelineBench,
) -> None:
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
    bench: PipelineBench,
) -> None:
    told(bench.store, *(long(number) for number in range(130)))
    bench.settings.set("embedding_batch_size", 2048)
    bench.run()
    assert (max(bench.bag.batches), sum(bench.bag.batches)) == (100, 260)
    bench.pipeline.start_over()
    bench.bag.batches.clear()
    bench.settings.set("embedding_batch_size", 7)
    bench.run()
    assert (max(bench.bag.batches), sum(bench.bag.batches)) == (7, 260)


def test_nothing_is_embedded_twice(bench: PipelineBench) -> None:
    told(bench.store, *(long(number) for number in range(30)))
    bench.run()
    bench.run()
    assert len(bench.bag.read) == len(set(bench.bag.read)) == 60


def test_a_turn_that_ends_is_embedded_at_once_by_a_running_worker(
    store: Store, bench: PipelineBench
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


def test_two_spaces_stand_side_by_side_and_going_back_costs_nothing(bench: PipelineBench) -> None:
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


def test_a_change_in_mid_work_mixes_nothing(bench: PipelineBench) -> None:
    told(bench.store, *(long(number) for number in range(20)))
    bench.settings.set("embedding_batch_size", 5)
    first, second = bench.bag, BagOfWords("second", 16)

    def change(_: Sequence[str]) -> None:
        bench.embedder = second

    first.poison = change
    assert bench.run().done == 20
    assert bench.vectors.count("second")[0] == 20
    assert 0 < bench.vectors.count("bag_of_words")[0] < 20
    assert len(second.read) == 40, "nothing was embedded for nothing"
    assert check(bench.store).problems == ()


def test_what_one_embedder_set_aside_another_may_take(bench: PipelineBench) -> None:
    told(bench.store, long("poison"), long("tea"))
    bench.bag.poison = poisoned_by("poison")
    assert bench.run().set_aside == 1
    bench.embedder = BagOfWords("second", 16)
    status = bench.run()
    assert (status.done, status.set_aside) == (2, 0)


def test_a_space_of_another_dimension_blocks_with_what_to_do_until_it_is_rebuilt(
    bench: PipelineBench,
) -> None:
    told(bench.store, long("tea"))
    bench.run()
    told(bench.store, long("coffee"))
    bench.embedder = BagOfWords(dimension=16)
    status = bench.run()
    assert "gives 16 numbers" in status.last_error
    assert "rebuild" in status.last_error
    assert bench.vectors.count("bag_of_words") == (1, 2)
    bench.pipeline.start_over()
    assert bench.run().done == 2
    assert bench.vectors.spaces()[0].space.dimension == 16


def test_starting_over_tells_what_it_will_take_and_makes_all_anew(bench: PipelineBench) -> None:
    told(bench.store, long("tea"), long("coffee"))
    bench.run()
    pipeline = bench.pipeline
    redo = pipeline.redo()
    assert (redo.space, redo.vectors, redo.passages) == ("bag_of_words", 4, 2)
    assert redo.tokens > 30
    pipeline.start_over()
    assert bench.board.refresh()[0].done == 0
    assert bench.run().done == 2
    assert len(bench.bag.read) == 8


def test_one_kind_is_made_anew_while_the_others_stay(bench: PipelineBench) -> None:
    talk = told(bench.store, long("tea"))
    own = summary(bench.store, talk, "Tea")
    bench.run()
    begun_at = bench.vectors.spaces()[0].begun_at
    summaries = (PassageKind.CONVERSATION_SUMMARY,)
    redo = bench.pipeline.redo(summaries)
    assert (redo.vectors, redo.passages, redo.tokens) == (1, 1, 3)
    bench.pipeline.start_over(summaries)
    assert bench.passages() == {1}
    assert bench.vectors.spaces()[0].begun_at > begun_at  # what is loaded of it is loaded again
    read_before = len(bench.bag.read)
    assert bench.run().done == 2
    assert bench.passages() == {1, own}
    assert bench.bag.read[read_before:] == ["Tea"]


def test_its_card_names_the_conversation_and_its_warning_what_waits(bench: PipelineBench) -> None:
    told(bench.store, long("tea"), long("coffee"), title="Hot drinks")
    pipeline = bench.pipeline
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
