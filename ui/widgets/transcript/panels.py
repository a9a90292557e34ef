"""Panels and rows beside the text of a turn: problems, dividers, attachments, recalled sources."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from functools import partial

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QPushButton, QToolButton, QWidget

from app.domain.conversations import File, Image, Problem
from app.domain.text import one_line, sentences
from app.domain.translation import format_size, long_day, tr, translate_filled
from ui.icons import Ink, set_icon
from ui.rendering.inline import tooltip_text
from ui.widgets.controls import PushButton, ToolButton
from ui.widgets.thumbnails import Thumbnails
from ui.widgets.transcript.context import RenderContext
from ui.widgets.transcript.layout import FlowRow, Label, Panel
from ui.widgets.transcript.values import SourceChip, TurnHeader, WrittenLine

_CHIP_CHARS = 60
_WRITTEN_CHARS = 90
_IMAGE_EM = 16.0
_LEAST_EM = 2.4  # a target large enough to click
_UNKNOWN_PX = 1_000
_SOURCES_SHOWN = 4
MODEL_PROBLEMS = frozenset((
    "model_not_found", "not_found", "quota_exhausted", "images_refused",
))  # fmt: skip
_PROVIDER_PROBLEMS = frozenset((
    "key_missing", "key_rejected", "permission_refused", "payment_required", "unreachable",
    "timed_out", "nonsense_reply", "endpoint_missing", "invalid_input",
))  # fmt: skip
NEW_SEGMENT_TEXT = tr("Clean slate \N{EN DASH} what is above is kept and found, but no longer sent")
_FAR_SHARE = 0.5  # of the visible height: nearer, the wheel is quicker
_NEW_TEXT = tr("New text below")


class ProblemPanel(Panel):
    """Why a reply failed: cause, next step, and where that is possible Retry and what mends it."""

    def __init__(
        self, context: RenderContext, problem: Problem, retry: Callable[[], None] | None
    ) -> None:
        super().__init__(context.theme, context.theme.colors.error_soft)
        self.setAccessibleName(
            tr("Problem: {sentences}").format(
                sentences=sentences(translate_filled(problem.title), translate_filled(problem.hint))
            )
        )
        self.add(Label(translate_filled(problem.title), "error"))
        if problem.hint:
            self.add(Label(sentences(translate_filled(problem.hint)), "muted"))
        if retry is not None:
            row = FlowRow()
            row.add(_button(tr("Retry"), tr("Send the message again"), retry))
            mend = partial(context.events.mend_requested.emit, problem.kind)
            if problem.kind in _PROVIDER_PROBLEMS:
                row.add(
                    _button(tr("Provider settings\u2026"), tr("Its address, key and models"), mend)
                )
            elif problem.kind in MODEL_PROBLEMS:
                row.add(
                    _button(tr("Choose another model\u2026"), tr("For this conversation"), mend)
                )
            self.add(row)


class InterruptionPanel(Panel):
    """Says that a reply was interrupted, and offers to continue it where that is possible."""

    def __init__(
        self,
        context: RenderContext,
        problem: Problem | None,
        resume: Callable[[], None] | None,
        *,
        has_begun: bool,
    ) -> None:
        super().__init__(context.theme, context.theme.colors.warning_soft)
        text = (
            translate_filled(problem.title)
            if problem is not None
            else tr("This reply was interrupted")
        )
        self.setAccessibleName(text)
        row = FlowRow(gap=context.px(0.8))
        row.add(Label(text, "warning"))
        if resume is not None and has_begun:
            row.add(_button(tr("Continue"), tr("Continue the reply from here"), resume))
        elif resume is not None:
            row.add(_button(tr("Retry"), tr("Send the message again"), resume))
        self.add(row)
        if problem is not None and problem.hint:
            self.add(Label(sentences(translate_filled(problem.hint)), "muted"))


def _button(label: str, tip: str, clicked: Callable[[], None]) -> QPushButton:
    button = PushButton(label)
    button.setToolTip(tip)
    button.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
    button.clicked.connect(clicked)
    return button


class Divider(QWidget):
    """A horizontal line with text in its middle: a new segment, or the name of a day."""

    def __init__(self, context: RenderContext, about: str | date) -> None:
        super().__init__()
        self._context, self._about, self._text = context, about, ""
        self.update_text()

    def update_text(self) -> None:
        """Show what a day is called now: after midnight it is yesterday."""
        about = self._about
        self._text = about if isinstance(about, str) else day_label(about, _today())
        self.setAccessibleName(self._text)
        self.update()

    def height_for(self, _width: int) -> int:
        """Return the height, the same for any width."""
        return self._context.px(2.2)

    # Qt overrides

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the text and the line on both sides of it."""
        painter, colors = QPainter(self), self._context.theme.colors
        painter.setFont(self._context.theme.small_font())
        text_width = painter.fontMetrics().horizontalAdvance(self._text)
        text_width += 2 * self._context.px(0.8)
        painter.setPen(QColor(colors.muted))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self._text)
        painter.setPen(QPen(QColor(colors.border), 1))
        middle, half = self.height() // 2, (self.width() - text_width) // 2
        painter.drawLine(0, middle, half, middle)
        painter.drawLine(self.width() - half, middle, self.width(), middle)


