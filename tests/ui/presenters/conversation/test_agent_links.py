"""Links between the conversation of a coding agent and those of its subagents, above the transcript."""

from PySide6.QtWidgets import QApplication, QMenu

from app.chat.library import AgentLink, AgentLinks
from app.domain.change_set import ChangeSet
from app.domain.ids import ConversationId
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import Parts, Recorder, conversation, exchange, view_of
from ui.presenters.conversation.navigation import AgentLinkPresenter
from ui.views.chat_pane import ChatPane

AGENT = AgentLink(conversation(3, title="Herons"), exchange(2))
SUBAGENTS = tuple(AgentLink(conversation(each, title=f"Find {each}"), None) for each in (8, 9))
CHANGED = ChangeSet(conversations=frozenset((ConversationId(3),)))


class Screen:
    def __init__(self, parts: Parts) -> None:
        self.library = Recorder(agent_links=AgentLinks(AGENT))
        self.chat, self.talk, self.bridge = ChatPane(), parts.open, parts.bridge
        parts.make(AgentLinkPresenter, library=self.library, chat=self.chat)

    def open(self, number: int = 7, source: str = "codex") -> None:
        self.talk.open_path(view_of(1, number=number, source=source))


screen = fixture_of(Screen)


def test_a_subagent_leads_to_the_turn_that_started_it(screen: Screen) -> None:
    screen.open()
    assert "Herons" in screen.chat.agents.text()
    screen.chat.agents.click()
    assert screen.talk.shown == [(3, 2)]


def test_an_agent_lists_its_subagents(screen: Screen) -> None:
    screen.library.results["agent_links"] = AgentLinks(AGENT, SUBAGENTS)
    screen.open()
    screen.chat.agents.click()
    (menu,) = screen.chat.agents.findChildren(QMenu)
    texts = [each.text().partition("\t")[0] for each in menu.actions()]
    assert texts == ["Herons", "Find 8", "Find 9"]
    menu.actions()[2].trigger()
    assert screen.talk.shown == [(9,)]
    menu.close()
    QApplication.processEvents()


def test_links_come_with_what_is_imported_later_and_leave_with_the_conversation(
    screen: Screen,
) -> None:
    screen.library.results["agent_links"] = AgentLinks()
    screen.open()
    assert screen.chat.agents.isHidden()
    screen.library.results["agent_links"] = AgentLinks(AGENT)
    screen.bridge.changed.emit(CHANGED)
    assert not screen.chat.agents.isHidden()
    screen.bridge.hold()
    screen.open(8)
    assert screen.chat.agents.isHidden(), "that of another conversation is not shown"
    screen.bridge.release()
    screen.open(source="chatgpt")
    assert screen.chat.agents.isHidden()
