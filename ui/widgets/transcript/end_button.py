"""The button over a transcript that leads to its end, and says when text arrives there."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QWidget

from app.domain.translation import tr
from ui.icons import Ink, set_icon

_FAR_SHARE = 0.5  # of the visible height: nearer, the wheel is quicker
_NEW_TEXT = tr("New text below")


class EndButton(QPushButton):
    """Lies over the bottom of a view; hidden near the end."""

    def __init__(self, view: QWidget) -> None:
        super().__init__(view)
        self.setToolTip(tr("Go to the end (End)"))
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # whoever types below goes on typing
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.hide()

    def place(self, viewport: QWidget, margin_px: int, *, hidden_px: int, grows: bool) -> None:
        """Show it if `hidden_px` pixels below are many, or if text is added there."""
        shown = grows or hidden_px > viewport.height() * _FAR_SHARE
        self.setVisible(shown)
        if not shown:
            return
        text = _NEW_TEXT if grows else ""
        if text != self.text() or self.icon().isNull():
            self.setText(text)
            self.setAccessibleName(text or tr("Go to the end"))
            set_icon(self, "arrow-down", Ink.HighlightedText if grows else Ink.ButtonText)
            self.setProperty("kind", "primary" if grows else "")
            self.style().polish(self)
        hint = self.sizeHint()
        left = (viewport.width() - hint.width()) // 2
        top = viewport.height() - hint.height() - margin_px
        self.setGeometry(left, top, hint.width(), hint.height())
        self.raise_()
