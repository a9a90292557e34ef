"""Document files: which files the added folders hold, and their text."""

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from app.domain.attachments import decoded_text, is_text, media_type_of
from app.domain.errors import Cancelled
from app.domain.records.documents import Chunk, DocumentText, FileState, ListedDocument
from app.domain.text import clean
from app.domain.translation import format_size
from app.language.document_chunks import chunks_of, rejoined
from app.system.file_programs import UnreadableFile, document_pages, text_recognizer

MOST_TEXT_BYTES = 20 << 20
MOST_CHARS = 10_000_000
MOST_TABLE_CHARS = 1_000_000  # of a table's rows: some 1,100 passages
RECOGNIZER = "Tesseract"  # in the reason of each file that is read once it is installed

_MOST_S = 300.0
_HEAD_BYTES = 64 << 10
_PDF, _HTML, _MARKDOWN = "application/pdf", "text/html", "text/markdown"
# Folders that programs make, whose files nobody wrote or reads.
_LEFT_OUT = frozenset(("node_modules", "__pycache__", "lost+found", "$RECYCLE.BIN"))
_ENDINGS = {".htm": ".html", ".xhtml": ".html", ".markdown": ".md", ".mdx": ".md", ".rst": ".md"}

_OFFICE, _EPUB, _EMAIL = "application/vnd.office", "application/epub+zip", "message/rfc822"
_NOTEBOOK = "application/x-ipynb+json"
_WORKBOOK, _CSV, _TSV = "application/vnd.workbook", "text/csv", "text/tab-separated-values"
_RTF, _RTF_START = "application/rtf", b"{\\rtf"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # Excel before 2007; Office files with a password
_SUFFIX_KINDS = {
    **dict.fromkeys((".docx", ".docm", ".pptx", ".pptm", ".odt", ".odp"), _OFFICE),
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".ods", ".xls"), _WORKBOOK),
    ".epub": _EPUB,
    ".eml": _EMAIL,
    ".ipynb": _NOTEBOOK,
}
_OF_TEXT = (".eml", ".ipynb")  # a text by its content: only the name tells its kind
_PROGRAM_KINDS = {
    _PDF: "pdf", _HTML: "html", _OFFICE: "office", _EPUB: "epub", _EMAIL: "email", _WORKBOOK: "workbook",
    _CSV: "csv", _TSV: "csv", _NOTEBOOK: "notebook",
    _RTF: "rtf",
}  # fmt: skip
_TABLES = (_WORKBOOK, _CSV, _TSV)
_LEGACY_KINDS = {".html": _HTML, ".csv": _CSV, ".tsv": _TSV}
_UNLIMITED = (_PDF, _OFFICE, _EPUB, _WORKBOOK, _NOTEBOOK)  # only parts of them are text

IsCancelled = Callable[[], bool]


def list_files(
    added: Mapping[str, bool | str], own_folder: Path, is_cancelled: IsCancelled
) -> Iterator[ListedDocument]:
    """Yield the files at and below the added paths, in no order; blocking.

    `added` says for a path whether it and all below it are documents, false for no; the nearest entry decides. Left out
    are hidden files and folders, links, `own_folder`, and folders of packages and caches.
    """
    for path, is_on in added.items():
        root = Path(path)
        is_below = next((added[each] for each in map(str, root.parents) if each in added), False)
        if is_on and not is_below:
            yield from _below(root, added, os.path.realpath(own_folder), is_cancelled)


def is_unreachable(path: str) -> bool:
    """Return whether an added path's drive or network folder is not there, so that its files may come back."""
    return not os.path.lexists(path) and not Path(path).parent.is_dir()


def state_of_file(path: str, stamp: str | None) -> FileState:
    """Return what became of a file since the version with a stamp; blocking."""
    if (now := _listed(path)) is None:
        return FileState.GONE
    return FileState.SAME if now.stamp == stamp else FileState.CHANGED


def read_document(document: ListedDocument, is_cancelled: IsCancelled) -> DocumentText:
    """Return the text of a file; blocking. Raises OSError for a passing failure, Cancelled."""
    path = Path(document.name)
    try:
        return _read(document, path, is_cancelled)
    except UnreadableFile as error:
        why = error
    except FileNotFoundError:
        why = UnreadableFile("It is gone.")
    except PermissionError:
        why = UnreadableFile("Reading it is not permitted.")
    return DocumentText(document, (), str(why))


def _read(document: ListedDocument, path: Path, is_cancelled: IsCancelled) -> DocumentText:
    kind, size = _kind_of(path)
    total: int | None = None
    why, is_paged = "", False
    if kind in _PROGRAM_KINDS:
        texts, pages, why = _program_texts(path, kind, is_cancelled)
        is_paged = kind == _PDF or len(texts) > 1
        total = pages if is_paged else None
    elif is_text(kind):
        texts = [_text(path, size)]
    else:
        raise UnreadableFile("It is of a kind that is not read.")
    texts = [clean(each.replace("\r\n", "\n").replace("\r", "\n")) for each in texts]
    if kind == _PDF and (images := sum(not each.strip() for each in texts)):
        reason = _why_without_text(images, len(texts))
        why = why or reason
    elif not any(map(str.strip, texts)):
        raise UnreadableFile("It is empty.")
    made: list[Chunk] = []
    has_headings = kind == _MARKDOWN or (kind in _PROGRAM_KINDS and kind != _PDF)
    for each in chunks_of(texts, is_paged=is_paged, has_headings=has_headings):
        if is_cancelled():
            raise Cancelled("The worker was stopped")
        made.append(each)
    if all(each.is_garbage for each in made):
        raise UnreadableFile(
            "Its text is not readable: encoded data, or a PDF without its characters."
        )
    return DocumentText(document, made, why, total)


