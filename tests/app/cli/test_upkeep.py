"""`work`, `status`, `check`, `backup`, `restore`, `rebuild`, `config` and `provider`."""

import json
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.cli.commands import maintenance as commands
from app.domain.errors import InvalidInput, NotFound
from app.domain.settings_schema import SETTINGS
from app.domain.workers import WorkerName
from app.index.text_sync import TextIndexSync
from app.providers.configuration import ProviderConfig
from app.storage.safety import maintenance
from app.storage.safety.backup import list_backups
from app.storage.tables.attempts import Attempts
from app.system.paths import DataPaths, stored_settings
from app.workers.board import WorkerBoard
from tests.fakes.command_line import CommandLine, Console
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import Http
from tests.fakes.stored import add_conversation, opened

WORKERS = {
    "exchange_summarizer", "conversation_summarizer", "knowledge_extractor", "tool_summarizer",
    "embedding_pipeline", "man_indexer", "profile_writer", "source_reader",
    "routine_runner", "topic_finder", "document_indexer",
}  # fmt: skip
TITLES = ["Herbs", "Roots", "Seeds"]
PARSLEY = (
    "Parsley needs a deep pot because its root is long. Water it when the earth is dry. "
    "It grows for two years and flowers in the second."
)


@pytest.fixture(scope="module")
def cli_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory of three conversations, to copy."""
    root = tmp_path_factory.mktemp("library") / "data"
    with opened(root) as store:
        for title in TITLES:
            add_conversation(
                store, f"{title}: how do I grow parsley? {PARSLEY}", "And mint?", title=title
            )
    return root


@pytest.fixture(scope="module")
def worked(cli_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of `cli_library` on which the workers are idle, to copy."""
    root = tmp_path_factory.mktemp("worked") / "data"
    shutil.copytree(cli_library, root)
    with closing(Console(root)) as console:
        console.done("work", "--until-idle")
    return root


