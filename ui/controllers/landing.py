"""Landing on the very message that was found, in a turn that is longer than the screen."""

import asyncio
import time

from PySide6.QtCore import QPoint

from app.domain.conversations import Message, Text
from app.domain.ids import MessageId
from ui.widgets.transcript.anchor import AtPlace, Centred
from ui.widgets.transcript.message_text import MessageText
from ui.widgets.transcript.turn import TurnWidget
from ui.widgets.transcript.view import TranscriptView

_LOOK_EVERY_S = 0.015
_PATIENCE_S = 5.0


async def land_on_message(transcript: TranscriptView, turn: int, message_id: MessageId) -> None:
    """Bring a message of the turn that was jumped to into the middle, once the turn is drawn.

    Nothing is done when the message is on screen anyway, or when the user has scrolled meanwhile.
    """
    until = time.monotonic() + _PATIENCE_S
    while transcript.anchor == Centred(turn) and time.monotonic() < until:
        widget = transcript.turn_widget(turn)
        if widget is not None and widget.content is not None and transcript.is_settled:
            if (text := _text_of(widget, widget.content.messages, message_id)) is not None:
                _centre(transcript, widget, text)
            return
        await asyncio.sleep(_LOOK_EVERY_S)


def _text_of(
    widget: TurnWidget, messages: tuple[Message, ...], message_id: MessageId
) -> MessageText | None:
    """Return where a message's words are drawn; None for one without words."""
    before = 0
    texts = widget.texts()
    for message in messages:
        count = sum(isinstance(each, Text) and bool(each.text.strip()) for each in message.blocks)
        if message.id == message_id:
            return texts[before] if count and before < len(texts) else None
        before += count
    return None


def _centre(transcript: TranscriptView, widget: TurnWidget, text: MessageText) -> None:
    """Have the middle of a text in the middle; of one that is too tall, the top near the top."""
    view = transcript.viewport().height()
    top = text.mapTo(widget, QPoint(0, 0)).y()
    at = widget.mapTo(transcript.viewport(), QPoint(0, top)).y()
    if at >= 0 and at + min(text.height(), view // 2) <= view:
        return
    third = view // 3  # where an `AtPlace` stands
    middle = top + text.height() // 2 - view // 2 + third
    transcript.rest_on(AtPlace(widget.index, min(middle, top + third)))
