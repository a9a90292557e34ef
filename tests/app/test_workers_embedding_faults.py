"""The embedding pipeline when something goes wrong: texts, embedders, kills, changes meanwhile."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from app.check import check
from app.domain.changes import PassagesPut
from app.domain.errors import ConsentMissing, EmbedderUnavailable
from app.domain.events import Changed
from app.domain.ids import PassageId
from app.domain.passages import Passage, PassageKind
from app.domain.provider_errors import KeyMissing, TimedOut
from app.domain.workers import Ledger, WorkerState, WorkerStatus
from app.storage.attempts import Attempts
from app.storage.forget import forget
from app.storage.spending import Spending
from app.storage.store import Store
from app.workers.board import WorkerBoard
from tests.fakes.pipelines import NAME, PipelineBench, long, poisoned_by, spoiled
from tests.fakes.stored import AT, killed, opened, told


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "data") as made:
        yield made


@pytest.fixture
def bench(store: Store) -> PipelineBench:
    return PipelineBench(store)


def test_one_bad_text_does_not_hold_back_its_batch_and_is_set_aside(bench: PipelineBench) -> None:
    told(bench.store, *(long(number) for number in range(40)), long("poison"), long("last"))
    bench.bag.poison = poisoned_by("poison")
    status = bench.run()
    assert (status.done, status.total, status.set_aside, status.failed) == (41, 42, 1, 1)
    assert bench.passages() == set(range(1, 43)) - {41}
    tries = Attempts(bench.store, NAME).tries()
    assert tries == {41: bench.settings.number("embedding_max_retries") + 1}
    assert len(bench.bag.read) == len(set(bench.bag.read)) == 82, "good texts are embedded once"


def test_what_came_through_before_a_bad_text_is_not_embedded_again(bench: PipelineBench) -> None:
    bench.settings.set("embedding_batch_size", 10)
    told(bench.store, *(long(number) for number in range(9)), long("poison"))
    bench.bag.poison = poisoned_by("An answer to a question about poison")
    assert bench.run().done == 9
    questions = [text for text in bench.bag.read if "poison" not in text]
    assert len(questions) == len(set(questions)) == 18


def test_the_waits_of_a_bad_text_grow_to_32_s_and_it_may_be_tried_again(
    bench: PipelineBench,
) -> None:
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
        bench = PipelineBench(store)
        bench.settings.set("embedding_max_retries", 0)
        told(store, long("poison"), long("tea"))
        bench.bag.poison = poisoned_by("poison")
        assert bench.run().set_aside == 1
    with opened(tmp_path / "data") as store:
        later = PipelineBench(store)
        status = later.run()
        assert (status.done, status.set_aside, later.bag.read) == (1, 1, [])


@pytest.mark.parametrize("how", ["nan", "zeros", "fewer", "dimension", "nonsense"])
def test_a_text_that_gets_no_vector_is_isolated_and_nothing_bad_is_stored(
    bench: PipelineBench, how: str
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
    bench: PipelineBench, how: str
) -> None:
    told(bench.store, *(long(number) for number in range(50)))
    bench.settings.set("embedding_batch_size", 5)
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
    bench: PipelineBench, refusal: Exception
) -> None:
    told(bench.store, long("tea"))
    bench.refusal = refusal
    status = bench.run()
    assert (status.done, status.total, status.failed) == (0, 1, 0)
    assert str(refusal) in status.last_error
    bench.refusal = None
    assert bench.run().done == 1


@pytest.mark.parametrize(
    "refusal",
    [ConsentMissing("Nobody agreed to that server"), KeyMissing("There is no key")],
    ids=["no consent", "no key"],
)
def test_what_only_the_user_can_change_is_not_tried_until_it_changes(
    bench: PipelineBench, refusal: Exception
) -> None:
    told(bench.store, long("tea"))
    bench.refusal = refusal
    heard: list[WorkerStatus] = []
    bench.board.run_until_idle([NAME], on_status=heard.append)
    blocked = [status for status in heard if status.state is WorkerState.BLOCKED]
    assert blocked
    assert all(status.next_attempt_at is None for status in blocked)
    assert bench.pipeline.wakes_for(Changed(settings=frozenset(("embedder_consent",))))


def test_an_embedder_that_hangs_until_its_time_limit_blocks_after_three(
    bench: PipelineBench,
) -> None:
    told(bench.store, *(long(number) for number in range(10)))
    bench.bag.poison = poisoned_by("", TimedOut("It took too long"))
    status = bench.run()
    assert (status.done, status.set_aside) == (0, 0)
    assert "took too long" in status.last_error
    bench.bag.poison = lambda _: None
    assert bench.run().done == 10


def test_it_stops_between_two_batches_of_the_model(bench: PipelineBench) -> None:
    told(bench.store, *(long(number) for number in range(300)))
    (status,) = bench.board.run_until_idle(
        [NAME], is_cancelled=lambda: len(bench.bag.batches) >= 2
    )  # fmt: skip
    assert status.state is WorkerState.STOPPED
    assert 0 < status.done < 300
    assert status.failed == status.waiting_retry == 0
    assert bench.run().done == 300


def test_a_kill_between_writes_loses_nothing_and_doubles_nothing(
    bench: PipelineBench, tmp_path: Path
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
            after = PipelineBench(store)
            done.append(after.board.refresh()[0].done)
            assert after.run().done == 120
            assert len(after.parts()) == 240
            assert check(store).problems == ()
    assert done[0] == 0
    assert done[0] < done[1] < done[2] < 120


def test_a_conversation_forgotten_while_it_is_embedded_leaves_no_vector(
    bench: PipelineBench,
) -> None:
    secret = told(bench.store, long("secret")).conversation.id
    told(bench.store, long("tea"))

    def forget_it(_: Sequence[str]) -> None:
        forget(bench.store, [secret])

    bench.bag.poison = forget_it
    status = bench.run()
    assert (status.done, status.total) == (1, 1)
    assert bench.passages() == {2}
    assert check(bench.store).problems == ()


def test_a_turn_made_anew_while_it_is_embedded_is_embedded_as_it_is(bench: PipelineBench) -> None:
    whole = told(bench.store, long("tea"))

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
    bench: PipelineBench,
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
