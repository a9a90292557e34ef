"""Parts that presenters share: their base class, navigation, menus and small questions."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, dataclass_transform

from PySide6.QtCore import QObject, QPoint
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QInputDialog, QLineEdit, QMenu, QWidget

from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.translation import tr
from ui.bridge import Bridge
from ui.widgets.banner import Banner

_QUESTION_CHARS = 70
D = TypeVar("D", bound=QDialog)
OpenDocument = Callable[[str, str], object]
OpenPage = Callable[[str], object]
OpenTurn = Callable[[ConversationId, ExchangeId | None, MessageId | None], object]


@dataclass_transform(eq_default=False)
@dataclass(eq=False, repr=False)
class Presenter(QObject):
    """The base class of presenters, which makes each a dataclass.

    The fields of a presenter are what it uses; `_set_up` creates its state and connects it.
    """

    _bridge: Bridge

    def __init_subclass__(cls) -> None:
        dataclass(eq=False, repr=False)(cls)

    def __post_init__(self) -> None:
        super().__init__(self._bridge)
        self._set_up()

    def _set_up(self) -> None:
        """Create the state and connect it; nothing by default."""

    def _open_dialog(self, dialog: D, *tasks: str, is_modal: bool = True) -> D:
        """Open a dialog and return it; its end cancels the tasks that load what it shows."""
        for name in tasks:
            dialog.finished.connect(lambda _, name=name: self._bridge.cancel(name))
        if is_modal:
            dialog.open()
        else:
            dialog.show()
        return dialog


@dataclass(frozen=True, slots=True)
class Navigation:
    """What shows something elsewhere in the window.

    `turn` shows a conversation, at an exchange and one of its messages where given; `fact` and
    `memory` show the memory pane at an id; `page` shows a manual page or document by its place (man:grep.1) and title; `explain`
    shows why an exchange with a label is ranked as it is for a question; `import_files` and
    `export` open their dialogs; `preset` chooses the preset (uid) of a conversation that begins;
    `new_routine` shows an editor, `run_routine` runs one by its uid.
    """

    turn: OpenTurn
    fact: Callable[[int], object]
    memory: Callable[[int], object]
    page: OpenDocument
    explain: Callable[[ExchangeId, str, str], object]
    import_files: Callable[[list[Path]], object]
    export: Callable[[Sequence[ConversationId]], object]
    preset: Callable[[str], object]
    new_routine: Callable[[], object]
    run_routine: Callable[[str], object]


def show_menu(
    parent: QWidget,
    position: QPoint,
    entries: Iterable[tuple[str, Callable[[], object]]],
    heading: str = "",
) -> None:
    """Show a menu of texts and what they run, below a heading if there is one."""
    menu = QMenu(parent)
    if heading:
        menu.addAction(heading).setEnabled(False)
        menu.addSeparator()
    for text, run in entries:
        menu.addAction(text).triggered.connect(lambda _checked=False, run=run: run())
    menu.popup(position)
    menu.aboutToHide.connect(menu.deleteLater)


def ask_for_text(
    parent: QWidget, title: str, label: str, value: str, take: Callable[[str], object]
) -> None:
    """Ask for a line of text, and call `take` with it."""
    dialog = QInputDialog(parent)
    dialog.setWindowTitle(title)
    dialog.setLabelText(label)
    dialog.setTextValue(value)
    for line in dialog.findChildren(QLineEdit):  # the layout overrides a minimum of the dialog
        line.setMinimumWidth(line.fontMetrics().averageCharWidth() * _QUESTION_CHARS)
    dialog.textValueSelected.connect(take)
    dialog.finished.connect(dialog.deleteLater)
    dialog.open()


def copy_link(link: str, banner: Banner) -> None:
    """Copy a link to the clipboard, and say so."""
    QGuiApplication.clipboard().setText(link)
    banner.show_message(tr("{link} was copied.").format(link=link), brief=True)
