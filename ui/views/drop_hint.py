"""Hint over the conversation that says what dropping the dragged files will do."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.domain.translation import tr, trn
from ui.widgets.plain_label import PlainLabel

_EXPORTS = frozenset((".zip", ".json", ".jsonl", ""))  # "" is a folder's
_MARGIN_PX = 6


def looks_like_export(path: Path) -> bool:
    """Return whether a path has the name of an export."""
    return path.suffix.casefold() in _EXPORTS


def drop_text(paths: Sequence[Path]) -> str:
    """Return what dropping files will do, by their names; the content decides once they are dropped."""
    exports = sum(map(looks_like_export, paths))
    if exports == len(paths):
        return tr(
            "Drop to import conversations, to attach files, or to add a folder to your documents"
        )
    files = trn("{count} file", "{count} files", len(paths) - exports)
    return tr("Drop to attach {files}").format(files=files) + (
        tr(" and to import the export") if exports else ""
    )


class DropHint(QFrame):
    """Covers a widget while files are dragged over the window."""

    def __init__(self, covered: QWidget) -> None:
        super().__init__(covered)
        self.setProperty("panel", "drop")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._text = PlainLabel("", self, tone="heading")
        self._text.setAlignment(Qt.AlignmentFlag.AlignCenter)
        QVBoxLayout(self).addWidget(self._text)
        covered.installEventFilter(self)
        self._covered = covered
        self.hide()

    @property
    def text(self) -> str:
        """What it says."""
        return self._text.text()

    def show_for(self, paths: Sequence[Path]) -> None:
        """Say what dropping files will do."""
        self._text.setText(drop_text(paths))
        self._cover()
        self.show()
        self.raise_()

    def _cover(self) -> None:
        margin = _MARGIN_PX
        self.setGeometry(self._covered.rect().adjusted(margin, margin, -margin, -margin))

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the size of what it covers."""
        if event.type() == QEvent.Type.Resize:
            self._cover()
        return super().eventFilter(watched, event)
