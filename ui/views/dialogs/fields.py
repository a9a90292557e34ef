"""Constructors of the fields and lists that several dialogs have."""

from PySide6.QtCore import QAbstractItemModel, Qt
from PySide6.QtWidgets import QAbstractItemDelegate, QLineEdit, QListView, QPushButton, QWidget


def line_edit(parent: QWidget, label: str, *, clearable: bool = False) -> QLineEdit:
    """Return a line edit with a placeholder, which is also its accessible name."""
    line = QLineEdit(parent)
    line.setPlaceholderText(label)
    line.setAccessibleName(label)
    line.setClearButtonEnabled(clearable)
    return line


def button(parent: QWidget, text: str, *, is_primary: bool = False) -> QPushButton:
    """Return a button that Enter in another field does not press."""
    made = QPushButton(text, parent)
    made.setAutoDefault(False)
    if is_primary:
        made.setProperty("kind", "primary")
    return made


def list_view(
    parent: QWidget, model: QAbstractItemModel, delegate: QAbstractItemDelegate, name: str
) -> QListView:
    """Return a list whose rows a delegate draws; it scrolls by pixels and never sideways."""
    view = QListView(parent)
    view.setModel(model)
    view.setItemDelegate(delegate)
    view.setAccessibleName(name)
    view.setMouseTracking(True)
    view.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
    view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    return view
