"""Forgotten is forgotten, in every byte we keep; a kill in the middle leaves it there or gone."""

import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from app.check import check
from app.domain.changes import (
    ConversationEdited,
    DraftPut,
    FactPut,
    MemoryPut,
    SettingPut,
    SpendAdded,
    SummaryPut,
    TagsChanged,
    ToolSummaryPut,
)
from app.domain.errors import StorageError
from app.domain.facts import Memory
from app.domain.ids import ConversationId, new_uid
from app.storage import forget as forget_module
from app.storage import image
from app.storage.attempts import Attempts
from app.storage.backup import backups_of, list_backups, make_backup
from app.storage.forget import finish_forgetting, forget, purge_trash
from app.storage.journal import segments
from app.storage.mentions import CALLS_OF_A_MESSAGE
from app.storage.part_notes import PartNotes
from app.storage.passages import Passages
from app.storage.store import Store
from tests.app.test_storage_learned import fact_of
from tests.fakes.canary import CANARY, files_with, plain_databases
from tests.fakes.libraries import zero
from tests.fakes.stored import AT, Told, asked, grow, killed, opened, tables, tell, titles, told


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with plain_databases(), opened(data_dir) as made:
        yield made


def secret(store: Store) -> Told:
    """Write a conversation with the canary everywhere a text can be."""
    whole = told(store, f"{CANARY} one", f"{CANARY} two", title=CANARY)
    conversation, exchange = whole.conversation.id, whole.exchanges[0]
    place = (conversation, exchange.id)
    fact, passage = fact_of(store, whole, CANARY)
    memory = Memory(store.ids.passage(), new_uid(), CANARY, AT, *place)
    probe = {"question": CANARY, "exchange_id": exchange.id}
    store.save(
        SummaryPut("conversation", conversation, conversation, CANARY, "m", "h", AT),
        TagsChanged(conversation, (CANARY,)),
        DraftPut(conversation, CANARY, AT),
        FactPut(fact),
        passage,
        MemoryPut(memory),
        ToolSummaryPut(store.ids.passage(), *place, exchange.message_ids[0], 0, CANARY, "m", AT),
        SettingPut("probe_questions", json.dumps(json.dumps([probe]))),
    )
    spent = SpendAdded(AT, "conversation_summarizer", "m", 1, 1, 0, None)
    PartNotes(store).keep(conversation, "h", CANARY, spent)
    for worker, item in (
        ("exchange_summarizer", exchange.id), ("conversation_summarizer", conversation),
        ("knowledge_extractor", exchange.id), ("embedding_pipeline", fact.id),
        ("tool_summarizer", exchange.message_ids[0] * CALLS_OF_A_MESSAGE),
    ):  # fmt: skip
        Attempts(store, worker).failed(item, 1, None, f"refused: {CANARY}")
    return whole


def test_the_canary_is_found_before_it_is_forgotten(store: Store) -> None:
    secret(store)
    store.checkpoint().result()
    make_backup(store)
    told(store, "more")
    found = files_with(store.paths.root)
    assert "commonplace.duckdb" in found
    assert len(found) == 3, "database, journal and backup"


def test_the_forgotten_is_in_no_file_and_the_rest_is_untouched(store: Store) -> None:
    stays = told(store, "something else", title="Stays")
    gone = secret(store)
    store.checkpoint().result()
    for _ in range(2):
        make_backup(store)
    told(store, "later", title="Later")
    left = forget(store, [gone.conversation.id])
    assert files_with(store.paths.root) == set()
    assert titles(store) == {"Stays", "Later"}
    assert tables(store)["message"][0][0] == stays.messages[0].id
    assert check(store).problems == ()
    assert left[0] == "Exports and backups that you copied elsewhere were not touched."
    assert "in words of their own" in left[1]
    assert len(left) == 2


def test_nothing_comes_back_after_a_kill_or_a_restore(store: Store, tmp_path: Path) -> None:
    told(store, "something else", title="Stays")
    gone = secret(store)
    make_backup(store)
    forget(store, [gone.conversation.id])
    told(store, "later", title="Later")
    image_of_kill = killed(store, tmp_path / "killed")
    zero(image_of_kill / "commonplace.duckdb", 12288)
    with opened(image_of_kill) as again:
        assert titles(again) == {"Stays", "Later"}
        assert "backup of" in again.notices[1]
        assert again.ids.conversation() > gone.conversation.id
        assert again.ids.message() > gone.messages[-1].id
    assert files_with(image_of_kill) == set()


def test_two_fresh_verified_backups_replace_the_older_ones(store: Store) -> None:
    gone = secret(store)
    before = {make_backup(store).path for _ in range(2)}
    forget(store, [gone.conversation.id])
    after = backups_of(store.paths.backups, store.uid)
    assert len(after) == 2
    assert not before & {each.path for each in after}
    for each in after:
        image.verify(each.path)
    assert {path.name for path in store.paths.backups.iterdir()} == {e.path.name for e in after}


