"""The form of one provider: address, key and options, a test that saves, and its models."""

from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app.domain.translation import tr
from app.providers.configuration import title_of
from ui.widgets.cards import Card
from ui.widgets.controls import button, column_in, filled, form_of, key_edit, line_edit, row_of
from ui.widgets.model_list import ModelList
from ui.widgets.model_rows import ModelGroup, ModelRow
from ui.widgets.plain_label import PlainLabel, breakable

_LIST_PX = 200


@dataclass(frozen=True, slots=True)
class ProviderFields:
    """What the form holds, as typed; an empty key leaves the saved one, as does the passphrase."""

    name: str = ""
    kind: str = "compatible"
    base_url: str = ""
    key: str = ""
    key_env: str = ""
    timeout: str = ""
    allow_plain_http: bool = False
    passphrase: str = ""


@dataclass(frozen=True, slots=True)
class KeyTexts:
    """What the form says about the key.

    `hint` stands in the empty key field, `note` says where the key is kept, and `passphrase_hint` stands in
    the field for the passphrase of the key file, which is hidden for "". `page` issues keys, "" for none.
    `is_locked`: whether a saved key waits for the passphrase.
    """

    hint: str
    note: str
    passphrase_hint: str = ""
    page: str = ""
    is_locked: bool = False


@dataclass(frozen=True, slots=True)
class FormContent:
    """A provider in its form. The address is locked where the environment sets it."""

    title: str
    about: str
    fields: ProviderFields
    key: KeyTexts
    is_new: bool
    is_named: bool
    is_url_locked: bool = False


class ProviderForm(QWidget):
    """The form of a provider.

    Attributes:
        name: The provider that it shows, "" before it is named.
        back: Its first stop of Tab.
        models: Its models, and what applies to the selected one.

    Signals:
        submitted: (`ProviderFields`, whether to test before saving).
        removal_requested: The provider's name. closed: Back to all providers.
        page_requested: The address of the page that issues keys. cancelled: The test that runs.
    """

    submitted = Signal(object, bool)
    removal_requested = Signal(str)
    page_requested = Signal(str)
    cancelled = Signal()
    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name, self._kind = "", "compatible"
        self._is_busy = False
        self.back = button(self, tr("\u2039 All providers"), self.closed, kind="quiet")
        self.title = PlainLabel(self, tone="title")
        self._about = PlainLabel(self, wordWrap=True, tone="small")
        card = Card(tr("Connection"), self)
        self.provider_name = line_edit(card, tr("optional"), name=tr("Name"))
        self.base_url = line_edit(card, "http://127.0.0.1:8000/v1", name=tr("Address"))
        self.key = key_edit(card, "", tr("API key"))
        self.passphrase = key_edit(card, "", tr("Passphrase"))
        self._key_note = PlainLabel(card, wordWrap=True, tone="small")
        self.variable = line_edit(card, tr("optional"), name=tr("Key from variable"))
        self.timeout = line_edit(
            card, tr("as set under Network"), name=tr("Reply timeout in seconds")
        )
        self.plain_http = QCheckBox(tr("Allow http without encryption beyond this computer"), card)
        fields = (self.provider_name, self.base_url, self.key, self.passphrase)
        self._form, self._options = form_of(card, *map(_row, fields)), QWidget(card)
        for field in fields:
            field.returnPressed.connect(lambda: self._submit(tested=True))
        self.key_page: QPushButton = button(
            card, tr("Get a key\u2026"),
            lambda: self.page_requested.emit(self.key_page.toolTip()), kind="quiet",
        )  # fmt: skip
        self.more = button(card, tr("More options"), kind="quiet")
        self.more.setCheckable(True)
        self.more.toggled.connect(self._options.setVisible)
        options = form_of(card, _row(self.variable), _row(self.timeout), ("", self.plain_http))
        column_in(self._options, options, margins=(0, 0, 0, 0))
        filled(
            card.column,
            self._form,
            self._key_note,
            row_of(self.key_page, self.more, None),
            self._options,
        )
        self._add_actions(card)
        self.outcome = card.line()
        self.models = ProviderModels(self)
        head = row_of(self.back, None)
        parts = (head, self.title, self._about, card, self.models, None)
        filled(QVBoxLayout(self), *parts, margins=(16, 8, 16, 16), spacing=10)

    def _add_actions(self, card: Card) -> None:
        self.save = button(
            card, tr("Test and save"), lambda: self._submit(tested=True), kind="primary"
        )
        self.untested = button(card, tr("Save without testing"), lambda: self._submit(tested=False))
        self.cancel = button(card, tr("Cancel"), self.cancelled)
        removal = self.removal_requested
        self.remove = button(
            card, tr("Remove\u2026"), lambda: removal.emit(self.name), kind="danger"
        )
        card.column.addLayout(row_of(self.save, self.cancel, self.untested, None, self.remove))

    def show_content(self, content: FormContent) -> None:
        """Show a provider, without a key and without models."""
        fields = content.fields
        self.name, self._kind = fields.name, fields.kind
        self.title.setText(content.title)
        self._about.setText(content.about)
        self.provider_name.setText(fields.name)
        self._form.setRowVisible(self.provider_name, not content.is_named)
        self.base_url.setText(fields.base_url)
        self.base_url.setReadOnly(content.is_url_locked)
        self.show_key(content.key)
        self.variable.setText(fields.key_env)
        self.timeout.setText(fields.timeout)
        self.plain_http.setChecked(fields.allow_plain_http)
        self.more.setChecked(bool(fields.timeout or fields.allow_plain_http))
        self._options.setVisible(self.more.isChecked())
        self.remove.setVisible(not content.is_new)
        self.show_outcome("", "muted")
        self.models.hide()
        first = self.passphrase if content.key.is_locked else self.key
        (first if content.is_named else self.base_url).setFocus()

    def show_key(self, texts: KeyTexts) -> None:
        """Show where the key is kept, with empty fields."""
        self.key.clear()
        self.key.setPlaceholderText(texts.hint)
        self.passphrase.clear()
        self.passphrase.setPlaceholderText(texts.passphrase_hint)
        self._form.setRowVisible(self.passphrase, bool(texts.passphrase_hint))
        self._key_note.show_text(texts.note)
        self.key_page.setToolTip(texts.page)
        self.key_page.setVisible(bool(texts.page))

    def show_saved(self, name: str) -> None:
        """Show that the provider exists under this name, which stays."""
        self.name = name
        self.title.setText(title_of(name))
        self._form.setRowVisible(self.provider_name, False)
        self.remove.show()

    def show_outcome(self, text: str, tone: str, *, can_skip_test: bool = False) -> None:
        """Show the result of the last action; `can_skip_test` offers to save without a test."""
        self._is_busy = False
        if self.window().focusWidget() in (self.cancel, self.untested):
            self.save.setFocus()  # Qt would pass it to Remove
        self.cancel.hide()
        self.untested.setVisible(can_skip_test)
        self.outcome.show_text(breakable(text), tone)

    def show_busy(self, text: str, *, can_cancel: bool = False) -> None:
        """Show what is under way; nothing can be submitted meanwhile."""
        self.show_outcome(text, "muted")
        self._is_busy = True  # disabled, the button would lose the focus
        self.cancel.setVisible(can_cancel)

    @property
    def fields(self) -> ProviderFields:
        return ProviderFields(
            self.provider_name.text().strip(),
            self._kind,
            self.base_url.text().strip(),
            self.key.text().strip(),
            self.variable.text().strip(),
            self.timeout.text().strip(),
            allow_plain_http=self.plain_http.isChecked(),
            passphrase=self.passphrase.text(),
        )

    def _submit(self, *, tested: bool) -> None:
        if not self._is_busy:
            self.submitted.emit(self.fields, tested)


