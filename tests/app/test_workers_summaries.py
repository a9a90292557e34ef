"""The two summarisers on a real store: what they find, in which order, and what they leave alone."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.domain.changes import (
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
from app.storage.conversations import Conversations
from app.storage.forget import forget
from app.storage.passages import Passages
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.summaries import Summaries
from app.storage.summary_work import SummaryWork
from app.workers.board import WorkerBoard
from app.workers.conversation_summarizer import ConversationSummarizer
from app.workers.exchange_summarizer import ExchangeSummarizer
from app.workers.job import IsCancelled
from app.workers.open_conversation import OpenConversation
from tests.fakes.jobs import JumpingClock
from tests.fakes.stored import AT, Told, killed, opened, tell, told
from tests.fakes.summarisers import ScriptedSummariser, go_on, said_more

EXCHANGES, CONVERSATIONS = WorkerName.EXCHANGE_SUMMARIZER, WorkerName.CONVERSATION_SUMMARIZER


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "data") as made:
        yield made


class Bench:
    """A board with a scripted summariser on a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.settings = Settings(store)
        self.summariser = ScriptedSummariser()
        self.opened = OpenConversation(SummaryWork(store), self.settings)
        self.clock = JumpingClock()
        parts = (store, self.settings, self.summariser, self.opened)
        self.board = WorkerBoard(
            store,
            self.settings,
            (ExchangeSummarizer(*parts), ConversationSummarizer(*parts)),
            clock=self.clock,
        )

    def run(self, *names: WorkerName) -> dict[WorkerName, WorkerStatus]:
        return {status.name: status for status in self.board.run_until_idle(names or None)}

    def summary(self, kind: str, source_id: int) -> str | None:
        found = Summaries(self.store).latest(kind, [source_id]).get(source_id)
        return None if found is None else found.text

    def count(self, table: str, condition: str = "true") -> int:
        rows = self.store.read(
            lambda cursor: cursor.execute(
                f"SELECT count(*) FROM {table} WHERE {condition}"
            ).fetchone()
        )
        return int(rows[0]) if rows else 0


@pytest.fixture
def bench(store: Store) -> Bench:
    return Bench(store)


def test_every_exchange_and_conversation_gets_its_summary_and_its_passage(bench: Bench) -> None:
    talk = told(bench.store, "tea", "coffee")
    status = bench.run()
    assert [bench.summary("exchange", each.id) for each in talk.exchanges] == [
        "about tea",
        "about coffee",
    ]
    assert bench.summary("conversation", talk.conversation.id) == "about tea coffee"
    counts = Passages(bench.store).count_by_kind()
    assert counts[PassageKind.EXCHANGE_SUMMARY] == 2
    assert counts[PassageKind.CONVERSATION_SUMMARY] == 1
    assert (status[EXCHANGES].done, status[EXCHANGES].total) == (2, 2)
    assert (status[CONVERSATIONS].done, status[CONVERSATIONS].total) == (1, 1)


def test_a_summary_s_passage_is_found_by_its_words_and_bears_the_date_of_what_it_is_about(
    bench: Bench,
) -> None:
    talk = told(bench.store, "tea")
    bench.run()
    passages = Passages(bench.store)
    (of_exchange,) = passages.of_source(PassageKind.EXCHANGE_SUMMARY, talk.exchanges[0].id)
    (text,) = passages.texts([of_exchange])
    (part,) = text.parts
    assert (part.id, part.text, text.created_at) == (part_id(of_exchange, 0), "about tea", AT)


def test_the_newest_exchanges_come_first(bench: Bench) -> None:
    told(bench.store, "one", "two")
    told(bench.store, "three")
    bench.run(EXCHANGES)
    assert bench.summariser.read == ["three", "two", "one"]


def test_the_conversation_changed_last_comes_first(bench: Bench) -> None:
    told(bench.store, "newer", at=AT + timedelta(days=1))
    told(bench.store, "older")
    bench.run(CONVERSATIONS)
    assert bench.summariser.read == ["newer", "older"]


def test_nothing_is_summarised_twice(bench: Bench) -> None:
    for number in range(30):
        told(bench.store, f"question {number}", "and then")
    bench.run()
    bench.run()
    assert len(bench.summariser.read) == 90
    assert bench.count("summary") == 90
    assert bench.count("passage", "kind LIKE '%summary'") == 90


