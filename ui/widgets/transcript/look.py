"""What all parts of a transcript are made with: the theme, pictures, a queue for drawing."""

from dataclasses import dataclass

from PySide6.QtCore import QObject, QPoint, Signal

from ui.rendering.document import ImageResolver
from ui.theme import Theme
from ui.widgets.transcript.steps import Steps


class TurnEvents(QObject):
    """What the user does to a turn, told by its parts and passed on by the transcript.

    Signals, all with the turn's index first where it matters:
        edit_requested: Edit this user message (its id).
        regenerate_requested, fork_requested, link_requested: Answer again; fork here; copy a link.
        coverage_requested: Say whether search finds it.
        retry_requested, continue_requested: After a failed, an interrupted reply.
        branch_requested: Show sibling `position` (from 1) at the message with this id.
        why_requested: Say why it was not recalled. inspect_requested: Show what its answer came from.
        source_clicked: The number of a source under its answer.
        link_activated: True target and the words it stands behind. link_hovered: a target, or "".
        attachment_activated: Content hash.
        dragged_to: Words are being selected, the mouse is there (global coordinates).
        selected: Words are selected now in this view; all others should let go.
        words_drawn: This text is drawn to its end, or to the end of its page.
    """

    edit_requested = Signal(int, object)
    regenerate_requested = Signal(int)
    fork_requested = Signal(int)
    link_requested = Signal(int)
    coverage_requested = Signal(int)
    retry_requested = Signal(int)
    continue_requested = Signal(int)
    branch_requested = Signal(int, object, int)
    why_requested = Signal(int)
    inspect_requested = Signal(int)
    source_clicked = Signal(int, int)
    link_activated = Signal(str, str)
    link_hovered = Signal(str)
    attachment_activated = Signal(str)
    dragged_to = Signal(QPoint)
    selected = Signal(object)
    words_drawn = Signal(object)


@dataclass(frozen=True, slots=True)
class Look:
    """Handed to every part at construction.

    Attributes:
        resolver: Gives the picture with a content hash, or None; only attachments are ever asked.
    """

    theme: Theme
    steps: Steps
    events: TurnEvents
    resolver: ImageResolver | None = None

    def px(self, em: float) -> int:
        """Return `em` times the size of reading text, in whole pixels."""
        return round(self.theme.em(em))
