"""A value is forgotten wherever it is stored, and in every file."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.check import check
from app.domain import changes
from app.domain.conversations import (
    FORGOTTEN,
    ExchangeStatus,
    Message,
    RawReply,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import MessageId, new_uid
from app.domain.recall import PlanPart, PlanPartKind, PromptPiece, StoredPrompt
from app.domain.records.facts import Memory, MemoryWrite
from app.domain.records.presets import Preset
from app.domain.records.profile import FactSource, Profile, ProfileLine
from app.memory.secrets import ValueService
from app.storage.deletion import values
from app.storage.deletion.erasure import deletions_owed, erase_bytes
from app.storage.deletion.forget import forget, forget_value, value_places
from app.storage.engine import migrations
from app.storage.engine.store import Store
from app.storage.safety.backup import list_backups, make_backup
from app.storage.tables.exchanges import Exchanges
from tests.fakes import stored
from tests.fakes.canary import files_after_erasing, files_with, plain_databases
from tests.fakes.command_line import Console
from tests.fakes.fixtures import fixture_of
from tests.fakes.stored import AT, add_conversation, make_earlier, opened, titles

VALUE = 'pass"word-7f3a9c-ü'


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with plain_databases(), opened(data_dir) as made:
        yield made


def add_value(store: Store) -> int:
    """Write the value everywhere a text can be; return the conversation."""
    whole = add_conversation(store, f"My key is {VALUE}, keep it", "Other", title=f"Key {VALUE}")
    here, exchange = whole.conversation.id, whole.exchanges[0]
    place = (here, exchange.id)
    fact = stored.learned(store, whole, f"The key is {VALUE}")
    line = ProfileLine(f"Uses {VALUE}", (FactSource(fact.id, fact.made_at),))
    blocks = (
        Text(f"Looking up {VALUE}"), Thinking(f"So {VALUE}"),
        ToolCall("c", "memory_search", json.dumps({"query": VALUE})),
    )  # fmt: skip
    raw = RawReply("openai.chat", "openai:m", json.dumps([{"content": VALUE}]))
    call = Message(
        store.ids.message(), new_uid(), here, whole.messages[1].id, Role.ASSISTANT, blocks, AT,
        "openai:m", raw,
    )  # fmt: skip
    result = Message(
        store.ids.message(), new_uid(), here, call.id, Role.TOOL,
        (ToolResult("c", "memory_search", json.dumps({"text": VALUE})),), AT,
    )  # fmt: skip
    grown = replace(exchange, message_ids=(*exchange.message_ids, call.id, result.id))
    part = PlanPart(PlanPartKind.CORE_MEMORY, 5, True, (PromptPiece(f"It is {VALUE}"),))
    prompt = StoredPrompt(exchange.id, here, AT, "openai:m", 1_000, 2_000, (part,), ())
    probes = json.dumps([{"question": VALUE, "exchange_id": exchange.id}], ensure_ascii=False)
    store.save(
        changes.MessagesAdded((call, result)), changes.ExchangePut(grown),
        changes.SummaryPut("conversation", here, here, VALUE, "m", "h", AT),
        changes.TagsChanged(here, (VALUE, "kept")), changes.DraftPut(here, VALUE, AT),
        changes.MemoryPut(Memory(store.ids.passage(), new_uid(), f"Keep {VALUE}", AT, *place)),
        changes.CoreMemoryPut(f"First\nUses {VALUE}", "user", AT),
        changes.MemoryWritePut(MemoryWrite(new_uid(), here, exchange.id, "m", AT, new=VALUE)),
        changes.ToolSummaryPut(store.ids.passage(), *place, call.id, 0, VALUE, "m", AT),
        changes.ProfilePut(Profile((line, ProfileLine("I am tall")), "user", AT)),
        changes.PresetPut(Preset(new_uid(), "Mine", f"Never say {VALUE}")),
        changes.PromptStored(prompt),
        changes.SettingPut("system_prompt", json.dumps(f"Hide {VALUE}", ensure_ascii=False)),
        changes.SettingPut("probe_questions", json.dumps(probes, ensure_ascii=False)),
    )  # fmt: skip
    return here


def test_a_value_is_in_no_row_and_no_file_and_the_rest_stays(store: Store) -> None:
    add_conversation(store, "something else", title="Stays")
    here = add_value(store)
    before = make_backup(store)
    assert len(value_places(store, VALUE)) > 12
    forget_value(store, VALUE)
    assert value_places(store, VALUE) == {}
    assert titles(store) == {"Stays", f"Key {FORGOTTEN}"}
    messages = Exchanges(store).messages_in(here)
    assert messages[0].text == f"My key is {FORGOTTEN}, keep it"
    (call,) = [each for each in messages if len(each.blocks) == 3]
    assert call.raw is None
    assert json.loads(call.blocks[2].arguments) == {"query": FORGOTTEN}
    assert store.rows("SELECT text FROM core_memory") == [(f"First\nUses {FORGOTTEN}",)]
    assert store.rows("SELECT name FROM tag") == [("kept",)]
    assert check(store).problems == ()
    make_backup(store)  # its row of what is owed has the value
    assert deletions_owed(store) == 1
    assert files_with(store.paths.root, "word-7f3a9c")
    assert files_after_erasing(store, "word-7f3a9c") == set()
    assert before.path in {each.path for each in list_backups(store.paths.backups)}
    assert check(store).problems == ()


def test_what_a_worker_had_read_before_does_not_bring_a_value_back(store: Store) -> None:
    here = add_value(store)
    forget_value(store, VALUE)
    late = changes.SummaryPut("conversation", here, here, f"It is {VALUE}", "m", "h", AT)  # type: ignore[arg-type]
    store.save(late)
    assert value_places(store, VALUE) == {}
    erase_bytes(store)
    assert files_with(store.paths.root, "word-7f3a9c") == set()


def test_words_of_the_program_are_not_changed_in_its_own_columns(store: Store) -> None:
    here = add_conversation(store, "The assistant is completed", title="user").conversation.id
    forget_value(store, "assistant")
    forget_value(store, "completed")
    messages = Exchanges(store).messages_in(here)
    assert messages[0].text == f"The {FORGOTTEN} is {FORGOTTEN}"
    assert [each.role for each in messages] == [Role.USER, Role.ASSISTANT]
    assert check(store).problems == ()


def test_a_deletion_that_an_earlier_version_left_unfinished_is_finished(data_dir: Path) -> None:
    with plain_databases(), opened(data_dir) as before:
        gone = add_conversation(before, "My word is 7f3a9c-windowsill", title="Gone")
        old = make_backup(before)
        forget(before, [gone.conversation.id])
        add_conversation(before, "something else", title="Stays")
    make_earlier(before.paths.database, migrations.STEPS.index(migrations._ERASURE))
    with plain_databases(), opened(data_dir) as store:
        assert deletions_owed(store) == 1
        assert files_after_erasing(store, "7f3a9c") == set()
        assert not old.path.exists(), "which rows it has to lose was not kept then"
        assert len(list_backups(store.paths.backups)) == 3
        assert titles(store) == {"Stays"}
        assert check(store).problems == ()


def test_a_value_too_short_or_unknown_or_while_a_reply_runs_is_refused(store: Store) -> None:
    whole = add_conversation(store, "abc and abcdef")
    for value in ("abc", "  abc ", "x" * 10_001):
        with pytest.raises(InvalidInput):
            forget_value(store, value)
    with pytest.raises(NotFound):
        forget_value(store, "nowhere")
    running = replace(whole.exchanges[0], status=ExchangeStatus.RUNNING, completed_at=None)
    store.save(changes.ExchangePut(running))
    with pytest.raises(InvalidInput):
        forget_value(store, "abcdef")


cli = fixture_of(Console, "data_dir", then="close")


def test_the_command_counts_asks_and_never_prints_the_value(cli: Console) -> None:
    add_conversation(cli.services.store, "My key is hunter2-xyz", title="Keys")
    asked = cli("forget", "--value", "hunter2-xyz")
    assert asked.code == 1
    assert "2 messages" in asked.err
    cli.typed = "hunter2-xyz\n"
    done = cli.done("forget", "--value", "-", "--yes", "--now", "--json")
    assert done.document["forgotten"] == []
    assert "hunter2" not in asked.out + asked.err + done.out + done.err
    assert cli("forget", "--value", "hunter2-xyz", "--yes").code == 1
    assert cli("forget", "3", "--value", "hunter2-xyz").code == 2
    assert cli("forget").code == 2
    cli.close()
    assert files_with(cli.data_dir, "hunter2") == set()


def add_call(store: Store, text: str) -> MessageId:
    """Write a conversation whose answer calls a tool with a text; return the answer's id."""
    whole = stored.new_conversation(store, "Keep it")
    call = ToolCall("c", "Write", json.dumps({"text": text}))
    answer = replace(whole.messages[1], blocks=(Text("Done"), call))
    store.save(
        changes.ConversationPut(whole.conversation),
        changes.MessagesAdded((whole.messages[0], answer)),
        *map(changes.ExchangePut, whole.exchanges),
    )
    return answer.id


