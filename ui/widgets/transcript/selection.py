"""Selecting words with the mouse in a transcript of many texts."""

from PySide6.QtCore import QObject, QPoint

from ui.widgets.transcript.document_view import DocumentView
from ui.widgets.transcript.look import TurnEvents
from ui.widgets.transcript.virtual import VirtualColumn


class Selection(QObject):
    """Keeps a view to one selection at a time, and scrolls along while one is drawn out."""

    def __init__(self, view: VirtualColumn, events: TurnEvents) -> None:
        super().__init__(view)
        self._view = view
        events.dragged_to.connect(self._on_dragged_to)
        events.selected.connect(self._on_selected)

    def _on_dragged_to(self, at: QPoint) -> None:
        """Scroll along while words are selected beyond the edge."""
        view, step_px = self._view, 2 * self._view.padding
        y, height = view.viewport().mapFromGlobal(at).y(), view.viewport().height()
        if y < 0:
            view.scroll_by(max(y, -step_px))
        elif y > height:
            view.scroll_by(min(y - height, step_px))

    def _on_selected(self, selected: object) -> None:
        for view in self._view.viewport().findChildren(DocumentView):
            if view is not selected:
                view.clear_selection()
