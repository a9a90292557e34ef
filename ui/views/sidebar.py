"""The sidebar: a search box above the list of conversations or of search results."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import repeat

from PySide6.QtCore import (
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QGridLayout, QListView, QPushButton, QStackedWidget, QWidget

from app.domain.conversations import Conversation
from app.domain.results import SearchResponse
from app.domain.translation import format_number, tr, trn
from app.index.query import filters_in
from ui.models.conversations import ConversationListModel
from ui.views.drag_list import DragList
from ui.views.project_list import ProjectList
from ui.views.results import ResultList, ResultsPlace
from ui.views.rows import MENU_PX, RowDelegate
from ui.widgets.controls import button, column_in, combo_box, set_up_list_view, with_key
from ui.widgets.on_screen import announce
from ui.widgets.plain_label import PlainLabel, plain_label
from ui.widgets.search_box import SearchBox

_DEBOUNCE_MS = 90
_NOTHING = tr("Nothing found.\nTry other or fewer words.")
_NOTHING_MATCHES = tr("Nothing found.\nNothing at all matches {filters}.")
_NOTHING_FILTERED = tr("Nothing found.\nRemove a filter, or try other words.")


@dataclass(frozen=True, slots=True)
class Folder:
    """A list that the sidebar can show, and the text shown when it is empty."""

    name: str
    empty_text: str
    archived: bool = False
    trash: bool = False
    tag: str | None = None


TRASH = Folder(tr("Trash"), tr("The trash is empty."), trash=True)
FOLDERS = (
    Folder(
        tr("Conversations"),
        tr("There are no conversations yet.\nWrite a message, or import your history."),
    ),
    Folder(tr("Archived"), tr("There are no archived conversations."), archived=True),
    TRASH,
)


class Sidebar(QWidget):
    """Search box, list of conversations and list of results.

    Signals:
        query_changed: The text of the box, shortly after it changed; "" for none.
        conversation_chosen: The `Conversation` to open.
        new_requested: Show a new conversation.
        folder_chosen: The `Folder` to list. project_requested: Make a project.
        trash_emptied: Empty the trash, which is listed.
        menu_requested: (Conversation, global position) for a menu about a conversation.
        deletion_requested: Delete the selected conversations.

    Attributes:
        projects: The list of projects, which limits the conversations.
        conversations, result_list: The lists, with signals of their own.
        stops: The tab order.
    """

    query_changed = Signal(str)
    conversation_chosen = Signal(object)
    new_requested = Signal()
    folder_chosen = Signal(object)
    project_requested = Signal()
    trash_emptied = Signal()
    menu_requested = Signal(object, QPoint)
    deletion_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.search = SearchBox(
            lambda text: [(each.start, each.end) for each in filters_in(text)], self
        )
        self.box = self.search.line
        self._new = new = button(self, tr("New"), self.new_requested)
        folders = ((folder.name, folder) for folder in FOLDERS)
        self.folders = combo_box(
            self,
            tr("Which conversations are listed"),
            folders,
            on_activated=self._on_folders_activated,
        )
        self._folder = 0
        self._add_new_project()
        self.projects = ProjectList(self)
        self.empty_trash = button(self, tr("Empty trash\u2026"), self.trash_emptied, kind="danger")
        self.empty_trash.hide()
        self.conversations = ConversationListModel(self)
        self._delegate = RowDelegate(self)
        self._delegate.open_menu = self._on_sign_clicked
        self._opens_menu = False
        self.conversation_list = self._made_list()
        # Without it each row inserted or removed asks Python for the sizes of all: 17 ms for 100,
        # and ten times that while other threads hold the interpreter.
        self.conversation_list.setUniformItemSizes(True)
        self.result_list = ResultList(self)
        self.results = self.result_list.results
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
        self.search.changed.connect(self._on_query_changed)
        self.search.entered.connect(self._on_entered)
        self.search.down_pressed.connect(self._step_into_list)
        self._tags: Sequence[tuple[str, int]] = ()
        self._empty_text = ""
        self._note_text = ""
        self._opens_best = False

    def set_usable(self, usable: bool) -> None:
        """Enable everything, or the search box only: what is typed there is searched for later."""
        for part in self.stops[1:]:
            part.setEnabled(usable)

    # -- what is shown

    def show_conversations(self, conversations: Sequence[Conversation], empty_text: str) -> None:
        """Show the list, or `empty_text` in its place."""
        selected = self._selected_conversation()
        self.conversations.show_conversations(conversations, datetime.now().astimezone())
        self._empty_text = empty_text if not conversations else ""
        is_trash = self.folders.currentData() == TRASH
        self.empty_trash.setVisible(is_trash and bool(conversations))
        if selected is not None:
            self.select_conversation(selected.id)
        if not self.query.strip():
            self._show_list()

    def show_tags(self, tags: Sequence[tuple[str, int]]) -> None:
        """Offer lists of tags (tag, conversations) below the folders."""
        if tags == self._tags:
            return
        self._tags, shown = tags, self.folders.currentData()
        while self.folders.count() > len(FOLDERS):
            self.folders.removeItem(self.folders.count() - 1)
        if tags:
            self.folders.insertSeparator(len(FOLDERS))
        for name, count in tags:
            folder = Folder(name, tr("No conversation has this tag."), tag=name)
            self.folders.addItem(f"#{name} ({format_number(count)})", folder)
        self._add_new_project()
        kept = (at for at in range(self.folders.count()) if self.folders.itemData(at) == shown)
        self._show_folder(next(kept, 0))

    def show_answer(self, answer: SearchResponse, *, is_final: bool = True) -> None:
        """Show results in place of the list.

        A final answer opens the best result if Enter was pressed in the meantime.
        """
        is_found = self.result_list.show_answer(answer)
        if not answer.results:
            if answer.unmatched:
                filters = ", ".join(answer.unmatched)
                self.show_message(_NOTHING_MATCHES.format(filters=filters))
            else:
                self.show_message(_NOTHING_FILTERED if self.search.filters else _NOTHING)
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
        self._note.show_text(text)

    @property
    def query(self) -> str:
        """What is searched for: filters and words."""
        return self.search.query

    @property
    def results_place(self) -> ResultsPlace | None:
        """What the search shows, None for none."""
        return self.result_list.place if self.query.strip() else None

    @property
    def shows_results(self) -> bool:
        """Whether results, or a message in their place, are shown."""
        return self._stack.currentWidget() is not self.conversation_list

    def show_message(self, text: str) -> None:
        """Show a message in place of results, such as why a query is invalid."""
        self._message.setText(text)
        self._stack.setCurrentWidget(self._message)
        announce(self, text)

    @property
    def selected_conversations(self) -> list[Conversation]:
        """The selected conversations, in the order of the list."""
        indexes = sorted(self.conversation_list.selectedIndexes(), key=QModelIndex.row)
        found = (self.conversations.value_at(each) for each in indexes)
        return [each for each in found if isinstance(each, Conversation)]

    def _selection_text(self) -> str:
        selected = self.selected_conversations
        if len(selected) == 1:
            return selected[0].title
        return trn("{count} conversation", "{count} conversations", len(selected))

    def edit_title(self, conversation: Conversation) -> None:
        """Let the user edit a title in the list; one in the trash stays as it is."""
        index = self.conversations.row_of(conversation.id)
        self.conversation_list.setCurrentIndex(index)
        if index.flags() & Qt.ItemFlag.ItemIsEditable:
            self.conversation_list.edit(index)

    def select_conversation(self, conversation_id: int | None, *, is_opened: bool = False) -> None:
        """Select the open conversation, unless several are selected; `is_opened` one is among them."""
        selected = [each.id for each in self.selected_conversations]
        if len(selected) > 1 and not (is_opened and conversation_id not in selected):
            return
        index = self.conversations.row_of(conversation_id)
        command = QItemSelectionModel.SelectionFlag.ClearAndSelect  # whatever key is held
        self.conversation_list.selectionModel().setCurrentIndex(index, command)

    def back_to_results(self, place: ResultsPlace | None = None) -> bool:
        """Show results as they were, the last ones by default; False when there are none."""
        if place is not None and place.query != self.result_list.answered:
            self.result_list.return_to(place)
            self.search.show_query(place.query)  # it is searched for
            return True
        if not self.results.rowCount():
            return False
        self.search.show_query(self.result_list.answered)
        self._debounce.stop()
        if place is not None:
            self.result_list.return_to(place)
        self.show_note(self._note_text)
        self._stack.setCurrentWidget(self.result_list)
        self.result_list.setFocus(Qt.FocusReason.ShortcutFocusReason)
        return True

    def focus_search(self) -> None:
        """Focus the box and select its text."""
        self.box.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.box.selectAll()

    # -- layout

    def show_new_key(self, key: str) -> None:
        """Show the key that begins a conversation."""
        self._new.setToolTip(with_key(tr("New conversation"), key))

    def _lay_out(self, new: QPushButton) -> None:
        head = QGridLayout()
        top = Qt.AlignmentFlag.AlignTop
        for row, (part, beside) in enumerate(
            ((self.search, self.search.filter_button), (self.folders, new))
        ):
            head.addWidget(part, row, 0)
            head.addWidget(beside, row, 1, top)
        parts = (head, self.projects, self._note, (self._stack, 1), self.empty_trash)
        column_in(self, *parts, margins=(10, 10, 10, 6), spacing=8)
        self.stops = (
            self.box, self.search.filter_button, self.folders, new, self.projects,
            self.conversation_list, self.result_list, self.empty_trash,
        )  # fmt: skip

    def _made_list(self) -> DragList:
        view = DragList(self._selection_text, self)
        set_up_list_view(view, self.conversations, self._delegate, tr("Conversations"))
        view.setSelectionMode(QListView.SelectionMode.ExtendedSelection)
        view.setEditTriggers(QListView.EditTrigger.EditKeyPressed)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._on_menu_requested)
        view.clicked.connect(self._on_list_chosen)
        view.activated.connect(self._on_list_chosen)
        deletion = QShortcut(QKeySequence.StandardKey.Delete, view)
        deletion.setContext(Qt.ShortcutContext.WidgetShortcut)
        deletion.activated.connect(self.deletion_requested)
        return view

    def _add_new_project(self) -> None:
        """Add the entry that makes a project; it has no folder."""
        self.folders.insertSeparator(self.folders.count())
        self.folders.addItem(tr("New project\u2026"))

    def _show_folder(self, number: int) -> None:
        self._folder = number
        self.folders.setCurrentIndex(number)

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

    def _on_query_changed(self) -> None:
        self._opens_best = False
        self._debounce.start()

    def _on_sign_clicked(self, index: QModelIndex | QPersistentModelIndex) -> None:
        """Open the menu of a row, which is not opened by this click."""
        self._opens_menu = True
        row = self.conversation_list.visualRect(index)
        self._on_menu_requested(row.bottomRight() - QPoint(MENU_PX, 0))

    def _on_list_chosen(self, index: QModelIndex) -> None:
        value = self.conversations.value_at(index)
        if self._opens_menu:
            self._opens_menu = False
        elif isinstance(value, Conversation) and len(self.selected_conversations) <= 1:
            self.conversation_chosen.emit(value)

    def _on_menu_requested(self, position: QPoint) -> None:
        view = self.conversation_list
        value = self.conversations.value_at(view.indexAt(position))
        if isinstance(value, Conversation):
            self.menu_requested.emit(value, view.viewport().mapToGlobal(position))

    def _on_folders_activated(self, number: int) -> None:
        folder = self.folders.itemData(number)
        if folder is None:
            self._show_folder(self._folder)
            self.project_requested.emit()
        else:
            self._show_folder(number)
            self.folder_chosen.emit(folder)

    def _on_debounce_timeout(self) -> None:
        query = self.query
        if not query.strip():
            self._show_list()
        self.query_changed.emit(query)

    def _on_entered(self) -> None:
        if self.query.strip():
            self._open_best()

    def _step_into_list(self) -> None:
        view = self._stack.currentWidget()
        if isinstance(view, QListView):
            view.setFocus(Qt.FocusReason.TabFocusReason)
            rows = map(view.model().index, range(view.model().rowCount()), repeat(0))
            first = (each for each in rows if each.flags() & Qt.ItemFlag.ItemIsSelectable)
            view.setCurrentIndex(next(first, QModelIndex()))

    def _open_best(self) -> None:
        """Open the best result of the query, now or as soon as it is found."""
        self._opens_best = self.query != self.result_list.answered
        if self._opens_best:
            if self._debounce.isActive():
                self._debounce.stop()
                self._on_debounce_timeout()
        elif self._stack.currentWidget() is self.result_list:
            self.result_list.setFocus(Qt.FocusReason.TabFocusReason)
            self.result_list.choose_best()


def _text_label(parent: QWidget, tone: str) -> PlainLabel:
    """Return a label that never widens the sidebar."""
    label = plain_label(parent, tone, selectable=False)
    label.setMinimumWidth(1)
    return label
