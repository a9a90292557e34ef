"""Folders of documents of all kinds, with what is wrong with some of them."""

import os
import zipfile
from base64 import b64encode
from pathlib import Path

from app.bootstrap import Services
from app.domain.ids import PassageId
from app.domain.passages import PassageKind
from app.domain.records.documents import DocumentState
from app.domain.workers import WorkerName, WorkerStatus
from tests.fakes.files import pdf, png

TOPICS = ("herons", "gateways", "lichens", "tariffs", "violins", "glaciers", "ledgers", "orchards")


def text_about(number: int, sentences: int = 12) -> str:
    """Return sentences of one topic that say something different in each document."""
    topic = TOPICS[number % len(TOPICS)]
    return " ".join(
        f"Report {number} says in point {point} that the {topic} were counted {number * point} times."
        for point in range(1, sentences + 1)
    )


def make_document(folder: Path, number: int) -> Path:
    """Write one readable document; the kind depends on the number."""
    text = text_about(number)
    name, content = (
        (f"{number}.md", f"# Report {number}\n\n{text}\n\n## Figures\n\n{text}\n"),
        (f"{number}.txt", f"{text}\n\n{text}\n"),
        (f"{number}.html", f"<html><body><h1>Report {number}</h1><p>{text}</p></body></html>"),
        (
            f"{number}.py",
            f'"""Report {number}."""\n\n\ndef count() -> int:\n    """{text}"""\n    return {number}\n',
        ),
        (f"{number}.pdf", pdf(*(text_about(number, 3).replace(". ", ".\n") for _ in range(3)))),
    )[number % 5]
    path = folder / f"part{number % 7}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def make_broken(folder: Path, *, large_bytes: int, pages: int, bomb_bytes: int) -> dict[str, str]:
    """Write documents that cannot be read, or only in part; return what is said of each by name.

    The large files have holes, so they take no space.
    """
    folder.mkdir(parents=True, exist_ok=True)
    whole = pdf(text_about(1))
    (folder / "cut.pdf").write_bytes(whole[: len(whole) // 3])
    (folder / "noise.pdf").write_bytes(b"%PDF-1.7\n" + os.urandom(50_000))
    (folder / "locked.pdf").write_bytes(pdf(text_about(2), protected=True))
    (folder / "scan.pdf").write_bytes(pdf())
    (folder / "long.pdf").write_bytes(pdf(*(f"Page {n} of the long report." for n in range(pages))))
    with (folder / "large.txt").open("wb") as file:
        file.write(b"A log that grew.\n" * 10_000)
        file.truncate(large_bytes)
    with (folder / "large.pdf").open("wb") as file:
        file.write(whole[:200])
        file.truncate(large_bytes)
    bomb = zipfile.ZipFile(folder / "bomb.docx", "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with bomb, bomb.open("word/document.xml", "w", force_zip64=True) as part:
        for _ in range(bomb_bytes >> 20):
            part.write(bytes(1 << 20))
    (folder / "picture.png").write_bytes(png())
    (folder / "encoded.txt").write_bytes(b64encode(os.urandom(3_000)))
    (folder / "empty.md").touch()
    (folder / "deep.html").write_text("<div>" * 50_000 + "<script>" * 1_000, encoding="utf-8")
    (folder / "binary.txt").write_bytes(bytes(range(256)) * 40)
    os.mkfifo(folder / "pipe.txt")
    (folder / "loop").symlink_to(folder)
    return {
        "cut.pdf": "damaged", "noise.pdf": "damaged", "locked.pdf": "password", "scan.pdf": "images",
        "long.pdf": "", "large.txt": "larger", "large.pdf": "damaged", "bomb.docx": "unpacks",
        "picture.png": "not read", "encoded.txt": "not readable", "empty.md": "empty",
        "deep.html": "", "binary.txt": "not read",
    }  # fmt: skip


def make_recognizer(folder: Path) -> None:
    """Write a program that answers like Tesseract: it names the kind of the image and the languages.

    As a table its words are in the upper half of an image, 300 pixels wide each.
    """
    program = folder / "tesseract"
    program.write_text(
        "#!/bin/sh\nPATH=/bin:/usr/bin\n"
        'if [ "$1" = --list-langs ]; then printf "List:\\neng\\nosd\\ndeu\\n"; exit; fi\n'
        'text="Recognized $(head -c 16 | head -c 2) in $4."\n'
        'if [ "$5" != -c ]; then echo "$text"; exit; fi\n'
        "printf 'level\\tof\\tall\\tten\\tothers\\tleft\\ttop\\twidth\\theight\\tconf\\ttext\\n'; left=100\n"
        "for word in $text; do printf '5\\t1\\t1\\t1\\t1\\t1\\t%d\\t100\\t250\\t100\\t90\\t%s\\n' $left $word\n"
        "left=$((left + 300)); done\n"
    )
    program.chmod(0o755)


class DocumentLibrary:
    """A library with one added folder."""

    def __init__(self, services: Services, folder: Path) -> None:
        self.services, self.folder = services, folder
        folder.mkdir(exist_ok=True)
        services.documents.add(folder)

    def run(self) -> WorkerStatus:
        """Read the folder as it is now."""
        self.services.workers.wake([WorkerName.DOCUMENT_INDEXER])
        (status,) = self.services.workers.run_until_idle([WorkerName.DOCUMENT_INDEXER])
        return status

    def look(self) -> WorkerStatus:
        """Read the folder as it is now, even if it was listed a moment ago."""
        folders = self.services.settings.text("document_folders")
        self.services.settings.set("document_folders", folders + " ")
        return self.run()

    def states(self) -> dict[str, tuple[DocumentState, str]]:
        return {
            Path(each.name).name: (each.state, each.why)
            for each in self.services.documents.statuses()
        }

    def found(self, words: str) -> list[str]:
        """Return the names of the documents that have the words, best first."""
        self.services.index_sync.catch_up(lambda: False)
        kinds = [PassageKind.DOCUMENT]
        results = self.services.search.search(words, 20, kinds, by_meaning=False).results
        return [Path(each.source).name for each in results]

    def passages(self) -> frozenset[PassageId]:
        return self.services.passages.of_kind(PassageKind.DOCUMENT)
