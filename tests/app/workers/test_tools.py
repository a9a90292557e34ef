"""The tool-call summarizer on a real store: one line for each call, off by default, paid once."""

from dataclasses import replace
from pathlib import Path

from app.domain.changes import ConversationEdited, ExchangePut, MessagesAdded
from app.domain.conversations import ToolCall
from app.domain.ids import new_uid
from app.domain.passages import PassageKind
from app.domain.workers import WorkerName, WorkerStatus
from app.storage.engine.store import Store
from app.storage.tables.passages.queries import Passages
from app.storage.tables.settings import Settings
from app.workers.board import WorkerBoard
from app.workers.jobs import JobParts
from app.workers.jobs.tool_summarizer import ToolSummarizer
from tests.fakes.background import ScriptedAsker
from tests.fakes.fixtures import fixture_of
from tests.fakes.jobs import JumpingClock
from tests.fakes.stored import AT, killed, opened
from tests.fakes.tool_turns import called

TOOLS = WorkerName.TOOL_SUMMARIZER
READ = ("read_file", '{"path": "notes.txt"}', "one\ntwo\nthree")
READ_LINE = "read_file path=notes.txt -> 3 lines"


class Bench:
    """A board with the tool-call summarizer alone."""

    def __init__(self, store: Store, asker: ScriptedAsker | None = None) -> None:
        self.store = store
        parts = JobParts(store, Settings(store), model=asker, clock=JumpingClock())
        self.job = ToolSummarizer(parts)
        self.board = WorkerBoard(parts, (self.job,))

    def run(self) -> WorkerStatus:
        (status,) = self.board.run_until_idle([TOOLS])
        return status

    def lines(self) -> list[str]:
        statement = "SELECT text FROM tool_summary ORDER BY message_id, call_number"
        rows = self.store.read(lambda cursor: cursor.execute(statement).fetchall())
        return [text for (text,) in rows]

    def passages(self) -> list[str]:
        passages = Passages(self.store)
        texts = passages.texts(passages.of_kind(PassageKind.TOOL_SUMMARY))
        return sorted(text.parts[0].text for text in texts)


bench = fixture_of(Bench, "store")


def test_it_is_off_by_default_without_a_warning(store: Store) -> None:
    called(store, READ)
    board = WorkerBoard(JobParts(store, Settings(store)))
    status = next(each for each in board.refresh() if each.name is TOOLS)
    assert (status.enabled, status.done, status.total) == (False, 0, 1)
    assert board.warnings() == ()


def test_every_call_gets_one_line_with_its_passage(bench: Bench) -> None:
    calls = {
        READ: READ_LINE,
        ("delete", '{"path": "a", "force": true}', "No such file"):
            "delete path=a, force=True -> error: No such file",
        ("clock", "", "12:30"): "clock -> 12:30",
        ("odd", "[1, 2", ""): "odd [1, 2 -> nothing",
        ("many", '{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}', "x" * 81):
            "many a=1, b=2, c=3, d=4, … -> 81 characters",
        ("memory_search", '{"query": "tea"}', "The user loves tea."):
            "memory_search query=tea -> 19 characters",
    }  # fmt: skip
    called(bench.store, *calls, ("clock", "", "12:30"))
    status = bench.run()
    assert bench.lines() == [*calls.values(), "clock -> 12:30"]
    assert (status.done, status.total) == (7, 7)
    assert bench.passages() == sorted(bench.lines())


def test_private_and_deleted_conversations_are_skipped(bench: Bench) -> None:
    called(bench.store, READ, private=True)
    talk, _ = called(bench.store, READ)
    bench.store.save(ConversationEdited(talk.conversation.id, deleted_at=AT))
    assert bench.run().total == 0
    assert bench.lines() == []


def test_ten_calls_are_one_request_and_nothing_is_paid_twice(store: Store) -> None:
    reply = {"lines": [{"call": 1, "text": "Read the notes."}, {"call": 99, "text": "x"}]}
    asker = ScriptedAsker(reply, reply, reply)
    bench = Bench(store, asker)
    called(store, *(READ for _ in range(12)))
    for _ in range(2):
        bench.run()
        assert len(asker.asked) == 2
    assert sorted(set(bench.lines())) == ["Read the notes.", READ_LINE]


def test_a_kill_between_making_and_saving_loses_nothing(tmp_path: Path, bench: Bench) -> None:
    called(bench.store, READ, READ)
    items = bench.job.find(JumpingClock().now())
    assert {bench.job.describe(each) for each in items} == {"read_file"}
    made = bench.job.make(items, lambda: False)
    before = killed(bench.store, tmp_path / "before")
    bench.job.save([made])
    for root in (before, killed(bench.store, tmp_path / "after")):
        with opened(root) as found:
            other = Bench(found)
            other.run()
            assert len(other.lines()) == 2


def test_a_regenerated_turn_loses_the_lines_of_its_old_calls(bench: Bench) -> None:
    talk, exchange = called(bench.store, READ)
    bench.run()
    fresh = replace(
        talk.messages[1], id=bench.store.ids.message(), uid=new_uid(),
        blocks=(ToolCall("n", "clock", "{}"),),
    )  # fmt: skip
    ids = (exchange.message_ids[0], fresh.id)
    bench.store.save(MessagesAdded((fresh,)), ExchangePut(replace(exchange, message_ids=ids)))
    bench.run()
    assert bench.passages() == ["clock -> no answer"]
