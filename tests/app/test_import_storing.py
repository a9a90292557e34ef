"""An import from file to store: all of it, once, and what grew since."""

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.domain.conversations import Conversation, ExchangeStatus, Message, TitleOrigin
from app.domain.errors import ImportRefused
from app.domain.ids import ConversationId, MessageId
from app.domain.passages import PassageKind
from app.domain.transfer import ImportProgress, ImportReport
from app.storage.conversations import Conversations, ListFilter
from app.storage.exchanges import Exchanges, shown_path
from app.storage.passages import Passages
from app.storage.store import Store
from app.storage.summaries import Summaries
from app.transfer.exporting import ExportFormat, write_export
from app.transfer.importing import import_files
from tests.fakes.exports import (
    Shape,
    chatgpt_message,
    chatgpt_node,
    chatgpt_row,
    write_chatgpt_export,
    write_claude_export,
)
from tests.fakes.stored import opened

_DATA = Path(__file__).parents[1] / "data" / "imports"
_EVERYTHING = ListFilter(archived=None)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "book") as open_store:
        yield open_store


def _listed(store: Store) -> tuple[Conversation, ...]:
    return Conversations(store).listed(_EVERYTHING)


def _written(path: Path, *conversations: dict[str, Any]) -> Path:
    path.write_text(json.dumps(conversations))
    return path


def _row(*texts: str) -> dict[str, Any]:
    """Return a conversation of questions and answers in turn."""
    return chatgpt_row(
        *(
            chatgpt_message(
                f"m{place}", "assistant" if place % 2 else "user", text, at=1.7e9 + place
            )
            for place, text in enumerate(texts)
        )
    )


def _counts(report: ImportReport) -> tuple[int, int, int, int]:
    return report.conversations, report.turns, report.messages, report.duplicates


def test_everything_of_an_export_is_stored(store: Store, tmp_path: Path) -> None:
    path = write_chatgpt_export(tmp_path / "export.zip", Shape(conversations=40, turns=6), shards=3)
    report = import_files(store, [path])
    assert report.conversations == len(_listed(store)) == 40
    exchanges = [each for row in _listed(store) for each in Exchanges(store).of(row.id)]
    assert report.turns == len(exchanges)
    assert all(each.status is ExchangeStatus.COMPLETED for each in exchanges)
    stored = sum(len(Exchanges(store).messages_in(row.id)) for row in _listed(store))
    assert report.messages == stored
    assert Passages(store).count_by_kind()[PassageKind.TURN] == len(exchanges)
    assert report.skipped[-1].why.startswith("1 file that is no conversation")


def test_titles_times_pins_and_archives_are_kept(store: Store) -> None:
    import_files(store, [_DATA / "chatgpt_kinds.json"])
    row = next(each for each in _listed(store) if each.title == "Harbour and rain")
    assert (row.pinned, row.archived, row.private) == (True, True, True)
    assert (row.source, row.title_origin) == ("chatgpt", TitleOrigin.IMPORT)
    assert row.created_at == datetime(2025, 1, 1, 10, tzinfo=UTC)


def test_a_conversation_without_a_title_has_its_first_words(store: Store, tmp_path: Path) -> None:
    import_files(
        store, [_written(tmp_path / "c.json", _row("How  do\nboats float?") | {"title": None})]
    )
    (row,) = _listed(store)
    assert (row.title, row.title_origin) == ("How do boats float?", TitleOrigin.FIRST_WORDS)


def test_what_is_not_to_be_remembered_is_in_no_index(store: Store, tmp_path: Path) -> None:
    secret = _row("Secret?", "Secret.") | {"is_do_not_remember": True}
    import_files(store, [_written(tmp_path / "c.json", secret)])
    assert _listed(store)[0].private
    assert Passages(store).count_by_kind() == {}


@pytest.mark.parametrize("write", [write_chatgpt_export, write_claude_export])
def test_a_second_import_adds_nothing(store: Store, tmp_path: Path, write: Any) -> None:
    path = write(tmp_path / "export.zip", Shape(conversations=12, turns=4))
    first = import_files(store, [path])
    again = import_files(store, [path])
    assert _counts(again) == (0, 0, 0, first.messages)
    assert len(_listed(store)) == 12


