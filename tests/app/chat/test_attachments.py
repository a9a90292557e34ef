"""Attached files: detection by content, storage, kills, backups, check, forgetting, and what models get."""

import json
import os
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat import request_builder
from app.chat.library import Library
from app.chat.request_builder import AttachedImages
from app.check import check
from app.domain.attachments import (
    FILE_MAX_BYTES,
    IMAGE_MAX_BYTES,
    files_of,
    fitting_size,
    image_size,
    image_tokens,
    is_animated,
    is_whole_image,
    media_type_of,
)
from app.domain.changes import DraftPut, MessagesAdded, PassagesPut
from app.domain.chat import ModelRef
from app.domain.conversations import Attachment, Block, Draft, Image, Message, Role, Text
from app.domain.errors import InvalidInput, NotFound, StorageError
from app.domain.ids import ConversationId, MessageId
from app.domain.turns import turn_passage
from app.storage.deletion.forget import forget
from app.storage.engine.store import Store
from app.storage.safety.attachments import UNREFERENCED_FOR_S, AttachmentFiles, remove_unreferenced
from app.storage.safety.backup import copy_backup, list_backups, make_backup
from app.storage.safety.restore import restore_backup
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.system.file_programs import UnreadableFile, pdf_text
from app.transfer.attaching import attach, attach_path
from app.transfer.exporting import ExportFormat, export
from app.transfer.importing import import_files
from tests.fakes.files import gif, pdf, png
from tests.fakes.stored import AT, ConversationRecord, killed, new_conversation, opened

BIG = png(2400, 1000)


@pytest.fixture
def files(store: Store) -> AttachmentFiles:
    return AttachmentFiles(store.paths)


def say(store: Store, *blocks: Block) -> ConversationRecord:
    """Write a conversation whose question has these blocks."""
    whole = new_conversation(store, "Look")
    messages = (replace(whole.messages[0], blocks=(Text("Look"), *blocks)), *whole.messages[1:])
    passage = turn_passage(store.ids.passage(), whole.exchanges[0], messages)
    assert passage is not None
    written = (MessagesAdded, PassagesPut)
    kept = (each for each in whole.changes if not isinstance(each, written))
    store.save(*kept, MessagesAdded(messages), PassagesPut((passage,)))
    return whole


# -- by content
@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [(png(), "notes.txt", "image/png"), (gif(), "a.png", "image/gif"),
     (pdf("Hi"), "a.png", "application/pdf"), (b"BM is a text", "a.bmp", "text/plain"),
     (b"a,b\n1,2\n", "a.csv", "text/csv"), ("Größe".encode("utf-16"), "a.bin", "text/plain"),
     (("ü" * 40_000).encode(), "a.md", "text/markdown"),
     (b"\0\1\2\xff", "a.txt", "application/octet-stream"),
     (b"PK\3\4rest", "a.docx", "application/zip")],
)  # fmt: skip
def test_the_content_decides_the_media_type(data: bytes, name: str, kind: str) -> None:
    assert media_type_of(data, name) == kind


