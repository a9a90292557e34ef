"""The conversation that is open in the window: summaries leave it alone while it goes on."""

from datetime import datetime, timedelta

from app.domain.ids import ConversationId
from app.storage.settings import Settings
from app.storage.summary_work import SummaryWork


class OpenConversation:
    """Which conversation is open. On the command line none is.

    Attributes:
        id: Set by whoever shows conversations, from any thread.
    """

    def __init__(self, work: SummaryWork, settings: Settings) -> None:
        self._work = work
        self._settings = settings
        self.id: ConversationId | None = None

    def left_alone(self, at: datetime) -> ConversationId | None:
        """Return the open conversation, unless it was quiet for `summarizer_quiet_minutes`; blocking."""
        opened = self.id
        if opened is None:
            return None
        quiet = timedelta(minutes=self._settings.number("summarizer_quiet_minutes"))
        since = self._work.quiet_since(opened)
        return None if since is not None and since + quiet <= at else opened
