"""Buttons of code blocks: Wrap and Copy in the head, and below long code "Show all 212 lines"."""

from functools import partial
from typing import Protocol

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QCursor, QGuiApplication
from PySide6.QtWidgets import QApplication, QToolTip, QWidget

from app.domain.translation import format_number, tr
from ui.rendering.decorations import code_area
from ui.rendering.document_builder import DocumentBuilder
from ui.rendering.folding import code_key
from ui.rendering.formats import formats_of
from ui.theme import Theme
from ui.widgets.controls import action_button

_COPIED_FOR_MS = 1400


def copy_text(text: str) -> None:
    """Copy `text` to the clipboard, and say so at the mouse."""
    QGuiApplication.clipboard().setText(text)
    window = QApplication.activeWindow()
    if window is not None:
        QToolTip.showText(QCursor.pos(), tr("Copied"), window, QRect(), _COPIED_FOR_MS)


class CodeControls:
    """The buttons of all code blocks of a text, on `view`; `owner` opens folds and lays out again."""

    def __init__(self, owner: "CodeOwner", view: QWidget, theme: Theme) -> None:
        self._owner, self._view, self._theme = owner, view, theme
        self._buttons: list[_Buttons] = []
        self._width = -1  # the width they were placed for
        self._shows_all = True

    def show_all(self, shows_all: bool) -> None:
        """Show the buttons of code without a language too, which are above its text."""
        self._shows_all = shows_all
        for buttons in self._buttons:
            buttons.show(shows_all)

    def invalidate(self) -> None:
        """Have all buttons placed again."""
        self._width = -1

    def place(self, width: int) -> None:
        """Place the buttons of each code block that is new or may have moved."""
        blocks = self._owner.builder.writer.code_blocks
        while len(self._buttons) > len(blocks):
            self._buttons.pop().remove()
        start = max(0, len(self._buttons) - 1) if width == self._width else 0
        for index in range(start, len(blocks)):
            if index == len(self._buttons):
                self._buttons.append(_Buttons(self._owner, index, self._view))
            self._buttons[index].place(self._theme)
            self._buttons[index].show(self._shows_all)
        self._width = width


class CodeOwner(Protocol):
    """A text with code blocks, which `builder` has."""

    builder: DocumentBuilder

    def toggle_fold(self, key: str) -> None:
        """Open a fold of the text, or close it."""

    def code_changed(self) -> None:
        """Lay out again."""


class _Buttons:
    """The buttons of one code block."""

    def __init__(self, owner: CodeOwner, index: int, view: QWidget) -> None:
        self._owner, self._index = owner, index
        language = owner.builder.writer.code_blocks[index].language or "code"
        copies = tr("Copy {language}").format(language=language)
        self._copy = action_button(view, tr("Copy"), tr("Copy this code"), copies)
        wraps = tr("Wrap {language}").format(language=language)
        self._wrap = action_button(view, tr("Wrap"), tr("Wrap lines that are too long"), wraps)
        self._wrap.setCheckable(True)
        tip = tr("Show the code to its end, or its beginning alone")
        self._more = action_button(view, "", tip)
        for each in (self._copy, self._wrap, self._more):
            each.setCursor(Qt.CursorShape.PointingHandCursor)
        self._copy.clicked.connect(self._on_copy_clicked)
        self._wrap.clicked.connect(self._on_wrap_clicked)
        self._more.clicked.connect(partial(owner.toggle_fold, code_key(index)))

    def remove(self) -> None:
        """Delete the buttons."""
        for button in (self._copy, self._wrap, self._more):
            button.deleteLater()

    def show(self, shows_all: bool) -> None:
        """Show the buttons in the head; those of code without a language only if told so."""
        code = self._owner.builder.writer.code_blocks[self._index]
        block = self._owner.builder.document.findBlockByNumber(code.first_block)
        for button in (self._copy, self._wrap):
            button.setVisible(block.isVisible() and (shows_all or bool(code.language)))

    def place(self, theme: Theme) -> None:
        """Place the buttons; those of hidden code are hidden."""
        builder, formats = self._owner.builder, formats_of(theme)
        block = builder.document.findBlockByNumber(
            builder.writer.code_blocks[self._index].first_block
        )
        is_visible = block.isVisible()
        area = code_area(builder.document, formats, block).toRect() if is_visible else None
        fold = builder.writer.folds.get(code_key(self._index))
        is_folded = fold is not None and code_key(self._index) not in builder.writer.toggled
        self._more.setVisible(is_visible and is_folded)
        if area is None:
            return
        right, top = area.right() - round(theme.em(0.3)), area.top() + round(theme.em(0.2))
        for button in (self._copy, self._wrap):
            hint = button.sizeHint()
            button.setGeometry(right - hint.width(), top, hint.width(), hint.height())
            right -= hint.width() + round(theme.em(0.2))
        if fold is not None and is_folded:
            lines = fold.last - block.blockNumber() + 1
            text = tr("Show all {lines} lines").format(lines=format_number(lines))
            self._more.setText(text)
            self._more.setAccessibleName(text)
            hint = self._more.sizeHint()
            bottom = area.bottom() - round(theme.em(0.35))
            left = area.left() + round(formats.code_padding * 0.5)
            self._more.setGeometry(left, bottom - hint.height(), hint.width(), hint.height())

    def _on_copy_clicked(self) -> None:
        copy_text(self._owner.builder.writer.code_blocks[self._index].source)

    def _on_wrap_clicked(self, is_wrapped: bool) -> None:
        self._owner.builder.writer.set_wrapped(self._index, is_wrapped)
        self._owner.code_changed()
