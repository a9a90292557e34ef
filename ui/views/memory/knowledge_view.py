"""The memory pane: tabs for the sources of an answer, what was sent, what is known with its pages, and the workers."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QStackedWidget, QTabBar, QTabWidget, QVBoxLayout, QWidget

from app.domain.errors import KnownError
from app.domain.translation import format_number, tr, trn
from app.storage.tables.memories import KnownMemory
from ui.models.facts import MemoryListModel, saved_source_text
from ui.views.memory.dashboard import Dashboard
from ui.views.memory.facts_view import FactsView
from ui.views.memory.inspector import InspectorView
from ui.views.memory.profile_pane import ProfilePane
from ui.views.memory.questions_view import QuestionsView
from ui.views.memory.summaries_pane import SummariesPane
from ui.views.memory.versions import StandingTextPane
from ui.views.rows import FactDelegate
from ui.widgets.controls import (
    button,
    column_in,
    filled,
    line_edit,
    list_view,
    row_of,
    scroll_area,
    text_edit,
)
from ui.widgets.on_screen import ReportsShown
from ui.widgets.plain_label import breakable, plain_label
from ui.widgets.transcript.values import WrittenLine

_PROFILE, _CORE = tr("Profile"), tr("Core memory")
_FULL_NAMES = {  # of tabs that say less
    tr("Core"): _CORE,
    tr("Saved"): tr("Saved memories"),
    tr("Tests"): tr("Test questions"),
}
_CORE_HELP = tr(
    "This is part of every prompt. Keep it short: who you are, and how you want to be answered. "
    "A model may add to it with a tool. You see that in the conversation, and can undo it there."
)
_DEBOUNCE_MS = 120
_TEXT_PX = 84
_MOST_PX = 170
_KNOWLEDGE = "knowledge"
_TABS = {
    "sources": tr("Sources"),
    "sent": tr("Sent"),
    _KNOWLEDGE: tr("Facts and profile"),
    "activity": tr("Activity"),
}
_NAMES = tuple(_TABS)
_LEAST_PX, _USUAL_PX = 320, 420


class KnowledgeView(ReportsShown, QTabWidget):
    """Six pages, `facts`, `summaries`, `profile`, `core`, `saved` and `questions`, with own signals.

    Attributes:
        page: The name of the page that is shown, as these attributes are called.
        proposals: What models propose for core memory, above its text.

    Signals:
        shown: Also when another page of it appears.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Facts and profile"))
        self.setDocumentMode(True)
        self.setUsesScrollButtons(False)  # names are shortened where they have no room
        self.setElideMode(Qt.TextElideMode.ElideRight)
        self.facts = FactsView(self)
        self.summaries = SummariesPane(self)
        self.profile = ProfilePane(self)
        self.core = StandingTextPane(tr("Core memory"), _CORE_HELP, self)
        self.proposals = ProposedWrites(self)
        self.saved = SavedPane(self)
        self.questions = QuestionsView(self)
        core = QWidget(self)
        core.setFocusProxy(self.core.text)
        column_in(core, self.proposals, (self.core, 1), margins=(12, 12, 12, 12), spacing=8)
        facts = scroll_area(self, self.facts, framed=False)  # tall: a low window shows a part
        facts.setFocusProxy(self.facts)
        facts.setAccessibleName(tr("Facts"))
        self._pages = {
            "facts": (facts, tr("Facts")),
            "summaries": (self.summaries, tr("Summaries")),
            "profile": (self.profile, _PROFILE),
            "core": (core, tr("Core")),
            "saved": (self.saved, tr("Saved")),
            "questions": (self.questions, tr("Tests")),
        }
        self.currentChanged.connect(lambda _: self.shown.emit())
        for view, text in self._pages.values():
            self.setTabToolTip(self.addTab(view, text), _FULL_NAMES.get(text, text))

    @property
    def page(self) -> str:
        """The name of the page that is shown."""
        return list(self._pages)[self.currentIndex()]

    def show_page(self, page: str) -> None:
        self.setCurrentWidget(self._pages[page][0])

    def mark_profile(self, *, waits: bool) -> None:
        """Show on its tab whether a proposal for the profile waits."""
        self._mark("profile", int(waits))

    def show_proposals(self, lines: Sequence[WrittenLine]) -> None:
        """Show what models propose for core memory, and how many on its tab."""
        self.proposals.show_lines(lines)
        self._mark("core", len(lines))

    def _mark(self, page: str, proposals: int) -> None:
        """Show on a tab how many proposals wait there."""
        view, text = self._pages[page]
        at = self.indexOf(view)
        self.setTabText(at, f"{text} ({format_number(proposals)})" if proposals else text)
        self.setTabToolTip(
            at,
            tr("{proposals} to decide").format(
                proposals=trn("{count} proposal", "{count} proposals", proposals)
            )
            if proposals
            else _FULL_NAMES.get(text, text),
        )


