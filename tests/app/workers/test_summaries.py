"""The two summarizers on a real store: what they find, in which order, and what they skip."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationPut,
    ExchangePut,
    MessagesAdded,
    TagsChanged,
)
from app.domain.conversations import (
    Attachment,
    Block,
    Exchange,
    ExchangeStatus,
    Message,
    Role,
    TitleOrigin,
    ToolCall,
)
from app.domain.ids import new_uid, part_id
from app.domain.passages import PassageKind
from app.domain.workers import WorkerName, WorkerStatus
from app.memory.summaries import SummaryService, SummaryTarget
from app.storage.deletion.forget import forget, forget_messages
from app.storage.engine import migrations
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.passages.queries import Passages
from app.storage.tables.settings import Settings
from app.storage.tables.summaries import Summaries
from app.storage.work.summary_work import (
    CONVERSATION_SUMMARIES,
    EXCHANGE_SUMMARIES,
    SummaryWork,
    conversation_stamp,
)
from app.workers.board import WorkerBoard
from app.workers.job_interface import IsCancelled
from app.workers.jobs import JobParts
from tests.fakes.fixtures import fixture_of
from tests.fakes.jobs import JumpingClock, count_rows
from tests.fakes.stored import (
    AT,
    add_conversation,
    execute,
    killed,
    make_earlier,
    new_conversation,
    opened,
)
from tests.fakes.summarizers import ScriptedSummarizer, go_on, said_more

EXCHANGES, CONVERSATIONS = WorkerName.EXCHANGE_SUMMARIZER, WorkerName.CONVERSATION_SUMMARIZER
DAY = timedelta(days=1)


class Bench:
    """A board of both jobs with a scripted summarizer."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.settings = Settings(store)
        self.summarizer = ScriptedSummarizer()
        self.work = SummaryWork(store)
        self.clock = JumpingClock()
        self.conversations = Conversations(store)
        parts = JobParts(store, self.settings, clock=self.clock)
        self.opened, self.jobs = parts.open_conversation, self.summarizer.jobs(parts)
        self.board = WorkerBoard(parts, self.jobs)

    def run(self, *names: WorkerName) -> list[WorkerStatus]:
        return list(self.board.run_until_idle(names or None))

    def done(self, *names: WorkerName) -> list[tuple[int, int]]:
        return [(status.done, status.total) for status in self.run(*names)]

    def summary(self, kind: str, source_id: int) -> str | None:
        found = Summaries(self.store).latest(kind, [source_id]).get(source_id)
        return None if found is None else found.text

    def passages(self, kind: PassageKind, source_id: int) -> int:
        return len(Passages(self.store).of_source(kind, source_id))


bench = fixture_of(Bench, "store")


def test_exchanges_and_conversations_get_a_summary_and_its_passage_once(bench: Bench) -> None:
    talk = add_conversation(bench.store, "tea", "coffee")
    assert bench.done() == [(2, 2), (1, 1)]
    texts = [bench.summary("exchange", each.id) for each in talk.exchanges]
    assert texts == ["about tea", "about coffee"]
    assert bench.summary("conversation", talk.conversation.id) == "about tea coffee"
    passages = Passages(bench.store)
    counts = passages.count_by_kind()
    assert counts[PassageKind.EXCHANGE_SUMMARY] == 2
    assert counts[PassageKind.CONVERSATION_SUMMARY] == 1
    (of_exchange,) = passages.of_source(PassageKind.EXCHANGE_SUMMARY, talk.exchanges[0].id)
    (text,) = passages.texts([of_exchange])
    (part,) = text.parts
    assert (part.id, part.text, text.created_at) == (part_id(of_exchange, 0), "about tea", AT)
    bench.store.save(ExchangePut(talk.exchanges[0]))  # written again unchanged
    bench.run()
    assert len(bench.summarizer.read) == count_rows(bench.store, "summary") == 3


def test_the_newest_come_first(bench: Bench) -> None:
    add_conversation(bench.store, "one", "two", at=AT + DAY)
    add_conversation(bench.store, "three")
    bench.run(EXCHANGES)
    bench.run(CONVERSATIONS)
    assert bench.summarizer.read == ["three", "two", "one", "one two", "three"]