def test_the_index_learns_what_to_drop(store: Store) -> None:
    gone = secret(store)
    position = store.journal.last_position
    forget(store, [gone.conversation.id])
    work = Passages(store).work_since(position, 10)
    assert set(work.removed) == {1, 2, 3}


def test_others_read_and_write_meanwhile(store: Store) -> None:
    for number in range(30):
        told(store, "text " * 500, title=f"T{number}")
    gone = secret(store)
    stop = threading.Event()
    written: list[str] = []
    failures: list[Exception] = []

    def work() -> None:
        while not stop.is_set():
            try:
                told(store, "meanwhile", title=f"M{len(written)}")
                written.append(f"M{len(written)}")
                assert len(titles(store)) >= 30
            except Exception as error:  # noqa: BLE001 - told to the test
                failures.append(error)
                return

    working = threading.Thread(target=work)
    working.start()
    try:
        forget(store, [gone.conversation.id])
    finally:
        stop.set()
        working.join()
    assert failures == []
    assert len(written) > 1
    assert titles(store) == {*(f"T{n}" for n in range(30)), *written}
    assert files_with(store.paths.root) == set()
    assert check(store).problems == ()


def test_a_reply_that_runs_elsewhere_survives_the_cut(store: Store, tmp_path: Path) -> None:
    running = asked(store, "Why?")
    reply = store.ids.message()
    grow(store, running.exchanges[0], reply, "Because ")
    gone = secret(store)
    forget(store, [gone.conversation.id])
    grow(store, running.exchanges[0], reply, "it is.")
    assert len(segments(store.paths.journal)) == 1
    after_kill = killed(store, tmp_path / "killed")
    with opened(after_kill) as again:
        texts = [row[5] for row in tables(again)["message"]]
        assert texts == ["Why?", "Because it is."]
    assert files_with(after_kill) == set()


def test_what_lies_among_damaged_files_is_said(store: Store) -> None:
    gone = secret(store)
    store.paths.damaged.mkdir()
    (store.paths.damaged / "old.duckdb").write_text(CANARY)
    left = forget(store, [gone.conversation.id])
    assert str(store.paths.damaged) in left[-1]
    assert files_with(store.paths.root) == {"old.duckdb"}


def test_forgetting_nothing_or_the_unknown_is_no_error(store: Store) -> None:
    told(store, "one", title="Stays")
    position = store.journal.last_position
    forget(store, [])
    assert store.journal.last_position == position
    forget(store, [ConversationId(77), ConversationId(77)])
    assert titles(store) == {"Stays"}
    assert finish_forgetting(store) is False


@pytest.mark.parametrize(
    ("when", "step"),
    [
        ("before", "_begin_clean_segment"), ("before", "_rewrite"), ("after", "_swap"),
        ("after", "_renew_backups"), ("before", "_settle"),
    ],
)  # fmt: skip
def test_a_kill_at_any_step_leaves_it_gone_and_the_rest_is_done_later(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, step: str
) -> None:
    told(store, "something else", title="Stays")
    gone = secret(store)
    make_backup(store)
    done: Callable[..., object] = getattr(forget_module, step)

    def killed_here(*given: object) -> object:
        if when == "after":
            done(*given)
        raise StorageError("killed here")

    monkeypatch.setattr(forget_module, step, killed_here)
    with pytest.raises(StorageError, match="killed here"):
        forget(store, [gone.conversation.id])
    assert titles(store) == {"Stays"}
    monkeypatch.undo()
    after_kill = killed(store, tmp_path / "killed")
    with opened(after_kill) as again:
        assert titles(again) == {"Stays"}
        assert finish_forgetting(again) is True
        assert finish_forgetting(again) is False
        assert titles(again) == {"Stays"}
        assert check(again).problems == ()
        again.checkpoint().result()
        assert files_with(after_kill) == set()


def test_the_trash_is_emptied_of_what_lies_in_it_too_long(store: Store) -> None:
    old, new, _ = (told(store, "x", title=title) for title in ("Old", "New", "Kept"))
    for whole, days in ((old, 31), (new, 29)):
        at = AT - timedelta(days=days)
        store.save(ConversationEdited(whole.conversation.id, deleted_at=at))
    assert purge_trash(store, AT - timedelta(days=30)) == 1
    assert titles(store) == {"New", "Kept"}
    position = store.journal.last_position
    assert purge_trash(store, AT - timedelta(days=30)) == 0
    assert store.journal.last_position == position


def test_a_conversation_told_again_after_it_was_forgotten_is_a_new_one(store: Store) -> None:
    gone = told(store, "one", title="Told")
    forget(store, [gone.conversation.id])
    again = tell(store, "one", title="Told")
    store.save(*again.changes)
    assert again.conversation.id != gone.conversation.id
    assert titles(store) == {"Told"}
    assert len(list_backups(store.paths.backups)) == 2
