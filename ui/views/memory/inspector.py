"""The inspector: what was recalled for an answer, exactly what was sent, and related past work."""

import re
from collections import Counter
from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QStackedWidget, QVBoxLayout, QWidget

from app.chat.inspector import Inspection
from app.domain.conversations import ExchangeStatus
from app.domain.links import parse_commonplace_link
from app.domain.records.topics import Trail
from app.domain.text import one_line, translate_lines
from app.domain.translation import format_day, format_turn, tr
from ui.models.conversations import source_title
from ui.rendering.inline import tooltip_text
from ui.views.memory.recalled_pane import RecalledPane
from ui.views.memory.sent_pane import SentPane
from ui.widgets.controls import button, column_in, combo_box, filled, row_of, tool_button
from ui.widgets.on_screen import ReportsShown
from ui.widgets.plain_label import plain_label

_QUESTION_CHARS = 160
_EMPTY = tr(
    "There are no answers here yet. Ask something: what memory brings to the answer is shown here."
)
_OFF_HERE = tr("Memory is off for this conversation.")
_OFF = tr("Recall is off.")
_NUMBERED = re.compile(r" · (?:fact|memory|document) \d+$")
_NONE_SENT = tr("No source was sent. Each source says why.")
_MOST_ROWS = 5
OUTDENT_PX = 10  # of rows, so that their text is below that of the heading


class InspectorView(ReportsShown, QWidget):
    """Shows one answer: its sources, or what was sent for it.

    Signals:
        counted: How many sources were sent.
        stepped: -1 for the answer before, 1 for the one after.
        run_chosen: Which run of the same exchange, 0 the newest.
    """

    counted = Signal(int)
    stepped = Signal(int)
    run_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Answer"))
        self._turn = plain_label(self, "heading", selectable=False)
        self._question = plain_label(self, "muted", selectable=False)
        step = self.stepped.emit
        self._before = tool_button(
            self, "", lambda: step(-1), icon="chevron-left", name=tr("The answer before")
        )
        self._after = tool_button(
            self, "", lambda: step(1), icon="chevron-right", name=tr("The answer after")
        )
        self.runs = combo_box(self, tr("Run"), on_activated=self.run_chosen)
        self.recalled = RecalledPane(self)
        self.related, self.quoted = RelatedList(self), RelatedList(self)
        self.sent = SentPane(self)
        self.parts = QStackedWidget(self)
        self.parts.addWidget(self.recalled)
        self.parts.addWidget(self.sent)
        self._lay_out()
        self.show_nothing()

    def show_nothing(self, *, is_reading: bool = False) -> None:
        """Show that there is no answer, or nothing at all while one is read."""
        self._turn.setText("" if is_reading else tr("No answer"))
        self._question.show_text("" if is_reading else _EMPTY)
        for part in (self.parts, self.runs, self.quoted):
            part.hide()
        self.counted.emit(0)
        self._before.setEnabled(False)
        self._after.setEnabled(False)

    def show_sent(self, wanted: bool) -> None:
        """Show what was sent, else the sources."""
        self.parts.setCurrentWidget(self.sent if wanted else self.recalled)

    def show_inspection(self, inspection: Inspection, at: int, count: int, *, is_on: bool) -> None:
        """Show the answer `at` of `count` on its path; `is_on` when recall is on at all."""
        self._turn.setText(
            tr("Answer of {turn_number}").format(
                turn_number=format_turn(inspection.exchange.turn_number)
            )
        )
        question = one_line(inspection.question, _QUESTION_CHARS)
        self._question.show_text(question)
        self._before.setEnabled(at > 0)
        self._after.setEnabled(at + 1 < count)
        self._show_runs(inspection)
        self.quoted.show_rows(tr("Quoted in this answer"), _link_rows(inspection.links))
        absence = absence_text(inspection)
        note = absence or nothing_text(inspection, is_on=is_on)
        self.recalled.show_sources(inspection.sources, note)
        self.sent.show_inspection(inspection, absence)
        self.counted.emit(sum(each.place.item.injected for each in inspection.sources))
        self.parts.show()

    def _show_runs(self, inspection: Inspection) -> None:
        self.runs.clear()
        for place, sent_at in enumerate(inspection.runs):
            local = sent_at.astimezone()
            said = tr("Asked last, {day}, {time}") if place == 0 else tr("Asked {day}, {time}")
            self.runs.addItem(said.format(day=format_day(sent_at), time=f"{local:%H:%M:%S}"))
        self.runs.setCurrentIndex(inspection.run)
        self.runs.setVisible(len(inspection.runs) > 1)

    def _lay_out(self) -> None:
        head = row_of((self._turn, 1), self._before, self._after)
        runs = row_of((self.runs, 1))
        for part in (head, self._question, runs, self.parts):
            part.setContentsMargins(OUTDENT_PX, 0, OUTDENT_PX, 0)
        parts = (head, self._question, runs, self.quoted, (self.parts, 1), self.related)
        filled(QVBoxLayout(self), *parts, margins=(2, 10, 2, 10)).addStretch(0)


