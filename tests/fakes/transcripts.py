"""Transcripts with generated conversations, which record what they request."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pytestqt.qtbot import QtBot

from app.domain.conversations import Block, ExchangeStatus, Message, Problem, Role, Text
from app.domain.ids import ConversationId, MessageId
from ui.theme import Theme
from ui.widgets.thumbnails import Thumbnails
from ui.widgets.transcript.turn import TurnWidget
from ui.widgets.transcript.values import Footer, TurnContent, TurnHeader
from ui.widgets.transcript.view import TranscriptView

START = datetime(2024, 3, 1, 12, tzinfo=UTC)
WORDS = "Some words that fill a line or two of the transcript, as people and models write them. "


def message(number: int, role: Role, *blocks: Block) -> Message:
    """Return a message with an id of its own."""
    at = START + timedelta(minutes=number)
    return Message(MessageId(number), f"u{number}", ConversationId(1), None, role, blocks, at)


def turn(number: int, question: str, answer: str | None, **more: object) -> TurnContent:
    messages = [message(2 * number, Role.USER, Text(question))]
    if answer is not None:
        messages.append(message(2 * number + 1, Role.ASSISTANT, Text(answer)))
    return TurnContent(tuple(messages), **more)  # type: ignore[arg-type]


def head(number: int, content: TurnContent, *, lie: float = 1.0) -> TurnHeader:
    """Return what is known of a turn beforehand; `lie` falsifies its lengths."""
    lengths = [len(each.text) for each in content.messages]
    at = START + timedelta(minutes=number)
    return TurnHeader(number, at, round(lengths[0] * lie), round(sum(lengths[1:]) * lie))


class Shown:
    """A transcript on an offscreen window, fed from a list of turns.

    With `answers` False nothing is provided until `answer` is called.
    """

    def __init__(
        self,
        qtbot: QtBot,
        contents: Sequence[TurnContent],
        *,
        lie: float = 1.0,
        answers: bool = True,
        thumbnails: Thumbnails | None = None,
    ) -> None:
        self.contents = list(contents)
        self.heads = [head(at, content, lie=lie) for at, content in enumerate(self.contents)]
        self.requested: list[tuple[int, int]] = []
        self.provided = 0
        self._qtbot, self._answers = qtbot, answers
        self.view = TranscriptView(Theme(), thumbnails)
        self.view.resize(700, 600)
        self.view.content_requested.connect(self._on_requested)
        self.view.show()
        self.view.show_conversation(self.heads)

    def answer(self) -> None:
        """Provide everything that was requested so far."""
        requested, self.requested = self.requested, []
        for first, last in requested:
            for at in range(first, last + 1):
                self.view.provide(at, self.contents[at])
                self.provided += 1

    def settle(self) -> "Shown":
        """Wait until every visible turn is rendered and nothing moves any more."""
        self._qtbot.waitUntil(self._is_settled)
        return self

    def turn(self, index: int) -> TurnWidget:
        """Return a turn's widget, which exists."""
        widget = self.view.turn_widget(index)
        assert widget is not None
        return widget

    def top_of(self, index: int) -> int | None:
        """Return where a turn is in the view, in pixels from its top."""
        widget = self.view.turn_widget(index)
        return None if widget is None or widget.isHidden() else widget.y()

    def texts(self, index: int) -> list[str]:
        """Return the rendered texts of a turn."""
        texts = self.turn(index).texts()
        return [text.builder.document.toPlainText() for text in texts]

    def add_reply(self) -> int:
        """Add a turn whose reply begins; return its index."""
        index = len(self.view.heights)
        content = turn(index, "Go on", None, status=ExchangeStatus.RUNNING)
        self.contents[index:] = [content]
        self.view.add_turn(head(index, content), content)
        self.view.begin_reply()
        return index

    def finish(
        self,
        status: ExchangeStatus = ExchangeStatus.COMPLETED,
        footer: Footer = Footer(),  # noqa: B008 - a value that cannot change
        problem: Problem | None = None,
    ) -> None:
        """End the reply to the last turn, as it is stored."""
        index, live = len(self.view.heights) - 1, self.view._live
        assert live is not None
        asked = self.contents[index].messages
        stored = [message(99, Role.ASSISTANT, *live.blocks)] if live.blocks else []
        self.view.finish_reply(index, TurnContent((*asked, *stored), status, footer, problem))

    def stream(self, text: str, size: int = 40) -> None:
        """Append `text` to the reply in pieces, and wait until all of it is rendered."""
        for at in range(0, len(text), size):
            self.view.append(Text(text[at : at + size]))
            if at % (size * 5) == 0:
                self._qtbot.wait(1)
        texts = self.turn(len(self.view.heights) - 1).texts
        self._qtbot.waitUntil(lambda: texts()[-1].builder.source.endswith(text[-9:]))
        self.settle()

    def _is_settled(self) -> bool:
        if self._answers:
            self.answer()
        first, last = self.view.visible_items
        widgets = [self.view.turn_widget(at) for at in range(first, last + 1)]
        return self.view.is_settled and all(
            widget is not None and widget.content is not None for widget in widgets
        )

    def _on_requested(self, first: int, last: int) -> None:
        self.requested.append((first, last))
        if self._answers:
            self.answer()