def test_a_new_program_goes_on_where_the_last_one_was_killed(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as store:
        before = Bench(store)
        told(store, *(f"question {number}" for number in range(250)))
        never = threading.Event()

        def enough() -> bool:
            return len(before.summariser.read) > 120

        def wait_for_the_end(_: str, is_cancelled: IsCancelled) -> None:
            while enough() and not is_cancelled():
                never.wait(0.005)

        before.summariser.before = wait_for_the_end
        before.board.run_until_idle([EXCHANGES], enough)
        assert 0 < before.count("summary") < 250
    with opened(tmp_path / "data") as store:
        after = Bench(store)
        status = after.run(EXCHANGES)[EXCHANGES]
        assert (status.done, status.total) == (250, 250)
        assert after.count("summary") == 250
        assert set(before.summariser.read) | set(after.summariser.read) == {
            f"question {number}" for number in range(250)
        }


def test_a_kill_in_the_middle_loses_nothing_and_doubles_nothing(
    tmp_path: Path, bench: Bench
) -> None:
    told(bench.store, *(f"question {number}" for number in range(300)))
    kills = (50, 150, 250)
    roots = [tmp_path / f"killed at {kill}" for kill in kills]

    def kill(_: str, __: IsCancelled) -> None:
        if len(bench.summariser.read) in kills:
            killed(bench.store, roots[kills.index(len(bench.summariser.read))])

    bench.summariser.before = kill
    bench.run(EXCHANGES)
    for root, done in zip(roots, (0, 100, 200), strict=True):
        with opened(root) as store:
            after = Bench(store)
            assert after.board.refresh()[0].done >= done
            assert after.run(EXCHANGES)[EXCHANGES].done == 300
            assert after.count("summary") == 300
            assert after.count("passage", "kind = 'exchange_summary'") == 300


def test_a_conversation_that_went_on_is_summarised_anew_and_the_old_passage_leaves(
    bench: Bench,
) -> None:
    talk = told(bench.store, "tea")
    bench.run()
    go_on(bench.store, talk.conversation, talk.exchanges[0], "coffee")
    assert bench.board.refresh()[1].done == 0
    bench.run()
    assert bench.summary("conversation", talk.conversation.id) == "about tea coffee"
    kind = PassageKind.CONVERSATION_SUMMARY
    assert len(Passages(bench.store).of_source(kind, talk.conversation.id)) == 1
    assert bench.count("summary", "kind = 'conversation'") == 2  # the earlier one is kept


def test_an_exchange_that_grew_is_summarised_anew(bench: Bench) -> None:
    talk = told(bench.store, "tea")
    bench.run(EXCHANGES)
    said_more(bench.store, talk, talk.exchanges[0], "one more thing")
    status = bench.run(EXCHANGES)[EXCHANGES]
    assert bench.summariser.read == ["tea", "tea"]
    assert (status.done, status.total) == (1, 1)
    kind = PassageKind.EXCHANGE_SUMMARY
    assert len(Passages(bench.store).of_source(kind, talk.exchanges[0].id)) == 1


def test_an_exchange_written_again_unchanged_is_left_as_it_is(bench: Bench) -> None:
    talk = told(bench.store, "tea")
    bench.run(EXCHANGES)
    bench.store.save(ExchangePut(talk.exchanges[0]))
    bench.run(EXCHANGES)
    assert bench.summariser.read == ["tea"]


def test_private_conversations_and_the_trash_are_left_alone(bench: Bench) -> None:
    told(bench.store, "secret", private=True)
    trashed = told(bench.store, "rubbish")
    bench.store.save(ConversationEdited(trashed.conversation.id, deleted_at=AT))
    told(bench.store, "tea")
    status = bench.run()
    assert bench.summariser.read.count("tea") == 2
    assert set(bench.summariser.read) == {"tea"}
    assert (status[EXCHANGES].total, status[CONVERSATIONS].total) == (1, 1)
    bench.store.save(ConversationEdited(trashed.conversation.id, restored=True))
    bench.run()
    assert bench.summariser.read.count("rubbish") == 2


@pytest.mark.parametrize("status", [each for each in ExchangeStatus if each != "completed"])
def test_an_exchange_that_is_not_completed_is_left_alone(
    bench: Bench, status: ExchangeStatus
) -> None:
    talk = told(bench.store, "tea")
    bench.store.save(ExchangePut(replace(talk.exchanges[0], status=status)))
    assert all(each.total == 0 for each in bench.run().values())
    assert bench.summariser.read == []


@pytest.mark.parametrize("change", ["private", "trash", "forgotten"])
def test_what_becomes_private_or_goes_while_it_is_summarised_gets_no_summary(
    bench: Bench, change: str
) -> None:
    talk = told(bench.store, "tea")

    def meanwhile(_: str, __: IsCancelled) -> None:
        if change == "private":
            bench.store.save(ConversationEdited(talk.conversation.id, private=True))
        elif change == "trash":
            bench.store.save(ConversationEdited(talk.conversation.id, deleted_at=AT))
        else:
            forget(bench.store, [talk.conversation.id])

    bench.summariser.before = meanwhile
    bench.run(EXCHANGES)
    bench.summariser.before = lambda _, __: None
    bench.run(CONVERSATIONS)
    assert bench.count("summary") == 0
    assert bench.count("passage", "kind LIKE '%summary'") == 0


def test_the_open_conversation_waits_until_it_is_left(bench: Bench) -> None:
    talk = told(bench.store, "tea", at=datetime.now(UTC))
    bench.opened.id = talk.conversation.id
    status = bench.run()
    assert bench.summariser.read == []
    assert status[EXCHANGES].total == 1
    bench.opened.id = None
    bench.run()
    assert bench.summariser.read == ["tea", "tea"]


def test_the_open_conversation_is_summarised_once_it_has_been_quiet(bench: Bench) -> None:
    talk = told(bench.store, "tea", at=datetime.now(UTC))
    bench.opened.id = talk.conversation.id
    bench.clock.pass_s(60)  # waiting for the next look passes some more
    bench.run()
    assert bench.summariser.read == []
    bench.clock.pass_s(5 * 60)
    bench.run()
    assert len(bench.summariser.read) == 2


def test_exchanges_and_conversations_below_the_minimum_are_no_work(bench: Bench) -> None:
    bench.settings.set("min_messages_for_exchange_summary", 3)
    bench.settings.set("min_exchanges_for_conversation_summary", 2)
    talk = told(bench.store, "tea")
    assert all(each.total == 0 for each in bench.run().values())
    bench.settings.set("min_messages_for_exchange_summary", 2)
    go_on(bench.store, talk.conversation, talk.exchanges[0], "coffee")
    status = bench.run()
    assert (status[EXCHANGES].done, status[CONVERSATIONS].done) == (2, 1)


def test_a_title_of_first_words_gets_better_and_its_place_in_the_list_stays(bench: Bench) -> None:
    talk = told(bench.store, "tea", title="tea tea tea")
    bench.run(CONVERSATIONS)
    conversation = Conversations(bench.store).get(talk.conversation.id)
    assert conversation.title == "Title of tea"
    assert conversation.title_origin is TitleOrigin.SUMMARISER
    assert conversation.updated_at == talk.conversation.updated_at


@pytest.mark.parametrize("origin", [TitleOrigin.USER, TitleOrigin.IMPORT])
def test_a_title_by_the_user_or_an_import_is_never_overwritten(
    bench: Bench, origin: TitleOrigin
) -> None:
    talk = tell(bench.store, "tea", title="Mine")
    head = replace(talk.conversation, title_origin=origin)
    bench.store.save(ConversationPut(head), *talk.changes[1:])
    bench.run(CONVERSATIONS)
    assert Conversations(bench.store).get(head.id).title == "Mine"


def test_what_the_user_does_while_a_conversation_is_summarised_stays_done(bench: Bench) -> None:
    talk = told(bench.store, "tea")
    own = talk.conversation.id

    def meanwhile(_: str, __: IsCancelled) -> None:
        title, by_user = "Mine", TitleOrigin.USER
        bench.store.save(ConversationEdited(own, title=title, title_origin=by_user, pinned=True))
        bench.store.save(TagsChanged(own, ("mine",)))

    bench.summariser.before = meanwhile
    bench.run(CONVERSATIONS)
    conversation = Conversations(bench.store).get(own)
    assert (conversation.title, conversation.pinned) == ("Mine", True)
    assert Conversations(bench.store).tags_of([own])[own] == ("mine",)
    assert bench.summary("conversation", own) == "about tea"


def test_tags_are_given_once_and_only_where_there_are_none(bench: Bench) -> None:
    plain = told(bench.store, "tea")
    tagged = told(bench.store, "coffee")
    bench.store.save(TagsChanged(tagged.conversation.id, ("mine",)))
    bench.run(CONVERSATIONS)
    ids = [plain.conversation.id, tagged.conversation.id]
    assert Conversations(bench.store).tags_of(ids) == {ids[0]: ("automatic",), ids[1]: ("mine",)}
    bench.store.save(TagsChanged(ids[0], removed=("automatic",)))
    go_on(bench.store, plain.conversation, plain.exchanges[0], "more tea")
    bench.run(CONVERSATIONS)
    assert Conversations(bench.store).tags_of(ids) == {ids[1]: ("mine",)}


def test_only_the_shown_path_is_told(bench: Bench) -> None:
    talk = told(bench.store, "tea", "coffee")
    go_on(bench.store, talk.conversation, talk.exchanges[0], "cocoa", leaf=False)
    bench.run(CONVERSATIONS)
    assert bench.summariser.read == ["tea coffee"]


def test_a_long_conversation_is_read_in_part_first_and_last_turn_included(bench: Bench) -> None:
    told(bench.store, *(f"q{number}" for number in range(300)))
    bench.run(CONVERSATIONS)
    (read,) = bench.summariser.read
    words = read.split()
    assert len(words) == 60
    assert (words[0], words[-1]) == ("q0", "q299")
    assert words == sorted(words, key=lambda word: int(word[1:]))


def test_a_poison_exchange_is_set_aside_and_seen_while_the_others_finish(bench: Bench) -> None:
    told(bench.store, *(f"question {number}" for number in range(150)))
    bench.summariser.poison = {"3", "77"}
    status = bench.run(EXCHANGES)[EXCHANGES]
    assert (status.done, status.total) == (148, 150)
    assert (status.set_aside, status.failed, status.waiting_retry) == (2, 2, 0)
    assert bench.count("attempt", "next_at IS NULL AND tries = 7") == 2
    assert any("2 items were set aside" in words for words in bench.board.warnings())
    again = Bench(bench.store).board.refresh()[0]
    assert (again.set_aside, again.failed) == (2, 0)  # still seen by the next program
    bench.summariser.poison = set()
    bench.board.retry_set_aside(EXCHANGES)
    assert bench.run(EXCHANGES)[EXCHANGES].done == 150
    assert bench.count("attempt") == 0


def test_errors_that_are_kept_quote_no_conversation(bench: Bench) -> None:
    told(bench.store, "secret poison")
    bench.summariser.poison = {"poison"}
    bench.run(EXCHANGES)
    assert bench.count("attempt", "error LIKE '%secret%'") == 0
    assert bench.count("attempt", "error LIKE '%RuntimeError%'") == 1


def test_exchanges_without_prose_are_told_by_what_they_hold(bench: Bench) -> None:
    attachment = Attachment("plan.txt", "text/plain", text="Build a house")
    call = ToolCall("1", "search", '{"query": "houses"}')
    wordless_exchange(bench.store, [(Role.USER, attachment), (Role.ASSISTANT, call)])
    (waiting,) = SummaryWork(bench.store).exchanges(
        SummaryWork(bench.store).exchange_ids(10, 1, None, AT)
    )
    assert waiting.words.asked == "plan.txt\nBuild a house"
    assert waiting.words.answered == "search(query: houses)"


def test_an_exchange_with_nothing_to_tell_is_skipped_and_not_looked_at_again(store: Store) -> None:
    wordless_exchange(store, [])
    settings = Settings(store)
    board = WorkerBoard(store, settings)
    (status,) = board.run_until_idle([EXCHANGES])
    assert (status.completed, status.skipped, status.done, status.total) == (0, 1, 1, 1)
    (again,) = board.run_until_idle([EXCHANGES])
    assert again.skipped == 1
    assert Passages(store).count_by_kind() == {}


def test_a_huge_message_is_read_at_both_ends_only(store: Store) -> None:
    told(store, "start " + "x " * 200_000 + "end")
    work = SummaryWork(store)
    (waiting,) = work.exchanges(work.exchange_ids(10, 1, None, AT))
    assert len(waiting.words.asked) < 20_000
    assert waiting.words.asked.startswith("start")
    assert waiting.words.asked.endswith("end")


def test_the_limit_of_a_query_holds_while_tables_are_empty(store: Store) -> None:
    told(store, *(f"question {number}" for number in range(40)))
    for number in range(40):
        told(store, f"other {number}")
    work = SummaryWork(store)
    assert len(work.exchange_ids(10, 1, None, AT)) == 10
    assert len(work.conversations(10, 1, None, AT)) == 10


def test_a_clock_set_back_does_not_hold_a_retry_for_days(bench: Bench) -> None:
    told(bench.store, "poison")
    bench.summariser.poison = {"poison"}
    bench.clock.pass_s(10 * 24 * 3600)
    bench.board.run_until_idle([EXCHANGES], lambda: bool(bench.summariser.read))
    work = SummaryWork(bench.store)
    assert len(work.exchange_ids(10, 1, None, datetime.now(UTC))) == 1


def wordless_exchange(store: Store, blocks: Sequence[tuple[Role, Block | None]]) -> Told:
    whole = tell(store, "tea")
    parent = None
    messages = []
    for role, block in blocks or ((Role.USER, None),):
        message = Message(
            store.ids.message(), new_uid(), whole.conversation.id, parent, role,
            () if block is None else (block,), AT,
        )  # fmt: skip
        messages.append(message)
        parent = message.id
    exchange: Exchange = replace(
        whole.exchanges[0], message_ids=tuple(message.id for message in messages)
    )
    store.save(
        ConversationPut(whole.conversation), MessagesAdded(tuple(messages)), ExchangePut(exchange)
    )
    return whole
