"""What memory contributed to turns, whether they are on screen or not: sources, and a summary's place."""

from ui.widgets.transcript.turn import TurnWidget
from ui.widgets.transcript.values import Sources


class MemoryMarks:
    """Sources by turn, and above which turn a summary stands for all that is before."""

    def __init__(self) -> None:
        self._sources: dict[int, Sources] = {}
        self._summary = ""
        self.summary_at = -1

    def put_sources(self, turn: int, sources: Sources) -> None:
        """Take what memory contributed to a turn's answer."""
        self._sources[turn] = sources

    def put_summary(self, turn: int, summary: str) -> bool:
        """Take a summary and the first turn that was sent beside it; return whether it is news."""
        if (turn, summary) == (self.summary_at, self._summary):
            return False
        self.summary_at, self._summary = turn, summary
        return True

    def truncate(self, count: int) -> None:
        """Forget what is of turns beyond the first `count`."""
        self._sources = {turn: each for turn, each in self._sources.items() if turn < count}
        if self.summary_at >= count:
            self.put_summary(-1, "")

    def show_in(self, widget: TurnWidget) -> None:
        """Show in a turn what is its own."""
        widget.show_sources(self._sources.get(widget.index, Sources()))
        widget.show_stand_in(self._summary if widget.index == self.summary_at else "")