def test_a_conversation_that_stands_in_two_files_is_stored_once(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    _written(tmp_path / "in" / "conversations-000.json", _row("Hi?", "Hi."))
    _written(tmp_path / "in" / "conversations-001.json", _row("Hi?", "Hi.", "More?", "More."))
    report = import_files(store, [tmp_path / "in"])
    assert _counts(report) == (1, 2, 4, 2)


def test_what_grew_since_is_added_and_keeps_its_turns(store: Store, tmp_path: Path) -> None:
    import_files(store, [_written(tmp_path / "c.json", _row("One?", "One.", "Two?"))])
    (row,) = _listed(store)
    before = Exchanges(store).of(row.id)
    grown = _row("One?", "One.", "Two?", "Two.", "Three?", "Three.")
    report = import_files(store, [_written(tmp_path / "c.json", grown)])
    assert _counts(report) == (0, 1, 3, 3)
    (row,) = _listed(store)
    path = shown_path(row, Exchanges(store).of(row.id))
    assert [each.turn_number for each in path] == [0, 1, 2]
    assert [each.id for each in path[:2]] == [each.id for each in before]
    assert Passages(store).count_by_kind()[PassageKind.TURN] == 3


def test_a_branch_that_was_added_since_becomes_a_sibling(store: Store, tmp_path: Path) -> None:
    first = _row("One?", "One.")
    import_files(store, [_written(tmp_path / "c.json", first)])
    again = chatgpt_message("new", "assistant", "One, but better.", at=1.8e9)
    first["mapping"]["new"] = chatgpt_node("new", "m0", again)
    first["current_node"] = "new"
    report = import_files(store, [_written(tmp_path / "c.json", first)])
    assert _counts(report) == (0, 1, 1, 2)
    (row,) = _listed(store)
    exchanges = Exchanges(store).of(row.id)
    assert [each.turn_number for each in exchanges] == [0, 0]
    (shown,) = shown_path(row, exchanges)
    assert Exchanges(store).messages_of(shown)[-1].text == "One, but better."


def test_the_same_message_id_in_two_conversations_is_two_messages(
    store: Store, tmp_path: Path
) -> None:
    one, two = _row("Hi?", "Hi."), _row("Hi?", "Hi.") | {"id": "other", "conversation_id": "other"}
    report = import_files(store, [_written(tmp_path / "c.json", one, two)])
    assert _counts(report) == (2, 2, 4, 0)


def test_a_dry_run_counts_and_stores_nothing(store: Store, tmp_path: Path) -> None:
    path = write_claude_export(tmp_path / "export.zip", Shape(conversations=5, turns=3))
    report = import_files(store, [path], dry_run=True)
    assert _counts(report) == (5, 15, 30, 0)
    assert _listed(store) == ()


def test_a_cancelled_import_keeps_what_it_counted(store: Store, tmp_path: Path) -> None:
    path = write_chatgpt_export(tmp_path / "c.json", Shape(conversations=300, turns=8))
    heard: list[ImportProgress] = []
    report = import_files(
        store, [path], cancelled=lambda: len(heard) >= 2, on_progress=heard.append
    )
    assert report.cancelled
    assert 0 < report.conversations == len(_listed(store)) < 300
    rest = import_files(store, [path])
    assert rest.conversations + report.conversations == 300


def test_progress_tells_bytes_conversations_and_messages(store: Store, tmp_path: Path) -> None:
    path = write_chatgpt_export(tmp_path / "c.json", Shape(conversations=80, turns=4))
    heard: list[ImportProgress] = []
    report = import_files(store, [path], on_progress=heard.append)
    assert heard[-1].conversations == report.conversations
    assert heard[-1].messages == report.messages
    assert heard[-1].bytes_total == path.stat().st_size


def test_what_is_skipped_is_named_in_the_report(store: Store) -> None:
    report = import_files(store, [_DATA / "chatgpt_broken.json"])
    assert report.conversations == 2
    assert "'Broken in places', message b" in {skipped.where for skipped in report.skipped}


def test_a_file_that_is_no_export_changes_nothing(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary")
    with pytest.raises(ImportRefused):
        import_files(store, [path])
    assert _listed(store) == ()


def test_claudes_summary_is_kept(store: Store) -> None:
    import_files(store, [_DATA / "claude_kinds.json"])
    row = next(each for each in _listed(store) if each.title == "Choosing a boat")
    (summary,) = Summaries(store).latest("conversation", [row.id]).values()
    assert (summary.text, summary.model) == ("Which boat suits a family of four.", "claude")


def _exported(store: Store, path: Path, chosen: ExportFormat) -> Path:
    out = io.StringIO()
    write_export(store, out, chosen)
    path.write_text(out.getvalue(), encoding="utf-8")
    return path


def _told(store: Store) -> dict[str, tuple[Conversation, list[Message], int]]:
    """Return all that is in the book by uid, places instead of the ids it happens to have there."""
    found = {}
    for row in _listed(store):
        messages = Exchanges(store).messages_in(row.id)
        places = {message.id: MessageId(place) for place, message in enumerate(messages)}
        neutral = [
            replace(
                message,
                id=places[message.id],
                parent_id=None if message.parent_id is None else places[message.parent_id],
                conversation_id=ConversationId(0),
            )
            for message in messages
        ]
        leaf = None if row.visible_leaf_id is None else places[row.visible_leaf_id]
        turns = len(Exchanges(store).of(row.id))
        found[row.uid] = replace(row, id=ConversationId(0), visible_leaf_id=leaf), neutral, turns
    return found


@pytest.mark.parametrize("chosen", [ExportFormat.JSON, ExportFormat.JSONL])
def test_our_export_fills_an_empty_book_with_the_same(
    store: Store, tmp_path: Path, chosen: ExportFormat
) -> None:
    import_files(store, [_DATA / "chatgpt_kinds.json", _DATA / "claude_kinds.json"])
    path = _exported(store, tmp_path / "export", chosen)
    with opened(tmp_path / "other") as other:
        import_files(other, [path])
        assert _told(other) == _told(store)


def test_our_export_merges_into_a_filled_book_by_uid(store: Store, tmp_path: Path) -> None:
    import_files(store, [_DATA / "chatgpt_kinds.json"])
    before = _told(store)
    report = import_files(store, [_exported(store, tmp_path / "export.json", ExportFormat.JSON)])
    assert (report.conversations, report.messages) == (0, 0)
    assert _told(store) == before


# -- an export that was cut off


def test_an_export_cut_off_before_anything_could_be_taken_is_refused(
    store: Store, tmp_path: Path
) -> None:
    path = _cut(tmp_path, 0.01)
    with pytest.raises(ImportRefused, match=r"Nothing could be taken from '.*': .* is cut off"):
        import_files(store, [path])
    other = write_chatgpt_export(tmp_path / "whole.json", Shape(2, 1, 5))
    report = import_files(store, [path, other])
    assert (report.conversations, report.refused) == (2, 1)
    assert [each.where for each in report.skipped] == [str(path)]


def test_of_an_export_cut_off_in_the_middle_the_first_half_is_taken(
    store: Store, tmp_path: Path
) -> None:
    report = import_files(store, [_cut(tmp_path, 0.5)])
    assert (report.conversations, report.refused) == (10, 0)
    assert "is cut off" in report.skipped[0].why


def _cut(folder: Path, share: float) -> Path:
    """Return an export of 20 conversations that ends after a part of its bytes."""
    path = write_chatgpt_export(folder / "cut.json", Shape(20, 2, 5))
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    return path


def test_an_import_gives_way_between_its_messages(store: Store, tmp_path: Path) -> None:
    path, rests = tmp_path / "c.json", list[int]()
    write_chatgpt_export(path, Shape(1, turns=200, words=3))
    import_files(store, [path], give_way=lambda: rests.append(1))
    assert len(rests) > 400
