"""Providers of models: keys, base URLs, a test, the list of models."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from ui.widgets.plain_label import PlainLabel
from ui.widgets.tab_order import stop_before, tab_through


@dataclass(frozen=True, slots=True)
class ProviderCardContent:
    """What a card shows of a provider; `key_words` says where its key comes from, never the key."""

    name: str
    title: str
    base_url: str
    key_words: str
    key_editable: bool
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
        self._offer = PlainLabel(self, wordWrap=True)
        self._offer.setProperty("tone", "muted")
        self._offer.hide()
        self._cards = QVBoxLayout()
        self._cards.setSpacing(10)
        self.form = NewProviderForm(self)
        self.form.submitted.connect(self.addition_requested)
        words = PlainLabel(
            "Without a provider nothing leaves this computer. What you send to one goes to the "
            "address shown here, with as much of your past as recall adds.",
            self,
            wordWrap=True,
        )
        words.setProperty("tone", "small")
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 8, 16, 16)
        column.addWidget(words)
        column.addWidget(self._offer)
        column.addLayout(self._cards)
        column.addWidget(self.form)
        column.addStretch(1)

    def show_providers(self, providers: Sequence[ProviderCardContent]) -> None:
        """Show these, in order; cards of the same name keep what is typed in them."""
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

    def show_outcome(self, name: str, words: str, *, ok: bool) -> None:
        """Show how a test ended, on the provider's card."""
        if (card := self.cards.get(name)) is not None:
            card.show_outcome(words, ok=ok)

    def offer_local(self, words: str) -> None:
        """Tell of a local server that was found; it is not used until it is added."""
        self._offer.setText(words)
        self._offer.setVisible(bool(words))


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
        self._title = PlainLabel(self)
        self._title.setProperty("tone", "heading")
        self._place = PlainLabel(self, wordWrap=True)
        self._place.setProperty("tone", "small")
        self.key = QLineEdit(self)
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        self.key.setAccessibleName(f"API key of {name}")
        self.key.returnPressed.connect(self._on_key_entered)
        self.save = QPushButton("Save key", self)
        self.save.clicked.connect(self._on_key_entered)
        self.forget = QPushButton("Remove key", self)
        self.forget.setProperty("kind", "quiet")
        self.forget.clicked.connect(lambda: self.key_removed.emit(self._name))
        self.test = QPushButton("Test connection", self)
        self.test.clicked.connect(self._on_test_clicked)
        self.remove = QPushButton("Remove", self)
        self.remove.setProperty("kind", "danger")
        self.remove.clicked.connect(lambda: self.removal_requested.emit(self._name))
        self.outcome = PlainLabel(self, wordWrap=True)
        self.outcome.hide()
        for button in (self.save, self.forget, self.test, self.remove):
            button.setAccessibleDescription(name)
        entry = QHBoxLayout()
        entry.addWidget(self.key, 1)
        entry.addWidget(self.save)
        entry.addWidget(self.forget)
        actions = QHBoxLayout()
        actions.addWidget(self.test)
        actions.addStretch(1)
        actions.addWidget(self.remove)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 12, 14, 12)
        column.addWidget(self._title)
        column.addWidget(self._place)
        column.addLayout(entry)
        column.addLayout(actions)
        column.addWidget(self.outcome)

    @property
    def stops(self) -> tuple[QWidget, ...]:
        """What Tab goes through, in order."""
        return (self.key, self.save, self.forget, self.test, self.remove)

    def show_content(self, content: ProviderCardContent) -> None:
        """Show a provider; a key field is there only where a key can be entered."""
        self._title.setText(content.title)
        self._place.setText(f"{content.base_url}\n{content.key_words}")
        self.key.setPlaceholderText("API key")
        for part in (self.key, self.save, self.forget):
            part.setVisible(content.key_editable)
        self.forget.setVisible(content.key_editable and content.has_saved_key)
        self.remove.setVisible(content.removable)

    def show_outcome(self, words: str, *, ok: bool) -> None:
        """Show how a test ended."""
        self.test.setEnabled(True)
        self.outcome.setProperty("tone", "success" if ok else "error")
        self.outcome.style().polish(self.outcome)
        self.outcome.setText(words)
        self.outcome.show()

    def _on_key_entered(self) -> None:
        if text := self.key.text().strip():
            self.key.clear()
            self.key_entered.emit(self._name, text)

    def _on_test_clicked(self) -> None:
        self.test.setEnabled(False)
        self.outcome.setProperty("tone", "muted")
        self.outcome.style().polish(self.outcome)
        self.outcome.setText("Connecting\u2026")
        self.outcome.show()
        self.test_requested.emit(self._name)


class NewProviderForm(QFrame):
    """Adds a provider by base URL.

    Signals:
        submitted: (name, kind, base URL, key).
    """

    submitted = Signal(str, str, str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", "card")
        title = PlainLabel("Add a provider", self)
        title.setProperty("tone", "heading")
        self.name = QLineEdit(self)
        self.name.setPlaceholderText("ollama")
        self.kind = QComboBox(self)
        for words, kind in (
            ("OpenAI-compatible server", "compatible"),
            ("OpenAI", "openai"),
            ("Anthropic", "anthropic"),
        ):
            self.kind.addItem(words, kind)
        self.base_url = QLineEdit(self)
        self.base_url.setPlaceholderText("http://localhost:11434/v1")
        self.key = QLineEdit(self)
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        self.key.setPlaceholderText("none, for most local servers")
        self.error = PlainLabel(self, wordWrap=True)
        self.error.setProperty("tone", "error")
        self.error.hide()
        add = QPushButton("Add", self)
        add.clicked.connect(self._on_add_clicked)
        self.add = add
        form = QFormLayout()
        for label, field in (
            ("Name", self.name),
            ("Kind", self.kind),
            ("Base URL", self.base_url),
            ("API key", self.key),
        ):
            field.setAccessibleName(label)
            called = PlainLabel(label, self)
            called.setBuddy(field)
            called.setMinimumHeight(field.sizeHint().height())  # beside it, not at its top
            form.addRow(called, field)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 12, 14, 12)
        column.addWidget(title)
        column.addLayout(form)
        column.addWidget(self.error)
        column.addWidget(add)

    def prefill(self, name: str, base_url: str) -> None:
        """Offer a server that was found."""
        self.name.setText(name)
        self.base_url.setText(base_url)

    def show_error(self, words: str) -> None:
        """Tell why it was not added; the fields stay."""
        self.error.setText(words)
        self.error.setVisible(bool(words))

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
