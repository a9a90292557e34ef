"""Forgetting a turn from its menu."""

from types import SimpleNamespace
from typing import Any

from tests.fakes.screens import Parts, Recorder, press, view_of
from ui.presenters.forgetting import ForgetPresenter


def test_a_turn_is_forgotten_after_a_yes_and_shown_as_it_is_now(parts: Parts) -> None:
    service, went = Recorder(forget_turn=("A backup remains.",)), list[tuple[Any, ...]]()
    view = view_of(5, 6, number=3)
    shown = SimpleNamespace(view=view, open=lambda *given: went.append(given))
    presenter = parts.make(ForgetPresenter, forget_turn=service.forget_turn, conversation=shown)
    presenter.ask(7)
    presenter.ask(1)
    press("Cancel", parts.banner)
    assert (service.calls, went) == ([], [])
    presenter.ask(1)
    press("Forget", parts.banner)
    exchange = view.path[1]
    assert service.calls == [("forget_turn", exchange.id)]
    assert went == [(exchange.conversation_id, exchange.id)]
    assert parts.banner.messages == ["A backup remains."]
    shown.view = None
    presenter.ask(0)
