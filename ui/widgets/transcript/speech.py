"""What screen readers are told without being asked."""

from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QWidget

from app.domain.conversations import ExchangeStatus
from app.domain.text import one_line
from ui.widgets.transcript.values import TurnContent, answer_text

_MOST_CHARS = 160
_WORDS = {
    ExchangeStatus.INTERRUPTED: "Reply interrupted",
    ExchangeStatus.FAILED: "Reply failed",
}


def announce_reply(source: QWidget, content: TurnContent) -> None:
    """Announce that a reply has ended: how, and how it begins or why it failed."""
    said = content.problem.title if content.problem else answer_text(content.messages)
    words = f"{_WORDS.get(content.status, 'Reply')}: {one_line(said, _MOST_CHARS)}"
    QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(source, words))
