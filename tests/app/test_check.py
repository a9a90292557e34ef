"""The check: every rule finds its violation, and what is derived is repaired."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from app import check as check_module
from app.bootstrap import RunMode, build
from app.check import CheckControl, check
from app.domain import changes, deletions
from app.domain.conversations import Message, Role, Text
from app.domain.errors import Cancelled, StorageError
from app.domain.ids import new_uid
from app.domain.passages import Passage, PassageKind
from app.domain.recall import (
    PlanPart,
    PlanPartKind,
    PromptPiece,
    RecalledItem,
    RecallLayer,
    StoredPrompt,
)
from app.domain.records.facts import BY_PATTERNS, Fact, FactCategory, Memory, MemoryWrite
from app.domain.turns import calculate_exchanges
from app.storage.apply import RULES
from app.storage.engine.aggregate import Rule
from app.storage.engine.connection import Connection
from app.storage.engine.store import Store
from app.storage.tables.passages.queries import Passages
from tests.fakes.stored import (
    AT,
    ConversationRecord,
    add_conversation,
    add_running,
    execute,
    journal_reply,
    killed,
    make_earlier,
    new_conversation,
    opened,
    tables,
)

# A statement that damages the tables, the rule it breaks, and whether that can be repaired.
VIOLATIONS = [
    ("UPDATE message SET conversation_id = 99 WHERE id = 2", "message.conversation_id", False),
    ("UPDATE message SET parent_id = 999 WHERE id = 3", "message.parent_id", False),
    ("UPDATE message SET parent_id = 1 WHERE id = 5", "message.parent_conversation", False),
    ("UPDATE message SET parent_id = 1 WHERE id = 4", "exchange_message.order", False),
    ("UPDATE message SET uid = (SELECT uid FROM message WHERE id = 1) WHERE id = 2", "message.uid", False),
    ("DELETE FROM exchange_message WHERE message_id = 4", "message.exchange", False),
    ("UPDATE conversation SET uid = 'same'", "conversation.uid", False),
    ("UPDATE exchange SET uid = 'same'", "exchange.uid", False),
    ("UPDATE conversation SET visible_leaf_id = 5 WHERE id = 1", "conversation.visible_leaf_id", True),
    ("UPDATE conversation SET visible_leaf_id = NULL WHERE id = 1", "conversation.visible_leaf_id", True),
    ("UPDATE exchange SET conversation_id = 99 WHERE id = 3", "exchange.conversation_id", False),
    ("UPDATE exchange SET parent_id = 99 WHERE id = 2", "exchange.parent_id", False),
    ("UPDATE exchange SET parent_id = 1 WHERE id = 3", "exchange.parent_conversation", False),
    ("UPDATE exchange SET turn_number = 7 WHERE id = 2", "exchange.turn_number", False),
    ("DELETE FROM exchange_message WHERE exchange_id = 2", "exchange.messages", False),
    ("INSERT INTO exchange_message VALUES (99, 0, 1)", "exchange_message.exchange_id", True),
    ("UPDATE exchange_message SET message_id = 6 WHERE exchange_id = 2 AND place = 1", "exchange_message.message_id", False),
    ("UPDATE exchange_message SET place = 5 WHERE exchange_id = 2 AND place = 1", "exchange_message.place", False),
    ("UPDATE exchange SET parent_id = NULL, turn_number = 0 WHERE id = 2", "exchange.first_message", False),
    ("UPDATE passage SET conversation_id = 99 WHERE id = 3", "passage.conversation_id", True),
    ("UPDATE passage SET source_id = 99 WHERE id = 1", "passage.exchange", True),
    ("INSERT INTO passage VALUES (9, 'conversation_summary', 2, 2, NULL, 'h', '2026-01-01', 1, 1)", "passage.summary", True),
    ("INSERT INTO passage VALUES (10, 'document', 2, NULL, NULL, 'h', '2026-01-01', 1, 1)", "passage.document", True),
    ("INSERT INTO document_chunk VALUES (3, 99, 0, 0, NULL, '', 't', 'h')", "document_chunk.document_id", True),
    ("INSERT INTO passage VALUES (8, 'man_page', 2, NULL, NULL, 'h', '2026-01-01', 1, 1)", "passage.man_page", True),
    ("UPDATE conversation SET private = true WHERE id = 2", "passage.private", True),
    ("INSERT INTO passage SELECT 2000, * EXCLUDE (id) FROM passage WHERE id = 1", "passage.duplicate", True),
    ("INSERT INTO passage_gone VALUES (1, 1)", "passage_gone.id", True),
    ("INSERT INTO tag VALUES (99, 'x', false)", "tag.conversation_id", True),
    ("INSERT INTO message_file VALUES (99, 'h')", "message_file.message_id", True),
    ("INSERT INTO draft VALUES (99, 'x', '2026-01-01', '[]')", "draft.conversation_id", True),
    ("UPDATE summary SET conversation_id = 99 WHERE kind = 'exchange'", "summary.conversation_id", True),
    ("UPDATE summary SET source_id = 99 WHERE kind = 'exchange'", "summary.source_id", True),
    ("UPDATE summary SET latest = false", "summary.latest", True),
    ("INSERT INTO summary SELECT kind, source_id, '2020-01-01', * EXCLUDE (kind, source_id, made_at) FROM summary", "summary.latest", True),
    ("UPDATE origin SET local_id = 99 WHERE kind = 'conversation'", "origin.local_id", True),
    ("UPDATE origin SET local_id = 99 WHERE kind = 'message'", "origin.local_id", True),
    ("INSERT INTO import_item VALUES (1, 0, 1, 99, true, NULL, NULL, '')", "import_item.conversation_id", True),
    ("UPDATE spend SET exchange_id = 99", "spend.exchange_id", True),
    ("UPDATE spend SET cost_usd = -0.1", "spend.negative", False),
    ("INSERT INTO spend_held VALUES ('x', 1, '2026-01-01', 'w', 'm', 1, 1, NULL)", "spend_held.held_at", False),
    ("INSERT INTO space VALUES ('lost', 3, 8, 'm', '2026-01-01', NULL)", "space.table", True),
    ("INSERT INTO preset SELECT uid, 'x', '', NULL, NULL, NULL, NULL, NULL FROM fact", "preset.name", True),
    ("INSERT INTO project SELECT uid, 'x', '', '', NULL, 'all' FROM fact", "project.name", True),
    ("INSERT INTO routine_run VALUES ('r', '2026-01-01', NULL, NULL, NULL, '', 0, NULL, NULL, false)", "routine_run.routine_uid", True),
    ("INSERT INTO routine_run VALUES ('r', '2026-01-02', NULL, NULL, 'failed', '', 0, NULL, NULL, false)", "routine_run.outcome", False),
    ("INSERT INTO routine_run VALUES ('r', '2026-01-03', NULL, NULL, NULL, '', 0, 99, NULL, false)", "routine_run.conversation_id", True),
    ("INSERT INTO routine_run VALUES ('r', '2026-01-04', NULL, NULL, NULL, '', 0, NULL, 99, false)", "routine_run.exchange_id", True),
    ("INSERT INTO topic_member VALUES (99, 1, 0.5)", "topic_member.conversation_id", True),
    ("INSERT INTO topic_choice VALUES (1, 'x', false, 99)", "topic_choice.merged_into", True),
    ("UPDATE fact SET uid = 'same'", "fact.uid", False),
    ("UPDATE fact SET conversation_id = 99 WHERE id = 4", "fact.conversation_id", True),
    ("UPDATE fact SET exchange_id = 99 WHERE id = 4", "fact.exchange_id", True),
    ("UPDATE fact SET message_id = 99 WHERE id = 4", "fact.message_id", True),
    ("UPDATE fact SET superseded_by = 99 WHERE id = 5", "fact.superseded_by", True),
    ("UPDATE fact SET valid_until = NULL WHERE id = 5", "fact.valid_until", True),
    ("UPDATE fact SET valid_until = NULL WHERE id = 5", "fact.subject", True),
    ("INSERT INTO fact_version SELECT 99, * EXCLUDE (fact_id) FROM fact_version WHERE fact_id = 4", "fact_version.fact_id", True),
    ("DELETE FROM fact_version WHERE fact_id = 4", "fact.version", True),
    ("INSERT INTO fact_version SELECT fact_id, '2020-01-01', * EXCLUDE (fact_id, made_at) REPLACE (99 AS exchange_id) FROM fact_version WHERE fact_id = 4", "fact_version.exchange_id", True),
    ("UPDATE extraction SET exchange_id = 99", "extraction.exchange_id", True),
    ("UPDATE memory SET conversation_id = 99", "memory.conversation_id", True),
    ("UPDATE memory_write SET conversation_id = 99", "memory_write.conversation_id", True),
    ("UPDATE tool_summary SET exchange_id = 99", "tool_summary.exchange_id", True),
    ("UPDATE tool_summary SET message_id = 99", "tool_summary.message_id", True),
    ("UPDATE fact SET valid_until = '2027-01-01' WHERE id = 4", "passage.fact", True),
    ("DELETE FROM memory", "passage.memory", True),
    ("DELETE FROM tool_summary", "passage.tool_summary", True),
    ("UPDATE prompt SET exchange_id = 99", "prompt.exchange_id", True),
    ("DELETE FROM prompt", "recalled.exchange_id", True),
    ("DELETE FROM prompt", "prompt_text.hash", True),
    ("UPDATE recalled SET conversation_id = 99", "recalled.conversation_id", True),
    ("UPDATE prompt_text SET conversation_id = 99", "prompt_text.conversation_id", True),
    ("UPDATE state SET conversation = 1", "state.conversation", True),
    ("UPDATE state SET exchange = 1", "state.exchange", True),
    ("UPDATE state SET message = 1", "state.message", True),
    ("UPDATE state SET passage = 1", "state.passage", True),
    ("UPDATE state SET position = 1", "state.position", False),
    ("INSERT INTO state VALUES (1, 9, 9, 9, 9, 9)", "state.rows", False),
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
    first = add_conversation(store, "one", "two")
    add_conversation(store, "three")
    conversation, exchange = first.conversation.id, first.exchanges[0].id
    store.save(
        changes.TagsChanged(conversation, ("work",)), changes.DraftPut(conversation, "later", AT),
        changes.DraftPut(None, "a beginning", AT),
        changes.SummaryPut("exchange", exchange, conversation, "s", "extractive", "h", AT),
        changes.SummaryPut("conversation", conversation, conversation, "s", "extractive", "h", AT),
        changes.OriginsAdded("claude", "conversation", (("c", conversation),)),
        changes.OriginsAdded("claude", "message", (("m", first.messages[0].id),)),
        changes.SpendAdded(AT, "chat", "m", 1, 1, 0, 0.1, exchange), *learned(store, first),
    )  # fmt: skip


def learned(store: Store, talk: ConversationRecord) -> list[changes.Change]:
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
    part = PlanPart(
        PlanPartKind.FACTS, 10, cacheable=False, pieces=(PromptPiece(fact.text, place[0]),)
    )
    return [
        changes.FactPut(fact),
        changes.FactPut(ended),
        changes.MemoryPut(Memory(memory, new_uid(), "Remember this.", AT, *place)),
        changes.MemoryWritePut(MemoryWrite(new_uid(), *place, "m", AT, memory_id=memory)),
        changes.ToolSummaryPut(tool, *place, message.id, 0, "read -> 1 line", "extractive", AT),
        changes.PassagesPut(passages),
        changes.ExtractionDone(exchange.id, talk.conversation.id, "h", BY_PATTERNS, 2, AT),
        changes.PromptStored(
            StoredPrompt(exchange.id, place[0], AT, "m", 1000, 2000, (part,), (item,))
        ),
    ]


class BackAsItWas(Exception):
    """Ends a transaction whose work is to be undone."""


def broken_by(store: Store, statement: str, name: str) -> list[Rule]:
    """Return the rules of that name that a statement breaks, which is then taken back."""
    found: list[Rule] = []

    def work(connection: Connection) -> None:
        connection.execute(statement)
        named = (rule for rule in RULES if rule.name == name)
        found.extend(rule for rule in named if connection.execute(rule.query).fetchall())
        raise BackAsItWas

    with pytest.raises(BackAsItWas):
        store.on_writer(lambda: store.database.write(work)).result()
    return found


def test_every_rule_finds_its_violation(shared: Store) -> None:
    seen: set[Rule] = set()
    for statement, name, repairable in VIOLATIONS:
        found = broken_by(shared, statement, name)
        assert [rule.is_repairable for rule in found] == [repairable], statement
        seen.update(found)
    assert seen == set(RULES)


def test_everything_derived_is_repaired_at_once(store: Store) -> None:
    fill(store)
    execute(store, *(statement for statement, _, repairable in VIOLATIONS if repairable))
    execute(store, "UPDATE passage SET content_hash = 'other' WHERE id = 2")
    report = check(store, repair=True)
    assert report.problems == ()
    assert len(report.repaired) >= 20
    assert check(store).problems == ()
    assert len(tables(store)["message"]) == 6, "what people said is never mended away"
    assert {name: report.counts[name] for name in ("conversation", "exchange", "message")} == {
        "conversation": 2, "exchange": 3, "message": 6,
    }  # fmt: skip


def test_problems_that_cannot_be_repaired_are_counted_and_left(store: Store) -> None:
    fill(store)
    add_conversation(store, *map(str, range(15)))
    execute(store, "UPDATE message SET parent_id = 999 WHERE id = 3")
    before = tables(store)
    report = check(store, repair=True)
    assert (len(report.problems), report.repairable, report.repaired) == (2, 0, ())
    assert tables(store) == before
    execute(store, "UPDATE message SET conversation_id = 99", "UPDATE state SET position = 99")
    problems = check(store).problems
    assert problems.count("16 more like this.") == 1
    assert len([each for each in problems if "refers to a conversation" in each]) == 20
    assert "The journal ends before the database does." in problems


def test_a_repaired_passage_is_index_work(store: Store) -> None:
    add_conversation(store, "one")
    execute(store, "UPDATE passage SET content_hash = 'other'")
    position = store.journal.last_position
    assert check(store).repairable == 1
    check(store, repair=True)
    work = Passages(store).work_since(position, 10)
    assert (work.removed, work.added) == ((1,), (2,))
    execute(store, "UPDATE passage SET conversation_id = 99")
    check(store, repair=True)
    assert 2 in Passages(store).work_since(position, 10).removed


def test_normal_use_and_branches_leave_no_problem(store: Store, tmp_path: Path) -> None:
    fill(store)
    private = add_conversation(store, "secret", private=True)
    add_conversation(store, "three", title="The same words twice need one passage")
    running = add_running(store, "Why?")
    store.save(changes.ConversationEdited(private.conversation.id, deleted_at=AT))
    journal_reply(store, running.exchanges[0], store.ids.message(), "Because")
    store.save(
        deletions.ConversationForgotten(new_conversation(store, "never written").conversation.id)
    )
    gone = add_conversation(store, "gone", "and away")
    store.save(changes.TagsChanged(gone.conversation.id, ("x",)))
    store.save(deletions.ConversationForgotten(gone.conversation.id))
    assert check(store).problems == ()
    with opened(killed(store, tmp_path / "killed")) as again:
        assert check(again).problems == ()
    first = add_conversation(store, "one", "two")
    root, _, question, _ = first.messages

    def add(parent: Message, role: Role, text: str) -> Message:
        return Message(
            store.ids.message(), new_uid(), root.conversation_id, parent.id, role,
            (Text(text),), AT,
        )  # fmt: skip

    other_answer = add(question, Role.ASSISTANT, "another answer")
    edited = replace(add(root, Role.USER, "edited"), parent_id=None)
    fresh = (other_answer, edited, add(other_answer, Role.USER, "and then?"))
    exchanges = calculate_exchanges((*first.messages, *fresh), store.ids.exchange, first.exchanges)
    store.save(changes.MessagesAdded(fresh), *map(changes.ExchangePut, exchanges))
    assert len(exchanges) == 5
    assert [each for each in check(store).problems if "no passage" not in each] == []
    assert check(store, repair=True).problems == ()


def test_an_upgrade_makes_statements_without_a_reply_memory(data_dir: Path) -> None:
    with opened(data_dir) as store:
        for text in ("Anna moved to the house by the harbor.", "Where does Anna live?"):
            add_running(store, text)
    with opened(data_dir) as store:  # ends the replies as interrupted
        execute(store, "UPDATE passage SET tokens = 0")
    make_earlier(store.paths.database, 10)
    with opened(data_dir) as store:
        assert sorted(store.rows("SELECT tokens FROM passage")) == [(0,), (9,)]
        assert not check(store).problems


def test_an_update_repairs_what_was_stored_otherwise_until_that_succeeds(data_dir: Path) -> None:
    with opened(data_dir) as store:
        for number in range(30):
            add_conversation(store, f"number {number}")
        execute(store, "UPDATE passage SET content_hash = 'of an earlier version'")
    make_earlier(store.paths.database, 10)
    with closing(build(store.paths, RunMode.COMMAND_LINE)) as services:
        services.maintenance.repair_migrated = _refuse
        services.maintenance.finish_command()
        assert services.check().repairable == 30
    told: list[str] = []
    with closing(build(store.paths, RunMode.COMMAND_LINE)) as services:
        services.maintenance.inform = told.append
        services.maintenance.finish_command()
        assert [each[:10] for each in told] == ["30 records"]
        assert services.check().problems == ()
        services.maintenance.repair_migrated = lambda _: pytest.fail("it is repaired twice")
        services.maintenance.finish_command()


def _refuse(_is_cancelled: object) -> None:
    raise StorageError("The disk does not answer")


def test_a_check_reports_progress_and_can_be_cancelled(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_module, "_TURNS_AT_ONCE", 2)
    add_conversation(store, *map(str, range(7)))
    steps: list[tuple[int, int]] = []
    control = CheckControl(lambda: len(steps) > 2, lambda *step: steps.append(step))
    with pytest.raises(Cancelled):
        check(store, control=control)
    assert steps == [(0, 7), (2, 7), (4, 7)]
