"""The dialog of keys and passwords: it lists places, asks before it forgets, and shows no value."""

from collections.abc import Callable, Sequence

import pytest
from PySide6.QtWidgets import QMessageBox

from app.domain.errors import NotFound, StorageError
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.memory.secrets import SecretPlace
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import AT, Parts, Recorder, press
from ui.presenters.memory.forgetting import SecretsPresenter

PLACE = SecretPlace(ConversationId(3), "Keys", 1, ExchangeId(5), MessageId(7), ("github-pat",), AT)
VALUE = "hunter2-hunter2"


class Secrets:
    """The presenter with one message that has a secret."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.values = Recorder(
            in_messages=(VALUE,), places={"message": 2, "fact": 1}, forget=("Files.",)
        )
        self.found: Sequence[SecretPlace] = [PLACE]
        self.conversation = Recorder()
        self.presenter = parts.make(
            SecretsPresenter, find=self.find, values=self.values, conversation=self.conversation
        )
        self.dialog = self.presenter.open()

    def find(self, _is_cancelled: Callable[[], bool]) -> Sequence[SecretPlace]:
        return self.found

    def select(self) -> None:
        item = self.dialog.table.topLevelItem(0)
        assert item is not None
        self.dialog.table.setCurrentItem(item)

    def question(self) -> QMessageBox:
        (box,) = self.dialog.findChildren(QMessageBox)
        return box


secrets = fixture_of(Secrets)


def test_a_message_with_a_secret_is_opened_from_the_list(secrets: Secrets) -> None:
    assert not secrets.dialog.open_turn.isEnabled()
    secrets.select()
    secrets.dialog.open_turn.click()
    assert secrets.conversation.calls == [("open", 3, 5, 7)]
    assert not secrets.dialog.isVisible()


def test_what_was_found_is_forgotten_after_a_question_that_says_how_much(secrets: Secrets) -> None:
    secrets.select()
    secrets.dialog.forget.click()
    box = secrets.question()
    assert "2 messages, 1 fact" in box.text()
    assert VALUE not in box.text() + box.informativeText()
    default = box.defaultButton()
    assert default is not None
    assert box.buttonRole(default) is QMessageBox.ButtonRole.RejectRole
    secrets.found = []
    press("Forget", secrets.dialog)
    assert ("forget", (VALUE,)) in secrets.values.calls
    assert "Files." in secrets.parts.banner.messages[-1]
    assert secrets.dialog.table.topLevelItemCount() == 0


def test_a_question_that_is_cancelled_forgets_nothing(secrets: Secrets) -> None:
    secrets.dialog.text.setText(f" {VALUE} ")
    secrets.dialog.forget_text.click()
    secrets.question().reject()
    assert [name for name, *_ in secrets.values.calls] == ["places"]
    assert secrets.values.calls[0][1] == (VALUE,)


@pytest.mark.parametrize(
    "outcome", [{}, NotFound("Nothing has it"), StorageError("The disk is full")]
)
def test_the_dialog_says_that_a_text_is_nowhere(secrets: Secrets, outcome: object) -> None:
    if isinstance(outcome, Exception):
        secrets.values.error = outcome
    else:
        secrets.values.results["places"] = outcome
    before = secrets.dialog.status.text()
    secrets.dialog.text.setText("unknown")
    secrets.dialog.forget_text.click()
    assert secrets.dialog.status.text() != before
    assert secrets.dialog.findChildren(QMessageBox) == []