class SavedPane(QWidget):
    """Lists saved texts and shows the selected one.

    Signals:
        list_requested: What to search for, "" for all. add_requested: A new text.
        source_requested, forget_requested: The `KnownMemory`.
    """

    list_requested = Signal(str)
    add_requested = Signal(str)
    source_requested = Signal(object)
    forget_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._awaited: int | None = None
        self.box = line_edit(self, tr("Search saved memories"), clearable=True)
        self._status = plain_label(self, "muted")
        self.model = MemoryListModel(self)
        self._delegate = FactDelegate(self)
        self.list = list_view(self, self.model, self._delegate, tr("Saved memories"))
        self._text = text_edit(self, tr("The saved text"), _TEXT_PX)
        self._text.setReadOnly(True)
        self._source = plain_label(self, "muted")
        self._open = button(self, tr("Open the turn"))
        self._forget = button(self, tr("Forget\N{HORIZONTAL ELLIPSIS}"))
        self.new = line_edit(self, tr("Save a text of your own"))
        self._add = button(self, tr("Save"))
        self._add.setEnabled(False)
        self._debounce = QTimer(self, singleShot=True, interval=_DEBOUNCE_MS)
        self._debounce.timeout.connect(self.request_list)
        self._lay_out()
        self.setFocusProxy(self.box)
        self.box.textChanged.connect(self._debounce.start)
        self.list.selectionModel().currentChanged.connect(self._show_selected)
        self.new.textChanged.connect(lambda text: self._add.setEnabled(bool(text.strip())))
        self.new.returnPressed.connect(self._on_add_requested)
        self._add.clicked.connect(self._on_add_requested)
        self._open.clicked.connect(lambda: self.source_requested.emit(self._selected()))
        self._forget.clicked.connect(lambda: self.forget_requested.emit(self._selected()))

    def request_list(self) -> None:
        """Request the texts that are searched for."""
        self.list_requested.emit(self.box.text().strip())

    def select_when_listed(self, memory_id: int) -> None:
        """Select a text as soon as it is listed."""
        self._awaited = memory_id

    def show_memories(self, memories: Sequence[KnownMemory]) -> None:
        """Show what was found; keep the selection where it is still listed."""
        selected = self._selected()
        wanted = self._awaited or (None if selected is None else selected.memory.id)
        self.model.show_rows(memories)
        index = self.model.row_of(wanted)
        if index.isValid():
            self._awaited = None
        elif memories:
            index = self.model.row_of(memories[0].memory.id)
        self.list.setCurrentIndex(index)
        self._status.setText(self._summary(len(memories)))
        self._show_selected()

    def show_error(self, error: KnownError) -> None:
        """Show why a request failed."""
        self._status.setText(error.display_text)

    def _summary(self, count: int) -> str:
        if count:
            return trn("{count} saved text", "{count} saved texts", count)
        if self.box.text().strip():
            return tr("No saved memories found. Try other or fewer words.")
        return tr(
            "There are no saved memories yet. Models save texts here with a tool when you ask "
            "them to remember something. You can also save your own below."
        )

    def _selected(self) -> KnownMemory | None:
        known = self.model.value_at(self.list.currentIndex())
        return known if isinstance(known, KnownMemory) else None

    def _show_selected(self, *_: object) -> None:
        known = self._selected()
        for part in (self._text, self._source, self._forget):
            part.setVisible(known is not None)
        self._open.setVisible(known is not None and known.memory.conversation_id is not None)
        if known is not None:
            self._text.setPlainText(known.memory.text)
            self._source.setText(saved_source_text(known))

    def _lay_out(self) -> None:
        column_in(
            self, self.box, self._status, (self.list, 1), self._text, self._source,
            row_of(self._open, None, self._forget), 4, row_of((self.new, 1), self._add),
            margins=(12, 12, 12, 12), spacing=8,
        )  # fmt: skip

    def _on_add_requested(self) -> None:
        if text := self.new.text().strip():
            self.add_requested.emit(text)


