"""The embedding pipeline on a real store: chunks, spaces, failures, kills, spend limits, page rate."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from app.check import check
from app.domain.change_set import ChangeSet
from app.domain.changes import ConversationEdited, PassagesPut
from app.domain.chat import StoredProvider
from app.domain.errors import Cancelled, ConsentMissing, EmbedderUnavailable, KeyMissing
from app.domain.ids import PassageId, part_id
from app.domain.passages import Passage, PassageKind
from app.domain.records.documents import Chunk, DocumentText, manual_page, page_summary
from app.domain.workers import UsageTotals, WorkerState, WorkerStatus
from app.memory.search.embedders import EmbedderDirectory
from app.providers.embedders.local import LocalEmbedder
from app.providers.pricing.prices import OwnPrice, OwnPrices
from app.providers.registry import provider_registry
from app.storage.deletion.forget import forget
from app.storage.engine.store import Store
from app.storage.tables.attempts import Attempts
from app.storage.tables.documents import Documents
from app.storage.tables.passages.queries import Passages
from app.storage.tables.settings import Settings
from app.storage.tables.spending import Spending
from app.system.keys import KeyStore
from app.workers.board import WorkerBoard
from app.workers.job_interface import Blocked
from app.workers.jobs import JobParts, chunk_vectors
from app.workers.jobs.chunk_vectors import PageRateLimit
from app.workers.jobs.embedding_pipeline import EmbeddingPipeline
from app.workers.spend_limits import MaxUsage, SpendLimits
from tests.fakes.embedders import BagOfWords
from tests.fakes.fixtures import fixture_of
from tests.fakes.jobs import JumpingClock, hosted, until
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_embeddings import TOKENS_OF_A_TEXT
from tests.fakes.loopback_script import error
from tests.fakes.passages import spans_of
from tests.fakes.pipelines import NAME, PipelineBench, long, poisoned_by, spoiled
from tests.fakes.stored import AT, add_conversation, killed, opened
from tests.fakes.summarizers import summarized

NONSENSE = ["nan", "zeros", "fewer", "dimension", "nonsense"]


bench = fixture_of(PipelineBench, "store")


# -- what is embedded
def test_messages_and_summaries_get_vectors_once(bench: PipelineBench) -> None:
    talk = add_conversation(bench.store, long("tea"))
    own = summarized(bench.store, talk, "Tea", conversation=True)
    milk = add_conversation(bench.store, long("milk"))
    empty = summarized(bench.store, milk, " \n\t ", conversation=True)
    status = bench.run()
    assert bench.parts() == [part_id(each, part) for each, part in ((1, 0), (1, 1), (own, 0),
                                                                     (3, 0), (3, 1))]  # fmt: skip
    texts = {long(each) for each in ("tea", "milk")}
    assert set(bench.bag.read) == texts | {f"An answer to {each}" for each in texts} | {"Tea"}
    assert (status.done, status.total, status.completed, status.failed) == (4, 4, 4, 0)
    assert empty not in bench.passages()
    bench.run()
    assert len(bench.bag.read) == 5
    assert check(bench.store).problems == ()


def test_vectors_are_those_of_the_chunks_they_name(bench: PipelineBench) -> None:
    add_conversation(bench.store, " ".join(f"word{number}" for number in range(150)))
    bench.run()
    (text,) = Passages(bench.store).texts([1])
    words = {part.id: part.embedded for part in text.parts}
    (rows,) = bench.vectors.load(bench.embedder.space)
    assert len(rows.part_ids) == 6
    for part, (start, end), vector in zip(
        rows.part_ids, spans_of(bench.store, bench.embedder.space), rows.vectors, strict=True
    ):
        (wanted,) = bench.embedder.embed([words[part][start:end]])
        assert wanted @ vector == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("overlap", "second"), [(20, "word80"), (None, "word90")])
def test_chunks_follow_the_settings(bench: PipelineBench, overlap: int | None, second: str) -> None:
    """An overlap longer than a chunk counts as a tenth of it."""
    bench.embedder = BagOfWords(max_tokens=8000)
    bench.settings.set("turn_max_tokens", 100)
    if overlap is not None:
        bench.settings.set("turn_overlap_tokens", overlap)
    add_conversation(bench.store, " ".join(f"word{number}" for number in range(180)))
    assert bench.run().done == 1
    sizes = {text.split()[0]: len(text.split()) for text in bench.bag.read}
    assert sizes["word0"] == 100
    assert second in sizes


def test_the_newest_come_first_and_equal_texts_are_copied(bench: PipelineBench) -> None:
    bench.settings.set("embedding_batch_size", 2)
    for about in ("one", "two", "one", "three"):
        add_conversation(bench.store, long(about))
    bench.run()
    questions = [text for text in bench.bag.read if "answer" not in text]
    assert set(questions[:2]) == {long("three"), long("one")}
    assert questions[2:] == [long("two")]
    assert bench.passages() == {1, 2, 3, 4}
    add_conversation(bench.store, long("two"))
    before = len(bench.bag.read)
    assert bench.run().done == 5
    assert len(bench.bag.read) == before
    assert bench.parts()[-2:] == [part_id(5, 0), part_id(5, 1)]


def test_equal_hashes_of_different_messages_are_no_copy(bench: PipelineBench) -> None:
    """The hash covers the whole turn; the division into messages may still differ."""
    bench.settings.set("min_message_tokens", 0)
    first = add_conversation(bench.store, long("tea"))
    bench.run()
    second = add_conversation(bench.store, long("coffee"))
    same = f"(SELECT content_hash FROM passage WHERE source_id = {first.exchanges[0].id})"
    statement = f"UPDATE passage SET content_hash = {same} WHERE source_id = ?"
    bench.store.write_derived(
        lambda connection: connection.execute(statement, [second.exchanges[0].id])
    ).result()
    bench.run()
    assert long("coffee") in bench.bag.read


def test_short_turns_private_and_deleted_conversations_are_skipped(bench: PipelineBench) -> None:
    add_conversation(bench.store, "hi")
    add_conversation(bench.store, long("secret"), private=True)
    trashed = add_conversation(bench.store, long("trash"))
    bench.store.save(ConversationEdited(trashed.conversation.id, deleted_at=AT))
    assert bench.run().total == 0
    assert bench.bag.read == []
    bench.store.save(ConversationEdited(trashed.conversation.id, restored=True))
    bench.settings.set("min_message_tokens", 1)
    assert bench.run().done == 2


def test_a_batch_has_at_most_the_set_number_of_texts_or_100(bench: PipelineBench) -> None:
    add_conversation(bench.store, *(long(number) for number in range(110)))
    for setting, most in ((2048, 100), (7, 7)):
        bench.settings.set("embedding_batch_size", setting)
        bench.bag.batches.clear()
        bench.run()
        assert (max(bench.bag.batches), sum(bench.bag.batches)) == (most, 220)
        bench.pipeline.start_over()


def test_a_slow_server_gets_fewer_texts_at_once_and_a_fast_one_more(store: Store) -> None:
    pages = Pages(store, 0)
    add_conversation(store, *(long(number) for number in range(60)))
    seconds_a_text = iter([1.0] * 4 + [0.001] * 50)
    now_s = 0.0

    def work(texts: Sequence[str]) -> None:
        nonlocal now_s
        now_s += len(texts) * next(seconds_a_text)

    pages.embedder.poison = work
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(chunk_vectors, "monotonic", lambda: now_s)
        pages.run()
    assert pages.embedder.batches[:4] == [32, 10, 10, 10], "ten seconds each"
    later = pages.embedder.batches[4:]
    assert max(later) > 10
    assert all(each <= 2 * 10 * 2**place for place, each in enumerate(later)), "at most doubled"
    assert sum(pages.embedder.batches) == 120


def test_a_running_worker_embeds_a_turn_when_it_ends(store: Store, bench: PipelineBench) -> None:
    bench.settings.set("embedding_pipeline_poll_interval", 86_400)
    board = WorkerBoard(JobParts(store, bench.settings, embedder=lambda: bench.embedder), ())
    with hosted(board):
        until(lambda: board.statuses()[0].state is WorkerState.IDLE)
        add_conversation(store, long("tea"))
        until(lambda: board.statuses()[0].done == 1)
        add_conversation(store, "hi")
        bench.settings.set("min_message_tokens", 1)
        until(lambda: board.statuses()[0].done == 2)


# -- spaces
def test_spaces_are_kept_side_by_side_and_going_back_costs_nothing(bench: PipelineBench) -> None:
    add_conversation(bench.store, long("tea"), long("poison"))
    first = bench.bag
    first.poison = poisoned_by("poison")
    assert bench.run().abandoned == 1
    bench.embedder = second = BagOfWords("second", 16)
    assert bench.board.refresh()[0].done == 0
    status = bench.run()
    assert (status.done, status.abandoned) == (2, 0), "another model may accept the text"
    assert (bench.vectors.count("bag_of_words"), bench.vectors.count("second")) == ((1, 2), (2, 4))
    bench.embedder = first
    first.poison = lambda _: None
    read = len(first.read)
    assert bench.run().done == 2
    assert (len(first.read), len(second.read)) == (read + 2, 4)


def test_a_change_of_embedder_during_work_mixes_nothing(bench: PipelineBench) -> None:
    add_conversation(bench.store, *(long(number) for number in range(20)))
    bench.settings.set("embedding_batch_size", 5)
    first, second = bench.bag, BagOfWords("second", 16)

    def change(_: Sequence[str]) -> None:
        bench.embedder = second

    first.poison = change
    assert bench.run().done == 20
    assert bench.vectors.count("second")[0] == 20
    assert 0 < bench.vectors.count("bag_of_words")[0] < 20
    assert len(second.read) == 40, "no vector was thrown away"
    assert check(bench.store).problems == ()


def test_another_dimension_blocks_until_the_space_is_rebuilt(bench: PipelineBench) -> None:
    add_conversation(bench.store, long("tea"))
    bench.run()
    add_conversation(bench.store, long("coffee"))
    bench.embedder = BagOfWords(dimension=16)
    error = bench.run().last_error
    assert "16" in error
    assert "rebuild" in error
    assert bench.vectors.count("bag_of_words") == (1, 2)
    bench.pipeline.start_over()
    assert bench.run().done == 2
    assert bench.vectors.spaces()[0].space.dimension == 16


def test_all_or_one_kind_is_embedded_again_as_announced(bench: PipelineBench) -> None:
    tea = add_conversation(bench.store, long("tea"))
    own = summarized(bench.store, tea, "Tea", conversation=True)
    bench.run()
    begun_at = bench.vectors.spaces()[0].begun_at
    kinds = (PassageKind.CONVERSATION_SUMMARY,)
    amount = bench.pipeline.amount(kinds)
    assert (amount.vectors, amount.passages, amount.tokens) == (1, 1, 1)
    bench.pipeline.start_over(kinds)
    assert bench.passages() == {1}
    assert bench.vectors.spaces()[0].begun_at > begun_at  # a loaded index is loaded again
    read_before = len(bench.bag.read)
    assert bench.run().done == 2
    assert bench.passages() == {1, own}
    assert bench.bag.read[read_before:] == ["Tea"]
    amount = bench.pipeline.amount()
    assert (amount.space, amount.vectors, amount.passages) == ("bag_of_words", 3, 2)
    assert amount.tokens > 15
    bench.pipeline.start_over()
    assert bench.board.refresh()[0].done == 0
    assert bench.run().done == 2
    assert len(bench.bag.read) == 7


def test_items_are_named_by_conversation_and_waiting_ones_counted(bench: PipelineBench) -> None:
    add_conversation(bench.store, long("tea"), long("coffee"), title="Hot drinks")
    pipeline = bench.pipeline
    items = pipeline.find(bench.clock.now())
    assert {pipeline.describe(item) for item in items} == {"Hot drinks"}
    bench.run()
    bench.board.set_enabled(NAME, False)
    for about, count in (("milk", "1 passage not"), ("juice", "2 passages not")):
        add_conversation(bench.store, long(about))
        bench.board.refresh()
        (warning,) = bench.board.warnings()
        assert warning.startswith(count)


# -- failures
def test_a_bad_text_is_retried_alone_and_set_aside(bench: PipelineBench) -> None:
    bench.settings.set("embedding_batch_size", 10)
    add_conversation(bench.store, *(long(number) for number in range(20)), long("poison"))
    moments: list[float] = []

    def poison(texts: Sequence[str]) -> None:
        if all("poison" in text for text in texts):
            moments.append(bench.clock.monotonic())
        poisoned_by("An answer to a question about poison")(texts)

    bench.bag.poison = poison
    parts = JobParts(bench.store, bench.settings, lambda: bench.embedder, clock=bench.clock)
    bench.board = WorkerBoard(parts, (), jitter=lambda limit: limit)
    status = bench.run()
    assert (status.done, status.total, status.abandoned, status.failed) == (20, 21, 1, 1)
    assert bench.passages() == set(range(1, 21))
    assert [round(wait) for wait in np.diff(moments) if wait > 0.5] == [1, 2, 4, 8, 16, 32]
    tries = bench.settings.number("embedding_max_retries") + 1
    assert Attempts(bench.store, NAME).tries() == {21: tries}
    good = [text for text in bench.bag.read if "poison" not in text and text != "hello"]
    assert len(good) == len(set(good)) == 40, "good texts are embedded once"
    bench.bag.poison = lambda _: None
    bench.board.retry_failed(NAME)
    assert bench.run().done == 21


def test_invalid_vectors_isolate_a_text_or_block_the_worker(bench: PipelineBench) -> None:
    """They isolate the text if a plain word gets a vector, else they block."""
    bench.settings.set("embedding_max_retries", 0)
    for number, how in enumerate(NONSENSE, start=1):
        add_conversation(bench.store, long(f"{how} tea"), long(f"{how} poison"))
        bench.bag.spoil = spoiled(how, word="")
        status = bench.run()
        assert (status.done, status.abandoned) == (number - 1, number - 1)
        assert "bag_of_words" in status.last_error
        bench.bag.spoil = spoiled(how)
        status = bench.run()
        assert (status.done, status.abandoned) == (number, number)
    assert check(bench.store).problems == ()
    for rows in bench.vectors.load(bench.embedder.space):
        assert np.allclose(np.linalg.norm(rows.vectors, axis=1), 1, atol=1e-3)


@pytest.mark.parametrize(
    ("refusal", "is_probed"),
    [(EmbedderUnavailable("The folder is gone"), True),
     (ConsentMissing("Nobody agreed to that server"), False),
     (KeyMissing("There is no key"), False)],
)  # fmt: skip
def test_without_a_usable_embedder_the_worker_waits(
    bench: PipelineBench, refusal: Exception, is_probed: bool
) -> None:
    """What only the user can change is not tried until it changes."""
    add_conversation(bench.store, long("tea"))
    bench.refusal = refusal
    heard: list[WorkerStatus] = []
    bench.board.subscribe(heard.append)
    (status,) = bench.board.run_until_idle([NAME])
    assert (status.done, status.total, status.failed) == (0, 1, 0)
    assert str(refusal) in status.last_error
    blocked = [each for each in heard if each.state is WorkerState.BLOCKED]
    assert {each.next_attempt_at is not None for each in blocked} == {is_probed}
    bench.refusal = None
    assert "embedder_consent" in bench.pipeline.wakes_on
    bench.pipeline.note(ChangeSet(settings=frozenset(("embedder_consent",))))
    assert bench.run().done == 1


def test_a_kill_loses_nothing_and_doubles_nothing(bench: PipelineBench, tmp_path: Path) -> None:
    add_conversation(bench.store, *(long(number) for number in range(60)))
    bench.settings.set("embedding_batch_size", 20)
    roots: list[Path] = []

    def kill(_: Sequence[str]) -> None:
        if len(bench.bag.batches) in (1, 4):
            roots.append(killed(bench.store, tmp_path / f"killed {len(roots)}"))

    bench.bag.poison = kill
    bench.run()
    done = []
    for root in roots:
        with opened(root) as store:
            after = PipelineBench(store)
            done.append(after.board.refresh()[0].done)
            assert after.run().done == 60
            assert len(after.parts()) == 120
            assert check(store).problems == ()
    assert done[0] == 0 < done[1] < 60


def _forget_first(store: Store) -> None:
    forget(store, [store.read(lambda c: c.execute("SELECT id FROM conversation").fetchall())[0][0]])


def _replace_first(store: Store) -> None:
    ((exchange, conversation),) = store.read(
        lambda c: c.execute(
            "SELECT source_id, conversation_id FROM passage WHERE id = 1"
        ).fetchall()
    )
    fresh, kind = store.ids.passage(), PassageKind.TURN
    passage = Passage(fresh, kind, exchange, conversation, exchange, "other", AT, 30)
    store.save(PassagesPut((passage,), (PassageId(1),)))


@pytest.mark.parametrize(("change", "passages"), [(_forget_first, {2}), (_replace_first, {2, 3})])
def test_a_passage_deleted_or_replaced_while_it_is_embedded_keeps_no_vector(
    bench: PipelineBench, change: Callable[[Store], None], passages: set[int]
) -> None:
    add_conversation(bench.store, long("secret"))
    add_conversation(bench.store, long("tea"))

    def meanwhile(_: Sequence[str]) -> None:
        bench.bag.poison = lambda _: None
        change(bench.store)

    bench.bag.poison = meanwhile
    status = bench.run()
    assert status.done == status.total == len(passages)
    assert bench.passages() == passages


def test_the_cost_of_all_requests_is_recorded(bench: PipelineBench) -> None:
    add_conversation(bench.store, long("tea"), long("poison"))
    bench.settings.set("embedding_max_retries", 0)

    def pay(texts: Sequence[str]) -> None:
        bench.bag.usage = UsageTotals(10 * len(texts), 0.001 * len(texts))
        poisoned_by("poison")(texts)

    bench.bag.poison = pay
    status = bench.run()
    assert status.done == 1
    assert status.session == status.all_time == Spending(bench.store).totals(NAME)
    assert status.session.tokens == 10 * sum(bench.bag.batches)
    assert status.session.cost_usd == pytest.approx(0.001 * sum(bench.bag.batches))


LOCAL, REMOTE = "here:embed-model", "far:embed-model"
REACHED = "The limit of $1.00 per day is reached"


class Desk:
    """A board of the pipeline alone; the loopback server is provider `here`, `far` is remote."""

    def __init__(self, store: Store, server: Loopback) -> None:
        self.store, self.server = store, server
        self.settings = Settings(store)
        for name, url in (("here", server.v1), ("far", "https://far.example/v1")):
            self.settings.put_provider(StoredProvider(name, "compatible", url, None))
        self.embedders = EmbedderDirectory(
            self.settings, provider_registry(self.settings, KeyStore())
        )
        self.limits = SpendLimits(store, self.settings)
        active = self.embedders.active
        parts = JobParts(store, self.settings, active, limits=self.limits, clock=JumpingClock())
        self.board = WorkerBoard(parts, ())
        self.settings.set("spend_cap_daily_usd", 1.0)

    def price(self, model: str, input_usd: float) -> None:
        OwnPrices(self.settings).put(model, OwnPrice(input_usd, 0.0))

    def run(self) -> WorkerStatus:
        (status,) = self.board.run_until_idle([NAME])
        return status

    @property
    def spent_usd(self) -> float | None:
        return Spending(self.store).totals(NAME).cost_usd


desk = fixture_of(Desk, "store", "server", then="embedders.close")


def test_under_a_limit_a_remote_embedder_needs_a_price_and_a_local_one_does_not(desk: Desk) -> None:
    add_conversation(desk.store, long("tea"), long("coffee"))
    desk.embedders.choose(REMOTE, agreed=True)
    status = desk.run()
    assert (status.done, status.failed, status.abandoned) == (0, 0, 0)
    assert f"commonplace price set {REMOTE}" in status.last_error
    desk.embedders.choose(LOCAL)
    assert (desk.run().done, desk.spent_usd) == (2, 0.0)


def test_a_limit_stops_the_pipeline_before_it_is_exceeded(desk: Desk) -> None:
    add_conversation(desk.store, *(long(number) for number in range(6)))
    desk.settings.set("embedding_batch_size", 1)
    desk.embedders.choose(LOCAL)
    desk.price(LOCAL, 0.2 / TOKENS_OF_A_TEXT * 1e6)  # a text costs $0.20, as the server counts
    status = desk.run()
    assert REACHED in status.last_error
    assert 0 <= status.done < 6
    assert (status.failed, status.abandoned) == (0, 0)
    assert desk.spent_usd is not None
    assert desk.spent_usd <= 1.0
    asked = len(desk.server.posts)
    assert REACHED in desk.run().last_error
    assert len(desk.server.posts) == asked, "nothing more was sent"
    desk.settings.set("spend_cap_daily_usd", 50.0)
    assert desk.run().done == 6
    assert desk.spent_usd == pytest.approx(0.2 * len(desk.server.posts))


def test_reservations_of_other_workers_count_and_failed_requests_release_theirs(desk: Desk) -> None:
    add_conversation(desk.store, long("tea"))
    desk.embedders.choose(LOCAL)
    desk.price(LOCAL, 1.0)
    other = ("w", "another:model", MaxUsage(1, 1, 1.0))
    reservation = desk.limits.reserve(*other)
    assert REACHED in desk.run().last_error
    assert desk.server.posts == []
    desk.limits.release(reservation)
    desk.server.always(error(401, message="no such key"))
    assert desk.run().done == 0
    assert desk.server.posts
    reservation = desk.limits.reserve(*other)
    with pytest.raises(Blocked):
        desk.limits.reserve("w", "another:model", MaxUsage(1, 1, 0.01))


# -- manual pages
class Pages:
    """A board of the pipeline, with time that passes by sleeping alone."""

    def __init__(self, store: Store, count: int) -> None:
        self.now_s = 0.0
        self.embedder = BagOfWords()
        self.limit = PageRateLimit(lambda: self.now_s, self._sleep)
        settings = Settings(store)
        pipeline = EmbeddingPipeline(JobParts(store, settings, lambda: self.embedder), self.limit)
        self.board = WorkerBoard(JobParts(store, settings, clock=JumpingClock()), [pipeline])
        names = [f"page{number}" for number in range(count)]
        pages = [manual_page(name, "1", f"about {name}", "s", AT) for name in names]
        kept = Documents(store, PassageKind.MAN_PAGE)
        kept.replace_list(pages)
        kept.put(
            [
                DocumentText(page, [Chunk(f"The page {page.name} says this.", page_summary(page))])
                for page in pages
            ]
        )

    def _sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def run(self) -> tuple[int, int]:
        (status,) = self.board.run_until_idle([NAME])
        return status.done, status.total


def test_a_server_gets_ten_pages_a_request_and_ten_requests_a_minute(store: Store) -> None:
    pages = Pages(store, 205)
    assert pages.run() == (205, 205)
    assert pages.embedder.batches == [20] * 20 + [10], "each has a line and a text"
    assert 120 <= pages.now_s < 180
    assert not hasattr(LocalEmbedder, "take_usage"), "the built-in embedder is no server"


def test_a_full_minute_is_waited_for_unless_other_work_comes(store: Store) -> None:
    pages = Pages(store, 0)
    for _ in range(10):
        pages.limit.wait(lambda: False)
    assert pages.now_s == 0
    with pytest.raises(Cancelled):
        pages.limit.wait(lambda: True)
    pages.limit.wait(lambda: False)
    assert pages.now_s == pytest.approx(60, abs=0.2)


def test_turns_are_embedded_before_pages_and_at_full_speed(store: Store) -> None:
    pages = Pages(store, 130)
    add_conversation(store, *(long(number) for number in range(30)))
    embedder = pages.embedder
    said: list[float] = []

    def look(texts: Sequence[str]) -> None:
        if len(embedder.batches) == 11 and not said:
            said.append(pages.now_s)
            add_conversation(store, long("tea"))
        elif any("tea" in text for text in texts):
            said.append(pages.now_s)

    embedder.poison = look
    assert pages.run() == (161, 161)
    assert embedder.batches[:5] == [32, 28, 20, 20, 20]
    assert all("page" not in text for text in embedder.read[:60])
    assert said[1] - said[0] < 1, "a turn interrupts the wait of the pages"
