"""What a worker of exchanges found a moment ago: finding looks at every exchange that there is."""

from collections.abc import Callable, Collection, Sequence

from app.domain.events import Changed
from app.storage.tally import Found


class FoundAhead:
    """A list that is read on, and found anew once it is at its end or an exchange has ended.

    `wakes_for` is for any thread, all else for the worker's.

    Attributes:
        left: What is left of it, the most urgent first.
    """

    def __init__(self, concerned: Collection[str]) -> None:
        """A change of the settings `concerned` is news too."""
        self._concerned = frozenset(concerned)
        self._news = False
        self.left: Sequence[Found] = ()

    def renew(self, find: Callable[[], Sequence[Found]]) -> None:
        """Take what `find` returns if there is news or nothing is left."""
        if self._news or not self.left:
            self._news = False
            self.left = find()

    def take(self, count: int) -> Sequence[Found]:
        """Return the first of what is left, and leave the rest."""
        taken, self.left = self.left[:count], self.left[count:]
        return taken

    def drop(self, ids: Collection[int]) -> None:
        """Leave all but these."""
        self.left = [each for each in self.left if each[0] not in ids]

    def wakes_for(self, changed: Changed) -> bool:
        """Return whether an exchange ended, or a conversation left the trash or changed."""
        if changed.turns_completed or changed.settings & self._concerned:
            self._news = True
        return self._news or bool(changed.conversations or changed.providers)
