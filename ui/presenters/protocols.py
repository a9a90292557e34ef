"""Interfaces that several presenters share: messages, the open conversation, navigation."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import SignalInstance
from PySide6.QtWidgets import QWidget

from app.chat.library import ConversationView
from app.domain.ids import ConversationId, ExchangeId, MessageId

OpenTurn = Callable[[ConversationId, ExchangeId | None, MessageId | None], object]


class MessageView(Protocol):
    """The banner: shows messages and errors, and belongs to the window that dialogs open over."""

    def show_message(
        self, text: str, action: str = "", act: Callable[[], None] | None = None, /, *, brief: bool
    ) -> None:
        """Show a message, with an action such as Undo; a brief one disappears after a while."""
        ...

    def show_error(self, error: BaseException, /) -> None:
        """Show an error and its hint until it is dismissed."""
        ...

    def window(self) -> QWidget:
        """Return the window."""
        ...


class ShownConversation(Protocol):
    """The conversation on screen: `view` is None for one not yet stored."""

    view: ConversationView | None

    @property
    def opened(self) -> SignalInstance:
        """Emits the `Conversation` that was opened, or None."""
        ...

    @property
    def updated(self) -> SignalInstance:
        """Emits the open `Conversation` after a change of its title, model or state."""
        ...

    @property
    def left(self) -> SignalInstance:
        """Emits the `Conversation` that was open before another was opened."""
        ...

    def turn_of(self, exchange_id: ExchangeId, /) -> int | None:
        """Return the position of an exchange on the path shown."""
        ...


@dataclass(frozen=True, slots=True)
class Navigation:
    """What shows something elsewhere in the window.

    `turn` shows a conversation, at an exchange and one of its messages where given; `fact` and
    `memory` show the dialog at an id; `page` shows a manual page by its name and title; `explain`
    shows why an exchange with a label is ranked as it is for a question; `import_files` and
    `export` open their dialogs.
    """

    turn: OpenTurn
    fact: Callable[[int], object]
    memory: Callable[[int], object]
    page: Callable[[str, str], object]
    explain: Callable[[ExchangeId, str, str], object]
    import_files: Callable[[list[Path]], object]
    export: Callable[[ConversationId], object]
