"""What stands between and beside messages: problems, interruptions, days, clean slates, chips."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QPushButton, QToolButton, QWidget

from app.domain.conversations import Attachment, Image, Problem
from app.domain.text import one_line
from ui.rendering.inline import tip_of
from ui.widgets.transcript.look import Look
from ui.widgets.transcript.parts import FlowRow, Label, Panel, small_label
from ui.widgets.transcript.values import TurnHead
from ui.widgets.transcript.words import day_words, size

_CHIP_CHARS = 60
CLEAN_SLATE = "Clean slate \N{EN DASH} earlier turns are kept and searchable"


class ProblemPanel(Panel):
    """Why a reply failed: cause, next step, and Retry.

    Signals:
        retry_clicked: The user wants it tried again.
    """

    retry_clicked = Signal()

    def __init__(self, look: Look, problem: Problem) -> None:
        super().__init__(look.theme, look.theme.colours.error_soft)
        self.setAccessibleName(f"Problem: {problem.title}. {problem.hint}".strip())
        self.add(Label(problem.title, "error"))
        if problem.hint:
            self.add(Label(problem.hint, "muted"))
        row = FlowRow()
        row.add(_button("Retry", "Send the message again", self.retry_clicked.emit))
        self.add(row)


class InterruptedMark(Panel):
    """Says that a reply broke off, and offers to go on.

    Signals:
        continue_clicked: The user wants the rest.
    """

    continue_clicked = Signal()

    def __init__(self, look: Look, problem: Problem | None = None) -> None:
        super().__init__(look.theme, look.theme.colours.warning_soft)
        words = problem.title if problem is not None else "This reply was interrupted"
        self.setAccessibleName(words)
        row = FlowRow(gap=look.px(0.8))
        row.add(small_label(words, "warning"))
        row.add(_button("Continue", "Have the reply go on from here", self.continue_clicked.emit))
        self.add(row)
        if problem is not None and problem.hint:
            self.add(Label(problem.hint, "muted"))


class Divider(QWidget):
    """A line across with words in its middle: a new day, a clean slate."""

    changed = Signal()

    def __init__(self, look: Look, words: str) -> None:
        super().__init__()
        self._look, self._words = look, words
        self.setAccessibleName(words)

    def height_for(self, _width: int) -> int:
        """Return its height, the same for any width."""
        return self._look.px(2.2)

    # Qt overrides

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint words and the line at both sides of them."""
        painter = QPainter(self)
        colours = self._look.theme.colours
        painter.setFont(self._look.theme.small_font())
        words_width = painter.fontMetrics().horizontalAdvance(self._words) + 2 * self._look.px(0.8)
        painter.setPen(QColor(colours.muted))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self._words)
        painter.setPen(QPen(QColor(colours.border), 1))
        middle, half = self.height() // 2, (self.width() - words_width) // 2
        painter.drawLine(0, middle, half, middle)
        painter.drawLine(self.width() - half, middle, self.width(), middle)


def dividers_above(heads: Sequence[TurnHead], index: int) -> Iterator[str]:
    """Yield what stands above a turn: its day if it is the first of it, and a clean slate."""
    head = heads[index]
    before = heads[index - 1] if index else None
    day = head.started_at.astimezone().date()
    if before is None or before.started_at.astimezone().date() != day:
        yield day_words(day, datetime.now().astimezone().date())
    if before is not None and before.segment_number != head.segment_number:
        yield CLEAN_SLATE


def file_chips(look: Look, files: list[Image | Attachment]) -> FlowRow:
    """Return a row with a chip for each attachment; pictures show themselves small."""
    row = FlowRow(gap=look.px(0.4))
    for file in files:
        chip = chip_of(one_line(file.name or "file", _CHIP_CHARS))
        if isinstance(file, Attachment) and file.size_bytes is not None:
            chip.setText(f"{chip.text()}  ·  {size(file.size_bytes)}")
        chip.setToolTip(tip_of(f"{file.name}, {file.media_type}"))
        chip.setEnabled(file.content_hash is not None)
        if file.content_hash is not None:
            activated = look.events.attachment_activated
            chip.clicked.connect(partial(activated.emit, file.content_hash))
            _add_thumbnail(look, chip, file.content_hash)
        row.add(chip)
    return row


def _add_thumbnail(look: Look, chip: QToolButton, content_hash: str) -> None:
    picture = look.resolver(content_hash) if look.resolver is not None else None
    if picture is None or picture.isNull():
        return
    side = look.px(3.2)
    chip.setIcon(QIcon(QPixmap.fromImage(picture)))
    chip.setIconSize(QSize(side, side))
    chip.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)


def chip_of(words: str) -> QToolButton:
    """Return a small button with a round edge."""
    chip = QToolButton()
    chip.setText(words.replace("&", "&&"))
    chip.setAccessibleName(words)
    chip.setProperty("kind", "chip")
    chip.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
    chip.setCursor(Qt.CursorShape.PointingHandCursor)
    return chip


def _button(words: str, tip: str, clicked: Callable[[], None]) -> QPushButton:
    button = QPushButton(words)
    button.setToolTip(tip)
    button.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
    button.clicked.connect(clicked)
    return button
