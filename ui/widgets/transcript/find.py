"""Find matches on screen: from indexes into the source to positions in rendered documents."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from PySide6.QtCore import QPoint

from app.index.snippets import Marks
from ui.rendering.plain_text import RenderedText
from ui.widgets.transcript.message_text import MessageText
from ui.widgets.transcript.turn import TurnWidget
from ui.widgets.transcript.values import FindMark, searchable_text

_Range = tuple[MessageText, int, int]
FindWords = Callable[[str], Marks]
_MAX_CHARS = 200_000  # of a text; marking the words in it takes 10 ms


class FindMarks:
    """The matches of one search, one of them the current one.

    Attributes:
        turns: Indexes of the turns with matches.
        current: The number of the current match, if any.
    """

    def __init__(self, marks: Sequence[FindMark]) -> None:
        self._marks = tuple(marks)
        self._by_turn: dict[int, list[int]] = {}
        for number, mark in enumerate(self._marks):
            self._by_turn.setdefault(mark.turn_index, []).append(number)
        self.turns = set(self._by_turn)
        self.current: int | None = None

    def select(self, number: int) -> int | None:
        """Make a match the current one; return its turn, None if there is no such match."""
        if not 0 <= number < len(self._marks):
            return None
        self.current = number
        return self._marks[number].turn_index

    def show_in(self, widget: TurnWidget) -> None:
        """Mark the matches in a turn, and remove other marks."""
        numbers = self._by_turn.get(widget.index, [])
        ranges = list(zip(numbers, self._ranges(widget, numbers), strict=True))
        for text in widget.texts():
            here = [(number, found) for number, found in ranges if found and found[0] is text]
            shown = [number for number, _ in here]
            current = shown.index(self.current) if self.current in shown else None
            text.view.mark_ranges([(start, end) for _, (_, start, end) in here], current)

    def y_of_current(self, widget: TurnWidget) -> int | None:
        """Return the top of the current match in the turn's widget; None if it is not rendered."""
        found = self._ranges(widget, [self.current])[0] if self.current is not None else None
        if found is None:
            return None
        text, start, _ = found
        text.reveal(start)
        return text.view.mapTo(widget, QPoint(0, text.view.y_of(start))).y()

    def _ranges(self, widget: TurnWidget, numbers: Sequence[int]) -> list[_Range | None]:
        if widget.content is None or not numbers:
            return [None] * len(numbers)
        source = searchable_text(widget.content.messages)
        return locate(source, [self._marks[number] for number in numbers], widget.texts())


class SearchMarks:
    """The words of the search that led here, in all that is rendered; `find` returns them in a text."""

    def __init__(self, find: FindWords) -> None:
        self._find = find

    def show_in(self, widget: TurnWidget) -> None:
        for text in widget.texts():
            rendered, marks = self._in(text)
            text.view.mark_ranges([rendered.span(*each) for each in marks.spans], None)

    def y_in(self, widget: TurnWidget, text: MessageText) -> int | None:
        """Return the top of the passage of a text with most of the words, in the turn's widget."""
        rendered, marks = self._in(text)
        if marks.best is None:
            return None
        start, _ = rendered.span(*marks.best)
        text.reveal(start)
        return text.view.mapTo(widget, QPoint(0, text.view.y_of(start))).y()

    def _in(self, text: MessageText) -> tuple[RenderedText, Marks]:
        rendered = RenderedText(text.builder.document)
        return rendered, self._find(rendered.text[:_MAX_CHARS])


def locate(
    source: str, marks: Sequence[FindMark], texts: Sequence[MessageText]
) -> list[_Range | None]:
    """Return for each match its text and (start, end) in the rendered document, or None.

    Rendering drops Markdown's markup, so indexes do not carry over: the n-th occurrence in the
    source is taken to be the n-th one rendered. Text that is not rendered (a link's target) has no
    position.
    """
    rendered = [RenderedText(text.builder.document) for text in texts]
    folded = _folded(source)
    ranges: dict[str, list[_Range]] = {}
    starts: dict[str, list[int]] = {}
    found: list[_Range | None] = []
    for mark in marks:
        needle = folded[mark.start : mark.end]
        if needle not in ranges:
            ranges[needle] = [
                (text, *shown.span(at, at + len(needle)))
                for text, shown in zip(texts, rendered, strict=True)
                for at in _occurrences(_folded(shown.text), needle)
            ]
            starts[needle] = list(_occurrences(folded, needle))
        rank = bisect_left(starts[needle], mark.start)
        found.append(ranges[needle][rank] if rank < len(ranges[needle]) else None)
    return found


def _folded(text: str) -> str:
    """Return `text` in lower case with unchanged indexes."""
    return "".join(lower if len(lower := char.lower()) == 1 else char for char in text)


def _occurrences(text: str, needle: str) -> Iterable[int]:
    at = text.find(needle) if needle else -1
    while at >= 0:
        yield at
        at = text.find(needle, at + len(needle))
