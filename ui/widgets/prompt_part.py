"""Panel for one part of a prompt: a heading that opens to its text or to a line difference."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QResizeEvent, QTextBlockFormat, QTextCursor
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QVBoxLayout, QWidget

from app.chat.sent_prompt import LineMark
from app.domain.translation import format_number, tr
from ui.icons import Ink, set_icon
from ui.theme import current_theme
from ui.widgets.controls import ToolButton
from ui.widgets.plain_label import PlainLabel

Lines = Sequence[tuple[LineMark, str]]
_FOLDED_CHARS = 1_500
_MOST_CHARS = 200_000  # more would take a while to lay out
_MOST_LINES = 24
# Laying out one of 200,000 without a space takes 4 s, fifty of 4,000 take 0.1 s
_LINE_CHARS = 4_000
_PADDING_PX = 12


class PromptPartPanel(QFrame):
    """A heading and, while it is open, the part's text; long ones begin folded."""

    def __init__(self, name: str, figures: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("panel", "card")
        self.setAccessibleName(name)
        self._name = name
        self._figures = PlainLabel(figures, self, tone="small", wordWrap=True)
        self._lines: Lines | None = None
        self._words = ""
        self._is_filled = False
        self.head = ToolButton(self)
        self.head.setProperty("kind", "head")
        self.head.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.head.setCheckable(True)
        self.head.toggled.connect(self._on_head_toggled)
        self.text = _FittedText(self)
        self.text.setAccessibleName(name)
        self.text.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 6, 8, 8)
        column.setSpacing(4)
        column.addWidget(self.head, alignment=Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._figures)
        column.addWidget(self.text)
        self._label()

    def show_words(self, words: str) -> None:
        """Show the part's text."""
        self._lines, self._words = None, words
        self._renew(is_open=0 < len(words) <= _FOLDED_CHARS)

    def show_lines(self, lines: Lines) -> None:
        """Show a line difference; without any line it stays closed."""
        self._lines = lines
        self._words = "\n".join(f"{mark.value} {words[:_LINE_CHARS]}" for mark, words in lines)
        self._renew(is_open=bool(lines))

    def _renew(self, *, is_open: bool) -> None:
        self._is_filled = False
        self.head.setEnabled(bool(self._words))
        self.head.setChecked(is_open)
        self._on_head_toggled(is_open)

    def _on_head_toggled(self, is_open: bool) -> None:
        if is_open and not self._is_filled:
            self._is_filled = True
            self.text.setPlainText(_cut(self._words))
            self._color()
        self.text.setVisible(is_open)
        self._label()

    def _label(self) -> None:
        is_open = self.head.isChecked()
        self.head.setText(self._name)
        if self._words:
            set_icon(self.head, "chevron-down" if is_open else "chevron-right", Ink.PlaceholderText)
        state = "open" if is_open else "folded"
        self.head.setAccessibleName(f"{self._name}, {self._figures.text()}, {state}")

    def _color(self) -> None:
        """Give added and removed lines a background; the signs before them say it too."""
        colors = current_theme().colors
        grounds = {LineMark.ADDED: colors.accent_soft, LineMark.REMOVED: colors.error_soft}
        whole = QTextCursor(self.text.document())
        whole.beginEditBlock()
        for number, (mark, _) in enumerate(self._lines or ()):
            block = self.text.document().findBlockByNumber(number)
            if mark in grounds and block.isValid():
                look = QTextBlockFormat()
                look.setBackground(QColor(grounds[mark]))
                QTextCursor(block).mergeBlockFormat(look)
        whole.endEditBlock()


class _FittedText(QPlainTextEdit):
    """Read-only text at its full height up to a limit, beyond which it scrolls."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, readOnly=True)
        self.setProperty("plain", True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        font = QFont(self.font())
        font.setFamily(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family())
        self.setFont(font)
        self.document().contentsChanged.connect(self._fit)

    def _fit(self) -> None:
        lines = self._line_count()
        policy = Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        if lines > _MOST_LINES:
            policy = Qt.ScrollBarPolicy.ScrollBarAsNeeded
        self.setVerticalScrollBarPolicy(policy)
        self.setFixedHeight(
            min(lines, _MOST_LINES) * self.fontMetrics().lineSpacing() + _PADDING_PX
        )

    def _line_count(self) -> int:
        """Count wrapped lines up to the limit; the document counts an unpainted block as one."""
        layout, block, lines = self.document().documentLayout(), self.document().firstBlock(), 0
        while block.isValid() and lines <= _MOST_LINES:
            layout.blockBoundingRect(block)  # lays out its lines
            lines += max(1, block.layout().lineCount())
            block = block.next()
        return max(1, lines)

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit again: lines wrap differently."""
        super().resizeEvent(event)
        self._fit()


def _cut(words: str) -> str:
    """Return text that can be laid out quickly: cut at a limit, without very long lines."""
    shown = "\n".join(
        line[start : start + _LINE_CHARS]
        for line in words[:_MOST_CHARS].split("\n")
        for start in range(0, max(1, len(line)), _LINE_CHARS)
    )
    left = len(words) - _MOST_CHARS
    return (
        shown
        if left <= 0
        else tr("{shown}\n[{left} more characters; Copy has them all]").format(
            shown=shown, left=format_number(left)
        )
    )
