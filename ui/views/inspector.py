"""The inspector: for one answer, what was recalled and why, and exactly what was sent."""

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.chat.inspecting import Inspection
from app.domain.conversations import ExchangeStatus
from app.domain.text import one_line
from ui.models.conversations import day_words
from ui.theme import Theme
from ui.views.recalled_pane import RecalledPane
from ui.views.sent_pane import SentPane
from ui.widgets.plain_label import PlainLabel

_LEAST_PX = 300
_USUAL_PX = 420
_QUESTION_CHARS = 160
_EMPTY = "Nothing has been answered here yet."
_OFF_HERE = "Memory is off for this conversation."
_OFF = "Recall is off."
_NONE_SENT = "Nothing of what was found was sent; each of them says why."


class Inspector(QWidget):
    """One answer at a time.

    Signals:
        stepped: -1 for the answer before, 1 for the one after.
        run_chosen: Which run of the same exchange, 0 the newest.
    """

    stepped = Signal(int)
    run_chosen = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setMinimumWidth(_LEAST_PX)
        self.setAccessibleName("Inspector")
        self._turn = PlainLabel(self)
        self._turn.setProperty("tone", "heading")
        self._question = PlainLabel(self, wordWrap=True)
        self._question.setProperty("tone", "muted")
        self._before = self._button("\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}", -1)
        self._after = self._button("\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}", 1)
        self._before.setAccessibleName("The answer before")
        self._after.setAccessibleName("The answer after")
        self.runs = QComboBox(self)
        self.runs.setAccessibleName("Which time it was asked")
        self.runs.activated.connect(self.run_chosen)
        self.recalled = RecalledPane(self)
        self.sent = SentPane(theme, self)
        self.tabs = QTabWidget(self)
        self.tabs.setAccessibleName("What of it")
        self.tabs.addTab(self.recalled, "Recalled")
        self.tabs.addTab(self.sent, "Sent")
        self._lay_out()
        self.show_nothing()

    def show_nothing(self) -> None:
        """Say that there is no answer."""
        self._turn.setText("Inspector")
        self._question.setText(_EMPTY)
        self._question.show()
        self.tabs.hide()
        self.runs.hide()
        self._before.setEnabled(False)
        self._after.setEnabled(False)

    def show_inspection(self, inspection: Inspection, at: int, count: int, *, is_on: bool) -> None:
        """Show the answer `at` of `count` on its path; `is_on` when recall is on at all."""
        self._turn.setText(f"Answer of turn {inspection.exchange.turn_number}")
        question = one_line(inspection.question, _QUESTION_CHARS)
        self._question.setText(question)
        self._question.setVisible(bool(question))
        self._before.setEnabled(at > 0)
        self._after.setEnabled(at + 1 < count)
        self._show_runs(inspection)
        absence = absence_words(inspection)
        note = absence or nothing_words(inspection, is_on=is_on)
        self.recalled.show_sources(inspection.sources, note)
        self.sent.show_inspection(inspection, absence)
        sent = sum(each.place.item.injected for each in inspection.sources)
        self.tabs.setTabText(0, f"Recalled ({sent})" if sent else "Recalled")
        self.tabs.show()

    def set_theme(self, theme: Theme) -> None:
        """Draw in another theme."""
        self.sent.set_theme(theme)

    def _show_runs(self, inspection: Inspection) -> None:
        self.runs.clear()
        for place, sent_at in enumerate(inspection.runs):
            local = sent_at.astimezone()
            last = "the last time, " if place == 0 else ""
            self.runs.addItem(f"Asked {last}{day_words(sent_at)}, {local:%H:%M:%S}")
        self.runs.setCurrentIndex(inspection.run)
        self.runs.setVisible(len(inspection.runs) > 1)

    def _button(self, words: str, step: int) -> QToolButton:
        button = QToolButton(self)
        button.setText(words)
        button.clicked.connect(lambda: self.stepped.emit(step))
        return button

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self._turn, 1)
        head.addWidget(self._before)
        head.addWidget(self._after)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 10)
        column.addLayout(head)
        column.addWidget(self._question)
        column.addWidget(self.runs)
        column.addWidget(self.tabs, 1)
        column.addStretch(0)

    # Qt overrides

    def sizeHint(self) -> QSize:
        """Return a width at which names can be read; the details say what the tree leaves out."""
        return QSize(_USUAL_PX, super().sizeHint().height())


def absence_words(inspection: Inspection) -> str:
    """Return why no prompt is kept; "" where one is."""
    if inspection.prompt is not None:
        return ""
    exchange = inspection.exchange
    if exchange.model is not None and exchange.model.startswith("recall:"):
        return (
            "Recall answered from your own past, on this computer. Nothing but the question was "
            "given to it, and its answer links to what it quotes."
        )
    if exchange.status is ExchangeStatus.RUNNING:
        return "It is being prepared\N{HORIZONTAL ELLIPSIS}"
    source = inspection.conversation.source
    if source != "commonplace":
        return f"This answer was imported from {source}: what it was asked with is not known."
    if exchange.status is not ExchangeStatus.COMPLETED:
        return "Nothing was sent for this answer."
    return "This answer was asked before prompts were kept."


def nothing_words(inspection: Inspection, *, is_on: bool) -> str:
    """Return what stands where sources would: what went wrong, or why there are none."""
    notice = inspection.prompt.notice if inspection.prompt is not None else ""
    if notice:
        return f"Recall: {notice}"
    if inspection.sources:
        is_any_sent = any(each.place.item.injected for each in inspection.sources)
        return "" if is_any_sent else _NONE_SENT
    if not inspection.conversation.recalls:
        return _OFF_HERE
    return "Nothing in your past answers this question." if is_on else _OFF
