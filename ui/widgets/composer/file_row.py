"""The files of an unsent message: a row of chips."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QSizePolicy, QWidget

from app.domain.translation import tr
from ui.widgets.thumbnails import Thumbnails

if TYPE_CHECKING:
    from app.domain.conversations import File
    from ui.widgets.composer.file_chip import FileChip

_EMPTY_PX = 36


class FileRow(QScrollArea):
    """Chips side by side, which scroll when there are many; hidden without any.

    Signals:
        changed: A file was added or removed, or is ready.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.thumbnails = Thumbnails(self)
        self._chips: dict[int, FileChip] = {}
        self._last_key = 0
        self._end = 0
        self.horizontalScrollBar().rangeChanged.connect(self._on_range_changed)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(tr("Attached files"))
        holder = QWidget(self)
        self._line = QHBoxLayout(holder)
        self._line.setContentsMargins(0, 0, 0, 0)
        self._line.addStretch(1)
        self.setWidget(holder)
        holder.setAutoFillBackground(False)  # setWidget turns it on
        self.hide()

    @property
    def files(self) -> "tuple[File, ...]":
        """The files that are ready, in order."""
        return tuple(chip.file for chip in self._chips.values() if chip.file is not None)

    @property
    def is_reading(self) -> bool:
        return any(chip.file is None for chip in self._chips.values())

    @property
    def count(self) -> int:
        """The number of files, with those being read."""
        return len(self._chips)

    def add(self, name: str, file: "File | None" = None) -> int:
        """Add a file that is being read, or is ready; return the key of its chip."""
        from ui.widgets.composer.file_chip import FileChip

        # Not before there is a file: PySide then creates the enums of all widgets, which takes 6 ms.
        self.viewport().setAutoFillBackground(False)
        self._last_key += 1
        key = self._last_key
        chip = FileChip(name, self.thumbnails, self)
        chip.remove_requested.connect(lambda: self._on_chip_remove_requested(key))
        last = next(reversed(self._chips.values()), None)
        if (before := self.focusProxy() if last is None else last.button) is not None:
            QWidget.setTabOrder(before, chip.button)
        self._chips[key] = chip
        self._line.insertWidget(self._line.count() - 1, chip)
        if file is not None:
            chip.show_file(file)
        self.setVisible(True)
        self.updateGeometry()
        self.changed.emit()
        return key

    def show_file(self, key: int, file: "File") -> bool:
        """Show that a file is ready, or drop it if it is there already; return whether it stays."""
        chip = self._chips.get(key)
        if chip is None:
            return False
        if file in self.files:
            self.remove(key)
            return False
        chip.show_file(file)
        self.changed.emit()
        return True

    def remove(self, key: int) -> None:
        chip = self._chips.pop(key, None)
        if chip is not None:
            self._line.removeWidget(chip)
            chip.hide()
            chip.deleteLater()
            self.setVisible(bool(self._chips))
            self.changed.emit()

    def show_files(self, files: "tuple[File, ...]") -> None:
        for key in tuple(self._chips):
            self.remove(key)
        for file in files:
            self.add(file.name, file)

    def _on_range_changed(self, _start: int, end: int) -> None:
        """Show what was added last."""
        if end > self._end:
            self.horizontalScrollBar().setValue(end)
        self._end = end

    def _on_chip_remove_requested(self, key: int) -> None:
        keys = list(self._chips)
        following = keys[keys.index(key) + 1 :] or keys[: keys.index(key)][-1:]
        self.remove(key)
        target = self._chips[following[0]].button if following else self.focusProxy()
        if target is not None:
            target.setFocus(Qt.FocusReason.OtherFocusReason)

    # Qt overrides

    def sizeHint(self) -> QSize:
        """Return the height of a chip, with room for the scroll bar."""
        inner = self.widget()
        height = inner.sizeHint().height() if inner is not None else _EMPTY_PX
        bar = self.horizontalScrollBar().sizeHint().height()
        return QSize(super().sizeHint().width(), height + bar)

    def minimumSizeHint(self) -> QSize:
        """Return the height of a chip; any width will do."""
        return QSize(80, self.sizeHint().height())
