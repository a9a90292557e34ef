"""The check finds every kind of thing that can be wrong, and mends what is derived."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.check import check
from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationForgotten,
    DraftPut,
    ExchangePut,
    ExtractionDone,
    FactPut,
    MemoryPut,
    MessagesAdded,
    OriginsAdded,
    PassagesPut,
    PromptKept,
    SpendAdded,
    SummaryPut,
    TagsChanged,
    ToolSummaryPut,
)
from app.domain.conversations import Message, Role, Text
from app.domain.facts import BY_PATTERNS, Fact, FactCategory, Memory
from app.domain.ids import new_uid
from app.domain.passages import Passage, PassageKind
from app.domain.recalls import (
    KeptPrompt,
    Piece,
    PlanPart,
    PlanPartKind,
    RecalledItem,
    RecallLayer,
)
from app.domain.turns import calculate_exchanges
from app.storage.database import Connection
from app.storage.integrity import Broken, broken_in
from app.storage.integrity_rules import RULES
from app.storage.passages import Passages
from app.storage.rule import Rule
from app.storage.store import Store
from tests.fakes.stored import AT, Told, asked, grow, killed, opened, tables, tell, told

# What is done to the tables, what the check then says, and whether it can be mended.
WRONGS = [
    ("UPDATE message SET conversation_id = 99 WHERE id = 2", "The message 2 belongs to a conversation", False),
    ("UPDATE message SET parent_id = 999 WHERE id = 3", "The message 3 has a parent that does not exist", False),
    ("UPDATE message SET parent_id = 1 WHERE id = 5", "The message 5 and its parent are of two", False),
    ("UPDATE message SET parent_id = 1 WHERE id = 4", "The messages of exchange 2 do not follow", False),
    ("UPDATE message SET uid = (SELECT uid FROM message WHERE id = 1) WHERE id = 2", "is that of two messages", False),
    ("DELETE FROM exchange_message WHERE message_id = 4", "The message 4 is part of no exchange", False),
    ("UPDATE conversation SET uid = 'same'", "The uid same is that of two conversations", False),
    ("UPDATE conversation SET visible_leaf_id = 5 WHERE id = 1", "The conversation 1 shows a message that is not", True),
    ("UPDATE conversation SET visible_leaf_id = NULL WHERE id = 1", "The conversation 1 shows a message that is not", True),
    ("UPDATE exchange SET conversation_id = 99 WHERE id = 3", "The exchange 3 belongs to a conversation", False),
    ("UPDATE exchange SET parent_id = 99 WHERE id = 2", "The exchange 2 follows one that does not exist", False),
    ("UPDATE exchange SET parent_id = 1 WHERE id = 3", "The exchange 3 and the one it follows are of two", False),
    ("UPDATE exchange SET turn_number = 7 WHERE id = 2", "The exchange 2 has a turn number that is not", False),
    ("DELETE FROM exchange_message WHERE exchange_id = 2", "The exchange 2 has no messages", False),
    ("INSERT INTO exchange_message VALUES (99, 0, 1)", "Messages are listed for the exchange 99", True),
    ("UPDATE exchange_message SET message_id = 6 WHERE exchange_id = 2 AND place = 1", "The exchange 2 lists a message", False),
    ("UPDATE exchange_message SET place = 5 WHERE exchange_id = 2 AND place = 1", "The exchange 2 has a gap", False),
    ("UPDATE exchange SET parent_id = NULL, turn_number = 0 WHERE id = 2", "The exchange 2 does not begin where", False),
    ("UPDATE passage SET conversation_id = 99 WHERE id = 3", "The passage 3 belongs to a conversation", True),
    ("UPDATE passage SET source_id = 99 WHERE id = 1", "The passage 1 is of an exchange that does not exist", True),
    ("INSERT INTO passage VALUES (9, 'conversation_summary', 2, 2, NULL, 'h', '2026-01-01', 1, 1)", "The passage 9 is of a summary that does not exist", True),
    ("INSERT INTO passage VALUES (8, 'man_page', 2, NULL, NULL, 'h', '2026-01-01', 1, 1)", "The passage 8 is of a manual page that is not kept", True),
    ("UPDATE conversation SET private = true WHERE id = 2", "The passage 3 is of a private conversation", True),
    ("INSERT INTO passage SELECT 2000, * EXCLUDE (id) FROM passage WHERE id = 1", "The passage 1 says the same as a later one", True),
    ("INSERT INTO passage_gone VALUES (1, 1)", "The passage 1 is there and noted as gone", True),
    ("INSERT INTO tag VALUES (99, 'x', false)", "A tag is on conversation 99", True),
    ("INSERT INTO draft VALUES (99, 'x', '2026-01-01')", "A draft is for conversation 99", True),
    ("UPDATE summary SET conversation_id = 99 WHERE kind = 'exchange'", "A summary is of conversation 99", True),
    ("UPDATE summary SET source_id = 99 WHERE kind = 'exchange'", "A summary is of exchange 99", True),
    ("UPDATE summary SET latest = false", "The summaries of conversation 1 have no latest one", True),
    ("INSERT INTO summary SELECT kind, source_id, '2020-01-01', * EXCLUDE (kind, source_id, made_at) FROM summary", "The summaries of exchange 1 have no latest one, or several", True),
    ("UPDATE origin SET local_id = 99 WHERE kind = 'conversation'", "An import names the conversation 99", True),
    ("UPDATE origin SET local_id = 99 WHERE kind = 'message'", "An import names the message 99", True),
    ("UPDATE spend SET exchange_id = 99", "Money was spent on exchange 99", True),
    ("UPDATE spend SET cost_usd = -0.1", "is less than nothing", False),
    ("INSERT INTO spend_held VALUES ('x', 1, '2026-01-01', 'w', 'm', 1, 1, NULL)", "The request x is on record as under way", False),
    ("INSERT INTO space VALUES ('lost', 3, 8, 'm', '2026-01-01', NULL, NULL)", "The embedding space lost has no table", True),
    ("UPDATE fact SET uid = 'same'", "The uid same is that of two facts", False),
    ("UPDATE fact SET conversation_id = 99 WHERE id = 4", "The fact 4 is from a conversation", True),
    ("UPDATE fact SET exchange_id = 99 WHERE id = 4", "The fact 4 is from a turn", True),
    ("UPDATE fact SET message_id = 99 WHERE id = 4", "The fact 4 is from a message", True),
    ("UPDATE fact SET superseded_by = 99 WHERE id = 5", "The fact 5 was superseded by one that does not exist", True),
    ("UPDATE fact SET valid_until = NULL WHERE id = 5", "The fact 5 was superseded and has not ended", True),
    ("INSERT INTO fact_version SELECT 99, * EXCLUDE (fact_id) FROM fact_version WHERE fact_id = 4", "A wording is of fact 99", True),
    ("DELETE FROM fact_version WHERE fact_id = 4", "The fact 4 has no version of its wording", True),
    ("INSERT INTO fact_version SELECT fact_id, '2020-01-01', * EXCLUDE (fact_id, made_at) REPLACE (99 AS exchange_id) FROM fact_version WHERE fact_id = 4", "A wording of fact 4 is from a turn", True),
    ("UPDATE extraction SET exchange_id = 99", "The turn 99 was read for facts", True),
    ("UPDATE memory SET conversation_id = 99", "The memory 6 was saved in a conversation", True),
    ("UPDATE tool_summary SET exchange_id = 99", "The tool summary 7 is of a turn", True),
    ("UPDATE tool_summary SET message_id = 99", "The tool summary 7 is of a message", True),
    ("UPDATE fact SET valid_until = '2027-01-01' WHERE id = 4", "The passage 4 is of a fact that does not exist or", True),
    ("DELETE FROM memory", "The passage 6 is of a memory that does not exist", True),
    ("DELETE FROM tool_summary", "The passage 7 is of a tool summary that does not exist", True),
    ("UPDATE prompt SET exchange_id = 99", "A prompt is of turn 99", True),
    ("DELETE FROM prompt", "Something was recalled for turn 1", True),
    ("UPDATE recalled SET conversation_id = 99", "Something was recalled from conversation 99", True),
    ("UPDATE prompt_text SET conversation_id = 99", "Words of a prompt are from conversation 99", True),
    ("UPDATE state SET conversation = 1", "The counter of conversations is behind the conversation 2", True),
    ("UPDATE state SET exchange = 1", "The counter of exchanges is behind the exchange 3", True),
    ("UPDATE state SET message = 1", "The counter of messages is behind the message 6", True),
    ("UPDATE state SET passage = 1", "The counter of passages is behind the passage 7", True),
    ("UPDATE state SET position = 1", "The database's position is behind the record 3", False),
    ("INSERT INTO state VALUES (1, 9, 9, 9, 9, 9)", "The database has 2 rows of state", False),
]  # fmt: skip


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("check")
    with opened(folder / "live") as store:
        fill(store)
        assert check(store).problems == ()
        return killed(store, folder / "whole")


@pytest.fixture(scope="module")
def shared(original: Path) -> Iterator[Store]:
    with opened(original) as store:
        yield store


def fill(store: Store) -> None:
    first = told(store, "one", "two")
    told(store, "three")
    conversation, exchange = first.conversation.id, first.exchanges[0].id
    store.save(
        TagsChanged(conversation, ("work",)),
        DraftPut(conversation, "later", AT),
        DraftPut(None, "a beginning", AT),
        SummaryPut("exchange", exchange, conversation, "s", "extractive", "h", AT),
        SummaryPut("conversation", conversation, conversation, "s", "extractive", "h", AT),
        OriginsAdded("claude", "conversation", (("c", conversation),)),
        OriginsAdded("claude", "message", (("m", first.messages[0].id),)),
        SpendAdded(AT, "chat", "m", 1, 1, 0, 0.1, exchange),
        *learned(store, first),
    )


def learned(store: Store, talk: Told) -> list[Change]:
    """Return a fact and the one it superseded, a memory, a tool summary, a prompt: passages 4 to 7."""
    exchange, message = talk.exchanges[0], talk.messages[0]
    place = (talk.conversation.id, exchange.id)
    new, old, memory, tool = (store.ids.passage() for _ in range(4))
    fact = Fact(
        new, new_uid(), "The user lives in Oslo.", FactCategory.IDENTITY, "user: home", *place,
        message.id, AT, BY_PATTERNS, AT,
    )  # fmt: skip
    ended = replace(
        fact, id=old, uid=new_uid(), text="The user lives in Rome.", valid_until=AT,
        superseded_by=new,
    )  # fmt: skip
    kinds = {
        new: PassageKind.FACT, memory: PassageKind.MEMORY, tool: PassageKind.TOOL_SUMMARY,
    }  # fmt: skip
    passages = tuple(Passage(each, kind, each, *place, "h", AT, 5) for each, kind in kinds.items())
    item = RecalledItem(
        RecallLayer.FACT, PassageKind.FACT, new, *place, None, 0.9, 0.9, 1.0, 10, injected=True
    )
    part = PlanPart(PlanPartKind.FACTS, 10, cacheable=False, pieces=(Piece(fact.text, place[0]),))
    return [
        FactPut(fact),
        FactPut(ended),
        MemoryPut(Memory(memory, new_uid(), "Remember this.", AT, *place)),
        ToolSummaryPut(tool, *place, message.id, 0, "read -> 1 line", "extractive", AT),
        PassagesPut(passages),
        ExtractionDone(exchange.id, talk.conversation.id, "h", BY_PATTERNS, 2, AT),
        PromptKept(KeptPrompt(exchange.id, place[0], AT, "m", 1000, 2000, (part,), (item,))),
    ]


class BackAsItWas(Exception):
    """Ends a transaction whose work is to be undone."""


def broken_by(store: Store, statement: str) -> tuple[Broken, ...]:
    """Return what the rules say after a statement that is then taken back."""
    found: list[Broken] = []

    def work(connection: Connection) -> None:
        connection.execute(statement)
        found.extend(broken_in(connection))
        raise BackAsItWas

    with pytest.raises(BackAsItWas):
        store.on_writer(lambda: store.database.write(work)).result()
    return tuple(found)


def run(store: Store, statement: str) -> None:
    store.write_derived(lambda connection: connection.execute(statement) and None).result()


def test_a_whole_library_has_no_problems_and_its_rows_counted(shared: Store) -> None:
    report = check(shared)
    assert report.problems == report.repaired == ()
    assert {name: report.counts[name] for name in ("conversation", "exchange", "message")} == {
        "conversation": 2, "exchange": 3, "message": 6,
    }  # fmt: skip


def test_whatever_is_wrong_is_named_and_every_rule_is_needed(shared: Store) -> None:
    seen: set[Rule] = set()
    for statement, says, mendable in WRONGS:
        broken = broken_by(shared, statement)
        named = {
            each.rule for each in broken for id_ in each.ids if says in each.rule.says.format(id_)
        }
        assert {bool(rule.mends or rule.drops_passages) for rule in named} == {mendable}, statement
        seen |= {each.rule for each in broken}
    assert seen == set(RULES)


def test_all_that_is_derived_is_mended_at_once(data_dir: Path) -> None:
    with opened(data_dir) as store:
        fill(store)
        for statement, _, mendable in WRONGS:
            if mendable:
                run(store, statement)
        run(store, "UPDATE passage SET content_hash = 'other' WHERE id = 2")
        report = check(store, repair=True)
        assert report.problems == ()
        assert len(report.repaired) >= 20
        assert check(store).problems == ()
        assert len(tables(store)["message"]) == 6, "what people said is never mended away"


def test_what_cannot_be_derived_is_said_and_left_as_it_is(data_dir: Path) -> None:
    with opened(data_dir) as store:
        fill(store)
        run(store, "UPDATE message SET parent_id = 999 WHERE id = 3")
        before = tables(store)
        report = check(store, repair=True)
        assert "The message 3 has a parent that does not exist." in report.problems
        assert report.repaired == ()
        assert tables(store) == before


def test_many_problems_of_one_kind_are_counted(data_dir: Path) -> None:
    with opened(data_dir) as store:
        told(store, *map(str, range(15)))
        run(store, "UPDATE message SET conversation_id = 99")
        problems = check(store).problems
        assert problems.count("10 more like this.") == 1
        assert len([each for each in problems if "belongs to a conversation" in each]) == 20


def test_a_mended_passage_is_news_for_the_index(data_dir: Path) -> None:
    with opened(data_dir) as store:
        told(store, "one")
        run(store, "UPDATE passage SET content_hash = 'other'")
        position = store.journal.last_position
        check(store, repair=True)
        work = Passages(store).work_since(position, 10)
        assert (work.removed, work.added) == ((1,), (2,))
        run(store, "UPDATE passage SET conversation_id = 99")
        check(store, repair=True)
        assert 2 in Passages(store).work_since(position, 10).removed


def test_the_journal_s_end_is_compared_with_the_database(data_dir: Path) -> None:
    with opened(data_dir) as store:
        told(store, "one")
        run(store, "UPDATE state SET position = 99")
        assert "The journal ends before the database does." in check(store).problems


def test_what_happens_in_a_library_leaves_no_problem(data_dir: Path, tmp_path: Path) -> None:
    with opened(data_dir) as store:
        fill(store)
        private = told(store, "secret", private=True)
        told(store, "three", title="The same words twice need one passage")
        running = asked(store, "Why?")
        store.save(ConversationEdited(private.conversation.id, deleted_at=AT))
        grow(store, running.exchanges[0], store.ids.message(), "Because")
        store.save(ConversationForgotten(tell(store, "never written").conversation.id))
        gone = told(store, "gone", "and away")
        store.save(TagsChanged(gone.conversation.id, ("x",)))
        store.save(ConversationForgotten(gone.conversation.id))
        assert check(store).problems == ()
        after_kill = killed(store, tmp_path / "killed")
    with opened(after_kill) as store:
        assert check(store).problems == ()


def test_branches_are_no_problem(data_dir: Path) -> None:
    with opened(data_dir) as store:
        first = told(store, "one", "two")
        root, _, question, _ = first.messages

        def say(parent: Message, role: Role, text: str) -> Message:
            return Message(
                store.ids.message(), new_uid(), root.conversation_id, parent.id, role,
                (Text(text),), AT,
            )  # fmt: skip

        other_answer = say(question, Role.ASSISTANT, "another answer")
        edited = replace(say(root, Role.USER, "edited"), parent_id=None)
        goes_on = say(other_answer, Role.USER, "and then?")
        fresh = (other_answer, edited, goes_on)
        exchanges = calculate_exchanges(
            (*first.messages, *fresh), store.ids.exchange, first.exchanges
        )
        store.save(MessagesAdded(fresh), *map(ExchangePut, exchanges))
        assert len(exchanges) == 5
        report = check(store)
        assert [each for each in report.problems if "no passage" not in each] == []
        assert check(store, repair=True).problems == ()
