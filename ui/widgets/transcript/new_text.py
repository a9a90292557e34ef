"""The button over a transcript that grows where the reader does not look."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from ui.widgets.transcript.anchor import AtEnd
from ui.widgets.transcript.virtual import VirtualColumn


class NewTextButton(QPushButton):
    """Stands at the foot of a view and leads to its end; hidden at first."""

    def __init__(self, view: VirtualColumn) -> None:
        super().__init__("New text below  ↓", view)
        self._view = view
        self.setProperty("kind", "primary")
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.clicked.connect(lambda: view.rest_on(AtEnd()))
        self.hide()

    def place(self) -> None:
        """Stand where the view's size wants it, above all else."""
        hint, viewport = self.sizeHint(), self._view.viewport()
        left = (viewport.width() - hint.width()) // 2
        top = viewport.height() - hint.height() - self._view.padding // 2
        self.setGeometry(left, top, hint.width(), hint.height())
        self.raise_()
