"""A drawn document on screen: selectable, with links that only say they were activated."""

from collections.abc import Sequence
from math import ceil

from PySide6.QtCore import QEvent, QMimeData, QPoint, QRectF, Qt, QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QGuiApplication,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QTextCharFormat,
    QTextCursor,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QFrame, QTextBrowser, QTextEdit, QToolTip, QWidget

from ui.rendering.composer import Composer
from ui.rendering.decorations import paint_beneath
from ui.rendering.formats import formats_of
from ui.rendering.inline import exposed, tip_of
from ui.rendering.plain import plain_selection
from ui.rendering.properties import Property
from ui.theme import Theme

_LEFT_TO_SCROLL_AREA = frozenset(
    {
        Qt.Key.Key_Up,
        Qt.Key.Key_Down,
        Qt.Key.Key_PageUp,
        Qt.Key.Key_PageDown,
        Qt.Key.Key_Home,
        Qt.Key.Key_End,
    }
)


class DocumentView(QTextBrowser):
    """Shows one composer's document at its full height; the transcript does the scrolling.

    Signals:
        link_activated: A link's true target and the words it stands behind, by mouse or Return.
        link_hovered: The target under the mouse or the keyboard's focus, as it may be shown; empty
            when there is none.
        dragged_to: While words are selected: where the mouse is, in global coordinates.
        menu_requested: Where the context menu was asked for, in global coordinates.
    """

    link_activated = Signal(str, str)
    link_hovered = Signal(str)
    dragged_to = Signal(QPoint)
    menu_requested = Signal(QPoint)

    def __init__(self, composer: Composer, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._formats = formats_of(theme)
        self._colours = theme.colours
        self._pressed_at: QPoint | None = None
        self._hovered = ""
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setOpenLinks(False)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setLineWrapMode(QTextEdit.LineWrapMode.FixedPixelWidth)
        self.viewport().setAutoFillBackground(False)
        self.viewport().setMouseTracking(True)
        self.setPalette(self._own_palette())
        composer.document.setParent(self)
        self.setDocument(composer.document)
        self.highlighted.connect(self._on_highlighted)

    def height_for(self, width: int) -> int:
        """Lay the words out for `width` and return their height; the same width costs nothing."""
        if self.lineWrapColumnOrWidth() != width:
            self.setLineWrapColumnOrWidth(width)
        last = self.document().lastBlock().blockFormat()
        below = 0.0 if last.property(Property.CODE) is None else self._formats.code_padding + 1
        return ceil(self.document().size().height() + below) + 1

    def natural_width(self) -> int:
        """Return the width the words would take without wrapping, as laid out now."""
        return ceil(self.document().idealWidth()) + 1

    def has_links(self) -> bool:
        """Return whether Tab has somewhere to stop inside."""
        block = self.document().begin()
        while block.isValid():
            if any(each.format.isAnchor() for each in block.textFormats()):
                return True
            block = block.next()
        return False

    def mark_ranges(self, ranges: Sequence[tuple[int, int]], current: int | None) -> None:
        """Mark stretches of the document, (start, end) each; `current` stands out."""
        selections: list[QTextEdit.ExtraSelection] = []
        for number, (start, end) in enumerate(ranges):
            selection = QTextEdit.ExtraSelection()
            cursor = QTextCursor(self.document())
            cursor.setPosition(start)
            cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
            made = QTextCharFormat()
            colour = self._colours.mark_current if number == current else self._colours.mark
            made.setBackground(QColor(colour))
            selection.cursor, selection.format = cursor, made
            selections.append(selection)
        self.setExtraSelections(selections)

    def y_of(self, position: int) -> int:
        """Return how far below the top the character at `position` stands, in pixels."""
        cursor = QTextCursor(self.document())
        cursor.setPosition(min(position, self.document().characterCount() - 1))
        return self.cursorRect(cursor).top()

    def y_of_footnote(self, number: int) -> int | None:
        """Return how far below the top the footnote stands; None if it is not drawn (yet)."""
        block = self.document().begin()
        while block.isValid():
            if block.blockFormat().property(Property.FOOTNOTE) == number:
                return self.y_of(block.position())
            block = block.next()
        return None

    def selected_text(self) -> str:
        """Return the selection as one would type it."""
        cursor = self.textCursor()
        if not cursor.hasSelection():
            return ""
        return plain_selection(self.document(), cursor.selectionStart(), cursor.selectionEnd())

    def clear_selection(self) -> None:
        """Select nothing."""
        cursor = self.textCursor()
        if cursor.hasSelection():
            cursor.clearSelection()
            self.setTextCursor(cursor)

    def _own_palette(self) -> QPalette:
        palette, role = QPalette(QGuiApplication.palette()), QPalette.ColorRole
        palette.setColor(role.Text, QColor(self._colours.text))
        palette.setColor(role.Highlight, QColor(self._colours.accent))
        palette.setColor(role.HighlightedText, QColor(self._colours.on_accent))
        return palette

    def _on_highlighted(self, _url: QUrl) -> None:
        """Show where the keyboard's link leads; Qt tells its resolved form, we want the true one."""
        target = self.textCursor().charFormat().anchorHref() if self.hasFocus() else ""
        self._point_at(exposed(target))

    def _point_at(self, shown: str) -> None:
        if shown != self._hovered:
            self._hovered = shown
            self.link_hovered.emit(shown)

    def _activate(self, target: str, at: int) -> None:
        self.link_activated.emit(target, self._label_of(target, at))

    def _label_of(self, target: str, at: int) -> str:
        """Return the words of the link around position `at`."""
        block = self.document().findBlock(at)
        iterator, words = block.begin(), ""
        while not iterator.atEnd():
            fragment = iterator.fragment()
            if fragment.charFormat().anchorHref() == target:
                words += fragment.text()
            iterator += 1
        return words

    # Qt overrides

    def loadResource(self, _kind: int, _name: QUrl | str) -> object:
        """Load nothing: attached pictures come from the document itself."""
        return None

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint what lies beneath the words, then the words."""
        painter = QPainter(self.viewport())
        paint_beneath(painter, self.document(), self._formats, QRectF(event.rect()))
        painter.end()
        super().paintEvent(event)

    def createMimeDataFromSelection(self) -> QMimeData:
        """Return the selection as plain text only."""
        mime = QMimeData()
        mime.setText(self.selected_text())
        return mime

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Remember where a click began, to tell it from a selection."""
        self._pressed_at = event.position().toPoint()
        super().mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Tell of a clicked link by its true target; Qt's own form of it is never used."""
        pressed_at, self._pressed_at = self._pressed_at, None
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
        """Show where a link leads, or what mathematics was written as."""
        super().mouseMoveEvent(event)
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.dragged_to.emit(event.globalPosition().toPoint())
            return
        at = event.position().toPoint()
        target = self.anchorAt(at)
        self._point_at(exposed(target))
        if target and not target.startswith("#"):
            QToolTip.showText(event.globalPosition().toPoint(), tip_of(exposed(target)), self)
            return
        tip = self._char_at(at).toolTip()
        if tip:
            QToolTip.showText(event.globalPosition().toPoint(), tip, self)

    def _char_at(self, at: QPoint) -> QTextCharFormat:
        position = (
            self.document().documentLayout().hitTest(at.toPointF(), Qt.HitTestAccuracy.ExactHit)
        )
        cursor = QTextCursor(self.document())
        cursor.setPosition(max(0, min(position + 1, self.document().characterCount() - 1)))
        return cursor.charFormat() if position >= 0 else QTextCharFormat()

    def leaveEvent(self, event: QEvent) -> None:
        """Nothing is pointed at any more."""
        self._point_at("")
        super().leaveEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Leave moving about to the transcript; Return follows the focused link."""
        if event.key() in _LEFT_TO_SCROLL_AREA:
            event.ignore()
            return
        target = self.textCursor().charFormat().anchorHref()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and target:
            self._activate(target, self.textCursor().position())
            return
        super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the transcript."""
        event.ignore()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Ask for the transcript's own menu."""
        self.menu_requested.emit(event.globalPos())

    def scrollContentsBy(self, _dx: int, _dy: int) -> None:
        """Never scroll inside: the whole height is shown."""
