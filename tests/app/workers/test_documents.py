"""Documents: chunks, garbage, reading of files of all kinds, and the worker on real folders."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.bootstrap import RunMode, build
from app.check import check
from app.domain.errors import IndexUnavailable, InvalidInput, NotFound
from app.domain.passages import PassageKind
from app.domain.records.documents import AddedPath, DocumentState, FileState
from app.domain.records.projects import Project, RecallRule
from app.domain.workers import WorkerName
from app.index.text_sync import TextIndexSync
from app.language.document_chunks import MOST_CHARS, chunks_of, is_garbage, rejoined
from app.storage.deletion.erasure import erase_bytes
from app.storage.tables.documents import Documents
from app.system import document_files
from app.system.document_files import list_files, state_of_file
from app.workers.status_text import worker_text
from tests.fakes.command_line import CommandLine
from tests.fakes.document_folder import (
    DocumentLibrary,
    make_broken,
    make_document,
    make_recognizer,
    text_about,
)
from tests.fakes.files import pdf
from tests.fakes.stored import made

NAME = WorkerName.DOCUMENT_INDEXER


# -- chunks
@given(st.lists(st.text(alphabet=st.sampled_from("a b.\n#-=`\t9é"), max_size=4_000), max_size=3))
def test_chunks_are_the_text_and_none_is_too_long(pages: list[str]) -> None:
    chunks = list(chunks_of(pages, is_paged=True, has_headings=True))
    text = "\n\n".join(pages)
    assert "".join(each.text for each in chunks) == text
    assert all(text[each.start :].startswith(each.text) for each in chunks)
    assert max((len(each.text) for each in chunks), default=0) <= MOST_CHARS


def test_a_chunk_is_below_one_path_of_headings() -> None:
    more = "They are described below. " * 12
    text = (
        f"Before. {more}\n\n# Birds\n\nSome fly. {more}\n\n## Herons ##\n\nThey wade. {more}\n\n"
        f"```\n# no heading\n```\n\nFish\n====\n\nThey swim. {more}\n"
    )
    chunks = list(chunks_of([text], is_paged=False, has_headings=True))
    assert [each.heading for each in chunks] == ["", "Birds", "Birds › Herons", "Fish"]
    assert "# no heading" in chunks[2].text
    assert chunks[3].text.startswith("Fish\n====")
    plain = list(chunks_of([text], is_paged=False, has_headings=False))
    assert {each.heading for each in plain} == {""}


def test_short_sections_share_a_chunk_below_the_headings_of_all() -> None:
    entries = "".join(f"## Term {n}\n\nIt means {n}.\n\n" for n in range(1_000))
    long = "A long section. " * 40
    text = f"# Terms\n\n{entries}# Uses\n\n{long}\n\n## One\n\nShort.\n\n### A\n\nb\n"
    chunks = list(chunks_of([text], is_paged=False, has_headings=True))
    headings = [each.heading for each in chunks]
    assert headings == ["Terms"] * (len(chunks) - 2) + [
        "Uses",
        "Uses \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} One",
    ]
    assert len(chunks) < 40
    assert "".join(each.text for each in chunks) == text


def test_a_chunk_is_on_one_page_and_ends_with_a_sentence() -> None:
    chunks = list(chunks_of([text_about(1, 40), text_about(2)], is_paged=True, has_headings=False))
    assert {each.page for each in chunks} == {1, 2}
    assert len(chunks) > 3
    assert all(each.text.rstrip().endswith(".") for each in chunks)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("a hy-\nphen", "a hyphen"),
        ("a hy\x02phen", "a hyphen"),
        ("a hy\x02\nphen", "a hyphen"),
        ("well-\nknown, as well-known", "well-known, as well-known"),
        ("North-\nSouth", "North-South"),
        ("1-\n2", "1-\n2"),
        ("an end -\nnext", "an end -\nnext"),
        (
            "A line that ends where the column of the page does\nand goes on. \nShort\nones stay.",
            "A line that ends where the column of the page does and goes on. \nShort\nones stay.",
        ),
        (f"{'A line. ' * 6}It has\n\u2022 an item", f"{'A line. ' * 6}It has\n\u2022 an item"),
        (f"{'A line. ' * 6}It has\n12", f"{'A line. ' * 6}It has\n12"),
        ("\u4e00" * 45 + "\n\u4e8c", "\u4e00" * 45 + "\u4e8c"),
    ],
)
def test_divided_words_and_lines_of_a_paragraph_are_joined(page: str, text: str) -> None:
    assert rejoined(page) == text


@pytest.mark.parametrize(
    ("text", "is_unreadable"),
    [("The quarterly report was late again, as we expected.", False),
     ("def f(x): return {k: v for k, v in x.items() if k}", False), ("月次報告は再び遅れました。" * 20, False),
     ("| 2021 | 12.5 | 33 |\n| 2022 | 14.0 | 31 |", False),
     ("Краткий отчёт о встрече в понедельник", False),
     ("\ue001\ue002\ue003 \ue004\ue005 and", True), ("\ufffd\ufffd\ufffd text \ufffd\ufffd", True),
     ("bcdf ghjk lmnp qrst vwxz bcdf ghjk lmnp qrst vwxz", True),
     ("TG9yZW0gaXBzdW0gZG9sb3Igc2l0IGFtZXQgY29uc2VjdGV0dXIgYWRpcGlzY2luZyBlbGl0" * 3, True),
     ("._=-~*" * 30, True), (" \n\t", True)],
)  # fmt: skip
def test_garbage_is_told_from_text(text: str, is_unreadable: bool) -> None:
    assert is_garbage(text) is is_unreadable


# -- the worker
@pytest.fixture
def library(data_dir: Path, tmp_path: Path) -> Iterator[DocumentLibrary]:
    services = build(made(data_dir), RunMode.COMMAND_LINE)
    yield DocumentLibrary(services, tmp_path / "papers")
    services.close()


def test_a_file_is_found_read_and_changed_and_its_folder_gone(library: DocumentLibrary) -> None:
    services, path = library.services, library.folder / "a.txt"
    documents = Documents(services.store, PassageKind.DOCUMENT)

    def listed() -> tuple[DocumentState, int | None, int]:
        own = services.paths.root
        documents.replace_list(list_files({str(library.folder): True}, own, lambda: False))
        (status,) = services.documents.statuses()
        return status.state, status.size_bytes, status.passages

    path.write_text("The herons nest.")
    assert listed() == (DocumentState.WAITING, 16, 0)
    library.look()
    assert listed() == (DocumentState.READ, 16, 1)
    shown = services.document_texts.at(str(path))
    assert state_of_file(shown.source, shown.stamp) is FileState.SAME
    path.write_text("The herons have nested.")
    assert listed() == (DocumentState.CHANGED, 23, 1)
    assert state_of_file(shown.source, shown.stamp) is FileState.CHANGED
    assert services.documents.added() == (AddedPath(str(library.folder), True, True),)
    shutil.rmtree(library.folder)
    assert state_of_file(shown.source, shown.stamp) is FileState.GONE
    assert services.documents.added() == (AddedPath(str(library.folder), False, False),)


def test_every_file_is_counted_and_none_ends_the_worker(library: DocumentLibrary) -> None:
    for number in range(10):
        make_document(library.folder, number)
    broken = make_broken(
        library.folder / "broken", large_bytes=2 << 30, pages=300, bomb_bytes=65 << 20
    )
    (library.folder / ".hidden").write_text("Nobody sees this.")
    (library.folder / "node_modules").mkdir()
    (library.folder / "node_modules" / "x.js").write_text("var made = 1;")
    status = library.run()
    assert (status.total, status.done) == (10 + len(broken), 10 + len(broken))
    assert (status.failed, status.abandoned, status.waiting_retry) == (0, 0, 0)
    states = library.states()
    for name, why in broken.items():
        assert why in states[name][1], name
        if why:
            assert states[name][0] is DocumentState.SKIPPED, name
    assert {
        states[each][0] for each in ("0.md", "1.txt", "2.html", "3.py", "4.pdf", "long.pdf")
    } == {DocumentState.READ}
    assert library.found("report 3 herons point lichens violins tariffs")
    assert library.found('"Page 299 of the long report"') == ["long.pdf"]
    assert check(library.services.store).problems == ()


def test_the_card_says_how_many_were_read_in_part(
    library: DocumentLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_files, "MOST_TABLE_CHARS", 200)
    path = library.folder / "long.csv"
    path.write_text("Day,Item\n" + "".join(f"{day},the roof of the house\n" for day in range(99)))
    (library.folder / "note.txt").write_text("The herons nest in the old mill.")
    in_part = []
    for _ in range(2):
        library.look()
        each = next(
            each
            for each in library.services.workers.refresh()
            if each.name is WorkerName.DOCUMENT_INDEXER
        )
        in_part.append((each.in_part, "1 read in part" in worker_text(each).counts))
        path.write_text("Day,Item\n1,the roof of the house\n")
    assert in_part == [(1, True), (0, False)]


def test_results_say_file_page_and_headings(library: DocumentLibrary) -> None:
    (library.folder / "birds.md").write_text(
        "# Birds\n\n## Herons\n\nHerons wade in shallow water.\n"
    )
    (library.folder / "fish.pdf").write_bytes(pdf("Salmon swim.", "Trout prefer cold streams."))
    library.run()
    library.services.index_sync.catch_up(lambda: False)
    search = library.services.search.search
    (herons,) = search("wade shallow", by_meaning=False).results
    assert herons.conversation_title == "birds.md – Birds › Herons"
    assert (herons.source, herons.conversation_id) == (str(library.folder / "birds.md"), None)
    assert herons.snippet == "Birds Herons Herons wade in shallow water."
    (trout,) = search("trout", by_meaning=False).results
    assert trout.conversation_title == "fish.pdf, p. 2"
    whole = library.services.document_texts.at(trout.place)
    assert whole.text == "Salmon swim.\n\nTrout prefer cold streams."
    assert whole.place is not None
    assert whole.chunks[whole.place].text == "Trout prefer cold streams."


def test_an_edited_or_deleted_file_leaves_no_word_behind(library: DocumentLibrary) -> None:
    kept = "Herons nest in tall trees beside the river. " * 30
    path = library.folder / "notes.md"
    path.write_text(f"# Kept\n\n{kept}\n\n# Changed\n\nThe zebra is striped.\n")
    (library.folder / "other.txt").write_text("An umbrella against the rain.")
    library.run()
    before = library.passages()
    assert (library.found("zebra"), library.found("umbrella")) == (["notes.md"], ["other.txt"])
    path.write_text(f"# Kept\n\n{kept}\n\n# Changed\n\nThe giraffe is tall.\n")
    (library.folder / "other.txt").unlink()
    status = library.look()
    assert (status.done, status.total) == (1, 1)
    assert (library.found("zebra"), library.found("umbrella")) == ([], [])
    assert library.found("giraffe") == ["notes.md"]
    assert len(before & library.passages()) == len(before) - 2, "the others keep their vectors"
    rows = library.services.store.rows("SELECT text FROM document_chunk")
    assert not any("zebra" in text or "umbrella" in text for (text,) in rows)
    assert check(library.services.store).problems == ()


def test_scans_are_read_once_the_recognizer_is_installed(
    library: DocumentLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))  # without one that is installed here
    (library.folder / "scan.pdf").write_bytes(pdf())
    (library.folder / "mixed.pdf").write_bytes(pdf("A typed page.", ""))
    (library.folder / "other.pdf").write_bytes(pdf("Another typed page."))
    library.run()
    states = library.states()
    assert states["scan.pdf"][0] is DocumentState.SKIPPED
    assert "package tesseract-ocr" in states["scan.pdf"][1]
    assert states["mixed.pdf"] == (
        DocumentState.READ,
        "1 of 2 pages have no text. Images are read once Tesseract is installed (package tesseract-ocr).",
    )
    (tmp_path / "bin").mkdir()
    make_recognizer(tmp_path / "bin")
    assert library.look().completed == 2 + 2, "the third is not read again"
    assert library.states() == dict.fromkeys(states, (DocumentState.READ, ""))
    assert library.found("recognized")
    mixed = library.services.document_texts.at(str(library.folder / "mixed.pdf"))
    assert mixed.text == "A typed page.\n\nRecognized P5 in eng+deu."


def test_a_drive_that_is_away_keeps_its_documents(library: DocumentLibrary, tmp_path: Path) -> None:
    drive = tmp_path / "media" / "drive"
    drive.mkdir(parents=True)
    (drive / "letter.txt").write_text("A letter about pelicans.")
    library.services.documents.add(drive)
    library.run()
    drive.parent.rename(tmp_path / "unplugged")
    assert library.look().total == 1
    assert library.found("pelicans") == ["letter.txt"]
    (tmp_path / "unplugged").rename(drive.parent)
    shutil.rmtree(drive)
    assert library.look().total == 0
    assert library.found("pelicans") == []


def test_what_was_removed_of_a_folder_stays_out(library: DocumentLibrary) -> None:
    for name in ("a", "b"):
        (library.folder / name).mkdir()
        (library.folder / name / "x.txt").write_text(f"The pelican of folder {name}.")
    library.run()
    documents = library.services.documents
    assert len(documents.affected(library.folder / "a")) == 1
    documents.remove([library.folder / "a"])
    assert [Path(each.name).parent.name for each in documents.statuses()] == ["b"]
    assert library.look().total == 1
    documents.add(library.folder / "a")
    assert library.run().total == 2
    documents.remove([library.folder])
    assert (documents.statuses(), documents.folders()) == ((), ())
    with pytest.raises(NotFound):
        documents.affected(library.folder)
    with pytest.raises(NotFound):
        documents.add(library.folder / "none")
    with pytest.raises(InvalidInput):
        documents.add(library.services.paths.root)


def test_removing_leaves_no_byte_behind(library: DocumentLibrary) -> None:
    (library.folder / "x.txt").write_text("The secret word is quetzalcoatl.")
    library.run()
    assert library.found("quetzalcoatl")
    library.services.back_up()
    library.services.documents.remove([library.folder])
    assert erase_bytes(library.services.store)
    library.services.index_sync.catch_up(lambda: False)
    root = library.services.paths.root
    library.services.close()
    holding = [
        each for each in root.rglob("*") if each.is_file() and b"quetzal" in each.read_bytes()
    ]
    assert holding == []


# -- projects
def test_a_document_of_a_bounded_project_is_inside_it_alone(library: DocumentLibrary) -> None:
    services, folder = library.services, library.folder
    (folder / "inner").mkdir()
    (folder / "open.txt").write_text("The heron bridge was painted green.")
    (folder / "inner" / "closed.txt").write_text("The heron tower was painted red.")
    project = services.projects.save(Project("", "Tower", recall=RecallRule.ONLY))
    completed = library.run().completed

    def inside(uid: str | None) -> set[str]:
        services.index_sync.catch_up(lambda: False)
        found = services.search.search(
            "heron painted",
            kinds=[PassageKind.DOCUMENT],
            boundary=services.search.boundaries.of(uid),
        )
        return {Path(each.source).name for each in found.results}

    assert inside(None) == {"open.txt", "closed.txt"}
    services.documents.add(folder / "inner", project.uid)
    assert (inside(None), inside(project.uid)) == ({"open.txt"}, {"closed.txt"})
    assert library.look().completed == completed, "nothing is read again"
    services.documents.add(folder)
    assert inside(project.uid) == {"closed.txt"}
    (folder / "inner" / "later.txt").write_text("The heron tower was painted white.")
    library.look()
    assert (inside(None), inside(project.uid)) == ({"open.txt"}, {"closed.txt", "later.txt"})
    services.documents.remove([folder / "inner"])
    assert (inside(None), inside(project.uid)) == ({"open.txt"}, set())


# -- the command line
def test_the_command_line_adds_lists_finds_and_removes(
    tmp_path: Path,
    data_dir: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cli = CommandLine(data_dir, capsys)
    path = make_document(tmp_path / "papers", 0)
    (path.parent / "empty.txt").touch()
    assert cli.json("documents") == {"folders": [], "documents": []}
    folder = str(tmp_path / "papers")
    assert cli.json("documents", "add", folder) == {"added": [folder], "project": None}
    worker = cli.json("work", "--until-idle", "--only", NAME)["workers"][NAME]
    assert (worker["done"], worker["total"], worker["skipped"]) == (2, 2, 1)
    listed = cli.json("documents", "list")
    assert listed["folders"] == [folder]
    read, empty = listed["documents"]
    assert (read["path"], read["state"], read["why"], read["pages"]) == (
        str(path), "read", None, None,
    )  # fmt: skip
    assert read["passages"] > 1
    assert (empty["state"], empty["why"], empty["passages"]) == ("skipped", "It is empty.", 0)
    found = cli.json("search", "herons counted", "--kind", "document")["results"]
    assert {each["source"] for each in found} == {str(path)}
    shown = cli.json("show", f"document:{found[0]['id']}")
    assert (shown["source"], shown["text"]) == (str(path), path.read_text())
    ran = cli("documents", "remove", folder)
    assert (ran.code, "1 will be removed" in ran.err) == (1, False)
    failure = IndexUnavailable("The text index could not be written", "Free some room.")
    with monkeypatch.context() as broken:
        broken.setattr(TextIndexSync, "_catch_up", Mock(side_effect=failure))
        removed = json.loads(cli("documents", "remove", folder, "--yes", "--json").out)
    assert removed["documents"] == 2
    assert failure.display_text in removed["remains"][-1]
    assert cli.json("documents", "list") == {"folders": [], "documents": []}
    assert path.exists()
    assert cli.done("check").out == "Everything is in order.\n"
    assert cli("documents", "remove", folder).code == 1
    assert cli("documents", "add").code == 2
