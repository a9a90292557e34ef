"""`work`, `status`, `check`, `backup`, `restore`, `rebuild`, `config`, `provider`, as typed."""

import json
import os
import shutil
import signal
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.bootstrap import Role, build
from app.cli.commands.upkeep import rebuild
from app.cli.terminal import NotAgreed, Terminal
from app.domain.settings_schema import SETTINGS
from app.domain.workers import WorkerName
from app.storage.attempts import Attempts
from app.system.paths import DataPaths
from app.workers.board import WorkerBoard
from tests.fakes.command_line import CommandLine
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import Http
from tests.fakes.stored import opened, told

WORKERS = {
    "exchange_summarizer", "conversation_summarizer", "knowledge_extractor", "tool_summarizer",
    "embedding_pipeline", "man_indexer",
}  # fmt: skip
MINI_LM = "all_minilm_l6_v2"
PARSLEY = (
    "Parsley needs a deep pot because its root is long. Water it when the earth is dry. "
    "It grows for two years and flowers in the second."
)


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory of three conversations, to be copied."""
    root = tmp_path_factory.mktemp("book") / "data"
    with opened(root) as store:
        for title in ("Herbs", "Roots", "Seeds"):
            told(store, f"{title}: how do I grow parsley? {PARSLEY}", "And mint?", title=title)
    return root


@pytest.fixture
def cli(book: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    shutil.copytree(book, data_dir)
    return CommandLine(data_dir, capsys)


def titles(cli: CommandLine) -> list[str]:
    return sorted(row["title"] for row in cli.json("list")["conversations"])


def found(cli: CommandLine, query: str) -> int:
    """How many of the turns found show the word, and do not just stand beside one that does."""
    results = cli.json("search", query)["results"]
    return sum(query in f"{each['user_question']} {each['snippet']}" for each in results)


# -- work and status


def test_work_until_idle_leaves_nothing_to_do(cli: CommandLine) -> None:
    workers = cli.json("work", "--until-idle")["workers"]
    assert workers.keys() == WORKERS
    assert {name: (each["done"], each["total"]) for name, each in workers.items()} == {
        "exchange_summarizer": (6, 6),
        "conversation_summarizer": (3, 3),
        "knowledge_extractor": (6, 6),
        "embedding_pipeline": (12, 12),  # what the other two have made too; three turns are short
        "tool_summarizer": (0, 0),
        "man_indexer": (0, 0),
    }
    assert cli.json("show", 1)["summary"]
    assert cli.json("show", 1)["turns"][0]["summary"]


def test_what_workers_made_is_found(cli: CommandLine) -> None:
    cli.done("work", "--until-idle")
    kinds = ("--kind", "conversation_summary", "--kind", "exchange_summary")
    assert cli.json("search", "parsley", *kinds)["results"]


def test_work_tells_in_words_how_it_stands(cli: CommandLine) -> None:
    lines = cli.done("work", "--until-idle", "--only", "conversation_summarizer").out.splitlines()
    assert "conversation_summarizer: done, 3 of 3" in lines
    assert "exchange_summarizer: stopped, 0 of 6" in lines


def test_json_tells_when_an_item_is_tried_again(cli: CommandLine) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    with opened(cli.data_dir) as store:
        Attempts(store, WorkerName.EXCHANGE_SUMMARIZER).failed(1, 1, later, "it timed out")
    told_at = cli.json("status")["workers"]["exchange_summarizer"]["next_retry_at"]
    assert datetime.fromisoformat(told_at) == later


def test_work_fails_when_who_asks_models_waits_and_did_nothing(cli: CommandLine) -> None:
    cli.done("config", "set", "background_model", "openai:gpt-4o-mini", "--yes")
    add = ("provider", "add", "openai", "--kind", "openai", "--base-url")
    cli.done(*add, "https://elsewhere.example/v1")  # another place, to which nobody has agreed
    ran = cli("work", "--until-idle", "--json")
    assert ran.code == 1
    assert ran.document["workers"]["embedding_pipeline"]["done"] == 3
    lines = [line for line in ran.err.splitlines() if " waits: " in line]
    assert {line.split()[0] for line in lines} == {
        "exchange_summarizer", "conversation_summarizer", "knowledge_extractor",
    }  # fmt: skip
    assert all("nobody has agreed" in line and "--yes" in line for line in lines)


def test_a_worker_that_is_off_works_when_named(cli: CommandLine) -> None:
    cli.done("config", "set", "summarizer_exchange_enabled", "false")
    workers = cli.json("work", "--until-idle")["workers"]
    assert workers["exchange_summarizer"]["done"] == 0
    workers = cli.json("work", "--until-idle", "--only", "exchange_summarizer")["workers"]
    assert workers["exchange_summarizer"]["done"] == 6
    assert workers["exchange_summarizer"]["enabled"] is False


def test_work_without_end_ends_by_an_interrupt(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = WorkerBoard.run_until_idle
    rounds: list[int] = []

    def run(board: WorkerBoard, *given: object, **named: object) -> object:
        done = real(board, *given, **named)  # type: ignore[arg-type]
        rounds.append(len(rounds))
        if len(rounds) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return done

    monkeypatch.setattr(WorkerBoard, "run_until_idle", run)
    monkeypatch.setattr("app.cli.commands.upkeep._LOOK_EVERY_S", 0.0)
    ran = cli("work", "--json")
    assert ran.code == 130
    assert ran.document["workers"]["exchange_summarizer"]["done"] == 6
    assert rounds == [0, 1], "it looked again before the interrupt"


def test_status_as_json_has_the_documented_fields(cli: CommandLine) -> None:
    document = cli.json("status")
    assert document.keys() >= {
        "workers", "passages", "searchable_percent", "database_bytes", "spend",
    }  # fmt: skip
    assert document["workers"].keys() == WORKERS
    assert document["workers"]["exchange_summarizer"].keys() >= {
        "state", "current_item", "done", "total", "completed", "failed", "skipped", "session",
        "all_time", "rate_per_minute", "remaining_s", "last_error", "next_attempt_at",
    }  # fmt: skip
    assert (document["passages"], document["searchable_percent"]) == ({"turn": 6}, 100.0)
    assert (document["embedded_percent"], document["embedding_space"]) == (0.0, MINI_LM)
    assert document["database_bytes"] > 0
    assert document["spend"] == {
        "today_usd": 0.0, "month_usd": 0.0, "today_known_usd": 0.0, "month_known_usd": 0.0,
        "today_estimated_usd": 0.0, "month_estimated_usd": 0.0, "this_month": [], "by_month": [],
    }  # fmt: skip


def test_status_in_words_names_what_waits(cli: CommandLine) -> None:
    cli.done("config", "set", "summarizer_exchange_enabled", "false")
    ran = cli.done("status")
    assert "exchange_summarizer: off, 0 of 6" in ran.out
    assert "turn: 6" in ran.out
    assert "searchable: 100%" in ran.out
    assert "spent: $0.00 today, $0.00 this month" in ran.out
    assert "6 exchanges wait for summaries, the exchange summariser is off." in ran.err


# -- check, backup, restore, rebuild


def test_a_sound_book_passes_the_check(cli: CommandLine) -> None:
    cli.done("work", "--until-idle")
    assert cli.done("check").out == "Everything is in order.\n"
    document = cli.json("check")
    assert (document["ok"], document["problems"]) == (True, [])


def test_a_check_names_what_is_wrong_and_mends_what_it_can(
    cli: CommandLine, data_dir: Path
) -> None:
    with opened(data_dir) as store:
        store.write_derived(lambda c: c.execute("DELETE FROM passage WHERE id = 1")).result()
    ran = cli("check", "--json")
    assert (ran.code, ran.document["ok"]) == (1, False)
    assert ran.document["problems"]
    mended = cli.json("check", "--repair")
    assert (mended["ok"], len(mended["repaired"])) == (True, len(ran.document["problems"]))
    assert cli.json("check")["ok"] is True


def test_a_backup_is_named_and_can_be_copied_out(cli: CommandLine, tmp_path: Path) -> None:
    inside = Path(cli.done("backup").out.strip())
    assert inside.parent == cli.data_dir / "backups"
    copied = cli.json("backup", tmp_path / "mine.duckdb")
    assert copied["backup"] == str(tmp_path / "mine.duckdb")
    assert (tmp_path / "mine.duckdb").stat().st_size > 0
    (tmp_path / "shelf").mkdir()
    shelved = Path(cli.json("backup", tmp_path / "shelf")["backup"])
    assert shelved.exists()
    assert shelved.parent == tmp_path / "shelf"


def test_a_backup_that_cannot_be_copied_out_is_a_known_error(
    cli: CommandLine, tmp_path: Path
) -> None:
    ran = cli("backup", tmp_path / "nowhere" / "mine.duckdb")
    assert (ran.code, ran.out) == (1, "")
    assert "mine.duckdb' cannot be written" in ran.err


def test_restoring_brings_back_the_state_of_the_backup(cli: CommandLine, tmp_path: Path) -> None:
    cli.done("backup", tmp_path / "then.duckdb")
    cli.done("delete", 1)
    cli.done("ask", "Something about chervil")
    assert (titles(cli), found(cli, "chervil")) == (
        ["Roots", "Seeds", "Something about chervil"],
        1,
    )
    ran = cli.done("restore", tmp_path / "then.duckdb")
    assert ran.out == ""
    assert ran.err.startswith("The backup was restored; the database it replaced is kept in ")
    assert titles(cli) == ["Herbs", "Roots", "Seeds"]
    assert (found(cli, "chervil"), found(cli, "parsley")) == (0, 3), "the index was made anew"
    (aside,) = (cli.data_dir / "damaged").iterdir()
    assert "commonplace.duckdb" in {each.name for each in aside.iterdir()}


def test_restoring_as_json_names_both(cli: CommandLine, tmp_path: Path) -> None:
    cli.done("backup", tmp_path / "then.duckdb")
    document = cli.json("restore", tmp_path / "then.duckdb")
    assert document["restored"] == str(tmp_path / "then.duckdb")
    assert Path(document["replaced"]).parent == cli.data_dir / "damaged"


def test_a_backup_starts_a_new_book_elsewhere(
    cli: CommandLine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.done("backup", tmp_path / "then.duckdb")
    elsewhere = CommandLine(tmp_path / "elsewhere", capsys)
    assert elsewhere.done("restore", tmp_path / "then.duckdb").err == ""
    assert titles(elsewhere) == ["Herbs", "Roots", "Seeds"]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("nowhere", "There is no file"),
        (".", "There is no file"),
        ("letter.txt", "The file 'letter.txt' is damaged"),
        ("data/commonplace.duckdb", "is the database itself"),
    ],
)
def test_what_cannot_be_restored_changes_nothing(
    cli: CommandLine, tmp_path: Path, name: str, complaint: str
) -> None:
    (tmp_path / "letter.txt").write_text("Dear all, " * 2000)
    ran = cli("restore", tmp_path / name)
    assert (ran.code, ran.out) == (1, "")
    assert complaint in ran.err
    assert titles(cli) == ["Herbs", "Roots", "Seeds"]
    assert not (cli.data_dir / "damaged").exists()


def test_a_rebuilt_index_finds_the_same(cli: CommandLine) -> None:
    assert found(cli, "parsley") == 3
    index = DataPaths(cli.data_dir).index / "text"
    before = {each.name for each in index.iterdir()}
    assert cli.json("rebuild", "index") == {"rebuilt": "index"}
    assert {each.name for each in index.iterdir()} != before
    assert found(cli, "parsley") == 3


def test_an_index_that_was_deleted_is_made_anew_by_the_next_search(cli: CommandLine) -> None:
    assert found(cli, "parsley") == 3
    shutil.rmtree(DataPaths(cli.data_dir).index)
    assert found(cli, "parsley") == 3


# -- rebuild embeddings


def rebuild_embeddings(
    data_dir: Path, answer: str = "", *, yes: bool = False, is_watched: bool = False
) -> tuple[int, dict[str, object] | None, str]:
    """Return the exit code, the JSON document if there is one, and what was said."""
    out: list[str] = []
    err: list[str] = []
    terminal = Terminal(
        out.append, err.append, lambda: answer, data_dir, lambda: False, True, is_watched
    )  # fmt: skip
    with closing(build(DataPaths(data_dir), Role.COMMAND_LINE)) as services:
        try:
            code = rebuild(services, Namespace(what="embeddings", yes=yes), terminal)
        except NotAgreed as error:
            code, err = 1, [*err, str(error)]
    return code, json.loads(out[0]) if out else None, "\n".join(err)


def test_rebuilding_embeddings_says_what_it_deletes_redoes_and_costs_and_does_it(
    cli: CommandLine, data_dir: Path
) -> None:
    cli.done("work", "--until-idle")
    assert "embedded in all_minilm_l6_v2: 100%" in cli.done("status").out
    code, document, said = rebuild_embeddings(data_dir, yes=True)
    assert document is not None
    deleted = document["deleted"]
    assert isinstance(deleted, int)
    assert deleted > 12
    assert (code, document) == (
        0,
        {
            "rebuilt": "embeddings",
            "space": MINI_LM,
            "deleted": deleted,
            "embedded": 12,
            "total": 12,
        },
    )
    for words in (f"deletes the {deleted} vectors", "12 passages again", "tokens", "at no cost"):
        assert words in said
    assert cli.json("check")["ok"] is True


@pytest.mark.parametrize("answer", ["", "no", "yes please"])
def test_embeddings_are_not_rebuilt_without_a_typed_yes(
    cli: CommandLine, data_dir: Path, answer: str
) -> None:
    cli.done("work", "--until-idle", "--only", "embedding_pipeline")
    for is_watched in (True, False):
        code, document, said = rebuild_embeddings(data_dir, answer, is_watched=is_watched)
        assert (code, document) == (1, None)
        assert "Nothing was deleted" in said
    assert cli.json("status")["embedded_percent"] == 100.0
    code, document, _ = rebuild_embeddings(data_dir, " Yes\n", is_watched=True)
    assert (code, document is not None) == (0, True)


# -- config


def test_a_setting_is_set_got_and_reset(cli: CommandLine) -> None:
    assert cli.json("config", "set", "rag_min_similarity", "0.25") == {
        "key": "rag_min_similarity",
        "value": 0.25,
    }
    assert cli.done("config", "get", "rag_min_similarity").out == "0.25\n"
    assert "* rag_min_similarity = 0.25" in cli.done("config", "list").out
    cli.done("config", "reset", "rag_min_similarity")
    assert cli.json("config", "get", "rag_min_similarity")["value"] == 0.7


def test_all_settings_are_listed_with_what_is_allowed(cli: CommandLine) -> None:
    listed = cli.json("config", "list", "--all")["settings"]
    assert listed.keys() == SETTINGS.keys()
    assert listed["theme"].keys() == {"value", "default", "allowed", "unit", "help"}
    assert len(cli.done("config", "list", "--all").out.splitlines()) == len(SETTINGS)


def test_what_the_program_keeps_for_itself_is_not_listed_unasked(cli: CommandLine) -> None:
    words = cli.done("config", "list").out
    assert "theme" in words
    assert [
        key for key in ("clean_slates", "probe_questions", "embedder_before") if key in words
    ] == []


@pytest.mark.parametrize(
    ("key", "value"), [("rag_min_similarity", "2"), ("rag_min_similarity", "-1"), ("theme", "puce")]
)
def test_a_value_outside_its_range_is_refused_with_the_range(
    cli: CommandLine, key: str, value: str
) -> None:
    ran = cli("config", "set", key, value)
    assert (ran.code, ran.out) == (1, "")
    assert key in ran.err
    assert value in ran.err
    assert cli.json("config", "get", key)["value"] == SETTINGS[key].default


def test_an_unknown_key_is_a_known_error(cli: CommandLine) -> None:
    ran = cli("config", "get", "rag_min_similarty")
    assert (ran.code, ran.out) == (1, "")
    assert "rag_min_similarty" in ran.err


def test_a_variable_that_rules_a_setting_is_named(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_PROXY_URL", "http://127.0.0.1:3128")
    ran = cli.done("config", "set", "proxy_url", "http://127.0.0.1:9")
    assert "The environment variable COMMONPLACE_PROXY_URL rules proxy_url" in ran.err
    assert cli.json("config", "get", "proxy_url")["value"] == "http://127.0.0.1:3128"


# -- provider


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def test_a_provider_is_added_listed_tested_and_removed(cli: CommandLine, server: Loopback) -> None:
    added = cli.json(
        "provider", "add", "local", "--kind", "compatible", "--base-url", server.v1
    )  # fmt: skip
    assert added == {"added": "local"}
    listed = {each["name"]: each for each in cli.json("provider", "list")["providers"]}
    assert listed.keys() == {"openai", "anthropic", "local"}
    assert listed["local"]["base_url"] == server.v1
    tested = cli.json("provider", "test", "local")
    assert (tested["ok"], tested["models"]) == (True, ["local:test-model", "local:test-model-mini"])
    assert "local:test-model" in cli.done("provider", "test", "local").out
    assert cli.json("provider", "remove", "local") == {"removed": "local"}
    assert cli("provider", "test", "local").code == 1


def test_a_provider_that_fails_its_test_says_why(cli: CommandLine, server: Loopback) -> None:
    server.always(Http(401, error={"type": "invalid_api_key", "message": "Wrong key"}))
    cli.done("provider", "add", "local", "--kind", "compatible", "--base-url", server.v1)
    ran = cli("provider", "test", "local", "--json")
    assert (ran.code, ran.document["ok"]) == (1, False)
    assert "key" in ran.err


@pytest.mark.parametrize(
    "words",
    [
        ("add", "far", "--kind", "compatible", "--base-url", "http://example.org/v1"),
        ("add", "odd", "--kind", "compatible", "--base-url", "ftp://127.0.0.1/v1"),
        ("add", "bare", "--kind", "compatible"),
        ("add", "a b:c", "--kind", "compatible", "--base-url", "http://127.0.0.1:1/v1"),
        ("remove", "openai"),
        ("remove", "nobody"),
        ("test", "nobody"),
    ],
    ids=" ".join,
)
def test_a_provider_that_cannot_be_is_a_known_error(
    cli: CommandLine, words: tuple[str, ...]
) -> None:
    ran = cli("provider", *words)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.count("\n") == 1
    assert len(cli.json("provider", "list")["providers"]) == 2


def test_plain_http_beyond_this_machine_needs_insistence(cli: CommandLine) -> None:
    words = ("provider", "add", "far", "--kind", "compatible", "--base-url")
    cli.done(*words, "http://example.org/v1", "--insecure")
    assert "http://example.org/v1" in cli.done("provider", "list").out


def test_a_key_is_named_by_its_place_and_never_shown(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789")
    ran = cli.done("provider", "list")
    assert "OPENAI_API_KEY" in ran.out
    assert "canary" not in ran.out + ran.err


def test_facts_are_learned_again_only_where_others_learned_them_and_after_a_yes(
    cli: CommandLine, data_dir: Path
) -> None:
    cli.done("work", "--until-idle", "--only", "knowledge_extractor")
    ran = cli("rebuild", "facts")
    assert (ran.code, ran.out) == (0, "")
    assert "nothing to read again" in ran.err
    with opened(data_dir) as store:
        changed = "UPDATE extraction SET model = 'local:other'"
        store.write_derived(lambda connection: connection.execute(changed) and None).result()
    ran = cli("rebuild", "facts")
    assert (ran.code, ran.out) == (1, "")
    assert "would read 6 exchanges again: at no cost" in ran.err
    assert "Nothing was changed" in ran.err
    assert cli.json("rebuild", "facts", "--yes") == {
        "rebuilt": "facts", "asked_for": 6, "waiting": 0,
    }  # fmt: skip


def test_summaries_are_made_again_only_where_others_made_them(cli: CommandLine) -> None:
    ran = cli("rebuild", "summaries")
    assert (ran.code, ran.out) == (0, "")
    assert "nothing to make again" in ran.err
