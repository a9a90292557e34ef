"""Back and forward over everything that was jumped to: results, sources, links, conversations."""

from dataclasses import dataclass

from app.domain.errors import NotFound
from app.domain.ids import ConversationId, ExchangeId
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.presenters.turns import Position
from ui.views.result_list import ResultsPlace
from ui.views.sidebar import Sidebar
from ui.widgets.transcript.view import TranscriptView

_MOST = 100


@dataclass(frozen=True, slots=True)
class Place:
    """What was on screen: a conversation (None: a new one) on a branch, scrolled, beside results.

    `exchange_id` is the last one of the branch. `position` None is its end.
    """

    conversation_id: ConversationId | None
    exchange_id: ExchangeId | None
    position: Position | None
    results: ResultsPlace | None


class HistoryPresenter(Presenter):
    """Remembers where each jump began, in this session."""

    _conversation: ConversationPresenter
    _transcript: TranscriptView
    _sidebar: Sidebar

    def _set_up(self) -> None:
        self._behind: list[Place] = []
        self._ahead: list[Place] = []
        self._conversation.jumping.connect(self._on_jumping)

    def back(self) -> None:
        """Return to where the last jump began; without one, to the last results."""
        if self._behind:
            self._go(self._behind, self._ahead)
        else:
            self._sidebar.back_to_results()

    def forward(self) -> None:
        """Go again to where `back` was called."""
        if self._ahead:
            self._go(self._ahead, self._behind)

    def _on_jumping(self) -> None:
        self._behind.append(self._here())
        del self._behind[:-_MOST]
        self._ahead.clear()

    def _here(self) -> Place:
        view, results = self._conversation.view, self._sidebar.results_place
        if view is None:
            return Place(None, None, None, results)
        last = view.path[-1].id if view.path else None
        return Place(view.conversation.id, last, self._transcript.reading_position(), results)

    def _go(self, from_stack: list[Place], to_stack: list[Place]) -> None:
        place = from_stack.pop()
        to_stack.append(self._here())
        if place.results is not None:
            self._sidebar.back_to_results(place.results)
        self._bridge.start("open conversation", self._show(place, from_stack))

    async def _show(self, place: Place, rest: list[Place]) -> None:
        """Show a place; one that was forgotten meanwhile is skipped."""
        while True:
            try:
                await self._conversation.revisit(
                    place.conversation_id, place.exchange_id, place.position
                )
            except NotFound:
                if rest:
                    place = rest.pop()
                    continue
            return
