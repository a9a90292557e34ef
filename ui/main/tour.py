"""The stops of the tour: what is said about each part of the window."""

from collections.abc import Sequence

from PySide6.QtWidgets import QWidget

from app.domain.translation import tr
from ui.presenters.first_steps import TourStop
from ui.views.main_window import MainWindow

_SEARCH = (
    tr("Search everything"),
    tr(
        "Type here. Every message is found by its words and by its meaning, and a result opens at "
        "the very turn."
    ),
)
_ASK = (
    tr("Ask about your past"),
    tr(
        "Write your question here. Meanwhile this card counts what memory would add to it; click "
        "the number to see what that is. Without a language model, Recall answers from your "
        "conversations alone."
    ),
)
_SOURCES = (
    tr("See the sources"),
    tr(
        "This pane shows what was recalled for an answer and why, and exactly what was sent to "
        "the model."
    ),
)
_BACKGROUND = (
    tr("Work in the background"),
    tr(
        "Conversations are summarized and indexed on this computer. Here you see how far that "
        "is, what it costs, and can switch it off."
    ),
)
_MODEL = (
    tr("Connect a model"),
    tr(
        "Choose who answers here, or add a provider. Everything else is in the settings "
        "of the Conversation menu. Nothing leaves this computer until you choose a provider."
    ),
)


def tour_stops(window: MainWindow) -> Sequence[TourStop]:
    """Return the five stops."""

    def page(name: str) -> QWidget:
        window.memory.open_page(name)
        return window.memory_dock

    def search() -> QWidget:
        window.actions_by_name["sidebar"].setChecked(True)
        return window.sidebar.box

    def settings() -> QWidget:
        window.memory_dock.hide()
        return window.chat.composer.model

    return (
        TourStop(*_SEARCH, search),
        TourStop(*_ASK, lambda: window.chat.composer),
        TourStop(*_SOURCES, lambda: page("sources")),
        TourStop(*_BACKGROUND, lambda: page("activity")),
        TourStop(*_MODEL, settings),
    )
