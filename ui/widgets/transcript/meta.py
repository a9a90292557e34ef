"""The line under a message: branches, what it cost, and what can be done with it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from ui.rendering.inline import tip_of
from ui.theme import Theme
from ui.widgets.transcript.look import Look
from ui.widgets.transcript.parts import FlowRow, small_label
from ui.widgets.transcript.values import Branch


@dataclass(frozen=True, slots=True)
class Action:
    """Something that can be done with a message: its words, a longer explanation, and the deed.

    What is wanted rarely is `only_in_menu`, not under the message.
    """

    label: str
    tip: str
    run: Callable[[], None]
    only_in_menu: bool = False


_MORE = "\u2026"

_button_widths: dict[tuple[Theme, str], int] = {}
"""What a button with these words takes, measured once for each look."""


class MetaRow(QWidget):
    """Branches and figures at one side, actions at the other; the actions show when asked.

    Nothing moves when they appear: where there is no room for both, they cover the end of the
    figures. Where the actions show always, the figures take a line of their own. Actions that have
    no room beside each other are in the menu of a last button.

    Signals:
        changed: The height may have changed.
        branch_requested: The message id and the sibling to show, counted from 1.
    """

    changed = Signal()
    branch_requested = Signal(object, int)

    def __init__(self, look: Look, actions: Sequence[Action], *, right: bool = False) -> None:
        super().__init__()
        self._look, self._right = look, right
        self._actions = tuple(each for each in actions if not each.only_in_menu)
        self._menu_actions = tuple(actions)
        self._bar: FlowRow | None = None
        self._more = self._button(_MORE, "What else can be done")
        self._more.setAccessibleName("More actions")
        self._more.clicked.connect(self._on_more_clicked)
        self._more.hide()
        self._branches: list[FlowRow] = []
        self._figures = small_label("", "small")
        self._figures.setParent(self)
        self._figures.hide()
        self._words = ""
        self._keeps_actions = False
        self._sample = self._button("X", "", is_sample=True)

    @property
    def buttons(self) -> tuple[QToolButton, ...]:
        """The action buttons, once they have been shown."""
        members = self._bar.members if self._bar is not None else ()
        return tuple(
            each for each in members if isinstance(each, QToolButton) and each is not self._more
        )

    def show_figures(self, words: str) -> None:
        """Show what the answer cost; empty shows nothing."""
        self._words = words
        self._figures.setVisible(bool(words))
        self._figures.setToolTip(tip_of(words))
        self._figures.setAccessibleName(words)
        self.changed.emit()

    def show_branches(self, branches: Sequence[Branch]) -> None:
        """Show a switch for each fork."""
        for row in self._branches:
            row.deleteLater()
        self._branches = [self._switch(each) for each in branches if each.count > 1]
        self.changed.emit()

    def show_actions(self, shown: bool) -> None:
        """Show or hide the actions; they are made the first time."""
        if shown and self._bar is None:
            self._bar = FlowRow(self, gap=self._look.px(0.1))
            for action in self._actions:
                button = self._button(action.label, action.tip)
                button.clicked.connect(action.run)
                self._bar.add(button)
            self._bar.add(self._more)
            self._more.hide()
        if self._bar is not None:
            self._bar.setVisible(shown)
            self.height_for(self.width())

    def keep_actions(self, kept: bool) -> None:
        """Have a line for the actions alone where both do not fit into one."""
        if kept != self._keeps_actions:
            self._keeps_actions = kept
            self.changed.emit()

    def fill_menu(self, menu: QMenu) -> None:
        """Add the actions to a menu."""
        for action in self._menu_actions:
            menu.addAction(action.label, action.run)

    def height_for(self, width: int) -> int:
        """Place switches, figures and actions; return the height of one or two lines."""
        self._sample.ensurePolished()
        line = self._sample.sizeHint().height()
        gap, bar = self._look.px(0.5), min(width, self._bar_width())
        switches = [row.natural_width() + gap for row in self._branches]
        left = max(0, width - sum(switches)) if self._right else 0
        for row, taken in zip(self._branches, switches, strict=True):
            row.height_for(taken - gap)
            row.setGeometry(left, 0, taken - gap, line)
            left += taken
        fits = not self._words or left + self._figures_width() + gap + bar <= width
        two_lines = self._keeps_actions and not fits
        covers = self._bar is not None and not self._bar.isHidden() and not two_lines
        self._place_figures(left, width, bar + gap if covers else 0, line)
        if self._bar is not None:
            bar = min(bar, self._fold(width - (0 if two_lines else sum(switches))))
            self._bar.height_for(bar)
            after = width - bar if self._words else left
            x = width - sum(switches) - bar if self._right else 0 if two_lines else after
            self._bar.setGeometry(max(0, x), line if two_lines else 0, bar, line)
        return 2 * line if two_lines else line

    def _fold(self, room: int) -> int:
        """Show as many actions as there is room for, first to last; return what they take."""
        widths = [self._button_width(each.label) for each in self._actions]
        gap, taken = self._look.px(0.1), self._bar_width()
        count = len(widths)
        while count and taken > room:
            count -= 1
            taken = sum(widths[:count]) + gap * count + self._button_width(_MORE)
        for number, button in enumerate(self.buttons):
            button.setVisible(number < count)
        self._more.setVisible(count < len(widths))
        return taken

    def _on_more_clicked(self) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for action, button in zip(self._actions, self.buttons, strict=True):
            if button.isHidden():
                menu.addAction(action.label, action.run)
        menu.popup(self._more.mapToGlobal(self._more.rect().bottomLeft()))

    def _place_figures(self, left: int, width: int, taken: int, line: int) -> None:
        if not self._words:
            return
        room = max(1, width - left - taken)
        metrics = QFontMetrics(self._figures.font())
        self._figures.setText(metrics.elidedText(self._words, Qt.TextElideMode.ElideRight, room))
        self._figures.setGeometry(left, 0, room, line)

    def _figures_width(self) -> int:
        self._figures.ensurePolished()
        return QFontMetrics(self._figures.font()).horizontalAdvance(self._words) + 2

    def _bar_width(self) -> int:
        """Return what the actions take, or will take once they are made: nothing moves then."""
        gap = self._look.px(0.1) * max(0, len(self._actions) - 1)
        return gap + sum(self._button_width(action.label) for action in self._actions)

    def _button_width(self, label: str) -> int:
        key = (self._look.theme, label)
        if key not in _button_widths:
            self._sample.setText(label)
            _button_widths[key] = self._sample.sizeHint().width()
        return _button_widths[key]

    def _switch(self, branch: Branch) -> FlowRow:
        row = FlowRow(self, gap=0)
        back = self._button("‹", "Show the branch before")
        forward = self._button("›", "Show the next branch")
        back.setEnabled(branch.position > 1)
        forward.setEnabled(branch.position < branch.count)
        for button, step in ((back, -1), (forward, 1)):
            wanted = branch.position + step
            button.clicked.connect(partial(self.branch_requested.emit, branch.message_id, wanted))
        place = small_label(f"{branch.position}/{branch.count}", "small")
        place.setAccessibleName(f"Branch {branch.position} of {branch.count}")
        for member in (back, place, forward):
            row.add(member)
        row.show()
        return row

    def _button(self, label: str, tip: str, *, is_sample: bool = False) -> QToolButton:
        button = QToolButton(self)
        button.setText(label)
        button.setToolTip(tip)
        button.setAccessibleDescription(tip)
        button.setProperty("kind", "action")
        button.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        if is_sample:
            button.hide()
        return button
