"""Found words on screen: from places in the source to places in drawn documents."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from PySide6.QtCore import QPoint

from ui.widgets.transcript.message_text import MessageText
from ui.widgets.transcript.turn import TurnWidget
from ui.widgets.transcript.values import FindMark, searchable_text


class FindMarks:
    """The marks of one search, and which of them the user looks at.

    Attributes:
        turns: Indexes of the turns that hold any.
        turn_to_show: The turn of the chosen mark until it has been shown; None after that.
    """

    def __init__(self, marks: Sequence[FindMark]) -> None:
        self._marks = tuple(marks)
        self._current: int | None = None
        self._by_turn: dict[int, list[int]] = {}
        for number, mark in enumerate(self._marks):
            self._by_turn.setdefault(mark.turn_index, []).append(number)
        self.turns = set(self._by_turn)
        self.turn_to_show: int | None = None

    def choose(self, number: int) -> int | None:
        """Make a mark the current one; return its turn, None if there is no such mark."""
        if not 0 <= number < len(self._marks):
            return None
        self._current = number
        self.turn_to_show = self._marks[number].turn_index
        return self.turn_to_show

    def show_in(self, widget: TurnWidget) -> None:
        """Mark the found words in what is drawn of a turn, or take marks away."""
        numbers = self._by_turn.get(widget.index, []) if widget.content is not None else []
        places = self._places(widget, numbers)
        for text in widget.texts():
            here = [
                (number, place[1:])
                for number, place in zip(numbers, places, strict=True)
                if place is not None and place[0] is text
            ]
            shown = [number for number, _ in here]
            current = shown.index(self._current) if self._current in shown else None
            text.view.mark_ranges([place for _, place in here], current)

    def y_of_current(self, widget: TurnWidget, width: int) -> int | None:
        """Return how far below the turn's top the current mark stands; None if it is not drawn.

        All words the turn's pages allow are drawn and laid out at `width` for that.
        """
        self.turn_to_show = None
        if self._current is None:
            return None
        for text in widget.texts():
            text.draw_all()
        self.show_in(widget)
        widget.height_for(width)
        place = self._places(widget, [self._current])[0]
        if place is None:
            return None
        view = place[0].view
        return view.mapTo(widget, QPoint(0, view.y_of(place[1]))).y()

    def _places(
        self, widget: TurnWidget, numbers: Sequence[int]
    ) -> list[tuple[MessageText, int, int] | None]:
        if widget.content is None or not numbers:
            return []
        source = searchable_text(widget.content.messages)
        return locate(source, [self._marks[number] for number in numbers], widget.texts())


def locate(
    source: str, marks: Sequence[FindMark], texts: Sequence[MessageText]
) -> list[tuple[MessageText, int, int] | None]:
    """Return for each mark where it is drawn: a text and (start, end) in its document, or None.

    Drawing drops Markdown's signs, so offsets do not carry over; the n-th occurrence of the words
    in the source is taken to be the n-th one drawn. Words that are not drawn (the target of a link)
    have no place.
    """
    drawn = [_folded(text.composer.document.toPlainText()) for text in texts]
    folded = _folded(source)
    places: dict[str, list[tuple[MessageText, int, int]]] = {}
    ranks: dict[str, list[int]] = {}
    found: list[tuple[MessageText, int, int] | None] = []
    for mark in marks:
        needle = folded[mark.start : mark.end]
        if needle not in places:
            places[needle] = [
                (text, at, at + len(needle))
                for text, words in zip(texts, drawn, strict=True)
                for at in _occurrences(words, needle)
            ]
            ranks[needle] = list(_occurrences(folded, needle))
        rank = bisect_left(ranks[needle], mark.start)
        found.append(places[needle][rank] if rank < len(places[needle]) else None)
    return found


def _folded(text: str) -> str:
    """Return `text` in lower case, character by character, so that places stay the same."""
    return "".join(lower if len(lower := char.lower()) == 1 else char for char in text)


def _occurrences(text: str, needle: str) -> Iterable[int]:
    at = text.find(needle) if needle else -1
    while at >= 0:
        yield at
        at = text.find(needle, at + len(needle))
