"""The explanation of a turn's rank for a question: points, words, and what kept it back."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialogButtonBox, QWidget

from app.domain.diagnostics import Explanation, FeatureScore
from app.domain.errors import KnownError
from app.domain.translation import format_number, format_percent, format_turn, tr
from ui.models.labels import cosine_text, with_setting_labels
from ui.widgets.controls import button, closing_buttons, column_in, filled, line_edit, row_of
from ui.widgets.dialog import Dialog
from ui.widgets.plain_label import plain_label
from ui.widgets.record_table import RecordTable

_COLUMNS = (tr("What counts"), tr("This turn"), tr("First result"))


class WhyDialog(Dialog):
    """Asks a question about one turn and shows the explanation.

    Signals:
        asked: The question to explain.
        save_requested: The question to keep as a probe for this turn.
    """

    asked = Signal(str)
    save_requested = Signal(str)

    def __init__(self, turn_text: str, question: str, parent: QWidget | None = None) -> None:
        super().__init__(tr("Why wasn't this recalled?"), (600, 560), parent, tone="success")
        self._turn = plain_label(self, "muted", turn_text)
        what = tr("The question that should find this turn")
        self.box = line_edit(self, what, text=question, name=tr("Question"), clearable=True)
        self._ask = button(self, tr("Ask"), self._on_ask_clicked, kind="primary")
        self._ask.setDefault(True)
        self._headline = plain_label(self, "heading")
        self._figures = plain_label(self, "muted")
        self._obstacles = plain_label(self)
        self._words = plain_label(self)
        numbers = (1, 2)
        self._points = RecordTable(
            self, tr("What each feature adds"), _COLUMNS, narrow=numbers, numbers=numbers
        )
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
        self._figures.show_text(figures(explained))
        obstacles = [
            f"\N{BULLET} {tr(each.words)} {with_setting_labels(tr(each.hint))}".strip()
            for each in explained.obstacles
        ]
        if explained.notice:
            obstacles.append(tr("• Text search only: {notice}").format(notice=explained.notice))
        self._obstacles.show_text("\n".join(obstacles))
        self._words.show_text(matched_words(explained))
        self._points.show_records(explained.points, _point_texts)
        self._points.setColumnHidden(2, explained.rank == 1)  # it is the first result itself
        self._points.setVisible(bool(explained.points))
        self._save.setEnabled(True)

    def show_error(self, error: KnownError) -> None:
        """Show why there is no explanation."""
        self._show_nothing()
        self._headline.setText(error.title)
        self._figures.show_text(error.hint)

    def _show_nothing(self) -> None:
        self._headline.setText("")
        for label in (self._figures, self._obstacles, self._words, self.status):
            label.show_text("")
        self._points.hide()
        self._save.setEnabled(False)

    def _lay_out(self, buttons: QDialogButtonBox) -> None:
        asking = row_of((self.box, 1), self._ask)
        texts = (self._headline, self._figures, self._obstacles, self._words)
        column = column_in(self, self._turn, asking, *texts, (self._points, 1))
        column.addStretch(0)
        filled(column, self.status, buttons)

    def _on_ask_clicked(self) -> None:
        self.status.show_text("")
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
    meaning = cosine_text(explained.cosine) if explained.by_meaning else tr("text search only")
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


def _point_texts(point: FeatureScore) -> tuple[str, str, str]:
    best = "" if point.best_points is None else _signed(point.best_points)
    return tr(point.words), _signed(point.points), best


def _signed(points: float) -> str:
    return f"{'-' if points < 0 else '+'}{format_number(abs(points), 2)}"