def dividers_above(headers: Sequence[TurnHeader], index: int) -> Iterator[str | date]:
    """Yield what the dividers above a turn are about: the first of a day, the first of a segment."""
    header = headers[index]
    previous = headers[index - 1] if index else None
    day = header.started_at.astimezone().date()
    if previous is None or previous.started_at.astimezone().date() != day:
        yield day
    if previous is not None and previous.segment_number != header.segment_number:
        yield NEW_SEGMENT_TEXT


def update_days(transcript: QWidget) -> None:
    """Name the days of a transcript anew, as after midnight."""
    for divider in transcript.findChildren(Divider):
        divider.update_text()


def _today() -> date:
    return datetime.now().astimezone().date()


def day_label(day: date, today: date) -> str:
    """Return "Today", "Yesterday" or the date, such as "Sunday, 3 May 2026"."""
    days_ago = (today - day).days
    if days_ago in (0, 1):
        return (tr("Today"), tr("Yesterday"))[days_ago]
    return long_day(day)


def chip(text: str) -> QToolButton:
    """Return a small button with round corners."""
    button = ToolButton()
    button.setText(text.replace("&", "&&"))
    button.setAccessibleName(text)
    button.setProperty("kind", "chip")
    button.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
    button.setCursor(Qt.CursorShape.PointingHandCursor)
    return button


def file_row(context: RenderContext, files: Sequence[File]) -> FlowRow:
    """Return a row with a thumbnail for each stored image, then a chip for each other file."""
    row = FlowRow(gap=context.px(0.4))
    for file in sorted(files, key=lambda file: not isinstance(file, Image)):
        if isinstance(file, Image) and file.content_hash is not None and context.thumbnails:
            row.add(ImageButton(context, file, context.thumbnails))
        else:
            row.add(_file_chip(context, file))
    return row


def _file_chip(context: RenderContext, file: File) -> QToolButton:
    button = chip(one_line(file.name or "file", _CHIP_CHARS))
    if file.size_bytes is not None:
        button.setText(f"{button.text()}  \N{MIDDLE DOT}  {format_size(file.size_bytes)}")
    button.setToolTip(tooltip_text(f"{file.name}, {file.media_type}"))
    button.setEnabled(file.content_hash is not None)
    button.clicked.connect(partial(context.events.file_clicked.emit, file))
    return button


class ImageButton(ToolButton):
    """The thumbnail of an image, whose place is known before it is loaded; a click opens it."""

    def __init__(self, context: RenderContext, image: Image, thumbnails: Thumbnails) -> None:
        super().__init__()
        self._image, self._thumbnails = image, thumbnails
        size = QSize(image.width_px or _UNKNOWN_PX, image.height_px or _UNKNOWN_PX)
        most = QSize(context.px(_IMAGE_EM), context.px(_IMAGE_EM * 0.75))
        if size.width() > most.width() or size.height() > most.height():
            size = size.scaled(most, Qt.AspectRatioMode.KeepAspectRatio)
        least = context.px(_LEAST_EM)
        self._shown = size.expandedTo(QSize(1, 1))
        self.setFixedSize(self._shown.expandedTo(QSize(least, least)))
        self.setIconSize(self._shown)
        self.setProperty("kind", "image")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setAccessibleName(tr("Image {name}").format(name=image.name))
        self.setToolTip(tooltip_text(image.name))
        self.clicked.connect(partial(context.events.file_clicked.emit, image))
        thumbnails.loaded.connect(self._on_thumbnails_loaded)
        self._show_image()

    def _show_image(self) -> None:
        image = self._thumbnails.image(self._image.content_hash or "")
        if image is not None:
            self.setIcon(QIcon(QPixmap.fromImage(image)))

    def _on_thumbnails_loaded(self, content_hash: str) -> None:
        if content_hash == self._image.content_hash:
            self._show_image()


