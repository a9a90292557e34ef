"""The window of memory: core memory, and the texts that were saved on purpose."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QPlainTextEdit,
    QPushButton,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from app.storage.memories import KnownMemory
from ui.models.memories import MemoryListModel, source_words
from ui.theme import Theme
from ui.views.core_memory_pane import CoreMemoryPane
from ui.views.fact_rows import FactDelegate
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import plain_label

_DEBOUNCE_MS = 120
_TEXT_PX = 84


class MemoriesDialog(QDialog):
    """Two pages: `core` and `saved`, with signals of their own.

    Signals:
        save_or_not_requested: The user wants to close it, and core memory is edited and not saved.
    """

    save_or_not_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Core memory and saved memories")
        resize_on_screen(self, 680, 620)
        self.core = CoreMemoryPane(theme, self)
        self.saved = SavedPane(theme, self)
        self._pages = QTabWidget(self)
        self._pages.setDocumentMode(True)
        self._pages.addTab(self.core, "Core memory")
        self._pages.addTab(self.saved, "Saved memories")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 8, 0, 0)
        column.addWidget(self._pages)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.button(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)
        buttons.rejected.connect(self.reject)
        foot = QHBoxLayout()
        foot.setContentsMargins(16, 0, 16, 12)
        foot.addWidget(buttons)
        column.addLayout(foot)

    def show_core(self) -> None:
        """Bring core memory to the front."""
        self._pages.setCurrentWidget(self.core)

    def show_saved(self) -> None:
        """Bring the saved texts to the front."""
        self._pages.setCurrentWidget(self.saved)

    def set_theme(self, theme: Theme) -> None:
        """Draw in another theme."""
        self.core.set_theme(theme)
        self.saved.set_theme(theme)

    # Qt overrides

    def reject(self) -> None:
        """Close, by Escape too, unless something is not saved."""
        if self.core.is_edited:
            self.save_or_not_requested.emit()
        else:
            super().reject()


class SavedPane(QWidget):
    """Lists saved texts and shows the chosen one.

    Signals:
        asked: What is searched for, "" for all. add_requested: The words of a new one.
        source_requested, forget_requested: The `KnownMemory`.
    """

    asked = Signal(str)
    add_requested = Signal(str)
    source_requested = Signal(object)
    forget_requested = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._wanted: int | None = None
        self.box = _line(self, "Search saved memories")
        self.box.setClearButtonEnabled(True)
        self._words = plain_label(self, "muted")
        self.model = MemoryListModel(self)
        self.list = QListView(self)
        self.list.setModel(self.model)
        self._delegate = FactDelegate(theme, self.list)
        self.list.setItemDelegate(self._delegate)
        self.list.setAccessibleName("Saved memories")
        self.list.setMouseTracking(True)
        self.list.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._text = QPlainTextEdit(self)
        self._text.setReadOnly(True)
        self._text.setAccessibleName("The saved text")
        self._text.setTabChangesFocus(True)
        self._text.setFixedHeight(_TEXT_PX)
        self._source = plain_label(self, "muted")
        self._open = _button(self, "Open the turn")
        self._forget = _button(self, "Forget\N{HORIZONTAL ELLIPSIS}")
        self.new = _line(self, "Save a text of your own")
        self._add = _button(self, "Save")
        self._add.setEnabled(False)
        self._debounce = QTimer(self, singleShot=True, interval=_DEBOUNCE_MS)
        self._debounce.timeout.connect(self.ask)
        self._lay_out()
        self.box.textChanged.connect(lambda _words: self._debounce.start())
        self.list.selectionModel().currentChanged.connect(lambda *_: self._show_chosen())
        self.new.textChanged.connect(lambda words: self._add.setEnabled(bool(words.strip())))
        self.new.returnPressed.connect(self._on_add_clicked)
        self._add.clicked.connect(self._on_add_clicked)
        self._open.clicked.connect(lambda: self.source_requested.emit(self._chosen()))
        self._forget.clicked.connect(lambda: self.forget_requested.emit(self._chosen()))

    def ask(self) -> None:
        """Ask for what is searched for."""
        self.asked.emit(self.box.text().strip())

    def want(self, memory_id: int) -> None:
        """Choose a text as soon as it is listed."""
        self._wanted = memory_id
        self.box.clear()

    def show_memories(self, memories: Sequence[KnownMemory]) -> None:
        """Show what was found; the one chosen stays so if it is among them."""
        chosen = self._chosen()
        wanted = self._wanted or (None if chosen is None else chosen.memory.id)
        self.model.show_memories(memories)
        index = self.model.row_of(wanted)
        if index.isValid():
            self._wanted = None
        elif memories:
            index = self.model.row_of(memories[0].memory.id)
        self.list.setCurrentIndex(index)
        self._words.setText(self._summary(len(memories)))
        self._show_chosen()

    def show_error(self, title: str, hint: str) -> None:
        """Tell what cannot be done."""
        self._words.setText(f"{title}. {hint}".strip())

    def clear_new(self) -> None:
        """Empty the field for a new text: it was saved."""
        self.new.clear()

    def set_theme(self, theme: Theme) -> None:
        """Draw in another theme."""
        self._delegate.set_theme(theme)
        self.list.doItemsLayout()

    def _summary(self, count: int) -> str:
        if count:
            return f"{count:,} saved {'text' if count == 1 else 'texts'}"
        if self.box.text().strip():
            return "Nothing was found. Try other or fewer words."
        return (
            "Nothing is saved yet. Models save texts here with a tool when you ask them to "
            "remember something; you can save your own below."
        )

    def _chosen(self) -> KnownMemory | None:
        known = self.model.value_at(self.list.currentIndex())
        return known if isinstance(known, KnownMemory) else None

    def _show_chosen(self) -> None:
        known = self._chosen()
        for part in (self._text, self._source, self._forget):
            part.setVisible(known is not None)
        self._open.setVisible(known is not None and known.memory.conversation_id is not None)
        if known is not None:
            self._text.setPlainText(known.memory.text)
            self._source.setText(source_words(known))

    def _lay_out(self) -> None:
        deeds = QHBoxLayout()
        deeds.addWidget(self._open)
        deeds.addStretch(1)
        deeds.addWidget(self._forget)
        adding = QHBoxLayout()
        adding.addWidget(self.new, 1)
        adding.addWidget(self._add)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 16)
        column.setSpacing(8)
        column.addWidget(self.box)
        column.addWidget(self._words)
        column.addWidget(self.list, 1)
        column.addWidget(self._text)
        column.addWidget(self._source)
        column.addLayout(deeds)
        column.addSpacing(4)
        column.addLayout(adding)

    def _on_add_clicked(self) -> None:
        if words := self.new.text().strip():
            self.add_requested.emit(words)


def _line(parent: QWidget, words: str) -> QLineEdit:
    line = QLineEdit(parent)
    line.setPlaceholderText(words)
    line.setAccessibleName(words)
    return line


def _button(parent: QWidget, words: str) -> QPushButton:
    button = QPushButton(words, parent)
    button.setAutoDefault(False)
    return button
