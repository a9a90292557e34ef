"""The explanation of a turn's rank for a question: points, words, and what kept it back."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QLabel,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from app.domain.diagnostics import Explanation
from app.domain.errors import KnownError
from app.domain.formatting import format_percent, format_turn
from app.domain.translation import format_number, tr
from ui.models.setting_labels import with_setting_labels
from ui.widgets.controls import (
    button,
    closing_buttons,
    column_in,
    filled,
    line_edit,
    row_of,
    table_view,
)
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import plain_label

_COLUMNS = (tr("What counts"), tr("This turn"), tr("First result"))
_NUMBERS = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class WhyDialog(QDialog):
    """Asks a question about one turn and shows the explanation.

    Signals:
        asked: The question to explain.
        save_requested: The question to keep as a probe for this turn.
    """

    asked = Signal(str)
    save_requested = Signal(str)

    def __init__(self, turn_text: str, question: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Why wasn't this recalled?"))
        resize_on_screen(self, 600, 560)
        self._turn = plain_label(self, "muted", turn_text)
        what = tr("The question that should find this turn")
        self.box = line_edit(self, what, text=question, name=tr("Question"), clearable=True)
        self._ask = button(self, tr("Ask"), self._on_ask_clicked, kind="primary")
        self._ask.setDefault(True)
        self._headline = plain_label(self, "heading")
        self._figures = plain_label(self, "muted")
        self._obstacles = plain_label(self)
        self._words = plain_label(self)
        self._points = _points_table(self)
        self._message = plain_label(self, "success")
        buttons, (self._save,) = closing_buttons(self, tr("Keep as a test question"))
        self._save.clicked.connect(self._on_save_clicked)
        self._lay_out(buttons)
        self._show_nothing()

    def begin(self) -> None:
        """Explain the initial question, if there is one."""
        self.box.selectAll()
        self.box.setFocus()
        if self.box.text().strip():
            self._on_ask_clicked()

    def show_explanation(self, explained: Explanation) -> None:
        """Show an explanation in place of the previous one."""
        self._show_nothing()
        self._turn.setText(
            f"{explained.conversation_title}, {format_turn(explained.turn_number)}: "
            f"{explained.user_question}"
        )
        self._headline.setText(headline(explained))
        self._show_text(self._figures, figures(explained))
        obstacles = [
            f"\N{BULLET} {tr(each.words)} {with_setting_labels(tr(each.hint))}".strip()
            for each in explained.obstacles
        ]
        if explained.notice:
            obstacles.append(tr("• Text search only: {notice}").format(notice=explained.notice))
        self._show_text(self._obstacles, "\n".join(obstacles))
        self._show_text(self._words, matched_words(explained))
        for each in explained.points:
            best = "" if each.best_points is None else _signed(each.best_points)
            row = QTreeWidgetItem([tr(each.words), _signed(each.points), best])
            for column in (1, 2):
                row.setTextAlignment(column, _NUMBERS)
            self._points.addTopLevelItem(row)
        self._points.setColumnHidden(2, explained.rank == 1)  # it is the first result itself
        self._points.setVisible(bool(explained.points))
        self._save.setEnabled(True)

    def show_error(self, error: KnownError) -> None:
        """Show why there is no explanation."""
        self._show_nothing()
        self._headline.setText(error.title)
        self._show_text(self._figures, error.hint)

    def show_message(self, text: str) -> None:
        """Show what was done."""
        self._show_text(self._message, text)

    def _show_nothing(self) -> None:
        self._headline.setText("")
        for label in (self._figures, self._obstacles, self._words, self._message):
            self._show_text(label, "")
        self._points.clear()
        self._points.hide()
        self._save.setEnabled(False)

    @staticmethod
    def _show_text(label: QLabel, words: str) -> None:
        label.setText(words)
        label.setVisible(bool(words))

    def _lay_out(self, buttons: QDialogButtonBox) -> None:
        asking = row_of((self.box, 1), self._ask)
        texts = (self._headline, self._figures, self._obstacles, self._words)
        column = column_in(self, self._turn, asking, *texts, (self._points, 1))
        column.addStretch(0)
        filled(column, self._message, buttons)

    def _on_ask_clicked(self) -> None:
        self._show_text(self._message, "")
        self.asked.emit(self.box.text())

    def _on_save_clicked(self) -> None:
        self.save_requested.emit(self.box.text())


def headline(explained: Explanation) -> str:
    """Return whether and where a turn is found, as text."""
    if explained.rank is None:
        return tr("It is not found.")
    if explained.rank == 1:
        return tr("It is the first of {ranked_count} results.").format(
            ranked_count=format_number(explained.ranked_count)
        )
    return tr("It is number {rank} of {ranked_count} results.").format(
        rank=format_number(explained.rank), ranked_count=format_number(explained.ranked_count)
    )


def figures(explained: Explanation) -> str:
    """Return the measures; "" when there are none."""
    if explained.relevance is None or explained.score is None:
        return ""
    meaning = (
        tr("no vector")
        if explained.cosine is None
        else tr("cosine {cosine}").format(cosine=format_number(explained.cosine, 3))
    )
    if not explained.by_meaning:
        meaning = tr("text search only")
    return tr("Relevance {relevance}, {meaning}, {score} points in all.").format(
        relevance=format_percent(explained.relevance),
        meaning=meaning,
        score=format_number(explained.score, 2),
    )


def matched_words(explained: Explanation) -> str:
    """Return which words of the question the best message of the turn contains, as text."""
    if explained.relevance is None:
        return ""
    held = [each.word for each in explained.words if each.is_present]
    lacks = [each.word for each in explained.words if not each.is_present]
    lines = [tr("It contains: {join}").format(join=", ".join(held))] if held else []
    return "\n".join(
        [*lines, tr("It does not contain: {join}").format(join=", ".join(lacks))]
        if lacks
        else lines
    )


def _points_table(parent: QWidget) -> QTreeWidget:
    table = table_view(parent, tr("What each feature adds"), _COLUMNS, narrow=(1, 2))
    for column in (1, 2):
        table.headerItem().setTextAlignment(column, _NUMBERS)
    return table


def _signed(points: float) -> str:
    return f"{'-' if points < 0 else '+'}{format_number(abs(points), 2)}"