def test_work_goes_on_after_a_stop(data_dir: Path) -> None:
    with opened(data_dir) as store:
        before = Bench(store)
        add_conversation(store, *(f"question {number}" for number in range(150)))
        never = threading.Event()

        def enough() -> bool:
            return len(before.summarizer.read) > 110

        def wait_for_the_end(_: str, is_cancelled: IsCancelled) -> None:
            while enough() and not is_cancelled():
                never.wait(0.005)

        before.summarizer.before = wait_for_the_end
        before.board.run_until_idle([EXCHANGES], enough)
        assert 0 < count_rows(store, "summary") < 150
    with opened(data_dir) as store:
        after = Bench(store)
        assert after.done(EXCHANGES) == [(150, 150)]
        assert count_rows(store, "summary") == 150
        assert len({*before.summarizer.read, *after.summarizer.read}) == 150


def test_a_kill_loses_nothing_and_doubles_nothing(tmp_path: Path, bench: Bench) -> None:
    add_conversation(bench.store, *(f"question {number}" for number in range(220)))
    roots = {50: tmp_path / "first", 150: tmp_path / "second"}

    def kill(_: str, __: IsCancelled) -> None:
        if root := roots.get(len(bench.summarizer.read)):
            killed(bench.store, root)

    bench.summarizer.before = kill
    bench.run(EXCHANGES)
    for root, done in zip(roots.values(), (0, 100), strict=True):
        with opened(root) as store:
            after = Bench(store)
            assert after.board.refresh()[0].done >= done
            assert after.done(EXCHANGES) == [(220, 220)]
            assert count_rows(store, "summary") == 220
            assert count_rows(store, "passage", "kind = 'exchange_summary'") == 220


def test_what_grew_is_summarized_again_and_the_old_passage_removed(bench: Bench) -> None:
    talk = add_conversation(bench.store, "tea")
    own, exchange = talk.conversation.id, talk.exchanges[0]
    bench.run()
    grown = said_more(bench.store, talk, exchange, "one more thing")
    go_on(bench.store, talk.conversation, grown, "coffee")
    assert [each.done for each in bench.board.refresh()] == [0, 0]
    assert bench.done() == [(2, 2), (1, 1)]
    assert bench.summarizer.read.count("tea") == 3  # once as the whole conversation
    assert bench.summary("conversation", own) == "about tea coffee"
    assert bench.passages(PassageKind.CONVERSATION_SUMMARY, own) == 1
    assert bench.passages(PassageKind.EXCHANGE_SUMMARY, exchange.id) == 1
    assert count_rows(bench.store, "summary", "kind = 'conversation'") == 2  # the earlier is kept


def test_tries_that_failed_have_no_summary_beside_another(bench: Bench) -> None:
    def failed(turn: Exchange, messages: int) -> Exchange:
        again = replace(turn, id=bench.store.ids.exchange(), uid=new_uid(), completed_at=None)
        ids = turn.message_ids[:messages]
        return replace(again, status=ExchangeStatus.FAILED, message_ids=ids)

    (answered,) = add_conversation(bench.store, "tea").exchanges
    (unanswered,) = add_conversation(bench.store, "coffee").exchanges
    alone = replace(unanswered, status=ExchangeStatus.FAILED)
    tries = [failed(answered, 1), failed(answered, 2), failed(unanswered, 1)]
    bench.store.save(ExchangePut(alone), *map(ExchangePut, tries))
    assert bench.done(EXCHANGES) == [(1, 1)]
    assert bench.summary("exchange", answered.id) == "about tea"
    last = failed(unanswered, 2)
    bench.store.save(ExchangePut(last))
    assert bench.done(EXCHANGES) == [(2, 2)]
    assert bench.summary("exchange", last.id) == "about coffee"


def test_private_deleted_and_running_work_is_skipped(bench: Bench) -> None:
    add_conversation(bench.store, "secret", private=True)
    trashed = add_conversation(bench.store, "rubbish")
    bench.store.save(ConversationEdited(trashed.conversation.id, deleted_at=AT))
    for status in ExchangeStatus:
        talk = add_conversation(bench.store, status.value)
        bench.store.save(ExchangePut(replace(talk.exchanges[0], status=status)))
    assert bench.done() == [(3, 3), (3, 3)]
    assert set(bench.summarizer.read) == {"completed", "interrupted", "failed"}
    bench.store.save(ConversationEdited(trashed.conversation.id, restored=True))
    bench.run()
    assert bench.summarizer.read.count("rubbish") == 2


