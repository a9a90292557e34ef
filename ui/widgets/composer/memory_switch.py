"""The memory switch of the composer: what memory brings to the message, and whether it may."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QHideEvent, QIcon
from PySide6.QtWidgets import QCheckBox, QFrame, QRadioButton, QWidget

from app.domain.translation import tr
from ui.icons import set_icon
from ui.widgets.composer.model_picker import list_place
from ui.widgets.controls import CompactButton, button, clear, column_in, row_of, scroll_area
from ui.widgets.plain_label import plain_label

if TYPE_CHECKING:
    from app.domain.conversations import RecallChoice
    from app.domain.ids import PassageId

_SIZE = QSize(480, 460)


class MemoryUse(StrEnum):
    """What memory is used for; the texts are those of the choices."""

    ON = tr("Use memory")
    NOT_NOW = tr("Not for this message")
    NOT_HERE = tr("Not in this conversation")


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """Something that memory brings: `title` with the date, its kind, and the sentence it is quoted by."""

    passage_id: "PassageId"
    title: str
    kind: str
    sentence: str
    is_left_out: bool = False


class MemorySwitch(CompactButton):
    """A button that says what memory brings, and opens a list of it to choose from.

    Signals:
        choice_changed: The choice for this message has changed.
        here_switched: Whether memory is used in this conversation.
        settings_requested: Show the settings of recall.
    """

    choice_changed = Signal()
    here_switched = Signal(bool)
    settings_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Memory"), parent)
        self._choice: RecallChoice | None = None
        self._is_on = self._is_on_here = True
        self._items: Sequence[MemoryItem] | None = None
        self._popup: _RecalledPopup | None = None
        self.clicked.connect(self.open)
        self.show_text()

    @property
    def choice(self) -> "RecallChoice":
        """What the user chose for this message."""
        from app.domain.conversations import ANY_RECALL

        return ANY_RECALL if self._choice is None else self._choice

    @property
    def use(self) -> MemoryUse:
        if not self._is_on_here:
            return MemoryUse.NOT_HERE
        is_on = self._choice is None or self._choice.is_on
        return MemoryUse.ON if is_on else MemoryUse.NOT_NOW

    @property
    def items(self) -> Sequence[MemoryItem]:
        """What would be quoted, and what the user left out."""
        return self._items or ()

    def show_use(self, *, is_on: bool, is_on_here: bool) -> None:
        """Show whether memory is on in the settings, and in this conversation."""
        self._is_on, self._is_on_here = is_on, is_on_here
        self.show_text()

    def show_choice(self, choice: "RecallChoice") -> None:
        """Show what was chosen for another message."""
        self._choice, self._items = choice, None
        self.show_text()

    def show_items(self, items: Sequence[MemoryItem] | None) -> None:
        """Show what memory brings to the text typed so far; None while nothing is searched for."""
        self._items = items
        self.show_text()

    def open(self) -> None:
        if self._popup is None:
            self._popup = _RecalledPopup(self)
        place = QRect(self.mapToGlobal(QPoint(0, 0)), self.size())
        self._fill()
        self._popup.setGeometry(
            list_place(place, self.screen().availableGeometry(), self._popup.wanted_size())
        )
        self._popup.show()
        self._popup.focus_first()

    def choose(self, use: MemoryUse) -> None:
        """Use memory, or not."""
        was_on_here = self._is_on_here
        self._is_on_here = use is not MemoryUse.NOT_HERE
        if self._is_on_here != was_on_here:
            self.here_switched.emit(self._is_on_here)
        self._choose(replace(self.choice, is_on=use is not MemoryUse.NOT_NOW))

    def leave_out(self, passage_id: "PassageId", *, left_out: bool) -> None:
        """Leave something out of this message, or use it again."""
        others = self.choice.left_out - {passage_id}
        self._choose(replace(self.choice, left_out=others | {passage_id} if left_out else others))

    def _choose(self, choice: "RecallChoice") -> None:
        is_changed, self._choice = choice != self.choice, choice
        self.show_text()
        if is_changed:
            self.choice_changed.emit()

    def show_text(self) -> None:
        """Show what memory brings; an icon and a number where there is little room."""
        text = self._text()
        set_icon(self, "history") if self.is_compact else self.setIcon(QIcon())
        self.setText(self._short_text() if self.is_compact else text)
        self.setAccessibleDescription(text)
        is_off = not self._is_on or self.use is not MemoryUse.ON
        if self.property("off") != is_off:
            self.setProperty("off", is_off)
            if self.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
                self.style().unpolish(self)
                self.style().polish(self)
        self.setToolTip(tr("What memory brings to this message"))
        if self._popup is not None and self._popup.isVisible():
            self._fill()

    def _short_text(self) -> str:
        """Return what stands beside the icon: the number, or that it is off."""
        if not self._is_on or self.use is not MemoryUse.ON:
            return tr("off")
        return "" if self._items is None else str(sum(not each.is_left_out for each in self._items))

    def _text(self) -> str:
        if not self._is_on:
            return tr("Memory off")
        if self.use is not MemoryUse.ON:
            return (
                tr("Memory off here")
                if self.use is MemoryUse.NOT_HERE
                else tr("Memory off this time")
            )
        if self._items is None:
            return tr("Memory on")
        count = sum(not each.is_left_out for each in self._items)
        return tr("{count} from memory").format(count=count) if count else tr("Nothing from memory")

    def _fill(self) -> None:
        assert self._popup is not None
        self._popup.show_items(self._items, self.use, is_on=self._is_on)


class _RecalledPopup(QFrame):
    """The choices and the list; a checked row is used."""

    def __init__(self, switch: MemorySwitch) -> None:
        super().__init__(switch, Qt.WindowType.Popup)
        self._switch = switch
        self._shown: Sequence[PassageId] | None = None
        self.setProperty("panel", "popup")
        self.setAccessibleName(tr("What memory brings to this message"))
        self._choices = {use: QRadioButton(use.value, self) for use in MemoryUse}
        for use, choice in self._choices.items():
            choice.clicked.connect(lambda _=False, use=use: switch.choose(use))
        self._note = plain_label(self, "muted", selectable=False)
        self._note.setContentsMargins(0, 6, 0, 2)
        self._rows = QWidget(self)
        self._list = column_in(self._rows, margins=(0, 0, 4, 0), spacing=4)
        self._area = scroll_area(self, self._rows, framed=False)
        self._rows.setAutoFillBackground(False)  # it has the popup's background
        self._boxes: dict[PassageId, QCheckBox] = {}
        settings = button(
            self, tr("Recall settings\u2026"), self._on_settings_clicked, kind="quiet"
        )
        column_in(
            self, *self._choices.values(), self._note, (self._area, 1), row_of(settings, None),
            margins=(12, 10, 12, 8), spacing=4,
        )  # fmt: skip

    def show_items(
        self, items: Sequence[MemoryItem] | None, use: MemoryUse, *, is_on: bool
    ) -> None:
        """Show the choices as they are, and what memory brings."""
        for each, choice in self._choices.items():
            choice.setChecked(each is use)
            choice.setEnabled(is_on)
        shown = items if is_on and use is MemoryUse.ON else None
        self._note.setText(_note(shown, use, is_on=is_on))
        wanted = [each.passage_id for each in shown or ()]
        if wanted != self._shown:
            self._shown = wanted
            self._make_rows(shown or ())
        for found in shown or ():
            self._boxes[found.passage_id].setChecked(not found.is_left_out)
        self._area.setVisible(bool(shown))

    def wanted_size(self) -> QSize:
        rows = self._rows.sizeHint().height() if self._boxes else 0
        height = self.sizeHint().height() - self._area.sizeHint().height() * (
            not self._area.isHidden()
        )
        return QSize(_SIZE.width(), min(_SIZE.height(), height + rows + 8))

    def focus_first(self) -> None:
        """Focus the choice that applies."""
        next(each for each in self._choices.values() if each.isChecked()).setFocus()

    def _make_rows(self, items: Sequence[MemoryItem]) -> None:
        clear(self._list)
        self._boxes = {}
        for each in items:
            passage = each.passage_id
            box = self._boxes[passage] = QCheckBox(each.title.replace("&", "&&"), self._rows)
            box.setToolTip(each.kind)
            box.setAccessibleDescription(each.sentence)
            box.clicked.connect(
                lambda used, passage=passage: self._switch.leave_out(passage, left_out=not used)
            )
            sentence = plain_label(self._rows, "small", each.sentence, selectable=False)
            sentence.setContentsMargins(26, 0, 0, 4)
            self._list.addWidget(box)
            self._list.addWidget(sentence)
        self._list.addStretch(1)

    def _on_settings_clicked(self) -> None:
        self.hide()
        self._switch.settings_requested.emit()

    # Qt overrides

    def hideEvent(self, event: QHideEvent) -> None:
        """Give the focus back to where it is in the window, which may have changed meanwhile."""
        super().hideEvent(event)
        (self._switch.window().focusWidget() or self._switch).setFocus()


def _note(items: Sequence[MemoryItem] | None, use: MemoryUse, *, is_on: bool) -> str:
    if not is_on:
        return tr("Recall is off in the settings.")
    if use is MemoryUse.NOT_NOW:
        return tr("This message is sent without anything from other conversations.")
    if use is MemoryUse.NOT_HERE:
        return tr("Nothing is recalled in this conversation until you use memory again.")
    if items is None:
        return tr("Write a message of three words or more to see what memory brings to it.")
    if not items:
        return tr("Nothing you wrote before is relevant enough to this message.")
    return tr("Quoted with this message; clear a box to leave something out of it:")