class ProposedWrites(QWidget):
    """Shows proposals; hidden while there are none.

    Signals:
        action_requested: The uid of a proposal, and "keep" or "undo".
        source_requested: The uid of the proposal whose conversation is to be opened.
    """

    action_requested = Signal(str, str)
    source_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: list[QFrame] = []
        body = QWidget(self)
        self._body = body
        self._column = column_in(body, margins=(0, 0, 0, 0), spacing=6)
        self._area = scroll_area(self, body, framed=False)
        column_in(self, self._area, margins=(0, 0, 0, 0))
        self.hide()

    def show_lines(self, lines: Sequence[WrittenLine]) -> None:
        for row in self._rows:
            row.hide()
            row.deleteLater()
        self._rows = [self._row(line) for line in lines]
        for row in self._rows:
            self._column.addWidget(row)
        self.setVisible(bool(lines))
        self.setFixedHeight(min(_MOST_PX, self._body.sizeHint().height() + 4))

    def _row(self, line: WrittenLine) -> QFrame:
        row = QFrame(self._body)
        row.setProperty("panel", "card")
        row.setAccessibleName(line.text)
        text = plain_label(row, "", breakable(line.text))
        buttons = [
            button(
                row,
                label,
                partial(self.action_requested.emit, line.uid, action),
                name=f"{label}: {line.text}",
            )
            for action, label in line.actions
        ]
        source = button(
            row, tr("Open the turn"), partial(self.source_requested.emit, line.uid), kind="quiet"
        )
        column_in(row, text, row_of(*buttons, source, None), margins=(12, 8, 12, 8), spacing=6)
        return row


class MemoryPane(QWidget):
    """Four tabs; the pages are "sources", "sent", "activity" and those of `KnowledgeView`.

    Attributes:
        inspector: One answer, its sources or what was sent. knowledge: Facts, profile, core memory and saved texts.
        dashboard: The workers.

    Signals:
        open_requested: A page is to be seen.
        page_changed: Another page is shown.
    """

    open_requested = Signal()
    page_changed = Signal()

    def __init__(self, knowledge: KnowledgeView, parent: QWidget | None = None) -> None:
        super().__init__(parent, minimumWidth=_LEAST_PX, accessibleName=tr("Memory"))
        self.inspector = InspectorView(self)
        self.knowledge = knowledge
        self.dashboard = Dashboard(self)
        self.tabs = QTabBar(self, documentMode=True, expanding=False, drawBase=False)
        self.tabs.setAccessibleName(tr("Memory"))
        self.tabs.setUsesScrollButtons(False)  # names are shortened where they have no room
        self.tabs.setElideMode(Qt.TextElideMode.ElideRight)
        self._stack = QStackedWidget(self)
        for each in (self.inspector, self.knowledge, self.dashboard):
            self._stack.addWidget(each)
        for text in _TABS.values():
            self.tabs.addTab(text)
        self.tabs.setAccessibleTabName(_NAMES.index(_KNOWLEDGE), _TABS[_KNOWLEDGE])
        self.tabs.currentChanged.connect(self._on_tab_changed)
        self.inspector.counted.connect(self._on_counted)
        self.knowledge.currentChanged.connect(lambda _: self.page_changed.emit())
        filled(QVBoxLayout(self), self.tabs, (self._stack, 1), margins=(0, 4, 0, 0), spacing=0)

    @property
    def page(self) -> str:
        """The name of the page that is shown."""
        name = _NAMES[self.tabs.currentIndex()]
        return self.knowledge.page if name == _KNOWLEDGE else name

    def open_page(self, page: str) -> None:
        """Show a page, and request that the pane is visible."""
        self.show_page(page)
        self.open_requested.emit()

    def show_page(self, page: str) -> None:
        if page not in _NAMES:
            self.knowledge.show_page(page)
            page = _KNOWLEDGE
        self.tabs.setCurrentIndex(_NAMES.index(page))

    def _on_tab_changed(self, tab: int) -> None:
        views = {_KNOWLEDGE: self.knowledge, "activity": self.dashboard}
        self.inspector.show_sent(_NAMES[tab] == "sent")
        self._stack.setCurrentWidget(views.get(_NAMES[tab], self.inspector))
        self.page_changed.emit()

    def _on_counted(self, sent: int) -> None:
        text = f"{_TABS['sources']} ({format_number(sent)})" if sent else _TABS["sources"]
        self.tabs.setTabText(_NAMES.index("sources"), text)
        self._fit_tabs()

    def _fit_tabs(self) -> None:
        """Name the tab of what is known in short, and put all closer, where names would be cut."""
        self._show_tabs(_TABS[_KNOWLEDGE], is_narrow=False)
        if self.tabs.sizeHint().width() > self.width():
            self._show_tabs(tr("Facts"), is_narrow=True)

    def _show_tabs(self, known: str, *, is_narrow: bool) -> None:
        self.tabs.setTabText(_NAMES.index(_KNOWLEDGE), known)
        if is_narrow != bool(self.tabs.property("narrow")):
            self.tabs.setProperty("narrow", is_narrow)
            self.tabs.style().polish(self.tabs)

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the names of the tabs into the new width."""
        super().resizeEvent(event)
        self._fit_tabs()

    def sizeHint(self) -> QSize:
        """Return a width that fits the names; the details show what lists leave out."""
        return QSize(_USUAL_PX, super().sizeHint().height())
