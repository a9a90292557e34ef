"""Links: external ones, and those to turns and documents."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from app.chat.library import Library
from app.domain.conversations import Exchange
from app.domain.errors import KnownError
from app.domain.links import SCHEME, Link, name_of_document, parse_document, parse_link
from app.domain.translation import tr
from ui.presenters.presenter import OpenDocument, OpenTurn, Presenter, ask_for_text
from ui.rendering.links import LinkCheck, LinkOpener
from ui.views.dialogs.confirm import Confirmation, confirm
from ui.widgets.banner import Banner


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
