"""Exports: whole or not at all, each conversation from one moment, in an order that stays."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.domain.changes import ConversationEdited, SummaryPut
from app.domain.errors import NotFound, StorageError
from app.storage.exchanges import Exchanges
from app.storage.store import Store
from app.transfer.exporting import ExportFormat, export, write_export
from tests.fakes.stored import AT, opened, told


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with opened(data_dir) as open_store:
        yield open_store


def written(store: Store, chosen: ExportFormat = ExportFormat.JSON, only: int | None = None) -> str:
    out = io.StringIO()
    write_export(store, out, chosen, only)
    return out.getvalue()


def conversations(store: Store) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(written(store))["conversations"]
    return found


@pytest.mark.parametrize("chosen", ExportFormat)
def test_an_empty_book_is_an_empty_export(store: Store, chosen: ExportFormat) -> None:
    text = written(store, chosen)
    if chosen is ExportFormat.MARKDOWN:
        assert text == ""
    else:
        head = json.loads(text)
        assert (head["format"], head["version"]) == ("commonplace", 1)
        assert head.get("conversations", []) == []


def test_conversations_stand_in_the_order_they_came(store: Store) -> None:
    for title in ("First", "Second", "Third"):
        told(store, "x", title=title)
    store.save(ConversationEdited(told(store, "x", title="Fourth").conversation.id, pinned=True))
    titles = [each["title"] for each in conversations(store)]
    assert titles == ["First", "Second", "Third", "Fourth"]


def test_archived_and_private_are_in_it_and_the_trash_is_not(store: Store) -> None:
    told(store, "x", title="Private", private=True)
    archived, deleted = told(store, "x", title="Archived"), told(store, "x", title="Deleted")
    store.save(ConversationEdited(archived.conversation.id, archived=True))
    store.save(ConversationEdited(deleted.conversation.id, deleted_at=AT))
    assert [(each["title"], each["archived"]) for each in conversations(store)] == [
        ("Private", False),
        ("Archived", True),
    ]


def test_one_conversation_of_the_trash_can_be_asked_for(store: Store) -> None:
    deleted = told(store, "x", title="Deleted")
    store.save(ConversationEdited(deleted.conversation.id, deleted_at=AT))
    assert '"Deleted"' in written(store, only=deleted.conversation.id)


def test_summaries_go_along_with_what_they_are_of(store: Store) -> None:
    whole = told(store, "one", "two")
    here = whole.conversation.id
    store.save(
        SummaryPut("exchange", whole.exchanges[1].id, here, "Of the turn", "extractive", "s", AT),
        SummaryPut("conversation", here, here, "Of it all", "extractive", "s", AT),
    )
    (exported,) = conversations(store)
    assert [(each["text"], each["last_message"]) for each in exported["summaries"]] == [
        ("Of the turn", whole.messages[3].uid),
        ("Of it all", None),
    ]


@pytest.mark.parametrize("chosen", ExportFormat)
def test_a_conversation_that_is_not_there_writes_nothing(
    store: Store, tmp_path: Path, chosen: ExportFormat
) -> None:
    with pytest.raises(NotFound):
        export(store, tmp_path / "out", chosen, 99)
    assert not (tmp_path / "out").exists()
    out = io.StringIO()
    with pytest.raises(NotFound):
        write_export(store, out, chosen, 99)
    assert out.getvalue() == ""


def test_markdown_parts_conversations_by_a_rule(store: Store) -> None:
    told(store, "one", title="First")
    told(store, "two", title="Second")
    assert written(store, ExportFormat.MARKDOWN).count("\n\n---\n\n") == 1


def test_what_changes_meanwhile_changes_no_conversation_in_part(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = told(store, "one")
    real = Exchanges.messages_in

    def change_then_read(exchanges: Exchanges, conversation_id: int) -> Any:
        store.write_derived(lambda c: c.execute("DELETE FROM message")).result()
        return real(exchanges, conversation_id)

    store.save(
        SummaryPut(
            "exchange", whole.exchanges[0].id, whole.conversation.id, "Of the turn", "m", "s", AT
        )
    )
    monkeypatch.setattr(Exchanges, "messages_in", change_then_read)
    (exported,) = conversations(store)
    assert len(exported["messages"]) == 2


def test_an_exchange_without_messages_is_passed_over(store: Store) -> None:
    whole = told(store, "one")
    store.save(
        SummaryPut(
            "exchange", whole.exchanges[0].id, whole.conversation.id, "Of the turn", "m", "s", AT
        )
    )
    store.write_derived(lambda c: c.execute("DELETE FROM exchange_message")).result()
    (exported,) = conversations(store)
    assert exported["summaries"] == []


def test_the_file_takes_the_place_of_the_one_before_at_once(store: Store, tmp_path: Path) -> None:
    out = tmp_path / ("x" * 250 + ".json")
    out.write_text("before")
    assert export(store, out, ExportFormat.JSON) == 0
    assert out.read_text().startswith('{"format"')
    assert [each.name for each in tmp_path.iterdir() if each.name != "data"] == [out.name]


@pytest.mark.parametrize("place", ["/", "folder", "file/below"])
def test_a_place_that_can_be_no_file_is_refused(store: Store, tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be written") as refused:
        export(store, tmp_path / place, ExportFormat.JSON)
    assert refused.value.hint == "Choose another place."