def test_work_alone_makes_backups(
    cli_library: Path,
    data_dir: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(cli_library, data_dir)
    monkeypatch.setattr(maintenance, "QUIET_S", 0.0)
    CommandLine(data_dir, capsys).done("work", "--until-idle")
    assert list_backups(data_dir / "backups")


@pytest.fixture
def idle(worked: Path, data_dir: Path) -> Iterator[Console]:
    """Yield a command line on a library on which the workers are idle."""
    shutil.copytree(worked, data_dir)
    with closing(Console(data_dir)) as console:
        yield console


@pytest.fixture
def program(cli_library: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    shutil.copytree(cli_library, data_dir)
    return CommandLine(data_dir, capsys)


def count_found(cli: Console | CommandLine, query: str) -> int:
    """Return how many of the turns found contain the query, and are not only near one that does."""
    results = cli.json("search", query)["results"]
    return sum(query in f"{each['user_question']} {each['snippet']}" for each in results)


# -- work and status
def test_work_until_idle(cli: Console) -> None:
    lines = cli.done("work", "--until-idle", "--only", "conversation_summarizer").out.splitlines()
    assert "conversation_summarizer: done, 3 of 3" in lines
    assert "exchange_summarizer: stopped, 0 of 6" in lines
    cli.done("config", "set", "summarizer_exchange_enabled", "false")
    workers = cli.json("work", "--until-idle")["workers"]
    assert workers.keys() == WORKERS
    assert {name: (each["done"], each["total"]) for name, each in workers.items()} == {
        "exchange_summarizer": (0, 6),
        "conversation_summarizer": (3, 3),
        "knowledge_extractor": (6, 6),
        "embedding_pipeline": (6, 6),  # three turns are short
        "tool_summarizer": (0, 0),
        "man_indexer": (0, 0),
        "profile_writer": (0, 0),
        "source_reader": (0, 0),
        "routine_runner": (0, 0),
        "topic_finder": (0, 0),
        "document_indexer": (0, 0),
    }
    off = cli.json("work", "--until-idle", "--only", "exchange_summarizer")["workers"]
    assert (off["exchange_summarizer"]["done"], off["exchange_summarizer"]["enabled"]) == (6, False)
    assert cli.json("show", 1)["summary"]
    assert cli.json("show", 1)["turns"][0]["summary"]
    for kind in ("conversation_summary", "exchange_summary"):
        assert cli.json("search", "parsley", "--kind", kind)["results"]


def test_work_fails_when_workers_that_use_models_are_blocked(cli: Console) -> None:
    cli.done("config", "set", "background_model", "openai:gpt-4o-mini", "--yes")
    add = ("provider", "add", "openai", "--kind", "openai", "--base-url")
    cli.done(*add, "https://elsewhere.example/v1")  # the consent was for another place
    ran = cli("work", "--until-idle", "--json")
    assert ran.code == 1
    assert ran.document["workers"]["embedding_pipeline"]["done"] == 3
    lines = [line for line in ran.err.splitlines() if " waits: " in line]
    assert {line.split()[0] for line in lines} == {
        "exchange_summarizer", "conversation_summarizer", "knowledge_extractor",
    }  # fmt: skip
    assert all("elsewhere.example" in line and "--yes" in line for line in lines)


def test_work_runs_until_interrupted(program: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    real = WorkerBoard.run_until_idle
    rounds: list[int] = []

    def run(board: WorkerBoard, *given: object, **named: object) -> object:
        done = real(board, *given, **named)  # type: ignore[arg-type]
        rounds.append(len(rounds))
        if len(rounds) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return done

    monkeypatch.setattr(WorkerBoard, "run_until_idle", run)
    monkeypatch.setattr("app.cli.commands.workers._LOOK_EVERY_S", 0.0)
    ran = program("work", "--json")
    assert (ran.code, rounds) == (130, [0, 1])
    assert ran.document["workers"]["exchange_summarizer"]["done"] == 6


def test_status(cli: Console) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    Attempts(cli.services.store, WorkerName.EXCHANGE_SUMMARIZER).failed(1, 1, later, "it timed out")
    document = cli.json("status")
    assert document["workers"].keys() == WORKERS
    summarizer = document["workers"]["exchange_summarizer"]
    assert summarizer.keys() >= {
        "state", "current_item", "done", "total", "completed", "failed", "skipped", "session",
        "all_time", "rate_per_minute", "remaining_s", "last_error", "next_attempt_at", "set_aside",
    }  # fmt: skip
    assert datetime.fromisoformat(summarizer["next_retry_at"]) == later
    assert (document["passages"], document["searchable_percent"]) == ({"turn": 6}, 100.0)
    assert document["embedded_percent"] == 0.0
    assert document["embedding_space"] == "all_minilm_l6_v2"
    assert (document["conversations"], document["database_bytes"] > 0) == (3, True)
    assert document["spend"] == {
        "today_usd": 0.0, "month_usd": 0.0, "today_known_usd": 0.0, "month_known_usd": 0.0,
        "today_estimated_usd": 0.0, "month_estimated_usd": 0.0, "this_month": [], "by_month": [],
    }  # fmt: skip
    cli.done("config", "set", "summarizer_exchange_enabled", "false")
    ran = cli.done("status")
    for line in (
        "exchange_summarizer: off, 0 of 6", "turn: 6", "searchable: 100%", "conversations: 3",
        "embedded in all_minilm_l6_v2: 0%", "spent: $0.00 today, $0.00 this month",
    ):  # fmt: skip
        assert line in ran.out
    assert "6 turns without a summary" in ran.err


# -- check, backup, restore, rebuild
def test_check_finds_and_repairs(idle: Console) -> None:
    assert idle.done("check").out == "Everything is in order.\n"
    document = idle.json("check")
    assert (document["ok"], document["problems"]) == (True, [])
    delete = "DELETE FROM passage WHERE id = 1"
    idle.services.store.write_derived(lambda c: c.execute(delete) and None).result()
    ran = idle("check", "--json")
    assert (ran.code, ran.document["ok"], bool(ran.document["problems"])) == (1, False, True)
    assert "check --repair" in idle("check").err
    repaired = idle.json("check", "--repair")
    assert repaired["ok"] is True
    assert len(repaired["repaired"]) == len(ran.document["problems"])
    assert idle.json("check")["ok"] is True


def test_a_long_wait_for_the_index_is_told(idle: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    said = threading.Event()

    class Timer(threading.Timer):
        def run(self) -> None:
            super().run()
            said.set()

    monkeypatch.setattr(commands, "Timer", Timer)
    monkeypatch.setattr(commands, "_LONG_S", 0.0)
    monkeypatch.setattr(TextIndexSync, "catch_up", lambda *_: said.wait(10))
    idle.is_watched = True
    assert "index is being brought up to date" in idle.done("check", "--repair").err


def test_backups(cli: Console, tmp_path: Path) -> None:
    made = Path(cli.done("backup").out.strip())
    assert (made.parent, cli.done("backup").out.strip()) == (cli.data_dir / "backups", str(made))
    with made.open("r+b") as file:
        file.truncate(made.stat().st_size // 2)
    assert cli.done("backup").out.strip() != str(made), "one that cannot be read is no backup"
    copied = cli.json("backup", tmp_path / "mine.duckdb")
    assert copied["backup"] == str(tmp_path / "mine.duckdb")
    assert (tmp_path / "mine.duckdb").stat().st_size > 0
    (tmp_path / "folder").mkdir()
    inside = Path(cli.json("backup", tmp_path / "folder")["backup"])
    assert (inside.exists(), inside.parent) == (True, tmp_path / "folder")
    ran = cli("backup", tmp_path / "nowhere" / "mine.duckdb")
    assert (ran.code, ran.out) == (1, "")
    assert "mine.duckdb' cannot be written" in ran.err


def test_backups_are_listed(program: CommandLine) -> None:
    made = program.json("backup")
    assert program.json("restore") == {
        "backups": [{**made, "bytes": Path(made["backup"]).stat().st_size}]
    }
    assert program.done("restore").out.endswith(f"  {made['backup']}\n")


def test_restore(program: CommandLine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    backup, damaged = tmp_path / "backup.duckdb", program.data_dir / "damaged"
    program.done("backup", backup)
    (tmp_path / "letter.txt").write_text("Dear all, " * 2000)
    whole = backup.read_bytes()
    (tmp_path / "half.duckdb").write_bytes(whole[: len(whole) // 2])
    for name, message in (
        ("nowhere", "There is no file"), (".", "There is no file"),
        ("letter.txt", "'letter.txt' is not a database of this program"),
        ("half.duckdb", "The file 'half.duckdb' is damaged"),
        ("data/commonplace.duckdb", "is the database itself"),
    ):  # fmt: skip
        refused = program("restore", tmp_path / name)
        assert (refused.code, refused.out, message in refused.err) == (1, "", True)
    assert (program.titles(), damaged.exists()) == (TITLES, False)
    program.done("delete", 1)
    program.done("ask", "Something about chervil")
    assert count_found(program, "chervil") == 1
    ran = program.done("restore", backup)
    assert (ran.out, "is kept in " in ran.err) == ("", True)
    assert program.titles() == TITLES
    assert (count_found(program, "chervil"), count_found(program, "parsley")) == (0, 3)
    (replaced,) = damaged.iterdir()
    assert "commonplace.duckdb" in {each.name for each in replaced.iterdir()}
    document = program.json("restore", backup)
    assert document["restored"] == str(backup)
    assert Path(document["replaced"]).parent == damaged
    new = CommandLine(tmp_path / "new", capsys)
    assert new.done("restore", backup).err == ""
    assert new.titles() == TITLES
    shutil.copytree(program.data_dir, tmp_path / "copy")
    assert CommandLine(tmp_path / "copy", capsys).titles() == TITLES


def test_restore_is_refused_while_the_library_is_open(cli: Console) -> None:
    for words in (("restore", "x"), ()):
        ran = cli(*words)
        assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)


def test_the_index_is_rebuilt(cli: Console) -> None:
    assert count_found(cli, "parsley") == 3
    index = cli.services.paths.index / "text"
    before = {each.name for each in index.iterdir()}
    assert cli.json("rebuild", "index") == {"rebuilt": "index"}
    assert {each.name for each in index.iterdir()} != before
    assert count_found(cli, "parsley") == 3


def test_a_deleted_index_is_rebuilt_by_the_next_search(program: CommandLine) -> None:
    assert count_found(program, "parsley") == 3
    shutil.rmtree(program.data_dir / "index")
    assert count_found(program, "parsley") == 3


def test_embeddings_are_rebuilt_after_a_confirmation(idle: Console) -> None:
    for idle.typed in ("", "no", "yes please"):
        for idle.is_watched in (True, False):
            ran = idle("rebuild", "embeddings", "--json")
            assert (ran.code, ran.out, "Nothing was deleted" in ran.err) == (1, "", True)
    assert idle.json("status")["embedded_percent"] == 100.0
    for answer, words in ((" Yes\n", ()), ("", ("--yes",))):
        idle.typed, idle.is_watched = answer, bool(answer)
        ran = idle.done("rebuild", "embeddings", "--json", *words)
        document = ran.document
        deleted = document.pop("deleted")
        assert deleted > 12
        assert document == {
            "rebuilt": "embeddings", "space": "all_minilm_l6_v2", "embedded": 12, "total": 12,
        }  # fmt: skip
        for text in (f"deletes the {deleted} vectors", "12 passages again", "at no cost"):
            assert text in ran.err
    assert idle.json("check")["ok"] is True


def test_summaries_and_facts_of_other_models_are_rebuilt_after_a_question(idle: Console) -> None:
    for what in ("summaries", "facts"):
        ran = idle.done("rebuild", what)
        assert (ran.out, "nothing to re" in ran.err) == ("", True)
    change = "UPDATE extraction SET model = 'local:other'"
    idle.services.store.write_derived(lambda c: c.execute(change) and None).result()
    ran = idle("rebuild", "facts")
    assert (ran.code, ran.out) == (1, "")
    assert "would read 6 turns again: at no cost" in ran.err
    assert "Nothing was changed" in ran.err
    assert idle.json("rebuild", "facts", "--yes") == {
        "rebuilt": "facts", "asked_for": 6, "waiting": 0,
    }  # fmt: skip


# -- config
def test_the_next_window_begins_with_what_was_set_without_one(cli: Console) -> None:
    file = DataPaths(cli.data_dir).window
    cli.done("config", "set", "language", "de")
    assert stored_settings(file) == {"language": "de"}
    file.write_text('{"page": "facts", "settings": {"theme": "dark", "language": "de"}}')
    cli.done("config", "set", "rag_min_similarity", "0.25")
    cli.done("config", "reset", "language")
    assert json.loads(file.read_text()) == {
        "page": "facts", "settings": {"theme": "dark", "language": "system"},
    }  # fmt: skip


def test_settings(cli: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "rag_min_similarity"
    assert cli.json("config", "set", key, "0.25") == {"key": key, "value": 0.25}
    assert cli.done("config", "get", key).out == "0.25\n"
    shown = cli.done("config", "list").out
    assert f"* {key} = 0.25" in shown
    assert "  theme = " in shown
    for internal in ("clean_slates", "probe_questions", "embedder_before"):
        assert internal not in shown
    cli.done("config", "reset", key)
    assert cli.json("config", "get", key)["value"] == 0.7
    listed = cli.json("config", "list", "--all")["settings"]
    assert listed.keys() == SETTINGS.keys()
    assert listed["theme"].keys() == {"value", "default", "allowed", "unit", "help"}
    assert cli.done("config", "list", "--all").out.count("\n") == len(SETTINGS)
    for words in ((key, "2"), (key, "-1"), ("theme", "puce")):
        ran = cli("config", "set", *words)
        assert (ran.code, ran.out, all(word in ran.err for word in words)) == (1, "", True)
        assert cli.json("config", "get", words[0])["value"] == SETTINGS[words[0]].default
    ran = cli("config", "get", "rag_min_similarty")
    assert (ran.code, ran.out, key in ran.err) == (1, "", True)
    monkeypatch.setenv("COMMONPLACE_PROXY_URL", "http://127.0.0.1:3128")
    ran = cli.done("config", "set", "proxy_url", "http://127.0.0.1:9")
    assert "COMMONPLACE_PROXY_URL" in ran.err
    assert cli.json("config", "get", "proxy_url")["value"] == "http://127.0.0.1:3128"


def test_a_setting_that_breaks_every_chat_is_refused(cli: Console) -> None:
    for key, value in (
        ("default_model", "gpt-5"), ("default_model", "nobody:gpt-5"), ("default_model", "openai:"),
        ("default_model", ""), ("proxy_url", "proxy:3128"), ("proxy_url", "http://user:pw@:80"),
        ("proxy_url", "http://a:99999"), ("ca_bundle", "/nowhere/all.pem"), ("ca_bundle", __file__),
        ("ca_bundle", "all.pem"),
    ):  # fmt: skip
        ran = cli("config", "set", key, value)
        assert (value, ran.code, ran.out) == (value, 1, "")
        assert "pw" not in ran.err
        assert cli.json("config", "get", key)["value"] == SETTINGS[key].default


# -- provider
def test_providers(cli: Console, server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    add = ("provider", "add", "local", "--kind", "compatible", "--base-url", server.v1)
    assert cli.json(*add) == {"added": "local"}
    listed = {each["name"]: each for each in cli.json("provider", "list")["providers"]}
    assert listed.keys() == {"openai", "anthropic", "local"}
    assert listed["local"]["base_url"] == server.v1
    tested = cli.json("provider", "test", "local")
    assert (tested["ok"], tested["models"]) == (True, ["local:test-model", "local:test-model-mini"])
    assert "local:test-model" in cli.done("provider", "test", "local").out
    refused = Http(401, error={"type": "invalid_api_key", "message": "Wrong key"})
    server.routes["/v1/models"] = refused
    ran = cli("provider", "test", "local", "--json")
    assert (ran.code, ran.document["ok"], "key" in ran.err) == (1, False, True)
    assert cli.json("provider", "remove", "local") == {"removed": "local"}
    far = ("provider", "add", "far", "--kind", "compatible", "--base-url", "http://example.org/v1")
    cli.done(*far, "--insecure")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789")
    shown = cli.done("provider", "list")
    assert "http://example.org/v1" in shown.out
    assert "OPENAI_API_KEY" in shown.out
    assert "canary" not in shown.out + shown.err


def test_a_passphrase_that_is_too_short_is_named_as_such(
    cli: Console, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.done("provider", "add", "local", "--kind", "compatible", "--base-url", server.v1)
    monkeypatch.setenv("COMMONPLACE_PASSPHRASE", "short")
    cli.typed = "sk-canary-0123456789\n"
    ran = cli("provider", "key", "local")
    assert (ran.code, "at least 8 characters" in ran.err) == (1, True)


def test_an_encrypted_key_is_unlocked_when_it_is_needed(cli: Console, server: Loopback) -> None:
    cli.done("provider", "add", "local", "--kind", "compatible", "--base-url", server.v1)
    cli.typed = "sk-canary-0123456789\n"
    ran = cli("provider", "key", "local")
    assert (ran.code, "COMMONPLACE_PASSPHRASE" in ran.err) == (1, True), "nobody can be asked"
    cli.secrets = ["sk-canary-0123456789", "correct horse", "correct hose"]
    assert cli("provider", "key", "local").code == 1
    assert not cli.services.paths.keys.exists()
    cli.secrets = ["sk-canary-0123456789", "correct horse", "correct horse"]
    assert cli.json("provider", "key", "local") == {"saved": "local", "kept_in": "file"}
    assert "canary" not in cli.services.paths.keys.read_text("utf-8")

    cli.close()
    with closing(Console(cli.data_dir)) as again:
        listed = again.json("provider", "list")["providers"]
        assert [each["key_from"] for each in listed if each["name"] == "local"] == [
            "the locked key file"
        ]
        ran = again("ask", "Hello", "--model", "local:test-model")
        assert (ran.code, "local is locked" in ran.err) == (1, True)
        assert not server.posts, "no request goes out without its key"
        again.secrets = ["wrong horse"]
        assert again("ask", "Hello", "--model", "local:test-model").code == 1
        again.secrets = ["correct horse"]
        again.done("ask", "Hello", "--model", "local:test-model")
        assert server.requests[-1].headers["authorization"] == "Bearer sk-canary-0123456789"


@pytest.mark.parametrize(
    "words",
    ["add far --kind compatible --base-url http://example.org/v1",
     "add odd --kind compatible --base-url ftp://127.0.0.1/v1", "add bare --kind compatible",
     "add a%b:c --kind compatible --base-url http://127.0.0.1:1/v1", "remove openai",
     "remove nobody", "test nobody"],
)  # fmt: skip
def test_providers_that_cannot_exist(cli: Console, words: str) -> None:
    ran = cli("provider", *words.split())
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert len(cli.json("provider", "list")["providers"]) == 2


def test_a_provider_is_tried_unsaved_and_removed_everywhere(cli: Console, server: Loopback) -> None:
    config = ProviderConfig("shed", "compatible", server.v1)
    services = cli.services
    report = services.chat.call(lambda: services.models.try_out(config, "sk-typed")).result(20)
    assert [each.ref.model for each in report.models] == ["test-model", "test-model-mini"]
    assert server.requests[-1].headers["authorization"] == "Bearer sk-typed"
    assert services.settings.providers() == ()
    with pytest.raises(InvalidInput):
        services.chat.call(lambda: services.models.try_out(config, "not a key")).result(20)
    services.models.add_provider(replace(config, first_byte_s=90))
    cards = services.chat.call(lambda: services.models.cards_of(report.models)).result(20)
    assert {each.price_usd for each in cards} == {(0.0, 0.0)}
    services.settings.set("default_model", "shed:test-model")
    services.models.remove_provider("shed")
    assert services.settings.text("default_model") == "recall:"
    assert services.settings.text("provider_timeouts") == "{}"
    with pytest.raises(NotFound):
        services.models.remove_provider("shed")
