"""The memory pane: tabs for the sources of an answer, what was sent for it, what is known, and the workers."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QTabBar, QVBoxLayout, QWidget

from app.domain.translation import format_number, tr
from ui.views.memory.dashboard import Dashboard
from ui.views.memory.inspector import InspectorView
from ui.views.memory.knowledge_view import KnowledgeView
from ui.widgets.controls import filled

_KNOWLEDGE = "knowledge"
_TABS = {
    "sources": tr("Sources"),
    "sent": tr("Sent"),
    _KNOWLEDGE: tr("Facts and profile"),
    "activity": tr("Activity"),
}
_NAMES = tuple(_TABS)
_LEAST_PX, _USUAL_PX = 320, 420


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
        super().__init__(parent)
        self.setMinimumWidth(_LEAST_PX)
        self.setAccessibleName(tr("Memory"))
        self.inspector = InspectorView(self)
        self.knowledge = knowledge
        self.dashboard = Dashboard(self)
        self.tabs = QTabBar(self)
        self.tabs.setAccessibleName(tr("Memory"))
        self.tabs.setDocumentMode(True)
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
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
        """Show a page."""
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
