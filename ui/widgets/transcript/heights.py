"""Heights of turns: estimates before they are laid out, sums by position, and scroll anchors."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ui.theme import Theme
from ui.widgets.transcript.values import TurnHeader

_TALL_SHARE = 0.9
_TOP_SHARE = 0.06
_CHARS_PER_EM = 1.95  # of running text in common interface fonts, measured on Latin prose
_LINE_EM = 1.45
_QUESTION_SHARE = 0.8
_ANSWER_SPACING = 1.3  # gaps between paragraphs, lists and code, measured on replies of models
_FIXED_EM = 7.2
_DIVIDER_EM = 2.5
_MAX_CHARS = 100_000  # one page; longer texts are not drawn at once


class Heights:
    """Heights in pixels by index, with their sum `total`.

    Sums up to an index are computed when they are needed and kept until a height before it changes:
    the first 50,000 take 1 ms.
    """

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self.total = sum(self._heights)
        self._before = [0]  # of the first items, as far as they are known

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    def __setitem__(self, index: int, height: int) -> None:
        self.total += height - self._heights[index]
        self._heights[index] = height
        del self._before[index + 1 :]

    def extend(self, heights: Iterable[int]) -> None:
        """Add items at the end."""
        added = list(heights)
        self._heights += added
        self.total += sum(added)

    def before(self, index: int) -> int:
        """Return the sum of all heights before item `index`."""
        if index >= len(self._before):
            start = len(self._before) - 1
            self._before[start:] = accumulate(
                self._heights[start:index], initial=self._before[start]
            )
        return self._before[index]

    def at(self, y: int) -> int:
        """Return the index of the item at `y`; the first or last one beyond the ends."""
        count = len(self._heights)
        if y >= self._before[-1]:
            self.before(count)
        return min(max(0, bisect_right(self._before, max(0, y)) - 1), max(0, count - 1))


@dataclass(frozen=True, slots=True)
class AtItem:
    """The top of the view is `offset` pixels below the top of an item."""

    index: int
    offset: int


@dataclass(frozen=True, slots=True)
class AtEnd:
    """The bottom of the view is the end, also when items are added there."""


@dataclass(frozen=True, slots=True)
class Centered:
    """An item is in the middle; one too tall for that begins near the top."""

    index: int


@dataclass(frozen=True, slots=True)
class AtOffset:
    """A point `y` pixels inside an item is a third of the view's height below its top."""

    index: int
    y: int


Anchor = AtItem | AtEnd | Centered | AtOffset


def top_for(anchor: Anchor, heights: Heights, view_height: int, padding: int) -> int:
    """Return the scroll position of an anchor, in pixels from the top of the content.

    `padding` is the space above the first and below the last item.
    """
    highest = max(0, heights.total + 2 * padding - view_height)
    if isinstance(anchor, AtEnd):
        return highest
    top = padding + heights.before(anchor.index)
    if isinstance(anchor, AtItem):
        top += anchor.offset
    elif isinstance(anchor, AtOffset):
        top += anchor.y - view_height // 3
    elif heights[anchor.index] <= view_height * _TALL_SHARE:
        top -= (view_height - heights[anchor.index]) // 2
    else:
        top -= round(view_height * _TOP_SHARE)
    return min(max(0, top), highest)


def anchor_at(top: int, heights: Heights, view_height: int, padding: int) -> Anchor:
    """Return the anchor for a scroll position."""
    if not len(heights) or top >= heights.total + 2 * padding - view_height - 1:
        return AtEnd()
    index = heights.at(top - padding)
    return AtItem(index, top - padding - heights.before(index))


def estimate_heights(headers: Sequence[TurnHeader], theme: Theme, width: int) -> list[int]:
    """Return an estimate of each turn's height in pixels at `width`, from its text lengths.

    Days are compared in UTC, since local dates take 10 microseconds each: 10,000 turns take 2.5 ms
    on the GUI thread, and twice that with `min`.
    """
    chars_per_line = max(10.0, width / theme.em(1) * _CHARS_PER_EM)
    question_px = theme.em(_LINE_EM) / (chars_per_line * _QUESTION_SHARE)
    answer_px = theme.em(_LINE_EM) * _ANSWER_SPACING / chars_per_line
    fixed_px, divider_px = theme.em(_FIXED_EM + _LINE_EM), theme.em(_DIVIDER_EM)
    estimates: list[int] = []
    last_day, last_segment, limit = -1, 0, _MAX_CHARS
    for header in headers:
        question, answer = header.question_chars, header.answer_chars
        height = fixed_px + (question if question < limit else limit) * question_px  # noqa: FURB136
        height += (answer if answer < limit else limit) * answer_px  # noqa: FURB136
        if (day := header.started_at.toordinal()) != last_day:
            height += divider_px
        if header.segment_number != last_segment:
            height += divider_px
        estimates.append(int(height))
        last_day, last_segment = day, header.segment_number
    return estimates
