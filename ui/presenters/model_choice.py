"""The model that answers: the picker above the conversation, and the default for new ones."""

from functools import partial
from typing import Protocol

from PySide6.QtCore import QObject, SignalInstance
from PySide6.QtWidgets import QInputDialog

from app.chat.exchange_loop import ExchangeLoop
from app.chat.library import Library
from app.chat.models import ModelDirectory
from app.domain.changes import ChangeSet
from app.domain.errors import KnownError
from app.storage.tables.settings import Settings
from ui.bridge import Bridge
from ui.presenters.protocols import MessageView, ShownConversation

_BUILT_IN = ("recall:", "Recall (built in)")


class ModelPickerView(Protocol):
    """The picker, its signals, and the line for what went wrong."""

    @property
    def banner(self) -> MessageView: ...  # noqa: D102
    @property
    def models_requested(self) -> SignalInstance: ...  # noqa: D102
    @property
    def model_chosen(self) -> SignalInstance: ...  # noqa: D102
    @property
    def other_model_requested(self) -> SignalInstance: ...  # noqa: D102
    @property
    def default_model_requested(self) -> SignalInstance: ...  # noqa: D102

    def show_models(self, models: dict[str, str], chosen: str, default: str, /) -> None:
        """Show models (PROVIDER:MODEL) by their label."""
        ...

    def show_status(self, text: str, /) -> None:
        """Show a line above the composer; "" hides it."""
        ...


class ModelPickerPresenter(QObject):
    """Keeps the picker up to date with the open conversation, the settings and the providers."""

    def __init__(
        self,
        models: ModelDirectory,
        settings: Settings,
        library: Library,
        exchanges: ExchangeLoop,
        bridge: Bridge,
        view: ModelPickerView,
        conversation: ShownConversation,
    ) -> None:
        super().__init__(bridge)
        self._models = models
        self._settings = settings
        self._library = library
        self._exchanges = exchanges
        self._bridge = bridge
        self._view = view
        self._open = conversation
        self._for_new: str | None = None
        self._listed: list[tuple[str, str]] = []
        conversation.opened.connect(self._on_conversation_opened)
        conversation.updated.connect(self._show)
        bridge.changed.connect(self._on_changed)
        view.models_requested.connect(self._on_models_requested)
        view.model_chosen.connect(self._on_model_chosen)
        view.other_model_requested.connect(self._on_other_model_requested)
        view.default_model_requested.connect(self._on_default_model_requested)

    @property
    def chosen(self) -> str:
        """The model that answers in the open conversation."""
        return self._model or self._settings.text("default_model")

    def model_for_new(self) -> str | None:
        """Return the model of a conversation that begins now, None for the default."""
        return self._for_new if self._open.view is None else None

    @property
    def _model(self) -> str | None:
        view = self._open.view
        return self._for_new if view is None else view.conversation.model

    def _show(self, *_: object) -> None:
        default = self._settings.text("default_model")
        chosen = self._model or default
        rows = dict((_BUILT_IN, *self._listed))
        for model in (default, chosen):
            rows.setdefault(model, model)
        self._view.show_models(rows, chosen, default)

    def _on_conversation_opened(self, _conversation: object) -> None:
        self._for_new = None
        self._show()

    def _on_changed(self, changed: ChangeSet) -> None:
        if changed.providers:
            self._listed = []
        if changed.providers or "default_model" in changed.settings:
            self._show()

    # -- the list

    def _on_models_requested(self) -> None:
        self._bridge.start("models", self._list_models(), self._view.banner.show_error)

    async def _list_models(self) -> None:
        """List the models of every provider with a key; name those that failed."""
        names = await self._bridge.run(self._usable_providers)
        rows: list[tuple[str, str]] = []
        failures: list[str] = []
        for name in names:
            call = self._exchanges.call(partial(self._models.models, name))
            try:
                cards = await self._bridge.wait(call)
            except KnownError as error:
                failures.append(f"{name}: {error.title}.")
                continue
            rows += [(str(card.ref), str(card.ref)) for card in cards if not card.is_embedding]
        self._view.show_status(" ".join(failures))
        if rows != self._listed:
            self._listed = rows
            self._show()

    def _usable_providers(self) -> list[str]:
        names = [state.config.name for state in self._models.providers()]
        return [name for name in names if self._models.has_key(name)]

    # -- choices

    def _on_model_chosen(self, model: str) -> None:
        self._bridge.submit(self._choose(model))

    async def _choose(self, model: str) -> None:
        view = self._open.view
        opened = view.conversation.id if view else None

        def store() -> str:
            checked = self._models.check_name(model)
            if opened is not None:
                self._library.choose_model(opened, checked)
            return checked

        try:
            checked = await self._bridge.write(store)
        except KnownError as error:
            self._view.banner.show_error(error)
            self._show()
            return
        if opened is None and self._open.view is None:
            self._for_new = None if checked == self._settings.text("default_model") else checked
            self._show()

    def _on_default_model_requested(self) -> None:
        chosen, banner = self.chosen, self._view.banner

        async def store() -> None:
            await self._bridge.write(lambda: self._settings.set("default_model", chosen))
            banner.show_message(f"New conversations will use {chosen}.", brief=True)

        self._bridge.submit(store(), banner.show_error)

    def _on_other_model_requested(self) -> None:
        self._show()
        dialog = QInputDialog(self._view.banner.window())
        dialog.setWindowTitle("Another model")
        dialog.setLabelText("The model, as PROVIDER:MODEL:")
        dialog.setTextValue(self.chosen)
        dialog.textValueSelected.connect(self._on_model_chosen)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()