def test_a_command_forgets_the_secrets_in_a_message_wherever_they_are(cli: Console) -> None:
    key = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"
    answer = add_call(cli.services.store, f'token = "{key}"')
    add_conversation(cli.services.store, (f"Its token is {key}", "Noted"))
    cli.services.index_sync.catch_up()
    asked = cli("forget", "secret", str(answer))
    assert (asked.code, "2 messages" in asked.err) == (1, True)
    done = cli.done("forget", "secret", str(answer), "--yes", "--json")
    assert done.document["forgotten"] == [answer]
    assert key not in asked.out + asked.err + done.out + done.err
    assert value_places(cli.services.store, key) == {}
    assert cli("forget", "secret", "1", "--yes").code == 1
    cli.close()
    assert files_with(cli.data_dir, key) == set(), "the library is small: its bytes go at once"


def test_secrets_in_json_are_forgotten_as_text(store: Store) -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "a1B2c3D4e5F6g7H8" * 20 + "\n-----END PRIVATE KEY-----"
    answer = add_call(store, key)
    add_conversation(store, (f"It is {key}", "Noted"))
    service = ValueService(store, lambda value: forget_value(store, value))
    (found,) = service.in_messages([answer])
    assert found == key
    assert service.places([found]) == {"message": 2}
    service.forget([found, found[:40]])
    assert value_places(store, "a1B2c3D4e5F6g7H8") == {}
    with pytest.raises(NotFound):
        service.forget([found])


def test_every_column_with_free_text_is_searched(store: Store) -> None:
    """A new column has to be named in `values`, or here when it never has what a user or model wrote."""
    searched = {
        (table, column)
        for tables in (values._REPLACED, values._DELETED)
        for table, columns in tables.items()
        for column in columns
    }
    searched |= {("message", each) for each in values._MESSAGE}
    searched |= {("appconfig", "value"), ("erasure", "changes"), ("import_item", "edits")}
    found = store.rows(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal "
        "AND database_name = current_database() AND data_type = 'VARCHAR'"
    )
    apart = {"document", "document_chunk", "former_passage", "meta", "provider", "space"}
    rest = {
        column for table, column in found if (table, column) not in searched and table not in apart
    }
    assert rest == {
        "agreed_to", "author", "category", "color", "content_hash", "cron", "dropped_by", "facts_key",
        "hash", "key", "kind", "layer", "model", "named_by", "outcome", "preset", "project", "purpose",
        "reasoning_effort", "recall", "role", "routine_uid", "source", "source_hash", "source_id",
        "state", "status", "text_hash", "title_origin", "tools", "uid", "usage", "verdict", "worker",
    }  # fmt: skip
