"""Proposed projects in the window: listed, accepted with a name, and dismissed."""

from dataclasses import replace

from PySide6.QtWidgets import QInputDialog, QPushButton

from app.chat.projects import ProjectProposal
from app.domain.errors import InvalidInput
from app.domain.ids import ConversationId
from app.domain.records.projects import Project
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import Parts, Recorder
from ui.presenters.projects import ProposalsPresenter
from ui.views.dialogs.project_dialog import ProposalsDialog

IDS = (ConversationId(3), ConversationId(4))
HERON = ProjectProposal("folder:heron", "heron", False, IDS, None)
CELLO = ProjectProposal("topic:2", "Cello", True, IDS, Project("c", "Cello"))


class Screen:
    """The dialog with two proposals, one of which has a project already."""

    def __init__(self, parts: Parts) -> None:
        self.service = Recorder(listed=(HERON, CELLO))
        self.dialog: ProposalsDialog = parts.make(ProposalsPresenter, proposals=self.service).open()

    def press(self, name: str) -> None:
        buttons = self.dialog.findChildren(QPushButton)
        next(
            each for each in buttons if each.accessibleName() == name and not each.isHidden()
        ).click()

    def changes(self) -> list[tuple[object, ...]]:
        return [each for each in self.service.calls if each[0] != "listed"]


screen = fixture_of(Screen)


def test_a_new_project_is_made_once_it_has_a_name(screen: Screen) -> None:
    screen.press("Make a project of heron")
    assert screen.changes() == []
    (question,) = screen.dialog.findChildren(QInputDialog)
    assert question.textValue() == "heron"
    question.setTextValue("Heron gateway")
    screen.service.results["listed"] = ()
    question.accept()
    assert screen.changes() == [("accept", HERON, "Heron gateway")]
    assert not any(
        each.accessibleName().endswith("heron") and each.isVisible()
        for each in screen.dialog.findChildren(QPushButton)
    )


def test_conversations_are_moved_to_the_project_that_there_is(screen: Screen) -> None:
    screen.press("Move to the project Cello")
    assert screen.changes() == [("accept", CELLO, "Cello")]


def test_a_proposal_is_dismissed_and_an_error_shown(screen: Screen) -> None:
    screen.service.results["listed"] = (replace(HERON, name="Heron"),)
    screen.press("Discard Cello")
    assert screen.changes() == [("dismiss", CELLO)]
    screen.service.error = InvalidInput("Full")
    screen.press("Discard Heron")
    assert not screen.dialog.status.isHidden()
