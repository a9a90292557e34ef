"""The memory page of the settings: all recall settings beside a preview of what a question would bring."""

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QSplitter,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from app.chat.recall_preview import BudgetUse, Preview
from app.chat.recall_text import NOTHING_FOUND, summary_text
from app.domain.settings_schema import SETTINGS, SettingPage
from app.domain.text import one_line, sentences, translate_lines
from app.domain.translation import format_number, tr, trn
from ui.models.conversations import ListRole
from ui.models.labels import with_setting_labels
from ui.models.preview import PreviewListModel, PreviewRow
from ui.theme import current_theme
from ui.views.rows import Index, RowDelegate
from ui.widgets.controls import (
    button,
    column_in,
    combo_box,
    filled,
    list_view,
    make_clearable,
    progress_bar,
    scroll_area,
)
from ui.widgets.plain_label import plain_label
from ui.widgets.setting_editor import SettingEditor

_SETTINGS_PX, _PREVIEW_PX = 400, 460
_LEAST_PX = 260
_BESIDE_PX = 640  # if narrower, the preview is below the settings
_PAD_PX = 10
_INDENT_PX = 18
_BAR_PX = 3
_DEBOUNCE_MS = 150
_METERS = {"rag_max_tokens": tr("Related past"), "auto_rag_max_tokens": tr("Earlier here")}
_LIST_PX = 180
_TITLE_CHARS = 24
_INVITATION = tr(
    "Type a question, or choose a recent one, to see what would be recalled for it and why the "
    "rest would not. Then move a slider: nothing is sent to a model."
)


