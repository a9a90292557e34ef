"""Folding: parts of a document that are hidden until they are opened, `details` and long code.

Hidden blocks stay in the document, so that its positions, and what is found in it, do not change.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from PySide6.QtGui import QTextDocument, QTextTable

from ui.rendering.document import blocks_of

LINK = "#fold-"
Resize = Callable[[QTextTable, bool], None]


@dataclass(frozen=True, slots=True)
class FoldedBlocks:
    """The numbers of the first and the last block that are hidden while it is closed.

    `opens` says that it is open until it is toggled.
    """

    first: int
    last: int
    opens: bool = False

    def hides(self, number: int) -> bool:
        """Return whether it hides the block with this number while it is closed."""
        return self.first <= number <= self.last


def code_key(number: object) -> str:
    """Return the key of the code block with this number in the text."""
    return f"code-{number}"


def closed_of(folds: Mapping[str, FoldedBlocks], toggled: set[str]) -> list[FoldedBlocks]:
    """Return the folds that are closed; `toggled` has the keys of those that were toggled."""
    return [fold for key, fold in folds.items() if fold.opens == (key in toggled)]


def detail_key(number: int) -> str:
    """Return the key of the `details` with this number in the text."""
    return f"{number}"


def hide_closed(
    document: QTextDocument, folds: Iterable[FoldedBlocks], first: int, resize: Resize
) -> None:
    """Hide the blocks of closed folds, from block number `first` on."""
    for fold in folds:
        if fold.last >= first:
            _set_visible(document, FoldedBlocks(max(first, fold.first), fold.last), set(), resize)


def toggle(
    document: QTextDocument,
    folds: Mapping[str, FoldedBlocks],
    toggled: set[str],
    key: str,
    resize: Resize,
) -> None:
    """Open the fold `key`, or close it, in `toggled` too; those inside it stay as they are."""
    if key not in folds:
        return
    toggled ^= {key}
    closed = closed_of(folds, toggled)
    changed = folds[key]
    shown = {
        number
        for number in range(changed.first, changed.last + 1)
        if not any(fold.hides(number) for fold in closed)
    }
    _set_visible(document, changed, shown, resize)


def _set_visible(
    document: QTextDocument, fold: FoldedBlocks, shown: set[int], resize: Resize
) -> None:
    begin = end = document.findBlockByNumber(fold.first)
    for block in blocks_of(document, begin):
        if (number := block.blockNumber()) > fold.last:
            break
        block.setVisible(number in shown)
        end = block
    above = begin.previous().position() if begin.previous().isValid() else 0
    document.markContentsDirty(above, end.position() + end.length() - above)
    for frame in document.rootFrame().childFrames():
        if isinstance(frame, QTextTable):
            number = frame.firstCursorPosition().blockNumber()
            if fold.hides(number):
                resize(frame, number not in shown)
