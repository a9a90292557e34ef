"""The sidebar: a search box above the list of conversations or of search results."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QLabel,
    QListView,
    QPushButton,
    QStackedWidget,
    QWidget,
)

from app.domain.conversations import Conversation
from app.domain.results import SearchResponse, SearchResult
from app.domain.translation import tr, trn
from ui.models.conversations import ConversationListModel, GroupedListModel
from ui.models.results import ResultListModel
from ui.theme import Theme
from ui.views.rows import RowDelegate
from ui.widgets.announce import announce
from ui.widgets.controls import button, column_in, combo_box, line_edit, list_view, row_of
from ui.widgets.plain_label import plain_label

_DEBOUNCE_MS = 90


@dataclass(frozen=True, slots=True)
class Folder:
    """A list that the sidebar can show, and the text shown when it is empty."""

    name: str
    empty_text: str
    archived: bool = False
    trash: bool = False


FOLDERS = (
    Folder(
        tr("Conversations"),
        tr("There are no conversations yet.\nWrite a message, or import your history."),
    ),
    Folder(tr("Archived"), tr("There are no archived conversations."), archived=True),
    Folder(tr("Trash"), tr("The trash is empty."), trash=True),
)


class Sidebar(QWidget):
    """Search box, list of conversations and list of results.

    Signals:
        query_changed: The text of the box, shortly after it changed; "" for none.
        result_chosen: A `SearchResult` to open.
        conversation_chosen: The `Conversation` to open.
        new_requested: Show a new conversation.
        folder_chosen: The `Folder` to list.
        menu_requested: (Conversation, global position) for a menu about a conversation.
        result_menu_requested: (SearchResult, global position) for a menu about a result.

    Attributes:
        stops: The tab order.
    """

    query_changed = Signal(str)
    result_chosen = Signal(object)
    conversation_chosen = Signal(object)
    new_requested = Signal()
    folder_chosen = Signal(object)
    menu_requested = Signal(object, QPoint)
    result_menu_requested = Signal(object, QPoint)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        invitation, name = tr("Search everything\u2026  (Ctrl+K)"), tr("Search everything")
        self.box = line_edit(self, invitation, name=name, clearable=True)
        self.box.installEventFilter(self)
        new = button(self, tr("New"), self.new_requested, tip=tr("New conversation (Ctrl+N)"))
        folders = ((folder.name, folder) for folder in FOLDERS)
        self.folders = combo_box(
            self,
            tr("Which conversations are listed"),
            folders,
            on_activated=self._on_folders_activated,
        )
        self.conversations = ConversationListModel(self)
        self.results = ResultListModel(self)
        self._delegate = RowDelegate(theme, self)
        self.conversation_list = self._list(self.conversations, tr("Conversations"))
        # Without it each row inserted or removed asks Python for the sizes of all: 17 ms for 100,
        # and ten times that while other threads hold the interpreter.
        self.conversation_list.setUniformItemSizes(True)
        self.result_list = self._list(self.results, tr("Search results"))
        self._message = _text_label(self, "muted")
        self._message.setContentsMargins(16, 32, 16, 16)
        self._message.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        self._note = _text_label(self, "small")
        self._note.hide()
        self._stack = QStackedWidget(self)
        for page in (self.conversation_list, self.result_list, self._message):
            self._stack.addWidget(page)
        self._lay_out(new)
        self._debounce = QTimer(self, singleShot=True, interval=_DEBOUNCE_MS)
        self._debounce.timeout.connect(self._on_debounce_timeout)
        self.box.textChanged.connect(self._on_box_text_changed)
        self._empty_text = ""
        self._note_text = ""
        self._answered = ""
        self._opens_best = False

    # -- what is shown

    def show_conversations(self, conversations: Sequence[Conversation], empty_text: str) -> None:
        """Show the list, or `empty_text` in its place."""
        selected = self._selected_conversation()
        self.conversations.show_conversations(conversations, datetime.now().astimezone())
        self._empty_text = empty_text if not conversations else ""
        if selected is not None:
            self.select_conversation(selected.id)
        if not self.box.text().strip():
            self._show_list()

    def show_answer(self, answer: SearchResponse, *, is_final: bool = True) -> None:
        """Show results in place of the list.

        Another answer to the same query keeps the selection and the scroll position. A final one
        opens the best result if Enter was pressed in the meantime.
        """
        is_same = answer.query == self._answered and self.results.rowCount() > 0
        self._answered = answer.query
        marked = self.results.value_at(self.result_list.currentIndex()) if is_same else None
        scrolled = self.result_list.verticalScrollBar().value() if is_same else 0
        is_found = self.results.show_results(answer.results)
        if isinstance(marked, SearchResult):
            self.result_list.setCurrentIndex(self.results.row_of(marked.passage_id))
        elif not is_same:
            self.result_list.setCurrentIndex(QModelIndex())
        self.result_list.doItemsLayout()
        self.result_list.verticalScrollBar().setValue(scrolled)
        if not answer.results:
            self.show_message(tr("Nothing found.\nTry other or fewer words."))
            return
        self._stack.setCurrentWidget(self.result_list)
        if is_final:
            announce(self, trn("{count} result", "{count} results", len(answer.results)))
        if self._opens_best and is_final:
            self._opens_best = False
            if is_found:
                self._open_best()

    def show_note(self, text: str) -> None:
        """Show a line under the box, such as what share is searchable; "" hides it."""
        self._note_text = text
        self._note.setText(text)
        self._note.setVisible(bool(text))

    @property
    def query(self) -> str:
        """The text of the box."""
        return self.box.text()

    @property
    def shows_results(self) -> bool:
        """Whether results, or a message in their place, are shown."""
        return self._stack.currentWidget() is not self.conversation_list

    def show_message(self, text: str) -> None:
        """Show a message in place of results, such as why a query is invalid."""
        self._message.setText(text)
        self._stack.setCurrentWidget(self._message)
        announce(self, text)

    def select_conversation(self, conversation_id: int | None) -> None:
        """Select the open conversation in the list."""
        index = self.conversations.row_of(conversation_id)
        self.conversation_list.setCurrentIndex(index)

    def back_to_results(self, query: str = "") -> bool:
        """Show the last results again, or those of `query`, and focus them; False when there are none."""
        if query and query != self._answered:
            self.box.setText(query)  # they are searched for
            return True
        if not self.results.rowCount():
            return False
        if self.box.text() != self._answered:
            self.box.setText(self._answered)
            self._debounce.stop()
        self.show_note(self._note_text)
        self._stack.setCurrentWidget(self.result_list)
        self.result_list.setFocus(Qt.FocusReason.ShortcutFocusReason)
        return True

    def set_theme(self, theme: Theme) -> None:
        """Use another theme."""
        self._delegate.set_theme(theme)
        for view in (self.conversation_list, self.result_list):
            view.doItemsLayout()

    def focus_search(self) -> None:
        """Focus the box and select its text."""
        self.box.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.box.selectAll()

    # -- layout

    def _lay_out(self, new: QPushButton) -> None:
        parts = (self.box, row_of((self.folders, 1), new), self._note, (self._stack, 1))
        column_in(self, *parts, margins=(10, 10, 10, 6), spacing=8)
        self.stops = (self.box, self.folders, new, self.conversation_list, self.result_list)

    def _list(self, model: GroupedListModel, name: str) -> QListView:
        view = list_view(self, model, self._delegate, name)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._on_menu_requested)
        view.clicked.connect(self._on_list_chosen)
        view.activated.connect(self._on_list_chosen)
        return view

    def _show_list(self) -> None:
        self._note.hide()
        if self._empty_text:
            self.show_message(self._empty_text)
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

    def _on_menu_requested(self, position: QPoint) -> None:
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

    def _on_folders_activated(self, number: int) -> None:
        self.folder_chosen.emit(FOLDERS[number])

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
        """Open the best result of the query, now or as soon as it is found."""
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
        """Handle keys of the box: Down goes to the list, Enter opens the best result, Esc clears."""
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


def _text_label(parent: QWidget, tone: str) -> QLabel:
    """Return a label that never widens the sidebar."""
    label = plain_label(parent, tone, selectable=False)
    label.setMinimumWidth(1)
    return label
