"""Heights of many items: where each begins and which one lies at a place, without laying them out.

A Fenwick tree (Fenwick 1994, "A new data structure for cumulative frequency tables"): a change and
a question take logarithmic time, so that 100,000 items cost as little as ten.
"""

from collections.abc import Iterable


class Heights:
    """Heights in pixels, by index from 0."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self._rebuild()

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    def __setitem__(self, index: int, height: int) -> None:
        difference = height - self._heights[index]
        self._heights[index] = height
        self.total += difference
        at = index + 1
        while at < len(self._tree):
            self._tree[at] += difference
            at += at & -at

    @property
    def values(self) -> tuple[int, ...]:
        """All heights, first to last."""
        return tuple(self._heights)

    def append(self, height: int) -> None:
        """Add an item at the end."""
        count = len(self._heights) + 1
        lower = count - (count & -count)
        self._tree.append(height + self.before(count - 1) - self.before(lower))
        self._heights.append(height)
        self.total += height

    def truncate(self, count: int) -> None:
        """Drop all but the first `count` items."""
        del self._heights[count:]
        self._rebuild()

    def before(self, index: int) -> int:
        """Return where item `index` begins: the sum of all heights before it."""
        total, at = 0, min(index, len(self._tree) - 1)
        while at > 0:
            total += self._tree[at]
            at -= at & -at
        return total

    def at(self, y: int) -> int:
        """Return the item that lies at `y`; the first or last one beyond the ends."""
        if not self._heights:
            return 0
        found, left = 0, max(0, y)
        step = 1 << (len(self._tree).bit_length() - 1)
        while step:
            if found + step < len(self._tree) and self._tree[found + step] <= left:
                found += step
                left -= self._tree[found]
            step >>= 1
        return min(found, len(self._heights) - 1)

    def _rebuild(self) -> None:
        self.total = sum(self._heights)
        self._tree = [0, *self._heights]
        for at in range(1, len(self._tree)):
            parent = at + (at & -at)
            if parent < len(self._tree):
                self._tree[parent] += self._tree[at]
