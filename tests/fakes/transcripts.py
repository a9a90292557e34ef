"""Conversations for a transcript to show, and what it asked for."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from app.domain.conversations import Block, ExchangeStatus, Message, Role, Text
from app.domain.ids import ConversationId, MessageId
from ui.theme import Theme
from ui.widgets.transcript.values import TurnContent, TurnHead
from ui.widgets.transcript.view import TranscriptView

START = datetime(2024, 3, 1, 12, tzinfo=UTC)


def message(number: int, role: Role, *blocks: Block) -> Message:
    """Return a message with an id of its own."""
    at = START + timedelta(minutes=number)
    return Message(MessageId(number), f"u{number}", ConversationId(1), None, role, blocks, at)


def turn(number: int, question: str, answer: str | None, **more: object) -> TurnContent:
    """Return a turn of one question and one answer."""
    messages = [message(2 * number, Role.USER, Text(question))]
    if answer is not None:
        messages.append(message(2 * number + 1, Role.ASSISTANT, Text(answer)))
    return TurnContent(tuple(messages), **more)  # type: ignore[arg-type]


def asked(number: int, question: str = "Go on") -> TurnContent:
    """Return a turn whose reply is about to come."""
    return turn(number, question, None, status=ExchangeStatus.RUNNING)


def head(number: int, content: TurnContent, *, lie: float = 1.0) -> TurnHead:
    """Return what is known of a turn beforehand; `lie` falsifies its lengths."""
    lengths = [len(each.text) for each in content.messages]
    at = START + timedelta(minutes=number)
    return TurnHead(number, at, round(lengths[0] * lie), round(sum(lengths[1:]) * lie))


class Shown:
    """A transcript on an offscreen window, fed from a list of turns.

    With `answers` False nothing is provided until `answer` is called.
    """

    def __init__(
        self, contents: Sequence[TurnContent], *, lie: float = 1.0, answers: bool = True
    ) -> None:
        self.contents = list(contents)
        self.heads = [head(at, content, lie=lie) for at, content in enumerate(self.contents)]
        self.requested: list[tuple[int, int]] = []
        self.view = TranscriptView(Theme())
        self.view.resize(700, 600)
        self.view.content_requested.connect(self._on_requested)
        self._answers = answers
        self.view.show()
        self.view.show_conversation(self.heads)

    def answer(self) -> None:
        """Provide everything that was asked for so far."""
        requested, self.requested = self.requested, []
        for first, last in requested:
            for at in range(first, last + 1):
                self.view.provide(at, self.contents[at])

    def top_of(self, index: int) -> int | None:
        """Return where a turn stands in the view, in pixels from its top."""
        widget = self.view.turn_widget(index)
        return None if widget is None or widget.isHidden() else widget.y()

    def drawn(self, index: int) -> str:
        """Return the last words of a turn that are drawn, "" while there are none."""
        widget = self.view.turn_widget(index)
        texts = widget.texts() if widget is not None else []
        return texts[-1].composer.document.toPlainText() if texts else ""

    def _on_requested(self, first: int, last: int) -> None:
        self.requested.append((first, last))
        if self._answers:
            self.answer()
