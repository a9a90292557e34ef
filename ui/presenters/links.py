"""Links and pages: external links, links to turns, and manual pages."""

from collections.abc import Callable

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QInputDialog

from app.chat.library import Library
from app.domain.errors import KnownError
from app.domain.ids import ConversationId
from app.domain.links import Link, parse_link
from app.storage.tables.man_pages import ManPages
from ui.bridge import Bridge
from ui.presenters.protocols import MessageView, OpenTurn
from ui.rendering.links import LinkCheck, LinkOpener
from ui.views.dialogs.confirm import Confirmation, confirm
from ui.views.dialogs.page_dialog import PageDialog

_PAGE = "page"


class LinkPresenter(QObject):
    """Opens what a link leads to; asks before an external link is opened.

    `open_turn` shows a conversation, at an exchange if one is given.
    """

    def __init__(
        self,
        library: Library,
        man_pages: ManPages,
        bridge: Bridge,
        messages: MessageView,
        open_turn: OpenTurn,
    ) -> None:
        super().__init__(bridge)
        self._library = library
        self._man_pages = man_pages
        self._bridge = bridge
        self._messages = messages
        self._open_turn = open_turn
        self._gate = LinkOpener(self._ask, _open_url, self.open_link, self._refuse)

    def follow(self, target: str, label: str = "") -> None:
        """Follow a link whose text is `label`."""
        self._gate.follow(target, label)

    def ask_for_link(self) -> None:
        """Ask for a link to a turn, then open it."""
        dialog = QInputDialog(self._messages.window())
        dialog.setWindowTitle("Open a turn")
        dialog.setLabelText("A link to a turn, or ID:TURN:")
        dialog.textValueSelected.connect(self._on_link_entered)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def open_link(self, link: Link) -> None:
        """Show a turn by its exchange, or by its number on the visible path."""
        if link.exchange_id is not None:
            self._open_turn(link.conversation_id, link.exchange_id, None)
        else:
            work = self._open_by_number(link.conversation_id, link.turn_number)
            self._bridge.start("open link", work, self._messages.show_error)

    def open_page(self, source: str, title: str) -> None:
        """Show the manual page called `source`, such as grep.1."""
        dialog = PageDialog(title, self._messages.window())

        async def show() -> None:
            page = await self._bridge.run(lambda: self._man_pages.kept(source))
            dialog.show_text(page.text)

        def close() -> None:
            self._bridge.cancel(_PAGE)
            dialog.deleteLater()

        dialog.finished.connect(close)
        dialog.open()
        self._bridge.start(_PAGE, show(), dialog.show_error)

    def _on_link_entered(self, text: str) -> None:
        try:
            link = parse_link(text)
        except KnownError as error:
            self._messages.show_error(error)
        else:
            self.open_link(link)

    async def _open_by_number(self, conversation_id: ConversationId, turn: int | None) -> None:
        view = await self._bridge.run(lambda: self._library.open(conversation_id))
        exchange = next((each for each in view.path if each.turn_number == turn), None)
        self._open_turn(conversation_id, exchange.id if exchange else None, None)

    def _ask(self, question: LinkCheck, answer: Callable[[bool], None]) -> None:
        details = "\n".join((*question.warnings, f"You are asked once for {question.site}."))
        texts = Confirmation(
            "Open a link",
            f"Open this address outside Commonplace?\n\n{question.address}",
            details,
            "Open",
        )
        confirm(self._messages.window(), texts, lambda: answer(True), lambda: answer(False))

    def _refuse(self, question: LinkCheck) -> None:
        text = f"{question.reason} It points to {question.address}"
        self._messages.show_message(text, brief=False)


def _open_url(address: str) -> None:
    QDesktopServices.openUrl(QUrl(address))
