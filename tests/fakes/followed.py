"""A library that follows sessions of Claude Code, for tests of followed sources."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.domain.records.sources import SOURCES, SourceName
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.settings import Settings
from app.workers.jobs import JobParts
from app.workers.jobs.source_reader import SourceReader

NOW = datetime(2026, 3, 5, tzinfo=UTC)


class Followed:
    """A library that follows Claude Code, and a session of it."""

    def __init__(self, store: Store, home: Path) -> None:
        self.store, self.settings = store, Settings(store)
        self.settings.set(SOURCES[SourceName.CLAUDE_CODE].setting, True)
        self.session = home / ".claude" / "projects" / "-home-me-heron" / "s1.jsonl"
        self.session.parent.mkdir(parents=True)
        self.restart()

    def restart(self) -> None:
        self.job = SourceReader(JobParts(self.store, self.settings))

    def read(self) -> int:
        """Read what changed; return the number of files."""
        found = self.job.find(NOW)
        if found:
            self.job.save([self.job.make([file], lambda: False) for file in found])
        self.job.find(NOW)  # writes the notes
        return len(found)

    def texts(self) -> set[tuple[str, str]]:
        """Return the titles of conversations with the texts of their messages."""
        exchanges = Exchanges(self.store)
        return {
            (each.title, message.text)
            for each in Conversations(self.store).listed()
            for message in exchanges.messages_in(each.id)
        }


def as_lines(records: list[dict[str, Any]]) -> str:
    """Return records as JSON lines."""
    return "".join(json.dumps(each) + "\n" for each in records)