@pytest.mark.parametrize("change", ["private", "trash", "forgotten"])
def test_what_becomes_private_or_deleted_gets_no_summary(bench: Bench, change: str) -> None:
    own = add_conversation(bench.store, "tea").conversation.id

    def meanwhile(_: str, __: IsCancelled) -> None:
        bench.summarizer.before = lambda _, __: None
        if change == "forgotten":
            forget(bench.store, [own])
        else:
            edit: dict[str, object] = (
                {"private": True} if change == "private" else {"deleted_at": AT}
            )
            bench.store.save(ConversationEdited(own, **edit))  # type: ignore[arg-type]

    bench.summarizer.before = meanwhile
    bench.run(EXCHANGES)
    bench.run(CONVERSATIONS)
    assert count_rows(bench.store, "summary") == 0
    assert count_rows(bench.store, "passage", "kind LIKE '%summary'") == 0


@pytest.mark.parametrize("ends_by", ["leaving", "quiet"])
def test_the_open_conversation_waits_until_it_is_left_or_quiet(bench: Bench, ends_by: str) -> None:
    talk = add_conversation(bench.store, "tea", at=datetime.now(UTC))
    items = [(job, *job.find(bench.clock.now())) for job in bench.jobs]
    assert [job.describe(item) for job, item in items] == ["tea", "A talk"]
    bench.opened.id = talk.conversation.id
    bench.clock.pass_s(60)  # waiting for the next look passes some more
    assert bench.run()[0].total == 1
    assert bench.summarizer.read == []
    if ends_by == "leaving":
        bench.opened.id = None
    else:
        bench.clock.pass_s(5 * 60)
    bench.run()
    assert bench.summarizer.read == ["tea", "tea"]


def test_exchanges_and_conversations_below_the_minimum_are_no_work(bench: Bench) -> None:
    bench.settings.set("min_messages_for_exchange_summary", 3)
    bench.settings.set("min_exchanges_for_conversation_summary", 2)
    talk = add_conversation(bench.store, "tea")
    assert bench.done() == [(0, 0), (0, 0)]
    bench.settings.set("min_messages_for_exchange_summary", 2)
    go_on(bench.store, talk.conversation, talk.exchanges[0], "coffee")
    assert bench.done() == [(2, 2), (1, 1)]


def test_the_user_s_changes_during_a_summary_stay(bench: Bench) -> None:
    own = add_conversation(bench.store, "tea").conversation.id

    def meanwhile(_: str, __: IsCancelled) -> None:
        edited = ConversationEdited(own, title="Mine", title_origin=TitleOrigin.USER, pinned=True)
        bench.store.save(edited, TagsChanged(own, ("mine",)))

    bench.summarizer.before = meanwhile
    bench.run(CONVERSATIONS)
    stored = bench.conversations.get(own)
    assert (stored.title, stored.pinned) == ("Mine", True)
    assert bench.conversations.tags_of([own])[own] == ("mine",)
    assert bench.summary("conversation", own) == "about tea"


def test_of_a_conversation_60_turns_of_the_shown_path_are_read(bench: Bench) -> None:
    talk = add_conversation(bench.store, *(f"q{number}" for number in range(100)))
    go_on(bench.store, talk.conversation, talk.exchanges[0], "hidden", leaf=False)
    bench.run(CONVERSATIONS)
    (read,) = bench.summarizer.read
    words = read.split()
    assert (len(words), words[0], words[-1]) == (60, "q0", "q99")
    assert words == sorted(words, key=lambda word: int(word[1:]))


def test_failing_exchanges_are_set_aside_without_quoting_them(bench: Bench) -> None:
    add_conversation(bench.store, *(f"secret {number}" for number in range(20)))
    bench.summarizer.poison = {"3", "7"}
    (status,) = bench.run(EXCHANGES)
    assert (status.done, status.total) == (18, 20)
    assert (status.abandoned, status.failed, status.waiting_retry) == (2, 2, 0)
    where = "next_at IS NULL AND tries = 7 AND error LIKE '%RuntimeError%'"
    assert count_rows(bench.store, "attempt", where) == 2
    assert count_rows(bench.store, "attempt", "error LIKE '%secret%'") == 0
    assert any(text.startswith("2 items") for text in bench.board.warnings())
    again = Bench(bench.store).board.refresh()[0]
    assert (again.abandoned, again.failed) == (2, 0)  # seen by the next program too
    bench.summarizer.poison = set()
    bench.board.retry_failed(EXCHANGES)
    assert bench.done(EXCHANGES) == [(20, 20)]
    assert count_rows(bench.store, "attempt") == 0


