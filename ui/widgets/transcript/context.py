"""Shared context of a transcript's parts: theme, images, user events and a queue for drawing."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from PySide6.QtCore import QObject, QPoint, QTimer, Signal
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from ui.rendering.document import ImageResolver
from ui.theme import Theme
from ui.widgets.thumbnails import Thumbnails

_BUDGET_S = 0.008


class TurnEvents(QObject):
    """What the user does in a transcript. The first argument is the turn's index where there is one.

    Signals:
        edit_requested: Edit this user message (its id). quote_requested: Quote this text in the composer.
        regenerate_requested, fork_requested, link_requested: Answer again, fork, copy a link.
        brief_requested: Copy the turn and those after it as Markdown.
        other_model_requested: Answer again with a model to choose.
        coverage_requested: Show whether search finds the turn. forget_requested: Delete it for good.
        forget_messages_requested: Delete messages of the turn for good (a tuple of their ids).
        retry_requested, continue_requested: After a failed or interrupted reply.
        mend_requested: Show what mends this kind of problem (its code).
        branch_requested: Show sibling `position` (from 1) at the message with this id.
        why_requested: Explain why it was not recalled. inspect_requested: Show the prompt.
        source_clicked: The number of a source under the answer.
        write_action_requested: The uid of a write to memory and what to do with it.
        link_activated: Target and label. link_hovered: a target, or "".
        scroll_requested: A widget, and the point so many pixels below its top that should be shown.
        dragged_to: Text is being selected and the mouse is here, in global coordinates.
        selected: This view has a selection now.
        file_clicked: An attached `File`.
        text_drawn: This text is drawn to its end, or to the end of its page.
    """

    edit_requested = Signal(int, object)
    quote_requested = Signal(str)
    regenerate_requested = Signal(int)
    other_model_requested = Signal(int)
    fork_requested = Signal(int)
    link_requested = Signal(int)
    brief_requested = Signal(int)
    coverage_requested = Signal(int)
    forget_requested = Signal(int)
    forget_messages_requested = Signal(int, object)
    retry_requested = Signal(int)
    continue_requested = Signal(int)
    mend_requested = Signal(str)
    branch_requested = Signal(int, object, int)
    why_requested = Signal(int)
    inspect_requested = Signal(int)
    source_clicked = Signal(int, int)
    write_action_requested = Signal(str, str)
    link_activated = Signal(str, str)
    link_hovered = Signal(str)
    scroll_requested = Signal(QWidget, int)
    dragged_to = Signal(QPoint)
    selected = Signal(object)
    file_clicked = Signal(object)
    text_drawn = Signal(object)


class StepQueue(QObject):
    """Runs work of the GUI thread in short steps, for at most 8 ms between two events.

    A step is a method that returns whether it must run again. It is dropped when its widget is
    deleted.

    Signals:
        emptied: No step is waiting any more.
    """

    emptied = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: deque[Callable[[], bool]] = deque()
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._on_timeout)

    @property
    def is_idle(self) -> bool:
        return not self._waiting

    def add(self, step: Callable[[], bool]) -> None:
        """Run `step` soon, and again while it returns True."""
        if step not in self._waiting:
            self._waiting.append(step)
        self._timer.start()

    def _on_timeout(self) -> None:
        until = perf_counter() + _BUDGET_S
        while self._waiting:
            step = self._waiting[0]
            owner = getattr(step, "__self__", None)
            runs_again = (not isinstance(owner, QObject) or isValid(owner)) and step()
            if not runs_again and self._waiting and self._waiting[0] is step:
                self._waiting.popleft()
            if perf_counter() >= until:
                return
        self._timer.stop()
        self.emptied.emit()


@dataclass(frozen=True, slots=True)
class RenderContext:
    """Passed to every part at construction.

    `thumbnails` has small images of attached files. In a conversation that `is_read_only` nothing is
    offered that would change it.
    """

    theme: Theme
    steps: StepQueue
    events: TurnEvents
    thumbnails: Thumbnails | None = None
    is_read_only: bool = False

    @property
    def resolver(self) -> ImageResolver | None:
        """What returns the image with a content hash, for `attachment:` in Markdown."""
        return None if self.thumbnails is None else self.thumbnails.image

    def px(self, em: float) -> int:
        """Return `em` times the size of reading text, in whole pixels."""
        return round(self.theme.em(em))
