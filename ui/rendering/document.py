"""Text document that loads no file and nothing from the network, only attached images."""

from collections.abc import Callable, Iterator

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QImage, QTextBlock, QTextDocument, QTextFragment, QTextOption

from ui.theme import Theme

ATTACHMENT_SCHEME = "attachment"
ImageResolver = Callable[[str], QImage | None]


class TranscriptDocument(QTextDocument):
    """A document whose only external content is what `resolver` returns.

    Attributes:
        refused: Resources that were requested and not loaded, for tests.
    """

    def __init__(
        self, theme: Theme, resolver: ImageResolver | None = None, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._resolver = resolver
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

    # Qt overrides

    def loadResource(self, resource_type: int, name: QUrl | str) -> object:
        """Return an attached image; refuse everything else."""
        target = name.toString() if isinstance(name, QUrl) else name
        if resource_type == QTextDocument.ResourceType.ImageResource.value:
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
