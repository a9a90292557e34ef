"""Detection of replies that repeat a short text without end, as small models do until their window is full."""

from collections.abc import Sequence

from app.domain.chat import StreamEvent, TextDelta, ThinkingDelta

_TAIL_CHARS = 12_000  # a table of zeros may be shorter
_UNIT_CHARS = 250  # the longest text whose repetition is detected
_STEP_CHARS = 250  # between two checks


class RepetitionGuard:
    """Reads a streamed reply."""

    def __init__(self) -> None:
        self._tail = ""
        self._unchecked = 0

    def repeats(self, events: Sequence[StreamEvent]) -> bool:
        """Add events; return whether the last 12,000 characters are one text again and again.

        Text that comes in one piece of that size is not checked: there is nothing to stop.
        """
        text = "".join(each.text for each in events if isinstance(each, TextDelta | ThinkingDelta))
        self._tail = (self._tail + text)[-_TAIL_CHARS:] if len(text) < _TAIL_CHARS else ""
        self._unchecked += len(text)
        if len(self._tail) < _TAIL_CHARS or self._unchecked < _STEP_CHARS:
            return False
        self._unchecked = 0
        return any(self._tail.startswith(self._tail[size:]) for size in range(1, _UNIT_CHARS + 1))
