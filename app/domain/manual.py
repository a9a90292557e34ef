"""Manual pages: the pages that `man` lists, and the text that is stored of them."""

import hashlib
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ManualPage:
    """A listed page. `stamp` changes whenever the page changes; `changed_at` is UTC."""

    name: str
    section: str
    summary: str
    stamp: str
    changed_at: datetime

    @property
    def source(self) -> str:
        """Its unique name, such as grep.1."""
        return f"{self.name}.{self.section}"

    @property
    def id(self) -> int:
        """A 63-bit hash of `source`: the same id after the database was rebuilt."""
        digest = hashlib.sha256(self.source.encode("utf-8")).digest()
        return int.from_bytes(digest[:8], "big") >> 1

    @property
    def title(self) -> str:
        """Its name and one-line description."""
        return page_title(self.name, self.section, self.summary)


@dataclass(frozen=True, slots=True)
class ManualPageText:
    """A page with the text of its DESCRIPTION section, None when it has none."""

    page: ManualPage
    text: str | None


def page_title(name: str, section: str, summary: str) -> str:
    """Return "grep(1) – print lines that match patterns"."""
    head = f"{name}({section})"
    return f"{head} \N{EN DASH} {summary}" if summary else head


def page_search_text(summary: str, text: str) -> str:
    """Return the searchable text of a page, without its name: one page may have many names."""
    return f"{summary}\n\n{text}" if summary else text
