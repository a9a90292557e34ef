"""A document that loads nothing: no file, no network, only pictures among the attachments."""

from collections.abc import Callable

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QImage, QTextDocument, QTextOption

from ui.theme import Theme

ATTACHMENT_SCHEME = "attachment"
ImageResolver = Callable[[str], QImage | None]


class TranscriptDocument(QTextDocument):
    """A document of ours. Nothing in it is ever taken from outside except by `resolver`.

    Attributes:
        refused: Targets that something asked for and did not get; tests read it.
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
        """Return the picture `attachment:HASH` names, if there is one; other targets never."""
        scheme, _, name = target.partition(":")
        if scheme != ATTACHMENT_SCHEME or self._resolver is None or not name.isalnum():
            return None
        return self._resolver(name)

    # Qt overrides

    def loadResource(self, resource_type: int, name: QUrl | str) -> object:
        """Return an attached picture, and nothing else whatever is asked for."""
        target = name.toString() if isinstance(name, QUrl) else name
        if resource_type == QTextDocument.ResourceType.ImageResource.value:
            image = self.attached_image(target)
            if image is not None:
                return image
        self.refused.append(target)
        return None
