"""View of one rendered document: selection, links and find marks."""

from collections.abc import Sequence
from math import ceil

from PySide6.QtCore import QEvent, QMimeData, QPoint, QRectF, Qt, QUrl, Signal
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QAccessible,
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QGuiApplication,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QRegion,
    QTextCharFormat,
    QTextCursor,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QFrame, QTextBrowser, QTextEdit, QToolTip, QWidget

from app.domain.conversations import Image
from ui.rendering.decorations import paint_beneath
from ui.rendering.document import (
    ATTACHMENT_SCHEME,
    LINK,
    TranscriptDocument,
    blocks_of,
    fragments_of,
)
from ui.rendering.formats import Property, formats_of
from ui.rendering.inline import OBJECT, displayable_target, tooltip_text
from ui.rendering.plain_text import plain_selection
from ui.widgets.transcript.context import RenderContext
from ui.widgets.transcript.wide_areas import WideAreas

_K = Qt.Key
_INSIDE = ("#", f"{ATTACHMENT_SCHEME}:")  # targets that lead to no other place
_DESCRIBED = 20_000  # characters; longer texts are read by the line
_SCROLL_KEYS = {_K.Key_Up, _K.Key_Down, _K.Key_PageUp, _K.Key_PageDown, _K.Key_Home, _K.Key_End}
_STEP_KEYS = {_K.Key_Left, _K.Key_Right}


def _selection(cursor: QTextCursor, made: QTextCharFormat) -> QAbstractTextDocumentLayout.Selection:
    selection = QAbstractTextDocumentLayout.Selection()
    selection.cursor, selection.format = cursor, made
    return selection


