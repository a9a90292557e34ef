"""What is known of turns: contents that were given, those asked for, those let go again."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from ui.widgets.transcript.values import TurnContent

_FETCH_AROUND = 6
_MOST_KEPT = 400


class Contents:
    """Turns' contents by index, as many as are worth keeping.

    `request(first, last)` is called for turns whose content is needed and not under way yet.
    """

    def __init__(self, request: Callable[[int, int], None]) -> None:
        self._request = request
        self._held: dict[int, TurnContent] = {}
        self._requested: set[int] = set()

    def clear(self) -> None:
        """Forget everything, what is under way too."""
        self._held.clear()
        self._requested.clear()

    def truncate(self, count: int) -> None:
        """Forget all but the first `count` turns."""
        self._held = {at: content for at, content in self._held.items() if at < count}
        self._requested = {at for at in self._requested if at < count}

    def get(self, index: int) -> TurnContent | None:
        """Return a turn's content, None while it is not known."""
        return self._held.get(index)

    def put(self, index: int, content: TurnContent) -> None:
        """Take a turn's content."""
        self._held[index] = content
        self._requested.discard(index)

    def ask_for(self, indexes: Iterable[int], count: int) -> None:
        """Request what is missing of `indexes`, and some turns around it, of `count` in all."""
        missing = [at for at in indexes if self._is_unknown(at)]
        if not missing:
            return
        first = max(0, min(missing) - _FETCH_AROUND)
        last = min(count - 1, max(missing) + _FETCH_AROUND)
        wanted = [at for at in range(first, last + 1) if self._is_unknown(at)]
        self._requested.update(wanted)
        for run_first, run_last in _runs(wanted):
            self._request(run_first, run_last)

    def forget_far(self, middle: int, kept: Iterable[int]) -> None:
        """Let go of what is far from `middle`, except `kept`, once there is too much."""
        if len(self._held) <= _MOST_KEPT:
            return
        keep = set(kept)
        by_distance = sorted(self._held, key=lambda index: abs(index - middle))
        for index in by_distance[_MOST_KEPT // 2 :]:
            if index not in keep:
                del self._held[index]

    def _is_unknown(self, index: int) -> bool:
        return index not in self._held and index not in self._requested


def _runs(indexes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of each stretch of neighbours."""
    start = 0
    for at in range(1, len(indexes) + 1):
        if at == len(indexes) or indexes[at] != indexes[at - 1] + 1:
            yield indexes[start], indexes[at - 1]
            start = at
