"""The open conversation, which workers skip."""

from datetime import datetime, timedelta

from app.domain.ids import ConversationId
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.storage.work.summary_work import SummaryWork


class OpenConversation:
    """The open conversation, which workers skip until it is quiet; none on the command line.

    Attributes:
        id: Set by the window, from any thread.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._work = SummaryWork(store)
        self._settings = settings
        self.id: ConversationId | None = None

    def skipped(self, at: datetime) -> ConversationId | None:
        """Return the open conversation, unless it was quiet for `summarizer_quiet_minutes`; blocking."""
        opened = self.id
        if opened is None:
            return None
        quiet = timedelta(minutes=self._settings.number("summarizer_quiet_minutes"))
        since = self._work.quiet_since(opened)
        return None if since is not None and since + quiet <= at else opened