def _row(field: QLineEdit) -> tuple[str, QLineEdit]:
    return field.accessibleName(), field


class ProviderModels(Card):
    """The models of a provider; the selected one can become the default and gets its window.

    Signals:
        default_chosen: PROVIDER:MODEL. window_entered: (PROVIDER:MODEL, the tokens as typed, "" to
        find them again). selected: PROVIDER:MODEL, "" for none.
    """

    default_chosen = Signal(str)
    window_entered = Signal(str, str)
    selected = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(tr("Models"), parent)
        self.list = ModelList(self)
        self.list.none.setText(tr("No listed model matches. Press Enter to use this name."))
        self.list.chosen.connect(self.default_chosen)
        self.list.selected.connect(self.selected)
        self.list.selected.connect(self._show_use)
        self.use = button(
            self, tr("Use for new conversations"),
            lambda: self.default_chosen.emit(self.list.wanted), kind="primary",
        )  # fmt: skip
        self.window_text = PlainLabel(self, wordWrap=True, tone="small")
        self.window_tokens = line_edit(self, tr("tokens"), name=tr("Context window in tokens"))
        self.window_tokens.setMaximumWidth(120)
        self.window_tokens.returnPressed.connect(self._on_set_clicked)
        self.set_window = button(self, tr("Set context size"), self._on_set_clicked)
        self.reset_window = button(
            self, tr("Reset"), lambda: self.window_entered.emit(self.list.wanted, ""), kind="quiet"
        )
        self.note = PlainLabel(self, wordWrap=True)
        row = row_of((self.window_text, 1), self.window_tokens, self.set_window, self.reset_window)
        filled(self.column, row_of(self.use, (self.note, 100), None), self.list, row)
        self._default = ""
        self.hide()

    def show_models(self, rows: tuple[ModelRow, ...], default: str) -> None:
        """Show the models; the default one is selected if it is among them."""
        note = "" if rows else tr("The server lists no models. Type the name of one above.")
        self.list.search.clear()
        self.list.show_groups([ModelGroup("", rows, note)], default)
        self.list.reveal()
        height_px = self.list.fitting_height()
        self.list.setMinimumHeight(min(_LIST_PX, height_px))
        self.list.setMaximumHeight(height_px)
        self.show_default(default)
        self.note.show_text("", "muted")
        self.show()

    def show_default(self, default: str) -> None:
        """Offer the selected model for new conversations, unless it is this PROVIDER:MODEL."""
        self._default = default
        self._show_use()

    def show_window(self, text: str, *, is_own: bool) -> None:
        """Show the window of the selected model, and whether the user set it."""
        self.window_text.setText(text)
        self.window_tokens.clear()
        for part in (self.window_tokens, self.set_window):
            part.setEnabled(bool(text))
        self.reset_window.setVisible(is_own)

    def _show_use(self) -> None:
        self.use.setEnabled(self.list.wanted not in ("", self._default))

    def _on_set_clicked(self) -> None:
        if typed := self.window_tokens.text().strip():
            self.window_entered.emit(self.list.wanted, typed)
