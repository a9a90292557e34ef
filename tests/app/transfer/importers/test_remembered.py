"""Memories of other programs, and Claude's projects: found like conversations, facts on request."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.check import check
from app.domain.changes import ConversationEdited, ExchangePut, MessagesAdded
from app.domain.conversations import Attachment, Exchange, ExchangeStatus, Message, Role, Text
from app.domain.deletions import ConversationForgotten
from app.domain.transfer import ImportedConversation
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges, shown_path
from app.storage.tables.facts import FactFilter, Facts
from app.transfer.import_history import ImportHistory
from app.transfer.importers import read_export
from app.transfer.importing import import_files

MEMORY = "**Work context**\n\nAnn builds bridges in Basel. She leads a team.\n\n# Home\n- She keeps goats."
NOW = now()
STATED = ["Ann builds bridges in Basel.", "She leads a team.", "She keeps goats."]


@pytest.fixture
def claude(tmp_path: Path) -> Path:
    memories = {"conversations_memory": MEMORY, "project_memories": {"p": "Spans are 40 m."}}
    doc = {"uuid": "d", "filename": "loads.md", "content": "At most 40 tonnes."}
    project = {"uuid": "p", "name": "Bridge", "prompt_template": "Answer briefly.", "docs": [doc]}
    example = {"uuid": "e", "name": "How to", "is_starter_project": True, "docs": [doc]}
    (tmp_path / "memories.json").write_text(json.dumps([memories]))
    (tmp_path / "projects.json").write_text(json.dumps([project, example]))
    return tmp_path


def facts_in(store: Store) -> set[str]:
    return {each.fact.text for each in Facts(store).listed(FactFilter())}


def test_memories_and_projects_of_claude_are_conversations(claude: Path) -> None:
    memories, project, skipped = read_export(claude)
    assert isinstance(memories, ImportedConversation)
    assert [each.text for m in memories.messages for each in m.blocks] == [
        MEMORY,
        "Spans are 40 m.",
    ]
    assert list(memories.statements) == STATED
    assert isinstance(project, ImportedConversation)
    assert (project.title, project.tags) == ("Bridge", ("Bridge",))
    assert [each.role for each in project.messages] == [Role.SYSTEM, Role.USER]
    (document,) = project.messages[1].blocks
    assert isinstance(document, Attachment)
    assert (document.name, document.text) == ("loads.md", "At most 40 tonnes.")
    assert "example" in skipped.why


def test_statements_become_facts_only_when_asked_and_leave_with_their_import(
    store: Store, claude: Path
) -> None:
    first = import_files(store, [claude])
    assert (first.offered, facts_in(store)) == (3, set())
    assert import_files(store, [claude], memories=True).offered == 0
    assert facts_in(store) == set(STATED)
    assert import_files(store, [claude], memories=True).messages == 0
    assert len(Facts(store).of_conversation(first.new[0].id)) == 3
    ImportHistory(store).undo(first.number)
    assert facts_in(store) == set()


def test_statements_count_once_and_not_of_what_was_forgotten(store: Store, claude: Path) -> None:
    (claude / "later").mkdir()
    shutil.copy(claude / "memories.json", claude / "later")
    paths = [claude / "memories.json", claude / "later"]
    first = import_files(store, paths)
    assert first.offered == 3
    store.save(ConversationForgotten(first.new[0].id))
    assert [import_files(store, paths, dry_run=dry).offered for dry in (True, False)] == [0, 0]
    restored = import_files(store, paths, restore_forgotten=True, memories=True)
    assert (restored.conversations, facts_in(store)) == (1, set(STATED))


def test_a_later_export_shows_what_is_new_below_what_was_here(store: Store, claude: Path) -> None:
    import_files(store, [claude])
    memories = {"conversations_memory": "Ann moved.", "project_memories": {"p": "Spans are 40 m."}}
    doc = {"uuid": "d2", "filename": "wind.md", "content": "At most 30 m/s."}
    project = {"uuid": "p", "name": "Bridge", "prompt_template": "Answer in full.", "docs": [doc]}
    (claude / "memories.json").write_text(json.dumps([memories]))
    (claude / "projects.json").write_text(json.dumps([project]))
    assert import_files(store, [claude]).messages == 3
    assert import_files(store, [claude]).messages == 0
    shown = {
        each.title: [
            message.text or message.blocks[0].name
            for turn in shown_path(each, Exchanges(store).of(each.id))
            for message in Exchanges(store).messages_of(turn)
        ]
        for each in Conversations(store).listed()
    }
    assert shown == {
        "What Claude remembers": [MEMORY, "Spans are 40 m.", "Ann moved."],
        "Bridge": ["Answer briefly.", "loads.md", "Answer in full.", "wind.md"],
    }
    assert not check(store).problems


def test_what_is_new_is_shown_also_where_the_user_has_continued(store: Store, claude: Path) -> None:
    import_files(store, [claude])
    (memory,) = [each for each in Conversations(store).listed() if "remembers" in each.title]
    (turn,) = Exchanges(store).of(memory.id)
    own = Message(
        store.ids.message(), "own", memory.id, memory.visible_leaf_id, Role.USER,
        (Text("And goats?"),), NOW,
    )  # fmt: skip
    asked = Exchange(
        store.ids.exchange(), memory.id, turn.id, 1, 0, ExchangeStatus.INTERRUPTED, (own.id,), NOW
    )
    leaf = ConversationEdited(memory.id, visible_leaf_id=own.id, updated_at=NOW)
    store.save(MessagesAdded((own,)), ExchangePut(asked), leaf)
    (claude / "memories.json").write_text(json.dumps([{"conversations_memory": "Ann moved."}]))
    assert import_files(store, [claude]).messages == 1
    shown = shown_path(Conversations(store).get(memory.id), Exchanges(store).of(memory.id))
    texts = [each.text for turn in shown for each in Exchanges(store).messages_of(turn)]
    assert texts == [MEMORY, "Spans are 40 m.", "And goats?", "Ann moved."]
    assert not check(store).problems


def test_memories_in_the_database_of_open_webui_are_offered(store: Store, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "webui.db")) as database:
        database.executescript(
            "CREATE TABLE chat(id, user_id, title, chat, created_at, updated_at);"
            "CREATE TABLE user(id); CREATE TABLE auth(id); CREATE TABLE memory(id, content, created_at);"
            "INSERT INTO memory VALUES ('m', 'Likes trains.', 1)"
        )
    report = import_files(store, [tmp_path / "webui.db"], memories=True)
    assert (report.conversations, facts_in(store)) == (1, {"Likes trains."})
