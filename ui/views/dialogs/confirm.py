"""Questions before something is done: message boxes that return at once and call back."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from app.domain.translation import tr
from ui.icons import Ink, icon

_ICON_LINES = 1.8


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The texts of a question: the window's title, the question, what it means, and the buttons.

    `yes` agrees, `no` cancels. `other` is a third button, "" for none. The default button is `no`,
    or `yes` where that loses nothing; never that of a warning. All texts are plain.
    """

    title: str
    question: str
    details: str
    yes: str
    no: str = tr("Cancel")
    other: str = ""
    yes_is_default: bool = False
    is_warning: bool = False

    def __post_init__(self) -> None:
        if self.is_warning and self.yes_is_default:
            raise ValueError("Enter must not confirm what cannot be undone")


def confirm(
    parent: QWidget,
    texts: Confirmation,
    on_yes: Callable[[], object],
    on_no: Callable[[], object] = lambda: None,
    on_other: Callable[[], object] = lambda: None,
) -> QMessageBox:
    """Ask, and call what belongs to the button; closing the box means `no`. Return the box at once."""
    box = _box(parent, texts.title, texts.question, texts.details)
    if texts.is_warning:
        _show_icon(box, "triangle-alert", Ink.BrightText)
    else:
        _show_icon(box, "circle-question-mark", Ink.Accent)
    role = QMessageBox.ButtonRole
    yes = box.addButton(texts.yes, role.DestructiveRole if texts.is_warning else role.AcceptRole)
    other = box.addButton(texts.other, role.ActionRole) if texts.other else None
    no = box.addButton(texts.no, role.RejectRole)
    if texts.is_warning:
        yes.setProperty("kind", "danger")
        yes.style().polish(yes)  # adding it has measured it
    box.setDefaultButton(yes if texts.yes_is_default else no)

    def on_finished() -> None:
        clicked = box.clickedButton()
        if clicked is yes:
            on_yes()
        elif other is not None and clicked is other:
            on_other()
        else:
            on_no()

    box.finished.connect(on_finished)
    box.open()
    return box


def inform(
    parent: QWidget,
    title: str,
    text: str,
    details: str,
    *,
    more: str = "",
    action: str = "",
    act: Callable[[], object] = lambda: None,
) -> QMessageBox:
    """Show a result, `more` of it on request, and an optional action beside Close, the default.

    Return the box at once.
    """
    box = _box(parent, title, text, details)
    _show_icon(box, "info", Ink.Accent)
    box.setDetailedText(more)
    if action:
        box.addButton(action, QMessageBox.ButtonRole.ActionRole).clicked.connect(act)
    box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Close))
    box.open()
    return box


def _box(parent: QWidget, title: str, text: str, details: str) -> QMessageBox:
    """Return a message box of plain texts that deletes itself."""
    box = QMessageBox(parent, textFormat=Qt.TextFormat.PlainText, text=text)
    box.setWindowTitle(title)
    box.setInformativeText(details)
    box.finished.connect(box.deleteLater)
    return box


def _show_icon(box: QMessageBox, name: str, ink: Ink) -> None:
    side = round(box.fontMetrics().height() * _ICON_LINES)
    box.setIconPixmap(icon(name, ink).pixmap(QSize(side, side), box.devicePixelRatio()))


def confirm_deletion(
    parent: QWidget, name: str, details: str, delete: Callable[[], object]
) -> None:
    """Call `delete` once the user agrees that `name`, in quotes, is deleted permanently.

    `details` say what else goes or stays, "" for nothing.
    """
    question = tr("Forget {name} permanently?").format(name=name)
    title = tr("Forget")
    confirm_removal(parent, title, question, deletion_details(details), delete, title)


def confirm_removal(
    parent: QWidget,
    title: str,
    question: str,
    details: str,
    remove: Callable[[], object],
    yes: str = tr("Remove"),
) -> None:
    """Call `remove` once the user agrees to what cannot be undone; `yes` is the button that agrees."""
    confirm(parent, Confirmation(title, question, details, yes, is_warning=True), remove)


def deletion_details(details: str) -> str:
    """Return `details` followed by what permanent deletion means."""
    meaning = tr(
        "What is forgotten is gone at once, and its bytes are removed from the database, the journal and "
        "every backup at a quiet time within an hour. Exports that you made are not touched. This cannot "
        "be undone."
    )
    return f"{details} {meaning}".lstrip()


def confirm_unsaved(
    parent: QWidget,
    name: str,
    save: Callable[[], object],
    undo: Callable[[], object],
    leave: Callable[[], object],
) -> None:
    """Ask whether to `save` the unsaved changes to `name`, or to `undo` them and then `leave`.

    `save` leaves, too, once it has succeeded.
    """

    def discard() -> None:
        undo()
        leave()

    texts = Confirmation(
        tr("Unsaved changes"), tr("Save the changes to {name}?").format(name=name), tr("If you discard them, they are lost."),
        tr("Save"), other=tr("Discard"), yes_is_default=True,
    )  # fmt: skip
    confirm(parent, texts, save, on_other=discard)
