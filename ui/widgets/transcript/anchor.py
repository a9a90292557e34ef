"""What the eye rests on while everything around it changes its height."""

from dataclasses import dataclass

from ui.widgets.transcript.heights import Heights

_TALL_SHARE = 0.9
_TOP_SHARE = 0.06


@dataclass(frozen=True, slots=True)
class AtItem:
    """The top of the view stands `offset` pixels below the top of an item."""

    index: int
    offset: int


@dataclass(frozen=True, slots=True)
class AtEnd:
    """The bottom of the view stands at the end, whatever is added there."""


@dataclass(frozen=True, slots=True)
class Centred:
    """An item stands in the middle; one that is too tall begins near the top."""

    index: int


@dataclass(frozen=True, slots=True)
class AtPlace:
    """A place `y` pixels inside an item stands a third down the view."""

    index: int
    y: int


Anchor = AtItem | AtEnd | Centred | AtPlace


def top_for(anchor: Anchor, heights: Heights, view_height: int, padding: int) -> int:
    """Return where the view's top stands in the content, in pixels from its top.

    `padding` is the room above the first and below the last item.
    """
    highest = max(0, heights.total + 2 * padding - view_height)
    if isinstance(anchor, AtEnd):
        return highest
    start = padding + heights.before(anchor.index)
    if isinstance(anchor, AtItem):
        wanted = start + anchor.offset
    elif isinstance(anchor, AtPlace):
        wanted = start + anchor.y - view_height // 3
    elif heights[anchor.index] <= view_height * _TALL_SHARE:
        wanted = start - (view_height - heights[anchor.index]) // 2
    else:
        wanted = start - round(view_height * _TOP_SHARE)
    return min(max(0, wanted), highest)


def anchor_at(top: int, heights: Heights, view_height: int, padding: int) -> Anchor:
    """Return the anchor that keeps what is seen when the view's top stands at `top`."""
    if not len(heights) or top >= heights.total + 2 * padding - view_height - 1:
        return AtEnd()
    index = heights.at(top - padding)
    return AtItem(index, top - padding - heights.before(index))
