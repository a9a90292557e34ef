"""Forgetting a turn from its menu."""

from PySide6.QtWidgets import QMessageBox

from app.domain.ids import MessageId
from tests.fakes.screens import Parts, Recorder, press, view_of
from ui.presenters.memory.forgetting import ForgetPresenter


def _presenter(parts: Parts, service: Recorder) -> ForgetPresenter:
    parts.open.open_path(view_of(5, 6, number=3))
    return parts.make(
        ForgetPresenter, forget_turn=service.forget_turn, forget_messages=service.forget_messages
    )


def test_only_the_question_or_only_the_answer_is_forgotten_after_a_yes(parts: Parts) -> None:
    service, went = Recorder(forget_messages=("A backup remains.",)), parts.open.shown
    presenter = _presenter(parts, service)
    exchange = parts.open.path[1]
    question, answers = exchange.message_ids[0], (MessageId(91), MessageId(92))
    presenter.ask_messages(7, answers)
    presenter.ask_messages(1, ())
    presenter.ask_messages(1, answers)
    press("Cancel", parts.banner)
    assert (service.calls, went) == ([], [])
    presenter.ask_messages(1, (question,))
    asked = [parts.banner.window().findChildren(QMessageBox)[-1].text()]
    press("Forget", parts.banner)
    assert service.calls == [("forget_messages", (question,))]
    presenter.ask_messages(1, answers)
    asked.append(parts.banner.window().findChildren(QMessageBox)[-1].text())
    press("Forget", parts.banner)
    assert "message" in asked[0]
    assert "answer" in asked[1]
    assert service.calls[1:] == [("forget_messages", answers)]
    assert went == [(exchange.conversation_id, exchange.id)] * 2
    assert parts.banner.messages == ["A backup remains."] * 2


def test_a_turn_is_forgotten_after_a_yes_and_shown_as_it_is_now(parts: Parts) -> None:
    service, went = Recorder(forget_turn=("A backup remains.",)), parts.open.shown
    presenter = _presenter(parts, service)
    presenter.ask(7)
    presenter.ask(1)
    press("Cancel", parts.banner)
    assert (service.calls, went) == ([], [])
    presenter.ask(1)
    press("Forget", parts.banner)
    exchange = parts.open.path[1]
    assert service.calls == [("forget_turn", exchange.id)]
    assert went == [(exchange.conversation_id, exchange.id)]
    assert parts.banner.messages == ["A backup remains."]
    parts.open.view = None
    presenter.ask(0)
