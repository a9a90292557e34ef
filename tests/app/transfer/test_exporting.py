"""Exports: complete files or none, each conversation from one state of the store."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from app.domain.changes import ConversationEdited, SummaryPut
from app.domain.errors import NotFound, StorageError
from app.storage.engine.store import Store
from app.storage.tables.exchanges import Exchanges
from app.transfer.exporting import ExportFormat, export, write_export
from tests.fakes.stored import AT, add_conversation


def written(store: Store, chosen: ExportFormat = ExportFormat.JSON, only: int | None = None) -> str:
    out = io.StringIO()
    write_export(store, out, chosen, [] if only is None else [only])
    return out.getvalue()


def conversations(store: Store) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(written(store))["conversations"]
    return found


@pytest.mark.parametrize("chosen", ExportFormat)
def test_an_empty_library_is_an_empty_export_and_has_no_conversation(
    store: Store, tmp_path: Path, chosen: ExportFormat
) -> None:
    text = written(store, chosen)
    if chosen is ExportFormat.MARKDOWN:
        assert text == ""
    else:
        head = json.loads(text)
        assert (head["format"], head["version"]) == ("commonplace", 1)
        assert head.get("conversations", []) == []
    with pytest.raises(NotFound):
        export(store, tmp_path / "out", chosen, [99])
    assert not (tmp_path / "out").exists()


def test_all_but_the_trash_is_exported_oldest_first(store: Store) -> None:
    add_conversation(store, "x", title="Private", private=True)
    archived, deleted = (
        add_conversation(store, "x", title="Archived"),
        add_conversation(store, "x", title="Deleted"),
    )
    pinned = add_conversation(store, "x", title="Pinned")
    store.save(ConversationEdited(archived.conversation.id, archived=True))
    store.save(ConversationEdited(deleted.conversation.id, deleted_at=AT))
    store.save(ConversationEdited(pinned.conversation.id, pinned=True))
    assert [(each["title"], each["archived"]) for each in conversations(store)] == [
        ("Private", False), ("Archived", True), ("Pinned", False),
    ]  # fmt: skip
    assert '"Deleted"' in written(store, only=deleted.conversation.id)
    assert written(store, ExportFormat.MARKDOWN).count("\n\n---\n\n") == 2


@pytest.mark.parametrize("deleted", [None, "message", "exchange_message"])
def test_summaries_are_exported_with_their_source_from_one_state(
    store: Store, monkeypatch: pytest.MonkeyPatch, deleted: str | None
) -> None:
    stored = add_conversation(store, "one", "two")
    here = stored.conversation.id
    store.save(
        SummaryPut("exchange", stored.exchanges[1].id, here, "Of the turn", "extractive", "s", AT),
        SummaryPut("conversation", here, here, "Of it all", "extractive", "s", AT),
    )
    real = Exchanges.messages_in

    def delete_then_read(exchanges: Exchanges, conversation_id: int) -> Any:
        if deleted == "message":  # while it is being exported
            store.write_derived(lambda c: c.execute("DELETE FROM message")).result()
        return real(exchanges, conversation_id)

    monkeypatch.setattr(Exchanges, "messages_in", delete_then_read)
    if deleted == "exchange_message":
        store.write_derived(lambda c: c.execute("DELETE FROM exchange_message")).result()
    (exported,) = conversations(store)
    assert len(exported["messages"]) == 4
    of_turn = [("Of the turn", stored.messages[3].uid)]
    assert [(each["text"], each["last_message"]) for each in exported["summaries"]] == [
        *(of_turn if deleted != "exchange_message" else []),
        ("Of it all", None),
    ]


def test_the_file_is_replaced_atomically(store: Store, tmp_path: Path) -> None:
    out = tmp_path / ("x" * 250 + ".json")
    out.write_text("before")
    assert export(store, out, ExportFormat.JSON, replaces=True).conversations == 0
    assert out.read_text().startswith('{"format"')
    assert [each.name for each in tmp_path.iterdir() if each.name != "data"] == [out.name]


@pytest.mark.parametrize("place", ["/", "folder", "file/below"])
def test_a_path_that_cannot_be_a_file_is_refused(store: Store, tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be written") as refused:
        export(store, tmp_path / place, ExportFormat.JSON)
    assert refused.value.hint == "Choose another folder."