def add_exchange(store: Store, blocks: Sequence[tuple[Role, Block | None]]) -> None:
    whole = new_conversation(store, "tea")
    messages: list[Message] = []
    for role, block in blocks:
        parent = messages[-1].id if messages else None
        content = () if block is None else (block,)
        messages.append(
            Message(
                store.ids.message(), new_uid(), whole.conversation.id, parent, role, content, AT
            )
        )
    ids = tuple(message.id for message in messages)
    changes: list[Change] = [ConversationPut(whole.conversation), MessagesAdded(tuple(messages))]
    store.save(*changes, ExchangePut(replace(whole.exchanges[0], message_ids=ids)))


def test_attachments_and_tool_calls_are_text_and_long_messages_are_cut(bench: Bench) -> None:
    attachment = Attachment("plan.txt", "text/plain", text="Build a house")
    call = ToolCall("1", "search", '{"query": "houses"}')
    add_exchange(bench.store, [(Role.USER, attachment), (Role.ASSISTANT, call)])
    add_conversation(bench.store, "start " + "x " * 200_000 + "end")
    ids = bench.work.missing(EXCHANGE_SUMMARIES, 10, 1, None, AT)
    huge, wordless = (each.turns[0] for each in bench.work.with_turns(EXCHANGE_SUMMARIES, ids))
    assert wordless.asked == "plan.txt"
    assert wordless.answered == "search(query: houses)"
    assert len(huge.asked) < 20_000
    assert huge.asked.startswith("start")
    assert huge.asked.endswith("end")


def test_an_empty_exchange_is_skipped_for_good(store: Store) -> None:
    add_exchange(store, [(Role.USER, None)])
    board = WorkerBoard(JobParts(store, Settings(store)))
    for _ in range(2):
        (status,) = board.run_until_idle([EXCHANGES])
        assert (status.completed, status.skipped, status.done, status.total) == (0, 1, 1, 1)
    assert Passages(store).count_by_kind() == {}


def test_queries_keep_their_limit_and_a_clock_set_back_delays_no_retry(bench: Bench) -> None:
    for number in range(12):
        add_conversation(bench.store, f"other {number}", "poison")
    assert len(bench.work.missing(EXCHANGE_SUMMARIES, 10, 1, None, AT)) == 10
    assert len(bench.work.missing(CONVERSATION_SUMMARIES, 10, 1, None, AT)) == 10
    bench.summarizer.poison = {"poison"}
    bench.clock.pass_s(10 * 24 * 3600)
    bench.board.run_until_idle([EXCHANGES], lambda: len(bench.summarizer.read) >= 24)
    assert len(bench.work.missing(EXCHANGE_SUMMARIES, 100, 1, None, datetime.now(UTC))) == 12


@pytest.mark.parametrize("ended_at", [AT, None], ids=["stopped", "killed before the reply"])
def test_an_update_of_the_program_keeps_summaries_of_turns_that_ended_otherwise(
    data_dir: Path, ended_at: datetime | None
) -> None:
    """Earlier versions counted only completed turns, in the stamps of summaries."""
    with opened(data_dir) as store:
        stopped, forgotten, grown = (
            add_conversation(store, f"tea {number}", "coffee", "milk") for number in range(3)
        )
        for talk in (stopped, forgotten, grown):
            last = replace(talk.exchanges[-1], completed_at=ended_at)
            store.save(ExchangePut(replace(last, status=ExchangeStatus.INTERRUPTED)))
        forget_messages(store, [forgotten.exchanges[0].message_ids[1]])
        for talk, count in ((stopped, 2), (forgotten, 2), (grown, 1)):
            own = talk.conversation.id
            SummaryService(store).write(SummaryTarget.CONVERSATION, own, "My own")
            former = conversation_stamp(talk.exchanges[:count])
            suffix = SummaryWork(store).stamp("conversation", own).split(":")[2:]
            stamp = ":".join([former, *suffix])
            assert len(suffix) == (talk is forgotten)
            change = f"UPDATE summary SET source_hash = '{stamp}' WHERE source_id = {own}"
            execute(store, f"{change} AND kind = 'conversation'")
        paths = store.paths
    make_earlier(paths.database, migrations.STEPS.index(migrations._STAMPS_OF_ENDED))
    with opened(data_dir) as store:
        bench = Bench(store)
        assert bench.done(CONVERSATIONS) == [(3, 3)]
        texts = [
            bench.summary("conversation", talk.conversation.id)
            for talk in (stopped, forgotten, grown)
        ]
        assert texts == ["My own", "My own", "about tea 2 coffee milk"]
