"""The providers page of the settings: a card for each provider and a form to add one."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QFormLayout,
    QFrame,
    QVBoxLayout,
    QWidget,
)

from app.providers.vendors import vendors
from ui.widgets.controls import button, combo_box, filled, key_edit, line_edit, row_of
from ui.widgets.plain_label import PlainLabel
from ui.widgets.tab_order import stop_before, tab_through


@dataclass(frozen=True, slots=True)
class ProviderCardContent:
    """The content of a provider's card; `key_text` is the source of its key, never the key."""

    name: str
    title: str
    base_url: str
    key_text: str
    has_saved_key: bool
    removable: bool


class ProvidersPage(QWidget):
    """A card for each provider and a form for a new one.

    Signals:
        key_entered: (provider, key). key_removed: provider. test_requested: provider.
        removal_requested: provider. addition_requested: (name, kind, base URL, key).
    """

    key_entered = Signal(str, str)
    key_removed = Signal(str)
    test_requested = Signal(str)
    removal_requested = Signal(str)
    addition_requested = Signal(str, str, str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.cards: dict[str, ProviderCard] = {}
        self._offer = PlainLabel(self, wordWrap=True, tone="muted")
        self._offer.hide()
        self._cards = QVBoxLayout()
        self._cards.setSpacing(10)
        self.form = NewProviderForm(self)
        self.form.submitted.connect(self.addition_requested)
        about = PlainLabel(
            "Without a provider, nothing leaves this computer. Messages to a provider are sent to "
            "the address shown here, together with what recall adds from your history.",
            self,
            wordWrap=True,
            tone="small",
        )
        parts = (about, self._offer, self._cards, self.form, None)
        filled(QVBoxLayout(self), *parts, margins=(16, 8, 16, 16))

    def show_providers(self, providers: Sequence[ProviderCardContent]) -> None:
        """Show these in order; a card that stays keeps what is typed in it."""
        for name in set(self.cards) - {each.name for each in providers}:
            self.cards.pop(name).deleteLater()
        for place, content in enumerate(providers):
            card = self.cards.get(content.name)
            if card is None:
                card = ProviderCard(content.name, self)
                card.key_entered.connect(self.key_entered)
                card.key_removed.connect(self.key_removed)
                card.test_requested.connect(self.test_requested)
                card.removal_requested.connect(self.removal_requested)
                self.cards[content.name] = card
                tab_through((stop_before(self.form.name), *card.stops, self.form.name))
                self._cards.insertWidget(place, card)
            card.show_content(content)

    def show_outcome(self, name: str, text: str, *, ok: bool) -> None:
        """Show the result of a test on the provider's card."""
        if (card := self.cards.get(name)) is not None:
            card.show_outcome(text, ok=ok)

    def offer_local(self, text: str) -> None:
        """Show which local servers were found; none is used before it is added."""
        self._offer.setText(text)
        self._offer.setVisible(bool(text))


class ProviderCard(QFrame):
    """One provider.

    Signals: as of `ProvidersPage`.
    """

    key_entered = Signal(str, str)
    key_removed = Signal(str)
    test_requested = Signal(str)
    removal_requested = Signal(str)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", "card")
        self.setAccessibleName(name)
        self._name = name
        self._title = PlainLabel(self, tone="heading")
        self._place = PlainLabel(self, wordWrap=True, tone="small")
        self.key = key_edit(self, "API key", f"API key of {name}")
        self.key.returnPressed.connect(self._on_key_entered)
        self.save = button(self, "Save key", self._on_key_entered)
        self.forget = button(
            self, "Remove key", lambda: self.key_removed.emit(self._name), kind="quiet"
        )
        self.test = button(self, "Test connection", self._on_test_clicked)
        self.remove = button(
            self, "Remove", lambda: self.removal_requested.emit(self._name), kind="danger"
        )
        self.outcome = PlainLabel(self, wordWrap=True)
        self.outcome.hide()
        for each in (self.save, self.forget, self.test, self.remove):
            each.setAccessibleDescription(name)
        entry = row_of((self.key, 1), self.save, self.forget)
        actions = row_of(self.test, None, self.remove)
        parts = (self._title, self._place, entry, actions, self.outcome)
        filled(QVBoxLayout(self), *parts, margins=(14, 12, 14, 12))

    @property
    def stops(self) -> tuple[QWidget, ...]:
        """The widgets that Tab goes through, in order."""
        return (self.key, self.save, self.forget, self.test, self.remove)

    def show_content(self, content: ProviderCardContent) -> None:
        """Show a provider."""
        self._title.setText(content.title)
        self._place.setText(f"{content.base_url}\n{content.key_text}")
        self.forget.setVisible(content.has_saved_key)
        self.remove.setVisible(content.removable)

    def show_outcome(self, text: str, *, ok: bool) -> None:
        """Show the result of a test."""
        self.test.setEnabled(True)
        self._show(text, "success" if ok else "error")

    def _on_key_entered(self) -> None:
        if text := self.key.text().strip():
            self.key.clear()
            self.key_entered.emit(self._name, text)

    def _on_test_clicked(self) -> None:
        self.test.setEnabled(False)
        self._show("Connecting\u2026", "muted")
        self.test_requested.emit(self._name)

    def _show(self, text: str, tone: str) -> None:
        self.outcome.setProperty("tone", tone)
        self.outcome.style().polish(self.outcome)
        self.outcome.setText(text)
        self.outcome.show()


class NewProviderForm(QFrame):
    """Adds a provider by base URL.

    Signals:
        submitted: (name, kind, base URL, key).
    """

    submitted = Signal(str, str, str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", "card")
        heading = PlainLabel("Add a provider", self, tone="heading")
        self.name = line_edit(self, "ollama")
        kinds = sorted(vendors().values(), key=lambda vendor: vendor.is_built_in)
        self.kind = combo_box(self, "", ((vendor.title, vendor.kind) for vendor in kinds))
        self.base_url = line_edit(self, "http://localhost:11434/v1")
        self.key = key_edit(self, "none, for most local servers", "")
        self.error = PlainLabel(self, wordWrap=True, tone="error")
        self.error.hide()
        self.add = button(self, "Add", self._on_add_clicked)
        form = QFormLayout()
        for name, field in (
            ("Name", self.name),
            ("Kind", self.kind),
            ("Base URL", self.base_url),
            ("API key", self.key),
        ):
            field.setAccessibleName(name)
            label = PlainLabel(name, self)
            label.setBuddy(field)
            label.setMinimumHeight(field.sizeHint().height())  # else it is aligned to the top
            form.addRow(label, field)
        parts = (heading, form, self.error, self.add)
        filled(QVBoxLayout(self), *parts, margins=(14, 12, 14, 12))

    def prefill(self, name: str, base_url: str) -> None:
        """Fill in a server that was found."""
        self.name.setText(name)
        self.base_url.setText(base_url)

    def show_error(self, text: str) -> None:
        """Show why it was not added; the fields stay."""
        self.error.setText(text)
        self.error.setVisible(bool(text))

    def clear(self) -> None:
        """Empty the fields after an addition."""
        for field in (self.name, self.base_url, self.key):
            field.clear()
        self.show_error("")

    def _on_add_clicked(self) -> None:
        self.submitted.emit(
            self.name.text().strip(),
            str(self.kind.currentData()),
            self.base_url.text().strip(),
            self.key.text().strip(),
        )