class WrittenRow(FlowRow):
    """What was saved to memory in a turn, with a button for each action."""

    def __init__(self, context: RenderContext, line: WrittenLine) -> None:
        super().__init__(gap=context.px(0.6))
        self.setAccessibleName(line.text)
        label = Label(one_line(line.text, _WRITTEN_CHARS), "small")
        label.setToolTip(tooltip_text(line.text))
        self.add(label)
        for button in _written_buttons(context, line):
            self.add(button)


class ProposalPanel(Panel):
    """What a model proposes to save to memory, in full, with a button for each answer."""

    def __init__(self, context: RenderContext, line: WrittenLine) -> None:
        super().__init__(context.theme, context.theme.colors.warning_soft)
        self.setAccessibleName(line.text)
        self.add(Label(line.text, "warning"))
        row = FlowRow(gap=context.px(0.6))
        for button in _written_buttons(context, line):
            row.add(button)
        self.add(row)


def _written_buttons(context: RenderContext, line: WrittenLine) -> Iterator[QPushButton]:
    for action, label in line.actions:
        request = partial(context.events.write_action_requested.emit, line.uid, action)
        yield _button(label, f"{label}: {one_line(line.text, _WRITTEN_CHARS)}", request)


class SourceRow(FlowRow):
    """A chip for each recalled source, cited ones first; many fold into a number.

    `clicked` receives the number of a source.
    """

    def __init__(
        self, context: RenderContext, sources: Sequence[SourceChip], clicked: Callable[[int], None]
    ) -> None:
        super().__init__(gap=context.px(0.35))
        self._clicked = clicked
        self.setAccessibleName(tr("From memory: {sources}").format(sources=len(sources)))
        self.add(Label(tr("From memory"), "small"))
        ordered = sorted(sources, key=lambda each: not each.cited)
        # One chip takes no more room than the number that would replace it.
        shown = len(ordered) if len(ordered) <= _SOURCES_SHOWN + 1 else _SOURCES_SHOWN
        for source in ordered[:shown]:
            self.add(self._chip(source))
        if rest := ordered[shown:]:
            more = chip(f"+{len(rest)}")
            more.setAccessibleName(tr("Show {rest} more from memory").format(rest=len(rest)))
            more.setToolTip(tr("Show the other sources"))
            more.clicked.connect(lambda: self._show_rest(more, rest))
            self.add(more)

    def _chip(self, source: SourceChip) -> QToolButton:
        button = chip(source.text)
        ink = Ink.Accent if source.cited else Ink.PlaceholderText
        set_icon(button, "check" if source.cited else source.icon, ink)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        cited = tr(", cited in the answer") if source.cited else ""
        button.setAccessibleName(f"{source.kind}: {source.text}{cited}")
        button.setAccessibleDescription(source.tip)
        button.setProperty("cited", source.cited)
        button.setToolTip(tooltip_text(source.tip))
        button.clicked.connect(partial(self._clicked, source.number))
        return button

    def _show_rest(self, more: QToolButton, rest: Sequence[SourceChip]) -> None:
        more.hide()
        chips = [self._chip(each) for each in rest]
        for each in chips:
            self.add(each)
        chips[0].setFocus(Qt.FocusReason.OtherFocusReason)


class EndButton(QPushButton):
    """Lies over the bottom of a view; hidden near the end."""

    def __init__(self, view: QWidget) -> None:
        super().__init__(view)
        self.setToolTip(tr("Go to the end (End)"))
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # whoever types below goes on typing
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.hide()

    def place(self, viewport: QWidget, margin_px: int, *, hidden_px: int, grows: bool) -> None:
        """Show it if `hidden_px` pixels below are many, or if text is added there."""
        shown = grows or hidden_px > viewport.height() * _FAR_SHARE
        self.setVisible(shown)
        if not shown:
            return
        text = _NEW_TEXT if grows else ""
        if text != self.text() or self.icon().isNull():
            self.setText(text)
            self.setAccessibleName(text or tr("Go to the end"))
            set_icon(self, "arrow-down", Ink.HighlightedText if grows else Ink.ButtonText)
            self.setProperty("kind", "primary" if grows else "")
            self.style().polish(self)
        hint = self.sizeHint()
        left = (viewport.width() - hint.width()) // 2
        top = viewport.height() - hint.height() - margin_px
        self.setGeometry(left, top, hint.width(), hint.height())
        self.raise_()
