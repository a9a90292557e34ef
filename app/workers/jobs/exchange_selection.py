"""Selection of exchanges for workers: prefetched lists, and the open conversation that is skipped."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta

from app.domain.changes import ChangeSet
from app.domain.ids import ConversationId
from app.storage.tables.settings import Settings
from app.storage.work.queue import WorkItem
from app.storage.work.summary_work import SummaryWork


class Prefetch:
    """A prefetched list, fetched again when it is empty or after an exchange has ended.

    `wakes_for` is for any thread, the rest for the worker's thread.

    Attributes:
        left: The items that are left, the most urgent first.
    """

    def __init__(self, concerned: Collection[str]) -> None:
        """Fetch again after a change of the settings `concerned` too."""
        self._concerned = frozenset(concerned)
        self._is_outdated = False
        self.left: Sequence[WorkItem] = ()

    def renew(self, find: Callable[[], Sequence[WorkItem]]) -> None:
        """Fetch the list with `find` if it is outdated or empty."""
        if self._is_outdated or not self.left:
            self._is_outdated = False
            self.left = find()

    def take(self, count: int) -> Sequence[WorkItem]:
        """Remove and return the first items."""
        taken, self.left = self.left[:count], self.left[count:]
        return taken

    def drop(self, ids: Collection[int]) -> None:
        """Remove these items."""
        self.left = [each for each in self.left if each[0] not in ids]

    def wakes_for(self, changed: ChangeSet) -> bool:
        """Return whether an exchange ended, or a conversation was restored or changed."""
        if changed.turns_completed or changed.settings & self._concerned:
            self._is_outdated = True
        return self._is_outdated or bool(changed.conversations or changed.providers)


class OpenConversation:
    """The open conversation, which workers skip until it is quiet; none on the command line.

    Attributes:
        id: Set by the window, from any thread.
    """

    def __init__(self, work: SummaryWork, settings: Settings) -> None:
        self._work = work
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