class DocumentView(QTextBrowser):
    """Shows one document at its full height; the transcript does the scrolling.

    Signals:
        fold_requested: The key of a fold to open or close.
    """

    fold_requested = Signal(str)

    def __init__(
        self, document: TranscriptDocument, context: RenderContext, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._events = context.events
        self._formats = formats_of(context.theme)
        self._colors = context.theme.colors
        self._pressed_at: QPoint | None = None  # where a click began
        self._hovered = ""
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setOpenLinks(False)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setLineWrapMode(QTextEdit.LineWrapMode.FixedPixelWidth)
        self.viewport().setAutoFillBackground(False)
        self.viewport().setMouseTracking(True)
        palette, role = QPalette(QGuiApplication.palette()), QPalette.ColorRole
        palette.setColor(role.Text, QColor(self._colors.text))
        palette.setColor(role.Highlight, QColor(self._colors.accent))
        palette.setColor(role.HighlightedText, QColor(self._colors.on_accent))
        self.setPalette(palette)
        self._wide = WideAreas(self, self._formats)
        self._laid_out: object = None
        bar = self.horizontalScrollBar()
        # A selection that is dragged would scroll.
        bar.valueChanged.connect(lambda: bar.setValue(0))
        document.setParent(self)
        self.setDocument(document)
        self.highlighted.connect(self._on_highlighted)
        self.selectionChanged.connect(self._on_selection_changed)

    def height_for(self, width: int) -> int:
        """Lay out for `width` and return the height; an unchanged width and text cost nothing."""
        if self.lineWrapColumnOrWidth() != width:
            self.setLineWrapColumnOrWidth(width)
        document = self.document()
        if self._laid_out != (width, document.revision()):
            self._wide.update(document, width)
            self._laid_out = width, document.revision()
        last, below = document.lastBlock(), 0.0
        if last.blockFormat().property(Property.CODE) is not None:
            hidden = not last.isVisible() and self._formats.code_more
            below = self._formats.code_padding + 1 + hidden
        return ceil(document.size().height() + below) + 1

    def invalidate(self) -> None:
        """Have the next `height_for` lay out again, since parts were shown or hidden."""
        self._laid_out = None

    def natural_width(self) -> int:
        """Return the width without wrapping."""
        return ceil(self.document().idealWidth()) + 1

    def reveal(self, position: int) -> None:
        """Scroll sideways to the character at a position."""
        cursor = QTextCursor(self.document())
        cursor.setPosition(position)
        self._wide.show(self.cursorRect(cursor))

    def describe(self) -> None:
        """Give screen readers the text with formulas as LaTeX, which are images in the document.

        It takes some ms: without a screen reader it waits for the focus.
        """
        document = self.document()
        if not (QAccessible.isActive() or self.hasFocus()):
            return
        if OBJECT in (document.toPlainText() if document.characterCount() < _DESCRIBED else ""):
            self.setAccessibleDescription(plain_selection(document, 0, document.characterCount()))

    def has_links(self) -> bool:
        """Return whether there is a link for Tab to stop at."""
        blocks = blocks_of(self.document())
        return any(each.format.isAnchor() for block in blocks for each in block.textFormats())

    def mark_ranges(self, ranges: Sequence[tuple[int, int]], current: int | None) -> None:
        """Mark ranges of positions, (start, end) each; number `current` in another color."""
        selections: list[QTextEdit.ExtraSelection] = []
        for number, (start, end) in enumerate(ranges):
            selection = QTextEdit.ExtraSelection()
            selection.cursor = QTextCursor(self.document())
            selection.cursor.setPosition(start)
            selection.cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
            color = self._colors.mark_current if number == current else self._colors.mark
            selection.format = QTextCharFormat()
            selection.format.setBackground(QColor(color))
            selections.append(selection)
        self.setExtraSelections(selections)

    def y_of(self, position: int) -> int:
        """Return the top of the character at `position`, in pixels below the view's top."""
        cursor = QTextCursor(self.document())
        cursor.setPosition(min(position, self.document().characterCount() - 1))
        return self.cursorRect(cursor).top()

    def selected_text(self) -> str:
        cursor = self.textCursor()
        if not cursor.hasSelection():
            return ""
        return plain_selection(self.document(), cursor.selectionStart(), cursor.selectionEnd())

    def clear_selection(self) -> None:
        cursor = self.textCursor()
        if cursor.hasSelection():
            cursor.clearSelection()
            self.setTextCursor(cursor)

    def _on_highlighted(self, _url: QUrl) -> None:
        """Report the link with the keyboard's focus as it was written; `_url` is a resolved form."""
        target = self.textCursor().charFormat().anchorHref() if self.hasFocus() else ""
        self._point_at(displayable_target(target))

    def _on_selection_changed(self) -> None:
        if self.textCursor().hasSelection():
            self._events.selected.emit(self)

    def _point_at(self, shown: str) -> None:
        """Report a target, safe to display, under the mouse or the keyboard's focus; "" for none."""
        shown = "" if shown.startswith(_INSIDE) else shown
        if shown != self._hovered:
            self._hovered = shown
            self._events.link_hovered.emit(shown)

    def _activate(self, target: str, position: int) -> None:
        """Report the link around `position` with its label, or its image; go to a footnote or fold."""
        if target.startswith(LINK):
            self.fold_requested.emit(target.removeprefix(LINK))
            return
        if target.startswith("#"):
            for block in blocks_of(self.document()):
                number = block.blockFormat().property(Property.FOOTNOTE)
                if number is not None and str(number) == target[1:]:
                    self._events.scroll_requested.emit(self, self.y_of(block.position()))
                    break
            return
        fragments = fragments_of(self.document().findBlock(position))
        found = [each for each in fragments if each.charFormat().anchorHref() == target]
        scheme, _, content_hash = target.partition(":")
        images = [each.charFormat() for each in found if each.charFormat().isImageFormat()]
        if images and scheme == ATTACHMENT_SCHEME and content_hash.isalnum():
            name = str(images[0].property(Property.IMAGE))
            self._events.file_clicked.emit(Image(name, "", content_hash))
            return
        self._events.link_activated.emit(target, "".join(each.text() for each in found))

    # Qt overrides

    def loadResource(self, _kind: int, _name: QUrl | str) -> object:
        """Load nothing: attached images come from the document itself."""
        return None

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint decorations, then the text."""
        painter = QPainter(self.viewport())
        paint_beneath(painter, self.document(), self._formats, QRectF(event.rect()))
        painter.end()
        scrolled = self._wide.scrolled()
        if not scrolled:
            super().paintEvent(event)
            return
        rest = QRegion(event.rect())
        for area, offset in scrolled:
            rest -= QRegion(area)
            self._paint_text(QRegion(area & event.rect()), offset)
        self._paint_text(rest, 0)

    def _paint_text(self, region: QRegion, offset: int) -> None:
        """Paint a part of the text `offset` pixels to the left of its place."""
        if region.isEmpty():
            return
        painter, context = QPainter(self.viewport()), QAbstractTextDocumentLayout.PaintContext()
        painter.setClipRegion(region)
        painter.translate(-offset, 0)
        context.clip = QRectF(region.boundingRect().translated(offset, 0))
        context.palette = self.palette()
        selections = [_selection(each.cursor, each.format) for each in self.extraSelections()]
        if self.textCursor().hasSelection():
            made = QTextCharFormat()
            made.setBackground(QColor(self._colors.accent))
            made.setForeground(QColor(self._colors.on_accent))
            selections.append(_selection(self.textCursor(), made))
        context.selections = selections
        self.document().documentLayout().draw(painter, context)
        painter.end()

    def _moved(self, event: QMouseEvent) -> QMouseEvent:
        """Return a mouse event at the point of the document that is shown there."""
        at = event.position()
        moved = self._wide.in_document(at)
        if moved == at:
            return event
        return QMouseEvent(
            event.type(), moved, event.globalPosition(), event.button(), event.buttons(),
            event.modifiers(), event.pointingDevice(),
        )  # fmt: skip

    def createMimeDataFromSelection(self) -> QMimeData:
        """Return the selection as plain text only."""
        mime = QMimeData()
        mime.setText(self.selected_text())
        return mime

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Remember where a click began, to distinguish it from a selection."""
        event = self._moved(event)
        self._pressed_at = event.position().toPoint()
        super().mousePressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Select the word under the mouse."""
        super().mouseDoubleClickEvent(self._moved(event))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Report a clicked link by its target as written."""
        pressed_at, self._pressed_at = self._pressed_at, None
        event = self._moved(event)
        super().mouseReleaseEvent(event)
        at = event.position().toPoint()
        if event.button() is not Qt.MouseButton.LeftButton or pressed_at is None:
            return
        if (at - pressed_at).manhattanLength() >= QApplication.startDragDistance():
            return
        target = self.anchorAt(at)
        if target and target == self.anchorAt(pressed_at):
            self._activate(target, self.cursorForPosition(at).position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show a link's target, or the source of a formula."""
        event = self._moved(event)
        super().mouseMoveEvent(event)
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._events.dragged_to.emit(event.globalPosition().toPoint())
            return
        at = event.position().toPoint()
        target = self.anchorAt(at)
        shown = displayable_target(target)
        self._point_at(shown)
        is_external = target and not target.startswith(_INSIDE)
        tip = tooltip_text(shown) if is_external else self._format_at(at).toolTip()
        if tip:
            QToolTip.showText(event.globalPosition().toPoint(), tip, self)

    def _format_at(self, at: QPoint) -> QTextCharFormat:
        position = (
            self.document().documentLayout().hitTest(at.toPointF(), Qt.HitTestAccuracy.ExactHit)
        )
        cursor = QTextCursor(self.document())
        cursor.setPosition(max(0, min(position + 1, self.document().characterCount() - 1)))
        return cursor.charFormat() if position >= 0 else QTextCharFormat()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Describe the text; arrow keys arrive at a link."""
        super().focusInEvent(event)
        self.describe()
        is_next = event.reason() is Qt.FocusReason.TabFocusReason
        if is_next and self.has_links() and not self.textCursor().hasSelection():
            self.focusNextPrevChild(is_next)

    def leaveEvent(self, event: QEvent) -> None:
        """Report that no link is under the mouse."""
        self._point_at("")
        super().leaveEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Leave scrolling and stepping to the transcript; Return follows the focused link."""
        steps = event.key() in _STEP_KEYS and not event.modifiers()
        if event.key() in _SCROLL_KEYS or steps:
            event.ignore()
            return
        target = self.textCursor().charFormat().anchorHref()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and target:
            self._activate(target, self.textCursor().position())
            return
        super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll a wide area sideways; leave other scrolling to the transcript."""
        delta, sideways = (
            event.pixelDelta() or event.angleDelta() / 2,
            Qt.KeyboardModifier.ShiftModifier,
        )
        step = delta.x() or (delta.y() if event.modifiers() & sideways else 0)
        bar = self._wide.at(event.position().toPoint())
        if bar is not None and step and abs(step) >= abs(delta.y()):
            bar.setValue(bar.value() - step)
            event.accept()
            return
        event.ignore()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Leave the menu to the message."""
        event.ignore()

    def scrollContentsBy(self, _dx: int, _dy: int) -> None:
        """Do not scroll inside: the whole height is shown."""
