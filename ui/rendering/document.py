"""Text document that loads no file and nothing from the network: attached images and formulas."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QObject, QSizeF, Qt, QUrl
from PySide6.QtGui import (
    QImage,
    QTextBlock,
    QTextDocument,
    QTextFragment,
    QTextImageFormat,
    QTextOption,
    QTextTable,
)

from ui.rendering.formulas import Formula, draw, image_format
from ui.theme import Theme

ATTACHMENT_SCHEME = "attachment"
ImageResolver = Callable[[str], QImage | None]
LINK = "#fold-"
Resize = Callable[[QTextTable, bool], None]


class TranscriptDocument(QTextDocument):
    """A document whose only external content is what `resolver` returns.

    Formulas are drawn when they are first painted.

    Attributes:
        refused: Resources that were requested and not loaded, for tests.
    """

    def __init__(
        self, theme: Theme, resolver: ImageResolver | None = None, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._resolver = resolver
        self._formulas: dict[tuple[Formula, float, str], str] = {}
        self.refused: list[str] = []
        self.setUndoRedoEnabled(False)
        self.setDocumentMargin(0)
        self.setDefaultFont(theme.reading_font())
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setDefaultTextOption(option)

    def attached_image(self, target: str) -> QImage | None:
        """Return the image that `attachment:HASH` names, if there is one; no other target."""
        scheme, _, name = target.partition(":")
        if scheme != ATTACHMENT_SCHEME or self._resolver is None or not name.isalnum():
            return None
        return self._resolver(name)

    def image_format(self, target: str) -> QTextImageFormat | None:
        """Return the format of the attached image `target`, at most 32 by 24 em, if it exists."""
        image = self.attached_image(target)
        if image is None or image.isNull():
            return None
        size, em = QSizeF(image.size()), self.defaultFont().pixelSize()
        limit = QSizeF(32 * em, 24 * em)
        if size.width() > limit.width() or size.height() > limit.height():
            size = size.scaled(limit, Qt.AspectRatioMode.KeepAspectRatio)
        made = QTextImageFormat()
        made.setName(target)
        made.setWidth(size.width())
        made.setHeight(size.height())
        return made

    def formula_format(self, formula: Formula, em_px: float, color: str) -> QTextImageFormat:
        """Return the format of an image of `formula`, for text of this size and color."""
        name = self._formulas.setdefault((formula, em_px, color), f"formula:{len(self._formulas)}")
        return image_format(formula, name, em_px, self.defaultFont())

    # Qt overrides

    def loadResource(self, resource_type: int, url: QUrl | str) -> object:
        """Return a formula or an attached image; refuse everything else."""
        target = url.toString() if isinstance(url, QUrl) else url
        if resource_type == QTextDocument.ResourceType.ImageResource.value:
            for formula, name in self._formulas.items():
                if name == target:
                    return draw(*formula)
            image = self.attached_image(target)
            if image is not None:
                return image
        self.refused.append(target)
        return None


def blocks_of(document: QTextDocument, start: QTextBlock | None = None) -> Iterator[QTextBlock]:
    """Yield the blocks of a document in order, table cells included, from `start` or the first."""
    block = document.begin() if start is None else start
    while block.isValid():
        yield block
        block = block.next()


def fragments_of(block: QTextBlock) -> Iterator[QTextFragment]:
    """Yield the fragments of a block in order."""
    iterator = block.begin()
    while not iterator.atEnd():
        yield iterator.fragment()
        iterator += 1


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
