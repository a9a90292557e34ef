"""The middle of the window: title and model, the transcript or the welcome, the composer."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from ui.errors import words_for
from ui.views.notice import Deed, Notice
from ui.widgets.banner import Banner
from ui.widgets.composer import Composer
from ui.widgets.elided_edit import ElidedEdit
from ui.widgets.plain_label import PlainLabel
from ui.widgets.tab_order import stops_in

if TYPE_CHECKING:
    from ui.views.welcome import Welcome
    from ui.widgets.find_bar import FindBar

_UNBOUND_PX = 16_777_215  # QWIDGETSIZE_MAX
_DEFAULT = "Use this one for new conversations"
_PANEL_GAP_PX = 8
_OTHER = "Another model\u2026"
_WIDE_PX = 480
_MODEL_SHARE = 0.34  # of a narrow pane: the title is what tells one conversation from another


class ChatPane(QWidget):
    """Header, transcript and composer; at first with an empty notice in the transcript's place.

    Attributes:
        transcript, welcome, find_bar: Once furnished.

    Signals:
        titled: The title of what is shown now, "" for a new conversation.
        renamed: The new title. model_chosen: PROVIDER:MODEL. models_requested: The list of
            models is wanted, because the chooser is about to open. other_model_requested: A
            model that is not in the list is wanted. default_model_requested: The chosen model
            should be that of new conversations. summaries_requested: What the conversation and its turns
        are summarised as is wanted.
    """

    titled = Signal(str)
    renamed = Signal(str)
    model_chosen = Signal(str)
    models_requested = Signal()
    other_model_requested = Signal()
    default_model_requested = Signal()
    summaries_requested = Signal()

    transcript: QWidget
    welcome: "Welcome"
    find_bar: "FindBar"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.banner = Banner(self)
        self.title = ElidedEdit(self)
        self.title.setProperty("plain", True)
        self.title.setAccessibleName("Title of the conversation")
        self.title.setPlaceholderText("New conversation")
        self.title.editingFinished.connect(self._on_title_edited)
        self.title.done.connect(self._on_title_done)
        self.private = PlainLabel("Private", self)
        self.private.setToolTip("Never indexed, summarised or recalled")
        self.private.setProperty("tone", "warning")
        self.private.hide()
        self._summaries = QPushButton("Summary", self)
        self._summaries.setProperty("kind", "quiet")
        self._summaries.setToolTip("What this conversation and its turns are summarised as")
        self._summaries.clicked.connect(self.summaries_requested)
        self._summaries.hide()
        self._has_summaries = False
        self.model = _ModelChooser(self)
        self.model.setAccessibleName("Model")
        self.model.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.model.opening.connect(self.models_requested)
        self.model.activated.connect(self._on_model_activated)
        self.notice = Notice(self)
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self.notice)
        self.composer = Composer(self)
        self.status = PlainLabel(self)
        self.status.setProperty("tone", "small")
        self.status.hide()
        self._lay_out()

    def furnish(self, transcript: QWidget) -> None:
        """Add what the first frame does not show."""
        from ui.views.welcome import Welcome
        from ui.widgets.find_bar import FindBar

        self.transcript = transcript
        self.welcome = Welcome(self)
        self.find_bar = FindBar(self)
        for page in (self.welcome, transcript):
            self._stack.addWidget(page)
        self._column.insertWidget(self._column.indexOf(self._stack), self.find_bar)

    @property
    def stops(self) -> list[QWidget]:
        """What Tab goes through, in order, once furnished."""
        head = [self.title, self._summaries, self.model]
        shown = [*stops_in(self.find_bar), *stops_in(self.welcome), self.transcript]
        return [*head, *shown, *self.composer.stops]

    def add_panel(self, panel: QWidget) -> None:
        """Put a panel between the conversation and the composer."""
        self._foot.insertWidget(0, panel)
        self._foot.setSpacing(_PANEL_GAP_PX)

    def show_transcript(self) -> None:
        """Show the conversation."""
        self._stack.setCurrentWidget(self.transcript)

    def show_welcome(self) -> None:
        """Show what a new user can do."""
        self._stack.setCurrentWidget(self.welcome)

    def show_notice(self, title: str, words: str = "", deeds: Sequence[Deed] = ()) -> None:
        """Show words in place of a conversation, such as why the program cannot go on."""
        self.notice.show_words(title, words, deeds)
        self._stack.setCurrentWidget(self.notice)

    def show_title(self, title: str, *, private: bool, editable: bool) -> None:
        """Show a conversation's title, unless it is being edited."""
        self.private.setVisible(private)
        self._has_summaries = editable and not private
        self._fit_head()
        self.title.setReadOnly(not editable)
        if not (self.title.hasFocus() and self.title.isModified()):
            self.title.show_text(title)
        self.titled.emit(title)

    def show_models(self, models: Mapping[str, str], chosen: str, default: str) -> None:
        """Fill the chooser with models (PROVIDER:MODEL) by their words; `chosen` is among them."""
        self.model.blockSignals(True)
        self.model.clear()
        for model, words in models.items():
            self.model.addItem(words, model)
        self.model.insertSeparator(self.model.count())
        if chosen != default:
            self.model.addItem(_DEFAULT)
        self.model.addItem(_OTHER)
        self.model.setCurrentIndex(self.model.findData(chosen))
        self.model.blockSignals(False)
        self.model.reopen()

    def tell(self, error: BaseException) -> None:
        """Show what went wrong, and what to do next, until it is dismissed."""
        title, hint = words_for(error)
        self.banner.tell(f"{title}. {hint}".strip(), brief=False)

    def show_status(self, words: str) -> None:
        """Show a line above the composer, such as a retry under way; "" hides it."""
        self.status.setText(words)
        self.status.setVisible(bool(words))

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setContentsMargins(16, 10, 16, 6)
        head.addWidget(self.title, 1)
        head.addWidget(self.private)
        head.addWidget(self._summaries)
        head.addWidget(self.model)
        self._foot = foot = QVBoxLayout()
        foot.setContentsMargins(16, 4, 16, 12)
        foot.addWidget(self.status)
        foot.addWidget(self.composer)
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.banner)
        column.addLayout(head)
        column.addWidget(self._stack, 1)
        column.addLayout(foot)

    def _fit_head(self) -> None:
        """Leave the title room where there is little: the model's name is cut before it."""
        is_wide = self.width() >= _WIDE_PX
        self.model.setMaximumWidth(_UNBOUND_PX if is_wide else round(self.width() * _MODEL_SHARE))
        self._summaries.setVisible(self._has_summaries)

    def _on_title_edited(self) -> None:
        if not self.title.text().strip():
            self.title.take_back()
        if self.title.isModified():
            self.title.setModified(False)
            self.renamed.emit(self.title.text())

    def _on_title_done(self) -> None:
        self.composer.box.setFocus()

    def _on_model_activated(self, number: int) -> None:
        model = self.model.itemData(number)
        if model is not None:
            self.model_chosen.emit(str(model))
        elif self.model.itemText(number) == _DEFAULT:
            self.default_model_requested.emit()
        else:
            self.other_model_requested.emit()

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the header to the new width."""
        super().resizeEvent(event)
        self._fit_head()


class _ModelChooser(QComboBox):
    """A combo box that says when it is about to open.

    Signals:
        opening: Before the list is shown.
    """

    opening = Signal()

    def reopen(self) -> None:
        """Fit an open list to its new rows."""
        if self.view().isVisible():
            super().hidePopup()
            super().showPopup()

    # Qt overrides

    def showPopup(self) -> None:
        self.opening.emit()
        super().showPopup()
