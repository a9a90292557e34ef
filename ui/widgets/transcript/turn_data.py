"""Data of turns by index: content loaded on demand, recalled sources, the place of a summary."""

from collections.abc import Callable, Iterable
from itertools import groupby

from ui.widgets.transcript.turn import TurnWidget
from ui.widgets.transcript.values import Sources, TurnContent, WrittenLine

_LOADED_AROUND = 6
_MAX_KEPT = 400
_NO_SUMMARY = (-1, "")


class TurnData:
    """What is known of some turns, by index.

    `request(first, last)` is called for turns whose content is needed and not requested yet.

    Attributes:
        content: Content of turns. sources: what recall contributed to their answers.
        written: What was written to memory in them.
        summary: The turn above which a summary replaces all older messages, and the summary; -1
            and "" for none.
    """

    def __init__(self, request: Callable[[int, int], None]) -> None:
        self._request = request
        self._requested: set[int] = set()
        self.content: dict[int, TurnContent] = {}
        self.sources: dict[int, Sources] = {}
        self.written: dict[int, tuple[WrittenLine, ...]] = {}
        self.summary = _NO_SUMMARY

    def clear(self) -> None:
        """Forget all turns, also requests."""
        for kept in (self.content, self.sources, self.written, self._requested):
            kept.clear()
        self.summary = _NO_SUMMARY

    def show_recall(self, widget: TurnWidget) -> None:
        """Show sources, what was written to memory, and the summary in a turn's widget."""
        widget.show_written(self.written.get(widget.index, ()))
        widget.show_sources(self.sources.get(widget.index, Sources()))
        widget.show_summary_note(self.summary[1] if widget.index == self.summary[0] else "")

    def load(self, indexes: Iterable[int], count: int) -> None:
        """Request missing content of `indexes` and some turns around them, of `count` in all."""
        known = self.content.keys() | self._requested
        missing = [at for at in indexes if at not in known]
        if not missing:
            return
        first = max(0, min(missing) - _LOADED_AROUND)
        last = min(count - 1, max(missing) + _LOADED_AROUND)
        wanted = [at for at in range(first, last + 1) if at not in known]
        self._requested.update(wanted)
        for _, numbered in groupby(enumerate(wanted), lambda pair: pair[1] - pair[0]):
            run = [at for _, at in numbered]
            self._request(run[0], run[-1])

    def drop_far(self, middle: int, kept: Iterable[int]) -> None:
        """Drop content far from `middle`, except `kept`, once there is too much."""
        if len(self.content) > _MAX_KEPT:
            by_distance = sorted(self.content, key=lambda index: abs(index - middle))
            for index in set(by_distance[_MAX_KEPT // 2 :]) - set(kept):
                del self.content[index]
                self._requested.discard(index)
