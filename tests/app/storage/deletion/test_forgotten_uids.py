"""Uids of what was forgotten: no export brings it back unasked."""

import json
from pathlib import Path

from app.check import check
from app.domain.changes import PassagesPut, SummaryPut
from app.domain.deletions import FactForgotten
from app.domain.ids import ConversationId
from app.storage.deletion.forget import forget
from app.storage.engine.store import Store
from app.transfer.exporting import ExportFormat, export
from app.transfer.importing import import_files
from tests.fakes import stored
from tests.fakes.exports import chatgpt_message, chatgpt_row
from tests.fakes.stored import AT, add_conversation, opened, titles


def exported(store: Store, path: Path) -> Path:
    export(store, path, ExportFormat.JSON)
    return path


def test_an_older_export_does_not_bring_forgotten_things_back_unasked(tmp_path: Path) -> None:
    with opened(tmp_path / "library") as store:
        gone = add_conversation(store, "a", title="Gone")
        stays = add_conversation(store, "b", title="Stays")
        fact = stored.learned(store, stays, "Likes ferns")
        before = exported(store, tmp_path / "before.json")
        forget(store, [ConversationId(gone.conversation.id)])
        store.save(FactForgotten(fact.id, "h"), PassagesPut((), (fact.id,)))
        report = import_files(store, [before])
        assert (report.conversations, report.forgotten) == (0, 1)
        assert titles(store) == {"Stays"}
        assert store.rows("SELECT text FROM fact") == []
        killed = stored.killed(store, tmp_path / "killed")
    with opened(killed) as again:
        assert import_files(again, [before], dry_run=True).forgotten == 1
        report = import_files(again, [before], restore_forgotten=True)
        assert (report.conversations, report.forgotten) == (1, 0)
        assert titles(again) == {"Stays", "Gone"}
        assert again.rows("SELECT text FROM fact") == [("Likes ferns",)]
        assert import_files(again, [before]).forgotten == 0
        assert check(again).problems == ()


def test_an_export_of_another_program_does_not_bring_back_the_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([chatgpt_row(chatgpt_message("m", "user", "Hello"))]))
    with opened(tmp_path / "library") as store:
        first = import_files(store, [path])
        assert first.conversations
        ids = [ConversationId(each) for (each,) in store.rows("SELECT id FROM conversation")]
        forget(store, ids)
        report = import_files(store, [path])
        assert (report.conversations, report.forgotten) == (0, first.conversations)


def test_exchanges_and_summaries_have_uids_that_a_replay_gives_again(tmp_path: Path) -> None:
    with opened(tmp_path / "library") as store:
        talk = add_conversation(store, "a", "b")
        here = talk.conversation.id
        store.save(SummaryPut("conversation", here, here, "Short", "m", "h", AT))
        uids = store.rows("SELECT uid FROM exchange UNION ALL SELECT uid FROM summary ORDER BY 1")
        assert len({*uids}) == 3
        assert all(uid for (uid,) in uids)
        killed = stored.killed(store, tmp_path / "killed")
    (killed / "commonplace.duckdb").unlink()
    with opened(killed) as again:
        rows = again.rows("SELECT uid FROM exchange UNION ALL SELECT uid FROM summary ORDER BY 1")
        assert rows == uids
