"""The tool-call summariser on a real store: one line a call, off until asked for, paid once."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.domain.changes import ConversationEdited, ExchangePut, MessagesAdded
from app.domain.conversations import ToolCall
from app.domain.ids import new_uid
from app.domain.passages import PassageKind
from app.domain.workers import WorkerName, WorkerStatus
from app.storage.passages import Passages
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.summary_work import SummaryWork
from app.workers.board import WorkerBoard
from app.workers.open_conversation import OpenConversation
from app.workers.tool_lines import ToolLines
from app.workers.tool_summarizer import ToolSummarizer
from app.workers.wording import worker_words
from tests.fakes.background import ScriptedAsker
from tests.fakes.jobs import JumpingClock
from tests.fakes.stored import killed, opened
from tests.fakes.tool_turns import called

TOOLS = WorkerName.TOOL_SUMMARIZER


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "data") as made:
        yield made


class Bench:
    """A board with the tool-call summariser alone."""

    def __init__(self, store: Store, asker: ScriptedAsker | None = None) -> None:
        self.store = store
        settings = Settings(store)
        self.opened = OpenConversation(SummaryWork(store), settings)
        self.job = ToolSummarizer(store, ToolLines(asker), self.opened)
        self.board = WorkerBoard(store, settings, (self.job,), clock=JumpingClock())

    def run(self) -> WorkerStatus:
        (status,) = self.board.run_until_idle([TOOLS])
        return status

    def lines(self) -> list[str]:
        rows = self.store.read(
            lambda cursor: cursor.execute(
                "SELECT text FROM tool_summary ORDER BY message_id, call_number"
            ).fetchall()
        )
        return [text for (text,) in rows]


@pytest.fixture
def bench(store: Store) -> Bench:
    return Bench(store)


READ = ("read_file", '{"path": "notes.txt"}', "one\ntwo\nthree")


def test_it_is_off_until_it_is_switched_on(store: Store) -> None:
    called(store, READ)
    board = WorkerBoard(store, Settings(store))
    status = next(each for each in board.refresh() if each.name is TOOLS)
    assert (status.enabled, status.done, status.total) == (False, 0, 1)
    assert board.warnings() == (), "it is off by default: nothing is wrong"
    assert worker_words(status).counts == "0 of 1 \N{MIDDLE DOT} 1 waits"


def test_every_call_gets_one_line_with_its_passage(bench: Bench) -> None:
    called(
        bench.store,
        READ,
        ("delete", '{"path": "a", "force": true}', "No such file"),
        ("clock", "", "12:30"),
        ("clock", "", "12:30"),
        ("odd", "[1, 2", ""),
    )
    status = bench.run()
    assert bench.lines() == [
        "read_file path=notes.txt -> 3 lines",
        "delete path=a, force=True -> error: No such file",
        "clock -> 12:30",
        "clock -> 12:30",
        "odd [1, 2 -> nothing",
    ]
    assert (status.done, status.total) == (5, 5)
    ids = Passages(bench.store).of_kind(PassageKind.TOOL_SUMMARY)
    assert len(ids) == 5
    words = {text.parts[0].text for text in Passages(bench.store).texts(ids)}
    assert words == set(bench.lines())


def test_what_memory_gave_back_is_not_summed_up(bench: Bench) -> None:
    called(bench.store, ("memory_search", '{"query": "tea"}', "The user loves tea."))
    bench.run()
    assert bench.lines() == ["memory_search query=tea -> 19 characters"]


def test_private_and_deleted_conversations_are_left_out(bench: Bench) -> None:
    called(bench.store, READ, private=True)
    talk, _ = called(bench.store, READ)
    bench.store.save(
        ConversationEdited(talk.conversation.id, deleted_at=talk.messages[0].created_at)
    )
    assert bench.run().total == 0
    assert bench.lines() == []


def test_in_the_open_conversation_calls_wait_for_fifty_messages(bench: Bench) -> None:
    present = JumpingClock().now()
    talk, exchange = called(bench.store, READ)
    quiet = replace(
        talk.messages[0], id=bench.store.ids.message(), uid=new_uid(), created_at=present,
        parent_id=exchange.message_ids[-1],
    )  # fmt: skip
    bench.store.save(MessagesAdded((quiet,)))
    bench.opened.id = talk.conversation.id
    assert bench.job.find(present) == ()
    more = [
        replace(quiet, id=bench.store.ids.message(), uid=new_uid(), created_at=present)
        for _ in range(50)
    ]
    bench.store.save(MessagesAdded(tuple(more)))
    assert len(bench.job.find(present)) == 1


def test_ten_calls_are_one_request_and_nothing_is_paid_twice(store: Store) -> None:
    replies = [
        {"lines": [{"call": 1, "text": "Read the notes."}, {"call": 99, "text": "x"}]}
        for _ in range(3)
    ]
    asker = ScriptedAsker(*replies)
    bench = Bench(store, asker)
    called(store, *(READ for _ in range(12)))
    bench.run()
    assert len(asker.asked) == 2
    assert sorted(set(bench.lines())) == ["Read the notes.", "read_file path=notes.txt -> 3 lines"]
    bench.run()
    assert len(asker.asked) == 2


def test_a_kill_between_making_and_saving_loses_nothing(tmp_path: Path, bench: Bench) -> None:
    called(bench.store, READ, READ)
    made = bench.job.make(bench.job.find(JumpingClock().now()), lambda: False)
    before = killed(bench.store, tmp_path / "before")
    bench.job.save([made])
    after = killed(bench.store, tmp_path / "after")
    for root in (before, after):
        with opened(root) as found:
            other = Bench(found)
            other.run()
            assert len(other.lines()) == 2


def test_a_turn_tried_again_loses_the_lines_of_its_old_calls(bench: Bench) -> None:
    talk, exchange = called(bench.store, READ)
    bench.run()
    old = bench.store.read(
        lambda cursor: cursor.execute(
            "SELECT max(id) FROM message WHERE role = 'assistant'"
        ).fetchone()
    )
    assert old is not None
    fresh = replace(
        talk.messages[1], id=bench.store.ids.message(), uid=new_uid(),
        blocks=(ToolCall("n", "clock", "{}"),),
    )  # fmt: skip
    bench.store.save(
        MessagesAdded((fresh,)),
        ExchangePut(replace(exchange, message_ids=(exchange.message_ids[0], fresh.id))),
    )
    bench.run()
    passages = Passages(bench.store)
    words = passages.texts(passages.of_kind(PassageKind.TOOL_SUMMARY))
    assert [text.parts[0].text for text in words] == ["clock -> no answer"]
