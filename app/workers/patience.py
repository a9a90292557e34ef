"""How long a model's answers may come to nothing: after three in a row it is not asked on.

Each of them was paid for, and the next item would be too. Which failures these are the machine says.
"""

import threading
from collections.abc import Callable, Iterator, Sequence

from app.domain.errors import KnownError
from app.workers.job import Blocked, Item

_MOST_IN_A_ROW = 3


class Patience:
    """Counts unusable answers with no success between; closed until the user has done something.

    `renew` is for any thread, all else for the worker's.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lost: set[tuple[int, ...]] = set()  # in a row; one item tried again counts once
        self._block: Blocked | None = None
        self._alone: set[int] = set()  # one of them spoilt the answer for all that were with it

    def groups(
        self, items: Sequence[Item], item_id: Callable[[Item], int], together: int
    ) -> Iterator[Sequence[Item]]:
        """Yield what is to be made by one call each, in order; what was in a spoilt one, alone."""
        group: list[Item] = []
        for item in items:
            is_alone = item_id(item) in self._alone
            if group and (is_alone or len(group) == together):
                yield group
                group = []
            if is_alone:
                yield [item]
            else:
                group.append(item)
        if group:
            yield group

    def check(self) -> None:
        """Raise Blocked if the model is not to be asked again before `renew`."""
        if (block := self._block) is not None:
            raise block

    def came_through(self) -> None:
        """Note a success."""
        self._lost = set()

    def lose(self, item_ids: Sequence[int], error: KnownError) -> None:
        """Note that nothing could be made of the answer for some items.

        Raises Blocked if it is the third in a row. One item that spoils every answer to itself
        counts once: it is set aside in the end, and nobody else waits for it.
        """
        self._alone.update(item_ids)
        with self._lock:
            self._lost.add(tuple(item_ids))
            if len(self._lost) < _MOST_IN_A_ROW:
                return
            self._lost = set()
            self._block = Blocked(
                f"{_MOST_IN_A_ROW} answers in a row could not be used, the last time because "
                f"{error.title}",
                "Choose another model in Settings, Background work, or with 'commonplace config "
                "set background_model PROVIDER:MODEL'; Run now tries this one again.",
            )
        self.check()

    def renew(self) -> None:
        """Begin anew: another model was chosen, settings have changed, or the user wants it so."""
        with self._lock:
            self._lost = set()
            self._block = None
            self._alone = set()