def _program_texts(path: Path, kind: str, is_cancelled: IsCancelled) -> tuple[list[str], int, str]:
    """Return what the program reads of a file: (texts by page, number of pages, why not all was read)."""
    most_chars = MOST_TABLE_CHARS if kind in _TABLES else MOST_CHARS
    found = document_pages(
        path, _PROGRAM_KINDS[kind], most_chars, is_cancelled, _MOST_S, recognizes=True
    )
    texts, is_whole = list(found.texts), len(found.texts) == found.total
    read, of = f"{len(texts):,}", f"{found.total:,}"
    if kind in _TABLES:
        part = UnreadableFile(f"Only {read} of {of} rows were read.")
        texts = [re.sub(r"\n{3,}", "\n\n", "\n".join(texts)).strip()]
    else:
        part = UnreadableFile(f"Only the first {read} of {of} pages were read.")
    if kind == _PDF:
        texts = [rejoined(each) for each in texts]
    return texts, found.total, "" if is_whole else str(part)


def _why_without_text(images: int, pages: int) -> str:
    """Return why pages of a PDF have no text, "" for no reason; raise UnreadableFile if none has."""
    is_installed = bool(text_recognizer())
    if images == pages:
        raise UnreadableFile(
            "It has no text, only images, and none was recognized in them."
            if is_installed
            else f"It has no text, only images. Once {RECOGNIZER} is installed (package tesseract-ocr), they are read."
        )
    if is_installed:
        return ""
    return str(
        UnreadableFile(
            f"{images:,} of {pages:,} pages have no text. Images are read once {RECOGNIZER} is installed "
            "(package tesseract-ocr)."
        )
    )


def _kind_of(path: Path) -> tuple[str, int]:
    """Return the media type of a file's content and its size in bytes; raise UnreadableFile, OSError."""
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError as error:
        raise UnreadableFile("Its name is not valid text.") from error
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(_HEAD_BYTES)
    if not head:
        raise UnreadableFile("It is empty.")
    suffix = path.suffix.casefold()
    kind = media_type_of(head, f"x{_ENDINGS.get(suffix, suffix)}")
    if kind == "text/plain" and head.lstrip()[:200].lower().startswith(
        (b"<!doctype html", b"<html")
    ):
        kind = _HTML
    if head.startswith(_RTF_START):
        kind = _RTF
    if kind == "application/octet-stream" and _is_legacy_text(head):
        kind = _LEGACY_KINDS.get(_ENDINGS.get(suffix, suffix), "text/plain")
    if kind == "application/zip" or (is_text(kind) and suffix in _OF_TEXT) or head.startswith(_OLE):
        kind = _SUFFIX_KINDS.get(suffix, kind)
        if kind == _OFFICE and head.startswith(_OLE):
            raise UnreadableFile("It is protected by a password.")
    if kind not in _UNLIMITED and size > MOST_TEXT_BYTES:
        raise UnreadableFile(
            f"It is larger than {format_size(MOST_TEXT_BYTES)}: {format_size(size)}."
        )
    return kind, size


def _is_legacy_text(head: bytes) -> bool:
    """Return whether bytes may be text in an encoding of the time before Unicode."""
    return not any(each < 32 and each not in b"\t\n\r\f\x1b" for each in head)


def _text(path: Path, size: int) -> str:
    data = path.read_bytes()[: max(size, MOST_TEXT_BYTES)]
    text = decoded_text(data)
    return data.decode("cp1252", "replace") if text is None else text


def _below(
    root: Path, added: Mapping[str, bool | str], own_folder: str, is_cancelled: IsCancelled
) -> Iterator[ListedDocument]:
    if not root.is_dir():
        if (found := _listed(str(root))) is not None:
            yield found
        return
    waiting = [str(root)]
    while waiting:
        folder = waiting.pop()
        if is_cancelled():
            raise Cancelled("The worker was stopped")
        for entry in _entries(folder):
            path = entry.path
            if entry.name.startswith(".") and path not in added:
                continue
            if entry.is_dir(follow_symlinks=False):
                is_ours = entry.name in _LEFT_OUT or os.path.realpath(path) == own_folder
                if added.get(path, not is_ours):
                    waiting.append(path)
            elif added.get(path, True) and (found := _listed(path)) is not None:
                yield found


def _entries(folder: str) -> Sequence["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return ()


def _listed(path: str) -> ListedDocument | None:
    """Return a regular file as it is now; None for anything else."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    stamp = f"{found.st_mtime_ns}:{found.st_size}:{found.st_ctime_ns}"
    return ListedDocument(
        os.fsencode(path).decode("utf-8", "backslashreplace"),
        os.fsencode(Path(path).name).decode("utf-8", "replace"),
        stamp,
        _at(found.st_mtime),
    )


def _at(unix_s: float) -> datetime:
    try:
        return datetime.fromtimestamp(max(0.0, unix_s), UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)
