"""The filter menu of the search box, with the values that the library has."""

from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import QPoint

from app.domain.topics import Topic
from app.memory.topics.service import TopicService
from app.storage.tables.conversations import Conversations, FilterValues
from ui.presenters.presenter import Presenter
from ui.views.filter_menu import filter_menu
from ui.widgets.search_box import SearchBox


class FilterPresenter(Presenter):
    """Shows what there is to filter by when the user asks for it."""

    _conversations: Conversations
    _topics: TopicService
    _box: SearchBox

    def _set_up(self) -> None:
        self._box.filters_requested.connect(self._on_filters_requested)

    def _on_filters_requested(self) -> None:
        self._bridge.load(
            "filters",
            lambda: (self._conversations.filter_values(), self._topics.topics()),
            lambda found: self._show(*found),
        )

    def _show(self, values: FilterValues, topics: Sequence[Topic]) -> None:
        counted = [(each.name, each.conversations) for each in topics]
        menu = filter_menu(self._box, values, counted, datetime.now().astimezone().date())
        menu.aboutToHide.connect(menu.deleteLater)
        button = self._box.filter_button
        menu.popup(button.mapToGlobal(QPoint(0, button.height())))
