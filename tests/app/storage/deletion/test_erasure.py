"""Erasure of forgotten bytes: none is in any file after a quiet time, also after a kill at any step."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest

from app.check import check
from app.domain import changes
from app.domain.errors import StorageError
from app.domain.ids import ConversationId, new_uid
from app.domain.records.facts import Memory
from app.domain.records.profile import FactSource, Profile, ProfileLine, ProfileReview
from app.storage.apply import AGGREGATES
from app.storage.deletion import erasure
from app.storage.deletion.erasure import deletions_owed, erase_bytes
from app.storage.deletion.forget import forget, purge_trash
from app.storage.engine.connection import Connection
from app.storage.engine.journal import segments
from app.storage.engine.store import Store
from app.storage.safety import image
from app.storage.safety.backup import backups_of, list_backups, make_backup
from app.storage.safety.restore import restore_backup
from app.storage.tables.attempts import CALLS_PER_MESSAGE, Attempts
from app.storage.tables.passages.queries import Passages
from app.system.paths import DataPaths
from tests.fakes import stored
from tests.fakes.canary import CANARY, files_after_erasing, files_with, plain_databases
from tests.fakes.libraries import zero
from tests.fakes.stored import AT, add_conversation, opened, tables, titles


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with plain_databases(), opened(data_dir) as made:
        yield made


def add_secret(store: Store) -> ConversationId:
    """Write a conversation with the canary everywhere a text can be."""
    whole = add_conversation(store, f"{CANARY} one", f"{CANARY} two", title=CANARY)
    here, exchange = whole.conversation.id, whole.exchanges[0]
    place, message = (here, exchange.id), exchange.message_ids[0]
    fact = stored.learned(store, whole, CANARY)
    line = ProfileLine(CANARY, (FactSource(fact.id, fact.made_at),))
    profile = Profile((line, ProfileLine("I am tall")), "user", AT)
    probe = {"question": CANARY, "exchange_id": exchange.id}
    store.save(
        changes.SummaryPut("conversation", here, here, CANARY, "m", "h", AT),
        changes.TagsChanged(here, (CANARY,)), changes.DraftPut(here, CANARY, AT),
        changes.MemoryPut(Memory(store.ids.passage(), new_uid(), CANARY, AT, *place)),
        changes.ToolSummaryPut(store.ids.passage(), *place, message, 0, CANARY, "m", AT),
        changes.ProfilePut(profile), changes.ProfileReviewPut(ProfileReview(AT, "key", profile)),
        changes.SettingPut("probe_questions", json.dumps(json.dumps([probe]))),
    )  # fmt: skip
    for worker, item in (
        ("exchange_summarizer", exchange.id), ("conversation_summarizer", here),
        ("knowledge_extractor", exchange.id), ("embedding_pipeline", fact.id),
        ("tool_summarizer", message * CALLS_PER_MESSAGE), ("worker_unknown_to_storage", 1),
    ):  # fmt: skip
        Attempts(store, worker).failed(item, 1, None, f"refused: {CANARY}")
    return here


def test_forgotten_text_is_in_no_file_and_the_rest_is_unchanged(store: Store) -> None:
    stays = add_conversation(store, "something else", title="Stays")
    empty = make_backup(store)
    gone = add_secret(store)
    store.checkpoint().result()
    before = [make_backup(store), make_backup(store)]
    add_conversation(store, "later", title="Later")
    assert len(files_with(store.paths.root)) == 4, "database, journal and backups"
    position = store.journal.last_position
    untouched = empty.path.read_bytes()
    assert len(forget(store, [gone])) == 2
    assert deletions_owed(store) == 1
    assert titles(store) == {"Stays", "Later"}
    assert files_after_erasing(store) == set()
    assert deletions_owed(store) == 0
    assert tables(store)["message"][0][0] == stays.messages[0].id
    assert check(store).problems == ()
    after = backups_of(store.paths.backups, store.uid)
    assert after[2:] == [*reversed(before), empty], "backups keep their dates and positions"
    assert set(store.paths.backups.iterdir()) == {each.path for each in after}
    assert empty.path.read_bytes() == untouched, "what does not contain it is not written again"
    for each in after:
        image.verify(each.path)
    assert set(Passages(store).work_since(position, 10).removed) == {2, 3, 4}
    store.paths.damaged.mkdir()
    (store.paths.damaged / "old.duckdb").write_text(CANARY)
    assert str(store.paths.damaged) in forget(store, [])[-1], "what may contain it is named"


def test_several_deletions_are_removed_from_the_files_by_one_rewrite(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [add_conversation(store, f"{CANARY} {n}", title=f"T{n}") for n in range(3)]
    make_backup(store)
    copies = Mock(side_effect=image.copy_into)
    monkeypatch.setattr(image, "copy_into", copies)
    for each in made:
        forget(store, [each.conversation.id])
    assert (deletions_owed(store), copies.call_count) == (3, 0)
    assert files_after_erasing(store) == set()
    assert copies.call_count == 2, "the database and one backup"


def test_a_backup_restored_before_the_quiet_time_revives_none(store: Store, tmp_path: Path) -> None:
    add_conversation(store, "something else", title="Stays")
    gone = add_secret(store)
    chosen = make_backup(store)
    add_conversation(store, "later", title="Later")
    forget(store, [gone])
    killed = DataPaths(stored.killed(store, tmp_path / "killed"))
    restore_backup(killed, killed.backups / chosen.path.name)
    with opened(killed.root) as again:
        assert titles(again) == {"Stays"}
        assert deletions_owed(again) == 1
        assert check(again).problems == ()
        erase_bytes(again)
        shutil.rmtree(killed.damaged)  # what the restore has replaced
        assert files_with(killed.root) == set()


def test_a_backup_that_was_cleaned_is_a_whole_library(store: Store, tmp_path: Path) -> None:
    stays = add_conversation(store, "something else", title="Stays")
    gone = add_secret(store)
    chosen = make_backup(store)
    forget(store, [gone])
    erase_bytes(store)
    killed = DataPaths(stored.killed(store, tmp_path / "killed"))
    restore_backup(killed, killed.backups / chosen.path.name)
    with opened(killed.root) as again:
        assert titles(again) == {"Stays"}
        assert (deletions_owed(again), check(again).problems) == (0, ())
        later = add_conversation(again, f"{CANARY} again", title="Later")
        forget(again, [later.conversation.id, stays.conversation.id])
        assert deletions_owed(again) == 1
        assert titles(again) == set()


@pytest.mark.parametrize(("copy_mb", "tries"), [(2, 2), (400, 1)])
def test_a_backup_is_cleaned_with_little_memory_and_with_more_where_that_is_too_little(
    store: Store, monkeypatch: pytest.MonkeyPatch, copy_mb: int, tries: int
) -> None:
    limits = []

    def copy_into(connection: Connection, target: Path) -> tuple[int, dict[str, int]]:
        limits.extend(connection.column("SELECT current_setting('memory_limit')"))
        return real(connection, target)

    real = image.copy_into
    add_conversation(store, "long " * 400_000)
    gone = add_secret(store)
    chosen = make_backup(store)
    forget(store, [gone])
    monkeypatch.setattr(erasure, "memory_to_copy_mb", lambda _: copy_mb)
    monkeypatch.setattr(image, "copy_into", copy_into)
    erase_bytes(store)
    assert chosen.path.exists()
    assert files_with(store.paths.backups) == set()
    assert len(limits) == tries + 1  # and one copy of the database itself
    assert limits[0] == ("190.7 MiB" if tries == 1 else "976.5 KiB")


def test_nothing_comes_back_after_a_kill_or_a_restore(store: Store, tmp_path: Path) -> None:
    running = stored.add_running(store, "Why?").exchanges[0]
    reply = store.ids.message()
    stored.journal_reply(store, running, reply, "Because ")
    gone = add_secret(store)
    ((last_message,),) = store.rows("SELECT max(id) FROM message")
    make_backup(store)
    forget(store, [gone])
    erase_bytes(store)
    assert len(segments(store.paths.journal)) == 1
    stored.journal_reply(store, running, reply, "it is.")
    add_conversation(store, "later", title="Later")
    after_kill = stored.killed(store, tmp_path / "killed")
    zero(after_kill / "commonplace.duckdb", 12288)
    with opened(after_kill) as again:
        assert titles(again) == {"A talk", "Later"}
        assert "backup of" in again.notices[1]
        assert again.ids.conversation() > gone
        assert again.ids.message() > last_message
        texts = {row[5] for row in tables(again)["message"]}
        assert {"Why?", "Because it is."} <= texts, "a reply that runs elsewhere survives the cut"
    assert files_with(after_kill) == set()


def test_others_read_and_write_meanwhile(store: Store) -> None:
    for number in range(10):
        add_conversation(store, "text " * 500, title=f"T{number}")
    gone = add_secret(store)
    stop = threading.Event()

    def work() -> set[str]:
        written: set[str] = set()
        while not stop.is_set():
            add_conversation(store, "meanwhile", title=f"M{len(written)}")
            written.add(f"M{len(written)}")
            assert len(titles(store)) >= 10
        return written

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        try:
            forget(store, [gone])
        finally:
            stop.set()
    assert titles(store) == {*(f"T{n}" for n in range(10)), *working.result()}
    assert files_after_erasing(store) == set()
    assert check(store).problems == ()


def test_what_documents_left_is_no_deletion_and_is_owed_again_after_the_copy(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def supersede(at: str) -> None:
        statement = "INSERT OR IGNORE INTO meta VALUES ('superseded_at', ?)"
        store.write_derived(lambda connection: connection.execute(statement, [at])).result()

    def rewrite(_store: Store) -> None:
        original(_store)
        supersede("3")

    original = erasure._rewrite
    monkeypatch.setattr(erasure, "_rewrite", rewrite)
    supersede("1")
    erasure.owe_superseded(store, AT)
    assert deletions_owed(store) == 0
    supersede("2")
    assert erase_bytes(store)
    assert store.column("SELECT value FROM meta WHERE key = 'superseded_at'") == ["3"]
    assert not erase_bytes(store)


KILLS = [
    (False, "_clean_backup"), (False, "forget_again"), (True, "forget_again"),
    (True, "_clean_backup"), (False, "_begin_clean_segment"), (False, "_rewrite"),
    (True, "_swap"), (False, "_remove_unfinished"), (True, "_rewrite"),
    (False, "_record_erased"), (True, "_record_erased"),
]  # fmt: skip


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[bool, str], Path]:
    """The data directory before (False) and after (True) each step of an erasure."""
    folder = tmp_path_factory.mktemp("kills")
    left: dict[tuple[bool, str], Path] = {}

    def copying(step: str, do: Callable[..., object]) -> Callable[..., object]:
        def run(*given: object) -> object:
            left[False, step] = shutil.copytree(root, folder / f"before{step}")
            done = do(*given)
            left[True, step] = shutil.copytree(root, folder / f"after{step}")
            return done

        return run

    with plain_databases(), opened(folder / "data") as store, pytest.MonkeyPatch.context() as patch:
        root = store.paths.root
        add_conversation(store, "something else", title="Stays")
        gone = add_secret(store)
        make_backup(store)
        forget(store, [gone])
        for step in {step for _, step in KILLS}:
            patch.setattr(erasure, step, copying(step, getattr(erasure, step)))
        erase_bytes(store)
    return left


@pytest.mark.parametrize("moment", KILLS)
def test_after_a_kill_at_any_step_forgetting_is_completed_later(
    killed: dict[tuple[bool, str], Path], moment: tuple[bool, str]
) -> None:
    with plain_databases(), opened(killed[moment]) as again:
        kept = {each.path.name for each in list_backups(again.paths.backups)}
        assert [erase_bytes(again), erase_bytes(again)] == [True, False]
        assert titles(again) == {"Stays"}
        assert check(again).problems == ()
        assert kept <= {each.path.name for each in list_backups(again.paths.backups)}
        again.checkpoint().result()
        assert files_with(killed[moment]) == set()


def test_the_store_survives_failed_erasing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    add_conversation(store, "something else", title="Stays")
    forget(store, [add_secret(store)])
    monkeypatch.setattr(erasure, "_swap", Mock(side_effect=OSError("no more")))
    with pytest.raises(StorageError):
        erase_bytes(store)
    assert titles(store) == {"Stays"}
    monkeypatch.undo()
    assert files_after_erasing(store) == set()


def test_conversations_in_the_trash_for_too_long_are_forgotten(store: Store) -> None:
    ids = {title: add_conversation(store, "x", title=title) for title in ("Old", "New", "Kept")}
    for title, days in (("Old", 31), ("New", 29)):
        at = AT - timedelta(days=days)
        store.save(changes.ConversationEdited(ids[title].conversation.id, deleted_at=at))
    purge_trash(store, AT - timedelta(days=30))
    assert titles(store) == {"New", "Kept"}
    position = store.journal.last_position
    purge_trash(store, AT - timedelta(days=30))
    forget(store, [])
    assert store.journal.last_position == position, "nothing is written when nothing goes"
    forget(store, [ConversationId(77), ConversationId(77)])
    assert [erase_bytes(store), erase_bytes(store)] == [True, False]
    assert len(list_backups(store.paths.backups)) == 2


def test_every_table_that_names_a_conversation_is_erased(store: Store) -> None:
    named = store.rows(
        "SELECT DISTINCT table_name FROM duckdb_columns() WHERE database_name = current_database() "
        "AND column_name IN ('conversation_id', 'exchange_id', 'message_id')"
    )
    erased = {
        table.name
        for aggregate in AGGREGATES
        for table in aggregate.tables
        if table.erased or aggregate.erase is not None
    }
    by_id = {"fact", "fact_version"}  # `delete_facts_where`
    assert {name for (name,) in named} - erased == by_id
