"""Ways through conversations: back and forward over jumps, find in conversation, links."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QPoint, QUrl
from PySide6.QtGui import QDesktopServices

from app.chat.library import AgentLink, AgentLinks, ConversationView, Library
from app.domain.conversations import Exchange
from app.domain.errors import KnownError, NotFound
from app.domain.ids import ConversationId, ExchangeId
from app.domain.links import SCHEME, Link, name_of_document, parse_document, parse_link
from app.domain.records.sources import SourceName
from app.domain.translation import format_turn, tr, trn
from ui.presenters.conversation.open_conversation import ConversationPresenter
from ui.presenters.conversation.turns import Position
from ui.presenters.presenter import OpenDocument, OpenTurn, Presenter, ask_for_text, show_menu
from ui.rendering.links import LinkCheck, LinkOpener
from ui.views.chat_pane import ChatPane
from ui.views.dialogs.confirm import Confirmation, confirm
from ui.views.results import ResultsPlace
from ui.views.sidebar import Sidebar
from ui.widgets.banner import Banner
from ui.widgets.search_box import FindBar
from ui.widgets.transcript.values import FindMark, searchable_text
from ui.widgets.transcript.view import TranscriptView

_PLACES_KEPT = 100
_AGENTS_TASK = "agents"
_FIND_TASK = "find"
_MARKS_LIMIT = 10_000
_BATCH_TURNS = 500


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
        del self._behind[:-_PLACES_KEPT]
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
                await self._conversation.show(
                    place.conversation_id, place.exchange_id, position=place.position, scrolls=False
                )
            except NotFound:
                if rest:
                    place = rest.pop()
                    continue
            return


class FindPresenter(Presenter):
    """Keeps the find bar and the marks in the transcript in step."""

    _library: Library
    _bar: FindBar
    _transcript: TranscriptView
    _conversation: ConversationPresenter

    def _set_up(self) -> None:
        self._marks: list[FindMark] = []
        self._current = 0
        self._bar.words_changed.connect(self._on_words_changed)
        self._bar.stepped.connect(self._on_stepped)
        self._bar.closed.connect(self._on_closed)
        self._conversation.opened.connect(self._bar.dismiss)

    def open(self) -> None:
        """Show the find bar, if a conversation with turns is open."""
        if self._conversation.view is not None:
            self._bar.begin()

    def _on_words_changed(self, words: str) -> None:
        if (view := self._conversation.view) is not None and words.strip():
            self._bridge.load(
                _FIND_TASK,
                lambda: self._matches(view, words),
                lambda marks: self._show_in(view, marks),
            )
        else:
            self._clear()

    def _show_in(self, view: ConversationView, marks: list[FindMark]) -> None:
        if self._conversation.path is view.path:
            self._show(marks)

    def _matches(self, view: ConversationView, words: str) -> list[FindMark]:
        """Return the matches in reading order, ignoring case; blocking."""
        pattern = re.compile(re.escape(words), re.IGNORECASE)
        marks: list[FindMark] = []
        for start in range(0, len(view.path), _BATCH_TURNS):
            exchanges = view.path[start : start + _BATCH_TURNS]
            messages = self._library.messages(exchanges)
            for turn, exchange in enumerate(exchanges, start):
                text = searchable_text(messages[exchange.id])
                marks += [FindMark(turn, *found.span()) for found in pattern.finditer(text)]
            if len(marks) > _MARKS_LIMIT:
                break
        return marks[:_MARKS_LIMIT]

    def _clear(self) -> None:
        self._bridge.cancel(_FIND_TASK)
        self._show([])

    def _show(self, marks: list[FindMark]) -> None:
        self._marks, self._current = marks, 0
        self._transcript.set_find_marks(marks)
        self._show_current()

    def _show_current(self) -> None:
        self._bar.show_place(self._current + 1, len(self._marks))
        if self._marks:
            self._transcript.show_find_mark(self._current)

    def _on_stepped(self, step: int) -> None:
        if self._marks:
            self._current = (self._current + step) % len(self._marks)
            self._show_current()

    def _on_closed(self) -> None:
        self._clear()
        self._transcript.setFocus()


class AgentLinkPresenter(Presenter):
    """Leads from the conversation of a coding agent to those of its subagents, and back."""

    _library: Library
    _chat: ChatPane
    _conversation: ConversationPresenter

    def _set_up(self) -> None:
        self._links = AgentLinks()
        self._shown_for: ConversationId | None = None
        self._conversation.opened.connect(lambda _: self._refresh())
        self._chat.agents.clicked.connect(self._on_clicked)
        self._bridge.subscribe(lambda _: self._refresh(), "conversations")

    def _refresh(self) -> None:
        here = self._conversation.conversation_id
        if here != self._shown_for:
            self._bridge.cancel(_AGENTS_TASK)
            self._show(AgentLinks())
        self._shown_for, view = here, self._conversation.view
        if here is not None and view is not None and view.conversation.source in list(SourceName):
            self._bridge.load(
                _AGENTS_TASK,
                lambda: self._library.agent_links(here),
                self._show,
                lambda _: self._show(AgentLinks()),
            )

    def _show(self, links: AgentLinks) -> None:
        self._links, parts = links, []
        if links.started_by:
            title = links.started_by.conversation.title or tr("Untitled")
            parts.append(tr("Started by “{title}”").format(title=title))
        if count := len(links.subagents):
            parts.append(trn("{count} subagent", "{count} subagents", count))
        self._chat.show_agents(" · ".join(parts))

    def _on_clicked(self) -> None:
        """Open what is at the other end, or list it: the agent first."""
        show, (agent, subagents) = self._conversation.open, self._links
        entries = [(_label(each), partial(show, each.conversation.id)) for each in subagents]
        if agent:
            turn = agent.exchange.id if agent.exchange else None
            entries.insert(0, (_label(agent), partial(show, agent.conversation.id, turn)))
        if len(entries) == 1:
            entries[0][1]()
        else:
            button = self._chat.agents
            show_menu(button, button.mapToGlobal(QPoint(0, button.height())), entries)


def _label(link: AgentLink) -> str:
    title = (link.conversation.title or tr("Untitled")).replace("&", "&&")
    if link.exchange is None:
        return title
    return f"{title}\t{format_turn(link.exchange.turn_number)}"


class LinkPresenter(Presenter):
    """Opens what a link leads to; asks before an external link is opened.

    `open_document` shows a document by its place and title, `open_turn` a conversation, at an exchange if
    one is given.
    """

    _library: Library
    _messages: Banner
    _open_document: OpenDocument
    _open_turn: OpenTurn

    def _set_up(self) -> None:
        self._gate = LinkOpener(self._ask, _open_url, self.open_link, self._refuse)

    def follow(self, target: str, label: str = "") -> None:
        """Follow a link whose text is `label`."""
        if target.startswith(SCHEME) and (passage := parse_document(target)) is not None:
            self._open_document(name_of_document(passage), label or tr("Document"))
        else:
            self._gate.follow(target, label)

    def ask_for_link(self) -> None:
        """Ask for a link to a turn, then open it."""
        label = tr("A link to a turn, or ID:TURN:")
        ask_for_text(self._messages.window(), tr("Open a turn"), label, "", self._on_link_entered)

    def open_link(self, link: Link) -> None:
        """Show a turn by its exchange, or by its number on the visible path."""
        if link.exchange_id is not None:
            self._open_turn(link.conversation_id, link.exchange_id, None)
        else:
            self._bridge.load(
                "open link",
                lambda: self._library.open(link.conversation_id).path,
                lambda path: self._open_by_number(link, path),
            )

    def _on_link_entered(self, text: str) -> None:
        try:
            self.open_link(parse_link(text))
        except KnownError as error:
            self._messages.show_error(error)

    def _open_by_number(self, link: Link, path: Sequence[Exchange]) -> None:
        found = (each.id for each in path if each.turn_number == link.turn_number)
        self._open_turn(link.conversation_id, next(found, None), None)

    def _ask(self, question: LinkCheck, answer: Callable[[bool], None]) -> None:
        details = "\n".join(
            (*question.warnings, tr("You are asked once for {site}.").format(site=question.site))
        )
        texts = Confirmation(
            tr("Open a link"),
            tr("Open this address outside Commonplace?\n\n{address}").format(
                address=question.address
            ),
            details,
            tr("Open"),
        )
        confirm(self._messages.window(), texts, lambda: answer(True), lambda: answer(False))

    def _refuse(self, question: LinkCheck) -> None:
        text = tr("{reason} It points to {address}").format(
            reason=question.reason, address=question.address
        )
        self._messages.show_message(text, brief=False)


def _open_url(address: str) -> None:
    QDesktopServices.openUrl(QUrl(address))
