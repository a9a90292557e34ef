"""Documents: the files and manual pages that workers list and read, and the chunks that become passages."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

_DASH = " \N{EN DASH} "


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document as it is listed.

    `name` is unique: the path of a file, or the name of a manual page, such as grep.1. `stamp` changes
    whenever the document changes; `changed_at` is UTC. `project` is the uid of the project that it was
    added to, None for the library.
    """

    name: str
    title: str
    stamp: str
    changed_at: datetime
    project: str | None = None

    @property
    def id(self) -> int:
        """A 63-bit hash of `name`: the same id after the database was rebuilt."""
        return hashed_id(self.name)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document's text, which becomes a passage unless it `is_garbage`.

    The texts of all chunks, joined, are the document's text: `start` is the chunk's first character
    there. `heading` is the path of headings above it, of a manual page its one-line description. `page`
    counts from 1, None without pages.
    """

    text: str
    heading: str = ""
    start: int = 0
    page: int | None = None
    is_garbage: bool = False


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A document with its text; without chunks it was skipped. `why` says why it was not read in full."""

    document: ListedDocument
    chunks: Sequence[Chunk]
    why: str = ""
    pages: int | None = None


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as it is shown: its name, title, and text; `chunks` are its pieces in order.

    `place` is the chunk that was asked for by its passage, None for none. `stamp` is the stamp of the
    version that was read, `pages` how many it has, None without pages. With `is_former`, the passage is
    what stands now where one of a former version was.
    """

    source: str
    title: str
    chunks: tuple[Chunk, ...]
    place: int | None = None
    stamp: str | None = None
    pages: int | None = None
    is_former: bool = False

    @property
    def passage(self) -> Chunk | None:
        return None if self.place is None else self.chunks[self.place]

    @property
    def text(self) -> str:
        return "".join(each.text for each in self.chunks)


class DocumentState(StrEnum):
    """Whether a document was read as it is listed now; a changed one still has its former text."""

    WAITING = "waiting"
    CHANGED = "changed"
    READ = "read"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class DocumentStatus:
    """What became of a listed document; `why` it was skipped or read in part, "" otherwise.

    `project` is the uid of the project that it belongs to, None for the library. `size_bytes` is that of
    its file, None for a manual page.
    """

    name: str
    state: DocumentState
    why: str
    pages: int | None
    passages: int
    project: str | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class AddedPath:
    """A path that the user added; `is_there` says whether it exists, `is_folder` whether as a folder.

    `project` is the uid of the project that it was added to, None for the library.
    """

    path: str
    is_there: bool
    is_folder: bool
    project: str | None = None


class FileState(StrEnum):
    """What became of a document's file since it was read."""

    SAME = "same"
    CHANGED = "changed"
    GONE = "gone"


def hashed_id(name: str) -> int:
    """Return a 63-bit hash of a name."""
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()[:8]) >> 1


def manual_page(name: str, section: str, summary: str, stamp: str, at: datetime) -> ListedDocument:
    """Return a manual page; its title is "grep(1) – print lines that match patterns"."""
    head = f"{name}({section})"
    title = f"{head}{_DASH}{summary}" if summary else head
    return ListedDocument(f"{name}.{section}", title, stamp, at)


def page_summary(document: ListedDocument) -> str:
    """Return the one-line description of a manual page."""
    return document.title.partition(_DASH)[2]
