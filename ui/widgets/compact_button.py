"""A button of the composer that opens a list, and says less where there is little room."""

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QWidget

from ui.widgets.controls import PushButton

_ARROW_LINES = 1.45  # room for the arrow, in heights of a line


class CompactButton(PushButton):
    """A button with an arrow, unless it is compact; a subclass shows itself in `show_text`."""

    def __init__(self, name: str, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.is_compact = False
        self.setAutoDefault(False)
        self.setProperty("kind", "choice")
        self.setAccessibleName(name)

    def set_compact(self, is_compact: bool) -> None:
        """Say less, where there is little room."""
        if is_compact != self.is_compact:
            self.is_compact = is_compact
            # A property would have to be polished, and style() takes 7 ms the first time.
            bare = f"{type(self).__name__} {{ image: none; }}"  # not what it opens
            self.setStyleSheet(bare if is_compact else "")
            self.show_text()

    def show_text(self) -> None:
        """Show the text, which is shorter while it `is_compact`."""

    # Qt overrides

    def sizeHint(self) -> QSize:
        """Leave room for the arrow, which a compact one has not."""
        if self.is_compact:
            return super().sizeHint()
        return super().sizeHint() + QSize(round(_ARROW_LINES * self.fontMetrics().height()), 0)

    def minimumSizeHint(self) -> QSize:
        """Never cut the text."""
        return self.sizeHint()
