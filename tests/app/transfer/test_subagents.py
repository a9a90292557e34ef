"""Subagents of coding agents: links to the conversation whose agent started them, whichever is read first."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from app.chat.library import AgentLinks, Library
from app.check import check
from app.domain.conversations import Conversation
from app.storage.deletion.forget import forget
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.transfer.exporting import ExportFormat, export
from app.transfer.import_history import ImportHistory
from app.transfer.importing import import_files
from tests.fakes.followed import Followed, as_lines
from tests.fakes.stored import execute, opened

BEGUN, ASKED, STARTED, ENDED = (f"2026-08-01T10:0{minute}:00Z" for minute in range(4))


class Session(NamedTuple):
    """The files of an agent and of its subagent."""

    agent: Path
    subagent: Path


def _written(path: Path, *records: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_lines(list(records)))
    return path


def _claude(kind: str, name: str, parent: str | None, at: str, text: str, **more: Any) -> Any:
    message = {"role": kind, "content": text} | ({"id": f"m-{name}"} if kind == "assistant" else {})
    return {"type": kind, "uuid": name, "parentUuid": parent, "timestamp": at, "sessionId": "s1",
            "cwd": "/home/me/heron", "isSidechain": False, "message": message, **more}  # fmt: skip


CLAUDE = (
    _claude("user", "u1", None, BEGUN, "Say hello."),
    _claude("assistant", "a1", "u1", BEGUN, "Hello."),
    _claude("user", "u2", "a1", ASKED, "Look for herons."),
    _claude("assistant", "a2", "u2", ENDED, "There are three."),
)
CLAUDE_SUBAGENT = (
    _claude("user", "b1", None, STARTED, "Find herons.", isSidechain=True, agentId="x9"),
    _claude("assistant", "b2", "b1", STARTED, "Three found.", isSidechain=True, agentId="x9"),
)


def _claude_code(folder: Path) -> Session:
    return Session(
        _written(folder / "-home-me-heron" / "s1.jsonl", *CLAUDE),
        _written(
            folder / "-home-me-heron" / "s1" / "subagents" / "agent-x9.jsonl", *CLAUDE_SUBAGENT
        ),
    )


def _rollout(
    folder: Path, name: str, at: str, header: dict[str, Any], *turns: Sequence[str]
) -> Any:
    def said(role: str, text: str, at: str) -> dict[str, Any]:
        kind = "input_text" if role == "user" else "output_text"
        content = [{"type": kind, "text": text}]
        payload = {"type": "message", "role": role, "content": content}
        return {"timestamp": at, "type": "response_item", "payload": payload}

    meta = {"id": name, "timestamp": at, "cwd": "/home/me/heron", "source": "cli",
            "originator": "codex_cli", **header}  # fmt: skip
    records = [
        record
        for asked, answer, at in turns
        for record in (said("user", asked, at), said("assistant", answer, at))
    ]
    first = {"timestamp": at, "type": "session_meta", "payload": meta}
    return _written(folder / f"rollout-2026-08-01T10-00-00-{name}.jsonl", first, *records)


def _codex(folder: Path) -> Session:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "p1", "depth": 1}}}
    return Session(
        _rollout(folder, "p1", BEGUN, {"forked_from_id": "p0"}, ("Say hello.", "Hello.", BEGUN),
                 ("Look for herons.", "There are three.", ASKED)),
        _rollout(folder, "c1", STARTED, {"source": spawned}, ("Find herons.", "Three.", STARTED)),
    )  # fmt: skip


def _gemini_cli(folder: Path) -> Session:
    def chat(path: Path, name: str, kind: str, *turns: Sequence[str]) -> Path:
        head = {"sessionId": name, "projectHash": "h", "startTime": turns[0][2], "kind": kind}
        records = [
            {"id": f"{name}-{number}-{by}", "type": by, "timestamp": at, "content": text}
            for number, (asked, answer, at) in enumerate(turns)
            for by, text in (("user", asked), ("gemini", answer))
        ]
        return _written(path, head, *records)

    chats = folder / "heron" / "chats"
    turns = ("Say hello.", "Hello.", BEGUN), ("Look for herons.", "There are three.", ASKED)
    return Session(
        chat(chats / "session-2026-08-01T10-00-a1b2c3d4.jsonl", "a1b2c3d4-e5", "main", *turns),
        chat(chats / "a1b2c3d4-e5" / "k7.jsonl", "k7", "subagent", ("Find.", "Three.", STARTED)),
    )


def _ms(at: str) -> int:
    return 1_785_578_400_000 + 60_000 * int(at[15])


def _opencode(folder: Path) -> Session:
    def database(name: str, parent: str | None, *turns: Sequence[str]) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.db"
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.executescript(
                "CREATE TABLE session (id, parent_id, title, directory, time_created, time_updated);"
                "CREATE TABLE message (id, session_id, data);"
                "CREATE TABLE part (id, message_id, session_id, data);"
            )
            at = _ms(turns[0][2])
            row = (name, parent, "Herons", "/home/me/heron", at, at)
            connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?)", row)
            for number, (asked, answer, at_text) in enumerate(turns):
                for role, text in (("user", asked), ("assistant", answer)):
                    own = f"{name}-{number}-{'a' if role == 'user' else 'b'}"
                    times = {"created": _ms(at_text), "completed": _ms(at_text)}
                    data = json.dumps({"role": role, "time": times})
                    connection.execute("INSERT INTO message VALUES (?, ?, ?)", (own, name, data))
                    part = json.dumps({"type": "text", "text": text})
                    values = (f"{own}-p", own, name, part)
                    connection.execute("INSERT INTO part VALUES (?, ?, ?, ?)", values)
        return path

    turns = ("Say hello.", "Hello.", BEGUN), ("Look for herons.", "There are three.", ASKED)
    return Session(
        database("ses_1", None, *turns), database("ses_2", "ses_1", ("Find.", "Three.", STARTED))
    )


def _codex_app(folder: Path) -> Session:
    def database(home: Path, name: str, *turns: Sequence[str]) -> Path:
        home.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(home / "state_5.sqlite")) as connection, connection:
            connection.executescript(
                "CREATE TABLE threads (id, title); INSERT INTO threads VALUES ('p1', 'Herons');"
                "CREATE TABLE thread_spawn_edges (parent_thread_id, child_thread_id, status);"
                "INSERT INTO thread_spawn_edges VALUES ('p1', 'c1', 'open')"
            )
        path = home / "thread_history_1.sqlite"
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(
                "CREATE TABLE thread_items (thread_id, turn_id, item_id, rollout_ordinal, created_at_ms, item_json)"
            )
            for number, (asked, answer, at) in enumerate(turns):
                content = [{"type": "text", "text": asked}]
                for kind, more in (
                    ("userMessage", {"content": content}),
                    ("agentMessage", {"text": answer}),
                ):
                    row = (
                        name,
                        "t",
                        f"{name}-{number}-{kind}",
                        number,
                        _ms(at),
                        json.dumps({"type": kind, **more}),
                    )
                    connection.execute("INSERT INTO thread_items VALUES (?, ?, ?, ?, ?, ?)", row)
        return path

    turns = ("Say hello.", "Hello.", BEGUN), ("Look for herons.", "There are three.", ASKED)
    return Session(
        database(folder / "a", "p1", *turns),
        database(folder / "b", "c1", ("Find.", "Three.", STARTED)),
    )


def _goose(folder: Path) -> Session:
    def database(name: str, kind: str, parent: str | None, *turns: Sequence[str]) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.db"
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.executescript(
                "CREATE TABLE sessions (id, name, session_type, working_dir, created_at, parent_session_id);"
                "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id, role, content_json, created_timestamp);"
            )
            row = (name, "Herons", kind, "/home/me/heron", _ms(turns[0][2]), parent)
            connection.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", row)
            for asked, answer, at in turns:
                for role, text in (("user", asked), ("assistant", answer)):
                    content = json.dumps([{"type": "text", "text": text}])
                    values = (name, role, content, _ms(at) // 1000)
                    connection.execute("INSERT INTO messages VALUES (NULL, ?, ?, ?, ?)", values)
        return path

    turns = ("Say hello.", "Hello.", BEGUN), ("Look for herons.", "There are three.", ASKED)
    return Session(
        database("s1", "user", None, *turns),
        database("s2", "sub_agent", "s1", ("Find.", "Three.", STARTED)),
    )


def _cursor(folder: Path) -> Session:
    def transcript(path: Path, *turns: tuple[str, str]) -> Path:
        records = [
            {"role": role, "message": {"content": [{"type": "text", "text": text}]}}
            for turn in turns
            for role, text in zip(("user", "assistant"), turn, strict=True)
        ]
        return _written(path, *records)

    above = folder / "-home-me-heron" / "agent-transcripts" / "t1"
    turns = ("Say hello.", "Hello."), ("Look for herons.", "There are three.")
    return Session(
        transcript(above / "t1.jsonl", *turns),
        transcript(above / "subagents" / "t2.jsonl", ("Find herons.", "Three.")),
    )


AGENTS: dict[str, Callable[[Path], Session]] = {
    "claude_code": _claude_code,
    "codex": _codex,
    "codex_app": _codex_app,
    "goose": _goose,
    "gemini_cli": _gemini_cli,
    "opencode": _opencode,
    "cursor": _cursor,
}


def _both(store: Store) -> tuple[Conversation, Conversation]:
    """Return the agent's conversation and the subagent's."""
    tagged = Conversations(store).tags_of([each.id for each in Conversations(store).listed()])
    one, other = Conversations(store).listed()
    return (other, one) if "subagent" in tagged.get(one.id, ()) else (one, other)


def _links(store: Store, conversation: Conversation) -> AgentLinks:
    return Library(store).agent_links(conversation.id)


def _are_linked(store: Store) -> bool:
    agent, subagent = _both(store)
    up, down = _links(store, subagent), _links(store, agent)
    return (
        up.started_by is not None
        and up.started_by.conversation == agent
        and [each.conversation for each in down.subagents] == [subagent]
        and (up.subagents, down.started_by) == ((), None)
    )


@pytest.mark.parametrize("is_agent_first", [True, False], ids=["agent first", "subagent first"])
@pytest.mark.parametrize("agent", AGENTS)
def test_a_subagent_is_linked_to_the_turn_that_started_it(
    store: Store, tmp_path: Path, agent: str, is_agent_first: bool
) -> None:
    for path in list(AGENTS[agent](tmp_path / "logs"))[:: 1 if is_agent_first else -1]:
        import_files(store, [path])
    assert _are_linked(store)
    started_by = _links(store, _both(store)[1]).started_by
    assert started_by is not None
    turn = started_by.exchange and started_by.exchange.turn_number
    assert turn == (None if agent == "cursor" else 1), "a transcript has no times"


def test_a_session_within_the_file_of_its_agent_is_linked(store: Store, tmp_path: Path) -> None:
    import_files(store, [_written(tmp_path / "s1.jsonl", *CLAUDE, *CLAUDE_SUBAGENT)])
    assert _are_linked(store)


def test_sessions_that_are_followed_are_linked(followed: Followed) -> None:
    beside = followed.session.with_suffix("") / "subagents" / "agent-x9.jsonl"
    _written(beside, *CLAUDE_SUBAGENT)
    followed.read()
    for count in (1, 3, 4):
        _written(followed.session, *CLAUDE[:count])
        followed.read()
    assert _are_linked(followed.store)


def test_what_was_imported_without_links_gets_them(store: Store, tmp_path: Path) -> None:
    paths = list(_claude_code(tmp_path))
    import_files(store, paths)
    execute(store, "DELETE FROM origin WHERE kind = 'subagent' OR source_id = 's1'")
    assert not _are_linked(store)
    assert import_files(store, paths).messages == 0
    assert _are_linked(store)


@pytest.mark.parametrize("together", [False, True])
def test_an_id_that_a_fork_is_known_by_stays_with_it(
    store: Store, tmp_path: Path, together: bool
) -> None:
    """The id of what c2 was forked from is that of its conversation; p1 is read later, and both grow."""
    c2 = [("Say hello.", "Hello.", BEGUN), ("And you?", "Too.", STARTED)]
    p1 = [("Say hello.", "Hello.", BEGUN), ("Look for herons.", "Three.", ASKED)]
    more = ("More?", "No.", ENDED)
    for turns in ((c2, p1), ([*c2, more], [*p1, more])):
        paths = [
            _rollout(tmp_path, name, STARTED, {"forked_from_id": of}, *each)
            for name, of, each in zip(("c2", "p1"), ("p1", "p0"), turns, strict=True)
        ]
        for some in [paths] if together else [[each] for each in paths]:
            import_files(store, some)
    exchanges = Exchanges(store)
    found = [exchanges.messages_in(each.id) for each in Conversations(store).listed()]
    assert [len(each) for each in found] == [6, 6]
    assert check(store).problems == ()


def test_a_session_of_two_libraries_goes_on_in_the_first(store: Store, tmp_path: Path) -> None:
    """They have it with other times, so that it is two conversations."""
    for day in ("01", "02"):
        records = [
            _claude(kind, name, parent, f"2026-05-{day}T10:00:00Z", text)
            for kind, name, parent, text in (("user", "u1", None, "Hi."), ("assistant", "a1", "u1", "Ho."))
        ]  # fmt: skip
        path = _written(tmp_path / day / "-home-me-heron" / "s1.jsonl", *records)
        with opened(tmp_path / f"library {day}") as other:
            import_files(other, [path])
            export(other, tmp_path / f"{day}.json", ExportFormat.JSON)
        import_files(store, [tmp_path / f"{day}.json"])
    more = _claude("user", "u2", "a1", "2026-05-02T10:00:00Z", "And?")
    import_files(store, [_written(path, *records, more)])
    exchanges = Exchanges(store)
    counts = [len(exchanges.messages_in(each.id)) for each in Conversations(store).listed()]
    assert sorted(counts) == [2, 3]
    assert check(store).problems == ()


def test_an_agent_is_not_linked_to_itself(store: Store, tmp_path: Path) -> None:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "c1"}}}
    turn = ("Find herons.", "Three.", STARTED)
    import_files(store, [_rollout(tmp_path, "c1", STARTED, {"source": spawned}, turn)])
    assert _links(store, Conversations(store).listed()[0]) == AgentLinks()


def test_a_link_ends_in_the_trash_and_returns_from_it(store: Store, tmp_path: Path) -> None:
    paths = list(_claude_code(tmp_path))
    number = import_files(store, paths[:1]).number
    import_files(store, paths[1:])
    agent, subagent = _both(store)
    Library(store).delete(subagent.id)
    assert _links(store, agent) == AgentLinks()
    Library(store).restore(subagent.id)
    ImportHistory(store).undo(number)
    assert _links(store, subagent) == AgentLinks()
    import_files(store, paths[:1])
    assert _are_linked(store)


def test_a_forgotten_agent_leaves_no_link(store: Store, tmp_path: Path) -> None:
    import_files(store, list(_claude_code(tmp_path)))
    agent, subagent = _both(store)
    forget(store, [agent.id])
    assert _links(store, subagent) == AgentLinks()
    assert not store.rows("SELECT * FROM origin WHERE source_id = 's1'")


def test_links_survive_a_move_to_another_library(store: Store, tmp_path: Path) -> None:
    paths = list(_claude_code(tmp_path / "logs"))
    import_files(store, paths)
    for name, chosen in (("a", ExportFormat.JSON), ("b", ExportFormat.JSONL)):
        export(store, tmp_path / name, chosen)
        with opened(tmp_path / f"library {name}") as other:
            import_files(other, [tmp_path / name])
            assert _are_linked(other)
            export(other, tmp_path / f"{name} again", chosen)
        with opened(tmp_path / f"third {name}") as third:
            import_files(third, [tmp_path / f"{name} again"])
            assert _are_linked(third)
            assert import_files(third, paths).messages == 0
