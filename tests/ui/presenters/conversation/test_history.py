"""Back and forward: places come back with their branch, position and results."""

from typing import Any

from PySide6.QtCore import Signal

from app.domain.errors import NotFound
from app.domain.ids import ConversationId
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import FakeConversation, Parts, view_of
from ui.presenters.conversation.navigation import HistoryPresenter


class Conversation(FakeConversation):
    """Records what is shown again; `gone` are forgotten conversations."""

    jumping = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.gone: set[int] = set()

    async def show(
        self, conversation_id: Any, exchange_id: Any, *, position: Any, scrolls: bool
    ) -> None:
        assert not scrolls
        if conversation_id in self.gone:
            raise NotFound("It was forgotten")
        self.shown.append((conversation_id, exchange_id, position))
        self.view = view_of(1, number=conversation_id) if conversation_id else None


class History:
    """The presenter with a conversation, a transcript and a sidebar that tests set."""

    def __init__(self, parts: Parts) -> None:
        self.conversation = Conversation()
        self.results_place: str | None = None
        self.position: Any = None
        self.shown: list[str | None] = []
        self.presenter = parts.make(
            HistoryPresenter, conversation=self.conversation, transcript=self, sidebar=self
        )

    def reading_position(self) -> Any:
        return self.position

    def back_to_results(self, place: str | None = None) -> None:
        self.shown.append(place)

    def jump(self, to: int, position: Any = None, results: str | None = None) -> None:
        """Jump to a conversation, from what is open scrolled to a position beside results."""
        self.position, self.results_place = position, results
        self.conversation.jumping.emit()
        self.conversation.view = view_of(1, 2, number=to)


history = fixture_of(History)


def test_places_come_back_with_branch_position_and_results(history: History) -> None:
    history.jump(7)
    history.jump(8, position=(1, 40), results="bread")
    history.presenter.back()
    history.presenter.back()
    assert history.conversation.shown == [(7, 2, (1, 40)), (None, None, None)]
    assert history.shown == ["bread"]
    history.presenter.forward()
    history.presenter.forward()
    assert [each[0] for each in history.conversation.shown[2:]] == [7, 8]
    history.presenter.forward()
    assert len(history.conversation.shown) == 4, "there is nothing further ahead"


def test_a_new_jump_drops_what_was_ahead_and_forgotten_places_are_skipped(history: History) -> None:
    for each in (7, 8, 9):
        history.jump(each)
    history.conversation.gone = {8}
    history.presenter.back()
    assert [each[0] for each in history.conversation.shown] == [ConversationId(7)]
    history.jump(10)
    history.presenter.forward()
    assert len(history.conversation.shown) == 1


def test_without_a_jump_back_leads_to_the_last_results(history: History) -> None:
    history.presenter.back()
    assert history.shown == [None]
    assert history.conversation.shown == []