def test_sizes_are_read_from_headers() -> None:
    assert image_size(BIG) == (2400, 1000)
    assert image_size(gif()) == (1, 1)
    assert image_size(png(20_000, 1)[:24]) == (20_000, 1)
    assert image_size(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\1\0\0\0\1\0\0") is None, "a bomb"
    assert (is_animated(gif()), is_animated(gif(3))) == (False, True)
    assert fitting_size((2400, 1000)) == (2000, 833)
    assert image_tokens(Image("a", "image/png", "h", width_px=280, height_px=280)) == 255
    assert image_tokens(Image("a", "image/png", "h", width_px=1960, height_px=1400)) == 3500


@given(st.binary(max_size=60), st.sampled_from([b"\xff\xd8\xff", b"RIFF1234WEBPVP8", b"BM", b""]))
def test_no_header_raises(data: bytes, start: bytes) -> None:
    assert (image_size(start + data) or (0, 0)) >= (0, 0)
    assert is_animated(start + data) in (False, True)
    assert media_type_of(start + data, "x")


# -- attaching
def test_a_large_image_gets_a_smaller_copy_and_a_small_one_none(files: AttachmentFiles) -> None:
    image = attach(files, BIG, "big.png").file
    assert isinstance(image, Image)
    assert (image.width_px, image.height_px, image.size_bytes) == (2400, 1000, len(BIG))
    assert image.sent_hash is not None
    assert image_size(files.read(image.sent_hash)) == (2000, 833)
    small = attach(files, png(), "small.png").file
    assert isinstance(small, Image)
    assert small.sent_hash is None
    moving = attach(files, gif(2), "moving.gif")
    assert isinstance(moving.file, Image)
    assert moving.notice
    assert media_type_of(files.read(moving.file.sent_hash or ""), "") == "image/png"


@pytest.mark.parametrize(
    ("data", "text", "has_notice"),
    [(pdf("Invoice 4711"), "Invoice 4711", False), (pdf(), "", True),
     (b"%PDF-1.4 damaged", "", True), (b"Zeile 1\r\nZeile 2", "Zeile 1\nZeile 2", False),
     (b"\0\1", "", True), (b"x" * 400_001, "x" * 400_000, True)],
)  # fmt: skip
def test_text_is_extracted_and_what_is_missing_said(
    files: AttachmentFiles, data: bytes, text: str, has_notice: bool
) -> None:
    attached = attach(files, data, "a.file")
    assert isinstance(attached.file, Attachment)
    assert (attached.file.text, bool(attached.notice)) == (text, has_notice)
    assert attached.file.size_bytes == len(data)


@pytest.mark.parametrize(
    "data",
    [png()[:-30], b"\x89PNG\r\n\x1a\n" + b"\0" * (IMAGE_MAX_BYTES + 1),
     b"\0" * (FILE_MAX_BYTES + 1), b""],
    ids=["truncated image", "large image", "large file", "empty"],
)  # fmt: skip
def test_what_cannot_be_attached_is_refused(files: AttachmentFiles, data: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"'a\.png'"):
        attach(files, data, "a.png")


def test_only_files_can_be_attached(files: AttachmentFiles, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, error in (
        (tmp_path, InvalidInput),
        (tmp_path / "pipe", InvalidInput),
        (tmp_path / "none", NotFound),
    ):
        with pytest.raises(error):
            attach_path(files, path)


def test_a_slow_program_is_ended(files: AttachmentFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.system.file_programs._SECONDS", 0.0)
    content_hash = files.put(pdf("Slow", "page"))
    with pytest.raises(UnreadableFile):
        pdf_text(files.path(content_hash), 100)


# -- storage
def test_files_are_private_stored_once_and_verified_when_read(files: AttachmentFiles) -> None:
    content_hash = files.put(b"content")
    assert files.put(b"content") == content_hash
    path = files.path(content_hash)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in path.parent.iterdir()] == [content_hash]
    path.write_bytes(b"another")
    with pytest.raises(StorageError, match="altered"):
        files.read(content_hash)
    path.unlink()
    with pytest.raises(NotFound):
        files.read(content_hash)


def test_attaching_an_altered_file_again_replaces_it(store: Store, files: AttachmentFiles) -> None:
    text = attach(files, b"words", "b.txt").file
    say(store, text)
    content_hash = text.content_hash or ""
    make_backup(store)
    for folder in (store.paths.attachments, store.paths.kept_attachments):
        (folder / content_hash).write_bytes(b"WORDS")
    files.put(b"words")
    for folder in (store.paths.attachments, store.paths.kept_attachments):
        assert (folder / content_hash).read_bytes() == b"words"


def test_a_backup_does_not_share_what_alters_a_file(store: Store, files: AttachmentFiles) -> None:
    content_hash = attach(files, b"words", "b.txt").file.content_hash or ""
    say(store, attach(files, b"words", "b.txt").file)
    store.paths.kept_attachments.mkdir()
    os.link(files.path(content_hash), store.paths.kept_attachments / content_hash)  # as before
    make_backup(store)
    with files.path(content_hash).open("r+b") as file:
        file.write(b"WORDS")
    assert files.read(content_hash) == b"words"


def test_files_are_kept_before_a_backup_is_published(
    store: Store, files: AttachmentFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(store, attach(files, b"words", "b.txt").file)

    def fail(*_args: object) -> None:
        raise StorageError("No room")

    monkeypatch.setattr("app.storage.safety.backup.keep_for_backups", fail)
    with pytest.raises(StorageError):
        make_backup(store)
    assert list_backups(store.paths.backups) == []


def test_a_restore_replaces_an_altered_file(store: Store, files: AttachmentFiles) -> None:
    text = attach(files, b"words", "b.txt").file
    say(store, text)
    made = make_backup(store)
    store.close()
    files.path(text.content_hash or "").write_bytes(b"WORDS")
    restore_backup(store.paths, made.path)
    assert files.path(text.content_hash or "").read_bytes() == b"words"


def test_an_acknowledged_message_has_its_file_after_a_kill(
    store: Store, files: AttachmentFiles, tmp_path: Path
) -> None:
    image = attach(files, png(), "a.png").file
    whole = say(store, image)
    drafted = attach(files, b"a draft", "b.txt").file
    store.save(DraftPut(None, "", AT, (drafted,)))
    orphan = files.put(b"nothing refers to it")
    make_old(store)
    with opened(killed(store, tmp_path / "killed")) as again:
        assert check(again).problems == ()
        assert remove_unreferenced(again) == 1
        found = AttachmentFiles(again.paths)
        assert found.read(image.content_hash or "") == png()
        assert found.read(drafted.content_hash or "") == b"a draft"
        with pytest.raises(NotFound):
            found.read(orphan)
    assert whole.conversation.id == 1


def make_old(store: Store) -> None:
    """Set back the time at which each file was used last."""
    at = time.time() - UNREFERENCED_FOR_S - 60
    for path in store.paths.attachments.iterdir():
        os.utime(path, (at, at))


def test_a_draft_is_stored_without_text_of_its_files(store: Store, files: AttachmentFiles) -> None:
    library, file = Library(store), attach(files, b"many words", "b.txt").file
    library.save_draft(None, Draft("Look", (file,)))
    assert [each.text for each in Conversations(store).draft(None).files] == [""]
    assert library.draft(None) == Draft("Look", (file,))
    files.path(file.content_hash or "").unlink()
    assert library.draft(None).text == "Look"


def test_files_in_use_or_of_a_damaged_database_stay(store: Store, files: AttachmentFiles) -> None:
    files.put(b"just attached")
    assert remove_unreferenced(store) == 0
    make_old(store)
    store.paths.damaged.mkdir()
    (store.paths.damaged / "old.duckdb").touch()
    assert remove_unreferenced(store) == 0


def test_a_backup_repairs_a_missing_or_altered_file(store: Store, files: AttachmentFiles) -> None:
    image, text = attach(files, png(), "a.png").file, attach(files, b"words", "b.txt").file
    say(store, image, text)
    path = files.path(image.content_hash or "")
    files.path(text.content_hash or "").unlink()
    (problem,) = check(store).problems
    assert "'b.txt'" in problem
    files.put(b"words")
    make_backup(store)
    path.unlink()
    assert files.read(image.content_hash or "") == png(), "from the backup"
    path.write_bytes(b"altered")
    report = check(store)
    assert (len(report.problems), report.repairable) == (1, 1)
    assert check(store, repair=True).problems == ()
    assert path.read_bytes() == png()


def test_a_restore_brings_files_back(store: Store, files: AttachmentFiles, tmp_path: Path) -> None:
    content_hash = attach(files, png(), "a.png").file.content_hash or ""
    say(store, attach(files, png(), "a.png").file)
    made = make_backup(store)
    assert not (store.paths.kept_attachments / content_hash).samefile(files.path(content_hash))
    outside = tmp_path / "outside.duckdb"
    copy_backup(made, outside)
    store.close()
    for folder in (store.paths.attachments, store.paths.kept_attachments):
        (folder / content_hash).unlink()
    restore_backup(store.paths, outside)
    with opened(store.paths.root) as again:
        assert check(again).problems == ()
        assert files.read(content_hash) == png()


@pytest.fixture
def shared(store: Store, files: AttachmentFiles) -> tuple[ConversationRecord, ...]:
    """Two conversations with one file, and each with another; backed up."""
    both = attach(files, png(), "both.png").file
    return tuple(
        say(store, both, attach(files, name.encode(), name).file) for name in ("one", "two")
    )


def test_forgetting_deletes_the_files_that_nothing_else_refers_to(
    store: Store, files: AttachmentFiles, shared: tuple[ConversationRecord, ...]
) -> None:
    first, second = shared
    make_backup(store)
    assert names(store) == 3
    forget(store, [first.conversation.id])
    assert names(store) == 2
    assert len(list(store.paths.kept_attachments.iterdir())) == 2
    assert check(store).problems == ()
    forget(store, [second.conversation.id])
    assert names(store) == 0
    assert list(store.paths.kept_attachments.iterdir()) == []


def test_forgetting_deletes_the_files_of_its_draft(store: Store, files: AttachmentFiles) -> None:
    here = say(store).conversation.id
    store.save(DraftPut(here, "", AT, (attach(files, b"a draft", "b.txt").file,)))
    forget(store, [here])
    assert names(store) == 0


def test_a_kill_while_forgetting_leaves_no_file_for_long(
    store: Store,
    files: AttachmentFiles,
    shared: tuple[ConversationRecord, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_args: object) -> None:
        raise StorageError("Killed")

    monkeypatch.setattr("app.storage.deletion.forget.remove_unreferenced", fail)
    make_backup(store)
    with pytest.raises(StorageError):
        forget(store, [shared[0].conversation.id])
    assert names(store) == 3
    assert remove_unreferenced(store) == 1, "what maintenance does after a start"
    assert len(list(store.paths.kept_attachments.iterdir())) == 2


def names(store: Store) -> int:
    folder = store.paths.attachments
    return len(list(folder.iterdir())) if folder.exists() else 0


# -- leaving and coming back
@pytest.mark.parametrize("chosen", [ExportFormat.JSON, ExportFormat.JSONL])
def test_an_export_with_its_files_is_imported_as_it_was(
    store: Store, files: AttachmentFiles, tmp_path: Path, chosen: ExportFormat
) -> None:
    say(store, attach(files, BIG, "big.png").file, attach(files, pdf("Hi"), "b.pdf").file)
    target = tmp_path / "talk.json"
    export(store, target, chosen)
    assert len(list((tmp_path / "talk.json.attachments").iterdir())) == 3
    with opened(tmp_path / "other") as other:
        import_files(other, [target], dry_run=True)
        assert names(other) == 0
        import_files(other, [target])
        assert import_files(other, [target]).messages == 0
        assert blocks_in(other) == blocks_in(store)
        assert check(other).problems == ()
    (tmp_path / "talk.json.attachments").rename(tmp_path / "elsewhere")
    with opened(tmp_path / "third") as third:
        import_files(third, [target])
        assert [each.content_hash for each in files_of(blocks_in(third))] == [None, None]
        assert check(third).problems == ()


def test_an_export_takes_files_from_backups_and_names_what_is_missing(
    store: Store, files: AttachmentFiles, tmp_path: Path
) -> None:
    kept, lost = (attach(files, name.encode(), name).file for name in ("kept.txt", "lost.txt"))
    say(store, kept, lost)
    made = make_backup(store)
    hashes = [each.content_hash or "" for each in (kept, lost)]
    for each in hashes:
        files.path(each).write_bytes(b"altered")
    (store.paths.kept_attachments / hashes[1]).write_bytes(b"altered")
    report = export(store, tmp_path / "talk.json", ExportFormat.JSON)
    assert (report.conversations, report.missing_files) == (1, ("lost.txt",))
    assert copy_backup(made, tmp_path / "copy.duckdb") == 1
    for folder in ("talk.json.attachments", "copy.duckdb.attachments"):
        assert [each.name for each in (tmp_path / folder).iterdir()] == hashes[:1]


def blocks_in(store: Store) -> tuple[Block, ...]:
    """Return the blocks of the first message."""
    ((conversation_id,),) = store.rows("SELECT id FROM conversation")
    return Exchanges(store).messages_in(conversation_id)[0].blocks


PICTURE = {
    "content_type": "multimodal_text",
    "parts": [
        {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_00a1b2c3"},
        {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_0lost000"},
        "What is it?",
    ],
}


@pytest.mark.parametrize("is_zip", [True, False])
def test_pictures_in_an_export_of_chatgpt_are_kept(
    store: Store, files: AttachmentFiles, tmp_path: Path, is_zip: bool
) -> None:
    message = {"id": "m", "author": {"role": "user"}, "content": PICTURE}
    row = {"id": "c", "title": "A", "mapping": {"m": {"id": "m", "message": message}}}
    members = {
        "conversations.json": json.dumps([row]).encode(),
        "user-1/file_00a1b2c3-sanitized.png": png(),
    }
    path = tmp_path / "export"
    if is_zip:
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
    else:
        (path / "user-1").mkdir(parents=True)
        for name, data in members.items():
            (path / name).write_bytes(data)
    report = import_files(store, [path])
    assert report.messages == 1
    kept, lost = files_of(blocks_in(store))
    assert isinstance(kept, Image)
    assert (kept.width_px, files.read(kept.content_hash or "")) == (40, png())
    assert lost.content_hash is None


JPEG = (
    b"\xff\xd8\xff\xc0\0\x0b\x08\0\x10\0\x10\1\1\x11\0\xff\xda\0\x08\1\1\0\0\x3f\0"
    + bytes(99)
    + b"\xff\xd9"
)
WEBP = b"RIFF\x1a\0\0\0WEBPVP8L\x0e\0\0\0\x2f\x0f\xc0\x03\0" + bytes(9)


@pytest.mark.parametrize("whole", [png(), gif(2), JPEG, WEBP], ids=["png", "gif", "jpeg", "webp"])
def test_a_truncated_image_is_not_whole(whole: bytes) -> None:
    assert is_whole_image(whole)
    assert is_whole_image(b"%PDF")
    for kept in (len(whole) // 2, len(whole) - 1):
        assert not is_whole_image(whole[:kept])
    assert not is_whole_image(png().replace(b"IDAT\x78", b"IDAT\x79"))


@pytest.mark.parametrize("kept_bytes", [10, len(png()) - 20])
def test_a_damaged_picture_is_reported(store: Store, tmp_path: Path, kept_bytes: int) -> None:
    message = {"id": "m", "author": {"role": "user"}, "content": PICTURE}
    row = {"id": "c", "title": "A", "mapping": {"m": {"id": "m", "message": message}}}
    (tmp_path / "conversations.json").write_text(json.dumps([row]))
    (tmp_path / "file_00a1b2c3-x.png").write_bytes(png()[:kept_bytes])
    report = import_files(store, [tmp_path])
    assert any("damaged" in each.why for each in report.skipped)
    assert {each.content_hash for each in files_of(blocks_in(store))} == {None}


def test_a_damaged_image_in_an_export_of_ours_keeps_its_name_alone(
    store: Store, files: AttachmentFiles, tmp_path: Path
) -> None:
    say(store, Image("half.png", "image/png", files.put(png()[:-20])))
    export(store, tmp_path / "talk.json", ExportFormat.JSON)
    with opened(tmp_path / "other") as other:
        report = import_files(other, [tmp_path / "talk.json"])
        assert len(report.skipped) == 1
        assert [each.content_hash for each in files_of(blocks_in(other))] == [None]


def test_images_beyond_the_limit_are_left_out_in_large_steps(
    files: AttachmentFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each further image would change what the request before it began with."""
    monkeypatch.setattr(request_builder, "_MAX_BYTES", 4_000)
    hashes = [files.put(bytes([number]) * 1_000) for number in range(12)]
    load = AttachedImages(files, lambda _: None)
    messages = [
        Message(
            MessageId(number + 1), str(number), ConversationId(1), None, Role.USER,
            (Image("p.png", "image/png", each),), AT,
        )
        for number, each in enumerate(hashes)
    ]  # fmt: skip
    sent = [list(load(ModelRef("p", "m"), messages[:count])) for count in range(1, 13)]
    assert sent[3] == hashes[:4]
    broken = [
        count for count in range(1, 12) if sent[count][: len(sent[count - 1])] != sent[count - 1]
    ]
    assert broken == [4, 7, 10], "every third image, not every one"
    assert all(each[-1] == hashes[count] for count, each in enumerate(sent)), "the newest is sent"
    assert load(ModelRef("p", "m"), [messages[0], messages[0]]) == {hashes[0]: bytes(1_000)}
    assert AttachedImages(files, lambda _: False)(ModelRef("p", "m"), messages) == {}
    files.path(hashes[0]).unlink()
    assert list(load(ModelRef("p", "m"), messages[:2])) == hashes[1:2]
