"""Viewer of an attached image: fit, actual size, zoom with the wheel, copy and save."""

from PySide6.QtCore import QPoint, QPointF, Qt, Signal
from PySide6.QtGui import (
    QGuiApplication,
    QImage,
    QKeySequence,
    QPainter,
    QPixmap,
    QResizeEvent,
    QShortcut,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QGraphicsScene, QGraphicsView, QStackedWidget, QWidget

from app.domain.translation import format_percent, tr
from ui.widgets.controls import button, column_in, row_of
from ui.widgets.dialog import Dialog
from ui.widgets.plain_label import PlainLabel

_STEP = 1.25
_SCALE_MIN, _SCALE_MAX = 0.02, 16.0


class ImageViewer(Dialog):
    """Shows an image, which is loaded after the dialog has opened.

    Signals:
        save_requested: Save the file elsewhere.
    """

    save_requested = Signal()

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, (900, 680), parent)
        self.view = ImageView(self)
        self.view.setAccessibleName(tr("Image {name}").format(name=name))
        self.status.setText(tr("Loading\u2026"))
        self.status.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._pages = QStackedWidget(self)
        self._pages.addWidget(self.status)
        self._pages.addWidget(self.view)
        self._size = PlainLabel("", self, tone="small")
        self.fit, self.actual, self.copy, self.save, close = (
            button(self, text, slot, tip=tip)
            for text, slot, tip in (
                (tr("Fit"), self.view.fit, tr("Fit the image into the window (F)")),
                (
                    "100%", self.view.show_actual_size,
                    tr("Show the image in its own size (1); the wheel zooms"),
                ),
                (tr("Copy"), self._on_copy_clicked, ""),
                (tr("Save as\u2026"), self.save_requested, ""),
                (tr("Close"), self.reject, ""),
            )
        )  # fmt: skip
        foot = row_of(self._size, None, self.fit, self.actual, self.copy, self.save, close)
        column_in(self, (self._pages, 1), foot)
        for key, slot in (
            ("F", self.view.fit),
            ("1", self.view.show_actual_size),
            ("+", lambda: self.view.zoom(_STEP)),
            ("=", lambda: self.view.zoom(_STEP)),
            ("-", lambda: self.view.zoom(1 / _STEP)),
        ):
            QShortcut(QKeySequence(key), self).activated.connect(slot)
        QShortcut(QKeySequence.StandardKey.Copy, self).activated.connect(self._on_copy_clicked)
        for each in (self.fit, self.actual, self.copy):
            each.setEnabled(False)
        self.view.scaled.connect(self._on_view_scaled)

    def show_image(self, image: QImage) -> None:
        self.view.show_image(image)
        self._pages.setCurrentWidget(self.view)
        for each in (self.fit, self.actual, self.copy):
            each.setEnabled(True)
        self.view.setFocus()

    def _on_view_scaled(self, factor: float) -> None:
        if (image := self.view.image) is not None:
            size = tr("{width} × {height} px").format(width=image.width(), height=image.height())
            self._size.setText(f"{size} \N{MIDDLE DOT} {format_percent(factor)}")

    def _on_copy_clicked(self) -> None:
        if self.view.image is not None:
            QGuiApplication.clipboard().setImage(self.view.image)


class ImageView(QGraphicsView):
    """An image that can be zoomed and dragged.

    Attributes:
        image: The image; None until it is loaded.

    Signals:
        scaled: Its `scale_factor`, after a change.
    """

    scaled = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.image: QImage | None = None
        self._is_fitted = True
        self.setScene(QGraphicsScene(self))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        self.setDragMode(QGraphicsView.DragMode.ScrollHandDrag)
        self.setTransformationAnchor(QGraphicsView.ViewportAnchor.NoAnchor)

    @property
    def scale_factor(self) -> float:
        """Screen pixels for each pixel of the image."""
        return self.transform().m11()

    def show_image(self, image: QImage) -> None:
        self.image = image
        self.scene().clear()
        item = self.scene().addPixmap(QPixmap.fromImage(image))
        item.setTransformationMode(Qt.TransformationMode.SmoothTransformation)
        self.scene().setSceneRect(item.boundingRect())
        self.fit()

    def fit(self) -> None:
        """Fit the image into the view; a small one is not enlarged."""
        self._is_fitted = True
        self.fitInView(self.sceneRect(), Qt.AspectRatioMode.KeepAspectRatio)
        if self.scale_factor > 1:
            self.resetTransform()
        self.scaled.emit(self.scale_factor)

    def show_actual_size(self) -> None:
        self._is_fitted = False
        self.resetTransform()
        self.scaled.emit(1.0)

    def zoom(self, factor: float, at: QPoint | None = None) -> None:
        """Enlarge by a factor, within limits; `at` in the view, by default its middle, stays in place.

        Qt's own anchor is where the mouse moved last, which is nowhere until it does.
        """
        wanted, middle = self.scale_factor * factor, self.viewport().rect().center()
        if self.image is None or not _SCALE_MIN <= wanted <= _SCALE_MAX:
            return
        at = middle if at is None else at
        fixed, self._is_fitted = self.mapToScene(at), False
        self.scale(factor, factor)
        self.centerOn(fixed + QPointF(middle - at) / wanted)
        self.scaled.emit(wanted)

    # Qt overrides

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom at the mouse."""
        if delta := event.angleDelta().y():
            self.zoom(_STEP if delta > 0 else 1 / _STEP, event.position().toPoint())
        event.accept()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit again if the image was fitted."""
        super().resizeEvent(event)
        if self._is_fitted and self.image is not None:
            self.fit()
