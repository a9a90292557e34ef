"""The left side: one search box above the conversations, or above what was found."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListView,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.domain.conversations import Conversation
from app.domain.passages import SearchAnswer, SearchResult
from ui.models.conversations import ConversationListModel, GroupedListModel
from ui.models.results import ResultListModel
from ui.theme import Theme
from ui.views.rows import RowDelegate
from ui.widgets.plain_label import plain_label

_DEBOUNCE_MS = 90


@dataclass(frozen=True, slots=True)
class Shelf:
    """A list the sidebar can show."""

    name: str
    archived: bool = False
    trash: bool = False


SHELVES = (Shelf("Conversations"), Shelf("Archived", archived=True), Shelf("Trash", trash=True))


class Sidebar(QWidget):
    """Search box, list of conversations and list of results.

    Signals:
        query_changed: The words of the box, a moment after they changed; "" when it was emptied.
        result_chosen: A `SearchResult` to open.
        conversation_chosen: The `Conversation` to open.
        new_requested: A new conversation is wanted.
        shelf_chosen: The `Shelf` to list.
        menu_requested: (Conversation, global position) for a menu about a conversation.
        result_menu_requested: (SearchResult, global position) for a menu about a result.

    Attributes:
        stops: What Tab goes through, in order.
    """

    query_changed = Signal(str)
    result_chosen = Signal(object)
    conversation_chosen = Signal(object)
    new_requested = Signal()
    shelf_chosen = Signal(object)
    menu_requested = Signal(object, QPoint)
    result_menu_requested = Signal(object, QPoint)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.box = QLineEdit(self)
        self.box.setPlaceholderText("Search everything\u2026  (Ctrl+K)")
        self.box.setAccessibleName("Search everything")
        self.box.setClearButtonEnabled(True)
        self.box.installEventFilter(self)
        new = QPushButton("New", self)
        new.setToolTip("New conversation (Ctrl+N)")
        new.clicked.connect(self.new_requested)
        self.shelves = QComboBox(self)
        self.shelves.setAccessibleName("Which conversations are listed")
        for shelf in SHELVES:
            self.shelves.addItem(shelf.name, shelf)
        self.shelves.activated.connect(self._on_shelves_activated)
        self.conversations = ConversationListModel(self)
        self.results = ResultListModel(self)
        self._delegate = RowDelegate(theme, self)
        self.conversation_list = self._list(self.conversations, "Conversations")
        # Else each row that comes or goes has the sizes of all of them asked for, in Python: 17 ms
        # for 100, and ten times that where other threads want the interpreter too.
        self.conversation_list.setUniformItemSizes(True)
        self.result_list = self._list(self.results, "Search results")
        self._message = _words_label(self, "muted")
        self._message.setContentsMargins(16, 32, 16, 16)
        self._message.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        self._note = _words_label(self, "small")
        self._note.hide()
        self._stack = QStackedWidget(self)
        for page in (self.conversation_list, self.result_list, self._message):
            self._stack.addWidget(page)
        self._lay_out(new)
        self._debounce = QTimer(self, singleShot=True, interval=_DEBOUNCE_MS)
        self._debounce.timeout.connect(self._on_debounce_timeout)
        self.box.textChanged.connect(self._on_box_text_changed)
        self._empty_words = ""
        self._note_words = ""
        self._answered = ""
        self._opens_best = False

    # -- what is shown

    def show_conversations(self, conversations: Sequence[Conversation], empty_words: str) -> None:
        """Show the list; `empty_words` stand in its place when it is empty."""
        selected = self._selected_conversation()
        self.conversations.show_conversations(conversations, datetime.now().astimezone())
        self._empty_words = empty_words if not conversations else ""
        if selected is not None:
            self.select_conversation(selected.id)
        if not self.box.text().strip():
            self._show_list()

    def show_answer(self, answer: SearchAnswer, *, is_final: bool = True) -> None:
        """Show results in place of the list; what is marked and where it is scrolled to stays.

        That is so for another answer to the same words; else the list begins at its top. A final
        one opens the best result if Enter was pressed meanwhile.
        """
        is_same = answer.query == self._answered and self.results.rowCount() > 0
        self._answered = answer.query
        marked = self.results.value_at(self.result_list.currentIndex()) if is_same else None
        scrolled = self.result_list.verticalScrollBar().value() if is_same else 0
        self.results.show_results(answer.results)
        if isinstance(marked, SearchResult):
            self.result_list.setCurrentIndex(self.results.row_of(marked.passage_id))
        elif not is_same:
            self.result_list.setCurrentIndex(QModelIndex())
        self.result_list.doItemsLayout()
        self.result_list.verticalScrollBar().setValue(scrolled)
        if not answer.results:
            self.show_message("Nothing was found.\nTry other or fewer words.")
            return
        self._stack.setCurrentWidget(self.result_list)
        if self._opens_best and is_final:
            self._open_best()

    def show_note(self, words: str) -> None:
        """Show a line under the box, such as how much is searchable by now; "" hides it."""
        self._note_words = words
        self._note.setText(words)
        self._note.setVisible(bool(words))

    @property
    def query(self) -> str:
        """What stands in the box."""
        return self.box.text()

    @property
    def shows_results(self) -> bool:
        """Whether results, or words in their place, are on screen."""
        return self._stack.currentWidget() is not self.conversation_list

    def show_message(self, words: str) -> None:
        """Show words in place of results, such as why a query cannot be taken."""
        self._message.setText(words)
        self._stack.setCurrentWidget(self._message)

    def select_conversation(self, conversation_id: int | None) -> None:
        """Mark the open conversation in the list."""
        index = self.conversations.row_of(conversation_id)
        self.conversation_list.setCurrentIndex(index)

    def back_to_results(self) -> bool:
        """Show the results as they were, with the focus in them; False when there are none."""
        if not self.results.rowCount():
            return False
        if self.box.text() != self._answered:
            self.box.setText(self._answered)
            self._debounce.stop()
        self.show_note(self._note_words)
        self._stack.setCurrentWidget(self.result_list)
        self.result_list.setFocus(Qt.FocusReason.ShortcutFocusReason)
        return True

    def set_theme(self, theme: Theme) -> None:
        """Draw in another theme."""
        self._delegate.set_theme(theme)
        for view in (self.conversation_list, self.result_list):
            view.doItemsLayout()

    def focus_search(self) -> None:
        """Put the cursor into the box, its words selected."""
        self.box.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.box.selectAll()

    # -- putting together

    def _lay_out(self, new: QPushButton) -> None:
        head = QHBoxLayout()
        head.addWidget(self.shelves, 1)
        head.addWidget(new)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 10, 10, 6)
        column.setSpacing(8)
        column.addWidget(self.box)
        column.addLayout(head)
        column.addWidget(self._note)
        column.addWidget(self._stack, 1)
        self.stops = (self.box, self.shelves, new, self.conversation_list, self.result_list)

    def _list(self, model: GroupedListModel, name: str) -> QListView:
        view = QListView(self)
        view.setModel(model)
        view.setItemDelegate(self._delegate)
        view.setAccessibleName(name)
        view.setMouseTracking(True)
        view.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._on_menu_wanted)
        view.clicked.connect(self._on_list_chosen)
        view.activated.connect(self._on_list_chosen)
        return view

    def _show_list(self) -> None:
        self._note.hide()
        if self._empty_words:
            self.show_message(self._empty_words)
        else:
            self._stack.setCurrentWidget(self.conversation_list)

    def _selected_conversation(self) -> Conversation | None:
        value = self.conversations.value_at(self.conversation_list.currentIndex())
        return value if isinstance(value, Conversation) else None

    # -- slots

    def _on_box_text_changed(self, _words: str) -> None:
        self._opens_best = False
        self._debounce.start()

    def _on_list_chosen(self, index: QModelIndex) -> None:
        model = index.model()
        value = model.value_at(index) if isinstance(model, GroupedListModel) else None
        if isinstance(value, SearchResult):
            self.result_chosen.emit(value)
        elif isinstance(value, Conversation):
            self.conversation_chosen.emit(value)

    def _on_menu_wanted(self, position: QPoint) -> None:
        view = self.sender()
        if isinstance(view, QListView):
            model = view.model()
            value = (
                model.value_at(view.indexAt(position))
                if isinstance(model, GroupedListModel)
                else None
            )
            at = view.viewport().mapToGlobal(position)
            if isinstance(value, Conversation):
                self.menu_requested.emit(value, at)
            elif isinstance(value, SearchResult):
                self.result_menu_requested.emit(value, at)

    def _on_shelves_activated(self, number: int) -> None:
        self.shelf_chosen.emit(SHELVES[number])

    def _on_debounce_timeout(self) -> None:
        words = self.box.text()
        if not words.strip():
            self._show_list()
        self.query_changed.emit(words)

    def _step_into_list(self) -> None:
        view = self._stack.currentWidget()
        if isinstance(view, QListView):
            view.setFocus(Qt.FocusReason.TabFocusReason)
            model = view.model()
            for row in range(model.rowCount()):
                if isinstance(model, GroupedListModel) and model.value_at(model.index(row, 0)):
                    view.setCurrentIndex(model.index(row, 0))
                    return

    def _open_best(self) -> None:
        """Open the best result of what is typed, now or as soon as it is found."""
        self._opens_best = self.box.text() != self._answered
        if self._opens_best:
            if self._debounce.isActive():
                self._debounce.stop()
                self._on_debounce_timeout()
        elif self._stack.currentWidget() is self.result_list:
            self._step_into_list()
            self._on_list_chosen(self.result_list.currentIndex())

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Let Down leave the box for the list, Enter open its first row, Esc empty the box."""
        if watched is not self.box or not isinstance(event, QKeyEvent):
            return super().eventFilter(watched, event)
        empties = event.key() == Qt.Key.Key_Escape and bool(self.box.text())
        if event.type() == QEvent.Type.ShortcutOverride and empties:
            event.accept()
            return True
        if event.type() != QEvent.Type.KeyPress:
            return super().eventFilter(watched, event)
        if empties:
            self.box.clear()
        elif event.key() == Qt.Key.Key_Down:
            self._step_into_list()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self.box.text().strip():
                self._open_best()
        else:
            return super().eventFilter(watched, event)
        return True


def _words_label(parent: QWidget, tone: str) -> QLabel:
    """Return a label whose words, which may quote what was typed, neither format nor widen it."""
    label = plain_label(parent, tone, selectable=False)
    label.setMinimumWidth(1)
    return label