def absence_text(inspection: Inspection) -> str:
    """Return why no prompt is stored; "" if one is."""
    if inspection.prompt is not None:
        return ""
    exchange = inspection.exchange
    if exchange.model is not None and exchange.model.startswith("recall:"):
        return tr(
            "Recall answered from your own conversations, on this computer. It was given only the "
            "question."
        )
    if exchange.status is ExchangeStatus.RUNNING:
        return tr("The request is being prepared\N{HORIZONTAL ELLIPSIS}")
    source = inspection.conversation.source
    if source != "commonplace":
        return tr("This answer was imported from {source}: its prompt is not known.").format(
            source=source_title(source)
        )
    if exchange.status is not ExchangeStatus.COMPLETED:
        return tr("Nothing was sent for this answer.")
    return tr("This answer is older than the storing of prompts.")


def nothing_text(inspection: Inspection, *, is_on: bool) -> str:
    """Return the note above the sources: what went wrong, or why there are none."""
    notice = inspection.prompt.notice if inspection.prompt is not None else ""
    if notice:
        return translate_lines(notice)
    if inspection.sources:
        is_any_sent = any(each.place.item.injected for each in inspection.sources)
        return "" if is_any_sent else _NONE_SENT
    if not inspection.conversation.recalls:
        return _OFF_HERE
    return tr("Nothing in your history is relevant to this question.") if is_on else _OFF


def _link_rows(links: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the links of an answer as rows; those with the same label name their turns."""
    rows = [(_NUMBERED.sub("", label), target) for label, target in links]
    labels = Counter(label for label, _ in rows)
    return [
        (f"{label}, {format_turn(link.turn_number)}", target)
        if labels[label] > 1
        and (link := parse_commonplace_link(target)) is not None
        and link.turn_number is not None
        else (label, target)
        for label, target in rows
    ]


class RelatedList(QWidget):
    """A heading over rows to open, such as the newest related conversations; hidden without any.

    Its text is `OUTDENT_PX` from its left edge.

    Signals:
        chosen: What belongs to a row: the id of a conversation, or the target of a link.
        topic_requested: Show all of the topic.
    """

    chosen = Signal(object)
    topic_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._heading = plain_label(self, "muted", selectable=False)
        self.list = QListWidget(self)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.itemActivated.connect(self._on_activated)
        self.list.itemClicked.connect(self._on_activated)
        self.all = button(self, tr("All of this topic"), self.topic_requested, kind="quiet")
        self._heading.setContentsMargins(OUTDENT_PX, 0, OUTDENT_PX, 0)
        foot = row_of(self.all, None)
        foot.setContentsMargins(OUTDENT_PX, 0, 0, 0)
        column_in(self, self._heading, self.list, foot, margins=(0, 8, 0, 0), spacing=4)
        self.hide()

    def show_trail(self, trail: Trail | None) -> None:
        """Show the conversations of a trail, newest first; None for none."""
        related = () if trail is None else trail.related
        heading = tr("Related past work about “{topic}”").format(topic=trail.name if trail else "")
        self.show_rows(
            heading,
            [
                (f"{format_day(each.created_at)} \u00b7 {each.title or tr('Untitled')}", each.id)
                for each in related[:_MOST_ROWS]
            ],
        )
        self.all.setVisible(len(related) > _MOST_ROWS)

    def show_rows(self, heading: str, rows: Sequence[tuple[str, object]]) -> None:
        """Show rows: the text of each, and what belongs to it."""
        self.setVisible(bool(rows))
        self._heading.setText(heading)
        self.list.setAccessibleName(heading)
        self.list.clear()
        for text, value in rows:
            row = QListWidgetItem(text, self.list)
            row.setData(Qt.ItemDataRole.UserRole, value)
            row.setToolTip(tooltip_text(text))
        row_px = max(1, self.list.sizeHintForRow(0))
        self.list.setFixedHeight(row_px * self.list.count() + 2 * self.list.frameWidth())
        self.all.hide()

    def _on_activated(self, row: QListWidgetItem) -> None:
        self.chosen.emit(row.data(Qt.ItemDataRole.UserRole))