class MemoryPage(QWidget):
    """Editors of the recall settings, and the preview.

    Signals:
        tried: (key, value) while a slider moves. undo_requested: Go back to the values of the
            moment the page was opened. defaults_requested: Reset all to their defaults.

    Attributes:
        editors: One for each key. preview: The pane beside them.
    """

    tried = Signal(str, object)
    undo_requested = Signal()
    defaults_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.editors = [
            SettingEditor(setting, self)
            for setting in SETTINGS.values()
            if setting.page is SettingPage.RECALL
        ]
        self.preview = PreviewPane(self)
        back = tr("Go back to the values from when the settings were opened")
        self._undo = button(self, tr("Undo changes"), self.undo_requested, tip=back)
        self._defaults = button(self, tr("Reset to defaults"), self.defaults_requested)
        for editor in self.editors:
            editor.tried.connect(self.tried)
        self._split = QSplitter(Qt.Orientation.Horizontal, self, childrenCollapsible=False)
        self._split.addWidget(self._settings_side())
        self._split.addWidget(self.preview)
        self._split.setMinimumWidth(_LEAST_PX)  # else it never becomes narrow enough
        self._split.setSizes([_SETTINGS_PX, _PREVIEW_PX])
        self._split.setStretchFactor(1, 1)
        column_in(self, self._split, margins=(0, 0, 0, 0))
        self.show_state(is_changed=False, is_default=True)

    def show_state(self, *, is_changed: bool, is_default: bool) -> None:
        """Enable what there is to undo or to reset."""
        self._undo.setEnabled(is_changed)
        self._defaults.setEnabled(not is_default)

    def _settings_side(self) -> QWidget:
        body = QWidget(self)
        filled(QVBoxLayout(body), *self.editors, None, margins=(16, 8, 12, 8))
        self._body, self._area = body, scroll_area(self, body, framed=False)
        area = self._area
        area.setMinimumHeight(_LEAST_PX)
        area.setAccessibleName(tr("Settings"))
        side = QWidget(self)
        buttons = filled(QHBoxLayout(), self._undo, self._defaults, None, margins=(16, 4, 12, 8))
        filled(QVBoxLayout(side), (area, 1), buttons, margins=(0, 0, 0, 0))
        return side

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Move the preview below the settings if there is no room beside them, and cut no setting."""
        super().resizeEvent(event)
        bar = self._area.verticalScrollBar().sizeHint().width()
        settings_px = self._body.minimumSizeHint().width() + bar
        self._area.setMinimumWidth(settings_px)
        both_px = settings_px + self._split.handleWidth() + self.preview.minimumSizeHint().width()
        is_wide = event.size().width() >= max(_BESIDE_PX, both_px)
        wanted = Qt.Orientation.Horizontal if is_wide else Qt.Orientation.Vertical
        if self._split.orientation() != wanted:
            self._split.setOrientation(wanted)


class PreviewDelegate(RowDelegate):
    """Draws `PreviewRow`s; what changed has a bar at its left, and a text."""

    # Qt overrides

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return a row's size: two lines."""
        if not isinstance(index.data(ListRole.VALUE), PreviewRow):
            return super().sizeHint(option, index)
        line = QFontMetricsF(current_theme().ui_font()).height()
        return QSize(0, round(2 * line + 1.2 * _PAD_PX))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a row: its ground, its name, what becomes of it."""
        row = index.data(ListRole.VALUE)
        if not isinstance(row, PreviewRow):
            super().paint(painter, option, index)
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(option.rect)
        self._background(painter, area, option)
        self._change(painter, area, row)
        indent = _INDENT_PX if row.is_inner else 0
        self._paint_text(painter, area.adjusted(_PAD_PX + indent, 0, -_PAD_PX, 0), index, row)
        painter.restore()

    def _change(self, painter: QPainter, area: QRectF, row: PreviewRow) -> None:
        if row.changed:
            bar = QRectF(area.left() + 2, area.top() + 4, _BAR_PX, area.height() - 8)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._tone(row))
            painter.drawRoundedRect(bar, _BAR_PX / 2, _BAR_PX / 2)

    def _tone(self, row: PreviewRow) -> QColor:
        colors, is_in = current_theme().colors, row.place.item.injected
        if row.changed:
            return QColor(colors.success if is_in else colors.error)
        return QColor(colors.accent if is_in else colors.muted)

    def _paint_text(self, painter: QPainter, area: QRectF, index: Index, row: PreviewRow) -> None:
        colors, is_in = current_theme().colors, row.place.item.injected
        font = current_theme().ui_font()
        font.setWeight(QFont.Weight.DemiBold if is_in else QFont.Weight.Normal)
        line = QFontMetricsF(font).height()
        top = area.top() + (area.height() - 2 * line) / 2
        first = QRectF(area.left(), top, area.width(), line)
        aside = str(index.data(ListRole.TRAILING))
        painter.setFont(current_theme().small_font())
        painter.setPen(QColor(colors.accent if is_in else colors.muted))
        painter.drawText(first, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, aside)
        width = QFontMetricsF(painter.font()).horizontalAdvance(aside) + _PAD_PX
        painter.setFont(font)
        painter.setPen(QColor(colors.text if is_in else colors.muted))
        self._line(painter, first.adjusted(0, 0, -width, 0), str(index.data()))
        painter.setFont(current_theme().small_font())
        painter.setPen(self._tone(row))
        below = QRectF(area.left(), top + line, area.width(), line)
        self._line(painter, below, str(index.data(ListRole.SUBTITLE)))


class PreviewPane(QWidget):
    """Asks what would be recalled and shows it.

    Signals:
        asked: The question, once typing has paused; "" for none any more.
        open_requested: The `RecalledPlace` to show where it was said.
    """

    asked = Signal(str)
    open_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.box = combo_box(self, tr("Question to try"), min_chars=20, editable=True)
        editor = self.box.lineEdit()
        assert editor is not None
        editor.setPlaceholderText(tr("Type a question\N{HORIZONTAL ELLIPSIS}"))
        make_clearable(editor)
        self.box.setCompleter(None)  # type: ignore[arg-type]  # it would replace typed text
        self.here = QCheckBox(self)
        self.here.hide()
        self._text = plain_label(self, "muted", selectable=False)
        self._meters = {key: _Meter(text, self) for key, text in _METERS.items()}
        self._rest = plain_label(self, "small", selectable=False)
        self.model = PreviewListModel(self)
        self._delegate = PreviewDelegate(self)
        self.list = list_view(self, self.model, self._delegate, tr("What would be recalled"))
        self.list.setMinimumHeight(_LIST_PX)
        self._debounce = QTimer(self, singleShot=True, interval=_DEBOUNCE_MS)
        self._debounce.timeout.connect(self.ask)
        self.box.editTextChanged.connect(lambda _text: self._debounce.start())
        self.here.toggled.connect(lambda _on: self.ask())
        self.list.clicked.connect(self._on_list_chosen)
        self.list.activated.connect(self._on_list_chosen)
        self._lay_out()
        self.show_nothing()

    @property
    def question(self) -> str:
        return self.box.currentText().strip()

    def ask(self) -> None:
        """Ask at once for what is typed."""
        self._debounce.stop()
        self.asked.emit(self.question)

    def show_recent(self, questions: Sequence[str]) -> None:
        """Offer questions to choose from; what is typed stays."""
        typed = self.box.currentText()
        self.box.blockSignals(True)
        self.box.clear()
        self.box.addItems(list(questions))
        self.box.setCurrentIndex(-1)
        self.box.setEditText(typed)
        self.box.blockSignals(False)

    def show_place(self, title: str | None) -> None:
        """Offer to ask in the conversation that is open; None when there is none."""
        self.here.blockSignals(True)
        self.here.setVisible(title is not None)
        self.here.setChecked(title is not None)
        if title is not None:
            called = one_line(title, _TITLE_CHARS).replace("&", "&&")
            self.here.setText(tr("As the next message of “{called}”").format(called=called))
        self.here.blockSignals(False)

    def show_preview(self, preview: Preview) -> None:
        self.model.show_preview(preview)
        text = NOTHING_FOUND
        if preview.places:
            text = tr("{summary_text}, in {took_ms} ms.").format(
                summary_text=summary_text(preview.places), took_ms=format_number(preview.took_ms, 0)
            )
        self._text.setText(f"{text} {with_setting_labels(translate_lines(preview.notice))}".strip())
        for spent in preview.spent:
            if (meter := self._meters.get(spent.key)) is not None:
                meter.show_spent(spent)
        self._rest.setText(rest_words(preview))
        self._show_parts(bool(preview.places))

    def show_nothing(self, title: str = "", hint: str = "") -> None:
        """Show that nothing is asked, or why there is no answer."""
        self.model.show_preview(None)
        self._text.setText(sentences(title, hint) if title else _INVITATION)
        self._show_parts(False)

    def _show_parts(self, on: bool) -> None:
        for meter in self._meters.values():
            meter.setVisible(on)
        self._rest.setVisible(on)
        self.list.setVisible(on)

    def _lay_out(self) -> None:
        heading = plain_label(self, "heading", tr("Try a question"), selectable=False)
        parts = (heading, self.box, self.here, self._text, *self._meters.values(), self._rest)
        column = column_in(self, *parts, (self.list, 1), margins=(12, 8, 16, 12), spacing=8)
        column.addStretch(0)

    def _on_list_chosen(self, index: QModelIndex) -> None:
        row = self.model.value_at(index)
        if isinstance(row, PreviewRow):
            self.open_requested.emit(row.place)


class _Meter(QWidget):
    """How much of a budget is used, as text and a bar."""

    def __init__(self, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._name = text
        self._text = plain_label(self, "small", selectable=False)
        self._text.setWordWrap(False)
        self._bar = progress_bar(self, tr("{text}: budget used").format(text=text))
        column_in(self, self._text, self._bar, margins=(0, 0, 0, 0), spacing=2)

    def show_spent(self, spent: BudgetUse) -> None:
        self._text.setText(
            tr("{name}: {tokens} of {most_tokens} tokens").format(
                name=self._name,
                tokens=format_number(spent.tokens),
                most_tokens=format_number(spent.most_tokens),
            )
        )
        self._bar.setRange(0, max(1, spent.most_tokens))
        self._bar.setValue(min(spent.tokens, spent.most_tokens))


def rest_words(preview: Preview) -> str:
    """Return what else the prompt holds: profile, core memory, summary, window, all of it."""
    used = {each.key: each for each in preview.spent}
    core, summary = used["core_memory_max_tokens"], used["compaction_max_tokens"]
    profile = used["profile_max_tokens"]
    count = preview.window_count
    messages = trn("{count} message before it", "{count} messages before it", count)
    return tr(
        "Profile {tokens} of {most_tokens} · core memory {tokens2} of {most_tokens2} · summary {tokens3} of {most_tokens3} · {messages} · about {tokens4} of {most_tokens4} tokens in all"
    ).format(
        tokens=format_number(profile.tokens),
        most_tokens=format_number(profile.most_tokens),
        tokens2=format_number(core.tokens),
        most_tokens2=format_number(core.most_tokens),
        tokens3=format_number(summary.tokens),
        most_tokens3=format_number(summary.most_tokens),
        messages=messages,
        tokens4=format_number(preview.tokens),
        most_tokens4=format_number(preview.most_tokens),
    )
