"""Parts of databases and folders beside the texts: kept, or named in the report."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from app.domain.conversations import Role, Text
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.importers import read_export
from tests.fakes.export_files import write

_LINK = {"title": "SI", "url": "https://si.example"}
_LINKED = Text("- [SI](https://si.example)")


def test_parts_of_cherry_studio_s_database_are_kept_or_named(tmp_path: Path) -> None:
    path = write("cherry_studio_database", tmp_path)
    cited = {"category": "citation", "content": {"results": [_LINK], "source": "web"}}
    parts = [
        {"type": "text", "text": "A.", "providerMetadata": {"cherry": {"references": [cited]}}},
        {"type": "data-code", "data": {"content": "r = u / i", "language": "python"}},
        {"type": "data-translation", "data": {"content": "Eine Einheit."}},
        {"type": "source-url", "title": "BIPM", "url": "https://bipm.example"},
        {"type": "data-skill-scope", "data": {"skills": ["a"]}},
        {"type": "data-error", "data": {"message": "Overloaded"}},
        {"type": "data-hologram", "data": {}},
    ]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE assistant (id, prompt)")
        connection.execute("INSERT INTO assistant VALUES ('a1', 'Be brief.')")
        connection.execute("ALTER TABLE topic ADD COLUMN assistant_id")
        connection.execute("UPDATE topic SET assistant_id = 'a1'")
        connection.execute("DELETE FROM message WHERE id = 'x'")
        content = json.dumps({"parts": parts})
        connection.execute("UPDATE message SET data = ? WHERE id = 'a'", (content,))
    (talk,) = (each for each in read_export(path) if isinstance(each, ImportedConversation))
    by_id = {each.source_id: each for each in talk.messages}
    assert (by_id["system"].role, by_id["system"].blocks) == (Role.SYSTEM, (Text("Be brief."),))
    assert by_id["q"].parent == "system"
    code = Text("```python\nr = u / i\n```")
    source = Text("- [BIPM](https://bipm.example)")
    assert by_id["a"].blocks == (Text("A."), _LINKED, code, Text("Eine Einheit."), source)
    error, unknown = talk.skipped
    assert "Overloaded" in error.why
    assert "'hologram'" in unknown.why


def test_instructions_of_jan_s_assistant_are_the_system_prompt(tmp_path: Path) -> None:
    path = write("jan", tmp_path)
    header = {"id": "c1", "title": "Ohms", "assistants": [{"instructions": "Be brief."}]}
    path.with_name("thread.json").write_text(json.dumps(header), encoding="utf-8")
    (talk,) = (each for each in read_export(path) if isinstance(each, ImportedConversation))
    system, asked, *_ = talk.messages
    assert (system.role, system.blocks) == (Role.SYSTEM, (Text("Be brief."),))
    assert asked.parent == system.source_id


def test_a_system_prompt_that_changes_is_kept_each_time(tmp_path: Path) -> None:
    path = write("llm", tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM responses WHERE id = 'r2'")
        connection.execute("UPDATE responses SET system = 'Be brief.'")
        connection.executemany(
            "INSERT INTO responses VALUES (?, 'gpt-x', 'And?', ?, 'Too.', 'c1', '2026-03-05')",
            [("r3", "Be brief."), ("r4", "Be long."), ("r5", None)],
        )
    (talk,) = read_export(path)
    assert isinstance(talk, ImportedConversation)
    told = [each for each in talk.messages if each.role is Role.SYSTEM]
    assert [each.blocks for each in told] == [(Text("Be brief."),), (Text("Be long."),)]


def test_a_call_of_goose_that_was_never_made_is_named(tmp_path: Path) -> None:
    path = write("goose", tmp_path)
    failed = {"type": "toolRequest", "id": "c", "toolCall": {"status": "error", "error": "No tool"}}
    with closing(sqlite3.connect(path)) as connection, connection:
        content = json.dumps([{"type": "text", "text": "A unit."}, failed])
        connection.execute(
            "UPDATE messages SET content_json = ? WHERE message_id = 'q'", (content,)
        )
    (talk,) = (each for each in read_export(path) if isinstance(each, ImportedConversation))
    assert any("No tool" in each.why for each in talk.skipped)


def test_what_open_webui_s_database_has_beside_chats_is_named(tmp_path: Path) -> None:
    path = write("open_webui_database", tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE note (id)")
        connection.execute("INSERT INTO note VALUES ('n')")
        connection.execute("CREATE TABLE prompt (id)")
    reports = [each.why for each in read_export(path) if isinstance(each, Skipped)]
    assert "it has notes (1) that are not imported" in reports
