"""Pages of the system's manual, as they are listed and as they are kept."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from app.domain.errors import KnownError


class ManualUnavailable(KnownError):
    """There is no manual to read: no `man`, or nothing that it would list."""


class PageUnreadable(KnownError):
    """`man` does not show one page of those it lists."""


@dataclass(frozen=True, slots=True)
class ManualPage:
    """A page as it is listed. `stamp` changes when the page does; `changed_at` is UTC."""

    name: str
    section: str
    summary: str
    stamp: str
    changed_at: datetime

    @property
    def source(self) -> str:
        """What it is called everywhere: grep.1."""
        return f"{self.name}.{self.section}"

    @property
    def id(self) -> int:
        """Its number, made of what it is called: the same again when all else was lost."""
        digest = hashlib.sha256(self.source.encode("utf-8")).digest()
        return int.from_bytes(digest[:8], "big") >> 1

    @property
    def title(self) -> str:
        """Its name and one-line description."""
        return page_title(self.name, self.section, self.summary)


@dataclass(frozen=True, slots=True)
class PageText:
    """What is kept of a page: `text` is its DESCRIPTION, None when it has none."""

    page: ManualPage
    text: str | None


def page_title(name: str, section: str, summary: str) -> str:
    """Return "grep(1) – print lines that match patterns"."""
    head = f"{name}({section})"
    return f"{head} \N{EN DASH} {summary}" if summary else head


def page_words(summary: str, text: str) -> str:
    """Return what is searched of a page. Its name is not in it: pages of many names say the same."""
    return f"{summary}\n\n{text}" if summary else text
