"""Announcements to screen readers: what appears without taking the focus."""

from PySide6.QtWidgets import QWidget

_MAX_CHARS = 500


def announce(source: QWidget, text: str) -> None:
    """Have a screen reader say a text when it has finished what it says; "" says nothing."""
    if text:
        from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent

        from app.domain.text import one_line

        QAccessible.updateAccessibility(
            QAccessibleAnnouncementEvent(source, one_line(text, _MAX_CHARS))
        )
